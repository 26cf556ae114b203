/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/spaces.h"

#include "base/array.h"
#include "base/random.h"
#include "proc/program_hash.h"

struct space { /* mappings the kernel was told of, sorted by start */
	uint32_t number;
	uint32_t refs; /* processes */
	struct abi_map *maps;
	size_t count;
};

struct process {
	struct program key;
	uint64_t hash;
	size_t index;
	struct maps_ref *wanted, *told; /* told: what space was made of; or NULL */
	struct space *space;            /* NULL: the kernel does not know it */
	uint32_t raws;
	bool is_dirty; /* in spaces.dirty */
	uint64_t retry_ns;
	struct process *newer, *older; /* by last use */
};

struct spaces {
	struct rows *rows;
	const struct table_sink *sink;
	const struct clock *clock;
	struct process **items;
	size_t count, cap;
	struct u64map by_key; /* hash -> index */
	struct u64map by_pid; /* -> index of its latest program */
	struct process *newest, *oldest;
	struct process **dirty;
	size_t dirty_count, dirty_cap;
	struct map_change *changes;
	size_t change_count, change_cap;
	uint64_t space_count, map_count;
	uint64_t seed;
	uint32_t last_number;
	uint64_t deep[ROWS_FILE_IDS_MAX / 64]; /* by file id: a program whose stacks were longer than a copy */
};

/* ---- processes ---- */

static bool same_process(const struct program *a, const struct program *b)
{
	return a->pid == b->pid && a->exec_id == b->exec_id && a->start_ns == b->start_ns;
}

static void list_remove(struct spaces *s, struct process *p)
{
	*(p->newer ? &p->newer->older : &s->newest) = p->older;
	*(p->older ? &p->older->newer : &s->oldest) = p->newer;
	p->newer = p->older = NULL;
}

static void list_push(struct spaces *s, struct process *p)
{
	p->older = s->newest;
	*(s->newest ? &s->newest->newer : &s->oldest) = p;
	s->newest = p;
}

/* Is @a the program that @b became, or a process that got the pid of @b? Exec ids count up and may wrap. */
static bool is_later(const struct program *a, const struct program *b)
{
	return a->start_ns != b->start_ns ? a->start_ns > b->start_ns : (int32_t)(a->exec_id - b->exec_id) > 0;
}

static struct process *find(const struct spaces *s, const struct program *key)
{
	uint32_t at;

	if (u64map_get(&s->by_key, program_hash(key, s->seed), &at) < 0)
		return NULL;
	return same_process(&s->items[at]->key, key) ? s->items[at] : NULL;
}

static int add_change(struct spaces *s, uint32_t number, const struct abi_map *map, bool goes)
{
	int r = array_grow(&s->changes, &s->change_cap, s->change_count, 2 * SPACES_MAPS_MAX + 2 * SPACES_MAPS_OF_ONE);
	struct map_change *c;

	if (r < 0)
		return r;
	c = &s->changes[s->change_count++];
	*c = (struct map_change){ .space = number, .map = *map };
	if (goes)
		c->map.kind = ABI_MAP_NONE;
	return 0;
}

static int send_changes(struct spaces *s)
{
	return s->change_count ? s->sink->change_maps(s->sink->self, s->changes, s->change_count) : 0;
}

static void hold(struct spaces *s, const struct abi_map *maps, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (maps[i].table)
			rows_hold(s->rows, maps[i].table);
}

static void release(struct spaces *s, const struct abi_map *maps, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (maps[i].table)
			rows_release(s->rows, maps[i].table);
}

/* One process less has it. Without any the kernel forgets its mappings. */
static void drop_space(struct spaces *s, struct space *space)
{
	if (!space || --space->refs)
		return;
	s->change_count = 0;
	for (size_t i = 0; i < space->count; i++)
		if (add_change(s, space->number, &space->maps[i], true) < 0)
			break;
	/* What could not be taken away is never looked at again: the number is not used twice. */
	ignore(send_changes(s));
	release(s, space->maps, space->count);
	s->map_count -= space->count;
	s->space_count--;
	free(space->maps);
	free(space);
}

