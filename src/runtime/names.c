/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/names.h"

#include "base/array.h"
#include "base/u64map.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define BYTE_MAX_DEFAULT MIB(32)
#define ENTRY_SHARE 4        /* a quarter of the bytes is for entries */
#define LINE_CACHE_SIZE 4096 /* a power of two */
#define LINES_HASHED 256     /* of a line table: what a record has of it is what makes functions equal */
#define NOBODY UINT32_MAX
#define LATER_MAX \
	14 /* times that one that could not be read, or lacks lines, is read again: after 2, 8 ... 2^27 look-ups */
#define LATER_NS (40 * NSEC_PER_MSEC) /* or when so long, twice as long ... has passed since it was last asked for */
#define LOOKED_AT 16                  /* of so many the one used longest ago goes */

enum entry_state {
	ENTRY_FREE,
	ENTRY_ASKED,  /* without a function */
	ENTRY_UNREAD, /* it could not be read: is_worth_asking() */
	ENTRY_NAMED,
};

struct entry {
	struct names_key key;
	uint32_t function;             /* slot; NAMED only */
	uint32_t next_same, prev_same; /* of the same function */
	uint32_t next_near, prev_near; /* of the same program; next_near: the next free one */
	uint8_t state;
	uint64_t used;     /* when, in look-ups */
	bool asked_more;   /* of a function that was cut */
	uint8_t asked;     /* how often it was read again, because it was unread or lacked lines */
	uint32_t missed;   /* look-ups of it since it was first unread, or lacked lines */
	uint64_t asked_ns; /* monotonic: when that was last asked for */
};

struct function {
	uint32_t number; /* 0: the slot is free */
	uint32_t first_entry, next_free;
	uint64_t identity;
	struct runtime_function what; /* texts and table lie in bytes */
	uint8_t *bytes;
	size_t size;
	uint8_t runtime;
	uint64_t used;
};

struct line {
	uint32_t function, position;
	int32_t line, column;
};

struct names {
	const struct runtime *runtimes[ABI_RUNTIME_COUNT];
	const struct clock *clock;
	size_t byte_max, entry_max, bytes; /* bytes: of functions */
	struct entry *entries;
	size_t entry_used, entry_cap; /* slots ever used */
	uint32_t entry_free, entry_hand;
	struct function *functions;
	size_t function_used, function_cap;
	uint32_t function_free, function_hand, last_number;
	struct u64map entry_index, program_index, function_index, number_index;
	uint64_t tick;      /* counts look-ups */
	size_t line_budget; /* bytes of line tables that may be decoded */
	bool has_evicted, want_recall;
	struct names_stats stats;
	struct line lines[LINE_CACHE_SIZE];
};

int names_new(size_t byte_max, const struct clock *clock, const struct runtime *const *runtimes, struct names **out)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->clock = clock;
	n->byte_max = byte_max ? byte_max : BYTE_MAX_DEFAULT;
	n->entry_max = MAX(n->byte_max / ENTRY_SHARE / sizeof(struct entry), (size_t)16);
	n->entry_free = n->function_free = NOBODY;
	n->line_budget = NAMES_LINE_BYTES;
	for (; *runtimes; runtimes++)
		n->runtimes[(*runtimes)->id] = *runtimes;
	u64map_init(&n->entry_index, n->entry_max);
	u64map_init(&n->program_index, n->entry_max);
	u64map_init(&n->function_index, n->byte_max / sizeof(struct function) + 1);
	u64map_init(&n->number_index, n->byte_max / sizeof(struct function) + 1);
	*out = n;
	return 0;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->function_used; i++)
		free(n->functions[i].bytes);
	free(n->functions);
	free(n->entries);
	u64map_release(&n->entry_index);
	u64map_release(&n->program_index);
	u64map_release(&n->function_index);
	u64map_release(&n->number_index);
	free(n);
}

/* ---- entries ---- */

static uint64_t program_hash(const struct program *p)
{
	const uint64_t words[] = { p->start_ns, (uint64_t)p->pid << 32 | p->exec_id };

	return XXH3_64bits(words, sizeof(words));
}

