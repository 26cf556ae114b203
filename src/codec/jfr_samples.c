/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a recording that are samples, and the constants they are made of.
 * Source of events and fields: openjdk/jdk jdk-17+35 and jdk-25+36, src/hotspot/share/jfr/metadata/metadata.xml;
 * async-profiler v4.1, src/flightRecorder.cpp, src/jfrMetadata.cpp. Names of value types: grafana/jfr-parser. */
#include "codec/jfr_int.h"

enum { EVENT_START = 0, EVENT_THREAD = 1, EVENT_STACK = 2, EVENT_WEIGHT = 3, EVENT_CLASS = 4, EVENT_OTHER_WEIGHT = 5 };

/* Each kind of event is a value type that counts it, and with a weight one for that. One that only has @type and
 * @weight adds up the weight. */
static const struct {
	const char *name, *thread;
	const char *count_type; /* "count" is the unit; NULL: the weight alone counts */
	const char *weight_type, *unit;
	const char *weight, *other_weight; /* fields; the second where the type has no such first one */
} events[] = {
	{ "jdk.ExecutionSample", "sampledThread", "samples", NULL, NULL, NULL, NULL },
	{ "jdk.CPUTimeSample", "eventThread", "cpu_time_samples", NULL, NULL, NULL, NULL },
	{ "jdk.NativeMethodSample", "sampledThread", "native_samples", NULL, NULL, NULL, NULL },
	{ "profiler.WallClockSample", "sampledThread", NULL, "wall_samples", "count", "samples", NULL },
	{ "jdk.ObjectAllocationInNewTLAB", "eventThread", "alloc_in_new_tlab_objects", "alloc_in_new_tlab_bytes",
	  "bytes", "tlabSize", "allocationSize" },
	{ "jdk.ObjectAllocationOutsideTLAB", "eventThread", "alloc_outside_tlab_objects", "alloc_outside_tlab_bytes",
	  "bytes", "allocationSize", NULL },
	{ "jdk.ObjectAllocationSample", "eventThread", "alloc_sample_objects", "alloc_sample_bytes", "bytes", "weight",
	  NULL },
};

/* Behind the samples: what the JVM says of itself. */
#define EVENT_JVM ((int)ARRAY_SIZE(events))
#define EVENT_KINDS (ARRAY_SIZE(events) + 1)
#define JVM_EVENT "jdk.JVMInformation"
enum { JVM_PID = 0, JVM_ARGUMENTS = 1 };

int jfr_event_of(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (str_eq(name, str_of(events[i].name)))
			return (int)i;
	return str_eq(name, STR(JVM_EVENT)) ? EVENT_JVM : -1;
}

int jfr_events_prepare(struct jfr_in *in)
{
	in->event_counts = calloc(EVENT_KINDS, sizeof(*in->event_counts));
	in->columns = calloc(2 * EVENT_KINDS, sizeof(*in->columns));
	return in->event_counts && in->columns ? 0 : jfr_failed(in, 0, -ENOMEM);
}

int jfr_plan_events(struct jfr_chunk *k)
{
	static const char *const jvm[JFR_SLOTS_MAX] = { [JVM_PID] = "pid", [JVM_ARGUMENTS] = "javaArguments" };

	k->event_plans = calloc(EVENT_KINDS, sizeof(*k->event_plans));
	if (!k->event_plans)
		return jfr_failed(k->in, k->at, -ENOMEM);
	for (uint32_t i = 0; i < k->classes_count; i++) {
		int kind = k->classes[i].event;

		if (kind == EVENT_JVM) {
			jfr_plan_make(k, i, jvm, JFR_SLOTS_MAX, &k->event_plans[kind]);
		} else if (kind >= 0) {
			const char *const wants[JFR_SLOTS_MAX] = {
				[EVENT_START] = "startTime",
				[EVENT_THREAD] = events[kind].thread,
				[EVENT_STACK] = "stackTrace",
				[EVENT_WEIGHT] = events[kind].weight,
				[EVENT_CLASS] = events[kind].unit ? "objectClass" : NULL,
				[EVENT_OTHER_WEIGHT] = events[kind].other_weight,
			};

			jfr_plan_make(k, i, wants, JFR_SLOTS_MAX, &k->event_plans[kind]);
		}
	}
	return 0;
}

