/* SPDX-License-Identifier: Apache-2.0 */
/* Perf maps: read once, then what was appended; read anew when the file was cut, written over or replaced. Jitdumps in
 * their place: read anew when they have grown, at most once a second; a name is that of the code that lay there last.
 */
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"
#include "codec/jitdump.h"
#include "object/perfmap.h"
#include "symbol/symbol_int.h"

#define READ_SIZE KIB(64)
#define WORK_PER_BYTE 2   /* of text, beside a byte of a symbol table */
#define FILE_MAX MIB(256) /* nothing behind it is read: about 0.5 s of work */
#define MARK_SIZE 64
#define DUMP_MAX MIB(64) /* of a jitdump, which has the code too: nothing behind it is read */
#define DUMP_NS NSEC_PER_SEC
#define DUMP_MAGIC 0x4a695444U

struct symbol_jit {
	uint64_t process_key;
	dev_t device;
	ino_t inode;
	uint64_t at;             /* read up to here */
	uint8_t mark[MARK_SIZE]; /* the bytes before it, to notice a file that was written over */
	size_t mark_size;
	struct perfmap map;
	struct jitdump dump; /* instead of map, when is_dump is set */
	bool is_dump;
	uint64_t dump_ns; /* when it was read, or found to be damaged; 0: never */
	uint64_t used;    /* symbols.clock */
};

static void jit_free(struct symbol_jit *j)
{
	if (j) {
		perfmap_release(&j->map);
		jitdump_release(&j->dump);
	}
	free(j);
}

static size_t dump_size(const struct jitdump *d)
{
	return d->load_cap * sizeof(*d->loads) + d->code_cap * sizeof(*d->codes) + d->line_cap * sizeof(*d->lines) +
	       d->names_cap;
}

void symbol_jits_release(struct symbols *s)
{
	for (size_t i = 0; i < SYMBOL_JITS_MAX; i++)
		jit_free(s->jits[i]);
}

static size_t memory_of(const struct symbols *s)
{
	size_t memory = 0;

	for (size_t i = 0; i < SYMBOL_JITS_MAX; i++)
		memory += s->jits[i] ? perfmap_size(&s->jits[i]->map) + dump_size(&s->jits[i]->dump) : 0;
	return memory;
}

size_t symbol_jits_memory(const struct symbols *s)
{
	return memory_of(s);
}

/* The least recently used map other than @keep, or NULL. */
static struct symbol_jit **oldest(struct symbols *s, const struct symbol_jit *keep)
{
	struct symbol_jit **found = NULL;

	for (size_t i = 0; i < SYMBOL_JITS_MAX; i++)
		if (s->jits[i] && s->jits[i] != keep && (!found || s->jits[i]->used < (*found)->used))
			found = &s->jits[i];
	return found;
}

static struct symbol_jit *get(struct symbols *s, uint64_t process_key)
{
	struct symbol_jit **slot = NULL, *j;

	for (size_t i = 0; i < SYMBOL_JITS_MAX; i++) {
		if (s->jits[i] && s->jits[i]->process_key == process_key)
			return s->jits[i];
		if (!s->jits[i])
			slot = &s->jits[i];
	}
	j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	j->process_key = process_key;
	perfmap_init(&j->map, s->jit_memory_max);
	if (!slot) {
		slot = oldest(s, NULL);
		jit_free(*slot);
	}
	return *slot = j;
}

static void restart(struct symbol_jit *j, const struct stat *st)
{
	perfmap_release(&j->map);
	jitdump_release(&j->dump);
	j->dump = (struct jitdump){ 0 };
	j->is_dump = false;
	j->at = 0;
	j->mark_size = 0;
	j->device = st->st_dev;
	j->inode = st->st_ino;
}

static bool is_same_so_far(const struct symbol_jit *j, int fd, const struct stat *st)
{
	uint8_t bytes[MARK_SIZE];

	if (st->st_dev != j->device || st->st_ino != j->inode || (uint64_t)st->st_size < j->at)
		return false;
	return !j->mark_size || (io_pread_all(fd, bytes, j->mark_size, j->at - j->mark_size) == 0 &&
				 !memcmp(bytes, j->mark, j->mark_size));
}

