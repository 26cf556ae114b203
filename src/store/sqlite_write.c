/* SPDX-License-Identifier: Apache-2.0 */
/* Putting and removing. The work on a profile happens in the caller's thread, under its service's lock at most; the
 * writer only inserts what is ready. */
#include "codec/window_codec.h"
#include "store/sqlite_int.h"

#define PROFILE_LEVEL 1 /* smaller than 3 on these columns, and twice as fast (measured) */
#define FORM_BYTES_MAX GIB(1)

struct put_job {
	struct job job;
	struct str service_name, type, labels, request_key;
	struct service *service; /* NULL: no dictionary needed */
	struct store_id id;
	uint64_t created_ns, uploaded_ns;
	enum profile_form form;
	struct buf header, data, facts;
	bool repeated;
};

static void put_job_release(struct put_job *put)
{
	buf_release(&put->header);
	buf_release(&put->data);
	buf_release(&put->facts);
}

/* In the writer */

/* Return: 1 when the key is known (the id is set), 0, -errno. */
static int find_request(sqlite3_stmt *stmt, struct str key, uint64_t now, struct store_id *out)
{
	struct str uid;
	int r;

	db_bind_blob(stmt, 1, key);
	(void)sqlite3_bind_int64(stmt, 2, now > STORE_REQUEST_NS ? (int64_t)(now - STORE_REQUEST_NS) : 0);
	r = db_step(stmt);
	if (r == 1) {
		uid = db_column(stmt, 0);
		if (uid.len == sizeof(out->bytes))
			memcpy(out->bytes, uid.ptr, sizeof(out->bytes));
		else
			r = 0;
	}
	(void)sqlite3_reset(stmt);
	return r;
}

static int add_request(struct partition *p, struct put_job *put)
{
	int r;

	db_bind_blob(p->add_request, 1, put->request_key);
	(void)sqlite3_bind_blob(p->add_request, 2, put->id.bytes, sizeof(put->id.bytes), SQLITE_STATIC);
	(void)sqlite3_bind_int64(p->add_request, 3, (int64_t)put->uploaded_ns);
	r = db_step(p->add_request);
	(void)sqlite3_reset(p->add_request);
	return r;
}

static int drop_rollup(struct partition *p, int64_t series, uint64_t created_ns)
{
	int r;

	(void)sqlite3_bind_int64(p->drop_rollup, 1, series);
	(void)sqlite3_bind_int64(p->drop_rollup, 2, 3600);
	(void)sqlite3_bind_int64(p->drop_rollup, 3, (int64_t)(created_ns / STORE_HOUR_NS * 3600));
	r = db_step(p->drop_rollup);
	(void)sqlite3_reset(p->drop_rollup);
	return r;
}

static int add_profile(struct partition *p, struct put_job *put, int64_t series)
{
	sqlite3_stmt *add = p->add_profile;
	int r;

	(void)sqlite3_bind_blob(add, 1, put->id.bytes, sizeof(put->id.bytes), SQLITE_STATIC);
	(void)sqlite3_bind_int64(add, 2, series);
	(void)sqlite3_bind_int64(add, 3, (int64_t)put->created_ns);
	(void)sqlite3_bind_int64(add, 4, (int64_t)put->uploaded_ns);
	(void)sqlite3_bind_int(add, 5, put->form);
	db_bind_blob(add, 6, buf_str(&put->header));
	db_bind_blob(add, 7, buf_str(&put->data));
	db_bind_blob(add, 8, buf_str(&put->facts));
	r = db_step(add);
	(void)sqlite3_reset(add);
	(void)sqlite3_clear_bindings(add);
	return r;
}

