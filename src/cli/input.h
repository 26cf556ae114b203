/* SPDX-License-Identifier: Apache-2.0 */
/* Profile files as operands of commands. */
#pragma once

#include "cli/command.h"
#include "model/window.h"

/**
 * input_load - read a profile of any known format
 * @path: file, or "-" for standard input
 * @format: name of a format, or NULL: by content, then by suffix
 *
 * Says in one line what is wrong, with file and position. Return: EXIT_DONE, EXIT_FAILED, or EXIT_USAGE for an unknown
 * format name.
 */
int input_load(const struct command *c, const char *path, const char *format, struct window *out);

/* A file's bytes, mapped or (for pipes) read. */
struct input_bytes {
	struct str bytes;
	struct io_map *map;
	struct buf read;
};

int input_bytes_open(const struct command *c, const char *path, struct input_bytes *out);
void input_bytes_release(struct input_bytes *in);
