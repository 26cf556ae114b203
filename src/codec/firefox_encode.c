/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the Firefox Profiler's processed profile as JSON, in the order of src/types/profile.ts. */
#include "codec/firefox_int.h"

#define PROCESSED_VERSION 70
#define GECKO_VERSION 36
#define VISIBLE_MAX 20 /* threads that are shown at first: the heaviest ones */
#define RESOURCE_LIBRARY "1"

/* Of the colours that the viewer has; grey marks the category of what has none. */
static const char *const colours[MODEL_KIND_COUNT] = {
	[MODEL_KIND_NATIVE] = "yellow",        [MODEL_KIND_KERNEL] = "orange",
	[MODEL_KIND_JIT] = "lightblue",        [MODEL_KIND_PYTHON] = "blue",
	[MODEL_KIND_PYTHON_NATIVE] = "yellow", [MODEL_KIND_PYTHON_ERROR] = "darkgrey",
	[MODEL_KIND_JAVA] = "green",           [MODEL_KIND_JAVA_INLINED] = "green",
	[MODEL_KIND_JAVA_C1] = "green",        [MODEL_KIND_JAVA_INTERPRETED] = "green",
	[MODEL_KIND_RUBY] = "magenta",         [MODEL_KIND_PHP] = "purple",
	[MODEL_KIND_DOTNET] = "brown",         [MODEL_KIND_PERL] = "lightgreen",
	[MODEL_KIND_JAVASCRIPT] = "yellow",
};

typedef void put_fn(const struct firefox_writer *o, size_t index, struct buf *out);

static void write_column(struct firefox_writer *o, struct str name, size_t count, put_fn *put)
{
	json_out_key(&o->j, name);
	json_out_begin(&o->j, '[');
	for (size_t i = 0; i < count && !o->j.out->error; i++) {
		if (i)
			buf_addc(o->j.out, ',');
		put(o, i, o->j.out);
	}
	json_out_end(&o->j, ']');
}

/* @count times the same. */
static void write_same(struct firefox_writer *o, struct str name, size_t count, struct str json)
{
	json_out_key(&o->j, name);
	json_out_begin(&o->j, '[');
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_addc(o->j.out, ',');
		buf_adds(o->j.out, json);
	}
	json_out_end(&o->j, ']');
}

static void write_number(struct firefox_writer *o, struct str name, uint64_t value)
{
	json_out_key(&o->j, name);
	json_out_u64(&o->j, value);
}

static void write_string(struct firefox_writer *o, struct str name, struct str value)
{
	json_out_key(&o->j, name);
	json_out_string(&o->j, value);
}

static void write_raw(struct firefox_writer *o, struct str name, struct str json)
{
	json_out_key(&o->j, name);
	json_out_raw(&o->j, json);
}

static void begin_object(struct firefox_writer *o, struct str name)
{
	json_out_key(&o->j, name);
	json_out_begin(&o->j, '{');
}

static void put_or_null(struct buf *out, int64_t number)
{
	if (number > 0)
		buf_addu64(out, (uint64_t)number);
	else
		buf_adds(out, STR("null"));
}

/* Node 0, which stands above all, is no row: row i is node i + 1. */
static void put_stack_frame(const struct firefox_writer *o, size_t i, struct buf *out)
{
	buf_addu64(out, o->tree.nodes[i + 1].frame);
}

static void put_stack_prefix(const struct firefox_writer *o, size_t i, struct buf *out)
{
	uint32_t parent = o->tree.nodes[i + 1].parent;

	buf_addu64(out, parent ? i + 1 - parent : 0);
}

static void write_stack_table(struct firefox_writer *o)
{
	size_t count = o->tree.nodes_count - 1;

	begin_object(o, STR("stackTable"));
	write_column(o, STR("frame"), count, put_stack_frame);
	write_column(o, STR("prefixOffset"), count, put_stack_prefix);
	write_number(o, STR("length"), count);
	json_out_end(&o->j, '}');
}

static void put_frame_category(const struct firefox_writer *o, size_t i, struct buf *out)
{
	buf_addu64(out, o->tree.frames[i].kind + 1);
}

static void put_frame_func(const struct firefox_writer *o, size_t i, struct buf *out)
{
	buf_addu64(out, o->func_of[i]);
}

static void put_frame_line(const struct firefox_writer *o, size_t i, struct buf *out)
{
	put_or_null(out, o->tree.frames[i].line);
}

static void put_frame_column(const struct firefox_writer *o, size_t i, struct buf *out)
{
	put_or_null(out, o->tree.frames[i].column);
}

