/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "object/perfmap.h"

static void feed(struct perfmap *map, const char *text)
{
	struct cur in = guard_page(text, strlen(text));

	perfmap_feed(map, in.pos, cur_left(&in));
}

/* NULL: nothing there. */
static void expect(const struct perfmap *map, uint64_t address, const char *wanted)
{
	struct str name = STR("untouched");
	uint64_t start = 7;
	int r = perfmap_find(map, address, &name, &start);

	assert_int_equal(r, wanted ? 0 : -ENOENT);
	assert_true(str_eq(name, str_of(wanted ? wanted : "untouched")));
	if (wanted)
		assert_true(start <= address);
	else
		assert_int_equal(start, 7);
}

static void last_written_wins(void **state)
{
	scoped(perfmap_release) struct perfmap map;

	(void)state;
	perfmap_init(&map, MIB(1));
	feed(&map, "1000 100 whole\n0x1040 0x20 inside with blanks\n900 10 before\n10f0 20 over the end\r\n");
	expect(&map, 0x1000, "whole");
	expect(&map, 0x103f, "whole");
	expect(&map, 0x1040, "inside with blanks");
	expect(&map, 0x105f, "inside with blanks");
	expect(&map, 0x1060, "whole");
	expect(&map, 0x10f0, "over the end");
	expect(&map, 0x110f, "over the end");
	expect(&map, 0x1110, NULL);
	expect(&map, 0x90f, "before");
	expect(&map, 0x910, NULL);
	feed(&map, "1000 200 replaced\n");
	expect(&map, 0x1050, "replaced");
	expect(&map, 0x1100, "replaced");
}

static void refuses_bad_lines(void **state)
{
	static const char *const lines[] = {
		"",
		"1000",
		"1000 10",
		"1000 10 ",
		"x 10 name",
		"1000 x name",
		"1000 0 name",
		"-1 10 name",
		"ffffffffffffffff 2 name",
		"1000 100000000 name",
		"0x 10 name",
		"11112222333344445 1 name",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		scoped(perfmap_release) struct perfmap map;

		print_message("  \"%s\"\n", lines[i]);
		perfmap_init(&map, MIB(1));
		feed(&map, lines[i]);
		feed(&map, "\n1000 10 good\n");
		assert_int_equal(map.bad_lines, lines[i][0] ? 1 : 0);
		expect(&map, 0x1000, "good");
	}
}

static void waits_for_the_line_to_end(void **state)
{
	scoped(perfmap_release) struct perfmap map;

	(void)state;
	perfmap_init(&map, MIB(1));
	feed(&map, "1000 10 na");
	expect(&map, 0x1000, NULL);
	feed(&map, "me\n");
	expect(&map, 0x1000, "name");
}

static void holds_a_limit(void **state)
{
	scoped(perfmap_release) struct perfmap map;
	scoped(freep) char *piece = malloc(KIB(64) + 1);

	(void)state;
	assert_non_null(piece);
	memset(piece, 'x', KIB(64));
	perfmap_init(&map, KIB(64));
	perfmap_feed(&map, "1000 10 ", 8);
	for (int i = 0; i < 1000; i++)
		perfmap_feed(&map, piece, KIB(64)); /* a line of 64 MB */
	feed(&map, "\n");
	assert_int_equal(map.bad_lines, 1);
	assert_true(perfmap_size(&map) <= KIB(64));
	/* Code that is replaced all the time fits for ever: what is hidden goes. */
	for (int i = 0; i < 200000; i++) {
		char line[64];

		snprintf(line, sizeof(line), "%x 40 function number %d\n", 0x1000 + (i * 7919) % 200 * 0x40, i);
		perfmap_feed(&map, line, strlen(line));
	}
	assert_int_equal(map.dropped_lines, 0);
	assert_true(perfmap_size(&map) <= KIB(64));
	expect(&map, 0x1000 + (199999 * 7919) % 200 * 0x40, "function number 199999");
	/* Code that only grows is dropped at the limit, what was there stays. */
	for (int i = 0; i < 20000; i++) {
		char line[64];

		snprintf(line, sizeof(line), "%x 40 grown %d\n", 0x100000 + i * 0x40, i);
		perfmap_feed(&map, line, strlen(line));
	}
	assert_true(map.dropped_lines > 0);
	assert_true(perfmap_size(&map) <= KIB(64));
	expect(&map, 0x100000, "grown 0");
}

static int load(void *ctx)
{
	scoped(perfmap_release) struct perfmap map;

	(void)ctx;
	perfmap_init(&map, MIB(1));
	for (int i = 0; i < 300 && !map.error; i++) {
		char line[64];

		snprintf(line, sizeof(line), "%x 48 name %d\n", 0x1000 + (i * 37) % 100 * 0x40, i);
		perfmap_feed(&map, line, strlen(line) - (i % 3 ? 0 : 1));
		perfmap_feed(&map, "\n", i % 3 ? 0 : 1);
	}
	return map.error;
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(load, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_written_wins),
		cmocka_unit_test(refuses_bad_lines),
		cmocka_unit_test(waits_for_the_line_to_end),
		cmocka_unit_test(holds_a_limit),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
