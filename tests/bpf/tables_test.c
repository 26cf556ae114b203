/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind rows, mappings and address spaces in the kernel's maps, and what a tick makes of them. */
#include "bpf_support.h"

#include <endian.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/io.h"
#include "sampler/bpf_tables.h"
#include "sampler/sampler.h"
#include "walk/walk.h"

/* ---- the maps themselves ---- */

struct maps {
	struct sampler_state *state;
	struct table_sink sink;
	struct bpf_tables *tables;
};

static void open_maps(struct maps *m)
{
	struct sampler_config cfg = { .frequency_hz = 99, .poll_interval_ms = 100, .host_root = "", .mode = WALK_AUTO };
	struct buf why = BUF_INIT(KIB(64));

	if (sampler_find(STR("bpf"))->open(&cfg, &why, &m->state) < 0)
		fail_msg("open: %s", buf_cstr(&why));
	buf_release(&why);
	assert_int_equal(sampler_find(STR("bpf"))->tables(m->state, &m->sink), 0);
	m->tables = m->sink.self;
}

static void close_maps(struct maps *m)
{
	sampler_find(STR("bpf"))->close(m->state);
}

static uint64_t next_random(uint64_t *state) /* xorshift64, G. Marsaglia 2003 */
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void prefixes_tile_the_range(void **state)
{
	uint64_t random = 0x9e3779b97f4a7c15;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		uint64_t a = next_random(&random) >> next_random(&random) % 64;
		uint64_t b = next_random(&random) >> next_random(&random) % 64;
		uint64_t start = MIN(a, b), end = MAX(a, b), at = start;
		size_t count = 0;

		for (; at < end; count++) {
			uint64_t block = bpf_tables_prefix(at, end);

			assert_int_equal(block & (block - 1), 0);
			assert_true(block && !(at & (block - 1)) && block <= end - at);
			at += block;
		}
		assert_int_equal(at, MAX(start, end));
		assert_true(count <= 128);
	}
}

/* Return: id of the file at that address, or 0. */
static uint32_t file_at(const struct maps *m, uint32_t space, uint64_t address)
{
	struct abi_map_key key = { .prefix = 96, .space = htobe32(space), .address = htobe64(address) };
	struct abi_map map;

	return bpf_map_lookup_elem(m->tables->mappings_fd, &key, &map) < 0 ? 0 : map.file;
}

static struct map_change change_of(uint32_t space, uint64_t start, uint64_t end, uint32_t file)
{
	return (struct map_change){
		space, { .start = start, .end = end, .file = file, .kind = file ? ABI_MAP_FILE : ABI_MAP_NONE }
	};
}

