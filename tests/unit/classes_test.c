/* SPDX-License-Identifier: Apache-2.0 */
/* Whole, guessed, cut: what counters make of stacks, and what is said of a JIT compiler's code without names. */
#include "support.h"

#include "render/classes.h"

struct counter {
	const char *name;
	uint64_t value;
};

static void fill(struct window *w, const struct counter *counters)
{
	for (; counters->name; counters++)
		assert_int_equal(window_set_counter(w, str_of(counters->name), counters->value), 0);
}

static void classes_add_up(void **state)
{
	static const struct {
		const char *name;
		struct counter counters[8];
		struct window_classes want;
		const char *text;
	} cases[] = {
		{ "three classes",
		  { { "user_samples", 1000 }, { "complete", 974 }, { "guessed", 12 }, { "cut_no_table", 14 } },
		  { .user = 1000, .whole = 974, .guessed = 12, .cut = 14 },
		  "97.4 % whole, 1.2 % guessed, 1.4 % cut" },
		{ "an older file",
		  { { "user_samples", 100 }, { "complete", 90 }, { "cut_guessed", 7 }, { "cut_depth", 3 } },
		  { .user = 100, .whole = 90, .guessed = 7, .cut = 3 },
		  "90.0 % whole, 7.0 % guessed, 3.0 % cut" },
		{ "a sum of an older and a newer one, and lost samples",
		  { { "user_samples", 90 },
		    { "complete", 60 },
		    { "cut_guessed", 7 },
		    { "guessed", 13 },
		    { "lost_ring_full", 10 } },
		  { .user = 90, .whole = 60, .guessed = 20, .cut = 10, .lost = 10 },
		  "60.0 % whole, 20.0 % guessed, 10.0 % lost, 10.0 % cut" },
		{ "counters that contradict each other",
		  { { "user_samples", 10 },
		    { "complete", 8 },
		    { "guessed", UINT64_MAX },
		    { "cut_guessed", UINT64_MAX } },
		  { .user = 10, .whole = 8, .guessed = 2 },
		  "80.0 % whole, 20.0 % guessed, 0.0 % cut" },
		{ "more whole ones than there are",
		  { { "user_samples", 10 },
		    { "complete", UINT64_MAX },
		    { "guessed", 1 },
		    { "lost_a", UINT64_MAX },
		    { "lost_b", 1 } },
		  { .user = 10, .whole = 10, .lost = UINT64_MAX },
		  "0.0 % whole, 0.0 % guessed, 100.0 % lost, 0.0 % cut" },
		{ "nothing is known", { { 0 } }, { 0 }, "0.0 % whole, 0.0 % guessed, 0.0 % cut" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(window_release) struct window w = { 0 };
		scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
		struct window_classes got;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(window_init(&w, KIB(64)), 0);
		fill(&w, cases[i].counters);
		got = window_classes(&w);
		assert_memory_equal(&got, &cases[i].want, sizeof(got));
		classes_add_shares(&got, 1, &text);
		assert_string_equal(buf_cstr(&text), cases[i].text);
	}
}

static void guesses_are_no_reason(void **state)
{
	(void)state;
	assert_true(str_eq(window_cut_reason(&(struct window_counter){ .name = (char[]){ "cut_no_table" } }),
			   STR("no_table")));
	assert_false(window_cut_reason(&(struct window_counter){ .name = (char[]){ "cut_guessed" } }).len);
	assert_false(window_cut_reason(&(struct window_counter){ .name = (char[]){ "cut_" } }).len);
	assert_false(window_cut_reason(&(struct window_counter){ .name = (char[]){ "guessed" } }).len);
}

static void files_tell_the_kind(void **state)
{
	static const struct {
		const char *path;
		enum jit_kind want;
	} cases[] = {
		{ "/usr/bin/node", JIT_KIND_NODE },
		{ "/usr/bin/nodejs", JIT_KIND_NODE },
		{ "/opt/node-v20/bin/node (deleted)", JIT_KIND_NODE },
		{ "/opt/node-v20/bin/worker", JIT_KIND_OTHER },
		{ "/usr/lib/x86_64-linux-gnu/libnode.so.108", JIT_KIND_NODE },
		{ "/usr/lib/jvm/java-17/bin/java", JIT_KIND_JAVA },
		{ "/usr/lib/jvm/java-17/lib/server/libjvm.so", JIT_KIND_JAVA },
		{ "/usr/bin/dotnet", JIT_KIND_DOTNET },
		{ "/app/libcoreclr.so", JIT_KIND_DOTNET },
		{ "/usr/lib/erlang/erts-13.1.5/bin/beam.smp", JIT_KIND_ERLANG },
		{ "/home/a/.deno/bin/deno", JIT_KIND_DENO },
		{ "/usr/lib/electron/electron", JIT_KIND_ELECTRON },
		{ "/root/.bun/bin/bun", JIT_KIND_BUN },
		{ "/usr/bin/bundle", JIT_KIND_OTHER },
		{ "/usr/bin/node_exporter", JIT_KIND_OTHER },
		{ "/usr/bin/node-red", JIT_KIND_OTHER },
		{ "/usr/bin/javac", JIT_KIND_OTHER },
		{ "/usr/bin/luajit", JIT_KIND_OTHER },
		{ "node", JIT_KIND_NODE },
		{ "/node/", JIT_KIND_OTHER },
		{ "", JIT_KIND_OTHER },
		{ NULL, JIT_KIND_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(jit_kind_of(str_of(cases[i].path)), cases[i].want);
}

static void one_line_says_what_gives_names(void **state)
{
	static const char *const want[] = {
		[JIT_KIND_OTHER] = "/tmp/perf-PID.map",
		[JIT_KIND_NODE] = "--perf-basic-prof",
		[JIT_KIND_JAVA] = "jcmd PID Compiler.perfmap",
		[JIT_KIND_DOTNET] = "DOTNET_PerfMapEnabled=1",
		[JIT_KIND_ERLANG] = "+JPperf true",
		[JIT_KIND_DENO] = "--v8-flags=--perf-basic-prof",
		[JIT_KIND_ELECTRON] = "--js-flags=--perf-basic-prof",
		[JIT_KIND_BUN] = "not walked",
	};

	(void)state;
	for (int kind = 0; kind < JIT_KIND_COUNT; kind++) {
		scoped(buf_release) struct buf text = BUF_INIT(KIB(1));

		classes_add_jit(12, (enum jit_kind)kind, &text);
		assert_non_null(strstr(buf_cstr(&text), want[kind]));
		assert_null(strchr(buf_cstr(&text), '\n'));
		assert_true(str_starts(jit_kind_counter((enum jit_kind)kind), STR("unnamed_jit_")));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_add_up),
		cmocka_unit_test(guesses_are_no_reason),
		cmocka_unit_test(files_tell_the_kind),
		cmocka_unit_test(one_line_says_what_gives_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
