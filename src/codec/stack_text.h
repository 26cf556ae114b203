/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as text, root first and joined by ';', for the line formats. */
#pragma once

#include "base/buf.h"
#include "codec/frame_text.h"
#include "model/model.h"

typedef struct str stack_suffix_fn(enum model_kind kind, bool is_inlined);

struct stack_text_config {
	stack_suffix_fn *suffix;
	struct frame_style style;
	/* Native frames of a stack that has Python frames are of the kind python-native, as PyPerf says it; otherwise
	 * that kind is written as native. */
	bool mark_python_native;
};

/* The cleaned text of every location, made once, so that a stack is only copied together. A location may have two
 * texts: the usual one, and behind it the one used beside Python frames, if that differs. */
struct stack_text_ends {
	size_t usual, beside_python;
};

struct stack_text {
	const struct model *m;
	struct stack_text_config cfg;
	struct buf text;
	struct stack_text_ends *ends; /* by location row */
	bool *is_python;              /* the same; NULL: none is, or it makes no difference */
	uint32_t *path;               /* scratch: locations of one stack, leaf first */
	size_t path_cap;
};

/** stack_text_init - Return: 0, -ENOMEM or -E2BIG; on failure only stack_text_release() is needed. */
int stack_text_init(struct stack_text *t, const struct model *m, const struct stack_text_config *cfg) warn_unused;
void stack_text_release(struct stack_text *t);

/** stack_text_add - append ";frame" for each frame of @stack. Return: 0 or -ENOMEM (out's own error sticks to it). */
int stack_text_add(struct stack_text *t, uint32_t stack, struct buf *out) warn_unused;

/** stack_text_name - append one name as lines carry it: ';' as '|', controls and line separators '?', invalid UTF-8 as
 * U+FFFD. */
void stack_text_name(struct buf *out, struct str name);

/* Reading: builds stacks from pieces of text. */
struct stack_reader {
	struct model *m;
	struct u64map *names; /* (string id, kind) to location */
};

struct stack_reader *stack_reader_new(struct model *m); /* NULL when out of memory */
void stack_reader_free(struct stack_reader **r);        /* for scoped() */
/**
 * stack_reader_frame - the child of @parent for the frame @name; Python's are split into name, file, line and
 * distribution where their form is certain. Return: 0, -ENOMEM or -E2BIG.
 */
int stack_reader_frame(struct stack_reader *r, uint32_t parent, struct str name, enum model_kind kind,
		       uint32_t *out) warn_unused;
