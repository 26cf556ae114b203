/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http_script.h"
#include "sink/push.h"
#include "sink/spool.h"

#define FAST_NS (5 * NSEC_PER_MSEC)
#define PATIENCE_NS (20 * NSEC_PER_SEC)

struct folder {
	char path[64];
};

static struct folder folder_make(void)
{
	struct folder f = { "/tmp/hearth-push-XXXXXX" };

	assert_non_null(mkdtemp(f.path));
	return f;
}

static size_t folder_count(const struct folder *f, const char *suffix)
{
	DIR *dir = opendir(f->path);
	size_t count = 0;

	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		count += e->d_name[0] != '.' && str_ends(str_of(e->d_name), str_of(suffix));
	closedir(dir);
	return count;
}

static void folder_remove(const struct folder *f)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -r %s", f->path);
	assert_int_equal(system(command), 0);
}

static struct push *open_push(const struct push_config *cfg)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct push *p = NULL;

	if (push_open(cfg, &why, &p) < 0)
		fail_msg("%s", buf_cstr(&why));
	return p;
}

static int put(struct push *p, unsigned int number, size_t size)
{
	char query[64], key[64];
	scoped(buf_release) struct buf body = BUF_INIT(MIB(8));
	struct upload u;

	(void)snprintf(query, sizeof(query), "service=a&type=cpu&labels=n%%3D%u", number);
	(void)snprintf(key, sizeof(key), "run-%u", number);
	for (size_t i = 0; i < size; i++)
		buf_addc(&body, (char)(number + i));
	u = (struct upload){ .query = str_of(query), .key = str_of(key), .body = buf_str(&body) };
	return push_put(p, &u);
}

static void queries_are_escaped_twice(void **state)
{
	static char team[] = "team", both[] = "a,b", blank[] = "a b=c%", key[] = "k+";
	const struct window_label labels[] = { { team, both }, { key, blank } };
	scoped(buf_release) struct buf out = BUF_INIT(KIB(1));

	(void)state;
	upload_query(&out, STR("my app"), STR("cpu"), labels, 2, UINT64_C(1709208005) * NSEC_PER_SEC + 5);
	assert_string_equal(buf_cstr(&out),
			    "service=my%20app&type=cpu&labels=team%3Da%252Cb%2Ck%252B%3Da%2520b%253Dc%2525"
			    "&created_at=2024-02-29T12:00:05");
}

static void urls_are_completed(void **state)
{
	static const char *const cases[][2] = {
		{ "localhost:10100", "http://localhost:10100" },
		{ "http://a/", "http://a" },
		{ " https://a/b// ", "https://a/b" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(1));

		assert_int_equal(upload_collector_url(&out, str_of(cases[i][0]), &out), 0);
		assert_string_equal(buf_cstr(&out), cases[i][1]);
	}
}

static void other_urls_are_refused(void **state)
{
	static const char *const cases[] = {
		"file:///etc/passwd", "ftp://a/b",         "http://",   "",
		"https:///path",      "http://u:pw@",      "FILE:///x", "gopher://u:secret@a",
		"file:/etc/passwd",   "http://a\nHost: b", "http://a b"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(1)), why = BUF_INIT(KIB(1));

		assert_int_equal(upload_collector_url(&out, str_of(cases[i]), &why), -EINVAL);
		assert_true(why.len > 0 && str_search(buf_str(&why), STR("secret")) < 0);
		assert_true(str_find(buf_str(&why), '\n') < 0);
	}
}

