/* SPDX-License-Identifier: Apache-2.0 */
#include "query/matchers.h"

#include "base/utf8.h"

#define BYTES_MAX KIB(256) /* of all names and values */

static void free_regex(struct regex *re)
{
	if (re)
		regex_release(re);
	free(re);
}

void matchers_release(struct matchers *m)
{
	for (size_t i = 0; i < m->count; i++)
		free_regex(m->items[i].regex);
	buf_release(&m->bytes);
	*m = (struct matchers){ 0 };
}

/* Reading */

struct reading {
	struct matchers *m;
	struct str rest;
	struct buf *why;
};

static int bad(struct reading *g, const char *what)
{
	buf_addf(g->why, "bad selector: %s at \"" STR_FMT "\"", what, STR_ARG(str_first(g->rest, 32)));
	return -EBADMSG;
}

static void skip_blanks(struct reading *g)
{
	while (g->rest.len && strchr(" \t\r\n", g->rest.ptr[0]) && g->rest.ptr[0])
		g->rest = str_skip(g->rest, 1);
}

static bool take(struct reading *g, struct str what)
{
	if (!str_starts(g->rest, what))
		return false;
	g->rest = str_skip(g->rest, what.len);
	return true;
}

static bool is_name_byte(char c, bool first)
{
	return c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
	       (!first && ((c >= '0' && c <= '9') || c == '.' || c == ':'));
}

/* \xHH, \uHHHH, \UHHHHHHHH behind the letter. */
static int take_number(struct reading *g, char letter)
{
	size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
	struct buf *out = &g->m->bytes;
	uint64_t code;

	if (g->rest.len < digits || str_to_hex64(str_first(g->rest, digits), &code) < 0)
		return bad(g, "escape");
	g->rest = str_skip(g->rest, digits);
	if (letter == 'x')
		buf_addc(out, (char)code);
	else
		utf8_add(out, (uint32_t)code);
	return out->error;
}

static int take_escape(struct reading *g)
{
	static const char letters[] = "abfnrtv\\\"'`", meant[] = "\a\b\f\n\r\t\v\\\"'`";
	const char *found;
	char c;

	if (!g->rest.len)
		return bad(g, "escape");
	c = g->rest.ptr[0];
	found = c ? strchr(letters, c) : NULL;
	if (!found && !strchr("xuU", c))
		return bad(g, "escape (a backslash of a regular expression is written twice)");
	g->rest = str_skip(g->rest, 1);
	if (!found)
		return take_number(g, c);
	buf_addc(&g->m->bytes, meant[found - letters]);
	return 0;
}

/* In quotes of either kind; in backquotes nothing is escaped. There is room in the bytes. */
static int take_text(struct reading *g, struct str *out)
{
	struct buf *bytes = &g->m->bytes;
	size_t at = bytes->len;
	char quote;
	int r = 0;

	if (!g->rest.len || !strchr("\"'`", g->rest.ptr[0]) || !g->rest.ptr[0])
		return bad(g, "a text in quotes is missing");
	quote = g->rest.ptr[0];
	g->rest = str_skip(g->rest, 1);
	while (r == 0 && g->rest.len && g->rest.ptr[0] != quote) {
		char c = g->rest.ptr[0];

		g->rest = str_skip(g->rest, 1);
		if (c == '\\' && quote != '`')
			r = take_escape(g);
		else
			buf_addc(bytes, c);
	}
	if (r == 0 && !g->rest.len)
		r = bad(g, "a quote is missing");
	g->rest = str_skip(g->rest, 1);
	*out = str_n(bytes->ptr + at, bytes->len - at);
	return r ? r : bytes->error;
}

static int take_name(struct reading *g, struct str *out)
{
	struct buf *bytes = &g->m->bytes;
	size_t at = bytes->len, size = 0;

	if (g->rest.len && strchr("\"'`", g->rest.ptr[0]) && g->rest.ptr[0])
		return take_text(g, out);
	while (size < g->rest.len && is_name_byte(g->rest.ptr[size], !size))
		size++;
	if (!size)
		return bad(g, "a label is missing");
	buf_adds(bytes, str_first(g->rest, size));
	g->rest = str_skip(g->rest, size);
	*out = str_n(bytes->ptr + at, size);
	return bytes->error;
}

