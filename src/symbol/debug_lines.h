/* SPDX-License-Identifier: Apache-2.0 */
/* Inlined frames and source lines of native code, from DWARF. The parsing is done by a confined child (lines_child.h):
 * hearth opens the files, passes the descriptors, asks for all new addresses of a file at once, and checks the form
 * of every answer (lines_asker.h). Answers are kept for the session, by build id. Used by one thread, but for opening.
 */
#pragma once

#include "symbol/symbol.h"

#define DEBUG_LINES_DEPTH_MAX 64 /* frames of one place */

struct debug_lines_config {
	size_t memory_max;          /* bytes of answers kept; 0: 64 MiB. Emptied as a whole when half of it is used */
	uint64_t reply_patience_ns; /* for one packet of an answer; 0: 8 s */
	uint64_t ask_patience_ns;   /* for one debug_lines_ask(); 0: 60 s */
};

struct debug_lines_place {
	uint32_t file_id;
	uint64_t offset;
	bool is_return; /* as for symbols_native() */
};

struct debug_lines_frame {
	struct str name;        /* demangled, or empty */
	struct str system_name; /* linkage name where there is one */
	struct str file;        /* path as the compiler had it, or empty */
	uint32_t line;          /* 0: unknown */
};

struct debug_lines_stats {
	uint64_t asked;         /* distinct addresses of files with debug information */
	uint64_t found;         /* of these: with a line or a function */
	uint64_t failed;        /* of these: without an answer, because the child failed or time ran out */
	uint64_t files;         /* with debug information */
	uint64_t files_without; /* none in the file, none beside it */
	uint64_t files_failed;  /* on which the child died, or which it gave up */
	uint64_t deaths;        /* of the child, by itself or by us */
};

struct debug_lines;

/**
 * debug_lines_open - start the child
 * @symbols: gives files and their separate debug files; borrowed, and used only by what debug_lines_ask() does
 *
 * The program must ask lines_child_wanted() first thing in main(). Return: 0; -ENOTSUP without libdw.so.1; -errno.
 */
int debug_lines_open(const struct debug_lines_config *cfg, struct symbols *symbols,
		     struct debug_lines **out) warn_unused;
void debug_lines_close(struct debug_lines *l); /* NULL is fine */

/** debug_lines_ask - look up what is not known yet of these places. Return: 0, also when some could not be, or -ENOMEM.
 */
int debug_lines_ask(struct debug_lines *l, const struct debug_lines_place *places, size_t count) warn_unused;

/**
 * debug_lines_get - frames of a place that debug_lines_ask() was called with
 * @frames: filled, innermost first, the real function last; text is borrowed until the next debug_lines_ask()
 * @max: room in @frames
 * Return: number of frames; 0: nothing is known.
 */
size_t debug_lines_get(struct debug_lines *l, const struct debug_lines_place *place, struct debug_lines_frame *frames,
		       size_t max);

/** debug_lines_has_file - was there an answer of any kind for this file? */
bool debug_lines_has_file(struct debug_lines *l, uint32_t file_id);

void debug_lines_stats(const struct debug_lines *l, struct debug_lines_stats *out);
