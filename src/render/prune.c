/* SPDX-License-Identifier: Apache-2.0 */
/* The overview: the largest nodes of a tree, shown while the rest is still being read. */
#include "base/array.h"
#include "render/tree.h"

/* Buckets of a total: its highest bit and the nine below, so that the bucket's order is the totals' order. */
#define FRACTION_BITS 9
#define BUCKET_COUNT (65u << FRACTION_BITS)

static uint32_t bucket_of(uint64_t total)
{
	uint32_t top;

	if (total < (UINT64_C(1) << FRACTION_BITS))
		return (uint32_t)total;
	top = 63 - (uint32_t)__builtin_clzll(total);
	return (top - FRACTION_BITS + 1) << FRACTION_BITS |
	       (uint32_t)(total >> (top - FRACTION_BITS) & ((1u << FRACTION_BITS) - 1));
}

static int value_order(const void *left, const void *right)
{
	uint64_t l = *(const uint64_t *)left, r = *(const uint64_t *)right;

	return l > r ? -1 : l < r;
}

/* The @max-th largest total; *ties: how many nodes with exactly that total still fit. */
static int find_limit(const struct tree *t, uint32_t max, uint64_t *limit, uint32_t *ties)
{
	scoped(freep) uint32_t *histogram = calloc(BUCKET_COUNT, sizeof(*histogram));
	scoped(freep) uint64_t *values = NULL;
	uint32_t above = 0, bucket = BUCKET_COUNT - 1, count = 0, want;

	if (!histogram)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->node_count; i++)
		histogram[bucket_of(t->total[i])]++;
	while (above + histogram[bucket] < max)
		above += histogram[bucket--];
	values = calloc(histogram[bucket], sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->node_count; i++) {
		if (bucket_of(t->total[i]) == bucket)
			values[count++] = t->total[i];
	}
	qsort(values, count, sizeof(*values), value_order);
	want = max - above;
	*limit = values[want - 1];
	for (*ties = 0; *ties < want && values[want - 1 - *ties] == *limit;)
		++*ties;
	return 0;
}

/* Preorder visits parents and earlier siblings first, so the first ties are the ones whose parents are kept. */
static void keep_nodes(const struct tree *t, uint64_t limit, uint32_t ties, struct tree *out)
{
	for (uint32_t i = 0; i < t->node_count; i++) {
		if (t->total[i] < limit || (t->total[i] == limit && !ties))
			continue;
		ties -= t->total[i] == limit;
		out->frame[out->node_count] = t->frame[i];
		out->level[out->node_count] = t->level[i];
		out->total[out->node_count] = t->total[i];
		out->origin[out->node_count++] = i;
	}
}

static int keep_frames(const struct tree *t, struct tree *out)
{
	scoped(freep) uint32_t *place = calloc((size_t)t->frame_count + 1, sizeof(*place));
	uint32_t module;
	int r = 0;

	if (!place)
		return -ENOMEM;
	for (uint32_t i = 1; i < out->node_count; i++)
		place[out->frame[i]] = 1;
	for (uint32_t i = 0; !r && i < t->frame_count; i++) {
		if (!place[i])
			continue;
		place[i] = out->frame_count;
		out->frames[out->frame_count] = t->frames[i];
		out->frame_origin[out->frame_count] = i;
		r = intern_add(&out->modules, tree_frame_module(t, i), &module);
		if (!r)
			out->frames[out->frame_count++].module = module;
	}
	if (r < 0)
		return r;
	out->frame[0] = out->frame_count;
	for (uint32_t i = 1; i < out->node_count; i++)
		out->frame[i] = place[out->frame[i]];
	return 0;
}

int tree_prune(const struct tree *t, uint32_t max, struct tree *out)
{
	scoped(tree_release) struct tree p = { 0 };
	uint32_t count = MIN(max, t->node_count), ties;
	uint64_t limit;
	int r;

	intern_init(&p.modules, TREE_TEXT_MAX);
	if (!count)
		return -EINVAL;
	p.text = malloc(t->text_len + 1);
	p.frames = calloc((size_t)t->frame_count + 1, sizeof(*p.frames));
	p.frame_origin = calloc((size_t)t->frame_count + 1, sizeof(*p.frame_origin));
	p.frame = calloc(count, sizeof(*p.frame));
	p.level = calloc(count, sizeof(*p.level));
	p.total = calloc(count, sizeof(*p.total));
	p.origin = calloc(count, sizeof(*p.origin));
	if (!p.text || !p.frames || !p.frame_origin || !p.frame || !p.level || !p.total || !p.origin)
		return -ENOMEM;
	if (t->text_len)
		memcpy(p.text, t->text, t->text_len);
	p.text_len = t->text_len;
	r = find_limit(t, count, &limit, &ties);
	if (r < 0)
		return r;
	keep_nodes(t, limit, ties, &p);
	r = keep_frames(t, &p);
	if (r < 0)
		return r;
	*out = p;
	p = (struct tree){ 0 };
	return 0;
}
