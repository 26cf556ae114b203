/* SPDX-License-Identifier: Apache-2.0 */
/* Closing a day: all its files become one, with one dictionary for each service that has only what is used, packed as
 * small as it gets. The old files are served until the new one is complete. */
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "store/sqlite_int.h"

#define PLAIN_MAX GIB(1)

struct compaction {
	struct sqlite_state *state;
	const struct partition_list *old;
	const struct store_selector *without;
	struct partition *damaged; /* of the old ones, or NULL */
	sqlite3 *db;
	sqlite3_stmt *add_service, *add_series, *find_series, *add_chunk, *add_profile;
	struct intern services; /* names that are done */
	/* Of the service at hand */
	struct dictionary dictionary;
	struct str service;
	int64_t service_id; /* 0: it has no profile so far, and leaves nothing */
	/* Of the service in one source */
	struct partition *source;
	struct remap rm;
	const struct dictionary *from;
	uint32_t *keys; /* of the source: key + 1 in the new one, or 0 */
	struct header header;
	struct columns columns;
	struct buf plain, packed_header, packed;
};

static void compaction_release(struct compaction *c)
{
	db_finalizep(&c->add_service);
	db_finalizep(&c->add_series);
	db_finalizep(&c->find_series);
	db_finalizep(&c->add_chunk);
	db_finalizep(&c->add_profile);
	db_closep(&c->db);
	intern_release(&c->services);
	header_release(&c->header);
	columns_release(&c->columns);
	buf_release(&c->plain);
	buf_release(&c->packed_header);
	buf_release(&c->packed);
}

static own_frame int begin(struct compaction *c, const char *path)
{
	int r = db_open(c->state->vfs, path, false, &c->db);

	intern_init(&c->services, MIB(256));
	c->plain.max = c->packed_header.max = c->packed.max = PLAIN_MAX;
	/* Nobody knows of this file until it is renamed, synced and whole. */
	r = r ? r : db_exec(c->db, "PRAGMA page_size=8192; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF");
	r = r ? r : db_create(c->db);
	r = r ? r : db_prepare(c->db, "INSERT INTO service(name) VALUES(?1)", &c->add_service);
	r = r ? r : db_prepare(c->db, "INSERT INTO series(service, type, labels) VALUES(?1, ?2, ?3)", &c->add_series);
	r = r ? r
	      : db_prepare(c->db, "SELECT id FROM series WHERE service = ?1 AND type = ?2 AND labels = ?3",
			   &c->find_series);
	r = r ? r : db_prepare(c->db, "INSERT INTO dictionary VALUES(?1, 0, ?2)", &c->add_chunk);
	r = r ? r
	      : db_prepare(c->db,
			   "INSERT INTO profile(uid, series, t, uploaded, form, header, data, facts)"
			   " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
			   &c->add_profile);
	return r ? r : db_exec(c->db, "BEGIN");
}

/* What goes wrong in the new file must not be taken for damage of an old one. */
static int in_new(int r)
{
	return db_is_damage(r) ? -EIO : r;
}

/* @r: of reading @p. */
static int in_old(struct compaction *c, struct partition *p, int r)
{
	if (db_is_damage(r) && !c->damaged)
		c->damaged = p;
	return r;
}

static int insert_row(sqlite3 *db, sqlite3_stmt *stmt, int64_t *id)
{
	int r = db_step(stmt);

	(void)sqlite3_reset(stmt);
	*id = sqlite3_last_insert_rowid(db);
	return in_new(r);
}

