/* SPDX-License-Identifier: Apache-2.0 */
/* jitdump SECONDS: makes code while it runs and writes a jitdump about it, as JIT compilers do. For the first half
 * "first_loop" is at the address, then "second_loop"; "moved_loop" is told with its lines and moved. x86-64 and
 * aarch64. Source of the format: linux 6.1, tools/perf/Documentation/jitdump-specification.txt. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

#define SLOT 4096

/* Counts its argument down to 0, with a frame. */
static const unsigned char code[] = {
#if defined(__x86_64__)
	0x55, 0x48, 0x89, 0xe5,       /* push %rbp; mov %rsp,%rbp */
	0x48, 0xff, 0xcf, 0x75, 0xfb, /* dec %rdi; jnz to it */
	0x5d, 0xc3,                   /* pop %rbp; ret */
#else
	0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6, /* subs x0,x0,#1; b.ne to it; ret */
#endif
};

struct load {
	uint32_t type, size;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, address, code_size, index;
};

struct move {
	uint32_t type, size;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, old, address, code_size, index;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void put(int fd, const void *bytes, size_t size)
{
	if (write(fd, bytes, size) != (ssize_t)size)
		exit(1);
}

static void put_load(int fd, const char *name, void *at, uint64_t index)
{
	struct load load = { 0,
			     (uint32_t)(sizeof(load) + strlen(name) + 1 + sizeof(code)),
			     now_ns(),
			     (uint32_t)getpid(),
			     (uint32_t)getpid(),
			     (uintptr_t)at,
			     (uintptr_t)at,
			     sizeof(code),
			     index };

	put(fd, &load, sizeof(load));
	put(fd, name, strlen(name) + 1);
	put(fd, code, sizeof(code));
}

/* One line for all of the function. */
static void put_line(int fd, void *at, const char *file, uint32_t line)
{
	struct {
		uint32_t type, size;
		uint64_t time, address, count, line_address;
		uint32_t line, column;
	} debug = {
		2, (uint32_t)(sizeof(debug) + strlen(file) + 1), now_ns(), (uintptr_t)at, 1, (uintptr_t)at, line, 0
	};

	put(fd, &debug, sizeof(debug));
	put(fd, file, strlen(file) + 1);
}

NOINLINE void run_made_code(void *at, double until)
{
	void (*function)(unsigned long) = (void (*)(unsigned long))(uintptr_t)at;

	while (now_s() < until) {
		function(10000000);
		STAY;
	}
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2, start = now_s();
	const struct {
		uint32_t magic, version, size, machine, pad, pid;
		uint64_t time, flags;
	} header = { 0x4a695444, 1, 40, 62, 0, (uint32_t)getpid(), now_ns(), 0 };
	unsigned char *area =
		mmap(NULL, 4 * SLOT, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct move move;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || area == MAP_FAILED)
		return 1;
	put(fd, &header, sizeof(header));
	/* The mark by which readers find the file. */
	if (mmap(NULL, SLOT, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	memcpy(area, code, sizeof(code));
	memcpy(area + 2 * SLOT, code, sizeof(code));
	__builtin___clear_cache((char *)area, (char *)area + 4 * SLOT);
	put_load(fd, "first_loop", area, 1);
	run_made_code(area, start + seconds / 3);
	put_load(fd, "second_loop", area, 2);
	run_made_code(area, start + 2 * seconds / 3);
	put_line(fd, area + SLOT, "/src/moved.js", 42);
	put_load(fd, "moved_loop", area + SLOT, 3);
	move = (struct move){ 1,
			      sizeof(move),
			      now_ns(),
			      (uint32_t)getpid(),
			      (uint32_t)getpid(),
			      (uintptr_t)area + 2 * SLOT,
			      (uintptr_t)area + SLOT,
			      (uintptr_t)area + 2 * SLOT,
			      sizeof(code),
			      3 };
	put(fd, &move, sizeof(move));
	run_made_code(area + 2 * SLOT, start + seconds);
	close(fd);
	return 0;
}
