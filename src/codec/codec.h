/* SPDX-License-Identifier: Apache-2.0 */
/* File formats: encode(window) -> bytes, decode(bytes) -> window. One row per format in codecs.c. */
#pragma once

#include "base/buf.h"
#include "base/cur.h"
#include "codec/frame_text.h"
#include "model/window.h"

/* What has no place in a format or in a profile, in one line; zeroed: nothing. */
struct codec_lost {
	char text[480]; /* a loss that has no room is not in it */
};

/* Where a decoder stopped, for the one line that names file and position. */
struct codec_error {
	uint64_t position; /* byte offset, or line number when is_line */
	bool is_line;
	char reason[120];
	uint64_t left_out; /* lines that could not be read, also when the rest was: position and reason are of the first
			    */
	struct codec_lost lost; /* after success: what of the file a profile cannot hold */
};

struct code_names; /* codec/code_names.h */

/* Limits for reading foreign bytes; 0 and NULL: no limit of that kind. */
struct codec_limits {
	size_t expanded_max; /* bytes once compression is taken off */
	size_t samples_max;  /* more are -E2BIG */
	size_t depth_max;    /* frames of a stack: those nearest the root are left out, the sample's end says CUT */
	size_t text_max;     /* bytes of the name of a function or its file; the rest is left out */
	size_t memory_max;   /* bytes of the model, and half as many of what it is made with; more are -E2BIG */
	bool may_repeat;     /* the model may have equal functions and locations twice: see model_distinct() */
	const struct code_names *names; /* who names code of files on this machine; NULL: nobody */
	bool (*stop)(void *ctx);        /* asked now and then; true: -ECANCELED */
	void *stop_ctx;
	uint64_t *done; /* bytes that are taken in, set before each question whether to stop; NULL: nobody wants it */
};

#define CODEC_STACK_CUT "cut:frame-limit" /* struct model_sample.end of a stack that lost frames to depth_max */

/* What gProfiler's switches leave out of a .col file. */
enum codec_without {
	CODEC_WITHOUT_CONTAINERS = 1,      /* names; the frame stays, empty */
	CODEC_WITHOUT_APP_IDS = 2,         /* appid: frames */
	CODEC_WITHOUT_APP_METADATA = 4,    /* the index in front of each line, and what it leads to */
	CODEC_WITHOUT_METRICS = 8,         /* averages of CPU and memory */
	CODEC_WITHOUT_METADATA = 16,       /* of the machine, but for its name */
	CODEC_WITHOUT_CONTAINER_FRAME = 32 /* as version 1 of its protocol has it */
};

struct render_svg_config;

/* Choices for the text of a file; zeroed: the defaults. */
struct codec_options {
	struct frame_style frames;
	const char
		*value; /* which column text and pages show; NULL, or one that is not there: the format's own choice */
	struct codec_lost *lost;             /* gets what the format has no place for; NULL: nobody wants to know */
	const char *title;                   /* of pages and pictures; NULL: their own */
	const struct render_svg_config *svg; /* of render/svg.h, for that format; NULL: the defaults */
	uint32_t without;                    /* enum codec_without */
};

/** codec_value - the column that options->value names, else @usual. */
size_t codec_value(const struct model *m, const struct codec_options *options, size_t usual);

struct codec {
	const char *name;            /* "pprof": what --format takes */
	const char *const *suffixes; /* { ".pb.gz", ".pprof", NULL }: the usual one first */
	const char *help;
	bool has_labels; /* those of samples are written */
	/** Append the whole file. NULL when the format is only read. Return: 0, -ENOMEM, -E2BIG. */
	int (*encode)(const struct window *w, struct buf *out);
	/** The same with options; NULL: this format knows none. */
	int (*encode_as)(const struct window *w, const struct codec_options *options, struct buf *out);
	/**
	 * The same bytes piece by piece: begin(), next() until it is 0 or fails, end(). NULL: all at once only.
	 * @w stays until end(), @options until begin() returned. Return: 0, -ENOMEM, -E2BIG.
	 */
	int (*begin)(const struct window *w, const struct codec_options *options, void **out);
	/** Append what has at least @size bytes, or the rest. Return: 1: there is more; 0: that was all; -errno. */
	int (*next)(void *state, size_t size, struct buf *out);
	size_t (*held)(const void *state); /* bytes of memory, about */
	void (*end)(void *state);          /* NULL is fine */
	/** 1 when the bytes look like this format, else 0. Looks at a few KiB at most. NULL: it is not known by them.
	 */
	int (*sniff)(struct str bytes);
	/** NULL when the format is only written. Return: 0, -EBADMSG (malformed), -ENOTSUP, -E2BIG, -ENOMEM; @out
	 * untouched and @error filled on failure. */
	int (*decode)(struct str bytes, struct window *out, struct codec_error *error);
	/** The same within limits, and -ECANCELED; NULL: this format is for files only. */
	int (*decode_limited)(struct str bytes, const struct codec_limits *limits, struct window *out,
			      struct codec_error *error);
};

/** codec_encode - encode with options; a format that knows none ignores them. */
int codec_encode(const struct codec *c, const struct window *w, const struct codec_options *options,
		 struct buf *out) warn_unused;

/** codec_whole - encode_as() of a format that has begin() */
int codec_whole(const struct codec *c, const struct window *w, const struct codec_options *options,
		struct buf *out) warn_unused;

const struct codec *codec_at(size_t index); /* NULL behind the last */
const struct codec *codec_find(struct str name);
/** codec_suffix_of - the longest suffix of @path that is one of @c's, or an empty string at its end. */
struct str codec_suffix_of(const struct codec *c, struct str path);
/** codec_for_path - by the longest matching suffix, or NULL. */
const struct codec *codec_for_path(struct str path);
/** codec_sniff - by content, or NULL when nothing fits. */
const struct codec *codec_sniff(struct str bytes);

/** codec_stopped - whether limits->stop says so. @done: bytes that are taken in, of those that the decoder was given.
 */
bool codec_stopped(const struct codec_limits *limits, uint64_t done);
/**
 * codec_unpack - the bytes of a file with gzip taken off, if there was any
 * @own_max: most bytes that the format takes; limits->expanded_max may be less, 0 is no less
 * @room: uninitialized; what was unpacked stays there, for the caller to release, also on failure
 *
 * Return: 0 and *out, which is of @bytes or of @room; -E2BIG, also of bytes that were not packed; -EBADMSG; -ENOMEM;
 * @error filled on failure.
 */
int codec_unpack(struct str bytes, const struct codec_limits *limits, size_t own_max, struct buf *room, struct str *out,
		 struct codec_error *error) warn_unused;
/** codec_next_line - the next line of a text, without its end (LF or CRLF). Return: false at the end. */
bool codec_next_line(struct str *rest, struct str *out);
/** codec_text - @text without what is beyond limits->text_max, cut between characters. */
struct str codec_text(const struct codec_limits *limits, struct str text);
/** codec_lose - add to the line about what is left out, behind "; " when there is one; what has no room is not said.
 * @lost may be NULL. */
void codec_lose(struct codec_lost *lost, const char *format, ...) printf_like(2, 3);
/** codec_fail - fill @error, which may be NULL. */
void codec_fail(struct codec_error *error, uint64_t position, bool is_line, const char *format, ...) printf_like(4, 5);
