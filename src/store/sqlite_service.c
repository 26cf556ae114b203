/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionaries in memory: loaded when first needed, dropped when all of them together take too much. */
#include "base/array.h"
#include "store/sqlite_int.h"

/* The first ones up to @last, or all. Nobody else has the service, or it is the writer. Return: how many. */
static int64_t drop_chunks(struct service *service, const struct chunk *last)
{
	struct chunk *chunk, *next;
	int64_t count = 0;

	(void)pthread_mutex_lock(&service->chunks_lock);
	chunk = service->first;
	service->first = last ? last->next : NULL;
	service->last = service->first ? service->last : NULL;
	(void)pthread_mutex_unlock(&service->chunks_lock);
	for (; chunk; chunk = next) {
		next = chunk == last ? NULL : chunk->next;
		buf_release(&chunk->packed);
		free(chunk);
		count++;
	}
	return count;
}

void service_free(struct service *service)
{
	if (!service)
		return;
	drop_chunks(service, NULL);
	dictionary_release(&service->dictionary);
	(void)pthread_mutex_destroy(&service->lock);
	(void)pthread_mutex_destroy(&service->chunks_lock);
	free(service);
}

/* p->lock is held. */
static int find_or_add(struct partition *p, struct str name, struct service **out)
{
	uint32_t at;
	int r = intern_add(&p->names, name, &at);

	while (r == 0 && at >= p->services_cap) {
		size_t old = p->services_cap;

		r = array_grow(&p->services, &p->services_cap, old, UINT32_MAX);
		if (r == 0)
			memset(p->services + old, 0, (p->services_cap - old) * sizeof(struct service *));
	}
	if (r == 0 && !p->services[at]) {
		p->services[at] = calloc(1, sizeof(struct service));
		if (!p->services[at])
			return -ENOMEM;
		(void)pthread_mutex_init(&p->services[at]->lock, NULL); /* no attributes: cannot fail on Linux */
		(void)pthread_mutex_init(&p->services[at]->chunks_lock, NULL);
	}
	if (r == 0)
		*out = p->services[at];
	return r;
}

typedef int chunk_fn(void *ctx, struct str bytes);

/* @number: of the first chunk, and behind the last one. @plain: room for one. */
static int read_chunks(sqlite3 *db, struct str name, int64_t *number, struct buf *plain, chunk_fn *add, void *ctx)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db,
			   "SELECT chunk, data FROM dictionary WHERE service = (SELECT id FROM service WHERE name = ?1)"
			   " ORDER BY chunk",
			   &stmt);

	if (r < 0)
		return r;
	db_bind_str(stmt, 1, name);
	while ((r = db_step(stmt)) == 1) {
		if (sqlite3_column_int64(stmt, 0) != *number)
			return -EUCLEAN;
		buf_clear(plain);
		r = pack_expand(db_column(stmt, 1), plain);
		r = r ? r : add(ctx, buf_str(plain));
		if (r < 0)
			return r == -EBADMSG ? -EUCLEAN : r;
		++*number;
	}
	return r;
}

static int add_rows(void *ctx, struct str bytes)
{
	return dictionary_decode(bytes, ctx);
}

static int add_strings(void *ctx, struct str bytes)
{
	return dictionary_strings_add(ctx, bytes);
}

int service_strings(sqlite3 *db, struct str name, struct buf *plain, struct dictionary_strings *out)
{
	int64_t number = 0;

	dictionary_strings_clear(out);
	return read_chunks(db, name, &number, plain, add_strings, out);
}

/* service->lock is held. */
static int load(struct partition *p, struct str name, struct service *service)
{
	scoped(buf_release) struct buf plain = BUF_INIT(DICTIONARY_CHUNK_MAX);
	struct reader *reader = NULL;
	int r = dictionary_init(&service->dictionary);

	if (r < 0)
		return r;
	service->next_chunk = 0;
	r = partition_reader(p, &reader);
	r = r ? r : read_chunks(reader->db, name, &service->next_chunk, &plain, add_rows, &service->dictionary);
	partition_reader_done(p, reader);
	if (r < 0) {
		dictionary_release(&service->dictionary);
		return r;
	}
	dictionary_trim(&service->dictionary);
	service->packed = dictionary_end(&service->dictionary);
	service->loaded = true;
	return 0;
}

