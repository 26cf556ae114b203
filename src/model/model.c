/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model_int.h"

#include "base/array.h"
#include "base/random.h"

static int index_resize(const struct model *m, struct row_index *ix, size_t cap, size_t first, row_hash_fn *hash)
{
	uint32_t *slots;

	if (model_fits(m, cap * sizeof(*slots)) < 0)
		return -E2BIG;
	slots = calloc(cap, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < ix->cap; i++) {
		uint32_t row = ix->slots[i];
		size_t at;

		if (!row)
			continue;
		at = hash(m, row - 1 + (uint32_t)first) & (cap - 1);
		while (slots[at])
			at = (at + 1) & (cap - 1);
		slots[at] = row;
	}
	free(ix->slots);
	ix->slots = slots;
	ix->cap = cap;
	return 0;
}

int row_index_room(const struct model *m, struct row_index *ix, size_t count, size_t first, row_hash_fn *hash)
{
	if (ix->cap && count + 1 <= ix->cap / 4 * 3)
		return 0;
	return index_resize(m, ix, MAX(ix->cap * 2, (size_t)16), first, hash);
}

/* Of an index that is empty. */
static int index_reserve(const struct model *m, struct row_index *ix, size_t count)
{
	size_t cap = 16;

	while (cap / 4 * 3 < count + 1)
		cap *= 2;
	return ix->cap || !count ? 0 : index_resize(m, ix, cap, 0, NULL);
}

/* How a table finds its rows: the hash of a stored row, the hash of a candidate, and whether the two are equal. */
struct row_kind {
	row_hash_fn *hash_row;
	uint64_t (*hash_key)(const struct model *m, const void *key);
	bool (*same)(const struct model *m, uint32_t row, const void *key);
};

/* In line, so that each kind's functions are called directly and mostly not called at all.
 * Return: the slot that holds a row equal to @key, or the free one where it belongs. The index has room. */
static __attribute__((always_inline)) inline uint32_t *slot_from(const struct model *m, const struct row_index *ix,
								 const struct row_kind *kind, const void *key,
								 uint64_t hash)
{
	size_t at = hash & (ix->cap - 1);

	while (ix->slots[at] && !kind->same(m, ix->slots[at], key))
		at = (at + 1) & (ix->cap - 1);
	return &ix->slots[at];
}

static __attribute__((always_inline)) inline uint32_t *slot_of(const struct model *m, const struct row_index *ix,
							       const struct row_kind *kind, const void *key)
{
	return slot_from(m, ix, kind, key, kind->hash_key(m, key));
}

/* Finds @key or readies a slot for it. Return: 1 and *out when it is there, 0 and *slot when not, or -errno. */
static __attribute__((always_inline)) inline int look_up(struct model *m, struct row_index *ix, size_t count,
							 const struct row_kind *kind, const void *key, uint32_t **slot,
							 uint32_t *out)
{
	int r = row_index_room(m, ix, count, 1, kind->hash_row);

	if (r < 0)
		return r;
	*slot = slot_of(m, ix, kind, key);
	if (!**slot)
		return 0;
	*out = **slot;
	return 1;
}

#define room_for(m, table) model_grow((m), table, (m)->table##_count)