static int read_appended(struct symbol_jit *j, int fd, uint64_t size)
{
	scoped(freep) uint8_t *bytes = malloc(READ_SIZE);

	if (!bytes)
		return -ENOMEM;
	while (j->at < size) {
		size_t piece = (size_t)MIN(size - j->at, (uint64_t)READ_SIZE);

		if (io_pread_all(fd, bytes, piece, j->at) < 0)
			return 0; /* the file was cut while it is read: the next look finds out */
		perfmap_feed(&j->map, bytes, piece);
		if (j->map.error)
			return j->map.error;
		j->at += piece;
		j->mark_size = MIN(piece, (size_t)MARK_SIZE);
		memcpy(j->mark, bytes + piece - j->mark_size, j->mark_size);
	}
	return 0;
}

static bool begins_as_dump(int fd)
{
	uint32_t magic;

	return io_pread_all(fd, &magic, sizeof(magic), 0) == 0 && magic == DUMP_MAGIC;
}

/* What is damaged, or was cut while it is read, leaves what was known before. That, too, is looked at once a second: a
 * process could spend what there is for all. */
static int refresh_dump(struct symbols *s, struct symbol_jit *j, int fd, const struct stat *st)
{
	size_t size = (size_t)MIN((uint64_t)st->st_size, (uint64_t)DUMP_MAX);
	uint64_t now_ns = clock_monotonic_ns(&clock_system);
	scoped(freep) char *bytes = NULL;
	struct jitdump fresh = { 0 };
	int r;

	if (j->dump_ns && st->st_dev == j->device && st->st_ino == j->inode && now_ns - j->dump_ns < DUMP_NS)
		return 0;
	if (!symbol_work_take(s, size))
		return 0;
	j->dump_ns = now_ns;
	j->device = st->st_dev;
	j->inode = st->st_ino;
	bytes = malloc(size ? size : 1);
	if (!bytes)
		return -ENOMEM;
	if (io_pread_all(fd, bytes, size, 0) < 0)
		return 0;
	r = jitdump_parse(str_n(bytes, size), s->jit_memory_max / 2, &fresh);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	restart(j, st);
	j->dump = fresh;
	j->is_dump = true;
	j->at = (uint64_t)st->st_size;
	return 0;
}

static int refresh(struct symbols *s, struct symbol_jit *j, int fd)
{
	struct stat st;
	uint64_t size;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0; /* what was read before stays */
	if (st.st_dev == j->device && st.st_ino == j->inode && (uint64_t)st.st_size == j->at)
		return 0;
	if (begins_as_dump(fd))
		return refresh_dump(s, j, fd, &st);
	if (j->is_dump || !is_same_so_far(j, fd, &st))
		restart(j, &st);
	size = MIN((uint64_t)st.st_size, (uint64_t)FILE_MAX);
	if (size <= j->at || !symbol_work_take(s, (size - j->at) * WORK_PER_BYTE))
		return 0; /* all or nothing: half a map could name the wrong function */
	return read_appended(j, fd, size);
}

static struct str find_name(const struct symbol_jit *j, uint64_t address, uint64_t *start)
{
	struct str name = STR("");
	struct jitdump_hit hit;

	if (!j->is_dump) {
		ignore(perfmap_find(&j->map, address, &name, start)); /* a miss: no name */
		return name;
	}
	if (jitdump_find(&j->dump, address, UINT64_MAX, &hit) < 0)
		return name;
	*start = hit.start;
	return hit.name;
}

int symbols_jit(struct symbols *s, uint64_t process_key, int perf_map_fd, uint64_t address, bool is_return,
		struct symbol *out)
{
	struct symbol symbol = { .address = address, .start = address, .module = STR("") };
	struct symbol_jit *j = get(s, process_key), **old;
	struct str name;
	int r;

	if (!j)
		return -ENOMEM;
	j->used = ++s->clock;
	r = refresh(s, j, perf_map_fd);
	if (r < 0) {
		restart(j, &(struct stat){ 0 }); /* half a map could name the wrong function */
		return r;
	}
	while (memory_of(s) > s->jit_memory_max && (old = oldest(s, j))) {
		jit_free(*old);
		*old = NULL;
	}
	name = find_name(j, address - (is_return && address ? 1 : 0), &symbol.start);
	r = symbol_answer(s, name, STR("jit"), address, &symbol);
	if (r == 0)
		*out = symbol;
	return r;
}
