/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks added alone and side by side, and their identity. */
#include "support.h"

#include "model_samples.h"

#define LOCATIONS 40

/* Columns by name, and by name and unit where several have the name. */
static void columns_are_found_by_name_and_unit(void **state)
{
	static const struct {
		const char *name;
		int want;
	} cases[] = { { "x", 0 },         { "x/count", 0 }, { "x/bytes", 1 },   { "a/b", 2 },
		      { "a/b/count", 2 }, { "a", 3 },       { "a/b/", -1 },     { "x/", -1 },
		      { "x/coun", -1 },   { "/count", -1 }, { "x/count/", -1 }, { "", -1 } };
	static const char *const types[][2] = {
		{ "x", "count" }, { "x", "bytes" }, { "a/b", "count" }, { "a", "b" }, { "x", "bytes" }
	};
	scoped(model_release) struct model m;

	(void)state;
	assert_int_equal(model_init(&m, MIB(1)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		assert_int_equal(model_add_value_type(&m, str_of(types[i][0]), str_of(types[i][1])), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		assert_int_equal(model_value_index(&m, str_of(cases[i].name)), cases[i].want);
	}
	assert_int_equal(model_column_like(&m, 4, &m), 1);
	assert_int_equal(model_default_value(&m), 1); /* the last one is there before */
}

static void make_model(struct model *m, uint64_t base, const char *last_name)
{
	struct model_mapping mapping = { .start = base, .limit = base + 0x9000 };
	struct model_function function = { 0 };
	uint32_t out;

	assert_int_equal(model_init(m, MIB(1)), 0);
	assert_int_equal(model_add_string(m, STR("/bin/x"), &mapping.filename), 0);
	assert_int_equal(model_add_mapping(m, &mapping, &out), 0);
	assert_int_equal(model_add_string(m, str_of(last_name), &function.name), 0);
	assert_int_equal(model_add_function(m, &function, &out), 0);
	for (uint64_t i = 1; i < LOCATIONS; i++) {
		struct model_location row = { .mapping = 1, .address = base + i, .line_count = i == LOCATIONS - 1 };

		assert_int_equal(model_add_location(m, &row, &(struct model_line){ .function = 1 }, &out), 0);
		assert_int_equal(out, i);
	}
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x >> 20;
}

#define PATHS 200
#define DEPTH 40

struct paths {
	uint32_t locations[PATHS][DEPTH], nodes[PATHS][DEPTH];
	struct model_path rows[PATHS];
};

/* Equal ones, prefixes, neighbours that share most, and empty ones. */
static void make_paths(struct paths *p, uint64_t seed)
{
	uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;

	for (size_t i = 0; i < PATHS; i++) {
		size_t depth = next_random(&x) % (DEPTH + 1), from = i ? next_random(&x) % i : 0,
		       keep = next_random(&x) % DEPTH;

		if (i && next_random(&x) % 3 == 0)
			from = i - 1;
		for (size_t at = 0; at < depth; at++) { /* root first; stored leaf first */
			bool old = i && at < keep && at < p->rows[from].count;

			p->locations[i][depth - 1 - at] = old ? p->locations[from][p->rows[from].count - 1 - at]
							      : 1 + (uint32_t)(next_random(&x) % 3);
		}
		p->rows[i] = (struct model_path){ p->locations[i], p->nodes[i], depth };
	}
}

static void paths_agree_with_single_stacks(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		scoped(model_release) struct model m = { 0 }, slow = { 0 };
		scoped(freep) struct paths *p = calloc(1, sizeof(*p));

		print_message("  seed %llu\n", (unsigned long long)seed);
		assert_non_null(p);
		make_model(&m, 0x1000, "f");
		make_model(&slow, 0x1000, "f");
		make_paths(p, seed);
		assert_int_equal(model_add_paths(&m, p->rows, PATHS / 2), 0);
		assert_int_equal(model_add_paths(&m, p->rows + PATHS / 2, PATHS - PATHS / 2), 0);
		for (size_t i = 0; i < PATHS; i++) {
			uint32_t node = 0, expected = 0, other;

			for (size_t at = 0; at < p->rows[i].count; at++) {
				uint32_t location = p->locations[i][p->rows[i].count - 1 - at];

				assert_int_equal(m.stacks[p->nodes[i][at]].parent, node);
				assert_int_equal(m.stacks[p->nodes[i][at]].location, location);
				node = p->nodes[i][at];
				assert_int_equal(model_add_stack(&m, m.stacks[node].parent, location, &other), 0);
				assert_int_equal(other, node); /* there is but one */
				assert_int_equal(model_add_stack(&slow, expected, location, &expected), 0);
			}
		}
		assert_int_equal(m.stacks_count, slow.stacks_count);
	}
}

static int add_paths_once(void *ctx)
{
	scoped(model_release) struct model m = { 0 };
	struct paths *p = ctx;
	uint32_t out;
	int r = model_init(&m, KIB(1));

	for (uint64_t i = 1; r == 0 && i < LOCATIONS; i++)
		r = model_add_location(&m, &(struct model_location){ .address = i }, NULL, &out);
	return r ? r : model_add_paths(&m, p->rows, PATHS);
}

static void survives_failing_allocations(void **state)
{
	scoped(freep) struct paths *p = calloc(1, sizeof(*p));

	(void)state;
	assert_non_null(p);
	make_paths(p, 7);
	for_each_failing_allocation(add_paths_once, p);
}

/* Chains 1, 2, ... @count from the root, in the order of @step. */
static uint32_t chain(struct model *m, uint32_t count, bool with_others)
{
	uint32_t node = 0, other;

	for (uint32_t i = 1; i <= count; i++) {
		if (with_others)
			assert_int_equal(model_add_stack(m, node, LOCATIONS - i, &other), 0);
		assert_int_equal(model_add_stack(m, node, i, &node), 0);
	}
	return node;
}

static struct model_hash hash_of(const struct model *m, uint32_t stack)
{
	scoped(freep) struct model_hash *hashes = calloc(m->stacks_count, sizeof(*hashes));

	assert_non_null(hashes);
	assert_int_equal(model_stack_hashes(m, hashes), 0);
	assert_true(!hashes[0].high && !hashes[0].low);
	return hashes[stack];
}

static bool same(struct model_hash a, struct model_hash b)
{
	return a.high == b.high && a.low == b.low;
}

/* Room changes nothing of what is kept, and what does not fit the model's bound grows as before. */
static void room_is_only_room(void **state)
{
	const struct model_room room = { 1000, 30000, 1000, 1000, 1000 };
	struct model reserved, bounded;
	size_t before;

	(void)state;
	assert_int_equal(model_init(&reserved, 30000), 0);
	model_reserve(&reserved, &room);
	before = model_memory(&reserved);
	for (uint32_t i = 0; i < 999; i++) {
		struct model_function function = { .start_line = i };
		struct model_line line = { .line = i };
		struct model_location location = { .address = i, .line_count = 1 };
		char name[16];
		uint32_t at;

		assert_int_equal(model_add_string(&reserved,
						  str_n(name, (size_t)snprintf(name, sizeof(name), "f%u", i)),
						  &function.name),
				 0);
		assert_int_equal(model_add_function(&reserved, &function, &line.function), 0);
		assert_int_equal(model_add_location(&reserved, &location, &line, &at), 0);
		assert_int_equal(at, i + 1);
		assert_true(str_eq(model_string(&reserved, reserved.functions[line.function].name), str_of(name)));
		assert_int_equal(model_add_location(&reserved, &location, &line, &at), 0);
		assert_int_equal(at, i + 1);
	}
	assert_int_equal(model_memory(&reserved), before);
	assert_int_equal(model_init(&bounded, 30000), 0);
	bounded.memory_max = 4096;
	model_reserve(&bounded, &room);
	assert_true(model_memory(&bounded) <= 4096);
	model_release(&reserved);
	model_release(&bounded);
}

static void hashes_know_frames_not_numbers(void **state)
{
	scoped(model_release) struct model a = { 0 }, moved = { 0 }, renamed = { 0 };
	struct model_hash first;

	(void)state;
	make_model(&a, 0x1000, "f");
	make_model(&moved, 0x7000000, "f");
	make_model(&renamed, 0x1000, "g");
	first = hash_of(&a, chain(&a, 5, false));
	assert_true(same(first, hash_of(&moved, chain(&moved, 5, true))));      /* other addresses, other numbers */
	assert_true(same(first, hash_of(&renamed, chain(&renamed, 5, false)))); /* what is renamed is not on it */
	assert_false(same(first, hash_of(&a, chain(&a, 4, false))));
	assert_false(same(first, hash_of(&a, chain(&a, 6, false))));
	assert_false(same(hash_of(&a, chain(&a, LOCATIONS - 1, false)),
			  hash_of(&renamed, chain(&renamed, LOCATIONS - 1, false))));
	assert_true(same(hash_of(&a, chain(&a, LOCATIONS - 1, false)),
			 hash_of(&moved, chain(&moved, LOCATIONS - 1, false))));
}

static void hashes_are_all_different(void **state)
{
	scoped(model_release) struct model m = { 0 };
	scoped(freep) struct model_hash *hashes = NULL;

	(void)state;
	assert_int_equal(random_model(11, &m), 0);
	hashes = calloc(m.stacks_count, sizeof(*hashes));
	assert_non_null(hashes);
	assert_int_equal(model_stack_hashes(&m, hashes), 0);
	for (size_t i = 0; i < m.stacks_count; i++)
		for (size_t j = 0; j < i; j++)
			assert_false(same(hashes[i], hashes[j]));
	fail_allocation(1);
	assert_int_equal(model_stack_hashes(&m, hashes), -ENOMEM);
}

/* A mapping that only stands for a kind is the same as none. */
static void hashes_ignore_stand_ins(void **state)
{
	struct model_hash hashes[2];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hashes); i++) {
		scoped(model_release) struct model m = { 0 };
		struct model_function function = { .kind = MODEL_KIND_PYTHON };
		struct model_location location = { .line_count = 1 };
		struct model_mapping mapping = { 0 };
		struct model_line line = { 0 };
		uint32_t stack;

		assert_int_equal(model_init(&m, KIB(1)), 0);
		assert_int_equal(model_add_string(&m, STR("f"), &function.name), 0);
		assert_int_equal(model_add_function(&m, &function, &line.function), 0);
		assert_int_equal(model_add_string(&m, model_kind_mapping(MODEL_KIND_PYTHON), &mapping.filename), 0);
		if (i)
			assert_int_equal(model_add_mapping(&m, &mapping, &location.mapping), 0);
		assert_int_equal(model_add_location(&m, &location, &line, &stack), 0);
		assert_int_equal(model_add_stack(&m, 0, stack, &stack), 0);
		hashes[i] = hash_of(&m, stack);
	}
	assert_true(same(hashes[0], hashes[1]));
}

