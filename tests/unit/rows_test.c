/* SPDX-License-Identifier: Apache-2.0 */
/* Which tables are kept when: the budget, the order of eviction, what fails, numbers. */
#include "unwind_source.h"

#include "unwind/table_memory.h"

#define ELEMENT sizeof(union abi_element)

struct fixture {
	struct made_source made;
	struct made_clock time;
	struct table_memory *memory;
	struct table_sink sink;
	struct rows_source source;
	struct clock clock;
	struct rows *rows;
	int put_error, change_error; /* what the sink answers instead */
	uint64_t change_ns;          /* what a change of tables takes: a grace period */
};

static int failing_put(void *self, const union abi_element *elements, uint32_t count, struct table *out)
{
	struct fixture *f = self;
	struct table_sink real = table_memory_sink(f->memory);

	return f->put_error ? f->put_error : real.put(real.self, elements, count, out);
}

static int failing_change(void *self, const struct table_change *changes, size_t count)
{
	struct fixture *f = self;
	struct table_sink real = table_memory_sink(f->memory);

	f->time.now_ns += f->change_ns;
	return f->change_error ? f->change_error : real.change_tables(real.self, changes, count);
}

static size_t cost(void *self, uint32_t count)
{
	(void)self;
	return count * ELEMENT;
}

static void drop(void *self, struct table *table)
{
	struct fixture *f = self;
	struct table_sink real = table_memory_sink(f->memory);

	real.drop(real.self, table);
}

static int fixture_open(struct fixture *f, size_t budget)
{
	struct rows_config cfg = { .budget_bytes = budget, .sink = &f->sink, .source = &f->source, .clock = &f->clock };
	int r = table_memory_new(&f->memory);

	if (r < 0)
		return r;
	f->sink = (struct table_sink){
		.cost = cost, .put = failing_put, .drop = drop, .change_tables = failing_change, .self = f
	};
	f->source = made_source(&f->made);
	f->clock = made_clock(&f->time);
	f->time.now_ns = NSEC_PER_SEC;
	r = rows_open(&cfg, &f->rows);
	if (r < 0) {
		table_memory_free(f->memory);
		f->memory = NULL;
	}
	return r;
}

static void fixture_close(struct fixture *f)
{
	rows_close(f->rows);
	if (f->memory)
		assert_int_equal(table_memory_bytes(f->memory), 0);
	table_memory_free(f->memory);
}

/* A walk goes through the file. Return: its table number when the rows are there, else 0. */
static uint32_t walk(struct fixture *f, uint32_t file_id)
{
	struct abi_map map = { 0 };

	assert_int_equal(rows_describe(f->rows, file_id, true, &map), 0);
	assert_int_equal(map.file, file_id);
	return rows_table(f->rows, map.table) ? map.table : 0;
}

static uint8_t kind(struct fixture *f, uint32_t file_id)
{
	struct abi_map map = { 0 };

	assert_int_equal(rows_describe(f->rows, file_id, false, &map), 0);
	return (uint8_t)map.kind;
}

static void loads_when_walked(void **state)
{
	scoped(fixture_close) struct fixture f = { .made.elements = { [1] = 3, [2] = 5 } };
	struct abi_map map = { 0 };
	const void *table;
	uint32_t number;

	(void)state;
	assert_int_equal(fixture_open(&f, KIB(4)), 0);
	assert_int_equal(rows_describe(f.rows, 1, false, &map), 0);
	assert_int_equal(map.kind, ABI_MAP_FILE);
	assert_int_equal(map.first_page, 1);
	assert_int_equal(map.pages, 16);
	assert_int_equal(f.made.builds[1], 0); /* mapped only */
	number = walk(&f, 1);
	assert_int_equal(number, map.table);
	assert_int_equal(f.made.builds[1], 1);
	table = rows_table(f.rows, number);
	assert_int_equal(rows_element(table, 0)->head.row_count, 1);
	assert_non_null(rows_element(table, 2));
	assert_null(rows_element(table, 3));
	assert_null(table_memory_table(f.memory, number)); /* the kernel learns of it with the round */
	assert_int_not_equal(walk(&f, 2), number);
	rows_flush(f.rows);
	rows_flush(f.rows);
	assert_int_equal(table_memory_batches(f.memory), 1); /* both at once, and nothing twice */
	assert_int_equal(table_memory_table(f.memory, number)->count, 3);
	assert_int_equal(f.rows->stats.bytes, 8 * ELEMENT);
	assert_null(rows_table(f.rows, 0));
	assert_null(rows_table(f.rows, TABLES_MAX + 1));
}

