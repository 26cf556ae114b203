/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of Perl's frames over made-up memory: every layout, what a tick can find between two instructions, which
 * frames end an activation, and memory that lies. */
#include "support.h"

#include "../walk/perl_image.h"
#include "walk/walk_perl.h"

#define SUB WALK_PERL_CX_SUB
#define EVAL WALK_PERL_CX_EVAL
#define LOOP 8
#define RETOP 0x402000

struct seen {        /* as a frame should be */
	uint64_t cv; /* 0: key says what it is */
	uint64_t key;
	uint32_t line;
	bool ends;
};

static const struct {
	unsigned int minor;
	bool threads;
} builds[] = {
	{ 28, true },  { 28, false }, { 30, true },  { 32, true },
	{ 34, false }, { 36, true },  { 36, false }, { 42, true },
};

static enum abi_runtime_end run(struct perl_image *im, struct walk *w)
{
	size_t turns = 0;

	w->world = &im->world;
	w->tp = im->tp;
	walk_sample(w)->pid = walk_sample(w)->tid = 7;
	walk_perl_start(w, &im->info, 0);
	while (walk_perl_step(w) == WALK_MORE)
		assert_true(turns++ < WALK_PERL_TURNS);
	assert_true(w->count + w->runtime_count <= ABI_FRAMES_MAX);
	return w->runtime_end;
}

/* The frames that are there, each by kind, key's place in @keys, line and mark: "a12 b3! =". */
static void assert_frames(const struct walk *w, const struct seen *want, size_t count)
{
	assert_int_equal(w->runtime_count, count);
	for (size_t i = 0; i < count; i++) {
		const struct abi_frame *f = &w->frames[w->count + i];

		assert_int_equal(f->runtime, ABI_RUNTIME_PERL);
		if (want[i].key == UINT64_MAX) {
			assert_int_equal(f->kind, ABI_FRAME_ACTIVATION);
			continue;
		}
		assert_int_equal(f->kind, ABI_FRAME_RUNTIME);
		assert_int_equal(f->extra, want[i].line);
		assert_int_equal((f->flags & ABI_FRAME_ENTRY) != 0, want[i].ends);
		assert_int_not_equal(f->b, ABI_PERL_NO_COOKIE);
		if (want[i].key)
			assert_int_equal(f->a, want[i].key);
		else
			assert_true(f->a >= ABI_PERL_KEY_SUBS);
	}
}

struct world {
	struct perl_image *im;
	struct walk *w;
	uint64_t outer, inner;                          /* subs */
	uint64_t in_main, in_outer, in_inner, at_inner; /* statements: at_inner: its first one */
};

static struct world open_world(unsigned int minor, bool threads)
{
	struct world x = { .im = perl_image_open(minor, threads), .w = calloc(1, sizeof(*x.w)) };

	assert_non_null(x.w);
	x.in_main = perl_image_cop(x.im, "/srv/app.pl", 90);
	x.in_outer = perl_image_cop(x.im, "/srv/app.pl", 10);
	x.in_inner = perl_image_cop(x.im, "/srv/Lib.pm", 22);
	x.at_inner = perl_image_cop(x.im, "/srv/Lib.pm", 20);
	x.outer = perl_image_sub(x.im, x.im->package, "outer", 0);
	x.inner = perl_image_sub(x.im, perl_image_package(x.im, "Lib"), "inner", x.at_inner);
	return x;
}

static void close_world(struct world *x)
{
	free(x->im);
	free(x->w);
}

#define EXPECT(x, ...)                                              \
	do {                                                        \
		static const struct seen want_[] = { __VA_ARGS__ }; \
		assert_frames((x)->w, want_, ARRAY_SIZE(want_));    \
	} while (0)

static void whole_stacks(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
		struct world x = open_world(builds[i].minor, builds[i].threads);

		print_message("  5.%u %s\n", builds[i].minor, builds[i].threads ? "threads" : "plain");
		x.w->count = (uint32_t)i;
		perl_image_push(x.im, SUB, x.outer, x.in_main, RETOP);
		perl_image_push(x.im, LOOP, 0, x.in_outer, 0);
		perl_image_push(x.im, EVAL, 0, x.in_outer, RETOP);
		perl_image_push(x.im, SUB, x.inner, x.in_outer, RETOP);
		perl_image_run(x.im, x.in_inner);
		assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
		EXPECT(&x, { .line = 22 }, { .key = ABI_PERL_KEY_EVAL, .line = 10 }, { .line = 10 },
		       { .key = ABI_PERL_KEY_MAIN, .line = 90, .ends = true });
		close_world(&x);
	}
}

