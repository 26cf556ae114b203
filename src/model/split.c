/* SPDX-License-Identifier: Apache-2.0 */
#include "model/split.h"

#include "base/u64map.h"

#define PART_STRINGS_MAX GIB(1)

enum { KIND_CPU, KIND_OFF_CPU, KIND_COUNT };

static const char *const kind_types[KIND_COUNT] = { "cpu", "offcpu" };

/* Where each sample goes: groups of samples of one workload, in the order the workloads are met. */
struct split {
	const struct window *window;
	uint32_t *group_of;          /* by sample */
	uint32_t *order;             /* samples by group, inside a group in the model's order */
	uint32_t *first;             /* by group, and one behind the last: index into order */
	uint32_t *workloads, *kinds; /* by group: strings of the model */
	size_t group_count;
	struct u64map groups;                    /* workload and kind -> group */
	uint32_t columns[MODEL_VALUE_TYPES_MAX]; /* of the kind that is being made */
	size_t column_count;
};

static void split_release(struct split *s)
{
	free(s->group_of);
	free(s->order);
	free(s->first);
	free(s->workloads);
	free(s->kinds);
	u64map_release(&s->groups);
}

static int find_group(struct split *s, const struct model_sample *sample, uint32_t *out)
{
	const struct model_process *p = &s->window->model->processes[sample->process];
	uint64_t key = (uint64_t)p->workload << 32 | p->service_kind;
	int r;

	if (u64map_get(&s->groups, key, out) == 0)
		return 0;
	r = u64map_put(&s->groups, key, (uint32_t)s->group_count);
	if (r < 0)
		return r;
	*out = (uint32_t)s->group_count;
	s->kinds[s->group_count] = p->service_kind;
	s->workloads[s->group_count++] = p->workload;
	return 0;
}

static int group_by_workload(struct split *s)
{
	const struct model *m = s->window->model;
	int r = 0;

	s->group_of = calloc(m->samples_count + 1, sizeof(*s->group_of));
	s->workloads = calloc(m->samples_count + 1, sizeof(*s->workloads));
	s->kinds = calloc(m->samples_count + 1, sizeof(*s->kinds));
	if (!s->group_of || !s->workloads || !s->kinds)
		return -ENOMEM;
	for (size_t i = 0; i < m->samples_count && r == 0; i++)
		r = find_group(s, &m->samples[i], &s->group_of[i]);
	return r;
}

/* A counting sort. */
static int sort_samples(struct split *s, const uint32_t *group_of)
{
	const struct model *m = s->window->model;

	s->order = calloc(m->samples_count + 1, sizeof(*s->order));
	s->first = calloc(s->group_count + 2, sizeof(*s->first));
	if (!s->order || !s->first)
		return -ENOMEM;
	for (size_t i = 0; i < m->samples_count; i++)
		s->first[group_of[i] + 1]++;
	for (size_t i = 1; i <= s->group_count; i++)
		s->first[i] += s->first[i - 1];
	for (size_t i = m->samples_count; i > 0; i--) /* down, so that first[g + 1] ends as the start of group g */
		s->order[--s->first[group_of[i - 1] + 1]] = (uint32_t)(i - 1);
	memmove(s->first, s->first + 1, s->group_count * sizeof(*s->first));
	s->first[s->group_count] = (uint32_t)m->samples_count;
	return 0;
}

static void choose_columns(struct split *s, int kind)
{
	const struct model *m = s->window->model;

	s->column_count = 0;
	for (uint32_t i = 0; i < m->value_type_count; i++) {
		struct str name = model_string(m, m->value_types[i].type);
		bool off_cpu = str_eq(name, STR("off_cpu")) || str_eq(name, STR("waits"));

		if (off_cpu == (kind == KIND_OFF_CPU))
			s->columns[s->column_count++] = i;
	}
}

/* The samples of one group with the chosen columns. The view borrows all other tables. */
static void fill_view(const struct split *s, size_t group, struct model *view)
{
	const struct model *m = s->window->model;

	view->samples_count = 0;
	for (size_t i = s->first[group]; i < s->first[group + 1]; i++) {
		struct model_sample row = m->samples[s->order[i]];
		const int64_t *values = model_values(m, &row);

		row.first_value = (uint32_t)(view->samples_count * s->column_count);
		for (size_t c = 0; c < s->column_count; c++)
			view->values[row.first_value + c] = values[s->columns[c]];
		view->samples[view->samples_count++] = row;
	}
	view->values_count = view->samples_count * s->column_count;
	view->value_type_count = s->column_count;
	for (size_t c = 0; c < s->column_count; c++)
		view->value_types[c] = m->value_types[s->columns[c]];
}

static int copy_texts(struct window *to, const struct window *from)
{
	const struct {
		char **to;
		const char *from;
	} texts[] = {
		{ &to->host, from->host },       { &to->agent_version, from->agent_version },
		{ &to->sampler, from->sampler }, { &to->unwinder, from->unwinder },
		{ &to->os_name, from->os_name }, { &to->kernel_release, from->kernel_release },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(texts) && r == 0; i++)
		if (texts[i].from)
			r = window_set_text(texts[i].to, str_of(texts[i].from));
	for (size_t i = 0; i < from->label_count && r == 0; i++)
		r = window_add_label(to, str_of(from->labels[i].key), str_of(from->labels[i].value));
	return r;
}

/* What is known of the machine and not of its parts: losses, and which stacks of all are whole. */
static bool is_of_machine(struct str name)
{
	return str_starts(name, STR("lost_")) || str_eq(name, STR("user_samples")) || str_eq(name, STR("complete")) ||
	       str_eq(name, STR("guessed")) || str_eq(name, STR(WINDOW_CUT_GUESSED));
}

