/* SPDX-License-Identifier: Apache-2.0 */
/* The slow, obvious engine: every profile as encoded bytes in one list. For tests, which compare the others with it,
 * and for the few files of hearth view. */
#include <pthread.h>

#include "base/array.h"
#include "codec/window_codec.h"
#include "store/expiry.h"
#include "store/owners.h"
#include "store/store_int.h"

#define PROFILES_MAX ((size_t)1 << 24)
#define BYTES_MAX GIB(2)

struct stored {
	struct store_id id;
	struct buf text; /* service, type, packed labels, request key end to end; series and request borrow from it */
	struct store_series series;
	struct store_label labels[STORE_LABELS_MAX];
	struct str request_key;
	uint64_t created_ns, uploaded_ns;
	bool is_raw;
	struct buf bytes;
};

struct memory_state {
	struct store_config config;
	pthread_mutex_t lock;  /* guards everything below */
	struct stored **items; /* by created_at, then as they came */
	size_t count, cap;
	struct store_ids ids;
	struct store_stats stats;
	struct expiry_memory expiry;
	/* keeps_sum: of all profiles that were put, also those that have gone */
	struct window sum;
	struct store_sum sum_info;
	uint64_t sum_from_ns; /* created_at of the first */
	int sum_error;
};

static void stored_free(struct stored *item)
{
	if (!item)
		return;
	buf_release(&item->text);
	buf_release(&item->bytes);
	free(item);
}

static void stored_freep(struct stored **item)
{
	stored_free(*item);
}

static void unlockp(pthread_mutex_t **lock)
{
	(void)pthread_mutex_unlock(*lock);
}

#define locked(s)                                            \
	scoped(unlockp) pthread_mutex_t *held_ = &(s)->lock; \
	(void)pthread_mutex_lock(held_)

