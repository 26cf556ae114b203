/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as lines of text with counts: what the folded format writes, and what graphs are drawn from. */
#pragma once

#include "codec/codec.h"

#define FOLDED_BEFORE \
	"before" /* the first of two columns, when a profile has each stack's value twice: before and now */

struct folded_line {
	size_t at, len;         /* in the text: frames joined by ';', the process first */
	uint64_t before, count; /* before: 0 unless lines are pairs; both at most INT64_MAX */
};

struct folded_lines {
	struct buf text; /* all lines end to end */
	struct folded_line *items;
	size_t count;
	bool is_pair;
	uint64_t left_out; /* samples with a value below zero, which no line can say */
};

static inline struct str folded_line_text(const struct folded_lines *l, size_t index)
{
	return str_n(l->text.ptr + l->items[index].at, l->items[index].len);
}

/** folded_is_pair - whether @m has the columns FOLDED_BEFORE and another one of its unit, and nobody asked for one. */
bool folded_is_pair(const struct model *m, const struct codec_options *options);

/**
 * folded_lines_collect - one line for each stack that has a count
 * @options: value: the column (usually samples), unless @m is a pair
 * @in_order: as the samples come, each its line; otherwise bytewise by stack, equal ones added up
 * @out: the caller's to release
 *
 * Return: 0, -ENOMEM or -E2BIG.
 */
int folded_lines_collect(const struct model *m, const struct codec_options *options, bool in_order,
			 struct folded_lines *out) warn_unused;
void folded_lines_release(struct folded_lines *l); /* a zeroed struct is fine */
