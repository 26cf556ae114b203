/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/format.h"

#include "codec/codec.h"
#include "render/render.h"

struct format {
	const char *name;
	const char *const *suffixes;
	int (*encode)(const struct window *w, struct buf *out);
};

static int encode_html(const struct window *w, struct buf *out)
{
	const struct render_html_config cfg = { .value = model_default_value(w->model), .title = w->command };

	return render_html(w, &cfg, out);
}

static int encode_codec(const char *name, const struct window *w, struct buf *out)
{
	return codec_find(str_of(name))->encode(w, out);
}

static int encode_pprof(const struct window *w, struct buf *out)
{
	return encode_codec("pprof", w, out);
}

static int encode_col(const struct window *w, struct buf *out)
{
	return encode_codec("col", w, out);
}

static int encode_folded(const struct window *w, struct buf *out)
{
	return encode_codec("folded", w, out);
}

static int encode_window(const struct window *w, struct buf *out)
{
	return encode_codec("window", w, out);
}

static const char *const html_suffixes[] = { ".html", ".htm", NULL };
static const char *const pprof_suffixes[] = { ".pb.gz", ".pprof", ".prof", NULL };
static const char *const col_suffixes[] = { ".col", NULL };
static const char *const folded_suffixes[] = { ".folded", ".collapsed", ".txt", NULL };
static const char *const window_suffixes[] = { ".hwin", NULL };

static const struct format formats[] = {
	{ "html", html_suffixes, encode_html },	      { "pprof", pprof_suffixes, encode_pprof },
	{ "col", col_suffixes, encode_col },	      { "folded", folded_suffixes, encode_folded },
	{ "window", window_suffixes, encode_window },
};

static const char *const names[] = { "html", "pprof", "col", "folded", "window", NULL };
static_assert(ARRAY_SIZE(names) == ARRAY_SIZE(formats) + 1, "a name for every format");

const struct format *format_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (str_eq(name, str_of(formats[i].name)))
			return &formats[i];
	return NULL;
}

struct str format_suffix_of(const struct format *f, struct str path)
{
	struct str best = str_skip(path, path.len);

	for (const char *const *s = f->suffixes; *s; s++)
		if (str_ends(path, str_of(*s)) && strlen(*s) > best.len)
			best = str_skip(path, path.len - strlen(*s));
	return best;
}

const struct format *format_for_path(struct str path)
{
	const struct format *best = NULL;
	size_t best_len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct str suffix = format_suffix_of(&formats[i], path);

		if (suffix.len <= best_len)
			continue;
		best = &formats[i];
		best_len = suffix.len;
	}
	return best;
}

const char *format_name(const struct format *f)
{
	return f->name;
}

const char *format_suffix(const struct format *f)
{
	return f->suffixes[0];
}

const char *const *format_names(void)
{
	return names;
}

int format_encode(const struct format *f, const struct window *w, struct buf *out)
{
	return f->encode(w, out);
}
