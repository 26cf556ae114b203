/* SPDX-License-Identifier: Apache-2.0 */
#include "store/expiry.h"

#define DAY_NS (UINT64_C(86400) * UINT64_C(1000000000))
#define FREE_AUTO_MAX GIB(1)
#define FREE_SHARE 20 /* one part in so many: 5 % */

/* Time */

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static bool was_set(const struct expiry_memory *m, uint64_t wall_ns, uint64_t monotonic_ns)
{
	uint64_t expected;

	if (!m->has_seen)
		return false;
	expected = m->seen_wall_ns + (monotonic_ns - m->seen_monotonic_ns);
	return difference(wall_ns, expected) > EXPIRY_JUMP_NS;
}

bool expiry_tick(struct expiry_memory *m, uint64_t wall_ns, uint64_t monotonic_ns)
{
	bool anew = was_set(m, wall_ns, monotonic_ns) || !m->last_wall_ns || m->last_wall_ns > wall_ns;

	if (anew)
		expiry_removed(m, wall_ns, monotonic_ns);
	m->seen_wall_ns = wall_ns;
	m->seen_monotonic_ns = monotonic_ns;
	m->has_seen = true;
	return anew;
}

void expiry_removed(struct expiry_memory *m, uint64_t wall_ns, uint64_t monotonic_ns)
{
	m->last_wall_ns = wall_ns;
	m->last_monotonic_ns = monotonic_ns;
	m->has_last = true;
}

/* Both clocks have to agree that the hour is over: one of them can be set, the other begins anew with the process. */
static bool hour_is_over(const struct expiry_memory *m, uint64_t wall_ns, uint64_t monotonic_ns)
{
	if (!m->last_wall_ns || wall_ns < m->last_wall_ns || wall_ns - m->last_wall_ns < EXPIRY_PAUSE_NS)
		return false;
	return !m->has_last || monotonic_ns - m->last_monotonic_ns >= EXPIRY_PAUSE_NS;
}

const char *expiry_reason_text(enum expiry_reason reason)
{
	static const char *const texts[] = { [EXPIRY_AGE] = "age", [EXPIRY_SIZE] = "size", [EXPIRY_FREE] = "free" };

	return texts[reason];
}

/* Choosing */

struct choosing {
	const struct expiry_rules *rules;
	const struct expiry_disk *disk;
	uint64_t wall_ns;
	struct expiry_entry *entries;
	size_t count;
	uint64_t kept, freed; /* bytes of what stays; of what was chosen */
	struct expiry_plan *plan;
};

static bool may_go(const struct choosing *c, size_t at)
{
	const struct expiry_entry *e = &c->entries[at];
	int64_t today = (int64_t)(c->wall_ns / DAY_NS);

	if (today >= e->day && today < e->day + e->days)
		return false;
	return e->is_year || e->newest_ns || e->day < today;
}

/* When the last of it came; what a file without uploads was made for is its day. */
static uint64_t newest_of(const struct expiry_entry *e)
{
	return !e->is_year && e->newest_ns ? e->newest_ns : (uint64_t)(e->day + e->days) * DAY_NS;
}

/* Return: the one of days or years whose newest upload is oldest, of those that are older than @before_ns; or count. */
static size_t oldest(const struct choosing *c, bool years, uint64_t before_ns)
{
	size_t found = c->count;

	for (size_t i = 0; i < c->count; i++) {
		uint64_t newest = newest_of(&c->entries[i]);

		if (c->entries[i].is_year != years || newest >= before_ns || !may_go(c, i) || c->entries[i].goes)
			continue;
		if (found == c->count || newest < newest_of(&c->entries[found]))
			found = i;
	}
	return found;
}

static void choose(struct choosing *c, size_t at, enum expiry_reason reason)
{
	c->plan->count++;
	c->entries[at].goes = true;
	c->entries[at].reason = reason;
	c->kept -= c->entries[at].size;
	c->freed += c->entries[at].size;
}