static int take_op(struct reading *g, enum matcher_op *out)
{
	if (take(g, STR("=~")))
		*out = MATCHER_FITS;
	else if (take(g, STR("!~")))
		*out = MATCHER_FITS_NOT;
	else if (take(g, STR("!=")))
		*out = MATCHER_NOT_EQUAL;
	else if (take(g, STR("=")))
		*out = MATCHER_EQUAL;
	else
		return bad(g, "=, !=, =~ or !~ is missing");
	return 0;
}

static int compile(struct reading *g, struct matcher *matcher)
{
	struct regex *re = calloc(1, sizeof(*re));
	int r = re ? regex_compile(matcher->value, re) : -ENOMEM;

	if (r == 0)
		matcher->regex = re;
	else
		free(re);
	if (r == -EBADMSG || r == -E2BIG)
		buf_addf(g->why, "bad selector: the regular expression \"" STR_FMT "\" %s",
			 STR_ARG(str_first(matcher->value, 64)),
			 r == -E2BIG ? "is too large" : "is malformed, or of a kind that is not understood");
	return r;
}

static int take_matcher(struct reading *g)
{
	struct matcher matcher = { 0 };
	int r = g->m->count == MATCHERS_MAX ? -E2BIG : take_name(g, &matcher.name);

	if (r == -E2BIG)
		buf_addf(g->why, "bad selector: more than %d matchers", MATCHERS_MAX);
	if (r < 0)
		return r;
	skip_blanks(g);
	r = take_op(g, &matcher.op);
	if (r < 0)
		return r;
	skip_blanks(g);
	r = take_text(g, &matcher.value);
	if (r == 0 && (matcher.op == MATCHER_FITS || matcher.op == MATCHER_FITS_NOT))
		r = compile(g, &matcher);
	if (r == 0)
		g->m->items[g->m->count++] = matcher;
	return r;
}

/* Room for all that @size bytes stand for: what was read before stays where it is. */
static int make_room(struct matchers *m, size_t size, struct buf *why)
{
	if (!m->bytes.max) {
		m->bytes.max = BYTES_MAX;
		if (!buf_reserve(&m->bytes, BYTES_MAX))
			return m->bytes.error;
	}
	if (size <= BYTES_MAX - m->bytes.len)
		return 0;
	buf_adds(why, STR("bad selector: it is too long"));
	return -E2BIG;
}

int matchers_parse(struct str text, struct matchers *m, struct buf *why)
{
	struct reading g = { .m = m, .rest = str_trim(text), .why = why };
	int r = make_room(m, text.len * 2, why); /* \uFFFF takes less than it has */
	bool braces;

	if (r < 0)
		return r;
	braces = take(&g, STR("{"));
	skip_blanks(&g);
	while (r == 0 && g.rest.len && g.rest.ptr[0] != '}') {
		r = take_matcher(&g);
		skip_blanks(&g);
		if (r == 0 && !take(&g, STR(",")) && g.rest.len && g.rest.ptr[0] != '}')
			r = bad(&g, "a comma is missing");
		skip_blanks(&g);
	}
	if (r == 0 && braces && !take(&g, STR("}")))
		r = bad(&g, "a brace is missing");
	return r == 0 && g.rest.len ? bad(&g, "something is too much") : r;
}

/* Labels */

static char shown_byte(char c)
{
	return is_name_byte(c, false) && c != '.' && c != ':' ? c : '_';
}

void query_label_shown(struct str name, struct buf *out)
{
	if (name.len && name.ptr[0] >= '0' && name.ptr[0] <= '9')
		buf_addc(out, '_');
	for (size_t i = 0; i < name.len; i++)
		buf_addc(out, shown_byte(name.ptr[i]));
}

static bool is_shown_as(struct str name, struct str shown)
{
	if (name.len && name.ptr[0] >= '0' && name.ptr[0] <= '9' && str_starts(shown, STR("_")))
		shown = str_skip(shown, 1);
	if (name.len != shown.len)
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (shown_byte(name.ptr[i]) != shown.ptr[i])
			return false;
	return true;
}

struct str query_series_label(const struct store_series *series, struct str name)
{
	if (str_eq(name, STR("service_name")))
		return series->service;
	if (str_eq(name, STR("__name__")))
		return query_type_metric(series->type);
	for (size_t i = 0; i < series->label_count; i++)
		if (str_eq(series->labels[i].key, name))
			return series->labels[i].value;
	for (size_t i = 0; i < series->label_count; i++)
		if (is_shown_as(series->labels[i].key, name))
			return series->labels[i].value;
	return STR("");
}

/* Matching */

