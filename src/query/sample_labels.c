/* SPDX-License-Identifier: Apache-2.0 */
#include "query/sample_labels.h"

#include "base/u64map.h"
#include "store/store_int.h"

static const char *const own_of_sample[] = { "profile_id", "span_id", "trace_id" };

struct grouping {
	const struct model *m;
	const struct store_label *series;
	size_t series_count, groups_max;
	struct u64map owners, rows; /* process and thread -> number; label set and that number -> group */
	uint32_t owner_count;
	struct label_groups *out;
};

void label_groups_release(struct label_groups *g)
{
	for (size_t i = 0; g->groups && i < g->count; i++)
		query_labels_release(&g->groups[i]);
	free(g->groups);
	free(g->group_of);
	*g = (struct label_groups){ 0 };
}

void label_name_legacy(struct str name, struct buf *out)
{
	for (size_t i = 0; i < name.len; i++)
		buf_addc(out, (char)(name.ptr[i] == '.' ? '_' : name.ptr[i]));
}

static bool is_wanted(const struct grouping *g, const struct query_labels *have, struct str key, struct str value)
{
	if (!key.len || !value.len || key.len > STORE_LABEL_KEY_MAX || value.len > STORE_LABEL_VALUE_MAX ||
	    str_starts(key, STR("__")) || g->series_count + have->count >= STORE_LABELS_MAX)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(own_of_sample); i++)
		if (str_eq(key, str_of(own_of_sample[i])))
			return false;
	for (size_t i = 0; i < g->series_count; i++)
		if (str_eq(g->series[i].key, key))
			return false;
	for (size_t i = 0; i < have->count; i++)
		if (str_eq(have->items[i].key, key))
			return false;
	return true;
}

/* There is room in have->bytes. */
static void add_label(const struct grouping *g, struct query_labels *have, struct str key, struct str value)
{
	size_t at = have->bytes.len;

	label_name_legacy(key, &have->bytes);
	key = str_n(have->bytes.ptr + at, have->bytes.len - at);
	if (!is_wanted(g, have, key, value)) {
		have->bytes.len = at;
		return;
	}
	at = have->bytes.len;
	buf_adds(&have->bytes, value);
	have->items[have->count++] = (struct store_label){ key, str_n(have->bytes.ptr + at, value.len) };
}

#define OWNER_LABELS 4

/* What the codec took out of the sample's labels. */
static void owner_labels(const struct model *m, const struct model_sample *s, struct store_label out[OWNER_LABELS])
{
	const struct model_process *process = &m->processes[s->process];

	out[0] = (struct store_label){ STR("appid"), model_string(m, process->app_id) };
	out[1] = (struct store_label){ STR("comm"), model_string(m, process->comm) };
	out[2] = (struct store_label){ STR("container"), model_string(m, process->container) };
	out[3] = (struct store_label){ STR("thread"), model_string(m, m->threads[s->thread].name) };
}

static int collect(const struct grouping *g, const struct model_sample *s, struct query_labels *out)
{
	const struct model_label_set *set = &g->m->label_sets[s->label_set];
	const struct model_label *labels = g->m->labels + set->first;
	struct store_label owner[OWNER_LABELS];
	size_t size = 1;

	owner_labels(g->m, s, owner);
	for (size_t i = 0; i < OWNER_LABELS; i++)
		size += owner[i].key.len + owner[i].value.len;
	for (uint32_t i = 0; i < set->count; i++)
		if (!labels[i].is_number)
			size += model_string(g->m, labels[i].key).len + model_string(g->m, labels[i].text).len;
	out->bytes = (struct buf)BUF_INIT(size);
	if (!buf_reserve(&out->bytes, size))
		return -ENOMEM;
	for (size_t i = 0; i < OWNER_LABELS; i++)
		add_label(g, out, owner[i].key, owner[i].value);
	for (uint32_t i = 0; i < set->count; i++)
		if (!labels[i].is_number)
			add_label(g, out, model_string(g->m, labels[i].key), model_string(g->m, labels[i].text));
	store_labels_sort(out->items, out->count);
	return 0;
}

static bool same_labels(const struct query_labels *a, const struct query_labels *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!str_eq(a->items[i].key, b->items[i].key) || !str_eq(a->items[i].value, b->items[i].value))
			return false;
	return true;
}

/* The group with the labels of @s: there already, new, or group 0. */
static int find_group(struct grouping *g, const struct model_sample *s, uint32_t *out)
{
	struct query_labels *next = &g->out->groups[g->out->count]; /* there is room for one more */
	int r;

	*next = (struct query_labels){ 0 };
	r = collect(g, s, next);
	if (r < 0)
		return r;
	for (size_t i = 0; i < g->out->count; i++) {
		if (!same_labels(&g->out->groups[i], next))
			continue;
		query_labels_release(next);
		*out = (uint32_t)i;
		return 0;
	}
	if (g->out->count == g->groups_max) {
		query_labels_release(next);
		*out = 0;
		return 0;
	}
	*out = (uint32_t)g->out->count++;
	return 0;
}

static int find_owner(struct grouping *g, const struct model_sample *s, uint32_t *out)
{
	uint64_t key = (uint64_t)s->process << 32 | s->thread;

	if (u64map_get(&g->owners, key, out) == 0)
		return 0;
	*out = g->owner_count++;
	return u64map_put(&g->owners, key, *out);
}

static int group_sample(struct grouping *g, const struct model_sample *s, uint32_t *out)
{
	uint32_t owner;
	int r = find_owner(g, s, &owner);
	uint64_t key;

	if (r < 0)
		return r;
	key = (uint64_t)s->label_set << 32 | owner;
	if (u64map_get(&g->rows, key, out) == 0)
		return 0;
	r = find_group(g, s, out);
	return r ? r : u64map_put(&g->rows, key, *out);
}

int label_groups_make(const struct model *m, const struct store_label *series, size_t series_count, size_t groups_max,
		      struct label_groups *out)
{
	struct label_groups made = { .count = 1 };
	struct grouping g = {
		.m = m, .series = series, .series_count = series_count, .groups_max = groups_max, .out = &made
	};
	int r = 0;

	made.groups = calloc(groups_max + 1, sizeof(*made.groups));
	made.group_of = calloc(m->samples_count + 1, sizeof(*made.group_of));
	if (!made.groups || !made.group_of)
		r = -ENOMEM;
	u64map_init(&g.owners, m->samples_count + 1);
	u64map_init(&g.rows, m->samples_count + 1);
	for (size_t i = 0; i < m->samples_count && r == 0; i++)
		r = group_sample(&g, &m->samples[i], &made.group_of[i]);
	u64map_release(&g.owners);
	u64map_release(&g.rows);
	if (r < 0)
		label_groups_release(&made);
	else
		*out = made;
	return r < 0 ? -ENOMEM : 0;
}
