/* SPDX-License-Identifier: Apache-2.0 */
/* A service is deleted: what goes, what stays, and what is there when it is killed or the disk is full midway. */
#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "store_support.h"
#include "store_vfs.h"

#define DAY (UINT64_C(86400) * NSEC_PER_SEC)
#define HOUR (UINT64_C(3600) * NSEC_PER_SEC)
#define MORNING (UINT64_C(20000) * DAY + 8 * HOUR)
#define CLOSED_DAYS 3
#define A_DAY 4 /* profiles of each service in a closed day */
#define AN_OPEN_DAY 2
#define EACH (CLOSED_DAYS * A_DAY + 2 * AN_OPEN_DAY + 1) /* profiles of each service */
#define GONE "a service that goes"

static const struct store_selector everything = { .to_ns = UINT64_MAX };

static struct store_selector of(const char *service)
{
	return (struct store_selector){ .service = str_of(service), .to_ns = UINT64_MAX };
}

static size_t count_of(struct fixture *f, const char *service)
{
	const struct store_selector sel = of(service);

	return fixture_count(f, &sel);
}

static void put_each(struct fixture *f, uint64_t seed, uint64_t created_ns)
{
	fixture_put_random(f, GONE, seed, created_ns);
	fixture_put_random(f, "api", seed + 100, created_ns);
	fixture_put_random(f, "web", seed + 200, created_ns + HOUR);
}

/* Three closed days with their sums in the year's file, the first with a late file beside; yesterday and today are
 * open. */
static void fill(struct fixture *f)
{
	f->now = MORNING;
	for (uint64_t i = 0; i < (uint64_t)CLOSED_DAYS * A_DAY; i++)
		put_each(f, i + 1, MORNING + i / A_DAY * DAY + i % A_DAY * HOUR / 2);
	f->now = MORNING + 10 * DAY;
	assert_int_equal(f->store->maintain(f->s), 0);
	put_each(f, 50, MORNING + 2 * HOUR);
	for (uint64_t i = 0; i < 2 * AN_OPEN_DAY; i++)
		put_each(f, 60 + i, f->now - i % 2 * DAY);
}

static void tell(void *ctx, const char *where, const char *what)
{
	(void)ctx;
	print_message("  %s: %s\n", where, what);
}

/* It is there whole, or it has gone; the other services are whole, and lists, sums and totals say the same. */
static void assert_sound(struct fixture *f)
{
	const struct store_selector gone = of(GONE), api = of("api");
	struct store_stats stats;
	size_t left = 0;

	left = count_of(f, GONE);
	assert_true(left == 0 || left == EACH); /* never half */
	assert_int_equal(count_of(f, "api"), EACH);
	assert_int_equal(count_of(f, "web"), EACH);
	fixture_assert_sum(f, &gone);
	fixture_assert_sum(f, &api);
	fixture_assert_sum(f, &everything);
	assert_int_equal(f->store->check(f->s, tell, NULL), 0);
	assert_int_equal(f->store->stats(f->s, &stats), 0);
	assert_int_equal(stats.partitions_bad + stats.files_odd, 0);
	assert_int_equal(stats.profiles, 2 * EACH + left);
}

static bool file_has(const char *path, const char *text)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(64));

	assert_int_equal(io_read_file(path, &bytes), 0);
	return str_search(buf_str(&bytes), str_of(text)) >= 0;
}

static int64_t ask(const char *path, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db = NULL;
	int64_t value;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	value = sqlite3_column_int64(stmt, 0);
	assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return value;
}

/* No file of the folder has its name, nor rows of a service that is not there. The store is closed. */
static void assert_no_trace(struct fixture *f)
{
	DIR *dir = opendir(f->path);
	struct dirent *entry;
	size_t files = 0;
	char path[400];

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		(void)snprintf(path, sizeof(path), "%s/%s", f->path, entry->d_name);
		if (entry->d_name[0] == '.')
			continue;
		assert_false(str_ends(str_of(entry->d_name), STR(".tmp")) ||
			     str_ends(str_of(entry->d_name), STR(".cut")));
		assert_false(file_has(path, GONE));
		if (!str_ends(str_of(entry->d_name), STR(".db")) || !strcmp(entry->d_name, "catalog.db"))
			continue;
		files++;
		assert_int_equal(
			ask(path, "SELECT count(*) FROM dictionary WHERE service NOT IN (SELECT id FROM service)"), 0);
		assert_int_equal(ask(path, "SELECT count(*) FROM series WHERE service NOT IN (SELECT id FROM service)"),
				 0);
		assert_int_equal(ask(path, "SELECT count(*) FROM rollup WHERE series NOT IN (SELECT id FROM series)"),
				 0);
	}
	assert_int_equal(closedir(dir), 0);
	assert_true(files >= CLOSED_DAYS + 3);
}

