/* SPDX-License-Identifier: Apache-2.0 */
/* A pattern becomes a program as in Thompson's construction, in one pass and without recursion: jumps are relative, so
 * that a piece of the program can be moved behind a state that is put in front of it, and copied to be repeated.
 *
 *	a|b	SPLIT(+1,+3) a JMP(+2) b
 *	a*	SPLIT(+1,+3) a JMP(-2)
 *	a+	a SPLIT(-1,+1)
 *	a?	SPLIT(+1,+2) a
 */
#include "base/array.h"
#include "base/utf8.h"
#include "query/regex_int.h"

#define RANGES_MAX 4096

/* An open group, or the whole pattern. */
struct group {
	size_t begin, branch; /* where the group begins, and its last alternative */
	int32_t jump; /* the last JMP to the group's end, relative to begin; each holds the one before. -1: none */
	bool folded;  /* as it was in front of the group */
};

struct parser {
	struct str rest;
	struct regex re;
	struct group groups[REGEX_GROUPS_MAX];
	size_t depth;
	size_t atom;   /* where what a repetition applies to begins */
	bool has_atom; /* there is something to repeat */
	bool folded, quoted;
};

/* The program */

static int put_state(struct parser *p, size_t at, struct regex_state state)
{
	struct regex *re = &p->re;
	int r = array_grow(&re->states, &re->states_cap, re->states_count, REGEX_STATES_MAX);

	if (r < 0)
		return r;
	memmove(re->states + at + 1, re->states + at, (re->states_count - at) * sizeof(*re->states));
	re->states[at] = state;
	re->states_count++;
	return 0;
}

static int add_state(struct parser *p, struct regex_state state)
{
	return put_state(p, p->re.states_count, state);
}

static int add_atom(struct parser *p, struct regex_state state)
{
	p->atom = p->re.states_count;
	p->has_atom = state.op == OP_SET;
	state.folded = p->folded;
	return add_state(p, state);
}

static int add_code(struct parser *p, int32_t code)
{
	return add_atom(p, (struct regex_state){ .op = OP_SET, .lo = code, .hi = code });
}

static int add_range(struct parser *p, int32_t lo, int32_t hi)
{
	int r = array_grow(&p->re.ranges, &p->re.ranges_cap, p->re.ranges_count, RANGES_MAX);

	if (r == 0)
		p->re.ranges[p->re.ranges_count++] = (struct regex_range){ lo, hi };
	return r;
}

/* Another copy of the @size states at @from. */
static int copy_states(struct parser *p, size_t from, size_t size)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < size; i++) {
		struct regex_state state = p->re.states[from + i];

		r = add_state(p, state);
	}
	return r;
}

/* Letters with a meaning */

static const struct {
	const char *name;
	struct regex_range ranges[4];
} classes[] = {
	{ "alnum", { { '0', '9' }, { 'A', 'Z' }, { 'a', 'z' } } },
	{ "alpha", { { 'A', 'Z' }, { 'a', 'z' } } },
	{ "ascii", { { 0, 127 } } },
	{ "blank", { { '\t', '\t' }, { ' ', ' ' } } },
	{ "cntrl", { { 0, 31 }, { 127, 127 } } },
	{ "digit", { { '0', '9' } } },
	{ "graph", { { '!', '~' } } },
	{ "lower", { { 'a', 'z' } } },
	{ "print", { { ' ', '~' } } },
	{ "punct", { { '!', '/' }, { ':', '@' }, { '[', '`' }, { '{', '~' } } },
	{ "space", { { '\t', '\r' }, { ' ', ' ' } } },
	{ "upper", { { 'A', 'Z' } } },
	{ "word", { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } } },
	{ "xdigit", { { '0', '9' }, { 'A', 'F' }, { 'a', 'f' } } },
	{ "d", { { '0', '9' } } },
	{ "s", { { '\t', '\n' }, { '\f', '\r' }, { ' ', ' ' } } },
	{ "w", { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } } },
};

