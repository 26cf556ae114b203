/* SPDX-License-Identifier: Apache-2.0 */
/* A model's samples to a tree. A sample's stack is a path of locations from the leaf up, each with its inlined
 * functions innermost first; the tree grows from the root down. */
#include "base/array.h"
#include "render/tree_int.h"
#include "render/wait_leaf.h"

#define KEY_MAX MIB(64)
#define NAMED_MAX ((size_t)UINT32_MAX)

struct frame_of {
	const struct model *m;
	struct tree_builder *b;
	struct str module;
	uint8_t kind;
	size_t name_len;
	int error;
};

/* A location is in many stacks, but named once. */
struct named {
	uint32_t *first; /* by location: where its frames begin, + 1; 0: not named yet */
	uint32_t *frames;
	size_t count, cap;
};

/* Where a stack of the model ended when it was last added. Stacks share most of their way up: a sample's is walked to
 * the first one that is known below the same root. */
struct reached {
	uint32_t root_1; /* the node of its process and groups, + 1; 0: not added yet */
	uint32_t node, depth;
	uint64_t hash; /* of the path */
};

struct source {
	const struct model *m;
	const struct frame_style *style;
	struct tree_builder b;
	const struct tree_group *groups;
	size_t group_count;
	struct buf key, text;
	struct named named;
	uint32_t *frames; /* of what is above a sample's stack, innermost first */
	size_t count, cap;
	struct reached *reached; /* by stack */
	uint32_t *path;          /* stacks of one sample that are not known yet, leaf first */
	size_t path_cap;
	struct reached root; /* of the last sample */
	uint32_t root_of;    /* its process, + 1; 0: none yet */
};

static void source_release(struct source *s)
{
	tree_builder_release(&s->b);
	buf_release(&s->key);
	buf_release(&s->text);
	free(s->named.first);
	free(s->named.frames);
	free(s->frames);
	free(s->reached);
	free(s->path);
}

static size_t classify_row(struct str key, struct tree_frame *frame, void *ctx)
{
	struct frame_of *of = ctx;

	(void)key;
	frame->kind = of->kind;
	of->error = intern_add(&of->b->modules, of->module, &frame->module);
	return of->name_len;
}

/* Equal name, kind and module: equal frame. The key is these three, apart by what the length of the name says. */
static int find_frame(struct source *s, struct str name, unsigned kind, struct str module, uint32_t *out)
{
	struct frame_of of = { s->m, &s->b, module, (uint8_t)kind, name.len, 0 };
	char tail[] = { 0, (char)kind };
	int r;

	buf_clear(&s->key);
	buf_adds(&s->key, name);
	buf_add(&s->key, tail, sizeof(tail));
	buf_adds(&s->key, module);
	buf_add(&s->key, &of.name_len, sizeof(of.name_len));
	if (s->key.error)
		return s->key.error;
	r = tree_builder_frame(&s->b, buf_str(&s->key), classify_row, &of, out);
	return r ? r : of.error;
}

static int push_frame(struct source *s, uint32_t frame)
{
	int r = array_grow(&s->frames, &s->cap, s->count, TREE_DEPTH_MAX);

	if (r == 0)
		s->frames[s->count++] = frame;
	return r;
}

static int push_name(struct source *s, struct str name, unsigned kind)
{
	uint32_t frame = 0;
	int r = find_frame(s, name, kind, STR(""), &frame);

	return r ? r : push_frame(s, frame);
}

/* A runtime's code has no file that is mapped: what belongs together is what was installed together. */
static int runtime_name(const struct model *m, const struct frame_style *style, uint32_t location, uint32_t line,
			struct buf *text, struct tree_name *out)
{
	const struct model_mapping *mapping = &m->mappings[m->locations[location].mapping];

	buf_clear(text);
	frame_text(m, style, location, line, text);
	out->text = buf_str(text);
	out->module = model_distribution_of_mapping(model_string(m, mapping->filename));
	return text->error;
}

int tree_name_of(const struct model *m, const struct frame_style *style, uint32_t location, uint32_t line,
		 struct buf *text, struct tree_name *out)
{
	const struct model_location *row = &m->locations[location];
	const struct model_function *f = &m->functions[m->lines[row->first_line + line].function];

	out->kind = f->kind;
	if (model_kind_is_function(f->kind))
		return runtime_name(m, style, location, line, text, out);
	out->text = model_string(m, f->name);
	out->module = str_base(model_string(m, m->mappings[row->mapping].filename));
	return 0;
}

/* Line @line of a location, or its address when it has none. */
static int name_line(struct source *s, uint32_t id, uint32_t line, uint32_t *out)
{
	const struct model_location *location = &s->m->locations[id];
	struct tree_name name;
	char text[64];
	int r;

	if (location->line_count) {
		r = tree_name_of(s->m, s->style, id, line, &s->text, &name);
		return r ? r : find_frame(s, name.text, name.kind, name.module, out);
	}
	r = snprintf(text, sizeof(text), "0x%llx", (unsigned long long)location->address);
	return find_frame(s, str_n(text, (size_t)r), MODEL_KIND_NATIVE,
			  str_base(model_string(s->m, s->m->mappings[location->mapping].filename)), out);
}

