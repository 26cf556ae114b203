/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/rows.h"

#include <time.h>

#include "base/array.h"

#define RETRY_NS NSEC_PER_SEC
#define REOPENS_MAX 64 /* in one rows_expire(): thousands may have failed together, and each costs a few opens */
/* Loading again what was evicted takes at most a tenth of one CPU, and as much as half a second at once: a budget that
 * is too small for what runs must not eat the machine. */
#define RELOAD_SHARE 10
#define RELOAD_BURST_NS ((int64_t)NSEC_PER_SEC / 2)
/* What one of them took too long is owed, as far as the next one comes within half a second. Without a debt, each was
 * allowed as soon as the one before was over, however long it took. */
#define RELOAD_DEBT_NS ((int64_t)(NSEC_PER_SEC / 2 / RELOAD_SHARE))
/* Loading for the first time, a fifth of one CPU and two seconds at once: 64 MiB of rows take half a second, but one
 * crafted file takes as long, and a loop of programs can date it anew for each. */
#define LOAD_SHARE 5
#define LOAD_BURST_NS (2 * (int64_t)NSEC_PER_SEC)
#define EXPIRE_INTERVAL_NS (5 * NSEC_PER_SEC)
#define IDLE_NS (60 * NSEC_PER_SEC)
/* When room is made, a little more is: every batch of changes waits for a grace period. */
#define SLACK_SHARE 16

static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static uint8_t kind_of(const struct rows_file *f)
{
	return f->state == ROWS_BARE || f->state == ROWS_FAILED || f->state == ROWS_REFUSED ? ABI_MAP_BARE
											    : ABI_MAP_FILE;
}

static struct rows_file *file_at(struct rows *r, uint32_t number)
{
	must(number && number < r->count && r->files[number].file_id);
	return &r->files[number];
}

int rows_open(const struct rows_config *cfg, struct rows **out)
{
	struct rows *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->cfg = *cfg;
	u64map_init(&r->by_id, TABLES_MAX);
	r->used = calloc(ROWS_FILE_IDS_MAX, sizeof(*r->used)); /* pages come as they are touched */
	if (!r->used || array_grow(&r->files, &r->cap, 0, TABLES_MAX) < 0) {
		rows_close(r);
		return -ENOMEM;
	}
	r->files[0] = (struct rows_file){ 0 };
	r->count = 1;
	r->expired_ns = clock_monotonic_ns(cfg->clock);
	r->loads = (struct rows_allowance){ .left_ns = LOAD_BURST_NS, .at_ns = r->expired_ns };
	r->reloads = (struct rows_allowance){ .left_ns = RELOAD_BURST_NS, .at_ns = r->expired_ns };
	*out = r;
	return 0;
}

void rows_close(struct rows *r)
{
	if (!r)
		return;
	for (size_t i = 1; i < r->count; i++)
		if (r->files[i].state == ROWS_LOADED)
			r->cfg.sink->drop(r->cfg.sink->self, &r->files[i].table);
	free(r->files);
	free(r->changes);
	free(r->turned);
	free(r->used);
	u64map_release(&r->by_id);
	free(r);
}

/* ---- use ---- */

void rows_touch(struct rows *r, uint32_t file_id)
{
	if (file_id < ROWS_FILE_IDS_MAX)
		atomic_store_explicit(&r->used[file_id],
				      atomic_fetch_add_explicit(&r->use_clock, 1, memory_order_relaxed) + 1,
				      memory_order_relaxed);
}

static uint64_t last_use(struct rows *r, const struct rows_file *f)
{
	return f->file_id < ROWS_FILE_IDS_MAX ? atomic_load_explicit(&r->used[f->file_id], memory_order_relaxed) : 0;
}

/* The file used least recently among those in @state whose holders are at most @holders; 0: none. */
static uint32_t oldest(struct rows *r, enum rows_state state, uint32_t holders)
{
	uint32_t found = 0;
	uint64_t found_use = UINT64_MAX;

	for (uint32_t i = 1; i < r->count; i++) {
		struct rows_file *f = &r->files[i];

		if (!f->file_id || f->state != state || f->holders > holders || last_use(r, f) >= found_use)
			continue;
		found = i;
		found_use = last_use(r, f);
	}
	return found;
}

