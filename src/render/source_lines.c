/* SPDX-License-Identifier: Apache-2.0 */
#include "render/source_lines.h"

#include "base/array.h"
#include "render/tree_int.h"
#include "render/wait_leaf.h"

/* A line of a location that is the function's. */
struct line_of {
	uint32_t file, at; /* string; index into model.lines */
	int64_t line;
};

struct finder {
	const struct model *m;
	struct buf text, scratch;
	struct line_of *found;
	size_t count, cap;
	uint32_t *row_of;  /* by index into model.lines: row of @rows + 1; 0: another function's */
	uint32_t *seen_in; /* by row: number of the sample that counted it, + 1 */
	struct source_lines rows;
};

static void finder_release(struct finder *f)
{
	buf_release(&f->text);
	buf_release(&f->scratch);
	free(f->found);
	free(f->row_of);
	free(f->seen_in);
	source_lines_release(&f->rows);
}

void source_lines_release(struct source_lines *s)
{
	free(s->items);
	*s = (struct source_lines){ 0 };
}

/* Every line of every location that has the function's name, kind and module. A location without lines has none to
 * tell of: its address is its name. */
static int find_all(struct finder *f, const struct tree_step *wanted)
{
	const struct model *m = f->m;

	for (uint32_t id = 1; id < m->locations_count; id++) {
		const struct model_location *location = &m->locations[id];

		for (uint32_t i = 0; i < location->line_count; i++) {
			const struct model_line *line = &m->lines[location->first_line + i];
			struct tree_name name;
			int r = tree_name_of(m, &(struct frame_style){ 0 }, id, i, &f->text, &name);

			if (r == 0 && !tree_step_fits(wanted, name.text, name.kind, name.module, &f->scratch))
				continue;
			r = r ? r : array_grow(&f->found, &f->cap, f->count, m->lines_count);
			if (r < 0)
				return r;
			f->found[f->count++] = (struct line_of){ m->functions[line->function].filename,
								 location->first_line + i, line->line };
		}
	}
	return f->scratch.error;
}

static int by_place(const void *a, const void *b)
{
	const struct line_of *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return 0;
}

/* One row for each file and line. */
static int number_rows(struct finder *f)
{
	f->rows.items = calloc(f->count, sizeof(*f->rows.items));
	f->seen_in = calloc(f->count, sizeof(*f->seen_in));
	f->row_of = calloc(f->m->lines_count, sizeof(*f->row_of));
	if (!f->rows.items || !f->seen_in || !f->row_of)
		return -ENOMEM;
	qsort(f->found, f->count, sizeof(*f->found), by_place);
	for (size_t i = 0; i < f->count; i++) {
		if (!i || by_place(&f->found[i - 1], &f->found[i]))
			f->rows.items[f->rows.count++] =
				(struct source_line){ .file = f->found[i].file, .line = f->found[i].line };
		f->row_of[f->found[i].at] = (uint32_t)f->rows.count;
	}
	return 0;
}

/* Both are values of a profile: not above INT64_MAX. */
static void add_to(uint64_t *sum, uint64_t value)
{
	*sum = (uint64_t)saturating_add((int64_t)*sum, (int64_t)value);
}

static void add_sample(struct finder *f, uint32_t number, uint32_t stack, uint64_t value)
{
	const struct model *m = f->m;
	bool is_leaf = true, is_in = false;

	for (uint32_t at = stack; at; at = m->stacks[at].parent) {
		const struct model_location *location = &m->locations[m->stacks[at].location];

		for (uint32_t i = 0; i < location->line_count; i++, is_leaf = false) {
			uint32_t row = f->row_of[location->first_line + i];

			if (!row)
				continue;
			is_in = true;
			add_to(&f->rows.items[row - 1].self, is_leaf ? value : 0);
			add_to(&f->rows.self, is_leaf ? value : 0);
			add_to(&f->rows.items[row - 1].total, f->seen_in[row - 1] == number ? 0 : value);
			f->seen_in[row - 1] = number;
		}
		is_leaf = false;
	}
	add_to(&f->rows.total, is_in ? value : 0);
}

static int by_total(const void *a, const void *b)
{
	const struct source_line *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

int source_lines_find(const struct model *m, size_t value, const struct tree_step *frame, struct source_lines *out)
{
	scoped(finder_release) struct finder f = { .m = m,
						   .text = BUF_INIT(TREE_TEXT_MAX),
						   .scratch = BUF_INIT(TREE_TEXT_MAX * (size_t)3) };
	bool is_wait = wait_leaf_value(m, value);
	int r = find_all(&f, frame);

	if (r == 0 && f.count)
		r = number_rows(&f);
	if (r < 0)
		return r;
	for (size_t i = 0; f.count && i < m->samples_count; i++) {
		int64_t v = model_values(m, &m->samples[i])[value];
		uint32_t stack = m->samples[i].stack;

		if (v > 0)
			add_sample(&f, (uint32_t)i + 1, is_wait ? wait_leaf_stack(m, stack) : stack, (uint64_t)v);
	}
	if (!f.rows.total)
		return -ENOENT;
	qsort(f.rows.items, f.rows.count, sizeof(*f.rows.items), by_total);
	while (!f.rows.items[f.rows.count - 1].total) /* known, but not in these samples */
		f.rows.count--;
	*out = f.rows;
	f.rows = (struct source_lines){ 0 };
	return 0;
}
