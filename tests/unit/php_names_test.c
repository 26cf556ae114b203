/* SPDX-License-Identifier: Apache-2.0 */
/* What PHP's functions are called: by the record that the kernel side sends, and by the process's memory. */
#include "support.h"

#include "../walk/php_image.h"
#include "runtime/php/names.h"
#include "runtime/php/php_int.h"
#include "walk/walk_php.h"

#define BASE 0x7f0000100000ULL

struct record {
	uint8_t bytes[1024];
	size_t size;
};

static void add(struct record *r, const char *text, uint16_t sent)
{
	memcpy(r->bytes + r->size, text, sent);
	r->size += align_up(sent, 8);
}

static struct record record_of(uint8_t type, const char *class_name, uint32_t class_size, const char *name,
			       uint32_t name_size, const char *file)
{
	struct record r = { .size = sizeof(struct abi_php_name) };
	struct abi_php_name head = { .first_line = 12,
				     .class_size = class_size,
				     .name_size = name_size,
				     .file_size = (uint32_t)strlen(file),
				     .class_sent = (uint16_t)MIN(class_size, 32U),
				     .name_sent = (uint16_t)MIN(name_size, 32U),
				     .file_sent = (uint16_t)strlen(file),
				     .type = type };

	memcpy(r.bytes, &head, sizeof(head));
	add(&r, class_name, head.class_sent);
	add(&r, name, head.name_sent);
	add(&r, file, head.file_sent);
	return r;
}

static void assert_text(struct str got, const char *want)
{
	assert_int_equal(got.len, strlen(want));
	assert_memory_equal(got.ptr, want, got.len);
}