static int add_name(void *ctx, struct str name)
{
	buf_adds(ctx, name);
	buf_addc(ctx, ';');
	return 0;
}

static void assert_services(struct fixture *f, const char *want)
{
	scoped(buf_release) struct buf found = BUF_INIT(KIB(1));

	assert_int_equal(f->store->services(f->s, &everything, add_name, &found), 0);
	assert_string_equal(buf_cstr(&found), want);
}

static void goes_whole(void **state)
{
	struct fixture *f = *state;
	const struct store_selector gone = of(GONE);
	struct store_removed removed;

	fill(f);
	assert_sound(f);
	assert_services(f, GONE ";api;web;");
	assert_int_equal(f->store->weigh(f->s, &gone, &removed), 0);
	assert_int_equal(removed.profiles, EACH);
	assert_int_equal(removed.files, f->lasts ? CLOSED_DAYS + 3 + 1 : 0);
	assert_int_equal(removed.aside, 0);
	assert_true(removed.bytes > 1000);
	if (f->lasts)
		assert_true(removed.sums >= CLOSED_DAYS);
	assert_int_equal(f->store->remove(f->s, &gone, &removed), 0);
	assert_int_equal(removed.profiles, EACH);
	assert_int_equal(removed.aside, 0);
	assert_true(removed.sums >= (f->lasts ? CLOSED_DAYS : 0));
	if (f->lasts)
		assert_int_equal(removed.files, CLOSED_DAYS + 3 + 1); /* the late one, two open ones; the year */
	assert_true(removed.bytes > 0);
	assert_sound(f);
	assert_int_equal(count_of(f, GONE), 0);
	assert_int_equal(f->store->remove(f->s, &gone, &removed), 0);
	assert_int_equal(removed.profiles + removed.sums + removed.files + removed.bytes + removed.aside, 0);
	assert_int_equal(f->store->weigh(f->s, &gone, &removed), 0);
	assert_int_equal(removed.profiles + removed.sums + removed.files + removed.bytes + removed.aside, 0);
	assert_services(f, "api;web;");
	if (!f->lasts)
		return;
	f->store->close(f->s);
	f->s = NULL;
	assert_no_trace(f);
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
	assert_sound(f);
	f->now += 2 * DAY;
	assert_int_equal(f->store->maintain(f->s), 0); /* the days that were open close as always */
	fixture_reopen(f);
	assert_sound(f);
	fixture_put_random(f, GONE, 7, f->now); /* it may come again */
	assert_int_equal(count_of(f, GONE), 1);
	fixture_assert_sum(f, &everything);
}

/* Sums outlive the profiles they were made from; a service takes them along. */
static void takes_sums_along(void **state)
{
	struct fixture *f = *state;
	const struct store_selector gone = of(GONE), api = of("api");
	struct store_removed removed;
	struct store_sum info;

	fill(f);
	f->now += 2 * DAY;
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_true(f->store->expire(f->s, f->now + DAY) > 0);
	assert_int_equal(count_of(f, GONE), 0);
	for (int after = 0; after < 2; after++) {
		scoped(window_release) struct window its = { 0 }, others = { 0 };

		assert_services(f, after ? "api;web;" : GONE ";api;web;");
		assert_int_equal(f->store->weigh(f->s, &gone, &removed), 0);
		assert_true(after ? removed.files == 0 : removed.files == 1 && removed.sums >= CLOSED_DAYS);
		assert_int_equal(removed.profiles, 0);
		assert_int_equal(f->store->sum(f->s, &gone, &its, &info), 0);
		assert_int_equal(info.profiles, after ? 0 : EACH);
		assert_int_equal(f->store->sum(f->s, &api, &others, &info), 0);
		assert_int_equal(info.profiles, EACH);
		assert_int_equal(f->store->remove(f->s, &gone, &removed), 0);
		assert_int_equal(removed.profiles, 0);
		assert_true(after ? removed.sums == 0 : removed.sums >= CLOSED_DAYS);
	}
}

