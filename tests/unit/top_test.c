/* SPDX-License-Identifier: Apache-2.0 */
/* What hearth top counts and draws: shares of a sliding range, callers, an order, hostile names, any size. */
#include "support.h"

#include "base/clock.h"
#include "cli/top_table.h"
#include "render/terminal.h"

static uint32_t text_of(struct model *m, const char *text)
{
	uint32_t id;

	assert_int_equal(model_add_string(m, str_of(text), &id), 0);
	return id;
}

/* "root;frame;leaf", by process. */
static void add_stack(struct window *w, const char *comm, uint32_t pid, const char *stack, int64_t count)
{
	struct model *m = w->model;
	struct model_process p = { .pid = pid, .comm = text_of(m, comm) };
	struct model_sample s = { .time_offset_ns = MODEL_NO_TIME };
	struct str rest = str_of(stack), name;
	int64_t values[1] = { count };

	while (str_next(&rest, ';', &name)) {
		struct model_function f = { 0 };
		struct model_line line = { 0 };
		struct model_location l = { .line_count = 1 };
		uint32_t location;

		assert_int_equal(model_add_string(m, name, &f.name), 0);
		f.system_name = f.name;
		assert_int_equal(model_add_function(m, &f, &line.function), 0);
		assert_int_equal(model_add_location(m, &l, &line, &location), 0);
		assert_int_equal(model_add_stack(m, s.stack, location, &s.stack), 0);
	}
	assert_int_equal(model_add_process(m, &p, &s.process), 0);
	assert_int_equal(model_add_sample(m, &s, values), 0);
}

static void window_begin(struct window *w)
{
	assert_int_equal(window_init(w, MIB(16)), 0);
	w->start_ns = 1000 * NSEC_PER_SEC;
	w->end_ns = 1001 * NSEC_PER_SEC;
	w->cpu_count = 2;
	assert_int_equal(model_add_value_type(w->model, STR("samples"), STR("count")), 0);
}

static void add(struct top_counts *c, const char *comm, const char *stack, int64_t count)
{
	scoped(window_release) struct window w = { 0 };

	window_begin(&w);
	add_stack(&w, comm, 7, stack, count);
	top_counts_add(c, &w);
}

static const struct top_row *row_of(const struct top_counts *c, const char *name)
{
	for (size_t i = 0; i < c->row_count; i++)
		if (c->rows[i].total && str_eq(top_name(c, c->rows[i].name), str_of(name)))
			return &c->rows[i];
	return NULL;
}

static void a_window_leaves_the_range(void **state)
{
	struct top_counts c;

	(void)state;
	assert_int_equal(top_counts_init(&c, 2), 0);
	add(&c, "one", "main;f;g;f", 10); /* recursion counts once */
	assert_int_equal(row_of(&c, "f")->total, 10);
	assert_int_equal(row_of(&c, "f")->self, 10);
	assert_int_equal(row_of(&c, "main")->self, 0);
	add(&c, "one", "main;g", 5);
	assert_int_equal(row_of(&c, "g")->total, 15);
	assert_int_equal(row_of(&c, "g")->self, 5);
	assert_int_equal(c.total, 15);
	add(&c, "one", "main;h", 1);
	assert_null(row_of(&c, "f"));
	assert_int_equal(row_of(&c, "g")->total, 5);
	assert_int_equal(c.total, 6);
	top_counts_release(&c);
}

/* Names that come and go, as of short-lived programs with names of their own, do not stay. */
static void memory_does_not_grow(void **state)
{
	struct top_counts c;
	size_t most = 0;

	(void)state;
	assert_int_equal(top_counts_init(&c, 3), 0);
	for (int round = 0; round < 60; round++) {
		scoped(window_release) struct window w = { 0 };

		window_begin(&w);
		add_stack(&w, "stays", 1, "main;stays", 3);
		for (int i = 0; i < 4000; i++) {
			char comm[32], name[32];

			(void)snprintf(comm, sizeof(comm), "p%d", i + round * 4000);
			(void)snprintf(name, sizeof(name), "f%d", i + round * 4000);
			add_stack(&w, comm, (uint32_t)i + 2, name, 1);
		}
		top_counts_add(&c, &w);
		most = MAX(most, intern_count(&c.names));
		assert_int_equal(row_of(&c, "stays")->total, 3 * MIN(round + 1, 3));
		assert_int_equal(c.total, 4003 * MIN(round + 1, 3));
	}
	assert_true(c.tidied >= 2);
	assert_true(most < 120000);
	assert_true(c.row_count < 20000);
	assert_true(c.group_count < 60000);
	assert_false(c.is_short);
	top_counts_release(&c);
}

