/* SPDX-License-Identifier: Apache-2.0 */
/* What has to happen now and then, and what goes when there is too much of it. */
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/log.h"
#include "store/sqlite_int.h"

#define QUIET_NS STORE_HOUR_NS /* a day that is over is closed when nothing came for it for so long */
#define SEED_NS (UINT64_C(30) * 60 * NSEC_PER_SEC)   /* how long before midnight the next day's dictionaries are made */
#define SEED_FROM_NS STORE_HOUR_NS                   /* from the profiles of this last stretch */
#define SEED_AT_ONCE 200                             /* keys carried over without letting go of the locks */
#define SETTLE_NS (UINT64_C(10) * 60 * NSEC_PER_SEC) /* an hour gets its sum so long after its end */

/* Bytes of a partition's files. */
static uint64_t size_of(const struct partition *p)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	uint64_t size = 0;

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
		struct stat st;

		buf_addf(&path, "%s%s", p->path, suffixes[i]);
		if (stat(buf_cstr(&path), &st) == 0)
			size += (uint64_t)st.st_size;
	}
	return size;
}

/* The moment of the last upload; one without uploads was made ahead of its day. */
static uint64_t newest_of(const struct partition *p)
{
	return p->newest_upload ? p->newest_upload : (uint64_t)(p->day + 1) * STORE_DAY_NS;
}

/* A put() may be under way in a partition that has to go: it is closed first, and stays when something came.
 * Return: whether it went. */
static bool drop_older(struct sqlite_state *s, struct partition *p, uint64_t before_ns)
{
	if (newest_of(p) >= before_ns)
		return false;
	partition_close(p);
	if (newest_of(p) >= before_ns)
		return false;
	state_drop(s, p);
	return true;
}

int sqlite_expire(struct store_state *state, uint64_t before_ns)
{
	struct sqlite_state *s = (struct sqlite_state *)state;
	scoped(partition_list_release) struct partition_list list = { 0 };
	int dropped = 0, r = state_partitions(s, false, INT64_MIN, INT64_MAX, &list);

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		bool went = drop_older(s, list.items[i], before_ns);

		s->expired += went;
		dropped += went;
	}
	return r ? r : dropped;
}

static int expire_rollups(struct sqlite_state *s, uint64_t now)
{
	scoped(partition_list_release) struct partition_list list = { 0 };
	uint64_t keep = s->config.rollup_age_max_ns;
	int r = keep && now > keep ? state_partitions(s, true, INT64_MIN, INT64_MAX, &list) : 0;

	for (size_t i = 0; r == 0 && i < list.count; i++)
		if ((uint64_t)(list.items[i]->day + 366) * STORE_DAY_NS < now - keep)
			state_drop(s, list.items[i]);
	return r;
}

/* Files of dropped partitions that a query still reads are as good as free: otherwise one day after the other would go
 * for the room that the first one is about to give. */
static bool has_room(struct sqlite_state *s, uint64_t used)
{
	uint64_t leaving = s->leaving; /* before the look at the disk: what goes now is counted twice, not never */
	struct statvfs fs;

	if (s->config.size_max && used > s->config.size_max)
		return false;
	if (!s->config.free_min || statvfs(s->path, &fs) < 0)
		return true;
	return (uint64_t)fs.f_bavail * fs.f_frsize + leaving >= s->config.free_min;
}

/* The oldest days go first; the newest one stays. */
static int expire_by_size(struct sqlite_state *s)
{
	for (;;) {
		scoped(partition_list_release) struct partition_list days = { 0 }, years = { 0 };
		uint64_t used = 0;
		int r = state_partitions(s, false, INT64_MIN, INT64_MAX, &days);

		r = r ? r : state_partitions(s, true, INT64_MIN, INT64_MAX, &years);
		if (r < 0)
			return r;
		for (size_t i = 0; i < days.count; i++)
			used += size_of(days.items[i]);
		for (size_t i = 0; i < years.count; i++)
			used += size_of(years.items[i]);
		if (days.count < 2 || has_room(s, used))
			return 0;
		log_warn("the store is over its limit: its oldest partition goes",
			 LOG_CSTR("partition", days.items[0]->name), LOG_U64("bytes", used));
		state_drop_sized(s, days.items[0], size_of(days.items[0]));
		s->expired++;
	}
}

/* Seeding */

struct seed_job {
	struct job job;
	struct str name;
	struct service *service;
};

