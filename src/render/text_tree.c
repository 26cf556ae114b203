/* SPDX-License-Identifier: Apache-2.0 */
/* The call tree of the text report. Nothing here recurses: a stack may be as deep as its maker liked. */
#include "render/terminal.h"
#include "render/text_int.h"

#define NAME_MAX_BYTES MIB(1)
#define INDENT_LEVELS_MAX 40 /* deeper levels say their number instead of moving further right */

/* A node that is shown. */
struct shown {
	uint32_t node;
	uint32_t level; /* of indentation: a lone callee stands under its caller without moving right */
	bool is_lone;
	uint32_t left_out;     /* callees below the threshold */
	int64_t left_value;    /* what they are worth */
	uint32_t first, count; /* shown callees: in `shown`, largest first */
};

struct tree {
	const struct window *w;
	const struct render_text_config *cfg;
	const struct calls *c;
	struct shown *shown;
	size_t count;
};

static bool is_kept(const struct tree *t, uint32_t node)
{
	const double value = (double)saturating_abs(t->c->nodes[node].total);

	return value > 0 && value * 100 >= t->cfg->tree_min_percent * (double)t->c->total;
}

static int compare_shown(const void *a, const void *b, void *tree)
{
	const struct tree *t = tree;
	const struct model *m = t->w->model;
	const struct calls_node *x = &t->c->nodes[((const struct shown *)a)->node];
	const struct calls_node *y = &t->c->nodes[((const struct shown *)b)->node];
	const struct calls_function *fx = &t->c->functions[x->function], *fy = &t->c->functions[y->function];
	const int64_t total_x = saturating_abs(x->total), total_y = saturating_abs(y->total);
	int order;

	if (total_x != total_y)
		return total_x > total_y ? -1 : 1;
	order = str_cmp(model_string(m, fx->name), model_string(m, fy->name));
	order = order ? order : str_cmp(model_string(m, fx->module), model_string(m, fy->module));
	return order ? order : (fx->location > fy->location) - (fx->location < fy->location);
}

/* Breadth first: the callees of shown[i] are appended behind all that is there. */
static void add_callees(struct tree *t, size_t i)
{
	struct shown *s = &t->shown[i];
	const struct calls_node *node = &t->c->nodes[s->node];

	s->first = (uint32_t)t->count;
	for (uint32_t child = node->first_child; child; child = t->c->nodes[child].next_sibling) {
		if (is_kept(t, child)) {
			t->shown[t->count++] = (struct shown){ .node = child };
		} else if (t->c->nodes[child].total) {
			s->left_out++;
			s->left_value = saturating_add(s->left_value, t->c->nodes[child].total);
		}
	}
	s->count = (uint32_t)(t->count - s->first);
	qsort_r(t->shown + s->first, s->count, sizeof(*t->shown), compare_shown, t);
	for (uint32_t k = 0; k < s->count; k++) {
		const bool is_lone = i && s->count == 1 && !s->left_out && !node->self;

		t->shown[s->first + k].level = s->level + (is_lone ? 0 : 1); /* those under the root: 1 */
		t->shown[s->first + k].is_lone = is_lone;
	}
}

static void indent(struct buf *out, uint32_t level, size_t *used)
{
	const size_t levels = MIN(level, (uint32_t)INDENT_LEVELS_MAX);

	terminal_pad(out, 2 * levels);
	*used = 17 + 2 * levels;
	if (level > INDENT_LEVELS_MAX) {
		const size_t before = out->len;

		buf_addf(out, "(%u) ", level);
		*used += out->len - before;
	}
}

static void add_line(const struct tree *t, const struct shown *s, struct buf *name, struct buf *out)
{
	const struct calls_node *node = &t->c->nodes[s->node];
	const struct calls_function *f = &t->c->functions[node->function];
	const struct render_top_row row = {
		.function_name = f->name, .module = f->module, .kind = f->kind, .location = f->location, .line = f->line
	};
	size_t used;

	text_percent(out, node->total, t->c->total);
	buf_addc(out, ' ');
	text_percent(out, node->self, t->c->total);
	buf_adds(out, STR("  "));
	indent(out, s->level - 1, &used);
	buf_adds(out, s->is_lone ? STR("  ") : STR("- "));
	buf_clear(name);
	text_function(name, t->w->model, t->cfg, &row);
	text_name(out, t->cfg, used + 2, name->error ? STR("[name too long]") : buf_str(name));
}

static void add_left_out(const struct tree *t, const struct shown *s, struct buf *out)
{
	size_t used;

	if (!s->left_out)
		return;
	text_percent(out, s->left_value, t->c->total);
	terminal_pad(out, 10);
	indent(out, s->level, &used);
	buf_addf(out, "(%u below %.2f%%)\n", s->left_out, t->cfg->tree_min_percent);
}

/* Depth first, with one explicit entry per level: the next callee to show and how many are left. */
struct open {
	uint32_t at, first_unseen, left;
};

static int print(const struct tree *t, struct buf *out)
{
	scoped(freep) struct open *path = calloc(t->count + 1, sizeof(*path));
	scoped(buf_release) struct buf name = BUF_INIT(NAME_MAX_BYTES);
	size_t depth = 1;

	if (!path)
		return -ENOMEM;
	path[0] = (struct open){ 0, t->shown[0].first, t->shown[0].count };
	while (depth) {
		struct open *top = &path[depth - 1];
		const struct shown *s;

		if (!top->left) {
			add_left_out(t, &t->shown[top->at], out);
			depth--;
			continue;
		}
		top->left--;
		s = &t->shown[top->first_unseen];
		add_line(t, s, &name, out);
		path[depth++] = (struct open){ top->first_unseen++, s->first, s->count };
	}
	return 0;
}

int text_tree(const struct window *w, const struct render_text_config *cfg, const struct calls *c, struct buf *out)
{
	struct tree t = { .w = w, .cfg = cfg, .c = c };
	scoped(freep) struct shown *shown = NULL;
	size_t kept = 1;

	for (uint32_t i = 1; i < c->node_count; i++)
		kept += is_kept(&t, i);
	shown = calloc(kept, sizeof(*shown));
	if (!shown)
		return -ENOMEM;
	t.shown = shown;
	t.count = 1;
	/* A kept node may hang under one that is not (values can be negative), then it is not reached: kept is enough.
	 */
	for (size_t i = 0; i < t.count; i++)
		add_callees(&t, i);
	buf_adds(out, STR("\nCall tree (callers above callees; \"-\" begins a branch)\n"));
	buf_adds(out, STR("  total    self  function\n"));
	return print(&t, out);
}