static void callers_are_a_tree(void **state)
{
	struct top_counts c;
	struct top_caller *list;
	size_t count;

	(void)state;
	assert_int_equal(top_counts_init(&c, 4), 0);
	add(&c, "one", "main;a;hot", 10);
	add(&c, "one", "main;b;hot", 30);
	add(&c, "one", "main;b;hot;leaf", 2);
	add(&c, "other", "main;c;hot", 50);
	assert_int_equal(top_counts_callers(&c, row_of(&c, "hot")->name, row_of(&c, "hot")->group, 100, &list, &count),
			 0);
	assert_int_equal(count, 5);
	assert_int_equal(list[0].value, 42);
	assert_true(str_eq(top_name(&c, list[1].name), STR("b")) && list[1].value == 32 && list[1].depth == 1);
	assert_true(str_eq(top_name(&c, list[2].name), STR("main")) && list[2].value == 32 && list[2].depth == 2);
	assert_true(str_eq(top_name(&c, list[3].name), STR("a")) && list[3].value == 10 && list[3].depth == 1);
	free(list);
	top_counts_release(&c);
}

static void press(struct top_table *t, const struct top_counts *c, const char *keys)
{
	struct str rest = str_of(keys);

	while (rest.len)
		assert_true(top_table_press(t, c, top_key_read(&rest)));
}

/* The first row below the titles. */
static bool first_has(struct top_table *t, struct top_counts *c, const char *what)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	struct str rest, line = { 0 };

	top_table_draw(t, c, 80, 24, 0, false, &text);
	rest = buf_str(&text);
	for (int i = 0; i < 4; i++)
		assert_true(str_next(&rest, '\n', &line));
	return str_search(line, str_of(what)) >= 0;
}

static void keys_sort_and_filter(void **state)
{
	struct top_counts c;
	struct top_table t = { 0 };

	(void)state;
	assert_int_equal(top_counts_init(&c, 4), 0);
	add(&c, "zebra", "alpha;hot", 30);
	add(&c, "ant", "alpha;warm", 20);
	assert_true(first_has(&t, &c, "hot"));
	press(&t, &c, "s");
	assert_false(first_has(&t, &c, "hot"));
	press(&t, &c, "t");
	assert_true(first_has(&t, &c, "60.00%"));
	press(&t, &c, "p");
	assert_true(first_has(&t, &c, "ant"));
	press(&t, &c, "f");
	assert_true(first_has(&t, &c, "alpha"));
	press(&t, &c, "/WAR\n");
	assert_true(first_has(&t, &c, "warm"));
	press(&t, &c, "\n");
	assert_true(t.shows_callers);
	press(&t, &c, "\033");
	assert_false(t.shows_callers);
	press(&t, &c, "\033");
	assert_int_equal(t.filter[0], 0);
	press(&t, &c, "\033[B\033[6~\033[99;99X");
	assert_false(top_table_press(&t, &c, 'q'));
	top_table_release(&t);
	top_counts_release(&c);
}

static void no_name_reaches_the_terminal_as_it_is(void **state)
{
	struct top_counts c;
	struct top_table t = { .refresh_ns = NSEC_PER_SEC };

	(void)state;
	assert_int_equal(top_counts_init(&c, 4), 0);
	for (int round = 0; round < 3; round++) {
		add(&c, "e\033[2Jvil\n", "root\r;\033]0;title\007;\xff\xfe;\xe2\x80\xae", 5);
		for (size_t width = 0; width < 120; width += 7)
			for (size_t height = 1; height < 40; height += 5) {
				scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
				struct str rest, line;
				size_t lines = 0;

				t.shows_callers = round == 2 && height > 10;
				t.name = c.rows[0].name;
				t.group = c.rows[0].group;
				top_table_draw(&t, &c, width, height, 0, false, &text);
				rest = buf_str(&text);
				while (rest.len && str_next(&rest, '\n', &line)) {
					lines++;
					assert_true(terminal_columns(line) <= MAX(width, (size_t)30));
					for (size_t i = 0; i < line.len; i++)
						assert_true((unsigned char)line.ptr[i] >= 0x20 && line.ptr[i] != 0x7f);
				}
				assert_true(lines <= MAX(height, (size_t)6));
			}
	}
	top_table_release(&t);
	top_counts_release(&c);
}

static int with_little_memory(void *ctx)
{
	struct top_counts c;
	struct top_table t = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	bool is_short;

	if (top_counts_init(&c, 2) < 0)
		return -ENOMEM;
	for (int i = 0; i < 3; i++)
		top_counts_add(&c, ctx);
	assert_true(c.is_short || c.total == 2 * 12);
	t.shows_callers = true;
	top_table_draw(&t, &c, 80, 24, 0, true, &text);
	is_short = c.is_short;
	top_table_release(&t);
	top_counts_release(&c);
	return is_short ? -ENOMEM : text.error;
}

static void memory_may_fail(void **state)
{
	scoped(window_release) struct window w = { 0 };

	(void)state;
	window_begin(&w);
	add_stack(&w, "one", 1, "main;f", 10);
	add_stack(&w, "two", 2, "main;g;h", 2);
	for_each_failing_allocation(with_little_memory, &w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_leaves_the_range),
		cmocka_unit_test(memory_does_not_grow),
		cmocka_unit_test(callers_are_a_tree),
		cmocka_unit_test(keys_sort_and_filter),
		cmocka_unit_test(no_name_reaches_the_terminal_as_it_is),
		cmocka_unit_test(memory_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
