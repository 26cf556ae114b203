/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "codec/folded.h"
#include "render/svg.h"
#include "render/svg_colour.h"

#define OUT_MAX MIB(64)

static int draw_as(const char *folded, const struct render_svg_config *cfg, const char *value, struct buf *out)
{
	scoped(window_release) struct window w = { 0 };
	const struct codec_options options = { .svg = cfg, .value = value };
	int r = codec_folded.decode(str_of(folded), &w, NULL);

	return r < 0 ? r : render_svg(&w, &options, out);
}

static void draw(const char *folded, const struct render_svg_config *cfg, struct buf *out)
{
	assert_int_equal(draw_as(folded, cfg, NULL, out), 0);
}

/* How often @part stands in the text. */
static size_t count(const struct buf *text, const char *part)
{
	struct str rest = buf_str(text);
	size_t found = 0;

	for (ptrdiff_t at; (at = str_search(rest, str_of(part))) >= 0; found++)
		rest = str_skip(rest, (size_t)at + 1);
	return found;
}

static void has(const struct buf *text, const char *part)
{
	if (count(text, part) != 1)
		print_message("%zu times: %s\n%.*s\n", count(text, part), part, (int)text->len, text->ptr);
	assert_int_equal(count(text, part), 1);
}

/* What flamegraph.pl at 41fee1f writes for the same lines. */
static void boxes(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);

	(void)state;
	draw("a;b 30\na;c;d 50\nmain_[k] 20\n", NULL, &out);
	has(&out, "width=\"1200\" height=\"134\"");
	has(&out, "<title>all (100 samples, 100%)</title><rect x=\"10.0\" y=\"85\" width=\"1180.0\" height=\"15.0\"");
	has(&out, "<title>a (80 samples, 80.00%)</title><rect x=\"10.0\" y=\"69\" width=\"944.0\" height=\"15.0\"");
	has(&out, "<title>b (30 samples, 30.00%)</title><rect x=\"10.0\" y=\"53\" width=\"354.0\"");
	has(&out, "<title>c (50 samples, 50.00%)</title><rect x=\"364.0\" y=\"53\" width=\"590.0\"");
	has(&out, "<title>d (50 samples, 50.00%)</title><rect x=\"364.0\" y=\"37\" width=\"590.0\"");
	has(&out, "<title>main (20 samples, 20.00%)</title><rect x=\"954.0\" y=\"69\" width=\"236.0\"");
	has(&out,
	    "<text id=\"title\" x=\"600.00\" y=\"24\" font-size=\"17\" text-anchor=\"middle\">Flame Graph</text>");
	assert_int_equal(count(&out, "]]>"), 1);
	/* No address but that of the name space: nothing is fetched. */
	assert_int_equal(count(&out, "://"), count(&out, "http://www.w3.org/2000/svg"));
}

/* Lines are sorted as text, and a blank comes before a digit and that before a semicolon: the frame is drawn in two
 * parts, as flamegraph.pl and inferno have it. */
static void order_of_lines(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);

	(void)state;
	draw("x;a 10\nx;a1 20\nx;a;b 70\n", NULL, &out);
	has(&out, "<title>a (10 samples, 10.00%)</title><rect x=\"10.0\"");
	has(&out, "<title>a1 (20 samples, 20.00%)</title><rect x=\"128.0\"");
	has(&out, "<title>a (70 samples, 70.00%)</title><rect x=\"364.0\"");
}