static int name_location(struct source *s, uint32_t id, uint32_t lines)
{
	struct named *n = &s->named;
	uint32_t first = (uint32_t)n->count + 1;

	for (uint32_t i = 0; i < lines; i++) {
		int r = array_grow(&n->frames, &n->cap, n->count, NAMED_MAX);

		r = r ? r : name_line(s, id, i, &n->frames[n->count]);
		if (r < 0)
			return r;
		n->count++;
	}
	n->first[id] = first;
	return 0;
}

static int push_owner(struct source *s, uint32_t index)
{
	const struct model_process *p = &s->m->processes[index];
	struct str comm = model_string(s->m, p->comm), container = model_string(s->m, p->container);
	struct str application = model_string(s->m, p->app_id);
	int r = 0;

	if (!index)
		return 0;
	if (application.len) {
		buf_clear(&s->text);
		buf_adds(&s->text, STR("appid: "));
		buf_adds(&s->text, application);
		r = s->text.error ? s->text.error : push_name(s, buf_str(&s->text), TREE_KIND_PROCESS);
	}
	if (!r && comm.len)
		r = push_name(s, comm, TREE_KIND_PROCESS);
	if (!r && container.len)
		r = push_name(s, container, TREE_KIND_CONTAINER);
	return r;
}

/* Groups */

static void add_label_value(const struct model *m, const struct model_label *label, struct buf *out)
{
	struct str unit = label->is_number ? model_string(m, label->unit) : STR("");

	if (label->is_number)
		buf_addf(out, "%lld" STR_FMT, (long long)label->number, STR_ARG(unit));
	else
		buf_adds(out, model_string(m, label->text));
}

/* Return: whether the sample has the label itself, or it is known otherwise. */
static bool add_value(struct source *s, const struct model_sample *sample, const struct tree_group *group)
{
	const struct model_label_set *set = &s->m->label_sets[sample->label_set];

	for (uint32_t i = 0; i < set->count; i++) {
		const struct model_label *label = &s->m->labels[set->first + i];

		if (str_eq(model_string(s->m, label->key), group->label)) {
			add_label_value(s->m, label, &s->text);
			return true;
		}
	}
	if (group->usual.ptr)
		buf_adds(&s->text, group->usual);
	return group->usual.ptr != NULL;
}

static void add_thread(struct source *s, const struct model_sample *sample)
{
	const struct model_thread *thread = &s->m->threads[sample->thread];
	struct str name = model_string(s->m, thread->name);

	if (!sample->thread)
		buf_adds(&s->text, STR("(no thread)"));
	else if (name.len)
		buf_adds(&s->text, name);
	else
		buf_addf(&s->text, "thread %u", thread->tid);
}

static void add_label(struct source *s, const struct model_sample *sample, const struct tree_group *group)
{
	bool is_host = group->kind == TREE_KIND_HOST;

	if (!is_host) {
		buf_adds(&s->text, group->label);
		buf_addc(&s->text, '=');
	}
	if (add_value(s, sample, group))
		return;
	buf_clear(&s->text);
	buf_addf(&s->text, "(no " STR_FMT ")", STR_ARG(group->label));
}

static int push_group(struct source *s, const struct model_sample *sample, const struct tree_group *group)
{
	buf_clear(&s->text);
	if (group->kind == TREE_KIND_THREAD)
		add_thread(s, sample);
	else
		add_label(s, sample, group);
	return s->text.error ? s->text.error : push_name(s, buf_str(&s->text), group->kind);
}

/* The child of @at, and what is known of it. Needs room for one. */
static void step_down(struct source *s, struct reached *at, uint32_t frame)
{
	at->hash = tree_path_hash(at->hash, frame);
	at->node = tree_builder_child(&s->b, at->node, frame, tree_path_tag(at->hash));
	at->depth++;
}

/* What stands above a sample's stack. Without groups that is its process: samples of one often follow each other. */
static int find_root(struct source *s, const struct model_sample *sample)
{
	int r;

	if (!s->group_count && s->root_of == sample->process + 1)
		return 0;
	s->count = 0;
	r = push_owner(s, sample->process);
	for (size_t i = s->group_count; !r && i; i--)
		r = push_group(s, sample, &s->groups[i - 1]);
	r = r ? r : tree_builder_room(&s->b, s->count);
	if (r < 0)
		return r;
	s->root = (struct reached){ .hash = s->b.seed };
	for (size_t i = s->count; i; i--)
		step_down(s, &s->root, s->frames[i - 1]);
	s->root.root_1 = s->root.node + 1;
	s->root_of = sample->process + 1;
	return 0;
}

