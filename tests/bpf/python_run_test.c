/* SPDX-License-Identifier: Apache-2.0 */
/* The same walk of CPython's frames in BPF and on the host, over the same made-up memory of this process: frame by
 * frame equal for any memory; and the names that the kernel side sends. */
#include "bpf_support.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "python_image.h"
#include "python_process.h"
#include "seed_run.h"
#include "walk/walk_python.h"

#include "python_seed.skel.h"

#define IMAGE KIB(64)
#define ROUNDS 400 /* of each layout */

struct arena {
	struct python_seed_bpf *skel;
	struct seed_run run;
	size_t names;
	struct {
		uint64_t key;
		struct python_function function;
		struct abi_python_name head;
	} last[8];
};

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
	a->skel = python_seed_bpf__open_and_load();
	assert_non_null(a->skel);
	seed_run_open(&a->run,
		      &(struct seed_maps){ .program = bpf_program__fd(a->skel->progs.python_seed),
					   .walks = bpf_map__fd(a->skel->maps.walks),
					   .ring = bpf_map__fd(a->skel->maps.ring) },
		      take_name, a);
	*state = a;
	return 0;
}

static int teardown(void **state)
{
	struct arena *a = *state;

	seed_run_close(&a->run);
	python_seed_bpf__destroy(a->skel);
	free(a);
	return 0;
}

static const uint8_t *run_kernel(struct arena *a, const struct python_image *im)
{
	uint32_t zero = 0;

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(a->skel->maps.pythons), &zero, &im->info, BPF_ANY), 0);
	return seed_run_kernel(&a->run, im->tp);
}

static void run_host(struct arena *a, const struct python_image *im)
{
	a->run.host.tp = im->tp;
	a->run.host.count = 0;
	walk_python_start(&a->run.host, &im->info, 0);
	for (int turn = 0; turn < ABI_FRAMES_MAX; turn++)
		if (walk_python_step(&a->run.host) != WALK_MORE)
			break;
}

static void compare(struct arena *a, const struct python_image *im)
{
	const uint8_t *kernel = run_kernel(a, im);

	run_host(a, im);
	seed_compare(&a->run, kernel);
}

/* A page with anything in it; pointers more often than not. */
static void spoil(struct arena *a, struct python_image *im)
{
	for (uint64_t n = seed_random(&a->run) % 100; n > 0; n--) {
		uint64_t at = seed_random(&a->run) % (im->used / 8) * 8, value = seed_random(&a->run);
		uint64_t address = (uint64_t)(uintptr_t)im->memory + at;

		if (value % 4)
			value = (uint64_t)(uintptr_t)im->memory + seed_random(&a->run) % (im->used / 16) * 16;
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
		assert_int_equal(a->run.host.runtime_end, ABI_RUNTIME_END_WHOLE);
		assert_int_equal(a->run.host.runtime_count, im.want_count);
		memcpy(copy, im.memory, im.used);
		for (int round = 0; round < ROUNDS; round++) {
			spoil(a, &im);
			compare(a, &im);
			ends[a->run.host.runtime_end]++;
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
		assert_int_equal(a->run.host.runtime_end, ABI_RUNTIME_END_WHOLE);
		image_thread(&im, im.interpreter, im.tp + 64);
		image_thread(&im, im.interpreter, im.tp + 128);
		compare(a, &im);
		assert_int_equal(a->run.host.runtime_end, ABI_RUNTIME_END_NO_STATE);
		image_close(&im);
	}
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
			seed_say_times(python_layout_at(i)->name, im.frame_count, times, ARRAY_SIZE(times));
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

		seed_stay_on_one_cpu();
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
