/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/build_window.h"

#include <inttypes.h>
#include <math.h>

#include "agent/stack_end.h"
#include "base/utf8.h"

#define MODEL_STRING_BYTES_MAX MIB(256)
#define LINES_MAX DEBUG_LINES_DEPTH_MAX
#define TRIM_MAX 8 /* frames between a switch and the program that sees it */
#define KERNEL_MAPPING STR("[kernel.kallsyms]")

enum root_state { ROOT_UNKNOWN, ROOT_PROVEN, ROOT_UNPROVEN };

struct line_room { /* the lines of the frame at hand */
	struct debug_lines_frame frames[LINES_MAX];
	struct model_line lines[LINES_MAX];
};

struct builder {
	const struct aggregate *a;
	struct symbols *symbols;
	struct debug_lines *lines; /* or NULL */
	struct debug_lines_stats lines_before;
	struct line_room *room;
	struct model *m;
	uint32_t *locations;         /* per raw frame */
	bool *unnamed;               /* per raw frame */
	bool *leaves_cpu;            /* per raw frame: the kernel's function that switches threads */
	uint8_t *roots;              /* per raw frame: enum root_state */
	uint32_t *stacks;            /* per raw stack */
	uint32_t *processes;         /* per raw process */
	struct u64map file_mappings; /* file id -> mapping of the model */
	uint32_t kernel_mapping;
	uint64_t user_samples, complete, frames, unnamed_frames, guessed_frames;
	uint64_t cut[STACK_END_COUNT];
};

static void builder_release(struct builder *b)
{
	free(b->room);
	free(b->locations);
	free(b->unnamed);
	free(b->leaves_cpu);
	free(b->roots);
	free(b->stacks);
	free(b->processes);
	u64map_release(&b->file_mappings);
}

/* Names come from strangers; pprof's strings have to be UTF-8 (protobuf, "Scalar Value Types"). Nothing else is
 * changed. */
static int add_text(struct model *m, struct str text, uint32_t *out)
{
	scoped(buf_release) struct buf valid = BUF_INIT(MIB(1));

	if (utf8_valid(text))
		return model_add_string(m, text, out);
	while (text.len) {
		int32_t code = utf8_next(&text);

		utf8_add(&valid, code < 0 ? 0xfffd : (uint32_t)code);
	}
	return valid.error ? valid.error : model_add_string(m, buf_str(&valid), out);
}

static int add_strings(struct model *m, const struct str *texts, uint32_t *const *ids, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++)
		r = add_text(m, texts[i], ids[i]);
	return r;
}

static void add_hex(struct buf *out, const struct build_id *id)
{
	for (size_t i = 0; i < id->size; i++)
		buf_addf(out, "%02x", id->bytes[i]);
}

/* A file's addresses are its offsets: whatever the process mapped where, equal code has equal addresses. */
static int add_file_mapping(struct builder *b, uint32_t file_id, uint32_t *out)
{
	scoped(buf_release) struct buf hex = BUF_INIT(KIB(1));
	struct symbol_module module = { 0 };
	struct model_mapping row = { .limit = UINT64_C(1) << 40, .flags = MODEL_HAS_FUNCTIONS };
	int r;

	if (b->lines && debug_lines_has_file(b->lines, file_id))
		row.flags |= MODEL_HAS_FILENAMES | MODEL_HAS_LINE_NUMBERS | MODEL_HAS_INLINE_FRAMES;
	if (symbols_module(b->symbols, file_id, &module) == 0)
		add_hex(&hex, &module.build_id);
	if (hex.error)
		return hex.error;
	r = add_strings(b->m, (struct str[]){ module.path, buf_str(&hex) },
			(uint32_t *[]){ &row.filename, &row.build_id }, 2);
	return r < 0 ? r : model_add_mapping(b->m, &row, out);
}

/* The mapping of a file, made when its first frame is met. */
static int get_file_mapping(struct builder *b, uint32_t file_id, uint32_t *out)
{
	int r;

	if (u64map_get(&b->file_mappings, file_id, out) == 0)
		return 0;
	r = add_file_mapping(b, file_id, out);
	return r < 0 ? r : u64map_put(&b->file_mappings, file_id, *out);
}

static int add_location(struct builder *b, uint32_t mapping, uint64_t address, const struct symbol *symbol,
			enum model_kind kind, uint32_t *out)
{
	struct model_function function = { .kind = kind };
	struct model_location location = { .mapping = mapping, .address = address, .line_count = 1 };
	struct model_line line = { 0 };
	struct str system_name = symbol->has_name && symbol->system_name.len ? symbol->system_name : symbol->name;
	int r;

	r = add_strings(
		b->m, (struct str[]){ symbol->name, system_name, kind == MODEL_KIND_KERNEL ? symbol->module : STR("") },
		(uint32_t *[]){ &function.name, &function.system_name, &function.filename }, 3);
	if (r == 0)
		r = model_add_function(b->m, &function, &line.function);
	return r < 0 ? r : model_add_location(b->m, &location, &line, out);
}

