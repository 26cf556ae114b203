/* SPDX-License-Identifier: Apache-2.0 */
/* The same walk of CPython's frames in BPF and on the host, over the same made-up memory of this process: frame by
 * frame equal for any memory; and the names that the kernel side sends. */
#include "bpf_support.h"

#include <linux/types.h>
#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "python_image.h"
#include "python_process.h"
#include "walk/walk_python.h"

#include "python_seed.skel.h"

#define IMAGE KIB(64)
#define ROUNDS 400 /* of each layout */

/* In the BPF map an element has no world pointer, which lies before head. */
#define KERNEL_SIZE (sizeof(struct walk) - sizeof(const struct walk_world *))
#define KERNEL_FRAMES (offsetof(struct walk, frames) - sizeof(const struct walk_world *))

struct seed {
	uint64_t tp, tid;
};

struct arena {
	struct python_seed_bpf *skel;
	struct walk host;
	uint8_t *kernel; /* one struct walk per possible CPU */
	struct walk_world world;
	struct ring_buffer *ring;
	uint64_t random;
	size_t names;
	struct {
		uint64_t key;
		struct python_function function;
		struct abi_python_name head;
	} last[8];
};

static uint64_t next_random(struct arena *a) /* xorshift64, G. Marsaglia 2003 */
{
	a->random ^= a->random << 13;
	a->random ^= a->random >> 7;
	a->random ^= a->random << 17;
	return a->random;
}

static int self_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct iovec to = { dst, size }, from = { (void *)(uintptr_t)at, size };

	(void)self;
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

static int take_name(void *ctx, void *data, size_t size)
{
	struct arena *a = ctx;
	const struct abi_name *name = data;

	assert_int_equal(name->header.type, ABI_RECORD_NAME);
	assert_int_equal(name->header.size, size);
	assert_int_equal(size, sizeof(*name) + align_up(name->bytes_size, 8));
	if (a->names < ARRAY_SIZE(a->last)) {
		memcpy(&a->last[a->names].head, name->bytes, sizeof(a->last[0].head));
		a->last[a->names].key = name->key;
		ignore(python_decode(name, &a->last[a->names].function));
	}
	a->names++;
	return 0;
}

static int setup(void **state)
{
	struct arena *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	a->random = 4711;
	a->skel = python_seed_bpf__open_and_load();
	assert_non_null(a->skel);
	a->kernel = calloc((size_t)libbpf_num_possible_cpus(), align_up(KERNEL_SIZE, 8));
	assert_non_null(a->kernel);
	a->world = (struct walk_world){ .read = self_read, .self = a };
	a->host.world = &a->world;
	a->ring = ring_buffer__new(bpf_map__fd(a->skel->maps.ring), take_name, a, NULL);
	assert_non_null(a->ring);
	*state = a;
	return 0;
}

static int teardown(void **state)
{
	struct arena *a = *state;

	ring_buffer__free(a->ring);
	python_seed_bpf__destroy(a->skel);
	free(a->kernel);
	free(a);
	return 0;
}

/* Walks in the kernel. Return: that CPU's struct walk, as bytes. */
static const uint8_t *run_kernel(struct arena *a, const struct python_image *im)
{
	struct seed seed = { .tp = im->tp };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &seed, .ctx_size_in = sizeof(seed));
	uint32_t zero = 0;

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(a->skel->maps.pythons), &zero, &im->info, BPF_ANY), 0);
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(a->skel->progs.python_seed), &opts), 0);
	assert_true((int)opts.retval >= 0 && (int)opts.retval < libbpf_num_possible_cpus());
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.walks), &zero, a->kernel), 0);
	assert_true(ring_buffer__consume(a->ring) >= 0);
	return a->kernel + opts.retval * align_up(KERNEL_SIZE, 8);
}

static void run_host(struct arena *a, const struct python_image *im)
{
	a->host.tp = im->tp;
	a->host.count = 0;
	walk_python_start(&a->host, &im->info, 0);
	for (int turn = 0; turn < ABI_FRAMES_MAX; turn++)
		if (walk_python_step(&a->host) != WALK_MORE)
			break;
}

static void compare(struct arena *a, const struct python_image *im)
{
	const uint8_t *kernel = run_kernel(a, im);
	uint32_t count;
	uint8_t end;

	run_host(a, im);
	memcpy(&count, kernel + offsetof(struct walk, runtime_count), sizeof(count));
	end = kernel[offsetof(struct walk, runtime_end)];
	assert_int_equal(end, a->host.runtime_end);
	assert_int_equal(count, a->host.runtime_count);
	assert_memory_equal(kernel + KERNEL_FRAMES, a->host.frames, count * sizeof(struct abi_frame));
}

