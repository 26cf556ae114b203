/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each file, and which tables are in memory. */
#include <elf.h>
#include <sys/stat.h>

#include "base/array.h"
#include "symbol/symbol_int.h"

#define RETRY_NS NSEC_PER_SEC
#define NO_SYMBOLS 1

void symbol_file_release(struct symbol_file *file)
{
	elf_release(&file->elf);
	file_view_release(&file->view);
	*file = (struct symbol_file){ .view.fd = -1 };
}

void symbol_object_free(struct symbol_object *m)
{
	if (!m)
		return;
	elf_release(&m->elf);
	free(m->path);
	free(m);
}

static void evict(struct symbols *s, size_t slot)
{
	s->tables_memory -= s->tables[slot]->memory;
	symbol_table_free(s->tables[slot]);
	s->tables[slot] = NULL;
	s->stats.tables_evicted++;
}

/* The least recently used table, or SIZE_MAX; *empty: a free slot, or SIZE_MAX. */
static size_t oldest_table(const struct symbols *s, size_t *empty)
{
	size_t oldest = SIZE_MAX;

	*empty = SIZE_MAX;
	for (size_t i = 0; i < s->table_max; i++) {
		if (!s->tables[i])
			*empty = i;
		else if (oldest == SIZE_MAX || s->tables[i]->used < s->tables[oldest]->used)
			oldest = i;
	}
	return oldest;
}

int symbol_file_open(struct symbols *s, uint32_t file_id, struct symbol_file *file)
{
	struct file_view view = { .fd = -1 };
	size_t oldest, empty;
	int r = files_view(s->files, file_id, &view);

	/* Out of descriptors: our tables hold some. */
	while ((r == -EMFILE || r == -ENFILE) && (oldest = oldest_table(s, &empty)) != SIZE_MAX) {
		evict(s, oldest);
		r = files_view(s->files, file_id, &view);
	}
	if (r < 0)
		return r;
	file->view = view;
	file->in = view.image ? reader_of(view.image, view.image_size) : symbol_fd_reader(view.fd, view.key.size);
	return 0;
}

void symbol_object_failed(struct symbols *s, struct symbol_object *m, int r)
{
	s->stats.files_failed += !m->reopen.doublings; /* once, however often it is tried */
	file_retry_failed(&m->reopen, r, clock_monotonic_ns(s->time));
}

bool symbol_object_waits(const struct symbols *s, const struct symbol_object *m)
{
	return file_retry_waits(&m->reopen, clock_monotonic_ns(s->time));
}

void symbol_object_opened(struct symbol_object *m)
{
	m->reopen = (struct file_retry){ 0 };
}

static void keep_headers(struct symbol_object *m, const struct elf *elf)
{
	size_t count = 0;

	m->elf = (struct elf){ .is_64 = elf->is_64, .type = elf->type, .machine = elf->machine, .entry = elf->entry };
	m->elf.segments = calloc(elf->segment_count + 1, sizeof(*elf->segments));
	for (size_t i = 0; m->elf.segments && i < elf->segment_count; i++)
		if (elf->segments[i].type == PT_LOAD)
			m->elf.segments[count++] = elf->segments[i];
	m->elf.segment_count = count;
}

/* Return: 0; -ENOMEM: nothing was learnt, now or before; or why the file cannot be read, which is noted. */
static int look_at(struct symbols *s, uint32_t file_id, struct symbol_object *m)
{
	scoped(symbol_file_release) struct symbol_file file = { .view.fd = -1 };
	int r = symbol_file_open(s, file_id, &file);

	if (!m->path && files_path(s->files, file_id, &m->path) == -ENOMEM)
		return -ENOMEM;
	if (r == 0)
		r = elf_parse(&file.in, &file.elf);
	if (r < 0 && r != -ENOMEM)
		symbol_object_failed(s, m, r);
	if (r < 0)
		return r;
	r = elf_build_id(&file.elf, m->build_id.bytes);
	if (r == -ENOMEM)
		return r;
	keep_headers(m, &file.elf);
	if (!m->elf.segments)
		return -ENOMEM;
	m->build_id.size = r > 0 ? (uint8_t)r : 0;
	m->is_elf = true;
	symbol_object_opened(m);
	return 0;
}

/* At a file that could not be opened when it was looked at last. Return: 0 or -ENOMEM. */
static int look_again(struct symbols *s, uint32_t file_id, struct symbol_object *m)
{
	if (m->is_elf || !m->reopen.is_away || symbol_object_waits(s, m))
		return 0;
	return look_at(s, file_id, m) == -ENOMEM ? -ENOMEM : 0;
}

