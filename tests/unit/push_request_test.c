/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of push.v1, and samples grouped by their labels. */
#include "support.h"

#include "model/split.h"
#include "query/push_request.h"
#include "query/sample_labels.h"

static struct str guarded(const char *text, size_t size)
{
	struct cur c = guard_page(text, size);

	return str_n((const char *)c.pos, size);
}

static void assert_one(struct push_request *p, const char *bytes)
{
	assert_int_equal(p->series_count, 1);
	assert_int_equal(p->series[0].label_count, 1);
	assert_true(str_eq(p->labels[0].key, STR("a")) && str_eq(p->labels[0].value, STR("b")));
	assert_int_equal(p->profiles_count, 1);
	assert_true(str_eq(p->profiles[0].bytes, str_of(bytes)) && str_eq(p->profiles[0].id, STR("7")));
	push_request_release(p);
}

static void reads_protobuf(void **state)
{
	static const struct {
		const char *name, *bytes;
		size_t size;
		int want;
	} cases[] = {
		{ "whole", "\x0a\x11\x0a\x06\x0a\x01\x61\x12\x01\x62\x12\x07\x0a\x02xy\x12\x01\x37", 19, 0 },
		{ "unknown fields",
		  "\x18\x05\x0a\x13\x0a\x06\x0a\x01\x61\x12\x01\x62\x12\x07\x0a\x02xy\x12\x01\x37\x1a\x00", 23, 0 },
		{ "cut", "\x0a\x11\x0a\x06\x0a\x01\x61\x12\x01\x62\x12\x07\x0a\x02xy\x12\x01", 18, -EBADMSG },
		{ "a number for a text", "\x0a\x02\x08\x01", 4, -EBADMSG },
		{ "a label that is too long", "\x0a\x04\x0a\x06\x0a\x01", 6, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct push_request p = { 0 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(push_request_proto(guarded(cases[i].bytes, cases[i].size), &p), cases[i].want);
		if (cases[i].want == 0)
			assert_one(&p, "xy");
		assert_null(p.series);
	}
}

static void reads_json(void **state)
{
	static const struct {
		const char *name, *text;
		int want;
	} cases[] = {
		{ "whole",
		  "{\"series\":[{\"labels\":[{\"name\":\"a\",\"value\":\"b\"}],"
		  "\"samples\":[{\"rawProfile\":\"eHk=\",\"ID\":\"7\"}]}]}",
		  0 },
		{ "other names, null, escapes",
		  " {\"x\":{}, \"series\":[{\"annotations\":null, \"labels\":[{\"value\":\"b\",\"name\":\"\\u0061\"}],"
		  "\"samples\":[{\"raw_profile\":\"eHk\",\"ID\":\"7\"}]}]} ",
		  0 },
		{ "more behind it", "{} {}", -EBADMSG },
		{ "an array", "[]", -EBADMSG },
		{ "a text for the series", "{\"series\":\"x\"}", -EBADMSG },
		{ "a number for a name", "{\"series\":[{\"labels\":[{\"name\":1}]}]}", -EBADMSG },
		{ "a number among the labels", "{\"series\":[{\"labels\":[1]}]}", -EBADMSG },
		{ "no base64", "{\"series\":[{\"samples\":[{\"rawProfile\":\"e\"}]}]}", -EBADMSG },
		{ "unfinished", "{\"series\":[", -EBADMSG },
	};
	struct push_request p = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		assert_int_equal(push_request_json(guarded(cases[i].text, strlen(cases[i].text)), KIB(1), &p),
				 cases[i].want);
		if (cases[i].want == 0)
			assert_one(&p, "xy");
		assert_null(p.series);
	}
	assert_int_equal(push_request_json(str_of(cases[0].text), 8, &p), -EFBIG);
}

static void bounds_requests(void **state)
{
	scoped(buf_release) struct buf body = BUF_INIT(MIB(1));
	struct push_request p = { 0 };

	(void)state;
	for (int i = 0; i < PUSH_PROFILES_MAX; i++)
		buf_add(&body, "\x0a\x02\x12\x00", 4);
	assert_int_equal(push_request_proto(buf_str(&body), &p), 0);
	assert_int_equal(p.profiles_count, PUSH_PROFILES_MAX);
	push_request_release(&p);
	buf_add(&body, "\x0a\x02\x12\x00", 4);
	assert_int_equal(push_request_proto(buf_str(&body), &p), -E2BIG);
}

/* Labels */

static uint32_t text_of(struct model *m, const char *text)
{
	uint32_t id = 0;

	assert_int_equal(model_add_string(m, str_of(text), &id), 0);
	return id;
}

static void add_sample(struct model *m, const char *key, const char *value, const char *thread)
{
	struct model_label label = { .key = text_of(m, key), .text = text_of(m, value) };
	struct model_sample row = { .time_offset_ns = MODEL_NO_TIME };
	int64_t one = 1;

	assert_int_equal(model_add_label_set(m, &label, *key ? 1 : 0, &row.label_set), 0);
	if (*thread)
		assert_int_equal(model_add_thread(m, &(struct model_thread){ .name = text_of(m, thread) }, &row.thread),
				 0);
	assert_int_equal(model_add_sample(m, &row, &one), 0);
}

static bool has(const struct query_labels *l, const char *key, const char *value)
{
	for (size_t i = 0; i < l->count; i++)
		if (str_eq(l->items[i].key, str_of(key)) && str_eq(l->items[i].value, str_of(value)))
			return true;
	return false;
}

struct seen {
	size_t parts, samples;
};

static int see(void *ctx, size_t group, struct window *part)
{
	struct seen *seen = ctx;

	assert_true(group < 4);
	assert_int_equal(part->model->duration_ns, 77);
	assert_int_equal(part->model->period, 5);
	assert_true(str_eq(model_string(part->model, part->model->drop_frames), STR("drop")));
	seen->parts++;
	seen->samples += part->model->samples_count;
	return 0;
}

static void groups_samples(void **state)
{
	static const struct store_label series[] = { { { "region", 6 }, { "eu", 2 } } };
	static const uint32_t want[] = { 0, 1, 1, 2, 0, 0, 3, 0 };
	scoped(label_groups_release) struct label_groups g = { 0 };
	struct window w = { 0 };
	struct seen seen = { 0 };
	struct model *m;

	(void)state;
	assert_int_equal(window_init(&w, MIB(1)), 0);
	m = w.model;
	assert_int_equal(model_add_value_type(m, STR("samples"), STR("count")), 0);
	m->duration_ns = 77;
	m->period = 5;
	m->drop_frames = text_of(m, "drop");
	add_sample(m, "", "", "");
	add_sample(m, "order.size", "large", "");
	add_sample(m, "order.size", "large", "");
	add_sample(m, "order.size", "large", "io");
	add_sample(m, "region", "us", "");   /* the series has it */
	add_sample(m, "span_id", "1f", "");  /* every sample has its own */
	add_sample(m, "order", "small", ""); /* the last group there is room for */
	add_sample(m, "order", "none", "");
	assert_int_equal(label_groups_make(m, series, 1, 4, &g), 0);
	assert_int_equal(g.count, 4);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_int_equal(g.group_of[i], want[i]);
	assert_int_equal(g.groups[0].count, 0);
	assert_true(g.groups[1].count == 1 && has(&g.groups[1], "order_size", "large"));
	assert_true(g.groups[2].count == 2 && has(&g.groups[2], "order_size", "large") &&
		    has(&g.groups[2], "thread", "io"));
	assert_int_equal(window_split_groups(&w, g.group_of, g.count, see, &seen), 0);
	assert_int_equal(seen.parts, 4);
	assert_int_equal(seen.samples, 7); /* two equal ones became one */
	window_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_protobuf),
		cmocka_unit_test(reads_json),
		cmocka_unit_test(bounds_requests),
		cmocka_unit_test(groups_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
