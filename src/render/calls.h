/* SPDX-License-Identifier: Apache-2.0 */
/* The call tree of a profile by function, for the text tables. Internal to src/render. */
#pragma once

#include "codec/frame_text.h"
#include "model/model.h"

/* What frames are grouped by: the function's name; without one, the file name of the mapping. That is how pprof groups
 * at its default granularity, so the numbers are the same. Those of language runtimes are grouped by what their frames
 * are called: many have the same name, such as "<lambda>" and "run", in other files. */
struct calls_function {
	uint32_t name, module;   /* strings of the model; module only when name is 0 */
	enum model_kind kind;    /* of the first frame met */
	uint32_t location, line; /* that frame, when it is a language runtime's; otherwise 0 */
	int64_t self, total;     /* total counts recursion once */
};

/* A parent's index is smaller than its children's. Node 0 is the root above all stacks; its function means nothing. */
struct calls_node {
	uint32_t parent, function;
	uint32_t first_child, next_sibling; /* 0: none; in no order that means anything */
	int64_t self, total;
};

struct calls {
	struct calls_function *functions;
	struct calls_node *nodes;
	size_t function_count, function_cap, node_count, node_cap;
	int64_t total; /* render_total(): what percentages relate to */
};

/** calls_build - @value is a column of @m; @style: NULL: the usual one. Return: 0, -EINVAL for a column that is not
 * there, -ENOMEM or -E2BIG. */
int calls_build(const struct model *m, size_t value, const struct frame_style *style, struct calls *out) warn_unused;
void calls_release(struct calls *c); /* a zeroed struct is fine */
