/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a known stack and without frame pointers: main and DEPTH functions below it, each with a frame of its
 * own size. Prints where each function lies ("deep.h" reads it), the leaf first and main last, then turns in the leaf
 * until it is ended.
 *
 *	deep jit  turns in code that is in no file, below main
 *	deep big  the same as without, with DEEP_BIG bytes of the stack in use below main
 *
 *	SIGUSR1   begins anew by exec
 *	SIGUSR2   goes on in a forked child, too */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "deep.h"

/* Each function has a section of its own, so that its bounds are known. */
#define PLACED(name) __attribute__((noinline, section(#name "_text")))
#define BOUNDS(name) extern const char __start_##name##_text[], __stop_##name##_text[];

/* X(function, the one it calls, bytes of its frame) */
/* clang-format off */ /* version 14 moves these lines each time */
#define LEVELS(X)                                                                                                \
	X(f02, f01, 8)                                                                                           \
	X(f03, f02, 24)                                                                                          \
	X(f04, f03, 40)                                                                                          \
	X(f05, f04, 200)                                                                                         \
	X(f06, f05, 16)                                                                                          \
	X(f07, f06, 264)                                                                                         \
	X(f08, f07, 64)                                                                                          \
	X(f09, f08, 72)                                                                                          \
	X(f10, f09, 88) X(f11, f10, 8) X(f12, f11, 104) X(f13, f12, 120) X(f14, f13, 33) X(f15, f14, 136)        \
		X(f16, f15, 8) X(f17, f16, 152) X(f18, f17, 57) X(f19, f18, 168) X(f20, f19, 8) X(f21, f20, 184) \
			X(f22, f21, 16) X(f23, f22, 96) X(f24, f23, 48) X(f25, f24, 216) X(f26, f25, 8)          \
				X(f27, f26, 232) X(f28, f27, 80) X(f29, f28, 248) X(f30, f29, 8) X(f31, f30, 56) \
					X(f32, f31, 128)
/* clang-format on */

#define X(name, next, size) BOUNDS(name)
BOUNDS(f01)
LEVELS(X)
BOUNDS(deep_main)
#undef X

static volatile uint64_t sink;

PLACED(f01) static uint64_t f01(uint64_t x)
{
	for (;;) {
		for (int i = 0; i < 1000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u; /* D. Knuth, MMIX */
		sink = x;
		if (x == 1)
			return x;
	}
}

#define X(name, next, size)                                                                  \
	PLACED(name) static uint64_t name(uint64_t x)                                        \
	{                                                                                    \
		volatile uint8_t room[size];                                                 \
                                                                                             \
		room[x % sizeof(room)] = (uint8_t)x;                                         \
		return next(x + 1) + room[0]; /* something to do afterwards: no tail call */ \
	}
LEVELS(X)
#undef X

static void tell(void)
{
#define TELL(name) printf("%lx %lx\n", (unsigned long)__start_##name##_text, (unsigned long)__stop_##name##_text);
#define X(name, next, size) TELL(name)
	TELL(f01)
	LEVELS(X)
	TELL(deep_main)
#undef X
	fflush(stdout);
}

static void end_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(120);
}

static void on_exec(int number)
{
	sigset_t none;

	(void)number;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL); /* it would stay blocked */
	execl("/proc/self/exe", "deep", (char *)NULL);
	_exit(1);
}

static void on_fork(int number)
{
	(void)number;
	if (!fork())
		end_with_parent();
}

static void turn_in_jit_code(void)
{
#ifdef __x86_64__
	static const uint8_t forever[] = { 0xeb, 0xfe }; /* jmp . */
#else
	static const uint32_t forever[] = { 0x14000000 }; /* b . */
#endif
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		return;
	memcpy(code, forever, sizeof(forever));
	__builtin___clear_cache((char *)code, (char *)code + sizeof(forever));
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0)
		((void (*)(void))code)();
}

__attribute__((noinline)) static uint64_t big(uint64_t x, size_t left)
{
	volatile uint8_t room[1024];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = (uint8_t)(i + left);
	return (left > sizeof(room) ? big(x, left - sizeof(room)) : f32(x)) + room[0]; /* no tail call */
}

PLACED(deep_main) int main(int argc, char **argv)
{
	end_with_parent();
	signal(SIGUSR1, on_exec);
	signal(SIGUSR2, on_fork);
	tell();
	if (argc > 1 && !strcmp(argv[1], "jit"))
		turn_in_jit_code();
	if (argc > 1 && !strcmp(argv[1], "big"))
		sink = big((uint64_t)argc, DEEP_BIG);
	sink = f32((uint64_t)argc); /* no tail call */
	return 0;
}