/* A page with anything in it; pointers more often than not. */
static void spoil(struct arena *a, struct python_image *im)
{
	for (uint64_t n = next_random(a) % 100; n > 0; n--) {
		uint64_t at = next_random(a) % (im->used / 8) * 8, value = next_random(a);
		uint64_t address = (uint64_t)(uintptr_t)im->memory + at;

		if (value % 4)
			value = (uint64_t)(uintptr_t)im->memory + next_random(a) % (im->used / 16) * 16;
		else if (value % 8)
			value %= 300;
		image_put(im, address, 8, value);
	}
}

static void equal_walks(void **state)
{
	static const char *const shapes[] = { "a", "ab|c|def", "abcdefghijkl|m|n" };
	static uint8_t copy[IMAGE];
	struct arena *a = *state;

	for (size_t i = 0; python_layout_at(i); i++) {
		static struct python_image im;
		size_t ends[ABI_RUNTIME_END_COUNT] = { 0 };

		image_open(&im, python_layout_at(i), IMAGE);
		image_stack(&im, shapes[i % ARRAY_SIZE(shapes)]);
		image_thread(&im, im.interpreter, im.tp + 4096);
		compare(a, &im);
		assert_int_equal(a->host.runtime_end, ABI_RUNTIME_END_WHOLE);
		assert_int_equal(a->host.runtime_count, im.want_count);
		memcpy(copy, im.memory, im.used);
		for (int round = 0; round < ROUNDS; round++) {
			spoil(a, &im);
			compare(a, &im);
			ends[a->host.runtime_end]++;
			memcpy(im.memory, copy, im.used);
		}
		print_message("  %s: whole %zu, no state %zu, unreadable %zu, bad chain %zu, gap %zu, limit %zu\n",
			      python_layout_at(i)->name, ends[ABI_RUNTIME_END_WHOLE], ends[ABI_RUNTIME_END_NO_STATE],
			      ends[ABI_RUNTIME_END_READ_FAILED], ends[ABI_RUNTIME_END_BAD_CHAIN],
			      ends[ABI_RUNTIME_END_GAP], ends[ABI_RUNTIME_END_FRAME_LIMIT]);
		image_close(&im);
	}
}

static void long_lists(void **state)
{
	struct arena *a = *state;

	for (size_t i = 0; python_layout_at(i); i++) {
		static struct python_image im;

		image_open(&im, python_layout_at(i), MIB(1));
		image_stack(&im, "a|b");
		for (uint64_t n = 1; n < WALK_PYTHON_THREADS - 1; n++)
			image_thread(&im, im.interpreter, im.tp + 4096 * n);
		compare(a, &im);
		assert_int_equal(a->host.runtime_end, ABI_RUNTIME_END_WHOLE);
		image_thread(&im, im.interpreter, im.tp + 64);
		image_thread(&im, im.interpreter, im.tp + 128);
		compare(a, &im);
		assert_int_equal(a->host.runtime_end, ABI_RUNTIME_END_NO_STATE);
		image_close(&im);
	}
}

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* Says what a walk costs with everything in the caches; judges nothing. */
static void warm_time(void **state)
{
	static const char *const shapes[] = { "ab|cd", "abcdefghij|klmnopqrst",
					      "abcdefghijklmnopqrstuvwxyzabcd|abcdefghijklmnopqrstuvwxyzabcd" };
	static uint64_t times[1000];
	struct arena *a = *state;

	for (size_t i = 0; python_layout_at(i); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(shapes); k++) {
			static struct python_image im;

			image_open(&im, python_layout_at(i), IMAGE);
			image_stack(&im, shapes[k]);
			for (size_t n = 0; n < ARRAY_SIZE(times); n++) {
				run_kernel(a, &im);
				times[n] = a->skel->bss->seed_ns;
			}
			qsort(times, ARRAY_SIZE(times), sizeof(times[0]), by_value);
			print_message("  %s: %zu frames: %llu ns, median of %zu; least %llu\n",
				      python_layout_at(i)->name, im.frame_count,
				      (unsigned long long)times[ARRAY_SIZE(times) / 2], ARRAY_SIZE(times),
				      (unsigned long long)times[0]);
			image_close(&im);
		}
	}
}

/* ---- names ---- */

static void recall(struct arena *a)
{
	a->skel->bss->names_epoch++;
	a->names = 0;
}