static void close_store(struct store_state *state)
{
	struct memory_state *s = (struct memory_state *)state;

	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		stored_free(s->items[i]);
	free(s->items);
	window_release(&s->sum);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

static int open_store(const struct store_config *config, struct store_state **out)
{
	struct memory_state *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->config = *config;
	(void)pthread_mutex_init(&s->lock, NULL); /* no attributes: cannot fail on Linux */
	store_ids_init(&s->ids);
	*out = (struct store_state *)s;
	return 0;
}

/* All text of the profile into one buffer, then views of it. */
static int keep_text(struct stored *item, const struct store_upload *upload)
{
	struct store_label labels[STORE_LABELS_MAX];
	struct str all;
	size_t packed;

	if (upload->label_count)
		memcpy(labels, upload->labels, upload->label_count * sizeof(*labels));
	store_labels_sort(labels, upload->label_count);
	item->text.max = MIB(1);
	buf_adds(&item->text, upload->service);
	buf_adds(&item->text, upload->type);
	buf_adds(&item->text, upload->request_key);
	packed = item->text.len;
	store_labels_pack(labels, upload->label_count, &item->text);
	if (item->text.error)
		return item->text.error;
	all = buf_str(&item->text);
	item->series.service = str_first(all, upload->service.len);
	item->series.type = str_first(str_skip(all, upload->service.len), upload->type.len);
	item->request_key = str_first(str_skip(all, upload->service.len + upload->type.len), upload->request_key.len);
	item->series.labels = item->labels;
	return store_labels_unpack(str_skip(all, packed), item->labels, &item->series.label_count);
}

static int keep_bytes(struct stored *item, const struct store_upload *upload)
{
	item->bytes.max = BYTES_MAX;
	item->is_raw = !upload->window;
	if (upload->window) {
		int r = model_distinct(upload->window->model);

		return r ? r : codec_window.encode(upload->window, &item->bytes);
	}
	buf_adds(&item->bytes, upload->raw);
	return item->bytes.error;
}

static const struct stored *find_request(const struct memory_state *s, struct str key, uint64_t now)
{
	for (size_t i = 0; key.len && i < s->count; i++)
		if (str_eq(s->items[i]->request_key, key) && s->items[i]->uploaded_ns + STORE_REQUEST_NS >= now)
			return s->items[i];
	return NULL;
}

/* What happens to an upload that is in. */
static void add_to_sum(struct memory_state *s, const struct store_upload *upload)
{
	const bool is_first = !s->sum_info.profiles;

	if (!s->config.keeps_sum || !upload->window || s->sum_error)
		return;
	if (is_first)
		s->sum_error = window_init(&s->sum, BYTES_MAX);
	if (!s->sum_error)
		s->sum_error = model_merge(s->sum.model, upload->window->model);
	if (s->sum_error)
		return;
	window_add_times(&s->sum, upload->window, is_first);
	s->sum_from_ns = is_first ? upload->created_ns : MIN(s->sum_from_ns, upload->created_ns);
	s->sum_info.profiles++;
}

static void drop_oldest(struct memory_state *s)
{
	if (!s->config.kept_max || s->count <= s->config.kept_max)
		return;
	s->stats.bytes -= s->items[0]->bytes.len;
	stored_free(s->items[0]);
	s->count--;
	memmove(s->items, s->items + 1, s->count * sizeof(struct stored *));
}

static int put(struct store_state *state, const struct store_upload *upload, struct store_id *out)
{
	struct memory_state *s = (struct memory_state *)state;
	scoped(stored_freep) struct stored *item = NULL;
	const struct stored *known;
	size_t at;
	int r = store_upload_check(&s->config, upload);

	if (r < 0)
		return r;
	item = calloc(1, sizeof(*item));
	if (!item)
		return -ENOMEM;
	r = keep_text(item, upload);
	r = r ? r : keep_bytes(item, upload);
	if (r < 0)
		return r;
	locked(s);
	item->created_ns = upload->created_ns;
	item->uploaded_ns = clock_wall_ns(s->config.clock);
	known = find_request(s, upload->request_key, item->uploaded_ns);
	if (known) {
		s->stats.requests_repeated++;
		*out = known->id;
		return 1;
	}
	r = array_grow(&s->items, &s->cap, s->count, PROFILES_MAX);
	if (r < 0)
		return r;
	store_id_make(&s->ids, upload->created_ns, &item->id);
	*out = item->id;
	for (at = s->count++; at && s->items[at - 1]->created_ns > item->created_ns; at--)
		s->items[at] = s->items[at - 1];
	s->items[at] = item;
	s->stats.puts++;
	s->stats.commits++;
	s->stats.bytes += item->bytes.len;
	item = NULL; /* moved out */
	add_to_sum(s, upload);
	drop_oldest(s);
	return 0;
}

static bool selects(const struct store_selector *sel, const struct stored *item)
{
	return item->created_ns >= sel->from_ns && item->created_ns <= sel->to_ns && store_selects(sel, &item->series);
}

/* Where the last @sel->limit profiles of @sel begin. */
static size_t first_of(const struct memory_state *s, const struct store_selector *sel)
{
	size_t at = s->count;

	for (size_t found = 0; sel->limit && at && found < sel->limit; at--)
		found += selects(sel, s->items[at - 1]);
	return sel->limit ? at : 0;
}

static int list(struct store_state *state, const struct store_selector *sel, store_profile_fn *visit, void *ctx)
{
	struct memory_state *s = (struct memory_state *)state;
	int r = 0;

	locked(s);
	for (size_t i = first_of(s, sel); r == 0 && i < s->count; i++) {
		const struct stored *item = s->items[i];

		if (selects(sel, item))
			r = visit(ctx, &(struct store_profile){ .id = item->id,
								.service = item->series.service,
								.type = item->series.type,
								.labels = item->labels,
								.label_count = item->series.label_count,
								.created_ns = item->created_ns,
								.uploaded_ns = item->uploaded_ns,
								.size = item->bytes.len });
	}
	return r;
}

static int read_one(struct store_state *state, const struct store_id *id, struct store_document *out)
{
	struct memory_state *s = (struct memory_state *)state;

	locked(s);
	for (size_t i = 0; i < s->count; i++) {
		const struct stored *item = s->items[i];

		if (memcmp(&item->id, id, sizeof(*id)) != 0)
			continue;
		if (!item->is_raw)
			return codec_window.decode(buf_str(&item->bytes), &out->window, NULL);
		out->is_raw = true;
		out->raw = (struct buf)BUF_INIT(BYTES_MAX);
		buf_adds(&out->raw, buf_str(&item->bytes));
		return out->raw.error;
	}
	return -ENOENT;
}

static int add_up(const struct stored *item, struct window *into, struct store_sum *info)
{
	scoped(window_release) struct window w = { 0 };
	int r;

	if (item->is_raw) {
		info->skipped++;
		return 0;
	}
	r = codec_window.decode(buf_str(&item->bytes), &w, NULL);
	r = r ? r : model_merge(into->model, w.model);
	if (r < 0)
		return r;
	window_add_times(into, &w, !info->profiles);
	info->profiles++;
	return 0;
}

static int sum(struct store_state *state, const struct store_selector *sel, struct window *out, struct store_sum *info)
{
	struct memory_state *s = (struct memory_state *)state;
	scoped(window_release) struct window result = { 0 };
	int r = window_init(&result, BYTES_MAX);

	locked(s);
	*info = (struct store_sum){ 0 };
	if (r == 0 && s->sum_info.profiles && sel->from_ns <= s->sum_from_ns && !sel->limit &&
	    sel->to_ns >= s->items[s->count - 1]->created_ns && store_selects(sel, &s->items[0]->series)) {
		r = s->sum_error ? s->sum_error : model_merge(result.model, s->sum.model);
		if (r < 0)
			return r;
		window_add_times(&result, &s->sum, true);
		*info = s->sum_info;
		*out = result;
		result = (struct window){ 0 }; /* moved out */
		return 0;
	}
	for (size_t i = first_of(s, sel); r == 0 && i < s->count; i++) {
		if (selects(sel, s->items[i]))
			r = add_up(s->items[i], &result, info);
		if (r == 0 && store_stopped(sel))
			r = -ECANCELED;
	}
	if (r < 0)
		return r;
	*out = result;
	result = (struct window){ 0 }; /* moved out */
	return 0;
}

/* What a visitor of points is called with. */
struct visiting {
	store_point_fn *point;   /* or */
	store_owners_fn *owners; /* or */
	store_moments_fn *moments;
	uint64_t since_ns;
	void *ctx;
};

/* The model's values column after column, and whose each row is. */
struct rows {
	struct owner_table table;
	uint32_t *owners;
	int64_t *values;
	uint64_t *offsets;
};

static void rows_release(struct rows *rows)
{
	owner_table_release(&rows->table);
	free(rows->owners);
	free(rows->values);
	free(rows->offsets);
}

static int visit_owners(const struct visiting *v, const struct window *w, const struct store_point *point)
{
	const struct model *m = w->model;
	scoped(rows_release) struct rows rows = { 0 };
	size_t count = m->samples_count, width = m->value_type_count;
	int r = owner_table_init(&rows.table);

	rows.owners = calloc(count + 1, sizeof(*rows.owners));
	rows.values = calloc(count * width + 1, sizeof(*rows.values));
	rows.offsets = calloc(count + 1, sizeof(*rows.offsets));
	if (!rows.owners || !rows.values || !rows.offsets)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++) {
		r = owner_table_add(&rows.table, m, m->samples[i].process, m->samples[i].thread, &rows.owners[i]);
		rows.offsets[i] = m->samples[i].time_offset_ns;
		for (size_t column = 0; column < width; column++)
			rows.values[column * count + i] = model_values(m, &m->samples[i])[column];
	}
	r = r ? r : owner_table_settle(&rows.table);
	if (r == 0 && v->moments)
		return v->moments(v->ctx, point,
				  &(struct store_moments){ .start_ns = w->start_ns,
							   .count = count,
							   .offsets = rows.offsets,
							   .values = rows.values,
							   .owners = rows.table.items,
							   .owner_of = rows.owners });
	r = r ? r : owner_table_point(&rows.table, rows.owners, count, width, rows.values);
	return r ? r : v->owners(v->ctx, point, rows.table.shown, rows.table.shown_count);
}

