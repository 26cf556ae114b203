/* SPDX-License-Identifier: Apache-2.0 */
/* What has to happen now and then, and what goes when there is too much of it. */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "store/sqlite_int.h"

#define QUIET_NS STORE_HOUR_NS /* a day that is over is closed when nothing came for it for so long */
#define SEED_NS (UINT64_C(30) * 60 * NSEC_PER_SEC)   /* how long before midnight the next day's dictionaries are made */
#define SEED_FROM_NS STORE_HOUR_NS                   /* from the profiles of this last stretch */
#define SEED_AT_ONCE 200                             /* keys carried over without letting go of the locks */
#define SETTLE_NS (UINT64_C(10) * 60 * NSEC_PER_SEC) /* an hour gets its sum so long after its end */

uint64_t partition_size(const struct partition *p)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	uint64_t size = 0;

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
		struct stat st;

		buf_addf(&path, "%s%s", p->path, suffixes[i]);
		if (stat(buf_cstr(&path), &st) == 0)
			size += (uint64_t)st.st_blocks * 512; /* what stat() counts in, whatever the file system */
	}
	return size;
}

uint64_t state_day_size(struct sqlite_state *s, int64_t day)
{
	scoped(partition_list_release) struct partition_list list = { 0 };
	uint64_t size = 0;

	ignore(state_partitions(s, false, day, day, &list)); /* then it looks as if nothing came back */
	for (size_t i = 0; i < list.count; i++)
		size += partition_size(list.items[i]);
	return size;
}

/* The note: when a day last went because of its age. It has one length, so that it can be written over in place on a
 * disk that is full. */

#define NOTE "retention"
#define NOTE_FORMAT "%020" PRIu64 "\n"
#define NOTE_SIZE 21