static void what_is_put_arrives_in_order(void **state)
{
	static const char *const answers[] = { SCRIPT_OK, NULL };
	struct folder f = folder_make();
	struct push_stats stats;
	struct script s;
	struct push *p;

	(void)state;
	for (int on_disk = 0; on_disk < 2; on_disk++) {
		script_start(&s, 0, answers);
		p = open_push(
			&(struct push_config){ .url = s.url, .spool_dir = on_disk ? f.path : NULL, .token = STR("t") });
		for (unsigned int i = 0; i < 20; i++)
			assert_int_equal(put(p, i, i * 1000), 0);
		assert_int_equal(push_flush(p, PATIENCE_NS), 0);
		push_stats(p, &stats);
		push_close(p);
		script_stop(&s);
		assert_int_equal(stats.sent, 20);
		assert_int_equal(stats.waiting + stats.dropped + stats.refused + stats.damaged + stats.retries, 0);
		assert_int_equal(folder_count(&f, ""), 0);
		assert_int_equal(s.count, 20);
	}
	folder_remove(&f);
}

static void requests_are_profefes(void **state)
{
	static const char *const answers[] = { SCRIPT_OK, NULL };
	scoped(freep) char *key = NULL;
	struct script s;
	struct push *p;

	(void)state;
	script_start(&s, 0, answers);
	p = open_push(&(struct push_config){ .url = s.url });
	assert_int_equal(put(p, 7, 3), 0);
	assert_int_equal(push_flush(p, PATIENCE_NS), 0);
	push_close(p);
	assert_true(str_starts(str_of(s.requests[0].head),
			       STR("POST /api/0/profiles?service=a&type=cpu&labels=n%3D7 HTTP/1.1")));
	key = script_header(&s, 0, "Idempotency-Key");
	assert_string_equal(key, "run-7");
	assert_int_equal(s.requests[0].body_size, 3);
	script_stop(&s);
}

#define BUSY(status, header) "HTTP/1.1 " status " No\r\n" header "Content-Length: 0\r\n\r\n"

static void answers_decide(void **state)
{
	static const char *const again[] = { BUSY("500", ""),
					     BUSY("429", "Retry-After: 0\r\n"),
					     BUSY("408", ""),
					     "",
					     BUSY("499", ""),
					     SCRIPT_OK,
					     NULL };
	static const char *const never[] = { BUSY("400", ""), SCRIPT_OK, NULL };
	static const char *const empty[] = { BUSY("204", ""), NULL };
	static const struct {
		const char *name;
		const char *const *answers;
		uint64_t sent, refused, retries;
	} cases[] = {
		{ "tried again", again, 1, 0, 4 }, /* libcurl itself tries again when a kept connection was closed */
		{ "given up", never, 0, 1, 0 },
		{ "no content is fine", empty, 1, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct push_stats stats;
		struct script s;
		struct push *p;

		print_message("  %s\n", cases[i].name);
		script_start(&s, 0, cases[i].answers);
		p = open_push(&(struct push_config){ .url = s.url, .retry_min_ns = FAST_NS });
		assert_int_equal(put(p, 1, 10), 0);
		assert_int_equal(push_flush(p, PATIENCE_NS), 0);
		push_stats(p, &stats);
		push_close(p);
		for (size_t at = 0; at < s.count; at++) {
			scoped(freep) char *key = script_header(&s, at, "Idempotency-Key");

			assert_string_equal(key, "run-1");
			assert_int_equal(s.requests[at].body_size, 10);
		}
		script_stop(&s);
		assert_int_equal(stats.sent, cases[i].sent);
		assert_int_equal(stats.refused, cases[i].refused);
		assert_int_equal(stats.retries, cases[i].retries);
		assert_int_equal(stats.last_error[0] != 0, stats.refused || stats.retries);
	}
}

static uint64_t wait_for_retries(struct push *p, uint64_t count)
{
	const struct timespec moment = { .tv_nsec = (long)NSEC_PER_MSEC };
	struct push_stats stats;

	do {
		(void)nanosleep(&moment, NULL);
		push_stats(p, &stats);
	} while (stats.retries < count && !stats.damaged);
	return stats.retries;
}

/* What is wrong with us is not the profiles' fault: they stay, in their order, until it is mended. */
static void who_is_denied_keeps_all(void **state)
{
	static const char *const cases[] = { BUSY("401", ""), BUSY("403", ""), BUSY("404", ""), BUSY("405", ""),
					     BUSY("302", "Location: http://127.0.0.1:1/\r\n") };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *const denied[] = { cases[i], NULL };
		static const char *const fine[] = { SCRIPT_OK, NULL };
		struct folder f = folder_make();
		struct push_stats stats;
		struct script s;
		struct push *p;

		print_message("  %.12s\n", cases[i] + strlen("HTTP/1.1 "));
		script_start(&s, 0, denied);
		p = open_push(&(struct push_config){ .url = s.url, .spool_dir = f.path, .retry_min_ns = FAST_NS });
		for (unsigned int n = 0; n < 3; n++)
			assert_int_equal(put(p, n, 10), 0);
		assert_int_equal(push_flush(p, PATIENCE_NS), -EACCES);
		(void)wait_for_retries(p, 3); /* it goes on trying, the oldest first */
		push_stats(p, &stats);
		push_close(p);
		for (size_t at = 0; at < s.count; at++) {
			scoped(freep) char *key = script_header(&s, at, "Idempotency-Key");

			assert_string_equal(key, "run-0");
		}
		script_stop(&s);
		assert_true(stats.denied);
		assert_int_equal(stats.refused + stats.dropped + stats.sent, 0);
		assert_int_equal(stats.waiting, 3);
		assert_int_equal(folder_count(&f, ".profile"), 3);

		script_start(&s, 0, fine); /* the next run has a right token */
		p = open_push(&(struct push_config){ .url = s.url, .spool_dir = f.path, .retry_min_ns = FAST_NS });
		assert_int_equal(push_flush(p, PATIENCE_NS), 0);
		push_stats(p, &stats);
		push_close(p);
		script_stop(&s);
		assert_false(stats.denied);
		assert_int_equal(stats.sent, 3);
		assert_int_equal(folder_count(&f, ""), 0);
		folder_remove(&f);
	}
}

