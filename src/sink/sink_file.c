/* SPDX-License-Identifier: Apache-2.0 */
/* Windows into files, each written whole or not at all. */
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "codec/gzip.h"
#include "sink/format.h"
#include "sink/sinks.h"

#define FILE_MAX_BYTES GIB(2)
#define GZIP_LEVEL 6

struct sink_state {
	char *path;
	const struct codec *format;
	struct codec_options options;
	bool many, packed;     /* packed: the path ends in .gz */
	char last[64];         /* time part of the last file's name */
	unsigned int repeated; /* windows that ended in the same second */
};

static void file_close(struct sink_state *s)
{
	if (!s)
		return;
	free(s->path);
	free(s);
}

static void file_closep(struct sink_state **s)
{
	file_close(*s);
}

/* The path without a .gz that is not the format's own: "x.folded" of "x.folded.gz", but all of "x.pb.gz". */
static struct str bare_path(const struct codec *format, struct str path)
{
	if (!str_ends(path, STR(".gz")) || (format && codec_suffix_of(format, path).len))
		return path;
	return str_first(path, path.len - strlen(".gz"));
}

static int choose_format(const struct sink_config *cfg, struct buf *why, const struct codec **out)
{
	*out = cfg->format ? format_find(str_of(cfg->format)) : format_for_path(str_of(cfg->path));
	if (!*out && !cfg->format)
		*out = format_for_path(bare_path(NULL, str_of(cfg->path)));
	if (*out)
		return 0;
	if (cfg->format)
		buf_addf(why, "'%s' is not a format; there are", cfg->format);
	else
		buf_addf(why, "the name '%s' does not say the format; give --format with one of", cfg->path);
	for (size_t i = 0; format_at(i); i++)
		buf_addf(why, "%s %s", i ? "," : "", format_at(i)->name);
	return -EINVAL;
}

static int file_open(const struct sink_config *cfg, struct buf *why, struct sink_state **out)
{
	scoped(file_closep) struct sink_state *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = choose_format(cfg, why, &s->format);
	if (r < 0)
		return r;
	s->many = cfg->many;
	s->packed = str_ends(str_of(cfg->path), STR(".gz"));
	s->options = cfg->options;
	s->path = str_dup(str_of(cfg->path));
	if (!s->path)
		return -ENOMEM;
	*out = s;
	s = NULL;
	return 0;
}

/* profile.html -> profile_20260803-213025.html; a second window that ends in the same second gets _2 behind it. */
static void add_path(struct sink_state *s, const struct window *w, struct buf *out)
{
	struct str path = str_of(s->path), bare = bare_path(s->format, path);
	struct str suffix = str_skip(path, bare.len - codec_suffix_of(s->format, bare).len);
	time_t end = (time_t)(w->end_ns / NSEC_PER_SEC);
	struct tm tm;
	char text[64];

	buf_adds(out, str_first(path, path.len - suffix.len));
	if (s->many && localtime_r(&end, &tm) && strftime(text, sizeof(text), "_%Y%m%d-%H%M%S", &tm)) {
		s->repeated = strcmp(text, s->last) ? 0 : s->repeated + 1;
		memcpy(s->last, text, sizeof(text));
		buf_adds(out, str_of(text));
		if (s->repeated)
			buf_addf(out, "_%u", s->repeated + 1);
	}
	buf_adds(out, suffix);
}

static int encode(const struct sink_state *s, const struct window *w, struct buf *out)
{
	scoped(buf_release) struct buf plain = BUF_INIT(FILE_MAX_BYTES);
	int r = codec_encode(s->format, w, &s->options, &plain);

	if (r == 0 && s->packed && !gzip_is(buf_str(&plain)))
		return gzip_pack(buf_str(&plain), GZIP_LEVEL, out);
	buf_release(out);
	*out = plain;
	plain = (struct buf){ 0 }; /* moved out */
	return r;
}

static int file_write(struct sink_state *s, const struct window *w, struct buf *where)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(FILE_MAX_BYTES), path = BUF_INIT(KIB(16));
	int r = encode(s, w, &bytes);

	if (r < 0)
		return r;
	if (str_eq(str_of(s->path), STR("-"))) {
		buf_adds(where, STR("standard output"));
		return io_write_all(STDOUT_FILENO, bytes.ptr, bytes.len);
	}
	add_path(s, w, &path);
	(void)buf_cstr(&path);
	if (path.error)
		return path.error;
	buf_adds(where, buf_str(&path));
	return io_replace_file(path.ptr, bytes.ptr, bytes.len);
}

static int file_flush(struct sink_state *s)
{
	(void)s; /* every window was synced when it was written */
	return 0;
}

const struct sink sink_file = {
	.name = "file",
	.open = file_open,
	.write = file_write,
	.flush = file_flush,
	.close = file_close,
};