static int series_id(struct compaction *c, const struct series_row *series, int64_t *out)
{
	scoped(buf_release) struct buf labels = BUF_INIT(MIB(1));
	sqlite3_stmt *const both[] = { c->find_series, c->add_series };
	int r = 0;

	if (!c->service_id) {
		db_bind_str(c->add_service, 1, c->service);
		r = insert_row(c->db, c->add_service, &c->service_id);
	}
	if (r < 0)
		return r;
	store_labels_pack(series->labels, series->series.label_count, &labels);
	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		(void)sqlite3_bind_int64(both[i], 1, c->service_id);
		db_bind_str(both[i], 2, series->series.type);
		db_bind_str(both[i], 3, buf_str(&labels));
	}
	r = db_step(c->find_series);
	if (r == 1)
		*out = sqlite3_column_int64(c->find_series, 0);
	(void)sqlite3_reset(c->find_series);
	return r == 0 ? insert_row(c->db, c->add_series, out) : in_new(MIN(r, 0));
}

static int map_key(struct compaction *c, uint32_t *key)
{
	uint32_t *known = &c->keys[*key], moved = 0;
	int r = 0;

	if (!*known) {
		r = pack_key(&c->rm, &c->dictionary, &c->from->keys[*key], &moved);
		if (r == 0)
			*known = moved + 1;
	}
	*key = *known - 1;
	return r;
}

/* Columns: uid, t, uploaded, form, header, data, facts. */
static int repack(struct compaction *c, sqlite3_stmt *row)
{
	scoped(header_release) struct header moved = { 0 };
	int r = header_decode(db_column(row, 4), intern_count(&c->from->m.strings), c->from->m.mappings_count,
			      &c->header);

	buf_clear(&c->plain);
	buf_clear(&c->packed);
	buf_clear(&c->packed_header);
	r = r ? r : pack_expand(db_column(row, 5), &c->plain);
	r = r ? r : columns_decode(buf_str(&c->plain), c->from->keys_count, c->header.value_type_count, &c->columns);
	r = r ? r : pack_header(&c->rm, &c->header, &moved);
	for (size_t i = 0; r == 0 && i < c->columns.count; i++)
		r = map_key(c, &c->columns.keys[i]);
	r = r ? r : columns_sort(&c->columns);
	if (r < 0)
		return r;
	buf_clear(&c->plain);
	header_encode(&moved, &c->packed_header);
	columns_encode(&c->columns, &c->plain);
	r = c->packed_header.error ? c->packed_header.error : c->plain.error;
	return r ? r : pack_compress(buf_str(&c->plain), CLOSED_LEVEL, &c->packed);
}

static int copy_profile(struct compaction *c, sqlite3_stmt *row, int64_t series)
{
	bool is_packed = sqlite3_column_int(row, 3) == FORM_PACKED;
	int r = is_packed ? repack(c, row) : 0;

	if (r == -EBADMSG) {
		c->source->rows_bad++; /* it stays where it is: its file is set aside, not removed */
		return 0;
	}
	if (r < 0)
		return r;
	db_bind_blob(c->add_profile, 1, db_column(row, 0));
	(void)sqlite3_bind_int64(c->add_profile, 2, series);
	(void)sqlite3_bind_int64(c->add_profile, 3, sqlite3_column_int64(row, 1));
	(void)sqlite3_bind_int64(c->add_profile, 4, sqlite3_column_int64(row, 2));
	(void)sqlite3_bind_int(c->add_profile, 5, sqlite3_column_int(row, 3));
	db_bind_blob(c->add_profile, 6, is_packed ? buf_str(&c->packed_header) : db_column(row, 4));
	db_bind_blob(c->add_profile, 7, is_packed ? buf_str(&c->packed) : db_column(row, 5));
	db_bind_blob(c->add_profile, 8, db_column(row, 6));
	return insert_row(c->db, c->add_profile, &series);
}

static int copy_series(struct compaction *c, sqlite3 *from, const struct series_row *series)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	bool cut = c->without && store_selects(c->without, &series->series);
	int64_t id = 0;
	int r = db_prepare(from,
			   "SELECT uid, t, uploaded, form, header, data, facts FROM profile WHERE series = ?1"
			   " AND NOT (?2 AND t BETWEEN ?3 AND ?4) ORDER BY t",
			   &stmt);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 1, series->id);
	(void)sqlite3_bind_int(stmt, 2, cut);
	(void)sqlite3_bind_int64(stmt, 3, cut ? (int64_t)MIN(c->without->from_ns, (uint64_t)INT64_MAX) : 0);
	(void)sqlite3_bind_int64(stmt, 4, cut ? (int64_t)MIN(c->without->to_ns, (uint64_t)INT64_MAX) : 0);
	while ((r = db_step(stmt)) == 1) {
		r = id ? 0 : series_id(c, series, &id);
		r = r ? r : copy_profile(c, stmt, id);
		if (r < 0)
			return r;
	}
	return r;
}