static void options(void **state)
{
	const struct render_svg_config inverted = { .inverted = true, .subtitle = "a < b", .width = 600 };
	const struct render_svg_config reversed = { .reverse = true };
	const struct render_svg_config narrow = { .min_width = 25, .min_width_is_percent = true };
	const struct render_svg_config words = { .count_name = "by\"tes", .name_type = "<Frame>", .factor = 1000 };
	const struct render_svg_config more = { .total = 400 };
	const struct render_svg_config chart = { .flame_chart = true };
	const char *const text = "a;b 30\na;c 50\nd;b 20\n";

	(void)state;
	scoped(buf_release) struct buf a = BUF_INIT(OUT_MAX), b = BUF_INIT(OUT_MAX), c = BUF_INIT(OUT_MAX),
				       d = BUF_INIT(OUT_MAX), e = BUF_INIT(OUT_MAX), f = BUF_INIT(OUT_MAX);

	draw(text, &inverted, &a);
	has(&a, "<title>all (100 samples, 100%)</title><rect x=\"10.0\" y=\"60\" width=\"580.0\"");
	has(&a, "<title>c (50 samples, 50.00%)</title><rect x=\"184.0\" y=\"92\" width=\"290.0\"");
	has(&a, ">a &lt; b</text>");
	has(&a, ">Icicle Graph</text>");
	draw(text, &reversed, &b);
	has(&b, "<title>b (50 samples, 50.00%)</title>");
	has(&b, "<title>a (30 samples, 30.00%)</title>");
	draw(text, &narrow, &c);
	assert_int_equal(count(&c, "<title>d ("), 0);
	has(&c, "<title>c (50 samples, 50.00%)</title>");
	draw(text, &words, &d);
	has(&d, "<title>c (50,000 by&quot;tes, 50.00%)</title>");
	has(&d, "data-nametype=\"&lt;Frame&gt;\"");
	draw(text, &more, &e);
	has(&e, "<title>all (400 samples, 100%)</title><rect x=\"10.0\" y=\"69\" width=\"1180.0\"");
	has(&e, "<title>c (50 samples, 12.50%)</title><rect x=\"98.5\" y=\"37\" width=\"147.5\"");
	draw("x;b 1\nx;a 1\nx;b 1\n", &chart, &f);
	assert_int_equal(count(&f, "<title>b (1 samples, 33.33%)</title>"), 2);
	has(&f, ">Flame Chart</text>");
}

/* What flamegraph.pl writes for the same pairs, and what we say of frames with all they call. */
static void difference(void **state)
{
	const char *const text = "a;b 30 60\na;c 50 20\na;d 0 20\n";
	const struct render_svg_config total = { .delta = SVG_DELTA_TOTAL }, negated = { .negate = true };
	const struct render_svg_config gone = { .delta = SVG_DELTA_TOTAL, .gone_count = 7 };
	scoped(buf_release) struct buf a = BUF_INIT(OUT_MAX), b = BUF_INIT(OUT_MAX), c = BUF_INIT(OUT_MAX),
				       d = BUF_INIT(OUT_MAX);

	(void)state;
	draw(text, NULL, &a);
	has(&a, "<title>all (100 samples, 100%)</title>");
	has(&a,
	    "<title>a (100 samples, 100.00%; 0.00%)</title><rect x=\"10.0\" y=\"53\" width=\"1180.0\" height=\"15.0\" "
	    "fill=\"rgb(255,255,255)\"");
	has(&a, "<title>b (60 samples, 60.00%; +30.00%)</title>");
	has(&a, "<title>c (20 samples, 20.00%; -30.00%)</title>");
	assert_int_equal(count(&a, "fill=\"rgb(255,0,0)\""), 1);
	assert_int_equal(count(&a, "fill=\"rgb(0,0,255)\""), 1);
	assert_int_equal(count(&a, "fill=\"rgb(255,70,70)\""), 1); /* 20 of 30 */
	draw(text, &negated, &b);
	has(&b, "<title>b (60 samples, 60.00%; -30.00%)</title>");
	draw(text, &total, &c);
	has(&c, "<title>a (100 samples, 100.00%; +20.00%; before 80)</title>");
	has(&c, "<title>d (20 samples, 20.00%; +20.00%; before 0, new)</title>");
	assert_int_equal(count(&c, "fill=\"rgb(255,190,60)\""), 1);
	draw(text, &gone, &d);
	has(&d, "<title>all (100 samples, 100%; +20.00%; before 80; stacks that are gone: 7)</title>");
}

