/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "agent/build_int.h"
#include "base/clock.h"
#include "runtime/runtimes.h"

#define MODEL_STRING_BYTES_MAX MIB(256)
#define PATIENCE_NS NSEC_PER_SEC /* for the files that the window's last samples have brought */
#define TRIM_MAX 8 /* frames between a switch and the program that sees it */

static void builder_release(struct builder *b)
{
	free(b->room);
	free(b->locations);
	free(b->unnamed);
	free(b->used);
	free(b->leaves_cpu);
	free(b->roots);
	free(b->stacks);
	free(b->processes);
	u64map_release(&b->file_mappings);
}

/* A parent's index is always smaller than its child's. */
static int add_stacks(struct builder *b)
{
	for (size_t i = 1; i < b->a->stack_count; i++) {
		const struct aggregate_stack *s = &b->a->stacks[i];
		int r = model_add_stack(b->m, b->stacks[s->parent], b->locations[s->frame], &b->stacks[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

static int add_processes(struct builder *b)
{
	for (size_t i = 0; i < b->a->process_count; i++) {
		const struct aggregate_process *p = &b->a->processes[i];
		struct model_process row = { .pid = p->pid, .start_ns = p->start_ns };
		int r = build_texts(b->m,
				    (struct str[]){ intern_get(&b->a->strings, p->comm),
						    intern_get(&b->a->strings, p->container),
						    intern_get(&b->a->strings, p->workload),
						    intern_get(&b->a->strings, p->application) },
				    (uint32_t *[]){ &row.comm, &row.container, &row.workload, &row.app_id }, 4);

		if (r == 0)
			r = model_add_app_metadata(b->m, intern_get(&b->a->strings, p->metadata_json),
						   &row.app_metadata);
		if (r == 0)
			r = model_add_process(b->m, &row, &b->processes[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Does the outermost user frame lie in entry code? */
static bool is_root(struct builder *b, const struct aggregate_sample *s)
{
	const struct aggregate_frame *root;
	uint8_t *state;

	if (s->root_frame == AGGREGATE_NO_FRAME)
		return false;
	root = &b->a->frames[s->root_frame];
	state = &b->roots[s->root_frame];
	if (*state == ROOT_UNKNOWN) /* asked once: it reads code */
		*state = root->kind == ABI_FRAME_NATIVE && symbols_is_root(b->symbols, root->owner, root->at)
				 ? ROOT_PROVEN
				 : ROOT_UNPROVEN;
	return *state == ROOT_PROVEN;
}

static void count_runtime_frame(struct builder *b, const struct aggregate_frame *f, uint32_t count)
{
	int32_t line;

	switch (aggregate_function(b->a, f, &line)->kind) {
	case AGGREGATE_FUNCTION_NAMED:
		b->runtime_frames += count;
		b->runtime_unlined += line ? 0 : count;
		return;
	case AGGREGATE_FUNCTION_LOST:
		b->runtime_frames += count;
		b->runtime_unnamed += count;
		return;
	default:
		b->runtime_gaps += count;
	}
}

struct counted {                   /* of one sample's frames */
	bool guessed, has_runtime; /* guessed: one was found by a rule that can be wrong */
	bool in_loop;              /* one runs the loop of a runtime */
};

static bool is_loop(const struct builder *b, const struct aggregate_frame *f)
{
	return b->runtimes && f->kind == ABI_FRAME_NATIVE &&
	       runtimes_in_loop(b->runtimes, f->owner, aggregate_frame_place(f));
}

static struct counted count_frames(struct builder *b, const struct aggregate_sample *s)
{
	struct counted counted = { .guessed = s->guessed };
	bool may_be_early = s->runtime_end == ABI_RUNTIME_END_NONE;
	uint32_t count = s->is_wait ? 0 : s->count;

	for (uint32_t at = s->stack; at; at = b->a->stacks[at].parent) {
		uint32_t frame = b->a->stacks[at].frame;

		b->frames += count;
		b->unnamed_frames += b->unnamed[frame] ? count : 0;
		b->guessed_frames += b->a->frames[frame].flags & ABI_FRAME_GUESSED ? count : 0;
		counted.in_loop |= may_be_early && is_loop(b, &b->a->frames[frame]);
		if (b->a->frames[frame].kind != ABI_FRAME_RUNTIME)
			continue;
		counted.has_runtime = true;
		count_runtime_frame(b, &b->a->frames[frame], count);
	}
	return counted;
}

static enum stack_end end_of(struct builder *b, const struct aggregate_sample *s)
{
	const struct counted counted = count_frames(b, s);
	struct stack_facts facts = { .walk_end = s->user_end,
				     .has_user = s->has_user,
				     .guessed = counted.guessed,
				     .kernel_cut = s->kernel_cut,
				     .runtime_end = s->runtime_end };
	enum stack_end end;

	/* Taken in before its file was known to be a runtime: the frames that its loop ran are missing. */
	if (counted.in_loop)
		facts.runtime_end = ABI_RUNTIME_END_NOT_READY;
	if (s->has_user && s->user_end != ABI_END_COMPLETE)
		facts.root_proven = is_root(b, s);
	end = stack_end_of(&facts);
	if (counted.has_runtime && !s->is_wait) {
		b->runtime_samples += s->count;
		b->runtime_complete += end == STACK_END_WHOLE ? s->count : 0;
	}
	return end;
}

static void count_end(struct builder *b, const struct aggregate_sample *s, enum stack_end end)
{
	if (!s->has_user || s->is_wait)
		return;
	b->user_samples += s->count;
	if (end == STACK_END_WHOLE)
		b->complete += s->count;
	else
		b->cut[end] += s->count;
}

static int end_string(struct builder *b, enum stack_end end, uint32_t *out)
{
	char text[64];
	int size = snprintf(text, sizeof(text), "%s%s", end == STACK_END_WHOLE ? "" : "cut:", stack_end_name(end));

	return model_add_string(b->m, str_n(text, (size_t)size), out);
}

struct values { /* columns as start_model() has them */
	int64_t at[4];
};

static struct values sample_values(const struct builder *b, const struct aggregate_sample *s)
{
	if (!s->is_wait)
		return (struct values){ { s->count, (int64_t)s->count * b->m->period } };
	return (struct values){ { 0, 0, llround(s->count * b->a->wait_weight),
				  llround((double)s->wait_ns * b->a->wait_weight) } };
}

/* A wait ends in the switch itself: what is deeper is how we were called there, which differs between kernels. */
static uint32_t trimmed(const struct builder *b, const struct aggregate_sample *s)
{
	uint32_t at = s->stack;

	if (!s->is_wait)
		return at;
	for (int depth = 0; at && depth < TRIM_MAX; depth++, at = b->a->stacks[at].parent)
		if (b->leaves_cpu[b->a->stacks[at].frame])
			return at;
	return s->stack;
}

static int add_samples(struct builder *b)
{
	for (size_t i = 0; i < b->a->sample_count; i++) {
		const struct aggregate_sample *s = &b->a->samples[i];
		struct model_sample row = { .time_offset_ns = MODEL_NO_TIME };
		struct model_thread thread = { .process = b->processes[s->process], .tid = s->tid };
		enum stack_end end = end_of(b, s);
		int r = build_text(b->m, intern_get(&b->a->strings, s->thread_name), &thread.name);

		if (r == 0)
			r = model_add_thread(b->m, &thread, &row.thread);
		if (r == 0)
			r = end_string(b, end, &row.end);
		if (r < 0)
			return r;
		row.process = thread.process;
		row.stack = b->stacks[trimmed(b, s)];
		r = model_add_sample(b->m, &row, sample_values(b, s).at);
		if (r < 0)
			return r;
		count_end(b, s, end);
	}
	return 0;
}

static int add_wait_types(struct model *m)
{
	int r = model_add_value_type(m, STR("waits"), STR("count"));

	return r < 0 ? r : model_add_value_type(m, STR("off_cpu"), STR("nanoseconds"));
}

static int start_model(struct model *m, bool with_waits, uint32_t frequency_hz, const struct window *w)
{
	int r = model_add_value_type(m, STR("samples"), STR("count"));

	if (r == 0)
		r = model_add_value_type(m, STR("cpu"), STR("nanoseconds"));
	if (r == 0)
		r = with_waits ? add_wait_types(m) : 0;
	if (r == 0)
		r = build_texts(m, (struct str[]){ STR("cpu"), STR("nanoseconds") },
				(uint32_t *[]){ &m->period_type.type, &m->period_type.unit }, 2);
	m->period = (int64_t)(NSEC_PER_SEC / frequency_hz);
	m->time_ns = (int64_t)w->start_ns;
	m->duration_ns = (int64_t)(w->end_ns - w->start_ns);
	return r;
}

static int set_lines_counters(const struct builder *b, struct window *w)
{
	struct debug_lines_stats now;
	int r;

	if (!b->lines)
		return 0;
	debug_lines_stats(b->lines, &now);
	r = window_set_counter(w, STR("lines_asked"), now.asked - b->lines_before.asked);
	if (r == 0)
		r = window_set_counter(w, STR("lines_found"), now.found - b->lines_before.found);
	return r < 0 ? r : window_set_counter(w, STR("lines_failed"), now.failed - b->lines_before.failed);
}

static int set_runtime_counters(const struct builder *b, struct window *w)
{
	const struct {
		struct str name;
		uint64_t value;
	} rows[] = {
		{ STR("runtime_samples"), b->runtime_samples },
		{ STR("runtime_complete"), b->runtime_complete },
		{ STR("runtime_frames"), b->runtime_frames },
		{ STR("runtime_unnamed_frames"), b->runtime_unnamed },
		{ STR("runtime_unlined_frames"), b->runtime_unlined },
		{ STR("runtime_gap_frames"), b->runtime_gaps },
	};
	int r = b->a->left_out ? window_set_counter(w, STR("left_out"), b->a->left_out) : 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows) && r == 0 && b->runtime_samples; i++)
		r = window_set_counter(w, rows[i].name, rows[i].value);
	return r;
}

static int set_counters(const struct builder *b, struct window *w)
{
	int r = window_set_counter(w, STR("samples"), b->a->total);

	if (r == 0)
		r = window_set_counter(w, STR("user_samples"), b->user_samples);
	if (r == 0)
		r = window_set_counter(w, STR("complete"), b->complete);
	if (r == 0)
		r = window_set_counter(w, STR("frames"), b->frames);
	if (r == 0)
		r = window_set_counter(w, STR("unnamed_frames"), b->unnamed_frames);
	if (r == 0)
		r = window_set_counter(w, STR("guessed_frames"), b->guessed_frames);
	for (size_t i = 0; i < STACK_END_COUNT && r == 0; i++) {
		char name[64];
		int size = snprintf(name, sizeof(name), "cut_%s", stack_end_name((enum stack_end)i));

		for (char *c = name; *c; c++)
			*c = *c == '-' ? '_' : *c;
		if (b->cut[i])
			r = window_set_counter(w, str_n(name, (size_t)size), b->cut[i]);
	}
	return r;
}

static int builder_init(struct builder *b)
{
	const struct aggregate *a = b->a;

	u64map_init(&b->file_mappings, a->frame_count);
	b->room = malloc(sizeof(*b->room));
	b->locations = calloc(a->frame_count + 1, sizeof(*b->locations));
	b->used = calloc(a->frame_count + 1, sizeof(*b->used));
	b->unnamed = calloc(a->frame_count + 1, sizeof(*b->unnamed));
	b->leaves_cpu = calloc(a->frame_count + 1, sizeof(*b->leaves_cpu));
	b->roots = calloc(a->frame_count + 1, sizeof(*b->roots));
	b->stacks = calloc(a->stack_count, sizeof(*b->stacks));
	b->processes = calloc(a->process_count + 1, sizeof(*b->processes));
	return b->room && b->locations && b->unnamed && b->used && b->leaves_cpu && b->roots && b->stacks &&
			       b->processes
		       ? 0
		       : -ENOMEM;
}

static void model_freep(struct model **m)
{
	if (*m)
		model_release(*m);
	free(*m);
}

int build_window(const struct aggregate *a, const struct build_config *cfg, struct window *out)
{
	scoped(model_freep) struct model *m = calloc(1, sizeof(*m));
	scoped(builder_release) struct builder b = {
		.a = a, .symbols = cfg->symbols, .lines = cfg->lines, .sources = cfg->sources, .m = m,
		.runtimes = cfg->runtimes
	};
	int r;

	if (!m)
		return -ENOMEM;
	if (cfg->runtimes)
		runtimes_settle(cfg->runtimes, PATIENCE_NS);
	r = model_init(m, MODEL_STRING_BYTES_MAX);
	if (r == 0)
		r = builder_init(&b);
	if (r == 0)
		r = start_model(m, a->with_waits, cfg->frequency_hz, out);
	if (r == 0) {
		build_mark_used(&b);
		r = build_ask_lines(&b);
	}
	if (r == 0)
		r = build_frames(&b);
	if (r == 0)
		r = add_stacks(&b);
	if (r == 0)
		r = add_processes(&b);
	if (r == 0)
		r = add_samples(&b);
	if (r == 0)
		r = set_counters(&b, out);
	if (r == 0)
		r = set_runtime_counters(&b, out);
	if (r == 0)
		r = set_lines_counters(&b, out);
	if (r < 0)
		return r;
	out->model = m;
	m = NULL;
	return 0;
}