/* Looking up many rows answers as adding each does; what is not there stays away. */
static void rows_are_found_together(void **state)
{
	scoped(model_release) struct model m = { 0 };
	struct model_location locations[MODEL_FIND_MAX];
	struct model_line lines[3 * MODEL_FIND_MAX];
	struct model_function functions[MODEL_FIND_MAX];
	uint32_t found[MODEL_FIND_MAX], row;

	(void)state;
	assert_int_equal(model_init(&m, KIB(1)), 0);
	memset(functions, 0, sizeof(functions));
	memset(locations, 0, sizeof(locations));
	model_find_functions(&m, functions, MODEL_FIND_MAX, found); /* of an empty model */
	assert_int_equal(found[0], 0);
	model_find_locations(&m, locations, lines, MODEL_FIND_MAX, found);
	assert_int_equal(found[0], 0);
	for (uint32_t i = 0; i < MODEL_FIND_MAX; i++) {
		functions[i] = (struct model_function){ .start_line = i };
		if (i % 3)
			assert_int_equal(model_add_function(&m, &functions[i], &row), 0);
	}
	model_find_functions(&m, functions, MODEL_FIND_MAX, found);
	for (uint32_t i = 0; i < MODEL_FIND_MAX; i++) {
		assert_int_equal(!!found[i], !!(i % 3));
		if (found[i])
			assert_int_equal(m.functions[found[i]].start_line, i);
	}
	row = 0;
	for (uint32_t i = 0; i < MODEL_FIND_MAX; i++) {
		uint32_t first = row, unused;

		locations[i] = (struct model_location){ .line_count = i % 4, .address = i / 8 };
		for (uint32_t line = 0; line < i % 4; line++)
			lines[row++] = (struct model_line){ .function = 1 + i % 5, .line = i };
		if (i % 3)
			assert_int_equal(model_add_location(&m, &locations[i], &lines[first], &unused), 0);
	}
	model_find_locations(&m, locations, lines, MODEL_FIND_MAX, found);
	for (uint32_t i = 0; i < MODEL_FIND_MAX; i++) {
		const struct model_location *location = &m.locations[found[i]];

		if (!(i % 3) && i % 4) /* one without lines may have a twin */
			assert_int_equal(found[i], 0);
		if (i % 3) {
			assert_int_not_equal(found[i], 0);
			assert_int_equal(location->line_count, i % 4);
			assert_int_equal(location->address, i / 8);
		}
		if (i % 3 && i % 4)
			assert_int_equal(m.lines[location->first_line].line, i);
	}
}