static uint32_t lines_of(const struct source *s, uint32_t location)
{
	return MAX(s->m->locations[location].line_count, (uint32_t)1);
}

/* Up from @stack to what is known: how many stacks are in between, and how many frames they have at most. */
static int climb(struct source *s, uint32_t stack, size_t *stacks, size_t *frames)
{
	uint32_t at = stack;
	int r = 0;

	*stacks = *frames = 0;
	for (; !r && at && s->reached[at].root_1 != s->root.root_1; at = s->m->stacks[at].parent) {
		uint32_t location = s->m->stacks[at].location, lines = lines_of(s, location);

		if (!s->named.first[location])
			r = name_location(s, location, lines);
		r = r ? r : array_grow(&s->path, &s->path_cap, *stacks, TREE_DEPTH_MAX);
		if (r < 0)
			return r;
		s->path[(*stacks)++] = at;
		*frames += lines;
	}
	return r;
}

static int add_sample(struct source *s, const struct model_sample *sample, uint32_t stack, uint64_t value)
{
	size_t stacks = 0, frames = 0;
	struct reached at;
	uint32_t known;
	int r = find_root(s, sample);

	r = r ? r : climb(s, stack, &stacks, &frames);
	if (r < 0)
		return r;
	known = stacks ? s->m->stacks[s->path[stacks - 1]].parent : stack;
	at = known ? s->reached[known] : s->root;
	if (frames > TREE_DEPTH_MAX - at.depth)
		return -E2BIG;
	r = tree_builder_room(&s->b, frames);
	if (r < 0)
		return r;
	while (stacks) {
		uint32_t id = s->path[--stacks], location = s->m->stacks[id].location;
		const uint32_t *named = &s->named.frames[s->named.first[location] - 1];

		for (uint32_t i = lines_of(s, location); i; i--)
			step_down(s, &at, named[i - 1]);
		s->reached[id] = at;
	}
	tree_builder_add(&s->b, at.node, value);
	return 0;
}

/* Another model has other locations and stacks. */
static int forget(struct source *s)
{
	free(s->named.first);
	free(s->reached);
	s->named.first = calloc(s->m->locations_count + 1, sizeof(*s->named.first));
	s->reached = calloc(s->m->stacks_count + 1, sizeof(*s->reached));
	tree_huge_pages(s->reached, (s->m->stacks_count + 1) * sizeof(*s->reached));
	s->named.count = 0;
	s->root_of = 0;
	return s->named.first && s->reached ? 0 : -ENOMEM;
}

static int add_model(struct source *s, size_t value, uint64_t divisor)
{
	const struct model *m = s->m;
	bool is_wait = wait_leaf_value(m, value);
	int r = forget(s);

	for (size_t i = 0; !r && i < m->samples_count; i++) {
		int64_t v = model_values(m, &m->samples[i])[value];
		uint32_t stack = m->samples[i].stack;

		if (v > 0)
			r = add_sample(s, &m->samples[i], is_wait ? wait_leaf_stack(m, stack) : stack,
				       (uint64_t)v / divisor);
		else if (v < 0)
			tree_negative_add(&s->b.negative, 1, (uint64_t)saturating_abs(v));
	}
	return r;
}

int tree_from_model(const struct model *m, size_t value, uint64_t divisor, const struct frame_style *style,
		    struct tree *out)
{
	scoped(source_release) struct source s = {
		.m = m, .style = style, .key = BUF_INIT(KEY_MAX), .text = BUF_INIT(KEY_MAX)
	};
	int r = tree_builder_init(&s.b, m->stacks_count);

	r = r ? r : add_model(&s, value, divisor);
	if (r < 0)
		return r;
	return tree_builder_finish(&s.b, out);
}

/* Several models */

struct tree_maker {
	struct source s;
	bool has_builder;
};

int tree_maker_new(struct tree_maker **out)
{
	struct tree_maker *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->s = (struct source){ .key = BUF_INIT(KEY_MAX), .text = BUF_INIT(KEY_MAX) };
	*out = t;
	return 0;
}

void tree_maker_free(struct tree_maker *t)
{
	if (t)
		source_release(&t->s);
	free(t);
}

static int begin(struct tree_maker *t, size_t nodes_expected)
{
	int r = t->has_builder ? 0 : tree_builder_init(&t->s.b, nodes_expected);

	t->has_builder = r == 0;
	return r;
}

int tree_maker_add(struct tree_maker *t, const struct model *m, size_t value, const struct tree_group *groups,
		   size_t group_count)
{
	static const struct frame_style style;
	int r = begin(t, m->stacks_count);

	t->s.m = m;
	t->s.style = &style;
	t->s.groups = groups;
	t->s.group_count = group_count;
	return r ? r : add_model(&t->s, value, 1);
}

int tree_maker_finish(struct tree_maker *t, struct tree *out)
{
	int r = begin(t, 1);

	return r ? r : tree_builder_finish(&t->s.b, out);
}
