/* SPDX-License-Identifier: Apache-2.0 */
#include "query/render_query.h"

static const struct {
	const char *suffix, *type;
} suffixes[] = {
	{ "cpu", "cpu" },
	{ "itimer", "cpu" },
	{ "wall", "wall" },
	{ "inuse_objects", "heap" },
	{ "inuse_space", "heap" },
	{ "alloc_objects", "heap" },
	{ "alloc_space", "heap" },
	{ "goroutines", "goroutine" },
	{ "mutex_count", "mutex" },
	{ "mutex_duration", "mutex" },
	{ "block_count", "block" },
	{ "block_duration", "block" },
	{ "exceptions", "exceptions" },
	{ "alloc_in_new_tlab_objects", "other" },
	{ "alloc_in_new_tlab_bytes", "other" },
	{ "alloc_outside_tlab_objects", "other" },
	{ "alloc_outside_tlab_bytes", "other" },
	{ "lock_count", "other" },
	{ "lock_duration", "other" },
	{ "live", "other" },
};

static const struct {
	const char *name, *type;
} metrics[] = { { "process_cpu", "cpu" },     { "wall", "wall" },   { "memory", "heap" },
		{ "mutex", "mutex" },         { "block", "block" }, { "goroutine", "goroutine" },
		{ "goroutines", "goroutine" } };

struct str query_suffix_type(struct str suffix)
{
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (str_eq(suffix, str_of(suffixes[i].suffix)))
			return str_of(suffixes[i].type);
	return STR("");
}

struct str query_metric_type(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		if (str_eq(name, str_of(metrics[i].name)))
			return str_of(metrics[i].type);
	return query_type_known(name) ? name : STR("");
}

struct str query_type_metric(struct str type)
{
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		if (str_eq(type, str_of(metrics[i].type)))
			return str_of(metrics[i].name);
	return type;
}

int query_column_parse(struct str text, struct query_column *out)
{
	struct str parts[6], rest = text;
	size_t count = 0;

	while (count < ARRAY_SIZE(parts) && str_next(&rest, ':', &parts[count]))
		count++;
	if (count < 5 || rest.ptr || !parts[0].len || !parts[1].len || (count == 6 && !str_eq(parts[5], STR("delta"))))
		return -EBADMSG;
	*out = (struct query_column){ parts[0], parts[1], parts[2], parts[3], parts[4] };
	return 0;
}

void query_column_text(const struct query_column *column, struct buf *out)
{
	const struct str parts[] = { column->metric, column->sample, column->unit, column->period_type,
				     column->period_unit };

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (i)
			buf_addc(out, ':');
		buf_adds(out, parts[i]);
	}
}

/* Queries */

void query_render_release(struct query_render *q)
{
	matchers_release(&q->matchers);
}

static int parse_head(struct str head, struct query_render *q)
{
	struct str rest = head, name;
	ptrdiff_t dot;

	if (str_find(head, ':') >= 0) {
		ignore(str_next(&rest, ':', &name)); /* there is one */
		ignore(str_next(&rest, ':', &q->sample));
		q->type = query_metric_type(name);
		return q->type.len ? 0 : -EBADMSG;
	}
	dot = str_rfind(head, '.');
	q->type = query_suffix_type(str_skip(head, (size_t)(dot + 1)));
	if (dot > 0 && q->type.len) {
		q->service = str_first(head, (size_t)dot);
		q->sample = str_skip(head, (size_t)dot + 1);
	} else {
		q->type = query_metric_type(head);
	}
	return q->type.len ? 0 : -EBADMSG;
}

int query_render_parse(struct str text, struct query_render *out, struct buf *why)
{
	ptrdiff_t open = str_find(text, '{');
	int r = parse_head(str_trim(open < 0 ? text : str_first(text, (size_t)open)), out);

	if (r < 0) {
		buf_adds(why, STR("query: neither type:sample:unit:period:unit{...} nor app.suffix{...}"));
		return r;
	}
	r = open < 0 ? 0 : matchers_parse(str_skip(text, (size_t)open), &out->matchers, why);
	if (r == 0 && matchers_service(&out->matchers).len)
		out->service = matchers_service(&out->matchers);
	return r;
}