static void choose_by_age(struct choosing *c)
{
	const uint64_t ages[] = { c->rules->age_max_ns, c->rules->rollup_age_max_ns };

	for (size_t years = 0; years < ARRAY_SIZE(ages); years++) {
		size_t at = c->count;

		if (ages[years] && c->wall_ns > ages[years])
			at = oldest(c, years, c->wall_ns - ages[years]);
		if (at == c->count)
			continue;
		choose(c, at, EXPIRY_AGE);
		return;
	}
}

/* Room */

static uint64_t free_now(const struct choosing *c)
{
	return c->disk->free + c->disk->leaving + c->freed;
}

/* What could be left if all went that may. A goal above it would cost every day and not be reached, since the rest
 * belongs to others: then a share of what there could be is the goal. */
static void set_goal(struct choosing *c)
{
	uint64_t wanted = c->rules->free_min, most = free_now(c);

	if (!wanted || !c->disk->known)
		return;
	if (wanted == EXPIRY_FREE_AUTO)
		wanted = MIN((uint64_t)FREE_AUTO_MAX, c->disk->size / FREE_SHARE);
	for (size_t i = 0; i < c->count; i++)
		if (!c->entries[i].is_year && may_go(c, i) && !c->entries[i].goes)
			most += c->entries[i].size;
	c->plan->is_lowered = wanted > most;
	c->plan->free_goal = c->plan->is_lowered ? MIN(wanted, most / FREE_SHARE) : wanted;
}

static bool is_too_large(const struct choosing *c)
{
	return c->rules->size_max && c->kept > c->rules->size_max;
}

static bool is_too_full(const struct choosing *c)
{
	return c->plan->free_goal && free_now(c) < c->plan->free_goal;
}

static void choose_for_room(struct choosing *c)
{
	while (is_too_large(c) || is_too_full(c)) {
		size_t at = oldest(c, false, UINT64_MAX);

		if (at == c->count) {
			c->plan->is_over = true;
			return;
		}
		choose(c, at, is_too_large(c) ? EXPIRY_SIZE : EXPIRY_FREE);
	}
}

/* When an entry is old enough: 0 for those of which age takes none. */
static uint64_t due_ns(const struct expiry_rules *rules, const struct expiry_entry *e, uint64_t wall_ns)
{
	uint64_t age = e->is_year ? rules->rollup_age_max_ns : rules->age_max_ns;
	uint64_t end = (uint64_t)(e->day + e->days) * DAY_NS, due;

	if (!age || (!e->is_year && !e->newest_ns && end > wall_ns))
		return 0;
	due = newest_of(e) > UINT64_MAX - age ? UINT64_MAX : newest_of(e) + age;
	return MAX(due, end);
}

bool expiry_next(const struct expiry_rules *rules, const struct expiry_memory *m, const struct expiry_entry *entries,
		 size_t count, uint64_t wall_ns, size_t *at, uint64_t *when_ns)
{
	uint64_t first = 0, pause = m->last_wall_ns && m->last_wall_ns <= wall_ns ? m->last_wall_ns : wall_ns;

	for (size_t i = 0; i < count; i++) {
		uint64_t due = due_ns(rules, &entries[i], wall_ns);

		if (!due || (first && due >= first))
			continue;
		first = due;
		*at = i;
	}
	if (first)
		*when_ns = MAX(first, pause + EXPIRY_PAUSE_NS);
	return first != 0;
}

void expiry_decide(const struct expiry_rules *rules, const struct expiry_disk *disk, const struct expiry_memory *m,
		   uint64_t wall_ns, uint64_t monotonic_ns, struct expiry_entry *entries, size_t count,
		   struct expiry_plan *out)
{
	struct choosing c = {
		.rules = rules, .disk = disk, .wall_ns = wall_ns, .entries = entries, .count = count, .plan = out
	};

	*out = (struct expiry_plan){ 0 };
	for (size_t i = 0; i < count; i++) {
		entries[i].goes = false;
		c.kept += entries[i].size;
	}
	if (hour_is_over(m, wall_ns, monotonic_ns))
		choose_by_age(&c);
	set_goal(&c);
	choose_for_room(&c);
}