/* Rows that nobody can read any more go like others; a file that cannot be read is said. */
static void says_what_it_cannot_read(void **state)
{
	struct fixture *f = *state;
	const struct store_selector gone = of(GONE);
	struct store_removed removed;
	char path[128];
	int fd;

	fill(f);
	f->store->close(f->s);
	f->s = NULL;
	(void)snprintf(path, sizeof(path), "%s/2024-10-05.2.db", f->path);
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	for (off_t at = 24; at < 40000; at += 16)
		assert_int_equal(pwrite(fd, "UUUUUUUUUUUUUUUU", 16, at), 16);
	(void)close(fd);
	assert_int_equal(f->store->remove(f->s, &gone, &removed), 0);
	assert_int_equal(removed.aside, 1);
	assert_int_equal(removed.profiles, EACH - A_DAY);
	assert_int_equal(count_of(f, GONE), 0);
	assert_int_equal(count_of(f, "api"), EACH - A_DAY);
}

static int no_day(void *ctx, const struct store_day *day)
{
	(void)ctx;
	(void)day;
	return 0;
}

static uint64_t leaving(struct fixture *f)
{
	struct store_outlook outlook;

	assert_int_equal(f->store->survey(f->s, no_day, NULL, &outlook), 0);
	assert_true(outlook.disk_known);
	return outlook.leaving;
}

struct meanwhile {
	struct fixture *f;
	int asked;
};

/* Before each file is written anew. */
static bool retain_meanwhile(void *ctx)
{
	struct meanwhile *m = ctx;

	assert_true(m->asked ? leaving(m->f) > 0 : leaving(m->f) == 0);
	if (++m->asked == 3)
		assert_int_equal(m->f->store->expire(m->f->s, MORNING + 5 * DAY), CLOSED_DAYS - 1);
	return false;
}

/* Retention sees that what the copies take comes back, and days that it removes meanwhile do not come back. */
static void leaves_retention_its_way(void **state)
{
	struct fixture *f = *state;
	struct meanwhile m = { .f = f };
	struct store_selector gone = of(GONE);
	struct store_removed removed;

	fill(f);
	gone.stop = retain_meanwhile;
	gone.stop_ctx = &m;
	assert_int_equal(f->store->remove(f->s, &gone, &removed), 0);
	assert_true(m.asked > 3);
	assert_int_equal(leaving(f), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(count_of(f, GONE), 0);
		assert_int_equal(count_of(f, "api"), EACH - (CLOSED_DAYS - 1) * A_DAY);
		assert_int_equal(count_of(f, "web"), EACH - (CLOSED_DAYS - 1) * A_DAY);
		assert_int_equal(f->store->check(f->s, tell, NULL), 0);
		fixture_reopen(f);
	}
}

/* Killed at a write or sync of the disk, or these fail, one after the other; at every one with STORE_ROUNDS. */

static uint64_t step_of(uint64_t quick)
{
	return getenv("STORE_ROUNDS") ? 1 : quick;
}

/* Every file of one folder into another one, which is made. */
static void copy_folder(const char *from, const char *to)
{
	DIR *dir = opendir(from);
	struct dirent *entry;
	char path[400];

	assert_non_null(dir);
	assert_int_equal(mkdir(to, 0700), 0);
	while ((entry = readdir(dir))) {
		scoped(buf_release) struct buf bytes = BUF_INIT(MIB(64));

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", from, entry->d_name);
		assert_int_equal(io_read_file(path, &bytes), 0);
		(void)snprintf(path, sizeof(path), "%s/%s", to, entry->d_name);
		assert_int_equal(io_replace_file(path, bytes.ptr, bytes.len), 0);
	}
	assert_int_equal(closedir(dir), 0);
}

struct copies {
	struct fixture *f;
	char kept[80]; /* what every turn begins with */
};

