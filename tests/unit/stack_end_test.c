/* SPDX-License-Identifier: Apache-2.0 */
/* When a stack may be called whole. */
#include "support.h"

#include "agent/stack_end.h"

static void only_a_proof_makes_it_whole(void **state)
{
	static const struct {
		const char *name;
		struct stack_facts facts;
		const char *want;
	} cases[] = {
		{ "a row that says so", { .walk_end = ABI_END_COMPLETE, .has_user = true }, "complete" },
		{ "no user stack", { .walk_end = ABI_END_COMPLETE }, "complete" },
		{ "a kernel thread", { .walk_end = ABI_END_NO_REGISTERS }, "complete" },
		{ "entry code",
		  { .walk_end = ABI_END_UNPROVEN_ROOT, .has_user = true, .root_proven = true },
		  "complete" },
		{ "other code", { .walk_end = ABI_END_UNPROVEN_ROOT, .has_user = true }, "unproven-root" },
		{ "entry code whose frame is a dead end",
		  { .walk_end = ABI_END_NO_FRAME_POINTER, .has_user = true, .root_proven = true },
		  "complete" },
		{ "a row, behind a guess",
		  { .walk_end = ABI_END_COMPLETE, .has_user = true, .guessed = true },
		  "guessed" },
		{ "entry code, behind a guess",
		  { .walk_end = ABI_END_UNPROVEN_ROOT, .has_user = true, .root_proven = true, .guessed = true },
		  "guessed" },
		{ "a guess and a dead end: the end tells more",
		  { .walk_end = ABI_END_READ_FAILED, .has_user = true, .guessed = true },
		  "read-failed" },
		{ "a hole in the kernel's part",
		  { .walk_end = ABI_END_COMPLETE, .has_user = true, .kernel_cut = true },
		  "kernel-stack" },
		{ "a guess, and a hole in the kernel's part",
		  { .walk_end = ABI_END_COMPLETE, .has_user = true, .guessed = true, .kernel_cut = true },
		  "kernel-stack" },
		{ "a kernel thread with a hole", { .walk_end = ABI_END_COMPLETE, .kernel_cut = true }, "kernel-stack" },
		{ "frames of a runtime are missing",
		  { .walk_end = ABI_END_COMPLETE, .has_user = true, .runtime_end = ABI_RUNTIME_END_GAP },
		  "runtime-gap" },
		{ "the native end tells more",
		  { .walk_end = ABI_END_NO_TABLE, .has_user = true, .runtime_end = ABI_RUNTIME_END_UNPAIRED },
		  "no-table" },
		{ "entry code, and a runtime met too late",
		  { .walk_end = ABI_END_UNPROVEN_ROOT,
		    .has_user = true,
		    .root_proven = true,
		    .runtime_end = ABI_RUNTIME_END_NOT_READY },
		  "runtime-not-ready" },
		{ "no frame of the runtime: the native end tells less",
		  { .walk_end = ABI_END_NO_TABLE, .has_user = true, .runtime_end = ABI_RUNTIME_END_NOT_READY },
		  "runtime-not-ready" },
		{ "a guess, and a runtime's hole",
		  { .walk_end = ABI_END_COMPLETE,
		    .has_user = true,
		    .guessed = true,
		    .runtime_end = ABI_RUNTIME_END_READ_FAILED },
		  "runtime-read-failed" },
		{ "every frame of a runtime",
		  { .walk_end = ABI_END_COMPLETE, .has_user = true, .runtime_end = ABI_RUNTIME_END_WHOLE },
		  "complete" },
		{ "a thread that the runtime does not know",
		  { .walk_end = ABI_END_COMPLETE, .has_user = true, .runtime_end = ABI_RUNTIME_END_NO_STATE },
		  "complete" },
		{ "gone", { .walk_end = ABI_END_NO_MAPPING, .has_user = true }, "no-mapping" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		assert_string_equal(stack_end_name(stack_end_of(&cases[i].facts)), cases[i].want);
		assert_int_equal(stack_end_is_cut(stack_end_of(&cases[i].facts)),
				 strcmp(cases[i].want, "complete") && strcmp(cases[i].want, "guessed"));
	}
}

static void every_end_has_a_name(void **state)
{
	(void)state;
	for (int i = 0; i < STACK_END_COUNT; i++)
		assert_non_null(stack_end_name((enum stack_end)i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_proof_makes_it_whole),
		cmocka_unit_test(every_end_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
