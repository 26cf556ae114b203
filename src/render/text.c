/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the text report: functions, processes. */
#include <inttypes.h>

#include "render/terminal.h"
#include "render/text_int.h"
#include "render/total.h"

#define NAME_MAX_BYTES MIB(1)

/* Units as pprof writes them: the largest in which the value is at least 1, two decimals, no trailing zeros. */
struct scale {
	const char *unit, *shown;
	double factor;
};

static const struct scale scales[] = {
	{ "nanoseconds", "s", 1e9 }, { "nanoseconds", "ms", 1e6 }, { "nanoseconds", "us", 1e3 },
	{ "nanoseconds", "ns", 1 },  { "microseconds", "s", 1e6 }, { "microseconds", "ms", 1e3 },
	{ "microseconds", "us", 1 }, { "milliseconds", "s", 1e3 }, { "milliseconds", "ms", 1 },
	{ "seconds", "s", 1 },       { "bytes", "TB", 0x1p40 },    { "bytes", "GB", 0x1p30 },
	{ "bytes", "MB", 0x1p20 },   { "bytes", "kB", 0x1p10 },    { "bytes", "B", 1 },
};

static const struct scale *scale_for(struct str unit, int64_t value)
{
	const struct scale *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(scales); i++) {
		if (!str_eq(unit, str_of(scales[i].unit)))
			continue;
		found = &scales[i];
		if ((double)saturating_abs(value) >= found->factor)
			break;
	}
	return found;
}

