/* SPDX-License-Identifier: Apache-2.0 */
/* Jitdumps made by hand: what was where at which time. */
#include "support.h"

#include "base/buf.h"
#include "codec/jitdump.h"

#define OUT_MAX MIB(1)
#define ANY UINT64_MAX

static void put(struct buf *b, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buf_addc(b, (char)(value >> 8 * i));
}

static void header(struct buf *b, uint32_t magic, uint64_t flags)
{
	put(b, magic, 4);
	put(b, 1, 4);
	put(b, 40, 4);
	put(b, 62, 4);
	put(b, 0, 4);
	put(b, 77, 4);
	put(b, 5, 8);
	put(b, flags, 8);
}

static void record(struct buf *b, uint32_t type, uint64_t time, const struct buf *body)
{
	put(b, type, 4);
	put(b, 16 + body->len, 4);
	put(b, time, 8);
	buf_adds(b, buf_str(body));
}

static void load(struct buf *b, uint64_t time, uint64_t start, uint64_t size, uint64_t index, const char *name)
{
	struct buf body = BUF_INIT(KIB(64));

	put(&body, 77, 4);
	put(&body, 77, 4);
	put(&body, start, 8);
	put(&body, start, 8);
	put(&body, size, 8);
	put(&body, index, 8);
	buf_add(&body, name, strlen(name) + 1);
	buf_adds(&body, STR("\x90\x90\xc3")); /* the code */
	record(b, 0, time, &body);
	buf_release(&body);
}

static void move(struct buf *b, uint64_t time, uint64_t to, uint64_t index)
{
	struct buf body = BUF_INIT(KIB(4));

	put(&body, 77, 4);
	put(&body, 77, 4);
	put(&body, to, 8);
	put(&body, 0, 8);
	put(&body, to, 8);
	put(&body, 0, 8);
	put(&body, index, 8);
	record(b, 1, time, &body);
	buf_release(&body);
}

static void add_line(struct buf *body, uint64_t address, uint32_t line, const char *file)
{
	put(body, address, 8);
	put(body, line, 4);
	put(body, 0, 4);
	buf_add(body, file, strlen(file) + 1);
}

static void debug(struct buf *b, uint64_t of)
{
	struct buf body = BUF_INIT(KIB(4));

	put(&body, of, 8);
	put(&body, 3, 8);
	add_line(&body, of, 10, "a.js");
	add_line(&body, of + 8, 11, "\xff"); /* the same file */
	add_line(&body, of + 16, 3, "b.js");
	record(b, 2, 1, &body);
	buf_release(&body);
}

/* f at 0x1000, later g at the same place; h, with lines, moved from 0x3000 to 0x5000. */
static void make(struct buf *b)
{
	header(b, 0x4a695444, 0);
	load(b, 10, 0x1000, 0x100, 1, "f");
	debug(b, 0x3000);
	load(b, 20, 0x3000, 0x20, 2, "h");
	load(b, 30, 0x1080, 0x100, 3, "g");
	move(b, 40, 0x5000, 2);
	move(b, 41, 0x6000, 99); /* nobody's */
	load(b, 50, 0x7000, 0, 4, "empty");
}

static const struct {
	uint64_t address, time;
	const char *want; /* name, file and line */
} cases[] = {
	{ 0x1000, ANY, "f" },          { 0x107f, ANY, "f" },
	{ 0x1080, ANY, "g" },          { 0x1080, 29, "f" },
	{ 0x1080, 30, "g" },           { 0x10ff, 15, "f" },
	{ 0x1100, 15, NULL },          { 0x117f, ANY, "g" },
	{ 0x1180, ANY, NULL },         { 0xfff, ANY, NULL },
	{ 0x1000, 9, NULL },           { 0x3000, ANY, "h a.js:10" },
	{ 0x3007, ANY, "h a.js:10" },  { 0x3008, ANY, "h a.js:11" },
	{ 0x3010, 25, "h b.js:3" },    { 0x301f, 25, "h b.js:3" },
	{ 0x3020, ANY, NULL },         { 0x5009, ANY, "h a.js:11" },
	{ 0x5009, 39, NULL },          { 0x6000, ANY, NULL },
	{ 0x7000, ANY, NULL },         { 0, ANY, NULL },
	{ UINT64_MAX - 1, ANY, NULL },
};

