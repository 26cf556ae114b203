/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of bytecode: by hand for what no compiler makes, and as every installed interpreter says of its own library. */
#include "support.h"

#include <unistd.h>

#include "base/buf.h"
#include "runtime/python/lines.h"

/* ---- by hand ---- */

#define TABLE(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

static const struct {
	const char *name;
	uint8_t minor, major;
	const uint8_t *bytes;
	uint32_t size, whole; /* whole 0: it is all here */
	uint32_t position;
	int32_t want;
} cases[] = {
	{ "2.7: the second line", 7, 2, TABLE(6, 1, 8, 2), 0, 6, 11 },
	{ "2.7: before it", 7, 2, TABLE(6, 1, 8, 2), 0, 5, 10 },
	{ "2.7: behind all", 7, 2, TABLE(6, 1, 8, 2), 0, 1000, 13 },
	{ "2.7: 200 lines are 200 lines", 7, 2, TABLE(6, 200), 0, 6, 210 },
	{ "3.5: likewise", 5, 3, TABLE(6, 200), 0, 6, 210 },
	{ "3.6: they are 56 back", 6, 3, TABLE(6, 100, 2, 200), 0, 8, 54 },
	{ "3.9: a long way in pieces", 9, 3, TABLE(2, 127, 0, 127, 0, 6), 0, 2, 270 },
	{ "3.9: an odd byte at the end", 9, 3, TABLE(2, 1, 9), 0, 2, 11 },
	{ "3.9: cut: what is here", 9, 3, TABLE(2, 1, 4, 1), 100, 5, 11 },
	{ "3.9: cut: what is not", 9, 3, TABLE(2, 1, 4, 1), 100, 6, 0 },
	{ "3.9: no table", 9, 3, NULL, 0, 0, 4, 10 },
	{ "3.10: pairs", 10, 3, TABLE(4, 1, 4, 2), 0, 4, 13 },
	{ "3.10: no line", 10, 3, TABLE(4, 1, 4, 0x80, 4, 2), 0, 4, 10 },
	{ "3.10: and behind it", 10, 3, TABLE(4, 1, 4, 0x80, 4, 2), 0, 8, 13 },
	{ "3.10: beyond the code", 10, 3, TABLE(4, 1), 0, 4, 0 },
	{ "3.11: short form", 11, 3, TABLE(0x80 | 1, 0), 0, 3, 10 },
	{ "3.11: a line further", 11, 3, TABLE(0x80 | 11 << 3, 1, 2), 0, 0, 11 },
	{ "3.11: no columns, back", 11, 3, TABLE(0x80 | 13 << 3, 7), 0, 1, 7 },
	{ "3.11: long, 32 on", 11, 3, TABLE(0x80 | 14 << 3, 0x40, 1, 0, 1, 1), 0, 1, 42 },
	{ "3.11: no line", 11, 3, TABLE(0x80 | 11 << 3, 1, 2, 0x80 | 15 << 3, 0x80 | 0 << 3, 0), 0, 2, 10 },
	{ "3.11: and behind it", 11, 3, TABLE(0x80 | 11 << 3, 1, 2, 0x80 | 15 << 3, 0x80 | 0 << 3, 0), 0, 4, 11 },
	{ "3.11: beyond the code", 11, 3, TABLE(0x80, 0), 0, 2, 0 },
	{ "3.11: a number without end", 11, 3, TABLE(0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f), 0, 0,
	  0 },
	{ "3.11: cut in a number", 11, 3, TABLE(0x80 | 13 << 3, 0x7f), 9, 0, 0 },
	{ "3.11: a line below 1", 11, 3, TABLE(0x80 | 13 << 3, 0x55, 1), 0, 0, 0 },
	{ "3.14: as 3.11", 14, 3, TABLE(0x80 | 12 << 3, 1, 2), 0, 0, 12 },
	{ "nowhere", 11, 3, TABLE(0x80 | 11 << 3, 1, 2), 0, UINT32_MAX, 0 },
};

static void tables_by_hand(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct runtime_function f = {
			.first_line = 10,
			.version_major = cases[i].major,
			.version_minor = cases[i].minor,
			.lines_whole = cases[i].whole ? cases[i].whole : cases[i].size,
		};
		struct cur guarded = guard_page(cases[i].bytes, cases[i].size);

		print_message("  %s\n", cases[i].name);
		f.lines = (struct runtime_lines){ cases[i].size ? guarded.pos : NULL, cases[i].size };
		assert_int_equal(python_line(&f, cases[i].position), cases[i].want);
	}
}

/* ---- as interpreters say ---- */

/* Every code object of some modules, and of one with lines far apart: its first line and table, then what
 * PyCode_Addr2Line() says of each place. */
