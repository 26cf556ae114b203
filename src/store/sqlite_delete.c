/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting a service: every file that has something of it is written anew without it, and all take their places at
 * once. A new file NAME is written as NAME.cut, NAME itself is taken by an empty one. When all are whole and synced the
 * empty file CUT_MARK is made: that is the moment. What a crash leaves before it goes at the next start, what it leaves
 * after it takes its place there. */
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "store/sqlite_int.h"

#define FILES_MAX 65536

struct renewal {
	struct partition *old, *fresh;
	struct cut_traces found;
	uint64_t before; /* bytes of the old file */
	uint32_t generation;
	char name[40]; /* of the new file; empty: none is begun */
};

struct deletion {
	struct sqlite_state *state;
	const struct store_selector *sel;
	struct partition_list days, years;
	struct renewal *items; /* days first: a year's file says which days' files its sums are of */
	size_t count, cap;
	uint64_t size; /* bytes that the new files take until the old ones go */
};

static void deletion_release(struct deletion *d)
{
	for (size_t i = 0; i < d->count; i++)
		partition_free(d->items[i].fresh);
	free(d->items);
	partition_list_release(&d->days);
	partition_list_release(&d->years);
	if (!d->state->cut_pending) /* then both stay until the next start */
		d->state->leaving -= d->size;
}

static int look_in(struct deletion *d, struct partition_list *list, struct store_removed *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->count; i++) {
		struct renewal item = { .old = list->items[i] };

		r = removed_beside(d->state, item.old, cut_look(item.old, d->sel->service, &item.found), out);
		if (r < 0 || !item.found.any)
			continue;
		r = array_grow(&d->items, &d->cap, d->count, FILES_MAX);
		if (r == 0)
			d->items[d->count++] = item;
	}
	return r;
}

/* Nothing is closed for copies that will not fit. */
static bool has_room(const struct deletion *d)
{
	uint64_t needed = 0;
	struct statvfs fs;

	for (size_t i = 0; i < d->count; i++)
		needed += d->items[i].found.is_alone ? 0 : partition_size(d->items[i].old);
	return statvfs(d->state->path, &fs) < 0 || (uint64_t)fs.f_bavail * fs.f_frsize >= needed;
}

/* The sums of the days in @path, a year's new file, are of the days' new files from now on. */
static int follow_days(const struct deletion *d, const char *path)
{
	scoped(db_closep) sqlite3 *db = NULL;
	int r = db_open(d->state->vfs, path, false, &db);

	for (size_t i = 0; r == 0 && i < d->count; i++) {
		const struct renewal *item = &d->items[i];

		if (!item->old->is_year)
			r = rollup_follow(db, item->old->day, item->old->generation, item->generation);
	}
	return db_is_damage(r) ? -EIO : r; /* not the old one's */
}

static int write_one(struct deletion *d, struct renewal *item)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
	struct sqlite_state *s = d->state;
	struct partition *p = item->old;
	int r;

	if (store_stopped(d->sel))
		return -ECANCELED;
	if (!p->is_year)
		partition_close(p); /* what comes now goes to another file; to a year nothing does under compact_lock */
	r = cut_look(p, d->sel->service, &item->found); /* what was on its way has come */
	item->before = partition_size(p);
	d->size += item->before; /* retention must remove no day for the room of a copy */
	s->leaving += item->before;
	r = r ? r : compact_reserve(s, p->is_year, p->day, UINT32_MAX, &item->generation, &path);
	if (r == 0) {
		partition_name(item->name, p->is_year, p->day, item->generation);
		buf_adds(&path, STR(CUT_SUFFIX));
		r = path.error ? path.error : cut_file(p, d->sel->service, buf_cstr(&path));
	}
	if (db_is_damage(r)) {
		state_damaged(s, p);
		return -EAGAIN; /* the next time it is done without that one */
	}
	r = r ? r : p->is_year ? follow_days(d, buf_cstr(&path)) : compact_finish(s, buf_cstr(&path), p->day);
	return r ? r : compact_sync(buf_cstr(&path));
}

static void cut_name(const char *name, char out[48])
{
	(void)snprintf(out, 48, "%s" CUT_SUFFIX, name); /* 39 + 4: fits */
}

/* Nothing has happened. */
static void drop_new(struct deletion *d)
{
	for (size_t i = 0; i < d->count; i++) {
		char name[48];

		if (!d->items[i].name[0])
			continue;
		cut_name(d->items[i].name, name);
		if (state_remove_files(d->state, name) < 0 || state_remove_files(d->state, d->items[i].name) < 0)
			d->state->cut_pending = true;
	}
}

