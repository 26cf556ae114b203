/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/perf_script.h"

#include "base/array.h"
#include "base/limit.h"
#include "codec/perf_events.h"
#include "codec/perf_line.h"

#define LINES_STEP 64 /* lines between two looks whether to stop */
#define INLINED_MAX 64
#define SNIFF_MAX KIB(4)
#define UNKNOWN "[unknown]"
#define KERNEL_HALF UINT64_C(0xffff000000000000) /* x86-64 and arm64 have the kernel there */

struct place {                 /* of a frame's text, without its address */
	uint32_t locations[2]; /* at a user's, at a kernel's address; 0: not made yet */
};

struct script {
	struct model *m;
	const struct codec_limits *limits;
	struct codec_error *error;
	struct perf_events events;
	struct intern frames; /* "name (file)" as it was printed */
	struct place *places; /* by id of frames */
	size_t place_count, place_cap;
	uint32_t *stack; /* of the sample that is read: locations, leaf first */
	size_t stack_count, stack_cap;
	struct model_line inlined[INLINED_MAX]; /* functions that wait for the one they were inlined into */
	uint32_t inlined_count;
	struct perf_frame last; /* the frame that a source line may follow; borrowed from the text */
	struct str source;
	uint64_t source_line;
	bool has_last;
	struct perf_head head;
	bool is_open, is_weak; /* a sample is read; it has a comm only, and no frame so far */
	bool is_cut;
	uint64_t line, head_line, left_out, lost;
	uint64_t first_ns, last_ns;
	bool any_time;
};

static void script_release(struct script *s)
{
	perf_events_release(&s->events);
	intern_release(&s->frames);
	free(s->places);
	free(s->stack);
}

static int fail_memory(struct script *s, int r)
{
	if (r == -E2BIG || r == -ENOMEM)
		codec_fail(s->error, s->line, true, "%s", r == -E2BIG ? "too many stacks" : "out of memory");
	return r;
}

static void leave_out(struct script *s, uint64_t line, const char *reason)
{
	if (!s->left_out++)
		codec_fail(s->error, line, true, "%s", reason);
}

static bool is_unknown(struct str s)
{
	return !s.len || str_eq(s, STR(UNKNOWN));
}

static enum model_kind kind_of(const struct perf_frame *f)
{
	struct str base = str_base(f->dso);
	bool is_kernel_address = f->address >= KERNEL_HALF;

	if (str_starts(base, STR("[guest.kernel")) || model_kind_of_mapping(f->dso) == MODEL_KIND_KERNEL)
		return MODEL_KIND_KERNEL;
	/* Modules and BPF programs: "[ext4]", "bpf_prog_..." at an address of the kernel. */
	if (is_kernel_address && (is_unknown(f->dso) || f->dso.ptr[0] == '[' || str_starts(base, STR("bpf_"))))
		return MODEL_KIND_KERNEL;
	if ((str_starts(base, STR("perf-")) && str_ends(base, STR(".map"))) || str_starts(f->dso, STR("[JIT]")) ||
	    (str_starts(base, STR("jitted-")) && str_ends(base, STR(".so"))))
		return MODEL_KIND_JIT;
	return MODEL_KIND_NATIVE;
}

/* What has no name is called after its file, as stackcollapse-perf.pl and inferno do. */
static void name_of(const struct script *s, const struct perf_frame *f, struct buf *out)
{
	struct str file = str_base(f->dso), base = file.len ? file : f->dso;

	if (!is_unknown(f->name)) {
		buf_adds(out, codec_text(s->limits, f->name));
	} else if (is_unknown(f->dso)) {
		buf_adds(out, STR(UNKNOWN));
	} else if (base.ptr[0] == '[') {
		buf_adds(out, codec_text(s->limits, base));
	} else {
		buf_addc(out, '[');
		buf_adds(out, codec_text(s->limits, base));
		buf_addc(out, ']');
	}
}

/* The function of a frame, with the source line that was printed below it. */
static int add_function(struct script *s, const struct perf_frame *f, enum model_kind kind, struct model_line *out)
{
	scoped(buf_release) struct buf name = BUF_INIT(GIB(1));
	struct model_function row = { .kind = kind };
	int r;

	name_of(s, f, &name);
	r = name.error ? name.error : model_add_string(s->m, buf_str(&name), &row.name);
	row.system_name = row.name;
	if (r == 0 && s->source.len) {
		r = model_add_string(s->m, codec_text(s->limits, s->source), &row.filename);
		out->line = (int64_t)s->source_line;
	}
	return r ? r : model_add_function(s->m, &row, &out->function);
}