static int run_seed(struct partition *p, struct job *job)
{
	struct seed_job *seed = (struct seed_job *)(void *)job;
	int64_t id;

	job->result = 0;
	return service_write(p, seed->name, seed->service, &id);
}

/* Marks the keys that profiles since @from_ns use. */
static int mark_keys(sqlite3 *db, struct str name, uint64_t from_ns, struct sum *sum)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db,
			   "SELECT header, data FROM profile WHERE form = 0 AND t >= ?2 AND series IN (SELECT series.id"
			   " FROM series JOIN service ON service.id = service WHERE service.name = ?1)",
			   &stmt);

	if (r < 0)
		return r;
	db_bind_str(stmt, 1, name);
	(void)sqlite3_bind_int64(stmt, 2, (int64_t)from_ns);
	while ((r = db_step(stmt)) == 1) {
		buf_clear(&sum->plain);
		r = header_decode(db_column(stmt, 0), sum->strings, sum->mappings, &sum->scratch);
		r = r ? r : pack_expand(db_column(stmt, 1), &sum->plain);
		r = r ? r
		      : columns_decode(buf_str(&sum->plain), sum->keys, sum->scratch.value_type_count, &sum->columns);
		for (size_t i = 0; r == 0 && i < sum->columns.count; i++)
			sum->seen[sum->columns.keys[i]] = 1;
		if (r < 0 && r != -EBADMSG)
			return r;
	}
	return r;
}

static void lock_both(struct service *from, struct service *into)
{
	(void)pthread_mutex_lock(&from->lock);
	(void)pthread_mutex_lock(&into->lock);
}

static void unlock_both(struct service *from, struct service *into)
{
	(void)pthread_mutex_unlock(&into->lock);
	(void)pthread_mutex_unlock(&from->lock);
}

/* Some keys at a time under both locks: profiles that come meanwhile wait a millisecond, not for all of them. What the
 * keys of @sum refer to was there before, so @rm has room for it. */
static int carry_keys(struct service *from, struct service *into, const struct sum *sum)
{
	scoped(remap_release) struct remap rm = { 0 };
	size_t key = 0;
	int r;

	lock_both(from, into);
	r = remap_init(&rm, &into->dictionary.m, &from->dictionary.m);
	r = r ? r : pack_place_all(&rm);
	unlock_both(from, into);
	while (r == 0 && key < sum->keys) {
		size_t moved = 0;
		uint32_t unused;

		lock_both(from, into);
		for (; r == 0 && moved < SEED_AT_ONCE && key < sum->keys; key++) {
			if (!sum->seen[key])
				continue;
			r = pack_key(&rm, &into->dictionary, &from->dictionary.keys[key], &unused);
			moved++;
		}
		unlock_both(from, into);
	}
	(void)pthread_mutex_lock(&into->lock);
	r = r ? r : service_pack(into, LIVE_LEVEL);
	dictionary_trim(&into->dictionary); /* both days' have to fit in memory for a while */
	(void)pthread_mutex_unlock(&into->lock);
	return r;
}

static int seed_service(struct partition *p, struct partition *next, sqlite3 *db, struct str name, uint64_t from_ns)
{
	scoped(sum_release) struct sum sum = { 0 };
	struct service *from = NULL, *into = NULL;
	struct seed_job seed = { .job.run = run_seed, .name = name };
	int r = service_get(p, name, &from);

	if (r < 0)
		return r;
	r = sum_init(&sum, from);
	r = r ? r : mark_keys(db, name, from_ns, &sum);
	r = r ? r : service_get(next, name, &into);
	if (r == 0) {
		r = carry_keys(from, into, &sum);
		seed.service = into;
		r = r ? r : partition_submit(next, &seed.job);
		service_put(next, into);
	}
	service_put(p, from);
	return r;
}

int seed_day(struct sqlite_state *s, struct partition *p, int64_t day)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	struct partition *next = NULL;
	struct reader *reader = NULL;
	uint64_t now = state_now(s), from_ns = now > SEED_FROM_NS ? now - SEED_FROM_NS : 0;
	int r = state_for_write(s, false, day, &next);

	r = r ? r : partition_reader(p, &reader);
	r = r ? r
	      : db_prepare(reader->db,
			   "SELECT DISTINCT service.name FROM profile JOIN series ON series.id = series"
			   " JOIN service ON service.id = service WHERE t >= ?1",
			   &stmt);
	if (r == 0)
		(void)sqlite3_bind_int64(stmt, 1, (int64_t)from_ns);
	while (r == 0 && (r = db_step(stmt)) == 1)
		r = seed_service(p, next, reader->db, db_column(stmt, 0), from_ns);
	db_finalizep(&stmt);
	partition_reader_done(p, reader);
	state_release(s, next);
	return r;
}