/* Stacks that are known to be new need no index until somebody looks for one. */
static void stacks_are_appended_and_found(void **state)
{
	scoped(model_release) struct model m = { 0 }, copy = { 0 };
	uint32_t parent = 0, got;

	(void)state;
	assert_int_equal(model_init(&m, 0), 0);
	assert_int_equal(model_init(&copy, 0), 0);
	copy.may_repeat = true;
	for (uint32_t i = 1; i <= 100; i++) {
		struct model_location row = { .address = i };

		assert_int_equal(model_add_location(&m, &row, NULL, &got), 0);
		assert_int_equal(model_add_location(&copy, &row, NULL, &got), 0);
	}
	for (uint32_t i = 1; i <= 100; i++) {
		assert_int_equal(model_append_stack(&m, parent, i, &got), 0);
		assert_int_equal(got, i);
		parent = i % 10 ? i : 0;
	}
	assert_int_equal(model_copy_stacks(&copy, &m), 0);
	for (uint32_t i = 100; i; i--) { /* the first one makes the index */
		assert_int_equal(model_add_stack(&m, m.stacks[i].parent, i, &got), 0);
		assert_int_equal(got, i);
	}
	assert_int_equal(m.stacks_count, 101);
	assert_int_equal(model_append_stack(&m, 0, 2, &got), 0);
	assert_int_equal(got, 101);
	assert_int_equal(model_append_stack(&m, 0, 2, &got), 0); /* looked up now */
	assert_int_equal(got, 101);
	assert_int_equal(model_distinct(&copy), 0);
	assert_int_equal(copy.stacks_count, 101);
	assert_memory_equal(copy.stacks, m.stacks, 101 * sizeof(*m.stacks));
	assert_int_equal(model_add_stack(&copy, copy.stacks[57].parent, 57, &got), 0);
	assert_int_equal(got, 57);
	assert_int_equal(model_index_stacks(&copy), 0);
}