static uint64_t key_hash(const struct names_key *key)
{
	const uint64_t words[] = { key->program.start_ns, (uint64_t)key->program.pid << 32 | key->program.exec_id,
				   key->key, key->cookie, (uint64_t)key->is_code << 32 | key->runtime };

	return XXH3_64bits(words, sizeof(words));
}

static bool key_equal(const struct names_key *a, const struct names_key *b)
{
	return a->key == b->key && a->cookie == b->cookie && a->runtime == b->runtime && a->is_code == b->is_code &&
	       program_equal(&a->program, &b->program);
}

static void link_function(struct names *n, uint32_t at, uint32_t function)
{
	struct entry *e = &n->entries[at];
	struct function *f = &n->functions[function];

	e->state = ENTRY_NAMED;
	e->function = function;
	e->prev_same = NOBODY;
	e->next_same = f->first_entry;
	if (f->first_entry != NOBODY)
		n->entries[f->first_entry].prev_same = at;
	f->first_entry = at;
}

static void unlink_function(struct names *n, uint32_t at)
{
	struct entry *e = &n->entries[at];

	if (e->state != ENTRY_NAMED)
		return;
	*(e->prev_same == NOBODY ? &n->functions[e->function].first_entry : &n->entries[e->prev_same].next_same) =
		e->next_same;
	if (e->next_same != NOBODY)
		n->entries[e->next_same].prev_same = e->prev_same;
	e->state = ENTRY_UNREAD;
}

/* Programs whose hashes collide share a list, which only costs time. */
static int link_program(struct names *n, uint32_t at)
{
	struct entry *e = &n->entries[at];
	uint64_t hash = program_hash(&e->key.program);
	uint32_t first = NOBODY;
	int r;

	ignore(u64map_get(&n->program_index, hash, &first)); /* it is the first */
	r = u64map_put(&n->program_index, hash, at);
	if (r < 0)
		return r;
	e->prev_near = NOBODY;
	e->next_near = first;
	if (first != NOBODY)
		n->entries[first].prev_near = at;
	return 0;
}

static void unlink_program(struct names *n, uint32_t at)
{
	struct entry *e = &n->entries[at];
	uint64_t hash = program_hash(&e->key.program);

	if (e->next_near != NOBODY)
		n->entries[e->next_near].prev_near = e->prev_near;
	if (e->prev_near != NOBODY)
		n->entries[e->prev_near].next_near = e->next_near;
	else if (e->next_near != NOBODY)
		ignore(u64map_put(&n->program_index, hash, e->next_near)); /* replaces: needs no memory */
	else
		ignore(u64map_remove(&n->program_index, hash)); /* it is there */
}

static void drop_entry(struct names *n, uint32_t at)
{
	struct entry *e = &n->entries[at];

	unlink_function(n, at);
	unlink_program(n, at);
	ignore(u64map_remove(&n->entry_index, key_hash(&e->key))); /* it is there */
	*e = (struct entry){ .state = ENTRY_FREE, .next_near = n->entry_free };
	n->entry_free = at;
	n->stats.entries--;
}

static void evict_entry(struct names *n, uint32_t at)
{
	n->has_evicted |= n->entries[at].state == ENTRY_NAMED;
	n->stats.evicted++;
	drop_entry(n, at);
}

static void make_room_for_entry(struct names *n)
{
	while (n->stats.entries >= n->entry_max) {
		uint32_t oldest = NOBODY;

		for (int i = 0; i < LOOKED_AT; i++, n->entry_hand = (n->entry_hand + 1) % (uint32_t)n->entry_used)
			if (n->entries[n->entry_hand].state != ENTRY_FREE &&
			    (oldest == NOBODY || n->entries[n->entry_hand].used < n->entries[oldest].used))
				oldest = n->entry_hand;
		if (oldest != NOBODY)
			evict_entry(n, oldest);
	}
}

