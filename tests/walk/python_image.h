/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of an interpreter, made up: thread states, frames and code objects of any version where that version has
 * them. It lies in this process, so that the walk in the kernel can read it, too. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "abi/python.h"
#include "base/base.h"
#include "walk/walk.h"

struct python_layout_case {
	const char *name;
	struct abi_python_layout layout;
	bool tagged;
};

/** python_layout_at - one of each kind of layout; NULL behind the last. */
const struct python_layout_case *python_layout_at(size_t index);

#define IMAGE_FRAMES 64
#define IMAGE_ACTIVATIONS 16

struct python_image {
	uint8_t *memory; /* between unmapped pages */
	size_t size, used;
	struct abi_python info; /* walks by the list of threads; the other ways are the caller's to switch on */
	uint64_t tp, thread, interpreter;
	uint64_t none, cleanup;
	/* the stack that image_stack() made, root first */
	uint64_t frames[IMAGE_FRAMES], codes[IMAGE_FRAMES];
	uint64_t shims[IMAGE_ACTIVATIONS], cframes[IMAGE_ACTIVATIONS]; /* 0: this version has none */
	uint8_t activation_of[IMAGE_FRAMES];
	size_t frame_count, activation_count;
	struct abi_frame want[2 * IMAGE_FRAMES]; /* leaf first; cookies 0 */
	size_t want_count;
};

/** image_open - empty memory of @size bytes and one thread without frames. */
void image_open(struct python_image *im, const struct python_layout_case *of, size_t size);
void image_close(struct python_image *im);

/** image_alloc - Return: address of @size zero bytes, aligned to 16. */
uint64_t image_alloc(struct python_image *im, size_t size);
/** image_put - a little-endian number of @size bytes. */
void image_put(struct python_image *im, uint64_t at, size_t size, uint64_t value);
uint64_t image_get(const struct python_image *im, uint64_t at);

/** image_thread - another thread state, in front of the others. */
uint64_t image_thread(struct python_image *im, uint64_t interpreter, uint64_t thread_id);
uint64_t image_interpreter(struct python_image *im);
/** image_code - a code object called @letter in the file @file. */
uint64_t image_code(struct python_image *im, const char *file, char letter);
/** image_frame - at bytecode unit @unit of @code. */
uint64_t image_frame(struct python_image *im, uint64_t code, uint64_t back, uint32_t unit);
/** image_mark - make the frame what ends an activation in this version, or (@entry false) what does not. */
void image_mark(struct python_image *im, uint64_t frame, bool entry);

/**
 * image_stack - give the thread a stack
 * @shape: a letter for each frame, root first, '|' between activations: "ab|c". The first frame of each activation is
 *	its outermost.
 */
void image_stack(struct python_image *im, const char *shape);
