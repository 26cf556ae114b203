/* SPDX-License-Identifier: Apache-2.0 */
/* What a report opens with: where and when the profile was taken, and how far it can be trusted. */
#include <inttypes.h>

#include "base/clock.h"
#include "render/classes.h"
#include "render/runtimes.h"
#include "render/terminal.h"
#include "render/text_int.h"

#define KEY_WIDTH ((size_t)9)

static void add_key(struct buf *out, const char *key)
{
	buf_addf(out, "%-*s ", (int)KEY_WIDTH, key);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? (double)part * 100 / (double)whole : 0;
}

static bool starts_with(const struct window_counter *counter, struct str prefix)
{
	return str_starts(str_of(counter->name), prefix);
}

static void add_counter(struct buf *out, const char *before, struct str name, uint64_t value)
{
	buf_addf(out, "%s", before);
	terminal_add(out, name, 40);
	buf_addf(out, " %" PRIu64, value);
}

/* "name 12, other 3", without the prefix, those that are not zero; nothing when all are. */
static void add_counters(struct buf *out, const struct window *w, struct str prefix, const char *before)
{
	for (size_t i = 0; i < w->counter_count; i++) {
		if (!starts_with(&w->counters[i], prefix) || !w->counters[i].value)
			continue;
		add_counter(out, before, str_skip(str_of(w->counters[i].name), prefix.len), w->counters[i].value);
		before = ", ";
	}
}

/* The reasons, as add_counters() has them. */
static void add_cuts(struct buf *out, const struct window *w)
{
	const char *before = ": ";

	for (size_t i = 0; i < w->counter_count; i++) {
		struct str reason = window_cut_reason(&w->counters[i]);

		if (!reason.len || !w->counters[i].value)
			continue;
		add_counter(out, before, reason, w->counters[i].value);
		before = ", ";
	}
}

static void add_jit(const struct window *w, struct buf *out)
{
	for (int kind = 0; kind < JIT_KIND_COUNT; kind++) {
		uint64_t samples = window_counter(w, jit_kind_counter((enum jit_kind)kind));

		if (!samples)
			continue;
		add_key(out, "jit");
		classes_add_jit(samples, (enum jit_kind)kind, out);
		buf_addc(out, '\n');
	}
}

static void add_origin(const struct window *w, struct buf *out)
{
	if (w->host) {
		add_key(out, "host");
		terminal_add(out, str_of(w->host), 0);
		if (w->kernel_release) {
			buf_adds(out, STR(", Linux "));
			terminal_add(out, str_of(w->kernel_release), 0);
		}
		buf_addc(out, '\n');
	}
	if (w->command) {
		add_key(out, "command");
		terminal_add(out, str_of(w->command), 0);
		buf_addc(out, '\n');
	}
	if (w->start_ns) {
		add_key(out, "time");
		clock_add_iso(out, w->start_ns);
		buf_adds(out, STR("Z"));
		if (w->end_ns >= w->start_ns)
			buf_addf(out, ", %.2f s", (double)(w->end_ns - w->start_ns) / 1e9);
		buf_addc(out, '\n');
	}
	if (w->frequency_hz) {
		add_key(out, "rate");
		buf_addf(out, "%" PRIu32 " Hz", w->frequency_hz);
		if (w->cpu_count)
			buf_addf(out, " on %" PRIu32 " CPU%s", w->cpu_count, w->cpu_count == 1 ? "" : "s");
		if (w->busy_ns)
			buf_addf(out, ", %.2f busy CPU seconds", (double)w->busy_ns / 1e9);
		if (w->sampler) {
			buf_adds(out, STR(", sampler "));
			terminal_add(out, str_of(w->sampler), 0);
		}
		buf_addc(out, '\n');
	}
}

static void add_quality(const struct window *w, struct buf *out)
{
	const struct window_classes classes = window_classes(w);
	const uint64_t frames = window_counter(w, STR("frames"));

	if (classes.user) {
		add_key(out, "stacks");
		buf_addf(out, "%.0f user stacks: ", (double)classes.user + (double)classes.lost);
		classes_add_shares(&classes, 2, out);
		add_cuts(out, w);
		buf_addc(out, '\n');
	}
	if (frames) {
		const uint64_t unnamed = window_counter(w, STR("unnamed_frames"));

		add_key(out, "unnamed");
		buf_addf(out, "%.2f%% of %" PRIu64 " frames\n", percent(unnamed, frames), frames);
	}
}

static void add_runtimes(const struct window *w, struct buf *out)
{
	struct str name;

	for (size_t at = 0; runtime_shares_next(w, &at, &name);) {
		struct runtime_shares c = { 0 };

		runtime_shares_add(&c, w, name);
		if (!c.samples)
			continue;
		terminal_add(out, name, 40);
		buf_addf(out, "%*s", (int)(KEY_WIDTH - MIN(name.len, KEY_WIDTH)) + 1, "");
		buf_addf(out, "%.2f%% of %" PRIu64 " samples with such frames are complete; ",
			 percent(c.complete, c.samples), c.samples);
		buf_addf(out, "of %" PRIu64 " frames %" PRIu64 " have no name, %" PRIu64 " no line", c.frames,
			 c.unnamed, c.unlined);
		buf_adds(out, c.vague ? STR("; ") : STR(""));
		runtime_shares_add_vague(&c, name, out);
		buf_addc(out, '\n');
	}
}

void text_head(const struct window *w, struct buf *out)
{
	const uint64_t counted = window_counter(w, STR("samples"));

	add_origin(w, out);
	add_key(out, "samples");
	if (counted) {
		buf_addf(out, "%" PRIu64 ", lost %" PRIu64, counted, window_lost_samples(w));
		add_counters(out, w, STR("lost_"), ": ");
	} else {
		buf_addf(out, "%zu different", w->model->samples_count);
	}
	buf_addc(out, '\n');
	if (model_value_index(w->model, STR("off_cpu")) >= 0) {
		add_key(out, "waits");
		buf_addf(out, "%" PRIu64, window_counter(w, STR("waits")));
		add_counters(out, w, STR("waits_"), "; ");
		buf_addc(out, '\n');
	}
	add_quality(w, out);
	add_jit(w, out);
	add_runtimes(w, out);
}
