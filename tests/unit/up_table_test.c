/* SPDX-License-Identifier: Apache-2.0 */
/* The table of hearth up: figures are those of the windows, whatever the terminal's size and the services' names. */
#include "support.h"

#include "base/clock.h"
#include "cli/up_table.h"
#include "render/terminal.h"

struct cost {
	const char *name, *kind;
	uint64_t ms;
};

static void window_of(struct window *w, const struct cost *costs, size_t count)
{
	assert_int_equal(window_init(w, MIB(16)), 0);
	w->start_ns = 1000 * NSEC_PER_SEC;
	w->end_ns = 1010 * NSEC_PER_SEC;
	w->cpu_count = 4;
	assert_int_equal(model_add_value_type(w->model, STR("samples"), STR("count")), 0);
	assert_int_equal(model_add_value_type(w->model, STR("cpu"), STR("nanoseconds")), 0);
	for (size_t i = 0; i < count; i++) {
		struct model_process p = { .pid = (uint32_t)i + 1 };
		struct model_sample s = { .time_offset_ns = MODEL_NO_TIME };
		int64_t values[2] = { 1, (int64_t)(costs[i].ms * NSEC_PER_MSEC) };

		assert_int_equal(model_add_string(w->model, str_of(costs[i].name), &p.workload), 0);
		assert_int_equal(model_add_string(w->model, str_of(costs[i].kind), &p.service_kind), 0);
		assert_int_equal(model_add_process(w->model, &p, &s.process), 0);
		assert_int_equal(model_add_sample(w->model, &s, values), 0);
		w->busy_ns += costs[i].ms * NSEC_PER_MSEC;
	}
}

static void add(struct up_table *t, const struct cost *costs, size_t count)
{
	scoped(window_release) struct window w = { 0 };

	window_of(&w, costs, count);
	up_table_add(t, &w);
}

/* Return: the first line that begins with @name; empty when there is none. */
static struct str line_of(const struct buf *text, const char *name)
{
	struct str rest = buf_str(text), line;

	while (str_next(&rest, '\n', &line))
		if (str_starts(line, str_of(name)))
			return line;
	return (struct str){ 0 };
}

static bool has(struct str line, const char *what)
{
	return str_search(line, str_of(what)) >= 0;
}

static void costs_are_of_the_last_window(void **state)
{
	const struct cost before[] = { { "api", "unit", 10000 }, { "db", "container", 1000 } };
	const struct cost now[] = { { "api", "unit", 1000 },
				    { "api", "unit", 500 },
				    { "db", "container", 8000 },
				    { "tiny", "executable", 20 },
				    { "small", "unit", 20 } };
	struct up_table *t = up_table_new(10 * NSEC_PER_SEC);
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));

	(void)state;
	assert_non_null(t);
	up_table_draw(t, 100, 30, true, &text);
	assert_true(has(buf_str(&text), "waiting for the first window (10 s)"));
	add(t, before, ARRAY_SIZE(before));
	add(t, now, ARRAY_SIZE(now));
	buf_clear(&text);
	up_table_draw(t, 100, 30, true, &text);
	print_message(STR_FMT, STR_ARG(buf_str(&text)));
	assert_true(has(buf_str(&text), "0.95 of 4 CPUs busy in the last 10 s; 4 services; 20 s so far"));
	assert_true(has(line_of(&text, "db"), "  0.80  83.9 %"));
	assert_true(has(line_of(&text, "db"), "\u2581\u2588")); /* an eighth of the highest, and the highest */
	assert_true(has(line_of(&text, "api"), "  0.15  15.7 %"));
	assert_true(has(line_of(&text, "small"), "  0.00   0.2 %")); /* a unit is never one of the others */
	assert_true(has(line_of(&text, "1 more"), "  0.00   0.2 %"));
	assert_int_equal(line_of(&text, "tiny").len, 0);
	assert_true(str_search(buf_str(&text), STR("db")) < str_search(buf_str(&text), STR("api")));
	up_table_free(t);
}

static void what_is_gone_is_forgotten(void **state)
{
	const struct cost once[] = { { "once", "unit", 1000 } }, other[] = { { "other", "unit", 1000 } };
	struct up_table *t = up_table_new(NSEC_PER_SEC);

	(void)state;
	assert_non_null(t);
	add(t, once, 1);
	for (size_t i = 1; i <= UP_TABLE_WINDOWS; i++) {
		scoped(buf_release) struct buf text = BUF_INIT(KIB(64));

		add(t, other, 1);
		up_table_draw(t, 80, 24, false, &text);
		assert_int_equal(line_of(&text, "once").len > 0, i < UP_TABLE_WINDOWS);
	}
	up_table_free(t);
}

static void no_line_is_wider_than_the_terminal(void **state)
{
	static char names[700][300];
	static struct cost costs[ARRAY_SIZE(names)];
	struct up_table *t = up_table_new(10 * NSEC_PER_SEC);

	(void)state;
	assert_non_null(t);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int n = snprintf(names[i], sizeof(names[i]), "%03zu\033[2J\xe2\x80\xae\xff\n\xe5\xb7\xa5", i);

		memset(names[i] + n, 'x', i % 200);
		costs[i] = (struct cost){ names[i], i % 2 ? "unit" : "executable\033c", 10 + i };
	}
	for (int i = 0; i < 3; i++)
		add(t, costs, ARRAY_SIZE(costs));
	for (size_t width = 1; width < 200; width++) {
		for (size_t height = 1; height < 40; height += 7) {
			scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
			struct str rest, line;
			size_t lines = 0;

			up_table_draw(t, width, height, true, &text);
			assert_int_equal(text.error, 0);
			rest = buf_str(&text);
			while (rest.len && str_next(&rest, '\n', &line)) {
				lines++;
				assert_true(terminal_columns(line) <= MAX(width, 20));
				for (size_t i = 0; i < line.len; i++)
					assert_true((unsigned char)line.ptr[i] >= 0x20 && line.ptr[i] != 0x7f);
			}
			assert_true(lines <= MAX(height, 6) - 1); /* the cursor's line stays */
			assert_true(width < 30 || has(buf_str(&text), " or more"));
		}
	}
	up_table_free(t);
}

static int with_little_memory(void *ctx)
{
	struct up_table *t = up_table_new(NSEC_PER_SEC);
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));

	if (!t)
		return -ENOMEM;
	up_table_add(t, ctx);
	up_table_draw(t, 80, 24, false, &text);
	up_table_free(t);
	return text.error;
}

static void memory_may_fail(void **state)
{
	const struct cost costs[] = { { "api", "unit", 1000 } };
	scoped(window_release) struct window w = { 0 };

	(void)state;
	window_of(&w, costs, 1);
	for_each_failing_allocation(with_little_memory, &w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_are_of_the_last_window),
		cmocka_unit_test(what_is_gone_is_forgotten),
		cmocka_unit_test(no_line_is_wider_than_the_terminal),
		cmocka_unit_test(memory_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
