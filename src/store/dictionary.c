/* SPDX-License-Identifier: Apache-2.0 */
#include "store/dictionary.h"

#include "base/array.h"
#include "base/random.h"
#include "base/wire.h"
#include "store/zigzag.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define KEYS_MAX ((size_t)1 << 28)

int dictionary_init(struct dictionary *d)
{
	*d = (struct dictionary){ .seed = random_u64() };
	return model_init(&d->m, DICTIONARY_BYTES_MAX);
}

void dictionary_release(struct dictionary *d)
{
	model_release(&d->m);
	free(d->keys);
	free(d->slots);
	*d = (struct dictionary){ 0 };
}

/* Keys */

static uint64_t key_hash(const struct dictionary *d, const struct dictionary_key *key)
{
	return XXH3_64bits_withSeed(key, sizeof(*key), d->seed); /* five uint32_t: no padding */
}

static bool key_same(const struct dictionary_key *a, const struct dictionary_key *b)
{
	return a->stack == b->stack && a->process == b->process && a->thread == b->thread &&
	       a->label_set == b->label_set && a->end == b->end;
}

static int grow_slots(struct dictionary *d)
{
	size_t cap = MAX(d->slots_cap * 2, (size_t)64);
	uint32_t *slots;

	if (d->slots_cap && d->keys_count + 1 <= d->slots_cap / 4 * 3)
		return 0;
	slots = calloc(cap, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < d->keys_count; i++) {
		size_t at = key_hash(d, &d->keys[i]) & (cap - 1);

		while (slots[at])
			at = (at + 1) & (cap - 1);
		slots[at] = (uint32_t)i + 1;
	}
	free(d->slots);
	d->slots = slots;
	d->slots_cap = cap;
	return 0;
}

int dictionary_key(struct dictionary *d, const struct dictionary_key *key, uint32_t *out)
{
	int r = grow_slots(d);
	size_t at;

	if (r < 0)
		return r;
	at = key_hash(d, key) & (d->slots_cap - 1);
	while (d->slots[at] && !key_same(&d->keys[d->slots[at] - 1], key))
		at = (at + 1) & (d->slots_cap - 1);
	if (!d->slots[at]) {
		r = array_grow(&d->keys, &d->keys_cap, d->keys_count, KEYS_MAX);
		if (r < 0)
			return r;
		d->keys[d->keys_count++] = *key;
		d->slots[at] = (uint32_t)d->keys_count;
	}
	*out = d->slots[at] - 1;
	return 0;
}

/* Marks */

struct dictionary_mark dictionary_end(const struct dictionary *d)
{
	return (struct dictionary_mark){
		.strings = (uint32_t)intern_count(&d->m.strings),
		.mappings = (uint32_t)d->m.mappings_count,
		.functions = (uint32_t)d->m.functions_count,
		.locations = (uint32_t)d->m.locations_count,
		.stacks = (uint32_t)d->m.stacks_count,
		.app_metadata = (uint32_t)d->m.app_metadata_count,
		.processes = (uint32_t)d->m.processes_count,
		.threads = (uint32_t)d->m.threads_count,
		.label_sets = (uint32_t)d->m.label_sets_count,
		.keys = (uint32_t)d->keys_count,
	};
}

bool dictionary_same_mark(const struct dictionary_mark *a, const struct dictionary_mark *b)
{
	return !memcmp(a, b, sizeof(*a)); /* ten uint32_t: no padding */
}

void dictionary_trim(struct dictionary *d)
{
	model_trim(&d->m);
	array_trim(&d->keys, &d->keys_cap, d->keys_count);
}

size_t dictionary_size(const struct dictionary *d)
{
	const struct model *m = &d->m;
	size_t size = m->strings.byte_cap + m->strings.end_cap * sizeof(size_t) + m->strings.slot_cap * 4 +
		      m->strings.hash_cap * 4;

	size += m->functions_cap * (sizeof(*m->functions) + 8) + m->lines_cap * sizeof(*m->lines);
	size += m->locations_cap * (sizeof(*m->locations) + 8) + m->stacks_cap * (sizeof(*m->stacks) + 8);
	size += m->mappings_cap * sizeof(*m->mappings) + m->processes_cap * (sizeof(*m->processes) + 8);
	size += m->threads_cap * (sizeof(*m->threads) + 8) + m->labels_cap * sizeof(*m->labels);
	size += m->label_sets_cap * (sizeof(*m->label_sets) + 8);
	return size + d->keys_cap * sizeof(*d->keys) + d->slots_cap * sizeof(*d->slots);
}

/* Chunks: ten sections in the order of the mark, each first row, rows, then one run of varints per column: its length
 * in front, so that all columns can be read side by side. */

#define COLUMNS_MAX 6

struct section_out {
	struct buf columns[COLUMNS_MAX];
	struct buf *out;
};

static void section_release(struct section_out *s)
{
	for (size_t i = 0; i < COLUMNS_MAX; i++)
		buf_release(&s->columns[i]);
}

static void put(struct section_out *s, size_t column, uint64_t value)
{
	wire_add_varint(&s->columns[column], value);
}

static void finish(struct section_out *s, uint32_t first, uint32_t end, size_t columns)
{
	wire_add_varint(s->out, first);
	wire_add_varint(s->out, end - first);
	for (size_t i = 0; i < columns; i++) {
		struct buf *column = &s->columns[i];

		if (column->error && !s->out->error)
			s->out->error = column->error;
		wire_add_varint(s->out, column->len);
		buf_add(s->out, column->ptr, column->len);
		column->len = 0;
	}
}

