/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store when things go wrong: kill -9 under load, a full disk, I/O errors, damaged files. STORE_ROUNDS sets
 * how often it is killed. */
#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/random.h"
#include "store_support.h"
#include "store_vfs.h"

#define DAY (UINT64_C(86400) * NSEC_PER_SEC)
#define HOUR (UINT64_C(3600) * NSEC_PER_SEC)
#define MORNING (UINT64_C(20000) * DAY + 8 * 3600 * NSEC_PER_SEC)

/* Killed */

struct acknowledged {
	struct store_id id;
	uint64_t seed;
};

struct worker {
	struct fixture *f;
	int out;
	uint64_t seed;
};

/* Puts until it is killed; writes down each profile once put() has returned. */
static void *put_for_ever(void *arg)
{
	struct worker *w = arg;

	for (;; w->seed += 1000) {
		struct acknowledged line = { .seed = w->seed };
		scoped(window_release) struct window window = { 0 };
		struct store_upload upload = { .service = w->seed % 3 ? STR("api") : STR("web"),
					       .type = STR("cpu"),
					       .created_ns = MORNING + w->seed / 1000 % 5 * DAY,
					       .window = &window };

		fixture_window(w->seed % 997 + 1, &window);
		must(w->f->store->put(w->f->s, &upload, &line.id) == 0);
		must(write(w->out, &line, sizeof(line)) == sizeof(line)); /* below PIPE_BUF: whole */
	}
	return NULL;
}

static _Noreturn void run_victim(struct fixture *f, int out, uint64_t seed)
{
	struct worker workers[3];
	pthread_t thread;

	must(f->store->open(&f->config, &f->s) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(workers); i++) {
		workers[i] = (struct worker){ f, out, seed + i };
		must(pthread_create(&thread, NULL, put_for_ever, &workers[i]) == 0);
	}
	for (;;) { /* time flies: days are closed while profiles for them come in */
		f->now += DAY / 4;
		ignore(f->store->maintain(f->s)); /* -EAGAIN and the like: the next turn does it */
		(void)usleep(20000);
	}
}

/* Return: what the victim wrote down. */
static size_t kill_one(struct fixture *f, uint64_t seed, uint64_t delay_ms, struct acknowledged *list, size_t max)
{
	scoped(buf_release) struct buf lines = BUF_INIT(max * sizeof(*list));
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		run_victim(f, ends[1], seed);
	(void)close(ends[1]);
	(void)poll(NULL, 0, (int)delay_ms);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(io_read_fd(ends[0], &lines), 0);
	(void)close(ends[0]);
	memcpy(list, lines.ptr ? lines.ptr : "", lines.len);
	return lines.len / sizeof(*list);
}

static void check_acknowledged(struct fixture *f, const struct acknowledged *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		scoped(window_release) struct window w = { 0 };

		fixture_window(list[i].seed % 997 + 1, &w);
		fixture_assert_reads(f, &list[i].id, &w);
	}
}

static void tell(void *ctx, const char *where, const char *what)
{
	(void)ctx;
	print_message("  %s: %s\n", where, what);
}

static void loses_nothing_when_killed(void **state)
{
	struct fixture *f = *state;
	const char *given = getenv("STORE_ROUNDS");
	size_t rounds = given ? strtoul(given, NULL, 10) : 6, total = 0;
	uint64_t seed = random_u64() % 1000000;
	struct acknowledged *list = calloc(1 << 16, sizeof(*list));
	struct store_stats stats;

	assert_non_null(list);
	print_message("  seed %llu, %zu rounds\n", (unsigned long long)seed, rounds);
	f->store->close(f->s);
	f->s = NULL;
	for (size_t round = 0; round < rounds; round++) {
		size_t count = kill_one(f, seed + round * 10, 100 + (seed * 31 + round * 97) % 400, list, 1 << 16);

		f->now += DAY / 3;
		assert_int_equal(f->store->open(&f->config, &f->s), 0);
		check_acknowledged(f, list, count);
		assert_int_equal(f->store->check(f->s, tell, NULL), 0);
		assert_int_equal(f->store->stats(f->s, &stats), 0);
		assert_int_equal(stats.partitions_bad, 0);
		total += count;
		assert_true(stats.profiles >= total); /* a put that was not acknowledged may be there too */
		fixture_assert_sum(f, &(struct store_selector){ .service = STR("web"), .to_ns = UINT64_MAX });
		f->store->close(f->s);
		f->s = NULL;
	}
	print_message("  %zu acknowledged, all there\n", total);
	assert_true(total > rounds);
	free(list);
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
}