/* Appends *key to the table as a new row that @slot then names. */
#define append_row(m, table, slot, key, out)                               \
	({                                                                 \
		int grown_ = room_for((m), table);                         \
		if (grown_ == 0) {                                         \
			(m)->table[(m)->table##_count] = *(key);           \
			*(slot) = *(out) = (uint32_t)(m)->table##_count++; \
		}                                                          \
		grown_;                                                    \
	})

#define reserve(m, table, want) \
	(model_fits((m), (want) * sizeof(*(m)->table)) < 0 || array_reserve(&(m)->table, &(m)->table##_cap, (want)) < 0)

void model_reserve(struct model *m, const struct model_room *room)
{
	size_t strings =
		room->strings * (sizeof(*m->strings.ends) + 4 * sizeof(*m->strings.slots)) + room->string_bytes;

	if (model_fits(m, strings) < 0 || intern_reserve(&m->strings, room->strings, room->string_bytes) < 0 ||
	    reserve(m, functions, room->functions + 1) || reserve(m, locations, room->locations + 1) ||
	    reserve(m, lines, room->lines) || m->may_repeat ||
	    index_reserve(m, &m->index->functions, room->functions + 1) < 0)
		return;                                                      /* then they grow */
	ignore(index_reserve(m, &m->index->locations, room->locations + 1)); /* as above */
}

#define trim(m, table) array_trim(&(m)->table, &(m)->table##_cap, (m)->table##_count)

void model_trim(struct model *m)
{
	intern_trim(&m->strings);
	trim(m, mappings);
	trim(m, functions);
	trim(m, lines);
	trim(m, locations);
	trim(m, stacks);
	trim(m, processes);
	trim(m, threads);
	trim(m, labels);
	trim(m, label_sets);
}

/* Strings */

int model_add_string(struct model *m, struct str s, uint32_t *out)
{
	const struct intern *in = &m->strings;

	if ((in->count == in->end_cap || s.len > in->byte_cap - in->size) && model_fits(m, s.len) < 0)
		return -E2BIG;
	return intern_add(&m->strings, s, out);
}

/* Mappings */

static uint64_t mapping_hash(const struct model *m, const void *key)
{
	const struct model_mapping *row = key;
	uint64_t hash = hash_step(m->index->seed, row->start);

	hash = hash_step(hash, row->limit);
	hash = hash_step(hash, row->file_offset);
	return hash_done(hash_step(hash, (uint64_t)row->filename << 32 | row->build_id));
}

static uint64_t mapping_hash_row(const struct model *m, uint32_t row)
{
	return mapping_hash(m, &m->mappings[row]);
}

static bool mapping_same(const struct model *m, uint32_t at, const void *key)
{
	const struct model_mapping *row = key, *old = &m->mappings[at];

	return old->start == row->start && old->limit == row->limit && old->file_offset == row->file_offset &&
	       old->filename == row->filename && old->build_id == row->build_id;
}

int model_add_mapping(struct model *m, const struct model_mapping *row, uint32_t *out)
{
	static const struct row_kind kind = { mapping_hash_row, mapping_hash, mapping_same };
	uint32_t *slot;
	int r = look_up(m, &m->index->mappings, m->mappings_count, &kind, row, &slot, out);

	if (r == 0)
		return append_row(m, mappings, slot, row, out);
	if (r > 0)
		m->mappings[*out].flags |= row->flags;
	return MIN(r, 0);
}

/* Functions */

static uint64_t function_hash(const struct model *m, const void *key)
{
	const struct model_function *row = key;
	uint64_t hash = hash_step(m->index->seed, (uint64_t)row->name << 32 | row->system_name);

	hash = hash_step(hash, (uint64_t)row->filename << 32 | (uint32_t)row->kind);
	return hash_done(hash_step(hash, (uint64_t)row->start_line));
}

static uint64_t function_hash_row(const struct model *m, uint32_t row)
{
	return function_hash(m, &m->functions[row]);
}

static bool function_same(const struct model *m, uint32_t at, const void *key)
{
	const struct model_function *row = key, *old = &m->functions[at];

	return old->name == row->name && old->system_name == row->system_name && old->filename == row->filename &&
	       old->kind == row->kind && old->start_line == row->start_line;
}

static const struct row_kind function_kind = { function_hash_row, function_hash, function_same };

int model_add_function(struct model *m, const struct model_function *row, uint32_t *out)
{
	uint32_t *slot, none;
	int r = 0;

	if (m->may_repeat)
		return append_row(m, functions, &none, row, out);
	r = look_up(m, &m->index->functions, m->functions_count, &function_kind, row, &slot, out);
	return r == 0 ? append_row(m, functions, slot, row, out) : MIN(r, 0);
}

/* Locations */

struct location_key {
	const struct model_location *row;
	const struct model_line *lines;
};

static uint64_t location_hash(const struct model *m, const void *key)
{
	const struct location_key *location = key;
	const struct model_location *row = location->row;
	uint64_t hash = hash_step(m->index->seed, row->address);

	hash = hash_step(hash, (uint64_t)row->mapping << 33 | (uint64_t)row->line_count << 1 | row->is_folded);
	for (uint32_t i = 0; i < row->line_count; i++) {
		hash = hash_step(hash, (uint64_t)location->lines[i].line);
		hash = hash_step(hash, (uint64_t)location->lines[i].column << 32 ^ location->lines[i].function);
	}
	return hash_done(hash);
}

static uint64_t location_hash_row(const struct model *m, uint32_t row)
{
	const struct model_location *location = &m->locations[row];

	return location_hash(
		m, &(struct location_key){ location, location->line_count ? &m->lines[location->first_line] : NULL });
}

static bool location_same(const struct model *m, uint32_t at, const void *key)
{
	const struct location_key *location = key;
	const struct model_location *row = location->row, *old = &m->locations[at];

	if (old->address != row->address || old->mapping != row->mapping || old->is_folded != row->is_folded ||
	    old->line_count != row->line_count)
		return false;
	for (uint32_t i = 0; i < row->line_count; i++) {
		const struct model_line *a = &m->lines[old->first_line + i], *b = &location->lines[i];

		if (a->function != b->function || a->line != b->line || a->column != b->column)
			return false;
	}
	return true;
}

/* Return: 0 when @extra more lines fit, without adding them. */
static int room_for_lines(struct model *m, size_t extra)
{
	while (m->lines_cap - m->lines_count < extra) {
		int r = model_grow(m, lines, m->lines_cap);

		if (r < 0)
			return r;
	}
	return 0;
}

static const struct row_kind location_kind = { location_hash_row, location_hash, location_same };

int model_add_location(struct model *m, const struct model_location *row, const struct model_line *lines, uint32_t *out)
{
	struct location_key key = { row, lines };
	struct model_location added = *row;
	const uint32_t lines_count = row->line_count;
	uint32_t none, *slot = &none;
	int r = 0;

	must(row->mapping < m->mappings_count);
	for (uint32_t i = 0; i < lines_count; i++)
		must(lines[i].function < m->functions_count);
	if (!m->may_repeat)
		r = look_up(m, &m->index->locations, m->locations_count, &location_kind, &key, &slot, out);
	if (r != 0)
		return MIN(r, 0);
	r = room_for_lines(m, lines_count);
	if (r < 0)
		return r;
	added.first_line = (uint32_t)m->lines_count;
	r = append_row(m, locations, slot, &added, out);
	if (r < 0)
		return r;
	if (lines_count)
		memmove(m->lines + m->lines_count, lines, lines_count * sizeof(*lines)); /* model_distinct() */
	m->lines_count += lines_count;
	return 0;
}

/* Rows made distinct only move towards the front of their tables, so each is read before its place is written. */

static int distinct_functions(struct model *m, uint32_t *moved)
{
	size_t count = m->functions_count;
	int r = 0;

	m->functions_count = 1;
	for (size_t i = 1; r == 0 && i < count; i++) {
		struct model_function row = m->functions[i];

		r = model_add_function(m, &row, &moved[i]);
	}
	return r;
}

static int distinct_locations(struct model *m, const uint32_t *functions, uint32_t *moved)
{
	size_t count = m->locations_count;
	int r = 0;

	m->locations_count = 1;
	m->lines_count = 0;
	for (size_t i = 1; r == 0 && i < count; i++) {
		struct model_location row = m->locations[i];
		struct model_line *lines = row.line_count ? m->lines + row.first_line : NULL;

		for (uint32_t l = 0; l < row.line_count; l++)
			lines[l].function = functions[lines[l].function];
		r = model_add_location(m, &row, lines, &moved[i]);
	}
	return r;
}

static int distinct_stacks(struct model *m, const uint32_t *locations, uint32_t *moved)
{
	size_t count = m->stacks_count;
	int r = 0;

	stacks_forget(m);
	m->stacks_count = 1;
	for (size_t i = 1; r == 0 && i < count; i++) {
		struct model_stack row = m->stacks[i];

		r = model_add_stack(m, moved[row.parent], locations[row.location], &moved[i]);
	}
	for (size_t i = 0; r == 0 && i < m->samples_count; i++)
		m->samples[i].stack = moved[m->samples[i].stack];
	return r;
}

int model_distinct(struct model *m)
{
	scoped(freep) uint32_t *functions = NULL, *locations = NULL, *stacks = NULL;
	struct model_index *ix = m->index;
	size_t memory_max = m->memory_max;
	int r = -ENOMEM;

	if (!m->may_repeat)
		return 0;
	functions = calloc(m->functions_count, sizeof(*functions));
	locations = calloc(m->locations_count, sizeof(*locations));
	stacks = calloc(m->stacks_count, sizeof(*stacks));
	m->memory_max = 0;
	/* All memory is had before anything moves. Nothing was put into these indexes. */
	if (functions && locations && stacks && index_reserve(m, &ix->functions, m->functions_count) == 0 &&
	    index_reserve(m, &ix->locations, m->locations_count) == 0 && model_index_stacks(m) == 0) {
		m->may_repeat = false;
		r = distinct_functions(m, functions);
		r = r ? r : distinct_locations(m, functions, locations);
		r = r ? r : distinct_stacks(m, locations, stacks);
		must(r == 0);
	}
	m->memory_max = memory_max;
	return r;
}

/* Many at once: first all slots are fetched, then all rows that these very likely name. */

void model_find_functions(const struct model *m, const struct model_function *rows, size_t count, uint32_t *out)
{
	const struct row_index *ix = &m->index->functions;
	const uint32_t *homes[MODEL_FIND_MAX];
	uint64_t hashes[MODEL_FIND_MAX];

	must(count <= MODEL_FIND_MAX && !m->may_repeat);
	memset(out, 0, count * sizeof(*out));
	if (!ix->cap)
		return;
	for (size_t i = 0; i < count; i++) {
		hashes[i] = function_hash(m, &rows[i]);
		homes[i] = &ix->slots[hashes[i] & (ix->cap - 1)];
		__builtin_prefetch(homes[i]);
	}
	for (size_t i = 0; i < count; i++)
		__builtin_prefetch(&m->functions[*homes[i]]);
	for (size_t i = 0; i < count; i++)
		out[i] = *slot_from(m, ix, &function_kind, &rows[i], hashes[i]);
}

void model_find_locations(const struct model *m, const struct model_location *rows, const struct model_line *lines,
			  size_t count, uint32_t *out)
{
	const struct row_index *ix = &m->index->locations;
	struct location_key keys[MODEL_FIND_MAX];
	const uint32_t *homes[MODEL_FIND_MAX];
	uint64_t hashes[MODEL_FIND_MAX];

	must(count <= MODEL_FIND_MAX && !m->may_repeat);
	memset(out, 0, count * sizeof(*out));
	if (!ix->cap)
		return;
	for (size_t i = 0; i < count; lines += rows[i++].line_count) {
		keys[i] = (struct location_key){ &rows[i], lines };
		hashes[i] = location_hash(m, &keys[i]);
		homes[i] = &ix->slots[hashes[i] & (ix->cap - 1)];
		__builtin_prefetch(homes[i]);
	}
	for (size_t i = 0; i < count; i++)
		__builtin_prefetch(&m->locations[*homes[i]]);
	for (size_t i = 0; i < count; i++)
		if (m->locations[*homes[i]].line_count)
			__builtin_prefetch(&m->lines[m->locations[*homes[i]].first_line]);
	for (size_t i = 0; i < count; i++)
		out[i] = *slot_from(m, ix, &location_kind, &keys[i], hashes[i]);
}

/* Processes */

static uint64_t process_hash(const struct model *m, const void *key)
{
	const struct model_process *row = key;
	uint64_t hash = hash_step(m->index->seed, row->start_ns);

	hash = hash_step(hash, (uint64_t)row->pid << 32 | row->comm);
	return hash_done(hash_step(hash_step(hash, (uint64_t)row->container << 32 | row->app_id), row->app_metadata));
}

static uint64_t process_hash_row(const struct model *m, uint32_t row)
{
	return process_hash(m, &m->processes[row]);
}

static bool process_same(const struct model *m, uint32_t at, const void *key)
{
	const struct model_process *row = key, *old = &m->processes[at];

	return old->pid == row->pid && old->start_ns == row->start_ns && old->comm == row->comm &&
	       old->container == row->container && old->app_id == row->app_id && old->app_metadata == row->app_metadata;
}

int model_add_process(struct model *m, const struct model_process *row, uint32_t *out)
{
	static const struct row_kind kind = { process_hash_row, process_hash, process_same };
	uint32_t *slot;
	int r;

	must(row->app_metadata < m->app_metadata_count);
	r = look_up(m, &m->index->processes, m->processes_count, &kind, row, &slot, out);
	return r == 0 ? append_row(m, processes, slot, row, out) : MIN(r, 0);
}

/* Threads */

static uint64_t thread_hash(const struct model *m, const void *key)
{
	const struct model_thread *row = key;

	return hash_done(hash_step(hash_step(m->index->seed, (uint64_t)row->process << 32 | row->tid), row->name));
}

static uint64_t thread_hash_row(const struct model *m, uint32_t row)
{
	return thread_hash(m, &m->threads[row]);
}

static bool thread_same(const struct model *m, uint32_t at, const void *key)
{
	const struct model_thread *row = key, *old = &m->threads[at];

	return old->process == row->process && old->tid == row->tid && old->name == row->name;
}

int model_add_thread(struct model *m, const struct model_thread *row, uint32_t *out)
{
	static const struct row_kind kind = { thread_hash_row, thread_hash, thread_same };
	uint32_t *slot;
	int r;

	must(row->process < m->processes_count);
	r = look_up(m, &m->index->threads, m->threads_count, &kind, row, &slot, out);
	return r == 0 ? append_row(m, threads, slot, row, out) : MIN(r, 0);
}

/* Label sets */

struct label_key {
	const struct model_label *labels;
	size_t count;
};

static uint64_t labels_hash(const struct model *m, const void *key)
{
	const struct label_key *set = key;
	uint64_t hash = hash_step(m->index->seed, set->count);

	for (size_t i = 0; i < set->count; i++) {
		const struct model_label *label = &set->labels[i];

		hash = hash_step(hash, (uint64_t)label->key << 32 | (label->is_number ? label->unit : label->text));
		hash = hash_step(hash, label->is_number ? (uint64_t)label->number : 0);
	}
	return hash_done(hash);
}

static uint64_t labels_hash_row(const struct model *m, uint32_t row)
{
	const struct model_label_set *set = &m->label_sets[row];

	return labels_hash(m, &(struct label_key){ m->labels + set->first, set->count });
}

static bool label_same(const struct model_label *a, const struct model_label *b)
{
	if (a->key != b->key || a->is_number != b->is_number)
		return false;
	return a->is_number ? a->number == b->number && a->unit == b->unit : a->text == b->text;
}

static bool labels_same(const struct model *m, uint32_t at, const void *key)
{
	const struct label_key *set = key;
	const struct model_label_set *old = &m->label_sets[at];

	if (old->count != set->count)
		return false;
	for (size_t i = 0; i < set->count; i++)
		if (!label_same(&m->labels[old->first + i], &set->labels[i]))
			return false;
	return true;
}

static int room_for_labels(struct model *m, size_t extra)
{
	while (m->labels_cap - m->labels_count < extra) {
		int r = model_grow(m, labels, m->labels_cap);

		if (r < 0)
			return r;
	}
	return 0;
}

int model_add_label_set(struct model *m, const struct model_label *labels, size_t count, uint32_t *out)
{
	static const struct row_kind kind = { labels_hash_row, labels_hash, labels_same };
	struct label_key key = { labels, count };
	struct model_label_set added = { .first = (uint32_t)m->labels_count, .count = (uint32_t)count };
	uint32_t *slot;
	int r;

	if (!count) {
		*out = 0;
		return 0;
	}
	if (count > MODEL_LABELS_MAX)
		return -E2BIG;
	r = look_up(m, &m->index->label_sets, m->label_sets_count, &kind, &key, &slot, out);
	if (r != 0)
		return MIN(r, 0);
	r = room_for_labels(m, count);
	if (r == 0)
		r = append_row(m, label_sets, slot, &added, out);
	if (r < 0)
		return r;
	memcpy(m->labels + m->labels_count, labels, count * sizeof(*labels));
	m->labels_count += count;
	return 0;
}

/* Keys that share this many bytes keep their order: nobody can make sorting dear with long ones. */
#define LABEL_KEY_COMPARED 256

static int label_order(const struct model *m, const struct model_label *a, const struct model_label *b)
{
	if (a->is_number != b->is_number)
		return a->is_number ? 1 : -1;
	if (a->key == b->key)
		return 0;
	return str_cmp(str_first(model_string(m, a->key), LABEL_KEY_COMPARED),
		       str_first(model_string(m, b->key), LABEL_KEY_COMPARED));
}

/* Merges the sorted halves of @labels through @spare. */
static void merge_labels(const struct model *m, struct model_label *labels, size_t half, size_t count,
			 struct model_label *spare)
{
	size_t a = 0, b = half;

	memcpy(spare, labels, half * sizeof(*labels));
	for (size_t to = 0; a < half; to++) {
		if (b < count && label_order(m, &labels[b], &spare[a]) < 0)
			labels[to] = labels[b++];
		else
			labels[to] = spare[a++];
	}
}

void model_sort_labels(const struct model *m, struct model_label *labels, size_t count)
{
	struct model_label spare[MODEL_LABELS_MAX / 2];
	bool sorted = true;

	must(count <= MODEL_LABELS_MAX);
	for (size_t i = 1; i < count && sorted; i++)
		sorted = label_order(m, &labels[i - 1], &labels[i]) <= 0;
	for (size_t half = 1; half < count && !sorted; half *= 2)
		for (size_t at = 0; at + half < count; at += 2 * half)
			merge_labels(m, labels + at, half, MIN(2 * half, count - at), spare);
}

/* Application metadata: strings, interned a second time because their numbers are written to .col */

static uint64_t metadata_hash(const struct model *m, const void *key)
{
	return hash_done(hash_step(m->index->seed, *(const uint32_t *)key));
}

static uint64_t metadata_hash_row(const struct model *m, uint32_t row)
{
	return metadata_hash(m, &m->app_metadata[row]);
}

static bool metadata_same(const struct model *m, uint32_t at, const void *key)
{
	return m->app_metadata[at] == *(const uint32_t *)key;
}

int model_add_app_metadata(struct model *m, struct str json, uint32_t *out)
{
	static const struct row_kind kind = { metadata_hash_row, metadata_hash, metadata_same };
	uint32_t id, *slot;
	int r = model_add_string(m, json, &id);

	if (r < 0)
		return r;
	if (!id) {
		*out = 0;
		return 0;
	}
	r = look_up(m, &m->index->app_metadata, m->app_metadata_count, &kind, &id, &slot, out);
	return r == 0 ? append_row(m, app_metadata, slot, &id, out) : MIN(r, 0);
}

/* Columns, samples, comments */

int model_add_value_type(struct model *m, struct str type, struct str unit)
{
	struct model_value_type row;
	int r;

	must(!m->samples_count);
	if (m->value_type_count == MODEL_VALUE_TYPES_MAX)
		return -E2BIG;
	r = model_add_string(m, type, &row.type);
	if (r == 0)
		r = model_add_string(m, unit, &row.unit);
	if (r == 0)
		m->value_types[m->value_type_count++] = row;
	return r;
}

int model_add_comment(struct model *m, struct str text)
{
	uint32_t id;
	int r = model_add_string(m, text, &id);

	if (r == 0)
		r = room_for(m, comments);
	if (r == 0)
		m->comments[m->comments_count++] = id;
	return r;
}

static int room_for_values(struct model *m)
{
	while (m->values_cap - m->values_count < m->value_type_count) {
		int r = model_grow(m, values, m->values_cap);

		if (r < 0)
			return r;
	}
	return 0;
}

int model_add_sample(struct model *m, const struct model_sample *row, const int64_t *values)
{
	struct model_sample *added;
	int r;

	must(row->stack < m->stacks_count && row->process < m->processes_count && row->thread < m->threads_count &&
	     row->label_set < m->label_sets_count && row->end < intern_count(&m->strings));
	r = room_for_values(m);
	if (r == 0)
		r = room_for(m, samples);
	if (r < 0)
		return r;
	added = &m->samples[m->samples_count++];
	*added = *row;
	added->first_value = (uint32_t)m->values_count;
	if (m->value_type_count)
		memcpy(m->values + m->values_count, values, m->value_type_count * sizeof(*values));
	m->values_count += m->value_type_count;
	return 0;
}

bool model_value_named(struct str text, struct str name, struct str unit)
{
	struct str rest = str_starts(text, name) ? str_skip(text, name.len) : STR("");

	return str_starts(rest, STR("/")) && str_eq(str_skip(rest, 1), unit);
}

int model_value_index(const struct model *m, struct str name)
{
	for (size_t i = 0; i < m->value_type_count; i++)
		if (str_eq(model_string(m, m->value_types[i].type), name))
			return (int)i;
	for (size_t i = 0; i < m->value_type_count; i++)
		if (model_value_named(name, model_string(m, m->value_types[i].type),
				      model_string(m, m->value_types[i].unit)))
			return (int)i;
	return -1;
}

size_t model_default_value(const struct model *m)
{
	for (size_t i = 0; m->default_type && i < m->value_type_count; i++)
		if (m->value_types[i].type == m->default_type)
			return i;
	for (size_t i = 0; i + 1 < m->value_type_count; i++)
		if (m->value_types[i].type == m->value_types[m->value_type_count - 1].type &&
		    m->value_types[i].unit == m->value_types[m->value_type_count - 1].unit)
			return i;
	return m->value_type_count ? m->value_type_count - 1 : 0;
}

size_t model_count_value(const struct model *m)
{
	for (size_t i = 0; i < m->value_type_count; i++)
		if (str_eq(model_string(m, m->value_types[i].type), STR("samples")) &&
		    str_eq(model_string(m, m->value_types[i].unit), STR("count")))
			return i;
	return model_default_value(m);
}

/* Life */

/* Row 0 of a table: all zero, "none". */
#define add_none(m, table)                                                                 \
	({                                                                                 \
		int grown_ = room_for((m), table);                                         \
		if (grown_ == 0)                                                           \
			memset(&(m)->table[(m)->table##_count++], 0, sizeof(*(m)->table)); \
		grown_;                                                                    \
	})

static int add_nones(struct model *m)
{
	int r = add_none(m, mappings);

	r = r ? r : add_none(m, functions);
	r = r ? r : add_none(m, locations);
	r = r ? r : add_none(m, stacks);
	r = r ? r : add_none(m, processes);
	r = r ? r : add_none(m, threads);
	r = r ? r : add_none(m, label_sets);
	return r ? r : add_none(m, app_metadata);
}

int model_init(struct model *m, size_t byte_max)
{
	int r;

	*m = (struct model){ 0 };
	intern_init(&m->strings, byte_max);
	m->index = calloc(1, sizeof(*m->index));
	if (!m->index)
		return -ENOMEM;
	m->index->seed = random_u64();
	r = add_nones(m);
	if (r < 0)
		model_release(m);
	return r;
}

static void index_free(struct model_index *ix)
{
	if (!ix)
		return;
	free(ix->mappings.slots);
	free(ix->functions.slots);
	free(ix->locations.slots);
	free(ix->stacks.slots);
	free(ix->processes.slots);
	free(ix->threads.slots);
	free(ix->label_sets.slots);
	free(ix->app_metadata.slots);
	free(ix->samples.slots);
	free(ix);
}

void model_release(struct model *m)
{
	intern_release(&m->strings);
	index_free(m->index);
	free(m->mappings);
	free(m->functions);
	free(m->lines);
	free(m->locations);
	free(m->stacks);
	free(m->processes);
	free(m->threads);
	free(m->labels);
	free(m->label_sets);
	free(m->samples);
	free(m->values);
	free(m->comments);
	free(m->app_metadata);
	*m = (struct model){ 0 };
}
