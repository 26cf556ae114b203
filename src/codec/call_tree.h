/* SPDX-License-Identifier: Apache-2.0 */
/* The call tree of a model, with frames told apart by what people see of them: what the writers of viewers' formats
 * share. */
#pragma once

#include "base/intern.h"
#include "base/u64map.h"
#include "codec/frame_text.h"

/* Kinds behind those of the model: frames in front of a stack that say whose it is. */
enum call_kind { CALL_KIND_PROCESS = MODEL_KIND_COUNT, CALL_KIND_CONTAINER, CALL_KIND_COUNT };

#define CALL_APP_ID "appid: " /* begins the process frame of an application id, as in .col */

/* Equal frames have equal bytes: there is no padding. */
struct call_frame {
	uint32_t name, file, module; /* texts; @file is a source file, @module what is mapped */
	uint32_t kind;               /* enum model_kind or enum call_kind */
	int64_t first_line;          /* of the function; 0: not known */
	int64_t line, column;        /* that were executing; 0: not known or not told apart */
};

struct call_node {
	uint32_t parent, frame;
};

enum call_lines {
	CALL_LINES_FIRST,     /* a function is one frame */
	CALL_LINES_EXECUTING, /* where it is known it stands in place of the first line */
	CALL_LINES_BOTH,
};

struct call_tree_config {
	struct frame_style style;
	enum call_lines lines;
	bool with_owners; /* container, process and application id are the outermost frames, as in the pages */
	bool name_empty;  /* a stack without any frame becomes one of a frame "[unknown]" */
};

struct call_tree {
	const struct model *m;
	struct call_tree_config cfg;
	struct intern texts; /* valid UTF-8 */
	struct call_frame *frames;
	size_t frames_count, frames_cap;
	struct call_node *nodes; /* node 0 stands above all; parents come before their children */
	size_t nodes_count, nodes_cap;
	/* private */
	struct intern keys;     /* the bytes of frames */
	struct u64map children; /* (node, frame) to node */
	struct u64map known;    /* (node of the owner, stack of the model) to node */
	uint32_t *first;        /* by location: where its frames begin in row, plus 1; 0: not asked for yet */
	uint32_t *row;          /* frames of locations, outermost first, behind their count */
	size_t row_count, row_cap;
	uint32_t *path;
	size_t path_cap;
	struct buf text, clean;
};

/** call_tree_init - Return: 0 or -ENOMEM; on failure only call_tree_release() is needed. */
int call_tree_init(struct call_tree *t, const struct model *m, const struct call_tree_config *cfg) warn_unused;
void call_tree_release(struct call_tree *t);

/** call_tree_add - the node of a sample's stack; 0 when nothing is known of it. Return: 0, -ENOMEM or -E2BIG. */
int call_tree_add(struct call_tree *t, const struct model_sample *s, uint32_t *out) warn_unused;

/**
 * call_tree_sort - number frames by their content, and nodes from the root down with siblings in the order of their
 * frames, so that the numbers do not depend on the order of samples; nothing can be added afterwards
 * @moved: nodes_count entries: the new number of each node
 *
 * Return: 0 or -ENOMEM.
 */
int call_tree_sort(struct call_tree *t, uint32_t *moved) warn_unused;

/** call_tree_text - borrowed until the next call_tree_add(). */
static inline struct str call_tree_text(const struct call_tree *t, uint32_t id)
{
	return intern_get(&t->texts, id);
}

/** call_kind_name - "native", "kernel", "process". */
struct str call_kind_name(uint32_t kind);
/** call_kind_of - the kind of that name; native when there is none. */
uint32_t call_kind_of(struct str name);
