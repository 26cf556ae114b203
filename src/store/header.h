/* SPDX-License-Identifier: Apache-2.0 */
/* What a stored profile says besides its samples: sample types, period, times, totals, mappings with their addresses.
 * Strings and mappings are rows of the dictionary. docs/formats/store.md. */
#pragma once

#include "base/buf.h"
#include "base/cur.h"
#include "model/model.h"

struct header_mapping {
	uint32_t row, flags;
	uint64_t start;
};

struct header {
	uint64_t profiles; /* 1, or how many were added up in a rollup */
	struct model_value_type value_types[MODEL_VALUE_TYPES_MAX];
	size_t value_type_count;
	struct model_value_type period_type;
	int64_t period, time_ns, duration_ns;
	uint64_t start_ns, end_ns; /* of the window */
	uint32_t drop_frames, keep_frames, default_type, doc_url;
	int64_t totals[MODEL_VALUE_TYPES_MAX];
	uint32_t *comments;
	size_t comments_count, comments_cap;
	struct header_mapping *mappings; /* in the profile's order */
	size_t mappings_count, mappings_cap;
};

#define HEADER_MAPPINGS_MAX 65536
#define HEADER_COMMENTS_MAX 65536

void header_release(struct header *h);                       /* a zeroed one is fine */
void header_encode(const struct header *h, struct buf *out); /* errors stick to @out */
/**
 * header_decode - @strings, @mappings: rows that the dictionary has
 * @h: its memory is used again
 *
 * Return: 0, -EBADMSG, -E2BIG, -ENOMEM; on failure the content of @h is undefined.
 */
int header_decode(struct str bytes, size_t strings, size_t mappings, struct header *h) warn_unused;

int header_add_comment(struct header *h, uint32_t string) warn_unused;
int header_add_mapping(struct header *h, const struct header_mapping *row) warn_unused;
/** header_same_types - whether samples of both can be added up: sample types and period type agree. */
bool header_same_types(const struct header *a, const struct header *b);
/**
 * header_add - add the header of another profile of the same dictionary, as model_merge() does
 * @into: profiles 0 takes everything
 * @mapping_at: for every mapping of the dictionary its place in @into's mappings + 1, or 0; kept by the caller
 *
 * Return: 0, -EINVAL when types differ (nothing has changed), -ENOMEM, -E2BIG.
 */
int header_add(struct header *into, const struct header *from, uint32_t *mapping_at) warn_unused;
