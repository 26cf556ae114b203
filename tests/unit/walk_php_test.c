/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of PHP's frames over made-up memory: every layout, where the innermost line comes from, what a tick can find
 * between two instructions, and memory that lies. */
#include "support.h"

#include "../walk/php_image.h"
#include "runtime/php/versions/layouts.h"
#include "walk/walk_php.h"

#define BASE 0x7f0000100000ULL
#define TURNS_MAX (4 * ABI_FRAMES_MAX)
#define OPS 8

struct fixture {
	struct php_image im;
	struct walk walk;
	struct walk_world world;
	uint64_t main, method, array_map, include, eval, fiber;
};

static const struct php_image_func functions[] = {
	{ NULL, NULL, "/srv/www/index.php", 1, ABI_PHP_USER },
	{ "App\\Job", "runWithAVeryLongNameThatGoesOnAndOn_1", "/srv/www/job.php", 20, ABI_PHP_USER },
	{ NULL, "array_map", NULL, 0, ABI_PHP_INTERNAL },
	{ NULL, NULL, "/srv/www/lib.php", 1, ABI_PHP_USER },
	{ NULL, NULL, "/srv/www/index.php(7) : eval()'d code", 1, ABI_PHP_EVAL },
	{ NULL, NULL, NULL, 0, ABI_PHP_INTERNAL },
};

static struct fixture *open_fixture(const struct abi_php_layout *layout)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	php_image_open(&f->im, layout, BASE);
	f->world = (struct walk_world){ .read = php_image_read, .self = &f->im };
	f->walk.world = &f->world;
	f->main = php_image_func(&f->im, &functions[0], OPS);
	f->method = php_image_func(&f->im, &functions[1], OPS);
	f->array_map = php_image_func(&f->im, &functions[2], 0);
	f->include = php_image_func(&f->im, &functions[3], OPS);
	f->eval = php_image_func(&f->im, &functions[4], OPS);
	f->fiber = php_image_func(&f->im, &functions[5], 0);
	return f;
}

static struct fixture *newest(void)
{
	return open_fixture(&php_version_find(8, 4)->layout);
}

static enum abi_runtime_end run(struct fixture *f)
{
	struct walk *w = &f->walk;

	walk_php_start(w, &f->im.info, 0);
	for (size_t turns = 0; walk_php_step(w) == WALK_MORE; turns++)
		assert_true(turns < TURNS_MAX);
	assert_true(w->count + w->runtime_count <= ABI_FRAMES_MAX);
	assert_true(w->runtime_end < ABI_RUNTIME_END_COUNT);
	return w->runtime_end;
}

static const struct abi_frame *frame_at(const struct fixture *f, size_t i)
{
	assert_true(i < f->walk.runtime_count);
	return &f->walk.frames[f->walk.count + i];
}

static void assert_frame(const struct fixture *f, size_t i, uint64_t func, uint32_t line, uint8_t flags)
{
	const struct abi_frame *frame = frame_at(f, i);

	assert_int_equal(frame->kind, ABI_FRAME_RUNTIME);
	assert_int_equal(frame->runtime, ABI_RUNTIME_PHP);
	assert_int_equal(frame->a, func);
	assert_int_not_equal(frame->b, ABI_PHP_NO_COOKIE);
	assert_int_equal(frame->extra, line);
	assert_int_equal(frame->flags, flags);
}

static uint32_t top_of(const struct fixture *f)
{
	return f->im.info.layout.top;
}

static uint32_t script_of(const struct fixture *f)
{
	return f->im.info.layout.top | f->im.info.layout.code;
}

