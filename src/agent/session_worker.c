/* SPDX-License-Identifier: Apache-2.0 */
/* The worker of a session: a finished window's frames get their names, then the window is handed on. */
#include "agent/session_worker.h"

#include <sys/utsname.h>

#include "agent/build_window.h"
#include "agent/cloud.h"
#include "agent/metadata.h"
#include "agent/session_merge.h"
#include "agent/smart.h"
#include "base/log.h"
#include "walk/walk.h"

static const char *const unwinder_names[] = { [WALK_AUTO] = "auto", [WALK_FP] = "fp", [WALK_TABLE] = "table" };

static int set_names(const struct session *s, struct window *w)
{
	struct utsname host;
	const char *command = s->cfg.command;
	int r = uname(&host) < 0 ? -errno : 0;

	if (r == 0)
		r = window_set_text(&w->host, str_of(host.nodename));
	if (r == 0)
		r = window_set_text(&w->kernel_release, str_of(host.release));
	if (r == 0)
		r = window_set_text(&w->agent_version, STR(HEARTH_VERSION));
	if (r == 0)
		r = window_set_text(&w->sampler, str_of(s->sampler->name));
	if (r == 0)
		r = window_set_text(&w->unwinder, str_of(unwinder_names[s->cfg.sampling.mode]));
	if (r == 0 && command)
		r = window_set_text(&w->command, str_of(command));
	if (r == 0 && s->cfg.service_name)
		r = window_add_label(w, STR("group"), str_of(s->cfg.service_name));
	return r;
}

static int set_unwind_counters(const struct unwind_totals *t, struct window *w)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{ "tables_loaded", t->tables_loaded }, { "tables_evicted", t->tables_evicted },
		{ "tables_failed", t->tables_failed }, { "tables_refused", t->tables_refused },
		{ "tables_bytes", t->bytes },          { "tables_load_ns", t->load_ns },
		{ "raw_walked", t->raw_walked },       { "raw_dropped", t->raw_dropped },
		{ "unwind_mappings", t->maps },        { "unwind_spaces", t->spaces },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows) && r == 0; i++)
		r = window_set_counter(w, str_of(rows[i].name), rows[i].value);
	return r;
}

static int set_counters(const struct session *s, const struct job *job, struct window *w)
{
	int r = window_set_counter(w, STR("lost_aggregate"),
				   job->aggregate->dropped + (job->beside ? job->beside->dropped : 0));

	for (size_t i = 0; i < ABI_COUNTER_COUNT && r == 0; i++)
		if (i != ABI_COUNTER_SAMPLES) /* `samples` is what the window holds; the difference is what was lost */
			r = window_set_counter(w, str_of(session_counter_name(i)), job->counters[i]);
	if (r == 0)
		r = window_set_counter(w, STR("names_again"), job->names_again);
	return r == 0 && s->unwind ? set_unwind_counters(&job->unwind, w) : r;
}

static int set_metadata(const struct session *s, struct window *w)
{
	scoped(buf_release) struct buf json = BUF_INIT(MIB(1));
	struct metadata_config cfg = { .host_root = s->cfg.host_root,
				       .spawn_wall_ns = s->start_wall_ns,
				       .now_wall_ns = w->end_ns,
				       .frequency_hz = s->cfg.sampling.frequency_hz,
				       .event = s->cfg.sampling.event,
				       .external = s->cfg.external_metadata,
				       .arguments = s->cfg.run_arguments };
	scoped(buf_release) struct buf cloud = BUF_INIT(MIB(1));
	int r;

	if (!s->cfg.want_metadata)
		return 0;
	if (s->cloud && cloud_get(s->cloud, &cfg.cloud_provider, &cloud) == 0)
		cfg.cloud_info = buf_cstr(&cloud);
	r = metadata_json(&cfg, &json);
	return r < 0 ? r : window_set_text(&w->metadata_json, buf_str(&json));
}

/* What the second sampler saw becomes a window of its own first. */
static int add_beside(const struct job *job, const struct build_config *build, struct window *w)
{
	scoped(window_release) struct window beside = { .start_ns = w->start_ns, .end_ns = w->end_ns };
	int r = build_window(job->beside, build, &beside);

	return r < 0 ? r : session_merge_windows(w, &beside);
}

static int finish_job(struct session *s, struct job *job, struct window *w)
{
	const struct build_config build = { .symbols = s->symbols,
					    .lines = s->lines,
					    .sources = s->sources,
					    .maps = s->maps,
					    .runtimes = s->beside ? NULL : s->runtimes,
					    .default_value = s->cfg.default_value,
					    .codes = s->cfg.codes,
					    .thread_frames = s->cfg.thread_frames,
					    .frequency_hz = s->cfg.sampling.frequency_hz,
					    .event = s->cfg.sampling.event };
	int r;

	w->start_ns = job->start_ns;
	w->end_ns = job->end_ns;
	w->frequency_hz = build.event && build.event->period ? 0 : s->cfg.sampling.frequency_hz;
	w->cpu_count = job->cpu_end.cpu_count;
	w->run_id[0] = s->run_id[0];
	w->run_id[1] = s->run_id[1];
	w->cycle_id = job->number;
	w->busy_ns = cpustat_busy_ns(&job->cpu_start, &job->cpu_end);
	w->cpu_average = cpustat_busy_percent(&job->cpu_start, &job->cpu_end);
	w->memory_average = job->memory_average;
	r = set_names(s, w);
	if (r == 0)
		r = set_counters(s, job, w);
	if (r == 0)
		r = set_metadata(s, w);
	if (r == 0 && s->cfg.sampling.stacks == SAMPLER_STACKS_BOTH)
		r = smart_choose(job->aggregate);
	if (r == 0 && job->beside)
		r = session_merge_counts(job);
	if (r == 0)
		r = build_window(job->aggregate, &build, w);
	return r < 0 || !job->beside ? r : add_beside(job, &build, w);
}

void *session_worker(void *session)
{
	struct session *s = session;

	for (;;) {
		scoped(job_freep) struct job *job = queue_take(&s->jobs);
		scoped(window_release) struct window w = { 0 };
		int r;

		if (!job)
			return NULL;
		s->last_result = r = finish_job(s, job, &w);
		if (r < 0) {
			session_count_dropped(s, job_samples(job));
			log_error("a window is lost", LOG_ERR(r), LOG_U64("samples", job_samples(job)));
			continue;
		}
		if (s->cfg.on_built)
			s->cfg.on_built(s->cfg.ctx, &w);
		if (s->cfg.on_window)
			s->cfg.on_window(s->cfg.ctx, &w);
	}
}