static struct debug_lines_place place_of(const struct aggregate_frame *f)
{
	return (struct debug_lines_place){ .file_id = f->owner,
					   .offset = f->at,
					   .is_return = f->flags & ABI_FRAME_RETURN };
}

/* All at once: each file is read once a window. */
static int ask_lines(struct builder *b)
{
	scoped(freep) struct debug_lines_place *places = NULL;
	size_t count = 0;

	if (!b->lines)
		return 0;
	debug_lines_stats(b->lines, &b->lines_before);
	places = calloc(b->a->frame_count + 1, sizeof(*places));
	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < b->a->frame_count; i++)
		if (b->a->frames[i].kind == ABI_FRAME_NATIVE)
			places[count++] = place_of(&b->a->frames[i]);
	return debug_lines_ask(b->lines, places, count);
}

static int add_line(struct builder *b, const struct debug_lines_frame *f, struct model_line *out)
{
	struct model_function function = { .kind = MODEL_KIND_NATIVE };
	struct str name = f->name.len ? f->name : STR("[unknown]");
	int r = add_strings(b->m, (struct str[]){ name, f->system_name.len ? f->system_name : name, f->file },
			    (uint32_t *[]){ &function.name, &function.system_name, &function.filename }, 3);

	*out = (struct model_line){ .line = f->line };
	return r < 0 ? r : model_add_function(b->m, &function, &out->function);
}

/* The real function keeps the name that the symbol table gives it: what is shown without lines is shown with them, and
 * DWARF does not know that code was moved to NAME.cold. Only a name that the table lacks comes from DWARF. */
static int add_lines(struct builder *b, uint32_t mapping, uint64_t address, struct symbol *symbol, size_t count,
		     uint32_t *out)
{
	struct model_location location = { .mapping = mapping, .address = address, .line_count = (uint32_t)count };
	struct debug_lines_frame *real = &b->room->frames[count - 1];
	int r = 0;

	if (symbol->has_name || !real->name.len) {
		real->name = symbol->name;
		real->system_name = symbol->has_name ? symbol->system_name : symbol->name;
	} else {
		symbol->has_name = true;
	}
	for (size_t i = 0; i < count && r == 0; i++)
		r = add_line(b, &b->room->frames[i], &b->room->lines[i]);
	return r < 0 ? r : model_add_location(b->m, &location, b->room->lines, out);
}

static int resolve_native(struct builder *b, const struct aggregate_frame *f, struct symbol *symbol, uint32_t *out)
{
	const struct debug_lines_place place = place_of(f);
	bool is_return = f->flags & ABI_FRAME_RETURN;
	uint32_t mapping = 0;
	size_t count = 0;
	int r = get_file_mapping(b, f->owner, &mapping);

	if (r == 0)
		r = symbols_native(b->symbols, f->owner, f->at, is_return, symbol);
	if (r == 0 && b->lines)
		count = debug_lines_get(b->lines, &place, b->room->frames, LINES_MAX);
	if (count)
		return add_lines(b, mapping, f->at - is_return, symbol, count, out);
	return r < 0 ? r : add_location(b, mapping, f->at - is_return, symbol, MODEL_KIND_NATIVE, out);
}

static int resolve_kernel(struct builder *b, const struct aggregate_frame *f, struct symbol *symbol, uint32_t *out)
{
	bool is_return = f->flags & ABI_FRAME_RETURN;
	struct model_mapping row = { .limit = UINT64_MAX, .flags = MODEL_HAS_FUNCTIONS };
	int r = symbols_kernel(b->symbols, f->at, is_return, symbol);

	if (r == 0 && !b->kernel_mapping) {
		r = model_add_string(b->m, KERNEL_MAPPING, &row.filename);
		if (r == 0)
			r = model_add_mapping(b->m, &row, &b->kernel_mapping);
	}
	return r < 0 ? r : add_location(b, b->kernel_mapping, f->at - is_return, symbol, MODEL_KIND_KERNEL, out);
}

/* Every exec of a pid is a world of its own for JIT addresses. */
static uint64_t process_key(const struct aggregate_process *p)
{
	return p->start_ns * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)p->generation << 32 ^ p->pid;
}

static int resolve_jit(struct builder *b, const struct aggregate_frame *f, struct symbol *symbol, uint32_t *out)
{
	const struct aggregate_process *p = &b->a->processes[f->owner];
	bool is_return = f->flags & ABI_FRAME_RETURN;
	struct model_mapping row = { .limit = UINT64_MAX, .flags = MODEL_HAS_FUNCTIONS };
	uint32_t mapping = 0;
	int r = symbols_jit(b->symbols, process_key(p), p->perf_map_fd, f->at, is_return, symbol);

	if (r == 0)
		r = model_add_string(b->m, STR("//anon"), &row.filename);
	if (r == 0)
		r = model_add_mapping(b->m, &row, &mapping);
	return r < 0 ? r : add_location(b, mapping, f->at - is_return, symbol, MODEL_KIND_JIT, out);
}