static void retry_after_is_honoured(void **state)
{
	static const char *const answers[] = { BUSY("503", "Retry-After: 1\r\n"), SCRIPT_OK, NULL };
	struct push_stats stats;
	struct script s;
	struct push *p;

	(void)state;
	script_start(&s, 0, answers);
	p = open_push(&(struct push_config){ .url = s.url, .retry_min_ns = FAST_NS });
	assert_int_equal(put(p, 1, 10), 0);
	/* The next attempt is known to come too late: nobody waits for it. */
	assert_int_equal(push_flush(p, 500 * NSEC_PER_MSEC), -ETIMEDOUT);
	push_stats(p, &stats);
	assert_int_equal(stats.retries, 1);
	usleep(700000);
	assert_int_equal(script_count(&s), 1);
	usleep(600000);
	assert_int_equal(script_count(&s), 2);
	push_close(p);
	script_stop(&s);
}

/* One profile that the collector stumbles over does not keep the others. */
static void others_pass_a_bad_one(void **state)
{
	static const char *const answers[] = { BUSY("500", ""), SCRIPT_OK, SCRIPT_OK, BUSY("500", ""), NULL };
	struct push_stats stats = { 0 };
	struct script s;
	struct push *p;

	(void)state;
	script_start(&s, 0, answers);
	p = open_push(
		&(struct push_config){ .url = s.url, .retry_min_ns = NSEC_PER_MSEC, .jitter_ns = 300 * NSEC_PER_MSEC });
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(put(p, i, 10), 0);
	assert_int_equal(push_flush(p, PATIENCE_NS), 0);
	push_stats(p, &stats);
	push_close(p);
	script_stop(&s);
	assert_int_equal(stats.sent, 2);
	assert_int_equal(stats.refused, 1);
}