static int run_put(struct partition *p, struct job *job)
{
	struct put_job *put = (struct put_job *)(void *)job;
	int64_t service, series;
	int r = 0;

	if (put->request_key.len) {
		r = find_request(p->find_request, put->request_key, put->uploaded_ns, &put->id);
		if (r != 0) {
			job->result = r == 1;
			return MIN(r, 0);
		}
		r = add_request(p, put);
	}
	r = r ? r : service_write(p, put->service_name, put->service, &service);
	r = r ? r : service_series(p, service, put->type, put->labels, &series);
	r = r ? r : add_profile(p, put, series);
	r = r ? r : drop_rollup(p, series, put->created_ns);
	if (r < 0)
		return r;
	p->newest_upload = MAX(p->newest_upload, put->uploaded_ns);
	if (put->request_key.len)
		p->newest_request = MAX(p->newest_request, put->uploaded_ns);
	job->result = 0;
	return 0;
}

int write_rollup(struct partition *p, int64_t series, int64_t span, int64_t t, struct str header, struct str data)
{
	int r;

	(void)sqlite3_bind_int64(p->add_rollup, 1, series);
	(void)sqlite3_bind_int64(p->add_rollup, 2, span);
	(void)sqlite3_bind_int64(p->add_rollup, 3, t);
	db_bind_blob(p->add_rollup, 4, header);
	db_bind_blob(p->add_rollup, 5, data);
	r = db_step(p->add_rollup);
	(void)sqlite3_reset(p->add_rollup);
	return r;
}

/* Preparing */

/* Return: -ESTALE when @p was closed: compaction reads its dictionaries then, which must not change any more. */
static int prepare_packed(struct partition *p, struct put_job *put, struct service *service, const struct window *w)
{
	scoped(header_release) struct header header = { 0 };
	scoped(columns_release) struct columns columns = { 0 };
	scoped(buf_release) struct buf plain = BUF_INIT(FORM_BYTES_MAX), facts = BUF_INIT(FORM_BYTES_MAX);
	int r = -E2BIG;

	(void)pthread_mutex_lock(&service->lock);
	if (partition_is_closed(p))
		r = -ESTALE;
	else if (dictionary_size(&service->dictionary) < SERVICE_DICTIONARY_MAX)
		r = pack_window(&service->dictionary, w, &header, &columns);
	if (r == 0)
		r = service_pack(service, LIVE_LEVEL);
	(void)pthread_mutex_unlock(&service->lock);
	if (r < 0)
		return r;
	header_encode(&header, &put->header);
	columns_encode(&columns, &plain);
	r = put->header.error ? put->header.error : plain.error;
	r = r ? r : pack_compress(buf_str(&plain), PROFILE_LEVEL, &put->data);
	r = r ? r : pack_facts(w, &facts);
	if (r == 0 && facts.len)
		r = pack_compress(buf_str(&facts), PROFILE_LEVEL, &put->facts);
	return r;
}

static int prepare_window(struct put_job *put, const struct window *w)
{
	scoped(buf_release) struct buf plain = BUF_INIT(FORM_BYTES_MAX);
	int r = model_distinct(w->model);

	r = r ? r : codec_window.encode(w, &plain);
	buf_clear(&put->header);
	put->form = FORM_WINDOW;
	return r ? r : pack_compress(buf_str(&plain), PROFILE_LEVEL, &put->data);
}

static int prepare(struct partition *p, struct put_job *put, const struct store_upload *upload)
{
	int r;

	buf_clear(&put->header);
	buf_clear(&put->data);
	buf_clear(&put->facts);
	if (!upload->window) {
		put->form = FORM_RAW;
		return pack_compress(upload->raw, PROFILE_LEVEL, &put->data);
	}
	put->form = FORM_PACKED;
	r = service_get(p, put->service_name, &put->service);
	if (r < 0)
		return r;
	r = prepare_packed(p, put, put->service, upload->window);
	return r == -E2BIG ? prepare_window(put, upload->window) : r;
}

/* One try in one partition. Return: as put(), or -ESTALE: it was closed meanwhile. */
static int put_once(struct sqlite_state *s, struct put_job *put, const struct store_upload *upload)
{
	struct partition *p = NULL;
	int r = state_for_write(s, false, (int64_t)(upload->created_ns / STORE_DAY_NS), &p);

	if (r < 0)
		return r;
	put->job.run = run_put;
	r = prepare(p, put, upload);
	if (r == 0 && upload->packed)
		upload->packed(upload->packed_ctx);
	r = r ? r : partition_submit(p, &put->job);
	if (put->service)
		service_put(p, put->service);
	put->service = NULL;
	if (db_is_damage(r)) {
		state_damaged(s, p);
		r = -ESTALE; /* the next try goes to a new file of the day */
	} else if (r < 0 && r != -ESTALE && state_unreadable(s, p, r) == 0) {
		r = -ESTALE;
	}
	state_release(s, p);
	return r;
}