static int read_note(const struct sqlite_state *s, uint64_t *out)
{
	scoped(closep) int fd = openat(s->folder_fd, NOTE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char text[NOTE_SIZE];
	int r = fd < 0 ? -errno : io_pread_all(fd, text, sizeof(text), 0);

	return r ? r : str_to_u64(str_n(text, NOTE_SIZE - 1), 0, UINT64_MAX, out);
}

/* Only into a file that is the note, or a new one. */
static int write_note(const struct sqlite_state *s)
{
	char text[NOTE_SIZE + 1];
	scoped(closep) int fd = -1;
	struct stat st;

	if (fstatat(s->folder_fd, NOTE, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
		return -EINVAL;
	fd = openat(s->folder_fd, NOTE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
	if (fd < 0)
		return -errno;
	(void)snprintf(text, sizeof(text), NOTE_FORMAT, s->expiry.last_wall_ns);
	if (pwrite(fd, text, NOTE_SIZE, 0) != NOTE_SIZE)
		return errno ? -errno : -EIO;
	return fdatasync(fd) < 0 ? -errno : 0;
}

/* Without the note the next process waits its hour from its start. */
static void note(struct sqlite_state *s)
{
	int r = write_note(s);

	if (r < 0)
		log_warn("when a day was removed could not be noted", LOG_CSTR("file", NOTE), LOG_ERR(r));
}

void retention_open(struct sqlite_state *s)
{
	uint64_t last;

	if (read_note(s, &last) == 0)
		s->expiry.last_wall_ns = last;
}

/* The days and years as the decision sees them */

struct entries {
	struct expiry_entry *items;
	size_t *first; /* of its partitions in the lists: days, then years */
	size_t count;
	struct partition_list days, years;
};

static void entries_release(struct entries *e)
{
	free(e->items);
	free(e->first);
	partition_list_release(&e->days);
	partition_list_release(&e->years);
}

static int64_t days_of_year(int64_t first)
{
	time_t seconds = (time_t)(first * 86400);
	struct tm tm = { 0 };

	(void)gmtime_r(&seconds, &tm); /* days of 32-bit seconds: cannot fail */
	tm.tm_year++;
	return timegm(&tm) / 86400 - first;
}

static void add_list(struct entries *e, const struct partition_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct partition *p = list->items[i];
		struct expiry_entry *entry;

		if (!i || list->items[i - 1]->day != p->day) {
			e->first[e->count] = i;
			e->items[e->count++] = (struct expiry_entry){ .day = p->day,
								      .days = p->is_year ? days_of_year(p->day) : 1,
								      .is_year = p->is_year };
		}
		entry = &e->items[e->count - 1];
		entry->size += partition_size(p);
		entry->newest_ns = MAX(entry->newest_ns, p->newest_upload);
	}
}

static int read_entries(struct sqlite_state *s, struct entries *e)
{
	int r = state_partitions(s, false, INT64_MIN, INT64_MAX, &e->days);

	r = r ? r : state_partitions(s, true, INT64_MIN, INT64_MAX, &e->years);
	if (r < 0)
		return r;
	e->items = calloc(e->days.count + e->years.count + 1, sizeof(*e->items));
	e->first = calloc(e->days.count + e->years.count + 1, sizeof(*e->first));
	if (!e->items || !e->first)
		return -ENOMEM;
	add_list(e, &e->days);
	add_list(e, &e->years);
	return 0;
}

/* Going */

/* A put() may be under way in a partition that has to go: all of the day are closed first, and stay when something
 * came. Return: whether nothing did. */
static bool close_all(const struct partition_list *list, size_t first, uint64_t newest_ns)
{
	bool same = true;

	for (size_t i = first; i < list->count && list->items[i]->day == list->items[first]->day; i++) {
		partition_close(list->items[i]);
		same &= list->items[i]->newest_upload <= newest_ns;
	}
	return same;
}

/* Return: how many files went. */
static int drop_entry(struct sqlite_state *s, const struct partition_list *list, size_t first,
		      const struct expiry_entry *entry, const char *reason)
{
	scoped(buf_release) struct buf day = BUF_INIT(64), newest = BUF_INIT(64);
	int count = 0;

	if (!entry->is_year && !close_all(list, first, entry->newest_ns))
		return 0;
	for (size_t i = first; i < list->count && list->items[i]->day == entry->day; i++) {
		state_drop_sized(s, list->items[i], partition_size(list->items[i]));
		s->expired++;
		count++;
	}
	clock_add_iso(&day, (uint64_t)entry->day * STORE_DAY_NS);
	clock_add_iso(&newest, entry->newest_ns);
	log_warn(entry->is_year ? "the sums of a year are removed" : "a day is removed",
		 LOG_STR(entry->is_year ? "year" : "day", str_first(buf_str(&day), entry->is_year ? 4 : 10)),
		 LOG_U64("bytes", entry->size), LOG_CSTR("reason", reason),
		 LOG_STR("newest_upload", entry->newest_ns ? buf_str(&newest) : STR("none")));
	return count;
}

int sqlite_expire(struct store_state *state, uint64_t before_ns)
{
	struct sqlite_state *s = (struct sqlite_state *)state;
	scoped(entries_release) struct entries e = { 0 };
	int dropped = 0, r = read_entries(s, &e);

	for (size_t i = 0; r == 0 && i < e.count; i++) {
		const struct expiry_entry *entry = &e.items[i];
		uint64_t newest = entry->newest_ns ? entry->newest_ns : (uint64_t)(entry->day + 1) * STORE_DAY_NS;

		if (!entry->is_year && newest < before_ns)
			dropped += drop_entry(s, &e.days, e.first[i], entry, "asked for");
	}
	return r ? r : dropped;
}

static void look_at_disk(struct sqlite_state *s, struct expiry_disk *out)
{
	uint64_t leaving = s->leaving; /* before the look at the disk: what goes now is counted twice, not never */
	struct statvfs fs;

	if (s->is_stuck || statvfs(s->path, &fs) < 0)
		return;
	*out = (struct expiry_disk){ .known = true,
				     .size = (uint64_t)fs.f_blocks * fs.f_frsize,
				     .free = (uint64_t)fs.f_bavail * fs.f_frsize,
				     .leaving = leaving };
}

static bool is_due(uint64_t *said_ns, uint64_t monotonic_ns)
{
	if (*said_ns && monotonic_ns - *said_ns < STORE_HOUR_NS)
		return false;
	*said_ns = MAX(monotonic_ns, UINT64_C(1));
	return true;
}

static void say_limits(struct sqlite_state *s, const struct expiry_plan *plan, const struct expiry_disk *disk,
		       uint64_t monotonic_ns)
{
	if (plan->is_lowered && is_due(&s->said_lowered_ns, monotonic_ns))
		log_warn("the file system cannot have as much room as is asked for, whatever goes: the goal is lowered",
			 LOG_U64("goal", plan->free_goal), LOG_U64("free", disk->free), LOG_U64("size", disk->size));
	if (plan->is_over && is_due(&s->said_over_ns, monotonic_ns))
		log_warn("the store is over its limit, and nothing is left that may be removed: today's profiles stay",
			 LOG_U64("free", disk->free), LOG_U64("free_goal", plan->free_goal),
			 LOG_U64("size_limit", s->config.size_max));
}

static struct expiry_rules rules_of(const struct sqlite_state *s)
{
	return (struct expiry_rules){ .age_max_ns = s->config.age_max_ns,
				      .size_max = s->is_stuck ? 0 : s->config.size_max,
				      .free_min = s->config.free_min,
				      .rollup_age_max_ns = s->config.rollup_age_max_ns };
}

/* expire_lock is held. */
static int retain(struct sqlite_state *s)
{
	scoped(entries_release) struct entries e = { 0 };
	const struct expiry_rules rules = rules_of(s);
	uint64_t wall = state_now(s), monotonic = clock_monotonic_ns(s->config.clock);
	struct expiry_disk disk = { 0 };
	struct expiry_plan plan;
	int r;

	if (!rules.age_max_ns && !rules.size_max && !rules.free_min && !rules.rollup_age_max_ns)
		return 0;
	r = read_entries(s, &e);
	if (r < 0)
		return r;
	look_at_disk(s, &disk);
	if (expiry_tick(&s->expiry, wall, monotonic))
		note(s);
	expiry_decide(&rules, &disk, &s->expiry, wall, monotonic, e.items, e.count, &plan);
	say_limits(s, &plan, &disk, monotonic);
	for (size_t i = 0; plan.count && i < e.count; i++) {
		const struct expiry_entry *entry = &e.items[i];

		if (!entry->goes)
			continue;
		if (entry->reason == EXPIRY_AGE) {
			expiry_removed(&s->expiry, wall, monotonic);
			note(s);
		}
		(void)drop_entry(s, entry->is_year ? &e.years : &e.days, e.first[i], entry,
				 expiry_reason_text(entry->reason));
	}
	return 0;
}

/* Looking ahead */

/* What retain() would do now; nothing is written down of it. */
static void look_ahead(struct sqlite_state *s, struct entries *e, struct store_outlook *out)
{
	const struct expiry_rules rules = rules_of(s);
	uint64_t wall = state_now(s), monotonic = clock_monotonic_ns(s->config.clock);
	struct expiry_disk disk = { 0 };
	struct expiry_memory memory;
	struct expiry_plan plan;
	size_t next = 0;

	(void)pthread_mutex_lock(&s->expire_lock);
	memory = s->expiry;
	(void)pthread_mutex_unlock(&s->expire_lock);
	look_at_disk(s, &disk);
	(void)expiry_tick(&memory, wall, monotonic);
	expiry_decide(&rules, &disk, &memory, wall, monotonic, e->items, e->count, &plan);
	*out = (struct store_outlook){ .age_max_ns = s->config.age_max_ns,
				       .size_max = s->config.size_max,
				       .free_min = s->config.free_min,
				       .rollup_age_max_ns = s->config.rollup_age_max_ns,
				       .disk_known = disk.known,
				       .disk_size = disk.size,
				       .disk_free = disk.free,
				       .leaving = disk.leaving,
				       .free_goal = plan.free_goal,
				       .is_lowered = plan.is_lowered,
				       .is_over = plan.is_over,
				       .is_stuck = s->is_stuck };
	out->any_next = expiry_next(&rules, &memory, e->items, e->count, wall, &next, &out->next_ns);
	if (out->any_next) {
		out->next_is_year = e->items[next].is_year;
		out->next_day = e->items[next].day;
	}
}

static int survey_entry(struct sqlite_state *s, const struct entries *e, size_t at, struct store_day *out)
{
	const struct expiry_entry *entry = &e->items[at];
	const struct partition_list *list = entry->is_year ? &e->years : &e->days;
	int r = 0;

	*out = (struct store_day){ .day = entry->day,
				   .days = entry->days,
				   .is_year = entry->is_year,
				   .bytes = entry->size,
				   .newest_ns = entry->is_year ? 0 : entry->newest_ns,
				   .reason = entry->goes ? expiry_reason_text(entry->reason) : NULL };
	for (size_t i = e->first[at]; r == 0 && i < list->count && list->items[i]->day == entry->day; i++) {
		struct partition *p = list->items[i];

		out->files++;
		out->is_open |= !partition_is_closed(p);
		if (!p->is_year)
			r = state_unreadable(s, p, partition_count(p, &out->profiles));
		if (db_is_damage(r)) {
			state_damaged(s, p);
			r = 0;
		}
	}
	return r;
}

int sqlite_survey(struct store_state *state, store_day_fn *visit, void *ctx, struct store_outlook *out)
{
	struct sqlite_state *s = (struct sqlite_state *)state;
	scoped(entries_release) struct entries e = { 0 };
	struct store_outlook outlook;
	int r = read_entries(s, &e);

	if (r < 0)
		return r;
	look_ahead(s, &e, &outlook);
	for (size_t i = 0; r == 0 && i < e.count; i++) {
		struct store_day day;

		r = survey_entry(s, &e, i, &day);
		outlook.bytes += e.items[i].size;
		r = r ? r : visit(ctx, &day);
	}
	if (r == 0)
		*out = outlook;
	return r;
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
	r = several || !p->compacted ? compact_day(s, p->day, NULL) : compact_sums(s, p);
	/* A late profile came in between, or a damaged file was set aside: the next time it works. */
	return r == -EAGAIN || db_is_damage(r) ? 0 : r;
}

/* The new file of a day stands beside the old ones for a while. Where it cannot, trying every minute would fill what
 * room there is again and again, and take it from the uploads. */
static bool has_room_to_close(struct sqlite_state *s, const struct partition_list *list, int64_t day)
{
	uint64_t size = 0;
	struct statvfs fs;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->day == day)
			size += partition_size(list->items[i]);
	return statvfs(s->path, &fs) < 0 || (uint64_t)fs.f_bavail * fs.f_frsize >= size;
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
		if ((several || !p->compacted) && !has_room_to_close(s, &list, p->day))
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

		if (partition_is_closed(p) || state_is_gone(s, p))
			continue;
		r = rollup_hours(p, now > SETTLE_NS ? now - SETTLE_NS : 0);
		if (r == 0 && p->newest_request)
			r = partition_submit(p, &forget);
		if (db_is_damage(r))
			state_damaged(s, p);
		else if (r != -ESTALE && state_unreadable(s, p, r) < 0)
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
	(void)pthread_mutex_lock(&s->expire_lock);
	first = retain(s);
	(void)pthread_mutex_unlock(&s->expire_lock);
	r = tend_open(s, now);
	first = first ? first : r;
	r = seed_tomorrow(s, now);
	first = first ? first : r;
	r = close_days(s, now);
	return first ? first : r;
}
