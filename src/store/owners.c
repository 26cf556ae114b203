/* SPDX-License-Identifier: Apache-2.0 */
#include "store/owners.h"

#include "base/array.h"

#define TEXT_MAX GIB(1) /* of one dictionary's names at most */

void owner_table_release(struct owner_table *t)
{
	free(t->items);
	free(t->texts);
	intern_release(&t->names);
	u64map_release(&t->pairs);
	free(t->shown);
	free(t->place);
	free(t->values);
	*t = (struct owner_table){ 0 };
}

/* One more place, all of it zero. */
static int grow(struct owner_table *t)
{
	int r = array_grow(&t->items, &t->cap, t->count, OWNERS_MAX + 1);

	r = r ? r : array_grow(&t->texts, &t->texts_cap, t->count, OWNERS_MAX + 1);
	if (r < 0)
		return r;
	t->items[t->count] = (struct store_owner){ 0 };
	memset(t->texts[t->count], 0, sizeof(t->texts[0]));
	t->count++;
	return 0;
}

int owner_table_init(struct owner_table *t)
{
	*t = (struct owner_table){ 0 };
	intern_init(&t->names, TEXT_MAX);
	u64map_init(&t->pairs, OWNERS_MAX);
	return grow(t);
}

static int fill(struct owner_table *t, const struct model *m, uint32_t process, uint32_t thread)
{
	const struct model_process *p = &m->processes[process];
	const struct model_thread *of = &m->threads[thread];
	const uint32_t texts[4] = { p->comm, p->container, p->app_id, of->name };
	struct store_owner *owner = &t->items[t->count - 1];
	int r = 0;

	owner->pid = p->pid;
	owner->start_ns = p->start_ns;
	owner->tid = of->tid;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++)
		r = intern_add(&t->names, model_string(m, texts[i]), &t->texts[t->count - 1][i]);
	return r;
}

int owner_table_add(struct owner_table *t, const struct model *m, uint32_t process, uint32_t thread, uint32_t *out)
{
	uint64_t pair = (uint64_t)process << 32 | thread;
	int r;

	*out = 0;
	if (!pair || u64map_get(&t->pairs, pair, out) == 0 || t->count > OWNERS_MAX)
		return 0;
	r = grow(t);
	r = r ? r : fill(t, m, process, thread);
	r = r ? r : u64map_put(&t->pairs, pair, (uint32_t)t->count - 1);
	if (r == 0)
		*out = (uint32_t)t->count - 1;
	return r;
}

int owner_table_settle(struct owner_table *t)
{
	int r = array_reserve(&t->place, &t->place_cap, t->count);

	if (r < 0)
		return r;
	memset(t->place, 0, t->count * sizeof(*t->place));
	for (size_t i = 0; i < t->count; i++) {
		struct store_owner *owner = &t->items[i];

		owner->comm = intern_get(&t->names, t->texts[i][0]);
		owner->container = intern_get(&t->names, t->texts[i][1]);
		owner->app_id = intern_get(&t->names, t->texts[i][2]);
		owner->thread = intern_get(&t->names, t->texts[i][3]);
	}
	return 0;
}

/* Who is there. @place stays set until the point is made. */
static int find_shown(struct owner_table *t, const uint32_t *owners, size_t rows)
{
	int r = 0;

	t->shown_count = 0;
	for (size_t i = 0; r == 0 && i < rows; i++) {
		if (t->place[owners[i]])
			continue;
		r = array_grow(&t->shown, &t->shown_cap, t->shown_count, OWNERS_MAX + 1);
		if (r < 0)
			break;
		t->shown[t->shown_count++] = t->items[owners[i]];
		t->place[owners[i]] = (uint32_t)t->shown_count;
	}
	return r;
}

static void add_rows(struct owner_table *t, const uint32_t *owners, size_t rows, size_t width, const int64_t *values)
{
	for (size_t column = 0; column < width; column++) {
		for (size_t i = 0; i < rows; i++) {
			int64_t *cell = &t->values[(t->place[owners[i]] - 1) * width + column];

			*cell = saturating_add(*cell, values[column * rows + i]);
		}
	}
}

int owner_table_point(struct owner_table *t, const uint32_t *owners, size_t rows, size_t width, const int64_t *values)
{
	int r = find_shown(t, owners, rows);

	r = r ? r : array_reserve(&t->values, &t->values_cap, t->shown_count * width + 1);
	if (r == 0) {
		memset(t->values, 0, t->shown_count * width * sizeof(*t->values));
		add_rows(t, owners, rows, width, values);
	}
	for (size_t i = 0; i < t->shown_count; i++)
		t->shown[i].values = t->values + i * width;
	for (size_t i = 0; i < rows; i++)
		t->place[owners[i]] = 0;
	return r;
}