static int distinct_once(void *ctx)
{
	struct model *want = ctx, m = { 0 };
	int r = repeated_model(true, 0, &m);

	r = r ? r : model_distinct(&m);
	if (r == 0) {
		assert_false(m.may_repeat);
		assert_int_equal(m.functions_count, want->functions_count);
		assert_int_equal(m.locations_count, want->locations_count);
		assert_int_equal(m.lines_count, want->lines_count);
		assert_int_equal(m.stacks_count, want->stacks_count);
		assert_memory_equal(m.functions, want->functions, m.functions_count * sizeof(*m.functions));
		assert_memory_equal(m.lines, want->lines, m.lines_count * sizeof(*m.lines));
		assert_memory_equal(m.stacks, want->stacks, m.stacks_count * sizeof(*m.stacks));
		for (size_t i = 0; i < m.samples_count; i++)
			assert_int_equal(m.samples[i].stack, want->samples[i].stack);
	}
	model_release(&m);
	return r;
}

static void rows_that_repeat_are_made_distinct(void **state)
{
	struct model want = { 0 };

	(void)state;
	assert_int_equal(repeated_model(false, 0, &want), 0);
	for_each_failing_allocation(distinct_once, &want);
	model_release(&want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_found_by_name_and_unit),
		cmocka_unit_test(paths_agree_with_single_stacks),
		cmocka_unit_test(stacks_are_appended_and_found),
		cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(room_is_only_room),
		cmocka_unit_test(hashes_know_frames_not_numbers),
		cmocka_unit_test(hashes_are_all_different),
		cmocka_unit_test(hashes_ignore_stand_ins),
		cmocka_unit_test(rows_are_found_together),
		cmocka_unit_test(rows_that_repeat_are_made_distinct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
