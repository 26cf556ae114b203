/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <time.h>

#include "base/io.h"
#include "render/render.h"
#include "render/terminal.h"

#define OUT_MAX MIB(64)

struct row {
	const char *stack; /* root first, '/' between frames; "mod!" is a frame without a name in a module */
	int64_t count;
	uint32_t pid;
	const char *comm, *container, *end;
};

static int add_frame(struct model *m, struct str text, uint32_t parent, uint32_t *out)
{
	struct model_mapping mapping = { .start = 0x1000, .limit = 0x9000, .flags = MODEL_HAS_FUNCTIONS };
	struct model_function function = { .kind = MODEL_KIND_NATIVE };
	struct model_location location = { .line_count = 1 };
	struct model_line line = { 0 };
	const bool is_unnamed = str_ends(text, STR("!"));
	int r;

	if (str_ends(text, STR("_[k]"))) {
		function.kind = MODEL_KIND_KERNEL;
		text.len -= 4;
	}
	r = model_add_string(m, is_unnamed ? str_first(text, text.len - 1) : STR("/usr/bin/prog"), &mapping.filename);
	r = r < 0 ? r : model_add_mapping(m, &mapping, &location.mapping);
	r = r < 0 ? r : model_add_string(m, text, &function.name);
	function.system_name = function.name;
	if (r == 0 && !is_unnamed)
		r = model_add_function(m, &function, &line.function);
	location.address = 0x1000 + 16 * (uint64_t)function.name;
	location.line_count = is_unnamed ? 0 : 1;
	r = r < 0 ? r : model_add_location(m, &location, &line, &location.mapping);
	return r < 0 ? r : model_add_stack(m, parent, location.mapping, out);
}

static int add_row(struct model *m, const struct row *row)
{
	struct model_process process = { .pid = row->pid };
	struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
	const int64_t values[] = { row->count, row->count * 10101010 };
	struct str rest = str_of(row->stack), frame;
	int r = 0;

	while (r == 0 && row->stack[0] && str_next(&rest, '/', &frame))
		r = add_frame(m, frame, sample.stack, &sample.stack);
	r = r < 0 ? r : model_add_string(m, str_of(row->comm), &process.comm);
	r = r < 0 ? r : model_add_string(m, str_of(row->container), &process.container);
	r = r < 0 ? r : model_add_string(m, str_of(row->end), &sample.end);
	if (r == 0 && row->pid)
		r = model_add_process(m, &process, &sample.process);
	return r < 0 ? r : model_add_sample(m, &sample, values);
}

static int window_of(const struct row *rows, size_t count, struct window *out)
{
	scoped(window_release) struct window w = { .cpu_average = -1, .memory_average = -1 };
	int r;

	w.model = calloc(1, sizeof(*w.model));
	if (!w.model)
		return -ENOMEM;
	r = model_init(w.model, MIB(16));
	if (r < 0) {
		free(w.model);
		w.model = NULL;
		return r;
	}
	r = model_add_value_type(w.model, STR("samples"), STR("count"));
	r = r < 0 ? r : model_add_value_type(w.model, STR("cpu"), STR("nanoseconds"));
	for (size_t i = 0; i < count && r == 0; i++)
		r = add_row(w.model, &rows[i]);
	if (r < 0)
		return r;
	*out = w;
	w = (struct window){ 0 };
	return 0;
}

static const struct row known[] = {
	{ "main/a/b/c", 50, 100, "prog", "", "complete" },
	{ "main/a/b", 20, 100, "prog", "", "complete" },
	{ "main/a/b/a/b", 5, 100, "prog", "", "complete" }, /* recursion: a and b count once */
	{ "main/d/libc.so.6!", 15, 100, "prog", "", "cut:frame_pointer" },
	{ "entry_SYSCALL_64_[k]/vfs_read_[k]", 7, 200, "reader", "web-1", "complete" },
	{ "main/rare", 1, 200, "reader", "web-1", "complete" },
	{ "", 2, 0, "", "", "" }, /* no frame at all */
};

static const struct row hostile[] = {
	{ "a\x1b[2Jb;c/\xff\xfe/tab\there", 3, 1, "\x1b]0;owned\x07", "new\nline", "complete" },
	{ "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e/e\xcc\x81", 2, 2,
	  "\xe2\x80\xae"
	  "evil",
	  "", "complete" },
	{ "\xc2\x9b"
	  "31m/quote\"<b>&amp;",
	  1, 3, "", "\xed\xa0\x80", "" },
};

static const struct row *find_row_set(const char *name, size_t *count)
{
	const bool is_known = strcmp(name, "known") == 0;

	*count = is_known ? ARRAY_SIZE(known) : ARRAY_SIZE(hostile);
	return is_known ? known : hostile;
}

