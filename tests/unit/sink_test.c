/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "codec/codec.h"
#include "codec/gzip.h"
#include "sink/format.h"
#include "sink/sink.h"

static void make_window(struct window *w)
{
	uint32_t name, function, location, stack;

	*w = (struct window){ 0 };
	assert_int_equal(window_init(w, MIB(1)), 0);
	w->start_ns = UINT64_C(1700000000) * NSEC_PER_SEC;
	w->end_ns = w->start_ns + 10 * NSEC_PER_SEC;
	w->frequency_hz = 99;
	assert_int_equal(model_add_value_type(w->model, STR("samples"), STR("count")), 0);
	assert_int_equal(model_add_string(w->model, STR("main"), &name), 0);
	assert_int_equal(
		model_add_function(w->model, &(struct model_function){ .name = name, .system_name = name }, &function),
		0);
	assert_int_equal(model_add_location(w->model, &(struct model_location){ .line_count = 1, .address = 16 },
					    &(struct model_line){ .function = function }, &location),
			 0);
	assert_int_equal(model_add_stack(w->model, 0, location, &stack), 0);
	assert_int_equal(model_add_sample(w->model,
					  &(struct model_sample){ .stack = stack, .time_offset_ns = MODEL_NO_TIME },
					  (int64_t[]){ 3 }),
			 0);
}

static void memory_sink_keeps_whole_windows(void **state)
{
	const struct sink *sink = sink_find(STR("memory"));
	scoped(window_release) struct window w, back = { 0 };
	scoped(buf_release) struct buf where = BUF_INIT(KIB(1)), why = BUF_INIT(KIB(1));
	struct sink_state *s = NULL;
	struct codec_error error;
	const struct buf *windows;
	size_t count;

	(void)state;
	make_window(&w);
	assert_int_equal(sink->open(&(struct sink_config){ 0 }, &why, &s), 0);
	assert_int_equal(sink->write(s, &w, &where), 0);
	windows = sink_memory_windows(s, &count);
	assert_int_equal(count, 1);
	assert_int_equal(codec_find(STR("window"))->decode(buf_str(&windows[0]), &back, &error), 0);
	assert_int_equal(back.end_ns, w.end_ns);
	assert_int_equal(back.model->samples_count, 1);
	sink->close(s);
}

static void formats_are_chosen_by_suffix_or_name(void **state)
{
	static const struct {
		const char *path, *format;
		int want;
	} cases[] = {
		{ "a.pb.gz", NULL, 0 },        { "a.html", NULL, 0 },
		{ "a.xyz", NULL, -EINVAL },    { "a.xyz", "col", 0 },
		{ "a.folded.gz", NULL, 0 },    { "a.gz", "col", 0 },
		{ "a.xyz.gz", NULL, -EINVAL }, { "a.html", "gif", -EINVAL },
		{ "noname", NULL, -EINVAL },   { "dir.html/noname", NULL, -EINVAL },
	};
	const struct sink *sink = sink_find(STR("file"));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
		struct sink_state *s = NULL;

		print_message("  %s\n", cases[i].path);
		assert_int_equal(
			sink->open(&(struct sink_config){ .path = cases[i].path, .format = cases[i].format }, &why, &s),
			cases[i].want);
		assert_int_equal(why.len > 0, cases[i].want < 0);
		sink->close(s);
	}
}

static size_t count_files(const char *path)
{
	DIR *dir = opendir(path);
	size_t count = 0;

	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));)
		count += e->d_name[0] != '.';
	closedir(dir);
	return count;
}

static void windows_get_files_of_their_own(void **state)
{
	char directory[] = "/tmp/hearth-sink-XXXXXX", path[64], command[64];
	const struct sink *sink = sink_find(STR("file"));
	scoped(window_release) struct window w;
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct sink_state *s = NULL;

	(void)state;
	assert_non_null(mkdtemp(directory));
	make_window(&w);
	(void)snprintf(path, sizeof(path), "%s/p.pb.gz", directory);
	assert_int_equal(sink->open(&(struct sink_config){ .path = path, .many = true }, &why, &s), 0);
	for (int i = 0; i < 3; i++) {
		scoped(buf_release) struct buf where = BUF_INIT(KIB(1));

		assert_int_equal(sink->write(s, &w, &where), 0);
		assert_int_equal(access(buf_cstr(&where), R_OK), 0);
		assert_true(str_ends(buf_str(&where), STR(".pb.gz")));
	}
	assert_int_equal(count_files(directory), 3);
	sink->close(s);
	(void)snprintf(command, sizeof(command), "rm -r %s", directory);
	assert_int_equal(system(command), 0);
}