int service_get(struct partition *p, struct str name, struct service **out)
{
	struct service *service = NULL;
	int r;

	(void)pthread_mutex_lock(&p->lock);
	r = find_or_add(p, name, &service);
	if (r == 0) {
		service->refs++;
		service->used = ++p->state->tick;
	}
	(void)pthread_mutex_unlock(&p->lock);
	if (r < 0)
		return r;
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): set where r is 0 */
	(void)pthread_mutex_lock(&service->lock);
	r = service->loaded ? 0 : load(p, name, service);
	(void)pthread_mutex_unlock(&service->lock);
	if (r < 0)
		service_put(p, service);
	else
		*out = service;
	return r;
}

struct service *service_peek(struct partition *p, struct str name)
{
	struct service *service = NULL;
	bool loaded;
	uint32_t at;

	(void)pthread_mutex_lock(&p->lock);
	if (intern_find(&p->names, name, &at) == 0 && at < p->services_cap)
		service = p->services[at];
	if (service) {
		service->refs++; /* it is not evicted from here on */
		service->used = ++p->state->tick;
	}
	(void)pthread_mutex_unlock(&p->lock);
	if (!service)
		return NULL;
	(void)pthread_mutex_lock(&service->lock);
	loaded = service->loaded;
	(void)pthread_mutex_unlock(&service->lock);
	if (loaded)
		return service;
	service_put(p, service);
	return NULL;
}

/* Eviction. Nobody uses the service, so its rows that are not stored belong to puts that failed. */

static struct service *oldest_unused(struct partition *p)
{
	struct service *oldest = NULL;

	for (size_t i = 0; i < p->services_cap; i++) {
		struct service *service = p->services[i];

		if (service && !service->refs && service->size && (!oldest || service->used < oldest->used))
			oldest = service;
	}
	return oldest;
}

static bool evict_one(struct sqlite_state *s)
{
	struct partition *from = NULL;
	struct service *victim;
	uint64_t used = UINT64_MAX;
	bool freed = false;

	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->partitions_count; i++) {
		struct partition *p = s->partitions[i];

		(void)pthread_mutex_lock(&p->lock);
		victim = oldest_unused(p);
		if (victim && victim->used < used) {
			used = victim->used;
			from = p;
		}
		(void)pthread_mutex_unlock(&p->lock);
	}
	if (from) {
		(void)pthread_mutex_lock(&from->lock);
		victim = oldest_unused(from);
		if (victim) {
			(void)drop_chunks(victim, NULL);
			dictionary_release(&victim->dictionary);
			victim->loaded = false;
			s->dictionary_bytes -= victim->size;
			victim->size = 0;
			freed = true;
		}
		(void)pthread_mutex_unlock(&from->lock);
	}
	(void)pthread_mutex_unlock(&s->lock);
	return freed;
}

void service_put(struct partition *p, struct service *service)
{
	struct sqlite_state *s = p->state;
	size_t size;

	(void)pthread_mutex_lock(&service->lock);
	size = service->loaded ? dictionary_size(&service->dictionary) : 0;
	(void)pthread_mutex_unlock(&service->lock);
	(void)pthread_mutex_lock(&p->lock);
	s->dictionary_bytes += size - service->size; /* wraps back where it shrank */
	service->size = size;
	service->refs--;
	(void)pthread_mutex_unlock(&p->lock);
	while (s->dictionary_bytes > s->dictionary_max && evict_one(s))
		;
}

/* In the writer */

static int id_of(sqlite3 *db, sqlite3_stmt *find, sqlite3_stmt *add, int64_t *out)
{
	int r = db_step(find);

	if (r == 1)
		*out = sqlite3_column_int64(find, 0);
	(void)sqlite3_reset(find);
	if (r != 0)
		return MIN(r, 0);
	r = db_step(add);
	(void)sqlite3_reset(add);
	if (r == 0)
		*out = sqlite3_last_insert_rowid(db);
	return r;
}

