/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The fall-back for a raw sample whose stack goes on behind its usual copy: a second buffer, one a CPU, holds the whole
 * record with up to ABI_STACK_LONG_MAX bytes of stack. So the stacks of deep programs (compilers) are whole while their
 * rows load. Each CPU has an allowance of bytes a second, and the ring must have room; without either the sample goes
 * out with the usual copy.
 *
 * The includer has count_add(), ring_flags() and the map `ring`. */
#pragma once

#include "raw.h"

#define LONG_MORE (ABI_STACK_LONG_MAX - ABI_STACK_MAX)
#define LONG_RECORD_MAX (sizeof(struct abi_sample) + RAW_AREA)
#define LONG_ALLOWANCE (8ULL << 20) /* bytes that may be sent at once */
#define LONG_REFILL_SHIFT 7         /* a byte comes back each 128 ns: 7.5 MiB a second */

struct long_copy {
	__u64 left, filled_ns;  /* of the allowance; when it was filled up last */
	__u64 size, from, more; /* of the record in bytes[]; the stack that follows it; how much of that is wanted */
	__u8 bytes[LONG_RECORD_MAX + LONG_MORE + RAW_CHUNK];
};

struct { /* too large for a per-CPU array, whose elements have 32 KiB at most */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the host makes it one a CPU */
	__type(key, __u32);
	__type(value, struct long_copy);
} longs SEC(".maps");

static __always_inline bool long_may(struct long_copy *l, __u64 now_ns)
{
	__u64 more = (now_ns - l->filled_ns) >> LONG_REFILL_SHIFT;

	if (more) {
		l->left += more;
		if (l->left > LONG_ALLOWANCE || more > LONG_ALLOWANCE)
			l->left = LONG_ALLOWANCE;
		l->filled_ns = now_ns;
	}
	return l->left >= LONG_MORE;
}

/* Bytes of stack from @from on that are worth a copy: see raw_stack_limit(). */
static __always_inline __u64 long_limit(__u64 from)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 start = BPF_CORE_READ(task, mm, start_stack), used = start + RAW_ROOT_BYTES - from;

	if (start + RAW_ROOT_BYTES <= from && from - start < STACK_SIZE_MAX) /* the usual copy has all */
		return 0;
	return start > from && used < LONG_MORE ? used & ~7ULL : LONG_MORE;
}

static __always_inline struct long_copy *long_buffer(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&longs, &cpu);
}

/* One piece of the stack behind the record in the buffer, up to the end of its page. A global function, which the
 * verifier checks once and not in each turn of the loop. Return: whether there may be another. */
__attribute__((noinline)) int long_step(void)
{
	struct long_copy *l = long_buffer();
	__u64 chunk, to;

	if (!l)
		return 0;
	chunk = RAW_CHUNK - (l->from & (RAW_CHUNK - 1));
	to = l->size;
	if (chunk > l->more)
		chunk = l->more;
	if (!chunk || to > LONG_RECORD_MAX + LONG_MORE)
		return 0;
	unwind_bound(chunk, RAW_CHUNK);
	unwind_bound(to, LONG_RECORD_MAX + LONG_MORE);
	if (bpf_probe_read_user(l->bytes + to, chunk, (const void *)l->from))
		return 0;
	l->from += chunk;
	l->more -= chunk;
	l->size += chunk;
	return 1;
}

/* Makes the record longer that lies in @l. @at: where its struct abi_raw is. Return: whether there was anything to add.
 */
static __always_inline bool long_grow(struct long_copy *l, __u64 at)
{
	__u64 before = l->size;
	struct abi_raw *raw;

	unwind_bound(at, LONG_RECORD_MAX - sizeof(*raw));
	raw = (struct abi_raw *)(l->bytes + at);
	if (!raw->stack_size) /* it is not aligned, or cannot be read */
		return false;
	l->from = raw->sp + raw->stack_size;
	l->more = long_limit(l->from);
	for (int i = 0; i < LONG_MORE / RAW_CHUNK + 1; i++)
		if (!long_step())
			break;
	if (l->size <= before)
		return false;
	raw->stack_size += (__u32)(l->size - before);
	((struct abi_header *)l->bytes)->size = (__u32)l->size;
	l->left -= l->size - before;
	return true;
}

/* Sends the record of the current tick, raw and complete in struct walk, with more of its stack. Return: 1 when the
 * host will have it, 0: it is still to be sent. */
__attribute__((noinline)) int long_send(void)
{
	struct walk *w = unwind_state();
	struct long_copy *l = long_buffer();
	struct abi_sample *sample;
	__u64 size;

	if (!w || !l)
		return 0;
	sample = walk_sample(w);
	size = sample->header.size;
	if (size > LONG_RECORD_MAX || !long_may(l, sample->header.time_ns) ||
	    bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > settings.ring_half)
		return 0;
	unwind_bound(size, LONG_RECORD_MAX);
	if (bpf_probe_read_kernel(l->bytes, size, w->head))
		return 0;
	l->size = size;
	if (!long_grow(l, sizeof(*sample) + ((__u64)w->count + w->runtime_count) * sizeof(struct abi_frame)))
		return 0;
	size = l->size;
	if (size > sizeof(l->bytes))
		return 0;
	unwind_bound(size, sizeof(l->bytes));
	if (bpf_ringbuf_output(&ring, l->bytes, size, ring_flags(sample->flags & (ABI_SAMPLE_YOUNG | ABI_SAMPLE_ASK))))
		return 0;
	count_add(ABI_COUNTER_LONG_COPIES, 1);
	return 1;
}
