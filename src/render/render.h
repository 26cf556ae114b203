/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as people see it: text tables and trees, the HTML flame graph. */
#pragma once

#include "base/buf.h"
#include "codec/frame_text.h"
#include "model/window.h"

struct render_text_config {
	size_t value;            /* column of the model */
	size_t top_count;        /* rows of the function table; 0: none */
	double tree_min_percent; /* branches below are left out and counted; negative: no tree */
	bool by_process;         /* a table of processes */
	int width;               /* columns of the terminal; 0: unlimited */
	struct frame_style style;
};

/** render_text - tables for people, to @out: functions by self and total, processes, call tree. Names are escaped. */
int render_text(const struct window *w, const struct render_text_config *cfg, struct buf *out) warn_unused;

/**
 * render_report_json - the same and more for programs, as one JSON object and a line end (docs/formats/report-json.md)
 * @value: column that functions, processes and ends are told by; @style: what functions are called
 * Return: 0, -EINVAL for a column that is not there, -ENOMEM, -E2BIG.
 */
int render_report_json(const struct window *w, size_t value, const struct frame_style *style,
		       struct buf *out) warn_unused;

struct render_top_row {
	uint32_t function_name; /* string of the model; 0: frames without a name, by module */
	uint32_t module;        /* file name of the mapping when there is no name, else 0 */
	enum model_kind kind;
	uint32_t location, line; /* of a language runtime: a frame of this function; location 0: of no such kind */
	int64_t self, total;     /* total counts recursion once */
};

/**
 * render_top - functions by self value, largest first (ties by total, then by name)
 * @style: functions of runtimes are one where their frames are written the same; NULL: the usual one
 * @out: the caller's to free
 * Return: 0, -EINVAL for a column that is not there, -ENOMEM, -E2BIG.
 */
int render_top(const struct model *m, size_t value, const struct frame_style *style, struct render_top_row **out,
	       size_t *count) warn_unused;

/** render_top_name - append what a row is called, unescaped: its frame's text, "[module]" or "[unknown]". */
void render_top_name(const struct model *m, const struct frame_style *style, const struct render_top_row *row,
		     struct buf *out);

/**
 * render_dump - the whole profile as text, in the form of pprof's own dump (profile.Profile.String of
 * github.com/google/pprof), so that golden files of either can be compared
 * @escape: make names safe for a terminal; without it the bytes are exactly the reference's
 */
int render_dump(const struct window *w, bool escape, struct buf *out) warn_unused;

/** Told now and then how many bytes of the input are read. */
struct render_progress {
	void (*show)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
};

struct render_html_config {
	size_t value;
	const char *title;
	int compression_level;                  /* 1..12, 0: by size */
	const struct render_progress *progress; /* of render_html_folded(); NULL: nobody looks */
	struct frame_style style;
};

/** render_html - the self-contained flame graph page. Equal input gives equal bytes. */
int render_html(const struct window *w, const struct render_html_config *cfg, struct buf *out) warn_unused;

/* Two profiles for one page. */
struct render_html_diff {
	const struct window *before, *now;
	const char *before_name, *now_name;
	size_t before_value, now_value; /* columns of one unit */
};

/**
 * render_html_diff - the page of a comparison: both profiles as one tree, coloured by what changed
 * @cfg: title and style; value is of no meaning
 * Return: 0, -EINVAL for columns that are not there, -ENOMEM, -E2BIG.
 */
int render_html_diff(const struct render_html_diff *diff, const struct render_html_config *cfg,
		     struct buf *out) warn_unused;

/**
 * render_html_folded - the same straight from folded text, without a model: for files with millions of lines
 * @text: "frame;frame count\n" lines
 * Return: 0, -EBADMSG with *bad_line set, -ENOMEM, -E2BIG.
 */
int render_html_folded(struct str text, const struct render_html_config *cfg, struct buf *out,
		       uint64_t *bad_line) warn_unused;
