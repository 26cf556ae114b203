/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary.h"

#include "base/array.h"
#include "render/classes.h"
#include "render/terminal.h"

#define NAME_BYTES_MAX MIB(32)
#define TOP_COUNT 10

void summary_init(struct summary *s)
{
	*s = (struct summary){ .event = BUF_INIT(KIB(1)) };
	intern_init(&s->names, NAME_BYTES_MAX);
	intern_init(&s->cut_names, KIB(4));
}

void summary_release(struct summary *s)
{
	intern_release(&s->names);
	intern_release(&s->cut_names);
	buf_release(&s->event);
	free(s->self);
}

static int add_row(struct summary *s, struct str name, int64_t self)
{
	uint32_t id;
	size_t before = s->self_cap;
	int r = intern_add(&s->names, name, &id);

	if (r < 0)
		return r;
	while (id >= s->self_cap) {
		r = array_grow(&s->self, &s->self_cap, s->self_cap, UINT32_MAX);
		if (r < 0)
			return r;
		memset(s->self + before, 0, (s->self_cap - before) * sizeof(*s->self));
		before = s->self_cap;
	}
	s->self[id] += self;
	return 0;
}

static void add_functions(struct summary *s, const struct model *m)
{
	scoped(freep) struct render_top_row *rows = NULL;
	size_t count = 0;
	size_t column = codec_value(m, &s->options, model_count_value(m));
	int r = render_top(m, column, &s->options.frames, &rows, &count);

	for (size_t i = 0; i < m->samples_count; i++)
		s->shown = saturating_add(s->shown, model_values(m, &m->samples[i])[column]);

	for (size_t i = 0; i < count && r == 0 && rows[i].self > 0; i++) {
		scoped(buf_release) struct buf name = BUF_INIT(MIB(1));

		render_top_name(m, &s->options.frames, &rows[i], &name);
		r = name.error ? name.error : add_row(s, buf_str(&name), rows[i].self);
	}
	s->incomplete |= r < 0;
}

static void add_cuts(struct summary *s, const struct window *w)
{
	for (size_t i = 0; i < w->counter_count; i++) {
		struct str reason = window_cut_reason(&w->counters[i]);
		uint32_t id;

		if (!reason.len || !w->counters[i].value)
			continue;
		if (intern_add(&s->cut_names, reason, &id) < 0 || id > SUMMARY_CUTS_MAX)
			s->incomplete = true;
		else
			s->cuts[id - 1] += w->counters[i].value;
	}
}

static void add_classes(struct summary *s, const struct window *w)
{
	const struct window_classes classes = window_classes(w);

	s->classes.user += classes.user;
	s->classes.whole += classes.whole;
	s->classes.guessed += classes.guessed;
	s->classes.cut += classes.cut;
	for (int kind = 0; kind < JIT_KIND_COUNT; kind++)
		s->unnamed_jit[kind] += window_counter(w, jit_kind_counter((enum jit_kind)kind));
	add_cuts(s, w);
}

static void set_event(struct summary *s, const struct model *m)
{
	bool is_time = str_eq(model_string(m, m->period_type.unit), STR("nanoseconds"));

	buf_clear(&s->event);
	if (!is_time)
		buf_adds(&s->event, model_string(m, m->period_type.type));
	s->period = m->period;
}