void text_value(struct buf *out, int64_t value, struct str unit)
{
	const struct scale *scale = scale_for(unit, value);
	char text[64];
	int len;

	if (!scale || value == 0) {
		buf_addf(out, "%10" PRId64, value);
		return;
	}
	len = snprintf(text, sizeof(text), "%.2f", (double)value / scale->factor);
	while (text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.')
		len--;
	snprintf(text + len, sizeof(text) - (size_t)len, "%s", scale->shown);
	buf_addf(out, "%10s", text);
}

void text_percent(struct buf *out, int64_t value, int64_t total)
{
	buf_addf(out, "%6.2f%%", total ? (double)saturating_abs(value) * 100 / (double)total : 0.0);
}

void text_name(struct buf *out, const struct render_text_config *cfg, size_t used, struct str name)
{
	const size_t width = cfg->width > 0 ? (size_t)cfg->width : 0;
	const size_t least = 16; /* a table narrower than this says nothing: let it wrap */

	terminal_add(out, name, width ? MAX(width, used + least) - used : 0);
	buf_addc(out, '\n');
}

void text_function(struct buf *out, const struct model *m, const struct render_text_config *cfg,
		   const struct render_top_row *row)
{
	render_top_name(m, &cfg->style, row, out);
	buf_adds(out, model_kind_suffix(row->kind));
}

static struct str unit_of(const struct model *m, size_t value)
{
	return model_string(m, m->value_types[value].unit);
}

static int function_table(const struct window *w, const struct render_text_config *cfg, struct buf *out)
{
	scoped(freep) struct render_top_row *rows = NULL;
	scoped(buf_release) struct buf name = BUF_INIT(NAME_MAX_BYTES);
	const struct str unit = unit_of(w->model, cfg->value);
	int64_t sum = 0, total;
	size_t count;
	int r = render_top(w->model, cfg->value, &cfg->style, &rows, &count);

	if (r < 0)
		return r;
	total = render_total(w->model, cfg->value);
	buf_addf(out, "Functions (" STR_FMT ", ",
		 STR_ARG(model_string(w->model, w->model->value_types[cfg->value].type)));
	buf_addf(out, "%zu of %zu)\n", MIN(count, cfg->top_count), count);
	buf_adds(out, STR("      flat   flat%    sum%        cum    cum%  function\n"));
	for (size_t i = 0; i < MIN(count, cfg->top_count); i++) {
		sum = saturating_add(sum, rows[i].self);
		text_value(out, rows[i].self, unit);
		buf_addc(out, ' ');
		text_percent(out, rows[i].self, total);
		buf_addc(out, ' ');
		text_percent(out, sum, total);
		buf_addc(out, ' ');
		text_value(out, rows[i].total, unit);
		buf_addc(out, ' ');
		text_percent(out, rows[i].total, total);
		buf_adds(out, STR("  "));
		buf_clear(&name);
		text_function(&name, w->model, cfg, &rows[i]);
		text_name(out, cfg, 48, name.error ? STR("[name too long]") : buf_str(&name));
	}
	return 0;
}

struct process_row {
	uint32_t process;
	int64_t value;
};

static int compare_processes(const void *a, const void *b)
{
	const struct process_row *x = a, *y = b;
	const int64_t value_x = saturating_abs(x->value), value_y = saturating_abs(y->value);

	if (value_x != value_y)
		return value_x > value_y ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

/* Rows sorted by value, those without one left out. */
static int process_rows(const struct window *w, size_t value, struct process_row **out, size_t *count, int64_t *total)
{
	const struct model *m = w->model;
	struct process_row *rows = calloc(m->processes_count + 1, sizeof(*rows));
	size_t used = 0;

	if (!rows)
		return -ENOMEM;
	*total = render_total(m, value);
	for (size_t i = 0; i < m->samples_count; i++) {
		const int64_t v = model_values(m, &m->samples[i])[value];

		rows[m->samples[i].process].value = saturating_add(rows[m->samples[i].process].value, v);
	}
	for (uint32_t i = 1; i < m->processes_count; i++) {
		if (rows[i].value)
			rows[used++] = (struct process_row){ .process = i, .value = rows[i].value };
	}
	qsort(rows, used, sizeof(*rows), compare_processes);
	*out = rows;
	*count = used;
	return 0;
}

static void process_line(const struct window *w, const struct render_text_config *cfg, const struct process_row *row,
			 int64_t total, struct buf *out)
{
	const struct model_process *p = &w->model->processes[row->process];
	size_t used;

	text_value(out, row->value, unit_of(w->model, cfg->value));
	buf_addc(out, ' ');
	text_percent(out, row->value, total);
	buf_addf(out, " %9" PRIu32 "  ", p->pid);
	used = terminal_add(out, model_string(w->model, p->comm), 24);
	if (p->container || p->app_id)
		terminal_pad(out, 26 - used);
	if (p->container && p->app_id) {
		used = terminal_add(out, model_string(w->model, p->container), 24);
		terminal_pad(out, 26 - used);
		text_name(out, cfg, 82, model_string(w->model, p->app_id));
	} else if (p->container || p->app_id) {
		text_name(out, cfg, 56, model_string(w->model, p->container ? p->container : p->app_id));
	} else {
		buf_addc(out, '\n');
	}
}

static bool has_applications(const struct model *m)
{
	for (size_t i = 1; i < m->processes_count; i++)
		if (m->processes[i].app_id)
			return true;
	return false;
}

static int process_table(const struct window *w, const struct render_text_config *cfg, struct buf *out)
{
	scoped(freep) struct process_row *rows = NULL;
	size_t count, shown;
	int64_t total, rest = 0;
	int r = process_rows(w, cfg->value, &rows, &count, &total);

	if (r < 0 || !count)
		return r;
	shown = cfg->top_count ? MIN(count, cfg->top_count) : count;
	buf_addf(out, "\nProcesses (%zu of %zu)\n", shown, count);
	buf_adds(out, STR("     value   share       pid  command                   container"));
	buf_adds(out, has_applications(w->model) ? STR(", application\n") : STR("\n"));
	for (size_t i = 0; i < count; i++) {
		if (i < shown)
			process_line(w, cfg, &rows[i], total, out);
		else
			rest = saturating_add(rest, rows[i].value);
	}
	if (shown < count) {
		text_value(out, rest, unit_of(w->model, cfg->value));
		buf_addc(out, ' ');
		text_percent(out, rest, total);
		buf_addf(out, "            (%zu more)\n", count - shown);
	}
	return 0;
}

int render_text(const struct window *w, const struct render_text_config *cfg, struct buf *out)
{
	const size_t start = out->len;
	scoped(calls_release) struct calls c = { 0 };
	int r = 0;

	if (cfg->value >= w->model->value_type_count)
		return -EINVAL;
	text_head(w, out);
	if (cfg->top_count) {
		buf_addc(out, '\n');
		r = function_table(w, cfg, out);
	}
	if (r == 0 && cfg->by_process)
		r = process_table(w, cfg, out);
	if (r == 0 && cfg->tree_min_percent >= 0) {
		r = calls_build(w->model, cfg->value, &cfg->style, &c);
		if (r == 0)
			r = text_tree(w, cfg, &c, out);
	}
	if (r == 0)
		r = out->error;
	if (r < 0)
		out->len = start;
	return r;
}