static void hostile(void **state)
{
	static const char *const names[] = {
		"</title><script>alert(1)</script>",
		"]]>",
		"\" onload=\"alert(1)",
		"'&#39;&lt;",
		"\xef\xbf\xbe\xef\xbf\xbf",
		"\xed\xa0\x80\xff\xfe",
		"a\x01\x7f\x1b",
		"--",
		"-",
		"<!-- --><![CDATA[",
	};
	scoped(buf_release) struct buf text = BUF_INIT(OUT_MAX), out = BUF_INIT(OUT_MAX);
	const struct render_svg_config cfg = { .subtitle = "</text><script>",
					       .notes = "--><script>",
					       .count_name = "]]>&",
					       .name_type = "\"><script>",
					       .font_type = "\"><script>" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		buf_addf(&text, "%s;%s %zu\n", names[i], names[ARRAY_SIZE(names) - 1 - i], 100 + i);
	draw(buf_cstr(&text), &cfg, &out);
	assert_int_equal(count(&out, "<script>"), 1); /* ours */
	assert_int_equal(count(&out, "</script>"), 1);
	assert_int_equal(count(&out, "]]>"), 1);
	assert_int_equal(count(&out, "<!"), 1); /* ours: [CDATA[ */
	assert_int_equal(count(&out, "\xef\xbf\xbe") + count(&out, "\xef\xbf\xbf"), 0);
	for (size_t i = 0; i < out.len; i++)
		assert_true((unsigned char)out.ptr[i] >= ' ' || out.ptr[i] == '\n' || out.ptr[i] == '\t');
}

static void nothing(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);

	(void)state;
	draw("# nothing\n", NULL, &out);
	has(&out, "The profile has no samples.");
	assert_int_equal(count(&out, "<script"), 0);
}

