/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/connect.h"

#include "codec/gzip.h"

#define UNWRAPPED_MAX MIB(4)
#define RATIO_MAX 200             /* of compression beyond the first MiB (docs/collector.md, limits) */
#define PIECE KIB(256)            /* of a JSON answer */
#define TIMEOUT_MAX_MS 9999999999 /* ten digits, as the protocol has it */

/* Errors */

static const struct {
	unsigned int ours, theirs; /* HTTP's status, and what Connect sends with the code */
	const char *code;
} codes[] = {
	{ 400, 400, "invalid_argument" },   { 401, 401, "unauthenticated" },   { 403, 403, "permission_denied" },
	{ 404, 404, "not_found" },          { 405, 405, "unimplemented" },     { 409, 400, "invalid_argument" },
	{ 413, 413, "resource_exhausted" }, { 415, 415, "invalid_argument" },  { 422, 400, "invalid_argument" },
	{ 429, 429, "resource_exhausted" }, { 499, 499, "canceled" },          { 501, 501, "unimplemented" },
	{ 503, 503, "unavailable" },        { 504, 504, "deadline_exceeded" }, { 507, 507, "resource_exhausted" },
};

static const char *code_of(unsigned int *status)
{
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].ours == *status) {
			*status = codes[i].theirs;
			return codes[i].code;
		}
	return "internal";
}

void connect_error(struct http_response *rs)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(16));
	struct json_out json = { .out = &rs->body };
	struct str rest = buf_str(&rs->body), object, key, value;
	const char *code = code_of(&rs->status);

	if (json_value(&rest, &object) == 0)
		while (json_member(&object, &key, &value))
			if (str_eq(key, STR("\"error\"")) || str_eq(key, STR("\"message\"")))
				ignore(json_text(value, &text)); /* what cannot be read is left out */
	buf_clear(&rs->body);
	rs->content_type = "application/json";
	json_out_begin(&json, '{');
	json_out_key(&json, STR("code"));
	json_out_string(&json, str_of(code));
	json_out_key(&json, STR("message"));
	json_out_string(&json, buf_str(&text));
	json_out_end(&json, '}');
	buf_addc(&rs->body, '\n');
}

/* Requests */

bool connect_form(struct call *call, bool *is_json)
{
	struct str type = http_header_get(call->rq, "Content-Type");

	*is_json = http_value_is(type, STR("application/json"));
	if (*is_json || http_value_is(type, STR("application/proto")))
		return true;
	http_header_set(call->rs, "Accept-Post", STR("application/json, application/proto"));
	answer_error(call->rs, 415,
		     "content type \"" STR_FMT "\": application/proto and application/json are understood",
		     STR_ARG(str_first(type, 64)));
	return false;
}

static bool take_deadline(struct call *call)
{
	struct str raw = http_header_get(call->rq, "Connect-Timeout-Ms");
	uint64_t ms;

	if (!raw.ptr)
		return true;
	if (str_to_u64(raw, 0, TIMEOUT_MAX_MS, &ms) < 0) {
		answer_error(call->rs, 400, "bad request: Connect-Timeout-Ms");
		return false;
	}
	call->timeout_ns = MAX(ms, (uint64_t)1) * NSEC_PER_MSEC;
	return true;
}

bool connect_body(struct call *call, struct buf *unwrapped, struct str *out)
{
	struct str encoding = http_header_get(call->rq, "Content-Encoding");
	int r = 0;

	*out = call->rq->body;
	if (!take_deadline(call))
		return false;
	if (!encoding.len || str_eq(encoding, STR("identity")))
		return true;
	if (!str_eq(encoding, STR("gzip"))) {
		answer_error(call->rs, 501, "Content-Encoding: only gzip is understood");
		return false;
	}
	*unwrapped = (struct buf)BUF_INIT(UNWRAPPED_MAX);
	r = gzip_unpack(call->rq->body, UNWRAPPED_MAX, RATIO_MAX, unwrapped);
	if (r == -ENOMEM)
		answer_error(call->rs, 503, "out of memory");
	else if (r == -E2BIG)
		answer_error(call->rs, 413, "the request expands to too much");
	else if (r < 0)
		answer_error(call->rs, 400, "bad request: the body is not gzip");
	*out = buf_str(unwrapped);
	return r == 0;
}

/* Answers */

struct answer {
	struct buf message;
	struct http_claim claim; /* of the message, which is larger than any piece */
	struct proto_json json;
};

static int more(void *ctx, struct buf *out)
{
	struct answer *a = ctx;

	return proto_json_next(&a->json, PIECE, out);
}

static void close_answer(void *ctx)
{
	struct answer *a = ctx;

	http_claim_release(&a->claim);
	buf_release(&a->message);
	free(a);
}

/* Return: 0; -ENOMEM; -EBUSY: too much waits for its readers. */
static int stream_json(struct call *call, const struct proto_message *m, struct buf *message)
{
	struct answer *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	if (!http_claim(call->rq, message->cap, &a->claim)) {
		free(a);
		return -EBUSY;
	}
	a->message = *message;
	*message = (struct buf){ 0 }; /* moved out */
	proto_json_begin(&a->json, m, buf_str(&a->message));
	call->rs->stream = (struct http_stream){ .ctx = a, .more = more, .close = close_answer };
	return 0;
}

void connect_answer(struct call *call, bool is_json, const struct proto_message *m, struct buf *message)
{
	struct http_response *rs = call->rs;
	struct proto_json json;
	int r = message->error;

	answer_empty(rs, 200);
	rs->content_type = is_json ? "application/json" : "application/proto";
	if (r == 0 && !is_json) {
		buf_release(&rs->body);
		rs->body = *message;
		*message = (struct buf){ 0 }; /* moved out */
	} else if (r == 0 && message->len > PIECE) {
		r = stream_json(call, m, message);
	} else if (r == 0) {
		proto_json_begin(&json, m, buf_str(message));
		r = proto_json_next(&json, SIZE_MAX, &rs->body);
	}
	if (r == -EBUSY)
		http_answers_refuse(call->rq, rs);
	else if (r)
		answer_error(rs, 503, "the answer does not fit into memory");
}