/* A put() that saw the partition open may still be adding to the dictionary. Later ones see it closed. */
static void wait_for_puts(struct service *service)
{
	(void)pthread_mutex_lock(&service->lock);
	(void)pthread_mutex_unlock(&service->lock);
}

/* The service @name of one source. */
static int copy_service(struct compaction *c, struct partition *p, struct str name)
{
	scoped(series_list_release) struct series_list list = { 0 };
	scoped(freep) uint32_t *keys = NULL;
	struct service *service = NULL;
	struct reader *reader = NULL;
	int r = partition_reader(p, &reader);

	r = r ? r : read_series(reader->db, &(struct store_selector){ .service = name }, &list);
	if (r == 0 && list.count)
		r = service_get(p, name, &service);
	if (r == 0 && service) {
		c->source = p;
		c->from = &service->dictionary;
		wait_for_puts(service);
		c->keys = keys = calloc(MAX(c->from->keys_count, (size_t)1), sizeof(*keys));
		r = keys ? remap_init(&c->rm, &c->dictionary.m, &c->from->m) : -ENOMEM;
		r = r ? r : pack_place_all(&c->rm);
		for (size_t i = 0; r == 0 && i < list.count; i++)
			r = copy_series(c, reader->db, &list.items[i]);
		remap_release(&c->rm);
		c->rm = (struct remap){ 0 };
		service_put(p, service);
	}
	partition_reader_done(p, reader);
	return in_old(c, p, r);
}

static int add_chunk(struct compaction *c)
{
	struct dictionary_mark none = {
		.strings = 1,
		.mappings = 1,
		.functions = 1,
		.locations = 1,
		.stacks = 1,
		.app_metadata = 1,
		.processes = 1,
		.threads = 1,
		.label_sets = 1,
	};
	int64_t unused;
	int r;

	buf_clear(&c->plain);
	buf_clear(&c->packed);
	dictionary_encode(&c->dictionary, &none, &c->plain);
	r = c->plain.error ? c->plain.error : pack_compress(buf_str(&c->plain), CLOSED_LEVEL, &c->packed);
	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(c->add_chunk, 1, c->service_id);
	db_bind_blob(c->add_chunk, 2, buf_str(&c->packed));
	return insert_row(c->db, c->add_chunk, &unused);
}

static int join_service(struct compaction *c, struct str name)
{
	int r = dictionary_init(&c->dictionary);

	if (r < 0)
		return r;
	c->service = name;
	c->service_id = 0;
	for (size_t i = 0; r == 0 && i < c->old->count; i++)
		r = copy_service(c, c->old->items[i], name);
	if (r == 0 && c->service_id)
		r = add_chunk(c);
	dictionary_release(&c->dictionary);
	return r;
}

/* Services of a source that are not done yet. */
static own_frame int join_services(struct compaction *c, struct partition *p)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	struct reader *reader = NULL;
	int r = partition_reader(p, &reader);

	r = r ? r : db_prepare(reader->db, "SELECT name FROM service ORDER BY id", &stmt);
	while (r == 0 && (r = db_step(stmt)) == 1) {
		size_t known = intern_count(&c->services);
		struct str name = db_column(stmt, 0);
		uint32_t at;

		r = intern_add(&c->services, name, &at);
		if (r == 0 && intern_count(&c->services) > known)
			r = join_service(c, name);
	}
	db_finalizep(&stmt);
	partition_reader_done(p, reader);
	return in_old(c, p, r); /* unless join_service() has said who it was */
}

