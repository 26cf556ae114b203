/* SPDX-License-Identifier: Apache-2.0 */
/* What a server grants to strangers' bytes: every reader that takes struct codec_limits keeps them. */
#include "support.h"

#include "base/wire.h"
#include "codec/folded.h"
#include "codec/jfr.h"
#include "codec/otlp.h"
#include "codec/perf_script.h"
#include "codec/pprof.h"
#include "codec/pprof_legacy.h"
#include "codec/speedscope.h"
#include "jfr_samples.h"
#include "model/model.h"

#define DEEP 200000

static void add(struct buf *out, const char *bytes, size_t size)
{
	buf_add(out, bytes, size);
}

#define add_text(out, text) add((out), (text), sizeof(text) - 1)

static void add_number(struct buf *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_addc(out, (char)(value | 0x80));
	buf_addc(out, (char)value);
}

/* One sample of @depth frames: the leaf is location 2, all others location 1; then @samples more of one frame. */
static void make_pprof(struct buf *out, size_t depth, size_t samples)
{
	add_text(out, "\x0a\x04\x08\x01\x10\x01"); /* sample type */
	add_text(out, "\x12");
	add_number(out, 1 + (depth < 0x80 ? 1 : depth < 0x4000 ? 2 : 3) + depth + 3);
	add_text(out, "\x0a");
	add_number(out, depth);
	for (size_t i = 0; i < depth; i++)
		buf_addc(out, i ? 1 : 2);
	add_text(out, "\x12\x01\x07");
	for (size_t i = 0; i < samples; i++)
		add_text(out, "\x12\x06\x0a\x01\x01\x12\x01\x07");
	add_text(out, "\x22\x04\x08\x01\x18\x11"); /* locations 1 and 2 at addresses 17 and 34 */
	add_text(out, "\x22\x04\x08\x02\x18\x22");
	add_text(out, "\x32\x00\x32\x01t");
}

static void make_folded(struct buf *out, size_t depth, size_t samples)
{
	add_text(out, "p;");
	for (size_t i = 1; i < depth; i++)
		add_text(out, "f;");
	add_text(out, "leaf 7\n");
	for (size_t i = 0; i < samples; i++)
		add_text(out, "p;f 7\n");
}

/* gperftools' words of eight bytes. */
static void add_word(struct buf *out, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		buf_addc(out, (char)(value >> 8 * i));
}

static void add_words(struct buf *out, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		add_word(out, words[i]);
}

static void make_legacy(struct buf *out, size_t depth, size_t samples)
{
	static const uint64_t head[] = { 0, 3, 0, 10000, 0 }, one[] = { 7, 1, 0x5000 }, end[] = { 0, 1, 0 };

	add_words(out, head, ARRAY_SIZE(head));
	add_word(out, 7);
	add_word(out, depth);
	for (size_t i = 0; i < depth; i++)
		add_word(out, i ? 0x1001 : 0x2000);
	for (size_t i = 0; i < samples; i++)
		add_words(out, one, ARRAY_SIZE(one));
	add_words(out, end, ARRAY_SIZE(end));
}

#define TWO_FRAMES "\"shared\":{\"frames\":[{\"name\":\"f\"},{\"name\":\"leaf\"}]}"

static void make_sampled(struct buf *out, size_t depth, size_t samples)
{
	add_text(out, "{" TWO_FRAMES ",\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[");
	for (size_t i = 1; i < depth; i++)
		add_text(out, "0,");
	add_text(out, "1]");
	for (size_t i = 0; i < samples; i++)
		add_text(out, ",[0]");
	add_text(out, "],\"weights\":[7");
	for (size_t i = 0; i < samples; i++)
		add_text(out, ",7");
	add_text(out, "]}]}");
}

static void add_event(struct buf *out, const char *what, size_t frame, size_t at)
{
	buf_addf(out, ",{\"type\":\"%s\",\"frame\":%zu,\"at\":%zu}", what, frame, at);
}

/* The same in events: what ran for 7 is a sample. */
static void make_evented(struct buf *out, size_t depth, size_t samples)
{
	add_text(out, "{" TWO_FRAMES ",\"profiles\":[{\"type\":\"evented\",\"unit\":\"none\",\"events\":["
		      "{\"type\":\"O\",\"frame\":0,\"at\":0},{\"type\":\"C\",\"frame\":0,\"at\":0}");
	for (size_t i = 1; i <= depth; i++)
		add_event(out, "O", i == depth, 0);
	for (size_t i = depth; i > 0; i--)
		add_event(out, "C", i == depth, 7);
	for (size_t i = 1; i <= samples; i++) {
		add_event(out, "O", 0, 7 * i);
		add_event(out, "C", 0, 7 * i + 7);
	}
	add_text(out, "]}]}");
}