static int kind_of(const struct jfr_chunk *k, uint64_t type)
{
	uint32_t class = jfr_find_class(k, type);

	return class == JFR_NO_CLASS ? -1 : k->classes[class].event;
}

/* First pass */

static int read_jvm(struct jfr_chunk *k, struct jfr_event *event)
{
	struct jfr_in *in = k->in;
	struct jfr_slot slots[JFR_SLOTS_MAX];
	int r = 0;

	jfr_read(k, &event->content, &k->event_plans[EVENT_JVM], slots);
	if (event->content.bad)
		return jfr_bad(in, event->at, "malformed event");
	if (slots[JVM_PID].number <= UINT32_MAX && !in->pid)
		in->pid = (uint32_t)slots[JVM_PID].number;
	buf_clear(&in->text);
	if (!in->window->command && jfr_string_add(k, &slots[JVM_ARGUMENTS].string, &in->text) && in->text.len)
		r = window_set_text(&in->window->command, buf_str(&in->text));
	return jfr_failed(in, event->at, in->text.error ? in->text.error : r);
}

int jfr_count_events(struct jfr_chunk *k)
{
	struct cur c = jfr_events(k);
	struct jfr_event event;
	int r, failed = 0;

	while (!failed && (r = jfr_next_event(k, &c, &event)) != 0) {
		int kind;

		if (r < 0)
			return r;
		kind = kind_of(k, event.type);
		if (kind >= 0)
			k->in->event_counts[kind]++;
		else if (event.type > 1) /* not the metadata, nor constants */
			k->in->other_events++;
		if (kind == EVENT_JVM)
			failed = read_jvm(k, &event);
		failed = failed ? failed : jfr_step(k->in, k);
	}
	return failed;
}

int jfr_add_columns(struct jfr_in *in)
{
	struct model *m = in->m;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(events); i++) {
		const char *const types[2][2] = { { events[i].count_type, "count" },
						  { events[i].weight_type, events[i].unit } };

		for (size_t which = 0; which < 2; which++) {
			in->columns[2 * i + which] = -1;
			if (r < 0 || !in->event_counts[i] || !types[which][0])
				continue;
			in->columns[2 * i + which] = (int)m->value_type_count;
			r = model_add_value_type(m, str_of(types[which][0]), str_of(types[which][1]));
		}
	}
	if (r == 0 && m->value_type_count)
		m->default_type = m->value_types[0].type;
	return jfr_failed(in, 0, r);
}

/* Constants as parts of the model. Each is read once. */

/* The text of a symbol, appended. */
static int add_symbol(struct jfr_chunk *k, uint64_t key, struct buf *out)
{
	const struct jfr_constant *symbol = jfr_constant(k, JFR_POOL_SYMBOL, key);
	struct jfr_slot slots[JFR_SLOTS_MAX];
	int r;

	if (!symbol)
		return 0;
	r = jfr_constant_read(k, JFR_POOL_SYMBOL, symbol, slots);
	if (r == 0)
		ignore(jfr_string_add(k, &slots[JFR_SYMBOL_TEXT].string, out)); /* none: empty */
	return r ? r : jfr_failed(k->in, k->at, out->error);
}

/* "java.lang.String", appended; nothing for a class of native code. */
static int add_class_name(struct jfr_chunk *k, uint64_t key, struct buf *out)
{
	const struct jfr_constant *class = jfr_constant(k, JFR_POOL_CLASS, key);
	struct jfr_slot slots[JFR_SLOTS_MAX];
	size_t start = out->len;
	int r;

	if (!class)
		return 0;
	r = jfr_constant_read(k, JFR_POOL_CLASS, class, slots);
	r = r ? r : add_symbol(k, slots[JFR_CLASS_NAME].number, out);
	for (size_t i = start; r == 0 && i < out->len; i++)
		if (out->ptr[i] == '/')
			out->ptr[i] = '.';
	return r;
}

