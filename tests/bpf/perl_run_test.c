/* SPDX-License-Identifier: Apache-2.0 */
/* The same walk of Perl's frames in BPF and on the host, over the same made-up memory of this process: frame by frame
 * equal for any memory; and the names that the kernel side sends. */
#include "bpf_support.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "perl_image.h"
#include "runtime/perl/perl_int.h"
#include "seed_run.h"
#include "walk/walk_perl.h"

#include "perl_seed.skel.h"

#define ROUNDS 300 /* of each build */
#define TURNS 1024 /* of the kernel side's loop */
#define RETOP 0x402000

static const struct build {
	unsigned int minor;
	bool threads;
} builds[] = {
	{ 28, true }, { 28, false }, { 32, true }, { 34, false },
	{ 36, true }, { 36, false }, { 40, true }, { 42, true },
};

struct arena {
	struct perl_seed_bpf *skel;
	struct seed_run run;
	uint8_t *memory; /* PERL_IMAGE_SIZE bytes at PERL_IMAGE_AT; around it nothing can be read */
	struct seed_names names;
};

static int take_name(void *ctx, void *data, size_t size)
{
	struct arena *a = ctx;

	seed_take_name(&a->names, data, size, ABI_RUNTIME_PERL, perl_decode_name);
	return 0;
}

static int setup(void **state)
{
	struct arena *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	a->skel = perl_seed_bpf__open_and_load();
	assert_non_null(a->skel);
	seed_run_open(&a->run,
		      &(struct seed_maps){ .program = bpf_program__fd(a->skel->progs.perl_seed),
					   .walks = bpf_map__fd(a->skel->maps.walks),
					   .ring = bpf_map__fd(a->skel->maps.ring) },
		      take_name, a);
	a->memory = seed_map(PERL_IMAGE_AT, PERL_IMAGE_SIZE);
	*state = a;
	return 0;
}

static int teardown(void **state)
{
	struct arena *a = *state;

	seed_unmap(a->memory, PERL_IMAGE_SIZE);
	seed_run_close(&a->run);
	perl_seed_bpf__destroy(a->skel);
	free(a);
	return 0;
}

/* What was found out before is forgotten. */
static void forget(struct arena *a)
{
	a->skel->bss->names_epoch++;
	a->names.count = 0;
}

static const uint8_t *run_kernel(struct arena *a, const struct perl_image *im)
{
	uint32_t zero = 0;

	memcpy(a->memory, im->memory, PERL_IMAGE_SIZE);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(a->skel->maps.perls), &zero, &im->info, BPF_ANY), 0);
	return seed_run_kernel(&a->run, im->tp);
}

static void run_host(struct arena *a, const struct perl_image *im)
{
	a->run.host.tp = im->tp;
	a->run.host.count = 0;
	walk_perl_start(&a->run.host, &im->info, 0);
	for (int turn = 0; turn < TURNS; turn++)
		if (walk_perl_step(&a->run.host) != WALK_MORE)
			break;
}

static void compare(struct arena *a, const struct perl_image *im)
{
	const uint8_t *kernel;

	forget(a);
	kernel = run_kernel(a, im);
	run_host(a, im);
	seed_compare(&a->run, kernel);
}

struct program {
	struct perl_image *im;
	uint64_t subs[3];
};

/* A sub of the program, one of a package, and one of a string eval; a sort's stack info in between. */
static struct program open_program(const struct build *b, size_t depth)
{
	struct perl_image *im = perl_image_open(b->minor, b->threads);
	uint64_t shop = perl_image_package(im, "Shop::Cart"), main = perl_image_cop(im, "/srv/app.pl", 7);
	uint64_t cops[3] = { perl_image_cop(im, "/srv/app.pl", 21), perl_image_cop(im, "/srv/lib/Shop/Cart.pm", 35),
			     perl_image_cop(im, "(eval 17)", 1) };
	struct program p = { .im = im };

	p.subs[0] = perl_image_sub(im, im->package, "deep", perl_image_cop(im, "/srv/app.pl", 20));
	p.subs[1] = perl_image_sub(im, shop, "add", perl_image_cop(im, "/srv/lib/Shop/Cart.pm", 30));
	p.subs[2] = perl_image_named(im, shop, "made");
	for (size_t i = 0; i < depth; i++) {
		uint64_t caller = i ? cops[(i - 1) % 3] : main;

		if (i && i % 40 == 0)
			perl_image_enter(im, WALK_PERL_SI_SORT);
		perl_image_push(im, WALK_PERL_CX_SUB, p.subs[i % 3], caller, i % 40 ? RETOP : 0);
	}
	perl_image_run(im, depth ? cops[(depth - 1) % 3] : main);
	return p;
}

/* A page with anything in it; pointers more often than not. */
static void spoil(struct arena *a, struct perl_image *im)
{
	for (uint64_t n = seed_random(&a->run) % 60; n > 0; n--) {
		uint64_t at = PERL_IMAGE_AT + seed_random(&a->run) % (im->used / 8) * 8, value = seed_random(&a->run);

		if (value % 4)
			value = PERL_IMAGE_AT + seed_random(&a->run) % (im->used / 16) * 16;
		else if (value % 8)
			value %= 300;
		perl_image_put(im, at, 8, value);
	}
}