static void whole_stacks(void **state)
{
	const struct php_version *v;

	(void)state;
	for (size_t i = 0; (v = php_version_at(i)); i++) {
		struct fixture *f = open_fixture(&v->layout);

		f->walk.count = 3; /* behind so many others */
		php_image_call(&f->im, f->main, 2, script_of(f));
		php_image_call(&f->im, f->include, 0, f->im.info.layout.code);
		php_image_call(&f->im, f->array_map, 0, 0);
		php_image_call(&f->im, f->method, 5, top_of(f));
		php_image_call(&f->im, f->eval, 1, f->im.info.layout.code);
		assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
		assert_int_equal(f->walk.runtime_count, 5);
		assert_frame(f, 0, f->eval, 3, 0);
		assert_frame(f, 1, f->method, 26, ABI_FRAME_ENTRY);
		assert_frame(f, 2, f->array_map, 0, 0);
		assert_frame(f, 3, f->include, 2, 0);
		assert_frame(f, 4, f->main, 4, ABI_FRAME_ENTRY);
		free(f);
	}
}

static void no_script_runs(void **state)
{
	struct fixture *f = newest();

	(void)state;
	assert_int_equal(run(f), ABI_RUNTIME_END_NO_STATE);
	f->im.info.globals = 4096;
	assert_int_equal(run(f), ABI_RUNTIME_END_READ_FAILED);
	free(f);
}

static void threads_have_globals_of_their_own(void **state)
{
	struct fixture *f = newest();
	uint64_t tcb = php_image_alloc(&f->im, 64) + 32;

	(void)state;
	php_image_call(&f->im, f->main, 2, script_of(f));
	f->im.info.flags = ABI_PHP_THREADS;
	f->im.info.tls_at = -8;
	f->im.info.tls_offset = 512;
	f->walk.tp = tcb;
	assert_int_equal(run(f), ABI_RUNTIME_END_NO_STATE);
	php_image_put_u64(&f->im, tcb - 8, f->im.info.globals - 512);
	assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
	assert_frame(f, 0, f->main, 4, ABI_FRAME_ENTRY);
	f->walk.tp = 4096;
	assert_int_equal(run(f), ABI_RUNTIME_END_READ_FAILED);
	f->walk.tp = 0;
	assert_int_equal(run(f), ABI_RUNTIME_END_NO_STATE);
	free(f);
}

/* What the loop has in its registers is right where it wrote nothing down. */
static void innermost_line(void **state)
{
	struct fixture *f = newest();
	struct walk *w = &f->walk;
	uint64_t frame, ops = 0;

	(void)state;
	php_image_call(&f->im, f->main, 2, script_of(f));
	frame = php_image_call(&f->im, f->method, 1, 0);
	f->im.info.flags = ABI_PHP_R14_R15;
	f->im.info.loop_low = 0x400000;
	f->im.info.loop_size = 0x8000;
	assert_int_equal(php_image_read(&f->im, &ops, 8, f->method + f->im.info.layout.func_opcodes), 0);
	w->leaf[WALK_REG_PC] = 0x400100;
	w->leaf[WALK_PHP_REG_FRAME] = frame;
	w->leaf[WALK_PHP_REG_OP] = ops + 6 * ABI_PHP_OP_SIZE;
	run(f);
	assert_frame(f, 0, f->method, 27, 0);
	assert_frame(f, 1, f->main, 4, ABI_FRAME_ENTRY);        /* of a caller the frame says it */
	w->leaf[WALK_PHP_REG_OP] = ops + OPS * ABI_PHP_OP_SIZE; /* another function's */
	run(f);
	assert_frame(f, 0, f->method, 0, 0);
	w->leaf[WALK_PHP_REG_OP] = ops + 6 * ABI_PHP_OP_SIZE + 8; /* no operation's */
	run(f);
	assert_frame(f, 0, f->method, 0, 0);
	w->leaf[WALK_PHP_REG_FRAME] = frame - 80; /* it leaves a function: this one was saved at the call */
	run(f);
	assert_frame(f, 0, f->method, 22, 0);
	w->leaf[WALK_REG_PC] = 0x500000; /* C code, which has both registers for itself */
	w->leaf[WALK_PHP_REG_FRAME] = frame;
	w->leaf[WALK_PHP_REG_OP] = 7;
	run(f);
	assert_frame(f, 0, f->method, 22, 0);
	w->range_count = 1; /* compiled code writes nothing down */
	w->ranges[0] = (struct abi_code_range){ .low = 0x500000, .size = 64, .runtime = ABI_RUNTIME_PHP };
	run(f);
	assert_frame(f, 0, f->method, 0, 0);
	w->leaf[WALK_REG_PC] = 0x400100; /* but the loop does */
	w->leaf[WALK_PHP_REG_OP] = ops + 6 * ABI_PHP_OP_SIZE;
	run(f);
	assert_frame(f, 0, f->method, 27, 0);
	w->leaf[WALK_REG_PC] = 0x500000;
	w->leaf[WALK_PHP_REG_OP] = 7;
	w->range_count = 0;
	php_image_put_u64(&f->im, frame + ABI_PHP_FRAME_OPLINE, ops - ABI_PHP_OP_SIZE);
	run(f);
	assert_frame(f, 0, f->method, 0, 0);
	free(f);
}