static bool has_pid(const struct spaces *s, const struct process *p)
{
	uint32_t at;

	return u64map_get(&s->by_pid, p->key.pid, &at) == 0 && at == p->index;
}

static void forget_pid(struct spaces *s, const struct process *p)
{
	if (!has_pid(s, p))
		return; /* another program has it by now */
	ignore(u64map_remove(&s->by_pid, p->key.pid));
	if (p->space) /* the kernel's side may have forgotten it itself */
		ignore(s->sink->set_space(s->sink->self, p->key.pid, NULL));
}

static void free_process(struct process *p)
{
	maps_ref_put(p->wanted);
	maps_ref_put(p->told);
	free(p);
}

static void drop_process(struct spaces *s, struct process *p)
{
	struct process *last = s->items[s->count - 1];

	forget_pid(s, p);
	drop_space(s, p->space);
	ignore(u64map_remove(&s->by_key, p->hash)); /* it is there */
	if (last != p) {
		must(u64map_put(&s->by_key, last->hash, (uint32_t)p->index) == 0); /* replaces: needs no room */
		if (has_pid(s, last))
			must(u64map_put(&s->by_pid, last->key.pid, (uint32_t)p->index) == 0);
		s->items[p->index] = last;
		last->index = p->index;
	}
	s->count--;
	for (size_t i = 0; p->is_dirty && i < s->dirty_count; i++)
		if (s->dirty[i] == p)
			s->dirty[i] = NULL;
	list_remove(s, p);
	free_process(p);
}

/* A sample can come back from its walk when its program is no more: it does not take the pid from the next one. */
static int take_pid(struct spaces *s, const struct program *key, size_t index)
{
	uint32_t at;

	if (u64map_get(&s->by_pid, key->pid, &at) == 0 && is_later(&s->items[at]->key, key))
		return 0;
	return u64map_put(&s->by_pid, key->pid, (uint32_t)index);
}

/* Makes @p, which has key and hash, one of the processes. */
static int add_process(struct spaces *s, struct process *p)
{
	int r = array_grow(&s->items, &s->cap, s->count, SPACES_PROCESSES_MAX);

	if (r == 0)
		r = u64map_put(&s->by_key, p->hash, (uint32_t)s->count);
	if (r < 0)
		return r;
	r = take_pid(s, &p->key, s->count);
	if (r < 0) {
		ignore(u64map_remove(&s->by_key, p->hash)); /* it is there */
		return r;
	}
	p->index = s->count;
	s->items[s->count++] = p;
	list_push(s, p);
	return 0;
}

/* NULL: out of memory. */
static struct process *create(struct spaces *s, const struct program *key)
{
	uint64_t hash = program_hash(key, s->seed);
	struct process *p;
	uint32_t at;

	if (s->count >= SPACES_PROCESSES_MAX)
		drop_process(s, s->oldest);
	if (u64map_get(&s->by_key, hash, &at) == 0) /* another with the same 64 bits: negligible */
		drop_process(s, s->items[at]);
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->key = *key;
	p->hash = hash;
	if (add_process(s, p) == 0)
		return p;
	free(p);
	return NULL;
}

/* NULL: out of memory. */
static struct process *use(struct spaces *s, const struct program *key)
{
	struct process *p = find(s, key);

	if (!p)
		return create(s, key);
	list_remove(s, p);
	list_push(s, p);
	return p;
}

/* A forked child asks for what its parent was told of already. */
static bool knows(struct process *p, struct maps_ref *maps)
{
	if (p->told == maps)
		return true;
	if (!p->told || !maps_equal(&p->told->maps, &maps->maps))
		return false;
	maps_ref_put(p->told);
	p->told = maps_ref_get(maps);
	return true;
}

static void want(struct spaces *s, struct process *p, struct maps_ref *maps)
{
	if ((!p->is_dirty && knows(p, maps)) || clock_monotonic_ns(s->clock) < p->retry_ns)
		return;
	if (!p->is_dirty && array_grow(&s->dirty, &s->dirty_cap, s->dirty_count, SPACES_PROCESSES_MAX * 2) < 0)
		return;
	if (!p->is_dirty)
		s->dirty[s->dirty_count++] = p;
	p->is_dirty = true;
	maps_ref_put(p->wanted);
	p->wanted = maps_ref_get(maps);
}