/* "x.folded.gz" is that format inside gzip; what is gzip itself is not packed again. */
static void text_is_packed(void **state)
{
	static const struct {
		const char *name, *format;
		size_t layers;
	} cases[] = { { "a.folded", NULL, 0 },     { "a.folded.gz", NULL, 1 }, { "a.pb.gz", NULL, 1 },
		      { "a.otlp.pb.gz", NULL, 1 }, { "b.gz", "pprof", 1 },     { "c.gz", "folded", 1 } };
	char directory[] = "/tmp/hearth-sink-XXXXXX", path[64], command[64];
	const struct sink *sink = sink_find(STR("file"));
	scoped(window_release) struct window w;

	(void)state;
	assert_non_null(mkdtemp(directory));
	make_window(&w);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf why = BUF_INIT(KIB(1)), where = BUF_INIT(KIB(1)),
					       bytes = BUF_INIT(MIB(1)), plain = BUF_INIT(MIB(1));
		struct sink_state *s = NULL;

		print_message("  %s\n", cases[i].name);
		(void)snprintf(path, sizeof(path), "%s/%s", directory, cases[i].name);
		assert_int_equal(sink->open(&(struct sink_config){ .path = path, .format = cases[i].format }, &why, &s),
				 0);
		assert_int_equal(sink->write(s, &w, &where), 0);
		assert_int_equal(io_read_file(path, &bytes), 0);
		assert_int_equal(gzip_is(buf_str(&bytes)), cases[i].layers);
		if (cases[i].layers)
			assert_int_equal(gzip_unpack(buf_str(&bytes), MIB(1), 0, &plain), 0);
		assert_false(gzip_is(buf_str(&plain)));
		if (strstr(cases[i].name, ".folded") || cases[i].name[0] == 'c')
			assert_string_equal(buf_cstr(cases[i].layers ? &plain : &bytes), "main 3\n");
		sink->close(s);
	}
	(void)snprintf(path, sizeof(path), "%s/p.folded.gz", directory);
	{
		scoped(buf_release) struct buf why = BUF_INIT(KIB(1)), where = BUF_INIT(KIB(1));
		struct sink_state *s = NULL;

		assert_int_equal(sink->open(&(struct sink_config){ .path = path, .many = true }, &why, &s), 0);
		assert_int_equal(sink->write(s, &w, &where), 0);
		assert_true(str_ends(buf_str(&where), STR(".folded.gz")));
		assert_null(strstr(buf_cstr(&where), "p.folded"));
		sink->close(s);
	}
	(void)snprintf(command, sizeof(command), "rm -r %s", directory);
	assert_int_equal(system(command), 0);
}

static void failures_are_told(void **state)
{
	static const struct {
		const char *path;
		int want;
	} cases[] = { { "/dev/full", -ENOSPC }, { "/nonexistent-folder/a", -ENOENT }, { "/proc/a", -ENOENT } };
	const struct sink *sink = sink_find(STR("file"));
	scoped(window_release) struct window w;

	(void)state;
	make_window(&w);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf why = BUF_INIT(KIB(1)), where = BUF_INIT(KIB(1));
		struct sink_state *s = NULL;

		print_message("  %s\n", cases[i].path);
		assert_int_equal(
			sink->open(&(struct sink_config){ .path = cases[i].path, .format = "folded" }, &why, &s), 0);
		assert_int_equal(sink->write(s, &w, &where), cases[i].want);
		sink->close(s);
	}
}

static void assert_link(const char *folder, const char *name, const char *want)
{
	char path[128], target[128];
	ssize_t len;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	len = readlink(path, target, sizeof(target) - 1);
	assert_true(len > 0);
	target[len] = 0;
	assert_string_equal(target, want);
}

static void remove_in(const char *folder, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(unlink(path), 0);
}

