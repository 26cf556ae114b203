/* SPDX-License-Identifier: Apache-2.0 */
/* What hearth report says, for programs: docs/formats/report-json.md. */
#include <inttypes.h>

#include "base/clock.h"
#include "codec/json.h"
#include "render/render.h"
#include "render/total.h"
#include "render/tree.h"

#define VERSION 1
#define NAME_MAX_BYTES MIB(64)

static void add_text(struct json_out *j, struct str key, const char *text)
{
	if (!text)
		return;
	json_out_key(j, key);
	json_out_string(j, str_of(text));
}

static void add_str(struct json_out *j, struct str key, struct str text)
{
	json_out_key(j, key);
	json_out_string(j, text);
}

static void add_u64(struct json_out *j, struct str key, uint64_t value)
{
	json_out_key(j, key);
	json_out_u64(j, value);
}

static void add_i64(struct json_out *j, struct str key, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	json_out_key(j, key);
	json_out_raw(j, str_of(text));
}

static void add_time(struct json_out *j, struct str key, uint64_t wall_ns)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));

	if (!wall_ns)
		return;
	clock_add_iso(&text, wall_ns);
	buf_addc(&text, 'Z');
	add_str(j, key, buf_str(&text));
}

static void add_origin(struct json_out *j, const struct window *w)
{
	uint64_t duration_ns = window_duration_ns(w);

	add_text(j, STR("host"), w->host);
	add_text(j, STR("kernel"), w->kernel_release);
	add_text(j, STR("command"), w->command);
	add_text(j, STR("sampler"), w->sampler);
	add_time(j, STR("start"), w->start_ns);
	add_time(j, STR("end"), w->end_ns);
	if (duration_ns)
		add_u64(j, STR("duration_ns"), duration_ns);
	if (w->frequency_hz)
		add_u64(j, STR("frequency_hz"), w->frequency_hz);
	if (w->cpu_count)
		add_u64(j, STR("cpus"), w->cpu_count);
	if (w->busy_ns)
		add_u64(j, STR("busy_ns"), w->busy_ns);
}

static int64_t sum_of(const struct model *m, size_t value)
{
	int64_t sum = 0;

	for (size_t i = 0; i < m->samples_count; i++)
		sum = saturating_add(sum, model_values(m, &m->samples[i])[value]);
	return sum;
}

static void add_value(struct json_out *j, const struct model *m, size_t value)
{
	json_out_begin(j, '{');
	add_str(j, STR("type"), model_string(m, m->value_types[value].type));
	add_str(j, STR("unit"), model_string(m, m->value_types[value].unit));
	add_i64(j, STR("total"), render_total(m, value));
	add_i64(j, STR("sum"), sum_of(m, value));
	json_out_end(j, '}');
}

static void add_values(struct json_out *j, const struct model *m, size_t shown)
{
	json_out_key(j, STR("values"));
	json_out_begin(j, '[');
	for (size_t i = 0; i < m->value_type_count; i++)
		add_value(j, m, i);
	json_out_end(j, ']');
	json_out_key(j, STR("value"));
	add_value(j, m, shown);
}

static void add_counters(struct json_out *j, const struct window *w)
{
	const struct window_classes c = window_classes(w);

	json_out_key(j, STR("counters"));
	json_out_begin(j, '{');
	for (size_t i = 0; i < w->counter_count; i++)
		add_u64(j, str_of(w->counters[i].name), w->counters[i].value);
	json_out_end(j, '}');
	if (!c.user)
		return;
	json_out_key(j, STR("user_stacks"));
	json_out_begin(j, '{');
	add_u64(j, STR("whole"), c.whole);
	add_u64(j, STR("guessed"), c.guessed);
	add_u64(j, STR("cut"), c.cut);
	add_u64(j, STR("lost"), c.lost);
	json_out_end(j, '}');
}

/* The value by what the samples' stacks end in, in the order of the samples. */
static int add_ends(struct json_out *j, const struct model *m, size_t value)
{
	scoped(freep) int64_t *sums = calloc(intern_count(&m->strings), sizeof(*sums));
	scoped(freep) bool *any = calloc(intern_count(&m->strings), sizeof(*any));

	if (!sums || !any)
		return -ENOMEM;
	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_sample *s = &m->samples[i];

		sums[s->end] = saturating_add(sums[s->end], model_values(m, s)[value]);
		any[s->end] = true;
	}
	json_out_key(j, STR("ends"));
	json_out_begin(j, '{');
	for (size_t i = 0; i < m->samples_count; i++) {
		uint32_t end = m->samples[i].end;

		if (any[end])
			add_i64(j, end ? model_string(m, end) : STR("unknown"), sums[end]);
		any[end] = false;
	}
	json_out_end(j, '}');
	return 0;
}

static int add_functions(struct json_out *j, const struct model *m, size_t value, const struct frame_style *style)
{
	scoped(freep) struct render_top_row *rows = NULL;
	scoped(buf_release) struct buf name = BUF_INIT(NAME_MAX_BYTES);
	size_t count;
	int r = render_top(m, value, style, &rows, &count);

	if (r < 0)
		return r;
	json_out_key(j, STR("functions"));
	json_out_begin(j, '[');
	for (size_t i = 0; i < count && r == 0; i++) {
		buf_clear(&name);
		render_top_name(m, style, &rows[i], &name);
		json_out_begin(j, '{');
		add_str(j, STR("name"), name.error ? STR("[name too long]") : buf_str(&name));
		add_str(j, STR("kind"), tree_kind_name(rows[i].kind));
		add_i64(j, STR("flat"), rows[i].self);
		add_i64(j, STR("cum"), rows[i].total);
		json_out_end(j, '}');
		r = j->out->error;
	}
	json_out_end(j, ']');
	return r;
}

static int add_processes(struct json_out *j, const struct model *m, size_t value)
{
	scoped(freep) int64_t *sums = calloc(m->processes_count, sizeof(*sums));

	if (!sums)
		return -ENOMEM;
	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_sample *s = &m->samples[i];

		sums[s->process] = saturating_add(sums[s->process], model_values(m, s)[value]);
	}
	json_out_key(j, STR("processes"));
	json_out_begin(j, '[');
	for (size_t i = 1; i < m->processes_count; i++) {
		const struct model_process *p = &m->processes[i];

		if (!sums[i])
			continue;
		json_out_begin(j, '{');
		add_u64(j, STR("pid"), p->pid);
		add_str(j, STR("command"), model_string(m, p->comm));
		if (p->container)
			add_str(j, STR("container"), model_string(m, p->container));
		if (p->app_id)
			add_str(j, STR("application"), model_string(m, p->app_id));
		add_i64(j, STR("value"), sums[i]);
		json_out_end(j, '}');
	}
	json_out_end(j, ']');
	return 0;
}

int render_report_json(const struct window *w, size_t value, const struct frame_style *style, struct buf *out)
{
	const struct model *m = w->model;
	const size_t start = out->len;
	struct json_out j = { .out = out };
	int r;

	if (value >= m->value_type_count)
		return -EINVAL;
	json_out_begin(&j, '{');
	add_u64(&j, STR("version"), VERSION);
	add_origin(&j, w);
	add_u64(&j, STR("samples"), m->samples_count);
	add_values(&j, m, value);
	add_counters(&j, w);
	r = add_ends(&j, m, value);
	r = r ? r : add_functions(&j, m, value, style);
	r = r ? r : add_processes(&j, m, value);
	json_out_end(&j, '}');
	buf_addc(out, '\n');
	r = r ? r : out->error;
	if (r < 0)
		out->len = start;
	return r;
}
