/* SPDX-License-Identifier: Apache-2.0 */
#include "raw_shot.h"

#include <execinfo.h>
#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "walk/walk.h"

void raw_shot_release(struct raw_shot *s)
{
	free(s->sample);
}

static struct abi_raw raw_of(const ucontext_t *here)
{
	struct abi_raw raw = { .is_leaf = 1 };

#ifdef WALK_X86_64
	static const int order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
				     REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		raw.regs[i] = (uint64_t)here->uc_mcontext.gregs[order[i]];
#else
	for (size_t i = 0; i < 31; i++)
		raw.regs[i] = here->uc_mcontext.regs[i];
	raw.regs[WALK_REG_SP] = here->uc_mcontext.sp;
	raw.regs[WALK_REG_PC] = here->uc_mcontext.pc;
	raw.lr = raw.regs[WALK_REG_LR];
#endif
	raw.pc = raw.regs[WALK_REG_PC];
	raw.sp = raw.regs[WALK_REG_SP];
	raw.fp = raw.regs[WALK_REG_FP];
	return raw;
}

/* Reads this thread's stack, redzones and all: bytes that the compiler's checks know nothing of. */
__attribute__((no_sanitize("address", "thread"))) static void copy_stack(uint8_t *dst, uint64_t from, size_t size)
{
	const volatile uint8_t *src = (const volatile uint8_t *)(uintptr_t)from;

	for (size_t i = 0; i < size; i++)
		dst[i] = src[i];
}

static uint64_t stack_end(void)
{
	pthread_attr_t attr;
	void *start = NULL;
	size_t size = 0;

	assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
	assert_int_equal(pthread_attr_getstack(&attr, &start, &size), 0);
	pthread_attr_destroy(&attr);
	return (uint64_t)(uintptr_t)start + size;
}

__attribute__((noinline)) void raw_shot_take(struct raw_shot *out, size_t stack_max)
{
	size_t head = sizeof(struct abi_sample), size;
	struct abi_raw raw;
	static ucontext_t here; /* 4.5 KiB on aarch64 */
	uint8_t *bytes;

	assert_int_equal(getcontext(&here), 0);
	out->caller_count = backtrace(out->callers, RAW_SHOT_FRAMES);
	raw = raw_of(&here);
	size = (size_t)MIN((uint64_t)stack_max, stack_end() - raw.sp) / 8 * 8;
	raw.stack_size = (uint32_t)size;
	out->sample = calloc(1, head + sizeof(raw) + size);
	assert_non_null(out->sample);
	bytes = (uint8_t *)out->sample;
	*out->sample = (struct abi_sample){ .header = { .type = ABI_RECORD_SAMPLE,
							.version = ABI_VERSION,
							.size = (uint32_t)(head + sizeof(raw) + size),
							.time_ns = clock_monotonic_ns(&clock_system) },
					    .pid = (uint32_t)getpid(),
					    .tid = (uint32_t)getpid(),
					    .process_start_ns = RAW_SHOT_START_NS,
					    .exec_id = 1,
					    .stack_pointer = raw.sp,
					    .flags = ABI_SAMPLE_RAW,
					    .user_end = ABI_END_NO_PROCESS };
	memcpy(bytes + head, &raw, sizeof(raw));
	copy_stack(bytes + head + sizeof(raw), raw.sp, size);
}

__attribute__((noinline)) void raw_shot_deep(struct raw_shot *out, size_t stack_max, int depth)
{
	volatile uint8_t room[256];

	room[0] = (uint8_t)depth;
	if (depth)
		raw_shot_deep(out, stack_max, depth - 1);
	else
		raw_shot_take(out, stack_max);
	room[1] = room[0];
}