static int add_string(struct jfr_in *in, struct str text, uint32_t *out)
{
	return jfr_failed(in, 0, model_add_string(in->m, codec_text(in->limits, text), out));
}

/* class.method, and the same with its descriptor as the name that tells overloads apart. */
static int read_method(struct jfr_chunk *k, struct jfr_constant *method)
{
	struct jfr_in *in = k->in;
	struct jfr_slot slots[JFR_SLOTS_MAX];
	int r = jfr_constant_read(k, JFR_POOL_METHOD, method, slots);

	buf_clear(&in->text);
	r = r ? r : add_class_name(k, slots[JFR_METHOD_CLASS].number, &in->text);
	if (r == 0 && in->text.len)
		buf_addc(&in->text, '.');
	r = r ? r : add_symbol(k, slots[JFR_METHOD_NAME].number, &in->text);
	r = r ? r : add_string(in, buf_str(&in->text), &method->row[0]);
	r = r ? r : add_symbol(k, slots[JFR_METHOD_DESCRIPTOR].number, &in->text);
	r = r ? r : add_string(in, buf_str(&in->text), &method->row[1]);
	method->is_read = r == 0;
	return r;
}

/* Source: openjdk/jdk, src/hotspot/share/jfr/recorder/checkpoint/types/jfrType.cpp (the first four); async-profiler
 * src/flightRecorder.cpp, writeFrameTypes(). */
static enum model_kind kind_of_type(struct str text)
{
	static const struct {
		const char *text;
		enum model_kind kind;
	} kinds[] = { { "Interpreted", MODEL_KIND_JAVA_INTERPRETED },
		      { "JIT compiled", MODEL_KIND_JAVA },
		      { "Inlined", MODEL_KIND_JAVA_INLINED },
		      { "Native", MODEL_KIND_NATIVE },
		      { "C++", MODEL_KIND_NATIVE },
		      { "Kernel", MODEL_KIND_KERNEL },
		      { "C1 compiled", MODEL_KIND_JAVA_C1 } };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_eq(text, str_of(kinds[i].text)))
			return kinds[i].kind;
	return MODEL_KIND_JAVA;
}

static int frame_kind(struct jfr_chunk *k, uint64_t key, enum model_kind *out)
{
	struct jfr_constant *type = jfr_constant(k, JFR_POOL_FRAME_TYPE, key);
	struct jfr_slot slots[JFR_SLOTS_MAX];
	int r = 0;

	*out = MODEL_KIND_JAVA;
	if (type && !type->is_read) {
		r = jfr_constant_read(k, JFR_POOL_FRAME_TYPE, type, slots);
		buf_clear(&k->in->text);
		if (r == 0)
			ignore(jfr_string_add(k, &slots[JFR_FRAME_TYPE_TEXT].string, &k->in->text)); /* none: Java */
		r = r ? r : jfr_failed(k->in, k->at, k->in->text.error);
		type->row[0] = (uint32_t)kind_of_type(buf_str(&k->in->text));
		type->is_read = r == 0;
	}
	if (type && r == 0)
		*out = (enum model_kind)type->row[0];
	return r;
}

static int add_frame(struct jfr_chunk *k, const struct jfr_slot *slots)
{
	struct jfr_in *in = k->in;
	struct jfr_constant *method = jfr_constant(k, JFR_POOL_METHOD, slots[JFR_FRAME_METHOD].number);
	struct model_location location = { .line_count = 1 };
	struct model_line line = { .line = (int32_t)slots[JFR_FRAME_LINE].number };
	struct model_function function = { .name = in->unknown };
	int r = frame_kind(k, slots[JFR_FRAME_TYPE].number, &function.kind);

	if (r == 0 && method && !method->is_read)
		r = read_method(k, method);
	if (r == 0 && method) {
		function.name = method->row[0];
		function.system_name = method->row[1];
	}
	in->lost_methods += !method;
	line.line = MAX(line.line, 0); /* -1: not known */
	r = r ? r : model_add_function(in->m, &function, &line.function);
	r = r ? r : array_grow(&in->frames, &in->frames_cap, in->frames_count, UINT32_MAX - 1);
	r = r ? r : model_add_location(in->m, &location, &line, &in->frames[in->frames_count]);
	if (r == 0)
		in->frames_count++;
	return jfr_failed(in, k->at, r);
}

