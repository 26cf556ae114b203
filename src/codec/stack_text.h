/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as text, root first and joined by ';', for the line formats. */
#pragma once

#include "base/buf.h"
#include "model/model.h"

typedef struct str stack_suffix_fn(enum model_kind kind, bool is_inlined);

/* The cleaned text of every location, made once: a stack is then copied together. */
struct stack_text {
	const struct model *m;
	struct buf text;
	size_t *ends;   /* by location row */
	uint32_t *path; /* scratch: locations of one stack, leaf first */
	size_t path_cap;
};

/** stack_text_init - Return: 0, -ENOMEM or -E2BIG; on failure only stack_text_release() is needed. */
int stack_text_init(struct stack_text *t, const struct model *m, stack_suffix_fn *suffix) warn_unused;
void stack_text_release(struct stack_text *t);

/** stack_text_add - append ";frame" for each frame of @stack. Return: 0 or -ENOMEM (out's own error sticks to it). */
int stack_text_add(struct stack_text *t, uint32_t stack, struct buf *out) warn_unused;

/** stack_text_name - append one name as lines carry it: ';' as '|', control bytes '?', invalid UTF-8 as U+FFFD. */
void stack_text_name(struct buf *out, struct str name);

/* Reading: builds stacks from pieces of text. */
struct stack_reader {
	struct model *m;
	struct u64map *names; /* (string id, kind) to location */
};

struct stack_reader *stack_reader_new(struct model *m); /* NULL when out of memory */
void stack_reader_free(struct stack_reader **r);        /* for scoped() */
/** stack_reader_frame - the child of @parent for a function @name. Return: 0, -ENOMEM or -E2BIG. */
int stack_reader_frame(struct stack_reader *r, uint32_t parent, struct str name, enum model_kind kind,
		       uint32_t *out) warn_unused;
