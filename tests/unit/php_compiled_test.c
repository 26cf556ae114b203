/* SPDX-License-Identifier: Apache-2.0 */
/* Where the code of PHP's compiler is, by what /proc/PID/maps says. */
#include "support.h"

#include "runtime/php/php_int.h"

#define SHARED "55abaea00000-55abb6a00000 rw-s 00000000 00:01 61653 /dev/zero (deleted)\n"
#define CODE "55abb6a00000-55abb8a00000 r-xs 08000000 00:01 61653 /dev/zero (deleted)\n"
#define PROGRAM "55abb8c58000-55abb8f64000 r-xp 000eb000 fe:00 10166378 /usr/bin/php8.2\n"

static void ranges(void **state)
{
	static const struct {
		const char *name, *maps;
		int want;
	} cases[] = {
		{ "compiled code", SHARED CODE PROGRAM, 1 },
		{ "no opcache", PROGRAM, 0 },
		{ "opcache alone", SHARED PROGRAM, 0 },
		{ "not behind the data", CODE PROGRAM, 0 },
		{ "something in between", SHARED PROGRAM CODE, 0 },
		{ "of another file", "55abaea00000-55abb6a00000 rw-s 00000000 00:01 7 /dev/zero (deleted)\n" CODE, 0 },
		{ "malformed lines", "x\n" SHARED CODE "55abb6a0", 1 },
		{ "nothing", "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct abi_code_range out[ABI_CODE_RANGES] = { 0 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(php_compiled_ranges(str_of(cases[i].maps), out), cases[i].want);
		if (!cases[i].want)
			continue;
		assert_int_equal(out[0].low, 0x55abb6a00000);
		assert_int_equal(out[0].size, 0x2000000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
