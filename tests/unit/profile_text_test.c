/* SPDX-License-Identifier: Apache-2.0 */
/* The two text forms of bcc's profile to the byte: parts, offsets, addresses, missing parts, and hostile names. */
#include "support.h"

#include "render/profile_text.h"

static const char spoof[] = "f;g\n\xe2\x80\xae\x1b[m"; /* U+202E turns the direction of text */
#define BASE 0x7f0000000000

static uint32_t text_of(struct model *m, const char *text)
{
	uint32_t id;

	assert_int_equal(model_add_string(m, str_of(text), &id), 0);
	return id;
}

static uint32_t frame(struct window *w, const char *name, enum model_kind kind, uint64_t address, uint32_t mapping)
{
	struct model *m = w->model;
	struct model_function f = { .name = text_of(m, name), .kind = kind };
	struct model_line line = { 0 };
	struct model_location l = { .line_count = 1, .address = address, .mapping = mapping };
	uint32_t location;

	f.system_name = f.name;
	f.filename = kind == MODEL_KIND_KERNEL ? text_of(m, "[kernel.kallsyms]") : 0;
	assert_int_equal(model_add_function(m, &f, &line.function), 0);
	assert_int_equal(model_add_location(m, &l, &line, &location), 0);
	return location;
}

static void stack(struct window *w, const uint32_t *root_first, size_t count, const char *end, int64_t times)
{
	struct model_sample s = { .process = 1, .time_offset_ns = MODEL_NO_TIME, .end = text_of(w->model, end) };

	for (size_t i = 0; i < count; i++)
		assert_int_equal(model_add_stack(w->model, s.stack, root_first[i], &s.stack), 0);
	assert_int_equal(model_add_sample(w->model, &s, &times), 0);
}

/* main, a hostile name, two system calls of it: "read" with another address is another row. */
static void fill(struct window *w)
{
	struct model_process p = { .pid = 7 };
	struct model_mapping file = { 0 };
	uint32_t mapping, path[3], again[3];

	assert_int_equal(window_init(w, MIB(16)), 0);
	assert_int_equal(model_add_value_type(w->model, STR("samples"), STR("count")), 0);
	p.comm = text_of(w->model, "a;b\nc");
	assert_int_equal(model_add_process(w->model, &p, &p.comm), 0);
	assert_int_equal(p.comm, 1);
	file.filename = text_of(w->model, "/opt/my;prog");
	assert_int_equal(model_add_mapping(w->model, &file, &mapping), 0);
	path[0] = again[0] = frame(w, "main", MODEL_KIND_NATIVE, 0x1010, mapping);
	path[1] = again[1] = frame(w, spoof, MODEL_KIND_NATIVE, 0x1020, mapping);
	path[2] = frame(w, "sys_read", MODEL_KIND_KERNEL, 0xffffffff81000010, 0);
	again[2] = frame(w, "sys_read", MODEL_KIND_KERNEL, 0xffffffff81000020, 0);
	w->code_count = w->model->locations_count;
	w->codes = calloc(w->code_count, sizeof(*w->codes));
	w->bases = calloc(1, sizeof(*w->bases));
	assert_non_null(w->codes);
	assert_non_null(w->bases);
	*w->bases =
		(struct window_base){ .process = 1, .mapping = mapping, .first = 0x1000, .end = 0x2000, .base = BASE };
	w->base_count = 1;
	w->codes[path[0]] = (struct window_code){ .offset = 0x11, .has_name = true, .is_return = true };
	w->codes[path[1]] = (struct window_code){ .offset = 0x2, .has_name = true };
	w->codes[path[2]] = (struct window_code){ .offset = 0x10, .has_name = true };
	w->codes[again[2]] = (struct window_code){ .offset = 0x20, .has_name = true };
	stack(w, path, 3, "complete", 5);
	stack(w, again, 3, "complete", 2);
	stack(w, NULL, 0, "cut:read", 1);
}

static void expect(const struct profile_text_config *cfg, const char *want, struct profile_text_missing *missing)
{
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));

	fill(&w);
	assert_int_equal(profile_text(&w, cfg, &text, missing), 0);
	assert_string_equal(buf_cstr(&text), want);
}

static void lines_are_folded(void **state)
{
	const struct profile_text_config plain = { .folded = true }, apart = { .folded = true, .no_sum = true },
					 marked = { .folded = true, .delimited = true, .annotated = true },
					 kernel = { .folded = true, .no_user = true };
	struct profile_text_missing missing = { 0 };

	(void)state;
	expect(&plain,
	       "a:b?c;[Missed User Stack] 1\n"
	       "a:b?c;main;f:g???[m;sys_read 7\n",
	       &missing);
	assert_int_equal(missing.parts, 1);
	assert_false(missing.stacks_full);
	expect(&apart,
	       "a:b?c;[Missed User Stack] 1\n"
	       "a:b?c;main;f:g???[m;sys_read 2\n"
	       "a:b?c;main;f:g???[m;sys_read 5\n",
	       &missing);
	expect(&marked,
	       "a:b?c;[Missed User Stack] 1\n"
	       "a:b?c;main;f:g???[m;-;sys_read_[k] 7\n",
	       &missing);
	missing.parts = 0;
	expect(&kernel,
	       "a:b?c 1\n"
	       "a:b?c;main;f:g???[m;sys_read 7\n",
	       &missing);
	assert_int_equal(missing.parts, 0); /* a part that nobody asked for is not missed */
}

#define OWNER "    -                a;b?c (7)\n"

static void blocks_have_offsets_and_modules(void **state)
{
	const struct profile_text_config plain = { .delimited = true, .annotated = true },
					 addresses = { .addresses = true, .depth_max = 1 };
	struct profile_text_missing missing = { 0 };

	(void)state;
	expect(&plain,
	       "    [Missed User Stack]\n" OWNER "        1\n\n"
	       "    sys_read_[k]+0x20 [kernel]\n    --\n"
	       "    f;g???[m+0x2 [my;prog]\n    main+0x11 [my;prog]\n" OWNER "        2\n\n"
	       "    sys_read_[k]+0x10 [kernel]\n    --\n"
	       "    f;g???[m+0x2 [my;prog]\n    main+0x11 [my;prog]\n" OWNER "        5\n\n",
	       &missing);
	expect(&addresses,
	       "    [Missed User Stack]\n" OWNER "        1\n\n"
	       "    0xffffffff81000020 sys_read+0x20 [kernel]\n"
	       "    0x00007f0000001020 f;g???[m+0x2 [my;prog]\n" OWNER "        2\n\n"
	       "    0xffffffff81000010 sys_read+0x10 [kernel]\n"
	       "    0x00007f0000001020 f;g???[m+0x2 [my;prog]\n" OWNER "        5\n\n",
	       &missing);
}

static void sizes_are_limits(void **state)
{
	const struct profile_text_config one_stack = { .folded = true, .stack_max = 1 },
					 one_row = { .folded = true, .row_max = 1 };
	struct profile_text_missing missing = { 0 };

	(void)state;
	expect(&one_stack,
	       "a:b?c;[Missed User Stack] 1\n"
	       "a:b?c;main;f:g???[m;[Missed Kernel Stack] 7\n",
	       &missing);
	assert_true(missing.stacks_full);
	assert_int_equal(missing.parts, 3);
	missing = (struct profile_text_missing){ 0 };
	expect(&one_row, "a:b?c;[Missed User Stack] 1\n", &missing);
	assert_int_equal(missing.left_out, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_folded),
		cmocka_unit_test(blocks_have_offsets_and_modules),
		cmocka_unit_test(sizes_are_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
