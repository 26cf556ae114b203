/* SPDX-License-Identifier: Apache-2.0 */
/* What Pyroscope's SDKs and shell users send to /ingest (docs/collector.md). An upload becomes one stored profile of
 * our types; its labels are the application's. */
#include <inttypes.h>

#include "codec/folded.h"
#include "codec/gzip.h"
#include "collector/collector_int.h"
#include "query/column.h"

#define RATE_DEFAULT 100
#define RATE_MAX 1000000

struct ingest {
	struct str name; /* the application's, with its suffix */
	struct query_labels labels;
	struct pyroscope_profile to;
	struct str suffix;
	uint64_t rate_hz;
	struct str profile, config; /* parts of a multipart body */
	struct buf text;
};

static void ingest_release(struct ingest *in)
{
	pyroscope_profile_release(&in->to);
	query_labels_release(&in->labels);
	buf_release(&in->text);
}

static bool bad(struct call *call, unsigned int status, const char *what)
{
	answer_error(call->rs, status, "bad request: %s", what);
	return false;
}

/* Parameters */

static bool time_param(struct call *call, const char *name, uint64_t *out)
{
	struct str raw = http_query_get(&call->query, str_of(name));

	if (raw.len && query_time(raw, call->now_ns, out) < 0)
		return bad(call, 400, name);
	return true;
}

static bool read_params(struct call *call, struct ingest *in)
{
	struct str rate = http_query_get(&call->query, STR("sampleRate"));
	struct str name = http_query_get(&call->query, STR("name"));
	ptrdiff_t dot;
	int r;

	if (!name.len)
		return bad(call, 400, "missing \"name\"");
	r = query_name_parse(name, &in->name, &in->labels);
	if (r == -ENOMEM)
		return bad(call, 503, "out of memory");
	if (r < 0)
		return bad(call, 400, "the labels of \"name\" are too many or too long");
	in->to.from_ns = in->to.until_ns = call->now_ns;
	if (!time_param(call, "from", &in->to.from_ns) || !time_param(call, "until", &in->to.until_ns))
		return false;
	if (str_to_u64(rate, 1, RATE_MAX, &in->rate_hz) < 0)
		in->rate_hz = RATE_DEFAULT;
	dot = str_rfind(in->name, '.');
	in->suffix = str_skip(in->name, (size_t)(dot + 1));
	in->to.type = query_suffix_type(in->suffix);
	if (dot > 0 && in->to.type.len)
		in->name = str_first(in->name, (size_t)dot);
	else
		in->suffix = STR("");
	if (!pyroscope_labels(call, in->labels.items, in->labels.count, in->name, &in->to))
		return false;
	return in->to.service.len ? true : bad(call, 400, "name has no application");
}

/* Folded stacks */

/* Every piece of a line is a frame here, while our folded files begin with the process: an empty piece in front. */
static int unfold(struct ingest *in, struct str bytes, size_t max, bool counted)
{
	struct str rest = bytes, line;

	buf_release(&in->text);
	in->text = (struct buf)BUF_INIT(max);
	while (rest.len && str_next(&rest, '\n', &line)) {
		line = str_trim(line);
		if (!line.len)
			continue;
		buf_addc(&in->text, ';');
		buf_adds(&in->text, line);
		buf_adds(&in->text, counted ? STR("\n") : STR(" 1\n"));
	}
	return in->text.error;
}

static int name_column(struct model *m, size_t column, struct str type, struct str unit)
{
	int r = model_add_string(m, type, &m->value_types[column].type);

	return r ? r : model_add_string(m, unit, &m->value_types[column].unit);
}

/* Counts of ticks get a column of time beside them. */
static int add_time(struct model *m, struct str type, uint64_t rate_hz)
{
	int64_t *values = calloc(MAX(m->samples_count, (size_t)1), 2 * sizeof(*values));
	int64_t period = (int64_t)(NSEC_PER_SEC / rate_hz);
	int r;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < m->samples_count; i++) {
		int64_t count = *model_values(m, &m->samples[i]);

		values[2 * i] = count;
		if (__builtin_mul_overflow(count, period, &values[2 * i + 1]))
			values[2 * i + 1] = INT64_MAX;
		m->samples[i].first_value = (uint32_t)(2 * i);
	}
	free(m->values);
	m->values = values;
	m->values_count = m->values_cap = 2 * m->samples_count;
	m->value_type_count = 2;
	r = name_column(m, 1, type, STR("nanoseconds"));
	m->period_type = m->value_types[1];
	m->period = period;
	return r;
}

static struct str unit_of(struct call *call)
{
	struct str units = http_query_get(&call->query, STR("units"));

	if (str_eq(units, STR("bytes")))
		return STR("bytes");
	return str_ends(units, STR("nanoseconds")) ? STR("nanoseconds") : STR("count");
}

static int decode_folded(struct call *call, struct ingest *in, struct received *r, bool counted,
			 struct codec_error *error)
{
	size_t max = r->is_large ? call->collector->config.expanded_max : (size_t)RECEIVE_SMALL;
	struct codec_limits limits = receive_limits(call, r, max);
	int code = unfold(in, r->raw, max, counted);