static void evicts_the_oldest(void **state)
{
	scoped(fixture_close) struct fixture f = { .made.elements = { [1] = 10, [2] = 10, [3] = 10, [4] = 10 } };
	uint32_t numbers[5];

	(void)state;
	assert_int_equal(fixture_open(&f, 33 * ELEMENT), 0); /* three of them and what goes too when room is made */
	for (uint32_t i = 1; i <= 3; i++)
		numbers[i] = walk(&f, i);
	rows_flush(f.rows);
	rows_touch(f.rows, 1); /* a frame of the kernel's */
	numbers[4] = walk(&f, 4);
	assert_null(table_memory_table(f.memory, numbers[2]));
	assert_non_null(table_memory_table(f.memory, numbers[3]));
	assert_int_equal(walk(&f, 2), numbers[2]); /* the number stays */
	assert_null(table_memory_table(f.memory, numbers[3]));
	assert_int_equal(walk(&f, 1), numbers[1]);
	assert_int_equal(f.made.builds[1], 1);
	assert_int_equal(f.made.builds[2], 2);
	assert_int_equal(f.rows->stats.evicted, 2);
	assert_int_equal(f.rows->stats.bytes_peak, 30 * ELEMENT);
}

/* For any files in any order the sum never passes the budget, by the sink's own count. */
static void never_passes_the_budget(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	uint64_t seed = 20260804;
	size_t budget = 200 * ELEMENT;

	(void)state;
	print_message("  seed %llu\n", (unsigned long long)seed);
	for (uint32_t i = 1; i < SOURCE_FILES; i++)
		f.made.elements[i] = 1 + i * 7 % 60;
	f.made.elements[100] = 201; /* more than all */
	f.made.elements[101] = 0;
	assert_int_equal(fixture_open(&f, budget), 0);
	for (int i = 0; i < 20000; i++) {
		uint32_t file;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		file = 1 + (uint32_t)(seed >> 33) % (SOURCE_FILES - 1);
		f.put_error = (seed >> 20) % 16 ? 0 : -ENOMEM;
		f.change_error = (seed >> 24) % 16 ? 0 : -ENOMEM;
		walk(&f, file);
		assert_true(table_memory_bytes(f.memory) <= budget);
		assert_int_equal(table_memory_bytes(f.memory), f.rows->stats.bytes);
		if (!((seed >> 40) % 8))
			rows_flush(f.rows);
		if (!((seed >> 44) % 64))
			f.time.now_ns += NSEC_PER_SEC;
	}
	assert_true(f.rows->stats.evicted > 100);
	assert_true(f.rows->stats.bytes_peak > budget / 2);
	assert_int_equal(f.rows->stats.refused, 1);
	assert_int_equal(kind(&f, 100), ABI_MAP_BARE);
	assert_int_equal(kind(&f, 101), ABI_MAP_BARE);
}

