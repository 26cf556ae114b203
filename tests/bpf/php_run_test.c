/* SPDX-License-Identifier: Apache-2.0 */
/* The same walk of PHP's frames in BPF and on the host, over the same made-up memory of this process: frame by frame
 * equal for any memory, registers and flags; and the names that the kernel side sends. */
#include "bpf_support.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "abi/settings.h"
#include "php_image.h"
#include "runtime/php/names.h"
#include "runtime/php/versions/layouts.h"
#include "seed_run.h"
#include "walk/walk_php.h"

#include "php_seed.skel.h"

#define ROUNDS 300 /* of each version, with and without threads */
#define TURNS 1024 /* of the kernel side's loop */
#define AT 0x20000000UL
#define FUNCS 4
#define LOOP 0x402000

struct arena {
	struct php_seed_bpf *skel;
	struct seed_run run;
	uint8_t *memory; /* PHP_IMAGE_BYTES bytes at AT; around it nothing can be read */
	struct seed_names names;
};

static int take_name(void *ctx, void *data, size_t size)
{
	struct arena *a = ctx;

	seed_take_name(&a->names, data, size, ABI_RUNTIME_PHP, php_decode_name);
	return 0;
}

static int setup(void **state)
{
	struct arena *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	a->skel = php_seed_bpf__open_and_load();
	assert_non_null(a->skel);
	seed_run_open(&a->run,
		      &(struct seed_maps){ .program = bpf_program__fd(a->skel->progs.php_seed),
					   .walks = bpf_map__fd(a->skel->maps.walks),
					   .ring = bpf_map__fd(a->skel->maps.ring) },
		      take_name, a);
	a->memory = seed_map(AT, PHP_IMAGE_BYTES);
	*state = a;
	return 0;
}

static int teardown(void **state)
{
	struct arena *a = *state;

	seed_unmap(a->memory, PHP_IMAGE_BYTES);
	seed_run_close(&a->run);
	php_seed_bpf__destroy(a->skel);
	free(a);
	return 0;
}

struct program {
	struct php_image im;
	uint64_t funcs[FUNCS], tp;
	uint64_t pc, frame, op; /* the tick's registers */
};

/* What was found out before is forgotten. */
static void forget(struct arena *a)
{
	a->skel->bss->names_epoch++;
	a->names.count = 0;
}

static const uint8_t *run_kernel(struct arena *a, const struct program *p)
{
	uint32_t zero = 0;

	memcpy(a->memory, p->im.bytes, PHP_IMAGE_BYTES);
	a->skel->bss->seed_pc = p->pc;
	a->skel->bss->seed_frame = p->frame;
	a->skel->bss->seed_op = p->op;
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(a->skel->maps.phps), &zero, &p->im.info, BPF_ANY), 0);
	return seed_run_kernel(&a->run, p->tp);
}

static void run_host(struct arena *a, const struct program *p)
{
	struct walk *w = &a->run.host;

	w->tp = p->tp;
	w->count = 0;
	w->leaf[WALK_REG_PC] = p->pc;
	w->leaf[WALK_PHP_REG_FRAME] = p->frame;
	w->leaf[WALK_PHP_REG_OP] = p->op;
	walk_php_start(w, &p->im.info, 0);
	for (int turn = 0; turn < TURNS; turn++)
		if (walk_php_step(w) != WALK_MORE)
			break;
}

static void compare(struct arena *a, const struct program *p)
{
	const uint8_t *kernel;

	forget(a);
	kernel = run_kernel(a, p);
	run_host(a, p);
	seed_compare(&a->run, kernel);
}

/* A script, a function of it, an eval() and a function of an extension, again and again. */
static void open_program(struct program *p, const struct abi_php_layout *l, bool threads, size_t depth)
{
	static const struct php_image_func funcs[FUNCS] = {
		{ NULL, NULL, "/srv/www/shop/public/a/long/way/down/index.php", 1, ABI_PHP_USER },
		{ "App\\Cart", "add", "/srv/www/shop/src/Cart.php", 20, ABI_PHP_USER },
		{ NULL, NULL, "/srv/x.php(7) : eval()'d code", 1, ABI_PHP_EVAL },
		{ NULL, "array_map_with_a_name_that_is_longer_than_both_ends", NULL, 0, ABI_PHP_INTERNAL },
	};

	*p = (struct program){ .pc = LOOP + 8 };
	php_image_open(&p->im, l, AT);
	for (size_t i = 0; i < FUNCS; i++)
		p->funcs[i] = php_image_func(&p->im, &funcs[i], i == FUNCS - 1 ? 0 : 8);
	p->im.info.loop_low = LOOP;
	p->im.info.loop_size = 64;
	p->im.info.flags = ABI_PHP_R14_R15;
	if (threads) {
		p->tp = php_image_alloc(&p->im, 64) + 32;
		php_image_put_u64(&p->im, p->tp - 8, p->im.info.globals - 512);
		p->im.info.flags |= ABI_PHP_THREADS;
		p->im.info.tls_at = -8;
		p->im.info.tls_offset = 512;
	}
	for (size_t i = 0; i < depth; i++)
		php_image_call(&p->im, p->funcs[i % FUNCS], i % FUNCS == FUNCS - 1 ? 0 : (uint32_t)(i % 8),
			       i ? (i % 5 == 1 ? l->top : 0) : l->top | l->code);
	p->frame = p->im.last;
	if (php_image_read(&p->im, &p->op, sizeof(p->op), p->im.last) == 0)
		p->op += ABI_PHP_OP_SIZE;
}