static void write_frame_table(struct firefox_writer *o)
{
	size_t count = o->tree.frames_count;

	begin_object(o, STR("frameTable"));
	write_same(o, STR("address"), count, STR("-1"));
	write_same(o, STR("lib"), count, STR("-1"));
	write_same(o, STR("inlineDepth"), count, STR("0"));
	write_column(o, STR("category"), count, put_frame_category);
	write_same(o, STR("subcategory"), count, STR("0"));
	write_column(o, STR("func"), count, put_frame_func);
	write_same(o, STR("nativeSymbol"), count, STR("null"));
	write_same(o, STR("innerWindowID"), count, STR("null"));
	write_column(o, STR("line"), count, put_frame_line);
	write_column(o, STR("column"), count, put_frame_column);
	write_same(o, STR("originalLocation"), count, STR("null"));
	write_number(o, STR("length"), count);
	json_out_end(&o->j, '}');
}

static const struct call_frame *func_at(const struct firefox_writer *o, size_t index)
{
	return &o->tree.frames[o->funcs.items[index]];
}

static void put_func_name(const struct firefox_writer *o, size_t i, struct buf *out)
{
	buf_addu64(out, o->text_string[func_at(o, i)->name]);
}

static void put_func_resource(const struct firefox_writer *o, size_t i, struct buf *out)
{
	uint32_t module = func_at(o, i)->module;

	if (module)
		buf_addu64(out, o->resource_of[module]);
	else
		buf_adds(out, STR("-1"));
}

static void put_func_source(const struct firefox_writer *o, size_t i, struct buf *out)
{
	uint32_t file = func_at(o, i)->file;

	if (file)
		buf_addu64(out, o->source_of[file]);
	else
		buf_adds(out, STR("null"));
}

static void put_func_line(const struct firefox_writer *o, size_t i, struct buf *out)
{
	put_or_null(out, func_at(o, i)->first_line);
}

static void write_func_table(struct firefox_writer *o)
{
	size_t count = o->funcs.count;

	begin_object(o, STR("funcTable"));
	write_column(o, STR("name"), count, put_func_name);
	write_same(o, STR("isJS"), count, STR("false"));
	write_same(o, STR("relevantForJS"), count, STR("false"));
	write_column(o, STR("resource"), count, put_func_resource);
	write_column(o, STR("source"), count, put_func_source);
	write_column(o, STR("lineNumber"), count, put_func_line);
	write_same(o, STR("columnNumber"), count, STR("null"));
	write_same(o, STR("originalLocation"), count, STR("null"));
	write_number(o, STR("length"), count);
	json_out_end(&o->j, '}');
}

static void put_resource(const struct firefox_writer *o, size_t i, struct buf *out)
{
	buf_addu64(out, o->resources.items[i]);
}

static void put_source(const struct firefox_writer *o, size_t i, struct buf *out)
{
	buf_addu64(out, o->sources.items[i]);
}

static void write_files(struct firefox_writer *o)
{
	size_t count = o->resources.count;

	begin_object(o, STR("resourceTable"));
	write_column(o, STR("name"), count, put_resource);
	write_same(o, STR("host"), count, STR("null"));
	write_same(o, STR("type"), count, STR(RESOURCE_LIBRARY));
	write_number(o, STR("length"), count);
	json_out_end(&o->j, '}');
	count = o->sources.count;
	begin_object(o, STR("sources"));
	write_same(o, STR("id"), count, STR("null"));
	write_column(o, STR("filename"), count, put_source);
	write_same(o, STR("startLine"), count, STR("1"));
	write_same(o, STR("startColumn"), count, STR("1"));
	write_same(o, STR("sourceMapURL"), count, STR("null"));
	write_same(o, STR("content"), count, STR("null"));
	write_number(o, STR("length"), count);
	json_out_end(&o->j, '}');
}

static void put_string(const struct firefox_writer *o, size_t i, struct buf *out)
{
	struct json_out j = { .out = out };

	json_out_string(&j, intern_get(&o->strings, (uint32_t)i));
}

static void write_shared(struct firefox_writer *o)
{
	begin_object(o, STR("shared"));
	write_stack_table(o);
	write_frame_table(o);
	write_func_table(o);
	write_files(o);
	write_raw(o, STR("nativeSymbols"),
		  STR("{\"libIndex\": [], \"address\": [], \"name\": [], \"functionSize\": [], \"length\": 0}"));
	write_raw(o, STR("sourceLocationTable"), STR("{\"source\": [], \"line\": [], \"column\": [], \"length\": 0}"));
	write_column(o, STR("stringArray"), intern_count(&o->strings), put_string);
	json_out_end(&o->j, '}');
}

/* Threads */