static void says_why_not(void **state)
{
	static const struct {
		const char *name;
		int error;
		uint32_t elements;
		uint8_t kind;
		unsigned builds; /* of two walks a second and a half apart */
		uint64_t failed, refused;
	} cases[] = {
		{ "no rows", 0, 0, ABI_MAP_BARE, 0, 0, 0 },
		{ "malformed", -EBADMSG, 4, ABI_MAP_BARE, 1, 1, 0 },
		{ "gone", -ENOENT, 4, ABI_MAP_BARE, 1, 1, 0 },
		{ "written over", -ESTALE, 4, ABI_MAP_BARE, 1, 1, 0 },
		{ "over a limit", -E2BIG, 4, ABI_MAP_BARE, 1, 0, 1 },
		{ "larger than the budget", 0, 65, ABI_MAP_BARE, 1, 0, 1 },
		{ "no memory", -ENOMEM, 4, ABI_MAP_FILE, 2, 2, 0 },
		{ "no descriptor", -EMFILE, 4, ABI_MAP_FILE, 2, 2, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(fixture_close) struct fixture f = { .made.elements = { [1] = cases[i].elements },
							   .made.error = { [1] = cases[i].error } };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(fixture_open(&f, 64 * ELEMENT), 0);
		assert_int_equal(walk(&f, 1), 0);
		assert_int_equal(walk(&f, 1), 0); /* not tried again at once */
		f.time.now_ns += 3 * NSEC_PER_SEC / 2;
		assert_int_equal(walk(&f, 1), 0);
		assert_int_equal(kind(&f, 1), cases[i].kind);
		assert_int_equal(f.made.builds[1], cases[i].builds);
		assert_int_equal(f.rows->stats.failed, cases[i].failed);
		assert_int_equal(f.rows->stats.refused, cases[i].refused);
	}
}

/* What was published as a file with rows turns out to have none. */
static void tells_what_turned(void **state)
{
	scoped(fixture_close) struct fixture f = { .made.elements = { [1] = 4, [2] = 4 },
						   .made.error = { [1] = -EBADMSG } };
	struct abi_map map = { 0 };
	uint8_t to = 0;

	(void)state;
	assert_int_equal(fixture_open(&f, 64 * ELEMENT), 0);
	assert_int_equal(rows_describe(f.rows, 1, false, &map), 0);
	assert_int_equal(map.kind, ABI_MAP_FILE);
	assert_int_equal(rows_turned(f.rows, &to), 0);
	walk(&f, 1);
	walk(&f, 2);
	assert_int_equal(rows_turned(f.rows, &to), map.table);
	assert_int_equal(to, ABI_MAP_BARE);
	assert_int_equal(rows_turned(f.rows, &to), 0);
}

/* File 1 is mapped and cannot be opened: the kernel is told so. */
static void open_away(struct fixture *f, struct abi_map *map)
{
	uint8_t to = 0;

	assert_int_equal(fixture_open(f, 64 * ELEMENT), 0);
	assert_int_equal(rows_describe(f->rows, 1, false, map), 0);
	rows_hold(f->rows, map->table);
	assert_int_equal(walk(f, 1), 0);
	assert_int_equal(rows_turned(f->rows, &to), map->table);
	assert_int_equal(to, ABI_MAP_BARE);
}

/* Its descriptor was given up for another's, and its path leads nowhere: a process that maps it brings it back. */
static void what_is_away_is_tried_again(void **state)
{
	static const int errors[] = { -ENOENT, -ESTALE, -EACCES, -EIO };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		scoped(fixture_close) struct fixture f = { .made.elements = { [1] = 4 },
							   .made.error = { [1] = errors[i] } };
		struct abi_map map = { 0 };
		uint8_t to = 0;

		open_away(&f, &map);
		f.time.now_ns += 29 * NSEC_PER_SEC;
		rows_expire(f.rows);
		assert_int_equal(walk(&f, 1), 0);
		assert_int_equal(f.made.builds[1], 1);
		f.time.now_ns += 6 * NSEC_PER_SEC;
		assert_int_equal(walk(&f, 1), 0);
		assert_int_equal(f.made.builds[1], 2);
		f.time.now_ns += 35 * NSEC_PER_SEC; /* more rarely */
		assert_int_equal(walk(&f, 1), 0);
		assert_int_equal(f.made.builds[1], 2);
		while (rows_turned(f.rows, &to))
			assert_int_equal(to, ABI_MAP_BARE);
		f.made.error[1] = 0;
		f.time.now_ns += 30 * NSEC_PER_SEC;
		rows_expire(f.rows); /* no walk on the host asks for it */
		assert_int_equal(rows_turned(f.rows, &to), map.table);
		assert_int_equal(to, ABI_MAP_FILE);
		assert_int_equal(walk(&f, 1), map.table);
		rows_release(f.rows, map.table);
	}
}

