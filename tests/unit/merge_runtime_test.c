/* SPDX-License-Identifier: Apache-2.0 */
/* Worked examples of gProfiler's merge.py, and what holds for any counts. */
#include "support.h"

#include "agent/merge_runtime.h"

struct line { /* of a profile: "comm;root;leaf" */
	uint32_t pid;
	const char *stack;
	int64_t count;
	const char *container, *app;
};

#define PERIOD 10

static uint32_t add_name(struct model *m, struct str name)
{
	struct model_function function = { 0 };
	struct model_location location = { .line_count = 1 };
	struct model_line line = { 0 };
	uint32_t out;

	assert_int_equal(model_add_string(m, name, &function.name), 0);
	assert_int_equal(model_add_function(m, &function, &line.function), 0);
	assert_int_equal(model_add_location(m, &location, &line, &out), 0);
	return out;
}

static void add_line(struct model *m, const struct line *l)
{
	struct model_process process = { .pid = l->pid };
	struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
	struct str rest = str_of(l->stack), piece;
	const int64_t values[] = { l->count, l->count * PERIOD };

	assert_true(str_next(&rest, ';', &piece));
	assert_int_equal(model_add_string(m, piece, &process.comm), 0);
	assert_int_equal(model_add_string(m, str_of(l->container), &process.container), 0);
	assert_int_equal(model_add_string(m, str_of(l->app), &process.app_id), 0);
	assert_int_equal(model_add_process(m, &process, &sample.process), 0);
	while (str_next(&rest, ';', &piece))
		assert_int_equal(model_add_stack(m, sample.stack, add_name(m, piece), &sample.stack), 0);
	assert_int_equal(model_add_sample(m, &sample, values), 0);
}

static void fill(struct model *m, const struct line *lines, size_t count)
{
	assert_int_equal(model_init(m, MIB(1)), 0);
	assert_int_equal(model_add_value_type(m, STR("samples"), STR("count")), 0);
	assert_int_equal(model_add_value_type(m, STR("cpu"), STR("nanoseconds")), 0);
	m->period = PERIOD;
	for (size_t i = 0; i < count && lines[i].stack; i++)
		add_line(m, &lines[i]);
}

static void add_stack_text(const struct model *m, uint32_t stack, struct buf *out)
{
	uint32_t path[64];
	size_t depth = 0;

	for (; stack; stack = m->stacks[stack].parent)
		path[depth++] = m->stacks[stack].location;
	while (depth--) {
		buf_addc(out, ';');
		model_frame_name(m, path[depth], 0, out);
	}
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "PID [container|app] comm;frames COUNT\n", sorted. */
static void text_of(const struct model *m, struct buf *out)
{
	char *lines[64];
	size_t count = 0;

	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_sample *s = &m->samples[i];
		const struct model_process *p = &m->processes[s->process];
		const int64_t *values = model_values(m, s);
		struct buf line = BUF_INIT(KIB(4));

		if (!values[0])
			continue;
		assert_int_equal(values[1], values[0] * PERIOD);
		buf_addf(&line, "%u ", p->pid);
		if (p->container || p->app_id)
			buf_addf(&line, "[" STR_FMT "|" STR_FMT "] ", STR_ARG(model_string(m, p->container)),
				 STR_ARG(model_string(m, p->app_id)));
		buf_adds(&line, model_string(m, p->comm));
		add_stack_text(m, s->stack, &line);
		buf_addf(&line, " %lld\n", (long long)values[0]);
		assert_true(count < ARRAY_SIZE(lines));
		assert_int_equal(line.error, 0);
		lines[count++] = str_dup(buf_str(&line));
		buf_release(&line);
	}
	qsort(lines, count, sizeof(*lines), compare_texts);
	for (size_t i = 0; i < count; i++) {
		buf_adds(out, str_of(lines[i]));
		free(lines[i]);
	}
}

#define LINES 6

