/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "render/tree_int.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/random.h"

#define NAME_SLOTS_MIN 1024u
#define SLOTS_MIN 1024u
#define HUGE_PAGE MIB(2)
#define NODES_A_SLOT 3 /* most nodes need none; a table that fits the cache is worth growing it at times */

void tree_huge_pages(void *bytes, size_t size)
{
	uintptr_t from = align_up((uintptr_t)bytes, HUGE_PAGE), to = ((uintptr_t)bytes + size) / HUGE_PAGE * HUGE_PAGE;

	if (bytes && from < to)
		ignore(madvise((char *)bytes + (from - (uintptr_t)bytes), to - from, MADV_HUGEPAGE)); /* an advice */
}

static struct tree_slot *slots_new(size_t count)
{
	struct tree_slot *slots = calloc(count, sizeof(*slots));

	tree_huge_pages(slots, count * sizeof(*slots));
	return slots;
}

/* Room for all nodes at once, which is not touched before there are nodes; what is missing is had later. */
static void reserve_nodes(struct tree_builder *b, size_t count)
{
	size_t want = MIN(count + 1, (size_t)TREE_NODES_MAX);

	if (array_reserve(&b->nodes, &b->node_cap, want) == 0)
		tree_huge_pages(b->nodes, b->node_cap * sizeof(*b->nodes));
	if (array_reserve(&b->value, &b->value_cap, want) == 0)
		tree_huge_pages(b->value, b->value_cap * sizeof(*b->value));
}

int tree_builder_init(struct tree_builder *b, size_t nodes_expected)
{
	uint32_t slots = SLOTS_MIN;

	while (slots < nodes_expected / NODES_A_SLOT && slots < TREE_NODES_MAX)
		slots *= 2;
	*b = (struct tree_builder){
		.seed = random_u64(), .name_mask = NAME_SLOTS_MIN - 1, .slot_mask = slots - 1, .most = INT64_MAX
	};
	intern_init(&b->modules, TREE_TEXT_MAX);
	b->name_slots = calloc(NAME_SLOTS_MIN, sizeof(*b->name_slots));
	b->slots = slots_new(slots);
	reserve_nodes(b, nodes_expected);
	if (!b->name_slots || !b->slots || array_grow(&b->nodes, &b->node_cap, 0, TREE_NODES_MAX) < 0 ||
	    array_grow(&b->value, &b->value_cap, 0, TREE_NODES_MAX) < 0) {
		tree_builder_release(b);
		return -ENOMEM;
	}
	b->nodes[0] = (struct tree_node){ 0, UINT32_MAX };
	b->value[0] = 0;
	b->node_count = 1;
	return 0;
}

void tree_builder_release(struct tree_builder *b)
{
	free(b->text);
	free(b->frames);
	free(b->label_len);
	free(b->name_slots);
	intern_release(&b->modules);
	free(b->nodes);
	free(b->value);
	free(b->slots);
	*b = (struct tree_builder){ 0 };
}

static int names_grow(struct tree_builder *b)
{
	uint32_t count = (b->name_mask + 1) * 2, mask = count - 1;
	struct tree_name_slot *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i <= b->name_mask; i++) {
		uint32_t at = b->name_slots[i].hash & mask;

		if (!b->name_slots[i].frame_1)
			continue;
		while (slots[at].frame_1)
			at = (at + 1) & mask;
		slots[at] = b->name_slots[i];
	}
	free(b->name_slots);
	b->name_slots = slots;
	b->name_mask = mask;
	return 0;
}

static int text_add(struct tree_builder *b, struct str key)
{
	size_t cap = b->text_cap ? b->text_cap : KIB(64);
	char *text;

	if (key.len > TREE_TEXT_MAX - b->text_len)
		return -E2BIG;
	while (cap < b->text_len + key.len)
		cap *= 2;
	if (cap != b->text_cap) {
		text = realloc(b->text, cap);
		if (!text)
			return -ENOMEM;
		b->text = text;
		b->text_cap = cap;
	}
	if (key.len)
		memcpy(b->text + b->text_len, key.ptr, key.len);
	b->text_len += key.len;
	return 0;
}

static int frame_add(struct tree_builder *b, struct str key, tree_classify_fn *classify, void *ctx)
{
	struct tree_frame frame = { .text_at = (uint32_t)b->text_len, .text_len = (uint32_t)key.len };
	int r = array_grow(&b->frames, &b->frame_cap, b->frame_count, TREE_FRAMES_MAX);

	if (!r)
		r = array_grow(&b->label_len, &b->label_cap, b->frame_count, TREE_FRAMES_MAX);
	if (!r)
		r = text_add(b, key);
	if (r)
		return r;
	b->label_len[b->frame_count] = (uint32_t)classify(key, &frame, ctx);
	b->frames[b->frame_count++] = frame;
	return 0;
}

int tree_builder_frame(struct tree_builder *b, struct str key, tree_classify_fn *classify, void *ctx, uint32_t *out)
{
	uint32_t hash = (uint32_t)XXH3_64bits_withSeed(key.ptr, key.len, b->seed), at = hash & b->name_mask;
	int r;

	for (; b->name_slots[at].frame_1; at = (at + 1) & b->name_mask) {
		const struct tree_frame *f = &b->frames[b->name_slots[at].frame_1 - 1];

		if (b->name_slots[at].hash == hash && f->text_len == key.len &&
		    !memcmp(b->text + f->text_at, key.ptr, key.len)) {
			*out = b->name_slots[at].frame_1 - 1;
			return 0;
		}
	}
	if (b->frame_count >= (b->name_mask + 1) / 2) {
		r = names_grow(b);
		if (r < 0)
			return r;
		for (at = hash & b->name_mask; b->name_slots[at].frame_1;)
			at = (at + 1) & b->name_mask;
	}
	r = frame_add(b, key, classify, ctx);
	if (r < 0)
		return r;
	b->name_slots[at] = (struct tree_name_slot){ hash, (uint32_t)b->frame_count };
	*out = (uint32_t)b->frame_count - 1;
	return 0;
}

static int slots_grow(struct tree_builder *b)
{
	uint32_t count = (b->slot_mask + 1) * 2, mask = count - 1;
	struct tree_slot *slots = slots_new(count);

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i <= b->slot_mask; i++) {
		uint32_t at = b->slots[i].tag & mask;

		if (!b->slots[i].node)
			continue;
		while (slots[at].node)
			at = (at + 1) & mask;
		slots[at] = b->slots[i];
	}
	free(b->slots);
	b->slots = slots;
	b->slot_mask = mask;
	return 0;
}

int tree_builder_room(struct tree_builder *b, size_t count)
{
	int r = 0;

	if (count > TREE_NODES_MAX - b->node_count)
		return -E2BIG;
	while (!r && b->node_cap < b->node_count + count) {
		r = array_grow(&b->nodes, &b->node_cap, b->node_cap, TREE_NODES_MAX);
		tree_huge_pages(b->nodes, b->node_cap * sizeof(*b->nodes));
	}
	while (!r && b->value_cap < b->node_count + count) {
		r = array_grow(&b->value, &b->value_cap, b->value_cap, TREE_NODES_MAX);
		tree_huge_pages(b->value, b->value_cap * sizeof(*b->value));
	}
	while (!r && b->slot_count + count > (size_t)(b->slot_mask + 1) / 4 * 3)
		r = slots_grow(b);
	return r;
}