/* What the compiler made runs in execute_ex's frame. */
static void compiled_code(void **state)
{
	struct fixture *f = newest();
	struct walk *w = &f->walk;

	(void)state;
	w->pc = 0x500000;
	w->sp = 0x7ff000;
	walk_begin_step(w);
	assert_int_equal(walk_stepped(w, walk_php_compiled_step(w, &f->im.info)), WALK_MORE);
	assert_true(w->passed); /* the native rules have to do */
	f->im.info.body = 0x404000;
	assert_int_equal(walk_stepped(w, walk_php_compiled_step(w, &f->im.info)), WALK_MORE);
	assert_int_equal(w->pc, 0x404000);
	assert_int_equal(w->sp, 0x7ff000);
	free(f);
}

static void left_out(void **state)
{
	struct fixture *f = newest();

	(void)state;
	php_image_call(&f->im, f->main, 2, script_of(f));
	php_image_call(&f->im, 0, 0, 0);        /* yield from */
	php_image_call(&f->im, f->fiber, 0, 0); /* the bottom of a fiber */
	php_image_call(&f->im, f->method, 1, top_of(f));
	assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(f->walk.runtime_count, 2);
	assert_frame(f, 0, f->method, 22, ABI_FRAME_ENTRY);
	assert_frame(f, 1, f->main, 4, ABI_FRAME_ENTRY | ABI_FRAME_OTHER_STACK);
	free(f);
}

/* Lists that end early. */
static void gaps(void **state)
{
	struct fixture *f = newest();
	const uint8_t freed = 0;

	(void)state;
	php_image_call(&f->im, f->method, 1, top_of(f) | f->im.info.layout.generator);
	assert_int_equal(run(f), ABI_RUNTIME_END_GAP);
	assert_frame(f, 0, f->method, 22, ABI_FRAME_ENTRY | ABI_FRAME_GAP);
	f->im.last = 0; /* a function that the engine calls behind the script's end */
	php_image_call(&f->im, f->method, 1, top_of(f));
	assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
	f->im.last = 0;
	php_image_call(&f->im, f->method, 1, 0);
	assert_int_equal(run(f), ABI_RUNTIME_END_GAP);
	f->im.last = 0; /* a fiber that is just being entered */
	php_image_call(&f->im, f->fiber, 0, 0);
	php_image_call(&f->im, f->method, 1, top_of(f));
	assert_int_equal(run(f), ABI_RUNTIME_END_GAP);
	assert_frame(f, 0, f->method, 22, ABI_FRAME_ENTRY | ABI_FRAME_GAP);
	php_image_call(&f->im, f->fiber, 0, 0);
	f->im.last = 0;
	php_image_call(&f->im, f->main, 2, script_of(f));
	php_image_call(&f->im, f->include, 1, f->im.info.layout.code);
	php_image_put(&f->im, f->include, &freed, 1);
	assert_int_equal(run(f), ABI_RUNTIME_END_GAP);
	assert_int_equal(f->walk.runtime_count, 1);
	php_image_call(&f->im, f->method, 1, 0);
	assert_int_equal(run(f), ABI_RUNTIME_END_BAD_CHAIN); /* no innermost frame */
	free(f);
}