/* ---- states ---- */

static void set_state(struct rows *r, uint32_t number, enum rows_state state)
{
	struct rows_file *f = &r->files[number];
	uint8_t before = kind_of(f);

	f->state = (uint8_t)state;
	if (kind_of(f) == before || f->has_turned)
		return;
	/* Out of memory: the kernel goes on with the kind it knows, and samples go on to come raw. */
	if (array_grow(&r->turned, &r->turned_cap, r->turned_count, TABLES_MAX) < 0)
		return;
	r->turned[r->turned_count++] = number;
	f->has_turned = true;
}

uint32_t rows_turned(struct rows *r, uint8_t *kind)
{
	while (r->turned_count) {
		uint32_t number = r->turned[--r->turned_count];
		struct rows_file *f = &r->files[number];

		if (!f->file_id || !f->has_turned)
			continue;
		f->has_turned = false;
		*kind = kind_of(f);
		return number;
	}
	return 0;
}

static int add_change(struct rows *r, uint32_t number, struct table *table)
{
	int e = array_grow(&r->changes, &r->change_cap, r->change_count, TABLES_MAX);

	if (e == 0)
		r->changes[r->change_count++] = (struct table_change){ number, table };
	return e;
}

static void drop_table(struct rows *r, uint32_t number)
{
	struct rows_file *f = &r->files[number];

	r->stats.bytes -= f->table.bytes;
	r->cfg.sink->drop(r->cfg.sink->self, &f->table);
	f->table = (struct table){ 0 };
	r->waiting -= f->is_changed;
	f->is_told = f->is_changed = false;
	set_state(r, number, ROWS_EVICTED);
}

/* Takes loaded tables away from their numbers, in one batch, and frees them. All of them, or none on failure. */
static int evict(struct rows *r, const uint32_t *numbers, size_t count)
{
	int e = 0;

	r->change_count = 0;
	for (size_t i = 0; i < count && e == 0; i++)
		if (r->files[numbers[i]].is_told)
			e = add_change(r, numbers[i], NULL);
	if (e == 0 && r->change_count)
		e = r->cfg.sink->change_tables(r->cfg.sink->self, r->changes, r->change_count);
	for (size_t i = 0; i < count && e == 0; i++)
		drop_table(r, numbers[i]);
	return e;
}

static void freep_numbers(uint32_t **numbers)
{
	free(*numbers);
}

/* Evicts until @need bytes fit. Return: 0; -E2BIG when they never will; -ENOMEM; what the sink says. */
static int make_room(struct rows *r, size_t need)
{
	scoped(freep_numbers) uint32_t *victims = NULL;
	size_t budget = r->cfg.budget_bytes, count = 0, cap = 0, left = r->stats.bytes, target;
	int e = 0;

	if (need > budget)
		return -E2BIG;
	if (left <= budget - need)
		return 0;
	target = budget - need - MIN(budget - need, budget / SLACK_SHARE);
	while (left > target && e == 0) {
		uint32_t number = oldest(r, ROWS_LOADED, UINT32_MAX);

		if (!number)
			break;
		e = array_grow(&victims, &cap, count, TABLES_MAX);
		if (e < 0)
			break;
		victims[count++] = number;
		left -= r->files[number].table.bytes;
		r->files[number].state = ROWS_EVICTED; /* so that the next search finds another */
	}
	for (size_t i = 0; i < count; i++)
		r->files[victims[i]].state = ROWS_LOADED;
	if (e == 0)
		e = evict(r, victims, count);
	if (e == 0)
		r->stats.evicted += count;
	return e;
}

/* ---- numbers ---- */

static void forget_file(struct rows *r, uint32_t number)
{
	struct rows_file *f = &r->files[number];

	ignore(u64map_remove(&r->by_id, f->file_id)); /* it is there */
	*f = (struct rows_file){ .next = r->free };
	r->free = number;
}

