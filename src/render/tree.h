/* SPDX-License-Identifier: Apache-2.0 */
/* A flame tree in columns: what the HTML page stores. Built by a tree_builder from a model or from folded text, then
 * put in order once: preorder, the heaviest sibling first, so the page sorts nothing. */
#pragma once

#include "base/buf.h"
#include "codec/frame_text.h"
#include "model/model.h"

/* Kinds a page knows beyond the model's: the frames above a stack that say whose it is. */
enum tree_kind {
	TREE_KIND_PROCESS = MODEL_KIND_COUNT,
	TREE_KIND_CONTAINER,
	TREE_KIND_THREAD,
	TREE_KIND_HOST,
	TREE_KIND_LABEL,
	TREE_KIND_COUNT,
};

#define TREE_NODES_MAX (UINT32_C(1) << 26)
#define TREE_FRAMES_MAX (UINT32_C(1) << 24)
#define TREE_DEPTH_MAX (UINT32_C(1) << 20)
#define TREE_TEXT_MAX MIB(256) /* bytes of all distinct names */

struct tree_frame {
	uint32_t text_at, text_len; /* in tree.text; raw bytes, any value */
	uint32_t module;            /* text as an index into tree.modules, 0: none */
	uint8_t kind;               /* enum model_kind or enum tree_kind */
};

/* Samples with values below zero, which a tree has no widths for. */
struct tree_negative {
	uint64_t samples, value; /* how far below zero, not divided; it saturates at INT64_MAX */
};

/* Node 0 is the root, above every stack; its frame is frame_count, which no table holds. */
struct tree {
	char *text;
	size_t text_len;
	struct tree_frame *frames; /* sorted by name, kind, module */
	uint32_t frame_count;
	struct intern modules;
	uint32_t node_count;
	uint32_t *frame;
	uint32_t *level;                 /* 0 at the root */
	uint64_t *total;                 /* the root's is the sum of everything; it saturates at INT64_MAX */
	struct tree_negative negative;   /* what is left out of it; of a pair what both leave out */
	uint32_t *origin, *frame_origin; /* of a pruned copy: node and frame of the whole tree; otherwise NULL */
};

void tree_release(struct tree *t); /* a zeroed struct is fine */

/** tree_trim - give back the room that building left. */
void tree_trim(struct tree *t);
/** tree_memory - bytes that a trimmed tree takes. */
size_t tree_memory(const struct tree *t);

static inline struct str tree_frame_text(const struct tree *t, uint32_t frame)
{
	return str_n(t->text + t->frames[frame].text_at, t->frames[frame].text_len);
}

static inline struct str tree_frame_module(const struct tree *t, uint32_t frame)
{
	return intern_get(&t->modules, t->frames[frame].module);
}

struct str tree_kind_name(unsigned kind);

struct render_progress;

/**
 * tree_from_folded - one pass over "frame;frame count\n" lines
 * @text: CRLF is accepted, empty lines are skipped, so are lines starting with "# " and a
 *	first line starting with '#' (the comment of .col)
 * @progress: NULL: nobody looks
 * @out: suffixes such as _[k] became kinds
 *
 * Return: 0; -EBADMSG with *bad_line (from 1) when a line has no count, no stack, or a count beyond 63 bits;
 * -ENOMEM; -E2BIG.
 */
int tree_from_folded(struct str text, const struct render_progress *progress, struct tree *out,
		     uint64_t *bad_line) warn_unused;

/**
 * tree_from_model - container, process name, "appid: ID" as .col has it, then the frames of each sample
 * @value: column of the model; values of 0 are left out, those below are counted in @out->negative
 * @divisor: every value is divided by it
 * @style: what frames are called
 */
int tree_from_model(const struct model *m, size_t value, uint64_t divisor, const struct frame_style *style,
		    struct tree *out) warn_unused;

/* A frame above all others of a stack, for what its sample is of. */
struct tree_group {
	unsigned int kind; /* TREE_KIND_THREAD, or TREE_KIND_HOST or TREE_KIND_LABEL: the value of a label */
	struct str label;  /* the label's name */
	struct str usual;  /* its value where a sample has none itself; ptr NULL: it is not known */
};

#define TREE_GROUPS_MAX 8

/* A tree of several models, each of which may go once it was added. */
struct tree_maker;

int tree_maker_new(struct tree_maker **out) warn_unused;
void tree_maker_free(struct tree_maker *t); /* NULL is fine */
/**
 * tree_maker_add - the samples of @m, as tree_from_model() has them
 * @groups: what stands above each, the first outermost: the thread's name ("thread 12" without one), the host, or
 * "label=value"; "(no thread)", "(no host)", "(no LABEL)" where nothing is known
 *
 * Return: as tree_from_model(). After a failure only tree_maker_free() may follow.
 */
int tree_maker_add(struct tree_maker *t, const struct model *m, size_t value, const struct tree_group *groups,
		   size_t group_count) warn_unused;
/** tree_maker_finish - the tree; nothing can be added any more. */
int tree_maker_finish(struct tree_maker *t, struct tree *out) warn_unused;

/**
 * tree_prune - the @max largest nodes, closed under ancestors and earlier siblings
 *
 * Positions stay those of the whole tree; self values do not: a node keeps what its missing children had.
 */
int tree_prune(const struct tree *t, uint32_t max, struct tree *out) warn_unused;

/** tree_encode - the columns the page decodes (web/data.js), not compressed */
int tree_encode(const struct tree *t, struct buf *out) warn_unused;

struct tree_top_row {
	uint32_t frame;
	uint64_t self, total; /* total counts recursion once */
};

/** tree_top - the @max frames with the most self value, ties in the frames' order. *rows is the caller's to free. */
int tree_top(const struct tree *t, size_t max, struct tree_top_row **rows, size_t *count) warn_unused;
