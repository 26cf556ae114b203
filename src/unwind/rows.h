/* SPDX-License-Identifier: Apache-2.0 */
/* The unwind rows of files, by file id, under a byte budget. A file gets a table number when a mapping of it is
 * published or a walk meets it; its rows are loaded when a walk meets it, the least recently used ones go when there is
 * no room. Used by one thread, the unwind worker; only rows_touch() may be called by others. */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "base/u64map.h"
#include "object/unwind/table.h"
#include "proc/files.h"
#include "unwind/table_sink.h"

#define ROWS_FILE_IDS_MAX (1u << 17) /* as many as struct files gives */

/* Where rows come from: rows_files.c reads ELF files. */
struct rows_source {
	/** span - what a mapping of the file has to know; cheap. Return: 0 or -errno. */
	int (*span)(void *self, uint32_t file_id, struct unwind_span *out);
	/** build - all rows; out->source NONE: it has none. Return: 0 or -errno; -ENOMEM, -EMFILE: worth another try.
	 */
	int (*build)(void *self, uint32_t file_id, struct unwind_table *out);
	void *self;
};

enum rows_state {
	ROWS_UNREAD = 0, /* not wanted yet */
	ROWS_LOADED,
	ROWS_EVICTED, /* was loaded */
	ROWS_BARE,    /* has no rows: frame pointers are all there is */
	ROWS_FAILED,  /* could not be read (reopen.is_away: cannot be now); as BARE */
	ROWS_REFUSED, /* larger than the whole budget; as BARE */
};

struct rows_file {
	uint32_t file_id; /* 0: this number is free */
	uint32_t next;    /* of free numbers */
	uint8_t state;    /* enum rows_state */
	bool is_told;     /* number -> table stands in the outer map */
	bool is_viewed;   /* a walk on the host has read it since the last decision whether to evict it */
	bool is_changed;  /* not yet; the next rows_flush() does it */
	bool has_turned;  /* in rows.turned */
	uint32_t holders; /* published mappings of it */
	struct unwind_span span;
	struct table table;
	struct file_retry reopen;   /* FAILED */
	uint64_t retry_ns;          /* another failure: not tried again before */
	uint64_t seen_use, idle_ns; /* what rows_expire() saw last, and since when it has not changed */
};

struct rows_config {
	size_t budget_bytes;
	const struct table_sink *sink;
	const struct rows_source *source;
	const struct clock *clock;
};

struct rows_stats {
	uint64_t loaded, evicted, failed, refused;
	uint64_t load_ns; /* thread CPU time of loading */
	size_t bytes, bytes_peak;
};

struct rows_allowance {
	int64_t left_ns; /* time that loading may still take; below 0 when the last one took more */
	uint64_t at_ns;  /* when that was last raised */
};

struct rows {
	struct rows_config cfg;
	struct rows_file *files; /* by number; 0 is none */
	size_t count, cap;       /* numbers handed out so far */
	uint32_t free;           /* first free number below count; 0: none */
	struct u64map by_id;     /* file id -> number */
	struct table_change *changes;
	size_t change_count, change_cap;
	size_t waiting;   /* files with is_changed */
	uint32_t *turned; /* numbers whose kind changed since rows_turned() was asked */
	size_t turned_count, turned_cap;
	struct rows_allowance loads, reloads;
	uint64_t expired_ns;
	uint32_t reopened; /* the number that rows_expire() tried to open again last */
	struct rows_stats stats;
	_Atomic uint64_t use_clock;
	_Atomic uint64_t *used; /* by file id: use_clock at the last use */
};

int rows_open(const struct rows_config *cfg, struct rows **out) warn_unused;
void rows_close(struct rows *r); /* NULL is fine */

/**
 * rows_describe - fill kind, file, table, first_page and pages of a mapping of @file_id
 * @load: a walk is there now: get the rows if they are not loaded
 *
 * Return: 0; -ENOSPC when all numbers are taken; -ENOMEM. *out is untouched then.
 */
int rows_describe(struct rows *r, uint32_t file_id, bool load, struct abi_map *out) warn_unused;
/** rows_hold - a published mapping uses @number: it stays with its file. */
void rows_hold(struct rows *r, uint32_t number);
void rows_release(struct rows *r, uint32_t number);
/**
 * rows_load_wanted - load the file that most samples wait for
 * @file_ids: sorted, one for each sample that waits; the file's become 0, so that it is tried once. Files that one
 * sample alone waits for are left to its walk.
 *
 * Return: whether a file was tried: call again for the next one.
 */
bool rows_load_wanted(struct rows *r, uint32_t *file_ids, size_t count) warn_unused;

/** rows_table - what rows_element() takes. NULL: not loaded, and could not be. */
const void *rows_table(struct rows *r, uint32_t number);
const union abi_element *rows_element(const void *table, uint32_t index); /* NULL: outside, or gone since */

/** rows_flush - tell the sink which tables came, in one batch. */
void rows_flush(struct rows *r);
/** rows_expire - drop what nothing maps and nobody used for a minute, and try again what could not be opened, 64 files
 * at most; looks at most once in five seconds. */
void rows_expire(struct rows *r);
/** rows_turned - the next number whose kind is another than its mappings say, with the kind; rows_describe() tells the
 * rest, which may be another, too. Return: 0 when none. */
uint32_t rows_turned(struct rows *r, uint8_t *kind);
/** rows_touch - any thread: it was used just now. */
void rows_touch(struct rows *r, uint32_t file_id);
