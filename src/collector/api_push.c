/* SPDX-License-Identifier: Apache-2.0 */
/* push.v1.PusherService/Push: what Pyroscope's agents of today send, by the Connect protocol over HTTP/1.1, unary, with
 * protobuf or JSON. Sources: grafana/pyroscope, api/push/v1/push.proto and pkg/distributor;
 * connectrpc.com/docs/protocol. */
#include "collector/connect.h"
#include "query/column.h"
#include "query/push_request.h"

#define NO_SERVICE STR("unknown_service") /* Pyroscope's name for it */

struct pushing {
	struct push_request request;
	bool is_json;
	unsigned int failed; /* profiles that were refused */
};

/* Answers */

static void answer_pushed(struct call *call, bool is_json)
{
	answer_empty(call->rs, 200);
	call->rs->content_type = is_json ? "application/json" : "application/proto";
	if (is_json)
		buf_adds(&call->rs->body, STR("{}")); /* the empty message; as protobuf it has no bytes */
}

/* The request */

static int parse(struct call *call, struct received *r, bool is_json, struct push_request *out)
{
	int code;

	if (!is_json)
		return push_request_proto(r->raw, out);
	code = push_request_json(r->raw, r->is_large ? call->collector->config.expanded_max : (size_t)RECEIVE_SMALL,
				 out);
	return code == -EFBIG && !receive_later(call, r) ? -E2BIG : code;
}

static bool read_request(struct call *call, struct received *r, struct pushing *p)
{
	int code;

	if (!connect_form(call, &p->is_json) || !receive_bytes(call, r))
		return false;
	code = parse(call, r, p->is_json, &p->request);
	if (call->later)
		return false;
	if (code == -E2BIG)
		answer_error(call->rs, 413, "the request has too many series, labels or profiles (%d, %d, %d)",
			     PUSH_PROFILES_MAX, PUSH_LABELS_MAX, PUSH_PROFILES_MAX);
	else if (code == -ENOMEM)
		answer_error(call->rs, 503, "out of memory");
	else if (code < 0)
		answer_error(call->rs, 400, "bad request: the body is no push.v1.PushRequest");
	else if (!p->request.profiles_count)
		answer_error(call->rs, 400, "bad request: no profiles received");
	return code == 0 && p->request.profiles_count;
}

/* Profiles */

static struct str label_of(const struct store_label *labels, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(labels[i].key, str_of(name)))
			return labels[i].value;
	return STR("");
}

static bool push_one(struct call *call, struct received *r, const struct push_request *request, size_t at)
{
	const struct push_profile *profile = &request->profiles[at];
	const struct push_series *series = &request->series[profile->series];
	const struct store_label *labels = request->labels + series->first_label;
	scoped(pyroscope_profile_release) struct pyroscope_profile to = { .from_ns = call->now_ns,
									  .until_ns = call->now_ns,
									  .id = profile->id,
									  .bytes = profile->bytes,
									  .number = at,
									  .is_one_of_many =
										  request->profiles_count > 1 };

	receive_again(call, r);
	if (!pyroscope_labels(call, labels, series->label_count, STR(""), &to))
		return false;
	if (!to.service.len)
		to.service = NO_SERVICE;
	if (!receive_profile(call, profile->bytes, r))
		return false;
	to.type = query_metric_type(label_of(labels, series->label_count, "__name__"));
	if (!to.type.len)
		to.type = pyroscope_type(r->window.model, STR(""));
	pyroscope_own_time(r->window.model, &to);
	return pyroscope_put(call, r, &to);
}

/* One bad profile does not take the others along, but the client is told of the last one. */
static void push_all(struct call *call, struct received *r, struct pushing *p)
{
	scoped(buf_release) struct buf error = BUF_INIT(KIB(16));
	unsigned int status = 0;

	for (size_t i = 0; i < p->request.profiles_count; i++) {
		if (push_one(call, r, &p->request, i))
			continue;
		if (call->later)
			return;
		p->failed++;
		status = call->rs->status;
		buf_clear(&error);
		buf_adds(&error, buf_str(&call->rs->body));
		if (status >= 500)
			break; /* the next one would fare no better */
	}
	answer_pushed(call, p->is_json);
	if (!p->failed)
		return;
	call->rs->status = status;
	buf_clear(&call->rs->body);
	buf_adds(&call->rs->body, buf_str(&error));
}

void pyroscope_push(struct call *call)
{
	struct pushing p = { 0 };
	struct received r = { 0 };

	if (read_request(call, &r, &p))
		push_all(call, &r, &p);
	push_request_release(&p.request);
	received_release(&r);
}