/* Stack 1 is the deep one, its leaf is location 2; stack 2 has location 1 alone. */
static void make_otlp(struct buf *out, size_t depth, size_t samples)
{
	scoped(buf_release) struct buf stack = BUF_INIT(MIB(1)), inner = BUF_INIT(MIB(16)), outer = BUF_INIT(MIB(16));

	wire_add_bytes(&inner, 1, STR("\x08\x01")); /* sample type */
	wire_add_bytes(&inner, 2, STR("\x08\x01\x22\x01\x07"));
	for (size_t i = 0; i < samples; i++)
		wire_add_bytes(&inner, 2, STR("\x08\x02\x22\x01\x07"));
	wire_add_bytes(&outer, 2, buf_str(&inner)); /* profile, scope, resource */
	buf_clear(&inner);
	wire_add_bytes(&inner, 2, buf_str(&outer));
	wire_add_bytes(out, 1, buf_str(&inner));
	buf_clear(&inner);
	wire_add_bytes(&inner, 2, STR("")); /* locations */
	wire_add_bytes(&inner, 2, STR("\x10\x11"));
	wire_add_bytes(&inner, 2, STR("\x10\x22"));
	wire_add_bytes(&inner, 5, STR(""));
	wire_add_bytes(&inner, 5, STR("t"));
	for (size_t i = 0; i < depth; i++)
		buf_addc(&stack, i ? 1 : 2);
	buf_clear(&outer);
	wire_add_bytes(&outer, 1, buf_str(&stack));
	wire_add_bytes(&inner, 7, STR(""));
	wire_add_bytes(&inner, 7, buf_str(&outer));
	wire_add_bytes(&inner, 7, STR("\x0a\x01\x01"));
	wire_add_bytes(out, 2, buf_str(&inner));
}

static void make_jfr(struct buf *out, size_t depth, size_t samples)
{
	static const struct jfr_frame one = { 1, 5, 1 };
	struct jfr_frame *frames = calloc(depth, sizeof(*frames));
	struct jfr_writer w = { .out = out, .minor = 1 };

	assert_non_null(frames);
	for (size_t i = 0; i < depth; i++)
		frames[i] = (struct jfr_frame){ 1, i ? 5 : 6, 1 };
	jfr_begin_chunk(&w, 1000, 1000);
	jfr_put_constants(&w);
	jfr_put_stack(&w, 1, false, frames, depth);
	jfr_put_stack(&w, 2, false, &one, 1);
	jfr_put_sample(&w, JFR_ID_EXECUTION, 1000, 1, 1, 0);
	for (size_t i = 0; i < samples; i++)
		jfr_put_sample(&w, JFR_ID_EXECUTION, 1000, 1, 2, 0);
	jfr_end_chunk(&w);
	free(frames);
}

static void make_perf_script(struct buf *out, size_t depth, size_t samples)
{
	add_text(out, "p 1 [000] 1.000000: 7 e: \n\t10 leaf (/a)\n");
	for (size_t i = 1; i < depth; i++)
		add_text(out, "\t20 f (/a)\n");
	for (size_t i = 0; i < samples; i++)
		add_text(out, "\np 1 [000] 1.000000: 7 e: \n\t20 f (/a)\n");
}

static const struct form {
	const struct codec *codec;
	void (*make)(struct buf *out, size_t depth, size_t samples);
} forms[] = { { &codec_pprof, make_pprof },
	      { &codec_folded, make_folded },
	      { &codec_legacy, make_legacy },
	      { &codec_speedscope, make_sampled },
	      { &codec_speedscope, make_evented },
	      { &codec_otlp, make_otlp },
	      { &codec_jfr, make_jfr },
	      { &codec_perf_script, make_perf_script } };

static size_t depth_of(const struct model *m, uint32_t stack)
{
	size_t depth = 0;

	for (; stack; stack = m->stacks[stack].parent)
		depth++;
	return depth;
}