static int describe(struct window *w)
{
	static const struct {
		const char *name;
		uint64_t value;
	} counters[] = {
		{ "samples", 100 },      { "user_samples", 93 }, { "complete", 76 },        { "cut_frame_pointer", 11 },
		{ "cut_depth", 0 },      { "cut_fault", 2 },     { "frames", 400 },         { "unnamed_frames", 15 },
		{ "guessed", 3 },        { "cut_guessed", 1 },   { "unnamed_jit_node", 4 }, /* cut_guessed: an older
											       file's */
		{ "lost_ring_full", 3 }, { "lost_raw", 0 },      { "events_lost", 9 },      /* no samples */
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
		r = window_set_counter(w, str_of(counters[i].name), counters[i].value);
	w->start_ns = 1700000000 * NSEC_PER_SEC;
	w->end_ns = w->start_ns + 10 * NSEC_PER_SEC;
	w->frequency_hz = 99;
	w->cpu_count = 2;
	w->busy_ns = 1010 * NSEC_PER_MSEC;
	r = r < 0 ? r : window_set_text(&w->host, STR("box\x1b[31m"));
	r = r < 0 ? r : window_set_text(&w->sampler, STR("bpf"));
	return r < 0 ? r : window_set_text(&w->kernel_release, STR("6.1.0"));
}

/* HEARTH_GOLDEN_UPDATE=1 in the environment writes the files instead; look at the difference before committing it. */
static void check_golden(const char *name, struct buf *got)
{
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	scoped(buf_release) struct buf want = BUF_INIT(OUT_MAX);
	char path[1024];

	snprintf(path, sizeof(path), "%s/tests/golden/%s.txt", root ? root : ".", name);
	print_message("  %s\n", path);
	if (getenv("HEARTH_GOLDEN_UPDATE"))
		assert_int_equal(io_replace_file(path, got->ptr, got->len), 0);
	assert_int_equal(io_read_file(path, &want), 0);
	assert_string_equal(buf_cstr(got), buf_cstr(&want));
}

static void golden(void **state)
{
	static const struct {
		const char *name, *rows;
		struct render_text_config cfg;
	} cases[] = {
		{ "text_full", "known", { .value = 1, .top_count = 20, .tree_min_percent = 2, .by_process = true } },
		{ "text_counts", "known", { .value = 0, .top_count = 2, .tree_min_percent = 0, .by_process = true } },
		{ "text_tree_only", "known", { .value = 0, .tree_min_percent = 10 } },
		{ "text_narrow", "known", { .value = 1, .top_count = 9, .tree_min_percent = -1, .width = 52 } },
		{ "text_hostile",
		  "hostile",
		  { .value = 0, .top_count = 9, .tree_min_percent = 0, .by_process = true } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(window_release) struct window w = { 0 };
		scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
		size_t count;
		const struct row *rows = find_row_set(cases[i].rows, &count);

		assert_int_equal(window_of(rows, count, &w), 0);
		assert_int_equal(describe(&w), 0);
		assert_int_equal(render_text(&w, &cases[i].cfg, &out), 0);
		check_golden(cases[i].name, &out);
	}
}

static void golden_dump(void **state)
{
	static const char *const names[] = { "known", "hostile" };

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		scoped(window_release) struct window w = { 0 };
		scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
		char name[64];
		size_t count;
		const struct row *rows = find_row_set(names[i], &count);

		assert_int_equal(window_of(rows, count, &w), 0);
		w.model->time_ns = 1700000000123456000;
		w.model->duration_ns = 10012345678;
		w.model->period = 10101010;
		assert_int_equal(model_add_string(w.model, STR("cpu"), &w.model->default_type), 0);
		assert_int_equal(render_dump(&w, i == 1, &out), 0);
		snprintf(name, sizeof(name), "dump_%s", names[i]);
		check_golden(name, &out);
	}
}

static void durations(void **state)
{
	/* Go 1.26: fmt.Sprintf("%.4v", time.Duration(ns)) */
	static const struct {
		int64_t ns;
		const char *want;
	} cases[] = {
		{ 1, "1ns" },
		{ 1500, "1.5\xc2\xb5" },
		{ 123456, "123." },
		{ 2000000, "2ms" },
		{ 999999999, "999." },
		{ 1000000000, "1s" },
		{ 10012345678, "10.0" },
		{ 61000000000, "1m1s" },
		{ 3600000000000, "1h0m" },
		{ -1500000000, "-1.5" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(window_release) struct window w = { 0 };
		scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
		char want[64];

		assert_int_equal(window_of(NULL, 0, &w), 0);
		w.model->duration_ns = cases[i].ns;
		assert_int_equal(render_dump(&w, false, &out), 0);
		snprintf(want, sizeof(want), "Duration: %s\n", cases[i].want);
		print_message("  %s", want);
		assert_non_null(strstr(buf_cstr(&out), want));
	}
}

/* Sums of each runtime that the file counts; nothing of one that it does not. */
static void runtimes_are_those_of_the_file(void **state)
{
	static const struct {
		const char *counter;
		uint64_t value;
		const char *want; /* NULL: nothing */
	} cases[] = {
		{ "runtime_samples", 40, NULL }, /* of all of them */
		{ "runtime_samples_python", 40,
		  "python    0.00% of 40 samples with such frames are complete; of 0 frames 0 have no name, 0 no "
		  "line\n" },
		{ "runtime_samples_python", 0, NULL },
		{ "runtime_samples_later", 7, "later     0.00% of 7 samples with such frames are complete; " },
		{ "runtime_samples_of_a_long_name", 7, "of_a_long_name 0.00% of 7 samples with such frames " },
		{ "runtime_samples_\x1b[2Jx", 7, "\\x1b[2Jx" },
		{ "runtime_samples_", 7, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct render_text_config cfg = { .tree_min_percent = -1 };
		scoped(window_release) struct window w = { 0 };
		scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);

		print_message("  %s\n", cases[i].want ? cases[i].want : "nothing");
		assert_int_equal(window_of(known, ARRAY_SIZE(known), &w), 0);
		assert_int_equal(window_set_counter(&w, str_of(cases[i].counter), cases[i].value), 0);
		assert_int_equal(render_text(&w, &cfg, &out), 0);
		assert_true(cases[i].want ? strstr(buf_cstr(&out), cases[i].want) != NULL
					  : !strstr(buf_cstr(&out), "such frames"));
		assert_true(strstr(cases[i].counter, "python") || !strcasestr(buf_cstr(&out), "python"));
	}
}

static void top_counts_recursion_once(void **state)
{
	scoped(window_release) struct window w = { 0 };
	scoped(freep) struct render_top_row *rows = NULL;
	size_t count, seen = 0;

	(void)state;
	assert_int_equal(window_of(known, ARRAY_SIZE(known), &w), 0);
	assert_int_equal(render_top(w.model, 0, NULL, &rows, &count), 0);
	assert_int_equal(count, 9);
	for (size_t i = 0; i < count; i++) {
		scoped(buf_release) struct buf name = BUF_INIT(KIB(1));

		render_top_name(w.model, NULL, &rows[i], &name);
		if (strcmp(buf_cstr(&name), "b") == 0) {
			assert_int_equal(rows[i].self, 25);
			assert_int_equal(rows[i].total, 75);
			seen++;
		}
		if (strcmp(buf_cstr(&name), "[libc.so.6]") == 0) {
			assert_int_equal(rows[i].self, 15);
			seen++;
		}
		assert_true(i == 0 || rows[i - 1].self >= rows[i].self);
	}
	assert_int_equal(seen, 2);
	assert_int_equal(render_top(w.model, 2, NULL, &rows, &count), -EINVAL);
}

/* Compares with a slow obvious version: for each sample, the set of names on its stack. */
static void top_equals_brute_force(void **state)
{
	static const char *const stacks[] = { "a", "a/a", "a/b/a", "b/b/b", "b/a/c/a/b", "c", "c/a" };
	static struct row rows[200];
	int64_t self[3] = { 0 }, total[3] = { 0 };
	scoped(window_release) struct window w = { 0 };
	scoped(freep) struct render_top_row *top = NULL;
	size_t count;
	uint32_t seed = 1;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *stack = stacks[(seed = seed * 1103515245 + 12345) >> 16 & 7 % ARRAY_SIZE(stacks)];

		rows[i] = (struct row){ stack, (int64_t)(seed >> 20 & 63) - 10, 0, "", "", "" };
		self[stack[strlen(stack) - 1] - 'a'] += rows[i].count;
		for (int f = 0; f < 3; f++)
			total[f] += strchr(stack, 'a' + f) ? rows[i].count : 0;
	}
	assert_int_equal(window_of(rows, ARRAY_SIZE(rows), &w), 0);
	assert_int_equal(render_top(w.model, 0, NULL, &top, &count), 0);
	for (size_t i = 0; i < count; i++) {
		const int f = model_string(w.model, top[i].function_name).ptr[0] - 'a';

		assert_int_equal(top[i].self, self[f]);
		assert_int_equal(top[i].total, total[f]);
	}
}

static void deep_stack(void **state)
{
	const size_t depth = 10000;
	scoped(buf_release) struct buf stack = BUF_INIT(MIB(1)), out = BUF_INIT(OUT_MAX);
	const struct render_text_config cfg = { .top_count = 5, .tree_min_percent = 0, .by_process = true };
	scoped(window_release) struct window w = { 0 };
	struct row rows[2] = { { .count = 1, .comm = "", .container = "", .end = "" },
			       { .count = 1, .comm = "", .container = "", .end = "" } };
	size_t lines = 0;

	(void)state;
	for (size_t i = 0; i < depth; i++)
		buf_addf(&stack, "%sf%zu", i ? "/" : "", i % 100);
	rows[0].stack = buf_cstr(&stack);
	rows[1].stack = "f0/f1";
	assert_int_equal(window_of(rows, 2, &w), 0);
	assert_int_equal(render_text(&w, &cfg, &out), 0);
	for (size_t i = 0; i < out.len; i++)
		lines += out.ptr[i] == '\n';
	assert_true(lines > depth);
	assert_true(out.len < MIB(2)); /* the indentation does not grow with the depth */
}

/* Every level has a sample of its own, so every level moves right. */
static void deep_stairs(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
	const struct render_text_config cfg = { .tree_min_percent = 0 };
	scoped(window_release) struct window w = { 0 };
	uint32_t stack = 0;

	(void)state;
	assert_int_equal(window_of(NULL, 0, &w), 0);
	for (int i = 0; i < 10000; i++) {
		const int64_t values[] = { 1, 1 };
		struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };

		assert_int_equal(add_frame(w.model, STR("step"), stack, &stack), 0);
		sample.stack = stack;
		assert_int_equal(model_add_sample(w.model, &sample, values), 0);
	}
	assert_int_equal(render_text(&w, &cfg, &out), 0);
	assert_true(out.len < MIB(2));
	assert_non_null(strstr(buf_cstr(&out), "(9999) - step"));
}