static int visit_point(const struct stored *item, const struct visiting *v)
{
	scoped(window_release) struct window w = { 0 };
	struct store_label columns[MODEL_VALUE_TYPES_MAX];
	int64_t totals[MODEL_VALUE_TYPES_MAX] = { 0 };
	struct store_point point;
	const struct model *m;
	int r = codec_window.decode(buf_str(&item->bytes), &w, NULL);

	if (r < 0)
		return r;
	m = w.model;
	for (size_t i = 0; i < m->value_type_count; i++) {
		columns[i] = (struct store_label){ model_string(m, m->value_types[i].type),
						   model_string(m, m->value_types[i].unit) };
		for (size_t row = 0; row < m->samples_count; row++)
			totals[i] = saturating_add(totals[i], model_values(m, &m->samples[row])[i]);
	}
	point = (struct store_point){
		.created_ns = item->created_ns,
		.series = &item->series,
		.columns = columns,
		.values = totals,
		.value_count = m->value_type_count,
		.default_column = model_default_value(m),
		.period = { model_string(m, m->period_type.type), model_string(m, m->period_type.unit) },
		.profiles = 1,
		.duration_ns = window_duration_ns(&w),
	};
	if (v->moments && store_ended_before(&point, v->since_ns))
		return 0;
	return v->point ? v->point(v->ctx, &point) : visit_owners(v, &w, &point);
}

