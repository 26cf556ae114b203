// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* One step through V8's frames, alone: what tests/kernels/verify.c asks how much of a verifier's patience it takes. */
#include "bpf/unwind.h"

#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

#include "bpf/nodejs.h"

struct seed {
	__u64 pc, sp, fp, is_leaf;
};

SEC("raw_tp")
int nodejs_seed(struct seed *ctx)
{
	struct walk *w = unwind_state();

	if (!w)
		return -1;
	w->pc = ctx->pc;
	w->sp = ctx->sp;
	w->fp = ctx->fp;
	w->is_leaf = ctx->is_leaf & 1;
	w->is_return = !w->is_leaf;
	return nodejs_step(w);
}
