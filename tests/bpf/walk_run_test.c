/* SPDX-License-Identifier: Apache-2.0 */
/* The same walk in BPF and on the host, over the same memory of this process: frame by frame equal. */
#include "bpf_support.h"

#include <linux/types.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "sampler/bpf_tables.h"
#include "table_sample.h"
#include "walk/walk_native.h"

#include "walk_seed.skel.h"

#define STACK_WORDS 8192
#define ROUNDS 300
#define TABLE_ROUNDS 30
#define TABLE_WALKS 100 /* of each table */
#define TABLE_ROWS 250
#define TABLE_RULES 16
#define SPACE 77
#define TABLE 5
#define CODE_SIZE 16384
#define FILE_OFFSET 0x7000 /* of the code in its file */

struct seed {
	uint64_t pc, sp, fp, is_return, mode, space;
};

struct arena {
	uint8_t *code;   /* pages of calls, behind them an unmapped one */
	uint64_t *stack; /* up to an unmapped page */
	struct walk_seed_bpf *skel;
	struct walk *host, *kernel; /* kernel: one per possible CPU */
	struct walk_world world;
	struct bpf_tables tables;
	struct table_sink sink;
	struct abi_map maps[3]; /* of pages of the code: a file with rows, JIT code, a bare file; the last has none */
	struct table table;     /* elements NULL: not loaded */
	uint64_t random;
};

static int self_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct iovec to = { dst, size }, from = { (void *)(uintptr_t)at, size };

	(void)self;
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

static uint64_t next_random(struct arena *a) /* xorshift64, G. Marsaglia 2003 */
{
	a->random ^= a->random << 13;
	a->random ^= a->random >> 7;
	a->random ^= a->random << 17;
	return a->random;
}

/* In the BPF map an element has no world pointer, which lies before head. */
#define KERNEL_SIZE (sizeof(struct walk) - sizeof(const struct walk_world *))
#define KERNEL_HEAD (offsetof(struct walk, head) - sizeof(const struct walk_world *))

#define GUARD MIB(1) /* farther than any rule here reaches: other memory is not the same to the kernel and to us */

static uint8_t *guarded(size_t size)
{
	uint8_t *at = mmap(NULL, size + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	assert_int_equal(mprotect(at + GUARD, size, PROT_READ | PROT_WRITE), 0);
	memset(at + GUARD, 0, size); /* the kernel does not fault pages in */
	return at + GUARD;
}

static void unguarded(void *at, size_t size)
{
	munmap((uint8_t *)at - GUARD, size + 2 * GUARD);
}

/* ---- the same look-ups as in the kernel ---- */

static int self_find_map(void *self, __u64 pc, struct abi_map *out)
{
	struct arena *a = self;

	for (size_t i = 0; i < ARRAY_SIZE(a->maps); i++) {
		if (pc >= a->maps[i].start && pc < a->maps[i].end) {
			*out = a->maps[i];
			return 0;
		}
	}
	return -ENOENT;
}

static const void *self_table(void *self, __u32 number)
{
	struct arena *a = self;

	return number == TABLE && a->table.elements ? &a->table : NULL;
}

static const union abi_element *self_element(void *self, const void *table, __u32 index)
{
	const struct table *t = table;

	(void)self;
	return index < t->count ? &t->elements[index] : NULL;
}

static int setup(void **state)
{
	struct arena *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	a->code = guarded(CODE_SIZE);
	a->stack = (uint64_t *)(void *)guarded(STACK_WORDS * 8);
	memset(a->code, 0xcc, CODE_SIZE);
	for (size_t i = 64; i < CODE_SIZE; i += 64)
		a->code[i - 5] = 0xe8;
	a->skel = walk_seed_bpf__open_and_load();
	assert_non_null(a->skel);
	a->host = calloc(1, sizeof(*a->host));
	a->kernel = calloc((size_t)libbpf_num_possible_cpus(), align_up(KERNEL_SIZE, 8));
	assert_true(a->host && a->kernel);
	a->world = (struct walk_world){
		.read = self_read, .find_map = self_find_map, .table = self_table, .element = self_element, .self = a
	};
	a->host->world = &a->world;
	assert_int_equal(bpf_tables_open(bpf_map__fd(a->skel->maps.tables), bpf_map__fd(a->skel->maps.mappings),
					 bpf_map__fd(a->skel->maps.spaces), a->skel->bss->recent_epochs, &a->tables),
			 0);
	bpf_tables_sink(&a->tables, &a->sink);
	assert_int_equal(bpf_map__value_size(a->skel->maps.walks), KERNEL_SIZE);
	*state = a;
	return 0;
}

static int teardown(void **state)
{
	struct arena *a = *state;

	walk_seed_bpf__destroy(a->skel);
	bpf_tables_close(&a->tables);
	unguarded(a->code, CODE_SIZE);
	unguarded(a->stack, STACK_WORDS * 8);
	free(a->host);
	free(a->kernel);
	free(a);
	return 0;
}

/* Walks in the kernel. Return: that CPU's struct walk, as bytes. */
static const uint8_t *run_kernel(struct arena *a, struct seed *seed)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = seed, .ctx_size_in = sizeof(*seed));
	uint32_t zero = 0;

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(a->skel->progs.walk_seed), &opts), 0);
	assert_true((int)opts.retval >= 0);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.walks), &zero, a->kernel), 0);
	return (const uint8_t *)a->kernel + opts.retval * align_up(KERNEL_SIZE, 8);
}