/* The ranges of a class, or those between them. */
static int add_class(struct parser *p, struct str name, bool negated)
{
	int32_t next = 0;
	size_t at = 0;
	int r = 0;

	while (at < ARRAY_SIZE(classes) && !str_eq(name, str_of(classes[at].name)))
		at++;
	if (at == ARRAY_SIZE(classes))
		return -EBADMSG;
	for (size_t i = 0; r == 0 && i < 4 && classes[at].ranges[i].hi; i++) {
		struct regex_range range = classes[at].ranges[i];

		if (!negated)
			r = add_range(p, range.lo, range.hi);
		else if (range.lo > next)
			r = add_range(p, next, range.lo - 1);
		next = range.hi + 1;
	}
	return r || !negated ? r : add_range(p, next, CODE_MAX);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* \xHH and \x{H...}; the x is taken. */
static int take_hex(struct parser *p, int32_t *out)
{
	bool braces = str_starts(p->rest, STR("{"));
	size_t digits = 0, most = braces ? 6 : 2;
	int32_t code = 0;

	p->rest = str_skip(p->rest, braces);
	for (; digits < most && p->rest.len && hex_digit(p->rest.ptr[0]) >= 0; digits++) {
		code = code * 16 + hex_digit(p->rest.ptr[0]);
		p->rest = str_skip(p->rest, 1);
	}
	if (!digits || code > CODE_MAX || (!braces && digits < 2) || (braces && !str_starts(p->rest, STR("}"))))
		return -EBADMSG;
	p->rest = str_skip(p->rest, braces);
	*out = code;
	return 0;
}

/* A code point; malformed bytes as U+FFFD. */
static int32_t take_code(struct parser *p)
{
	int32_t code = utf8_next(&p->rest);

	return code < 0 ? 0xfffd : code;
}

/* Behind a backslash. Return: 0: *out; 1: a class of this letter: *out; -EBADMSG. */
static int take_escape(struct parser *p, int32_t *out)
{
	static const char letters[] = "afnrtv", meant[] = "\a\f\n\r\t\v";
	const char *found;
	int32_t c;

	if (!p->rest.len)
		return -EBADMSG;
	c = take_code(p);
	*out = c;
	if (c == 'x')
		return take_hex(p, out);
	if (c && c < 128 && strchr("dswDSW", c))
		return 1;
	found = c && c < 128 ? strchr(letters, c) : NULL;
	if (found) {
		*out = (unsigned char)meant[found - letters];
		return 0;
	}
	return (c | 32) >= 'a' && (c | 32) <= 'z' ? -EBADMSG : c >= '0' && c <= '9' ? -EBADMSG : 0;
}

static int add_letter_class(struct parser *p, int32_t letter)
{
	char name = (char)(letter | 32);

	return add_class(p, str_n(&name, 1), !(letter & 32));
}

/* Classes */

/* One end of a range, or a class that stands in brackets. Return: 0: *out; 1: it was a class; -errno. */
static int take_member(struct parser *p, int32_t *out)
{
	ptrdiff_t end = str_starts(p->rest, STR("[:")) ? str_search(p->rest, STR(":]")) : -1;
	int r;

	if (end > 0) {
		struct str name = str_first(str_skip(p->rest, 2), (size_t)end - 2);
		bool negated = str_starts(name, STR("^"));

		p->rest = str_skip(p->rest, (size_t)end + 2);
		r = name.len > 2 ? add_class(p, str_skip(name, negated), negated) : -EBADMSG;
		return r ? r : 1;
	}
	*out = take_code(p);
	if (*out != '\\')
		return 0;
	r = take_escape(p, out);
	if (r != 1)
		return r;
	r = add_letter_class(p, *out);
	return r ? r : 1;
}

static int take_range(struct parser *p)
{
	int32_t lo = 0, hi = 0;
	int r = take_member(p, &lo);

	if (r)
		return MIN(r, 0);
	if (p->rest.len < 2 || p->rest.ptr[0] != '-' || p->rest.ptr[1] == ']')
		return add_range(p, lo, lo);
	p->rest = str_skip(p->rest, 1);
	r = take_member(p, &hi);
	if (r)
		return r < 0 ? r : -EBADMSG;
	return lo > hi ? -EBADMSG : add_range(p, lo, hi);
}

/* The bracket is taken. */
static int take_brackets(struct parser *p)
{
	size_t first = p->re.ranges_count;
	bool negated = str_starts(p->rest, STR("^"));
	int r;

	p->rest = str_skip(p->rest, negated);
	do { /* a bracket that comes first is one of the class */
		r = p->rest.len ? take_range(p) : -EBADMSG;
	} while (r == 0 && !str_starts(p->rest, STR("]")));
	if (r < 0)
		return r;
	p->rest = str_skip(p->rest, 1);
	return add_atom(p, (struct regex_state){ .op = OP_SET,
						 .negated = negated,
						 .x = (int32_t)first,
						 .y = (int32_t)(p->re.ranges_count - first) });
}

static int take_letter_class(struct parser *p, int32_t letter)
{
	size_t first = p->re.ranges_count;
	int r = add_letter_class(p, letter);

	return r ? r
		 : add_atom(p, (struct regex_state){
				       .op = OP_SET, .x = (int32_t)first, .y = (int32_t)(p->re.ranges_count - first) });
}

/* Groups */

static int open_group(struct parser *p, bool folded)
{
	if (p->depth == REGEX_GROUPS_MAX)
		return -E2BIG;
	p->groups[p->depth++] = (struct group){ p->re.states_count, p->re.states_count, -1, folded };
	p->has_atom = false;
	return 0;
}

static int next_branch(struct parser *p)
{
	struct group *g = &p->groups[p->depth - 1];
	size_t size = p->re.states_count - g->branch;
	int r = put_state(p, g->branch, (struct regex_state){ .op = OP_SPLIT, .x = 1, .y = (int32_t)size + 2 });

	r = r ? r : add_state(p, (struct regex_state){ .op = OP_JMP, .x = g->jump });
	if (r < 0)
		return r;
	g->jump = (int32_t)(p->re.states_count - 1 - g->begin);
	g->branch = p->re.states_count;
	p->has_atom = false;
	return 0;
}

static void close_group(struct parser *p)
{
	struct group *g = &p->groups[--p->depth];

	while (g->jump >= 0) {
		struct regex_state *jump = &p->re.states[g->begin + (size_t)g->jump];
		int32_t before = jump->x;

		jump->x = (int32_t)(p->re.states_count - g->begin) - g->jump;
		g->jump = before;
	}
	p->atom = g->begin;
	p->has_atom = true;
	p->folded = g->folded;
}

/* "?" behind the parenthesis: flags, then ':' or ')'. */
static int take_flags(struct parser *p)
{
	bool outer = p->folded, on = true;

	p->rest = str_skip(p->rest, 1);
	for (; p->rest.len; p->rest = str_skip(p->rest, 1)) {
		switch (p->rest.ptr[0]) {
		case 'i':
			p->folded = on;
			break;
		case 's': /* '.' is any code point anyhow */
			if (!on)
				return -EBADMSG;
			break;
		case '-':
			on = false;
			break;
		case ')':
			p->rest = str_skip(p->rest, 1);
			p->has_atom = false;
			return 0;
		case ':':
			p->rest = str_skip(p->rest, 1);
			return open_group(p, outer);
		default:
			return -EBADMSG;
		}
	}
	return -EBADMSG;
}

/* Repetition */

static int repeat_any(struct parser *p, size_t at)
{
	int32_t size = (int32_t)(p->re.states_count - at);
	int r = put_state(p, at, (struct regex_state){ .op = OP_SPLIT, .x = 1, .y = size + 2 });

	return r ? r : add_state(p, (struct regex_state){ .op = OP_JMP, .x = -(size + 1) });
}

static int repeat_more(struct parser *p, size_t at)
{
	int32_t size = (int32_t)(p->re.states_count - at);

	return add_state(p, (struct regex_state){ .op = OP_SPLIT, .x = -size, .y = 1 });
}

static int repeat_maybe(struct parser *p, size_t at)
{
	int32_t size = (int32_t)(p->re.states_count - at);

	return put_state(p, at, (struct regex_state){ .op = OP_SPLIT, .x = 1, .y = size + 1 });
}

/* @max UINT64_MAX: any number. */
static int repeat_counted(struct parser *p, uint64_t min, uint64_t max)
{
	size_t size = p->re.states_count - p->atom, last = p->atom;
	int r = 0;

	if (!max) { /* what is not there at all */
		p->re.states_count = p->atom;
		return 0;
	}
	for (uint64_t i = 1; r == 0 && i < min; i++) {
		last = p->re.states_count;
		r = copy_states(p, p->atom, size);
	}
	if (r < 0 || min == max)
		return r;
	if (max == UINT64_MAX)
		return min ? repeat_more(p, last) : repeat_any(p, last);
	if (!min) {
		r = repeat_maybe(p, p->atom);
		min = 1;
		for (uint64_t i = min; r == 0 && i < max; i++)
			r = copy_states(p, p->atom, size + 1);
		return r;
	}
	for (uint64_t i = min; r == 0 && i < max; i++) {
		last = p->re.states_count;
		r = copy_states(p, p->atom, size);
		r = r ? r : repeat_maybe(p, last);
	}
	return r;
}

/* {n}, {n,} or {n,m}. Return: false: it is none, and stands for itself. */
static bool read_counts(struct str *rest, uint64_t *min, uint64_t *max)
{
	ptrdiff_t end = str_find(*rest, '}'), comma;
	struct str inner;

	if (!str_starts(*rest, STR("{")) || end < 0)
		return false;
	inner = str_first(str_skip(*rest, 1), (size_t)end - 1);
	comma = str_find(inner, ',');
	if (str_to_u64(comma < 0 ? inner : str_first(inner, (size_t)comma), 0, UINT32_MAX, min) < 0)
		return false;
	*max = comma < 0 ? *min : UINT64_MAX;
	if (comma >= 0 && (size_t)comma + 1 < inner.len &&
	    str_to_u64(str_skip(inner, (size_t)comma + 1), 0, UINT32_MAX, max) < 0)
		return false;
	*rest = str_skip(*rest, (size_t)end + 1);
	return true;
}

static int take_repeat(struct parser *p, uint64_t min, uint64_t max)
{
	int r = p->has_atom && min <= max ? 0 : -EBADMSG;

	if (min > REGEX_REPEAT_MAX || (max > REGEX_REPEAT_MAX && max != UINT64_MAX))
		r = -EBADMSG;
	if (str_starts(p->rest, STR("?"))) /* lazy: the same texts */
		p->rest = str_skip(p->rest, 1);
	r = r ? r : repeat_counted(p, min, max);
	p->has_atom = false; /* "a**" is an error, as in RE2 */
	return r;
}

/* The pattern */

static int take_escaped(struct parser *p)
{
	int32_t code = 0;
	int r;

	if (str_starts(p->rest, STR("Q"))) {
		p->rest = str_skip(p->rest, 1);
		p->quoted = true;
		return 0;
	}
	r = take_escape(p, &code);
	return r < 0 ? r : r ? take_letter_class(p, code) : add_code(p, code);
}

static int take_open(struct parser *p)
{
	return str_starts(p->rest, STR("?")) ? take_flags(p) : open_group(p, p->folded);
}

static int take_quoted(struct parser *p)
{
	if (!str_starts(p->rest, STR("\\E")))
		return add_code(p, take_code(p));
	p->rest = str_skip(p->rest, 2);
	p->quoted = false;
	return 0;
}

static int take_token(struct parser *p)
{
	uint64_t min, max;
	int32_t code;

	if (p->quoted)
		return take_quoted(p);
	if (read_counts(&p->rest, &min, &max))
		return take_repeat(p, min, max);
	code = take_code(p);
	switch (code) {
	case '*':
		return take_repeat(p, 0, UINT64_MAX);
	case '+':
		return take_repeat(p, 1, UINT64_MAX);
	case '?':
		return take_repeat(p, 0, 1);
	case '|':
		return next_branch(p);
	case '(':
		return take_open(p);
	case ')':
		if (p->depth == 1)
			return -EBADMSG;
		close_group(p);
		return 0;
	case '[':
		return take_brackets(p);
	case '\\':
		return take_escaped(p);
	case '.':
		return add_atom(p, (struct regex_state){ .op = OP_SET, .lo = 0, .hi = CODE_MAX });
	case '^':
		return add_atom(p, (struct regex_state){ .op = OP_BEGIN });
	case '$':
		return add_atom(p, (struct regex_state){ .op = OP_END });
	default:
		return add_code(p, code);
	}
}

int regex_compile(struct str pattern, struct regex *out)
{
	struct parser p = { .rest = pattern };
	int r = pattern.len > REGEX_PATTERN_MAX ? -E2BIG : open_group(&p, false);

	while (r == 0 && p.rest.len)
		r = take_token(&p);
	if (r == 0 && p.depth != 1)
		r = -EBADMSG;
	if (r == 0) {
		close_group(&p);
		r = add_state(&p, (struct regex_state){ .op = OP_MATCH });
	}
	/* Two lists and a stack of states, and for each state the round it was last met in. */
	p.re.scratch = r ? NULL : calloc(p.re.states_count * 5 + 1, sizeof(*p.re.scratch));
	if (r == 0 && !p.re.scratch)
		r = -ENOMEM;
	if (r < 0) {
		regex_release(&p.re);
		return r;
	}
	*out = p.re;
	return 0;
}