/* Idempotency: the same key waits for its twin, then is looked for in all partitions that could have it. */

static bool is_under_way(const struct sqlite_state *s, struct str key)
{
	for (const struct request *request = s->requests; request; request = request->next)
		if (str_eq(request->key, key))
			return true;
	return false;
}

static void request_begin(struct sqlite_state *s, struct request *request)
{
	(void)pthread_mutex_lock(&s->lock);
	while (is_under_way(s, request->key))
		(void)pthread_cond_wait(&s->changed, &s->lock);
	request->next = s->requests;
	s->requests = request;
	(void)pthread_mutex_unlock(&s->lock);
}

static void request_end(struct sqlite_state *s, struct request *request)
{
	(void)pthread_mutex_lock(&s->lock);
	for (struct request **at = &s->requests; *at; at = &(*at)->next) {
		if (*at != request)
			continue;
		*at = request->next;
		break;
	}
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
}

static int find_in(struct partition *p, struct str key, uint64_t now, struct store_id *out)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	struct reader *reader = NULL;
	int r = partition_reader(p, &reader);

	r = r ? r : db_prepare(reader->db, "SELECT uid FROM request WHERE key = ?1 AND at >= ?2", &stmt);
	r = r ? r : find_request(stmt, key, now, out);
	db_finalizep(&stmt);
	partition_reader_done(p, reader);
	return r;
}

static int find_anywhere(struct sqlite_state *s, struct str key, uint64_t now, struct store_id *out)
{
	scoped(partition_list_release) struct partition_list list = { 0 };
	int r = state_partitions(s, false, INT64_MIN, INT64_MAX, &list);

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		if (list.items[i]->newest_request + STORE_REQUEST_NS >= now)
			r = state_unreadable(s, list.items[i], find_in(list.items[i], key, now, out));
		if (db_is_damage(r)) { /* what it knew is lost, and no reason to refuse all that is new */
			state_damaged(s, list.items[i]);
			r = 0;
		}
	}
	return r;
}

/* As put(). */
static int put_anywhere(struct sqlite_state *s, struct put_job *put, const struct store_upload *upload)
{
	int r = 0;

	if (upload->request_key.len)
		r = find_anywhere(s, upload->request_key, put->uploaded_ns, &put->id);
	if (r != 0)
		return r;
	do
		r = put_once(s, put, upload);
	while (r == -ESTALE);
	return r;
}

int sqlite_put(struct store_state *state, const struct store_upload *upload, struct store_id *out)
{
	struct sqlite_state *s = (struct sqlite_state *)state;
	struct store_label labels[STORE_LABELS_MAX];
	scoped(buf_release) struct buf packed = BUF_INIT(MIB(1));
	scoped(put_job_release) struct put_job put = {
		.service_name = upload->service,
		.type = upload->type,
		.request_key = upload->request_key,
		.created_ns = upload->created_ns,
		.uploaded_ns = state_now(s),
		.header = BUF_INIT(FORM_BYTES_MAX),
		.data = BUF_INIT(FORM_BYTES_MAX),
		.facts = BUF_INIT(FORM_BYTES_MAX),
	};
	struct request request = { .key = upload->request_key };
	int r = store_upload_check(&s->config, upload);

	if (r < 0)
		return r;
	if (upload->label_count)
		memcpy(labels, upload->labels, upload->label_count * sizeof(*labels));
	store_labels_sort(labels, upload->label_count);
	store_labels_pack(labels, upload->label_count, &packed);
	if (packed.error)
		return packed.error;
	put.labels = buf_str(&packed);
	(void)pthread_mutex_lock(&s->lock);
	store_id_make(&s->ids, upload->created_ns, &put.id);
	(void)pthread_mutex_unlock(&s->lock);
	if (upload->request_key.len)
		request_begin(s, &request);
	r = put_anywhere(s, &put, upload);
	if (upload->request_key.len)
		request_end(s, &request);
	s->puts += r == 0;
	s->repeated += r == 1;
	s->puts_failed += r < 0;
	if (r >= 0)
		*out = put.id;
	return r;
}

