/* SPDX-License-Identifier: Apache-2.0 */
/* Pyroscope's names of profile types, and its selectors. Source: grafana/pyroscope, public documentation of the
 * server's HTTP API; docs/collector.md. */
#include "query/params.h"
#include "store/store_int.h"

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

static int parse_head(struct str head, struct query_render *q)
{
	struct str rest = head, name, column;
	ptrdiff_t dot;

	if (str_find(head, ':') >= 0) {
		ignore(str_next(&rest, ':', &name)); /* there is one */
		ignore(str_next(&rest, ':', &column));
		q->type = query_metric_type(name);
		q->column = column;
		return q->type.len ? 0 : -EBADMSG;
	}
	dot = str_rfind(head, '.');
	q->type = query_suffix_type(str_skip(head, (size_t)(dot + 1)));
	if (dot > 0 && q->type.len) {
		q->service = str_first(head, (size_t)dot);
		q->column = str_skip(head, (size_t)dot + 1);
	} else {
		q->type = query_metric_type(head);
	}
	return q->type.len ? 0 : -EBADMSG;
}

/* A quoted value; a backslash keeps the next byte. */
static int take_value(struct str *rest, struct query_labels *l, struct str *out)
{
	size_t at = l->bytes.len, i = 1;

	if (!rest->len || rest->ptr[0] != '"')
		return -EBADMSG;
	for (; i < rest->len && rest->ptr[i] != '"'; i++) {
		if (rest->ptr[i] == '\\' && ++i == rest->len)
			return -EBADMSG;
		buf_addc(&l->bytes, rest->ptr[i]);
	}
	if (i == rest->len)
		return -EBADMSG;
	*rest = str_skip(*rest, i + 1);
	*out = str_n(l->bytes.ptr + at, l->bytes.len - at);
	return l->bytes.error;
}

static struct str skip_blanks(struct str s)
{
	while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == ','))
		s = str_skip(s, 1);
	return s;
}

static int take_matcher(struct str *rest, struct query_render *q)
{
	ptrdiff_t equals = str_find(*rest, '=');
	struct str key, value;
	int r;

	if (equals <= 0)
		return -EBADMSG;
	key = str_trim(str_first(*rest, (size_t)equals));
	*rest = str_skip(*rest, (size_t)equals + 1);
	if (!key.len || key.ptr[key.len - 1] == '!' || str_starts(*rest, STR("~")) || str_find(key, '~') >= 0)
		return -ENOTSUP;
	*rest = skip_blanks(*rest);
	r = take_value(rest, &q->labels, &value);
	if (r < 0)
		return r;
	if (str_eq(key, STR("service_name"))) {
		q->service = value;
		return 0;
	}
	if (q->labels.count == STORE_LABELS_MAX)
		return -E2BIG;
	q->labels.items[q->labels.count++] = (struct store_label){ key, value };
	return 0;
}

int query_render_parse(struct str text, struct query_render *out)
{
	ptrdiff_t open = str_find(text, '{');
	struct str rest = open < 0 ? STR("}") : skip_blanks(str_skip(text, (size_t)open + 1));
	struct query_render q = { .labels.bytes = BUF_INIT(text.len + 1) };
	int r = buf_reserve(&q.labels.bytes, text.len + 1) ? 0 : q.labels.bytes.error;

	r = r ? r : parse_head(str_trim(open < 0 ? text : str_first(text, (size_t)open)), &q);
	while (r == 0 && rest.len && rest.ptr[0] != '}') {
		r = take_matcher(&rest, &q);
		rest = skip_blanks(rest);
	}
	if (r == 0 && !str_eq(str_trim(rest), STR("}")))
		r = -EBADMSG;
	if (r < 0) {
		query_labels_release(&q.labels);
		return r;
	}
	store_labels_sort(q.labels.items, q.labels.count);
	*out = q;
	return 0;
}
