/* SPDX-License-Identifier: Apache-2.0 */
/* Profile files as operands of commands. */
#pragma once

#include "cli/command.h"
#include "codec/codec.h"
#include "model/window.h"

/**
 * input_load - read a profile of any known format, also inside gzip
 * @path: file, or "-" for standard input
 * @format: name of a format, or NULL: by content, then by suffix
 * @quiet: no progress on the terminal
 *
 * Says in one line what is wrong, with file and position. Return: EXIT_DONE, EXIT_FAILED, or EXIT_USAGE for an unknown
 * format name.
 */
int input_load(const struct command *c, const char *path, const char *format, bool quiet, struct window *out);

/** input_decode - codec->decode(), within what memory_limit() grants. */
int input_decode(const struct codec *codec, struct str bytes, struct window *out,
		 struct codec_error *error) warn_unused;

/* A file's bytes, mapped or (for pipes) read. */
struct input_bytes {
	struct str bytes;
	struct io_map *map;
	struct buf read, expanded;
};

int input_bytes_open(const struct command *c, const char *path, struct input_bytes *out);
/**
 * input_bytes_expand - take gzip off: in->bytes is what was packed then, also twice
 * At most 1 GiB. Return: as input_bytes_open().
 */
int input_bytes_expand(const struct command *c, const char *path, struct input_bytes *in);
void input_bytes_release(struct input_bytes *in);
