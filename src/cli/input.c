/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/input.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "codec/codec.h"

#define INPUT_MAX_BYTES GIB(4)

void input_bytes_release(struct input_bytes *in)
{
	if (in->map)
		io_map_release(in->map);
	free(in->map);
	buf_release(&in->read);
	*in = (struct input_bytes){ 0 };
}

/* Opened once, and blocking: a FIFO (<(command) of a shell) has one writer, who may still be at work. */
static int map_or_read(const char *path, struct input_bytes *in)
{
	bool is_stdin = str_eq(str_of(path), STR("-"));
	scoped(closep) int opened = is_stdin ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int fd = is_stdin ? STDIN_FILENO : opened, r;

	if (fd < 0)
		return -errno;
	r = is_stdin ? -ENODEV : io_map_fd(fd, in->map); /* standard input may stand somewhere in its file */
	if (r < 0 && r != -ENODEV)
		return r;
	if (r == 0) {
		in->bytes = str_n(in->map->bytes, in->map->size);
		return 0;
	}
	in->read.max = INPUT_MAX_BYTES;
	r = io_read_fd(fd, &in->read);
	in->bytes = buf_str(&in->read);
	return r;
}

int input_bytes_open(const struct command *c, const char *path, struct input_bytes *out)
{
	scoped(input_bytes_release) struct input_bytes in = { .map = calloc(1, sizeof(struct io_map)) };
	int r = in.map ? map_or_read(path, &in) : -ENOMEM;

	if (r < 0)
		return command_fail(c, "%s: cannot read: %s", path, strerror(-r));
	*out = in;
	in = (struct input_bytes){ 0 };
	return EXIT_DONE;
}

static int fail_unknown(const struct command *c, const char *path, struct str bytes)
{
	if (!bytes.len)
		return command_fail(c, "%s: empty input file", path);
	return command_fail(c, "%s: not a profile in a known format; --from NAME says which it should be", path);
}

int input_load(const struct command *c, const char *path, const char *format, struct window *out)
{
	scoped(input_bytes_release) struct input_bytes in = { 0 };
	struct codec_error error = { 0 };
	const struct codec *codec;
	int r;

	if (format && !codec_find(str_of(format))) {
		command_fail(c, "--from: '%s' is not a format that can be read", format);
		return EXIT_USAGE;
	}
	r = input_bytes_open(c, path, &in);
	if (r != EXIT_DONE)
		return r;
	codec = format ? codec_find(str_of(format)) : codec_sniff(in.bytes);
	if (!codec)
		codec = codec_for_path(str_of(path));
	if (!codec || !codec->decode || !in.bytes.len)
		return fail_unknown(c, path, in.bytes);
	r = codec->decode(in.bytes, out, &error);
	if (r < 0 && error.reason[0])
		return command_fail(c, "%s: %s %llu: %s (read as %s)", path, error.is_line ? "line" : "byte",
				    (unsigned long long)error.position, error.reason, codec->name);
	if (r < 0)
		return command_fail(c, "%s: %s (read as %s)", path, strerror(-r), codec->name);
	return EXIT_DONE;
}
