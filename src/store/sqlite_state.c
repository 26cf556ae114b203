/* SPDX-License-Identifier: Apache-2.0 */
/* Which partitions there are, and the catalog that says so to others. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "base/log.h"
#include "store/sqlite_int.h"

#define PARTITIONS_MAX 65536
#define OPEN_DAYS_MAX 64 /* each has a thread, five descriptors and half a MiB */
#define CLOSE_TRIES 8

void state_catalog_note(struct sqlite_state *s, const struct partition *p, const char *what)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r;

	if (!s->catalog)
		return;
	(void)pthread_mutex_lock(&s->catalog_lock);
	r = db_prepare(s->catalog, "INSERT OR REPLACE INTO partition VALUES(?1, ?2, ?3, ?4)", &stmt);
	if (r == 0) {
		(void)sqlite3_bind_text(stmt, 1, p->name, -1, SQLITE_STATIC);
		(void)sqlite3_bind_int64(stmt, 2, p->day);
		(void)sqlite3_bind_text(stmt, 3, what, -1, SQLITE_STATIC);
		(void)sqlite3_bind_int64(stmt, 4, (int64_t)(state_now(s) / NSEC_PER_SEC));
		r = db_step(stmt);
	}
	db_finalizep(&stmt);
	(void)pthread_mutex_unlock(&s->catalog_lock);
	if (r < 0)
		log_warn("the catalog could not be written; it will be made again at the next start", LOG_ERR(r));
}

void state_path(const struct sqlite_state *s, const char *name, const char *suffix, struct buf *out)
{
	buf_clear(out);
	buf_addf(out, "%s/%s%s", s->path, name, suffix);
}

int state_remove_files(const struct sqlite_state *s, const char *name)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
	int first = 0;

	for (size_t i = 0; i < ARRAY_SIZE(suffixes) && first == 0; i++) {
		state_path(s, name, suffixes[i], &path);
		if (unlink(buf_cstr(&path)) < 0 && errno != ENOENT)
			first = -errno;
	}
	if (first < 0)
		log_error("a file of the store could not be removed", LOG_STR("path", buf_str(&path)), LOG_ERR(first));
	return first;
}

static bool is_there(const struct sqlite_state *s, const char *name, const char *suffix)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
	struct stat st;

	state_path(s, name, suffix, &path);
	return lstat(buf_cstr(&path), &st) == 0 || errno != ENOENT; /* a link that leads nowhere is there, too */
}

/* A name that nothing has: ".damaged", or ".damaged.2" and so on. */
static void aside_suffix(const struct sqlite_state *s, const char *name, char out[32])
{
	(void)snprintf(out, 32, ".damaged");
	for (unsigned int i = 2; is_there(s, name, out); i++)
		(void)snprintf(out, 32, ".damaged.%u", i);
}

void state_set_aside(struct sqlite_state *s, const char *name)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
	scoped(buf_release) struct buf from = BUF_INIT(KIB(16)), to = BUF_INIT(KIB(16));
	char aside[32];

	aside_suffix(s, name, aside);
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		state_path(s, name, suffixes[i], &from);
		state_path(s, name, aside, &to);
		buf_adds(&to, str_of(suffixes[i]));
		if (rename(buf_cstr(&from), buf_cstr(&to)) < 0 && errno != ENOENT)
			log_warn("a damaged partition could not be renamed", LOG_STR("path", buf_str(&from)),
				 LOG_ERR(-errno));
	}
	s->bad++;
	log_error("a partition is damaged: it was set aside, everything else is served", LOG_CSTR("partition", name),
		  LOG_CSTR("suffix", aside));
}

/* The list. state->lock is held (or nobody else is there yet). */

static bool comes_before(const struct partition *a, const struct partition *b)
{
	if (a->is_year != b->is_year)
		return a->is_year;
	return a->day != b->day ? a->day < b->day : a->generation < b->generation;
}

