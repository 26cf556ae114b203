/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/unwind_options.h"

#include <linux/types.h>

#include "walk/walk.h"

#define UNWIND_COPY (WALK_TABLE + 1)
#define UNWIND_DWARF (WALK_TABLE + 2) /* another word for table */

const char *const unwind_option_names[] = {
	[WALK_AUTO] = "auto",   [WALK_FP] = "fp",         [WALK_TABLE] = "table",
	[UNWIND_COPY] = "copy", [UNWIND_DWARF] = "dwarf", NULL,
};

enum perf_mode { PERF_MODE_FP, PERF_MODE_DWARF, PERF_MODE_SMART, PERF_MODE_DISABLED, PERF_MODE_NONE };

const char *const perf_mode_option_names[] = {
	[PERF_MODE_FP] = "fp",       [PERF_MODE_DWARF] = "dwarf",
	[PERF_MODE_SMART] = "smart", [PERF_MODE_DISABLED] = "disabled",
	[PERF_MODE_NONE] = "none",   NULL,
};

bool unwind_options_only_runtime(const struct unwind_options *o)
{
	return o->perf_mode == PERF_MODE_DISABLED || o->perf_mode == PERF_MODE_NONE;
}

bool unwind_options_is_dwarf(const struct unwind_options *o)
{
	return o->perf_mode == PERF_MODE_DWARF;
}

bool unwind_options_copies(const struct unwind_options *o)
{
	return o->perf_mode == PERF_MODE_DWARF || o->perf_mode == PERF_MODE_SMART;
}

void unwind_options_frame_pointers(struct unwind_options *o)
{
	o->perf_mode = PERF_MODE_FP;
}

void unwind_options_only_runtimes(struct unwind_options *o)
{
	o->perf_mode = PERF_MODE_DISABLED;
}

void unwind_options_apply(const struct unwind_options *o, struct sampler_config *sampling)
{
	sampling->copy_all = o->unwind == UNWIND_COPY;
	sampling->mode = sampling->copy_all ? WALK_AUTO : o->unwind == UNWIND_DWARF ? WALK_TABLE : (uint8_t)o->unwind;
	sampling->copy_bytes = (uint32_t)o->copy_bytes;
	if (o->perf_mode == PERF_MODE_DWARF)
		sampling->stacks = SAMPLER_STACKS_COPY;
	else if (o->perf_mode == PERF_MODE_SMART)
		sampling->stacks = SAMPLER_STACKS_BOTH;
	else if (o->fp_is_chain && o->unwind == WALK_AUTO)
		sampling->stacks = SAMPLER_STACKS_CHAIN;
}
