/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/covered.h"

#include <string.h>

#include "base/base.h"

void covered_init(struct covered *c, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t span = to_ns > from_ns ? to_ns - from_ns : 0;

	memset(c, 0, sizeof(*c));
	c->from_ns = from_ns;
	c->first_ns = UINT64_MAX;
	c->slot_ns = span / (COVERED_SLOTS / 2) + 1;
}

static uint64_t slot_of(const struct covered *c, uint64_t at_ns)
{
	return at_ns < c->from_ns ? 0 : MIN((at_ns - c->from_ns) / c->slot_ns, (uint64_t)COVERED_SLOTS);
}

/* The bits [first, end) of a word. */
static uint64_t bits(uint64_t first, uint64_t end)
{
	uint64_t below_end = end == 64 ? UINT64_MAX : ((uint64_t)1 << end) - 1;

	return below_end & ~(((uint64_t)1 << first) - 1);
}

void covered_note(struct covered *c, uint64_t created_ns, uint64_t duration_ns)
{
	uint64_t end_ns = created_ns + duration_ns < created_ns ? UINT64_MAX : created_ns + duration_ns;
	uint64_t at = slot_of(c, created_ns), end = slot_of(c, end_ns), next;

	if (!duration_ns)
		c->unknown = true;
	c->first_ns = MIN(c->first_ns, created_ns);
	c->last_ns = MAX(c->last_ns, end_ns);
	c->sum_ns = c->sum_ns + duration_ns < duration_ns ? UINT64_MAX : c->sum_ns + duration_ns;
	/* All begin in the range, and the slots are twice as long: what lies behind them is in one piece. */
	if (end == COVERED_SLOTS)
		c->over_ns =
			MAX(c->over_ns, MIN(end_ns - c->from_ns - COVERED_SLOTS * c->slot_ns, end_ns - created_ns));
	for (; at < end; at = next) {
		next = MIN(at - at % 64 + 64, end);
		c->marks[at / 64] |= bits(at % 64, next - (at - at % 64));
	}
}

uint64_t covered_ms(const struct covered *c)
{
	uint64_t slots = 0, most;

	if (c->unknown || c->last_ns <= c->first_ns)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(c->marks); i++)
		slots += (uint64_t)__builtin_popcountll(c->marks[i]);
	/* Where slots are long, the ends and the sum say more than they do. */
	most = MIN(c->last_ns - c->first_ns, c->sum_ns);
	if (slots && slots <= (most - c->over_ns) / c->slot_ns)
		most = slots * c->slot_ns + c->over_ns;
	return most / NSEC_PER_MSEC;
}