static int visit_points(struct store_state *state, const struct store_selector *sel, const struct visiting *v)
{
	struct memory_state *s = (struct memory_state *)state;
	int r = 0;

	locked(s);
	for (size_t i = 0; r == 0 && i < s->count; i++)
		if (selects(sel, s->items[i]) && !s->items[i]->is_raw)
			r = visit_point(s->items[i], v);
	return r;
}

static int totals(struct store_state *state, const struct store_selector *sel, store_point_fn *visit, void *ctx)
{
	return visit_points(state, sel, &(struct visiting){ .point = visit, .ctx = ctx });
}

static int owners(struct store_state *state, const struct store_selector *sel, bool by_hour, store_owners_fn *visit,
		  void *ctx)
{
	(void)by_hour; /* there are no sums */
	return visit_points(state, sel, &(struct visiting){ .owners = visit, .ctx = ctx });
}

static int moments(struct store_state *state, const struct store_selector *sel, uint64_t since_ns,
		   store_moments_fn *visit, void *ctx)
{
	return visit_points(state, sel, &(struct visiting){ .moments = visit, .since_ns = since_ns, .ctx = ctx });
}

static int series_order(const void *a, const void *b)
{
	const struct store_series *const *x = a, *const *y = b;

	return store_series_order(*x, *y);
}

static int series(struct store_state *state, const struct store_selector *sel, store_series_fn *visit, void *ctx)
{
	struct memory_state *s = (struct memory_state *)state;
	scoped(freep) const struct store_series **all = NULL;
	size_t count = 0;
	int r = 0;

	locked(s);
	all = calloc(s->count + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++)
		if (selects(sel, s->items[i]))
			all[count++] = &s->items[i]->series;
	qsort(all, count, sizeof(*all), series_order);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (!i || store_series_order(all[i - 1], all[i]))
			r = visit(ctx, all[i]);
	return r;
}

/* Drops what @goes says. */
static int drop(struct memory_state *s, bool (*goes)(const void *ctx, const struct stored *item), const void *ctx)
{
	size_t kept = 0, dropped;

	for (size_t i = 0; i < s->count; i++) {
		if (goes(ctx, s->items[i]))
			stored_free(s->items[i]);
		else
			s->items[kept++] = s->items[i];
	}
	dropped = s->count - kept;
	s->count = kept;
	return (int)MIN(dropped, (size_t)INT32_MAX);
}

static bool is_selected(const void *ctx, const struct stored *item)
{
	return selects(ctx, item);
}

