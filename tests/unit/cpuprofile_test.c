/* SPDX-License-Identifier: Apache-2.0 */
/* .cpuprofile: stacks and their times are computed anew from the file, as its readers do, and compared with folded
 * stacks. */
#include "support.h"

#include <jansson.h>
#include <math.h>

#include "codec/cpuprofile.h"
#include "codec/folded.h"

static const char folded[] = "db;main;f 7\n"
			     "db;start;main;f 8\n"
			     "web;main 1\n"
			     "web;main;f 20\n"
			     "web;main;f;g 300\n"
			     "web;main;f;g;f 4000\n"
			     "web;main;read 50000\n";

static json_t *find(json_t *nodes, json_int_t id, json_t **parent)
{
	json_t *node, *found = NULL, *child;
	size_t i, k;

	*parent = NULL;
	json_array_foreach(nodes, i, node)
	{
		if (json_integer_value(json_object_get(node, "id")) == id)
			found = node;
		json_array_foreach(json_object_get(node, "children"), k,
				   child) if (json_integer_value(child) == id) *parent = node;
	}
	assert_non_null(found);
	return found;
}

static void add_stack(json_t *nodes, json_int_t id, struct buf *out)
{
	json_t *parent, *node = find(nodes, id, &parent);

	if (!parent) /* the root, which is no function */
		return;
	add_stack(nodes, json_integer_value(json_object_get(parent, "id")), out);
	if (json_integer_value(json_object_get(parent, "id")) != 1)
		buf_addc(out, ';');
	buf_adds(out, str_of(json_string_value(json_object_get(json_object_get(node, "callFrame"), "functionName"))));
}

/* The stacks with their microseconds times @scale; a sample runs until the next one. */
static void read_profile(struct str text, double scale, struct buf *out)
{
	json_error_t error;
	json_t *root = json_loadb(text.ptr, text.len, 0, &error), *nodes, *samples, *deltas;
	double now, sum = 0;

	assert_non_null(root);
	nodes = json_object_get(root, "nodes");
	samples = json_object_get(root, "samples");
	deltas = json_object_get(root, "timeDeltas");
	assert_int_equal(json_array_size(samples), json_array_size(deltas));
	now = json_number_value(json_array_get(deltas, 0));
	assert_true(now == 0);
	for (size_t i = 0; i + 1 < json_array_size(samples); i++) {
		double length = json_number_value(json_array_get(deltas, i + 1));

		add_stack(nodes, json_integer_value(json_array_get(samples, i)), out);
		buf_addf(out, " %lld\n", llround(length * scale));
		sum += length;
	}
	assert_true(fabs(json_number_value(json_object_get(root, "endTime")) - sum) < 1e-6);
	json_decref(root);
}

static void read_folded(struct window *out)
{
	struct codec_error error;

	assert_int_equal(codec_folded.decode(str_of(folded), out, &error), 0);
}

static void has_the_stacks_and_times(void **state)
{
	static const struct {
		const char *unit;
		double scale; /* microseconds to that unit */
	} cases[] = { { "nanoseconds", 1000 }, { "microseconds", 1 }, { "milliseconds", 1e-3 },
		      { "seconds", 1e-6 },     { "bytes", 1 },        { "count", 0.1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(window_release) struct window w = { 0 };
		scoped(buf_release) struct buf text = BUF_INIT(MIB(1)), got = BUF_INIT(MIB(1));

		print_message("  %s\n", cases[i].unit);
		read_folded(&w);
		w.frequency_hz = 100000; /* a sample is 10 us */
		assert_int_equal(model_add_string(w.model, str_of(cases[i].unit), &w.model->value_types[0].unit), 0);
		assert_int_equal(codec_cpuprofile.encode(&w, &text), 0);
		read_profile(buf_str(&text), cases[i].scale, &got);
		assert_string_equal(buf_cstr(&got), folded);
		assert_true((strstr(buf_cstr(&text), "\"hitCount\": 4000") != NULL) == !strcmp(cases[i].unit, "count"));
	}
}

static void says_what_is_left_out(void **state)
{
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
	struct codec_lost lost = { 0 };
	const struct codec_options options = { .lost = &lost };

	(void)state;
	read_folded(&w);
	assert_int_equal(codec_encode(&codec_cpuprofile, &w, &options, &text), 0);
	assert_string_equal(lost.text, "");
	w.model->values[0] = -5;
	assert_int_equal(codec_encode(&codec_cpuprofile, &w, &options, &text), 0);
	assert_non_null(strstr(lost.text, "1 sample"));
	lost = (struct codec_lost){ 0 };
	w.model->values[0] = 5;
	assert_int_equal(model_add_string(w.model, STR("bytes"), &w.model->value_types[0].unit), 0);
	assert_int_equal(codec_encode(&codec_cpuprofile, &w, &options, &text), 0);
	assert_non_null(strstr(lost.text, "microsecond"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_the_stacks_and_times),
		cmocka_unit_test(says_what_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
