/* SPDX-License-Identifier: Apache-2.0 */
/* A perf sample as a record of abi.h. */
#include <linux/perf_event.h>

#include "sampler/perf/record.h"
#include "walk/walk.h"

#define USER_FRAMES_MAX (ABI_FRAMES_MAX - ABI_KERNEL_FRAMES_MAX)

static uint64_t ip_at(const struct perf_record *r, size_t i)
{
	struct cur c = cur_of(r->ips + 8 * i, 8);

	return cur_le64(&c);
}

struct chain {
	size_t kernel, user; /* frames that were taken */
	size_t frames;       /* all that there were */
};

/* Whose frames follow is said by marks; before the first one they are whose code the event hit. A frame's address but
 * the first one's is where it will go on. */
static void take_chain(const struct perf_record *r, bool with_user, struct abi_sample *out, struct chain *chain)
{
	bool kernel = r->in_kernel, known = true, first = true;

	for (size_t i = 0; i < r->ip_count; i++) {
		uint64_t ip = ip_at(r, i);

		if (ip >= (uint64_t)PERF_CONTEXT_MAX) {
			kernel = ip == (uint64_t)PERF_CONTEXT_KERNEL;
			known = kernel || ip == (uint64_t)PERF_CONTEXT_USER; /* guests' frames are nobody's here */
			first = true;
			continue;
		}
		chain->frames++;
		if (!known || (kernel ? chain->user || chain->kernel == ABI_KERNEL_FRAMES_MAX
				      : !with_user || chain->user == USER_FRAMES_MAX))
			continue;
		out->frames[chain->kernel + chain->user] = (struct abi_frame){
			.kind = kernel ? ABI_FRAME_KERNEL : ABI_FRAME_USER,
			.flags = first ? 0 : ABI_FRAME_RETURN,
			.a = ip,
		};
		chain->kernel += kernel;
		chain->user += !kernel;
		first = false;
	}
}

#if defined(__x86_64__)
/* From the order of enum perf_event_x86_regs (linux, arch/x86/include/uapi/asm/perf_regs.h; without flags and segments)
 * to DWARF's (x86-64 psABI, figure 3.36). */
static const uint8_t dwarf_of[PERF_REGS] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15 };
#else
static const uint8_t dwarf_of[PERF_REGS] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
					     17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 };
#endif

/* Behind the kernel frames: where the host's walk begins. Return: bytes. */
static size_t add_raw(const struct perf_record *r, struct abi_sample *out, size_t frames)
{
	size_t size = MIN(r->stack_size & ~(size_t)7, (size_t)ABI_STACK_LONG_MAX);
	uint8_t *to = (uint8_t *)(out->frames + frames);
	struct abi_raw raw = { .is_leaf = 1 };

	for (size_t i = 0; i < PERF_REGS; i++)
		raw.regs[dwarf_of[i]] = r->regs[i];
	raw.pc = raw.regs[WALK_REG_PC];
	raw.sp = raw.regs[WALK_REG_SP];
	raw.fp = raw.regs[WALK_REG_FP];
#ifdef WALK_AARCH64
	raw.lr = raw.regs[WALK_REG_LR];
#endif
	raw.stack_size = (uint32_t)size;
	out->stack_pointer = raw.sp;
	out->flags |= ABI_SAMPLE_RAW;
	out->user_end = ABI_END_NO_PROCESS; /* nothing was walked yet */
	memcpy(to, &raw, sizeof(raw));
	if (size)
		memcpy(to + sizeof(raw), r->stack, size);
	return sizeof(raw) + size;
}

/* A thread that is being taken apart, or is in the middle of an exec, has no user stack. */
static uint8_t end_without(const struct perf_record *r)
{
	return r->in_kernel ? ABI_END_COMPLETE : ABI_END_NO_REGISTERS;
}

/* How a walk by frame pointers ended is not told: where its last frame lies in entry code, the host believes it. */
static uint8_t end_of_chain(const struct perf_record *r, const struct chain *chain, size_t chain_max)
{
	if (!chain->user)
		return end_without(r);
	return chain->frames >= chain_max || chain->user == USER_FRAMES_MAX ? ABI_END_FRAME_LIMIT
									    : ABI_END_UNPROVEN_ROOT;
}

static void set_head(const struct perf_record *r, const struct perf_identity *who, struct abi_sample *out)
{
	memset(out, 0, sizeof(*out));
	out->header.type = ABI_RECORD_SAMPLE;
	out->header.version = ABI_VERSION;
	out->header.time_ns = r->time_ns;
	out->process_start_ns = who->process_start_ns;
	out->pid = r->pid;
	out->tid = r->tid;
	out->cpu = r->cpu;
	out->exec_id = who->exec_id;
	out->flags =
		(uint16_t)((who->is_kernel ? ABI_SAMPLE_KERNEL_THREAD : 0) | (r->in_kernel ? ABI_SAMPLE_IN_KERNEL : 0));
	memcpy(out->comm, who->comm, sizeof(out->comm));
	memcpy(out->thread_name, who->thread_name, sizeof(out->thread_name));
}

bool perf_sample_make(const struct perf_record *r, const struct perf_identity *who, enum perf_walk walk,
		      size_t chain_max, struct abi_sample *out)
{
	struct chain chain = { 0 };
	size_t raw = 0;
	bool failed;

	set_head(r, who, out);
	take_chain(r, walk == PERF_WALK_CHAIN && !who->is_kernel, out, &chain);
	failed = r->in_kernel && !chain.kernel;
	if (failed || (chain.kernel && chain.kernel >= MIN(chain_max, (size_t)ABI_KERNEL_FRAMES_MAX)))
		out->flags |= ABI_SAMPLE_KERNEL_CUT;
	out->kernel_count = (uint16_t)chain.kernel;
	out->frame_count = (uint16_t)(chain.kernel + chain.user);
	if (who->is_kernel)
		out->user_end = ABI_END_COMPLETE;
	else if (walk == PERF_WALK_CHAIN)
		out->user_end = end_of_chain(r, &chain, chain_max);
	else if (r->regs_abi == PERF_SAMPLE_REGS_ABI_32)
		out->user_end = ABI_END_COMPAT;
	else if (r->regs_abi != PERF_SAMPLE_REGS_ABI_64 || (r->in_kernel && !r->stack_size))
		out->user_end = end_without(r);
	else
		raw = add_raw(r, out, chain.kernel);
	out->header.size = (uint32_t)(sizeof(*out) + out->frame_count * sizeof(struct abi_frame) + raw);
	return failed;
}
