/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/upload.h"

#include <strings.h>

#include "base/clock.h"
#include "base/safe.h"
#include "base/utf8.h"
#include "net/envelope.h"
#include "net/escape.h"

#define URL_MAX KIB(72)
#define BYTES_PER_SECOND KIB(16) /* of the slowest line that large profiles get through */

void upload_query(struct buf *out, struct str service, struct str type, const struct window_label *labels,
		  size_t label_count, uint64_t created_ns)
{
	scoped(buf_release) struct buf pieces = BUF_INIT(UPLOAD_QUERY_MAX);

	for (size_t i = 0; i < label_count; i++) {
		if (pieces.len)
			buf_addc(&pieces, ',');
		escape_query(&pieces, str_of(labels[i].key));
		buf_addc(&pieces, '=');
		escape_query(&pieces, str_of(labels[i].value));
	}
	buf_adds(out, STR("service="));
	escape_query(out, service);
	buf_adds(out, STR("&type="));
	escape_query(out, type);
	if (pieces.len) {
		buf_adds(out, STR("&labels="));
		escape_query(out, buf_str(&pieces));
	}
	if (created_ns) {
		buf_adds(out, STR("&created_at="));
		clock_add_iso(out, created_ns);
	}
	if (pieces.error && !out->error)
		out->error = pieces.error;
}

static int bad_url(struct buf *why, struct str text, const char *what)
{
	safe_add_url(why, text);
	buf_adds(why, str_of(what));
	return -EINVAL;
}

static bool has_scheme(struct str text, struct str scheme)
{
	return text.len >= scheme.len && strncasecmp(text.ptr, scheme.ptr, scheme.len) == 0;
}

int upload_collector_url(struct buf *out, struct str text, struct buf *why)
{
	ptrdiff_t scheme;
	struct str rest;

	text = str_trim(text);
	while (str_ends(text, STR("/")) && !str_ends(text, STR("://")))
		text = str_first(text, text.len - 1);
	scheme = str_search(text, STR("://"));
	rest = scheme < 0 ? text : str_skip(text, (size_t)scheme + 3);
	if (scheme >= 0 && !has_scheme(text, STR("http://")) && !has_scheme(text, STR("https://")))
		return bad_url(why, text, ": only http:// and https:// are possible");
	if (has_scheme(text, STR("file:")) || !rest.len || rest.ptr[0] == '/' || str_ends(rest, STR("@")))
		return bad_url(why, text, ": this is no address of a collector: http://HOST:PORT");
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.ptr[i] <= ' ' || text.ptr[i] == 0x7f)
			return bad_url(why, text, ": a URL has no blanks and control bytes");
	if (scheme < 0)
		buf_adds(out, STR("http://"));
	buf_adds(out, text);
	return out->error;
}

static enum upload_outcome outcome_of(uint32_t status)
{
	if (status >= 200 && status < 300)
		return UPLOAD_DONE;
	/* 499: somebody on the way, or a collector that stops, who takes us for gone. */
	if (status >= 500 || status == 408 || status == 425 || status == 429 || status == 499)
		return UPLOAD_AGAIN;
	/* A wrong token, or another address than the collector's: no profile would be taken. */
	if (status == 401 || (status >= 403 && status <= 405) || (status >= 300 && status < 400))
		return UPLOAD_DENIED;
	return UPLOAD_REFUSED;
}

/* The reason in the envelope, or the first bytes of any other answer. */
static void read_reason(const struct http_answer *answer, const struct envelope *envelope, bool is_envelope,
			struct upload_result *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(sizeof(out->why) - 1);

	buf_addf(&text, "status %u", answer->status);
	if (is_envelope && envelope->error[0]) {
		buf_addf(&text, ": %s", envelope->error);
	} else if (str_starts(str_of(answer->content_type), STR("text/plain")) && answer->body.len) {
		buf_adds(&text, STR(": "));
		utf8_clean(&text, str_first(str_trim(buf_str(&answer->body)), 120), 0);
	}
	if (answer->status >= 300 && answer->status < 400)
		buf_adds(&text, STR(" (redirects are not followed)"));
	(void)snprintf(out->why, sizeof(out->why), "%s", buf_cstr(&text));
}

static void read_answer(const struct http_answer *answer, struct upload_result *out)
{
	struct envelope envelope = { 0 };
	bool is_envelope = envelope_parse(buf_str(&answer->body), &envelope) == 0;

	out->status = answer->status;
	out->outcome = outcome_of(answer->status);
	out->has_retry_after = answer->has_retry_after;
	out->retry_after_ns = answer->retry_after_ns;
	if (is_envelope)
		(void)snprintf(out->id, sizeof(out->id), "%s", envelope.id);
	if (out->outcome != UPLOAD_DONE)
		read_reason(answer, &envelope, is_envelope, out);
}

uint64_t upload_more_ns(size_t size)
{
	return size / BYTES_PER_SECOND * NSEC_PER_SEC;
}

void upload_send(const struct upload_target *target, const struct upload *u, struct upload_result *out)
{
	const struct http_header headers[] = {
		{ STR("Content-Type"), STR("application/octet-stream") },
		{ STR("Idempotency-Key"), u->key },
	};
	scoped(buf_release) struct buf url = BUF_INIT(URL_MAX), why = BUF_INIT(512);
	scoped(http_answer_release) struct http_answer answer = { 0 };
	struct http_request request = { .headers = headers,
					.header_count = u->key.len ? 2 : 1,
					.bearer = target->token,
					.body = u->body.ptr ? u->body.ptr : "",
					.body_size = u->body.len,
					.more_ns = upload_more_ns(u->body.len) };
	int r;

	*out = (struct upload_result){ .outcome = UPLOAD_AGAIN };
	buf_addf(&url, "%s/api/0/profiles?" STR_FMT, target->url, STR_ARG(u->query));
	request.url = buf_cstr(&url);
	r = url.error ? -EINVAL : http_send(target->client, &request, &why, &answer);
	out->was_sent = http_was_sent(target->client);
	if (r == 0) {
		read_answer(&answer, out);
		return;
	}
	if (r == -EINVAL || r == -EPERM)
		out->outcome = UPLOAD_REFUSED;
	(void)snprintf(out->why, sizeof(out->why), "%s", why.len ? buf_cstr(&why) : strerror(-r));
}
