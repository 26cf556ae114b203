/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/input.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/local_names.h"
#include "cli/memory.h"
#include "cli/progress.h"
#include "codec/codec.h"
#include "codec/gzip.h"
#include "codec/perf_data.h"

#define INPUT_MAX_BYTES GIB(4)
#define EXPANDED_MAX GIB(1)
#define LAYERS_MAX 2 /* of gzip */

void input_bytes_release(struct input_bytes *in)
{
	if (in->map)
		io_map_release(in->map);
	free(in->map);
	buf_release(&in->read);
	buf_release(&in->expanded);
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
	char room[160];

	if (r < 0)
		return command_fail(c, "%s: cannot read: %s", path, memory_reason(r, room));
	*out = in;
	in = (struct input_bytes){ 0 };
	return EXIT_DONE;
}

int input_bytes_expand(const struct command *c, const char *path, struct input_bytes *in)
{
	for (int layer = 0; layer < LAYERS_MAX && gzip_is(in->bytes); layer++) {
		scoped(buf_release) struct buf expanded = BUF_INIT(EXPANDED_MAX);
		size_t at;
		int r = gzip_unpack_at(in->bytes, EXPANDED_MAX, 0, &expanded, &at);
		struct buf inner = in->expanded;
		char room[160];

		if (r == -EBADMSG)
			return command_fail(c, "%s: the gzip data that begins at byte %zu is damaged or cut off", path,
					    at);
		if (r < 0)
			return command_fail(c, "%s: gzip data that expands too far; %s", path, memory_reason(r, room));
		in->expanded = expanded;
		expanded = inner; /* released: its bytes were expanded */
		in->bytes = buf_str(&in->expanded);
	}
	return EXIT_DONE;
}

/* The file's name without the suffix of its compression, as the formats know it. */
static const struct codec *codec_by_name(const char *path)
{
	struct str name = str_of(path);
	const struct codec *codec = codec_for_path(name);

	if (!codec && str_ends(name, STR(".gz")))
		codec = codec_for_path(str_first(name, name.len - 3));
	return codec;
}

static int fail_unknown(const struct command *c, const char *path, struct str bytes)
{
	if (!bytes.len)
		return command_fail(c, "%s: empty input file", path);
	return command_fail(c, "%s: not a profile in a known format; --from NAME says which it should be", path);
}

struct reading {
	struct progress progress;
	const char *path;
	uint64_t done, total; /* bytes, once gzip is taken off */
};

/* The decoder asks now and then whether to stop. */
static bool go_on(void *ctx)
{
	struct reading *reading = ctx;
	scoped(buf_release) struct buf what = BUF_INIT(KIB(8));

	buf_addf(&what, "reading %s", reading->path);
	progress_show(&reading->progress, reading->done, reading->total, buf_cstr(&what));
	return false;
}

static void names_closep(struct local_names **names)
{
	local_names_close(*names);
}

/* A recording's code is named from the files of this machine. */
static int decode_named(const struct codec *codec, struct str bytes, struct codec_limits *limits, struct window *out,
			struct codec_error *error)
{
	scoped(names_closep) struct local_names *names = NULL;
	char room[LOCAL_NAMES_NOTE];
	int r = local_names_open(&names);

	if (r < 0)
		return r;
	limits->names = local_names_get(names);
	r = codec->decode_limited(bytes, limits, out, error);
	if (*local_names_note(names, room))
		codec_lose(&error->lost, "%s", room);
	return r;
}

static int decode_within(const struct codec *codec, struct str bytes, struct codec_limits *limits, struct window *out,
			 struct codec_error *error)
{
	if (codec == &codec_perf_data)
		return decode_named(codec, bytes, limits, out, error);
	return codec->decode_limited ? codec->decode_limited(bytes, limits, out, error)
				     : codec->decode(bytes, out, error);
}

int input_decode(const struct codec *codec, struct str bytes, struct window *out, struct codec_error *error)
{
	struct codec_limits limits = memory_codec_limits();

	return decode_within(codec, bytes, &limits, out, error);
}

static int decode_shown(const struct codec *codec, const char *path, struct str bytes, bool quiet, struct window *out,
			struct codec_error *error)
{
	struct reading reading = { .path = path, .total = bytes.len };
	struct codec_limits limits = memory_codec_limits();
	int r;

	if (!codec->decode_limited)
		return codec->decode(bytes, out, error);
	limits.stop = go_on;
	limits.stop_ctx = &reading;
	limits.done = &reading.done;
	progress_begin(&reading.progress, quiet);
	r = decode_within(codec, bytes, &limits, out, error);
	progress_end(&reading.progress);
	return r;
}

int input_load(const struct command *c, const char *path, const char *format, bool quiet, struct window *out)
{
	scoped(input_bytes_release) struct input_bytes in = { 0 };
	struct codec_error error = { 0 };
	const struct codec *codec;
	char room[160];
	int r;

	if (format && (!codec_find(str_of(format)) || !codec_find(str_of(format))->decode)) {
		command_fail(c, "--from: '%s' is not a format that can be read", format);
		return EXIT_USAGE;
	}
	r = input_bytes_open(c, path, &in);
	if (r == EXIT_DONE)
		r = input_bytes_expand(c, path, &in);
	if (r != EXIT_DONE)
		return r;
	codec = format ? codec_find(str_of(format)) : codec_sniff(in.bytes);
	if (!codec)
		codec = codec_by_name(path);
	if (codec && !codec->decode && in.bytes.len)
		return command_fail(c, "%s: hearth writes %s files but does not read them", path, codec->name);
	if (!codec || !in.bytes.len)
		return fail_unknown(c, path, in.bytes);
	r = decode_shown(codec, path, in.bytes, quiet, out, &error);
	if (r == -ENOMEM || (r == -E2BIG && !error.reason[0]))
		return command_fail(c, "%s: %s (read as %s)", path, memory_reason(r, room), codec->name);
	if (r == -E2BIG)
		return command_fail(c, "%s: %s; %s (read as %s)", path, error.reason, memory_reason(r, room),
				    codec->name);
	if (r < 0 && error.reason[0])
		return command_fail(c, "%s: %s %llu: %s (read as %s)", path, error.is_line ? "line" : "byte",
				    (unsigned long long)error.position, error.reason, codec->name);
	if (r < 0)
		return command_fail(c, "%s: %s (read as %s)", path, strerror(-r), codec->name);
	if (error.left_out)
		(void)command_fail(c, "%s: line %llu: %s; %llu such lines are left out", path,
				   (unsigned long long)error.position, error.reason,
				   (unsigned long long)error.left_out);
	if (error.lost.text[0])
		(void)command_fail(c, "%s: %s", path, error.lost.text); /* said, but nothing failed */
	return EXIT_DONE;
}
