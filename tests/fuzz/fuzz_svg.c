/* SPDX-License-Identifier: Apache-2.0 */
/* Folded text to a classic flame graph: names never become markup, tags match, boxes lie within each other's rows. The
 * first byte chooses options. */
#include "fuzz.h"

#include "codec/folded.h"
#include "render/svg.h"

#define OPEN_MAX 16

/* Every '<' begins one of our elements, every element ends, and no character is one that XML does not know. */
static void check_markup(struct str text)
{
	static const char *const known[] = { "svg",  "desc", "defs", "linearGradient", "stop",  "style",
					     "rect", "text", "g",    "title",          "script" };
	size_t open = 0;

	for (ptrdiff_t at; (at = str_find(text, '<')) >= 0;) {
		bool is_known = false, closes;

		text = str_skip(text, (size_t)at + 1);
		if (str_starts(text, STR("?xml")))
			continue;
		if (str_starts(text, STR("![CDATA["))) {
			text = str_skip(text, (size_t)str_search(text, STR("]]>")));
			continue;
		}
		closes = str_starts(text, STR("/"));
		text = str_skip(text, closes);
		for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
			struct str rest = str_skip(text, strlen(known[i]));

			is_known |= str_starts(text, str_of(known[i])) && rest.len &&
				    (rest.ptr[0] == '>' || rest.ptr[0] == ' ');
		}
		must(is_known);
		text = str_skip(text, (size_t)str_find(text, '>'));
		if (closes)
			must(open-- > 0);
		else if (text.ptr[-1] != '/')
			must(open++ < OPEN_MAX);
	}
	must(open == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf once = BUF_INIT(MIB(64)), again = BUF_INIT(MIB(64));
	struct render_svg_config cfg = { .min_width = -1 };
	const struct codec_options options = { .svg = &cfg };
	uint8_t chosen;
	int r;

	if (!size || size > KIB(16))
		return 0;
	chosen = data[0];
	cfg.palette = chosen % SVG_PALETTE_COUNT;
	cfg.hash = chosen & 1;
	cfg.reverse = chosen & 2;
	cfg.inverted = chosen & 4;
	cfg.flame_chart = chosen & 8;
	cfg.delta = chosen & 16 ? SVG_DELTA_TOTAL : SVG_DELTA_SELF;
	cfg.negate = chosen & 32;
	if (codec_folded.decode(str_n((const char *)data + 1, size - 1), &w, NULL) < 0)
		return 0;
	r = render_svg(&w, &options, &once);
	must(r == 0 || r == -EOVERFLOW || r == -E2BIG);
	must(render_svg(&w, &options, &again) == r);
	must(str_eq(buf_str(&once), buf_str(&again)));
	if (r == 0)
		check_markup(buf_str(&once));
	return 0;
}