static void worked_examples(void **state)
{
	static const struct {
		const char *name;
		struct line perf[LINES], runtime[LINES];
		const char *want;
	} cases[] = {
		{ "runtime stacks replace perf's and keep its total",
		  { { 700, "python3;_start;main;_PyEval_EvalFrameDefault", 25 },
		    { 700, "python3;main;read;vfs_read_[k]", 8 } },
		  { { 700, "python3;run (a.py:1)_[p];parse (a.py:9)_[p]", 12 },
		    { 700, "python3;run (a.py:1)_[p];wait (a.py:20)_[p]", 5 },
		    { 700, "python3;run (a.py:1)_[p]", 3 } },
		  "700 python3;run (a.py:1)_[p] 5\n"
		  "700 python3;run (a.py:1)_[p];parse (a.py:9)_[p] 20\n"
		  "700 python3;run (a.py:1)_[p];wait (a.py:20)_[p] 8\n" },
		{ "a process that perf did not see is kept unscaled",
		  { { 1, "a;b", 7 } },
		  { { 701, "python3;run (a.py:1)_[p]", 4 } },
		  "1 a;b 7\n701 python3;run (a.py:1)_[p] 4\n" },
		{ "an error goes in front of perf's stacks",
		  { { 702, "ruby;(/usr/lib/libruby.so)", 6 } },
		  { { 702, "ruby;[Profiling error: exception CalledProcessError]", 1 } },
		  "702 ruby;[Profiling error: exception CalledProcessError];(/usr/lib/libruby.so) 6\n" },
		{ "an error of a process that perf did not see is nothing",
		  { { 1, "a;b", 7 } },
		  { { 703, "ruby;[Profiling error: process went down during profiling]", 1 } },
		  "1 a;b 7\n" },
		{ "no runtime stacks: perf's stay",
		  { { 1, "a;b", 7 }, { 1, "a;c", 1 } },
		  { { 0 } },
		  "1 a;b 7\n1 a;c 1\n" },
		{ "an error among stacks is a stack",
		  { { 5, "p;x", 4 } },
		  { { 5, "p;[Profiling error: exception X]", 1 }, { 5, "p;f", 1 } },
		  "5 p;[Profiling error: exception X] 2\n5 p;f 2\n" },
		{ "fewer samples than stacks: those without any go",
		  { { 5, "p;x", 1 } },
		  { { 5, "p;f", 5 }, { 5, "p;g", 4 } },
		  "5 p;f 1\n" },
		{ "container of perf where the runtime has none, application of the runtime",
		  { { 5, "p;x", 2, "box", "old" }, { 6, "q;y", 1, "box6", "" } },
		  { { 5, "p;f", 2, "", "python: app.py" }, { 6, "q;g", 1, "own", "" } },
		  "5 [box|python: app.py] p;f 2\n6 [own|] q;g 1\n" },
		{ "an error brings container and application",
		  { { 5, "p;x", 2, "box", "" } },
		  { { 5, "p;[Profiling skipped: no]", 1, "other", "python: app.py" } },
		  "5 [other|python: app.py] p;[Profiling skipped: no];x 2\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(model_release) struct model perf = { 0 }, runtime = { 0 }, out = { 0 };
		scoped(buf_release) struct buf text = BUF_INIT(KIB(16));

		print_message("  %s\n", cases[i].name);
		fill(&perf, cases[i].perf, LINES);
		fill(&runtime, cases[i].runtime, LINES);
		assert_int_equal(model_init(&out, MIB(1)), 0);
		assert_int_equal(merge_runtime_models(&perf, &runtime, &out), 0);
		text_of(&out, &text);
		assert_string_equal(buf_cstr(&text), cases[i].want);
	}
}

static void without_perf(void **state)
{
	static const struct line lines[] = { { 1, "python3;f", 3 },
					     { 2, "ruby;[Profiling error: exception X]", 5 },
					     { 0 } };
	scoped(model_release) struct model runtime = { 0 }, out = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(KIB(16));

	(void)state;
	fill(&runtime, lines, ARRAY_SIZE(lines));
	assert_int_equal(model_init(&out, MIB(1)), 0);
	assert_int_equal(merge_runtime_models(NULL, &runtime, &out), 0);
	text_of(&out, &text);
	assert_string_equal(buf_cstr(&text), "1 python3;f 3\n2 ruby;[Profiling error: exception X] 1\n");
}

static void error_names(void **state)
{
	static const struct {
		const char *name;
		bool want;
	} cases[] = {
		{ "[Profiling error: process went down during profiling]", true },
		{ "[Profiling skipped: async-profiler is already loaded]", true },
		{ "[Profiling : x]", false },
		{ "[Profiling error: ]", false },
		{ "[Profiling error]", false },
		{ "Profiling error: x]", false },
		{ "[Profiling error: x] (a.py:1)", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		assert_int_equal(merge_runtime_is_error(str_of(cases[i].name)), cases[i].want);
	}
}

/* The total is perf's, no row is off by one or more, and equal input gives equal output. */
static void totals_are_kept(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct merge_row perf[20], runtime[40];
		uint64_t random = seed, sums[4] = { 0 }, wanted[4] = { 0 }, all[4] = { 0 };

		for (size_t i = 0; i < ARRAY_SIZE(perf); i++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			perf[i] = (struct merge_row){ .pid = (uint32_t)(random >> 60 & 3),
						      .count = random >> 33 & 0xfff };
			wanted[perf[i].pid] += perf[i].count;
		}
		for (size_t i = 0; i < ARRAY_SIZE(runtime); i++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			runtime[i] = (struct merge_row){ .pid = (uint32_t)(random >> 60 & 3),
							 .count = 1 + (random >> 33 & 0xff) };
			all[runtime[i].pid] += runtime[i].count;
		}
		assert_int_equal(merge_runtime_rows(perf, ARRAY_SIZE(perf), runtime, ARRAY_SIZE(runtime)), 0);
		for (size_t i = 0; i < ARRAY_SIZE(runtime); i++) {
			uint32_t pid = runtime[i].pid;
			double exact = wanted[pid] ? (double)runtime[i].count * (double)wanted[pid] / (double)all[pid]
						   : (double)runtime[i].count;

			sums[pid] += runtime[i].merged;
			assert_true((double)runtime[i].merged > exact - 1 && (double)runtime[i].merged < exact + 1);
		}
		for (size_t pid = 0; pid < 4; pid++)
			if (all[pid] && wanted[pid])
				assert_int_equal(sums[pid], wanted[pid]);
	}
}

static void huge_counts(void **state)
{
	struct merge_row perf[] = { { .pid = 1, .count = UINT64_MAX / 2 } };
	struct merge_row runtime[] = { { .pid = 1, .count = UINT64_MAX / 4 }, { .pid = 1, .count = 1 } };

	(void)state;
	assert_int_equal(merge_runtime_rows(perf, 1, runtime, 2), 0);
	assert_int_equal(perf[0].merged, 0);
	assert_true(runtime[0].merged + runtime[1].merged == UINT64_MAX / 2);
}

/* Merges what @ctx, two models, hold; they can be merged again: counts of one pid's stacks only shift. */
static int merge_new(void *ctx)
{
	struct model *models = ctx;
	scoped(model_release) struct model out = { 0 };
	int r = model_init(&out, MIB(1));

	return r < 0 ? r : merge_runtime_models(&models[0], &models[1], &out);
}

static void survives_failing_allocations(void **state)
{
	static const struct line perf[] = { { 1, "p;x", 4, "box" }, { 2, "q;y", 3, "box" }, { 0 } };
	static const struct line runtime[] = { { 1, "p;f", 3 }, { 2, "q;[Profiling error: exception X]", 1 }, { 0 } };
	struct model models[2] = { 0 };

	(void)state;
	fill(&models[0], perf, ARRAY_SIZE(perf));
	fill(&models[1], runtime, ARRAY_SIZE(runtime));
	for_each_failing_allocation(merge_new, models);
	model_release(&models[0]);
	model_release(&models[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worked_examples), cmocka_unit_test(without_perf),
		cmocka_unit_test(error_names),     cmocka_unit_test(totals_are_kept),
		cmocka_unit_test(huge_counts),     cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