static own_frame int copy_requests(struct compaction *c, struct partition *p)
{
	scoped(db_finalizep) sqlite3_stmt *from = NULL, *to = NULL;
	struct reader *reader = NULL;
	uint64_t now = state_now(c->state);
	int64_t unused;
	int r = partition_reader(p, &reader);

	r = r ? r : db_prepare(reader->db, "SELECT key, uid, at FROM request WHERE at >= ?1", &from);
	r = r ? r : in_new(db_prepare(c->db, "INSERT OR REPLACE INTO request VALUES(?1, ?2, ?3)", &to));
	if (r == 0)
		(void)sqlite3_bind_int64(from, 1, now > STORE_REQUEST_NS ? (int64_t)(now - STORE_REQUEST_NS) : 0);
	while (r == 0 && (r = db_step(from)) == 1) {
		db_bind_blob(to, 1, db_column(from, 0));
		db_bind_blob(to, 2, db_column(from, 1));
		(void)sqlite3_bind_int64(to, 3, sqlite3_column_int64(from, 2));
		r = insert_row(c->db, to, &unused);
	}
	db_finalizep(&from);
	partition_reader_done(p, reader);
	return in_old(c, p, r);
}

/* So that opening the file need not look at every row. */
static int note_newest(struct compaction *c)
{
	int64_t newest = 0;
	int r = db_number(c->db, "SELECT max(uploaded) FROM profile", &newest);

	return r == 1 ? db_set_meta(c->db, "newest_upload", newest) : r;
}

/* Which files are in this one. Others of the day may turn up later: one that was out of reach, or is put back. */
static int note_replaced(struct compaction *c)
{
	int r = db_set_meta(c->db, "replaces", REPLACES_LISTED);

	for (size_t i = 0; r == 0 && i < c->old->count; i++) {
		const struct partition *old = c->old->items[i];
		char key[32];

		(void)snprintf(key, sizeof(key), REPLACED_KEY "%u", old->generation); /* 9 + 10: fits */
		r = db_set_meta(c->db, key, old->rows_bad ? REPLACED_BUT_ROWS : REPLACED_WHOLLY);
	}
	return r;
}

static int write_joined(struct compaction *c, const char *path)
{
	int r = in_new(begin(c, path));

	for (size_t i = 0; i < c->old->count; i++)
		c->old->items[i]->rows_bad = 0;
	for (size_t i = 0; r == 0 && i < c->old->count; i++)
		r = join_services(c, c->old->items[i]);
	for (size_t i = 0; r == 0 && i < c->old->count; i++)
		r = copy_requests(c, c->old->items[i]);
	r = r ? r : in_new(note_newest(c));
	r = r ? r : in_new(note_replaced(c));
	return r ? r : in_new(db_exec(c->db, "COMMIT"));
}

int compact_finish(struct sqlite_state *s, const char *path, int64_t day)
{
	struct partition *p = NULL;
	scoped(db_closep) sqlite3 *db = NULL;
	int r = partition_open_at(s, path, day, &p);

	r = r ? r : rollup_hours(p, UINT64_MAX);
	partition_free(p);
	r = r ? r : db_open(s->vfs, path, false, &db);
	r = r ? r : db_set_meta(db, "closed", 1);
	return in_new(r);
}