/* Full disks and errors: the n-th write or sync fails, for every n; nothing acknowledged is lost, reading goes on, and
 * when the trouble is over writing does too. */

static int put_seed(struct fixture *f, uint64_t seed, uint64_t created_ns, struct store_id *id)
{
	scoped(window_release) struct window w = { 0 };
	struct store_upload upload = {
		.service = STR("api"), .type = STR("cpu"), .created_ns = created_ns, .window = &w
	};

	fixture_window(seed % 997 + 1, &w);
	return f->store->put(f->s, &upload, id);
}

static void recovers_from(struct fixture *f, enum vfs_fault fault, int want)
{
	struct acknowledged list[64];
	size_t count = 0, failed = 0;
	struct store_id id;

	for (uint64_t n = 0; n < 24; n++) {
		uint64_t created = MORNING + n % 12 / 4 * DAY; /* new partitions in between */
		int r;

		store_vfs_fail(fault, n % 8);
		r = put_seed(f, n + 1, created, &id);
		assert_true(r == 0 || r == want);
		failed += r != 0;
		if (r == 0)
			list[count++] = (struct acknowledged){ id, n + 1 };
		check_acknowledged(f, list, count); /* while it is still broken */
		store_vfs_fail(VFS_OK, 0);
		assert_int_equal(put_seed(f, n + 100, created, &id), 0);
		list[count++] = (struct acknowledged){ id, n + 100 };
	}
	assert_true(failed > 3);
	fixture_reopen(f);
	check_acknowledged(f, list, count);
	assert_int_equal(fixture_count(f, &(struct store_selector){ .to_ns = UINT64_MAX }), count);
	/* Closing days on a disk that fails */
	f->now = MORNING + 10 * DAY;
	for (uint64_t n = 0; n < 40; n += 3) {
		store_vfs_fail(fault, n);
		ignore(f->store->maintain(f->s)); /* may fail, and must not harm */
		check_acknowledged(f, list, count);
		store_vfs_fail(VFS_OK, 0);
	}
	assert_int_equal(f->store->maintain(f->s), 0);
	fixture_reopen(f);
	check_acknowledged(f, list, count);
	fixture_assert_sum(f, &(struct store_selector){ .to_ns = UINT64_MAX });
}

static void survives_a_full_disk(void **state)
{
	recovers_from(*state, VFS_FULL, -ENOSPC);
}

static void survives_failing_writes(void **state)
{
	recovers_from(*state, VFS_WRITE, -EIO);
}

static void survives_failing_syncs(void **state)
{
	recovers_from(*state, VFS_SYNC, -EIO);
}

/* Damage */

static void file_of(struct fixture *f, const char *prefix, char out[128])
{
	DIR *dir = opendir(f->path);
	struct dirent *entry;

	assert_non_null(dir);
	out[0] = 0;
	while ((entry = readdir(dir)))
		if (str_starts(str_of(entry->d_name), str_of(prefix)) && str_ends(str_of(entry->d_name), STR(".db")))
			assert_in_range(snprintf(out, 128, "%s/%s", f->path, entry->d_name), 1, 127);
	assert_int_equal(closedir(dir), 0);
	assert_true(out[0]);
}

static void put_two_days(struct fixture *f, struct store_id ids[2])
{
	f->now = MORNING;
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(put_seed(f, i % 2, MORNING + i % 2 * DAY, &ids[i % 2]), 0);
	f->now = MORNING + 5 * DAY;
	assert_int_equal(f->store->maintain(f->s), 0);
	f->store->close(f->s);
	f->s = NULL;
}

