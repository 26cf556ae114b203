/* SPDX-License-Identifier: Apache-2.0 */
/* gProfiler's .col: "# {json}", then "index;container;comm[;appid: ID];frame;...;leaf count", no newline at the end.
 * Layout and key order as intel/gprofiler 1.57.1 writes them (docs/formats/col.md). */
#include "codec/col.h"

#include "base/array.h"
#include "base/limit.h"
#include "base/u64map.h"
#include "codec/json.h"
#include "codec/stack_text.h"

#define EVENT_MAX KIB(1)
#define CLOCK_EVENT "cpu-time" /* gProfiler's name of what period types call: */
#define CLOCK_TYPE "cpu"
#define CLOCK_UNIT "nanoseconds"
#define HEADER_MAX GIB(1)
#define APP_ID "appid: "
#define LINES_STEP 64 /* lines between two looks whether to stop */

/* Writing */

struct col_line {
	uint32_t process, stack;
	uint32_t rank; /* of the process, or of the line itself where the process is known by name only */
	uint32_t order;
	uint64_t count;
};

struct col_out {
	const struct window *w;
	const struct model *m;
	struct stack_text stacks;
	struct col_line *lines;
	size_t lines_count, lines_cap;
	struct u64map line_of;    /* process and stack to line */
	uint32_t *process_rank;   /* by row; UINT32_MAX: not seen */
	struct intern metadata;   /* application metadata as written; 0: null */
	uint32_t *metadata_index; /* by row of app_metadata */
	size_t column;            /* which value is counted */
	uint32_t without;         /* enum codec_without */
	bool has_header;          /* is written, and so many lines */
	size_t lines_done;
};

static void col_out_release(struct col_out *o)
{
	stack_text_release(&o->stacks);
	free(o->lines);
	u64map_release(&o->line_of);
	free(o->process_rank);
	intern_release(&o->metadata);
	free(o->metadata_index);
}

static struct str suffix_of(enum model_kind kind, bool is_inlined)
{
	(void)is_inlined;
	return model_kind_suffix(kind);
}

/* A sample that says no more than a line does (as read from a .col file) stays a line of its own, in its place: the
 * format allows equal lines. All others are added up by process and stack. */
static bool stands_alone(const struct model *m, const struct model_sample *s)
{
	return !m->processes[s->process].pid && !s->thread && !s->label_set && !s->end &&
	       s->time_offset_ns == MODEL_NO_TIME;
}

static int add_sample(struct col_out *o, const struct model_sample *s, uint64_t count)
{
	uint64_t key = (uint64_t)s->process << 32 | s->stack;
	bool alone = stands_alone(o->m, s), has_pid = o->m->processes[s->process].pid;
	uint32_t at;
	int r;

	if (!alone && u64map_get(&o->line_of, key, &at) == 0) {
		if (__builtin_add_overflow(o->lines[at].count, count, &o->lines[at].count))
			o->lines[at].count = INT64_MAX;
		o->lines[at].count = MIN(o->lines[at].count, (uint64_t)INT64_MAX);
		return 0;
	}
	r = array_grow(&o->lines, &o->lines_cap, o->lines_count, UINT32_MAX - 1);
	if (r == 0 && !alone)
		r = u64map_put(&o->line_of, key, (uint32_t)o->lines_count);
	if (r < 0)
		return r;
	at = (uint32_t)o->lines_count++;
	if (has_pid && o->process_rank[s->process] == UINT32_MAX)
		o->process_rank[s->process] = at;
	o->lines[at] = (struct col_line){ .process = s->process,
					  .stack = s->stack,
					  .rank = has_pid ? o->process_rank[s->process] : at,
					  .order = at,
					  .count = count };
	return 0;
}

