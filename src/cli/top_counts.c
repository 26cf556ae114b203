/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top_counts.h"

#include "base/array.h"
#include "codec/frame_text.h"

#define NAMES_MAX MIB(64)
#define TEXT_MAX KIB(64)
#define TIDY_AT 65536 /* names more than there were: look which are still in use */
#define CALLERS_MAX 100000

static void slot_release(struct top_slot *s)
{
	free(s->nodes);
	free(s->samples);
	free(s->owners);
	*s = (struct top_slot){ 0 };
}

int top_counts_init(struct top_counts *t, size_t slots)
{
	*t = (struct top_counts){ .slot_count = slots };
	intern_init(&t->names, NAMES_MAX);
	u64map_init(&t->group_index, UINT32_MAX);
	u64map_init(&t->row_index, UINT32_MAX);
	t->slots = calloc(slots, sizeof(*t->slots));
	return t->slots ? 0 : -ENOMEM;
}

void top_counts_release(struct top_counts *t)
{
	for (size_t i = 0; t->slots && i < t->slot_count; i++)
		slot_release(&t->slots[i]);
	free(t->slots);
	free(t->groups);
	free(t->rows);
	free(t->free_rows);
	free(t->seen);
	intern_release(&t->names);
	u64map_release(&t->group_index);
	u64map_release(&t->row_index);
	*t = (struct top_counts){ 0 };
}

/* Groups and rows */

static int group_of(struct top_counts *t, uint32_t comm, uint32_t container, uint32_t *out)
{
	const uint64_t key = (uint64_t)comm << 32 | container;
	int r;

	if (u64map_get(&t->group_index, key, out) == 0)
		return 0;
	r = array_grow(&t->groups, &t->group_cap, t->group_count, UINT32_MAX);
	r = r ? r : u64map_put(&t->group_index, key, (uint32_t)t->group_count);
	if (r < 0)
		return r;
	t->groups[t->group_count] = (struct top_group){ .comm = comm, .container = container };
	*out = (uint32_t)t->group_count++;
	return 0;
}

static uint64_t row_key(uint32_t name, uint32_t group)
{
	return (uint64_t)name << 32 | group;
}

static int new_row(struct top_counts *t, uint32_t name, uint32_t group, uint32_t *out)
{
	int r = 0;

	if (t->free_count) {
		*out = t->free_rows[t->free_count - 1];
	} else {
		r = array_grow(&t->rows, &t->row_cap, t->row_count, UINT32_MAX);
		*out = (uint32_t)t->row_count;
	}
	r = r ? r : array_reserve(&t->free_rows, &t->free_cap, t->row_count + 1); /* giving it back does not fail */
	r = r ? r : u64map_put(&t->row_index, row_key(name, group), *out);
	if (r < 0)
		return r;
	if (t->free_count)
		t->free_count--;
	else
		t->row_count++;
	t->rows[*out] = (struct top_row){ .name = name, .group = group };
	return 0;
}

static int row_of(struct top_counts *t, uint32_t name, uint32_t group, uint32_t *out)
{
	return u64map_get(&t->row_index, row_key(name, group), out) == 0 ? 0 : new_row(t, name, group, out);
}

static void free_row_if_empty(struct top_counts *t, uint32_t at)
{
	struct top_row *row = &t->rows[at];

	if (row->total)
		return;
	(void)u64map_remove(&t->row_index, row_key(row->name, row->group));
	t->free_rows[t->free_count++] = at;
}

/* The rows of a window's names exist before anything is counted: a window counts wholly or not at all. */
static int make_rows(struct top_counts *t, const struct top_slot *s)
{
	const size_t seen = t->seen_cap;
	uint32_t at;
	int r = array_reserve(&t->seen, &t->seen_cap, intern_count(&t->names) + 1);

	if (t->seen_cap > seen)
		memset(t->seen + seen, 0, (t->seen_cap - seen) * sizeof(*t->seen));
	for (size_t i = 0; i < s->sample_count && r == 0; i++)
		for (uint32_t n = s->samples[i].node; n && r == 0; n = s->nodes[n].parent)
			r = row_of(t, s->nodes[n].name, s->samples[i].group, &at);
	return r;
}

