// SPDX-License-Identifier: Apache-2.0
/* What a walk on the host reads: this very process, live, and as a copied stack with the files it has mapped. */
#include "support.h"

#include <linux/types.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proc/mappings.h"
#include "proc/proc_read.h"
#include "unwind/rows_files.h"
#include "unwind/table_memory.h"
#include "unwind/world.h"
#include "walk/walk_native.h"

struct place {
	struct files *files;
	struct buf scratch;
	struct mappings maps;
	struct table_memory *memory;
	struct table_sink sink;
	struct rows_files source_files;
	struct rows_source source;
	struct rows *rows;
	struct world_tables tables;
};

static int rows_file(void *self, uint32_t file_id, struct abi_map *out)
{
	return rows_describe(self, file_id, true, out);
}

static const void *rows_of(void *self, uint32_t number)
{
	return rows_table(self, number);
}

static const union abi_element *rows_at(void *self, const void *table, uint32_t index)
{
	(void)self;
	return rows_element(table, index);
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	struct rows_config cfg = { .budget_bytes = MIB(64), .clock = &clock_system };
	struct mapping_reader reader;
	int dir;

	must(p);
	assert_int_equal(files_open(64, &p->files), 0);
	p->scratch = (struct buf)BUF_INIT(MIB(4));
	mapping_reader_init(&reader, p->files, &p->scratch, 4096);
	dir = proc_dir_open("", (uint32_t)getpid());
	assert_true(dir >= 0);
	assert_int_equal(mappings_read(&reader, dir, (uint32_t)getpid(), &p->maps), 0);
	close(dir);
	mapping_reader_release(&reader);
	assert_int_equal(table_memory_new(&p->memory), 0);
	p->sink = table_memory_sink(p->memory);
	p->source_files = (struct rows_files){ .files = p->files, .host_root = "" };
	p->source = rows_files_source(&p->source_files);
	cfg.sink = &p->sink;
	cfg.source = &p->source;
	assert_int_equal(rows_open(&cfg, &p->rows), 0);
	p->tables = (struct world_tables){ rows_file, rows_of, rows_at, p->rows };
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	rows_close(p->rows);
	table_memory_free(p->memory);
	mappings_release(&p->maps);
	buf_release(&p->scratch);
	files_close(p->files);
	free(p);
	return 0;
}

static void live_memory(void **state)
{
	struct world_live live = { .pid = (uint32_t)getpid() };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t word = 0;

	(void)state;
	assert_true(at != MAP_FAILED);
	memset(at, 7, page);
	assert_int_equal(munmap(at + page, page), 0);
	assert_int_equal(world_live_read(&live, &word, 8, (uint64_t)(uintptr_t)at), 0);
	assert_int_equal(word, UINT64_C(0x0707070707070707));
	assert_int_equal(world_live_read(&live, &word, 8, (uint64_t)(uintptr_t)(at + page - 8)), 0);
	assert_true(world_live_read(&live, &word, 8, (uint64_t)(uintptr_t)(at + page - 4)) < 0); /* half of it */
	assert_true(world_live_read(&live, &word, 8, 8) < 0);
	assert_true(world_live_read(&live, &word, 8, UINT64_MAX - 3) < 0);
	munmap(at, page);
}

static void copied_memory(void **state)
{
	struct place *p = *state;
	static const uint8_t zeros[8];
	uint8_t stack[64], code[16];
	struct world_copy copy = {
		.stack = stack, .at = 0x7fff12340000, .size = 64, .maps = &p->maps, .files = p->files
	};
	uint64_t here = (uint64_t)(uintptr_t)copied_memory;
	const struct mapping *vdso = NULL;

	for (uint8_t i = 0; i < 64; i++)
		stack[i] = i;
	assert_int_equal(world_copy_read(&copy, code, 16, copy.at + 48), 0);
	assert_memory_equal(code, stack + 48, 16);
	assert_true(world_copy_read(&copy, code, 16, copy.at + 56) < 0 && copy.ran_out);
	assert_true(world_copy_read(&copy, code, 16, copy.at + 4096) < 0 && copy.ran_out);
	assert_int_equal(world_copy_read(&copy, code, 16, copy.at - 8), 0); /* zeros in front of it */
	assert_memory_equal(code, zeros, 8);
	assert_memory_equal(code + 8, copy.stack, 8);
	assert_true(world_copy_read(&copy, code, 16, copy.at - 16) < 0 && copy.is_dead && !copy.ran_out);
	assert_true(world_copy_read(&copy, code, 16, copy.at - 4096) < 0 && !copy.is_dead && !copy.ran_out);
	assert_true(world_copy_read(&copy, code, 16, UINT64_MAX - 7) < 0 && !copy.ran_out);
	assert_true(world_copy_read(&copy, code, 16, 4096) < 0 && !copy.ran_out);
	assert_int_equal(world_copy_read(&copy, code, 16, here), 0); /* out of the program's file */
	assert_memory_equal(code, (const void *)(uintptr_t)here, 16);
	for (size_t i = 0; i < p->maps.count; i++) {
		if (p->maps.items[i].kind == PROC_PLACE_VDSO)
			vdso = &p->maps.items[i];
	}
	if (!vdso || !vdso->file_id)
		return;
	assert_int_equal(world_copy_read(&copy, code, 16, vdso->start), 0);
	assert_memory_equal(code,
			    "\x7f"
			    "ELF",
			    4);
	assert_true(world_copy_read(&copy, code, 16, vdso->end - 8) < 0);
}

