/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings that are made here, read: samples, names, kinds, threads, weights; and what is no recording. */
#include "support.h"

#include "codec/jfr.h"
#include "jfr_samples.h"

#define START UINT64_C(1790000000000000000)

static void make_all(struct buf *out, bool is_plain, uint16_t minor, int chunks)
{
	struct jfr_writer w = { .out = out, .is_plain = is_plain, .minor = minor };

	for (int i = 0; i < chunks; i++)
		jfr_put_all(&w, START + (uint64_t)i * 5 * NSEC_PER_SEC);
	assert_int_equal(out->error, 0);
}

static int decode(const struct buf *bytes, struct window *out, struct codec_error *error)
{
	struct cur in = guard_page(bytes->ptr, bytes->len);

	return codec_jfr.decode(str_n((const char *)in.pos, bytes->len), out, error);
}

static int64_t total(const struct model *m, const char *type)
{
	int column = model_value_index(m, str_of(type));
	int64_t sum = 0;

	assert_true(column >= 0);
	for (size_t i = 0; i < m->samples_count; i++)
		sum += model_values(m, &m->samples[i])[column];
	return sum;
}

static void assert_text(const struct model *m, uint32_t id, const char *want)
{
	if (!str_eq(model_string(m, id), str_of(want))) {
		print_message("'" STR_FMT "' is not '%s'\n", STR_ARG(model_string(m, id)), want);
		fail();
	}
}

struct want_frame {
	const char *name, *system_name;
	int64_t line;
	enum model_kind kind;
};

/* @want: leaf first */
static void assert_stack(const struct model *m, uint32_t stack, const struct want_frame *want, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct model_location *location = &m->locations[m->stacks[stack].location];
		const struct model_line *line = &m->lines[location->first_line];
		const struct model_function *function = &m->functions[line->function];

		assert_int_equal(location->line_count, 1);
		assert_text(m, function->name, want[i].name);
		assert_text(m, function->system_name, want[i].system_name);
		assert_int_equal(line->line, want[i].line);
		assert_int_equal(function->kind, want[i].kind);
		stack = m->stacks[stack].parent;
	}
	assert_int_equal(stack, 0);
}

static const struct want_frame one[] = {
	{ "shop.Cart.add", "shop.Cart.add(I)V", 12, MODEL_KIND_JAVA_INLINED },
	{ "shop.Cart$1.run", "shop.Cart$1.run()V", 0, MODEL_KIND_JAVA },
	{ "\xc3\xa4.f", "\xc3\xa4.f\xc3\xa4!", 7, MODEL_KIND_JAVA_INTERPRETED },
};
static const struct want_frame two[] = {
	{ "read", "read", 0, MODEL_KIND_NATIVE },
	{ "read", "read", 0, MODEL_KIND_KERNEL },
	{ "shop.Cart.add", "shop.Cart.add(I)V", 13, MODEL_KIND_JAVA_C1 },
};

static void assert_all(const struct window *w, int chunks)
{
	const struct model *m = w->model;
	const struct model_sample *s = m->samples;

	assert_int_equal(m->samples_count, 9 * chunks);
	assert_int_equal(m->value_type_count, 9);
	assert_int_equal(total(m, "samples"), 4 * chunks);
	assert_int_equal(total(m, "native_samples"), chunks);
	assert_int_equal(total(m, "wall_samples"), 30 * chunks);
	assert_int_equal(total(m, "alloc_in_new_tlab_objects"), chunks);
	assert_int_equal(total(m, "alloc_in_new_tlab_bytes"), 100000 * chunks);
	assert_int_equal(total(m, "alloc_outside_tlab_bytes"), 5000000 * chunks);
	assert_int_equal(total(m, "alloc_sample_objects"), chunks);
	assert_int_equal(total(m, "alloc_sample_bytes"), 777 * chunks);
	assert_text(m, m->default_type, "samples");
	assert_int_equal(w->start_ns, START);
	assert_int_equal(w->end_ns, START + (uint64_t)chunks * 5 * NSEC_PER_SEC);
	assert_string_equal(w->command, "-Xmx1g shop.Main");
	for (int chunk = 0; chunk < chunks; chunk++, s += 9) {
		assert_stack(m, s[0].stack, one, ARRAY_SIZE(one));
		assert_stack(m, s[1].stack, two, ARRAY_SIZE(two));
		assert_int_equal(s[0].time_offset_ns, (uint64_t)(5 * chunk + 1) * NSEC_PER_SEC);
		assert_text(m, s[0].end, "");
		assert_text(m, s[1].end, "cut:jfr-stack-depth");
		assert_int_equal(s[2].stack, 0);
		assert_int_equal(s[3].stack, 0);
		assert_text(m, m->threads[s[0].thread].name, "main");
		assert_int_equal(m->threads[s[0].thread].tid, 71);
		assert_text(m, m->threads[s[1].thread].name, "GC Thread");
		assert_int_equal(m->processes[s[0].process].pid, 4711);
		assert_int_equal(s[0].label_set, 0);
		assert_int_equal(m->label_sets[s[6].label_set].count, 1);
		assert_text(m, m->labels[m->label_sets[s[6].label_set].first].text, "shop.Cart");
	}
}