/* ---- cookies ---- */

static uint64_t cookie_of(struct fixture *f, uint64_t func)
{
	f->im.last = 0;
	php_image_call(&f->im, func, 0, script_of(f));
	run(f);
	return frame_at(f, 0)->b;
}

static void cookies_tell_texts_apart(void **state)
{
	struct fixture *f = newest();
	static const struct php_image_func others[] = {
		{ NULL, "f", "/srv/www/a.php", 3, ABI_PHP_USER },
		{ NULL, "g", "/srv/www/a.php", 3, ABI_PHP_USER },
		{ NULL, "f", "/srv/www/a.php", 4, ABI_PHP_USER },
		{ NULL, "f", "/srv/www/b.php", 3, ABI_PHP_USER },
		{ NULL, "f", "/srv/www/a.php.", 3, ABI_PHP_USER },
		{ NULL, "abcdefghijklmnopqrstuvwxyzabcdefghij_1", "/srv/www/a.php", 3, ABI_PHP_USER },
		{ NULL, "abcdefghijklmnopqrstuvwxyzabcdefghij_2", "/srv/www/a.php", 3, ABI_PHP_USER },
		{ "C", "f", "/srv/www/a.php", 3, ABI_PHP_USER },
		{ NULL, NULL, "/srv/www/a.php", 3, ABI_PHP_USER },
		{ NULL, NULL, "/srv/www/a.php", 3, ABI_PHP_EVAL },
	};
	uint64_t seen[ARRAY_SIZE(others)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		seen[i] = cookie_of(f, php_image_func(&f->im, &others[i], 1));
		assert_int_not_equal(seen[i], ABI_PHP_NO_COOKIE);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(seen[i], seen[k]);
	}
	/* Another copy of the same function elsewhere has the same one. */
	assert_int_equal(cookie_of(f, php_image_func(&f->im, &others[0], 1)), seen[0]);
	assert_int_equal(cookie_of(f, php_image_func(&f->im, &others[5], 1)), seen[5]);
	free(f);
}

/* What lies behind a text does not count, and the memory may end there. */
static void cookie_at_the_end_of_memory(void **state)
{
	static const struct php_image_func last = { NULL, "f", NULL, 0, ABI_PHP_INTERNAL };
	struct fixture *f = newest();
	uint64_t frame, func, first;

	(void)state;
	php_image_call(&f->im, f->main, 0, script_of(f));
	func = php_image_func(&f->im, &last, 0);
	frame = php_image_call(&f->im, func, 0, 0);
	assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
	first = frame_at(f, 0)->b;
	func = php_image_func(&f->im, &last, 0); /* its text is the last that there is */
	php_image_put_u64(&f->im, frame + ABI_PHP_FRAME_FUNC, func);
	assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(frame_at(f, 0)->b, first);
	free(f);
}

/* ---- memory that lies ---- */

static void circles(void **state)
{
	struct fixture *f = newest();
	uint64_t first;

	(void)state;
	first = php_image_call(&f->im, f->main, 0, 0);
	for (size_t i = 0; i < 20; i++)
		php_image_call(&f->im, f->method, 0, 0);
	php_image_put_u64(&f->im, first + f->im.info.layout.frame_prev, f->im.last);
	assert_int_equal(run(f), ABI_RUNTIME_END_BAD_CHAIN);
	php_image_put_u64(&f->im, first + f->im.info.layout.frame_prev, first);
	assert_int_equal(run(f), ABI_RUNTIME_END_BAD_CHAIN);
	php_image_put_u64(&f->im, first + f->im.info.layout.frame_prev, first + 4);
	assert_int_equal(run(f), ABI_RUNTIME_END_BAD_CHAIN);
	php_image_put_u64(&f->im, first + f->im.info.layout.frame_prev, 64);
	assert_int_equal(run(f), ABI_RUNTIME_END_READ_FAILED);
	free(f);
}