int compact_sync(const char *path)
{
	scoped(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int build(struct sqlite_state *s, const struct partition_list *old, const struct store_selector *without,
		 const char *path)
{
	scoped(compaction_release) struct compaction c = { .state = s, .old = old, .without = without };
	int r = write_joined(&c, path);

	if (c.damaged)
		state_damaged(s, c.damaged);
	return r;
}

/* state->lock is held. Return: whether the day has a file behind the one with number @last. */
static bool has_later(const struct sqlite_state *s, int64_t day, uint32_t last)
{
	for (size_t i = 0; i < s->partitions_count; i++)
		if (!s->partitions[i]->is_year && s->partitions[i]->day == day && s->partitions[i]->generation > last)
			return true;
	return false;
}

/* Takes the next free number of the day by an empty file, which the new one will replace: a late profile's file gets a
 * later one. Files that are not listed (damaged ones, some that are still read) only make the number higher, but one
 * that is being made will have profiles and must not be numbered below its replacement: none is while make_lock is
 * held. Return: 0, -EAGAIN when a file came behind @last. */
int compact_reserve(struct sqlite_state *s, bool is_year, int64_t day, uint32_t last, uint32_t *generation,
		    struct buf *path)
{
	char name[40];
	int r = -EAGAIN;

	(void)pthread_mutex_lock(&s->make_lock);
	(void)pthread_mutex_lock(&s->lock);
	if (!has_later(s, day, last)) {
		*generation = state_next_generation(s, is_year, day);
		partition_name(name, is_year, day, *generation);
		buf_addf(path, "%s/%s", s->path, name);
		r = path->error ? path->error : state_reserve(buf_cstr(path));
	}
	(void)pthread_mutex_unlock(&s->lock);
	(void)pthread_mutex_unlock(&s->make_lock);
	return r;
}

static void say_bad_rows(struct sqlite_state *s, const struct partition_list *old)
{
	for (size_t i = 0; i < old->count; i++) {
		const struct partition *p = old->items[i];

		if (!p->rows_bad)
			continue;
		s->rows_bad += p->rows_bad;
		log_error("profiles of a closed day cannot be read: they stay in its old file, which is set aside",
			  LOG_CSTR("partition", p->name), LOG_U64("profiles", p->rows_bad));
	}
}

static int replace(struct sqlite_state *s, const struct partition_list *old, const struct store_selector *without,
		   int64_t day)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16)), temporary = BUF_INIT(KIB(16));
	struct partition *fresh = NULL;
	uint32_t generation = 0;
	int r = compact_reserve(s, false, day, old->items[old->count - 1]->generation, &generation, &path);

	if (r < 0)
		return r;
	buf_addf(&temporary, "%s.tmp", buf_cstr(&path));
	r = build(s, old, without, buf_cstr(&temporary));
	r = r ? r : compact_finish(s, buf_cstr(&temporary), day);
	r = r ? r : compact_sync(buf_cstr(&temporary));
	if (r == 0 && rename(buf_cstr(&temporary), buf_cstr(&path)) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlink(buf_cstr(&temporary)); /* or it goes at the next start */
		(void)unlink(buf_cstr(&path));
		return r;
	}
	r = state_sync(s);
	r = r ? r : in_new(partition_open(s, false, day, generation, false, &fresh));
	r = r ? r : state_swap(s, fresh, old);
	if (r < 0) {
		partition_free(fresh);
		(void)unlink(buf_cstr(&path)); /* the old ones are all there; a start that found both would take it */
		return r;
	}
	say_bad_rows(s, old);
	r = rollup_day(fresh);
	state_release(s, fresh);
	return r;
}

int compact_day(struct sqlite_state *s, int64_t day, const struct store_selector *without)
{
	scoped(partition_list_release) struct partition_list old = { 0 };
	int r;

	(void)pthread_mutex_lock(&s->compact_lock);
	r = s->cut_pending ? -EALREADY : state_partitions(s, false, day, day, &old);
	for (size_t i = 0; r == 0 && i < old.count; i++)
		partition_close(old.items[i]); /* late profiles go to another file from now on */
	if (r == 0 && old.count)
		r = replace(s, &old, without, day);
	for (size_t i = 0; r < 0 && i < old.count; i++)
		if (state_unreadable(s, old.items[i], r) == 0)
			r = -EAGAIN; /* the next time it is done without that one */
	(void)pthread_mutex_unlock(&s->compact_lock);
	return r;
}

int compact_sums(struct sqlite_state *s, struct partition *p)
{
	int r;

	(void)pthread_mutex_lock(&s->compact_lock);
	r = state_has(s, p) && !s->cut_pending ? rollup_day(p) : 0;
	(void)pthread_mutex_unlock(&s->compact_lock);
	return r;
}
