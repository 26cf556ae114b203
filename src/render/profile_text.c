/* SPDX-License-Identifier: Apache-2.0 */
#include "render/profile_text.h"

#include <inttypes.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/safe.h"
#include "base/u64map.h"
#include "base/utf8.h"

#define TEXT_MAX GIB(4)
#define NAME_MAX_BYTES MIB(1)
#define UNKNOWN STR("[unknown]")

enum { LOST_USER = 1, LOST_KERNEL = 2 }; /* flags of a row: parts that are missing */

struct row {
	uint32_t process, comm, stack; /* comm: string of the model */
	uint32_t lost;                 /* LOST_... */
	uint64_t count;
	size_t at, len; /* in the text */
};

struct writer {
	const struct window *w;
	const struct model *m;
	const struct profile_text_config *cfg;
	struct buf text, name;
	struct row *rows;
	size_t count, cap;
	uint32_t *path; /* of the stack at hand: locations, leaf first */
	size_t path_cap, path_count, kernel_count;
	struct u64map stacks; /* those that are kept */
};

static void writer_release(struct writer *t)
{
	buf_release(&t->text);
	buf_release(&t->name);
	free(t->rows);
	free(t->path);
	u64map_release(&t->stacks);
}

/* ---- frames ---- */

static void add_clean(struct writer *t, struct str name)
{
	while (name.len) {
		int32_t code = utf8_next(&name);

		if (code < 0)
			utf8_add(&t->text, 0xfffd);
		else if (safe_hides((uint32_t)code))
			buf_addc(&t->text, '?');
		else if (code == ';' && t->cfg->folded)
			buf_addc(&t->text, ':');
		else
			utf8_add(&t->text, (uint32_t)code);
	}
}

static const struct model_function *function_of(const struct model *m, uint32_t location, uint32_t line)
{
	const struct model_location *row = &m->locations[location];

	return line < row->line_count ? &m->functions[m->lines[row->first_line + line].function] : NULL;
}

static bool is_kernel(const struct model *m, uint32_t location)
{
	return model_location_kind(m, location) == MODEL_KIND_KERNEL;
}

static const struct window_code *code_of(const struct writer *t, uint32_t location)
{
	return location < t->w->code_count ? &t->w->codes[location] : NULL;
}

/* Frames of runtimes and inlined ones have names of their own; of a symbol table's, @line is the last. */
static bool is_symbol(const struct model *m, uint32_t location, uint32_t line)
{
	const struct model_function *f = function_of(m, location, line);

	return line + 1 >= m->locations[location].line_count && (!f || !model_kind_is_runtime(f->kind));
}

static void add_name(struct writer *t, uint32_t location, uint32_t line)
{
	const struct model_function *f = function_of(t->m, location, line);
	const struct window_code *code = code_of(t, location);

	buf_clear(&t->name);
	if (is_symbol(t->m, location, line) && code && !code->has_name)
		buf_adds(&t->name, UNKNOWN);
	else if (f && model_kind_is_runtime(f->kind))
		frame_text_name(t->m, &t->cfg->style, f, &t->name);
	else
		model_frame_name(t->m, location, line, &t->name);
	add_clean(t, t->name.error ? STR("[name too long]") : buf_str(&t->name));
}

/* Where the code lies: "kernel" or the module of the kernel, the last part of the file's path. */
static struct str module_of(const struct writer *t, uint32_t location, uint32_t line)
{
	const struct model_function *f = function_of(t->m, location, line);
	uint32_t mapping = t->m->locations[location].mapping;
	struct str name = STR("");

	if (f && (f->kind == MODEL_KIND_KERNEL || model_kind_is_runtime(f->kind)))
		name = model_string(t->m, f->filename);
	else if (mapping)
		name = model_string(t->m, t->m->mappings[mapping].filename);
	if (str_eq(name, model_kind_mapping(MODEL_KIND_KERNEL)))
		return STR("kernel");
	name = str_base(name);
	if (name.len > 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']')
		name = str_n(name.ptr + 1, name.len - 2);
	return name;
}