static uint32_t next_turn(struct top_counts *t)
{
	if (t->turn == 0 || t->turn == UINT32_MAX) {
		memset(t->seen, 0, t->seen_cap * sizeof(*t->seen));
		t->turn = 0;
	}
	return ++t->turn;
}

static void count_sample(struct top_counts *t, const struct top_slot *s, const struct top_sample *sample, int64_t value)
{
	const uint32_t turn = next_turn(t);

	for (uint32_t n = sample->node; n; n = s->nodes[n].parent) {
		const uint32_t name = s->nodes[n].name;
		uint32_t at;

		if (t->seen[name] == turn || u64map_get(&t->row_index, row_key(name, sample->group), &at) < 0)
			continue;
		t->seen[name] = turn;
		t->rows[at].total += value;
		if (n == sample->node)
			t->rows[at].self += value;
		if (value < 0)
			free_row_if_empty(t, at);
	}
}

static void count_slot(struct top_counts *t, const struct top_slot *s, int sign)
{
	const uint64_t times = (uint64_t)sign; /* minus one wraps, as differences do */

	for (size_t i = 0; i < s->sample_count; i++)
		count_sample(t, s, &s->samples[i], sign * s->samples[i].value);
	t->total += sign * s->total;
	t->took_ns += times * s->took_ns;
	t->busy_ns += times * s->busy_ns;
	t->lost += times * s->lost;
	t->count += times * s->count;
}

/* A window */

struct maker {
	struct top_counts *t;
	const struct model *m;
	struct top_slot slot;
	uint32_t *name_of_line, *name_of_location; /* by row of the model, + 1; 0: not asked for yet */
	uint32_t *node_of, *group_of;              /* by stack; by process */
	struct buf text;
};

static void maker_release(struct maker *k)
{
	slot_release(&k->slot);
	free(k->name_of_line);
	free(k->name_of_location);
	free(k->node_of);
	free(k->group_of);
	buf_release(&k->text);
}

static void add_nameless(struct maker *k, const struct model_location *l)
{
	struct str file = str_base(model_string(k->m, k->m->mappings[l->mapping].filename));

	if (file.len && file.ptr[0] == '[')
		buf_adds(&k->text, file);
	else
		buf_addf(&k->text, "[" STR_FMT "]", STR_ARG(file.len ? file : STR("unknown")));
}

/* "[jit+0x7f00]" becomes "[jit]": addresses without names are one row. */
static void cut_address(struct buf *text)
{
	ptrdiff_t at = text->len && text->ptr[0] == '[' ? str_search(buf_str(text), STR("+0x")) : -1;

	if (at < 0 || text->ptr[text->len - 1] != ']')
		return;
	text->ptr[at] = ']';
	text->len = (size_t)at + 1;
}

/* Functions without a name are one for each file, as in the report. */
static int find_name(struct maker *k, uint32_t location, uint32_t line, uint32_t *out)
{
	static const struct frame_style style = { 0 };
	const struct model_location *l = &k->m->locations[location];
	uint32_t *known = l->line_count ? &k->name_of_line[l->first_line + line] : &k->name_of_location[location];
	int r = 0;

	if (!*known) {
		const struct model_function *f =
			l->line_count ? &k->m->functions[k->m->lines[l->first_line + line].function] : NULL;

		buf_clear(&k->text);
		if (f && f->name)
			frame_text(k->m, &style, location, line, &k->text);
		else
			add_nameless(k, l);
		cut_address(&k->text);
		if (f && f->kind == MODEL_KIND_KERNEL)
			buf_adds(&k->text, model_kind_suffix(f->kind));
		r = k->text.error ? k->text.error : intern_add(&k->t->names, buf_str(&k->text), out);
		if (r == 0)
			*known = *out + 1;
		return r;
	}
	*out = *known - 1;
	return 0;
}