/* A number for a new file: a free one, else that of the file without mappings used least recently. 0: none. */
static uint32_t take_number(struct rows *r)
{
	static const uint8_t order[] = { ROWS_UNREAD, ROWS_EVICTED, ROWS_BARE, ROWS_FAILED, ROWS_REFUSED, ROWS_LOADED };
	uint32_t number = 0;

	if (!r->free && r->count < TABLES_MAX) {
		if (array_grow(&r->files, &r->cap, r->count, TABLES_MAX) < 0)
			return 0;
		r->files[r->count] = (struct rows_file){ 0 };
		return (uint32_t)r->count++;
	}
	for (size_t i = 0; i < ARRAY_SIZE(order) && !r->free && !number; i++)
		number = oldest(r, order[i], 0);
	if (number && r->files[number].state == ROWS_LOADED && evict(r, &number, 1) < 0)
		return 0;
	if (number)
		forget_file(r, number);
	number = r->free;
	if (number)
		r->free = r->files[number].next;
	return number;
}

static void give_number_back(struct rows *r, uint32_t number)
{
	r->files[number] = (struct rows_file){ .next = r->free };
	r->free = number;
}

static void fail(struct rows *r, uint32_t number, int e, uint64_t now_ns)
{
	struct rows_file *f = &r->files[number];

	r->stats.failed += !f->reopen.doublings; /* once, however often it is tried */
	set_state(r, number, ROWS_FAILED);
	file_retry_failed(&f->reopen, e, now_ns);
}

/* The span of a file. Return: 0, or why it could not be read. */
static int read_span(struct rows *r, uint32_t number)
{
	struct rows_file *f = &r->files[number];
	int e = r->cfg.source->span(r->cfg.source->self, f->file_id, &f->span);

	if (e == 0)
		set_state(r, number, f->span.pages ? ROWS_UNREAD : ROWS_BARE);
	return e;
}

/* A file that could not be opened: as one that was not read yet, when its time has come and it can be opened. Return:
 * whether the time has come. */
static bool forgive(struct rows *r, uint32_t number, uint64_t now_ns)
{
	struct rows_file *f = &r->files[number];
	int e;

	if (f->state != ROWS_FAILED || !f->reopen.is_away || file_retry_waits(&f->reopen, now_ns))
		return false;
	e = read_span(r, number);
	if (e < 0 && e != -ENOMEM && e != -EMFILE && e != -ENFILE) /* those pass soon */
		fail(r, number, e, now_ns);
	return true;
}

static int get_number(struct rows *r, uint32_t file_id, uint32_t *out)
{
	struct rows_file *f;
	int e;

	if (u64map_get(&r->by_id, file_id, out) == 0)
		return 0;
	*out = take_number(r);
	if (!*out)
		return -ENOSPC;
	e = u64map_put(&r->by_id, file_id, *out);
	if (e < 0) {
		give_number_back(r, *out);
		return e;
	}
	f = &r->files[*out];
	*f = (struct rows_file){ .file_id = file_id, .idle_ns = clock_monotonic_ns(r->cfg.clock) };
	rows_touch(r, file_id);
	e = read_span(r, *out);
	if (e == -ENOMEM || e == -EMFILE || e == -ENFILE) { /* another time */
		forget_file(r, *out);
		return -ENOMEM;
	}
	if (e < 0)
		fail(r, *out, e, f->idle_ns);
	f->has_turned = false; /* no mapping of it was told yet */
	return 0;
}

/* ---- loading ---- */

static bool may_take(struct rows_allowance *a, uint64_t now_ns, uint64_t share, int64_t burst_ns)
{
	a->left_ns = MIN(a->left_ns + (int64_t)((now_ns - a->at_ns) / share), burst_ns);
	a->at_ns = now_ns;
	return a->left_ns > 0;
}

static bool may_load(struct rows *r, bool again, uint64_t now_ns)
{
	return again ? may_take(&r->reloads, now_ns, RELOAD_SHARE, RELOAD_BURST_NS)
		     : may_take(&r->loads, now_ns, LOAD_SHARE, LOAD_BURST_NS);
}