/* Nothing known was mapped there when the reader looked: the process was gone, or the address is no code at all. */
static int resolve_unknown(struct builder *b, const struct aggregate_frame *f, struct symbol *symbol, uint32_t *out)
{
	char text[32];
	int size = snprintf(text, sizeof(text), "[unknown+0x%" PRIx64 "]", f->at);

	*symbol = (struct symbol){ .name = str_n(text, (size_t)size) };
	return add_location(b, 0, f->at - (f->flags & ABI_FRAME_RETURN ? 1 : 0), symbol, MODEL_KIND_NATIVE, out);
}

static int resolve_frames(struct builder *b)
{
	for (size_t i = 0; i < b->a->frame_count; i++) {
		const struct aggregate_frame *f = &b->a->frames[i];
		struct symbol symbol = { 0 };
		int r;

		switch (f->kind) {
		case ABI_FRAME_NATIVE:
			r = resolve_native(b, f, &symbol, &b->locations[i]);
			break;
		case ABI_FRAME_KERNEL:
			r = resolve_kernel(b, f, &symbol, &b->locations[i]);
			break;
		case ABI_FRAME_JIT:
			r = resolve_jit(b, f, &symbol, &b->locations[i]);
			break;
		default:
			r = resolve_unknown(b, f, &symbol, &b->locations[i]);
		}
		if (r < 0)
			return r;
		b->unnamed[i] = !symbol.has_name;
		b->leaves_cpu[i] = f->kind == ABI_FRAME_KERNEL && str_starts(symbol.name, STR("__schedule"));
	}
	return 0;
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
		int r = add_strings(
			b->m,
			(struct str[]){ intern_get(&b->a->strings, p->comm), intern_get(&b->a->strings, p->container) },
			(uint32_t *[]){ &row.comm, &row.container }, 2);

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

/* Counts the frames of a sample. Return: whether one of them was found by a rule that can be wrong. */
static bool count_frames(struct builder *b, const struct aggregate_sample *s)
{
	uint32_t count = s->is_wait ? 0 : s->count;
	bool guessed = false;

	for (uint32_t at = s->stack; at; at = b->a->stacks[at].parent) {
		uint32_t frame = b->a->stacks[at].frame;

		b->frames += count;
		b->unnamed_frames += b->unnamed[frame] ? count : 0;
		if (!(b->a->frames[frame].flags & ABI_FRAME_GUESSED))
			continue;
		b->guessed_frames += count;
		guessed = true;
	}
	return guessed;
}

static enum stack_end end_of(struct builder *b, const struct aggregate_sample *s)
{
	struct stack_facts facts = { .walk_end = s->user_end,
				     .has_user = s->has_user,
				     .guessed = count_frames(b, s),
				     .kernel_cut = s->kernel_cut };

	if (s->has_user && s->user_end != ABI_END_COMPLETE)
		facts.root_proven = is_root(b, s);
	return stack_end_of(&facts);
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
		int r = add_text(b->m, intern_get(&b->a->strings, s->thread_name), &thread.name);

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
		r = add_strings(m, (struct str[]){ STR("cpu"), STR("nanoseconds") },
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
	b->unnamed = calloc(a->frame_count + 1, sizeof(*b->unnamed));
	b->leaves_cpu = calloc(a->frame_count + 1, sizeof(*b->leaves_cpu));
	b->roots = calloc(a->frame_count + 1, sizeof(*b->roots));
	b->stacks = calloc(a->stack_count, sizeof(*b->stacks));
	b->processes = calloc(a->process_count + 1, sizeof(*b->processes));
	return b->room && b->locations && b->unnamed && b->leaves_cpu && b->roots && b->stacks && b->processes
		       ? 0
		       : -ENOMEM;
}

static void model_freep(struct model **m)
{
	if (*m)
		model_release(*m);
	free(*m);
}

int build_window(const struct aggregate *a, struct symbols *symbols, struct debug_lines *lines, uint32_t frequency_hz,
		 struct window *out)
{
	scoped(model_freep) struct model *m = calloc(1, sizeof(*m));
	scoped(builder_release) struct builder b = { .a = a, .symbols = symbols, .lines = lines, .m = m };
	int r;

	if (!m)
		return -ENOMEM;
	r = model_init(m, MODEL_STRING_BYTES_MAX);
	if (r == 0)
		r = builder_init(&b);
	if (r == 0)
		r = start_model(m, a->with_waits, frequency_hz, out);
	if (r == 0)
		r = ask_lines(&b);
	if (r == 0)
		r = resolve_frames(&b);
	if (r == 0)
		r = add_stacks(&b);
	if (r == 0)
		r = add_processes(&b);
	if (r == 0)
		r = add_samples(&b);
	if (r == 0)
		r = set_counters(&b, out);
	if (r == 0)
		r = set_lines_counters(&b, out);
	if (r < 0)
		return r;
	out->model = m;
	m = NULL;
	return 0;
}