static void keys_are_texts(void **state)
{
	struct world x = open_world(36, true), y = open_world(28, false);
	uint64_t keys[6], cookies[2];
	struct perl_image *im = x.im;
	uint64_t lib = perl_image_package(im, "Lib"), none = perl_image_package(im, NULL);
	const uint64_t subs[] = {
		x.inner,
		perl_image_sub(im, lib, "inner", 0), /* of the same name */
		perl_image_sub(im, lib, "inner_but_with_a_longer_name_than_that", 0),
		perl_image_sub(im, none, "inner", 0),
		perl_image_named(im, lib, "inner"),
		perl_image_sub(im, lib, NULL, 0),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(subs); i++)
		perl_image_push(im, SUB, subs[i], x.in_inner, RETOP);
	perl_image_run(im, x.in_outer);
	assert_int_equal(run(im, x.w), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(x.w->runtime_count, ARRAY_SIZE(subs) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(subs); i++)
		keys[i] = x.w->frames[ARRAY_SIZE(subs) - 1 - i].a;
	assert_int_equal(keys[0], keys[1]);
	assert_int_equal(keys[0], keys[4]);
	assert_int_not_equal(keys[0], keys[2]);
	assert_int_not_equal(keys[0], keys[3]);
	assert_int_not_equal(keys[0], keys[5]);
	cookies[0] = x.w->frames[0].b;
	cookies[1] = x.w->frames[1].b;
	assert_int_not_equal(cookies[0], cookies[1]); /* app.pl, Lib.pm */
	/* another version, another build: the same texts */
	perl_image_push(y.im, SUB, y.inner, y.in_main, RETOP);
	perl_image_run(y.im, y.in_inner);
	assert_int_equal(run(y.im, y.w), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(y.w->frames[0].a, keys[0]);
	assert_int_equal(y.w->frames[0].b, cookies[1]);
	close_world(&x);
	close_world(&y);
}

static void numbers_of_evals_do_not_count(void **state)
{
	struct world x = open_world(36, true);
	uint64_t one = perl_image_cop(x.im, "(eval 1)", 3), two = perl_image_cop(x.im, "(eval 22222)", 3);

	(void)state;
	perl_image_push(x.im, SUB, x.outer, two, RETOP);
	perl_image_push(x.im, SUB, x.outer, one, RETOP);
	perl_image_run(x.im, two);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(x.w->frames[0].b, x.w->frames[1].b);
	close_world(&x);
}

/* What a tick finds between two instructions. */
static void between_two_statements(void **state)
{
	struct world x = open_world(36, true);

	(void)state;
	perl_image_push(x.im, SUB, x.outer, x.in_main, RETOP);
	perl_image_push(x.im, SUB, 0, x.in_outer, RETOP); /* popped: its sub is gone */
	perl_image_run(x.im, x.in_inner);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .line = 10 }, { .key = ABI_PERL_KEY_MAIN, .line = 90, .ends = true });
	close_world(&x);

	x = open_world(36, true); /* being pushed: what an earlier context left is there */
	perl_image_push(x.im, SUB, x.outer, x.in_main, RETOP);
	perl_image_push(x.im, SUB, x.in_inner, x.in_main, RETOP);
	perl_image_run(x.im, x.in_outer);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .line = 10 }, { .key = ABI_PERL_KEY_MAIN, .line = 90, .ends = true });
	close_world(&x);

	x = open_world(36, true); /* entered: the statement is still the caller's */
	perl_image_push(x.im, SUB, x.outer, x.in_main, RETOP);
	perl_image_push(x.im, SUB, x.inner, x.in_outer, RETOP);
	perl_image_run(x.im, x.in_outer);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .line = 20 }, { .line = 10 }, { .key = ABI_PERL_KEY_MAIN, .line = 90, .ends = true });
	close_world(&x);

	x = open_world(36, true); /* the same, and its first op is no statement */
	perl_image_push(x.im, SUB, x.outer, x.in_main, RETOP);
	perl_image_run(x.im, x.in_main);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .line = 0 }, { .key = ABI_PERL_KEY_MAIN, .line = 90, .ends = true });
	close_world(&x);
}