static int take_entry_slot(struct names *n, uint32_t *out)
{
	int r;

	make_room_for_entry(n);
	if (n->entry_free != NOBODY) {
		*out = n->entry_free;
		n->entry_free = n->entries[*out].next_near;
		return 0;
	}
	r = array_grow(&n->entries, &n->entry_cap, n->entry_used, n->entry_max);
	if (r < 0)
		return r;
	*out = (uint32_t)n->entry_used++;
	return 0;
}

static int find_entry(const struct names *n, const struct names_key *key, uint32_t *out)
{
	if (u64map_get(&n->entry_index, key_hash(key), out) < 0 || !key_equal(&n->entries[*out].key, key))
		return -ENOENT;
	return 0;
}

static int add_entry(struct names *n, const struct names_key *key, uint32_t *out)
{
	uint32_t at;
	int r;

	if (u64map_get(&n->entry_index, key_hash(key), &at) == 0) /* another with the same hash */
		evict_entry(n, at);
	r = take_entry_slot(n, &at);
	if (r < 0)
		return r;
	n->entries[at] = (struct entry){
		.key = *key, .state = ENTRY_ASKED, .used = ++n->tick, .asked_ns = clock_monotonic_ns(n->clock)
	};
	r = link_program(n, at);
	if (r == 0) {
		r = u64map_put(&n->entry_index, key_hash(key), at);
		if (r < 0)
			unlink_program(n, at);
	}
	if (r < 0) {
		n->entries[at] = (struct entry){ .state = ENTRY_FREE, .next_near = n->entry_free };
		n->entry_free = at;
		return r;
	}
	n->stats.entries++;
	*out = at;
	return 0;
}

/* ---- functions ---- */

/* Bytes of a table that tell functions apart. Code has no record of its own: all of it is there at once. */
static uint32_t lines_told(const struct runtime_function *f)
{
	return f->is_code ? f->lines.size : MIN(f->lines.size, (uint32_t)LINES_HASHED);
}

static uint64_t identity_of(uint8_t runtime, const struct runtime_function *f)
{
	const uint64_t words[] = {
		XXH3_64bits(f->file.ptr, f->file.len),
		XXH3_64bits(f->name.ptr, f->name.len),
		XXH3_64bits(f->lines.bytes, lines_told(f)),
		(uint64_t)(uint32_t)f->first_line << 32 | f->lines_whole,
		(uint64_t)(uint32_t)f->first_column << 32 | (uint32_t)f->name_column,
		f->map_id,
		(uint64_t)f->kind << 40 | (uint64_t)f->is_code << 32 | (uint64_t)runtime << 24 |
			(uint64_t)f->lacks_lines << 48 | (uint64_t)f->is_cut << 16 | (uint64_t)f->version_major << 8 |
			f->version_minor,
	};

	return XXH3_64bits(words, sizeof(words));
}

static bool lines_equal(const struct runtime_function *a, const struct runtime_function *b)
{
	uint32_t size = MIN(lines_told(a), lines_told(b));

	return a->is_code == b->is_code && (!a->is_code || a->lines.size == b->lines.size) &&
	       a->lines_whole == b->lines_whole && (!size || !memcmp(a->lines.bytes, b->lines.bytes, size));
}

static bool function_equal(const struct function *f, uint8_t runtime, const struct runtime_function *b)
{
	const struct runtime_function *a = &f->what;

	return f->runtime == runtime && a->kind == b->kind && a->first_line == b->first_line &&
	       a->first_column == b->first_column && a->map_id == b->map_id && a->name_column == b->name_column &&
	       a->is_cut == b->is_cut && a->lacks_lines == b->lacks_lines && a->version_major == b->version_major &&
	       a->version_minor == b->version_minor && str_eq(a->file, b->file) && str_eq(a->name, b->name) &&
	       lines_equal(a, b);
}

static void drop_function(struct names *n, uint32_t at)
{
	struct function *f = &n->functions[at];
	uint32_t same;

	while (f->first_entry != NOBODY)
		evict_entry(n, f->first_entry);
	if (u64map_get(&n->function_index, f->identity, &same) == 0 && same == at)
		ignore(u64map_remove(&n->function_index, f->identity)); /* it is there */
	ignore(u64map_remove(&n->number_index, f->number));             /* likewise */
	n->bytes -= f->size + sizeof(*f);
	n->stats.functions--;
	free(f->bytes);
	*f = (struct function){ .next_free = n->function_free };
	n->function_free = at;
}