/* Removing */

struct remove_job {
	struct job job;
	const struct store_selector *sel;
	int64_t removed, sums;
};

static int remove_rows(sqlite3 *db, const char *sql, int64_t series, uint64_t from, uint64_t to)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db, sql, &stmt);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 1, series);
	(void)sqlite3_bind_int64(stmt, 2, (int64_t)MIN(from, (uint64_t)INT64_MAX));
	(void)sqlite3_bind_int64(stmt, 3, (int64_t)MIN(to, (uint64_t)INT64_MAX));
	return db_step(stmt);
}

static int run_remove(struct partition *p, struct job *job)
{
	struct remove_job *rm = (struct remove_job *)(void *)job;
	scoped(series_list_release) struct series_list list = { 0 };
	uint64_t from = rm->sel->from_ns, to = rm->sel->to_ns;
	int r = read_series(p->db, rm->sel, &list);

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		r = remove_rows(p->db, "DELETE FROM profile WHERE series = ?1 AND t BETWEEN ?2 AND ?3",
				list.items[i].id, from, to);
		rm->removed += sqlite3_changes64(p->db);
		/* An hour or a day that lost a part has no sum any more. */
		r = r ? r
		      : remove_rows(p->db, "DELETE FROM rollup WHERE series = ?1 AND t + span > ?2 AND t <= ?3",
				    list.items[i].id, from / NSEC_PER_SEC, to / NSEC_PER_SEC);
		rm->sums += r == 0 ? sqlite3_changes64(p->db) : 0;
	}
	if (r == 0 && p->is_year) {
		r = rollup_forget(p, (int64_t)(from / STORE_DAY_NS));
		r = r ? r : rollup_forget(p, (int64_t)(to / STORE_DAY_NS));
	}
	job->result = 0;
	return r;
}

static int count_rows(struct partition *p, const struct store_selector *sel, int64_t *out)
{
	scoped(series_list_release) struct series_list list = { 0 };
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	struct reader *reader = NULL;
	int r = partition_reader(p, &reader);

	r = r ? r : read_series(reader->db, sel, &list);
	r = r ? r
	      : db_prepare(reader->db, "SELECT count(*) FROM profile WHERE series = ?1 AND t BETWEEN ?2 AND ?3", &stmt);
	for (size_t i = 0; r == 0 && i < list.count; i++) {
		(void)sqlite3_bind_int64(stmt, 1, list.items[i].id);
		(void)sqlite3_bind_int64(stmt, 2, (int64_t)MIN(sel->from_ns, (uint64_t)INT64_MAX));
		(void)sqlite3_bind_int64(stmt, 3, (int64_t)MIN(sel->to_ns, (uint64_t)INT64_MAX));
		r = db_step(stmt);
		if (r == 1)
			*out += sqlite3_column_int64(stmt, 0);
		r = MIN(r, 0);
		(void)sqlite3_reset(stmt);
	}
	db_finalizep(&stmt);
	partition_reader_done(p, reader);
	return r;
}

int removed_beside(struct sqlite_state *s, struct partition *p, int r, struct store_removed *out)
{
	if (r >= 0 || r == -ESTALE)
		return r;
	if (db_is_damage(r)) {
		state_damaged(s, p);
		r = 0;
	} else {
		r = state_unreadable(s, p, r);
	}
	out->aside += r == 0;
	return r;
}

/* An open partition deletes rows. Return: 0, -EAGAIN when it is closed, -errno. */
static int remove_rows_of(struct sqlite_state *s, struct partition *p, const struct store_selector *sel,
			  struct store_removed *out)
{
	struct remove_job rm = { .job.run = run_remove, .sel = sel };
	int r = partition_submit(p, &rm.job);