/* Processes in order of first appearance, and inside one in order of insertion. */
static int line_order(const void *a, const void *b)
{
	const struct col_line *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int collect_lines(struct col_out *o)
{
	const struct model *m = o->m;
	int r = 0;

	u64map_init(&o->line_of, UINT32_MAX);
	o->process_rank = calloc(m->processes_count, sizeof(*o->process_rank));
	if (!o->process_rank)
		return -ENOMEM;
	memset(o->process_rank, 0xff, m->processes_count * sizeof(*o->process_rank));
	for (size_t i = 0; r == 0 && m->value_type_count && i < m->samples_count; i++) {
		int64_t value = model_values(m, &m->samples[i])[o->column];

		if (value > 0)
			r = add_sample(o, &m->samples[i], (uint64_t)value);
	}
	if (r == 0 && o->lines_count)
		qsort(o->lines, o->lines_count, sizeof(*o->lines), line_order);
	return r;
}

/* Equal objects share one slot, also when they were spelled differently. What is no JSON counts as null. */
static int collect_metadata(struct col_out *o)
{
	const struct model *m = o->m;
	scoped(buf_release) struct buf text = BUF_INIT(HEADER_MAX);
	int r = 0;

	intern_init(&o->metadata, HEADER_MAX);
	o->metadata_index = calloc(m->app_metadata_count, sizeof(*o->metadata_index));
	if (!o->metadata_index)
		return -ENOMEM;
	for (size_t i = 1; r == 0 && i < m->app_metadata_count; i++) {
		buf_clear(&text);
		r = json_reformat(model_string(m, m->app_metadata[i]), &text);
		if (r == -EBADMSG || (r == 0 && str_eq(buf_str(&text), STR("null")))) {
			r = 0;
			continue;
		}
		r = r ? r : intern_add(&o->metadata, buf_str(&text), &o->metadata_index[i]);
	}
	return r;
}

static int add_containers(struct col_out *o, struct json_out *j)
{
	scoped(intern_release) struct intern seen;
	scoped(buf_release) struct buf name = BUF_INIT(HEADER_MAX);

	intern_init(&seen, HEADER_MAX);
	json_out_key(j, STR("containers"));
	json_out_begin(j, '[');
	for (size_t i = 0; i < o->lines_count; i++) {
		uint32_t container = o->m->processes[o->lines[i].process].container, id;
		size_t before = intern_count(&seen);
		int r;

		if (!container || (o->without & CODEC_WITHOUT_CONTAINERS))
			continue;
		buf_clear(&name);
		stack_text_name(&name, model_string(o->m, container));
		r = name.error ? name.error : intern_add(&seen, buf_str(&name), &id);
		if (r < 0)
			return r;
		if (intern_count(&seen) > before)
			json_out_string(j, buf_str(&name));
	}
	json_out_end(j, ']');
	return 0;
}

/* What the window knows of spec keys, where the agent gave no metadata object. */
static void add_own_metadata(const struct window *w, bool only_host, struct json_out *j)
{
	const struct {
		struct str key;
		const char *text;
	} rows[] = {
		{ STR("agent_version"), only_host ? NULL : w->agent_version },
		{ STR("kernel_release"), only_host ? NULL : w->kernel_release },
		{ STR("hostname"), w->host },
		{ STR("os_name"), only_host ? NULL : w->os_name },
	};

	json_out_begin(j, '{');
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!rows[i].text)
			continue;
		json_out_key(j, rows[i].key);
		json_out_string(j, str_of(rows[i].text));
	}
	json_out_key(j, STR("profiling_mode"));
	json_out_string(j, STR("cpu"));
	json_out_end(j, '}');
}

static int add_metadata(const struct window *w, bool only_host, struct json_out *j)
{
	scoped(buf_release) struct buf text = BUF_INIT(HEADER_MAX);
	int r;

	json_out_key(j, STR("metadata"));
	if (!w->metadata_json || only_host) {
		add_own_metadata(w, only_host, j);
		return 0;
	}
	r = json_reformat(str_of(w->metadata_json), &text);
	if (r == 0)
		json_out_raw(j, buf_str(&text));
	else if (r == -EBADMSG)
		add_own_metadata(w, false, j);
	return r == -EBADMSG ? 0 : r;
}

static void add_average(struct json_out *j, struct str key, double value)
{
	json_out_key(j, key);
	if (value >= 0)
		json_out_number(j, value);
	else
		json_out_raw(j, STR("null"));
}

static void add_metrics(const struct window *w, bool known, struct json_out *j)
{
	json_out_key(j, STR("metrics"));
	json_out_begin(j, '{');
	add_average(j, STR("cpu_avg"), known ? w->cpu_average : -1);
	add_average(j, STR("mem_avg"), known ? w->memory_average : -1);
	json_out_end(j, '}');
}