static void add_module(struct writer *t, const struct row *row, uint32_t location, uint32_t line)
{
	const struct model_function *f = function_of(t->m, location, line);
	struct str module = module_of(t, location, line);

	if (f && f->kind == MODEL_KIND_JIT) {
		buf_addf(&t->text, " [perf-%" PRIu32 ".map]", t->m->processes[row->process].pid);
	} else if (module.len) {
		buf_adds(&t->text, STR(" ["));
		add_clean(t, module);
		buf_addc(&t->text, ']');
	}
}

static void add_annotation(struct writer *t, uint32_t location)
{
	if (t->cfg->annotated && is_kernel(t->m, location))
		buf_adds(&t->text, STR("_[k]"));
}

static uint64_t base_of(const struct writer *t, const struct row *row, uint32_t mapping, uint64_t offset)
{
	size_t low = 0, high = t->w->base_count;

	while (low < high) {
		const struct window_base *at = &t->w->bases[(low + high) / 2];

		if (at->process < row->process || (at->process == row->process && at->mapping < mapping))
			low = (low + high) / 2 + 1;
		else
			high = (low + high) / 2;
	}
	for (; low < t->w->base_count; low++) {
		const struct window_base *at = &t->w->bases[low];

		if (at->process != row->process || at->mapping != mapping)
			break;
		if (offset >= at->first && offset < at->end)
			return at->base;
	}
	return 0;
}

/* Functions of runtimes have none, and of code that was unmapped it is not known: blanks. */
static void add_address(struct writer *t, const struct row *row, uint32_t location, uint32_t line)
{
	const struct model_location *l = &t->m->locations[location];
	const struct window_code *code = code_of(t, location);
	const struct model_function *f = function_of(t->m, location, line);
	bool is_file = l->mapping && (!f || f->kind == MODEL_KIND_NATIVE);
	uint64_t base = is_file ? base_of(t, row, l->mapping, l->address) : 0;
	uint64_t address = base + l->address + (code && code->is_return ? 1 : 0);

	if ((f && model_kind_is_runtime(f->kind)) || (is_file && !base))
		buf_addf(&t->text, "%18s ", "");
	else if (is_kernel(t->m, location))
		buf_addf(&t->text, "0x%-16" PRIx64 " ", address);
	else
		buf_addf(&t->text, "0x%016" PRIx64 " ", address);
}

static void add_block_frame(struct writer *t, const struct row *row, uint32_t location, uint32_t line)
{
	const struct window_code *code = code_of(t, location);

	buf_adds(&t->text, STR("    "));
	if (t->cfg->addresses)
		add_address(t, row, location, line);
	add_name(t, location, line);
	add_annotation(t, location);
	if (is_symbol(t->m, location, line) && code && code->has_name)
		buf_addf(&t->text, "+0x%" PRIx64, code->offset);
	add_module(t, row, location, line);
	buf_addc(&t->text, '\n');
}

/* ---- stacks ---- */

static uint32_t lines_of(const struct model *m, uint32_t location)
{
	return MAX(m->locations[location].line_count, UINT32_C(1)); /* one without lines is a frame, too */
}

static int take_path(struct writer *t, uint32_t stack)
{
	t->path_count = t->kernel_count = 0;
	for (; stack; stack = t->m->stacks[stack].parent) {
		uint32_t location = t->m->stacks[stack].location;
		int r = array_grow(&t->path, &t->path_cap, t->path_count, UINT32_MAX);

		if (r < 0)
			return r;
		if (t->kernel_count == t->path_count && is_kernel(t->m, location))
			t->kernel_count++;
		t->path[t->path_count++] = location;
	}
	return 0;
}

static size_t shown(const struct writer *t, size_t count)
{
	return t->cfg->depth_max ? MIN(count, t->cfg->depth_max) : count;
}

/* Between two parts that are both there. */
static bool is_delimited(const struct writer *t, const struct row *row)
{
	return t->cfg->delimited && !t->cfg->no_user && !t->cfg->no_kernel && !row->lost && t->kernel_count &&
	       t->path_count > t->kernel_count;
}

static void add_block_part(struct writer *t, const struct row *row, size_t first, size_t count)
{
	for (size_t i = first; i < first + shown(t, count); i++)
		for (uint32_t line = 0; line < lines_of(t->m, t->path[i]); line++)
			add_block_frame(t, row, t->path[i], line);
}

