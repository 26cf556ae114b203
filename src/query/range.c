/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the errors are profefe's, but that other APIs have no CreatedAtMin. Source: profefe,
 * pkg/profefe/profiles_handler.go. */
#include "query/range.h"

#include "base/clock.h"

#define TEXT_SHOWN 64 /* bytes of a wrong value that the error repeats */
#define LABELS_SHOWN 256
/* Of all regular expressions of the labels: some seconds; a page asks several such questions at once. */
#define STEPS_MAX (UINT64_C(1) << 28)

const struct query_range_rules query_range_profefe = { .needs_service = true, .is_profefe = true };
const struct query_range_rules query_range_pyroscope = {
	.to = "until", .from_usual = "now-1h", .to_usual = "now", .times_only = true
};
const struct query_range_rules query_range_view = { .from_usual = "now-1h",
						    .to_usual = "now",
						    .type_usual = "cpu",
						    .known_type = true,
						    .has_within = true,
						    .has_matchers = true };
const struct query_range_rules query_range_base = { .prefix = "base-",
						    .from_usual = "now-1h",
						    .to_usual = "now",
						    .type_usual = "cpu",
						    .known_type = true,
						    .has_within = true,
						    .has_matchers = true };

/* One reading. */
struct reading {
	const struct http_query *query;
	const struct query_range_rules *rules;
	uint64_t now_ns;
	struct buf *why;
};

void query_range_release(struct query_range *r)
{
	query_labels_release(&r->labels);
	if (r->matchers)
		matchers_release(r->matchers);
	free(r->matchers);
	r->matchers = NULL;
}

static int bad(struct buf *why, const char *name, struct str raw, const char *kind, const char *what)
{
	buf_addf(why, "bad \"%s\" %s\"" STR_FMT "\"%s%s", name, kind, STR_ARG(raw), what ? ": " : "", what ? what : "");
	return -EBADMSG;
}

/* The parameter of this prefix alone: of two sides each has its own. */
static struct str own_param(const struct reading *g, const char *name)
{
	const char *prefix = g->rules->prefix;
	size_t len = prefix ? strlen(prefix) : 0;

	for (size_t i = 0; prefix && i < g->query->count; i++) {
		struct str key = g->query->items[i].name;

		if (str_starts(key, str_of(prefix)) && str_eq(str_skip(key, len), str_of(name)))
			return g->query->items[i].value;
	}
	return prefix ? (struct str){ 0 } : http_query_get(g->query, str_of(name));
}

static struct str param(const struct reading *g, const char *name)
{
	struct str own = own_param(g, name);

	return own.ptr ? own : http_query_get(g->query, str_of(name));
}

int query_range_service(struct str raw, struct str *out, struct buf *why)
{
	if (!raw.len) {
		buf_adds(why, STR("missing \"service\""));
		return -EBADMSG;
	}
	if (raw.len > STORE_NAME_MAX)
		return bad(why, "service", str_first(raw, TEXT_SHOWN), "", "too long");
	*out = raw;
	return 0;
}

int query_range_labels(struct str raw, struct query_labels *out, struct buf *why)
{
	int r = query_labels_parse(raw.ptr ? raw : STR(""), out);

	if (r == 0 || r == -ENOMEM)
		return r;
	return bad(why, "labels", str_first(raw, LABELS_SHOWN), "",
		   r == -EBADMSG ? "invalid URL escape" : "too many, or too long");
}

void query_range_bad_time(const char *name, struct str raw, const char *kind, struct buf *why)
{
	scoped(buf_release) struct buf what = BUF_INIT(KIB(4));

	raw = str_first(raw, TEXT_SHOWN);
	buf_addf(&what, "time in unsupported format \"" STR_FMT "\"", STR_ARG(raw));
	(void)bad(why, name, raw, kind, buf_cstr(&what));
}

static int read_time(const struct reading *g, const char *name, const char *usual, uint64_t *out)
{
	struct str raw = param(g, name);

	if (!raw.len && !usual) {
		buf_addf(g->why, "missing \"%s\"", name);
		return -EBADMSG;
	}
	if (query_time(raw.len ? raw : str_of(usual), g->now_ns, out) == 0)
		return 0;
	query_range_bad_time(name, raw, "timestamp ", g->why);
	return -EBADMSG;
}