/* Nothing says where the frames of one stack end, so that many stacks may have the same bytes.
 * @is_cut: set when frames were left out here, nearest the root */
static int read_frames(struct jfr_chunk *k, struct cur c, bool *is_cut)
{
	struct jfr_in *in = k->in;
	uint64_t count = jfr_number(k, &c, JFR_INT);
	struct jfr_slot slots[JFR_SLOTS_MAX];
	struct cur start;
	int r = 0;

	in->frames_count = 0;
	for (uint64_t i = 0; r == 0 && i < count; i++) {
		if (in->limits->depth_max && in->frames_count == in->limits->depth_max) {
			*is_cut = true;
			return 0;
		}
		start = c;
		jfr_read(k, &c, &k->frame_plan, slots);
		if (c.bad || ++in->work > in->work_max || !jfr_take_work(k, &start, &c))
			return jfr_bad(in, k->at, "malformed stack");
		r = add_frame(k, slots);
		r = r ? r : jfr_step(in, k);
	}
	return r;
}

/* Its row in the model, and as row[1] the string that says how it ended. */
static int read_stack(struct jfr_chunk *k, struct jfr_constant *stack)
{
	struct jfr_in *in = k->in;
	struct jfr_slot slots[JFR_SLOTS_MAX];
	struct model_path path;
	bool is_cut = false;
	int r = jfr_constant_read(k, JFR_POOL_STACK, stack, slots);

	if (r < 0 || !slots[JFR_STACK_FRAMES].is_set)
		return r;
	r = read_frames(k, slots[JFR_STACK_FRAMES].array, &is_cut);
	while (r == 0 && in->nodes_cap < in->frames_cap)
		r = jfr_failed(in, k->at, array_grow(&in->nodes, &in->nodes_cap, in->nodes_cap, UINT32_MAX - 1));
	if (r == 0 && in->frames_count) {
		path = (struct model_path){ in->frames, in->nodes, in->frames_count };
		r = jfr_failed(in, k->at, model_add_paths(in->m, &path, 1));
		stack->row[0] = r ? 0 : in->nodes[in->frames_count - 1];
	}
	stack->row[1] = is_cut ? in->cut : slots[JFR_STACK_TRUNCATED].number ? in->truncated : 0;
	stack->is_read = r == 0;
	return r;
}

static int find_stack(struct jfr_chunk *k, uint64_t key, struct model_sample *row)
{
	struct jfr_constant *stack = jfr_constant(k, JFR_POOL_STACK, key);
	int r = 0;

	if (!stack) {
		k->in->lost_stacks += key != 0;
		return 0;
	}
	if (!stack->is_read)
		r = read_stack(k, stack);
	row->stack = stack->row[0];
	row->end = stack->row[1];
	return r;
}

static int read_thread(struct jfr_chunk *k, struct jfr_constant *thread)
{
	struct jfr_in *in = k->in;
	struct jfr_slot slots[JFR_SLOTS_MAX];
	struct model_thread row = { .process = in->process };
	int r = jfr_constant_read(k, JFR_POOL_THREAD, thread, slots);

	buf_clear(&in->text);
	if (r == 0 && (!jfr_string_add(k, &slots[JFR_THREAD_JAVA_NAME].string, &in->text) || !in->text.len))
		ignore(jfr_string_add(k, &slots[JFR_THREAD_OS_NAME].string, &in->text)); /* none: no name */
	r = r ? r : jfr_failed(in, k->at, in->text.error);
	r = r ? r : add_string(in, buf_str(&in->text), &row.name);
	if (slots[JFR_THREAD_OS_ID].number <= UINT32_MAX)
		row.tid = (uint32_t)slots[JFR_THREAD_OS_ID].number;
	if (r == 0 && (row.tid || row.name))
		r = jfr_failed(in, k->at, model_add_thread(in->m, &row, &thread->row[0]));
	thread->is_read = r == 0;
	return r;
}

