/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/service_rules.h"

#include "base/array.h"
#include "base/safe.h"
#include "base/utf8.h"

#define ARROW "->"

struct rule {
	enum service_rule_field field;
	struct str pattern, name; /* of the text */
};

struct service_rules {
	char *text; /* owned */
	struct rule *rules;
	size_t count, cap;
	bool asked[SERVICE_RULE_FIELD_COUNT];
};

static const char *const field_names[SERVICE_RULE_FIELD_COUNT] = {
	[SERVICE_RULE_EXE] = "exe",       [SERVICE_RULE_COMM] = "comm", [SERVICE_RULE_COMMAND] = "command",
	[SERVICE_RULE_CGROUP] = "cgroup", [SERVICE_RULE_UNIT] = "unit", [SERVICE_RULE_CONTAINER] = "container",
};

void service_rules_free(struct service_rules *r)
{
	if (!r)
		return;
	free(r->text);
	free(r->rules);
	free(r);
}

void service_rules_freep(struct service_rules **r)
{
	service_rules_free(*r);
}

static bool find_field(struct str name, enum service_rule_field *out)
{
	for (size_t i = 0; i < SERVICE_RULE_FIELD_COUNT; i++)
		if (str_eq(str_of(field_names[i]), name)) {
			*out = (enum service_rule_field)i;
			return true;
		}
	return false;
}

static int bad(struct buf *why, size_t line, const char *what)
{
	buf_addf(why, "line %zu: %s", line, what);
	return -EBADMSG;
}

/* Position of the last arrow with blanks around it, so that patterns may hold one; -1: there is none. */
static ptrdiff_t find_arrow(struct str s)
{
	for (size_t i = s.len; i >= 4; i--)
		if ((s.ptr[i - 1] == ' ' || s.ptr[i - 1] == '\t') && memcmp(s.ptr + i - 3, ARROW, 2) == 0 &&
		    (s.ptr[i - 4] == ' ' || s.ptr[i - 4] == '\t'))
			return (ptrdiff_t)i - 3;
	return -1;
}

/* It is shown on every page, and its length is bounded. */
static const char *name_problem(struct str name)
{
	struct str rest = name;

	if (!name.len)
		return "no name behind the arrow";
	if (name.len > SERVICE_RULE_NAME_MAX)
		return "the name is longer than 200 bytes";
	while (rest.len) {
		int32_t code = utf8_next(&rest);

		if (code < 0 || safe_hides((uint32_t)code))
			return "the name has control or invisible characters, or is no UTF-8";
	}
	return NULL;
}

static int parse_line(struct service_rules *r, struct str line, size_t number, struct buf *why)
{
	struct rule rule;
	struct str field = line;
	ptrdiff_t arrow = find_arrow(line);
	const char *problem;
	int e;

	for (size_t i = 0; i < line.len && field.len == line.len; i++)
		if (line.ptr[i] == ' ' || line.ptr[i] == '\t')
			field = str_first(line, i);
	if (!find_field(field, &rule.field))
		return bad(why, number, "begins with none of exe, comm, command, cgroup, unit, container");
	if (arrow < 0 || (size_t)arrow < field.len)
		return bad(why, number, "is no \"FIELD PATTERN -> NAME\"");
	rule.pattern = str_trim(str_skip(str_first(line, (size_t)arrow), field.len));
	rule.name = str_trim(str_skip(line, (size_t)arrow + sizeof(ARROW) - 1));
	if (!rule.pattern.len || rule.pattern.len > SERVICE_RULE_PATTERN_MAX)
		return bad(why, number, "the pattern is empty or longer than 1,024 bytes");
	problem = name_problem(rule.name);
	if (problem)
		return bad(why, number, problem);
	e = array_grow(&r->rules, &r->cap, r->count, SERVICE_RULES_MAX);
	if (e < 0) {
		if (e == -E2BIG)
			buf_addf(why, "line %zu: more than %d rules", number, SERVICE_RULES_MAX);
		return e;
	}
	r->rules[r->count++] = rule;
	r->asked[rule.field] = true;
	return 0;
}

int service_rules_parse(struct str text, struct buf *why, struct service_rules **out)
{
	scoped(service_rules_freep) struct service_rules *r = NULL;
	struct str rest, line;
	size_t number = 0;
	int e = 0;

	if (text.len > SERVICE_RULES_SIZE_MAX) {
		buf_adds(why, STR("larger than 1 MiB"));
		return -E2BIG;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->text = malloc(text.len + 1);
	if (!r->text)
		return -ENOMEM;
	if (text.len)
		memcpy(r->text, text.ptr, text.len);
	rest = str_n(r->text, text.len);
	while (e == 0 && str_next(&rest, '\n', &line)) {
		number++;
		line = str_trim(line);
		if (line.len && line.ptr[0] != '#')
			e = parse_line(r, line, number, why);
	}
	if (e < 0)
		return e;
	*out = r;
	r = NULL;
	return 0;
}

size_t service_rules_count(const struct service_rules *r)
{
	return r ? r->count : 0;
}

bool service_rules_ask(const struct service_rules *r, enum service_rule_field field)
{
	return r && r->asked[field];
}

/* A star that was passed takes one byte more when what follows it does not fit: at most pattern times text steps. */
bool service_rules_fits(struct str pattern, struct str text)
{
	size_t p = 0, t = 0, star = SIZE_MAX, from = 0;

	while (t < text.len) {
		if (p < pattern.len && pattern.ptr[p] == '*') {
			star = p++;
			from = t;
		} else if (p < pattern.len && (pattern.ptr[p] == '?' || pattern.ptr[p] == text.ptr[t])) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			t = ++from;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.ptr[p] == '*')
		p++;
	return p == pattern.len;
}

struct str service_rules_find(const struct service_rules *r, const struct str fields[SERVICE_RULE_FIELD_COUNT])
{
	for (size_t i = 0; i < service_rules_count(r); i++) {
		struct str text = str_first(fields[r->rules[i].field], SERVICE_RULE_TEXT_MAX);

		if (text.len && service_rules_fits(r->rules[i].pattern, text))
			return r->rules[i].name;
	}
	return STR("");
}