/* Nor does one at which the connection breaks; it is not given up, since the network may be what breaks. */
static void others_pass_one_that_breaks_off(void **state)
{
	static const char *const answers[] = { "", SCRIPT_OK, "", SCRIPT_OK, NULL };
	static const char *const keys[] = { "run-0", "run-1", "run-2", "run-2", "run-0" };
	struct push_stats stats = { 0 };
	struct script s;
	struct push *p;

	(void)state;
	script_start(&s, 0, answers);
	p = open_push(
		&(struct push_config){ .url = s.url, .retry_min_ns = NSEC_PER_MSEC, .jitter_ns = 100 * NSEC_PER_SEC });
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(put(p, i, 10), 0);
	assert_int_equal(push_flush(p, PATIENCE_NS), 0);
	push_stats(p, &stats);
	push_close(p);
	assert_int_equal(s.count, ARRAY_SIZE(keys)); /* libcurl itself sends run-2 again: a kept connection ended */
	for (size_t i = 0; i < s.count; i++) {
		scoped(freep) char *key = script_header(&s, i, "Idempotency-Key");

		assert_string_equal(key, keys[i]);
	}
	script_stop(&s);
	assert_int_equal(stats.sent, 3);
	assert_int_equal(stats.refused, 0);
}

static void large_ones_have_more_time(void **state)
{
	(void)state;
	assert_int_equal(upload_more_ns(0), 0);
	assert_int_equal(upload_more_ns(MIB(1)), 64 * NSEC_PER_SEC);
	assert_true(upload_more_ns(GIB(1)) > upload_more_ns(MIB(64)));
}

static void a_spool_survives(void **state)
{
	static const char *const answers[] = { SCRIPT_OK, NULL };
	struct folder f = folder_make();
	struct push_stats stats;
	struct script s;
	struct push *p;

	(void)state;
	script_start(&s, 0, answers); /* for a free port */
	script_stop(&s);
	p = open_push(&(struct push_config){ .url = s.url, .spool_dir = f.path, .retry_min_ns = FAST_NS });
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(put(p, i, 100), 0);
	assert_int_equal(push_flush(p, 50 * NSEC_PER_MSEC), -ETIMEDOUT);
	push_stats(p, &stats);
	assert_int_equal(stats.waiting, 5);
	assert_int_equal(stats.waiting_in_memory, 0);
	push_close(p);
	assert_int_equal(folder_count(&f, ".profile"), 5);

	script_start(&s, s.port, answers);
	p = open_push(&(struct push_config){ .url = s.url, .spool_dir = f.path, .retry_min_ns = FAST_NS });
	assert_int_equal(put(p, 5, 100), 0);
	assert_int_equal(push_flush(p, PATIENCE_NS), 0);
	push_stats(p, &stats);
	push_close(p);
	assert_int_equal(stats.found, 5);
	assert_int_equal(stats.sent, 6);
	for (size_t i = 0; i < 6; i++) {
		scoped(freep) char *key = script_header(&s, i, "Idempotency-Key");
		char want[16];

		(void)snprintf(want, sizeof(want), "run-%zu", i);
		assert_string_equal(key, want);
	}
	script_stop(&s);
	assert_int_equal(folder_count(&f, ""), 0);
	folder_remove(&f);
}