static int no_file(void *self, uint32_t file_id, struct abi_map *out)
{
	(void)self;
	(void)file_id;
	(void)out;
	return -EIO;
}

static void mappings_have_kinds(void **state)
{
	struct place *p = *state;
	const struct world_tables none = { .file = no_file };
	struct mapping made[] = {
		{ .start = 0x1000, .end = 0x2000, .kind = PROC_PLACE_ANONYMOUS },
		{ .start = 0x2000, .end = 0x4000, .offset = 0x5000, .file_id = 1, .kind = PROC_PLACE_FILE },
		{ .start = 0x5000, .end = 0x6000, .kind = PROC_PLACE_VDSO }, /* one that could not be read */
		{ .start = 0x7000, .end = 0x8000, .kind = PROC_PLACE_VSYSCALL },
	};
	struct mappings maps = { .items = made, .count = ARRAY_SIZE(made) };
	struct world world;
	struct abi_map map;

	world_init(&world, &maps, &none, (struct world_memory){ 0 });
	assert_int_equal(world.walk.find_map(&world, 0x1fff, &map), 0);
	assert_int_equal(map.kind, ABI_MAP_JIT);
	assert_int_equal(map.start, 0x1000);
	assert_int_equal(map.end, 0x2000);
	assert_int_equal(world.walk.find_map(&world, 0x3000, &map), 0);
	assert_int_equal(map.kind, ABI_MAP_BARE);
	assert_int_equal(map.file, 1);
	assert_int_equal(0x3000 - map.file_base, 0x6000);
	assert_int_equal(world.walk.find_map(&world, 0x5000, &map), 0);
	assert_int_equal(map.kind, ABI_MAP_BARE);
	assert_true(world.walk.find_map(&world, 0x7000, &map) < 0);
	assert_true(world.walk.find_map(&world, 0x4000, &map) < 0);
	world_init(&world, &p->maps, &p->tables, (struct world_memory){ 0 });
	assert_int_equal(world.walk.find_map(&world, (uint64_t)(uintptr_t)mappings_have_kinds, &map), 0);
	assert_int_equal(map.kind, ABI_MAP_FILE);
	assert_non_null(world.walk.table(&world, map.table));
	assert_int_equal(world.walk.element(&world, world.walk.table(&world, map.table), 0)->head.magic,
			 ABI_TABLE_MAGIC);
}

#ifdef WALK_X86_64
/* rip, rsp and rbp as they are here; nothing else is needed behind a call. */
static __attribute__((noinline)) void walk_from_here(struct place *p, struct walk *w, struct world *world)
{
	w->leaf[WALK_REG_PC] = (uint64_t)(uintptr_t) && here;
	__asm__ volatile("mov %%rsp, %0\n\tmov %%rbp, %1" : "=r"(w->leaf[WALK_REG_SP]), "=r"(w->leaf[WALK_REG_FP]));
	w->world = &world->walk;
	w->mode = WALK_TABLE;
	w->count = 0;
	walk_native_start(w, 0);
	(void)p;
here:
	unwind_walk(w);
}

static __attribute__((noinline)) uint32_t deep(struct place *p, struct walk *w, struct world *world, int levels)
{
	uint8_t room[256];

	memset(room, levels, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	if (levels)
		return deep(p, w, world, levels - 1) + room[0];
	walk_from_here(p, w, world);
	return room[1];
}

static void walks_this_process(void **state)
{
	struct place *p = *state;
	struct world_live live = { .pid = (uint32_t)getpid() };
	struct walk *w = calloc(1, sizeof(*w));
	struct world world;
	uint32_t same = 0;

	must(w);
	world_init(&world, &p->maps, &p->tables, (struct world_memory){ world_live_read, &live });
	deep(p, w, &world, 40);
	assert_int_equal(w->end, ABI_END_COMPLETE);
	for (uint32_t i = 1; i < w->count; i++)
		same += w->frames[i].b == w->frames[i - 1].b && w->frames[i].a == w->frames[i - 1].a;
	assert_in_range(same, 38, 40); /* one function that calls itself */
	free(w);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_memory),
		cmocka_unit_test(copied_memory),
		cmocka_unit_test(mappings_have_kinds),
#ifdef WALK_X86_64
		cmocka_unit_test(walks_this_process),
#endif
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