/* @keep: never this one. */
static void make_room_for_function(struct names *n, size_t size, uint32_t keep)
{
	size_t max = n->byte_max - n->byte_max / ENTRY_SHARE;

	for (size_t turns = n->function_used; turns && n->bytes + size > max; turns--) {
		uint32_t oldest = NOBODY;

		for (int i = 0; i < LOOKED_AT;
		     i++, n->function_hand = (n->function_hand + 1) % (uint32_t)n->function_used)
			if (n->functions[n->function_hand].number && n->function_hand != keep &&
			    (oldest == NOBODY || n->functions[n->function_hand].used < n->functions[oldest].used))
				oldest = n->function_hand;
		if (oldest != NOBODY)
			drop_function(n, oldest);
	}
}

static int take_function_slot(struct names *n, uint32_t *out)
{
	int r;

	if (n->function_free != NOBODY) {
		*out = n->function_free;
		n->function_free = n->functions[*out].next_free;
		return 0;
	}
	r = array_grow(&n->functions, &n->function_cap, n->function_used, NOBODY);
	if (r < 0)
		return r;
	*out = (uint32_t)n->function_used++;
	return 0;
}

static void copy_bytes(uint8_t **to, const void *from, size_t size)
{
	if (size)
		memcpy(*to, from, size);
	*to += size;
}

/* Fills @f's own block. Return: 0 or -ENOMEM, nothing has changed then. */
static int set_bytes(struct function *f, const struct runtime_function *from)
{
	size_t size = from->file.len + from->name.len + from->lines.size;
	uint8_t *bytes = malloc(size + 1), *to = bytes;
	struct runtime_function what = *from;

	if (!bytes)
		return -ENOMEM;
	copy_bytes(&to, from->file.ptr, from->file.len);
	copy_bytes(&to, from->name.ptr, from->name.len);
	copy_bytes(&to, from->lines.bytes, from->lines.size);
	what.file = str_n((const char *)bytes, from->file.len);
	what.name = str_n((const char *)bytes + from->file.len, from->name.len);
	what.lines.bytes = bytes + from->file.len + from->name.len;
	free(f->bytes);
	f->bytes = bytes;
	f->size = size;
	f->what = what;
	return 0;
}

static int index_function(struct names *n, uint32_t at)
{
	struct function *f = &n->functions[at];
	int r = u64map_put(&n->number_index, f->number, at);

	if (r < 0)
		return r;
	r = u64map_put(&n->function_index, f->identity, at);
	if (r < 0)
		ignore(u64map_remove(&n->number_index, f->number)); /* it was put */
	return r;
}

static int add_function(struct names *n, uint8_t runtime, uint64_t identity, const struct runtime_function *what,
			uint32_t *out)
{
	size_t size = what->file.len + what->name.len + what->lines.size + sizeof(struct function);
	struct function *f;
	uint32_t at;
	int r;

	if (size > n->byte_max / 4)
		return -E2BIG;
	make_room_for_function(n, size, NOBODY);
	r = take_function_slot(n, &at);
	if (r < 0)
		return r;
	f = &n->functions[at];
	*f = (struct function){ .number = n->last_number + 1,
				.first_entry = NOBODY,
				.identity = identity,
				.runtime = runtime,
				.used = ++n->tick };
	r = set_bytes(f, what);
	if (r == 0)
		r = index_function(n, at);
	if (r < 0) {
		free(f->bytes);
		*f = (struct function){ .next_free = n->function_free };
		n->function_free = at;
		return r;
	}
	n->last_number++;
	n->stats.functions++;
	n->bytes += size;
	*out = at;
	return 0;
}