int state_insert(struct sqlite_state *s, struct partition *p)
{
	int r = array_grow(&s->partitions, &s->partitions_cap, s->partitions_count, PARTITIONS_MAX);
	size_t at = s->partitions_count;

	if (r < 0)
		return r;
	for (; at && comes_before(p, s->partitions[at - 1]); at--)
		s->partitions[at] = s->partitions[at - 1];
	s->partitions[at] = p;
	s->partitions_count++;
	return 0;
}

bool state_take_out(struct sqlite_state *s, const struct partition *p)
{
	for (size_t i = 0; i < s->partitions_count; i++) {
		if (s->partitions[i] != p)
			continue;
		s->partitions_count--;
		memmove(&s->partitions[i], &s->partitions[i + 1],
			(s->partitions_count - i) * sizeof(struct partition *));
		return true;
	}
	return false;
}

bool state_has(struct sqlite_state *s, const struct partition *p)
{
	bool found = false;

	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->partitions_count; i++)
		found |= s->partitions[i] == p;
	(void)pthread_mutex_unlock(&s->lock);
	return found;
}

static const char *fate_text(enum partition_fate fate)
{
	static const char *const texts[] = {
		[FATE_REMOVE] = "removed", [FATE_ASIDE] = "damaged", [FATE_LEAVE] = "odd"
	};

	return texts[fate];
}

void state_end(struct sqlite_state *s, struct partition *p)
{
	char name[sizeof(p->name)];
	uint64_t leaving = p->leaving;
	enum partition_fate fate = p->fate;

	memcpy(name, p->name, sizeof(name));
	state_catalog_note(s, p, fate_text(fate));
	partition_free(p);
	if (fate == FATE_ASIDE)
		state_set_aside(s, name);
	else if (fate == FATE_REMOVE && state_remove_files(s, name) < 0)
		s->is_stuck = true; /* what it should have given back does not come: the next one must not go for it */
	s->leaving -= leaving;
}

void state_release(struct sqlite_state *s, struct partition *p)
{
	bool last;

	if (!p)
		return;
	(void)pthread_mutex_lock(&s->lock);
	last = !--p->refs && p->gone;
	(void)pthread_mutex_unlock(&s->lock);
	if (last)
		state_end(s, p);
}

/* The caller has a reference, so the partition lives on until it lets go. Return: whether it was in use until now. */
static bool leave(struct sqlite_state *s, struct partition *p, enum partition_fate fate, uint64_t size)
{
	bool was_there;

	(void)pthread_mutex_lock(&s->lock);
	was_there = state_take_out(s, p);
	if (was_there) {
		p->gone = true;
		p->fate = fate;
		p->leaving = size;
		s->leaving += size;
	}
	(void)pthread_mutex_unlock(&s->lock);
	return was_there;
}

void state_damaged(struct sqlite_state *s, struct partition *p)
{
	(void)leave(s, p, FATE_ASIDE, 0);
}

void state_drop(struct sqlite_state *s, struct partition *p)
{
	(void)leave(s, p, FATE_REMOVE, 0);
}

void state_drop_sized(struct sqlite_state *s, struct partition *p, uint64_t size)
{
	(void)leave(s, p, FATE_REMOVE, size);
}

int state_unreadable(struct sqlite_state *s, struct partition *p, int r)
{
	char why[96] = "is gone";
	bool is_read_only;

	if (r >= 0 || db_is_damage(r))
		return r;
	if (is_there(s, p->name, "") && !odd_look(s, p->name, &is_read_only, why))
		return r;
	if (leave(s, p, FATE_LEAVE, 0))
		odd_note(s, p->name, why);
	return 0;
}

bool state_is_gone(struct sqlite_state *s, struct partition *p)
{
	return !is_there(s, p->name, "") && state_unreadable(s, p, -ENOENT) == 0;
}

/* A number is used once: files that were set aside and those that are out of service keep theirs, and what lies beside
 * a file would become a part of it. */