static int copy_counters(struct window *to, const struct window *from)
{
	int column = model_value_index(to->model, STR("samples"));
	int64_t samples = 0;
	int r = 0;

	for (size_t i = 0; i < from->counter_count && r == 0; i++) {
		scoped(buf_release) struct buf name = BUF_INIT(KIB(4));

		if (!from->counters[i].value || !is_of_machine(str_of(from->counters[i].name)))
			continue;
		buf_addf(&name, "machine_%s", from->counters[i].name);
		r = name.error ? name.error : window_set_counter(to, buf_str(&name), from->counters[i].value);
	}
	if (r < 0 || column < 0)
		return r;
	for (size_t i = 0; i < to->model->samples_count; i++)
		samples = saturating_add(samples, model_values(to->model, &to->model->samples[i])[column]);
	return window_set_counter(to, STR("samples"), samples < 0 ? 0 : (uint64_t)samples);
}

/* Said before merging, because the first merge into an empty model would bring the machine's first mapping along. */
static int set_types(struct model *into, const struct model *view)
{
	int r = 0;

	for (size_t i = 0; i < view->value_type_count && r == 0; i++)
		r = model_add_value_type(into, model_string(view, view->value_types[i].type),
					 model_string(view, view->value_types[i].unit));
	if (r == 0)
		r = model_add_string(into, model_string(view, view->period_type.type), &into->period_type.type);
	return r < 0 ? r : model_add_string(into, model_string(view, view->period_type.unit), &into->period_type.unit);
}

/* @has_header: the part is a profile like @from; otherwise one of the machine's programs, whose samples keep their
 * times. */
static int make_part(const struct window *from, const struct model *view, bool has_header, struct window *part)
{
	int r = window_init(part, PART_STRINGS_MAX);

	if (r < 0)
		return r;
	part->start_ns = from->start_ns;
	part->end_ns = from->end_ns;
	part->frequency_hz = from->frequency_hz;
	part->cpu_count = from->cpu_count;
	part->run_id[0] = from->run_id[0];
	part->run_id[1] = from->run_id[1];
	part->cycle_id = from->cycle_id;
	r = copy_texts(part, from);
	if (r == 0 && !has_header)
		r = set_types(part->model, view);
	if (r == 0)
		r = has_header ? model_merge(part->model, view) : model_merge_timed(part->model, view);
	return r < 0 || (has_header && !from->counter_count) ? r : copy_counters(part, from);
}

static int visit_group(const struct split *s, size_t group, int kind, struct model *view, window_part_fn *visit,
		       void *ctx)
{
	scoped(window_release) struct window w = { 0 };
	struct window_part part = { .type = str_of(kind_types[kind]), .window = &w };
	int r;

	fill_view(s, group, view);
	r = make_part(s->window, view, false, &w);
	if (r < 0 || !w.model->samples_count)
		return r;
	part.workload = model_string(s->window->model, s->workloads[group]);
	part.kind = model_string(s->window->model, s->kinds[group]);
	if (!part.workload.len)
		part.workload = STR("unknown");
	r = part.kind.len ? window_add_label(&w, STR(MODEL_SERVICE_KIND), part.kind) : 0;
	if (r < 0)
		return r;
	return visit(ctx, &part);
}

/* Room for a view of @m; what it has of its own is released by view_release(). */
static int view_make(const struct model *m, struct model *view)
{
	*view = *m;
	view->samples = calloc(m->samples_count + 1, sizeof(*view->samples));
	view->values = calloc(m->values_count + 1, sizeof(*view->values));
	return view->samples && view->values ? 0 : -ENOMEM;
}

static void view_release(struct model *view)
{
	free(view->samples);
	free(view->values);
}

int window_split(const struct window *w, window_part_fn *visit, void *ctx)
{
	const struct model *m = w->model;
	scoped(split_release) struct split s = { .window = w };
	scoped(view_release) struct model view;
	int r = view_make(m, &view);

	u64map_init(&s.groups, m->samples_count + 1);
	r = r ? r : group_by_workload(&s);
	r = r ? r : sort_samples(&s, s.group_of);
	for (int kind = 0; kind < KIND_COUNT && r == 0; kind++) {
		choose_columns(&s, kind);
		if (kind == KIND_OFF_CPU) { /* is not sampled at a rate */
			view.period = 0;
			view.period_type = (struct model_value_type){ 0 };
			view.default_type = 0;
		}
		for (size_t group = 0; group < s.group_count && r == 0 && s.column_count; group++)
			r = visit_group(&s, group, kind, &view, visit, ctx);
	}
	return r;
}

int window_split_groups(const struct window *w, const uint32_t *group_of, size_t group_count, window_group_fn *visit,
			void *ctx)
{
	scoped(split_release) struct split s = { .window = w, .group_count = group_count };
	scoped(view_release) struct model view;
	int r = view_make(w->model, &view);

	r = r ? r : sort_samples(&s, group_of);
	s.column_count = w->model->value_type_count;
	for (uint32_t i = 0; i < s.column_count; i++)
		s.columns[i] = i;
	for (size_t group = 0; group < group_count && r == 0; group++) {
		scoped(window_release) struct window part = { 0 };

		if (s.first[group] == s.first[group + 1])
			continue;
		fill_view(&s, group, &view);
		r = make_part(w, &view, true, &part);
		if (r == 0 && part.model->samples_count)
			r = visit(ctx, group, &part);
	}
	return r;
}