void summary_add(struct summary *s, const struct window *w)
{
	s->window_count++;
	s->samples += window_counter(w, STR("samples"));
	s->frames += window_counter(w, STR("frames"));
	s->unnamed_frames += window_counter(w, STR("unnamed_frames"));
	for (size_t i = 0; i < MODEL_RUNTIME_COUNT; i++)
		runtime_shares_add(&s->runtimes[i], w, model_runtime_at(i)->name);
	s->lines_asked += window_counter(w, STR("lines_asked"));
	s->lines_found += window_counter(w, STR("lines_found"));
	s->lines_failed += window_counter(w, STR("lines_failed"));
	s->busy_ns += w->busy_ns;
	s->cpu_count = w->cpu_count;
	s->frequency_hz = w->frequency_hz;
	set_event(s, w->model);
	add_classes(s, w);
	add_functions(s, w->model);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_stacks_line(const struct summary *s, uint64_t lost, struct buf *out)
{
	struct window_classes classes = s->classes;
	uint64_t all = classes.user + lost;

	classes.lost = lost;
	buf_addf(out, "  stacks   %llu user stacks: ", (unsigned long long)all);
	classes_add_shares(&classes, 1, out);
	for (uint32_t i = 1; i < MIN(intern_count(&s->cut_names), (size_t)SUMMARY_CUTS_MAX + 1); i++) {
		struct str name = intern_get(&s->cut_names, i);

		buf_addf(out, "%s %.1f %% ", i == 1 ? ":" : ",", percent(s->cuts[i - 1], all));
		for (size_t c = 0; c < name.len; c++)
			buf_addc(out, name.ptr[c] == '_' ? ' ' : name.ptr[c]);
	}
	buf_addf(out, "\n  names    %.1f %% of %llu frames have no name\n", percent(s->unnamed_frames, s->frames),
		 (unsigned long long)s->frames);
	for (int kind = 0; kind < JIT_KIND_COUNT; kind++) {
		if (!s->unnamed_jit[kind])
			continue;
		buf_adds(out, STR("  jit      "));
		classes_add_jit(s->unnamed_jit[kind], (enum jit_kind)kind, out);
		buf_addc(out, '\n');
	}
}

static void add_runtime_line(const struct summary *s, const struct session_stats *stats, struct buf *out)
{
	if (stats->left_out)
		buf_addf(out, "  left out %llu samples without frames of a language runtime\n",
			 (unsigned long long)stats->left_out);
	for (size_t i = 0; i < MODEL_RUNTIME_COUNT; i++) {
		const struct model_runtime *runtime = model_runtime_at(i);
		const struct runtime_shares *c = &s->runtimes[i];

		if (!c->samples)
			continue;
		buf_addf(out, "  %-8s %.1f %% of %llu samples with %s frames are whole; ", runtime->name.ptr,
			 percent(c->complete, c->samples), (unsigned long long)c->samples, runtime->title.ptr);
		buf_addf(out, "%.1f %% of %llu %s frames have no name, %.1f %% no line", percent(c->unnamed, c->frames),
			 (unsigned long long)c->frames, runtime->title.ptr, percent(c->unlined, c->frames));
		buf_adds(out, c->vague ? STR("; ") : STR(""));
		runtime_shares_add_vague(c, runtime->name, out);
		buf_addc(out, '\n');
	}
}

/* What is in the files: of the container that was asked for, and of threads that still waited at the end, too. */
static void add_waits_line(const struct session_stats *stats, struct buf *out)
{
	const uint64_t *counters = stats->counters;

	if (!stats->off_cpu)
		return;
	buf_addf(out, "  waits    %llu", (unsigned long long)counters[ABI_COUNTER_WAITS]);
	if (counters[ABI_COUNTER_WAITS_SKIPPED])
		buf_addf(out, "; left out because a CPU had too many at once: %llu",
			 (unsigned long long)counters[ABI_COUNTER_WAITS_SKIPPED]);
	if (counters[ABI_COUNTER_WAITS_LOST])
		buf_addf(out, "; lost: %llu", (unsigned long long)counters[ABI_COUNTER_WAITS_LOST]);
	buf_addc(out, '\n');
}

static void add_lines_line(const struct summary *s, struct buf *out)
{
	if (!s->lines_asked)
		return;
	buf_addf(out, "  lines    %.1f %% of %llu native addresses of files with debug information",
		 percent(s->lines_found, s->lines_asked), (unsigned long long)s->lines_asked);
	if (s->lines_failed)
		buf_addf(out, "; the debug information of %.1f %% could not be read",
			 percent(s->lines_failed, s->lines_asked));
	buf_addc(out, '\n');
}

struct ranked {
	uint32_t name;
	int64_t self;
};

static int by_self(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return (x->self < y->self) - (x->self > y->self);
}

static void add_top(const struct summary *s, struct buf *out)
{
	size_t count = MIN(intern_count(&s->names), s->self_cap);
	scoped(freep) struct ranked *rows = calloc(count + 1, sizeof(*rows));

	if (!rows || !count || s->shown <= 0)
		return;
	for (uint32_t i = 0; i < count; i++)
		rows[i] = (struct ranked){ i, s->self[i] };
	qsort(rows, count, sizeof(*rows), by_self);
	buf_addf(out, "\n    self  function%s%s%s\n", s->options.value ? " (" : "",
		 s->options.value ? s->options.value : "", s->options.value ? ")" : "");
	for (size_t i = 0; i < MIN(count, (size_t)TOP_COUNT) && rows[i].self > 0; i++) {
		buf_addf(out, "  %5.1f%%  ", percent((uint64_t)rows[i].self, (uint64_t)s->shown));
		terminal_add(out, intern_get(&s->names, rows[i].name), 160);
		buf_addc(out, '\n');
	}
	if (s->incomplete)
		buf_adds(out, STR("  (memory ran out: the list is short)\n"));
}

static void add_first_line(const struct summary *s, const struct session_stats *stats, struct buf *out)
{
	const char *unit = s->event.len ? " events" : " ns";

	buf_addf(out, "%.1f s at ", (double)stats->elapsed_ns / (double)NSEC_PER_SEC);
	if (s->frequency_hz || !s->period)
		buf_addf(out, "%u Hz", s->frequency_hz);
	else
		buf_addf(out, "a sample each %lld%s", (long long)s->period, s->period == 1 ? " event" : unit);
	buf_addf(out, " on %u CPUs, %llu samples", s->cpu_count, (unsigned long long)s->samples);
	if (s->event.len) {
		buf_adds(out, STR(" of "));
		terminal_add(out, buf_str(&s->event), 0);
	}
	buf_addc(out, '\n');
}

void summary_text(const struct summary *s, const struct session_stats *stats, struct buf *out)
{
	double sampled_s = (double)s->samples * (double)s->period / (double)NSEC_PER_SEC;
	double busy_s = s->event.len ? 0 : (double)s->busy_ns / (double)NSEC_PER_SEC;

	add_first_line(s, stats, out);
	buf_addf(out, "  sampler  %s: %s\n", stats->sampler->name, stats->sampler->help);
	if (busy_s > 0)
		buf_addf(out, "  CPU      %.2f CPU seconds sampled, the machine was busy for %.2f\n", sampled_s,
			 busy_s);
	buf_addf(out, "  lost     %llu samples", (unsigned long long)stats->lost);
	if (stats->counters[ABI_COUNTER_FILTERED])
		buf_addf(out, " (%llu more belong to processes that were not asked for)",
			 (unsigned long long)stats->counters[ABI_COUNTER_FILTERED]);
	if (stats->counters[ABI_COUNTER_EVENTS_LOST])
		buf_addf(out, ", %llu exec, fork or exit events",
			 (unsigned long long)stats->counters[ABI_COUNTER_EVENTS_LOST]);
	if (stats->dropped_windows)
		buf_addf(out, ", %llu whole windows", (unsigned long long)stats->dropped_windows);
	buf_addc(out, '\n');
	add_waits_line(stats, out);
	if (s->classes.user)
		add_stacks_line(s, stats->lost, out);
	add_runtime_line(s, stats, out);
	add_lines_line(s, out);
	if (!s->samples && !stats->left_out)
		buf_adds(out, STR("  no samples: nothing that was asked for used a CPU\n"));
	add_top(s, out);
}