static int count_up(void *ctx, const struct store_profile *profile)
{
	(void)profile;
	++*(size_t *)ctx;
	return 0;
}

static int count_points(void *ctx, const struct store_point *point)
{
	*(uint64_t *)ctx += point->profiles;
	return 0;
}

/* Everything that reads, over damaged files: it may find less, but not crash, and the other day is whole. */
static void read_all(struct fixture *f, const struct store_id *good)
{
	struct store_selector all = { .to_ns = MORNING + 3 * DAY },
			      second = { .from_ns = MORNING + DAY, .to_ns = MORNING + DAY };
	scoped(window_release) struct window w = { 0 }, want = { 0 };
	struct store_sum info;
	uint64_t points = 0;
	size_t count = 0;

	assert_int_equal(f->store->totals(f->s, &all, count_points, &points), 0); /* first: it reads the least */
	assert_in_range(points, 10, 20);
	assert_int_equal(f->store->list(f->s, &all, count_up, &count), 0);
	assert_int_equal(f->store->sum(f->s, &all, &w, &info), 0);
	assert_true(count >= 10 && info.profiles >= 10);
	assert_int_equal(fixture_count(f, &second), 10);
	fixture_window(2, &want);
	fixture_assert_reads(f, good, &want);
}

static void sets_damaged_files_aside(void **state)
{
	struct fixture *f = *state;
	struct store_stats stats;
	struct store_id ids[2];
	char path[128];
	int fd;

	put_two_days(f, ids);
	file_of(f, "2024-10-04", path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "not a database at all", 21, 0), 21);
	(void)close(fd);
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
	assert_int_equal(f->store->stats(f->s, &stats), 0);
	assert_int_equal(stats.partitions_bad, 1);
	read_all(f, &ids[1]);
	assert_int_equal(put_seed(f, 1, MORNING, &ids[0]), 0); /* the day takes profiles again */
	fixture_reopen(f);
	assert_int_equal(fixture_count(f, &(struct store_selector){ .to_ns = UINT64_MAX }), 11);
}

static void survives_any_damage(void **state)
{
	struct fixture *f = *state;
	scoped(buf_release) struct buf whole = BUF_INIT(MIB(16));
	uint64_t seed = random_u64();
	struct store_id ids[2];
	char path[128];

	print_message("  seed %llu\n", (unsigned long long)seed);
	put_two_days(f, ids);
	file_of(f, "2024-10-04", path);
	assert_int_equal(io_read_file(path, &whole), 0);
	for (uint64_t i = 0; i < 60; i++) {
		size_t at = (size_t)((seed + i * UINT64_C(0x9e3779b97f4a7c15)) >> 20) % whole.len;
		size_t size = i % 5 ? 1 + i % 200 : whole.len, end = i % 5 ? whole.len : at;
		scoped(buf_release) struct buf bad = BUF_INIT(MIB(16));

		buf_add(&bad, whole.ptr, end); /* every fifth: cut */
		for (size_t k = at; k < MIN(at + size, end); k++)
			bad.ptr[k] = (char)(bad.ptr[k] ^ (char)(0x55 + i));
		assert_int_equal(io_replace_file(path, bad.ptr, bad.len), 0);
		assert_int_equal(f->store->open(&f->config, &f->s), 0);
		read_all(f, &ids[1]);
		f->store->close(f->s);
		f->s = NULL;
	}
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
}

static void clears_what_a_crash_left(void **state)
{
	struct fixture *f = *state;
	static const char *const left[] = { "2024-10-04.9.db", "2024-10-04.9.db.tmp" };
	struct store_id ids[2];
	char path[160];

	put_two_days(f, ids);
	for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", f->path, left[i]);
		assert_int_equal(io_replace_file(path, "", 0), 0);
	}
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", f->path, left[i]);
		assert_int_equal(access(path, F_OK), -1);
	}
	read_all(f, &ids[1]);
	assert_int_equal(fixture_count(f, &(struct store_selector){ .to_ns = UINT64_MAX }), 20);
}

