/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots: their files, the folder they are kept in, kill -9, full disks, odd files. */
#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "model_samples.h"
#include "store/snapshots.h"
#include "store_support.h"

#define NOW (UINT64_C(1800000000) * NSEC_PER_SEC)

static void make_window(uint64_t seed, struct window *w)
{
	fixture_window(seed, w);
}

static void make_file(uint64_t seed, const char *title, uint64_t created_ns, struct buf *out)
{
	scoped(window_release) struct window w = { 0 };
	struct snapshot_head head = { .created_ns = created_ns,
				      .from_ns = NOW - 3600 * NSEC_PER_SEC,
				      .to_ns = NOW,
				      .profiles = 7,
				      .title = str_of(title),
				      .selection = STR("cpu{service=\"api\"}"),
				      .service = STR("api"),
				      .type = STR("cpu") };

	make_window(seed, &w);
	snapshot_set_columns(w.model, &head);
	assert_int_equal(snapshot_encode(&head, &w, out), 0);
}

static void assert_same_content(const struct model *a, const struct model *b)
{
	scoped(content_release) struct content one = { 0 }, other = { 0 };

	content_add(&one, a);
	content_add(&other, b);
	content_assert_same(&one, &other);
}

/* The file */

static void reads_what_it_wrote(void **state)
{
	scoped(buf_release) struct buf file = BUF_INIT(SNAPSHOT_FILE_MAX);
	scoped(window_release) struct window want = { 0 }, got = { 0 };
	struct snapshot_head head, front;
	struct cur c;

	(void)state;
	make_window(5, &want);
	make_file(5, "before <b>the</b> \xff release", NOW, &file);
	c = guard_page(file.ptr, file.len);
	assert_int_equal(snapshot_decode(cur_rest(&c), &head, &got), 0);
	assert_true(str_eq(head.title, STR("before <b>the</b> \xff release")));
	assert_true(str_eq(head.selection, STR("cpu{service=\"api\"}")));
	assert_true(str_eq(head.service, STR("api")) && str_eq(head.type, STR("cpu")));
	assert_true(head.created_ns == NOW && head.to_ns == NOW && head.from_ns == NOW - 3600 * NSEC_PER_SEC);
	assert_int_equal(head.profiles, 7);
	assert_int_equal(head.column_count, want.model->value_type_count);
	assert_int_equal(head.default_column, model_default_value(want.model));
	for (size_t i = 0; i < head.column_count; i++) {
		int64_t total = 0;

		for (size_t k = 0; k < want.model->samples_count; k++)
			total = saturating_add(total, model_values(want.model, &want.model->samples[k])[i]);
		assert_int_equal(head.columns[i].total, total);
		assert_true(str_eq(head.columns[i].type, model_string(want.model, want.model->value_types[i].type)));
	}
	assert_same_content(want.model, got.model);
	/* The front alone says the same, when it is told how large the file is. */
	c = guard_page(file.ptr, 4096 < file.len ? 4096 : file.len);
	assert_int_equal(snapshot_decode_head(cur_rest(&c), file.len, &front), 0);
	assert_true(str_eq(front.title, head.title) && front.column_count == head.column_count);
	assert_int_equal(snapshot_decode_head(cur_rest(&c), file.len - 1, &front), -EBADMSG);
}

static void rejects_damage(void **state)
{
	scoped(buf_release) struct buf file = BUF_INIT(SNAPSHOT_FILE_MAX);
	struct snapshot_head head = { .profiles = 77 };
	struct window w = { 0 };
	uint8_t *bytes;

	(void)state;
	make_file(3, "t", NOW, &file);
	bytes = (uint8_t *)file.ptr;
	for (size_t cut = 0; cut < file.len; cut += cut < 300 ? 1 : 97) {
		struct cur c = guard_page(bytes, cut);

		assert_int_equal(snapshot_decode(cur_rest(&c), &head, &w), -EBADMSG);
	}
	for (size_t at = 0; at < file.len; at += at < 300 ? 1 : 53) {
		bytes[at] ^= 0x10;
		assert_true(snapshot_decode(buf_str(&file), &head, &w) < 0);
		bytes[at] ^= 0x10;
	}
	bytes[16] = 2;
	assert_int_equal(snapshot_decode(buf_str(&file), &head, &w), -ENOTSUP);
	bytes[16] = 0;
	assert_int_equal(snapshot_decode(buf_str(&file), &head, &w), -EBADMSG);
	assert_int_equal(head.profiles, 77); /* untouched on failure */
	assert_null(w.model);
}