/* The same function; more of its line table is known now. */
static int add_more_lines(struct names *n, uint32_t at, const struct runtime_function *what)
{
	struct function *f = &n->functions[at];
	size_t before = f->size;
	int r;

	if (what->lines.size <= f->what.lines.size)
		return 0;
	if (what->lines.size > n->byte_max / 4)
		return -E2BIG;
	make_room_for_function(n, what->lines.size - f->what.lines.size, at);
	r = set_bytes(f, what);
	if (r == 0)
		n->bytes += f->size - before;
	return r;
}

static int get_function(struct names *n, uint8_t runtime, const struct runtime_function *what, uint32_t *out)
{
	uint64_t identity = identity_of(runtime, what);

	if (u64map_get(&n->function_index, identity, out) == 0 && function_equal(&n->functions[*out], runtime, what))
		return add_more_lines(n, *out, what);
	return add_function(n, runtime, identity, what, out);
}

/* ---- for others ---- */

/* A name that ends so is cut. */
static struct str without_dots(struct str name)
{
	return str_ends(name, STR("...")) ? str_first(name, name.len - 3) : name;
}

/* Does what is stored already contain all of @new? */
static bool knows_more(const struct runtime_function *old, const struct runtime_function *new)
{
	return new->is_cut && !old->is_cut && (!new->first_line || old->first_line == new->first_line) &&
	       str_starts(old->file, new->file) && str_starts(old->name, without_dots(new->name));
}

/* Of all functions that are called so. Return: false: @key's cookie does not say what it is called. */
static bool lasting_key(const struct names *n, const struct names_key *key, struct names_key *out)
{
	const struct runtime *runtime = key->runtime < ABI_RUNTIME_COUNT ? n->runtimes[key->runtime] : NULL;

	if (key->is_code || !runtime || !runtime->lasting)
		return false;
	*out = *key;
	out->key = 0; /* no function lies there */
	out->cookie = runtime->lasting(key->cookie);
	return out->cookie != 0;
}

static int put(struct names *n, const struct names_key *key, const struct runtime_function *function)
{
	uint32_t at, slot;
	int r;

	n->stats.put++;
	if (find_entry(n, key, &at) == 0 && n->entries[at].state == ENTRY_NAMED &&
	    knows_more(&n->functions[n->entries[at].function].what, function))
		return 0;
	r = get_function(n, (uint8_t)key->runtime, function, &slot);
	if (r < 0)
		return r;
	n->functions[slot].used = ++n->tick;
	if (find_entry(n, key, &at) < 0) { /* looked for again: making room may have taken it */
		r = add_entry(n, key, &at);
		if (r < 0)
			return r;
	}
	if (n->entries[at].state != ENTRY_NAMED) { /* lines that it lacks are another question */
		n->entries[at].asked = 0;
		n->entries[at].missed = 0;
	}
	unlink_function(n, at);
	link_function(n, at, slot);
	return 0;
}

bool names_has(const struct names *n, const struct names_key *key)
{
	uint32_t at;

	return find_entry(n, key, &at) == 0 && n->entries[at].state == ENTRY_NAMED;
}

/* A lasting name has no lines: another function of that name may have others. */
int names_put(struct names *n, const struct names_key *key, const struct runtime_function *function)
{
	struct runtime_function plain = *function;
	struct names_key lasting;

	plain.lines = (struct runtime_lines){ 0 };
	plain.lines_whole = 0;
	plain.lines_at = 0;
	plain.first_line = plain.first_column = 0;
	if (lasting_key(n, key, &lasting))
		ignore(put(n, &lasting, &plain)); /* what is gone stays without a name */
	return put(n, key, function);
}

/* What is read later may lack what the name is qualified by: then it stays as it was met. */
static void keep_qualified(const struct runtime *runtime, const struct runtime_function *old,
			   struct runtime_function *new, struct buf *room)
{
	if (!runtime || !runtime->plain || str_eq(old->name, new->name))
		return;
	runtime->plain(old->name, room);
	if (room->error || !str_eq(buf_str(room), new->name))
		return;
	buf_clear(room);
	buf_adds(room, old->name);
	if (!room->error)
		new->name = buf_str(room);
}