static bool is_taken(const struct sqlite_state *s, const char *name)
{
	static const char *const suffixes[] = { "", ".damaged", ".tmp", CUT_SUFFIX, "-wal", "-shm", "-journal" };

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (is_there(s, name, suffixes[i]))
			return true;
	return false;
}

uint32_t state_next_generation(struct sqlite_state *s, bool is_year, int64_t day)
{
	uint32_t next = 1;

	for (size_t i = 0; i < s->partitions_count; i++)
		if (s->partitions[i]->is_year == is_year && s->partitions[i]->day == day)
			next = MAX(next, s->partitions[i]->generation + 1);
	for (;; next++) {
		char name[40];

		partition_name(name, is_year, day, next);
		if (!is_taken(s, name))
			return next;
	}
}

int state_sync(struct sqlite_state *s)
{
	return io_sync_folder(s->path);
}

int state_swap(struct sqlite_state *s, struct partition *fresh, const struct partition_list *old)
{
	int r;

	(void)pthread_mutex_lock(&s->lock);
	r = state_insert(s, fresh);
	for (size_t i = 0; r == 0 && i < old->count; i++)
		if (state_take_out(s, old->items[i])) {
			old->items[i]->gone = true;
			old->items[i]->fate = old->items[i]->rows_bad ? FATE_ASIDE : FATE_REMOVE;
		}
	if (r == 0)
		fresh->refs++;
	(void)pthread_mutex_unlock(&s->lock);
	if (r == 0)
		state_catalog_note(s, fresh, partition_is_closed(fresh) ? "closed" : "open");
	return r;
}

/* What is written to all the time: it waits for no other day, and no number of these takes its room. */
static bool is_near(struct sqlite_state *s, int64_t day)
{
	int64_t today = (int64_t)(state_now(s) / STORE_DAY_NS);

	return day >= today - 1 && day <= today + 1;
}

/* state->lock is held. Return: days with a file. */
static size_t count_days(const struct sqlite_state *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->partitions_count; i++)
		count += !s->partitions[i]->is_year &&
			 (!i || s->partitions[i - 1]->is_year || s->partitions[i - 1]->day != s->partitions[i]->day);
	return count;
}

static bool has_day(const struct sqlite_state *s, int64_t day)
{
	for (size_t i = 0; i < s->partitions_count; i++)
		if (!s->partitions[i]->is_year && s->partitions[i]->day == day)
			return true;
	return false;
}

/* state->lock is held. Return: the open day that nothing came for for longest, when there are too many of them. Today
 * and its neighbours stay. */
static const struct partition *one_too_many(struct sqlite_state *s)
{
	const struct partition *oldest = NULL;
	size_t open = 0;

	for (size_t i = 0; i < s->partitions_count; i++) {
		struct partition *p = s->partitions[i];

		if (p->is_year || partition_is_closed(p) || is_near(s, p->day))
			continue;
		open++;
		if (!oldest || p->newest_upload < oldest->newest_upload)
			oldest = p;
	}
	return open >= OPEN_DAYS_MAX ? oldest : NULL;
}

int state_reserve(const char *path)
{
	scoped(closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

	return fd < 0 ? -errno : 0;
}

/* state->lock is held. */
static int reserve(struct sqlite_state *s, bool is_year, int64_t day, uint32_t *generation)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
	char name[40];

	if (!is_year && !is_near(s, day) && count_days(s) >= STORE_DAYS_MAX && !has_day(s, day))
		return -EOVERFLOW;
	*generation = state_next_generation(s, is_year, day);
	partition_name(name, is_year, day, *generation);
	state_path(s, name, "", &path);
	return path.error ? path.error : state_reserve(buf_cstr(&path));
}

