// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The walk of CPython's frames without native ones. python_seed: BPF_PROG_TEST_RUN gives the thread pointer, the memory
 * is that of the caller; also what tests/kernels/verify.c asks how much of a verifier's patience it takes. python_tick:
 * at real ticks, with the time that it took, for tests/bench/python_ticks.c. */
#include "seed.bpf.h"

#include "bpf/python.h"

SEC("raw_tp")
int python_seed(struct seed *ctx)
{
	struct walk *w = unwind_state();
	struct abi_python *info;
	__u64 start = bpf_ktime_get_ns();
	__u32 zero = 0;

	info = bpf_map_lookup_elem(&pythons, &zero);
	if (!w || !info)
		return -1;
	__builtin_memset(walk_sample(w), 0, sizeof(struct abi_sample));
	w->count = 0;
	w->tp = ctx->tp;
	w->tid = (__u32)ctx->tid;
	walk_python_start(w, info, names_epoch);
	UNWIND_LOOP(python);
	behind_count(w);
	seed_ns = bpf_ktime_get_ns() - start;
	return bpf_get_smp_processor_id();
}

/* ---- what it costs ---- */

#define READS 100

/* READS reads of a frame: what everything else is made of. */
SEC("raw_tp")
int python_reads(struct seed *ctx)
{
	struct walk *w = unwind_state();
	__u64 start = bpf_ktime_get_ns();

	if (!w)
		return -1;
	for (int i = 0; i < READS; i++)
		if (bpf_probe_read_user(w->scratch, ABI_PYTHON_FRAME_BYTES, (const void *)ctx->tp))
			return -1;
	seed_ns = bpf_ktime_get_ns() - start;
	return 0;
}

#define TICKS_MAX 65536

struct python_tick {
	__u32 ns;
	__u16 frames; /* activations not counted */
	__u16 names;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TICKS_MAX);
	__type(key, __u32);
	__type(value, struct python_tick);
} ticks SEC(".maps");

__u32 target, tick_count;
__u64 names_sent_all;

SEC("perf_event")
int python_tick(struct tick *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), start = bpf_ktime_get_ns(), *names;
	__u32 name_counter = ABI_COUNTER_NAMES, slot;
	struct walk *w = unwind_state();
	struct python_tick *out;

	if (!w || pid_tgid >> 32 != target)
		return 0;
	names = bpf_map_lookup_elem(&counters, &name_counter);
	slot = tick_count++; /* the target has one thread that runs */
	out = bpf_map_lookup_elem(&ticks, &slot);
	if (!out || !names)
		return 0;
	names_sent_all = *names;
	__builtin_memset(walk_sample(w), 0, sizeof(struct abi_sample));
	walk_sample(w)->pid = pid_tgid >> 32;
	w->count = 0;
	if (!python_begin(w, (struct task_struct *)bpf_get_current_task()))
		return 0;
	UNWIND_LOOP(python);
	behind_count(w);
	out->ns = bpf_ktime_get_ns() - start;
	out->frames = w->runtime_count;
	out->names = *names - names_sent_all;
	return 0;
}
