/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a BPF program has that runs the walk of one runtime without native frames (*_seed.bpf.c), and its shell wants of
 * its includer. */
#pragma once

#include "bpf/unwind.h"

#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ABI_COUNTER_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

static __always_inline void count_add(__u32 counter, __u64 n)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &counter);

	if (value)
		*value += n;
}

static __always_inline __u64 ring_flags(bool urgent)
{
	return urgent ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

struct seed {
	__u64 tp, tid;
};

__u64 seed_ns; /* what the last walk took */