/* Is @old a beginning of @new? */
static bool goes_on(const struct runtime_function *old, const struct runtime_function *new)
{
	uint32_t size = old->lacks_lines ? 0 : MIN(MIN(old->lines.size, new->lines.size), (uint32_t)LINES_HASHED);

	return (!old->first_line || old->first_line == new->first_line) && str_starts(new->file, old->file) &&
	       str_starts(new->name, without_dots(old->name)) &&
	       (!size || !memcmp(old->lines.bytes, new->lines.bytes, size));
}

int names_put_more(struct names *n, const struct names_key *key, const struct runtime_function *function)
{
	scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
	struct runtime_function more = *function;
	uint32_t at;

	if (find_entry(n, key, &at) == 0 && n->entries[at].state == ENTRY_NAMED) {
		const struct function *f = &n->functions[n->entries[at].function];

		keep_qualified(n->runtimes[f->runtime], &f->what, &more, &room);
		if (!goes_on(&f->what, &more))
			return 0;
	}
	return names_put(n, key, &more);
}

void names_unreadable(struct names *n, const struct names_key *key)
{
	uint32_t at;

	if (find_entry(n, key, &at) == 0 && n->entries[at].state == ENTRY_ASKED)
		n->entries[at].state = ENTRY_UNREAD;
}

void names_not_asked(struct names *n, const struct names_key *key)
{
	uint32_t at;

	if (find_entry(n, key, &at) < 0)
		return;
	n->entries[at].asked_more = false;
	if (n->entries[at].state != ENTRY_ASKED)
		return;
	if (n->entries[at].asked) /* not the first time: as rarely as before */
		n->entries[at].state = ENTRY_UNREAD;
	else
		drop_entry(n, at);
}

static struct line *line_slot(struct names *n, uint32_t function, uint32_t position)
{
	uint32_t hash = function * UINT32_C(0x9e3779b1) ^ position * UINT32_C(0x85ebca6b);

	return &n->lines[(hash ^ hash >> 15) & (LINE_CACHE_SIZE - 1)];
}

static void find_line(struct names *n, const struct function *f, uint32_t position, struct runtimes_frame *out)
{
	const struct runtime *runtime = n->runtimes[f->runtime];
	struct line *slot = line_slot(n, f->number, position);
	int32_t line;

	if (slot->function == f->number && slot->position == position) {
		out->line = slot->line;
		out->column = slot->column;
		return;
	}
	if (!runtime || !runtime->line)
		return;
	if (f->what.lines.size > n->line_budget) { /* will be known later, when that is asked again */
		n->stats.lines_put_off++;
		return;
	}
	n->line_budget -=
		MIN(n->line_budget, (runtime->column ? 2 : 1) * (size_t)f->what.lines.size); /* each decodes it */
	line = runtime->line(&f->what, position);
	if (!line && f->what.lines.size < f->what.lines_whole) /* may be known later */
		return;
	out->line = line;
	out->column = runtime->column ? runtime->column(&f->what, position) : 0;
	*slot = (struct line){ f->number, position, line, out->column };
}

static enum names_answer miss(struct names *n, const struct names_key *key)
{
	uint32_t at;

	n->want_recall |= n->has_evicted;
	if (!key->cookie) /* later reads could not tell whether the same function lies there */
		return NAMES_WAIT;
	return add_entry(n, key, &at) < 0 ? NAMES_WAIT : NAMES_ASK;
}

/* A look-up of what may be read again: is it the one to do so? Time counts, too: what is met all the time has used its
 * first tries in a moment, and what is met seldom would never come to the later ones. */
static bool is_due(const struct names *n, struct entry *e)
{
	uint64_t now_ns;

	if (e->asked >= LATER_MAX)
		return false;
	now_ns = clock_monotonic_ns(n->clock);
	if (++e->missed < 2U << 2 * e->asked && now_ns - e->asked_ns < LATER_NS << e->asked)
		return false;
	e->asked++;
	e->asked_ns = now_ns;
	return true;
}