	if (r < 0) {
		r = removed_beside(s, p, r, out);
		return r == -ESTALE ? -EAGAIN : r;
	}
	p->removals++;
	if (p->is_year)
		out->sums += (uint64_t)rm.sums;
	else
		out->profiles += (uint64_t)rm.removed;
	return 0;
}

static void count_rewritten(uint64_t before, uint64_t after, struct store_removed *out)
{
	out->files++;
	out->bytes += before - MIN(before, after);
}

/* @r: of writing a file anew. A file that turned out to be damaged was set aside. */
static int go_on(int r, struct store_removed *out)
{
	if (!db_is_damage(r))
		return r;
	out->aside++;
	return -EAGAIN;
}

/* A closed partition is written anew with all files of its day. Return: 0, -EAGAIN when the day has other files now,
 * -errno. */
static int remove_by_closing(struct sqlite_state *s, struct partition *p, const struct store_selector *sel,
			     struct store_removed *out)
{
	uint64_t before = state_day_size(s, p->day);
	int64_t found = 0;
	int r = removed_beside(s, p, count_rows(p, sel, &found), out);

	if (r < 0 || !found)
		return r;
	r = compact_day(s, p->day, sel);
	if (!db_is_damage(r) && !state_has(s, p)) { /* also when only the year's sums could not be made */
		out->profiles += (uint64_t)found;
		count_rewritten(before, state_day_size(s, p->day), out);
	}
	return go_on(r, out);
}

static int remove_from(struct sqlite_state *s, struct partition *p, const struct store_selector *sel,
		       struct store_removed *out)
{
	if (!state_has(s, p))
		return -EAGAIN; /* another file is in its place */
	if (store_stopped(sel))
		return -ECANCELED;
	return !p->is_year && partition_is_closed(p) ? remove_by_closing(s, p, sel, out)
						     : remove_rows_of(s, p, sel, out);
}

/* All files of a day or year. Return: as remove_by_closing(). */
static int try_day(struct sqlite_state *s, bool years, int64_t day, const struct store_selector *sel,
		   struct store_removed *out)
{
	scoped(partition_list_release) struct partition_list list = { 0 };
	int r = state_partitions(s, years, day, day, &list);

	for (size_t i = 0; r == 0 && i < list.count; i++)
		if (list.items[i]->day == day)
			r = remove_from(s, list.items[i], sel, out);
	return r;
}

/* @years: of sums; otherwise of profiles. */
static int remove_days(struct sqlite_state *s, bool years, const struct store_selector *sel, struct store_removed *out)
{
	scoped(partition_list_release) struct partition_list list = { 0 };
	int r = state_partitions(s, years, (int64_t)(sel->from_ns / STORE_DAY_NS), (int64_t)(sel->to_ns / STORE_DAY_NS),
				 &list);

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		if (i && list.items[i]->day == list.items[i - 1]->day)
			continue;
		do
			r = try_day(s, years, list.items[i]->day, sel, out);
		while (r == -EAGAIN);
	}
	return r;
}

static bool is_whole_service(const struct store_selector *sel)
{
	return sel->service.len && !sel->type.len && !sel->label_count && !sel->fits && !sel->from_ns &&
	       sel->to_ns == UINT64_MAX;
}

int sqlite_remove(struct store_state *state, const struct store_selector *sel, struct store_removed *out)
{
	struct sqlite_state *s = (struct sqlite_state *)state;
	int r;

	*out = (struct store_removed){ 0 };
	if (is_whole_service(sel))
		return delete_service(s, sel, out);
	/* Days first: the sum of a day counts only for the file that it was made from, so what a crash leaves is right
	 * at every step. The years then lose what they have of days that are gone. */
	r = remove_days(s, false, sel, out);
	if (r < 0)
		return r;
	/* A file that a service is being cut out of would not have it. */
	(void)pthread_mutex_lock(&s->compact_lock);
	r = s->cut_pending ? -EALREADY : remove_days(s, true, sel, out);
	(void)pthread_mutex_unlock(&s->compact_lock);
	return r;
}