static void reads_every_kind_of_event(void **state)
{
	(void)state;
	for (int form = 0; form < 8; form++) {
		scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
		scoped(window_release) struct window w = { 0 };
		struct codec_error error = { 0 };
		int chunks = form & 4 ? 3 : 1;

		make_all(&bytes, form & 1, form & 2 ? 1 : 0, chunks);
		assert_ptr_equal(codec_sniff(buf_str(&bytes)), &codec_jfr);
		if (decode(&bytes, &w, &error) < 0)
			print_message("%s at %llu\n", error.reason, (unsigned long long)error.position);
		assert_non_null(w.model);
		assert_all(&w, chunks);
		assert_non_null(
			strstr(error.lost.text, chunks == 1 ? "1 samples have a stack" : "3 samples have a stack"));
		assert_non_null(strstr(error.lost.text, chunks == 1 ? "1 events that are no" : "3 events that are no"));
	}
}

static void refuses(void **state)
{
	static const struct {
		const char *name;
		size_t at;
		uint8_t byte;
		int want;
		const char *reason;
	} cases[] = {
		{ "another magic", 0, 'X', -EBADMSG, "no chunk" },
		{ "version 1", 5, 1, -ENOTSUP, "version 1.1 is not read" },
		{ "version 2.2", 7, 2, -ENOTSUP, "version 2.2 is not read" },
		{ "larger than the file", 8, 1, -EBADMSG, "cut off" },
		{ "negative size", 8, 0x80, -EBADMSG, "cut off" },
		{ "being written", 64, 255, -EBADMSG, "still being written" },
		{ "metadata elsewhere", 30, 0, -EBADMSG, "" },
		{ "time that wraps", 32, 0x7f, -EBADMSG, "time is wrong" },
		{ "size of the first event", 68, 1, -EBADMSG, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
		struct window w = { .frequency_hz = 77 };
		struct codec_error error = { 0 };

		print_message("  %s\n", cases[i].name);
		make_all(&bytes, false, 1, 1);
		if (cases[i].at == 30)
			bytes.ptr[31] ^= 1;
		else
			bytes.ptr[cases[i].at] = (char)cases[i].byte;
		if (cases[i].at == 32)
			memset(bytes.ptr + 32, 0x7f, 16);
		assert_int_equal(decode(&bytes, &w, &error), cases[i].want);
		assert_non_null(strstr(error.reason, cases[i].reason));
		assert_int_equal(w.frequency_hz, 77);
		assert_null(w.model);
	}
}

static void survives_every_cut(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));

	(void)state;
	make_all(&bytes, false, 1, 1);
	for (size_t len = 0; len < bytes.len; len += len < 200 ? 1 : 37) {
		scoped(window_release) struct window w = { 0 };
		struct buf cut = { .ptr = bytes.ptr, .len = len };
		struct codec_error error = { 0 };
		int r;

		if (len > 16) { /* the header agrees */
			cut.ptr[14] = (char)(len >> 8);
			cut.ptr[15] = (char)len;
		}
		r = decode(&cut, &w, &error); /* the end of an event may be one of the recording */
		assert_true(r == 0 || (r == -EBADMSG && error.reason[0]));
	}
}

/* Another metadata of the chunk, which is the one that counts. */
static void begin_metadata(struct jfr_writer *w, const char *const *strings, int32_t count)
{
	w->metadata = w->out->len - w->chunk;
	jfr_begin_event(w, 0);
	for (uint64_t i = 0; i < 3; i++)
		jfr_put_long(w, i);
	jfr_put_int(w, count);
	for (int32_t i = 0; i < count; i++)
		jfr_put_text(w, strings[i]);
}

