/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel is told of processes and their mappings: when, what changes, what is shared, what goes. */
#include "unwind_source.h"

#include "unwind/spaces.h"
#include "unwind/table_memory.h"

struct fixture {
	struct made_source made;
	struct made_clock time;
	struct table_memory *memory;
	struct table_sink sink;
	struct rows_source source;
	struct clock clock;
	struct rows *rows;
	struct spaces *spaces;
	int map_error;
	size_t changes; /* single mappings told of */
};

static int change_maps(void *self, const struct map_change *changes, size_t count)
{
	struct fixture *f = self;
	struct table_sink real = table_memory_sink(f->memory);

	f->changes += count;
	return f->map_error ? f->map_error : real.change_maps(real.self, changes, count);
}

static int set_space(void *self, uint32_t pid, const struct abi_space *space)
{
	struct fixture *f = self;
	struct table_sink real = table_memory_sink(f->memory);

	return real.set_space(real.self, pid, space);
}

static int fixture_open(struct fixture *f)
{
	struct rows_config cfg = { .budget_bytes = MIB(1), .sink = &f->sink, .source = &f->source, .clock = &f->clock };
	int r = table_memory_new(&f->memory);

	if (r < 0)
		return r;
	f->sink = (struct table_sink){ .change_maps = change_maps, .set_space = set_space, .self = f };
	f->source = made_source(&f->made);
	f->clock = made_clock(&f->time);
	f->time.now_ns = NSEC_PER_SEC;
	for (size_t i = 0; i < SOURCE_FILES; i++)
		f->made.elements[i] = 1;
	r = rows_open(&cfg, &f->rows);
	return r < 0 ? r : spaces_open(f->rows, &f->sink, &f->clock, &f->spaces);
}

static void fixture_close(struct fixture *f)
{
	spaces_close(f->spaces);
	rows_close(f->rows);
	table_memory_free(f->memory);
}

static struct program process(uint32_t pid)
{
	return (struct program){ .pid = pid, .exec_id = 1, .start_ns = pid * UINT64_C(1000) };
}

struct made_maps {
	struct mapping items[8];
	size_t count;
};

static struct mapping file_map(uint64_t start, uint64_t end, uint64_t offset, uint32_t file_id)
{
	return (struct mapping){
		.start = start, .end = end, .offset = offset, .file_id = file_id, .kind = PROC_PLACE_FILE
	};
}

static struct maps_ref *ref_of(const struct mapping *items, size_t count)
{
	struct mappings maps = { .items = (struct mapping *)items, .count = count };
	struct maps_ref *m = maps_ref_new(&maps);

	assert_non_null(m);
	return m;
}

static void putp(struct maps_ref **m)
{
	maps_ref_put(*m);
}

static uint32_t space_of(const struct fixture *f, uint32_t pid)
{
	struct abi_space space = { 0 };

	return table_memory_space(f->memory, pid, &space) == 0 ? space.space : 0;
}

static const struct mapping two[] = {
	{ .start = 0x1000, .end = 0x3000, .offset = 0x1000, .file_id = 1, .kind = PROC_PLACE_FILE },
	{ .start = 0x8000, .end = 0x9000, .kind = PROC_PLACE_ANONYMOUS }
};

static void tells_at_the_second_sample(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(putp) struct maps_ref *maps = ref_of(two, 2);
	struct program p = process(10), old = process(11);
	const struct abi_map *map;
	struct abi_space space;

	(void)state;
	assert_int_equal(fixture_open(&f), 0);
	spaces_raw(f.spaces, &p, maps, (struct spaces_raw){ .is_unknown = true });
	spaces_flush(f.spaces);
	assert_int_equal(f.changes, 0);
	assert_int_equal(space_of(&f, 10), 0);
	spaces_raw(f.spaces, &p, maps, (struct spaces_raw){ .is_unknown = true });
	spaces_flush(f.spaces);
	assert_int_equal(table_memory_space(f.memory, 10, &space), 0);
	assert_int_equal(space.start_ns, p.start_ns);
	assert_int_equal(space.exec_id, 1);
	map = table_memory_find(f.memory, space.space, 0x2fff);
	assert_non_null(map);
	assert_int_equal(map->kind, ABI_MAP_FILE);
	assert_int_equal(map->file, 1);
	assert_int_equal(map->file_base, 0);
	assert_int_equal(map->first_page, 1);
	assert_int_equal(table_memory_find(f.memory, space.space, 0x8000)->kind, ABI_MAP_JIT);
	assert_null(table_memory_find(f.memory, space.space, 0x7000));
	spaces_raw(f.spaces, &old, maps,
		   (struct spaces_raw){ .is_old = true, .is_unknown = true }); /* no longer young: at its first */
	spaces_flush(f.spaces);
	assert_int_not_equal(space_of(&f, 11), 0);
	assert_int_not_equal(space_of(&f, 11), space.space);
}