static int heal(void **state)
{
	store_vfs_fail(VFS_OK, 0);
	return fixture_end(state);
}

/* As a crash leaves it between the first page and the end of the transaction that makes a file. */
static void leave_journal(const char *path)
{
	static const char fill[] =
		"PRAGMA journal_mode=DELETE; CREATE TABLE a(b); DROP TABLE a; PRAGMA cache_size=1; BEGIN;"
		" CREATE TABLE c(d); INSERT INTO c WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
		" FROM n LIMIT 200) SELECT randomblob(9000) FROM n;";
	scoped(buf_release) struct buf file = BUF_INIT(MIB(16)), journal = BUF_INIT(MIB(16));
	char other[200], beside[220];
	sqlite3 *db = NULL;

	(void)snprintf(other, sizeof(other), "%s.made", path);
	assert_int_equal(sqlite3_open(other, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, fill, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(io_read_file(other, &file), 0);
	(void)snprintf(beside, sizeof(beside), "%s-journal", other);
	assert_int_equal(io_read_file(beside, &journal), 0);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(io_replace_file(path, file.ptr, file.len), 0);
	(void)snprintf(beside, sizeof(beside), "%s-journal", path);
	assert_int_equal(io_replace_file(beside, journal.ptr, journal.len), 0);
}

static void opens_what_was_being_made(void **state)
{
	struct fixture *f = *state;
	struct store_id ids[2];
	char path[160];

	put_two_days(f, ids);
	(void)snprintf(path, sizeof(path), "%s/2024-10-09.db", f->path);
	leave_journal(path);
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
	read_all(f, &ids[1]);
	assert_int_equal(fixture_count(f, &(struct store_selector){ .to_ns = UINT64_MAX }), 20);
}

/* Damage while the store runs */

/* Everything but what a file is known by; SQLite drops what it has read of it before. */
static void spoil(struct fixture *f, const char *prefix)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(16));
	char path[128];
	int fd;

	file_of(f, prefix, path);
	assert_int_equal(io_read_file(path, &bytes), 0);
	assert_true(bytes.len > 100);
	memset(bytes.ptr + 24, 0x55, 4); /* the count of changes */
	memset(bytes.ptr + 100, 0x55, bytes.len - 100);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, bytes.ptr, bytes.len, 0), bytes.len);
	(void)close(fd);
}

static void assert_bad(struct fixture *f, uint64_t want)
{
	struct store_stats stats;

	assert_int_equal(f->store->stats(f->s, &stats), 0);
	assert_int_equal(stats.partitions_bad, want);
}

static void takes_keys_beside_damage(void **state)
{
	struct fixture *f = *state;
	scoped(window_release) struct window w = { 0 };
	struct store_upload upload = { .service = STR("api"), .type = STR("cpu"), .window = &w };
	struct store_id id;

	fixture_window(1, &w);
	f->now = MORNING + 12 * HOUR;
	upload.created_ns = f->now;
	upload.request_key = STR("first");
	assert_int_equal(f->store->put(f->s, &upload, &id), 0);
	f->now += 7 * HOUR;
	upload.created_ns = f->now;
	assert_int_equal(f->store->maintain(f->s), 0); /* the first day is closed */
	spoil(f, "2024-10-04");
	upload.request_key = STR("second");
	assert_int_equal(f->store->put(f->s, &upload, &id), 0);
	assert_int_equal(f->store->put(f->s, &upload, &id), 1);
	assert_bad(f, 1);
}

static void put_days(struct fixture *f, uint64_t first, uint64_t count)
{
	struct store_id id;

	for (uint64_t i = 0; i < 4 * count; i++)
		assert_int_equal(put_seed(f, i, MORNING + (first + i % count) * DAY, &id), 0);
	f->now = MORNING + (first + count + 2) * DAY;
}

