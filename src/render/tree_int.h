/* SPDX-License-Identifier: Apache-2.0 */
/* Building a tree node by node; shared by the two sources of trees and the ordering. */
#pragma once

#include "render/tree.h"

struct tree_node {
	uint32_t parent, frame;
};

/* Most nodes have the number after their parent's, because a stack that leaves the known paths adds its frames in one
 * go; these need no slot. tag: the upper half of the hash chained along the path; its low bits choose the slot, so
 * growing needs no rehash. */
struct tree_slot {
	uint32_t tag, node; /* node 0: free */
};

struct tree_name_slot {
	uint32_t hash, frame_1; /* frame + 1; 0: free */
};

struct tree_builder {
	char *text;
	size_t text_len, text_cap;
	struct tree_frame *frames; /* text_at and text_len cover the key; label_len of it is the name */
	uint32_t *label_len;
	size_t frame_count, frame_cap, label_cap;
	struct tree_name_slot *name_slots;
	uint32_t name_mask;
	struct intern modules;

	struct tree_node *nodes;
	uint64_t *value; /* per node: self */
	size_t node_count, node_cap, value_cap;
	struct tree_slot *slots;
	uint32_t slot_mask, slot_count;
	uint64_t seed;
	uint64_t sum; /* of all that was added; it saturates */
	struct tree_negative negative;
	uint64_t most; /* what all nodes together may have: INT64_MAX, as a value of a profile */
};

/** tree_huge_pages - ask for huge pages for a big array: look-ups in it are random accesses. Small ones are left alone.
 */
void tree_huge_pages(void *bytes, size_t size);

/* What a frame of a tree is known by. */
struct tree_name {
	struct str text, module; /* borrowed from the model, or from what tree_name_of() was given */
	unsigned int kind;
};

/**
 * tree_name_of - what line @line of a location is called in a tree
 * @text: scratch
 *
 * Return: 0, or @text's error.
 */
int tree_name_of(const struct model *m, const struct frame_style *style, uint32_t location, uint32_t line,
		 struct buf *text, struct tree_name *out) warn_unused;

int tree_builder_init(struct tree_builder *b, size_t nodes_expected) warn_unused;
void tree_builder_release(struct tree_builder *b);

/**
 * tree_builder_frame - the frame with the bytes @key
 * @classify: called for a new one: sets kind and module and returns how much of the key is the name
 */
typedef size_t tree_classify_fn(struct str key, struct tree_frame *frame, void *ctx);
int tree_builder_frame(struct tree_builder *b, struct str key, tree_classify_fn *classify, void *ctx,
		       uint32_t *out) warn_unused;

/** tree_builder_room - make room for @count more nodes, so that adding them cannot fail. */
int tree_builder_room(struct tree_builder *b, size_t count) warn_unused;

static inline uint64_t tree_path_hash(uint64_t above, uint32_t frame)
{
	uint64_t h = (above ^ frame) * UINT64_C(0x9e3779b97f4a7c15);

	return h ^ h >> 29;
}

static inline uint32_t tree_path_tag(uint64_t hash)
{
	return (uint32_t)(hash * UINT64_C(0xd6e8feb86659fd93) >> 32);
}

/** tree_builder_child - the child of @parent with @frame; @tag is that of its path. Needs room for one. */
static inline uint32_t tree_builder_child(struct tree_builder *b, uint32_t parent, uint32_t frame, uint32_t tag)
{
	uint32_t at = tag & b->slot_mask, next = parent + 1;

	if (next < b->node_count && b->nodes[next].parent == parent && b->nodes[next].frame == frame)
		return next;
	for (; b->slots[at].node; at = (at + 1) & b->slot_mask) {
		const struct tree_node *n = &b->nodes[b->slots[at].node];

		if (b->slots[at].tag == tag && n->parent == parent && n->frame == frame)
			return b->slots[at].node;
	}
	if (next != b->node_count) {
		b->slots[at] = (struct tree_slot){ tag, (uint32_t)b->node_count };
		b->slot_count++;
	}
	b->nodes[b->node_count] = (struct tree_node){ parent, frame };
	b->value[b->node_count] = 0;
	return (uint32_t)b->node_count++;
}

/** tree_builder_add - @value for the stack that ends in @node. It saturates. */
static inline void tree_builder_add(struct tree_builder *b, uint32_t node, uint64_t value)
{
	b->sum += MIN(value, UINT64_MAX - b->sum);
	b->value[node] += MIN(value, b->most - b->value[node]);
}

/** tree_negative_add - so many samples more, which have so much below zero. */
static inline void tree_negative_add(struct tree_negative *to, uint64_t samples, uint64_t value)
{
	to->samples += samples;
	to->value = MIN(to->value + value, (uint64_t)INT64_MAX); /* both are below 2^63 */
}

/**
 * tree_builder_finish - put everything in order. The builder is used up, also on failure.
 *
 * Where all nodes together have more than b->most, the largest values are cut until they fit: small ones stay as they
 * are, in whatever order they came.
 */
int tree_builder_finish(struct tree_builder *b, struct tree *out) warn_unused;
