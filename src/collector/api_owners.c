/* SPDX-License-Identifier: Apache-2.0 */
/* Processes, threads and programs by cost and over time (docs/api.yaml). What they cost is read beside the stacks,
 * never with them. A machine has any number of processes in a week: only the dearer half of the rows is kept whenever
 * there are many, and a second reading gives those that are shown all they have. */
#include "base/array.h"
#include "base/u64map.h"
#include "collector/totals.h"
#include "proc/workload.h"

#define POINTS_USUAL 60
#define POINTS_MAX 300
#define ROWS_USUAL 100
#define ROWS_SHOWN_MAX 1000
#define ROWS_MAX ((size_t)1 << 16)     /* kept at a time */
#define ROWS_WITH_POINTS 4096          /* in a first reading */
#define MEMBERS_MAX ((size_t)1 << 20)  /* threads of processes, processes of programs, counted once */
#define HOURS_FROM_MS (12 * 3600000UL) /* ranges from here on are read by whole hours, which are stored as sums */

enum by { BY_PROCESS, BY_THREAD, BY_PROGRAM };

static const struct str by_names[] = { STR("process"), STR("thread"), STR("program") };

/* What a row is besides its cost. Texts are ids of owners.texts. */
struct who {
	uint32_t pid, tid, comm, thread, service, container, members;
	uint64_t start_ns;
	bool several; /* services */
};

struct owners {
	struct totals *t;
	enum by by;
	struct totals_row all;
	struct who *who; /* by id of the row's name */
	size_t who_count, who_cap;
	struct intern texts;
	struct u64map members; /* of row and thread or process */
	size_t folded;
	bool by_hour, is_lean, is_closed; /* lean: rows without points; closed: no row is new any more */
};

static void owners_release(struct owners *o)
{
	free(o->all.points);
	free(o->who);
	intern_release(&o->texts);
	u64map_release(&o->members);
}

/* Rows */

static void add_key(const struct owners *o, const struct store_owner *owner)
{
	struct buf *key = &o->t->key;

	buf_clear(key);
	buf_adds(key, by_names[o->by]);
	if (o->by != BY_PROGRAM)
		query_whose_process(key, owner->pid, owner->start_ns);
	buf_addc(key, 0);
	buf_adds(key, owner->comm);
	if (o->by != BY_THREAD)
		return;
	buf_addf(key, "%c%u%c", 0, owner->tid, 0);
	buf_adds(key, owner->thread);
}

static int set_who(struct owners *o, struct who *who, const struct store_owner *owner)
{
	int r = intern_add(&o->texts, owner->comm, &who->comm);

	who->pid = owner->pid;
	who->tid = owner->tid;
	who->start_ns = owner->start_ns;
	r = r ? r : intern_add(&o->texts, owner->container, &who->container);
	return r ? r : intern_add(&o->texts, owner->thread, &who->thread);
}

static int note_service(struct owners *o, struct who *who, struct str service)
{
	uint32_t id;
	int r = intern_add(&o->texts, service, &id);

	if (r < 0)
		return r;
	who->several |= who->service && who->service != id;
	who->service = id;
	return 0;
}

static int note_member(struct owners *o, struct who *who, uint32_t row, const struct store_owner *owner)
{
	uint64_t pair = (uint64_t)row << 32 | (o->by == BY_PROGRAM ? owner->pid : owner->tid);
	uint32_t known;
	int r;

	if (o->by == BY_THREAD || u64map_get(&o->members, pair, &known) == 0)
		return 0;
	r = u64map_put(&o->members, pair, 1);
	if (r == 0)
		who->members++;
	return r == -E2BIG ? 0 : r; /* then it is at least so many */
}

/* The row of @owner. Return: 0; 1 when it has none; -errno. */
static int find_row(struct owners *o, const struct store_owner *owner, struct totals_row **out)
{
	struct totals_table *table = &o->t->table;
	uint32_t id;
	int r;

	add_key(o, owner);
	if (o->t->key.error)
		return o->t->key.error == -E2BIG ? 1 : o->t->key.error; /* of names of 8 KiB */
	if (intern_find(&table->names, buf_str(&o->t->key), &id) == 0) {
		*out = &table->rows[id];
		return 0;
	}
	if (o->is_closed)
		return 1;
	r = totals_row_of(table, buf_str(&o->t->key), out);
	while (r == 0 && o->who_count < table->count) {
		r = array_grow(&o->who, &o->who_cap, o->who_count, ROWS_MAX + 2);
		if (r == 0)
			o->who[o->who_count++] = (struct who){ 0 };
	}
	return r ? r : set_who(o, &o->who[(*out)->id], owner);
}