static void closes_days_beside_damage(void **state)
{
	struct fixture *f = *state;
	char path[128];

	put_days(f, 0, 3);
	fixture_reopen(f); /* so that all is in the file itself */
	spoil(f, "2024-10-04");
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_bad(f, 1);
	file_of(f, "2024-10-05.2", path);
	file_of(f, "2024-10-06.2", path);
	assert_int_equal(f->store->maintain(f->s), 0);
	fixture_assert_sum(f, &(struct store_selector){ .to_ns = UINT64_MAX });
	assert_int_equal(fixture_count(f, &(struct store_selector){ .to_ns = UINT64_MAX }), 8);
}

/* The sums of a damaged year are made again, from all of its days. */
static void makes_sums_again(void **state)
{
	struct fixture *f = *state;

	put_days(f, 0, 2);
	assert_int_equal(f->store->maintain(f->s), 0);
	fixture_reopen(f);
	spoil(f, "rollup-2024");
	put_days(f, 2, 2);
	ignore(f->store->maintain(f->s)); /* may fail when it finds out */
	assert_bad(f, 1);
	assert_int_equal(f->store->maintain(f->s), 0);
	fixture_assert_sum(f, &(struct store_selector){ .to_ns = UINT64_MAX });
	assert_int_equal(fixture_count(f, &(struct store_selector){ .to_ns = UINT64_MAX }), 16);
}

/* The next number of a day may be taken by a file that was set aside. */
static void removes_beside_damage(void **state)
{
	struct fixture *f = *state;
	struct store_selector first = { .to_ns = MORNING }, all = { .to_ns = UINT64_MAX };
	struct store_id ids[2];
	char path[160];

	put_two_days(f, ids);
	(void)snprintf(path, sizeof(path), "%s/2024-10-04.3.db.damaged", f->path);
	assert_int_equal(io_replace_file(path, "", 0), 0);
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
	assert_int_equal(fixture_remove(f, &first), 10);
	assert_int_equal(fixture_count(f, &all), 10);
	assert_int_equal(put_seed(f, 3, MORNING, &ids[0]), 0);
	fixture_reopen(f);
	assert_int_equal(fixture_count(f, &all), 11);
	assert_int_equal(f->store->maintain(f->s), 0);
	fixture_reopen(f);
	assert_int_equal(fixture_count(f, &all), 11);
	assert_int_equal(access(path, F_OK), 0);
}

/* As many days as there may be: names of one closed file. */
static void takes_today_beside_all_days(void **state)
{
	struct fixture *f = *state;
	struct store_id ids[2];
	struct store_stats stats;
	char path[160], other[160];

	put_two_days(f, ids);
	file_of(f, "2024-10-04", path);
	for (uint64_t i = 0; i < STORE_DAYS_MAX - 2; i++) {
		scoped(buf_release) struct buf day = BUF_INIT(64);

		clock_add_iso(&day, (5000 + i) * DAY);
		(void)snprintf(other, sizeof(other), "%s/%.10s.db", f->path, buf_cstr(&day));
		assert_int_equal(link(path, other), 0);
	}
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
	f->now = MORNING + 20 * DAY;
	assert_int_equal(put_seed(f, 1, MORNING - 30 * DAY, &ids[0]), -EOVERFLOW);
	for (uint64_t near = 19; near <= 21; near++)
		assert_int_equal(put_seed(f, near, MORNING + near * DAY, &ids[0]), 0);
	assert_int_equal(put_seed(f, 1, MORNING + 22 * DAY, &ids[0]), -EOVERFLOW);
	assert_int_equal(put_seed(f, 1, MORNING, &ids[0]), 0); /* a day that is there */
	assert_int_equal(f->store->stats(f->s, &stats), 0);
	assert_int_equal(stats.partitions_bad + stats.files_odd, 0);
}

