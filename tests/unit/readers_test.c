/* SPDX-License-Identifier: Apache-2.0 */
/* What the Files page runs, here without WebAssembly: what comes out, what is said, and failing allocations. That it
 * equals hearth convert is tests/web/readers_test.js. */
#include "support.h"

#include "readers/readers.h"

static struct readers_input input_of(struct str text)
{
	struct readers_input in = { .bytes = malloc(text.len + 1), .size = text.len };

	if (in.bytes)
		memcpy(in.bytes, text.ptr, text.len);
	return in;
}

static void input_release(struct readers_input *in)
{
	free(in->bytes);
}

static int read_text(struct str text, struct str name, struct readers_file *out)
{
	scoped(input_release) struct readers_input in = input_of(text);

	return in.bytes ? readers_read(&in, name, NULL, out) : -ENOMEM;
}

static void reads_by_name_and_by_content(void **state)
{
	static const struct {
		const char *name, *text;
	} cases[] = {
		{ "x.folded", "main;f 3\nmain;g 4\n" }, /* straight into the tree */
		{ "x.folded.gz", "main;f 3\nmain;g 4\n" },
		{ "x", "main;f 3\nmain;g 4\n" }, /* by the model */
		{ "x.folded", "main;f 3\nno count here\nmain;g 4\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(readers_release) struct readers_file file = READERS_FILE_INIT;

		print_message("  %s, %zu\n", cases[i].name, i);
		assert_int_equal(read_text(str_of(cases[i].text), str_of(cases[i].name), &file), 0);
		assert_int_equal(file.count, 1);
		assert_true(file.columns[0].len > 10);
		assert_non_null(strstr(buf_cstr(&file.meta), "\"name\":\"samples\""));
		assert_non_null(strstr(buf_cstr(&file.meta), "\"total\":7}"));
		assert_int_equal(file.words.len != 0, i == 3); /* the line that is left out */
	}
}

static void sums_saturate(void **state)
{
	static const char *const names[] = { "x.folded", "x" }; /* straight, and by the model */

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		scoped(readers_release) struct readers_file file = READERS_FILE_INIT;

		assert_int_equal(
			read_text(STR("f 9223372036854775807\ng 9223372036854775806\n"), str_of(names[i]), &file), 0);
		assert_non_null(strstr(buf_cstr(&file.meta), "\"total\":9223372036854775807}"));
	}
}

static void counts_what_is_below_zero(void **state)
{
	static const char text[] =
		"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":"
		"{\"frames\":[{\"name\":\"a\"},{\"name\":\"b\"}]},\"profiles\":[{\"type\":\"sampled\","
		"\"name\":\"x\",\"unit\":\"none\",\"startValue\":0,\"endValue\":0,"
		"\"samples\":[[0],[1],[0,1]],\"weights\":[-5,8,-1]}]}";
	scoped(readers_release) struct readers_file file = READERS_FILE_INIT;

	(void)state;
	assert_int_equal(read_text(str_of(text), STR("x.speedscope.json"), &file), 0);
	assert_int_equal(file.count, 1);
	assert_non_null(strstr(buf_cstr(&file.meta), "\"total\":1,\"negative\":{\"samples\":2,\"value\":6}}"));
}

static void says_what_it_cannot_read(void **state)
{
	static const struct {
		const char *name, *text, *words;
		int want;
	} cases[] = {
		{ "x", "", "it is empty", -ENOENT },
		{ "x.cpuprofile", "{}\n", "hearth writes cpuprofile files but does not read them", -ENOENT },
		{ "x.folded", "no count\n", "line 1: no count at the end of the line (read as folded)", -EBADMSG },
		{ "x.pb", "\n\xff\xff\xff\xff\x01", NULL, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(readers_release) struct readers_file file = READERS_FILE_INIT;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(read_text(str_of(cases[i].text), str_of(cases[i].name), &file), cases[i].want);
		assert_true(file.words.len > 0);
		if (cases[i].words)
			assert_string_equal(buf_cstr(&file.words), cases[i].words);
	}
}

static int read_both(void *ctx)
{
	scoped(readers_release) struct readers_file straight = READERS_FILE_INIT, model = READERS_FILE_INIT;
	int r = read_text(STR("main;f_[k] 3\nmain;g 4\n"), STR("x.folded"), &straight);

	(void)ctx;
	return r ? r : read_text(STR("main;f_[k] 3\nmain;g 4\n"), STR("x"), &model);
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(read_both, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_by_name_and_by_content), cmocka_unit_test(sums_saturate),
		cmocka_unit_test(counts_what_is_below_zero),    cmocka_unit_test(says_what_it_cannot_read),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
