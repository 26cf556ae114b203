/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "agent/build_int.h"
#include "base/array.h"
#include "base/clock.h"
#include "proc/workload.h"
#include "runtime/runtime.h"
#include "runtime/runtimes.h"
#include "sampler/sampler.h"

#define MODEL_STRING_BYTES_MAX MIB(256)
#define PATIENCE_NS NSEC_PER_SEC /* for the files that the window's last samples have brought */
#define TRIM_MAX 8               /* frames between a switch and the program that sees it */

static void builder_release(struct builder *b)
{
	free(b->room);
	free(b->locations);
	free(b->unnamed);
	free(b->codes);
	free(b->phases);
	free(b->in_phase);
	free(b->used);
	free(b->leaves_cpu);
	free(b->roots);
	free(b->stacks);
	free(b->path);
	free(b->processes);
	free(b->requests);
	free(b->ticks);
	free(b->tick_first);
	u64map_release(&b->file_mappings);
}

/* The frame of raw stack @i below @parent, and between them the phase that it begins. */
static int add_frame(struct builder *b, size_t i, uint32_t parent, uint32_t *out)
{
	const struct aggregate_stack *s = &b->a->stacks[i];
	int r = 0;

	if (b->in_phase[i] != b->in_phase[s->parent])
		r = model_add_stack(b->m, parent, b->phase[b->in_phase[i] - 1].location, &parent);
	return r < 0 ? r : model_add_stack(b->m, parent, b->locations[s->frame], out);
}

