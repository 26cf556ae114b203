/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/io.h"
#include "proc/maps.h"
#include "proc/proc_read.h"

static void lines(void **state)
{
	static const struct {
		const char *name, *text;
		int want;
		struct maps_line line;
	} cases[] = {
		{ "code of a file",
		  "55d2-55d3 r-xp 00002000 fe:1a 247278                     /usr/bin/head\n",
		  1,
		  { .start = 0x55d2,
		    .end = 0x55d3,
		    .offset = 0x2000,
		    .inode = 247278,
		    .device_major = 0xfe,
		    .device_minor = 0x1a,
		    .readable = true,
		    .executable = true,
		    .path = STR("/usr/bin/head") } },
		{ "anonymous",
		  "1000-2000 rwxp 00000000 00:00 0 \n",
		  1,
		  { .start = 0x1000, .end = 0x2000, .readable = true, .writable = true, .executable = true } },
		{ "anonymous, no blank",
		  "1000-2000 ---s 00000000 00:00 0\n",
		  1,
		  { .start = 0x1000, .end = 0x2000, .shared = true } },
		{ "vsyscall",
		  "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n",
		  1,
		  { .start = 0xffffffffff600000,
		    .end = 0xffffffffff601000,
		    .executable = true,
		    .path = STR("[vsyscall]") } },
		{ "deleted",
		  "1-2 r-xp 0 00:01 9 /memfd:jit (deleted)\n",
		  1,
		  { .start = 1,
		    .end = 2,
		    .device_minor = 1,
		    .inode = 9,
		    .readable = true,
		    .executable = true,
		    .deleted = true,
		    .path = STR("/memfd:jit") } },
		{ "blanks and a newline in the name",
		  "1-2 r-xp 0 00:01 9      /a b\\012c d\n",
		  1,
		  { .start = 1,
		    .end = 2,
		    .device_minor = 1,
		    .inode = 9,
		    .readable = true,
		    .executable = true,
		    .path = STR("/a b\\012c d") } },
		{ "end", "", 0, { 0 } },
		{ "cut off", "1000-2000 r-xp 0 00:00 0", -EBADMSG, { 0 } },
		{ "empty line", "\n", -EBADMSG, { 0 } },
		{ "nothing mapped", "2000-2000 r-xp 0 00:00 0\n", -EBADMSG, { 0 } },
		{ "backwards", "2000-1000 r-xp 0 00:00 0\n", -EBADMSG, { 0 } },
		{ "17 digits", "10000000000000000-20000000000000000 r-xp 0 00:00 0\n", -EBADMSG, { 0 } },
		{ "odd rights", "1-2 r+xp 0 00:00 0\n", -EBADMSG, { 0 } },
		{ "short rights", "1-2 r-x\n", -EBADMSG, { 0 } },
		{ "big device", "1-2 r-xp 0 100000000:00 0\n", -EBADMSG, { 0 } },
		{ "negative inode", "1-2 r-xp 0 00:00 -1\n", -EBADMSG, { 0 } },
		{ "no inode", "1-2 r-xp 0 00:00 \n", -EBADMSG, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur bytes = guard_page(cases[i].text, strlen(cases[i].text));
		struct str rest = cur_rest(&bytes);
		struct maps_line got = { 0 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(maps_next(&rest, &got), cases[i].want);
		assert_int_equal(rest.len, 0);
		assert_true(str_eq(got.path, cases[i].line.path));
		got.path = cases[i].line.path;
		assert_true(got.start == cases[i].line.start && got.end == cases[i].line.end);
		assert_true(got.offset == cases[i].line.offset && got.inode == cases[i].line.inode);
		assert_int_equal(got.device_major, cases[i].line.device_major);
		assert_int_equal(got.device_minor, cases[i].line.device_minor);
		assert_int_equal(got.executable, cases[i].line.executable);
		assert_int_equal(got.writable, cases[i].line.writable);
		assert_int_equal(got.shared, cases[i].line.shared);
		assert_int_equal(got.deleted, cases[i].line.deleted);
	}
}

static void goes_on_behind_a_bad_line(void **state)
{
	struct str rest = STR("rubbish\n1-2 r-xp 0 00:00 0 \n");
	struct maps_line line;

	(void)state;
	assert_int_equal(maps_next(&rest, &line), -EBADMSG);
	assert_int_equal(maps_next(&rest, &line), 1);
	assert_int_equal(maps_next(&rest, &line), 0);
}

static void every_line_of_our_own(void **state)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
	bool found = false;
	struct maps_line line;
	struct str rest;
	int r;

	(void)state;
	assert_int_equal(io_read_file("/proc/self/maps", &text), 0);
	rest = buf_str(&text);
	while ((r = maps_next(&rest, &line)) != 0) {
		uint64_t here = (uint64_t)(uintptr_t)every_line_of_our_own;

		assert_int_equal(r, 1);
		found |= line.executable && line.start <= here && here < line.end;
	}
	assert_true(found);
}

static void stat_lines(void **state)
{
	static const struct {
		const char *name, *text;
		int want;
		const char *comm;
		uint64_t start;
		bool is_kernel, is_zombie;
	} cases[] = {
		{ "plain", "7 (cat) R 3 7 3 34816 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 8900 1 1\n", 0, "cat", 8900, false,
		  false },
		{ "kernel thread", "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 31 0 0\n", 0, "kthreadd",
		  31, true, false },
		{ "hostile name", "7 (a) Z 1 (b)) Z 3 7 3 0 7 4 1 0 0 0 0 0 0 0 20 0 1 0 5 1\n", 0, "a) Z 1 (b)", 5,
		  false, true },
		{ "long name", "7 (0123456789abcdefghij) R 3 7 3 0 7 4 1 0 0 0 0 0 0 0 20 0 1 0 5 1\n", 0,
		  "0123456789abcde", 5, false, false },
		{ "cut off", "7 (cat) R 3 7 3 34816 7 4194304 1 0 0", -EBADMSG, NULL, 0, false, false },
		{ "no name", "7 cat R 3", -EBADMSG, NULL, 0, false, false },
		{ "brackets crossed", "7 )cat( R 3", -EBADMSG, NULL, 0, false, false },
		{ "empty", "", -EBADMSG, NULL, 0, false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur bytes = guard_page(cases[i].text, strlen(cases[i].text));
		struct proc_facts facts = { 0 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(proc_stat_parse(cur_rest(&bytes), &facts), cases[i].want);
		if (cases[i].want < 0)
			continue;
		assert_string_equal(facts.comm, cases[i].comm);
		assert_int_equal(facts.start_ticks, cases[i].start);
		assert_int_equal(facts.is_kernel, cases[i].is_kernel);
		assert_int_equal(facts.is_zombie, cases[i].is_zombie);
	}
}

static void status_text(void **state)
{
	struct proc_facts facts = { 0 };

	(void)state;
	proc_status_parse(STR("Name:\tx\nUid:\t5\t6\t7\t8\nNSpid:\t8667\t12\t1\nUid:\t1\t1\t1\t1\n"), &facts);
	assert_int_equal(facts.uid, 5);
	assert_int_equal(facts.effective_uid, 6);
	assert_int_equal(facts.inner_pid, 1);
	proc_status_parse(STR("NSpid:\tx\n"), &facts);
	assert_int_equal(facts.inner_pid, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(goes_on_behind_a_bad_line),
		cmocka_unit_test(every_line_of_our_own),
		cmocka_unit_test(stat_lines),
		cmocka_unit_test(status_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
