/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary.h"

#include "base/array.h"
#include "render/terminal.h"

#define NAME_BYTES_MAX MIB(32)
#define TOP_COUNT 10

void summary_init(struct summary *s)
{
	*s = (struct summary){ 0 };
	intern_init(&s->names, NAME_BYTES_MAX);
	intern_init(&s->cut_names, KIB(4));
}

void summary_release(struct summary *s)
{
	intern_release(&s->names);
	intern_release(&s->cut_names);
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
	int r = render_top(m, model_count_value(m), &s->style, &rows, &count);

	for (size_t i = 0; i < count && r == 0 && rows[i].self > 0; i++) {
		scoped(buf_release) struct buf name = BUF_INIT(MIB(1));

		render_top_name(m, &s->style, &rows[i], &name);
		r = name.error ? name.error : add_row(s, buf_str(&name), rows[i].self);
	}
	s->incomplete |= r < 0;
}

static void add_cuts(struct summary *s, const struct window *w)
{
	for (size_t i = 0; i < w->counter_count; i++) {
		struct str name = str_of(w->counters[i].name);
		uint32_t id;

		if (!str_starts(name, STR("cut_")) || !w->counters[i].value)
			continue;
		if (intern_add(&s->cut_names, str_skip(name, 4), &id) < 0 || id > SUMMARY_CUTS_MAX)
			s->incomplete = true;
		else
			s->cuts[id - 1] += w->counters[i].value;
	}
}

void summary_add(struct summary *s, const struct window *w)
{
	s->window_count++;
	s->samples += window_counter(w, STR("samples"));
	s->user_samples += window_counter(w, STR("user_samples"));
	s->complete += window_counter(w, STR("complete"));
	s->frames += window_counter(w, STR("frames"));
	s->unnamed_frames += window_counter(w, STR("unnamed_frames"));
	s->runtime_samples += window_counter(w, STR("runtime_samples"));
	s->runtime_complete += window_counter(w, STR("runtime_complete"));
	s->runtime_frames += window_counter(w, STR("runtime_frames"));
	s->runtime_unnamed_frames += window_counter(w, STR("runtime_unnamed_frames"));
	s->runtime_unlined_frames += window_counter(w, STR("runtime_unlined_frames"));
	s->lines_asked += window_counter(w, STR("lines_asked"));
	s->lines_found += window_counter(w, STR("lines_found"));
	s->lines_failed += window_counter(w, STR("lines_failed"));
	s->busy_ns += w->busy_ns;
	s->cpu_count = w->cpu_count;
	s->frequency_hz = w->frequency_hz;
	add_cuts(s, w);
	add_functions(s, w->model);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_stacks_line(const struct summary *s, uint64_t lost, struct buf *out)
{
	uint64_t all = s->user_samples + lost;

	buf_addf(out, "  stacks   %.1f %% of %llu user stacks are whole", percent(s->complete, all),
		 (unsigned long long)all);
	for (uint32_t i = 1; i < MIN(intern_count(&s->cut_names), (size_t)SUMMARY_CUTS_MAX + 1); i++) {
		struct str name = intern_get(&s->cut_names, i);

		buf_addf(out, "%s %.1f %% ", i == 1 ? "; cut:" : ",", percent(s->cuts[i - 1], all));
		for (size_t c = 0; c < name.len; c++)
			buf_addc(out, name.ptr[c] == '_' ? ' ' : name.ptr[c]);
	}
	buf_addf(out, "\n  names    %.1f %% of %llu frames have no name\n", percent(s->unnamed_frames, s->frames),
		 (unsigned long long)s->frames);
}

static void add_runtime_line(const struct summary *s, const struct session_stats *stats, struct buf *out)
{
	if (stats->left_out)
		buf_addf(out, "  left out %llu samples without Python frames\n", (unsigned long long)stats->left_out);
	if (!s->runtime_samples)
		return;
	buf_addf(out, "  python   %.1f %% of %llu samples with Python frames are whole; ",
		 percent(s->runtime_complete, s->runtime_samples), (unsigned long long)s->runtime_samples);
	buf_addf(out, "%.1f %% of %llu Python frames have no name, %.1f %% no line\n",
		 percent(s->runtime_unnamed_frames, s->runtime_frames), (unsigned long long)s->runtime_frames,
		 percent(s->runtime_unlined_frames, s->runtime_frames));
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

	if (!rows || !count || !s->samples)
		return;
	for (uint32_t i = 0; i < count; i++)
		rows[i] = (struct ranked){ i, s->self[i] };
	qsort(rows, count, sizeof(*rows), by_self);
	buf_adds(out, STR("\n    self  function\n"));
	for (size_t i = 0; i < MIN(count, (size_t)TOP_COUNT) && rows[i].self > 0; i++) {
		buf_addf(out, "  %5.1f%%  ", percent((uint64_t)rows[i].self, s->samples));
		terminal_add(out, intern_get(&s->names, rows[i].name), 160);
		buf_addc(out, '\n');
	}
	if (s->incomplete)
		buf_adds(out, STR("  (memory ran out: the list is short)\n"));
}

void summary_text(const struct summary *s, const struct session_stats *stats, struct buf *out)
{
	double sampled_s = s->frequency_hz ? (double)s->samples / s->frequency_hz : 0;
	double busy_s = (double)s->busy_ns / (double)NSEC_PER_SEC;

	buf_addf(out, "%.1f s at %u Hz on %u CPUs, %llu samples\n", (double)stats->elapsed_ns / (double)NSEC_PER_SEC,
		 s->frequency_hz, s->cpu_count, (unsigned long long)s->samples);
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
	if (s->user_samples)
		add_stacks_line(s, stats->lost, out);
	add_runtime_line(s, stats, out);
	add_lines_line(s, out);
	if (!s->samples)
		buf_adds(out, STR("  no samples: nothing that was asked for used a CPU\n"));
	add_top(s, out);
}