	*error = (struct codec_error){ 0 };
	if (code == 0 && r->is_large) { /* one copy of it is enough */
		buf_release(&r->unwrapped);
		r->raw = STR("");
	}
	return code ? code : codec_folded.decode_limited(buf_str(&in->text), &limits, &r->window, error);
}

static bool folded_failed(struct call *call, int code, const struct codec_error *error)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));

	buf_addf(&why, "folded stacks, line %" PRIu64 ": %s", error->position,
		 error->reason[0] ? error->reason : "too much text");
	return receive_failed(call, code, buf_cstr(&why));
}

static bool receive_folded(struct call *call, struct ingest *in, struct received *r, bool counted)
{
	struct codec_error error;
	struct model *m;
	int code;

	if (!in->to.type.len)
		in->to.type = STR("cpu"); /* what Pyroscope takes it for */
	code = decode_folded(call, in, r, counted, &error);
	if (code == -E2BIG && receive_later(call, r))
		return false;
	if (code < 0)
		return folded_failed(call, code, &error);
	receive_decoded(call, &r->window);
	if (error.left_out)
		answer_count(call->rs, "X-Lines-Left-Out", error.left_out);
	m = r->window.model;
	if (m->value_type_count != 1)
		return bad(call, 400, "a line has two counts");
	if (str_eq(in->to.type, STR("cpu")) || str_eq(in->to.type, STR("wall")))
		code = add_time(m, in->to.type, in->rate_hz);
	else
		code = name_column(m, 0, in->suffix, unit_of(call));
	return code == 0 ? true : bad(call, code == -E2BIG ? 413 : 503, "the profile does not fit into memory");
}

/* pprof */

static bool receive_pprof(struct call *call, struct ingest *in, struct received *r, struct str bytes)
{
	if (!receive_profile(call, bytes, r))
		return false;
	in->to.type = pyroscope_type(r->window.model, in->config);
	pyroscope_own_time(r->window.model, &in->to);
	return true;
}

static bool check_config(struct call *call, struct str config)
{
	struct str rest = config, value;

	if (!config.len || (json_value(&rest, &value) == 0 && value.len && value.ptr[0] == '{' && !str_trim(rest).len))
		return true;
	return bad(call, 400, "sample_type_config is no JSON object");
}

static bool read_parts(struct call *call, struct ingest *in, struct str body, struct str content_type)
{
	struct str boundary = STR("");
	struct http_part part;
	int r;

	(void)http_value_param(content_type, STR("boundary"), &boundary); /* empty is refused below */
	while ((r = http_multipart_next(&body, boundary, &part)) == 1) {
		if (str_eq(part.name, STR("profile")))
			in->profile = part.body;
		else if (str_eq(part.name, STR("sample_type_config")))
			in->config = part.body;
		else if (str_eq(part.name, STR("prev_profile")))
			return bad(call, 422, "prev_profile: cumulative profiles of old clients are not supported");
	}
	if (r < 0)
		return bad(call, 400, "the multipart body is malformed");
	if (!in->profile.ptr)
		return bad(call, 400, "the multipart body has no part \"profile\"");
	return check_config(call, in->config);
}

/* What the body is, in the order in which the reference decides it. */
static bool receive_any(struct call *call, struct ingest *in, struct received *r)
{
	struct str format = http_query_get(&call->query, STR("format"));
	struct str type = http_header_get(call->rq, "Content-Type");

	if (str_eq(format, STR("trie")) || str_eq(format, STR("tree")) || str_eq(format, STR("jfr")) ||
	    str_eq(format, STR("speedscope")) || str_starts(type, STR("binary/octet-stream+"))) {
		answer_error(call->rs, 415, "format " STR_FMT " is not understood; pprof and folded stacks are",
			     STR_ARG(str_first(format.len ? format : type, 64)));
		return false;
	}
	if (!r->raw.len)
		return bad(call, 400, "the body is empty");
	if (str_eq(format, STR("lines")))
		return receive_folded(call, in, r, false);
	if (str_eq(format, STR("pprof")) && !http_value_is(type, STR("multipart/form-data")))
		return receive_pprof(call, in, r, r->raw);
	if (http_value_is(type, STR("multipart/form-data")))
		return read_parts(call, in, r->raw, type) && receive_pprof(call, in, r, in->profile);
	if (!gzip_is(r->raw))
		return receive_folded(call, in, r, true);
	if (!receive_unwrap(call, r))
		return false;
	return codec_folded.sniff(r->raw) ? receive_folded(call, in, r, true) : receive_pprof(call, in, r, r->raw);
}

static void ingest(struct call *call, struct ingest *in, struct received *r)
{
	if (receive_bytes(call, r) && receive_any(call, in, r) && pyroscope_put(call, r, &in->to))
		answer_empty(call->rs, 200);
}

void pyroscope_ingest(struct call *call)
{
	struct ingest in = { 0 };
	struct received r = { 0 };

	if (read_params(call, &in))
		ingest(call, &in, &r);
	received_release(&r);
	ingest_release(&in);
}
