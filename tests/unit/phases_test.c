/* SPDX-License-Identifier: Apache-2.0 */
/* Which native functions are a runtime's own work: by the parts of mangled names, of which hostile files have any. */
#include "support.h"

#include "runtime/registry.h"

static const struct runtime_phase phases[] = {
	{ "v8::internal::Heap::Collect", "(a)" },
	{ "v8::internal::compiler", "(b)" },
	{ NULL, NULL },
};

static void by_parts(void **state)
{
	static const struct {
		const char *name, *phase;
	} cases[] = {
		{ "_ZN2v88internal4Heap7CollectEv", "(a)" },
		{ "_ZN2v88internal4Heap7CollectENS0_15AllocationSpaceE", "(a)" },
		{ "_ZNK2v88internal4Heap7CollectEv.cold", "(a)" },
		{ "_ZZN2v88internal4Heap7CollectEvENKUlvE_clEv", "(a)" },
		{ "_ZN2v88internal4Heap7Collect5InnerIiE3runEv", "(a)" },
		{ "_ZN2v88internal4Heap9CollectItEv", NULL },
		{ "_ZN2v88internal4Heap7Collec2E", NULL },
		{ "_ZN2v88internal4HeapC1Ev", NULL },
		{ "_ZN2v88internal8compiler12GraphReducer6ReduceEPNS1_4NodeE", "(b)" },
		{ "_ZN2v88internal8compilerEv", "(b)" },
		{ "_ZN2v88internal8CompilerE", NULL },
		{ "_ZN2v88internal9compilersE", NULL },
		{ "_ZN2v88internalE", NULL },
		{ "_ZN2v8", NULL },
		{ "_ZN1v8internal8compiler1aEv", NULL },
		{ "v8::internal::compiler", NULL },
		{ "_Z8compilerv", NULL },
		{ "_ZNSt8compilerEv", NULL },
		{ "_ZN2v88internal8", NULL },
		{ "_ZN2v88internal8comp", NULL },
		{ "_ZN99999999999999999999999999999999999999999999v8", NULL },
		{ "_ZN18446744073709551615v8", NULL },
		{ "_ZN0E", NULL },
		{ "_ZNK", NULL },
		{ "_ZZZZ", NULL },
		{ "_Z", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		/* at the end of its memory */
		char *exact = malloc(strlen(cases[i].name) + !*cases[i].name);
		const struct runtime_phase *phase;

		print_message("  %s\n", cases[i].name);
		assert_non_null(exact);
		memcpy(exact, cases[i].name, strlen(cases[i].name));
		phase = runtime_phase_of(phases, str_n(exact, strlen(cases[i].name)));
		free(exact);
		assert_string_equal(phase ? phase->name : "", cases[i].phase ? cases[i].phase : "");
	}
	assert_null(runtime_phase_of(NULL, STR("_ZN2v88internal8compiler1aEv")));
}

/* One frame for each name: more names than there is room for would be left out. */
static void of_runtimes(void **state)
{
	(void)state;
	for (size_t i = 0; runtime_at(i); i++) {
		const char *names[RUNTIME_PHASES_MAX];
		size_t count = 0;

		for (const struct runtime_phase *p = runtime_at(i)->phases; p && p->function; p++) {
			size_t at = 0;

			while (at < count && strcmp(names[at], p->name) != 0)
				at++;
			assert_true(at < RUNTIME_PHASES_MAX);
			if (at == count)
				names[count++] = p->name;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_parts),
		cmocka_unit_test(of_runtimes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