static void run_host(struct arena *a, const struct seed *seed)
{
	for (unsigned int i = 0; i < WALK_REGS; i++)
		a->host->leaf[i] = seed->sp + i * 64;
	a->host->leaf[WALK_REG_PC] = seed->pc;
	a->host->leaf[WALK_REG_SP] = seed->sp;
	a->host->leaf[WALK_REG_FP] = seed->fp;
	a->host->mode = (uint8_t)seed->mode;
	a->host->count = 0;
	walk_native_start(a->host, seed->is_return & 1);
	for (int turn = 0; turn < ABI_FRAMES_MAX; turn++) {
		if (walk_native_step(a->host) != WALK_MORE)
			break;
	}
}

static void compare(struct arena *a, struct seed *seed)
{
	const uint8_t *kernel = run_kernel(a, seed);
	uint32_t count;

	run_host(a, seed);
	memcpy(&count, kernel + offsetof(struct walk, count), sizeof(count));
	assert_int_equal(count, a->host->count);
	assert_int_equal(kernel[offsetof(struct walk, end)], a->host->end);
	assert_memory_equal(kernel + KERNEL_HEAD + sizeof(struct abi_sample), a->host->frames,
			    count * sizeof(struct abi_frame));
	assert_memory_equal(kernel, a->host, offsetof(struct walk, window_at)); /* registers */
	assert_memory_equal(kernel + offsetof(struct walk, is_return), &a->host->is_return, 4);
}

static uint64_t random_ret(struct arena *a)
{
	return (uint64_t)(uintptr_t)a->code + 64 + next_random(a) % (CODE_SIZE / 64 - 1) * 64;
}

/* A chain of random steps up; one in fifty records is spoilt. Return: its length in records. */
static size_t random_chain(struct arena *a, size_t first)
{
	size_t at = first, count = 0;

	while (at + 2 < STACK_WORDS) {
		size_t next = at + 2 + next_random(a) % (next_random(a) % 8 ? 12 : 200);
		uint64_t spoil = next_random(a) % 50;

		a->stack[at] = (uint64_t)(uintptr_t)&a->stack[next];
		a->stack[at + 1] = random_ret(a);
		if (next + 2 >= STACK_WORDS || spoil == 0)
			a->stack[at] = 0;
		else if (spoil == 1)
			a->stack[at] = next_random(a) | UINT64_C(1) << 63;
		else if (spoil == 2)
			a->stack[at + 1] = (uint64_t)(uintptr_t)a->code +
					   next_random(a) % (CODE_SIZE + 4096); /* no call, or unmapped */
		at = next;
		count++;
	}
	return count;
}