static int decode(const struct form *form, size_t depth, size_t samples, const struct codec_limits *limits,
		  struct window *out)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(32));
	struct codec_error error = { 0 };

	print_message("  %s\n", form->codec->name);
	form->make(&bytes, depth, samples);
	assert_int_equal(bytes.error, 0);
	return form->codec->decode_limited(buf_str(&bytes), limits, out, &error);
}

static void deep_stacks_are_cut_at_the_root(void **state)
{
	static const struct {
		size_t depth, want;
		bool is_cut;
	} cases[] = { { 1023, 1023, false }, { 1024, 1024, false }, { 1025, 1024, true }, { DEEP, 1024, true } };
	const struct codec_limits limits = { .depth_max = 1024 };

	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forms); f++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			scoped(window_release) struct window w = { 0 };
			const struct model *m;

			assert_int_equal(decode(&forms[f], cases[i].depth, 1, &limits, &w), 0);
			m = w.model;
			assert_int_equal(m->samples_count, 2);
			assert_int_equal(depth_of(m, m->samples[0].stack), cases[i].want);
			assert_int_equal(depth_of(m, m->samples[1].stack), 1);
			assert_true(str_eq(model_string(m, m->samples[0].end),
					   cases[i].is_cut ? STR(CODEC_STACK_CUT) : STR("")));
			assert_true(str_eq(model_string(m, m->samples[1].end), STR("")));
			assert_true(m->stacks[m->samples[0].stack].location !=
				    m->stacks[1].location); /* the leaf stays */
			assert_true(m->stacks_count <= 1024 + 3);
		}
}

static void files_may_be_deep(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forms); f++) {
		scoped(window_release) struct window w = { 0 };

		assert_int_equal(decode(&forms[f], DEEP, 1, &(struct codec_limits){ 0 }, &w), 0);
		assert_int_equal(depth_of(w.model, w.model->samples[0].stack), DEEP);
	}
}

static void samples_are_counted(void **state)
{
	const struct codec_limits limits = { .samples_max = 100 };

	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forms); f++) {
		scoped(window_release) struct window w = { 0 }, none = { 0 };

		assert_int_equal(decode(&forms[f], 1, 99, &limits, &w), 0);
		assert_int_equal(decode(&forms[f], 1, 100, &limits, &none), -E2BIG);
		assert_null(none.model);
	}
}

static void memory_is_bounded(void **state)
{
	const struct codec_limits limits = { .memory_max = MIB(1) };

	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forms); f++) {
		scoped(window_release) struct window w = { 0 }, none = { 0 };

		assert_int_equal(decode(&forms[f], 10, 1000, &limits, &w), 0);
		assert_true(model_memory(w.model) <= MIB(1));
		assert_int_equal(decode(&forms[f], DEEP, 1000, &limits, &none), -E2BIG);
		assert_null(none.model);
	}
}

static bool stop_at_third(void *ctx)
{
	int *asked = ctx;

	return ++*asked >= 3;
}

/* Within one profile, and within one sample of it where that can be long. */
static void a_stop_is_seen_inside(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forms); f++)
		for (int one_sample = 0; one_sample < 2; one_sample++) {
			scoped(window_release) struct window w = { 0 };
			int asked = 0;
			const struct codec_limits limits = { .stop = stop_at_third, .stop_ctx = &asked };

			if (one_sample && (forms[f].codec == &codec_folded || forms[f].make == make_sampled))
				continue; /* a stack's frames are cut before they are looked at */
			assert_int_equal(decode(&forms[f], one_sample ? DEEP : 1, one_sample ? 0 : DEEP, &limits, &w),
					 -ECANCELED);
			assert_int_equal(asked, 3);
			assert_null(w.model);
		}
}

static void names_are_cut_between_characters(void **state)
{
	static const struct {
		const char *in, *want;
	} cases[] = { { "abcd", "abcd" },
		      { "abcde", "abcd" },
		      { "abc\xc3\xa4", "abc" },
		      { "ab\xc3\xa4", "ab\xc3\xa4" },
		      { "\x80\x80\x80\x80\x80", "\x80\x80\x80\x80" } };
	const struct codec_limits limits = { .text_max = 4 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_true(str_eq(codec_text(&limits, str_of(cases[i].in)), str_of(cases[i].want)));
	assert_int_equal(codec_text(&(struct codec_limits){ 0 }, STR("abcde")).len, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deep_stacks_are_cut_at_the_root),
		cmocka_unit_test(files_may_be_deep),
		cmocka_unit_test(samples_are_counted),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(a_stop_is_seen_inside),
		cmocka_unit_test(names_are_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