static void what_was_where_and_when(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);
	scoped(jitdump_release) struct jitdump d = { 0 };
	struct cur c;

	(void)state;
	make(&bytes);
	c = guard_page(bytes.ptr, bytes.len);
	assert_int_equal(jitdump_parse(cur_rest(&c), MIB(1), &d), 0);
	assert_int_equal(d.pid, 77);
	assert_int_equal(d.time_ns, 5);
	assert_true(d.is_mono);
	assert_false(d.is_cut);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct jitdump_hit hit = { 0 };
		char found[64] = "";
		int r = jitdump_find(&d, cases[i].address, cases[i].time, &hit);

		print_message("  %llx at %llu\n", (unsigned long long)cases[i].address,
			      (unsigned long long)cases[i].time);
		assert_int_equal(r, cases[i].want ? 0 : -ENOENT);
		if (r < 0)
			continue;
		snprintf(found, sizeof(found), STR_FMT, STR_ARG(hit.name));
		if (hit.file.len)
			snprintf(found, sizeof(found), STR_FMT " " STR_FMT ":%u", STR_ARG(hit.name), STR_ARG(hit.file),
				 hit.line);
		assert_string_equal(found, cases[i].want);
	}
}

static void times_of_a_cpu_s_counter_are_not_compared(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);
	scoped(jitdump_release) struct jitdump d = { 0 };
	struct jitdump_hit hit;

	(void)state;
	header(&bytes, 0x4a695444, 1);
	load(&bytes, 1000, 0x1000, 0x100, 1, "f");
	assert_int_equal(jitdump_parse(buf_str(&bytes), MIB(1), &d), 0);
	assert_int_equal(jitdump_find(&d, 0x1000, 5, &hit), 0);
}

static void damaged_ones(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX), small = BUF_INIT(OUT_MAX);
	struct jitdump d = { 0 };
	struct jitdump_hit hit;

	(void)state;
	header(&bytes, 0x4454694a, 0);
	assert_int_equal(jitdump_parse(buf_str(&bytes), MIB(1), &d), -ENOTSUP);
	assert_int_equal(jitdump_parse(STR("DTiJ"), MIB(1), &d), -EBADMSG);
	assert_int_equal(jitdump_parse(STR(""), MIB(1), &d), -EBADMSG);
	buf_clear(&bytes);
	make(&bytes);
	for (size_t i = 40; i <= bytes.len; i++) { /* its writer is at work: good up to there */
		struct cur c = guard_page(bytes.ptr, i);

		if (i % 16) /* a page each */
			continue;
		assert_int_equal(jitdump_parse(cur_rest(&c), MIB(1), &d), 0);
		jitdump_release(&d);
	}
	header(&small, 0x4a695444, 0);
	put(&small, 0, 4);
	put(&small, 15, 4); /* smaller than what begins each record */
	put(&small, 0, 8);
	assert_int_equal(jitdump_parse(buf_str(&small), MIB(1), &d), -EBADMSG);
	/* What does not fit is left out. */
	assert_int_equal(jitdump_parse(buf_str(&bytes), 100, &d), 0);
	assert_true(d.is_cut);
	assert_int_equal(jitdump_find(&d, 0x1000, ANY, &hit), 0);
	jitdump_release(&d);
}

static int parse_failing(void *ctx)
{
	const struct buf *bytes = ctx;
	struct jitdump d = { 0 };
	int r = jitdump_parse(buf_str(bytes), MIB(1), &d);

	assert_true(r == 0 || (r == -ENOMEM && !d.loads));
	jitdump_release(&d);
	return r;
}

static void allocations_fail(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);

	(void)state;
	make(&bytes);
	for_each_failing_allocation(parse_failing, &bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_where_and_when),
		cmocka_unit_test(times_of_a_cpu_s_counter_are_not_compared),
		cmocka_unit_test(damaged_ones),
		cmocka_unit_test(allocations_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