/* Nanoseconds as milliseconds. */
static void put_ms(struct buf *out, uint64_t ns)
{
	json_decimal(out, (int64_t)MIN(ns, (uint64_t)INT64_MAX), 6);
}

/* How long a sample lasts on the line of time where no times are known: samples stand one behind the other. */
static uint64_t length_ns(const struct firefox_writer *o, int64_t value)
{
	uint64_t length;

	if (__builtin_mul_overflow((uint64_t)saturating_abs(value),
				   o->unit->ns ? (uint64_t)o->unit->ns : o->interval_ns, &length))
		return INT64_MAX;
	return MIN(length, (uint64_t)INT64_MAX);
}

static void write_times(struct firefox_writer *o, const struct firefox_thread *t)
{
	uint64_t at = 0;

	json_out_key(&o->j, STR("time"));
	json_out_begin(&o->j, '[');
	for (size_t i = t->first; i < t->first + t->count; i++) {
		if (i > t->first)
			buf_addc(o->j.out, ',');
		put_ms(o->j.out, o->has_times ? o->rows[i].time_ns : at);
		at = MIN(at + length_ns(o, o->rows[i].value), (uint64_t)INT64_MAX);
	}
	json_out_end(&o->j, ']');
}

static void write_samples(struct firefox_writer *o, const struct firefox_thread *t)
{
	begin_object(o, STR("samples"));
	json_out_key(&o->j, STR("stack"));
	json_out_begin(&o->j, '[');
	for (size_t i = t->first; i < t->first + t->count; i++) {
		if (i > t->first)
			buf_addc(o->j.out, ',');
		buf_addu64(o->j.out, o->rows[i].node - 1);
	}
	json_out_end(&o->j, ']');
	write_times(o, t);
	json_out_key(&o->j, STR("weight"));
	json_out_begin(&o->j, '[');
	for (size_t i = t->first; i < t->first + t->count; i++) {
		if (i > t->first)
			buf_addc(o->j.out, ',');
		json_decimal(o->j.out, o->rows[i].value, o->unit->decimals);
	}
	json_out_end(&o->j, ']');
	write_string(o, STR("weightType"), str_of(o->unit->type));
	write_number(o, STR("length"), t->count);
	json_out_end(&o->j, '}');
}

/* Processes are told apart by this text alone: those without a number, and those that had one's number later, get their
 * row behind it. */
static void write_pid(struct firefox_writer *o, const struct firefox_thread *t, const struct u64map *pids)
{
	uint32_t pid = o->m->processes[t->process].pid, owner = 0;
	char text[40];

	if (pid && u64map_get(pids, pid, &owner) == 0 && owner == t->process)
		(void)snprintf(text, sizeof(text), "%u", pid);
	else
		(void)snprintf(text, sizeof(text), "%u.%u", pid, t->process);
	write_string(o, STR("pid"), str_of(text));
}

static void write_thread(struct firefox_writer *o, const struct firefox_thread *t, const struct u64map *pids)
{
	const struct model_process *p = &o->m->processes[t->process];
	const struct model_thread *thread = &o->m->threads[t->thread];
	struct str comm = model_string(o->m, p->comm), name = model_string(o->m, thread->name);

	comm = comm.len ? comm : STR("Process");
	json_out_begin(&o->j, '{');
	write_string(o, STR("processType"), STR("default"));
	write_number(o, STR("processStartupTime"), 0);
	write_raw(o, STR("processShutdownTime"), STR("null"));
	write_number(o, STR("registerTime"), 0);
	write_raw(o, STR("unregisterTime"), STR("null"));
	write_raw(o, STR("pausedRanges"), STR("[]"));
	write_string(o, STR("name"), name.len ? name : comm);
	write_raw(o, STR("isMainThread"), t->is_main ? STR("true") : STR("false"));
	write_string(o, STR("processName"), comm);
	write_pid(o, t, pids);
	write_number(o, STR("tid"), t->thread ? thread->tid : p->pid);
	write_samples(o, t);
	write_raw(o, STR("markers"),
		  STR("{\"data\": [], \"name\": [], \"startTime\": [], \"endTime\": [], \"phase\": [], "
		      "\"category\": [], \"length\": 0}"));
	json_out_end(&o->j, '}');
}

static int write_threads(struct firefox_writer *o)
{
	scoped(u64map_release) struct u64map pids;
	int r = 0;

	u64map_init(&pids, UINT32_MAX);
	for (size_t i = o->threads_count; r == 0 && i-- > 0;) /* the heaviest one of a number keeps it */
		r = u64map_put(&pids, o->m->processes[o->threads[i].process].pid, o->threads[i].process);
	if (r < 0)
		return r;
	json_out_key(&o->j, STR("threads"));
	json_out_begin(&o->j, '[');
	for (size_t i = 0; i < o->threads_count && !o->j.out->error; i++)
		write_thread(o, &o->threads[i], &pids);
	json_out_end(&o->j, ']');
	return 0;
}