/* To turn changes the maps of all processes that have it mapped. */
static void what_stays_away_does_not_turn(void **state)
{
	scoped(fixture_close) struct fixture f = { .made.elements = { [1] = 4 }, .made.error = { [1] = -ENOENT } };
	struct abi_map map = { 0 };
	uint8_t to = 0;

	(void)state;
	open_away(&f, &map);
	f.made.span_error[1] = -ENOENT;
	f.time.now_ns += 31 * NSEC_PER_SEC;
	rows_expire(f.rows);
	assert_int_equal(rows_turned(f.rows, &to), 0);
	assert_int_equal(f.made.builds[1], 1);
	f.made.error[1] = f.made.span_error[1] = 0;
	f.time.now_ns += 61 * NSEC_PER_SEC;
	rows_expire(f.rows);
	assert_int_equal(rows_turned(f.rows, &to), map.table);
	assert_int_equal(to, ABI_MAP_FILE);
	assert_int_equal(walk(&f, 1), map.table);
	rows_release(f.rows, map.table);
}

static void a_span_is_tried_again(void **state)
{
	scoped(fixture_close) struct fixture f = { .made.elements = { [1] = 4, [2] = 4 },
						   .made.span_error = { [1] = -ESTALE, [2] = -EBADMSG } };
	struct abi_map map = { 0 };
	uint8_t to = 0;

	(void)state;
	assert_int_equal(fixture_open(&f, 64 * ELEMENT), 0);
	for (uint32_t i = 1; i <= 2; i++) {
		assert_int_equal(rows_describe(f.rows, i, false, &map), 0);
		assert_int_equal(map.kind, ABI_MAP_BARE);
		rows_hold(f.rows, map.table);
	}
	while (rows_turned(f.rows, &to))
		;
	f.made.span_error[1] = f.made.span_error[2] = 0;
	f.time.now_ns += 31 * NSEC_PER_SEC;
	rows_expire(f.rows);
	assert_int_not_equal(rows_turned(f.rows, &to), 0);
	assert_int_equal(rows_turned(f.rows, &to), 0); /* what is malformed stays so */
	assert_int_equal(to, ABI_MAP_FILE);
	assert_int_equal(rows_describe(f.rows, 1, false, &map), 0);
	assert_int_equal(map.pages, 16);
	assert_int_not_equal(walk(&f, 1), 0);
	assert_int_equal(kind(&f, 2), ABI_MAP_BARE);
}

/* Files that failed together, as when the disk did, are not all opened at once. */
static void few_are_tried_again_at_once(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	struct abi_map map = { 0 };
	size_t turned[2] = { 0 };
	uint8_t to;

	(void)state;
	for (uint32_t i = 1; i <= 100; i++) {
		f.made.elements[i] = 4;
		f.made.span_error[i] = -EIO;
	}
	assert_int_equal(fixture_open(&f, 64 * ELEMENT), 0);
	for (uint32_t i = 1; i <= 100; i++)
		assert_int_equal(rows_describe(f.rows, i, false, &map), 0);
	while (rows_turned(f.rows, &to))
		;
	memset(f.made.span_error, 0, sizeof(f.made.span_error));
	f.made.span_error[1] = -EIO; /* counts, too */
	f.time.now_ns += 31 * NSEC_PER_SEC;
	for (size_t i = 0; i < 2; i++) {
		rows_expire(f.rows);
		while (rows_turned(f.rows, &to))
			turned[i]++;
		f.time.now_ns += 5 * NSEC_PER_SEC;
	}
	assert_int_equal(turned[0], 63);
	assert_int_equal(turned[1], 36);
}