static int remove_selected(struct store_state *state, const struct store_selector *sel, struct store_removed *out)
{
	struct memory_state *s = (struct memory_state *)state;

	locked(s);
	*out = (struct store_removed){ 0 };
	for (size_t i = 0; i < s->count; i++)
		out->bytes += selects(sel, s->items[i]) ? s->items[i]->bytes.len : 0;
	out->profiles = s->count;
	(void)drop(s, is_selected, sel);
	out->profiles -= s->count;
	return 0;
}

static int services(struct store_state *state, const struct store_selector *sel, store_service_fn *visit, void *ctx)
{
	struct memory_state *s = (struct memory_state *)state;
	scoped(intern_release) struct intern names = { 0 };
	uint32_t unused;
	int r = 0;

	(void)sel;
	locked(s);
	intern_init(&names, STORE_SERVICES_BYTES_MAX);
	for (size_t i = 0; r == 0 && i < s->count; i++)
		r = intern_add(&names, s->items[i]->series.service, &unused);
	return r ? r : store_visit_names(&names, visit, ctx);
}

static int weigh(struct store_state *state, const struct store_selector *sel, struct store_removed *out)
{
	struct memory_state *s = (struct memory_state *)state;
	struct store_removed found = { 0 };

	locked(s);
	for (size_t i = 0; i < s->count; i++) {
		if (!str_eq(s->items[i]->series.service, sel->service))
			continue;
		found.profiles++;
		found.bytes += s->items[i]->bytes.len;
	}
	*out = found;
	return 0;
}

/* By day, as files go: as the newest upload of the day has it. */

struct days {
	struct expiry_entry *items;
	size_t count;
};

static void days_release(struct days *d)
{
	free(d->items);
}

static int read_days(const struct memory_state *s, struct days *out)
{
	out->items = calloc(s->count + 1, sizeof(*out->items));
	if (!out->items)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++) { /* they are in the order of their days */
		int64_t day = (int64_t)(s->items[i]->created_ns / STORE_DAY_NS);
		struct expiry_entry *last;

		if (!out->count || out->items[out->count - 1].day != day)
			out->items[out->count++] = (struct expiry_entry){ .day = day, .days = 1 };
		last = &out->items[out->count - 1];
		last->newest_ns = MAX(last->newest_ns, s->items[i]->uploaded_ns);
		last->size += s->items[i]->bytes.len;
	}
	return 0;
}

static bool is_expired(const void *ctx, const struct stored *item)
{
	const struct days *days = ctx;

	for (size_t i = 0; i < days->count; i++)
		if (days->items[i].day == (int64_t)(item->created_ns / STORE_DAY_NS))
			return days->items[i].goes;
	return false;
}

/* Drops the days that are marked. Return: how many. */
static int drop_days(struct memory_state *s, const struct days *days)
{
	int count = 0;

	for (size_t i = 0; i < days->count; i++)
		count += days->items[i].goes;
	ignore(drop(s, is_expired, days)); /* profiles; the answer counts days */
	s->stats.expired_partitions += (uint64_t)count;
	return count;
}

static int expire(struct store_state *state, uint64_t before_ns)
{
	struct memory_state *s = (struct memory_state *)state;
	scoped(days_release) struct days days = { 0 };
	int r;

	locked(s);
	r = read_days(s, &days);
	for (size_t i = 0; r == 0 && i < days.count; i++)
		days.items[i].goes = days.items[i].newest_ns < before_ns;
	return r ? r : drop_days(s, &days);
}

static struct expiry_rules rules_of(const struct memory_state *s)
{
	return (struct expiry_rules){ .age_max_ns = s->config.age_max_ns, .size_max = s->config.size_max };
}