/* @numbers: strings, and counts of attributes and children */
static void put_tree(struct jfr_writer *w, const int32_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		jfr_put_int(w, numbers[i]);
}

#define TREE(w, ...) put_tree((w), (const int32_t[]){ __VA_ARGS__ }, ARRAY_SIZE(((const int32_t[]){ __VA_ARGS__ })))

/* Events of two bytes, each with many fields that take no bytes. */
static void fields_without_bytes_are_work(void **state)
{
	static const char *const strings[] = {
		"", "class", "name", "id", "field", "jdk.ExecutionSample", "7", "E", "8"
	};
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
	struct jfr_writer w = { .out = &bytes };
	struct codec_error error = { 0 };
	struct window none = { 0 };

	(void)state;
	jfr_begin_chunk(&w, START, NSEC_PER_SEC);
	begin_metadata(&w, strings, ARRAY_SIZE(strings));
	TREE(&w, 0, 0, 2, 1, 2, 2, 5, 3, 6, 20000);
	for (int i = 0; i < 20000; i++)
		TREE(&w, 4, 1, 1, 8, 0);
	TREE(&w, 1, 2, 2, 7, 3, 8, 0);
	jfr_end_event(&w);
	for (int i = 0; i < 5000; i++) {
		jfr_begin_event(&w, 7);
		jfr_end_event(&w);
	}
	jfr_end_chunk(&w);
	assert_int_equal(bytes.error, 0);
	assert_int_equal(decode(&bytes, &none, &error), -EBADMSG);
	assert_string_equal(error.reason, "malformed event");
	assert_null(none.model);
}

/* One text may be the value of many attributes: a number that is longer than any number is none. */
static void long_digits_are_no_number(void **state)
{
	static const char *const ids[] = { "0000000000000000007", "00000000000000000007" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		const char *const strings[] = { "", "class", "name", "id", "jdk.ExecutionSample", ids[i] };
		scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
		scoped(window_release) struct window w = { 0 };
		struct jfr_writer writer = { .out = &bytes };
		struct codec_error error = { 0 };

		jfr_begin_chunk(&writer, START, NSEC_PER_SEC);
		begin_metadata(&writer, strings, ARRAY_SIZE(strings));
		TREE(&writer, 0, 0, 1, 1, 2, 2, 4, 3, 5, 0);
		jfr_end_event(&writer);
		jfr_begin_event(&writer, 7);
		jfr_end_event(&writer);
		jfr_end_chunk(&writer);
		assert_int_equal(decode(&bytes, &w, &error), 0);
		assert_int_equal(w.model->samples_count, i == 0);
	}
}

/* A long symbol that is the class and the name of many methods is read for each of them. */
static void constants_read_again_are_work(void **state)
{
	enum { SIZE = 200000, METHODS = 2000 };
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1)), text = BUF_INIT(MIB(1));
	struct jfr_writer w = { .out = &bytes };
	static struct jfr_frame frames[METHODS];
	struct codec_error error = { 0 };
	struct window none = { 0 };

	(void)state;
	for (int i = 0; i < SIZE; i++)
		buf_addc(&text, 'x');
	jfr_begin_chunk(&w, START, NSEC_PER_SEC);
	jfr_begin_checkpoint(&w, 3);
	jfr_begin_pool(&w, JFR_ID_SYMBOL, 1);
	jfr_put_long(&w, 1);
	jfr_put_text(&w, buf_cstr(&text));
	jfr_begin_pool(&w, JFR_ID_CLASS, 1);
	jfr_put_long(&w, 1);
	jfr_put_int(&w, 0);
	jfr_put_long(&w, 1);
	jfr_begin_pool(&w, JFR_ID_METHOD, METHODS);
	for (uint64_t i = 1; i <= METHODS; i++) {
		frames[i - 1] = (struct jfr_frame){ i, 1, 1 };
		jfr_put_long(&w, i);
		for (int part = 0; part < 3; part++)
			jfr_put_long(&w, part < 2);
	}
	jfr_end_event(&w);
	jfr_put_stack(&w, 1, false, frames, METHODS);
	jfr_put_sample(&w, JFR_ID_EXECUTION, 1000, 0, 1, 0);
	jfr_end_chunk(&w);
	assert_int_equal(bytes.error, 0);
	assert_int_equal(decode(&bytes, &none, &error), -EBADMSG);
	assert_string_equal(error.reason, "malformed constant");
	assert_null(none.model);
}

