/* SPDX-License-Identifier: Apache-2.0 */
/* names_hostile SECONDS: thread names and a perf map with separators, control bytes, escape sequences and malformed
 * UTF-8. The "compiled" function is a copy of a loop in fresh executable memory. x86-64 and aarch64. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "work.h"

static const char *const names[] = { "semi;colon",
				     "new\nline",
				     "\xff\xfe bad",
				     "\x1b[31mred",
				     "\xe2\x80\xae"
				     "evil",
				     "a 12 3" };
#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

static double deadline;

#if defined(__x86_64__)
/* push rbp; mov rbp,rsp; mov rcx,rdi; 1: dec rcx; jnz 1b; pop rbp; ret */
static const unsigned char code[] = {
	0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3
};
#else
/* stp x29,x30,[sp,#-16]!; mov x29,sp; 1: subs x0,x0,#1; b.ne 1b; ldp x29,x30,[sp],#16; ret */
static const unsigned int code[] = { 0xa9bf7bfd, 0x910003fd, 0xf1000400, 0x54ffffe1, 0xa8c17bfd, 0xd65f03c0 };
#endif

static void (*compiled[NAME_COUNT])(unsigned long turns);

static void write_perf_map(const unsigned char *memory)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	if (!map)
		return;
	/* Lines nobody should trust, then one per function. */
	fprintf(map, "zzzz 10 not hex\nffffffffffffffff ffffffffffffffff overflow\n\n10\n 20 \n");
	for (size_t i = 0; i < NAME_COUNT; i++) {
		char name[32];

		snprintf(name, sizeof(name), "jit;%s", names[i]);
		for (char *at = name; *at; at++)
			*at = *at == '\n' ? '\t' : *at; /* a line break ends the line, nothing to test */
		fprintf(map, "%lx %zx %s\n", (unsigned long)(memory + 64 * i), sizeof(code), name);
	}
	fprintf(map, "%lx 10 no line break at the end", (unsigned long)(memory + 4000));
	fclose(map);
}

NOINLINE void *hostile_thread(void *index)
{
	prctl(PR_SET_NAME, names[(size_t)index]);
	while (now_s() < deadline)
		compiled[(size_t)index](10000000);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned char *memory =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t threads[NAME_COUNT];
	char path[64];

	if (memory == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < NAME_COUNT; i++) {
		memcpy(memory + 64 * i, code, sizeof(code));
		*(void **)&compiled[i] = memory + 64 * i;
	}
	__builtin___clear_cache((char *)memory, (char *)memory + 4096);
	write_perf_map(memory);
	deadline = now_s() + seconds_of(argc, argv, 2);
	for (size_t i = 0; i < NAME_COUNT; i++)
		pthread_create(&threads[i], NULL, hostile_thread, (void *)i);
	for (size_t i = 0; i < NAME_COUNT; i++)
		pthread_join(threads[i], NULL);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	return 0;
}