void spaces_set(struct spaces *s, const struct program *process, struct maps_ref *maps)
{
	struct process *p = use(s, process);

	if (p)
		want(s, p, maps);
}

/* The kernel's entry of a process: it has the space. */
static int set_space(struct spaces *s, const struct process *p)
{
	const struct abi_space told = { .start_ns = p->key.start_ns,
					.exec_id = p->key.exec_id,
					.space = p->space->number };

	return s->sink->set_space(s->sink->self, p->key.pid, &told);
}

/* The bit of the program that these mappings are of: the file at the lowest address. NULL: there is none. */
static uint64_t *deep_word(struct spaces *s, const struct mappings *maps, uint64_t *bit)
{
	uint32_t id = maps->count && maps->items[0].kind == PROC_PLACE_FILE ? maps->items[0].file_id : 0;

	if (!id || id >= ROWS_FILE_IDS_MAX)
		return NULL;
	*bit = UINT64_C(1) << (id % 64);
	return &s->deep[id / 64];
}

/* Is it of a program whose stacks are longer than a copy? @is_cut: this one was. */
static bool is_deep(struct spaces *s, const struct mappings *maps, bool is_cut)
{
	uint64_t bit, *word = deep_word(s, maps, &bit);

	if (!word)
		return is_cut;
	*word |= is_cut ? bit : 0;
	return *word & bit;
}

void spaces_raw(struct spaces *s, const struct program *process, struct maps_ref *maps, struct spaces_raw raw)
{
	bool deep = is_deep(s, &maps->maps, raw.is_cut);
	struct process *p = use(s, process);

	if (!p)
		return;
	/* Told of in the middle of its exec, at whose end the kernel's side forgets the pid; or at a fork whose entry
	 * did not fit. */
	if (raw.is_unknown && p->space && has_pid(s, p))
		ignore(set_space(s, p)); /* the next sample comes raw, too */
	p->raws += p->raws < 2;
	if (p->raws >= 2 || raw.is_old || raw.is_full || deep)
		want(s, p, maps);
}

void spaces_expect(struct spaces *s, const struct program *process, struct maps_ref *maps, bool is_full)
{
	struct process *p = is_full || is_deep(s, &maps->maps, false) ? use(s, process) : NULL;

	if (p)
		want(s, p, maps);
}

void spaces_share(struct spaces *s, const struct program *child, const struct program *parent)
{
	struct process *from = find(s, parent), *p;

	if (!from || !from->space || find(s, child))
		return;
	p = create(s, child); /* may have dropped the parent to make room */
	from = find(s, parent);
	if (!p || !from || !from->space)
		return;
	p->space = from->space;
	p->space->refs++;
	p->told = maps_ref_get(from->told);
}

void spaces_forget(struct spaces *s, const struct program *process)
{
	struct process *p = find(s, process);

	if (p)
		drop_process(s, p);
}

/* ---- telling ---- */

/* What the kernel is to know of one mapping. Return: 0; -ENOENT when there is nothing to say; -ENOMEM, -ENOSPC. */
static int describe(struct spaces *s, const struct mapping *m, struct abi_map *out)
{
	*out = (struct abi_map){ .start = m->start, .end = m->end, .file_base = m->start - m->offset };
	switch (m->kind) {
	case PROC_PLACE_FILE:
	case PROC_PLACE_VDSO:
		if (m->file_id)
			return rows_describe(s->rows, m->file_id, false, out);
		return -ENOENT;
	case PROC_PLACE_ANONYMOUS:
		out->kind = ABI_MAP_JIT;
		out->file_base = 0;
		return 0;
	default:
		return -ENOENT;
	}
}

static bool continues(const struct abi_map *a, const struct abi_map *b)
{
	return a->end == b->start && a->kind == b->kind && a->file == b->file && a->file_base == b->file_base;
}

/* Of a process with too many the ends are told: programs lie at the lower one, their libraries at the upper one, and
 * what they map by the thousands grows in between. */
