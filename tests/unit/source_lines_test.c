/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "render/source_lines.h"

struct place {
	const char *name, *file;
	int64_t line;
};

static void add_frame(struct model *m, const struct place *p, uint32_t *stack)
{
	struct model_function f = { .kind = MODEL_KIND_NATIVE };
	struct model_location location = { .line_count = 1 };
	struct model_line line = { .line = p->line };
	uint32_t id;

	assert_int_equal(model_add_string(m, str_of(p->name), &f.name), 0);
	assert_int_equal(model_add_string(m, str_of(p->file), &f.filename), 0);
	assert_int_equal(model_add_function(m, &f, &line.function), 0);
	assert_int_equal(model_add_location(m, &location, &line, &id), 0);
	assert_int_equal(model_add_stack(m, *stack, id, stack), 0);
}

/* Root first, ended by a NULL name. */
static void add_stack(struct model *m, const struct place *places, int64_t value)
{
	struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };

	for (; places->name; places++)
		add_frame(m, places, &sample.stack);
	assert_int_equal(model_add_sample(m, &sample, &value), 0);
}

static const struct place main_frame = { "main", "m.c", 1 }, work_12 = { "work", "w.c", 12 },
			  work_14 = { "work", "w.c", 14 }, other = { "other", "o.c", 3 }, odd = { "w\xff", "", 0 };

static void fill(struct model *m)
{
	assert_int_equal(model_init(m, MIB(1)), 0);
	assert_int_equal(model_add_value_type(m, STR("cpu"), STR("count")), 0);
	add_stack(m, (struct place[]){ main_frame, work_12, { 0 } }, 5);
	add_stack(m, (struct place[]){ main_frame, work_12, other, { 0 } }, 2);
	add_stack(m, (struct place[]){ main_frame, work_12, work_14, work_12, { 0 } }, 10);
	add_stack(m, (struct place[]){ main_frame, work_14, { 0 } }, 3);
	add_stack(m, (struct place[]){ main_frame, odd, { 0 } }, 7);
	add_stack(m, (struct place[]){ work_14, { 0 } }, -4);
}

static int find_work(void *ctx)
{
	scoped(source_lines_release) struct source_lines lines = { 0 };
	int r = source_lines_find(ctx, 0, &(struct tree_step){ STR("work"), STR("native"), STR("") }, &lines);

	if (r < 0)
		return r;
	assert_int_equal(lines.count, 2);
	assert_int_equal(lines.self, 18);
	assert_int_equal(lines.total, 20);
	assert_int_equal(lines.items[0].line, 12);
	assert_int_equal(lines.items[0].self, 15);
	assert_int_equal(lines.items[0].total, 17); /* the recursion counts once */
	assert_int_equal(lines.items[1].line, 14);
	assert_int_equal(lines.items[1].self, 3);
	assert_int_equal(lines.items[1].total, 13);
	return 0;
}

static void finds_lines(void **state)
{
	struct model m;

	(void)state;
	fill(&m);
	assert_int_equal(find_work(&m), 0);
	for_each_failing_allocation(find_work, &m);
	model_release(&m);
}

static void tells_functions_apart(void **state)
{
	static const struct tree_step none[] = { { STR("work"), STR("kernel"), STR("") },
						 { STR("work"), STR("native"), STR("libwork.so") },
						 { STR("wor"), STR("native"), STR("") } };
	scoped(source_lines_release) struct source_lines lines = { 0 };
	struct model m;

	(void)state;
	fill(&m);
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_int_equal(source_lines_find(&m, 0, &none[i], &lines), -ENOENT);
	/* A name that is no UTF-8 is found by what JSON made of it. */
	assert_int_equal(
		source_lines_find(&m, 0, &(struct tree_step){ STR("w\xef\xbf\xbd"), STR("native"), STR("") }, &lines),
		0);
	assert_int_equal(lines.count, 1);
	assert_int_equal(lines.items[0].file, 0);
	assert_int_equal(lines.total, 7);
	model_release(&m);
}

static void saturates(void **state)
{
	scoped(source_lines_release) struct source_lines lines = { 0 };
	struct model m;

	(void)state;
	fill(&m);
	add_stack(&m, (struct place[]){ work_12, { 0 } }, INT64_MAX);
	add_stack(&m, (struct place[]){ work_14, work_12, { 0 } }, INT64_MAX);
	assert_int_equal(source_lines_find(&m, 0, &(struct tree_step){ STR("work"), STR("native"), STR("") }, &lines),
			 0);
	assert_true(lines.self == INT64_MAX && lines.total == INT64_MAX);
	assert_true(lines.items[0].self == INT64_MAX && lines.items[0].total == INT64_MAX);
	model_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(finds_lines), cmocka_unit_test(tells_functions_apart),
					    cmocka_unit_test(saturates) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