/* The moment. Return: 0; -errno: it is not done, but after -EINPROGRESS nobody knows before the next start. */
static int commit(struct sqlite_state *s)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
	int r = state_sync(s);

	state_path(s, CUT_MARK, "", &path);
	r = r ? r : path.error ? path.error : state_reserve(buf_cstr(&path));
	if (r < 0)
		return r;
	return state_sync(s) < 0 ? -EINPROGRESS : 0;
}

int cut_forget(struct sqlite_state *s)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));

	state_path(s, CUT_MARK, "", &path);
	if (path.error)
		return path.error;
	if (unlink(buf_cstr(&path)) < 0)
		return errno == ENOENT ? 0 : -errno;
	return state_sync(s);
}

int cut_take_place(struct sqlite_state *s, const char *name)
{
	char from[48];

	cut_name(name, from);
	return renameat(s->folder_fd, from, s->folder_fd, name) < 0 ? -errno : 0;
}

static int open_new(struct deletion *d)
{
	struct sqlite_state *s = d->state;
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->count; i++)
		r = cut_take_place(s, d->items[i].name);
	r = r ? r : state_sync(s);
	for (size_t i = 0; r == 0 && i < d->count; i++) {
		struct renewal *item = &d->items[i];

		r = partition_open(s, item->old->is_year, item->old->day, item->generation, false, &item->fresh);
		if (r == 0)
			item->fresh->has_no_sum = item->old->has_no_sum;
	}
	return r;
}

/* state->lock is held. A file that retention has removed meanwhile does not come back. */
static void swap_one(struct sqlite_state *s, struct renewal *item)
{
	struct partition *old = item->old;
	bool was_there = state_take_out(s, old);

	if (was_there) {
		old->gone = true;
		old->fate = FATE_REMOVE;
		old->leaving = item->before;
		s->leaving += item->before;
	} else if (old->fate == FATE_REMOVE) {
		item->fresh->fate = FATE_REMOVE;
		return;
	}
	if (state_insert(s, item->fresh) == 0) /* in the room of the old one */
		item->fresh = NULL;            /* the list has it */
	else
		item->fresh->fate = FATE_LEAVE; /* the next start has it */
}

/* For readers, too, all at once. */
static void swap(struct deletion *d, struct store_removed *out)
{
	struct sqlite_state *s = d->state;

	for (size_t i = 0; i < d->count; i++) {
		const struct renewal *item = &d->items[i];

		out->profiles += (uint64_t)item->found.profiles;
		out->sums += (uint64_t)(item->old->is_year ? item->found.sums : 0);
		out->bytes += item->before - MIN(item->before, partition_size(item->fresh));
		out->files++;
		state_catalog_note(s, item->fresh, partition_is_closed(item->fresh) ? "closed" : "open");
	}
	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < d->count; i++)
		swap_one(s, &d->items[i]);
	(void)pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < d->count; i++) {
		struct partition *late = d->items[i].fresh;

		d->items[i].fresh = NULL;
		if (late)
			state_end(s, late);
	}
}

static int write_all(struct deletion *d)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->count; i++)
		r = write_one(d, &d->items[i]);
	return r;
}

/* compact_lock is held. Return: -EAGAIN: a file turned out to be damaged and is set aside. */
static int try_delete(struct sqlite_state *s, const struct store_selector *sel, struct store_removed *out)
{
	scoped(deletion_release) struct deletion d = { .state = s, .sel = sel };
	int r = state_partitions(s, false, 0, INT64_MAX / STORE_DAY_NS, &d.days);

	r = r ? r : state_partitions(s, true, 0, INT64_MAX / STORE_DAY_NS, &d.years);
	r = r ? r : look_in(&d, &d.days, out);
	r = r ? r : look_in(&d, &d.years, out);
	if (r < 0 || !d.count)
		return r;
	if (!has_room(&d))
		return -ENOSPC;
	r = cut_forget(s); /* one that could not be removed before would speak for these files */
	r = r ? r : write_all(&d);
	r = r ? r : commit(s);
	out->aside += r == -EAGAIN;
	if (r < 0 && r != -EINPROGRESS) {
		drop_new(&d);
		return r;
	}
	r = r ? r : open_new(&d);
	if (r < 0) {
		s->cut_pending = true; /* no file is written anew until then: it would be beside its own replacement */
		log_error("a service is deleted with the next start of the collector only", LOG_ERR(r));
		return -EINPROGRESS;
	}
	swap(&d, out);
	if (cut_forget(s) < 0)
		log_warn("the mark of a deletion could not be removed yet", LOG_CSTR("file", CUT_MARK));
	return 0;
}

int delete_service(struct sqlite_state *s, const struct store_selector *sel, struct store_removed *out)
{
	int r;

	(void)pthread_mutex_lock(&s->compact_lock);
	do
		r = s->cut_pending ? -EALREADY : try_delete(s, sel, out);
	while (r == -EAGAIN);
	(void)pthread_mutex_unlock(&s->compact_lock);
	return r;
}
