/* SPDX-License-Identifier: Apache-2.0 */
/* Where finished windows go. A sink chooses its format; it never sees BPF records. */
#pragma once

#include "base/buf.h"
#include "codec/codec.h"
#include "model/window.h"
#include "sink/push.h"

struct sink_state;

/* What the http sink needs besides. */
struct sink_http_config {
	struct push_config push;
	const struct window_label *labels; /* of every profile; copied */
	size_t label_count;
};

struct sink_config {
	const char *path;                    /* "-": standard output */
	const char *format;                  /* name of a format; NULL: by the path's suffix */
	const struct sink_http_config *http; /* for "http", which needs neither path nor format */
	bool without_page,
		rotating; /* of "cycle", whose path is a directory: no flame graph; only the last files stay */
	bool many;        /* more than one window will come: each file gets its window's end time in its name */
	struct codec_options options;
};

struct sink {
	const char *name;
	/** @why: one line, when it fails: what is wrong with the configuration. Return: 0, -EINVAL, -ENOMEM. */
	int (*open)(const struct sink_config *cfg, struct buf *why, struct sink_state **out);
	/**
	 * @w is borrowed. 0 means it is where it belongs, and @where (appended to) says where that is.
	 * Return: 0 or -errno; the caller counts and says what is lost.
	 */
	int (*write)(struct sink_state *s, const struct window *w, struct buf *where);
	int (*flush)(struct sink_state *s);
	void (*close)(struct sink_state *s); /* NULL is fine */
};

/** sink_find - "cycle", "file", "http" or "memory"; NULL when there is none of that name. */
const struct sink *sink_find(struct str name);

/** sink_memory_windows - what a memory sink was given, in its encoded form, oldest first: *count buffers, borrowed. */
const struct buf *sink_memory_windows(const struct sink_state *s, size_t *count);

#define SINK_HTTP_FLUSH_NS (10 * NSEC_PER_SEC) /* how long its flush() waits for the collector */

/** sink_http_stats - what an http sink has sent, and what waits. */
void sink_http_stats(const struct sink_state *s, struct push_stats *out);