/* Rows that cannot be read when their day is closed stay in its old file. */
static void keeps_rows_it_cannot_read(void **state)
{
	struct fixture *f = *state;
	struct store_stats stats;
	struct store_id id;
	sqlite3 *db = NULL;
	char path[160], aside[180];

	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(put_seed(f, i, MORNING, &id), 0);
	f->store->close(f->s);
	f->s = NULL;
	file_of(f, "2024-10-04", path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "UPDATE profile SET data = X'0011' WHERE id IN (1, 4)", NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
	f->now = MORNING + 5 * DAY;
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(f->store->stats(f->s, &stats), 0);
	assert_int_equal(stats.rows_bad, 2);
	assert_int_equal(stats.partitions_bad, 1);
	assert_int_equal(fixture_count(f, &(struct store_selector){ .to_ns = UINT64_MAX }), 3);
	(void)snprintf(aside, sizeof(aside), "%s.damaged", path);
	assert_int_equal(access(aside, F_OK), 0);
	fixture_reopen(f);
	assert_int_equal(fixture_count(f, &(struct store_selector){ .to_ns = UINT64_MAX }), 3);
	assert_true(f->store->check(f->s, tell, NULL) > 0);
}

static void move_to(struct fixture *f, const char *from, const char *to)
{
	char old[160], new[160];

	(void)snprintf(old, sizeof(old), "%s/%s", f->path, from);
	(void)snprintf(new, sizeof(new), "%s/%s", f->path, to);
	assert_int_equal(rename(old, new), 0);
}

/* A file of a day that was away while the day was closed, and one of sums that were made again meanwhile: nothing is
 * removed for it, and nothing counts twice. */
static void takes_back_what_was_away(void **state)
{
	struct fixture *f = *state;
	struct store_selector all = { .to_ns = UINT64_MAX };
	struct store_id ids[2];

	put_two_days(f, ids);
	move_to(f, "2024-10-04.2.db", "away");
	move_to(f, "rollup-2024.db", "away-year");
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
	assert_int_equal(fixture_count(f, &all), 10);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(put_seed(f, 5, MORNING, &ids[0]), 0);
	f->now += 5 * DAY;
	assert_int_equal(f->store->maintain(f->s), 0);
	f->store->close(f->s);
	f->s = NULL;
	move_to(f, "rollup-2024.db", "rollup-2024.2.db");
	move_to(f, "away-year", "rollup-2024.db");
	move_to(f, "2024-10-04.2.db", "2024-10-04.7.db"); /* it says what it replaces: nothing numbered 2 */
	move_to(f, "away", "2024-10-04.2.db");
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
	assert_int_equal(fixture_count(f, &all), 23);
	fixture_assert_sum(f, &all);
	f->now += DAY;
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(fixture_count(f, &all), 23);
	fixture_assert_sum(f, &all);
}

/* A WAL that SQLite does not know again takes the tables of a young file along: that is damage, nothing to clean up. */
static void keeps_a_file_that_lost_its_tables(void **state)
{
	struct fixture *f = *state;
	struct store_stats stats;
	sqlite3 *db = NULL;
	char path[160];

	f->store->close(f->s);
	f->s = NULL;
	for (int i = 0; i < 2; i++) { /* an empty file, and one that says that it has a WAL */
		(void)snprintf(path, sizeof(path), "%s/2024-10-0%d.db", f->path, 4 + i);
		assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, i ? "PRAGMA journal_mode=WAL" : "BEGIN", NULL, NULL, NULL),
				 SQLITE_OK);
		assert_int_equal(sqlite3_close(db), SQLITE_OK);
		(void)snprintf(path, sizeof(path), "%s/2024-10-0%d.db-wal", f->path, 4 + i);
		assert_int_equal(io_replace_file(path, "profiles", 8), 0);
	}
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
	assert_int_equal(f->store->stats(f->s, &stats), 0);
	assert_int_equal(stats.partitions_bad, 2);
	(void)snprintf(path, sizeof(path), "%s/2024-10-04.db.damaged-wal", f->path);
	assert_int_equal(access(path, F_OK), 0);
}