static void names_at_first_sight(void **state)
{
	struct arena *a = *state;

	for (size_t i = 0; python_layout_at(i); i++) {
		const struct abi_python_layout *l = &python_layout_at(i)->layout;
		static struct python_image im;
		cpu_set_t one;

		CPU_ZERO(&one);
		CPU_SET(0, &one);
		assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0); /* what was sent is known per CPU */
		image_open(&im, python_layout_at(i), IMAGE);
		image_stack(&im, "ab|c");
		recall(a);
		run_kernel(a, &im);
		assert_int_equal(a->names, 3);
		for (size_t k = 0; k < 3; k++) {
			const struct python_function *function = &a->last[k].function;

			assert_int_equal(a->last[k].key, im.codes[2 - k]);
			assert_string_equal(function->file, "/srv/app.py");
			assert_int_equal(function->name[0], 'c' - (int)k);
			assert_int_equal(function->name[1], 0);
			assert_int_equal(function->first_line, 'c' - (int)k);
			assert_int_equal(function->lines_size, 3);
			assert_int_equal(function->lines_sent, 3);
			assert_int_equal(a->last[k].head.lines_at,
					 image_get(&im, im.codes[2 - k] + l->code_lines) + l->bytes_data);
			assert_int_equal(a->last[k].head.version_minor, l->version_minor);
			assert_int_equal(a->last[k].head.is_qualified, l->code_qualname != ABI_PYTHON_NONE);
		}
		run_kernel(a, &im);
		assert_int_equal(a->names, 3);
		/* Another function at the same address. */
		image_put(&im, im.codes[1] + l->code_name, 8, image_get(&im, im.codes[0] + l->code_name));
		run_kernel(a, &im);
		assert_int_equal(a->names, 4);
		recall(a);
		run_kernel(a, &im);
		assert_int_equal(a->names, 3);
		image_close(&im);
	}
}

struct text_case {
	const char *what;
	size_t length, kind; /* characters; bytes of each */
	bool ascii, compact;
	uint8_t text;
	size_t size, sent;
};

static void kinds_of_text(void **state)
{
	static const struct text_case cases[] = {
		{ "ASCII", 10, 1, true, true, ABI_PYTHON_TEXT_BYTES, 10, 10 },
		{ "empty", 0, 1, true, true, ABI_PYTHON_TEXT_BYTES, 0, 0 },
		{ "as long as there is room", 256, 1, true, true, ABI_PYTHON_TEXT_BYTES, 256, 256 },
		{ "longer", 300, 1, true, true, ABI_PYTHON_TEXT_BYTES, 300, 256 },
		{ "latin-1", 17, 1, false, true, ABI_PYTHON_TEXT_LATIN1, 17, 17 },
		{ "two bytes", 20, 2, false, true, ABI_PYTHON_TEXT_UCS2, 40, 40 },
		{ "two bytes, longer", 200, 2, false, true, ABI_PYTHON_TEXT_UCS2, 400, 256 },
		{ "four bytes", 20, 4, false, true, ABI_PYTHON_TEXT_UCS4, 80, 80 },
		{ "not compact", 20, 1, false, false, ABI_PYTHON_TEXT_NONE, 0, 0 },
		{ "of no kind", 20, 3, false, true, ABI_PYTHON_TEXT_NONE, 0, 0 },
		{ "endless", 1 << 21, 1, true, true, ABI_PYTHON_TEXT_NONE, 0, 0 },
	};
	struct arena *a = *state;
	static struct python_image im;

	image_open(&im, python_layout_at(6), IMAGE); /* 3.11 */
	image_stack(&im, "a");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct text_case *c = &cases[i];
		uint64_t at = image_get(&im, im.codes[0] + im.info.layout.code_filename);

		print_message("  %s\n", c->what);
		image_put(&im, at + 16, 8, c->length);
		image_put(&im, at + 32, 4, 0xabc00001 | c->kind << 2 | (size_t)c->compact << 5 | (size_t)c->ascii << 6);
		recall(a);
		run_kernel(a, &im);
		assert_int_equal(a->names, 1);
		assert_int_equal(a->last[0].head.file_text, c->text);
		assert_int_equal(a->last[0].head.file_size, c->size);
		assert_int_equal(a->last[0].head.file_sent, c->sent);
		assert_int_equal(a->last[0].head.name_sent, 1);
	}
	image_put(&im, im.codes[0] + im.info.layout.code_filename, 8, 0x4711);
	recall(a);
	run_kernel(a, &im);
	assert_int_equal(a->last[0].head.file_text, ABI_PYTHON_TEXT_NONE);
	assert_int_equal(a->last[0].head.name_text, ABI_PYTHON_TEXT_BYTES);
	image_close(&im);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(equal_walks, setup, teardown),
		cmocka_unit_test_setup_teardown(long_lists, setup, teardown),
		cmocka_unit_test_setup_teardown(warm_time, setup, teardown),
		cmocka_unit_test_setup_teardown(names_at_first_sight, setup, teardown),
		cmocka_unit_test_setup_teardown(kinds_of_text, setup, teardown),
	};

	bpf_tests_skip();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
