/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the Firefox Profiler's processed profile: what firefox.c collects and firefox_encode.c writes. */
#pragma once

#include "codec/call_tree.h"
#include "codec/json.h"
#include "model/window.h"

#define FIREFOX_NONE UINT32_MAX

/* How values of a unit are written. */
struct firefox_weight {
	struct str unit;
	const char *type;
	int decimals; /* of a whole number of that unit, as milliseconds; below zero: zeros behind it */
	int64_t ns;   /* one of that unit on the line of time; 0: a sample is as long as the interval */
};

struct firefox_thread {
	uint32_t process, thread; /* of the model */
	int64_t weight;           /* sum of absolute values, saturating */
	bool is_main;
	size_t first, count; /* of the writer's rows */
};

struct firefox_row {
	uint32_t thread, node;
	uint64_t time_ns;
	uint32_t sample;
	int64_t value;
};

struct firefox_list {
	uint32_t *items;
	size_t count, cap;
};

struct firefox_writer {
	const struct window *w;
	const struct model *m;
	struct call_tree tree;
	struct firefox_thread *threads;
	size_t threads_count, threads_cap;
	struct firefox_row *rows;
	size_t rows_count, rows_cap;
	struct u64map thread_of;                       /* (process, thread) to threads */
	int64_t *process_weight;                       /* by process of the model */
	struct intern strings;                         /* of the file */
	uint32_t *text_string;                         /* by text of the tree: its number in the file, or NONE */
	uint32_t *resource_of;                         /* by text: the resource of a module */
	uint32_t *source_of;                           /* by text: the source file */
	uint32_t *func_of;                             /* by frame */
	struct firefox_list resources, sources, funcs; /* strings, strings, frames */
	size_t column;
	const struct firefox_weight *unit;
	uint64_t interval_ns;
	bool has_times;
	size_t with_time; /* samples that have one */
	struct json_out j;
};

/** firefox_write - the whole file, from tables that are complete. Return: 0, -ENOMEM or the buffer's error. */
int firefox_write(struct firefox_writer *o) warn_unused;