/* A second file of one name that is set aside does not take the place of the first. */
static void sets_aside_beside_others(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = { "2024-10-04.db", "2024-10-04.db.damaged", "2024-10-04.db.damaged.2" };
	char path[160];

	f->store->close(f->s);
	f->s = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", f->path, names[i]);
		assert_int_equal(io_replace_file(path, "somebody's work, long enough for a header", 40 - i), 0);
	}
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
	for (size_t i = 1; i < 4; i++) {
		struct stat st;

		(void)snprintf(path, sizeof(path), "%s/2024-10-04.db.damaged%s", f->path,
			       i == 1   ? ""
			       : i == 2 ? ".2"
					: ".3");
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_size, i == 3 ? 40 : 40 - i);
	}
	assert_int_equal(f->store->check(f->s, tell, NULL), 3);
}

/* A simulated disk: as large as this, less the files in a folder. */
#define DISK_BLOCKS 1000000

static const char *disk_folder;
static uint64_t disk_blocks = DISK_BLOCKS;

int statvfs(const char *path, struct statvfs *out)
{
	DIR *dir = opendir(disk_folder ? disk_folder : path);
	struct dirent *entry;
	struct stat st;

	if (!dir)
		return -1;
	*out = (struct statvfs){ .f_frsize = 1, .f_bavail = disk_blocks };
	while (disk_folder && (entry = readdir(dir)))
		if (strstr(entry->d_name, ".db") && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
		    str_starts(str_of(entry->d_name), STR("20")))
			out->f_bavail -= (uint64_t)st.st_size;
	return closedir(dir);
}

/* Called while all of the partitions are being read: none of their files can go. */
static int make_room(void *ctx, const struct store_point *point)
{
	struct fixture *f = ctx;

	(void)point;
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(f->store->maintain(f->s), 0);
	return 1;
}

static void makes_room_day_by_day(void **state)
{
	struct fixture *f = *state;
	struct store_selector all = { .to_ns = UINT64_MAX };
	struct store_stats stats;
	struct statvfs fs;
	struct store_id id;

	for (uint64_t day = 0; day < 5; day++)
		assert_int_equal(put_seed(f, day, MORNING + day * DAY, &id), 0);
	f->now = MORNING + 10 * DAY;
	assert_int_equal(f->store->maintain(f->s), 0);
	fixture_reopen(f);
	disk_folder = f->path;
	assert_int_equal(statvfs(f->path, &fs), 0);
	f->config.free_min = fs.f_bavail + 1;
	fixture_reopen(f);
	assert_int_equal(f->store->totals(f->s, &all, make_room, f), 1);
	assert_int_equal(f->store->maintain(f->s), 0); /* the file went: there is room */
	assert_int_equal(f->store->stats(f->s, &stats), 0);
	assert_int_equal(stats.expired_partitions, 1);
	assert_int_equal(fixture_count(f, &all), 4);
	disk_folder = NULL;
}

/* Where the new file of a day does not fit beside the old one, trying would only take room from the uploads. */
static void closes_days_where_there_is_room(void **state)
{
	struct fixture *f = *state;
	struct store_selector all = { .to_ns = UINT64_MAX };
	char path[160];

	put_days(f, 0, 2);
	(void)snprintf(path, sizeof(path), "%s/2024-10-04.2.db", f->path);
	disk_blocks = 4096;
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(fixture_count(f, &all), 8);
	disk_blocks = DISK_BLOCKS;
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(fixture_count(f, &all), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(loses_nothing_when_killed, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(survives_a_full_disk, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(survives_failing_writes, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(survives_failing_syncs, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(sets_damaged_files_aside, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(survives_any_damage, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(clears_what_a_crash_left, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(opens_what_was_being_made, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(takes_keys_beside_damage, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(closes_days_beside_damage, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(makes_sums_again, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(removes_beside_damage, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(takes_today_beside_all_days, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(keeps_rows_it_cannot_read, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(takes_back_what_was_away, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(keeps_a_file_that_lost_its_tables, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(sets_aside_beside_others, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(makes_room_day_by_day, fixture_sqlite, heal),
		cmocka_unit_test_setup_teardown(closes_days_where_there_is_room, fixture_sqlite, heal),
	};

	store_vfs_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