/* The head */

static void write_categories(struct firefox_writer *o)
{
	json_out_key(&o->j, STR("categories"));
	json_out_begin(&o->j, '[');
	for (uint32_t i = 0; i <= MODEL_KIND_COUNT; i++) {
		const char *colour = i ? colours[i - 1] : "grey";

		json_out_begin(&o->j, '{');
		write_string(o, STR("name"), i ? call_kind_name(i - 1) : STR("Other"));
		write_string(o, STR("color"), colour ? str_of(colour) : STR("lightred"));
		write_raw(o, STR("subcategories"), STR("[\"Other\"]"));
		json_out_end(&o->j, '}');
	}
	json_out_end(&o->j, ']');
}

static void put_index(const struct firefox_writer *o, size_t i, struct buf *out)
{
	(void)o;
	buf_addu64(out, i);
}

static void write_fact(struct firefox_writer *o, struct str label, struct str value)
{
	if (!value.len)
		return;
	json_out_begin(&o->j, '{');
	write_string(o, STR("label"), label);
	write_string(o, STR("format"), STR("string"));
	write_string(o, STR("value"), value);
	json_out_end(&o->j, '}');
}

static void write_facts(struct firefox_writer *o)
{
	json_out_key(&o->j, STR("extra"));
	json_out_begin(&o->j, '[');
	json_out_begin(&o->j, '{');
	write_string(o, STR("label"), STR("hearth"));
	json_out_key(&o->j, STR("entries"));
	json_out_begin(&o->j, '[');
	if (o->m->value_type_count)
		write_fact(o, STR("Value"), model_string(o->m, o->m->value_types[o->column].type));
	write_fact(o, STR("Host"), str_of(o->w->host));
	write_fact(o, STR("Kernel"), str_of(o->w->kernel_release));
	write_fact(o, STR("Sampler"), str_of(o->w->sampler));
	json_out_end(&o->j, ']');
	json_out_end(&o->j, '}');
	json_out_end(&o->j, ']');
}

static void write_meta(struct firefox_writer *o)
{
	size_t visible = MIN(o->threads_count, (size_t)VISIBLE_MAX);

	begin_object(o, STR("meta"));
	json_out_key(&o->j, STR("interval"));
	put_ms(o->j.out, o->interval_ns);
	o->j.needs_comma = true;
	json_out_key(&o->j, STR("startTime"));
	put_ms(o->j.out, o->w->start_ns);
	o->j.needs_comma = true;
	write_number(o, STR("processType"), 0);
	write_categories(o);
	write_string(o, STR("product"), STR("hearth"));
	write_string(o, STR("importedFrom"), STR("hearth " HEARTH_VERSION));
	write_number(o, STR("stackwalk"), 1);
	write_raw(o, STR("debug"), STR("false"));
	write_number(o, STR("version"), GECKO_VERSION);
	write_number(o, STR("preprocessedProfileVersion"), PROCESSED_VERSION);
	if (o->w->os_name)
		write_string(o, STR("oscpu"), str_of(o->w->os_name));
	if (o->w->command)
		write_string(o, STR("arguments"), str_of(o->w->command));
	if (o->w->cpu_count)
		write_number(o, STR("logicalCPUs"), o->w->cpu_count);
	write_raw(o, STR("symbolicated"), STR("true"));
	write_raw(o, STR("symbolicationNotSupported"), STR("true"));
	write_raw(o, STR("usesOnlyOneStackType"), STR("true"));
	write_raw(o, STR("sourceCodeIsNotOnSearchfox"), STR("true"));
	write_raw(o, STR("keepProfileThreadOrder"), STR("true"));
	write_column(o, STR("initialVisibleThreads"), visible, put_index);
	write_column(o, STR("initialSelectedThreads"), MIN(visible, (size_t)1), put_index);
	write_raw(o, STR("markerSchema"), STR("[]"));
	write_facts(o);
	json_out_end(&o->j, '}');
}

int firefox_write(struct firefox_writer *o)
{
	int r;

	json_out_begin(&o->j, '{');
	write_meta(o);
	write_raw(o, STR("libs"), STR("[]"));
	write_shared(o);
	r = write_threads(o);
	json_out_end(&o->j, '}');
	buf_addc(o->j.out, '\n');
	return r ? r : o->j.out->error;
}