static void columns(void **state)
{
	static const struct {
		const char *name, *text;
		size_t max;
		const char *want;
		size_t used;
	} cases[] = {
		{ "plain", "abc", 0, "abc", 3 },
		{ "fits exactly", "abc", 3, "abc", 3 },
		{ "cut", "abcdef", 5, "abc..", 5 },
		{ "narrower than the dots", "abcdef", 1, ".", 1 },
		{ "escape sequence", "\x1b[31m", 0, "\\x1b[31m", 8 },
		{ "malformed", "\xff", 0, "\\xff", 4 },
		{ "C1 control", "\xc2\x9b", 0, "\\u009b", 6 },
		{ "right to left override", "\xe2\x80\xae", 0, "\\u202e", 6 },
		{ "wide", "\xe6\x97\xa5", 0, "\xe6\x97\xa5", 2 },
		{ "wide, cut", "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5", 5, "\xe6\x97\xa5..", 4 },
		{ "combining", "e\xcc\x81", 1, "e\xcc\x81", 1 },
		{ "escape is not cut in half", "\x1b\x1b", 6, "\\x1b..", 6 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(1));

		print_message("  %s\n", cases[i].name);
		assert_int_equal(terminal_add(&out, str_of(cases[i].text), cases[i].max), cases[i].used);
		assert_string_equal(buf_cstr(&out), cases[i].want);
	}
}