/* Memory with anything in it, pointers more often than not; sometimes other registers and flags. */
static void spoil(struct arena *a, struct program *p)
{
	for (uint64_t n = seed_random(&a->run) % 60; n > 0; n--) {
		uint64_t at = AT + seed_random(&a->run) % (p->im.used / 8) * 8, value = seed_random(&a->run);

		if (value % 4)
			value = AT + seed_random(&a->run) % (p->im.used / 8) * 8;
		else if (value % 8)
			value %= 300;
		php_image_put_u64(&p->im, at, value);
	}
	if (seed_random(&a->run) % 4 == 0)
		p->pc = seed_random(&a->run);
	if (seed_random(&a->run) % 4 == 0)
		p->op = AT + seed_random(&a->run) % p->im.used;
	if (seed_random(&a->run) % 8 == 0)
		p->frame = seed_random(&a->run);
	if (seed_random(&a->run) % 8 == 0)
		p->im.info.flags ^= 1U << seed_random(&a->run) % 3;
}

static void equal_walks(void **state)
{
	static const size_t depths[] = { 1, 6, 90 };
	static struct program whole, p;
	struct arena *a = *state;
	const struct php_version *v;

	for (size_t i = 0; (v = php_version_at(i / 2)); i++) {
		size_t depth = depths[i % ARRAY_SIZE(depths)], ends[ABI_RUNTIME_END_COUNT] = { 0 };

		open_program(&whole, &v->layout, i % 2, depth);
		compare(a, &whole);
		assert_int_equal(a->run.host.runtime_end, ABI_RUNTIME_END_WHOLE);
		assert_int_equal(a->run.host.runtime_count, depth);
		for (int round = 0; round < ROUNDS; round++) {
			p = whole;
			spoil(a, &p);
			compare(a, &p);
			ends[a->run.host.runtime_end]++;
		}
		print_message(
			"  %u.%u%s, %zu frames: whole %zu, gap %zu, no state %zu, unreadable %zu, bad chain %zu\n",
			v->major, v->minor, i % 2 ? " with threads" : "", depth, ends[ABI_RUNTIME_END_WHOLE],
			ends[ABI_RUNTIME_END_GAP], ends[ABI_RUNTIME_END_NO_STATE], ends[ABI_RUNTIME_END_READ_FAILED],
			ends[ABI_RUNTIME_END_BAD_CHAIN]);
		assert_true(ends[ABI_RUNTIME_END_WHOLE] && ends[ABI_RUNTIME_END_WHOLE] < ROUNDS);
	}
}

static void lists_in_circles(void **state)
{
	static struct program p;
	struct arena *a = *state;
	const struct php_version *v;

	for (size_t i = 0; (v = php_version_at(i)); i++) {
		open_program(&p, &v->layout, false, 30);
		/* The outermost frame is the first one that was made; it is called by the innermost one. */
		for (uint64_t at = p.im.last, prev = at; prev; at = prev) {
			assert_int_equal(php_image_read(&p.im, &prev, sizeof(prev), at + v->layout.frame_prev), 0);
			if (!prev)
				php_image_put_u64(&p.im, at + v->layout.frame_prev, p.im.last);
		}
		compare(a, &p);
		assert_int_equal(a->run.host.runtime_end, ABI_RUNTIME_END_BAD_CHAIN);
	}
}

static void names_at_first_sight(void **state)
{
	static const struct {
		const char *name, *file;
	} want[FUNCS] = {
		{ "array_map_with_a_name_that_is_longer_than_both_ends", "<internal>" },
		{ "<main>", "/srv/x.php(7) : eval()'d code" },
		{ "App\\Cart::add", "/srv/www/shop/src/Cart.php" },
		{ "<main>", "/srv/www/shop/public/a/long/way/down/index.php" },
	};
	static struct program p;
	struct arena *a = *state;
	const struct php_version *v;

	seed_stay_on_one_cpu();
	for (size_t i = 0; (v = php_version_at(i)); i++) {
		open_program(&p, &v->layout, false, 2 * FUNCS);
		compare(a, &p);
		assert_int_equal(a->names.count, FUNCS); /* each once */
		for (size_t k = 0; k < FUNCS; k++) {
			assert_string_equal(a->names.first[k].name, want[k].name);
			assert_string_equal(a->names.first[k].file, want[k].file);
			assert_int_equal(a->names.first[k].key, a->run.host.frames[k].a);
			assert_int_equal(a->names.first[k].cookie, a->run.host.frames[k].b);
		}
		run_kernel(a, &p);
		assert_int_equal(a->names.count, FUNCS);
		/* The next request has another function in its place. */
		php_image_put(&p.im, p.funcs[1] + v->layout.func_line, &(uint32_t){ 77 }, 4);
		run_kernel(a, &p);
		assert_int_equal(a->names.count, FUNCS + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(equal_walks, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_in_circles, setup, teardown),
		cmocka_unit_test_setup_teardown(names_at_first_sight, setup, teardown),
	};

	bpf_tests_skip();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