static void record_is_full(void **state)
{
	struct fixture *f = newest();

	(void)state;
	f->walk.count = ABI_FRAMES_MAX - 2;
	for (size_t i = 0; i < 5; i++)
		php_image_call(&f->im, f->main, 0, script_of(f));
	assert_int_equal(run(f), ABI_RUNTIME_END_FRAME_LIMIT);
	assert_int_equal(f->walk.runtime_count, 2);
	free(f);
}

/* Any one word may be anything: the walk ends, and within the record. */
static void every_word_lies(void **state)
{
	struct fixture *f = newest();

	(void)state;
	php_image_call(&f->im, f->main, 2, script_of(f));
	php_image_call(&f->im, f->array_map, 0, 0);
	php_image_call(&f->im, f->method, 5, top_of(f));
	for (size_t at = 0; at + 8 <= f->im.used; at += 8) {
		const uint64_t values[] = { 0, 1, ~0ULL, f->im.last, f->method, 0x7fffffffffffffffULL };
		uint64_t before;

		memcpy(&before, f->im.bytes + at, sizeof(before));
		for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
			memcpy(f->im.bytes + at, &values[i], sizeof(before));
			run(f);
		}
		memcpy(f->im.bytes + at, &before, sizeof(before));
	}
	free(f);
}

static void request_of_the_thread(void **state)
{
	struct fixture *f = newest();
	struct abi_php info = f->im.info;
	uint64_t slot = php_image_alloc(&f->im, 16), globals = php_image_alloc(&f->im, 2048);

	(void)state;
	assert_int_equal(walk_php_request_at(&f->walk, &info, 1), 0); /* the file does not say where it is */
	info.request = 0x1000;
	assert_int_equal(walk_php_request_at(&f->walk, &info, 1), 0x1000);
	assert_int_equal(walk_php_request_at(&f->walk, &info, 0), 0); /* that of another thread */
	info.flags |= ABI_PHP_STALE;
	info.globals = globals;
	php_image_put_u64(&f->im, globals + info.layout.current, 0x2000);
	*(struct abi_php *)f->walk.info = info;
	assert_int_equal(walk_php_request_at(&f->walk, &info, 1), 0x1000);
	php_image_put_u64(&f->im, globals + info.layout.current, 0); /* the script has ended */
	assert_int_equal(walk_php_request_at(&f->walk, &info, 1), 0);
	info.flags &= ~(__u32)ABI_PHP_STALE;
	info.flags |= ABI_PHP_THREADS;
	info.tls_at = -8;
	f->walk.tp = slot + 8;
	assert_int_equal(walk_php_request_at(&f->walk, &info, 0), 0); /* this thread runs nothing of PHP */
	php_image_put_u64(&f->im, slot, 0x5000);
	assert_int_equal(walk_php_request_at(&f->walk, &info, 0), 0x6000);
	f->walk.tp = 0;
	assert_int_equal(walk_php_request_at(&f->walk, &info, 0), 0);
	f->walk.tp = 8;
	assert_int_equal(walk_php_request_at(&f->walk, &info, 0), 0);
	free(f);
}

#define CONTEXT_SIZE (ABI_PHP_FCGI_TABLE + 128 * 8)

