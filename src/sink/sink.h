/* SPDX-License-Identifier: Apache-2.0 */
/* Where finished windows go. A sink chooses its codec; it never sees BPF records. */
#pragma once

#include "base/buf.h"
#include "model/window.h"

struct sink_state;

struct sink_config {
	const char *path;   /* file sink: where to; may hold %t (end time) and %n (window number) when windows are cut */
	const char *format; /* codec or renderer name; NULL: by the path's suffix */
};

struct sink {
	const char *name;
	/** @why: one line, when it fails: what is wrong with the configuration. */
	int (*open)(const struct sink_config *cfg, struct buf *why, struct sink_state **out);
	/** @w is borrowed. 0 means it is where it belongs. Return: 0 or -errno; the caller counts and says what is lost. */
	int (*write)(struct sink_state *s, const struct window *w);
	int (*flush)(struct sink_state *s);
	void (*close)(struct sink_state *s); /* NULL is fine */
};

const struct sink *sink_find(struct str name);
