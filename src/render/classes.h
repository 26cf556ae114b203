/* SPDX-License-Identifier: Apache-2.0 */
/* How far stacks can be believed, in words that the summary and the report share. */
#pragma once

#include "base/buf.h"
#include "model/jit_kind.h"
#include "model/window.h"

/** classes_add_shares - "97.4 % whole, 1.2 % guessed, 1.4 % cut"; with samples that were lost their share before cut.
 */
void classes_add_shares(const struct window_classes *classes, int decimals, struct buf *out);
/** classes_add_jit - "12 samples of node have JIT code without names: start it with --perf-basic-prof" */
void classes_add_jit(uint64_t samples, enum jit_kind kind, struct buf *out);