static int add_mapping(struct script *s, const struct perf_frame *f, enum model_kind kind, uint32_t *out)
{
	struct model_mapping row = { .flags = MODEL_HAS_FUNCTIONS };
	struct str name = kind == MODEL_KIND_NATIVE ? f->dso : model_kind_mapping(kind);
	int r;

	if (is_unknown(f->dso) && kind == MODEL_KIND_NATIVE)
		return 0;
	r = model_add_string(s->m, codec_text(s->limits, name), &row.filename);
	return r ? r : model_add_mapping(s->m, &row, out);
}

/* A frame with those that were inlined into it, and its line. */
static int add_location(struct script *s, const struct perf_frame *f, uint32_t *out)
{
	enum model_kind kind = kind_of(f);
	struct model_location row = { .line_count = s->inlined_count + 1 };
	int r = add_mapping(s, f, kind, &row.mapping);

	s->inlined[s->inlined_count] = (struct model_line){ 0 };
	r = r ? r : add_function(s, f, kind, &s->inlined[s->inlined_count]);
	r = r ? r : model_add_location(s->m, &row, s->inlined, out);
	s->inlined_count = 0;
	return r;
}

/* Most frames were there before, word by word. */
static int find_location(struct script *s, const struct perf_frame *f, uint32_t *out)
{
	const char *start = f->name.len ? f->name.ptr : f->dso.ptr, *end = f->dso.len ? f->dso.ptr + f->dso.len : start;
	struct str text = start ? str_n(start, f->dso.len ? (size_t)(end - start) : f->name.len) : STR("");
	uint32_t id = 0, *place;
	int r;

	if (s->inlined_count || s->source.len)
		return add_location(s, f, out);
	r = intern_add(&s->frames, text, &id);
	while (r == 0 && s->place_count <= id) {
		r = array_grow(&s->places, &s->place_cap, s->place_count, UINT32_MAX);
		if (r == 0)
			s->places[s->place_count++] = (struct place){ 0 };
	}
	if (r < 0)
		return r;
	place = &s->places[id].locations[f->address >= KERNEL_HALF];
	if (!*place)
		r = add_location(s, f, place);
	*out = *place;
	return r;
}

/* The frame that was read last is whole: no source line came, or it is there. */
static int settle_frame(struct script *s)
{
	uint32_t location;
	int r = 0;

	if (!s->has_last)
		return 0;
	s->has_last = false;
	if (s->last.is_inlined && s->inlined_count < INLINED_MAX - 1) {
		struct model_line *line = &s->inlined[s->inlined_count];

		*line = (struct model_line){ 0 };
		r = add_function(s, &s->last, MODEL_KIND_NATIVE, line);
		s->inlined_count += r == 0;
	} else if (s->limits->depth_max && s->stack_count >= s->limits->depth_max) {
		s->is_cut = true;
		s->inlined_count = 0;
	} else {
		r = find_location(s, &s->last, &location);
		r = r ? r : array_grow(&s->stack, &s->stack_cap, s->stack_count, UINT32_MAX);
		if (r == 0)
			s->stack[s->stack_count++] = location;
	}
	s->source = STR("");
	return r;
}

/* perf prints the pid where it was asked for (-F +pid) and the tid alone otherwise: then a comm is a process. */
static int add_process(struct script *s, struct model_sample *sample)
{
	const struct perf_head *h = &s->head;
	struct model_process process = { .pid = h->has_pid ? (uint32_t)h->pid : 0 };
	struct model_thread thread = { .tid = h->has_tid ? (uint32_t)h->tid : 0 };
	int r = model_add_string(s->m, codec_text(s->limits, h->comm), &process.comm);

	if (r < 0 || (!process.comm && !process.pid && !thread.tid))
		return r;
	r = model_add_process(s->m, &process, &sample->process);
	if (r < 0 || !thread.tid)
		return r;
	thread.process = sample->process;
	thread.name = process.comm;
	return model_add_thread(s->m, &thread, &sample->thread);
}

static int add_cpu(struct script *s, struct model_sample *sample)
{
	struct model_label label = { .is_number = true, .number = (int64_t)s->head.cpu };
	int r;

	if (!s->head.has_cpu)
		return 0;
	r = model_add_string(s->m, STR("cpu"), &label.key);
	return r ? r : model_add_label_set(s->m, &label, 1, &sample->label_set);
}