static void records(void **state)
{
	static const char anonymous[] = "class@anonymous\0/srv/a.php:3$0";
	static const struct {
		const char *class_name;
		uint32_t class_size;
		const char *name;
		uint32_t name_size;
		const char *file;
		uint8_t type;
		int want;
		const char *want_name, *want_file;
		bool is_cut;
	} cases[] = {
		{ "", 0, "f", 1, "/a.php", ABI_PHP_USER, 0, "f", "/a.php", false },
		{ "A\\B", 3, "run", 3, "/a.php", ABI_PHP_USER, 0, "A\\B::run", "/a.php", false },
		{ "", 0, "", 0, "/a.php", ABI_PHP_USER, 0, "<main>", "/a.php", false },
		{ "A", 1, "", 0, "/a.php", ABI_PHP_USER, 0, "<main>", "/a.php", false },
		{ "", 0, "strlen", 6, "", ABI_PHP_INTERNAL, 0, "strlen", "<internal>", false },
		{ anonymous, sizeof(anonymous) - 1, "m", 1, "/a.php", ABI_PHP_USER, 0, "class@anonymous::m", "/a.php",
		  false },
		{ "", 0, "f\xe9", 2, "/a.php", ABI_PHP_USER, 0, "f\xc3\xa9", "/a.php", false },
		{ "", 0, "abcdefghijklmnopqrstuvwxyzabcdef", 40, "/a.php", ABI_PHP_USER, 0,
		  "abcdefghijklmnopqrstuvwxyzabcdef", "/a.php", true },
		{ "", 0, "abcdefghijklmnopqrstuvwxyzabcde\xc3", 40, "/a.php", ABI_PHP_USER, 0,
		  "abcdefghijklmnopqrstuvwxyzabcde", "/a.php", true },
		{ "", 0, "a\0b", 3, "/a.php", ABI_PHP_USER, -ENODATA, NULL, NULL, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf room = BUF_INIT(KIB(4));
		struct record r = record_of(cases[i].type, cases[i].class_name, cases[i].class_size, cases[i].name,
					    cases[i].name_size, cases[i].file);
		struct runtime_function f;

		print_message("  %zu\n", i);
		assert_int_equal(php_decode_name(r.bytes, r.size, &room, &f), cases[i].want);
		if (cases[i].want)
			continue;
		assert_text(f.name, cases[i].want_name);
		assert_text(f.file, cases[i].want_file);
		assert_int_equal(f.first_line, 12);
		assert_int_equal(f.is_cut, cases[i].is_cut);
		assert_int_equal(php_line(&f, 7), 7);
		assert_int_equal(php_line(&f, 0x80000000), 0);
		for (size_t size = 0; size < r.size; size++)
			assert_int_equal(php_decode_name(r.bytes, size, &room, &f), -EBADMSG);
	}
}

/* Texts that are being freed may be half of something else. */
static void torn_texts(void **state)
{
	static const struct {
		uint64_t name_hash, file_hash;
		int want;
	} cases[] = {
		{ 0, 0, 0 },
		{ UINT64_C(0x800000000002b60b), 0, 0 }, /* of "f" */
		{ UINT64_C(0x800000000002b60c), 0, -ENODATA },
		{ 0, UINT64_C(0x800006527c77e6eb), 0 }, /* of "/a.php" */
		{ 0, UINT64_C(0x800006527c77e6ec), -ENODATA },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf room = BUF_INIT(KIB(4));
		struct record r = record_of(ABI_PHP_USER, "", 0, "f", 1, "/a.php");
		struct runtime_function f;

		memcpy(r.bytes + offsetof(struct abi_php_name, name_hash), &cases[i].name_hash, 8);
		memcpy(r.bytes + offsetof(struct abi_php_name, file_hash), &cases[i].file_hash, 8);
		assert_int_equal(php_decode_name(r.bytes, r.size, &room, &f), cases[i].want);
	}
}

/* The place of an eval() mostly has no hash. */
static void torn_places(void **state)
{
	static const struct {
		const char *file;
		int want;
	} cases[] = {
		{ "/a.php(7) : eval()'d code", 0 },
		{ "/a.php(7) : eval()'d code(1) : eval()'d code", 0 },
		{ "/a.php(7) : eval()'d code(1) : eval()x>\x90\xda\xeb?2", -ENODATA },
		{ "/a.php(7) : eval()x>\x90\xda\xeb?2", -ENODATA },
		{ "Command line code", 0 },
		{ "x", 0 },
		{ "Command l\x01ne code", -ENODATA },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf room = BUF_INIT(KIB(4));
		struct record r = record_of(ABI_PHP_EVAL, "", 0, "", 0, cases[i].file);
		struct runtime_function f;

		assert_int_equal(php_decode_name(r.bytes, r.size, &room, &f), cases[i].want);
	}
}

static void a_text_that_was_not_in_memory(void **state)
{
	scoped(buf_release) struct buf room = BUF_INIT(KIB(4));
	const struct abi_php_name head = { .name_size = 5, .type = ABI_PHP_USER };
	struct runtime_function f;

	(void)state;
	assert_int_equal(php_decode_name((const uint8_t *)&head, sizeof(head), &room, &f), -ENODATA);
}

/* ---- of a process ---- */

struct process {
	struct php_image im;
	struct walk walk;
	struct walk_world world;
	struct runtime_target target;
	size_t reads, last_read; /* last_read: reads behind it fail; 0: none does */
};

static int process_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct process *p = self;

	if (p->last_read && ++p->reads > p->last_read)
		return -EFAULT;
	return php_image_read(&p->im, dst, size, at);
}

static struct process *open_process(void)
{
	struct process *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	php_image_open(&p->im, &php_version_find(8, 2)->layout, BASE);
	p->world = (struct walk_world){ .read = php_image_read, .self = &p->im };
	p->walk.world = &p->world;
	p->target = (struct runtime_target){ .pid = 1, .read = process_read, .self = p };
	return p;
}

static uint64_t cookie_of(struct process *p, uint64_t func)
{
	const struct abi_php_layout *l = &p->im.info.layout;

	p->im.last = 0;
	php_image_call(&p->im, func, 0, l->top | l->code);
	walk_php_start(&p->walk, &p->im.info, 0);
	while (walk_php_step(&p->walk) == WALK_MORE)
		;
	return p->walk.frames[0].b;
}

