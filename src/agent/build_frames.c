/* SPDX-License-Identifier: Apache-2.0 */
/* Raw frames -> locations of a model: each is named once. */
#include <inttypes.h>

#include "agent/build_int.h"
#include "base/utf8.h"
#include "runtime/runtimes.h"
#include "runtime/sources.h"

#define KERNEL_MAPPING STR("[kernel.kallsyms]")

/* Names come from strangers; pprof's strings have to be UTF-8 (protobuf, "Scalar Value Types"). Nothing else is
 * changed. */
int build_text(struct model *m, struct str text, uint32_t *out)
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

int build_texts(struct model *m, const struct str *texts, uint32_t *const *ids, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++)
		r = build_text(m, texts[i], ids[i]);
	return r;
}

static void add_hex(struct buf *out, const struct build_id *id)
{
	for (size_t i = 0; i < id->size; i++)
		buf_addf(out, "%02x", id->bytes[i]);
}

/* A file's addresses are its offsets, so equal code has equal addresses in every process. */
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
	r = build_texts(b->m, (struct str[]){ module.path, buf_str(&hex) },
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

	r = build_texts(
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

/* What is in no stack was folded away: only its place counted. */
void build_mark_used(struct builder *b)
{
	for (size_t i = 1; i < b->a->stack_count; i++)
		b->used[b->a->stacks[i].frame] = true;
}

/* All at once: each file is read once a window. */
int build_ask_lines(struct builder *b)
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
		if (b->a->frames[i].kind == ABI_FRAME_NATIVE && b->used[i])
			places[count++] = place_of(&b->a->frames[i]);
	return debug_lines_ask(b->lines, places, count);
}

static int add_line(struct builder *b, const struct debug_lines_frame *f, struct model_line *out)
{
	struct model_function function = { .kind = MODEL_KIND_NATIVE };
	struct str name = f->name.len ? f->name : STR("[unknown]");
	int r = build_texts(b->m, (struct str[]){ name, f->system_name.len ? f->system_name : name, f->file },
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

/* ---- frames of a language runtime ---- */

/* Of a recording whose runtime this program does not have. */
static const struct runtime unknown_runtime = { .title = "runtime",
						.kind = MODEL_KIND_JIT,
						.error_kind = MODEL_KIND_JIT };

static const struct runtime *runtime_of(const struct builder *b, const struct aggregate_frame *f)
{
	enum abi_runtime id = aggregate_runtime(b->a, f);
	const struct runtime *runtime = b->runtimes ? runtimes_of(b->runtimes, id) : runtime_find(id);

	return runtime ? runtime : &unknown_runtime;
}

/* What stands for frames that are not known. */
static void name_stand_in(enum aggregate_function_kind kind, const char *title, char out[64])
{
	switch (kind) {
	case AGGREGATE_FUNCTION_GAP:
		snprintf(out, 64, "[missing %s frames]", title);
		break;
	case AGGREGATE_FUNCTION_TRUNCATED:
		snprintf(out, 64, "[Truncated %s Stack]", title);
		break;
	default:
		snprintf(out, 64, "[Lost Symbol]");
	}
}

static int resolve_stand_in(struct builder *b, const struct runtime *runtime, enum aggregate_function_kind kind,
			    uint32_t *out)
{
	struct model_mapping row = { .flags = MODEL_HAS_FUNCTIONS };
	uint32_t mapping = 0;
	struct symbol symbol;
	char name[64];
	int r = model_add_string(b->m, model_kind_mapping(runtime->error_kind), &row.filename);

	name_stand_in(kind, runtime->title, name);
	symbol = (struct symbol){ .name = str_of(name) };
	if (r == 0)
		r = model_add_mapping(b->m, &row, &mapping);
	return r < 0 ? r : add_location(b, mapping, 0, &symbol, runtime->error_kind, out);
}

/* "[RUNTIME]", or "[RUNTIME:DISTRIBUTION]". */
static int add_runtime_mapping(struct builder *b, enum model_kind of, struct str distribution, uint32_t *out)
{
	scoped(buf_release) struct buf name = BUF_INIT(KIB(64));
	struct str kind = model_kind_mapping(of);
	struct model_mapping row = { .flags = MODEL_HAS_FUNCTIONS | MODEL_HAS_FILENAMES | MODEL_HAS_LINE_NUMBERS };
	int r;

	buf_adds(&name, str_first(kind, kind.len - 1));
	if (distribution.len)
		buf_addc(&name, ':');
	buf_adds(&name, distribution);
	buf_addc(&name, ']');
	r = name.error ? name.error : build_text(b->m, buf_str(&name), &row.filename);
	return r < 0 ? r : model_add_mapping(b->m, &row, out);
}

static void find_source(struct builder *b, const struct aggregate_function *f, struct runtime_source *out)
{
	const struct aggregate_origin *origin = &b->a->origins[f->origin];
	const struct runtime_source_file file = { .origin = origin->number,
						  .root_fd = origin->root_fd,
						  .path = intern_get(&b->a->strings, f->file),
						  .version = intern_get(&b->a->strings, f->version) };

	runtime_sources_find(b->sources, f->runtime, &file, out);
}

static int add_qualified(struct builder *b, const struct runtime *runtime, struct str package, struct str name,
			 uint32_t *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));

	if (!package.len && !runtime->readable)
		return build_text(b->m, name, out);
	buf_adds(&text, package);
	if (package.len)
		buf_addc(&text, '.');
	if (runtime->readable)
		runtime->readable(name, &text);
	else
		buf_adds(&text, name);
	return text.error ? text.error : build_text(b->m, buf_str(&text), out);
}

/* One function of a frame; *mapping: where its code is. */
static int add_runtime_line(struct builder *b, const struct runtime *runtime, const struct aggregate_function *f,
			    const struct aggregate_place *place, struct model_line *line, uint32_t *mapping)
{
	struct model_function function = { .kind = f->shown ? f->shown : runtime->kind };
	struct str name = f->name ? intern_get(&b->a->strings, f->name) : STR("[unknown]"); /* "" is a name, too */
	scoped(buf_release) struct buf plain = BUF_INIT(MIB(1)), room = BUF_INIT(KIB(64));
	struct build_function shown;
	struct runtime_source source;
	int r = build_map_function(b, f, place, &room, &shown);

	find_source(b, f, &source);
	function.start_line = shown.first_line;
	*line = (struct model_line){ .line = shown.place.line, .column = shown.place.column };
	if (r == 0)
		r = add_qualified(b, runtime, source.package, f->name ? shown.name : name, &function.name);
	if (runtime->plain)
		runtime->plain(name, &plain);
	if (r == 0)
		r = build_texts(b->m, (struct str[]){ runtime->plain ? buf_str(&plain) : name, shown.file },
				(uint32_t *[]){ &function.system_name, &function.filename }, 2);
	if (function.system_name == function.name) /* pprof would take "<module>" for an argument of a C++ template */
		function.system_name = 0;
	if (r == 0)
		r = add_runtime_mapping(b, runtime->kind, source.distribution, mapping);
	return r < 0 ? r : model_add_function(b->m, &function, &line->function);
}

/* The location lies in the mapping of the outermost function: the others were inlined into it. */
static int resolve_runtime(struct builder *b, const struct aggregate_frame *frame, struct symbol *symbol, uint32_t *out)
{
	const struct runtime *runtime = runtime_of(b, frame);
	size_t count = aggregate_functions(b->a, frame);
	struct model_location location = { .line_count = (uint32_t)count };
	int r = 0;

	must(count <= LINES_MAX);
	for (size_t i = 0; i < count && r == 0; i++) {
		struct aggregate_place place;
		const struct aggregate_function *f = aggregate_function(b->a, frame, i, &place);

		symbol->has_name = f->kind != AGGREGATE_FUNCTION_LOST;
		if (f->kind != AGGREGATE_FUNCTION_NAMED)
			return resolve_stand_in(b, runtime, f->kind, out);
		r = add_runtime_line(b, runtime, f, &place, &b->room->lines[i], &location.mapping);
	}
	if (r == 0 && count > 1)
		b->m->mappings[location.mapping].flags |= MODEL_HAS_INLINE_FRAMES;
	return r < 0 ? r : model_add_location(b->m, &location, b->room->lines, out);
}

/* ---- phases of a runtime ---- */

static int add_phase(struct builder *b, const struct runtime *runtime, const struct runtime_phase *phase)
{
	struct model_mapping row = { .flags = MODEL_HAS_FUNCTIONS };
	const struct symbol symbol = { .name = str_of(phase->name) };
	struct build_phase *new = &b->phase[b->phase_count];
	uint32_t mapping = 0;
	int r = model_add_string(b->m, model_kind_mapping(runtime->kind), &row.filename);

	if (r == 0)
		r = model_add_mapping(b->m, &row, &mapping);
	if (r == 0)
		r = add_location(b, mapping, 0, &symbol, runtime->kind, &new->location);
	new->runtime = runtime;
	new->name = phase->name;
	b->phase_count += r == 0;
	return r;
}

/* Phases of one name are one. */
static int note_phase(struct builder *b, const struct aggregate_frame *f, const struct symbol *symbol, uint8_t *out)
{
	const struct runtime_binary *binary =
		b->runtimes && symbol->has_name ? runtimes_file(b->runtimes, f->owner) : NULL;
	const struct runtime_phase *phase =
		binary ? runtime_phase_of(binary->runtime->phases, symbol->system_name) : NULL;
	size_t i = 0;
	int r = 0;

	if (!phase)
		return 0;
	while (i < b->phase_count &&
	       (b->phase[i].runtime != binary->runtime || strcmp(b->phase[i].name, phase->name) != 0))
		i++;
	if (i == RUNTIME_PHASES_MAX)
		return 0;
	if (i == b->phase_count)
		r = add_phase(b, binary->runtime, phase);
	*out = (uint8_t)(i + 1);
	return r;
}

int build_thread_frame(struct builder *b, struct str name, uint32_t tid, uint32_t *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));

	if (name.len)
		buf_addf(&text, "[" STR_FMT " tid=%u]", STR_ARG(name), tid);
	else
		buf_addf(&text, "[tid=%u]", tid);
	return text.error ? text.error
			  : add_location(b, 0, 0, &(struct symbol){ .name = buf_str(&text) }, MODEL_KIND_NATIVE, out);
}