/* A stack that was longer than its copy: the next one would be cut as well. */
static void tells_deep_programs_at_once(void **state)
{
	const struct mapping others[] = { file_map(0x1000, 0x2000, 0, 7), file_map(0x4000, 0x5000, 0, 2) };
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(putp) struct maps_ref *maps = ref_of(two, 2), *again = ref_of(two, 2), *other = ref_of(others, 2);
	scoped(putp) struct maps_ref *none = ref_of(two, 0);
	struct program p = process(10), next = process(11), stranger = process(12), unmapped = process(13);

	(void)state;
	assert_int_equal(fixture_open(&f), 0);
	spaces_raw(f.spaces, &p, maps, (struct spaces_raw){ .is_unknown = true, .is_cut = true });
	spaces_raw(f.spaces, &next, again, (struct spaces_raw){ .is_unknown = true });
	spaces_raw(f.spaces, &stranger, other, (struct spaces_raw){ .is_unknown = true });
	spaces_raw(f.spaces, &unmapped, none, (struct spaces_raw){ .is_unknown = true });
	spaces_flush(f.spaces);
	assert_int_not_equal(space_of(&f, 10), 0);
	assert_int_not_equal(space_of(&f, 11), 0); /* the same program */
	assert_int_equal(space_of(&f, 12), 0);
	assert_int_equal(space_of(&f, 13), 0);
}

/* Before its walk, which may wait for rows. */
static void tells_what_waits(void **state)
{
	const struct mapping others[] = { file_map(0x1000, 0x2000, 0, 7) };
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(putp) struct maps_ref *maps = ref_of(two, 2), *other = ref_of(others, 1);
	struct program deep = process(10), next = process(11), full = process(12), shallow = process(13);

	(void)state;
	assert_int_equal(fixture_open(&f), 0);
	spaces_raw(f.spaces, &deep, maps, (struct spaces_raw){ .is_unknown = true, .is_cut = true });
	spaces_expect(f.spaces, &next, maps, false); /* the same program */
	spaces_expect(f.spaces, &full, other, true);
	spaces_expect(f.spaces, &shallow, other, false);
	spaces_flush(f.spaces);
	assert_int_not_equal(space_of(&f, 11), 0);
	assert_int_not_equal(space_of(&f, 12), 0);
	assert_int_equal(space_of(&f, 13), 0);
	spaces_raw(f.spaces, &shallow, other, (struct spaces_raw){ .is_full = true });
	spaces_flush(f.spaces);
	assert_int_not_equal(space_of(&f, 13), 0);
}

static void changes_only_what_changed(void **state)
{
	const struct mapping before[] = { file_map(0x1000, 0x2000, 0, 1), file_map(0x4000, 0x5000, 0, 2),
					  file_map(0x7000, 0x8000, 0, 3) };
	const struct mapping after[] = { file_map(0x1000, 0x2000, 0, 1), file_map(0x4000, 0x6000, 0, 4),
					 file_map(0x7000, 0x8000, 0, 3), file_map(0x9000, 0xa000, 0, 5) };
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(putp) struct maps_ref *first = ref_of(before, 3), *second = ref_of(after, 4), *same = ref_of(after, 4);
	struct program p = process(10);
	uint32_t space;

	(void)state;
	assert_int_equal(fixture_open(&f), 0);
	spaces_set(f.spaces, &p, first);
	spaces_flush(f.spaces);
	space = space_of(&f, 10);
	assert_int_equal(f.changes, 3);
	spaces_set(f.spaces, &p, first);
	spaces_flush(f.spaces);
	assert_int_equal(f.changes, 3);
	spaces_set(f.spaces, &p, second);
	spaces_flush(f.spaces);
	assert_int_equal(f.changes, 6); /* one goes, two come */
	assert_int_equal(space_of(&f, 10), space);
	assert_int_equal(table_memory_find(f.memory, space, 0x5000)->file, 4);
	assert_int_equal(table_memory_maps(f.memory), 4);
	assert_int_equal(spaces_maps(f.spaces), 4);
	spaces_set(f.spaces, &p, same);
	spaces_flush(f.spaces);
	assert_int_equal(f.changes, 6);
}

