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
		{ "in huge pages",
		  "55abaea00000-55abb6a00000 rw-s 00000000 00:11 7 /anon_hugepage (deleted)\n"
		  "55abb6a00000-55abb8a00000 r-xs 08000000 00:11 7 /anon_hugepage (deleted)\n" PROGRAM,
		  1 },
		{ "no opcache", PROGRAM, 0 },
		{ "opcache alone, or code that is being written", SHARED PROGRAM, -EAGAIN },
		{ "what workers of php-fpm share",
		  "7f11aa000000-7f11aa001000 rw-s 00000000 00:01 7 /dev/zero (deleted)\n" PROGRAM, 0 },
		{ "not behind the data", CODE PROGRAM, 0 },
		{ "something in between", SHARED PROGRAM CODE, -EAGAIN },
		{ "of another file", "55abaea00000-55abb6a00000 rw-s 00000000 00:01 7 /dev/zero (deleted)\n" CODE,
		  -EAGAIN },
		{ "malformed lines", "x\n" SHARED CODE "55abb6a0", 1 },
		{ "nothing", "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct abi_code_range out[ABI_CODE_RANGES] = { 0 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(php_compiled_ranges(str_of(cases[i].maps), out), cases[i].want);
		if (cases[i].want <= 0)
			continue;
		assert_int_equal(out[0].low, 0x55abb6a00000);
		assert_int_equal(out[0].size, 0x2000000);
	}
}

static void pools(void **state)
{
	static const struct {
		struct str argv;
		const char *want; /* NULL: none */
	} cases[] = {
		{ STR("php-fpm: pool www\0\0\0"), "php-fpm: www" },
		{ STR("php-fpm: pool shop eu      "), "php-fpm: shop eu" },
		{ STR("php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)"), NULL },
		{ STR("php\0job.php\0php-fpm: pool www"), NULL },
		{ STR("php-fpm: pool "), NULL },
		{ STR("php-fpm: pool a\x1b[2J"), NULL },
		{ STR("php-fpm: pool \xff\xfe"), NULL },
		{ STR(""), NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(1));

		print_message("  %s\n", cases[i].want ? cases[i].want : "none");
		assert_int_equal(php_pool(cases[i].argv, &out), cases[i].want ? 0 : -ENOENT);
		assert_true(str_eq(buf_str(&out), str_of(cases[i].want ? cases[i].want : "")));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pools),
		cmocka_unit_test(ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