/* A parent's index is always smaller than its child's. */
static int add_stacks(struct builder *b)
{
	for (size_t i = 1; i < b->a->stack_count; i++) {
		const struct aggregate_stack *s = &b->a->stacks[i];
		uint8_t phase = b->phases[s->frame];
		int r;

		b->in_phase[i] = phase ? phase : b->in_phase[s->parent];
		r = add_frame(b, i, b->stacks[s->parent], &b->stacks[i]);
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
		bool is_short = aggregate_is_short(p, WORKLOAD_SHORT_NS);
		int r = build_texts(
			b->m,
			(struct str[]){ intern_get(&b->a->strings, p->comm), intern_get(&b->a->strings, p->container),
					is_short ? STR(WORKLOAD_SHORT_NAME) : intern_get(&b->a->strings, p->service),
					is_short ? workload_kind_name(WORKLOAD_SHORT_LIVED)
						 : intern_get(&b->a->strings, p->service_kind),
					intern_get(&b->a->strings, p->application) },
			(uint32_t *[]){ &row.comm, &row.container, &row.workload, &row.service_kind, &row.app_id }, 5);

		if (r == 0)
			r = model_add_app_metadata(b->m, intern_get(&b->a->metadata, p->metadata_json),
						   &row.app_metadata);
		if (r == 0)
			r = model_add_process(b->m, &row, &b->processes[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* In a window: each reads half a MiB of code at most, and one program can have any number of such ends. */
#define COROUTINE_SEARCHES_MAX 64

/* Does the outermost user frame lie in entry code, or does a coroutine begin there? Both are asked once: they read
 * code. */
static bool is_root(struct builder *b, const struct aggregate_sample *s)
{
	bool is_last = s->user_end == ABI_END_UNPROVEN_ROOT;
	const struct aggregate_frame *root;
	uint8_t *state;

	if (s->root_frame == AGGREGATE_NO_FRAME)
		return false;
	root = &b->a->frames[s->root_frame];
	if (root->kind != ABI_FRAME_NATIVE)
		return false;
	state = &b->roots[s->root_frame];
	if (*state == ROOT_UNKNOWN)
		*state = symbols_root(b->symbols, root->owner, root->at) ? ROOT_PROVEN : ROOT_UNPROVEN;
	if (*state == ROOT_UNPROVEN && is_last)
		*state = symbols_begins_coroutine(b->symbols, root->owner, root->at, &b->coroutine_searches)
				 ? ROOT_IF_LAST
				 : ROOT_NONE;
	return *state == ROOT_PROVEN || (*state == ROOT_IF_LAST && is_last);
}

/* Return: the bit of its runtime. */
static uint32_t count_runtime_frame(struct builder *b, const struct aggregate_frame *f, uint32_t count)
{
	struct aggregate_place place;
	const struct aggregate_function *function = aggregate_function(b->a, f, 0, &place);
	unsigned runtime = aggregate_runtime(b->a, f) % ABI_RUNTIME_COUNT; /* of a name that is lost too */
	struct runtime_counts *counts = &b->runtime[runtime];

	switch (function->kind) {
	case AGGREGATE_FUNCTION_NAMED:
		counts->frames += count;
		counts->unlined += place.line ? 0 : count;
		counts->vague += aggregate_is_vague(b->a, f) ? count : 0;
		break;
	case AGGREGATE_FUNCTION_LOST:
		counts->frames += count;
		counts->unnamed += count;
		break;
	default:
		counts->gaps += count;
	}
	return 1U << runtime;
}

struct counted {           /* of one sample's frames */
	uint32_t runtimes; /* bits by enum abi_runtime: it has frames of them */
	bool guessed;      /* one was found by a rule that can be wrong */
	bool in_loop;      /* one runs the loop of a runtime */
	bool unnamed_jit;  /* one is code of a JIT compiler without a name */
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
		counted.unnamed_jit |= b->a->frames[frame].kind == ABI_FRAME_JIT && b->unnamed[frame];
		counted.in_loop |= may_be_early && is_loop(b, &b->a->frames[frame]);
		if (b->a->frames[frame].kind != ABI_FRAME_RUNTIME)
			continue;
		counted.runtimes |= count_runtime_frame(b, &b->a->frames[frame], count);
	}
	return counted;
}

static void count_runtimes(struct builder *b, uint32_t runtimes, uint32_t samples, uint32_t complete)
{
	if (!runtimes)
		return;
	b->runtime_samples += samples;
	b->runtime_complete += complete;
	for (size_t i = 0; i < ABI_RUNTIME_COUNT; i++) {
		if (!(runtimes >> i & 1))
			continue;
		b->runtime[i].samples += samples;
		b->runtime[i].complete += complete;
	}
}

static enum stack_end end_of(struct builder *b, const struct aggregate_sample *s)
{
	const struct counted counted = count_frames(b, s);
	struct stack_facts facts = { .walk_end = s->user_end,
				     .has_user = s->has_user,
				     .guessed = counted.guessed,
				     .kernel_cut = s->kernel_cut,
				     .runtime_end = s->runtime_end };
	const struct aggregate_process *p = &b->a->processes[s->process];
	enum stack_end end;

	/* Where frames of its runtime were seen nobody has to do anything: those samples are from before hearth knew
	 * it. */
	if (counted.unnamed_jit && p->perf_map_fd < 0 && !p->has_runtime && !s->is_wait)
		b->unnamed_jit[p->jit_kind] += s->count;
	/* Taken in before its file was known to be a runtime: the frames that its loop ran are missing. */
	if (counted.in_loop)
		facts.runtime_end = ABI_RUNTIME_END_NOT_READY;
	if (s->has_user && s->user_end != ABI_END_COMPLETE)
		facts.root_proven = is_root(b, s);
	end = stack_end_of(&facts);
	if (!s->is_wait)
		count_runtimes(b, counted.runtimes, s->count, end == STACK_END_WHOLE ? s->count : 0);
	return end;
}

static void count_end(struct builder *b, const struct aggregate_sample *s, enum stack_end end)
{
	if (!s->has_user || s->is_wait)
		return;
	b->user_samples += s->count;
	if (end == STACK_END_WHOLE)
		b->complete += s->count;
	else if (end == STACK_END_GUESSED)
		b->guessed += s->count;
	else
		b->cut[end] += s->count;
}

static int end_string(struct builder *b, enum stack_end end, uint32_t *out)
{
	char text[64];
	int size = snprintf(text, sizeof(text), "%s%s", stack_end_is_cut(end) ? "cut:" : "", stack_end_name(end));

	return model_add_string(b->m, str_n(text, (size_t)size), out);
}

#define COLUMNS_MAX 4
#define WAIT_COLUMNS 2

struct values { /* columns as start_model() has them */
	int64_t at[COLUMNS_MAX];
};

/* @count: of its samples, for this row; a wait is a row as it is. */
static struct values sample_values(const struct builder *b, const struct aggregate_sample *s, uint32_t count)
{
	struct values values = { 0 };
	size_t columns = b->a->with_waits ? b->m->value_type_count - WAIT_COLUMNS : b->m->value_type_count;

	if (s->is_wait) {
		values.at[columns] = llround(s->count * b->a->wait_weight);
		values.at[columns + 1] = llround((double)s->wait_ns * b->a->wait_weight);
		return values;
	}
	values.at[0] = count;
	if (columns > 1)
		values.at[1] = (int64_t)count * b->m->period;
	return values;
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

static int tick_order(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* A counting sort by sample. @last: the tick that the window ends in; what was read behind its end counts as there. */
static int sort_ticks(struct builder *b, uint64_t last)
{
	const struct aggregate *a = b->a;
	uint32_t *first;

	if (!a->tick_count)
		return 0;
	b->ticks = malloc(a->tick_count * sizeof(*b->ticks));
	b->tick_first = first = calloc(a->sample_count + 2, sizeof(*first));
	if (!b->ticks || !first)
		return -ENOMEM;
	for (size_t i = 0; i < a->tick_count; i++)
		first[a->ticks[i].sample + 2]++;
	for (size_t i = 2; i <= a->sample_count + 1; i++)
		first[i] += first[i - 1];
	for (size_t i = 0; i < a->tick_count; i++) /* afterwards first[s + 1] is where the next one begins */
		b->ticks[first[a->ticks[i].sample + 1]++] = (uint32_t)MIN(a->ticks[i].tick, last);
	for (size_t i = 0; i < a->sample_count; i++)
		qsort(b->ticks + first[i], first[i + 1] - first[i], sizeof(*b->ticks), tick_order);
	return 0;
}

/* A row for each tick that sample @index was taken in, and one without time for all that have none. */
static int add_rows(struct builder *b, size_t index, struct model_sample *row)
{
	const struct aggregate_sample *s = &b->a->samples[index];
	uint32_t at = b->ticks ? b->tick_first[index] : 0, end = b->ticks ? b->tick_first[index + 1] : 0;
	uint32_t untimed = s->count - (end - at);
	int r = 0;

	must(end - at <= s->count);
	while (at < end && r == 0) {
		uint32_t tick = b->ticks[at], from = at;

		while (at < end && b->ticks[at] == tick)
			at++;
		row->time_offset_ns = tick * AGGREGATE_TICK_NS;
		r = model_add_sample(b->m, row, sample_values(b, s, at - from).at);
	}
	row->time_offset_ns = MODEL_NO_TIME;
	/* What was merged away (agent/session_merge.c) is a row all the same. */
	return r || (!untimed && s->count) ? r : model_add_sample(b->m, row, sample_values(b, s, untimed).at);
}

/* What the sample's process was busy with, as labels. */
static int add_request_labels(struct builder *b, uint32_t number, uint32_t *out)
{
	struct model_label labels[2] = { { 0 } };
	const struct aggregate_request *request;
	size_t count = 1;
	int r;

	if (!number || b->requests[number - 1]) {
		*out = number ? b->requests[number - 1] : 0;
		return 0;
	}
	request = &b->a->requests[number - 1];
	r = build_texts(b->m, (struct str[]){ STR("php_script"), intern_get(&b->a->strings, request->script) },
			(uint32_t *[]){ &labels[0].key, &labels[0].text }, 2);
	if (r == 0 && request->path) {
		r = build_texts(b->m, (struct str[]){ STR("php_path"), intern_get(&b->a->strings, request->path) },
				(uint32_t *[]){ &labels[1].key, &labels[1].text }, 2);
		count = 2;
	}
	if (r == 0)
		r = model_add_label_set(b->m, labels, count, &b->requests[number - 1]);
	*out = b->requests[number - 1];
	return r;
}

/* What its runtime calls the thread of a sample; otherwise the kernel's name. */
static int thread_name(struct builder *b, const struct aggregate_sample *s, struct buf *out)
{
	const struct aggregate_process *p = &b->a->processes[s->process];
	const struct program program = { .pid = p->pid, .exec_id = p->exec_id, .start_ns = p->start_ns };
	struct str comm = intern_get(&b->a->strings, s->thread_name);
	int r = -ENOENT;

	buf_clear(out);
	if (b->runtimes && p->names_threads)
		r = runtimes_thread_name(b->runtimes, &program, s->tid, comm, out);
	if (r == -ENOENT) {
		buf_adds(out, comm);
		r = out->error;
	}
	return r;
}

/* The stack @at of raw frames below a frame for its thread. */
static int stack_of_thread(struct builder *b, uint32_t at, uint32_t thread, uint32_t *out)
{
	const struct aggregate *a = b->a;
	size_t depth = 0;
	uint32_t node;
	int r = model_add_stack(b->m, 0, thread, &node);

	for (; at; at = a->stacks[at].parent) {
		r = r ? r : array_grow(&b->path, &b->path_cap, depth, a->stack_count);
		if (r < 0)
			return r;
		b->path[depth++] = at;
	}
	while (r == 0 && depth--)
		r = add_frame(b, b->path[depth], node, &node);
	*out = node;
	return r;
}

static int sample_stack(struct builder *b, const struct aggregate_sample *s, struct str thread, uint32_t *out)
{
	uint32_t at = trimmed(b, s), location;
	int r;

	*out = b->stacks[at];
	if (!b->thread_frames || !b->a->processes[s->process].names_threads)
		return 0;
	r = build_thread_frame(b, thread, s->tid, &location);
	return r < 0 ? r : stack_of_thread(b, at, location, out);
}

static int add_samples(struct builder *b)
{
	scoped(buf_release) struct buf name = BUF_INIT(KIB(4));

	for (size_t i = 0; i < b->a->sample_count; i++) {
		const struct aggregate_sample *s = &b->a->samples[i];
		struct model_sample row = { .time_offset_ns = MODEL_NO_TIME };
		struct model_thread thread = { .process = b->processes[s->process], .tid = s->tid };
		enum stack_end end = end_of(b, s);
		int r = thread_name(b, s, &name);

		if (r == 0)
			r = build_text(b->m, buf_str(&name), &thread.name);
		if (r == 0)
			r = model_add_thread(b->m, &thread, &row.thread);
		if (r == 0)
			r = end_string(b, end, &row.end);
		if (r == 0)
			r = add_request_labels(b, s->request, &row.label_set);
		if (r == 0)
			r = sample_stack(b, s, buf_str(&name), &row.stack);
		if (r < 0)
			return r;
		row.process = thread.process;
		r = add_rows(b, i, &row);
		if (r < 0)
			return r;
		count_end(b, s, end);
	}
	return 0;
}

static int add_wait_types(struct model *m)
{
	int r = model_add_value_type(m, STR("waits"), STR("count"));

	if (r == 0)
		r = model_add_value_type(m, STR("off_cpu"), STR("nanoseconds"));
	return r;
}

/* A period beyond what a model holds is none. */
static int64_t period_of(const struct build_config *cfg)
{
	const struct sampler_event *event = cfg->event;

	if (event && event->period)
		return event->period <= INT64_MAX / 2 ? (int64_t)event->period : 0;
	return !event || event->is_clock ? (int64_t)(NSEC_PER_SEC / cfg->frequency_hz) : 0;
}

static int start_model(struct model *m, bool with_waits, const struct build_config *cfg, const struct window *w)
{
	bool is_clock = !cfg->event || cfg->event->is_clock;
	struct str counted = is_clock ? STR("cpu") : str_of(cfg->event->name);
	struct str unit = is_clock ? STR("nanoseconds") : STR("count");
	const char *first = cfg->default_value ? cfg->default_value : with_waits && is_clock ? "cpu" : NULL;
	int r = model_add_value_type(m, STR("samples"), STR("count"));

	m->period = period_of(cfg);
	if (r == 0 && m->period)
		r = model_add_value_type(m, counted, unit);
	if (r == 0)
		r = with_waits ? add_wait_types(m) : 0;
	if (r == 0 && first) /* without it viewers show the last column */
		r = model_add_string(m, str_of(first), &m->default_type);
	if (r == 0)
		r = build_texts(m, (struct str[]){ counted, unit },
				(uint32_t *[]){ &m->period_type.type, &m->period_type.unit }, 2);
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

/* @name: of the runtime, or empty: of all of them. */
static int set_counters_of(const struct runtime_counts *c, struct str name, struct window *w)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{ "samples", c->samples },        { "complete", c->complete },      { "frames", c->frames },
		{ "unnamed_frames", c->unnamed }, { "unlined_frames", c->unlined }, { "gap_frames", c->gaps },
		{ "vague_frames", c->vague },
	};
	size_t count = c->vague ? ARRAY_SIZE(rows) : ARRAY_SIZE(rows) - 1; /* most runtimes have none */
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		scoped(buf_release) struct buf text = BUF_INIT(KIB(1));

		buf_addf(&text, "runtime_%s%s" STR_FMT, rows[i].name, name.len ? "_" : "", STR_ARG(name));
		r = text.error ? text.error : window_set_counter(w, buf_str(&text), rows[i].value);
	}
	return r;
}

static int set_runtime_counters(const struct builder *b, struct window *w)
{
	struct runtime_counts all = { .samples = b->runtime_samples, .complete = b->runtime_complete };
	int r = b->a->left_out ? window_set_counter(w, STR("left_out"), b->a->left_out) : 0;

	for (size_t i = 0; i < ABI_RUNTIME_COUNT && r == 0; i++) {
		const struct runtime_counts *c = &b->runtime[i];
		const struct runtime *runtime = runtime_find((enum abi_runtime)i);

		all.frames += c->frames;
		all.unnamed += c->unnamed;
		all.unlined += c->unlined;
		all.vague += c->vague;
		all.gaps += c->gaps;
		if (c->samples && runtime)
			r = set_counters_of(c, str_of(runtime->name), w);
	}
	return r || !b->runtime_samples ? r : set_counters_of(&all, STR(""), w);
}

static int set_counters(const struct builder *b, struct window *w)
{
	int r = window_set_counter(w, STR("samples"), b->a->total);

	if (r == 0)
		r = window_set_counter(w, STR("user_samples"), b->user_samples);
	if (r == 0)
		r = window_set_counter(w, STR("complete"), b->complete);
	if (r == 0)
		r = window_set_counter(w, STR("guessed"), b->guessed);
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
	if (r == 0 && b->a->with_times)
		r = window_set_counter(w, STR("untimed_samples"), b->a->untimed);
	for (size_t i = 0; i < JIT_KIND_COUNT && r == 0; i++)
		if (b->unnamed_jit[i])
			r = window_set_counter(w, jit_kind_counter((enum jit_kind)i), b->unnamed_jit[i]);
	return r;
}

static int builder_init(struct builder *b, bool codes)
{
	const struct aggregate *a = b->a;

	u64map_init(&b->file_mappings, a->frame_count);
	b->room = malloc(sizeof(*b->room));
	b->locations = calloc(a->frame_count + 1, sizeof(*b->locations));
	b->used = calloc(a->frame_count + 1, sizeof(*b->used));
	b->phases = calloc(a->frame_count + 1, sizeof(*b->phases));
	b->in_phase = calloc(a->stack_count, sizeof(*b->in_phase));
	b->unnamed = calloc(a->frame_count + 1, sizeof(*b->unnamed));
	if (codes) {
		b->codes = calloc(a->frame_count + 1, sizeof(*b->codes));
		if (!b->codes)
			return -ENOMEM;
	}
	b->leaves_cpu = calloc(a->frame_count + 1, sizeof(*b->leaves_cpu));
	b->roots = calloc(a->frame_count + 1, sizeof(*b->roots));
	b->stacks = calloc(a->stack_count, sizeof(*b->stacks));
	b->processes = calloc(a->process_count + 1, sizeof(*b->processes));
	b->requests = calloc(a->request_count + 1, sizeof(*b->requests));
	return b->room && b->locations && b->unnamed && b->used && b->phases && b->in_phase && b->leaves_cpu &&
			       b->roots && b->stacks && b->processes && b->requests
		       ? 0
		       : -ENOMEM;
}

/* From raw frames to locations. */
static int set_codes(const struct builder *b, struct window *out)
{
	if (!b->codes)
		return 0;
	out->codes = calloc(b->m->locations_count, sizeof(*out->codes));
	if (!out->codes)
		return -ENOMEM;
	out->code_count = b->m->locations_count;
	for (size_t i = 0; i < b->a->frame_count; i++)
		out->codes[b->locations[i]] = b->codes[i];
	out->codes[0] = (struct window_code){ 0 }; /* of frames that are in no stack */
	return 0;
}

static int base_order(const void *a, const void *b)
{
	const struct window_base *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return (x->mapping > y->mapping) - (x->mapping < y->mapping);
}

static int set_bases(const struct builder *b, struct window *out)
{
	if (!b->a->base_count)
		return 0;
	out->bases = calloc(b->a->base_count, sizeof(*out->bases));
	if (!out->bases)
		return -ENOMEM;
	for (size_t i = 0; i < b->a->base_count; i++) {
		const struct aggregate_base *from = &b->a->bases[i];
		struct window_base *to = &out->bases[out->base_count];

		*to = (struct window_base){ .process = b->processes[from->process],
					    .first = from->first,
					    .end = from->end,
					    .base = from->base };
		if (u64map_get(&b->file_mappings, from->file, &to->mapping) == 0)
			out->base_count++; /* else all of its frames were folded away */
	}
	qsort(out->bases, out->base_count, sizeof(*out->bases), base_order);
	return 0;
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
	scoped(builder_release) struct builder b = { .a = a,
						     .symbols = cfg->symbols,
						     .lines = cfg->lines,
						     .sources = cfg->sources,
						     .maps = cfg->maps,
						     .m = m,
						     .runtimes = cfg->runtimes,
						     .thread_frames = cfg->thread_frames,
						     .coroutine_searches = COROUTINE_SEARCHES_MAX };
	int r;

	if (!m)
		return -ENOMEM;
	if (cfg->runtimes)
		runtimes_settle(cfg->runtimes, PATIENCE_NS);
	r = model_init(m, MODEL_STRING_BYTES_MAX);
	if (r == 0)
		r = builder_init(&b, cfg->codes);
	if (r == 0)
		r = start_model(m, a->with_waits, cfg, out);
	if (r == 0) {
		build_mark_used(&b);
		r = build_ask_lines(&b);
	}
	if (r == 0)
		r = build_ask_maps(&b);
	if (r == 0)
		r = build_frames(&b);
	if (r == 0)
		r = add_stacks(&b);
	if (r == 0)
		r = add_processes(&b);
	if (r == 0)
		r = sort_ticks(&b, (MAX(out->end_ns, out->start_ns + 1) - out->start_ns - 1) / AGGREGATE_TICK_NS);
	if (r == 0)
		r = add_samples(&b);
	if (r == 0)
		r = set_counters(&b, out);
	if (r == 0)
		r = set_runtime_counters(&b, out);
	if (r == 0)
		r = set_lines_counters(&b, out);
	if (r == 0)
		r = set_codes(&b, out);
	if (r == 0)
		r = set_bases(&b, out);
	if (r < 0)
		return r;
	out->model = m;
	m = NULL;
	return 0;
}