static void random_walks_agree(void **state)
{
	struct arena *a = *state;
	uint64_t longest = 0;

	a->random = (uint64_t)getpid() << 32 | 0x9e3779b9;
	print_message("  seed %llx\n", (unsigned long long)a->random);
	for (int i = 0; i < ROUNDS; i++) {
		size_t first = next_random(a) % 64;
		struct seed seed = {
			.pc = (uint64_t)(uintptr_t)a->code + next_random(a) % 4000,
			.sp = (uint64_t)(uintptr_t)a->stack,
			.fp = (uint64_t)(uintptr_t)&a->stack[first],
			.is_return = next_random(a) & 1,
			.mode = WALK_FP,
		};

		random_chain(a, first);
		compare(a, &seed);
		longest = MAX(longest, a->host->count);
	}
	assert_true(longest > 50);
}

/* ---- by rows ---- */

static struct abi_where random_where(struct arena *a)
{
	return (struct abi_where){
		.place = (uint8_t)(next_random(a) % 8 ? next_random(a) % ABI_PLACE_COUNT : next_random(a)),
		.base = (uint8_t)(next_random(a) % 8   ? WALK_REG_FP + next_random(a) % 2
				  : next_random(a) % 2 ? ABI_BASE_CFA
						       : next_random(a)),
		.off = (int32_t)(next_random(a) % 32 * 8) - 128 + (next_random(a) % 64 == 0),
	};
}

/* Mostly rules that lead on; a few of every other kind, and some that mean nothing. */
static struct row_sample random_row(struct arena *a, uint32_t offset)
{
	static const uint8_t rare[] = { ABI_CFA_FP, ABI_CFA_PLT, ABI_CFA_RULE, ABI_CFA_FRAME_RECORD, ABI_CFA_INVALID };
	struct row_sample row = {
		.offset = offset,
		.cfa = next_random(a) % 8 ? ABI_CFA_SP : rare[next_random(a) % ARRAY_SIZE(rare)],
		.saved = (uint8_t)(next_random(a) % 20 ? next_random(a) % 2 : next_random(a) % (ABI_SAVED_COUNT + 1)),
		.cfa_off = (uint16_t)(1 + next_random(a) % (next_random(a) % 16 ? 12 : 4000)),
		.fp_off = (int16_t) - (int16_t)(next_random(a) % 12),
	};

	if (next_random(a) % 100 == 0)
		row.cfa = (uint8_t)(next_random(a) % (ABI_CFA_COUNT + 1));
	return row;
}

/* A file with these rows in the first half of the code, JIT code and a bare file in the second. */
static void use_rows(struct arena *a, const struct row_sample *rows, size_t count, const struct abi_rule *rules,
		     size_t rule_count)
{
	uint64_t start = (uint64_t)(uintptr_t)a->code;
	struct table_change change = { .number = TABLE, .table = &a->table };
	union abi_element *elements = table_sample(rows, count, rules, rule_count);

	assert_int_equal(a->sink.put(a->sink.self, elements, elements[0].head.size, &a->table), 0);
	assert_int_equal(a->sink.change_tables(a->sink.self, &change, 1), 0);
	a->maps[0] = (struct abi_map){
		.start = start,
		.end = start + 8192,
		.file_base = start - FILE_OFFSET,
		.first_page = elements[0].head.first_page,
		.pages = elements[0].head.pages,
		.file = 9,
		.table = TABLE,
		.kind = ABI_MAP_FILE,
	};
	a->maps[1] = (struct abi_map){ .start = start + 8192, .end = start + 12288, .kind = ABI_MAP_JIT };
	a->maps[2] = (struct abi_map){
		.start = start + 12288,
		.end = start + 16384,
		.file_base = start,
		.file = 10,
		.kind = ABI_MAP_BARE,
	};
	free(elements);
}

static void random_table(struct arena *a)
{
	struct row_sample rows[TABLE_ROWS];
	struct abi_rule rules[TABLE_RULES];
	size_t count = 1 + next_random(a) % TABLE_ROWS;

	for (size_t i = 0; i < count; i++)
		rows[i] = random_row(a, (uint32_t)(FILE_OFFSET + 8192 * i / count));
	for (size_t i = 0; i < TABLE_RULES; i++) {
		rules[i] = (struct abi_rule){ .cfa = random_where(a), .fp = random_where(a), .ra = random_where(a) };
		rules[i].cfa.place = ABI_PLACE_VALUE + next_random(a) % 2;
		rules[i].cfa_add = (int32_t)(next_random(a) % 8 * 8);
	}
	use_rows(a, rows, count, rules, TABLE_RULES);
	if (next_random(a) % 4 == 0) /* not known yet */
		a->maps[2].end = a->maps[2].start + 256;
}