static void has_limits(void **state)
{
	scoped(buf_release) struct buf file = BUF_INIT(SNAPSHOT_FILE_MAX), text = BUF_INIT(KIB(128));
	scoped(window_release) struct window w = { 0 };
	struct snapshot_head head = { .title = STR("") };

	(void)state;
	make_window(1, &w);
	for (size_t i = 0; i <= SNAPSHOT_TEXT_MAX; i++)
		buf_addc(&text, 'x');
	head.title = str_first(buf_str(&text), SNAPSHOT_TITLE_MAX + 1);
	assert_int_equal(snapshot_encode(&head, &w, &file), -E2BIG);
	head.title = str_first(buf_str(&text), SNAPSHOT_TITLE_MAX);
	head.selection = buf_str(&text);
	assert_int_equal(snapshot_encode(&head, &w, &file), -E2BIG);
	assert_int_equal(file.len, 0);
	head.selection = str_first(buf_str(&text), SNAPSHOT_TEXT_MAX);
	assert_int_equal(snapshot_encode(&head, &w, &file), 0);
}

static int code_once(void *ctx)
{
	scoped(buf_release) struct buf file = BUF_INIT(SNAPSHOT_FILE_MAX);
	scoped(window_release) struct window got = { 0 };
	const struct window *w = ctx;
	struct snapshot_head head = { .title = STR("t") }, again;
	int r;

	snapshot_set_columns(w->model, &head);
	r = snapshot_encode(&head, w, &file);
	return r ? r : snapshot_decode(buf_str(&file), &again, &got);
}

static void survives_failing_allocations(void **state)
{
	scoped(window_release) struct window w = { 0 };

	(void)state;
	make_window(2, &w);
	for_each_failing_allocation(code_once, &w);
}

/* The folder */

struct folder {
	char path[64];
	struct snapshots_config config;
	struct snapshots *s;
};

static int folder_begin(void **state)
{
	struct folder *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->path, sizeof(f->path), "/tmp/hearth-snapshots-XXXXXX");
	assert_non_null(mkdtemp(f->path));
	f->config = (struct snapshots_config){ .path = f->path, .count_max = 5, .size_max = MIB(10) };
	assert_int_equal(snapshots_open(&f->config, &f->s), 0);
	*state = f;
	return 0;
}

static int folder_end(void **state)
{
	struct folder *f = *state;

	snapshots_close(f->s);
	(void)fixture_clear(f->path);
	free(f);
	return 0;
}

static void reopen(struct folder *f)
{
	snapshots_close(f->s);
	f->s = NULL;
	assert_int_equal(snapshots_open(&f->config, &f->s), 0);
}

static size_t put(struct folder *f, uint64_t seed, uint64_t created_ns, char id[SNAPSHOT_ID_TEXT + 1])
{
	scoped(buf_release) struct buf file = BUF_INIT(SNAPSHOT_FILE_MAX);

	make_file(seed, "kept", created_ns, &file);
	assert_int_equal(snapshots_put(f->s, buf_str(&file), created_ns, id), 0);
	return file.len;
}

static int put_code(struct folder *f, uint64_t seed)
{
	scoped(buf_release) struct buf file = BUF_INIT(SNAPSHOT_FILE_MAX);
	char id[SNAPSHOT_ID_TEXT + 1];

	make_file(seed, "not kept", NOW, &file);
	return snapshots_put(f->s, buf_str(&file), NOW, id);
}