static bool is_left_out(const struct mappings *maps, size_t at)
{
	return maps->count > SPACES_MAPS_OF_ONE && at >= SPACES_MAPS_OF_ONE / 4 &&
	       maps->count - at > SPACES_MAPS_OF_ONE - SPACES_MAPS_OF_ONE / 4;
}

/* Neighbours that say the same are one. Return: 0 with *@count entries in @list, whose tables are held; or -errno. */
static int fill_maps(struct spaces *s, const struct mappings *maps, struct abi_map *list, size_t *count)
{
	for (size_t i = 0; i < maps->count; i++) {
		struct abi_map map;
		int r = is_left_out(maps, i) ? -ENOENT : describe(s, &maps->items[i], &map);

		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		if (*count && continues(&list[*count - 1], &map)) {
			list[*count - 1].end = map.end;
			continue;
		}
		hold(s, &map, 1); /* at once: the next file may want a number */
		list[(*count)++] = map;
	}
	return 0;
}

static int list_maps(struct spaces *s, const struct mappings *maps, struct abi_map **out, size_t *out_count)
{
	size_t cap = MIN(maps->count, (size_t)SPACES_MAPS_OF_ONE), count = 0;
	scoped(freep) struct abi_map *list = calloc(MAX(cap, (size_t)1), sizeof(*list));
	int r = list ? fill_maps(s, maps, list, &count) : -ENOMEM;

	if (r < 0) {
		release(s, list, count);
		return r;
	}
	*out = list;
	*out_count = count;
	list = NULL;
	return 0;
}

static bool same_map(const struct abi_map *a, const struct abi_map *b)
{
	return a->start == b->start && a->end == b->end && a->file_base == b->file_base && a->file == b->file &&
	       a->table == b->table && a->kind == b->kind;
}

/* Adds what @list[i] has and @other does not; both sorted by start. */
static int add_missing(struct spaces *s, uint32_t number, const struct abi_map *list, size_t count,
		       const struct space *other, bool goes)
{
	const struct abi_map *maps = other ? other->maps : NULL;
	size_t at = 0, other_count = other ? other->count : 0;
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		while (at < other_count && maps[at].start < list[i].start)
			at++;
		if (at == other_count || !same_map(&maps[at], &list[i]))
			r = add_change(s, number, &list[i], goes);
	}
	return r;
}

/* First what goes, then what comes: they may overlap. */
static int send_difference(struct spaces *s, const struct space *before, const struct space *after)
{
	int r = 0;

	s->change_count = 0;
	if (before)
		r = add_missing(s, after->number, before->maps, before->count, after, true);
	if (r == 0)
		r = add_missing(s, after->number, after->maps, after->count, before, false);
	return r < 0 ? r : send_changes(s);
}

/* Who gives room: the one with the most mappings, so that nobody can drive out all others, else the one not heard of
 * for longest. NULL: nobody but @keep. */
static struct process *victim(const struct spaces *s, const struct process *keep)
{
	struct process *largest = NULL;

	for (struct process *p = s->oldest; p; p = p->newer)
		if (p != keep && p->space && p->space->count > (largest ? largest->space->count : SPACES_MAPS_FEW))
			largest = p;
	if (largest)
		return largest;
	return s->oldest != keep ? s->oldest : NULL;
}

/* Makes room for @more mappings. */
static void make_room(struct spaces *s, const struct process *keep, size_t more)
{
	struct process *p;

	while (s->map_count + more > SPACES_MAPS_MAX && (p = victim(s, keep)))
		drop_process(s, p);
}

static void free_space(struct space **space)
{
	if (!*space)
		return;
	free((*space)->maps);
	free(*space);
}

/* The kernel does not know all of what we think it does: away with it. */
static void give_up(struct spaces *s, struct process *p)
{
	if (p->space)
		ignore(s->sink->set_space(s->sink->self, p->key.pid, NULL));
	drop_space(s, p->space);
	p->space = NULL;
	maps_ref_put(p->told);
	p->told = NULL;
	p->retry_ns = clock_monotonic_ns(s->clock) + SPACES_RETRY_NS;
}

