// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The walk of PHP's frames without native ones: BPF_PROG_TEST_RUN gives the thread pointer, seed_pc and its like the
 * tick's registers, the memory is that of the caller. Raising names_epoch makes it forget what it found out before. */
#include "seed.bpf.h"

#include "abi/settings.h"

/* The shell's includer has them; nothing is asked for. */
const volatile struct abi_settings settings = {};

#include "bpf/php.h"

__u64 seed_pc, seed_frame, seed_op;

SEC("raw_tp")
int php_seed(struct seed *ctx)
{
	struct walk *w = unwind_state();
	struct abi_php *info;
	__u64 start = bpf_ktime_get_ns();
	__u32 zero = 0;

	info = bpf_map_lookup_elem(&phps, &zero);
	if (!w || !info)
		return -1;
	__builtin_memset(walk_sample(w), 0, sizeof(struct abi_sample));
	w->count = 0;
	w->tp = ctx->tp;
	w->leaf[WALK_REG_PC] = seed_pc;
	w->leaf[WALK_PHP_REG_FRAME] = seed_frame;
	w->leaf[WALK_PHP_REG_OP] = seed_op;
	walk_php_start(w, info, names_epoch);
	UNWIND_LOOP(php);
	behind_count(w);
	seed_ns = bpf_ktime_get_ns() - start;
	return bpf_get_smp_processor_id();
}