static void tell_maps(struct arena *a, bool come)
{
	struct map_change changes[ARRAY_SIZE(a->maps)];

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		changes[i] = (struct map_change){ .space = SPACE, .map = a->maps[i] };
		if (!come)
			changes[i].map.kind = ABI_MAP_NONE;
	}
	assert_int_equal(a->sink.change_maps(a->sink.self, changes, ARRAY_SIZE(changes)), 0);
}

static void drop_table(struct arena *a)
{
	struct table_change change = { .number = TABLE };

	if (!a->table.elements)
		return;
	assert_int_equal(a->sink.change_tables(a->sink.self, &change, 1), 0);
	a->sink.drop(a->sink.self, &a->table);
	a->table = (struct table){ 0 };
}

static void random_stack(struct arena *a)
{
	for (size_t i = 0; i < STACK_WORDS; i++) {
		uint64_t kind = next_random(a) % 16, above = i + 1 + next_random(a) % 64;

		if (kind < 13) /* mostly in the file that has rows */
			a->stack[i] = (uint64_t)(uintptr_t)a->code + 64 +
				      next_random(a) % ((next_random(a) % 8 ? 8192 : CODE_SIZE) / 64 - 1) * 64;
		else if (kind < 15 && above < STACK_WORDS)
			a->stack[i] = (uint64_t)(uintptr_t)&a->stack[above];
		else
			a->stack[i] = next_random(a) % 2 ? next_random(a) % 8192 : next_random(a) | UINT64_C(1) << 63;
	}
}

/* Random rows, rules and memory: the same frames, the same end, the same registers to go on from. */
static void random_rows_agree(void **state)
{
	struct arena *a = *state;
	uint64_t ends[ABI_END_COUNT] = { 0 }, frames = 0, longest = 0;

	a->random = (uint64_t)getpid() << 32 | 0x51ed2701;
	print_message("  seed %llx\n", (unsigned long long)a->random);
	for (int round = 0; round < TABLE_ROUNDS; round++) {
		random_table(a);
		tell_maps(a, true);
		random_stack(a);
		for (int i = 0; i < TABLE_WALKS; i++) {
			size_t at = next_random(a) % 1024;
			struct seed seed = {
				.pc = (uint64_t)(uintptr_t)a->code + next_random(a) % CODE_SIZE,
				.sp = (uint64_t)(uintptr_t)&a->stack[at],
				.fp = (uint64_t)(uintptr_t)&a->stack[at + next_random(a) % 16],
				.is_return = next_random(a) & 1,
				.mode = next_random(a) % 4 ? WALK_AUTO : WALK_TABLE,
				.space = SPACE,
			};

			if (i == TABLE_WALKS - 5)
				drop_table(a);
			compare(a, &seed);
			ends[a->host->end]++;
			frames += a->host->count;
			longest = MAX(longest, a->host->count);
		}
		tell_maps(a, false);
	}
	print_message("  %llu frames, longest walk %llu\n", (unsigned long long)frames, (unsigned long long)longest);
	assert_true(longest > 15 && ends[ABI_END_COMPLETE] && ends[ABI_END_NO_MAPPING] && ends[ABI_END_NO_TABLE] &&
		    ends[ABI_END_NO_RULE] && ends[ABI_END_UNSUPPORTED] && ends[ABI_END_READ_FAILED]);
}

/* A process whose mappings are not known: nothing is pushed and nothing changes. */
static void unknown_processes_stay_as_they_are(void **state)
{
	struct arena *a = *state;
	struct seed seed = {
		.pc = (uint64_t)(uintptr_t)a->code + 10,
		.sp = (uint64_t)(uintptr_t)a->stack,
		.fp = 5,
	};
	const uint8_t *kernel = run_kernel(a, &seed);
	const struct walk *w = (const void *)kernel;

	assert_int_equal(w->count, 0);
	assert_int_equal(w->end, ABI_END_NO_PROCESS);
	assert_int_equal(w->pc, seed.pc);
	assert_int_equal(w->fp, 5);
	assert_true(w->is_leaf);
}