/* Waits for grace periods hold up the worker as work does, when rows come and go. */
static void took(struct rows *r, bool again, uint64_t wall_ns, uint64_t cpu_ns)
{
	if (again)
		r->reloads.left_ns = MAX(r->reloads.left_ns - (int64_t)wall_ns, -RELOAD_DEBT_NS);
	else
		r->loads.left_ns -= (int64_t)cpu_ns;
}

static int put_table(struct rows *r, uint32_t number, const struct unwind_table *built)
{
	const struct table_sink *sink = r->cfg.sink;
	uint32_t count = built->elements[0].head.size;
	struct table table = { 0 };
	int e = make_room(r, sink->cost(sink->self, count));

	if (e == 0)
		e = sink->put(sink->self, built->elements, count, &table);
	if (e < 0)
		return e;
	if (table.bytes > r->cfg.budget_bytes - r->stats.bytes) { /* dearer than it said: the budget is kept */
		sink->drop(sink->self, &table);
		return -E2BIG;
	}
	r->files[number].table = table;
	r->files[number].is_changed = true;
	r->files[number].reopen = (struct file_retry){ 0 };
	r->waiting++;
	r->stats.bytes += table.bytes;
	r->stats.bytes_peak = MAX(r->stats.bytes_peak, r->stats.bytes);
	r->stats.loaded++;
	set_state(r, number, ROWS_LOADED);
	return 0;
}

static void failed(struct rows *r, uint32_t number, int e, uint64_t now_ns)
{
	switch (e) {
	case -E2BIG:
		r->stats.refused++;
		set_state(r, number, ROWS_REFUSED);
		break;
	case -EBADMSG:
	case -ENOTSUP:
	case -ENODATA:
	case -ENOENT:
	case -ESTALE:
	case -EACCES:
	case -EPERM:
	case -ELOOP:
	case -ENOTDIR:
	case -ENAMETOOLONG:
	case -EIO:
		fail(r, number, e, now_ns);
		break;
	default: /* no memory, no descriptors: that passes */
		r->stats.failed++;
		r->files[number].retry_ns = now_ns + RETRY_NS;
	}
}

static void load(struct rows *r, uint32_t number)
{
	scoped(unwind_table_release) struct unwind_table built = { 0 };
	struct rows_file *f = &r->files[number];
	uint64_t before = thread_cpu_ns(), now_ns = clock_monotonic_ns(r->cfg.clock), cpu_ns;
	bool again = f->state == ROWS_EVICTED;
	int e;

	if (now_ns < f->retry_ns || !may_load(r, again, now_ns))
		return;
	e = r->cfg.source->build(r->cfg.source->self, f->file_id, &built);
	if (e == 0 && built.source == UNWIND_SOURCE_NONE)
		set_state(r, number, ROWS_BARE);
	else if (e == 0)
		e = put_table(r, number, &built);
	if (e < 0)
		failed(r, number, e, now_ns);
	cpu_ns = thread_cpu_ns() - before;
	r->stats.load_ns += cpu_ns;
	took(r, again, clock_monotonic_ns(r->cfg.clock) - now_ns, cpu_ns);
}

static void want(struct rows *r, uint32_t number)
{
	struct rows_file *f = &r->files[number];

	rows_touch(r, f->file_id);
	if (f->state == ROWS_FAILED && f->reopen.is_away)
		ignore(forgive(r, number, clock_monotonic_ns(r->cfg.clock)));
	if (f->state == ROWS_UNREAD || f->state == ROWS_EVICTED)
		load(r, number);
}

/* Are its rows neither there nor known to be missing? A file without a number counts: it is new. */
static bool is_wanting(struct rows *r, uint32_t file_id)
{
	uint32_t number;
	uint8_t state;

	if (u64map_get(&r->by_id, file_id, &number) < 0)
		return true;
	state = r->files[number].state;
	return state == ROWS_UNREAD || state == ROWS_EVICTED;
}