static void add_strings(struct section_out *s, const struct dictionary *d, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		struct str text = model_string(&d->m, i);

		put(s, 0, text.len);
		buf_adds(&s->columns[1], text);
	}
	finish(s, from, to, 2);
}

static void add_mappings(struct section_out *s, const struct dictionary *d, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		const struct model_mapping *row = &d->m.mappings[i];

		put(s, 0, row->start);
		put(s, 1, row->limit - row->start); /* wraps back when read */
		put(s, 2, row->file_offset);
		put(s, 3, row->filename);
		put(s, 4, row->build_id);
	}
	finish(s, from, to, 5);
}

static void add_functions(struct section_out *s, const struct dictionary *d, uint32_t from, uint32_t to)
{
	struct model_function last = { 0 };

	for (uint32_t i = from; i < to; last = d->m.functions[i++]) {
		const struct model_function *row = &d->m.functions[i];

		put(s, 0, zigzag((int64_t)row->name - last.name));
		put(s, 1, zigzag((int64_t)row->system_name - row->name));
		put(s, 2, zigzag((int64_t)row->filename - last.filename));
		put(s, 3, (uint64_t)row->kind);
		put(s, 4, zigzag(row->start_line));
	}
	finish(s, from, to, 5);
}

static void add_locations(struct section_out *s, const struct dictionary *d, uint32_t from, uint32_t to)
{
	uint64_t address = 0;
	uint32_t function = 0;

	for (uint32_t i = from; i < to; i++) {
		const struct model_location *row = &d->m.locations[i];

		put(s, 0, row->mapping);
		put(s, 1, zigzag((int64_t)(row->address - address)));
		put(s, 2, (uint64_t)row->line_count << 1 | row->is_folded);
		address = row->address;
		for (uint32_t l = 0; l < row->line_count; l++) {
			const struct model_line *line = &d->m.lines[row->first_line + l];

			put(s, 3, zigzag((int64_t)line->function - function));
			put(s, 4, zigzag(line->line));
			put(s, 5, zigzag(line->column));
			function = line->function;
		}
	}
	finish(s, from, to, 6);
}

static void add_stacks(struct section_out *s, const struct dictionary *d, uint32_t from, uint32_t to)
{
	uint32_t location = 0;

	for (uint32_t i = from; i < to; location = d->m.stacks[i++].location) {
		put(s, 0, i - d->m.stacks[i].parent);
		put(s, 1, zigzag((int64_t)d->m.stacks[i].location - location));
	}
	finish(s, from, to, 2);
}

static void add_processes(struct section_out *s, const struct dictionary *d, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		const struct model_process *row = &d->m.processes[i];

		put(s, 0, row->pid);
		put(s, 1, row->start_ns);
		put(s, 2, row->comm);
		put(s, 3, row->container);
		put(s, 4, row->app_id);
		put(s, 5, row->app_metadata);
	}
	finish(s, from, to, 6);
}

static void add_label_sets(struct section_out *s, const struct dictionary *d, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		const struct model_label_set *set = &d->m.label_sets[i];

		put(s, 0, set->count);
		for (uint32_t l = 0; l < set->count; l++) {
			const struct model_label *label = &d->m.labels[set->first + l];

			put(s, 1, (uint64_t)label->key << 1 | label->is_number);
			put(s, 2, label->is_number ? zigzag(label->number) : label->text);
			if (label->is_number)
				put(s, 3, label->unit);
		}
	}
	finish(s, from, to, 4);
}

static void add_keys(struct section_out *s, const struct dictionary *d, uint32_t from, uint32_t to)
{
	uint32_t stack = 0;

	for (uint32_t i = from; i < to; stack = d->keys[i++].stack) {
		put(s, 0, zigzag((int64_t)d->keys[i].stack - stack));
		put(s, 1, d->keys[i].process);
		put(s, 2, d->keys[i].thread);
		put(s, 3, d->keys[i].label_set);
		put(s, 4, d->keys[i].end);
	}
	finish(s, from, to, 5);
}

void dictionary_encode(const struct dictionary *d, const struct dictionary_mark *from, struct buf *out)
{
	scoped(section_release) struct section_out s = { .out = out };
	struct dictionary_mark to = dictionary_end(d);

	for (size_t i = 0; i < COLUMNS_MAX; i++)
		s.columns[i].max = DICTIONARY_CHUNK_MAX;
	add_strings(&s, d, from->strings, to.strings);
	add_mappings(&s, d, from->mappings, to.mappings);
	add_functions(&s, d, from->functions, to.functions);
	add_locations(&s, d, from->locations, to.locations);
	add_stacks(&s, d, from->stacks, to.stacks);
	for (uint32_t i = from->app_metadata; i < to.app_metadata; i++)
		put(&s, 0, d->m.app_metadata[i]);
	finish(&s, from->app_metadata, to.app_metadata, 1);
	add_processes(&s, d, from->processes, to.processes);
	for (uint32_t i = from->threads; i < to.threads; i++) {
		put(&s, 0, d->m.threads[i].process);
		put(&s, 1, d->m.threads[i].tid);
		put(&s, 2, d->m.threads[i].name);
	}
	finish(&s, from->threads, to.threads, 3);
	add_label_sets(&s, d, from->label_sets, to.label_sets);
	add_keys(&s, d, from->keys, to.keys);
}