static void write_file(const struct folder *f, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", f->path, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void damage_is_counted(void **state)
{
	static const char *const answers[] = { SCRIPT_OK, NULL };
	struct folder f = folder_make();
	struct push_stats stats;
	struct script s;
	struct push *p;

	(void)state;
	write_file(&f, "00000000000000000001.profile", "hearth-spool 1\nservice=a\nk\n3 0000000000000000\nabc");
	write_file(&f, "00000000000000000002.profile", "");
	write_file(&f, "00000000000000000003.profile.tmp", "half");
	write_file(&f, "README", "somebody else's");
	script_start(&s, 0, answers);
	p = open_push(&(struct push_config){ .url = s.url, .spool_dir = f.path });
	assert_int_equal(put(p, 1, 100), 0);
	assert_int_equal(push_flush(p, PATIENCE_NS), 0);
	push_stats(p, &stats);
	push_close(p);
	script_stop(&s);
	assert_int_equal(stats.damaged, 2);
	assert_int_equal(stats.sent, 1);
	assert_int_equal(folder_count(&f, ""), 1);
	folder_remove(&f);
}

/* A file that cannot be opened for lack of descriptors is not damaged. */
static void shortage_loses_nothing(void **state)
{
	struct folder f = folder_make();
	struct rlimit before, none;
	struct push_stats stats;
	struct push *p;

	(void)state;
	p = open_push(&(struct push_config){ .url = "127.0.0.1:1", .spool_dir = f.path, .retry_min_ns = FAST_NS });
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(put(p, i, 100), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	(void)wait_for_retries(p, wait_for_retries(p, 1) + 3);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	push_stats(p, &stats);
	push_close(p);
	assert_int_equal(stats.damaged, 0);
	assert_int_equal(stats.waiting, 3);
	assert_int_equal(folder_count(&f, ".profile"), 3);
	folder_remove(&f);
}

/* The oldest file of the spool turns into what cannot be read, and back. */
static void swap_oldest(const struct folder *f, bool back)
{
	scoped(freep) char *oldest = NULL;
	struct dirent **names = NULL;
	char path[384], away[128];
	int count = scandir(f->path, &names, NULL, alphasort);

	for (int i = 0; i < count; i++) {
		if (!oldest && str_ends(str_of(names[i]->d_name), STR(".profile")))
			oldest = strdup(names[i]->d_name);
		free(names[i]);
	}
	free(names);
	assert_non_null(oldest);
	(void)snprintf(path, sizeof(path), "%s/%s", f->path, oldest);
	(void)snprintf(away, sizeof(away), "%s/away", f->path);
	if (!back)
		assert_int_equal(rename(path, away), 0);
	assert_int_equal(back ? rmdir(path) : mkdir(path, 0700), 0);
	if (back)
		assert_int_equal(rename(away, path), 0);
}

/* Reading fails in a way that may pass: nothing is lost, and nobody else waits for it. */
static void others_pass_an_unreadable_one(void **state)
{
	static const char *const answers[] = { SCRIPT_OK, NULL };
	struct folder f = folder_make();
	struct push_stats stats;
	struct script s;
	struct push *p;

	(void)state;
	script_start(&s, 0, answers);
	p = open_push(&(struct push_config){
		.url = s.url, .spool_dir = f.path, .retry_min_ns = FAST_NS, .jitter_ns = 100 * NSEC_PER_SEC });
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(put(p, i, 10), 0);
	swap_oldest(&f, false);
	assert_int_equal(push_flush(p, 300 * NSEC_PER_MSEC), -ETIMEDOUT);
	push_stats(p, &stats);
	assert_int_equal(stats.sent, 2);
	assert_int_equal(stats.waiting, 1);
	assert_int_equal(stats.damaged, 0);
	swap_oldest(&f, true);
	assert_int_equal(push_flush(p, PATIENCE_NS), 0);
	push_stats(p, &stats);
	push_close(p);
	script_stop(&s);
	assert_int_equal(stats.sent, 3);
	folder_remove(&f);
}

static void bounds_hold(void **state)
{
	struct folder f = folder_make();
	struct push_stats stats;
	struct push *p;

	(void)state;
	for (int on_disk = 0; on_disk < 2; on_disk++) {
		p = open_push(&(struct push_config){ .url = "127.0.0.1:1",
						     .spool_dir = on_disk ? f.path : NULL,
						     .spool_max = KIB(64),
						     .memory_max = KIB(64) });
		for (unsigned int i = 0; i < 100; i++)
			assert_int_equal(put(p, i, KIB(8)), 0);
		assert_int_equal(put(p, 100, KIB(128)), -E2BIG);
		push_stats(p, &stats);
		push_close(p);
		assert_int_equal(stats.waiting, 7);
		assert_int_equal(stats.dropped + stats.waiting, 101);
		assert_true(folder_count(&f, ".profile") <= 8);
	}
	folder_remove(&f);
}

static void one_process_holds_a_spool(void **state)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct folder f = folder_make();
	struct push *first, *second = NULL;

	(void)state;
	first = open_push(&(struct push_config){ .url = "127.0.0.1:1", .spool_dir = f.path });
	assert_int_equal(push_open(&(struct push_config){ .url = "127.0.0.1:1", .spool_dir = f.path }, &why, &second),
			 -EWOULDBLOCK);
	assert_true(str_search(buf_str(&why), STR("in use")) >= 0);
	push_close(first);
	folder_remove(&f);
}

/* The disk is full: the oldest go; when nothing is left to go, memory takes over. */
static void disks_get_full(void **state)
{
	struct folder f = folder_make();
	struct push_stats stats;
	struct push *p;

	(void)state;
	if (mount("none", f.path, "tmpfs", 0, "size=64k") < 0) {
		folder_remove(&f);
		skip_because("cannot mount a tmpfs");
	}
	p = open_push(&(struct push_config){ .url = "127.0.0.1:1", .spool_dir = f.path });
	for (unsigned int i = 0; i < 50; i++)
		assert_int_equal(put(p, i, KIB(7)), 0);
	push_stats(p, &stats);
	assert_int_equal(stats.waiting_in_memory, 0);
	assert_true(stats.dropped > 40 && stats.waiting > 3);
	assert_int_equal(stats.waiting, folder_count(&f, ".profile"));
	assert_int_equal(put(p, 50, KIB(100)), 0);
	push_stats(p, &stats);
	assert_int_equal(stats.waiting_in_memory, 1);
	push_close(p);
	assert_int_equal(folder_count(&f, ".tmp"), 0);
	assert_int_equal(umount(f.path), 0);
	folder_remove(&f);
}

static void pauses_grow_and_vary(void **state)
{
	uint64_t last = 0;

	(void)state;
	for (uint32_t failures = 1; failures < 80; failures++) {
		uint64_t low = push_pause_ns(NSEC_PER_SEC, failures, 0), high = 0;

		for (uint64_t random = 1; random < 100; random++)
			high = MAX(high, push_pause_ns(NSEC_PER_SEC, failures, random * UINT64_C(0x9e3779b97f4a7c15)));
		assert_true(low >= last && high > low && high <= 2 * low);
		assert_true(high <= 120 * NSEC_PER_SEC);
		last = low;
	}
	assert_int_equal(push_pause_ns(NSEC_PER_SEC, 1, 0), NSEC_PER_SEC / 2);
	assert_int_equal(last, 60 * NSEC_PER_SEC);
}

/* Closing does not wait for a collector that says nothing. */
static void closing_is_quick(void **state)
{
	static const char *const answers[] = { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", NULL };
	struct timespec begin, end;
	struct script s;
	struct push *p;

	(void)state;
	script_start(&s, 0, answers);
	p = open_push(&(struct push_config){ .url = s.url });
	assert_int_equal(put(p, 1, 10), 0);
	while (!script_count(&s))
		usleep(1000);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	push_close(p);
	clock_gettime(CLOCK_MONOTONIC, &end);
	script_stop(&s);
	assert_true(end.tv_sec - begin.tv_sec < 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queries_are_escaped_twice),
		cmocka_unit_test(urls_are_completed),
		cmocka_unit_test(other_urls_are_refused),
		cmocka_unit_test(what_is_put_arrives_in_order),
		cmocka_unit_test(requests_are_profefes),
		cmocka_unit_test(answers_decide),
		cmocka_unit_test(who_is_denied_keeps_all),
		cmocka_unit_test(retry_after_is_honoured),
		cmocka_unit_test(others_pass_a_bad_one),
		cmocka_unit_test(others_pass_one_that_breaks_off),
		cmocka_unit_test(large_ones_have_more_time),
		cmocka_unit_test(a_spool_survives),
		cmocka_unit_test(damage_is_counted),
		cmocka_unit_test(shortage_loses_nothing),
		cmocka_unit_test(others_pass_an_unreadable_one),
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(one_process_holds_a_spool),
		cmocka_unit_test(disks_get_full),
		cmocka_unit_test(pauses_grow_and_vary),
		cmocka_unit_test(closing_is_quick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
