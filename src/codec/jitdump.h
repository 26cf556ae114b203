/* SPDX-License-Identifier: Apache-2.0 */
/* Names of code that a JIT compiler made, from the file it wrote beside (jit-PID.dump), which is hostile: what was
 * where at which time. Source: linux 6.1, tools/perf/Documentation/jitdump-specification.txt and
 * tools/perf/util/jitdump.h. */
#pragma once

#include "base/str.h"

#define JITDUMP_NAME_MAX KIB(16) /* of a function or a source file: the rest is left out */

struct jitdump_line {
	uint64_t address;
	uint32_t file; /* in names */
	uint32_t line;
};

struct jitdump_code {
	uint64_t index; /* the writer's number of the function */
	uint64_t size;
	uint32_t name;                   /* in names */
	uint32_t first_line, line_count; /* in lines; of addresses as the code was when it was compiled */
	uint64_t made_at;                /* address that the lines are of */
};

struct jitdump_load { /* a function came to lie somewhere */
	uint64_t start, time_ns;
	uint32_t code;
};

struct jitdump {
	struct jitdump_load *loads; /* by start; of equal ones by time */
	size_t load_count, load_cap;
	struct jitdump_code *codes;
	size_t code_count, code_cap;
	struct jitdump_line *lines;
	size_t line_count, line_cap;
	char *names; /* NUL-terminated, one behind the other */
	size_t names_size, names_cap;
	size_t memory_max;
	uint64_t longest; /* size of the largest function */
	uint32_t pid;
	uint64_t time_ns; /* when it was begun */
	bool is_mono;     /* times are of CLOCK_MONOTONIC, not of a counter of the CPU */
	bool is_cut;      /* the file ends within a record, or memory_max did not suffice */
};

/**
 * jitdump_parse - @bytes: the whole file; nothing of it is kept
 * @memory_max: bytes of the tables; what does not fit is left out
 *
 * A file that ends within a record (its writer is at work, or was killed) is good up to there. Return: 0; -EBADMSG when
 * it is no jitdump or damaged; -ENOTSUP of a machine of the other byte order; -ENOMEM.
 */
int jitdump_parse(struct str bytes, size_t memory_max, struct jitdump *out) warn_unused;
void jitdump_release(struct jitdump *d); /* a zeroed struct is fine */

struct jitdump_hit {           /* text is borrowed from the table */
	struct str name, file; /* file: empty when not told */
	uint32_t line;
	uint64_t start;
};

/**
 * jitdump_find - the function at @address
 * @time_ns: by CLOCK_MONOTONIC: the one that lay there then; UINT64_MAX: the last one that did
 *
 * Return: 0 or -ENOENT.
 */
int jitdump_find(const struct jitdump *d, uint64_t address, uint64_t time_ns, struct jitdump_hit *out) warn_unused;
