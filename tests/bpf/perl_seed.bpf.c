// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The walk of Perl's frames without native ones: BPF_PROG_TEST_RUN gives the thread pointer, the memory is that of the
 * caller. Raising names_epoch makes it forget what it found out before. */
#include "seed.bpf.h"

#include "bpf/perl.h"

SEC("raw_tp")
int perl_seed(struct seed *ctx)
{
	struct walk *w = unwind_state();
	struct abi_perl *info;
	__u64 start = bpf_ktime_get_ns();
	__u32 zero = 0;

	info = bpf_map_lookup_elem(&perls, &zero);
	if (!w || !info)
		return -1;
	__builtin_memset(walk_sample(w), 0, sizeof(struct abi_sample));
	w->count = 0;
	w->tp = ctx->tp;
	walk_perl_start(w, info, names_epoch);
	UNWIND_LOOP(perl);
	behind_count(w);
	seed_ns = bpf_ktime_get_ns() - start;
	return bpf_get_smp_processor_id();
}