static int read_code(struct folder *f, const char *id)
{
	scoped(buf_release) struct buf file = BUF_INIT(SNAPSHOT_FILE_MAX);
	uint64_t size;

	return snapshots_read(f->s, str_of(id), SNAPSHOT_FILE_MAX, &file, &size);
}

static size_t files_in(const char *path)
{
	DIR *dir = opendir(path);
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count - 2;
}

struct listed {
	char ids[8][SNAPSHOT_ID_TEXT + 1];
	size_t count;
};

static int note(void *ctx, const char *id, uint64_t size, const struct snapshot_head *head)
{
	struct listed *l = ctx;

	assert_true(size > 48 && str_eq(head->title, STR("kept")));
	(void)snprintf(l->ids[l->count++], SNAPSHOT_ID_TEXT + 1, "%s", id);
	return 0;
}

static void keeps_and_lists(void **state)
{
	char ids[3][SNAPSHOT_ID_TEXT + 1] = { 0 };
	struct folder *f = *state;
	struct snapshots_stats stats;
	uint64_t size = 0;

	size += put(f, 1, NOW + 1, ids[0]);
	size += put(f, 2, NOW + 3, ids[1]);
	size += put(f, 3, NOW + 2, ids[2]);
	for (size_t turn = 0; turn < 2; turn++) {
		struct listed l = { 0 };

		assert_int_equal(snapshots_list(f->s, note, &l), 0);
		assert_int_equal(l.count, 3);
		assert_string_equal(l.ids[0], ids[1]);
		assert_string_equal(l.ids[1], ids[2]);
		assert_string_equal(l.ids[2], ids[0]);
		snapshots_stats(f->s, &stats);
		assert_true(stats.count == 3 && stats.size == size && !stats.odd);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(read_code(f, ids[i]), 0);
		reopen(f);
	}
	assert_int_equal(snapshots_remove(f->s, str_of(ids[1])), 0);
	assert_int_equal(snapshots_remove(f->s, str_of(ids[1])), -ENOENT);
	assert_int_equal(read_code(f, ids[1]), -ENOENT);
	assert_int_equal(files_in(f->path), 2);
	reopen(f);
	assert_int_equal(read_code(f, ids[1]), -ENOENT);
	assert_int_equal(read_code(f, ids[0]), 0);
}

static void answers_to_no_other_name(void **state)
{
	static const char *const wrong[] = { "", "../../../../../../../../etc/passwd", "0123456789abcdef",
					     "0123456789ABCDEF0123456789ABCDEF", "0123456789abcdef0123456789abcdef" };
	struct folder *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(read_code(f, wrong[i]), -ENOENT);
		assert_int_equal(snapshots_remove(f->s, str_of(wrong[i])), -ENOENT);
	}
	assert_true(snapshots_owns_name(STR("snapshot-0123456789abcdef0123456789abcdef")));
	assert_true(snapshots_owns_name(STR("snapshot-0123456789abcdef0123456789abcdef.tmp")));
	assert_false(snapshots_owns_name(STR("snapshot-0123456789abcdef0123456789abcde")));
	assert_false(snapshots_owns_name(STR("snapshot-0123456789abcdef0123456789abcdef.bak")));
	assert_false(snapshots_owns_name(STR("snapshot-.tmp")));
	assert_false(snapshots_owns_name(STR("snapshot-")));
	assert_false(snapshots_owns_name(STR("")));
}