/* Files as gProfiler names them; of those that a link led to, only its own ones go. */
static void cycles_leave_files_and_links(void **state)
{
	char folder[] = "/tmp/hearth-sink-XXXXXX", link[128], kept[128];
	struct sink_config cfg = { .path = mkdtemp(folder) };
	const struct sink *sink = sink_find(STR("cycle"));
	scoped(window_release) struct window w;
	scoped(buf_release) struct buf where = BUF_INIT(KIB(1)), why = BUF_INIT(KIB(1));
	struct sink_state *s = NULL;

	(void)state;
	make_window(&w);
	(void)snprintf(link, sizeof(link), "%s/last_profile.col", folder);
	(void)snprintf(kept, sizeof(kept), "%s/keep", folder);
	assert_int_equal(symlink("keep", kept), 0);
	assert_int_equal(symlink("keep", link), 0);
	(void)snprintf(kept, sizeof(kept), "%s/last_profile.col.tmp", folder);
	assert_int_equal(symlink("keep", kept), 0); /* of one that was killed */
	assert_int_equal(sink->open(&cfg, &why, &s), 0);
	assert_int_equal(sink->write(s, &w, &where), 0);
	assert_int_equal(count_files(folder), 5);
	assert_link(folder, "last_profile.col", "profile_2023-11-14T22:13:30.col");
	assert_link(folder, "last_flamegraph.html", "profile_2023-11-14T22:13:30.html");
	sink->close(s);
	cfg.rotating = cfg.without_page = true;
	assert_int_equal(sink->open(&cfg, &why, &s), 0);
	w.end_ns += 10 * NSEC_PER_SEC;
	assert_int_equal(sink->write(s, &w, &where), 0);
	assert_int_equal(count_files(folder), 5); /* the .col before went, the page stays */
	assert_int_equal(sink->write(s, &w, &where), 0);
	assert_int_equal(count_files(folder), 5);
	assert_link(folder, "last_profile.col", "profile_2023-11-14T22:13:40_2.col");
	w.end_ns -= 5 * NSEC_PER_SEC; /* a run before had another clock */
	assert_int_equal(sink->write(s, &w, &where), 0);
	assert_int_equal(count_files(folder), 5);
	assert_link(folder, "last_profile.col", "profile_2023-11-14T22:13:35.col");
	w.end_ns += 5 * NSEC_PER_SEC;
	assert_int_equal(sink->write(s, &w, &where), 0);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("../profile_x.col", link), 0);
	w.end_ns += 10 * NSEC_PER_SEC;
	assert_int_equal(sink->write(s, &w, &where), 0);
	assert_int_equal(count_files(folder), 6);
	cfg.rotating = false;
	sink->close(s);
	assert_int_equal(sink->open(&cfg, &why, &s), 0);
	for (int i = 2; i < 4; i++) /* the same second: no file is written over */
		assert_int_equal(sink->write(s, &w, &where), 0);
	assert_int_equal(count_files(folder), 8);
	assert_link(folder, "last_profile.col", "profile_2023-11-14T22:13:50_3.col");
	sink->close(s);
	for (const char *const *name =
		     (const char *const[]){ "keep", "last_profile.col", "last_flamegraph.html",
					    "profile_2023-11-14T22:13:30.html", "profile_2023-11-14T22:13:40.col",
					    "profile_2023-11-14T22:13:50.col", "profile_2023-11-14T22:13:50_2.col",
					    "profile_2023-11-14T22:13:50_3.col", NULL };
	     *name; name++)
		remove_in(folder, *name);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(sink->open(&cfg, &why, &s), -ENOENT);
}

/* Others can write to the folder, too: what they lay where a file will be is not written to. */
static void cycles_follow_no_links(void **state)
{
	static const char *const names[] = { "profile_2023-11-14T22:13:30.col", "profile_2023-11-14T22:13:30.html",
					     "profile.col.tmp", "profile.html.tmp" };
	char folder[] = "/tmp/hearth-sink-XXXXXX", victim[128], path[128], command[64];
	struct sink_config cfg = { .path = mkdtemp(folder) };
	const struct sink *sink = sink_find(STR("cycle"));
	scoped(window_release) struct window w;
	scoped(buf_release) struct buf where = BUF_INIT(KIB(1)), why = BUF_INIT(KIB(1)), kept = BUF_INIT(KIB(1));
	struct sink_state *s = NULL;
	struct stat st;

	(void)state;
	make_window(&w);
	(void)snprintf(victim, sizeof(victim), "%s/victim", folder);
	assert_int_equal(io_replace_file(victim, "mine", 4), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		assert_int_equal(i == 1 ? mkfifo(path, 0600) : symlink(victim, path), 0);
	}
	assert_int_equal(sink->open(&cfg, &why, &s), 0);
	assert_int_equal(sink->write(s, &w, &where), 0);
	assert_int_equal(io_read_file(victim, &kept), 0);
	assert_string_equal(buf_cstr(&kept), "mine");
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		assert_int_equal(lstat(path, &st), 0);
		assert_true(S_ISREG(st.st_mode));
	}
	assert_int_equal(count_files(folder), 5); /* both, their links and the other one */
	sink->close(s);
	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

/* Removed and made again while the agent runs. */
static void cycles_find_a_new_folder(void **state)
{
	char folder[] = "/tmp/hearth-sink-XXXXXX", command[64];
	struct sink_config cfg = { .path = mkdtemp(folder), .without_page = true };
	const struct sink *sink = sink_find(STR("cycle"));
	scoped(window_release) struct window w;
	scoped(buf_release) struct buf where = BUF_INIT(KIB(1)), why = BUF_INIT(KIB(1));
	struct sink_state *s = NULL;

	(void)state;
	make_window(&w);
	assert_int_equal(sink->open(&cfg, &why, &s), 0);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(sink->write(s, &w, &where), -ENOENT);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(sink->write(s, &w, &where), 0);
	assert_int_equal(count_files(folder), 2);
	assert_link(folder, "last_profile.col", "profile_2023-11-14T22:13:30.col");
	sink->close(s);
	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_sink_keeps_whole_windows),
		cmocka_unit_test(formats_are_chosen_by_suffix_or_name),
		cmocka_unit_test(cycles_leave_files_and_links),
		cmocka_unit_test(cycles_follow_no_links),
		cmocka_unit_test(cycles_find_a_new_folder),
		cmocka_unit_test(windows_get_files_of_their_own),
		cmocka_unit_test(text_is_packed),
		cmocka_unit_test(failures_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