/* Stacks whose lists of frames are passed over as three bytes, and read as long ones that go on to the chunk's end. */
static void frames_read_again_are_work(void **state)
{
	enum { STACKS = 20000, PADDING = 200000 };
	static const char *const strings[] = { "",
					       "class",
					       "name",
					       "id",
					       "field",
					       "dimension",
					       "1",
					       "jdk.types.StackTrace",
					       "7",
					       "frames",
					       "8",
					       "jdk.types.StackFrame",
					       "9",
					       "x",
					       "int",
					       "4",
					       "long",
					       "5",
					       "jdk.ExecutionSample",
					       "10",
					       "stackTrace",
					       "constantPool",
					       "true",
					       "N" };
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(2));
	struct jfr_writer w = { .out = &bytes };
	struct codec_error error = { 0 };
	struct window none = { 0 };

	(void)state;
	jfr_begin_chunk(&w, START, NSEC_PER_SEC);
	begin_metadata(&w, strings, ARRAY_SIZE(strings));
	TREE(&w, 0, 0, 6);
	TREE(&w, 1, 2, 2, 14, 3, 15, 0);                                                  /* int: 4 */
	TREE(&w, 1, 2, 2, 16, 3, 17, 0);                                                  /* long: 5 */
	TREE(&w, 1, 2, 2, 23, 3, 10, 0);                                                  /* N: 8, without fields */
	TREE(&w, 1, 2, 2, 11, 3, 12, 1, 4, 3, 2, 13, 1, 15, 5, 6, 0);                     /* StackFrame: 9, int[] x */
	TREE(&w, 1, 2, 2, 7, 3, 8, 2, 4, 3, 2, 9, 1, 10, 5, 6, 0, 4, 2, 2, 13, 1, 17, 0); /* StackTrace: 7 */
	TREE(&w, 1, 2, 2, 18, 3, 19, 1, 4, 3, 2, 20, 1, 8, 21, 22, 0);                    /* ExecutionSample: 10 */
	jfr_end_event(&w);
	jfr_begin_checkpoint(&w, 1);
	jfr_begin_pool(&w, 7, STACKS);
	for (uint64_t i = 1; i <= STACKS; i++) {
		jfr_put_long(&w, i);
		jfr_put_int(&w, 1);        /* one frame, of a type without fields; read: one frame */
		jfr_put_long(&w, PADDING); /* the second field; read: that many numbers in it */
	}
	jfr_end_event(&w);
	jfr_begin_event(&w, 99);
	for (int i = 0; i < PADDING; i++)
		jfr_put_byte(&w, 0);
	jfr_end_event(&w);
	for (uint64_t i = 1; i <= STACKS; i++) {
		jfr_begin_event(&w, 10);
		jfr_put_long(&w, i);
		jfr_end_event(&w);
	}
	jfr_end_chunk(&w);
	assert_int_equal(bytes.error, 0);
	assert_int_equal(decode(&bytes, &none, &error), -EBADMSG);
	assert_string_equal(error.reason, "malformed stack");
	assert_null(none.model);
}

static int decode_all(void *ctx)
{
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };
	const struct buf *bytes = ctx;

	return codec_jfr.decode(buf_str(bytes), &w, &error);
}

static void survives_failing_allocations(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));

	(void)state;
	make_all(&bytes, false, 1, 2);
	for_each_failing_allocation(decode_all, &bytes);
}

/* What a profile of a recording is in the fullest format comes back as it was. */
static void goes_through_otlp(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1)), otlp = BUF_INIT(MIB(1));
	scoped(window_release) struct window w = { 0 }, back = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	make_all(&bytes, false, 1, 1);
	assert_int_equal(decode(&bytes, &w, &error), 0);
	assert_int_equal(codec_find(STR("otlp"))->encode(&w, &otlp), 0);
	assert_int_equal(codec_find(STR("otlp"))->decode(buf_str(&otlp), &back, &error), 0);
	for (size_t i = 0; i < w.model->value_type_count; i++) {
		scoped(freep) char *type = str_dup(model_string(w.model, w.model->value_types[i].type));

		assert_non_null(type);
		assert_int_equal(total(back.model, type), total(w.model, type));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_kind_of_event),  cmocka_unit_test(refuses),
		cmocka_unit_test(survives_every_cut),         cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(goes_through_otlp),          cmocka_unit_test(fields_without_bytes_are_work),
		cmocka_unit_test(long_digits_are_no_number),  cmocka_unit_test(constants_read_again_are_work),
		cmocka_unit_test(frames_read_again_are_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