int build_frames(struct builder *b)
{
	for (size_t i = 0; i < b->a->frame_count; i++) {
		const struct aggregate_frame *f = &b->a->frames[i];
		struct symbol symbol = { 0 };
		int r;

		if (!b->used[i])
			continue;
		switch (f->kind) {
		case ABI_FRAME_NATIVE:
			r = resolve_native(b, f, &symbol, &b->locations[i]);
			if (r == 0)
				r = note_phase(b, f, &symbol, &b->phases[i]);
			break;
		case ABI_FRAME_KERNEL:
			r = resolve_kernel(b, f, &symbol, &b->locations[i]);
			break;
		case ABI_FRAME_JIT:
			r = resolve_jit(b, f, &symbol, &b->locations[i]);
			break;
		case ABI_FRAME_RUNTIME:
			r = resolve_runtime(b, f, &symbol, &b->locations[i]);
			break;
		default:
			r = resolve_unknown(b, f, &symbol, &b->locations[i]);
		}
		if (r < 0)
			return r;
		b->unnamed[i] = !symbol.has_name;
		if (b->codes)
			b->codes[i] = (struct window_code){ .offset = symbol.address - symbol.start,
							    .has_name = symbol.has_name,
							    .is_return = f->flags & ABI_FRAME_RETURN };
		b->leaves_cpu[i] = f->kind == ABI_FRAME_KERNEL && str_starts(symbol.name, STR("__schedule"));
	}
	return 0;
}