static void add_block(struct writer *t, const struct row *row)
{
	if (row->lost & LOST_KERNEL)
		buf_adds(&t->text, STR("    [Missed Kernel Stack]\n"));
	else
		add_block_part(t, row, 0, t->kernel_count);
	if (is_delimited(t, row))
		buf_adds(&t->text, STR("    --\n"));
	if (row->lost & LOST_USER)
		buf_adds(&t->text, STR("    [Missed User Stack]\n"));
	else
		add_block_part(t, row, t->kernel_count, t->path_count - t->kernel_count);
	buf_addf(&t->text, "    %-16s ", "-");
	add_clean(t, model_string(t->m, row->comm));
	buf_addf(&t->text, " (%" PRIu32 ")\n", t->m->processes[row->process].pid);
}

static void add_folded_part(struct writer *t, size_t first, size_t count)
{
	for (size_t i = first + shown(t, count); i-- > first;)
		for (uint32_t line = lines_of(t->m, t->path[i]); line-- > 0;) {
			buf_addc(&t->text, ';');
			add_name(t, t->path[i], line);
			add_annotation(t, t->path[i]);
		}
}

static void add_folded(struct writer *t, const struct row *row)
{
	add_clean(t, model_string(t->m, row->comm));
	if (row->lost & LOST_USER)
		buf_adds(&t->text, STR(";[Missed User Stack]"));
	else
		add_folded_part(t, t->kernel_count, t->path_count - t->kernel_count);
	if (is_delimited(t, row))
		buf_adds(&t->text, STR(";-"));
	if (row->lost & LOST_KERNEL)
		buf_adds(&t->text, STR(";[Missed Kernel Stack]"));
	else
		add_folded_part(t, 0, t->kernel_count);
}

static int add_text(struct writer *t, struct row *row)
{
	int r = take_path(t, row->stack);

	if (r < 0)
		return r;
	row->at = t->text.len;
	if (t->cfg->folded)
		add_folded(t, row);
	else
		add_block(t, row);
	row->len = t->text.len - row->at;
	return t->text.error;
}

/* ---- rows ---- */

/* Is there room for this part of a stack? Return: 0, -ENOSPC or -ENOMEM. */
static int keep_part(struct writer *t, const uint32_t *locations, size_t count, uint64_t salt)
{
	uint64_t key = XXH3_64bits_withSeed(locations, count * sizeof(*locations), salt);
	uint32_t any;

	if (!t->cfg->stack_max || !count || u64map_get(&t->stacks, key, &any) == 0)
		return 0;
	if (t->stacks.used >= t->cfg->stack_max)
		return -ENOSPC;
	return u64map_put(&t->stacks, key, 0);
}

static int keep_stack(struct writer *t, struct row *row, struct profile_text_missing *missing)
{
	int r = keep_part(t, t->path + t->kernel_count, t->path_count - t->kernel_count, LOST_USER);

	if (r == -ENOSPC)
		row->lost |= LOST_USER;
	if (r == 0 || r == -ENOSPC)
		r = keep_part(t, t->path, t->kernel_count, LOST_KERNEL);
	if (r == -ENOSPC)
		row->lost |= LOST_KERNEL;
	if (row->lost)
		missing->stacks_full = true;
	return r == -ENOSPC ? 0 : r;
}

/* A part that could not be taken at all; the end says why, and is of the user part unless it names the other. */
static uint32_t lost_of(const struct writer *t, const struct model_sample *s)
{
	struct str end = model_string(t->m, s->end);

	if (!str_starts(end, STR("cut:")))
		return 0;
	if (str_eq(end, STR("cut:kernel-stack")))
		return !t->kernel_count && !t->cfg->no_kernel ? LOST_KERNEL : 0;
	return t->path_count == t->kernel_count && !t->cfg->no_user ? LOST_USER : 0;
}

static int take_sample(struct writer *t, const struct model_sample *s, struct profile_text_missing *missing)
{
	const struct model_thread *thread = &t->m->threads[s->thread];
	int64_t count = model_values(t->m, s)[model_count_value(t->m)];
	struct row row = { .process = s->process,
			   .comm = s->thread ? thread->name : t->m->processes[s->process].comm,
			   .stack = s->stack,
			   .count = (uint64_t)count };
	int r;

	if (count <= 0)
		return 0;
	r = take_path(t, s->stack);
	if (r == 0)
		r = keep_stack(t, &row, missing);
	if (r == 0)
		r = array_grow(&t->rows, &t->cap, t->count, UINT32_MAX);
	if (r < 0)
		return r;
	row.lost |= lost_of(t, s);
	t->rows[t->count++] = row;
	return 0;
}