/* A budget too small for what runs: rows come again, but not all the time. */
static void reloads_are_bounded(void **state)
{
	scoped(fixture_close) struct fixture f = { .made.elements = { [1] = 40, [2] = 40 } };
	unsigned before;

	(void)state;
	assert_int_equal(fixture_open(&f, 64 * ELEMENT), 0);
	for (int i = 0; i < 10; i++)
		assert_true(walk(&f, 1) && walk(&f, 2));
	assert_int_equal(f.made.builds[1], 10);
	f.rows->reloads.left_ns = 0; /* as after half a second of loading */
	before = f.made.builds[1] + f.made.builds[2];
	for (int i = 0; i < 10; i++) {
		walk(&f, 1);
		walk(&f, 2);
	}
	assert_int_equal(f.made.builds[1] + f.made.builds[2], before);
	f.time.now_ns += NSEC_PER_SEC; /* a second later the file is whole again */
	assert_int_not_equal(walk(&f, 1), 0);
}

/* However long one of them takes, by far more than the time that it was allowed. */
static void slow_reloads_are_bounded(void **state)
{
	scoped(fixture_close) struct fixture f = { .made.elements = { [1] = 40, [2] = 40 } };
	unsigned before, count;

	(void)state;
	assert_int_equal(fixture_open(&f, 64 * ELEMENT), 0);
	f.change_ns = 100 * NSEC_PER_MSEC;
	walk(&f, 1);
	rows_flush(f.rows);
	walk(&f, 2);
	rows_flush(f.rows);
	f.rows->reloads.left_ns = 0;
	before = f.made.builds[1] + f.made.builds[2];
	for (uint64_t end_ns = f.time.now_ns + 10 * NSEC_PER_SEC; f.time.now_ns < end_ns;
	     f.time.now_ns += NSEC_PER_MSEC) {
		walk(&f, 1);
		walk(&f, 2);
		rows_flush(f.rows);
	}
	count = f.made.builds[1] + f.made.builds[2] - before;
	assert_in_range(count, 10, 20); /* each owes half a second */
}

/* New files that take long to load do not take more CPU than the budget either. */
static void first_loads_are_bounded(void **state)
{
	scoped(fixture_close) struct fixture f = { .made = { .busy_ns = NSEC_PER_SEC / 2 } };
	unsigned builds = 0;

	(void)state;
	for (uint32_t id = 1; id <= 8; id++)
		f.made.elements[id] = 4;
	assert_int_equal(fixture_open(&f, 64 * ELEMENT), 0);
	for (int round = 0; round < 10; round++)
		for (uint32_t id = 1; id <= 8; id++)
			walk(&f, id);
	for (uint32_t id = 1; id <= 8; id++)
		builds += f.made.builds[id];
	assert_in_range(builds, 3, 5); /* two seconds of CPU time */
	assert_int_equal(walk(&f, 8), 0);
	f.time.now_ns += 12 * NSEC_PER_SEC; /* now there is time for the rest */
	for (uint32_t id = 1; id <= 8; id++)
		walk(&f, id);
	assert_int_not_equal(walk(&f, 8), 0);
}

static void unused_ones_expire(void **state)
{
	scoped(fixture_close) struct fixture f = { .made.elements = { [1] = 4, [2] = 4, [3] = 4 } };
	uint32_t held, unheld;

	(void)state;
	assert_int_equal(fixture_open(&f, 64 * ELEMENT), 0);
	held = walk(&f, 1);
	rows_hold(f.rows, held);
	unheld = walk(&f, 2);
	walk(&f, 3);
	rows_flush(f.rows);
	for (int i = 0; i < 16; i++) {
		f.time.now_ns += 5 * NSEC_PER_SEC;
		rows_touch(f.rows, 3);
		rows_expire(f.rows);
	}
	assert_non_null(table_memory_table(f.memory, held));
	assert_null(table_memory_table(f.memory, unheld));
	assert_int_equal(f.rows->stats.bytes, 8 * ELEMENT);
	assert_int_equal(walk(&f, 2), unheld); /* the free number is taken again */
	rows_release(f.rows, held);
}