/* The mappings of a space that only this process has are changed in place. */
static int change_space(struct spaces *s, struct process *p, struct space *fresh)
{
	struct space *space = p->space;
	int r;

	fresh->number = space->number;
	r = send_difference(s, space, fresh);
	release(s, space->maps, space->count);
	s->map_count += fresh->count;
	s->map_count -= space->count;
	free(space->maps);
	space->maps = fresh->maps;
	space->count = fresh->count;
	fresh->maps = NULL;
	return r;
}

static int new_space(struct spaces *s, struct process *p, struct space **fresh)
{
	struct space *space = *fresh;
	int r;

	space->number = ++s->last_number;
	s->map_count += space->count;
	s->space_count++;
	drop_space(s, p->space); /* the others of the fork go on with it */
	p->space = space;
	space->refs = 1;
	*fresh = NULL;
	r = send_difference(s, NULL, space);
	return r < 0 ? r : set_space(s, p);
}

static int tell(struct spaces *s, struct process *p)
{
	scoped(free_space) struct space *fresh = calloc(1, sizeof(*fresh));
	int r;

	if (s->last_number == UINT32_MAX) /* after days of nothing else */
		return -EOVERFLOW;
	r = fresh ? list_maps(s, &p->wanted->maps, &fresh->maps, &fresh->count) : -ENOMEM;

	if (r < 0)
		return r;
	list_remove(s, p); /* so that it is the last to go */
	list_push(s, p);
	make_room(s, p, fresh->count);
	return p->space && p->space->refs == 1 ? change_space(s, p, fresh) : new_space(s, p, &fresh);
}

static void tell_dirty(struct spaces *s)
{
	for (size_t i = 0; i < s->dirty_count; i++) {
		struct process *p = s->dirty[i];

		if (!p)
			continue;
		p->is_dirty = false;
		if (!has_pid(s, p)) { /* it would take the place of the program that has it now */
			maps_ref_put(p->wanted);
		} else if (tell(s, p) < 0) {
			give_up(s, p);
			maps_ref_put(p->wanted);
		} else {
			maps_ref_put(p->told);
			p->told = p->wanted;
		}
		p->wanted = NULL;
	}
	s->dirty_count = 0;
}

/* Adds the changes of the mappings of table @number. */
static void turn_maps(struct spaces *s, struct space *space, uint32_t number, uint8_t kind)
{
	for (size_t i = 0; i < space->count; i++) {
		struct abi_map *map = &space->maps[i];

		if (map->table != number || map->kind == kind)
			continue;
		ignore(rows_describe(s->rows, map->file, false, map)); /* it has a number */
		ignore(add_change(s, space->number, map, false));      /* its samples go on to come raw */
	}
}

/* A file turned out to have no rows, or to have them after all: its mappings say so. */
static void tell_turned(struct spaces *s)
{
	uint32_t number;
	uint8_t kind;

	while ((number = rows_turned(s->rows, &kind))) {
		s->change_count = 0;
		for (size_t i = 0; i < s->count; i++)
			if (s->items[i]->space)
				turn_maps(s, s->items[i]->space, number, kind);
		ignore(send_changes(s));
	}
}

void spaces_flush(struct spaces *s)
{
	tell_dirty(s);
	tell_turned(s);
}

uint64_t spaces_count(const struct spaces *s)
{
	return s->space_count;
}

uint64_t spaces_maps(const struct spaces *s)
{
	return s->map_count;
}

int spaces_open(struct rows *rows, const struct table_sink *sink, const struct clock *clock, struct spaces **out)
{
	struct spaces *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->rows = rows;
	s->sink = sink;
	s->clock = clock;
	s->seed = random_u64();
	u64map_init(&s->by_key, SPACES_PROCESSES_MAX);
	u64map_init(&s->by_pid, SPACES_PROCESSES_MAX);
	*out = s;
	return 0;
}

/* The kernel's maps go with the sampler: nothing is taken away one by one. */
void spaces_close(struct spaces *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++) {
		struct space *space = s->items[i]->space;

		if (space && !--space->refs)
			free_space(&space);
		free_process(s->items[i]);
	}
	free(s->items);
	free(s->dirty);
	free(s->changes);
	u64map_release(&s->by_key);
	u64map_release(&s->by_pid);
	free(s);
}
