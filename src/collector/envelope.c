/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: profefe's JSON envelope (pkg/profefe/reply.go), files, errors of the store. */
#include <inttypes.h>
#include <stdarg.h>

#include "base/log.h"
#include "codec/gzip.h"
#include "collector/collector_int.h"

#define ERROR_MAX KIB(4)

static void reset(struct http_response *rs, unsigned int status)
{
	rs->status = status;
	rs->content_type = "application/json";
	buf_clear(&rs->body);
}

void answer_error(struct http_response *rs, unsigned int status, const char *format, ...)
{
	struct json_out json = { .out = &rs->body };
	scoped(freep) char *text = NULL;
	va_list args;

	reset(rs, status);
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	json_out_begin(&json, '{');
	json_out_key(&json, STR("code"));
	json_out_u64(&json, status);
	json_out_key(&json, STR("error"));
	json_out_string(&json, str_first(str_of(text ? text : "out of memory"), ERROR_MAX));
	json_out_end(&json, '}');
	buf_addc(&rs->body, '\n');
	if (rs->body.error)
		buf_clear(&rs->body);
}

void answer_begin(struct http_response *rs, struct json_out *json)
{
	reset(rs, 200);
	*json = (struct json_out){ .out = &rs->body };
	json_out_begin(json, '{');
	json_out_key(json, STR("code"));
	json_out_u64(json, 200);
	json_out_key(json, STR("body"));
}

void answer_end(struct http_response *rs, struct json_out *json)
{
	json_out_end(json, '}');
	buf_addc(&rs->body, '\n');
	if (rs->body.error)
		answer_error(rs, 503, "out of memory");
}

void answer_empty(struct http_response *rs, unsigned int status)
{
	reset(rs, status);
	rs->content_type = NULL;
}

void answer_count(struct http_response *rs, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	http_header_set(rs, name, str_of(text));
}

void answer_store(struct call *call, int error, const char *what)
{
	struct metrics *m = call->collector->metrics;

	if (error == -ENOSPC || error == -EDQUOT || error == -EFBIG) {
		metrics_add(m, COLLECTOR_STORE_FULL, 1);
		http_header_set(call->rs, "Retry-After", STR("30"));
		answer_error(call->rs, 507, "the disk is full");
		return;
	}
	if (error == -ECANCELED && call->rq->lane <= HTTP_LANE_LARGE) {
		/* The client left, or we stop: one that is still there has to keep its profile. */
		http_header_set(call->rs, "Retry-After", STR("5"));
		answer_error(call->rs, 503, "the collector stops");
		return;
	}
	if (error == -ECANCELED) {
		metrics_add(m, call->too_long ? COLLECTOR_QUERIES_TOO_LONG : COLLECTOR_QUERIES_CANCELLED, 1);
		if (call->too_long)
			answer_error(call->rs, 504, "the query took too long");
		else
			answer_error(call->rs, 499,
				     "the client left"); /* nginx's number; nobody reads it but the log */
		return;
	}
	metrics_add(m, COLLECTOR_STORE_FAILED, 1);
	if (error == -ENOMEM || error == -E2BIG) {
		answer_error(call->rs, 503, "%s: out of memory", what);
		return;
	}
	log_error(what, LOG_ERR(error), LOG_STR("path", call->rq->path));
	answer_error(call->rs, 500, "%s%s", what, error == -EIO ? ": the disk failed" : "");
}

static void add_filename(struct buf *out, struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		buf_addc(out, c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '/' ? '_' : (char)c);
	}
}

void answer_file(struct http_response *rs, struct buf *body, struct str filename)
{
	scoped(buf_release) struct buf disposition = BUF_INIT(KIB(64));

	reset(rs, 200);
	buf_release(&rs->body);
	rs->body = *body;
	*body = (struct buf){ 0 }; /* moved out */
	rs->content_type = "application/octet-stream";
	buf_adds(&disposition, STR("attachment; filename=\""));
	add_filename(&disposition, str_first(filename, 200));
	buf_addc(&disposition, '"');
	http_header_set(rs, "Content-Disposition", buf_str(&disposition));
}

#define PACK_MIN KIB(1)
#define PACK_LEVEL 1

static bool is_text(const char *type)
{
	return type && (str_starts(str_of(type), STR("text/")) || str_starts(str_of(type), STR("application/json")) ||
			str_eq(str_of(type), STR("application/proto")) || str_starts(str_of(type), STR("image/svg")));
}

static bool takes_gzip(const struct http_request *rq)
{
	return http_accepts(http_header_get(rq, "Accept-Encoding"), STR("gzip"));
}

/* The body as gzip, or not any more. Return: 0 or -errno, and it is as it was. */
static int turn(struct buf *body, bool to_gzip)
{
	struct buf other = BUF_INIT(body->max);
	int r = to_gzip ? gzip_pack(buf_str(body), PACK_LEVEL, &other)
			: gzip_unpack(buf_str(body), body->max, 0, &other);

	if (r < 0) {
		buf_release(&other);
		return r;
	}
	buf_release(body);
	*body = other;
	return 0;
}

void answer_pack(struct call *call)
{
	struct http_response *rs = call->rs;
	const bool takes = takes_gzip(call->rq);

	if (!call->is_gzip && (rs->body.len < PACK_MIN || !is_text(rs->content_type)))
		return;
	http_header_set(rs, "Vary", STR("Accept-Encoding"));
	if (takes != call->is_gzip && turn(&rs->body, takes) == 0)
		call->is_gzip = takes; /* else it goes as it is */
	if (call->is_gzip)
		http_header_set(rs, "Content-Encoding", STR("gzip"));
}