bool rows_load_wanted(struct rows *r, uint32_t *file_ids, size_t count)
{
	size_t most = 0, most_count = 1;
	uint32_t number;

	for (size_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count && file_ids[next] == file_ids[i];)
			next++;
		if (next - i > most_count && file_ids[i] && is_wanting(r, file_ids[i])) {
			most = i;
			most_count = next - i;
		}
	}
	if (most_count == 1)
		return false;
	if (get_number(r, file_ids[most], &number) == 0)
		want(r, number);
	memset(&file_ids[most], 0, most_count * sizeof(*file_ids));
	return true;
}

int rows_describe(struct rows *r, uint32_t file_id, bool load_now, struct abi_map *out)
{
	struct rows_file *f;
	uint32_t number;
	int e = get_number(r, file_id, &number);

	if (e < 0)
		return e;
	if (load_now)
		want(r, number);
	f = &r->files[number];
	out->kind = kind_of(f);
	out->file = file_id;
	out->table = number;
	out->first_page = f->span.first_page;
	out->pages = f->span.pages;
	return 0;
}

void rows_hold(struct rows *r, uint32_t number)
{
	file_at(r, number)->holders++;
}

void rows_release(struct rows *r, uint32_t number)
{
	struct rows_file *f = file_at(r, number);

	must(f->holders);
	f->holders--;
}

const void *rows_table(struct rows *r, uint32_t number)
{
	const struct table_sink *sink = r->cfg.sink;
	struct rows_file *f;

	if (!number || number >= r->count || !r->files[number].file_id)
		return NULL;
	want(r, number);
	f = &r->files[number];
	if (f->state != ROWS_LOADED || (sink->view && sink->view(sink->self, &f->table) < 0))
		return NULL;
	f->is_viewed = true;
	return f;
}

const union abi_element *rows_element(const void *table, uint32_t index)
{
	const struct rows_file *f = table;

	return f->state == ROWS_LOADED && f->table.elements && index < f->table.count ? &f->table.elements[index]
										      : NULL;
}

/* ---- rounds ---- */

void rows_flush(struct rows *r)
{
	int e;

	r->change_count = 0;
	for (uint32_t i = 1; i < r->count && r->change_count < r->waiting; i++)
		if (r->files[i].is_changed && add_change(r, i, &r->files[i].table) < 0)
			break; /* the rest with the next one */
	if (!r->change_count)
		return;
	e = r->cfg.sink->change_tables(r->cfg.sink->self, r->changes, r->change_count);
	for (size_t i = 0; i < r->change_count; i++) {
		struct rows_file *f = &r->files[r->changes[i].number];

		f->is_told = true; /* after a failure it may be: it is taken away again before it is dropped */
		f->is_changed = e < 0;
	}
	if (e < 0)
		return; /* tried again next time; until then the samples come raw */
	r->waiting -= r->change_count;
}

/* Tries files again that could not be opened; begins behind the one that was tried last. */
static void reopen(struct rows *r, uint64_t now_ns)
{
	size_t tried = 0;

	for (size_t i = 1; i < r->count && tried < REOPENS_MAX; i++) {
		r->reopened = r->reopened + 1 < r->count ? r->reopened + 1 : 1;
		tried += forgive(r, r->reopened, now_ns);
	}
}

/* Also retries files that could not be opened: the kernel walks those by frame pointers and never asks for their rows.
 */
void rows_expire(struct rows *r)
{
	uint64_t now_ns = clock_monotonic_ns(r->cfg.clock);

	if (now_ns - r->expired_ns < EXPIRE_INTERVAL_NS)
		return;
	r->expired_ns = now_ns;
	for (uint32_t i = 1; i < r->count; i++) {
		struct rows_file *f = &r->files[i];
		uint64_t use;

		if (!f->file_id)
			continue;
		if (f->state == ROWS_LOADED && r->cfg.sink->hide && !f->is_viewed)
			r->cfg.sink->hide(r->cfg.sink->self, &f->table);
		f->is_viewed = false;
		use = last_use(r, f);
		if (f->holders || use != f->seen_use) {
			f->seen_use = use;
			f->idle_ns = now_ns;
		} else if (now_ns - f->idle_ns >= IDLE_NS && (f->state != ROWS_LOADED || evict(r, &i, 1) == 0)) {
			forget_file(r, i);
		}
	}
	reopen(r, now_ns);
}