/* What was counted, and how it was sampled: keys as gProfiler's, which names the clock cpu-time. */
static void add_sampling(const struct window *w, struct json_out *j)
{
	const struct model *m = w->model;
	struct str type = model_string(m, m->period_type.type);
	bool is_clock = !type.len || (str_eq(type, STR(CLOCK_TYPE)) &&
				      str_eq(model_string(m, m->period_type.unit), STR(CLOCK_UNIT)));
	bool by_period = !w->frequency_hz && m->period > 0 && (!is_clock || w->sampler);

	json_out_key(j, STR("sampling_event"));
	json_out_string(j, is_clock ? STR(CLOCK_EVENT) : type);
	json_out_key(j, STR("sampling_mode"));
	json_out_string(j, by_period ? STR("period") : STR("frequency"));
	json_out_key(j, by_period ? STR("sampling_period") : STR("sampling_frequency"));
	if (by_period)
		json_out_u64(j, (uint64_t)m->period);
	else if (w->frequency_hz)
		json_out_u64(j, w->frequency_hz);
	else
		json_out_raw(j, STR("null"));
}

static void add_tail(const struct window *w, struct json_out *j)
{
	static const char *const nulls[] = { "hwmetrics", "htmlblob", "flamegraph_html" };

	json_out_key(j, STR("profiling_mode"));
	json_out_string(j, STR("cpu"));
	for (size_t i = 0; i < ARRAY_SIZE(nulls); i++) {
		json_out_key(j, str_of(nulls[i]));
		json_out_raw(j, STR("null"));
	}
	add_sampling(w, j);
}

static int add_header(struct col_out *o, struct buf *out)
{
	struct json_out j = { .out = out };
	int r;

	buf_adds(out, STR("# "));
	json_out_begin(&j, '{');
	r = add_containers(o, &j);
	json_out_key(&j, STR("container_names_enabled"));
	json_out_raw(&j, o->without & CODEC_WITHOUT_CONTAINERS ? STR("false") : STR("true"));
	r = r ? r : add_metadata(o->w, o->without & CODEC_WITHOUT_METADATA, &j);
	add_metrics(o->w, !(o->without & CODEC_WITHOUT_METRICS), &j);
	json_out_key(&j, STR("application_metadata"));
	json_out_begin(&j, '[');
	json_out_raw(&j, STR("null"));
	for (uint32_t i = 1; i < intern_count(&o->metadata) && !(o->without & CODEC_WITHOUT_APP_METADATA); i++)
		json_out_raw(&j, intern_get(&o->metadata, i));
	json_out_end(&j, ']');
	json_out_key(&j, STR("application_metadata_enabled"));
	json_out_raw(&j, o->without & CODEC_WITHOUT_APP_METADATA ? STR("false") : STR("true"));
	add_tail(o->w, &j);
	json_out_end(&j, '}');
	return r;
}

static int add_line(struct col_out *o, const struct col_line *line, struct buf *out)
{
	const struct model_process *process = &o->m->processes[line->process];
	int r;

	buf_addc(out, '\n');
	if (!(o->without & CODEC_WITHOUT_APP_METADATA)) {
		buf_addu64(out, o->metadata_index[process->app_metadata]);
		buf_addc(out, ';');
	}
	if (!(o->without & (CODEC_WITHOUT_CONTAINERS | CODEC_WITHOUT_CONTAINER_FRAME)))
		stack_text_name(out, model_string(o->m, process->container));
	if (!(o->without & CODEC_WITHOUT_CONTAINER_FRAME))
		buf_addc(out, ';');
	stack_text_name(out, model_string(o->m, process->comm));
	if (process->app_id && !(o->without & CODEC_WITHOUT_APP_IDS)) {
		buf_adds(out, STR(";" APP_ID));
		stack_text_name(out, model_string(o->m, process->app_id));
	}
	r = stack_text_add(&o->stacks, line->stack, out);
	buf_addc(out, ' ');
	buf_addu64(out, line->count);
	return r ? r : out->error;
}