static void equal_walks(void **state)
{
	static const size_t depths[] = { 1, 5, 100 };
	static uint8_t copy[PERL_IMAGE_SIZE];
	struct arena *a = *state;

	for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
		size_t depth = depths[i % ARRAY_SIZE(depths)], ends[ABI_RUNTIME_END_COUNT] = { 0 };
		struct program p = open_program(&builds[i], depth);

		compare(a, p.im);
		assert_int_equal(a->run.host.runtime_end, ABI_RUNTIME_END_WHOLE);
		assert_int_equal(a->run.host.runtime_count,
				 depth + 1 + (depth - 1) / 40); /* the program; sorts without a frame */
		memcpy(copy, p.im->memory, sizeof(copy));
		for (int round = 0; round < ROUNDS; round++) {
			spoil(a, p.im);
			compare(a, p.im);
			ends[a->run.host.runtime_end]++;
			memcpy(p.im->memory, copy, sizeof(copy));
		}
		print_message("  5.%u%s, %zu subs: whole %zu, no state %zu, unreadable %zu, bad chain %zu, limit %zu\n",
			      builds[i].minor, builds[i].threads ? " with threads" : "", depth,
			      ends[ABI_RUNTIME_END_WHOLE], ends[ABI_RUNTIME_END_NO_STATE],
			      ends[ABI_RUNTIME_END_READ_FAILED], ends[ABI_RUNTIME_END_BAD_CHAIN],
			      ends[ABI_RUNTIME_END_FRAME_LIMIT]);
		free(p.im);
	}
}

static void lists_in_circles(void **state)
{
	struct arena *a = *state;

	for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
		struct program p = open_program(&builds[i], 50);

		perl_image_put(p.im, p.im->stack_info + ABI_PERL_INFO_PREVIOUS, 8, p.im->stack_info);
		compare(a, p.im);
		assert_int_equal(a->run.host.runtime_end, ABI_RUNTIME_END_FRAME_LIMIT);
		free(p.im);
	}
}

static void names_at_first_sight(void **state)
{
	static const struct {
		const char *name, *file;
	} want[] = {
		{ "Shop::Cart::made", "(eval)" },
		{ "Shop::Cart::add", "/srv/lib/Shop/Cart.pm" },
		{ "main::deep", "/srv/app.pl" },
		{ "(main program)", "/srv/app.pl" },
	};
	struct arena *a = *state;

	seed_stay_on_one_cpu();
	for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
		struct program p = open_program(&builds[i], 3);
		uint64_t text, shorter;

		forget(a);
		run_kernel(a, p.im);
		run_host(a, p.im);
		assert_int_equal(a->names.count, ARRAY_SIZE(want));
		for (size_t k = 0; k < ARRAY_SIZE(want); k++) {
			assert_string_equal(a->names.first[k].name, want[k].name);
			assert_string_equal(a->names.first[k].file, want[k].file);
			assert_int_equal(a->names.first[k].key, a->run.host.frames[k].a);
			assert_int_equal(a->names.first[k].cookie, a->run.host.frames[k].b);
		}
		run_kernel(a, p.im);
		assert_int_equal(a->names.count, ARRAY_SIZE(want));
		/* Another sub at the place of the innermost one, which was compiled later. */
		text = perl_image_get(p.im, perl_image_get(p.im, p.subs[2]) + ABI_PERL_CV_GV);
		shorter = perl_image_get(p.im, text) - (UINT64_C(1) << 32);
		perl_image_put(p.im, text, 8, shorter);
		perl_image_put(p.im, perl_image_get(p.im, p.subs[2]) + ABI_PERL_CV_SEQ, 4, 99);
		run_kernel(a, p.im);
		assert_int_equal(a->names.count, ARRAY_SIZE(want) + 1);
		assert_string_equal(a->names.first[ARRAY_SIZE(want)].name, "Shop::Cart::mad");
		assert_int_not_equal(a->names.first[ARRAY_SIZE(want)].key, a->names.first[0].key);
		free(p.im);
	}
}

/* Says what a walk costs with everything in the caches; judges nothing. */
static void warm_time(void **state)
{
	static const size_t depths[] = { 5, 20, 100 };
	static uint64_t times[1000];
	struct arena *a = *state;

	for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
		struct program p = open_program(&builds[4], depths[i]);

		for (size_t n = 0; n < ARRAY_SIZE(times); n++) {
			run_kernel(a, p.im);
			times[n] = a->skel->bss->seed_ns;
		}
		seed_say_times("5.36", depths[i], times, ARRAY_SIZE(times));
		free(p.im);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(equal_walks, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_in_circles, setup, teardown),
		cmocka_unit_test_setup_teardown(names_at_first_sight, setup, teardown),
		cmocka_unit_test_setup_teardown(warm_time, setup, teardown),
	};

	bpf_tests_skip();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