static void memory(void **state)
{
	static const struct php_image_func method = { "App\\Job", "run", "/srv/job.php", 9, ABI_PHP_USER },
					   other = { "App\\Job", "stop", "/srv/job.php", 9, ABI_PHP_USER },
					   internal = { NULL, "strlen", NULL, 0, ABI_PHP_INTERNAL };
	struct process *p = open_process();
	uint64_t func = php_image_func(&p->im, &method, 4), cookie = cookie_of(p, func), name;
	scoped(buf_release) struct buf room = BUF_INIT(KIB(4));
	struct runtime_function f;

	(void)state;
	assert_int_equal(php_read_name(&p->target, &p->im.info, func, cookie, &room, &f), 0);
	assert_text(f.name, "App\\Job::run");
	assert_text(f.file, "/srv/job.php");
	assert_int_equal(f.first_line, 9);
	assert_int_equal(php_read_name(&p->target, &p->im.info, func, cookie ^ 2, &room, &f), -ESTALE);
	/* Its file's name is just being freed: neither length nor beginning say so. */
	assert_int_equal(php_image_read(&p->im, &name, 8, func + p->im.info.layout.func_file), 0);
	php_image_put(&p->im, name + ABI_PHP_STRING_BYTES + 10, "x", 1);
	assert_int_equal(php_read_name(&p->target, &p->im.info, func, cookie_of(p, func), &room, &f), -ENODATA);
	php_image_put(&p->im, name + ABI_PHP_STRING_BYTES + 10, "h", 1);
	for (p->last_read = 1; p->last_read < 12; p->last_read++) {
		p->reads = 0;
		ignore(php_read_name(&p->target, &p->im.info, func, cookie, &room, &f));
	}
	p->last_read = 0;
	assert_int_equal(php_read_name(&p->target, &p->im.info, func, ABI_PHP_NO_COOKIE, &room, &f), -ESTALE);
	/* Another function took its place: the same file and line, at the same address. */
	assert_int_equal(php_image_read(&p->im, &name, 8, php_image_func(&p->im, &other, 4) + ABI_PHP_FUNC_NAME), 0);
	php_image_put_u64(&p->im, func + ABI_PHP_FUNC_NAME, name);
	assert_int_equal(php_read_name(&p->target, &p->im.info, func, cookie, &room, &f), -ESTALE);
	func = php_image_func(&p->im, &internal, 0);
	assert_int_equal(php_read_name(&p->target, &p->im.info, func, cookie_of(p, func), &room, &f), 0);
	assert_text(f.name, "strlen");
	assert_text(f.file, "<internal>");
	free(p);
}

/* A version that nobody tried is believed when a running script makes sense by its table, and no other one. */
static void tables_agree(void **state)
{
	static const struct php_image_func script = { NULL, NULL, "/srv/index.php", 1, ABI_PHP_USER },
					   function = { NULL, "f", "/srv/index.php", 9, ABI_PHP_USER };
	struct process *p = open_process();
	const struct php_version *v;
	uint64_t main_func = php_image_func(&p->im, &script, 6), f_func, effort = 0;

	(void)state;
	assert_int_equal(php_agrees(&p->target, &p->im.info), -EAGAIN); /* nothing runs */
	php_image_call(&p->im, main_func, 3, p->im.info.layout.top | p->im.info.layout.code);
	assert_int_equal(php_agrees(&p->target, &p->im.info), -EAGAIN); /* too little to tell */
	f_func = php_image_func(&p->im, &function, 4);
	php_image_call(&p->im, f_func, 1, 0);
	assert_int_equal(php_agrees(&p->target, &p->im.info), 1);
	for (size_t i = 0; (v = php_version_at(i)); i++) {
		struct abi_php info = p->im.info;

		info.layout = v->layout;
		if (v->layout.func_file != p->im.info.layout.func_file)
			assert_int_equal(php_agrees(&p->target, &info), -EAGAIN);
	}
	for (size_t at = 0; at + 8 <= p->im.used; at += 8) { /* anything may lie there */
		uint64_t before, value = at * 0x9e3779b97f4a7c15ULL;

		memcpy(&before, p->im.bytes + at, 8);
		memcpy(p->im.bytes + at, &value, 8);
		ignore(php_agrees(&p->target, &p->im.info));
		memcpy(p->im.bytes + at, &before, 8);
	}
	for (size_t i = 0; i < 80; i++) /* deep: what was seen is enough */
		php_image_call(&p->im, f_func, 1, 0);
	p->target.effort = &effort;
	assert_int_equal(php_agrees(&p->target, &p->im.info), 1);
	assert_int_equal(effort, 64);
	for (size_t i = 0; i < 1000 && php_agrees(&p->target, &p->im.info) == 1; i++)
		;
	assert_int_equal(php_agrees(&p->target, &p->im.info), -ENOTSUP); /* it was asked too often */
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records),     cmocka_unit_test(torn_texts),
		cmocka_unit_test(torn_places), cmocka_unit_test(a_text_that_was_not_in_memory),
		cmocka_unit_test(memory),      cmocka_unit_test(tables_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
