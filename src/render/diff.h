/* SPDX-License-Identifier: Apache-2.0 */
/* Two profiles of one kind, and what changed from one to the other. */
#pragma once

#include "base/buf.h"
#include "codec/codec.h"
#include "model/window.h"

/**
 * diff_profile - @now minus @before, column by column: a profile as go tool pprof -diff_base makes one
 * @normalize: scale @now to the totals of @before, as pprof -normalize
 * @out: first the samples of @now, then those of @before with values below zero and TOTAL_BASE_LABEL (render/total.h);
 * times of @now
 *
 * Return: 0; -EINVAL when sample or period types differ; -ENOMEM or -E2BIG. Sums saturate.
 */
int diff_profile(const struct window *before, const struct window *now, bool normalize, struct window *out) warn_unused;

struct diff_pairs {
	struct window window; /* stacks as text, with the columns FOLDED_BEFORE and that of @now */
	uint64_t gone;        /* stacks that @now has not */
};

/**
 * diff_pairs_make - every stack of either with both values, as difffolded.pl
 * @options: value and frames, as for codec_encode(); lost gets the values below zero, which are left out
 * @normalize: scale @before to the total of @now, each stack cut to a whole, as difffolded.pl -n
 *
 * Return: 0, -ENOMEM or -E2BIG.
 */
int diff_pairs_make(const struct window *before, const struct window *now, const struct codec_options *options,
		    bool normalize, struct diff_pairs *out) warn_unused;
void diff_pairs_release(struct diff_pairs *p); /* a zeroed struct is fine */

enum diff_order { DIFF_BY_FLAT, DIFF_BY_CUM };

struct diff_text_config {
	const char *before_name, *now_name; /* of the files */
	size_t before_value, now_value;     /* columns */
	size_t top_count;                   /* rows, 0: none */
	enum diff_order order;
	bool normalize; /* scale @before to the total of @now */
	int width;      /* columns of the terminal; 0: unlimited */
	struct frame_style style;
};

/** diff_text - totals, and a table of functions by change. Names are escaped. Return: 0, -ENOMEM or -E2BIG. */
int diff_text(const struct window *before, const struct window *now, const struct diff_text_config *cfg,
	      struct buf *out) warn_unused;