static uint64_t add_variable(struct fixture *f, uint64_t context, const char *name, const char *value)
{
	uint64_t slot = context + ABI_PHP_FCGI_TABLE + 35 * 8, at = php_image_alloc(&f->im, 64), next;
	uint64_t name_at = php_image_alloc(&f->im, 32), value_at = php_image_alloc(&f->im, 32);
	struct walk_php_variable v = {
		.hash = 1955, .name_size = (uint32_t)strlen(name), .name = name_at, .value = value_at
	};

	php_image_put(&f->im, name_at, name, strlen(name) + 1);
	php_image_put(&f->im, value_at, value, strlen(value) + 1);
	assert_int_equal(php_image_read(&f->im, &next, sizeof(next), slot), 0);
	v.next = next;
	php_image_put(&f->im, at, &v, sizeof(v));
	php_image_put_u64(&f->im, slot, at);
	return value_at;
}

static void uri_of_a_web_server(void **state)
{
	struct fixture *f = newest();
	uint64_t context = php_image_alloc(&f->im, CONTEXT_SIZE), want;

	(void)state;
	assert_int_equal(walk_php_fcgi_uri(&f->walk, 0), 0);
	assert_int_equal(walk_php_fcgi_uri(&f->walk, context), 0);
	assert_int_equal(walk_php_fcgi_uri(&f->walk, context + 1), 0);
	assert_int_equal(walk_php_fcgi_uri(&f->walk, 0x10000), 0); /* nothing is there */
	add_variable(f, context, "REQUEST_URL", "/wrong");
	add_variable(f, context, "REQUEST_URI_", "/wrong");
	assert_int_equal(walk_php_fcgi_uri(&f->walk, context), 0);
	want = add_variable(f, context, "REQUEST_URI", "/right");
	assert_int_equal(walk_php_fcgi_uri(&f->walk, context), want);
	for (size_t i = 0; i < 3; i++) /* others whose hash is the same */
		add_variable(f, context, "SOMETHING", "/wrong");
	assert_int_equal(walk_php_fcgi_uri(&f->walk, context), want);
	add_variable(f, context, "SOMETHING", "/wrong");
	assert_int_equal(walk_php_fcgi_uri(&f->walk, context), 0); /* so many there never are */
	free(f);
}

static void queries_are_cut(void **state)
{
	static const char *const ends[] = {
		"", "?", "?a=1&b=2", "#x", "?#", "#?", "?????????????????????", "?\xbf\xff\x01"
	};
	__u64 words[4];

	(void)state;
	for (size_t length = 0; length < sizeof(words); length++)
		for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
			char text[sizeof(words)] = { 0 }, want[sizeof(words)] = { 0 };
			size_t size = MIN(strlen(ends[i]), sizeof(text) - length);

			for (size_t at = 0; at < length; at++) /* with neighbours of '?' and '#' */
				want[at] = text[at] = "/a>@\"$\xbf\xa3\x01\xff"[at % 10];
			memcpy(text + length, ends[i], size);
			memcpy(words, text, sizeof(words));
			walk_php_cut_query(words, 4);
			assert_memory_equal(words, want, sizeof(words));
		}
}

static void request_keys_differ(void **state)
{
	__u64 words[26] = { 0 }, before = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words) * 64; i++) {
		__u64 key;

		memset(words, 0, sizeof(words));
		words[i / 64] = UINT64_C(1) << i % 64;
		key = walk_php_request_key(words, 26);
		assert_int_not_equal(key, 0);
		assert_int_not_equal(key, before);
		before = key;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_stacks),
		cmocka_unit_test(no_script_runs),
		cmocka_unit_test(threads_have_globals_of_their_own),
		cmocka_unit_test(innermost_line),
		cmocka_unit_test(compiled_code),
		cmocka_unit_test(left_out),
		cmocka_unit_test(gaps),
		cmocka_unit_test(cookies_tell_texts_apart),
		cmocka_unit_test(cookie_at_the_end_of_memory),
		cmocka_unit_test(circles),
		cmocka_unit_test(record_is_full),
		cmocka_unit_test(every_word_lies),
		cmocka_unit_test(request_of_the_thread),
		cmocka_unit_test(uri_of_a_web_server),
		cmocka_unit_test(queries_are_cut),
		cmocka_unit_test(request_keys_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
