/* SPDX-License-Identifier: Apache-2.0 */
/* Matching: the states that a text so far leads to, all at once. */
#include "base/utf8.h"
#include "query/regex_int.h"

void regex_release(struct regex *re)
{
	free(re->states);
	free(re->ranges);
	free(re->scratch);
	*re = (struct regex){ 0 };
}

struct matching {
	struct regex *re;
	uint32_t *now, *next, *stack, *met;
	size_t next_count;
	uint32_t round;
	bool at_begin, at_end, fits;
};

static bool in_ranges(const struct regex *re, const struct regex_state *s, int32_t code)
{
	if (!s->y)
		return code >= s->lo && code <= s->hi;
	for (int32_t i = 0; i < s->y; i++)
		if (code >= re->ranges[s->x + i].lo && code <= re->ranges[s->x + i].hi)
			return true;
	return false;
}

static bool takes(const struct regex *re, const struct regex_state *s, int32_t code)
{
	bool found = in_ranges(re, s, code);

	if (!found && s->folded && (code | 32) >= 'a' && (code | 32) <= 'z')
		found = in_ranges(re, s, code ^ 32);
	return found != s->negated;
}

/* All that is reached from @state without a code point. Each state at most once a round: the stack has room for two of
 * each. */
static void reach(struct matching *m, uint32_t state)
{
	size_t depth = 0;

	m->stack[depth++] = state;
	while (depth) {
		uint32_t at = m->stack[--depth];
		const struct regex_state *s = &m->re->states[at];

		if (m->met[at] == m->round)
			continue;
		m->met[at] = m->round;
		m->re->steps++;
		if (s->op == OP_SET)
			m->next[m->next_count++] = at;
		else if (s->op == OP_MATCH)
			m->fits = true;
		if (s->op == OP_SPLIT)
			m->stack[depth++] = (uint32_t)((int32_t)at + s->y);
		if (s->op == OP_SPLIT || s->op == OP_JMP)
			m->stack[depth++] = (uint32_t)((int32_t)at + s->x);
		if ((s->op == OP_BEGIN && m->at_begin) || (s->op == OP_END && m->at_end))
			m->stack[depth++] = at + 1;
	}
}

static void step(struct matching *m, int32_t code)
{
	uint32_t *now = m->next;
	size_t count = m->next_count;

	m->next = m->now;
	m->now = now;
	m->next_count = 0;
	m->fits = false;
	m->round++;
	for (size_t i = 0; i < count; i++) {
		const struct regex_state *s = &m->re->states[now[i]];

		m->re->steps += 1 + (uint64_t)s->y;
		if (takes(m->re, s, code))
			reach(m, now[i] + 1);
	}
}

bool regex_fits(struct regex *re, struct str text)
{
	size_t count = re->states_count;
	struct matching m = { .re = re, .at_begin = true, .at_end = !text.len };

	m.now = re->scratch;
	m.next = m.now + count;
	m.stack = m.next + count;
	m.met = m.stack + count * 2;
	memset(m.met, 0, count * sizeof(*m.met));
	m.round = 1;
	reach(&m, 0);
	m.at_begin = false;
	while (text.len && m.next_count) {
		int32_t code = utf8_next(&text);

		m.at_end = !text.len;
		step(&m, code < 0 ? 0xfffd : code);
	}
	return m.fits && !text.len;
}