/* As flamegraph.pl at 41fee1f under perl 5.36 colours them. */
static void colours(void **state)
{
	static const struct {
		enum svg_palette palette;
		bool hash;
		const char *name, *want;
	} cases[] = {
		{ SVG_HOT, false, "main", "243,179,42" },
		{ SVG_HOT, false, "mod`do_it", "221,77,18" },
		{ SVG_HOT, false, "foo::bar_[k]", "231,122,29" },
		{ SVG_HOT, false, "java/lang/String.length_[j]", "248,198,47" },
		{ SVG_HOT, false, "na\303\257ve`\303\274n\303\257", "215,46,11" },
		{ SVG_HOT, false, "x", "238,153,36" },
		{ SVG_HOT, true, "main", "247,83,46" },
		{ SVG_HOT, true, "mod`do_it", "253,189,53" },
		{ SVG_HOT, true, "foo::bar_[k]", "236,199,34" },
		{ SVG_HOT, true, "java/lang/String.length_[j]", "237,104,35" },
		{ SVG_HOT, true, "na\303\257ve`\303\274n\303\257", "236,178,34" },
		{ SVG_HOT, true, "x", "255,230,55" },
		{ SVG_MEM, false, "main", "0,228,163" },
		{ SVG_MEM, false, "mod`do_it", "0,206,70" },
		{ SVG_MEM, false, "foo::bar_[k]", "0,216,111" },
		{ SVG_MEM, true, "main", "0,232,76" },
		{ SVG_MEM, true, "mod`do_it", "0,238,173" },
		{ SVG_MEM, true, "foo::bar_[k]", "0,221,181" },
		{ SVG_IO, false, "main", "126,126,232" },
		{ SVG_IO, false, "mod`do_it", "100,100,208" },
		{ SVG_IO, false, "foo::bar_[k]", "111,111,219" },
		{ SVG_IO, true, "main", "101,101,236" },
		{ SVG_IO, true, "mod`do_it", "129,129,243" },
		{ SVG_IO, true, "foo::bar_[k]", "131,131,224" },
		{ SVG_JAVA, false, "main", "242,112,112" },
		{ SVG_JAVA, false, "mod`do_it", "218,76,76" },
		{ SVG_JAVA, false, "foo::bar_[k]", "204,204,60" },
		{ SVG_JAVA, false, "java/lang/String.length_[j]", "101,247,101" },
		{ SVG_JAVA, false, "na\303\257ve`\303\274n\303\257", "211,66,66" },
		{ SVG_JAVA, false, "x", "236,103,103" },
		{ SVG_JS, false, "main", "242,112,112" },
		{ SVG_JS, false, "mod`do_it", "218,76,76" },
		{ SVG_JS, false, "foo::bar_[k]", "204,204,60" },
		{ SVG_JS, false, "java/lang/String.length_[j]", "101,247,101" },
		{ SVG_JS, false, "na\303\257ve`\303\274n\303\257", "211,66,66" },
		{ SVG_JS, false, "x", "236,103,103" },
		{ SVG_PERL, false, "main", "242,112,112" },
		{ SVG_PERL, false, "mod`do_it", "218,76,76" },
		{ SVG_PERL, false, "foo::bar_[k]", "204,204,60" },
		{ SVG_WAKEUP, false, "main", "96,207,207" },
		{ SVG_WAKEUP, false, "mod`do_it", "70,183,183" },
		{ SVG_WAKEUP, false, "foo::bar_[k]", "81,194,194" },
		{ SVG_RED, false, "main", "242,112,112" },
		{ SVG_RED, false, "mod`do_it", "218,76,76" },
		{ SVG_RED, false, "foo::bar_[k]", "229,92,92" },
		{ SVG_GREEN, false, "main", "96,242,96" },
		{ SVG_GREEN, false, "mod`do_it", "70,218,70" },
		{ SVG_GREEN, false, "foo::bar_[k]", "81,229,81" },
		{ SVG_BLUE, false, "main", "126,126,243" },
		{ SVG_BLUE, false, "mod`do_it", "100,100,221" },
		{ SVG_BLUE, false, "foo::bar_[k]", "111,111,231" },
		{ SVG_AQUA, false, "main", "96,207,207" },
		{ SVG_AQUA, false, "mod`do_it", "70,183,183" },
		{ SVG_AQUA, false, "foo::bar_[k]", "81,194,194" },
		{ SVG_YELLOW, false, "main", "217,217,65" },
		{ SVG_YELLOW, false, "mod`do_it", "193,193,56" },
		{ SVG_YELLOW, false, "foo::bar_[k]", "204,204,60" },
		{ SVG_PURPLE, false, "main", "240,126,240" },
		{ SVG_PURPLE, false, "mod`do_it", "211,100,211" },
		{ SVG_PURPLE, false, "foo::bar_[k]", "224,111,224" },
		{ SVG_ORANGE, false, "main", "240,140,0" },
		{ SVG_ORANGE, false, "mod`do_it", "211,111,0" },
		{ SVG_ORANGE, false, "foo::bar_[k]", "224,124,0" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct svg_colour c = svg_colour_of(cases[i].palette, cases[i].hash, str_of(cases[i].name));
		char got[32];

		snprintf(got, sizeof(got), "%u,%u,%u", c.red, c.green, c.blue);
		print_message("  %s %d %s\n", svg_palette_names[cases[i].palette], cases[i].hash, cases[i].name);
		assert_string_equal(got, cases[i].want);
	}
}

static void delta_colours(void **state)
{
	static const struct {
		int64_t delta, max;
		uint8_t red, green, blue;
	} cases[] = {
		{ 0, 1, 255, 255, 255 },
		{ 1, 3, 255, 140, 140 },
		{ -1, 3, 140, 140, 255 },
		{ INT64_MIN, INT64_MAX, 0, 0, 255 },
		{ INT64_MAX, INT64_MAX, 255, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct svg_colour c = svg_colour_of_delta(cases[i].delta, cases[i].max);

		assert_int_equal(c.red, cases[i].red);
		assert_int_equal(c.green, cases[i].green);
		assert_int_equal(c.blue, cases[i].blue);
	}
}

static void saturates(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);

	(void)state;
	draw("a 9223372036854775807\nb 9223372036854775807\n", NULL, &out);
	assert_int_equal(count(&out, "<title>all (9,223,372,036,854,775,80"), 1);
	assert_int_equal(count(&out, "<title>a ("), 1);
}

static void left_out(void **state)
{
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
	struct codec_lost lost = { 0 };
	const struct codec_options options = { .lost = &lost };

	(void)state;
	assert_int_equal(codec_folded.decode(STR("a 5\nb 7\n"), &w, NULL), 0);
	w.model->values[w.model->samples[0].first_value] = -5;
	assert_int_equal(render_svg(&w, &options, &out), 0);
	assert_non_null(strstr(lost.text, "below zero: 1 samples"));
	has(&out, "<title>all (7 samples, 100%)</title>");
}

static int draw_once(void *ctx)
{
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
	int r;

	(void)ctx;
	r = draw_as("a;b;c;d;e;f;g;h;i;j;k;l;m;n;o;p;q;r 30 2\na;c;d 50 3\nmain_[k] 20 4\n", NULL, NULL, &out);
	assert_true(r == 0 || r == -ENOMEM || (r == -EBADMSG && allocation_failed()));
	assert_true(r == 0 || !out.len);
	return r;
}

static void failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(draw_once, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boxes),
		cmocka_unit_test(order_of_lines),
		cmocka_unit_test(options),
		cmocka_unit_test(difference),
		cmocka_unit_test(hostile),
		cmocka_unit_test(nothing),
		cmocka_unit_test(colours),
		cmocka_unit_test(delta_colours),
		cmocka_unit_test(saturates),
		cmocka_unit_test(left_out),
		cmocka_unit_test(failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
