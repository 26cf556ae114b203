/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings for tests: types as a JDK declares them, and what a test puts in. */
#pragma once

#include "base/buf.h"

struct jfr_writer {
	struct buf *out;
	bool is_plain;  /* numbers in their full size */
	uint16_t minor; /* of the version, 2.x */
	size_t chunk, event, metadata;
};

/* Numbers of types. */
enum {
	JFR_ID_BOOLEAN = 4,
	JFR_ID_INT = 10,
	JFR_ID_LONG = 11,
	JFR_ID_STRING = 20,
	JFR_ID_CLASS = 21,
	JFR_ID_THREAD = 22,
	JFR_ID_SYMBOL = 23,
	JFR_ID_METHOD = 24,
	JFR_ID_FRAME_TYPE = 25,
	JFR_ID_FRAME = 26,
	JFR_ID_STACK = 27,
	JFR_ID_PAIR = 28, /* of two numbers and a list of texts */
	JFR_ID_EXECUTION = 101,
	JFR_ID_NATIVE = 102,
	JFR_ID_WALL = 103,
	JFR_ID_IN_TLAB = 104,
	JFR_ID_OUTSIDE_TLAB = 105,
	JFR_ID_ALLOCATION = 106,
	JFR_ID_JVM = 107,
	JFR_ID_OTHER = 108,
};

/** jfr_begin_chunk - header and metadata. Ticks are nanoseconds, @start_ns is the wall clock at tick 1000. */
void jfr_begin_chunk(struct jfr_writer *w, uint64_t start_ns, uint64_t duration_ns);
void jfr_end_chunk(struct jfr_writer *w);
void jfr_begin_event(struct jfr_writer *w, uint64_t type);
void jfr_end_event(struct jfr_writer *w);
void jfr_put_int(struct jfr_writer *w, int32_t value);
void jfr_put_long(struct jfr_writer *w, uint64_t value);
void jfr_put_byte(struct jfr_writer *w, uint8_t value);
void jfr_put_text(struct jfr_writer *w, const char *text); /* UTF-8; NULL: null */
/** jfr_begin_pool - constants of one type follow, each a long and its value. */
void jfr_begin_checkpoint(struct jfr_writer *w, int32_t pools);
void jfr_begin_pool(struct jfr_writer *w, uint64_t type, int32_t count);
/** jfr_put_constants - symbols, classes, methods, kinds of frames and threads that stacks of the test use. */
void jfr_put_constants(struct jfr_writer *w);

/* Of jfr_put_constants(): methods 1 "shop.Cart.add(I)V", 2 "shop.Cart$1.run()V", 3 native "read", 4 of a class in
 * UTF-16
 * "\u00e4.f"; frames: 1 interpreted, 2 compiled, 3 inlined, 4 native, 5 kernel, 6 by the first compiler; threads 1
 * "main" (tid 71), 2 without a Java name "GC Thread" (tid 72). */
struct jfr_frame {
	uint64_t method;
	int32_t line;
	uint64_t type;
};

/** jfr_put_stack - a checkpoint with one stack, leaf first. */
void jfr_put_stack(struct jfr_writer *w, uint64_t key, bool truncated, const struct jfr_frame *frames, size_t count);
/** jfr_put_sample - an event; @weight and @class only where the type has them (0: none). */
void jfr_put_sample(struct jfr_writer *w, uint64_t type, uint64_t ticks, uint64_t thread, uint64_t stack,
		    uint64_t weight);
/** jfr_put_all - a chunk with an event of every kind, as jfr_test.c reads it. */
void jfr_put_all(struct jfr_writer *w, uint64_t start_ns);