/* A collector may have moved it just then, or something else was in the way. As long as it is met it may be there: it
 * is read again, LATER_MAX times at most. Its cookie says whether what lies there later is still the same. */
static bool is_worth_asking(const struct names *n, struct entry *e)
{
	if (e->state != ENTRY_UNREAD || !is_due(n, e))
		return false;
	e->state = ENTRY_ASKED;
	return true;
}

enum names_answer names_find(struct names *n, const struct names_key *key, uint32_t position,
			     struct runtimes_frame *out)
{
	struct names_key lasting;
	struct function *f;
	struct entry *e;
	uint32_t at;
	bool is_short;

	*out = (struct runtimes_frame){ 0 };
	if (find_entry(n, key, &at) < 0) {
		n->stats.missed++;
		return miss(n, key);
	}
	e = &n->entries[at];
	e->used = ++n->tick;
	if (e->state == ENTRY_UNREAD && lasting_key(n, key, &lasting) && find_entry(n, &lasting, &at) == 0 &&
	    n->entries[at].state == ENTRY_NAMED) {
		e = &n->entries[at];
		e->used = n->tick;
	}
	if (e->state != ENTRY_NAMED) {
		n->stats.missed++;
		return is_worth_asking(n, e) ? NAMES_ASK : NAMES_WAIT;
	}
	f = &n->functions[e->function];
	f->used = n->tick;
	out->function = f->number;
	if (!key->is_code) /* names_expand() has the lines of code */
		find_line(n, f, position, out);
	if (f->what.lacks_lines)
		return is_due(n, e) ? NAMES_ASK : NAMES_WAIT;
	if (key->is_code)
		return NAMES_FOUND;
	is_short = f->what.is_cut || (!out->line && f->what.lines.size < f->what.lines_whole);
	if (!is_short || e->asked_more)
		return is_short ? NAMES_WAIT : NAMES_FOUND;
	e->asked_more = true;
	return NAMES_ASK;
}

int names_function(struct names *n, uint32_t function, struct runtime_function *out)
{
	uint32_t at;

	if (u64map_get(&n->number_index, function, &at) < 0)
		return -ENOENT;
	*out = n->functions[at].what;
	return 0;
}

int names_expand(struct names *n, uint32_t function, uint32_t position, bool is_return,
		 struct runtime_shown out[RUNTIME_EXPAND_MAX])
{
	const struct runtime *runtime;
	const struct function *f;
	uint32_t at;
	size_t count;

	if (u64map_get(&n->number_index, function, &at) < 0 || !n->functions[at].what.is_code)
		return -ENOENT;
	f = &n->functions[at];
	runtime = n->runtimes[f->runtime];
	if (!runtime || !runtime->expand)
		return 0;
	if (f->what.lines.size > n->line_budget) {
		n->stats.lines_put_off++;
		return -EAGAIN;
	}
	n->line_budget -= f->what.lines.size;
	count = runtime->expand(&f->what, position, is_return, out);
	if (count == RUNTIME_EXPAND_LOST)
		return -ENODATA;
	must(count <= RUNTIME_EXPAND_MAX);
	return (int)count;
}

bool names_want_line_budget(const struct names *n)
{
	return n->line_budget < NAMES_LINE_BYTES / 2;
}

void names_add_line_budget(struct names *n, uint64_t bytes)
{
	n->line_budget = (size_t)MIN(n->line_budget + bytes, (uint64_t)NAMES_LINE_BYTES);
}

void names_forget(struct names *n, const struct program *program)
{
	uint32_t at, next;

	if (u64map_get(&n->program_index, program_hash(program), &at) < 0)
		return;
	for (; at != NOBODY; at = next) {
		next = n->entries[at].next_near;
		if (program_equal(&n->entries[at].key.program, program))
			drop_entry(n, at);
	}
}

bool names_want_recall(struct names *n)
{
	bool want = n->want_recall;

	if (want)
		n->has_evicted = n->want_recall = false;
	return want;
}

void names_stats(const struct names *n, struct names_stats *out)
{
	*out = n->stats;
	out->bytes = n->bytes + n->stats.entries * sizeof(struct entry);
}