/* What is full refuses the next one, and loses none of those that are there. */
static void refuses_when_full(void **state)
{
	char ids[5][SNAPSHOT_ID_TEXT + 1];
	struct folder *f = *state;
	size_t size = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		size += put(f, i, NOW + i, ids[i]);
	assert_int_equal(put_code(f, 9), -EDQUOT);
	assert_int_equal(files_in(f->path), 5);
	f->config.count_max = 100;
	f->config.size_max = size + 1;
	reopen(f);
	assert_int_equal(put_code(f, 9), -EDQUOT);
	f->config.size_max = 100;
	reopen(f);
	assert_int_equal(put_code(f, 9), -EFBIG);
	f->config.count_max = 2; /* fewer than there are */
	f->config.size_max = MIB(10);
	reopen(f);
	assert_int_equal(put_code(f, 9), -EDQUOT);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		assert_int_equal(read_code(f, ids[i]), 0);
	f->config.count_max = 100;
	f->config.free_min = INT64_MAX;
	reopen(f);
	assert_int_equal(put_code(f, 9), -ENOSPC);
	assert_int_equal(files_in(f->path), 5);
	f->config.free_min = 0;
	reopen(f);
	assert_int_equal(put_code(f, 9), 0);
}

static int put_once(void *ctx)
{
	scoped(buf_release) struct buf got = BUF_INIT(SNAPSHOT_FILE_MAX);
	char id[SNAPSHOT_ID_TEXT + 1];
	struct folder *f = ctx;
	struct snapshots *s;
	uint64_t size;
	int r = snapshots_open(&f->config, &s);

	if (r < 0)
		return r;
	r = snapshots_put(s, STR("no snapshot, but bytes"), NOW, id);
	if (r < 0) {
		assert_int_equal(files_in(f->path), 0);
		snapshots_close(s);
		return r;
	}
	r = snapshots_read(s, str_of(id), KIB(4), &got, &size);
	if (r == 0)
		assert_int_equal(size, 22);
	assert_int_equal(snapshots_remove(s, str_of(id)), 0);
	snapshots_close(s);
	return r;
}

static void folder_survives_failing_allocations(void **state)
{
	for_each_failing_allocation(put_once, *state);
}

/* Odd files */