static void activations(void **state)
{
	struct world x = open_world(40, true);

	(void)state;
	/* a tie's method: a stack info of its own, called from C */
	perl_image_push(x.im, SUB, x.outer, x.in_main, RETOP);
	perl_image_enter(x.im, 2);
	perl_image_push(x.im, SUB, x.inner, x.in_outer, 0);
	perl_image_run(x.im, x.in_inner);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .line = 22, .ends = true }, { .line = 10 },
	       { .key = ABI_PERL_KEY_MAIN, .line = 90, .ends = true });
	close_world(&x);

	x = open_world(40, true); /* a destructor: under an eval of call_sv() */
	perl_image_enter(x.im, 6);
	perl_image_push(x.im, EVAL, 0, x.in_main, 0);
	perl_image_push(x.im, SUB, x.inner, x.in_main, 0);
	perl_image_run(x.im, x.in_inner);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .line = 22 }, { .key = ABI_PERL_KEY_EVAL, .line = 90, .ends = true },
	       { .key = ABI_PERL_KEY_MAIN, .line = 90, .ends = true });
	close_world(&x);

	x = open_world(40, true); /* call_sv() of an extension: the stack info stays */
	perl_image_push(x.im, SUB, x.outer, x.in_main, RETOP);
	perl_image_push(x.im, SUB, x.inner, x.in_outer, 0);
	perl_image_run(x.im, x.in_inner);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .line = 22, .ends = true }, { .line = 10 },
	       { .key = ABI_PERL_KEY_MAIN, .line = 90, .ends = true });
	close_world(&x);

	x = open_world(40, true); /* a sort block, which has no frame, and its last op calls a sub */
	perl_image_enter(x.im, WALK_PERL_SI_SORT);
	perl_image_push(x.im, WALK_PERL_CX_NULL, 0, x.in_main, 0);
	perl_image_run(x.im, x.in_main);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .key = UINT64_MAX }, { .key = ABI_PERL_KEY_MAIN, .line = 90, .ends = true });
	perl_image_push(x.im, SUB, x.inner, x.in_main, 0);
	perl_image_run(x.im, x.in_inner);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .line = 22, .ends = true }, { .key = ABI_PERL_KEY_MAIN, .line = 90, .ends = true });
	close_world(&x);

	x = open_world(40, true); /* List::Util's block */
	perl_image_enter(x.im, WALK_PERL_SI_MULTICALL);
	perl_image_push(x.im, SUB | WALK_PERL_CX_MULTICALL, x.inner, x.in_main, 0);
	perl_image_run(x.im, x.in_inner);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .line = 22, .ends = true }, { .key = ABI_PERL_KEY_MAIN, .line = 90, .ends = true });
	close_world(&x);
}

/* Code of a regular expression in the sub around it; try blocks: caller() does not show them. */
static void contexts_without_frames(void **state)
{
	struct world x = open_world(42, true);

	(void)state;
	perl_image_push(x.im, EVAL | WALK_PERL_CX_TRY, 0, x.in_main, RETOP);
	perl_image_push(x.im, SUB | WALK_PERL_CX_FAKE, x.outer, x.in_main, RETOP);
	perl_image_run(x.im, x.in_main);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .key = ABI_PERL_KEY_MAIN, .line = 90, .ends = true });
	close_world(&x);
}

/* BEGIN while the program is compiled: no loop runs the program. A thread: its first sub is the root. */
static void roots(void **state)
{
	struct world x = open_world(36, true);
	uint64_t compiling = perl_image_cop(x.im, "/srv/app.pl", 5), none;

	(void)state;
	perl_image_put(x.im, compiling + ABI_PERL_OP_FUNCTION, 8, 0);
	perl_image_enter(x.im, 9);
	perl_image_push(x.im, EVAL, 0, compiling, 0);
	perl_image_push(x.im, SUB, x.inner, compiling, 0);
	perl_image_run(x.im, x.in_inner);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .line = 22 }, { .key = ABI_PERL_KEY_EVAL, .line = 5 },
	       { .key = ABI_PERL_KEY_MAIN, .line = 5, .ends = true });
	close_world(&x);

	x = open_world(36, true);
	none = perl_image_cop(x.im, NULL, 0);
	perl_image_push(x.im, EVAL, 0, none, 0);
	perl_image_push(x.im, SUB, x.inner, none, 0);
	perl_image_run(x.im, x.in_inner);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .line = 22 }, { .key = ABI_PERL_KEY_EVAL, .line = 0, .ends = true });
	x.im->info.first = 1; /* another thread's: what it says of a program is a copy */
	perl_image_put(x.im, none + ABI_PERL_COP_LINE, 4, 12);
	perl_image_put(x.im, none + ABI_PERL_COP_FILE, 8, perl_image_get(x.im, x.in_main + ABI_PERL_COP_FILE));
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	EXPECT(&x, { .line = 22 }, { .key = ABI_PERL_KEY_EVAL, .line = 12, .ends = true });
	close_world(&x);

	x = open_world(36, true); /* nothing runs */
	perl_image_run(x.im, 0);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_NO_STATE);
	assert_int_equal(x.w->runtime_count, 0);
	close_world(&x);
}