static int add_node(struct maker *k, uint32_t parent, uint32_t name, uint32_t *out)
{
	struct top_slot *s = &k->slot;
	int r = array_grow(&s->nodes, &s->node_cap, s->node_count, UINT32_MAX);

	if (r < 0)
		return r;
	*out = (uint32_t)s->node_count;
	s->nodes[s->node_count++] = (struct top_node){ parent, name };
	return 0;
}

/* A stack's parent stands before it. */
static int make_nodes(struct maker *k)
{
	const struct model *m = k->m;
	uint32_t node, name;
	int r = add_node(k, 0, 0, &node);

	for (size_t i = 1; i < m->stacks_count && r == 0; i++) {
		const struct model_location *l = &m->locations[m->stacks[i].location];

		node = k->node_of[m->stacks[i].parent];
		for (uint32_t left = MAX(l->line_count, UINT32_C(1)); left > 0 && r == 0; left--) {
			r = find_name(k, m->stacks[i].location, left - 1, &name);
			r = r ? r : add_node(k, node, name, &node);
		}
		k->node_of[i] = node;
	}
	return r;
}

static int make_groups(struct maker *k)
{
	const struct model *m = k->m;
	int r = 0;

	for (size_t i = 0; i < m->processes_count && r == 0; i++) {
		const struct model_process *p = &m->processes[i];
		struct str comm = model_string(m, p->comm);
		uint32_t name, container;

		r = intern_add(&k->t->names, comm.len ? comm : STR("[unknown]"), &name);
		r = r ? r : intern_add(&k->t->names, model_string(m, p->container), &container);
		r = r ? r : group_of(k->t, name, container, &k->group_of[i]);
		if (r == 0)
			k->slot.owners[k->slot.owner_count++] = (struct top_owner){ p->pid, k->group_of[i] };
	}
	return r;
}

static void take_samples(struct maker *k)
{
	const struct model *m = k->m;
	struct top_slot *s = &k->slot;
	const size_t value = m->value_type_count ? model_default_value(m) : 0;

	for (size_t i = 0; i < m->samples_count && m->value_type_count; i++) {
		const struct model_sample *row = &m->samples[i];
		const int64_t amount = MIN(model_values(m, row)[value], INT64_MAX >> 24);

		if (amount <= 0)
			continue;
		s->samples[s->sample_count++] =
			(struct top_sample){ k->node_of[row->stack], k->group_of[row->process], amount };
		s->total += amount;
	}
}

static int make_slot(struct maker *k)
{
	const struct model *m = k->m;
	int r;

	k->name_of_line = calloc(m->lines_count + 1, sizeof(uint32_t));
	k->name_of_location = calloc(m->locations_count + 1, sizeof(uint32_t));
	k->node_of = calloc(m->stacks_count + 1, sizeof(uint32_t));
	k->group_of = calloc(m->processes_count + 1, sizeof(uint32_t));
	k->slot.samples = calloc(m->samples_count + 1, sizeof(*k->slot.samples));
	k->slot.owners = calloc(m->processes_count + 1, sizeof(*k->slot.owners));
	if (!k->name_of_line || !k->name_of_location || !k->node_of || !k->group_of || !k->slot.samples ||
	    !k->slot.owners)
		return -ENOMEM;
	r = make_nodes(k);
	r = r ? r : make_groups(k);
	if (r == 0)
		take_samples(k);
	return r;
}

/* Tidying: names and groups that no window has go. */

struct tidying {
	struct intern names;
	uint32_t *name_to; /* old -> new */
	struct top_counts *t;
};

static int keep_name(struct tidying *d, uint32_t *name)
{
	int r = 0;

	if (*name && !d->name_to[*name])
		r = intern_add(&d->names, intern_get(&d->t->names, *name), &d->name_to[*name]);
	if (r == 0)
		*name = d->name_to[*name];
	return r;
}

