/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose native code, without frame pointers, calls code that it made itself, which calls native code, and so
 *on: main, fake_outer, function 0, fake_middle, function 1, function 2 (a stub), fake_leaf. tests/walk/walk_fake.h says
 *what the frames of the made code look like. Prints where the made code and the native functions lie, the leaf first
 *and main last, then turns until it is ended.
 *
 *	fake_program wait  the leaf sleeps a little each time
 *
 *	SIGUSR2            goes on in a forked child, too */
#include <linux/types.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define FAKE_ONLY_LAYOUT
#include "tests/walk/walk_fake.h"

#define PLACE 0x6a0000000000ULL
#define SPINS 400

#define PLACED(name) __attribute__((noinline, section(#name "_text")))
#define BOUNDS(name) extern const char __start_##name##_text[], __stop_##name##_text[];

BOUNDS(fake_leaf)
BOUNDS(fake_middle)
BOUNDS(fake_outer)
BOUNDS(fake_main)

typedef uint64_t (*made)(uint64_t x, uint64_t (*next)(uint64_t));

static volatile uint64_t sink;
static int waits;

static made function(unsigned int slot)
{
	return (made)(PLACE + slot * FAKE_CODE_BYTES);
}

PLACED(fake_leaf) static uint64_t fake_leaf(uint64_t x)
{
	const struct timespec little = { .tv_nsec = 200000 };

	for (int i = 0; i < 400; i++)
		x = x * 6364136223846793005u + 1442695040888963407u; /* D. Knuth, MMIX */
	if (waits)
		nanosleep(&little, NULL);
	sink = x;
	return x;
}

static uint64_t stub(uint64_t x)
{
	return function(FAKE_STUB)(x, fake_leaf);
}

PLACED(fake_middle) static uint64_t fake_middle(uint64_t x)
{
	volatile uint8_t room[72];

	for (int i = 0; i < 300; i++)
		room[(x + i) % sizeof(room)] = (uint8_t)i;
	return function(1)(x, fake_leaf) + room[0];
}

PLACED(fake_outer) static uint64_t fake_outer(uint64_t x)
{
	volatile uint8_t room[136];

	room[x % sizeof(room)] = (uint8_t)x;
	return function(0)(x, fake_middle) + room[0];
}

/* The code of walk_fake.h; the instructions' offsets are its FAKE_AT_... */
static void make(uint8_t *to, uint64_t address)
{
	uint64_t size = FAKE_MAGIC ^ FAKE_FRAME_BYTES;
	uint32_t spins = SPINS;
	static const uint8_t code[FAKE_CODE_BYTES] = {
		0x48, 0x83, 0xec, 0x38,                      /* sub $56,%rsp */
		0x48, 0x89, 0x6c, 0x24, 0x10,                /* mov %rbp,16(%rsp) */
		0x48, 0xb8, 0,    0,    0,    0, 0, 0, 0, 0, /* movabs $function,%rax */
		0x48, 0x89, 0x04, 0x24,                      /* mov %rax,(%rsp) */
		0x48, 0xb8, 0,    0,    0,    0, 0, 0, 0, 0, /* movabs $size,%rax */
		0x48, 0x89, 0x44, 0x24, 0x08,                /* mov %rax,8(%rsp) */
		0xbd, 0x34, 0x12, 0x00, 0x00,                /* mov $0x1234,%ebp */
		0xb9, 0,    0,    0,    0,                   /* mov $spins,%ecx */
		0xff, 0xc9,                                  /* dec %ecx */
		0x75, 0xfc,                                  /* jnz to it */
		0xff, 0xd6,                                  /* call *%rsi */
		0x48, 0x8b, 0x6c, 0x24, 0x10,                /* mov 16(%rsp),%rbp */
		0x48, 0x83, 0xc4, 0x38,                      /* add $56,%rsp */
		0xc3,                                        /* ret */
	};

	memcpy(to, code, sizeof(code));
	memcpy(to + 11, &address, sizeof(address));
	memcpy(to + 25, &size, sizeof(size));
	memcpy(to + 44, &spins, sizeof(spins));
}

static int make_all(void)
{
	uint8_t *code = mmap((void *)PLACE, 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (code != (uint8_t *)PLACE)
		return 1;
	for (unsigned int i = 0; i < FAKE_SLOTS; i++)
		make(code + i * FAKE_CODE_BYTES, PLACE + i * FAKE_CODE_BYTES);
	return mprotect(code, 4096, PROT_READ | PROT_EXEC);
}

static void end_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(120);
}

static void on_fork(int number)
{
	(void)number;
	if (!fork())
		end_with_parent();
}

static void tell(void)
{
#define TELL(name) printf("%lx %lx\n", (unsigned long)__start_##name##_text, (unsigned long)__stop_##name##_text);
	printf("%llx\n", PLACE);
	TELL(fake_leaf)
	TELL(fake_middle)
	TELL(fake_outer)
	TELL(fake_main)
	fflush(stdout);
}

PLACED(fake_main) int main(int argc, char **argv)
{
	end_with_parent();
	signal(SIGUSR2, on_fork);
	if (make_all())
		return 1;
	waits = argc > 1 && !strcmp(argv[1], "wait");
	tell();
	for (;;) {
		sink = fake_outer((uint64_t)argc);
		sink += stub(1) & 1;
	}
}