/* The number of the next file, which nobody else gets from here on. */
static int reserve_next(struct sqlite_state *s, bool is_year, int64_t day, uint32_t *generation)
{
	int r;

	(void)pthread_mutex_lock(&s->lock);
	r = reserve(s, is_year, day, generation);
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

/* make_lock is held, and no other: nobody waits while the file is made but those who want it. */
static int make(struct sqlite_state *s, bool is_year, int64_t day)
{
	struct partition *p = NULL;
	uint32_t generation;
	int r = reserve_next(s, is_year, day, &generation);

	if (r < 0)
		return r;
	r = partition_open(s, is_year, day, generation, true, &p);
	r = r ? r : io_sync_folder(s->path);
	if (r == 0) {
		state_catalog_note(s, p, "open");
		(void)pthread_mutex_lock(&s->lock);
		r = state_insert(s, p);
		(void)pthread_mutex_unlock(&s->lock);
	}
	if (r < 0) {
		char name[40];

		partition_free(p);
		partition_name(name, is_year, day, generation);
		(void)state_remove_files(s, name); /* it was said */
	}
	return r;
}

/* state->lock is held. Return: the partition of the day that takes writes, or NULL. */
static struct partition *open_one_of(struct sqlite_state *s, bool is_year, int64_t day)
{
	struct partition *found = NULL;

	for (size_t i = 0; i < s->partitions_count; i++) {
		struct partition *p = s->partitions[i];

		if (p->is_year == is_year && p->day == day && !partition_is_closed(p))
			found = p;
	}
	return found;
}

/* Return: whether there is one that takes writes; then *out has a reference. */
static bool find_open(struct sqlite_state *s, bool is_year, int64_t day, struct partition **out)
{
	struct partition *found;

	(void)pthread_mutex_lock(&s->lock);
	found = open_one_of(s, is_year, day);
	if (found) {
		found->refs++;
		*out = found;
	}
	(void)pthread_mutex_unlock(&s->lock);
	return found;
}

/* Profiles of many days at once (an import) must not keep all of these open. */
static int close_one_too_many(struct sqlite_state *s, int64_t day)
{
	int r = 0;

	for (int i = 0; i < CLOSE_TRIES && r == 0; i++) { /* others may open some meanwhile */
		const struct partition *p;
		int64_t other = 0;

		(void)pthread_mutex_lock(&s->lock);
		p = open_one_of(s, false, day) ? NULL : one_too_many(s);
		if (p)
			other = p->day;
		(void)pthread_mutex_unlock(&s->lock);
		if (!p)
			return 0;
		r = compact_day(s, other, NULL);
		if (db_is_damage(r))
			r = 0; /* it was set aside */
	}
	return r == -EAGAIN ? 0 : r;
}

int state_for_write(struct sqlite_state *s, bool is_year, int64_t day, struct partition **out)
{
	int r = is_year || is_near(s, day) ? 0 : close_one_too_many(s, day);

	while (r == 0 && !find_open(s, is_year, day, out)) {
		(void)pthread_mutex_lock(&s->make_lock);
		if (find_open(s, is_year, day, out)) { /* somebody made it while this one waited */
			(void)pthread_mutex_unlock(&s->make_lock);
			break;
		}
		r = make(s, is_year, day);
		(void)pthread_mutex_unlock(&s->make_lock);
	}
	return r;
}

int state_partitions(struct sqlite_state *s, bool years, int64_t first, int64_t last, struct partition_list *out)
{
	int r = 0;

	*out = (struct partition_list){ .state = s };
	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = 0; r == 0 && i < s->partitions_count; i++) {
		struct partition *p = s->partitions[i];

		if (p->is_year != years || p->day > last || p->day + (years ? 365 : 0) < first)
			continue;
		r = array_grow(&out->items, &out->cap, out->count, PARTITIONS_MAX);
		if (r == 0) {
			p->refs++;
			out->items[out->count++] = p;
		}
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (r < 0)
		partition_list_release(out);
	return r;
}

void partition_list_release(struct partition_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		state_release(list->state, list->items[i]);
	free(list->items);
	*list = (struct partition_list){ 0 };
}