static int keep_names(struct tidying *d)
{
	struct top_counts *t = d->t;
	int r = 0;

	for (size_t i = 0; i < t->slot_count; i++)
		for (size_t n = 1; n < t->slots[i].node_count && r == 0; n++)
			r = keep_name(d, &t->slots[i].nodes[n].name);
	return r;
}

/* The groups anew, in the order they are met. */
static int keep_groups(struct tidying *d, const struct top_group *before, uint32_t *group_to)
{
	struct top_counts *t = d->t;
	int r = 0;

	for (size_t i = 0; i < t->slot_count; i++) {
		struct top_slot *s = &t->slots[i];

		for (size_t k = 0; k < s->owner_count && r == 0; k++) {
			uint32_t old = s->owners[k].group, comm = before[old].comm, container = before[old].container;

			r = keep_name(d, &comm);
			r = r ? r : keep_name(d, &container);
			r = r ? r : group_of(t, comm, container, &s->owners[k].group);
			group_to[old] = s->owners[k].group;
		}
		for (size_t k = 0; k < s->sample_count && r == 0; k++) /* every group has an owner */
			s->samples[k].group = group_to[s->samples[k].group];
	}
	return r;
}

static void forget_windows(struct top_counts *t)
{
	for (size_t i = 0; i < t->slot_count; i++)
		slot_release(&t->slots[i]);
	t->used = 0;
}

/* Return: 0 or -errno: then no window is left. */
static int tidy(struct top_counts *t)
{
	struct tidying d = { .t = t };
	struct top_group *before = t->groups;
	uint32_t *group_to = calloc(t->group_count + 1, sizeof(uint32_t));
	int r;

	intern_init(&d.names, NAMES_MAX);
	d.name_to = calloc(intern_count(&t->names) + 1, sizeof(uint32_t));
	r = d.name_to && group_to ? keep_names(&d) : -ENOMEM;
	t->groups = NULL;
	t->group_count = t->group_cap = 0;
	u64map_clear(&t->group_index);
	r = r ? r : keep_groups(&d, before, group_to);
	if (r < 0)
		forget_windows(t);
	free(before);
	free(group_to);
	free(d.name_to);
	intern_release(&t->names);
	t->names = d.names;
	t->names_kept = intern_count(&t->names);
	t->tidied++;
	u64map_clear(&t->row_index);
	t->row_count = t->free_count = 0;
	t->total = 0;
	t->took_ns = t->busy_ns = t->lost = t->count = 0;
	for (size_t i = 0; i < t->slot_count && r == 0; i++)
		r = make_rows(t, &t->slots[i]);
	if (r < 0)
		forget_windows(t);
	for (size_t i = 0; i < t->slot_count && r == 0; i++)
		count_slot(t, &t->slots[i], 1);
	return r;
}

/* Names that no memory was left for, and rows that were made for nothing, go with the next tidying. */
void top_counts_add(struct top_counts *t, const struct window *w)
{
	scoped(maker_release) struct maker k = { .t = t, .m = w->model, .text = BUF_INIT(TEXT_MAX) };
	struct top_slot *oldest = &t->slots[t->slot_at];
	int r;

	count_slot(t, oldest, -1);
	slot_release(oldest);
	if (intern_count(&t->names) > t->names_kept + TIDY_AT && tidy(t) < 0)
		t->is_short = true;
	r = make_slot(&k);
	r = r ? r : make_rows(t, &k.slot);
	t->slot_at = (t->slot_at + 1) % t->slot_count;
	t->used = MIN(t->used + 1, t->slot_count);
	t->cpu_count = w->cpu_count;
	t->frequency_hz = w->frequency_hz;
	if (r < 0) {
		t->is_short = true;
		return;
	}
	k.slot.took_ns = window_duration_ns(w);
	k.slot.busy_ns = w->busy_ns;
	k.slot.lost = window_lost_samples(w);
	k.slot.count = window_counter(w, STR("samples"));
	*oldest = k.slot;
	k.slot = (struct top_slot){ 0 };
	count_slot(t, oldest, 1);
}

