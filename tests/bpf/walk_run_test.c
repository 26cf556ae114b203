/* SPDX-License-Identifier: Apache-2.0 */
/* The same walk in BPF and on the host, over the same memory of this process: frame by frame equal. */
#include "bpf_support.h"

#include <linux/types.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "walk/walk_native.h"

#include "walk_seed.skel.h"

#define STACK_WORDS 8192
#define ROUNDS 300

struct seed {
	uint64_t pc, sp, fp, is_return, mode, space;
};

struct arena {
	uint8_t *code;   /* a page of calls, behind it an unmapped one */
	uint64_t *stack; /* up to an unmapped page */
	struct walk_seed_bpf *skel;
	struct walk *host, *kernel; /* kernel: one per possible CPU */
	struct walk_world world;
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

static void *guarded(size_t size)
{
	uint8_t *at =
		mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	assert_true(at != MAP_FAILED);
	assert_int_equal(mprotect(at + size, 4096, PROT_NONE), 0);
	return at;
}

static int setup(void **state)
{
	struct arena *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	a->code = guarded(4096);
	a->stack = guarded(STACK_WORDS * 8);
	memset(a->code, 0xcc, 4096);
	for (size_t i = 64; i < 4096; i += 64)
		a->code[i - 5] = 0xe8;
	a->skel = walk_seed_bpf__open_and_load();
	assert_non_null(a->skel);
	a->host = calloc(1, sizeof(*a->host));
	a->kernel = calloc((size_t)libbpf_num_possible_cpus(), align_up(KERNEL_SIZE, 8));
	assert_true(a->host && a->kernel);
	a->world = (struct walk_world){ .read = self_read };
	a->host->world = &a->world;
	assert_int_equal(bpf_map__value_size(a->skel->maps.walks), KERNEL_SIZE);
	*state = a;
	return 0;
}

static int teardown(void **state)
{
	struct arena *a = *state;

	walk_seed_bpf__destroy(a->skel);
	munmap(a->code, 8192);
	munmap(a->stack, STACK_WORDS * 8 + 4096);
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
}

static uint64_t random_ret(struct arena *a)
{
	return (uint64_t)(uintptr_t)a->code + 64 + next_random(a) % 62 * 64;
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
			a->stack[at + 1] =
				(uint64_t)(uintptr_t)a->code + next_random(a) % 8192; /* no call, or unmapped */
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
		cmocka_unit_test(full_stacks_agree),
		cmocka_unit_test(hostile_registers_agree),
	};

	bpf_tests_skip();
	return cmocka_run_group_tests(tests, setup, teardown);
}