static void merges_neighbours(void **state)
{
	const struct mapping parts[] = { file_map(0x1000, 0x2000, 0x5000, 1),
					 file_map(0x2000, 0x3000, 0x6000, 1),
					 file_map(0x3000, 0x4000, 0x9000, 1),
					 file_map(0x5000, 0x6000, 0xb000, 1),
					 { .start = 0x6000, .end = 0x7000, .kind = PROC_PLACE_VSYSCALL },
					 { .start = 0x8000, .end = 0x9000, .kind = PROC_PLACE_ANONYMOUS },
					 { .start = 0x9000, .end = 0xa000, .kind = PROC_PLACE_ANONYMOUS } };
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(putp) struct maps_ref *maps = ref_of(parts, ARRAY_SIZE(parts));
	struct program p = process(10);
	const struct abi_map *map;

	(void)state;
	assert_int_equal(fixture_open(&f), 0);
	spaces_set(f.spaces, &p, maps);
	spaces_flush(f.spaces);
	assert_int_equal(f.changes, 4);
	map = table_memory_find(f.memory, space_of(&f, 10), 0x2800);
	assert_int_equal(map->start, 0x1000);
	assert_int_equal(map->end, 0x3000);
	assert_int_equal(0x2800 - map->file_base, 0x6800);
	assert_int_equal(table_memory_find(f.memory, space_of(&f, 10), 0x9800)->start, 0x8000);
}

static void children_share(void **state)
{
	const struct mapping more[] = { file_map(0x1000, 0x3000, 0x1000, 1), file_map(0x4000, 0x5000, 0, 2) };
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(putp) struct maps_ref *maps = ref_of(two, 2), *same = ref_of(two, 2), *changed = ref_of(more, 2);
	struct program parent = process(10), child = process(20), unknown = process(30);
	uint32_t space;

	(void)state;
	assert_int_equal(fixture_open(&f), 0);
	spaces_set(f.spaces, &parent, maps);
	spaces_flush(f.spaces);
	space = space_of(&f, 10);
	spaces_share(f.spaces, &child, &parent);
	spaces_share(f.spaces, &unknown, &unknown);
	spaces_raw(f.spaces, &child, same,
		   (struct spaces_raw){ .is_old = true }); /* the same mappings, read anew: still shared */
	spaces_flush(f.spaces);
	assert_int_equal(spaces_count(f.spaces), 1);
	spaces_forget(f.spaces, &parent);
	assert_int_equal(space_of(&f, 10), 0);
	assert_int_equal(table_memory_maps(f.memory), 2); /* the child's kernel entry names them */
	spaces_set(f.spaces, &child, changed);
	spaces_flush(f.spaces);
	/* Alone with it: in place. The kernel side wrote the child's entry, so the sink has none. */
	assert_non_null(table_memory_find(f.memory, space, 0x4000));
	spaces_forget(f.spaces, &child);
	assert_int_equal(table_memory_maps(f.memory), 0);
	assert_int_equal(spaces_count(f.spaces), 0);

	spaces_set(f.spaces, &parent, maps);
	spaces_flush(f.spaces);
	space = space_of(&f, 10);
	spaces_share(f.spaces, &child, &parent);
	spaces_set(f.spaces, &parent, changed); /* shared: the one that changes gets its own */
	spaces_flush(f.spaces);
	assert_int_not_equal(space_of(&f, 10), space);
	assert_null(table_memory_find(f.memory, space, 0x4000));
	assert_non_null(table_memory_find(f.memory, space, 0x8000));
	assert_int_equal(spaces_count(f.spaces), 2);
}

/* An exec: the pid has another program before the old one is forgotten. */
static void programs_follow_each_other(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(putp) struct maps_ref *maps = ref_of(two, 2);
	struct program first = process(10), second = first;

	(void)state;
	second.exec_id = 2;
	assert_int_equal(fixture_open(&f), 0);
	spaces_set(f.spaces, &first, maps);
	spaces_flush(f.spaces);
	spaces_set(f.spaces, &second, maps);
	spaces_flush(f.spaces);
	spaces_forget(f.spaces, &first);
	spaces_flush(f.spaces);
	assert_int_equal(spaces_count(f.spaces), 1);
	assert_int_equal(space_of(&f, 10), 2);
	spaces_forget(f.spaces, &second);
	assert_int_equal(space_of(&f, 10), 0);
	assert_int_equal(table_memory_spaces(f.memory), 0);
}