static bool is_there(struct sqlite_state *s, int64_t day)
{
	scoped(partition_list_release) struct partition_list list = { 0 };

	return state_partitions(s, false, day, day, &list) == 0 && list.count;
}

static int seed_tomorrow(struct sqlite_state *s, uint64_t now)
{
	scoped(partition_list_release) struct partition_list list = { 0 };
	int64_t today = (int64_t)(now / STORE_DAY_NS), next = (int64_t)((now + SEED_NS) / STORE_DAY_NS);
	int r = 0;

	if (next == today || is_there(s, next))
		return 0;
	r = state_partitions(s, false, today, today, &list);
	for (size_t i = 0; r == 0 && i < list.count; i++)
		r = seed_day(s, list.items[i], next);
	return r;
}

/* Days */

static int run_forget(struct partition *p, struct job *job)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	uint64_t now = state_now(p->state);
	int r = db_prepare(p->db, "DELETE FROM request WHERE at < ?1", &stmt);

	job->result = 0;
	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 1, now > STORE_REQUEST_NS ? (int64_t)(now - STORE_REQUEST_NS) : 0);
	return db_step(stmt);
}

/* @p is over and quiet. Return: 0 or -errno. */
static int close_day(struct sqlite_state *s, struct partition *p, bool several)
{
	int r;

	if (!p->newest_upload && !several) {
		partition_close(p); /* a put() may be under way */
		if (!p->newest_upload) {
			state_drop(s, p); /* made ahead, and nothing came */
			return 0;
		}
	}
	r = several || !p->compacted ? compact_day(s, p->day, NULL) : rollup_day(p);
	/* A late profile came in between, or a damaged file was set aside: the next time it works. */
	return r == -EAGAIN || db_is_damage(r) ? 0 : r;
}

/* A day that cannot be closed (a full disk) is tried again next time, and keeps no other from it. Return: 0, or the
 * first error. */
static int close_days(struct sqlite_state *s, uint64_t now)
{
	scoped(partition_list_release) struct partition_list list = { 0 };
	int first = state_partitions(s, false, INT64_MIN, (int64_t)(now / STORE_DAY_NS) - 1, &list);

	for (size_t i = 0; i < list.count; i++) {
		struct partition *p = list.items[i];
		bool several = i && list.items[i - 1]->day == p->day;
		bool last = i + 1 == list.count || list.items[i + 1]->day != p->day;
		int r;

		if (!last || p->newest_upload + QUIET_NS > now ||
		    (uint64_t)(p->day + 1) * STORE_DAY_NS + QUIET_NS > now)
			continue;
		r = close_day(s, p, several);
		first = first ? first : r;
	}
	return first;
}

/* Return: 0, or the first error: one day keeps no other from it. */
static int tend_open(struct sqlite_state *s, uint64_t now)
{
	scoped(partition_list_release) struct partition_list list = { 0 };
	int first = state_partitions(s, false, INT64_MIN, INT64_MAX, &list);

	for (size_t i = 0; i < list.count; i++) {
		struct partition *p = list.items[i];
		struct job forget = { .run = run_forget };
		int r;

		if (partition_is_closed(p))
			continue;
		r = rollup_hours(p, now > SETTLE_NS ? now - SETTLE_NS : 0);
		if (r == 0 && p->newest_request)
			r = partition_submit(p, &forget);
		if (db_is_damage(r))
			state_damaged(s, p);
		else if (r != -ESTALE)
			first = first ? first : r;
	}
	return first;
}

int sqlite_maintain(struct store_state *state)
{
	struct sqlite_state *s = (struct sqlite_state *)state;
	uint64_t now = state_now(s);
	int first = 0, r;

	/* Room first; then each step, whatever became of the others. */
	if (s->config.age_max_ns && now > s->config.age_max_ns)
		first = MIN(sqlite_expire(state, now - s->config.age_max_ns), 0);
	r = expire_rollups(s, now);
	first = first ? first : r;
	r = expire_by_size(s);
	first = first ? first : r;
	r = tend_open(s, now);
	first = first ? first : r;
	r = seed_tomorrow(s, now);
	first = first ? first : r;
	r = close_days(s, now);
	return first ? first : r;
}