static int add_sample(struct script *s)
{
	struct model_sample sample = { .time_offset_ns = s->head.has_time ? s->head.time_ns : MODEL_NO_TIME };
	int64_t values[MODEL_VALUE_TYPES_MAX];
	size_t event = SIZE_MAX;
	int r = add_process(s, &sample);

	r = r ? r : add_cpu(s, &sample);
	for (size_t i = s->stack_count; r == 0 && i-- > 0;)
		r = model_add_stack(s->m, sample.stack, s->stack[i], &sample.stack);
	if (r == 0 && s->is_cut)
		r = model_add_string(s->m, STR(CODEC_STACK_CUT), &sample.end);
	if (r == 0 && (s->head.event.len || s->head.has_period))
		r = perf_events_add(&s->events, s->head.event, s->head.has_period, &event);
	if (r < 0)
		return r;
	perf_events_values(&s->events, event, s->head.has_period ? s->head.period : 1, values);
	if (s->head.has_time) {
		s->first_ns = s->any_time ? MIN(s->first_ns, s->head.time_ns) : s->head.time_ns;
		s->last_ns = s->any_time ? MAX(s->last_ns, s->head.time_ns) : s->head.time_ns;
		s->any_time = true;
	}
	return model_add_sample(s->m, &sample, values);
}

/* The sample's text is at its end. */
static int close_sample(struct script *s)
{
	int r = settle_frame(s);

	if (r == 0 && s->inlined_count) { /* without the function around them */
		s->last = (struct perf_frame){ .name = STR(UNKNOWN) };
		s->has_last = true;
		r = settle_frame(s);
	}
	if (r == 0 && s->is_open && s->is_weak && !s->stack_count)
		leave_out(s, s->head_line, "no sample begins like this");
	else if (r == 0 && s->is_open)
		r = add_sample(s);
	s->is_open = s->is_weak = s->is_cut = false;
	s->stack_count = s->inlined_count = 0;
	return r;
}

static int open_sample(struct script *s, const struct perf_text *text, bool is_weak)
{
	int r = close_sample(s);

	s->head = text->head;
	s->head_line = s->line;
	s->is_open = true;
	s->is_weak = is_weak;
	if (r == 0 && text->head.rest.len && perf_frame_parse(text->head.rest, &s->last))
		s->has_last = true; /* a sample without a chain: its only frame is in the line itself */
	return r;
}

static int take_frame(struct script *s, const struct perf_frame *frame)
{
	int r = settle_frame(s);

	if (!s->is_open) { /* perf script -F ip,sym */
		s->head = (struct perf_head){ 0 };
		s->head_line = s->line;
		s->is_open = true;
	}
	s->last = *frame;
	s->has_last = true;
	return r;
}

/* "# hostname : a" of --header. */
static int take_comment(struct script *s, struct window *w, struct str line)
{
	ptrdiff_t colon = str_find(line, ':');
	struct str key, value;
	uint64_t cpus;

	if (colon < 0 || line.ptr[0] != '#')
		return 0;
	key = str_trim(str_n(line.ptr + 1, (size_t)colon - 1));
	value = codec_text(s->limits, str_trim(str_skip(line, (size_t)colon + 1)));
	if (str_eq(key, STR("hostname")))
		return window_set_text(&w->host, value);
	if (str_eq(key, STR("os release")))
		return window_set_text(&w->kernel_release, value);
	if (str_eq(key, STR("cmdline")))
		return window_set_text(&w->command, value);
	if (str_eq(key, STR("nrcpus online")) && str_to_u64(value, 1, UINT16_MAX, &cpus) == 0)
		w->cpu_count = (uint32_t)cpus;
	return 0;
}

/* "PERF_RECORD_LOST lost 12" of --show-lost-events; the other records say nothing about samples. */
static void take_record(struct script *s, struct str line)
{
	ptrdiff_t at = str_search(line, STR("PERF_RECORD_LOST"));
	uint64_t count;

	if (at >= 0 && str_to_u64(str_skip(line, (size_t)str_rfind(line, ' ') + 1), 0, INT64_MAX, &count) == 0)
		s->lost += MIN(count, INT64_MAX - s->lost);
}

static int take_line(struct script *s, struct window *w, struct str line)
{
	struct perf_text text = { 0 };
	int r;

	switch (perf_line_parse(line, &text)) {
	case PERF_LINE_BLANK:
		return close_sample(s);
	case PERF_LINE_HEAD:
		return open_sample(s, &text, false);
	case PERF_LINE_NAME_ALONE:
		return open_sample(s, &text, true);
	case PERF_LINE_FRAME:
		return take_frame(s, &text.frame);
	case PERF_LINE_SOURCE:
		if (s->has_last) {
			s->source = text.source;
			s->source_line = text.source_line;
			s->last.is_inlined |= text.frame.is_inlined;
			return 0;
		}
		leave_out(s, s->line, "a source line without a frame");
		return 0;
	case PERF_LINE_COMMENT:
		return take_comment(s, w, line);
	case PERF_LINE_RECORD:
		r = close_sample(s);
		take_record(s, line);
		return r;
	case PERF_LINE_OTHER:
		break;
	}
	leave_out(s, s->line, "neither a sample nor a frame");
	return 0;
}