static int read_limit(const struct reading *g, size_t *out)
{
	struct str raw = param(g, "limit");
	uint64_t value = 0;

	if (raw.len > 1 && raw.ptr[0] == '-' && str_to_u64(str_skip(raw, 1), 0, UINT32_MAX, &value) == 0)
		value = 0; /* profefe's own store takes a negative one for none */
	else if (raw.len && str_to_u64(raw, 0, UINT32_MAX, &value) < 0)
		return bad(g->why, "limit", str_first(raw, TEXT_SHOWN), "", "not a number of profiles");
	*out = (size_t)value;
	return 0;
}

static const char *name_of_to(const struct reading *g)
{
	return g->rules->to ? g->rules->to : "to";
}

static int check_order(const struct reading *g, const struct query_range *r)
{
	if (r->from_ns <= r->to_ns)
		return 0;
	if (g->rules->is_profefe)
		buf_adds(g->why, STR("CreatedAtMin after CreatedAtMax: "));
	else
		buf_addf(g->why, "\"from\" is after \"%s\": ", name_of_to(g));
	clock_add_iso(g->why, r->from_ns);
	buf_adds(g->why, STR(", "));
	clock_add_iso(g->why, r->to_ns);
	return -EBADMSG;
}

static int read_type(const struct reading *g, struct query_range *r)
{
	r->type = str_trim(param(g, "type"));
	if (!r->type.len && g->rules->type_usual)
		r->type = str_of(g->rules->type_usual);
	if (!g->rules->known_type || query_type_known(r->type))
		return 0;
	return bad(g->why, "type", str_first(r->type, TEXT_SHOWN), "", "unknown profile type");
}

static int read_times(const struct reading *g, struct query_range *r)
{
	int code = read_time(g, "from", g->rules->from_usual, &r->from_ns);

	return code ? code : read_time(g, name_of_to(g), g->rules->to_usual, &r->to_ns);
}

/* A selector in braces, or "k=v,k=v". */
static int read_labels(const struct reading *g, struct query_range *r)
{
	struct str raw = param(g, "labels");
	int code;

	if (!g->rules->has_matchers || !str_starts(str_trim(raw), STR("{")))
		return query_range_labels(raw, &r->labels, g->why);
	r->matchers = calloc(1, sizeof(*r->matchers));
	if (!r->matchers)
		return -ENOMEM;
	r->matchers->is_literal = true;
	r->matchers->steps_max = STEPS_MAX;
	code = matchers_parse(raw, r->matchers, g->why);
	return code == -E2BIG ? -EBADMSG : code; /* said in words */
}

static int read_names(const struct reading *g, struct query_range *r)
{
	struct str service = param(g, "service");
	int code = service.len || g->rules->needs_service ? query_range_service(service, &r->service, g->why) : 0;

	return code ? code : read_labels(g, r);
}

int query_range_read(const struct http_query *query, const struct query_range_rules *rules, uint64_t now_ns,
		     struct query_range *out, struct buf *why)
{
	const struct reading g = { query, rules, now_ns, why };
	struct query_range r = { .service = STR(""), .type = STR(""), .before = STR("") };
	int code = rules->times_only ? 0 : read_names(&g, &r);

	code = code ? code : read_times(&g, &r);
	code = code || rules->times_only ? code : read_limit(&g, &r.limit);
	code = code ? code : check_order(&g, &r);
	code = code || rules->times_only ? code : read_type(&g, &r);
	code = code || !rules->has_within ? code : query_within_read(own_param(&g, "within"), &r.within, why);
	if (code < 0) {
		query_range_release(&r);
		return code;
	}
	if (!rules->times_only)
		r.before = http_query_get(query, STR("before"));
	*out = r;
	return 0;
}

struct store_selector query_range_select(const struct query_range *r)
{
	return (struct store_selector){ .service = r->service,
					.type = r->type,
					.labels = r->labels.items,
					.label_count = r->labels.count,
					.from_ns = r->from_ns,
					.to_ns = r->to_ns,
					.limit = r->limit,
					.fits = r->matchers ? matchers_fit : NULL,
					.fits_ctx = r->matchers };
}