static void end(void *state)
{
	if (state)
		col_out_release(state);
	free(state);
}

static size_t held(const void *state)
{
	const struct col_out *o = state;

	return o->lines_cap * (sizeof(*o->lines) + 2 * sizeof(uint64_t)) + o->stacks.text.cap +
	       o->m->locations_count * sizeof(*o->stacks.ends); /* 2: of line_of */
}

static int begin(const struct window *w, const struct codec_options *options, void **out)
{
	struct stack_text_config cfg = { .suffix = suffix_of,
					 .style = options->frames,
					 .mark_python_native = options->frames.names == FRAME_NAMES_PACKAGE };
	struct col_out *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->w = w;
	o->m = w->model;
	o->column = codec_value(w->model, options, model_count_value(w->model));
	o->without = options->without;
	cfg.style.ruby_lines = FRAME_LINES_EXECUTING;
	cfg.style.signatures = true;
	r = stack_text_init(&o->stacks, o->m, &cfg);
	r = r ? r : collect_lines(o);
	r = r ? r : collect_metadata(o);
	if (r < 0)
		end(o);
	else
		*out = o;
	return r;
}

static int next(void *state, size_t size, struct buf *out)
{
	struct col_out *o = state;
	size_t start = out->len;
	int r = o->has_header ? 0 : add_header(o, out);

	o->has_header = true;
	for (; r == 0 && o->lines_done < o->lines_count && out->len - start < size; o->lines_done++)
		r = add_line(o, &o->lines[o->lines_done], out);
	r = r ? r : out->error;
	return r < 0 ? r : o->lines_done < o->lines_count;
}

static int encode_as(const struct window *w, const struct codec_options *options, struct buf *out)
{
	return codec_whole(&codec_col, w, options, out);
}

static int encode(const struct window *w, struct buf *out)
{
	const struct codec_options usual = { 0 };

	return encode_as(w, &usual, out);
}

/* Reading */

#define X(id, name, suffix) STR(suffix),
static const struct str kind_suffixes[] = { MODEL_KINDS(X) };
#undef X

struct col_in {
	struct window *w;
	struct model *m;
	struct stack_reader *stacks;
	struct codec_error *error;
	const struct codec_limits *limits; /* stop and memory_max */
	uint64_t line;
	bool has_index;     /* lines start with an index into application_metadata */
	uint32_t *metadata; /* rows of app_metadata by index */
	size_t metadata_count, metadata_cap;
};

static void col_in_release(struct col_in *in)
{
	stack_reader_free(&in->stacks);
	free(in->metadata);
}

static int bad(struct col_in *in, const char *reason)
{
	codec_fail(in->error, in->line, true, "%s", reason);
	return -EBADMSG;
}

static int failed(struct col_in *in, int r)
{
	if (r < 0)
		codec_fail(in->error, in->line, true, "%s",
			   r == -E2BIG ? "too many or too long entries" : "out of memory");
	return r;
}

static int read_app_metadata(struct col_in *in, struct str array)
{
	struct str none, value;
	int r = 0;

	while (r == 0 && json_member(&array, &none, &value)) {
		scoped(buf_release) struct buf text = BUF_INIT(HEADER_MAX);

		r = array_grow(&in->metadata, &in->metadata_cap, in->metadata_count, UINT32_MAX);
		if (r < 0)
			return r;
		in->metadata[in->metadata_count] = 0;
		if (!str_eq(value, STR("null")))
			r = json_reformat(value, &text);
		r = r ? r : model_add_app_metadata(in->m, buf_str(&text), &in->metadata[in->metadata_count]);
		in->metadata_count++;
	}
	return r;
}

static double read_number(struct str value)
{
	char text[64];

	if (!value.len || value.len >= sizeof(text) ||
	    ((value.ptr[0] < '0' || value.ptr[0] > '9') && value.ptr[0] != '-'))
		return -1;
	memcpy(text, value.ptr, value.len);
	text[value.len] = 0;
	return strtod(text, NULL); /* JSON's grammar was checked */
}