/* One more file than there are numbers. */
static void numbers_run_out(void **state)
{
	scoped(fixture_close) struct fixture f = { .made.elements = { [0] = 1, [1] = 1 } };
	struct abi_map map = { 0 }, other = { .table = 77 };
	uint32_t first = 0;

	(void)state;
	assert_int_equal(fixture_open(&f, MIB(64)), 0);
	for (uint32_t file = 1; file < TABLES_MAX; file++) {
		assert_int_equal(rows_describe(f.rows, file, false, &map), 0);
		assert_true(map.table && map.table < TABLES_MAX);
		rows_hold(f.rows, map.table);
		first = file == 1 ? map.table : first;
	}
	assert_int_equal(rows_describe(f.rows, TABLES_MAX, false, &other), -ENOSPC);
	assert_int_equal(other.table, 77);
	assert_int_equal(walk(&f, 1), first);
	rows_release(f.rows, first);
	assert_int_equal(rows_describe(f.rows, TABLES_MAX, true, &other), 0); /* that of the file nothing maps */
	assert_int_equal(other.table, first);
	assert_int_equal(f.rows->stats.bytes, ELEMENT);
}

static int load_three(void *ctx)
{
	struct fixture f = { .made.elements = { [1] = 4, [2] = 4, [3] = 4 } };
	struct abi_map map = { 0 };
	int r = fixture_open(&f, 9 * ELEMENT);

	(void)ctx;
	for (uint32_t i = 1; r == 0 && i <= 3; i++)
		r = rows_describe(f.rows, i, true, &map);
	if (r == 0)
		rows_flush(f.rows);
	if (r == 0 && f.rows->stats.failed)
		r = -ENOMEM;
	if (r == 0)
		assert_true(f.rows->stats.bytes <= 9 * ELEMENT);
	fixture_close(&f);
	return r;
}

static void loads_the_most_wanted_first(void **state)
{
	scoped(fixture_close) struct fixture f = { .made.elements = {
							   [1] = 3, [2] = 3, [3] = 3, [4] = 3, [5] = 3, [6] = 0 } };
	uint32_t wanted[] = { 0, 0, 1, 1, 2, 2, 2, 2, 3, 4, 4, 4, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6 };
	size_t count = ARRAY_SIZE(wanted);

	(void)state;
	f.made.error[5] = -EMFILE; /* that passes, but not now */
	assert_int_equal(fixture_open(&f, KIB(4)), 0);
	assert_true(rows_load_wanted(f.rows, wanted, count)); /* without rows, as it turns out */
	assert_true(rows_load_wanted(f.rows, wanted, count));
	assert_int_equal(f.made.builds[5], 1);
	assert_int_equal(f.made.builds[2], 0);
	assert_true(rows_load_wanted(f.rows, wanted, count));
	assert_int_equal(f.made.builds[2], 1);
	assert_int_equal(f.made.builds[4], 0);
	assert_true(rows_load_wanted(f.rows, wanted, count));
	assert_int_equal(f.made.builds[4], 1);
	assert_int_equal(f.made.builds[1], 0);
	assert_true(rows_load_wanted(f.rows, wanted, count));
	assert_int_equal(f.made.builds[1], 1);
	assert_false(rows_load_wanted(f.rows, wanted, count));
	assert_int_equal(f.made.builds[3], 0);                              /* one sample: its walk loads it */
	assert_int_equal(f.made.builds[5], 1);                              /* not again and again */
	assert_false(rows_load_wanted(f.rows, (uint32_t[]){ 2, 2, 2 }, 3)); /* it is there */
	assert_false(rows_load_wanted(f.rows, wanted, 0));
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(load_three, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_when_walked),
		cmocka_unit_test(evicts_the_oldest),
		cmocka_unit_test(never_passes_the_budget),
		cmocka_unit_test(says_why_not),
		cmocka_unit_test(tells_what_turned),
		cmocka_unit_test(what_is_away_is_tried_again),
		cmocka_unit_test(what_stays_away_does_not_turn),
		cmocka_unit_test(a_span_is_tried_again),
		cmocka_unit_test(few_are_tried_again_at_once),
		cmocka_unit_test(reloads_are_bounded),
		cmocka_unit_test(slow_reloads_are_bounded),
		cmocka_unit_test(first_loads_are_bounded),
		cmocka_unit_test(unused_ones_expire),
		cmocka_unit_test(numbers_run_out),
		cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(loads_the_most_wanted_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