static int look_at_limits(struct script *s, uint64_t done)
{
	if (s->line % LINES_STEP == 0 && codec_stopped(s->limits, done))
		return -ECANCELED;
	if (!s->limits->samples_max || s->m->samples_count <= s->limits->samples_max)
		return 0;
	codec_fail(s->error, s->line, true, "more than %zu samples", s->limits->samples_max);
	return -E2BIG;
}

/* The columns have to be known before the first sample: the heads are read twice. */
static int find_events(struct script *s, struct str text)
{
	struct perf_text parsed;
	struct str line;
	size_t column;
	int r = 0;

	while (r == 0 && codec_next_line(&text, &line)) {
		parsed.head = (struct perf_head){ 0 };
		if (line.len && line.ptr[0] != '\t' && perf_line_parse(line, &parsed) == PERF_LINE_HEAD &&
		    (parsed.head.event.len || parsed.head.has_period))
			r = perf_events_add(&s->events, parsed.head.event, parsed.head.has_period, &column);
		if (r == 0 && ++s->line % LINES_STEP == 0 && codec_stopped(s->limits, 0))
			r = -ECANCELED;
	}
	s->line = 0;
	return r ? r : perf_events_columns(&s->events, s->m);
}

/* Times count from the first sample. */
static void shift_times(struct script *s)
{
	for (size_t i = 0; i < s->m->samples_count; i++)
		if (s->m->samples[i].time_offset_ns != MODEL_NO_TIME)
			s->m->samples[i].time_offset_ns -= s->first_ns;
	s->m->duration_ns = (int64_t)MIN(s->last_ns - s->first_ns, (uint64_t)INT64_MAX);
}

static int read_text(struct script *s, struct window *w, struct str text)
{
	size_t all = text.len;
	struct str line;
	int r = fail_memory(s, find_events(s, text));

	while (r == 0 && codec_next_line(&text, &line)) {
		s->line++;
		r = fail_memory(s, take_line(s, w, line));
		r = r ? r : look_at_limits(s, all - text.len);
	}
	r = r ? r : fail_memory(s, close_sample(s));
	r = r ? r : look_at_limits(s, all);
	if (r == 0 && !s->m->samples_count) {
		if (!s->left_out)
			codec_fail(s->error, s->line, true, "no sample in it");
		return -EBADMSG;
	}
	if (r == 0 && s->lost)
		r = window_set_counter(w, STR("lost_by_perf"), s->lost);
	r = r ? r : perf_events_close(&s->events, w, s->error);
	if (r == 0)
		shift_times(s);
	if (r == 0 && s->error)
		s->error->left_out = s->left_out;
	return r;
}

static int decode_limited(struct str bytes, const struct codec_limits *limits, struct window *out,
			  struct codec_error *error)
{
	scoped(window_release) struct window w = { 0 };
	scoped(script_release) struct script s = { .error = error, .limits = limits };
	int r = window_init(&w, limit_of_sizes(bytes.len, 2, KIB(64)));

	if (r < 0) {
		codec_fail(error, 0, true, "out of memory");
		return r;
	}
	s.m = w.model;
	s.m->memory_max = limits->memory_max;
	intern_init(&s.frames, limits->memory_max ? limits->memory_max / 4 : bytes.len);
	r = read_text(&s, &w, bytes);
	if (r < 0)
		return r;
	s.m->memory_max = 0; /* what is done with it later has limits of its own */
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}

static int decode(struct str bytes, struct window *out, struct codec_error *error)
{
	return decode_limited(bytes, &(struct codec_limits){ 0 }, out, error);
}

/* The first line that is no comment is the head of a sample: with an event, or with a frame below it. */
static int sniff(struct str bytes)
{
	struct str text = str_first(bytes, SNIFF_MAX), line;
	struct perf_text parsed = { 0 };

	if (memchr(text.len ? text.ptr : "", 0, text.len))
		return 0;
	while (codec_next_line(&text, &line)) {
		switch (perf_line_parse(line, &parsed)) {
		case PERF_LINE_BLANK:
		case PERF_LINE_COMMENT:
		case PERF_LINE_RECORD:
			continue;
		case PERF_LINE_HEAD:
			if (parsed.head.has_tid && parsed.head.event.len &&
			    (parsed.head.has_time || parsed.head.has_cpu))
				return 1;
			break;
		default:
			return 0;
		}
		return codec_next_line(&text, &line) && line.len && line.ptr[0] == '\t' &&
		       perf_line_parse(line, &parsed) == PERF_LINE_FRAME && parsed.frame.name.len;
	}
	return 0;
}

static const char *const suffixes[] = { ".perf", ".perf-script", NULL };

const struct codec codec_perf_script = {
	.name = "perf-script",
	.suffixes = suffixes,
	.help = "the text of perf script",
	.sniff = sniff,
	.decode = decode,
	.decode_limited = decode_limited,
};
