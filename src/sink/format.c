/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/format.h"

#include "render/render.h"
#include "render/svg.h"

static int encode_html_as(const struct window *w, const struct codec_options *options, struct buf *out)
{
	const struct render_html_config cfg = { .value = codec_value(w->model, options, model_default_value(w->model)),
						.title = options->title ? options->title : w->command,
						.style = options->frames };

	return render_html(w, &cfg, out);
}

static int encode_html(const struct window *w, struct buf *out)
{
	const struct codec_options usual = { 0 };

	return encode_html_as(w, &usual, out);
}

static const char *const html_suffixes[] = { ".html", ".htm", NULL };

static const struct codec html = {
	.name = "html",
	.suffixes = html_suffixes,
	.help = "a flame graph page in one file",
	.encode = encode_html,
	.encode_as = encode_html_as,
};

static int encode_svg(const struct window *w, struct buf *out)
{
	const struct codec_options usual = { 0 };

	return render_svg(w, &usual, out);
}

static const char *const svg_suffixes[] = { ".svg", NULL };

static const struct codec svg = {
	.name = "svg",
	.suffixes = svg_suffixes,
	.help = "a classic flame graph, as flamegraph.pl draws it",
	.encode = encode_svg,
	.encode_as = render_svg,
};

static const struct codec *const pictures[] = { &html, &svg };

const struct codec *format_at(size_t index)
{
	if (index < ARRAY_SIZE(pictures))
		return pictures[index];
	index -= ARRAY_SIZE(pictures) - 1; /* the first codec is 1 */
	for (size_t i = 0; codec_at(i); i++)
		if (codec_at(i)->encode && --index == 0)
			return codec_at(i);
	return NULL;
}

const struct codec *format_find(struct str name)
{
	for (size_t i = 0; format_at(i); i++)
		if (str_eq(name, str_of(format_at(i)->name)))
			return format_at(i);
	return NULL;
}

const struct codec *format_for_path(struct str path)
{
	const struct codec *best = NULL;
	size_t best_len = 0;

	for (size_t i = 0; format_at(i); i++) {
		size_t len = codec_suffix_of(format_at(i), path).len;

		if (len <= best_len)
			continue;
		best = format_at(i);
		best_len = len;
	}
	return best;
}