static const char program[] =
	"import sys, ctypes, types\n"
	"import argparse, json.decoder, collections, threading, subprocess, tarfile, ast, inspect, difflib\n"
	"a2l = ctypes.pythonapi.PyCode_Addr2Line\n"
	"a2l.argtypes = [ctypes.py_object, ctypes.c_int]\n"
	"kept = []\n"
	"def show(co):\n"
	"  kept.append(co)\n"
	"  t = bytearray(co.co_linetable if sys.version_info >= (3, 10) else co.co_lnotab)\n"
	"  w = 1 if sys.version_info < (3, 6) else 2\n"
	"  n = len(co.co_code)\n"
	"  sys.stdout.write('F %d %s\\n' % (co.co_firstlineno, ''.join('%02x' % b for b in t)))\n"
	"  sys.stdout.write('P %s\\n' % ' '.join('%d:%d' % (i, a2l(co, i)) for i in range(0, n, w)))\n"
	"  for c in co.co_consts:\n"
	"    if isinstance(c, types.CodeType): show(c)\n"
	"def mod(m):\n"
	"  f = m.__file__\n"
	"  f = f[:-1] if f.endswith('.pyc') else f\n"
	"  show(compile(open(f, 'rb').read(), f, 'exec'))\n"
	"for m in (argparse, json.decoder, collections, threading, subprocess, tarfile, ast, inspect, difflib): "
	"mod(m)\n"
	"far = 'def f(a):' + '\\n' * 900 + ' x = (a' + '\\n' * 300 + ' + a.b' + '\\n' * 70000 + ')\\n y = x' + "
	"'\\n' * 5 + ' return [i\\n for i in\\n y if i\\n or a]\\n'\n"
	"show(compile(far, 'far', 'exec'))\n";

static void check_places(struct str text, struct runtime_function *f, unsigned long *places)
{
	struct str word;

	while (str_next(&text, ' ', &word)) {
		ptrdiff_t colon = str_find(word, ':');
		char number[32] = { 0 };
		long position, want;

		assert_true(colon > 0 && word.len < sizeof(number));
		memcpy(number, word.ptr, word.len);
		position = strtol(number, NULL, 10);
		want = strtol(number + colon + 1, NULL, 10);
		if (want < 0) /* an instruction without a line */
			want = f->first_line;
		if (python_line(f, (uint32_t)position) != want)
			fail_msg("position %ld of the function at line %d: %d, not %ld", position, f->first_line,
				 python_line(f, (uint32_t)position), want);
		++*places;
	}
}

static int digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

static uint8_t *from_hex(struct str hex)
{
	uint8_t *bytes = malloc(hex.len / 2 + 1);

	must(bytes);
	for (size_t i = 0; i < hex.len / 2; i++)
		bytes[i] = (uint8_t)(digit(hex.ptr[2 * i]) << 4 | digit(hex.ptr[2 * i + 1]));
	return bytes;
}

static void check_output(FILE *out, uint8_t major, uint8_t minor)
{
	struct runtime_function f = { .version_major = major, .version_minor = minor };
	scoped(freep) uint8_t *table = NULL;
	scoped(freep) char *line = NULL;
	unsigned long functions = 0, places = 0;
	size_t cap = 0;
	ssize_t size;

	while ((size = getline(&line, &cap, out)) > 0) {
		struct str text = str_n(line + 2, (size_t)size - 3), word;

		if (line[0] == 'P') {
			check_places(text, &f, &places);
			continue;
		}
		assert_int_equal(line[0], 'F');
		assert_true(str_next(&text, ' ', &word));
		f.first_line = (int32_t)strtol(word.ptr, NULL, 10);
		free(table);
		table = from_hex(text);
		f.lines = (struct runtime_lines){ table, (uint32_t)text.len / 2 };
		f.lines_whole = f.lines.size;
		functions++;
	}
	print_message("  %lu functions, %lu places\n", functions, places);
	assert_true(functions > 600);
}

static void as_interpreters_say(void **state)
{
	const char *version = *state;
	char path[256], command[512];
	FILE *out;

	if (!find_python(version, path, sizeof(path)))
		skip_because("this version of Python is not installed");
	assert_int_equal(setenv("LINES_PROGRAM", program, true), 0);
	(void)snprintf(command, sizeof(command), "%s -W ignore -c 'import os; exec(os.environ[\"LINES_PROGRAM\"])'",
		       path);
	out = popen(command, "r");
	assert_non_null(out);
	check_output(out, (uint8_t)(version[0] - '0'), (uint8_t)strtol(version + 2, NULL, 10));
	assert_int_equal(pclose(out), 0);
}

#define OF(version)                                                                                       \
	{                                                                                                 \
		"as_python_" version "_says", as_interpreters_say, NULL, NULL, (void *)(uintptr_t)version \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_by_hand),
		OF("2.7"),
		OF("3.5"),
		OF("3.6"),
		OF("3.7"),
		OF("3.8"),
		OF("3.9"),
		OF("3.10"),
		OF("3.11"),
		OF("3.12"),
		OF("3.13"),
		OF("3.14"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
