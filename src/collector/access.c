/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/access.h"

#include <inttypes.h>

#include "base/random.h"
#include "collector/collector_int.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

bool access_asks_token(struct collector *c)
{
	return c->config.tokens && (c->config.need_token || token_file_asks(c->config.tokens));
}

static uint64_t sender_id(const struct collector *c, struct str who)
{
	return XXH3_64bits_withSeed(who.ptr, who.len, c->started_ns) | 1;
}

bool access_same_origin(struct str origin, struct str host)
{
	ptrdiff_t slashes = str_search(origin, STR("://"));

	return slashes >= 0 && host.len && str_eq(str_skip(origin, (size_t)slashes + 3), host);
}

bool access_only_reads(struct str method)
{
	return str_eq(method, STR("GET")) || str_eq(method, STR("HEAD"));
}

bool access_is_foreign(struct http_request *rq)
{
	struct str origin = http_header_get(rq, "Origin"), site = http_header_get(rq, "Sec-Fetch-Site");

	if (origin.ptr && !access_same_origin(origin, http_header_get(rq, "Host")))
		return true;
	return site.ptr && !str_eq(site, STR("same-origin")) && !str_eq(site, STR("none"));
}

/* The secret that the request came with: of its header, else of the cookie. A cookie comes by itself, so requests that
 * may change something count it only when a page of the collector's own sent them. Return: 0, or -EACCES. */
static int find_secret(struct http_request *rq, struct buf *out)
{
	struct str header = http_header_get(rq, "Authorization"), cookie;

	if (header.ptr)
		return http_credentials(header, out) == 0 ? 0 : -EACCES;
	if (http_cookie(http_header_get(rq, "Cookie"), STR(ACCESS_COOKIE), &cookie) < 0)
		return -EACCES;
	if (!access_only_reads(rq->method) &&
	    !access_same_origin(http_header_get(rq, "Origin"), http_header_get(rq, "Host")))
		return -EACCES;
	buf_adds(out, cookie);
	return out->error ? -EACCES : 0;
}

bool access_knows(struct collector *c, struct str secret)
{
	return c->config.tokens && token_file_allows(c->config.tokens, secret, TOKEN_READ) != -EACCES;
}

bool access_has(struct call *call, enum token_scope scope)
{
	scoped(buf_release) struct buf secret = BUF_INIT(KIB(8));

	if (!access_asks_token(call->collector))
		return true;
	return find_secret(call->rq, &secret) == 0 &&
	       token_file_allows(call->collector->config.tokens, buf_str(&secret), scope) == 0;
}

bool access_allowed(struct collector *c, struct http_request *rq, struct http_response *rs, enum token_scope scope,
		    uint64_t *sender)
{
	scoped(buf_release) struct buf secret = BUF_INIT(KIB(8));
	int r;

	if (!scope || !access_asks_token(c))
		return true;
	r = find_secret(rq, &secret);
	if (r == 0)
		r = token_file_allows(c->config.tokens, buf_str(&secret), scope);
	if (r == 0) {
		*sender = sender_id(c, buf_str(&secret));
		return true;
	}
	if (r == -EPERM) {
		metrics_add(c->metrics, COLLECTOR_FORBIDDEN, 1);
		answer_error(rs, 403, "the token has not the scope that this needs");
		return false;
	}
	metrics_add(c->metrics, COLLECTOR_UNAUTHENTICATED, 1);
	http_header_set(rs, "WWW-Authenticate", STR("Basic realm=\"hearth\", Bearer"));
	answer_error(rs, 401, "a token is needed: Authorization: Bearer TOKEN, or TOKEN as password");
	return false;
}

bool access_is_admin(struct call *call)
{
	return access_asks_token(call->collector) && access_has(call, TOKEN_ADMIN);
}

int access_token(struct call *call, struct token *out)
{
	scoped(buf_release) struct buf secret = BUF_INIT(KIB(8));

	if (!access_asks_token(call->collector) || find_secret(call->rq, &secret) < 0)
		return -EACCES;
	return token_file_find(call->collector->config.tokens, buf_str(&secret), out);
}

bool access_may_change(struct call *call, struct token *by)
{
	const char *why = NULL;

	if (access_is_foreign(call->rq))
		why = "a page of another origin may not change anything";
	else if (!access_asks_token(call->collector) || access_token(call, by) < 0)
		why = "this needs a token with the scope admin: hearth token create --scope admin makes one";
	else if (!(by->scopes & TOKEN_ADMIN))
		why = "the token has not the scope that this needs";
	if (!why)
		return true;
	metrics_add(call->collector->metrics, COLLECTOR_FORBIDDEN, 1);
	answer_error(call->rs, 403, "%s", why);
	return false;
}

void access_begin(struct http_request *rq, struct http_response *rs)
{
	struct request_note *note = calloc(1, sizeof(*note));
	struct str given = http_header_get(rq, "X-Request-Id");

	rq->owner = note;
	if (!note)
		return;
	if (given.len && given.len < sizeof(note->id))
		memcpy(note->id, given.ptr, given.len);
	else
		(void)snprintf(note->id, sizeof(note->id), "%016" PRIx64 "%016" PRIx64, random_u64(), random_u64());
	http_header_set(rs, "X-Request-Id", str_of(note->id));
}

/* Who sends without a token: the address, of IPv6 its network. Programs of this machine that need none are not slowed.
 */
static uint64_t sender_at(const struct collector *c, const struct http_request *rq)
{
	uint8_t network[16];
	size_t len = http_network_of(rq->remote, network);

	return http_host_is_loopback(rq->remote) || !len ? 0 : sender_id(c, (struct str){ (const char *)network, len });
}

bool access_in_time(struct collector *c, struct http_request *rq, struct http_response *rs, uint64_t sender)
{
	struct request_note *note = rq->owner;
	uint64_t wait_s;

	if (!note)
		return true;
	note->sender = sender ? sender : sender_at(c, rq);
	wait_s = note->sender ? rate_wait_s(c->rate, note->sender, rq->received_ns) : 0;
	if (!wait_s)
		return true;
	metrics_add(c->metrics, COLLECTOR_RATE_LIMITED, 1);
	answer_count(rs, "Retry-After", wait_s);
	answer_error(rs, 429, "more than %" PRIu64 " bytes a second from this sender", c->config.rate_max);
	return false;
}

void access_spent(struct call *call, uint64_t bytes)
{
	const struct request_note *note = call->rq->owner;

	if (note && note->sender)
		rate_spend(call->collector->rate, note->sender, clock_monotonic_ns(&clock_system), bytes);
}