static int find_thread(struct jfr_chunk *k, uint64_t key, uint32_t *out)
{
	struct jfr_constant *thread = jfr_constant(k, JFR_POOL_THREAD, key);
	int r = 0;

	if (thread && !thread->is_read)
		r = read_thread(k, thread);
	if (thread)
		*out = thread->row[0];
	return r;
}

/* The label that says what was allocated. */
static int find_label(struct jfr_chunk *k, uint64_t key, uint32_t *out)
{
	struct jfr_in *in = k->in;
	struct jfr_constant *class = jfr_constant(k, JFR_POOL_CLASS, key);
	struct model_label label = { .key = in->class_key };
	int r = 0;

	if (!class)
		return 0;
	if (!class->is_read) {
		buf_clear(&in->text);
		r = add_class_name(k, key, &in->text);
		r = r ? r : add_string(in, buf_str(&in->text), &label.text);
		if (r == 0 && label.text)
			r = jfr_failed(in, k->at, model_add_label_set(in->m, &label, 1, &class->row[0]));
		class->is_read = r == 0;
	}
	*out = class->row[0];
	return r;
}

/* Second pass */

static uint64_t time_of(const struct jfr_chunk *k, uint64_t ticks)
{
	unsigned __int128 since = ticks > k->start_ticks ? ticks - k->start_ticks : 0;
	unsigned __int128 ns = k->ticks_per_second ? since * NSEC_PER_SEC / k->ticks_per_second : 0;
	uint64_t at;

	if (__builtin_add_overflow(k->start_ns, ns, &at) || at < k->in->start_ns)
		return MODEL_NO_TIME;
	return at - k->in->start_ns;
}

static int64_t weight_of(const struct jfr_slot *slots)
{
	const struct jfr_slot *slot = slots[EVENT_WEIGHT].is_set ? &slots[EVENT_WEIGHT] : &slots[EVENT_OTHER_WEIGHT];

	return slot->is_set ? (int64_t)slot->number : 1;
}

static int read_sample(struct jfr_chunk *k, struct jfr_event *event, int kind)
{
	struct jfr_in *in = k->in;
	const int *columns = &in->columns[2 * kind];
	struct model_sample row = { .process = in->process };
	int64_t values[MODEL_VALUE_TYPES_MAX] = { 0 };
	struct jfr_slot slots[JFR_SLOTS_MAX];
	int r;

	jfr_read(k, &event->content, &k->event_plans[kind], slots);
	if (event->content.bad)
		return jfr_bad(in, event->at, "malformed event");
	if (in->limits->samples_max && in->m->samples_count == in->limits->samples_max) {
		codec_fail(in->error, event->at, false, "more than %zu samples", in->limits->samples_max);
		return -E2BIG;
	}
	row.time_offset_ns = time_of(k, slots[EVENT_START].number);
	if (columns[0] >= 0)
		values[columns[0]] = 1;
	if (columns[1] >= 0)
		values[columns[1]] = weight_of(slots);
	r = find_stack(k, slots[EVENT_STACK].number, &row);
	r = r ? r : find_thread(k, slots[EVENT_THREAD].number, &row.thread);
	if (r == 0 && slots[EVENT_CLASS].is_set)
		r = find_label(k, slots[EVENT_CLASS].number, &row.label_set);
	return r ? r : jfr_failed(in, event->at, model_add_sample(in->m, &row, values));
}

int jfr_read_samples(struct jfr_chunk *k)
{
	struct cur c = jfr_events(k);
	struct jfr_event event;
	int r, failed = 0;

	while (!failed && (r = jfr_next_event(k, &c, &event)) != 0) {
		int kind;

		if (r < 0)
			return r;
		kind = kind_of(k, event.type);
		if (kind >= 0 && kind != EVENT_JVM)
			failed = read_sample(k, &event, kind);
		failed = failed ? failed : jfr_step(k->in, k);
		k->in->done = jfr_position(k, &c);
	}
	return failed;
}