/* Keep the @keep most costly rows, numbered anew in their order. */
static int keep_rows(struct owners *o, size_t keep)
{
	struct totals_table *table = &o->t->table, fresh;
	struct who *who = calloc(keep + 1, sizeof(*who));
	struct totals_row *row = NULL;
	int r = who ? 0 : -ENOMEM;

	totals_table_init(&fresh, table->names.byte_max);
	totals_sort(table, totals_row_order);
	keep = MIN(keep, table->count);
	r = r ? r : totals_row_of(&fresh, STR(""), &row); /* its number is never a row's */
	for (size_t i = 0; r == 0 && i < keep; i++) {
		r = totals_row_of(&fresh, table->rows[i].name, &row);
		if (r < 0)
			break;
		who[row->id] = o->who[table->rows[i].id];
		table->rows[i].id = row->id;
		*row = table->rows[i];
		row->name = STR("");          /* it goes with the table */
		table->rows[i].points = NULL; /* moved */
	}
	if (r < 0) {
		totals_table_release(&fresh);
		free(who);
		return r;
	}
	o->folded += table->count - keep;
	totals_table_release(table);
	*table = fresh;
	free(o->who);
	o->who = who;
	o->who_count = table->count;
	o->who_cap = keep + 1;
	return 0;
}

static int prune(struct owners *o)
{
	o->is_lean = true;
	u64map_clear(&o->members); /* the second reading counts them */
	return keep_rows(o, ROWS_MAX / 2);
}

/* Reading */

static int add_value(struct owners *o, struct totals_row *row, const struct store_point *p, uint64_t value)
{
	row->total = totals_plus(row->total, value);
	row->profiles += p->profiles;
	row->first_ns = MIN(row->first_ns, p->created_ns);
	row->last_ns = MAX(row->last_ns, p->created_ns);
	if (row != &o->all && !o->is_closed && row->id > ROWS_WITH_POINTS) {
		o->is_lean = true;
		return 0;
	}
	return totals_add_point(o->t, row, p, value);
}

static int add_owner(struct owners *o, const struct store_point *p, const struct store_owner *owner, uint64_t value)
{
	struct totals_row *row = NULL;
	int r = add_value(o, &o->all, p, value);

	if (r == 0 && o->t->table.count > ROWS_MAX)
		r = prune(o);
	r = r ? r : find_row(o, owner, &row);
	if (r)
		return r == 1 ? 0 : r;
	r = note_service(o, &o->who[row->id], p->series->service);
	r = r ? r : note_member(o, &o->who[row->id], row->id, owner);
	return r ? r : add_value(o, row, p, value);
}

static int add_owners(void *ctx, const struct store_point *p, const struct store_owner *owners, size_t count)
{
	struct owners *o = ctx;
	size_t column;
	int r = 0;

	if (!totals_column(o->t, p, &column))
		return 0;
	for (size_t i = 0; r == 0 && i < count; i++)
		if (owners[i].values[column] > 0 && query_whose_fits(&o->t->whose, &owners[i]))
			r = add_owner(o, p, &owners[i], (uint64_t)owners[i].values[column]);
	return r;
}

static int read_owners(struct owners *o)
{
	const struct collector_config *config = &o->t->call->collector->config;

	return config->store->owners(config->state, &o->t->sel, o->by_hour, add_owners, o);
}

static void empty_row(struct totals_row *row)
{
	free(row->points);
	*row = (struct totals_row){ .id = row->id, .first_ns = UINT64_MAX, .kind = WORKLOAD_KIND_COUNT };
}

/* All of what the chosen ones have. */
static int read_again(struct owners *o)
{
	struct totals_table *table = &o->t->table;

	o->is_closed = true;
	u64map_clear(&o->members);
	empty_row(&o->all);
	for (size_t i = 0; i < table->count; i++)
		empty_row(&table->rows[i]);
	for (size_t i = 0; i < o->who_count; i++) {
		o->who[i].members = o->who[i].service = 0;
		o->who[i].several = false;
	}
	return read_owners(o);
}

static int set_steps(struct owners *o)
{
	const struct collector_config *config = &o->t->call->collector->config;
	struct totals *t = o->t;
	int r = config->store->totals(config->state, &t->sel, totals_note_duration, t);

	o->by_hour = (t->range.to_ns - t->range.from_ns) / NSEC_PER_MSEC >= HOURS_FROM_MS;
	totals_set_round_step(t, o->by_hour ? 3600000 : 0);
	return r;
}

/* Answers */