/* What is left of a program when its pid has the next one. */
static void late_samples_change_nothing(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(putp) struct maps_ref *maps = ref_of(two, 2);
	struct program first = process(10), second = first;
	uint32_t space;

	(void)state;
	second.exec_id = 2;
	assert_int_equal(fixture_open(&f), 0);
	spaces_set(f.spaces, &second, maps);
	spaces_flush(f.spaces);
	space = space_of(&f, 10);
	assert_int_not_equal(space, 0);
	spaces_raw(f.spaces, &first, maps, (struct spaces_raw){ .is_old = true, .is_unknown = true });
	spaces_flush(f.spaces);
	assert_int_equal(space_of(&f, 10), space);
	spaces_forget(f.spaces, &first);
	assert_int_equal(space_of(&f, 10), space);
}

/* The kernel's side forgot a pid behind our back. */
static void lost_entries_come_back(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(putp) struct maps_ref *maps = ref_of(two, 2);
	struct program p = process(10);
	uint32_t space;

	(void)state;
	assert_int_equal(fixture_open(&f), 0);
	spaces_set(f.spaces, &p, maps);
	spaces_flush(f.spaces);
	space = space_of(&f, 10);
	assert_int_equal(set_space(&f, 10, NULL), 0);
	spaces_raw(f.spaces, &p, maps, (struct spaces_raw){ .is_old = true }); /* rows were missing: nothing was lost */
	assert_int_equal(space_of(&f, 10), 0);
	spaces_raw(f.spaces, &p, maps, (struct spaces_raw){ .is_old = true, .is_unknown = true });
	assert_int_equal(space_of(&f, 10), space);
	assert_int_equal(f.changes, 2);
}

static void files_turn_bare(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(putp) struct maps_ref *maps = ref_of(two, 2);
	struct program a = process(10), b = process(20);
	struct abi_map map = { 0 };

	(void)state;
	assert_int_equal(fixture_open(&f), 0);
	f.made.error[1] = -EBADMSG;
	spaces_set(f.spaces, &a, maps);
	spaces_set(f.spaces, &b, maps);
	spaces_flush(f.spaces);
	f.changes = 0;
	assert_int_equal(rows_describe(f.rows, 1, true, &map), 0); /* a walk meets it */
	spaces_flush(f.spaces);
	assert_int_equal(f.changes, 2);
	assert_int_equal(table_memory_find(f.memory, space_of(&f, 10), 0x1000)->kind, ABI_MAP_BARE);
	assert_int_equal(table_memory_find(f.memory, space_of(&f, 20), 0x1000)->kind, ABI_MAP_BARE);
	assert_int_equal(table_memory_find(f.memory, space_of(&f, 20), 0x8000)->kind, ABI_MAP_JIT);
}

static void a_full_kernel_is_tried_again_later(void **state)
{
	scoped(fixture_close) struct fixture f = { .map_error = -ENOSPC };
	scoped(putp) struct maps_ref *maps = ref_of(two, 2);
	struct program p = process(10);

	(void)state;
	assert_int_equal(fixture_open(&f), 0);
	spaces_set(f.spaces, &p, maps);
	spaces_flush(f.spaces);
	assert_int_equal(space_of(&f, 10), 0);
	assert_int_equal(spaces_count(f.spaces), 0);
	assert_int_equal(spaces_maps(f.spaces), 0);
	f.map_error = 0;
	f.changes = 0;
	spaces_raw(f.spaces, &p, maps, (struct spaces_raw){ .is_old = true, .is_unknown = true });
	spaces_flush(f.spaces);
	assert_int_equal(f.changes, 0);
	f.time.now_ns += SPACES_RETRY_NS;
	spaces_raw(f.spaces, &p, maps, (struct spaces_raw){ .is_old = true, .is_unknown = true });
	spaces_flush(f.spaces);
	assert_int_not_equal(space_of(&f, 10), 0);
}