/* A path of a stranger's is a part of what is said. */
static void lines(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(KIB(1));

	(void)state;
	terminal_add_lines(&out, STR("\n/a\x1b]0;b\x07\r: c\nd\xc2\x9bK\n\ne"));
	assert_string_equal(buf_cstr(&out), "\n/a\\x1b]0;b\\x07\\x0d: c\nd\\u009bK\n\ne");
}

static int build_everything(void *ctx)
{
	const struct render_text_config cfg = { .top_count = 9, .tree_min_percent = 0, .by_process = true };
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
	int r = window_of(known, ARRAY_SIZE(known), &w);

	(void)ctx;
	r = r < 0 ? r : describe(&w);
	r = r < 0 ? r : render_text(&w, &cfg, &out);
	if (r < 0)
		assert_int_equal(out.len, 0);
	return r < 0 ? r : render_dump(&w, true, &out);
}

static void allocation_fails(void **state)
{
	(void)state;
	for_each_failing_allocation(build_everything, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns),
		cmocka_unit_test(lines),
		cmocka_unit_test(golden),
		cmocka_unit_test(golden_dump),
		cmocka_unit_test(durations),
		cmocka_unit_test(runtimes_are_those_of_the_file),
		cmocka_unit_test(top_counts_recursion_once),
		cmocka_unit_test(top_equals_brute_force),
		cmocka_unit_test(deep_stack),
		cmocka_unit_test(deep_stairs),
		cmocka_unit_test(allocation_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
