/* SPDX-License-Identifier: Apache-2.0 */
/* Profile files as results of commands. */
#pragma once

#include "cli/command.h"
#include "codec/codec.h"
#include "model/window.h"

/**
 * output_write - one window to one file through the file sink; says where it went unless @quiet
 * @format: NULL: by the path's suffix
 */
int output_write(const struct command *c, const char *path, const char *format, const struct codec_options *options,
		 const struct window *w, bool quiet);

#define OUTPUTS_MAX 64

struct output {
	char *path;
	struct sink_state *sink;
	struct codec_lost lost; /* of the last file */
};

/* Where every window of a session goes. */
struct outputs {
	const struct command *command;
	struct codec_options options; /* set before outputs_open() */
	struct output items[OUTPUTS_MAX];
	size_t count;
	struct buf written; /* a line per file that was */
	bool failed;        /* a file could not be written; it was said why */
	bool to_stdout;     /* one of them is standard output */
	bool shows_labels;  /* one of them has a format that has labels of samples */
};

#define OUTPUTS_INIT(for_command)                                     \
	{                                                             \
		.command = (for_command), .written = BUF_INIT(MIB(1)) \
	}

/**
 * outputs_open - @paths: files, and directories that get the three usual files; empty: the working directory
 * @format: NULL: by each path's suffix
 * @many: more than one window will come
 *
 * Return: EXIT_DONE, or another status after saying why.
 */
int outputs_open(struct outputs *o, const struct opt_list *paths, const char *format, bool many);
void outputs_write(struct outputs *o, const struct window *w);
void outputs_release(struct outputs *o);