/* 64 frames of 4 words with a saved rbp, 40 rows a page: what one of them costs in the kernel, warm. For people. */
static void frames_are_timed(void **state)
{
	struct arena *a = *state;
	struct row_sample rows[80];
	struct bpf_prog_info before = { 0 }, after = { 0 };
	uint32_t size = sizeof(before), frames = 0;
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME), prog = bpf_program__fd(a->skel->progs.walk_seed);
	struct seed seed = {
		.pc = (uint64_t)(uintptr_t)a->code + 64,
		.sp = (uint64_t)(uintptr_t)a->stack,
		.mode = WALK_AUTO,
		.space = SPACE,
	};

	if (stats < 0)
		skip();
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i] = (struct row_sample){ FILE_OFFSET + i * 102, ABI_CFA_SP, ABI_SAVED_AT, 4, -2 };
	use_rows(a, rows, ARRAY_SIZE(rows), NULL, 0);
	tell_maps(a, true);
	for (size_t i = 0; i < 256; i += 4) {
		a->stack[i + 2] = i;
		a->stack[i + 3] = i == 252 ? 0 : (uint64_t)(uintptr_t)a->code + 64 + i * 64 % 8192 / 64 * 64;
	}
	compare(a, &seed);
	assert_int_equal(a->host->end, ABI_END_UNPROVEN_ROOT);
	assert_int_equal(a->host->count, 64);
	assert_int_equal(bpf_obj_get_info_by_fd(prog, &before, &size), 0);
	for (int i = 0; i < 1000; i++) {
		run_kernel(a, &seed);
		frames += 64;
	}
	size = sizeof(after);
	assert_int_equal(bpf_obj_get_info_by_fd(prog, &after, &size), 0);
	print_message("  %llu ns a frame\n", (unsigned long long)(after.run_time_ns - before.run_time_ns) / frames);
	close(stats);
	tell_maps(a, false);
	drop_table(a);
}

static void full_stacks_agree(void **state)
{
	struct arena *a = *state;
	struct seed seed = {
		.pc = (uint64_t)(uintptr_t)a->code + 10,
		.sp = (uint64_t)(uintptr_t)a->stack,
		.fp = (uint64_t)(uintptr_t)a->stack,
		.mode = WALK_FP,
	};

	for (size_t i = 0; i + 3 < STACK_WORDS; i += 2) {
		a->stack[i] = (uint64_t)(uintptr_t)&a->stack[i + 2];
		a->stack[i + 1] = (uint64_t)(uintptr_t)a->code + 64;
	}
	a->random = 1;
	compare(a, &seed);
	assert_int_equal(a->host->count, ABI_FRAMES_MAX);
	assert_int_equal(a->host->end, ABI_END_FRAME_LIMIT);
}

static void hostile_registers_agree(void **state)
{
	struct arena *a = *state;
	static const uint64_t values[] = { 0,
					   1,
					   8,
					   4096,
					   UINT64_C(0x7fffffffe000),
					   UINT64_C(0x7ffffffffff8),
					   UINT64_C(0x800000000000),
					   UINT64_C(0xffff888000000000),
					   UINT64_MAX - 7,
					   UINT64_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(values) * ARRAY_SIZE(values); i++) {
		struct seed seed = {
			.pc = (uint64_t)(uintptr_t)a->code,
			.sp = values[i / ARRAY_SIZE(values)],
			.fp = values[i % ARRAY_SIZE(values)],
			.mode = WALK_FP,
		};

		compare(a, &seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_walks_agree),
		cmocka_unit_test(random_rows_agree),
		cmocka_unit_test(unknown_processes_stay_as_they_are),
		cmocka_unit_test(frames_are_timed),
		cmocka_unit_test(full_stacks_agree),
		cmocka_unit_test(hostile_registers_agree),
	};

	bpf_tests_skip();
	return cmocka_run_group_tests(tests, setup, teardown);
}