/* Whether @value is one of those that the matcher names, for it or against it. */
static bool names(struct matchers *m, struct matcher *matcher, struct str value)
{
	uint64_t before;
	bool found;

	if (matcher->op == MATCHER_EQUAL || matcher->op == MATCHER_NOT_EQUAL)
		return str_eq(matcher->value, value);
	if (m->exhausted)
		return false;
	before = matcher->regex->steps;
	found = regex_fits(matcher->regex, value);
	m->steps += matcher->regex->steps - before;
	m->exhausted = m->steps > (m->steps_max ? m->steps_max : MATCHERS_STEPS_MAX);
	if (m->exhausted && m->told)
		*m->told = true;
	return found;
}

static bool is_for(const struct matcher *matcher)
{
	return matcher->op == MATCHER_EQUAL || matcher->op == MATCHER_FITS;
}

static bool fits(struct matchers *m, struct matcher *matcher, struct str value)
{
	return names(m, matcher, value) == is_for(matcher) && !m->exhausted;
}

static bool fits_literally(struct matchers *m, struct matcher *matcher, const struct store_series *series)
{
	bool found = false, has_label = false;

	for (size_t i = 0; i < series->label_count && !found; i++)
		if (str_eq(series->labels[i].key, matcher->name)) {
			has_label = true;
			found = names(m, matcher, series->labels[i].value);
		}
	if (!has_label)
		found = names(m, matcher, STR(""));
	return found == is_for(matcher) && !m->exhausted;
}

bool matcher_of_column(struct str name)
{
	static const char *const names[] = { "__profile_type__", "__type__", "__unit__", "__period_type__",
					     "__period_unit__" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(name, str_of(names[i])))
			return true;
	return false;
}

bool matchers_have_columns(const struct matchers *m)
{
	for (size_t i = 0; i < m->count; i++)
		if (matcher_of_column(m->items[i].name))
			return true;
	return false;
}

bool matchers_fit(void *ctx, const struct store_series *series)
{
	struct matchers *m = ctx;

	for (size_t i = 0; i < m->count; i++) {
		struct matcher *matcher = &m->items[i];

		if (m->is_literal ? !fits_literally(m, matcher, series)
				  : !matcher_of_column(matcher->name) &&
					    !fits(m, matcher, query_series_label(series, matcher->name)))
			return false;
	}
	return true;
}

/* The first three parts say what a column is; the others are there for their form. */
static bool fits_type(struct matchers *m, struct matcher *matcher, const struct query_column *column)
{
	struct query_column wanted;
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));

	if (matcher->op == MATCHER_EQUAL || matcher->op == MATCHER_NOT_EQUAL) {
		bool same = query_column_parse(matcher->value, &wanted) == 0 && str_eq(wanted.metric, column->metric) &&
			    str_eq(wanted.sample, column->sample) && str_eq(wanted.unit, column->unit);

		return same == (matcher->op == MATCHER_EQUAL);
	}
	query_column_text(column, &text);
	return fits(m, matcher, buf_str(&text));
}

bool matchers_fit_column(struct matchers *m, const struct query_column *column)
{
	for (size_t i = 0; i < m->count; i++) {
		struct matcher *matcher = &m->items[i];
		bool found = true;

		if (str_eq(matcher->name, STR("__profile_type__")))
			found = fits_type(m, matcher, column);
		else if (str_eq(matcher->name, STR("__type__")))
			found = fits(m, matcher, column->sample);
		else if (str_eq(matcher->name, STR("__unit__")))
			found = fits(m, matcher, column->unit);
		else if (str_eq(matcher->name, STR("__period_type__")))
			found = fits(m, matcher, column->period_type);
		else if (str_eq(matcher->name, STR("__period_unit__")))
			found = fits(m, matcher, column->period_unit);
		if (!found)
			return false;
	}
	return true;
}

struct str matchers_service(const struct matchers *m)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->items[i].op == MATCHER_EQUAL && str_eq(m->items[i].name, STR("service_name")))
			return m->items[i].value;
	return STR("");
}

struct str matchers_type(const struct matchers *m)
{
	struct query_column column;

	for (size_t i = 0; i < m->count; i++) {
		const struct matcher *matcher = &m->items[i];

		if (matcher->op != MATCHER_EQUAL)
			continue;
		if (str_eq(matcher->name, STR("__name__")))
			return query_metric_type(matcher->value);
		if (str_eq(matcher->name, STR("__profile_type__")) && query_column_parse(matcher->value, &column) == 0)
			return query_metric_type(column.metric);
	}
	return STR("");
}