static void write_text(const struct folder *f, const char *name, const char *text)
{
	char path[256];
	FILE *out;

	(void)snprintf(path, sizeof(path), "%s/%s", f->path, name);
	out = fopen(path, "w");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static void count_problem(void *ctx, const char *where, const char *what)
{
	print_message("  %s %s\n", where, what);
	++*(int *)ctx;
}

#define ZEROS "snapshot-0000000000000000000000000000000"

static void leaves_odd_files_alone(void **state)
{
	struct folder *f = *state;
	struct snapshots_stats stats;
	char id[SNAPSHOT_ID_TEXT + 1], path[256];
	struct stat st;
	int told = 0;

	(void)put(f, 1, NOW, id);
	write_text(f, ZEROS "1", "no snapshot, but somebody's work");
	(void)snprintf(path, sizeof(path), "%s/%s", f->path, ZEROS "2");
	assert_int_equal(mkfifo(path, 0600), 0);
	(void)snprintf(path, sizeof(path), "%s/%s", f->path, ZEROS "3");
	assert_int_equal(symlink("/etc/passwd", path), 0);
	(void)snprintf(path, sizeof(path), "%s/%s", f->path, ZEROS "4");
	assert_int_equal(mkdir(path, 0700), 0);
	write_text(f, ZEROS "5", "");
	write_text(f, ZEROS "6.tmp", "half");        /* a crash left it */
	write_text(f, "snapshot-notes.tmp", "mine"); /* nobody of ours made these */
	write_text(f, "snapshot-1", "mine");
	reopen(f);
	snapshots_stats(f->s, &stats);
	assert_true(stats.count == 1 && stats.odd == 5);
	assert_int_equal(files_in(f->path), 8); /* all but what the crash left */
	(void)snprintf(path, sizeof(path), "%s/%s", f->path, ZEROS "6.tmp");
	assert_int_equal(lstat(path, &st), -1);
	for (char digit = '1'; digit <= '6'; digit++) {
		(void)snprintf(path, sizeof(path), "0000000000000000000000000000000%c", digit);
		assert_int_equal(read_code(f, path), -ENOENT);
		assert_int_equal(snapshots_remove(f->s, str_of(path)), -ENOENT);
	}
	assert_int_equal(snapshots_check(f->s, count_problem, &told), 5);
	assert_int_equal(told, 5);
	assert_int_equal(read_code(f, id), 0);
	(void)snprintf(path, sizeof(path), "%s/%s", f->path, ZEROS "4");
	assert_int_equal(rmdir(path), 0);
}

static void check_reads_all_of_it(void **state)
{
	struct folder *f = *state;
	char id[SNAPSHOT_ID_TEXT + 1], path[256];
	struct stat st;
	int told = 0, fd;

	(void)put(f, 1, NOW, id);
	assert_int_equal(snapshots_check(f->s, count_problem, &told), 0);
	(void)snprintf(path, sizeof(path), "%s/snapshot-%s", f->path, id);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	assert_int_equal(pwrite(fd, "\x55\xaa\x55", 3, st.st_size - 40), 3);
	(void)close(fd);
	reopen(f); /* its head is fine */
	assert_int_equal(snapshots_check(f->s, count_problem, &told), 1);
}

/* Killed */

static _Noreturn void run_victim(struct folder *f, int out)
{
	scoped(buf_release) struct buf file = BUF_INIT(SNAPSHOT_FILE_MAX);
	char id[SNAPSHOT_ID_TEXT + 1];

	f->config.count_max = 60000;
	f->config.size_max = GIB(1);
	must(snapshots_open(&f->config, &f->s) == 0);
	make_file(4, "kept", NOW, &file);
	for (;;) {
		must(snapshots_put(f->s, buf_str(&file), NOW, id) == 0);
		must(write(out, id, SNAPSHOT_ID_TEXT) == SNAPSHOT_ID_TEXT); /* below PIPE_BUF: whole */
	}
}

static void kill_one(struct folder *f, int delay_ms, struct buf *ids)
{
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		run_victim(f, ends[1]);
	(void)close(ends[1]);
	(void)usleep((useconds_t)delay_ms * 1000);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(io_read_fd(ends[0], ids), 0);
	(void)close(ends[0]);
}

static void nothing_is_half_when_killed(void **state)
{
	scoped(buf_release) struct buf ids = BUF_INIT(MIB(4));
	struct folder *f = *state;
	struct snapshots_stats stats;
	int told = 0;

	for (int round = 0; round < 12; round++)
		kill_one(f, 20 + round * 7, &ids);
	reopen(f);
	snapshots_stats(f->s, &stats);
	print_message("  %zu acknowledged, %zu there\n", ids.len / SNAPSHOT_ID_TEXT, (size_t)stats.count);
	assert_true(ids.len > 0 && stats.count >= ids.len / SNAPSHOT_ID_TEXT);
	assert_int_equal(stats.odd, 0);
	for (size_t at = 0; at < ids.len; at += SNAPSHOT_ID_TEXT) {
		char id[SNAPSHOT_ID_TEXT + 1] = { 0 };

		memcpy(id, ids.ptr + at, SNAPSHOT_ID_TEXT);
		assert_int_equal(read_code(f, id), 0);
	}
	assert_int_equal(snapshots_check(f->s, count_problem, &told), 0);
	assert_int_equal(files_in(f->path), stats.count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_it_wrote),
		cmocka_unit_test(rejects_damage),
		cmocka_unit_test(has_limits),
		cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test_setup_teardown(keeps_and_lists, folder_begin, folder_end),
		cmocka_unit_test_setup_teardown(answers_to_no_other_name, folder_begin, folder_end),
		cmocka_unit_test_setup_teardown(refuses_when_full, folder_begin, folder_end),
		cmocka_unit_test_setup_teardown(folder_survives_failing_allocations, folder_begin, folder_end),
		cmocka_unit_test_setup_teardown(leaves_odd_files_alone, folder_begin, folder_end),
		cmocka_unit_test_setup_teardown(check_reads_all_of_it, folder_begin, folder_end),
		cmocka_unit_test_setup_teardown(nothing_is_half_when_killed, folder_begin, folder_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