static void objectp_free(struct symbol_object **m)
{
	symbol_object_free(*m);
}

static int grow_objects(struct symbols *s, size_t count)
{
	struct symbol_object **grown;
	size_t want = MAX(count, s->object_count + s->object_count / 2 + 64);

	if (count <= s->object_count)
		return 0;
	grown = realloc(s->objects, want * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + s->object_count, 0, (want - s->object_count) * sizeof(*grown));
	s->objects = grown;
	s->object_count = want;
	return 0;
}

int symbol_object_get(struct symbols *s, uint32_t file_id, struct symbol_object **out)
{
	scoped(objectp_free) struct symbol_object *m = NULL;
	int r;

	if (!file_id || file_id > SYMBOL_FILES_MAX)
		return -ENOENT;
	r = grow_objects(s, file_id);
	if (r < 0)
		return r;
	*out = s->objects[file_id - 1];
	if (*out)
		return look_again(s, file_id, *out);
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	r = look_at(s, file_id, m);
	if (r == -ENOMEM)
		return r;
	*out = s->objects[file_id - 1] = m;
	m = NULL;
	return 0;
}

bool symbol_key_same(const struct symbol_key *a, const struct symbol_key *b)
{
	return a->build_id.size && a->build_id.size == b->build_id.size && a->size == b->size && a->owner == b->owner &&
	       !memcmp(a->build_id.bytes, b->build_id.bytes, a->build_id.size);
}

/* A free slot, after dropping the least recently used tables until @memory fits beside the rest. A table that is larger
 * than the whole budget stays alone. */
static size_t make_room(struct symbols *s, size_t memory)
{
	for (;;) {
		size_t empty, oldest = oldest_table(s, &empty);

		if (empty != SIZE_MAX && (oldest == SIZE_MAX || s->tables_memory + memory <= s->memory_max))
			return empty;
		evict(s, oldest);
	}
}

struct symbol_key symbol_key_of(const struct symbol_object *m, const struct symbol_file *file)
{
	struct symbol_key key = { .build_id = m->build_id, .size = file->in.size };
	struct stat st;

	if (file->view.fd >= 0 && fstat(file->view.fd, &st) == 0)
		key.owner = st.st_uid;
	return key;
}

/* Return: 0; NO_SYMBOLS; -EAGAIN: the budget is used up; or why the file cannot be read. */
static int find_or_load(struct symbols *s, uint32_t file_id, struct symbol_object *m, size_t *out)
{
	scoped(symbol_file_release) struct symbol_file file = { .view.fd = -1 };
	struct symbol_table *t = NULL;
	struct symbol_key key;
	size_t slot;
	int r = symbol_file_open(s, file_id, &file);

	if (r < 0)
		return r;
	key = symbol_key_of(m, &file);
	for (size_t i = 0; i < SYMBOL_TABLES_MAX; i++) {
		if (s->tables[i] && symbol_key_same(&s->tables[i]->key, &key)) {
			*out = i;
			return 0;
		}
	}
	r = elf_parse(&file.in, &file.elf);
	if (r < 0)
		return r;
	r = symbol_table_load(s, m, &file, &t);
	if (r < 0)
		return r == -ENOENT ? NO_SYMBOLS : r;
	t->key = key;
	t->serial = ++s->serial;
	slot = make_room(s, t->memory);
	s->tables[slot] = t;
	s->tables_memory += t->memory;
	s->stats.tables_loaded++;
	*out = slot;
	return 0;
}

int symbol_table_get(struct symbols *s, uint32_t file_id, struct symbol_object *m, struct symbol_table **out)
{
	struct symbol_table *t = m->table_serial ? s->tables[m->table] : NULL;
	int r;

	if (!m->is_elf || m->tableless || (m->later_ns && clock_monotonic_ns(s->time) < m->later_ns))
		return -ENOENT;
	if (!t || t->serial != m->table_serial) {
		if (symbol_object_waits(s, m))
			return -ENOENT;
		r = find_or_load(s, file_id, m, &m->table);
		if (r == -ENOMEM)
			return r;
		if (r == -EAGAIN) { /* the budget is used up; opening the file again for every frame would cost, too */
			m->later_ns = clock_monotonic_ns(s->time) + RETRY_NS;
			return -ENOENT;
		}
		if (r == NO_SYMBOLS) {
			m->tableless = true;
			return -ENOENT;
		}
		if (r < 0) {
			symbol_object_failed(s, m, r);
			m->tableless = !m->reopen.is_away;
			return -ENOENT;
		}
		symbol_object_opened(m);
		t = s->tables[m->table];
		m->table_serial = t->serial;
	}
	t->used = ++s->clock;
	*out = t;
	return 0;
}