static void read_metrics(struct window *w, struct str object)
{
	struct str key, value;

	while (json_member(&object, &key, &value)) {
		if (str_eq(key, STR("\"cpu_avg\"")))
			w->cpu_average = read_number(value);
		else if (str_eq(key, STR("\"mem_avg\"")))
			w->memory_average = read_number(value);
	}
}

/* The texts of the metadata object that the window has fields for. */
static int read_metadata_texts(struct window *w, struct str object)
{
	const struct {
		struct str key;
		char **field;
	} rows[] = {
		{ STR("\"agent_version\""), &w->agent_version },
		{ STR("\"kernel_release\""), &w->kernel_release },
		{ STR("\"hostname\""), &w->host },
		{ STR("\"os_name\""), &w->os_name },
	};
	struct str key, value;
	int r = 0;

	while (r == 0 && json_member(&object, &key, &value)) {
		for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++) {
			scoped(buf_release) struct buf text = BUF_INIT(HEADER_MAX);

			if (!str_eq(key, rows[i].key) || json_text(value, &text) < 0)
				continue;
			if (!memchr(text.len ? text.ptr : "x", 0, text.len))
				r = window_set_text(rows[i].field, buf_str(&text));
		}
	}
	return r;
}

static int read_metadata(struct window *w, struct str object)
{
	scoped(buf_release) struct buf text = BUF_INIT(HEADER_MAX);
	int r = json_reformat(object, &text);

	r = r ? r : window_set_text(&w->metadata_json, buf_str(&text));
	return r ? r : read_metadata_texts(w, object);
}

static int read_event(struct model *m, struct str value)
{
	scoped(buf_release) struct buf name = BUF_INIT(EVENT_MAX);
	int r;

	if (json_text(value, &name) < 0 || !name.len || name.error || str_eq(buf_str(&name), STR(CLOCK_EVENT)))
		return 0;
	r = model_add_string(m, buf_str(&name), &m->period_type.type);
	return r < 0 ? r : model_add_string(m, STR("count"), &m->period_type.unit);
}

static int read_header_member(struct col_in *in, struct str key, struct str value)
{
	uint64_t number;

	if (str_eq(key, STR("\"metadata\"")))
		return read_metadata(in->w, value);
	if (str_eq(key, STR("\"metrics\"")))
		read_metrics(in->w, value);
	else if (str_eq(key, STR("\"application_metadata\"")) && !in->metadata_count)
		return read_app_metadata(in, value);
	else if (str_eq(key, STR("\"application_metadata_enabled\"")))
		in->has_index = str_eq(value, STR("true"));
	else if (str_eq(key, STR("\"sampling_frequency\"")) && str_to_u64(value, 1, UINT32_MAX, &number) == 0)
		in->w->frequency_hz = (uint32_t)number;
	else if (str_eq(key, STR("\"sampling_event\"")))
		return read_event(in->w->model, value);
	else if (str_eq(key, STR("\"sampling_period\"")) && str_to_u64(value, 1, INT64_MAX, &number) == 0)
		in->w->model->period = (int64_t)number;
	return 0;
}

static int read_header(struct col_in *in, struct str line)
{
	struct str object, key, value, rest;
	int r = 0;

	in->line = 1;
	if (!str_starts(line, STR("#")))
		return bad(in, "the first line is no \"# {...}\" header");
	rest = str_skip(line, 1);
	if (json_value(&rest, &object) < 0 || str_trim(rest).len || object.ptr[0] != '{')
		return bad(in, "the header is no JSON object");
	while (r == 0 && json_member(&object, &key, &value))
		r = read_header_member(in, key, value);
	return failed(in, r);
}

static int add_frame(struct col_in *in, struct str name, uint32_t *stack)
{
	enum model_kind kind = MODEL_KIND_NATIVE;

	for (size_t i = 0; i < ARRAY_SIZE(kind_suffixes); i++) { /* no suffix is the end of another */
		if (!kind_suffixes[i].len || name.len <= kind_suffixes[i].len || !str_ends(name, kind_suffixes[i]))
			continue;
		kind = (enum model_kind)i;
		name.len -= kind_suffixes[i].len;
		break;
	}
	return stack_reader_frame(in->stacks, *stack, name, kind, stack);
}