static void copies_begin(struct copies *c, struct fixture *f)
{
	c->f = f;
	fill(f);
	f->store->close(f->s);
	f->s = NULL;
	(void)snprintf(c->kept, sizeof(c->kept), "%s-kept", f->path);
	copy_folder(f->path, c->kept);
}

static void copies_again(const struct copies *c)
{
	(void)fixture_clear(c->f->path);
	copy_folder(c->kept, c->f->path);
}

/* Return: whether it was killed. */
static bool kill_at(struct fixture *f, uint64_t operation)
{
	const struct store_selector gone = of(GONE);
	struct store_removed removed;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		must(f->store->open(&f->config, &f->s) == 0);
		store_vfs_fail(VFS_KILL, operation);
		must(f->store->remove(f->s, &gone, &removed) == 0);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

/* The renames that put new files into their places, by which a test counts what is behind the moment. */

static _Atomic int renames_left = -1; /* -1: as many as there are */
static bool rename_kills;

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
	if (renames_left >= 0 && renames_left-- == 0) {
		if (rename_kills)
			(void)raise(SIGKILL);
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

#define NEW_FILES (CLOSED_DAYS + 3 + 1)

/* Once its moment is over, the deletion is done by the next start. */
static void is_done_by_the_next_start(void **state)
{
	const struct store_selector gone = of(GONE);
	struct fixture *f = *state;
	struct store_removed removed;
	struct copies c;
	char mark[128];

	copies_begin(&c, f);
	(void)snprintf(mark, sizeof(mark), "%s/cut", f->path);
	for (int kills = 0; kills < 2; kills++)
		for (int i = 0; i < NEW_FILES; i++) {
			rename_kills = kills;
			renames_left = i;
			if (kills) {
				assert_true(kill_at(f, UINT64_MAX / 2));
			} else {
				assert_int_equal(f->store->open(&f->config, &f->s), 0);
				assert_int_equal(f->store->remove(f->s, &gone, &removed), -EINPROGRESS);
				assert_int_equal(removed.profiles, 0);
				assert_int_equal(count_of(f, GONE), EACH); /* until then it is as it was */
				assert_int_equal(f->store->remove(f->s, &gone, &removed), -EALREADY);
				f->now += 2 * DAY;
				(void)f->store->maintain(f->s); /* closes no day */
				assert_int_equal(count_of(f, GONE), EACH);
				fixture_put_random(f, "api", 99, f->now);
				f->now -= 2 * DAY;
				f->store->close(f->s);
				f->s = NULL;
			}
			renames_left = -1;
			assert_int_equal(access(mark, F_OK), 0);
			assert_int_equal(f->store->open(&f->config, &f->s), 0);
			assert_int_equal(count_of(f, GONE), 0);
			assert_int_equal(access(mark, F_OK), -1);
			assert_int_equal(count_of(f, "api"), EACH + !kills);
			assert_int_equal(count_of(f, "web"), EACH);
			fixture_assert_sum(f, &everything);
			assert_int_equal(f->store->check(f->s, tell, NULL), 0);
			f->store->close(f->s);
			f->s = NULL;
			assert_no_trace(f);
			copies_again(&c);
		}
	(void)fixture_clear(c.kept);
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
}

static void is_right_wherever_it_is_killed(void **state)
{
	uint64_t step = step_of(61), operation = 0, killed = 0, done = 0;
	const struct store_selector gone = of(GONE);
	struct fixture *f = *state;
	struct copies c;

	copies_begin(&c, f);
	for (bool goes_on = true; goes_on; operation += step) {
		size_t left;

		goes_on = kill_at(f, operation);
		killed += goes_on;
		assert_int_equal(f->store->open(&f->config, &f->s), 0);
		left = count_of(f, GONE);
		done += goes_on && !left;
		assert_sound(f);
		if (!goes_on)
			assert_int_equal(left, 0);
		assert_int_equal(fixture_remove(f, &gone), left);
		assert_sound(f);
		f->store->close(f->s);
		f->s = NULL;
		assert_no_trace(f);
		copies_again(&c);
	}
	print_message("  killed %llu times, %llu times when it was done\n", (unsigned long long)killed,
		      (unsigned long long)done);
	assert_true(killed > done + 5 && (done || step > 1));
	(void)fixture_clear(c.kept);
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
}

/* @quick: so many operations pass from one round to the next. */
static void is_right_on_a_disk_that(struct fixture *f, enum vfs_fault fault, uint64_t quick, int want)
{
	const struct store_selector gone = of(GONE);
	struct store_removed removed, rest;
	uint64_t rounds = 0;
	size_t failed = 0;
	struct copies c;

	copies_begin(&c, f);
	for (uint64_t operation = 0; !operation || failed; operation += step_of(quick), rounds++) {
		int r;

		assert_int_equal(f->store->open(&f->config, &f->s), 0);
		store_vfs_fail(fault, operation);
		r = f->store->remove(f->s, &gone, &removed);
		assert_true(r == 0 || r == want);
		failed = r != 0;
		assert_int_equal(removed.profiles, failed ? 0 : EACH); /* all or nothing */
		assert_int_equal(count_of(f, GONE), EACH - removed.profiles);
		store_vfs_fail(VFS_OK, 0);
		assert_sound(f);
		fixture_put_random(f, GONE, 80, f->now); /* with room again it takes profiles */
		assert_int_equal(f->store->remove(f->s, &gone, &rest), 0);
		assert_int_equal(rest.profiles, EACH + 1 - removed.profiles);
		assert_sound(f);
		f->store->close(f->s);
		f->s = NULL;
		assert_no_trace(f);
		copies_again(&c);
	}
	print_message("  %llu rounds\n", (unsigned long long)rounds);
	assert_true(rounds > 3);
	(void)fixture_clear(c.kept);
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
}

static void is_right_on_a_full_disk(void **state)
{
	is_right_on_a_disk_that(*state, VFS_FULL, 151, -ENOSPC);
}

static void is_right_on_a_disk_that_fails(void **state)
{
	is_right_on_a_disk_that(*state, VFS_WRITE, 163, -EIO);
}

static void is_right_on_a_disk_that_syncs_not(void **state)
{
	is_right_on_a_disk_that(*state, VFS_SYNC, 13, -EIO);
}

/* Some profiles of a series: days and sums agree when the disk is full midway. */
static void removes_some_on_a_full_disk(void **state)
{
	struct fixture *f = *state;
	const struct store_selector some = { .service = STR(GONE), .type = STR("cpu"), .to_ns = UINT64_MAX };
	struct store_removed removed;
	size_t failed = 0;
	struct copies c;

	copies_begin(&c, f);
	for (uint64_t operation = 0; !operation || failed; operation += step_of(251)) {
		assert_int_equal(f->store->open(&f->config, &f->s), 0);
		store_vfs_fail(VFS_FULL, operation);
		failed = f->store->remove(f->s, &some, &removed) != 0;
		store_vfs_fail(VFS_OK, 0);
		fixture_assert_sum(f, &some);
		fixture_assert_sum(f, &everything);
		(void)fixture_remove(f, &some);
		assert_int_equal(count_of(f, GONE), 0);
		fixture_reopen(f);
		fixture_assert_sum(f, &everything);
		assert_int_equal(count_of(f, "api"), EACH);
		assert_int_equal(f->store->check(f->s, tell, NULL), 0);
		f->store->close(f->s);
		f->s = NULL;
		copies_again(&c);
	}
	(void)fixture_clear(c.kept);
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
}

static int heal(void **state)
{
	store_vfs_fail(VFS_OK, 0);
	return fixture_end(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "memory: goes_whole", goes_whole, fixture_memory, fixture_end, NULL },
		{ "sqlite: goes_whole", goes_whole, fixture_sqlite, fixture_end, NULL },
		{ "sqlite, no room for dictionaries: goes_whole", goes_whole, fixture_sqlite_tight, fixture_end, NULL },
		cmocka_unit_test_setup_teardown(takes_sums_along, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(says_what_it_cannot_read, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(leaves_retention_its_way, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(is_right_wherever_it_is_killed, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(is_done_by_the_next_start, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(is_right_on_a_full_disk, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(is_right_on_a_disk_that_fails, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(is_right_on_a_disk_that_syncs_not, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(removes_some_on_a_full_disk, fixture_sqlite, heal),
	};

	store_vfs_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
