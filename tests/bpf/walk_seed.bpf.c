// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The native walk without a tick: BPF_PROG_TEST_RUN gives the registers, the memory is that of the caller. */
#include "bpf/unwind.h"

#include <bpf/bpf_tracing.h>

#include "walk/walk_native.h"

char LICENSE[] SEC("license") = "GPL";

UNWIND_STEP(native, walk_native_step)

struct seed {
	__u64 pc, sp, fp, is_return, mode, space;
};

SEC("raw_tp")
int walk_seed(struct seed *ctx)
{
	struct walk *w = unwind_state();

	if (!w)
		return -1;
	w->leaf[WALK_REG_PC] = ctx->pc;
	w->leaf[WALK_REG_SP] = ctx->sp;
	w->leaf[WALK_REG_FP] = ctx->fp;
	for (int i = 0; i < WALK_REGS; i++)
		if (i != WALK_REG_PC && i != WALK_REG_SP && i != WALK_REG_FP)
			w->leaf[i] = ctx->sp + i * 64;
	w->mode = ctx->mode;
	w->space = ctx->space;
	recent_begin(w);
	w->count = 0;
	walk_native_start(w, ctx->is_return & 1);
	UNWIND_LOOP(native);
	return bpf_get_smp_processor_id();
}