int service_series(struct partition *p, int64_t service, struct str type, struct str labels, int64_t *out)
{
	sqlite3_stmt *const both[] = { p->find_series, p->add_series };

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		(void)sqlite3_bind_int64(both[i], 1, service);
		db_bind_str(both[i], 2, type);
		db_bind_str(both[i], 3, labels);
	}
	return id_of(p->db, both[0], both[1], out);
}

int service_pack(struct service *service, int level)
{
	struct dictionary_mark end = dictionary_end(&service->dictionary);
	scoped(buf_release) struct buf plain = BUF_INIT(DICTIONARY_CHUNK_MAX);
	struct chunk *chunk;
	int r;

	if (dictionary_same_mark(&end, &service->packed))
		return 0;
	dictionary_encode(&service->dictionary, &service->packed, &plain);
	chunk = calloc(1, sizeof(*chunk));
	if (!chunk || plain.error) {
		free(chunk);
		return plain.error ? plain.error : -ENOMEM;
	}
	chunk->packed = (struct buf)BUF_INIT(DICTIONARY_CHUNK_MAX);
	r = pack_compress(buf_str(&plain), level, &chunk->packed);
	if (r < 0) {
		buf_release(&chunk->packed);
		free(chunk);
		return r;
	}
	service->packed = end;
	(void)pthread_mutex_lock(&service->chunks_lock);
	if (service->last)
		service->last->next = chunk;
	else
		service->first = chunk;
	service->last = chunk;
	(void)pthread_mutex_unlock(&service->chunks_lock);
	return 0;
}

static int write_chunk(struct partition *p, int64_t id, int64_t number, const struct chunk *chunk)
{
	int r;

	(void)sqlite3_bind_int64(p->add_chunk, 1, id);
	(void)sqlite3_bind_int64(p->add_chunk, 2, number);
	db_bind_blob(p->add_chunk, 3, buf_str(&chunk->packed));
	r = db_step(p->add_chunk);
	(void)sqlite3_reset(p->add_chunk);
	(void)sqlite3_clear_bindings(p->add_chunk);
	return r;
}

/* All chunks that are there now: those of every job of the batch, since a job is submitted after its rows were packed.
 * A chunk's successor may be appended meanwhile, which is not looked at. */
static int write_chunks(struct partition *p, int64_t id, struct service *service)
{
	struct chunk *chunk;
	int64_t number = service->next_chunk;
	int r = 0;

	(void)pthread_mutex_lock(&service->chunks_lock);
	chunk = service->first;
	service->pending = service->last;
	(void)pthread_mutex_unlock(&service->chunks_lock);
	for (; r == 0 && service->pending; chunk = chunk->next) {
		r = write_chunk(p, id, number++, chunk);
		if (chunk == service->pending)
			break;
	}
	return r;
}

int service_write(struct partition *p, struct str name, struct service *service, int64_t *id)
{
	int r;

	db_bind_str(p->find_service, 1, name);
	db_bind_str(p->add_service, 1, name);
	r = id_of(p->db, p->find_service, p->add_service, id);
	if (r < 0 || !service || service->is_pending)
		return r;
	if (p->touched_count == ARRAY_SIZE(p->touched))
		return -EAGAIN;
	r = write_chunks(p, *id, service);
	if (r == 0) {
		service->is_pending = true;
		p->touched[p->touched_count++] = service;
	}
	return r;
}

/* Chunks go only once they are durable: after a failed commit the next one writes them again. */
void service_written(struct partition *p, bool committed)
{
	for (size_t i = 0; i < p->touched_count; i++) {
		struct service *service = p->touched[i];

		if (committed && service->pending)
			service->next_chunk += drop_chunks(service, service->pending);
		service->pending = NULL;
		service->is_pending = false;
	}
	p->touched_count = 0;
}