/* Index, container, comm and application id off the front. Return: as read_line(). */
static int read_process(struct col_in *in, struct str *line, uint32_t *out)
{
	struct model_process row = { 0 };
	struct str index, container, comm, after, piece;
	uint64_t number = 0;
	int r = 0;

	if (in->has_index) {
		if (!str_next(line, ';', &index) || str_to_u64(index, 0, UINT32_MAX, &number) < 0)
			return bad(in, "the line does not start with an application metadata index");
		if (number && number >= in->metadata_count)
			return bad(in, "application metadata index out of range");
		row.app_metadata = number ? in->metadata[number] : 0;
	}
	if (!str_next(line, ';', &container) || !str_next(line, ';', &comm))
		return bad(in, "no container and process name");
	after = *line;
	if (str_next(&after, ';', &piece) && str_starts(piece, STR(APP_ID)) && piece.len > strlen(APP_ID)) {
		r = model_add_string(in->m, str_skip(piece, strlen(APP_ID)), &row.app_id);
		*line = after;
	}
	r = r ? r : model_add_string(in->m, container, &row.container);
	r = r ? r : model_add_string(in->m, comm, &row.comm);
	return failed(in, r ? r : model_add_process(in->m, &row, out));
}

static int read_line(struct col_in *in, struct str line)
{
	struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
	ptrdiff_t blank = str_rfind(line, ' ');
	struct str piece;
	uint64_t count;
	int64_t value;
	int r;

	if (blank < 0 || str_to_u64(str_skip(line, (size_t)blank + 1), 0, INT64_MAX, &count) < 0)
		return bad(in, "no count at the end of the line");
	line = str_first(line, (size_t)blank);
	value = (int64_t)count;
	r = read_process(in, &line, &sample.process);
	if (r < 0)
		return r;
	while (r == 0 && str_next(&line, ';', &piece))
		r = add_frame(in, piece, &sample.stack);
	return failed(in, r ? r : model_add_sample(in->m, &sample, &value));
}

static int read_file(struct col_in *in, struct str bytes)
{
	size_t all = bytes.len;
	struct str line;
	int r;

	if (!bytes.len || !str_next(&bytes, '\n', &line))
		return bad(in, "empty input file");
	in->has_index = true;
	r = read_header(in, line);
	r = r ? r : failed(in, model_add_value_type(in->m, STR("samples"), STR("count")));
	while (r == 0 && str_next(&bytes, '\n', &line)) {
		in->line++;
		if (line.len && line.ptr[line.len - 1] == '\r')
			line.len--;
		if (line.len)
			r = read_line(in, line);
		if (r == 0 && in->line % LINES_STEP == 0 && codec_stopped(in->limits, all - bytes.len))
			r = -ECANCELED;
	}
	return r;
}

static int decode_limited(struct str bytes, const struct codec_limits *limits, struct window *out,
			  struct codec_error *error)
{
	scoped(window_release) struct window w = { 0 };
	scoped(col_in_release) struct col_in in = { .error = error, .limits = limits, .w = &w };
	int r = window_init(
		&w, limit_of_sizes(bytes.len, 8, KIB(64))); /* JSON grows when written again: U+FFFD is six bytes */

	in.m = w.model;
	in.stacks = r == 0 ? stack_reader_new(w.model) : NULL;
	if (!in.stacks)
		return failed(&in, -ENOMEM);
	in.m->memory_max = limits->memory_max;
	r = read_file(&in, bytes);
	if (r < 0)
		return r;
	in.m->memory_max = 0; /* what is done with it later has limits of its own */
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}

static int decode(struct str bytes, struct window *out, struct codec_error *error)
{
	return decode_limited(bytes, &(struct codec_limits){ 0 }, out, error);
}

static int sniff(struct str bytes)
{
	return str_starts(bytes, STR("# {")) || str_starts(bytes, STR("#{"));
}

static const char *const suffixes[] = { ".col", NULL };

const struct codec codec_col = {
	.name = "col",
	.suffixes = suffixes,
	.help = "gProfiler's collapsed file with a JSON header",
	.encode = encode,
	.encode_as = encode_as,
	.begin = begin,
	.next = next,
	.held = held,
	.end = end,
	.sniff = sniff,
	.decode = decode,
	.decode_limited = decode_limited,
};