static int order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_what(const void *a, const void *b, void *model)
{
	const struct row *x = a, *y = b;
	const struct model *m = model;
	int r = order(m->processes[x->process].pid, m->processes[y->process].pid);

	r = r ? r : order(x->comm, y->comm);
	r = r ? r : order(x->stack, y->stack);
	return r ? r : order(x->lost, y->lost);
}

/* With addresses a program that was started anew is another one. */
static int by_address(const void *a, const void *b, void *model)
{
	const struct row *x = a, *y = b;
	int r = by_what(a, b, model);

	return r ? r : order(x->process, y->process);
}

static struct str text_of(const struct row *row, const char *text)
{
	return str_n(text + row->at, row->len);
}

static int by_text(const void *a, const void *b, void *text)
{
	return str_cmp(text_of(a, text), text_of(b, text));
}

/* The most frequent one comes last, next to the prompt. */
static int by_count(const void *a, const void *b, void *text)
{
	const struct row *x = a, *y = b;
	int r = order(x->count, y->count);

	return r ? r : by_text(a, b, text);
}

/* Rows that are equal become one. */
static void add_up(struct writer *t, int (*compare)(const void *a, const void *b, void *ctx), void *ctx)
{
	size_t kept = 0;

	if (!t->count)
		return;
	qsort_r(t->rows, t->count, sizeof(*t->rows), compare, ctx);
	for (size_t i = 1; i < t->count; i++) {
		if (compare(&t->rows[kept], &t->rows[i], ctx) == 0)
			t->rows[kept].count += t->rows[i].count;
		else
			t->rows[++kept] = t->rows[i];
	}
	t->count = kept + 1;
}

static void limit_rows(struct writer *t, struct profile_text_missing *missing)
{
	size_t max = t->cfg->row_max ? MIN(t->count, t->cfg->row_max) : t->count;

	for (size_t i = max; i < t->count; i++)
		missing->left_out += t->rows[i].count;
	t->count = max;
	for (size_t i = 0; i < t->count; i++)
		missing->parts += (t->rows[i].lost & LOST_USER ? 1 : 0) + (t->rows[i].lost & LOST_KERNEL ? 1 : 0);
}

static int collect(struct writer *t, struct profile_text_missing *missing)
{
	int r = 0;

	for (size_t i = 0; i < t->m->samples_count && r == 0; i++)
		r = take_sample(t, &t->m->samples[i], missing);
	if (r < 0)
		return r;
	add_up(t, t->cfg->addresses ? by_address : by_what, (void *)t->m);
	limit_rows(t, missing);
	for (size_t i = 0; i < t->count && r == 0; i++)
		r = add_text(t, &t->rows[i]);
	if (r == 0 && t->cfg->folded && !t->cfg->no_sum)
		add_up(t, by_text, t->text.ptr);
	if (r == 0 && t->count)
		qsort_r(t->rows, t->count, sizeof(*t->rows), by_count, t->text.ptr);
	return r;
}

int profile_text(const struct window *w, const struct profile_text_config *cfg, struct buf *out,
		 struct profile_text_missing *missing)
{
	scoped(writer_release) struct writer t = {
		.w = w, .m = w->model, .cfg = cfg, .text = BUF_INIT(TEXT_MAX), .name = BUF_INIT(NAME_MAX_BYTES)
	};
	const size_t start = out->len;
	int r;

	u64map_init(&t.stacks, cfg->stack_max);
	r = collect(&t, missing);
	for (size_t i = 0; i < t.count && r == 0; i++) {
		buf_adds(out, text_of(&t.rows[i], t.text.ptr));
		if (cfg->folded)
			buf_addf(out, " %" PRIu64 "\n", t.rows[i].count);
		else
			buf_addf(out, "        %" PRIu64 "\n\n", t.rows[i].count);
		r = out->error;
	}
	if (r < 0)
		out->len = start;
	return r;
}
