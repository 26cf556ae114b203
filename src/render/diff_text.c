/* SPDX-License-Identifier: Apache-2.0 */
/* The table of hearth diff: functions of both profiles side by side. */
#include <inttypes.h>
#include <math.h>

#include "render/diff.h"
#include "render/render.h"
#include "render/terminal.h"
#include "render/text_int.h"
#include "render/total.h"

#define NAMES_MAX GIB(1)
#define NAME_COLUMN 67 /* where names begin */

struct side {
	int64_t flat, cum;
	bool is_there;
};

struct row {
	size_t at, len; /* of the name */
	struct side was, now;
};

struct table {
	const struct diff_text_config *cfg;
	struct buf names;
	struct row *rows;
	size_t count;
	int64_t was_total, now_total; /* as measured */
	double scale;                 /* of what was */
	struct str unit;
};

static void table_release(struct table *t)
{
	buf_release(&t->names);
	free(t->rows);
}

static int add_side(struct table *t, const struct model *m, const struct render_top_row *rows, size_t count,
		    bool is_now)
{
	const struct render_text_config names = { .style = t->cfg->style };

	for (size_t i = 0; i < count; i++) {
		struct row *row = &t->rows[t->count++];

		row->at = t->names.len;
		text_function(&t->names, m, &names, &rows[i]);
		row->len = t->names.len - row->at;
		*(is_now ? &row->now : &row->was) = (struct side){ rows[i].self, rows[i].total, true };
	}
	return t->names.error;
}

static int name_order(const void *a, const void *b, void *text)
{
	const struct row *x = a, *y = b;

	return str_cmp(str_n((const char *)text + x->at, x->len), str_n((const char *)text + y->at, y->len));
}

static void add_to(struct side *to, const struct side *from)
{
	to->flat = saturating_add(to->flat, from->flat);
	to->cum = saturating_add(to->cum, from->cum);
	to->is_there |= from->is_there;
}

/* Rows of one name become one. */
static void join_names(struct table *t)
{
	size_t kept = 0;

	if (!t->count)
		return;
	qsort_r(t->rows, t->count, sizeof(*t->rows), name_order, t->names.ptr);
	for (size_t i = 1; i < t->count; i++) {
		if (name_order(&t->rows[kept], &t->rows[i], t->names.ptr)) {
			t->rows[++kept] = t->rows[i];
			continue;
		}
		add_to(&t->rows[kept].was, &t->rows[i].was);
		add_to(&t->rows[kept].now, &t->rows[i].now);
	}
	t->count = kept + 1;
}

static int fill(struct table *t, const struct window *before, const struct window *now)
{
	scoped(freep) struct render_top_row *a = NULL, *b = NULL;
	const struct diff_text_config *cfg = t->cfg;
	size_t a_count = 0, b_count = 0;
	int r = render_top(before->model, cfg->before_value, &cfg->style, &a, &a_count);

	r = r ? r : render_top(now->model, cfg->now_value, &cfg->style, &b, &b_count);
	if (r < 0)
		return r;
	t->rows = calloc(a_count + b_count + 1, sizeof(*t->rows));
	if (!t->rows)
		return -ENOMEM;
	r = add_side(t, before->model, a, a_count, false);
	r = r ? r : add_side(t, now->model, b, b_count, true);
	if (r == 0)
		join_names(t);
	return r;
}

static int64_t scaled(const struct table *t, int64_t value)
{
	double v = t->scale == 1 ? 0 : round((double)value * t->scale);

	if (t->scale == 1)
		return value;
	return v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

static int64_t difference(int64_t now, int64_t was)
{
	int64_t change;

	if (__builtin_sub_overflow(now, was, &change))
		return now < was ? INT64_MIN : INT64_MAX;
	return change;
}

struct change {
	int64_t was, now, change;
	double points; /* by how much its share of all grew */
};

static double share(int64_t value, int64_t total)
{
	return total ? 100 * (double)value / (double)total : 0;
}

static struct change change_of(const struct table *t, int64_t was, int64_t now)
{
	struct change c = { .was = scaled(t, was), .now = now };

	c.change = difference(c.now, c.was);
	c.points = share(now, t->now_total) - share(was, t->was_total);
	return c;
}

struct sorted {
	const struct row *row;
	struct change flat, cum;
};

static int amount_order(int64_t a, int64_t b)
{
	int64_t x = saturating_abs(a), y = saturating_abs(b);

	return x == y ? 0 : x > y ? -1 : 1;
}

static int sorted_order(const void *a, const void *b, void *table)
{
	const struct sorted *x = a, *y = b;
	const struct table *t = table;
	int flat = amount_order(x->flat.change, y->flat.change), cum = amount_order(x->cum.change, y->cum.change);
	int first = t->cfg->order == DIFF_BY_CUM ? cum : flat, second = t->cfg->order == DIFF_BY_CUM ? flat : cum;

	return first ? first : second ? second : name_order(x->row, y->row, t->names.ptr);
}

/* As a value of the text report, with the sign of a change. */
static void add_change(struct buf *out, int64_t change, struct str unit)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
	struct str trimmed;

	text_value(&text, change, unit);
	trimmed = str_trim(buf_str(&text));
	buf_addf(out, "%*s%s" STR_FMT, (int)(10 - MIN(trimmed.len + (change > 0), (size_t)10)), "",
		 change > 0 ? "+" : "", STR_ARG(trimmed));
	if (text.error)
		out->error = text.error;
}