void top_counts_processes(struct top_counts *t)
{
	struct u64map seen;

	u64map_init(&seen, UINT32_MAX);
	for (size_t i = 0; i < t->group_count; i++)
		t->groups[i].pid_count = 0;
	for (size_t i = 0; i < t->slot_count; i++) {
		for (size_t k = 0; k < t->slots[i].owner_count; k++) {
			const struct top_owner *o = &t->slots[i].owners[k];
			const uint64_t key = (uint64_t)o->group << 32 | o->pid;
			uint32_t unused;

			if (u64map_get(&seen, key, &unused) == 0 || u64map_put(&seen, key, 1) < 0)
				continue;
			t->groups[o->group].pid_count++;
			t->groups[o->group].pid = o->pid;
		}
	}
	u64map_release(&seen);
}

/* Callers */

struct call {
	uint32_t name, parent, first, next; /* first, next: children, siblings; 0: none */
	int64_t value;
};

struct callers {
	struct call *items;
	size_t count, cap;
};

static int child_of(struct callers *c, uint32_t parent, uint32_t name, uint32_t *out)
{
	int r;

	for (uint32_t i = c->items[parent].first; i; i = c->items[i].next)
		if (c->items[i].name == name) {
			*out = i;
			return 0;
		}
	r = array_grow(&c->items, &c->cap, c->count, CALLERS_MAX);
	if (r < 0)
		return r;
	*out = (uint32_t)c->count;
	c->items[c->count++] = (struct call){ .name = name, .parent = parent, .next = c->items[parent].first };
	c->items[parent].first = *out;
	return 0;
}

/* Beyond CALLERS_MAX the outer callers are left out. */
static int add_calls(struct callers *c, const struct top_slot *s, const struct top_sample *sample, uint32_t name)
{
	uint32_t n = sample->node, at = 0;
	int r = 0;

	while (n && s->nodes[n].name != name)
		n = s->nodes[n].parent;
	if (!n)
		return 0;
	c->items[0].value += sample->value;
	for (n = s->nodes[n].parent; n && r == 0; n = s->nodes[n].parent) {
		r = child_of(c, at, s->nodes[n].name, &at);
		if (r == 0)
			c->items[at].value += sample->value;
	}
	return r == -E2BIG ? 0 : r;
}

/* Takes the most costly sibling off the list that begins at *@first. */
static uint32_t take_largest(struct callers *c, uint32_t *first)
{
	uint32_t *best = first, found;

	for (uint32_t *at = first; *at; at = &c->items[*at].next)
		if (c->items[*at].value > c->items[*best].value)
			best = at;
	found = *best;
	*best = c->items[found].next;
	return found;
}

static void put_in_order(struct callers *c, size_t max, struct top_caller *out, size_t *count)
{
	uint32_t at = 0, depth = 0;

	out[(*count)++] = (struct top_caller){ c->items[0].name, 0, c->items[0].value };
	while (*count < max) {
		if (c->items[at].first) {
			at = take_largest(c, &c->items[at].first);
			out[(*count)++] = (struct top_caller){ c->items[at].name, ++depth, c->items[at].value };
		} else if (at) {
			at = c->items[at].parent;
			depth--;
		} else {
			return;
		}
	}
}

int top_counts_callers(const struct top_counts *t, uint32_t name, uint32_t group, size_t max, struct top_caller **out,
		       size_t *count)
{
	struct callers c = { 0 };
	int r = array_grow(&c.items, &c.cap, 0, CALLERS_MAX);

	if (r == 0)
		c.items[c.count++] = (struct call){ .name = name };
	for (size_t i = 0; i < t->slot_count; i++)
		for (size_t k = 0; k < t->slots[i].sample_count && r == 0; k++)
			if (t->slots[i].samples[k].group == group)
				r = add_calls(&c, &t->slots[i], &t->slots[i].samples[k], name);
	*count = 0;
	*out = r == 0 ? calloc(max, sizeof(**out)) : NULL;
	if (*out)
		put_in_order(&c, max, *out, count);
	free(c.items);
	return r ? r : *out ? 0 : -ENOMEM;
}