static void the_oldest_go_first(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(putp) struct maps_ref *maps = NULL;
	struct mapping *many = calloc(1000, sizeof(*many));
	size_t most = SPACES_MAPS_MAX / 1000;

	(void)state;
	assert_non_null(many);
	for (uint64_t i = 0; i < 1000; i++)
		many[i] = file_map(0x10000 + i * 0x2000, 0x11000 + i * 0x2000, 0, (uint32_t)(1 + i % 100));
	maps = ref_of(many, 1000);
	free(many);
	assert_int_equal(fixture_open(&f), 0);
	for (uint32_t pid = 1; pid <= most + 5; pid++) {
		struct program p = process(pid), first = process(1);

		spaces_set(f.spaces, &first, maps); /* always in use */
		spaces_set(f.spaces, &p, maps);
		spaces_flush(f.spaces);
		assert_true(spaces_maps(f.spaces) <= SPACES_MAPS_MAX);
	}
	assert_int_equal(spaces_count(f.spaces), most);
	assert_int_not_equal(space_of(&f, 1), 0);
	assert_int_equal(space_of(&f, 2), 0);
	assert_int_not_equal(space_of(&f, (uint32_t)most + 5), 0);
	assert_int_equal(table_memory_maps(f.memory), spaces_maps(f.spaces));
}

/* One that maps code by the thousands drives out nobody else, and its program and libraries are told of. */
static void many_mappings_are_left_out(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(putp) struct maps_ref *maps = NULL, *few = ref_of(two, 2);
	struct mapping *many = calloc(10000, sizeof(*many));

	(void)state;
	assert_non_null(many);
	for (uint64_t i = 0; i < 10000; i++)
		many[i] = file_map(0x10000 + i * 0x2000, 0x11000 + i * 0x2000, 0, 1);
	maps = ref_of(many, 10000);
	assert_int_equal(fixture_open(&f), 0);
	for (uint32_t pid = 1; pid <= 100; pid++) {
		struct program p = process(pid);

		spaces_set(f.spaces, &p, pid <= 50 ? few : maps);
		spaces_flush(f.spaces);
		assert_true(spaces_maps(f.spaces) <= SPACES_MAPS_MAX);
	}
	for (uint32_t pid = 1; pid <= 50; pid++)
		assert_int_not_equal(space_of(&f, pid), 0);
	assert_int_not_equal(space_of(&f, 100), 0);
	assert_non_null(table_memory_find(f.memory, space_of(&f, 100), many[0].start));
	assert_non_null(table_memory_find(f.memory, space_of(&f, 100), many[9999].start));
	assert_null(table_memory_find(f.memory, space_of(&f, 100), many[5000].start));
	assert_int_equal(table_memory_maps(f.memory), spaces_maps(f.spaces));
	free(many);
}

static void processes_are_bounded(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(putp) struct maps_ref *maps = ref_of(two, 1);

	(void)state;
	assert_int_equal(fixture_open(&f), 0);
	for (uint32_t pid = 1; pid <= SPACES_PROCESSES_MAX + 100; pid++) {
		struct program p = process(pid);

		spaces_raw(f.spaces, &p, maps, (struct spaces_raw){ .is_old = pid % 64 == 0, .is_unknown = true });
		spaces_flush(f.spaces);
	}
	assert_int_equal(space_of(&f, 64), 0);
	assert_int_equal(spaces_count(f.spaces), (SPACES_PROCESSES_MAX + 100) / 64 - 100 / 64);
	assert_int_equal(f.rows->files[1].holders, spaces_count(f.spaces));
}

static int tell_two(void *ctx)
{
	struct fixture f = { 0 };
	struct mappings maps = { .items = (struct mapping *)two, .count = 2 };
	struct program p = process(10), child = process(20);
	int r = fixture_open(&f);
	struct maps_ref *m = r == 0 ? maps_ref_new(&maps) : NULL;

	(void)ctx;
	if (m) {
		spaces_set(f.spaces, &p, m);
		spaces_flush(f.spaces);
		spaces_share(f.spaces, &child, &p);
		spaces_forget(f.spaces, &p);
		spaces_forget(f.spaces, &child);
		assert_int_equal(spaces_count(f.spaces), 0);
		assert_int_equal(spaces_maps(f.spaces), 0);
		maps_ref_put(m);
	}
	fixture_close(&f);
	return m ? 0 : -ENOMEM;
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(tell_two, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_at_the_second_sample),
		cmocka_unit_test(tells_deep_programs_at_once),
		cmocka_unit_test(tells_what_waits),
		cmocka_unit_test(changes_only_what_changed),
		cmocka_unit_test(merges_neighbours),
		cmocka_unit_test(children_share),
		cmocka_unit_test(programs_follow_each_other),
		cmocka_unit_test(late_samples_change_nothing),
		cmocka_unit_test(lost_entries_come_back),
		cmocka_unit_test(files_turn_bare),
		cmocka_unit_test(a_full_kernel_is_tried_again_later),
		cmocka_unit_test(the_oldest_go_first),
		cmocka_unit_test(many_mappings_are_left_out),
		cmocka_unit_test(processes_are_bounded),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