static void add_points(struct buf *out, double points)
{
	buf_addc(out, ' ');
	if (fabs(points) < 0.005)
		buf_adds(out, STR("   0.00%"));
	else
		buf_addf(out, "%+7.2f%%", points);
}

static void add_row(const struct table *t, const struct sorted *s, struct buf *out)
{
	const struct render_text_config names = { .width = t->cfg->width };
	struct str name = str_n(t->names.ptr + s->row->at, s->row->len);

	text_value(out, s->flat.was, t->unit);
	buf_addc(out, ' ');
	text_value(out, s->flat.now, t->unit);
	buf_addc(out, ' ');
	add_change(out, s->flat.change, t->unit);
	add_points(out, s->flat.points);
	buf_addc(out, ' ');
	add_change(out, s->cum.change, t->unit);
	add_points(out, s->cum.points);
	buf_adds(out, !s->row->was.is_there ? STR(" new  ") : !s->row->now.is_there ? STR(" gone ") : STR("      "));
	text_name(out, &names, NAME_COLUMN, name);
}

static int add_table(const struct table *t, struct str type, struct buf *out)
{
	scoped(freep) struct sorted *sorted = calloc(t->count + 1, sizeof(*sorted));
	size_t new_count = 0, gone_count = 0, shown;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < t->count; i++) {
		const struct row *row = &t->rows[i];

		new_count += !row->was.is_there;
		gone_count += !row->now.is_there;
		sorted[i].row = row;
		sorted[i].flat = change_of(t, row->was.flat, row->now.flat);
		sorted[i].cum = change_of(t, row->was.cum, row->now.cum);
	}
	qsort_r(sorted, t->count, sizeof(*sorted), sorted_order, (void *)(uintptr_t)t);
	shown = MIN(t->count, t->cfg->top_count);
	buf_addf(out, "\nFunctions by change of %s (", t->cfg->order == DIFF_BY_CUM ? "cum" : "flat");
	terminal_add(out, type, 40);
	buf_addf(out, ", %zu of %zu, %zu new, %zu gone)\n", shown, t->count, new_count, gone_count);
	buf_adds(out, STR("  flat was   flat now     change    share cum change    share      function\n"));
	for (size_t i = 0; i < shown && !out->error; i++)
		add_row(t, &sorted[i], out);
	return out->error;
}

static void add_head(const struct table *t, struct buf *out)
{
	const struct {
		const char *key, *name;
		int64_t value;
	} lines[] = { { "before", t->cfg->before_name, t->was_total }, { "now", t->cfg->now_name, t->now_total } };
	int64_t change = difference(t->now_total, t->was_total);

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		buf_addf(out, "%-9s", lines[i].key);
		text_value(out, lines[i].value, t->unit);
		buf_adds(out, STR("  "));
		terminal_add(out, str_of(lines[i].name), 0);
		buf_addc(out, '\n');
	}
	buf_adds(out, STR("change   "));
	add_change(out, change, t->unit);
	if (t->was_total)
		buf_addf(out, "  %+.2f%%", 100 * (double)change / (double)t->was_total);
	buf_addc(out, '\n');
	if (t->scale != 1)
		buf_addf(out, "scaled   what was is shown times %.6g\n", t->scale);
}

int diff_text(const struct window *before, const struct window *now, const struct diff_text_config *cfg,
	      struct buf *out)
{
	const struct model *m = now->model;
	scoped(table_release) struct table t = { .cfg = cfg, .names = BUF_INIT(NAMES_MAX), .scale = 1 };
	const size_t start = out->len;
	struct str type;
	int r;

	if (cfg->before_value >= before->model->value_type_count || cfg->now_value >= m->value_type_count)
		return -EINVAL;
	type = model_string(m, m->value_types[cfg->now_value].type);
	t.unit = model_string(m, m->value_types[cfg->now_value].unit);
	t.was_total = render_total(before->model, cfg->before_value);
	t.now_total = render_total(m, cfg->now_value);
	if (cfg->normalize && t.was_total && t.now_total)
		t.scale = (double)t.now_total / (double)t.was_total;
	r = fill(&t, before, now);
	if (r < 0)
		return r;
	add_head(&t, out);
	if (cfg->top_count)
		r = add_table(&t, type, out);
	r = r ? r : out->error;
	if (r < 0)
		out->len = start;
	return r;
}