static void write_process(struct json_out *json, struct owners *o, const struct who *who)
{
	struct buf *name = &o->t->key;

	buf_clear(name);
	query_whose_process(name, who->pid, who->start_ns);
	call_key(json, STR("process"), buf_str(name));
	call_key_u64(json, STR("pid"), who->pid);
}

static void write_text(struct json_out *json, struct str key, const struct owners *o, uint32_t text)
{
	if (text)
		call_key(json, key, intern_get(&o->texts, text));
}

static void write_row(struct json_out *json, struct owners *o, const struct totals_row *row)
{
	const struct who *who = &o->who[row->id];

	json_out_begin(json, '{');
	call_key(json, STR("program"), intern_get(&o->texts, who->comm));
	if (o->by != BY_PROGRAM)
		write_process(json, o, who);
	if (o->by == BY_THREAD) {
		call_key_u64(json, STR("thread"), who->tid);
		write_text(json, STR("thread_name"), o, who->thread);
	} else {
		call_key_u64(json, o->by == BY_PROCESS ? STR("threads") : STR("processes"), who->members);
	}
	write_text(json, STR("service"), o, who->several ? 0 : who->service);
	if (o->by != BY_PROGRAM)
		write_text(json, STR("container"), o, who->container);
	call_key_u64(json, STR("total"), row->total);
	call_key_u64(json, STR("first_ms"), row->first_ns / NSEC_PER_MSEC);
	call_key_u64(json, STR("last_ms"), row->last_ns / NSEC_PER_MSEC);
	totals_write_points(json, row->points, o->t->points);
	json_out_end(json, '}');
}

/* What is not shown: all of it without what is. */
static void write_folded(struct json_out *json, struct owners *o)
{
	const struct totals_table *table = &o->t->table;
	uint64_t total = o->all.total;

	for (size_t i = 1; i < table->count; i++) {
		total -= MIN(total, table->rows[i].total);
		for (uint64_t at = 0; table->rows[i].points && o->all.points && at < o->t->points; at++)
			o->all.points[at] -= MIN(o->all.points[at], table->rows[i].points[at]);
	}
	json_out_key(json, STR("folded"));
	json_out_begin(json, '{');
	call_key_u64(json, STR("rows"), o->folded);
	call_key_u64(json, STR("total"), total);
	totals_write_points(json, o->all.points, o->t->points);
	json_out_end(json, '}');
}

static void write_owners(struct owners *o)
{
	struct totals *t = o->t;
	struct json_out json;

	call_begin(t->call, &json);
	totals_write_range(&json, t);
	totals_write_sample(&json, t);
	call_key(&json, STR("by"), by_names[o->by]);
	call_key_u64(&json, STR("start_ms"), t->from_ms);
	call_key_u64(&json, STR("step_ms"), t->step_ms);
	call_key_u64(&json, STR("points"), t->points);
	call_key_u64(&json, STR("total"), o->all.total);
	json_out_key(&json, STR("rows"));
	json_out_begin(&json, '[');
	for (size_t i = 1; i < t->table.count; i++)
		write_row(&json, o, &t->table.rows[i]);
	json_out_end(&json, ']');
	write_folded(&json, o);
	call_end(t->call, &json);
}

static void list_owners(struct totals *t, enum by by, uint64_t limit)
{
	scoped(owners_release) struct owners o = { .t = t, .by = by };
	int r = set_steps(&o);

	intern_init(&o.texts, MIB(64));
	u64map_init(&o.members, MEMBERS_MAX);
	empty_row(&o.all);
	r = r ? r : read_owners(&o);
	r = r ? r : keep_rows(&o, (size_t)limit);
	if (r == 0 && o.is_lean) {
		r = read_again(&o);
		r = r ? r : keep_rows(&o, (size_t)limit); /* some had more than was known of them, or are gone */
	}
	if (r == 0)
		write_owners(&o);
	else
		totals_failed(t, r);
}

static void processes(struct totals *t)
{
	struct str by = http_query_get(&t->call->query, STR("by"));
	uint64_t limit;
	size_t i = 0;

	while (by.len && i < ARRAY_SIZE(by_names) && !str_eq(by, by_names[i]))
		i++;
	if (i == ARRAY_SIZE(by_names))
		answer_error(t->call->rs, 400, "bad request: bad \"by\" \"" STR_FMT "\": process, thread or program",
			     STR_ARG(str_first(by, 64)));
	else if (totals_number(t->call, "points", POINTS_USUAL, POINTS_MAX, &t->points) &&
		 totals_number(t->call, "limit", ROWS_USUAL, ROWS_SHOWN_MAX, &limit))
		list_owners(t, (enum by)i, limit);
}

void view_processes(struct call *call)
{
	totals_run(call, processes);
}
