/* SPDX-License-Identifier: Apache-2.0 */
/* Totals over time, by label or service: timelines and heat maps (docs/api.yaml). First which groups are the largest,
 * then their points, so that memory does not follow the labels. */
#include "collector/totals.h"

#define POINTS_USUAL 300
#define POINTS_MAX 5000
#define GROUPS_USUAL 20
#define GROUPS_MAX 1000

static struct str group_of(const struct totals *t, const struct store_series *series)
{
	if (!t->only.len)
		return STR("");
	return str_eq(t->only, STR("service")) ? series->service : totals_label(series, t->only);
}

static int add_group(void *ctx, const struct store_point *p)
{
	struct totals *t = ctx;
	struct totals_row *row = NULL;
	uint64_t value;
	int r;

	if (!totals_value(t, p, &value))
		return 0;
	(void)totals_note_duration(t, p);
	r = totals_row_for(t, group_of(t, p->series), &row);
	if (r == 0) {
		row->total = totals_plus(row->total, value);
		row->profiles++;
	}
	return r;
}

struct line {
	struct totals *t;
	struct totals_row *rows; /* the largest groups, and one for all others */
	uint32_t *place;         /* by id of the group's name: its row + 1; 0: with all others */
	size_t count, places, folded;
};

static void line_release(struct line *l)
{
	for (size_t i = 0; l->rows && i <= l->count; i++)
		free(l->rows[i].points);
	free(l->rows);
	free(l->place);
}

static int add_line_point(void *ctx, const struct store_point *p)
{
	struct line *l = ctx;
	size_t at = l->count;
	uint64_t value;
	uint32_t id;

	if (!totals_value(l->t, p, &value))
		return 0;
	if (intern_find(&l->t->table.names, group_of(l->t, p->series), &id) == 0 && id < l->places && l->place[id])
		at = l->place[id] - 1;
	return totals_add(l->t, &l->rows[at], p, value);
}

/* Answers */

static void write_series(struct json_out *json, const struct totals *t, const struct totals_row *row, bool is_other)
{
	json_out_begin(json, '{');
	call_key(json, STR("value"), row->name);
	json_out_key(json, STR("other"));
	json_out_raw(json, is_other ? STR("true") : STR("false"));
	call_key_u64(json, STR("total"), row->total);
	call_key_u64(json, STR("profiles"), row->profiles);
	if (row->profiles) {
		call_key_u64(json, STR("first_ms"), row->first_ns / NSEC_PER_MSEC);
		call_key_u64(json, STR("last_ms"), row->last_ns / NSEC_PER_MSEC);
	}
	totals_write_points(json, row->points, t->points);
	json_out_end(json, '}');
}

static void write_timeline(const struct line *l)
{
	const struct totals *t = l->t;
	uint64_t total = 0, profiles = 0;
	struct json_out json;

	for (size_t i = 0; i <= l->count; i++) {
		total = totals_plus(total, l->rows[i].total);
		profiles += l->rows[i].profiles;
	}
	call_begin(t->call, &json);
	totals_write_range(&json, t);
	totals_write_covered(&json, t);
	totals_write_sample(&json, t);
	call_key_u64(&json, STR("start_ms"), t->from_ms);
	call_key_u64(&json, STR("step_ms"), t->step_ms);
	call_key_u64(&json, STR("total"), total);
	call_key_u64(&json, STR("profiles"), profiles);
	call_key_u64(&json, STR("folded"), l->folded);
	json_out_key(&json, STR("series"));
	json_out_begin(&json, '[');
	for (size_t i = 0; i < l->count; i++)
		write_series(&json, t, &l->rows[i], false);
	if (l->rows[l->count].profiles)
		write_series(&json, t, &l->rows[l->count], true);
	json_out_end(&json, ']');
	call_end(t->call, &json);
}

/* Groups */

static int take_groups(struct line *l, uint64_t limit)
{
	struct totals_table *table = &l->t->table;

	l->count = l->t->only.len ? MIN(table->count, (size_t)limit) : 1;
	l->folded = l->t->only.len ? table->count - l->count + (l->t->others.profiles > 0) : 0;
	l->places = intern_count(&table->names);
	l->rows = calloc(l->count + 1, sizeof(*l->rows));
	l->place = calloc(l->places, sizeof(*l->place));
	if (!l->rows || !l->place)
		return -ENOMEM;
	for (size_t i = 0; i <= l->count; i++)
		l->rows[i] = (struct totals_row){ .name = STR(""), .first_ns = UINT64_MAX };
	l->place[0] = l->t->only.len ? 0 : 1;
	for (size_t i = 0; l->t->only.len && i < l->count; i++) {
		l->rows[i].name = table->rows[i].name;
		l->place[table->rows[i].id] = (uint32_t)i + 1;
	}
	return 0;
}

static void draw(struct totals *t, uint64_t limit, bool is_round)
{
	scoped(line_release) struct line l = { .t = t };
	int r = 0;

	if (t->only.len || is_round)
		r = totals_visit(t, add_group, t);
	if (is_round)
		totals_set_round_step(t, 0);
	else
		totals_set_step(t);
	totals_sort(&t->table, totals_row_order);
	r = r ? r : take_groups(&l, limit);
	r = r ? r : totals_note_covered(t);
	r = r ? r : totals_visit(t, add_line_point, &l);
	if (r == 0)
		write_timeline(&l);
	else
		totals_failed(t, r);
}

static void timeline(struct totals *t)
{
	uint64_t limit;
	bool is_round;

	t->only = http_query_get(&t->call->query, STR("group"));
	if (!totals_number(t->call, "points", POINTS_USUAL, POINTS_MAX, &t->points) ||
	    !totals_number(t->call, "limit", GROUPS_USUAL, GROUPS_MAX, &limit) || !totals_steps(t->call, &is_round) ||
	    !totals_fits(t, limit))
		return;
	draw(t, limit, is_round);
}

void view_timeline(struct call *call)
{
	totals_run(call, timeline);
}