static void deep_stacks(void **state)
{
	struct world x = open_world(36, true);

	(void)state;
	for (int i = 0; i < 60; i++)
		perl_image_push(x.im, SUB, i % 2 ? x.inner : x.outer, i ? x.in_outer : x.in_main, RETOP);
	perl_image_run(x.im, x.in_inner);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(x.w->runtime_count, 61);
	/* one read in nine for contexts, two per statement: more is waste */
	print_message("  %zu reads\n", x.im->reads);
	close_world(&x);
}

static void threads_without_perl(void **state)
{
	struct world x = open_world(36, true);

	(void)state;
	perl_image_put(x.im, x.im->tp + 8, 8, 0);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_NO_STATE);
	close_world(&x);
	x = open_world(36, false);
	perl_image_run(x.im, x.in_main);
	x.w->world = &x.im->world;
	walk_sample(x.w)->pid = 7;
	walk_sample(x.w)->tid = 8;
	walk_perl_start(x.w, &x.im->info, 0);
	while (walk_perl_step(x.w) == WALK_MORE)
		;
	assert_int_equal(x.w->runtime_end, ABI_RUNTIME_END_NO_STATE);
	close_world(&x);
}

static void memory_that_lies(void **state)
{
	struct world x = open_world(36, true);
	uint64_t info = x.im->stack_info;

	(void)state;
	perl_image_push(x.im, SUB, x.outer, x.in_main, RETOP);
	perl_image_run(x.im, x.in_outer);
	perl_image_put(x.im, info + ABI_PERL_INFO_PREVIOUS, 8, info); /* goes in circles */
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_FRAME_LIMIT);
	perl_image_put(x.im, info + ABI_PERL_INFO_PREVIOUS, 8, 0);
	perl_image_put(x.im, info + ABI_PERL_INFO_INDEX, 4, 4000);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_BAD_CHAIN);
	perl_image_put(x.im, info + ABI_PERL_INFO_INDEX, 4, 0);
	perl_image_put(x.im, info + ABI_PERL_INFO_CONTEXTS, 8, 0x1000);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_READ_FAILED);
	close_world(&x);
}

/* A hole at any place: the walk ends, and a name that cannot be read has no cookie. */
static void memory_with_holes(void **state)
{
	struct world x = open_world(32, true);

	(void)state;
	perl_image_push(x.im, SUB, x.outer, x.in_main, RETOP);
	perl_image_push(x.im, SUB, x.inner, x.in_outer, RETOP);
	perl_image_run(x.im, x.in_inner);
	x.im->hole_size = 8;
	for (x.im->hole = PERL_IMAGE_AT; x.im->hole < PERL_IMAGE_AT + x.im->used; x.im->hole += 8)
		assert_in_range(run(x.im, x.w), ABI_RUNTIME_END_NONE + 1, ABI_RUNTIME_END_COUNT - 1);
	x.im->hole = x.outer;
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(x.w->frames[1].a, x.outer);
	assert_int_equal(x.w->frames[1].b, ABI_PERL_NO_COOKIE);
	x.im->hole = x.inner; /* of the innermost sub: its caller does not get its line */
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(x.w->runtime_count, 3);
	assert_int_equal(x.w->frames[0].a, x.inner);
	assert_int_equal(x.w->frames[0].b, ABI_PERL_NO_COOKIE);
	assert_int_equal(x.w->frames[0].extra, 0);
	assert_int_equal(x.w->frames[1].extra, 10);
	x.im->hole = x.in_main; /* of the program's statement, and of its file's name */
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_READ_FAILED);
	assert_int_equal(x.w->runtime_count, 2);
	x.im->hole = perl_image_get(x.im, x.in_main + ABI_PERL_COP_FILE);
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_READ_FAILED);
	x.im->hole = x.im->tp + 8; /* of the thread's interpreter */
	assert_int_equal(run(x.im, x.w), ABI_RUNTIME_END_READ_FAILED);
	close_world(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_stacks),
		cmocka_unit_test(keys_are_texts),
		cmocka_unit_test(numbers_of_evals_do_not_count),
		cmocka_unit_test(between_two_statements),
		cmocka_unit_test(activations),
		cmocka_unit_test(contexts_without_frames),
		cmocka_unit_test(roots),
		cmocka_unit_test(deep_stacks),
		cmocka_unit_test(threads_without_perl),
		cmocka_unit_test(memory_that_lies),
		cmocka_unit_test(memory_with_holes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