static void mappings_answer_for_their_range(void **state)
{
	struct maps m;
	struct map_change come[] = {
		change_of(1, 0x1000, 0x2000, 1),
		change_of(1, 0x2000, 0x9000, 2),
		change_of(1, 0x7f0000001000, 0x7f0000fff000, 3),
		change_of(2, 0x1000, 0x2000, 4),
		change_of(0x01000000, 0x1000, 0x2000, 5),
	};
	struct map_change go[] = { change_of(1, 0x2000, 0x9000, 0), change_of(3, 0x2000, 0x9000, 0) };
	struct map_change bad = change_of(1, 0x2000, 0x2000, 1);

	(void)state;
	open_maps(&m);
	assert_int_equal(m.sink.change_maps(m.sink.self, come, ARRAY_SIZE(come)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(come); i++) {
		const struct abi_map *map = &come[i].map;

		assert_int_equal(file_at(&m, come[i].space, map->start), map->file);
		assert_int_equal(file_at(&m, come[i].space, map->end - 1), map->file);
		assert_int_not_equal(file_at(&m, come[i].space, map->start - 1), map->file);
		assert_int_not_equal(file_at(&m, come[i].space, map->end), map->file);
	}
	assert_int_equal(file_at(&m, 3, 0x1000), 0);
	assert_int_equal(m.sink.change_maps(m.sink.self, go, ARRAY_SIZE(go)), 0);
	assert_int_equal(file_at(&m, 1, 0x2000), 0);
	assert_int_equal(file_at(&m, 1, 0x8fff), 0);
	assert_int_equal(file_at(&m, 1, 0x1fff), 1);
	assert_int_equal(m.sink.change_maps(m.sink.self, &bad, 1), -EINVAL);
	close_maps(&m);
}

static void spaces_come_and_go(void **state)
{
	struct abi_space space = { .start_ns = 5, .exec_id = 6, .space = 7 }, got = { 0 };
	uint32_t pid = 123;
	struct maps m;

	(void)state;
	open_maps(&m);
	assert_int_equal(m.sink.set_space(m.sink.self, pid, &space), 0);
	assert_int_equal(bpf_map_lookup_elem(m.tables->spaces_fd, &pid, &got), 0);
	assert_memory_equal(&got, &space, sizeof(got));
	assert_int_equal(m.sink.set_space(m.sink.self, pid, NULL), 0);
	assert_int_equal(m.sink.set_space(m.sink.self, pid, NULL), 0); /* its exit may have come first */
	assert_true(bpf_map_lookup_elem(m.tables->spaces_fd, &pid, &got) < 0);
	close_maps(&m);
}

/* What the kernel itself says that a map takes: fdinfo, since 6.4; before, an estimate. */
static uint64_t memory_of(int fd)
{
	struct buf text = BUF_INIT(KIB(4));
	char path[64];
	struct str rest, line;
	uint64_t bytes = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	assert_int_equal(io_read_file(path, &text), 0);
	rest = buf_str(&text);
	while (str_next(&rest, '\n', &line)) {
		if (str_starts(line, STR("memlock:\t")))
			assert_int_equal(str_to_u64(str_skip(line, 9), 0, UINT64_MAX, &bytes), 0);
	}
	buf_release(&text);
	return bytes;
}

static uint32_t inner_id(const struct maps *m, uint32_t number)
{
	uint32_t id = 0;

	return bpf_map_lookup_elem(m->tables->tables_fd, &number, &id) < 0 ? 0 : id;
}

#define TABLES 64

static void tables_change_in_a_batch(void **state)
{
	static union abi_element rows[TABLES * 3];
	struct table tables[TABLES] = { 0 };
	struct table_change changes[TABLES];
	struct maps m;
	uint64_t begin, batch;
	uint32_t empty;

	(void)state;
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i].head.magic = i;
	open_maps(&m);
	m.tables->fds_max = TABLES / 2;
	for (uint32_t i = 0; i < TABLES; i++) {
		uint32_t count = 1 + i * 3;

		assert_int_equal(m.sink.put(m.sink.self, rows, count, &tables[i]), 0);
		assert_int_equal(tables[i].count, count);
		assert_memory_equal(tables[i].elements, rows, count * sizeof(rows[0]));
		assert_int_equal(tables[i].bytes, m.sink.cost(m.sink.self, count));
		assert_true(tables[i].bytes >= memory_of(tables[i].fd));
		assert_true(tables[i].bytes <= memory_of(tables[i].fd) + 4096);
		changes[i] = (struct table_change){ i + 1, &tables[i] };
	}
	begin = clock_monotonic_ns(&clock_system);
	assert_int_equal(m.sink.change_tables(m.sink.self, changes, TABLES), 0);
	batch = clock_monotonic_ns(&clock_system) - begin;
	for (uint32_t i = 0; i < TABLES; i++) {
		assert_true(inner_id(&m, i + 1) != 0);
		assert_true((tables[i].fd >= 0) == tables[i].keeps_fd); /* else nothing but its mapping keeps it */
		assert_int_equal(tables[i].elements[0].head.magic, 0);
		m.sink.hide(m.sink.self, &tables[i]);
		assert_true(!tables[i].elements == tables[i].keeps_fd);
		if (i % 2) { /* the others are dropped while they are hidden */
			assert_int_equal(m.sink.view(m.sink.self, &tables[i]), 0);
			assert_memory_equal(tables[i].elements, rows, tables[i].count * sizeof(rows[0]));
		}
		assert_true(i == 0 || inner_id(&m, i + 1) != inner_id(&m, i));
		changes[i].table = NULL;
	}
	assert_int_equal(inner_id(&m, TABLES + 1), 0);
	begin = clock_monotonic_ns(&clock_system);
	assert_int_equal(m.sink.change_tables(m.sink.self, changes, TABLES / 2), 0);
	print_message("  %d tables, %s: %.1f ms to put in, %.1f ms to take half of them out\n", TABLES,
		      m.tables->single ? "one by one" : "in a batch", (double)batch / 1e6,
		      (double)(clock_monotonic_ns(&clock_system) - begin) / 1e6);
	empty = inner_id(&m, 1);
	for (uint32_t i = 0; i < TABLES; i++) {
		assert_int_equal(inner_id(&m, i + 1) == empty, i < TABLES / 2);
		m.sink.drop(m.sink.self, &tables[i]);
	}
	close_maps(&m);
}

static void bad_tables_are_refused(void **state)
{
	union abi_element row = { 0 };
	struct table table = { 0 };
	struct table_change none = { 0, NULL }, beyond = { TABLES_MAX, NULL };
	struct maps m;

	(void)state;
	open_maps(&m);
	assert_int_equal(m.sink.put(m.sink.self, &row, 0, &table), -EINVAL);
	assert_null(table.elements);
	assert_int_equal(m.sink.change_tables(m.sink.self, &none, 1), -EINVAL);
	assert_int_equal(m.sink.change_tables(m.sink.self, &beyond, 1), -EINVAL);
	assert_int_equal(m.sink.change_tables(m.sink.self, NULL, 0), 0);
	close_maps(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefixes_tile_the_range), cmocka_unit_test(mappings_answer_for_their_range),
		cmocka_unit_test(spaces_come_and_go),      cmocka_unit_test(tables_change_in_a_batch),
		cmocka_unit_test(bad_tables_are_refused),
	};

	bpf_tests_skip();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