static int maintain(struct store_state *state)
{
	struct memory_state *s = (struct memory_state *)state;
	const struct expiry_rules rules = rules_of(s);
	uint64_t wall = clock_wall_ns(s->config.clock), monotonic = clock_monotonic_ns(s->config.clock);
	scoped(days_release) struct days days = { 0 };
	struct expiry_plan plan;
	int r;

	locked(s);
	r = read_days(s, &days);
	if (r < 0)
		return r;
	(void)expiry_tick(&s->expiry, wall, monotonic); /* there is nothing to write it into */
	expiry_decide(&rules, &(struct expiry_disk){ 0 }, &s->expiry, wall, monotonic, days.items, days.count, &plan);
	for (size_t i = 0; i < days.count; i++)
		if (days.items[i].goes && days.items[i].reason == EXPIRY_AGE)
			expiry_removed(&s->expiry, wall, monotonic);
	ignore(drop_days(s, &days)); /* what went is counted */
	return 0;
}

static int survey(struct store_state *state, store_day_fn *visit, void *ctx, struct store_outlook *out)
{
	struct memory_state *s = (struct memory_state *)state;
	const struct expiry_rules rules = rules_of(s);
	uint64_t wall = clock_wall_ns(s->config.clock), monotonic = clock_monotonic_ns(s->config.clock);
	scoped(days_release) struct days days = { 0 };
	struct store_outlook found = { .age_max_ns = rules.age_max_ns, .size_max = rules.size_max };
	struct expiry_memory memory;
	struct expiry_plan plan;
	size_t next = 0;
	int r;

	locked(s);
	memory = s->expiry;
	r = read_days(s, &days);
	if (r < 0)
		return r;
	(void)expiry_tick(&memory, wall, monotonic);
	expiry_decide(&rules, &(struct expiry_disk){ 0 }, &memory, wall, monotonic, days.items, days.count, &plan);
	found.is_over = plan.is_over;
	found.any_next = expiry_next(&rules, &memory, days.items, days.count, wall, &next, &found.next_ns);
	found.next_day = found.any_next ? days.items[next].day : 0;
	for (size_t i = 0; r == 0 && i < days.count; i++) {
		const struct expiry_entry *e = &days.items[i];
		struct store_day day = { .day = e->day,
					 .days = 1,
					 .is_open = true,
					 .bytes = e->size,
					 .newest_ns = e->newest_ns,
					 .reason = e->goes ? expiry_reason_text(e->reason) : NULL };

		for (size_t at = 0; at < s->count; at++)
			day.profiles += (int64_t)(s->items[at]->created_ns / STORE_DAY_NS) == e->day;
		found.bytes += e->size;
		r = visit(ctx, &day);
	}
	if (r == 0)
		*out = found;
	return r;
}

static int odd(struct store_state *state, store_problem_fn *visit, void *ctx)
{
	(void)state;
	(void)visit;
	(void)ctx;
	return 0; /* there are no files */
}

static int warm(struct store_state *state)
{
	(void)state;
	return 0; /* all is in memory */
}

static int compact(struct store_state *state)
{
	(void)state;
	return 0; /* there are no days to close */
}

static int check(struct store_state *state, store_problem_fn *visit, void *ctx)
{
	struct memory_state *s = (struct memory_state *)state;
	int problems = 0;

	locked(s);
	for (size_t i = 0; i < s->count; i++) {
		scoped(window_release) struct window w = { 0 };

		if (s->items[i]->is_raw || codec_window.decode(buf_str(&s->items[i]->bytes), &w, NULL) == 0)
			continue;
		visit(ctx, "memory", "a profile is damaged");
		problems++;
	}
	return problems;
}

static int stats(struct store_state *state, struct store_stats *out)
{
	struct memory_state *s = (struct memory_state *)state;

	locked(s);
	*out = s->stats;
	out->profiles = s->count;
	return 0;
}

const struct store store_memory = {
	.name = "memory",
	.open = open_store,
	.put = put,
	.list = list,
	.read = read_one,
	.sum = sum,
	.totals = totals,
	.owners = owners,
	.moments = moments,
	.series = series,
	.remove = remove_selected,
	.services = services,
	.weigh = weigh,
	.expire = expire,
	.maintain = maintain,
	.survey = survey,
	.odd = odd,
	.warm = warm,
	.compact = compact,
	.check = check,
	.stats = stats,
	.close = close_store,
};
