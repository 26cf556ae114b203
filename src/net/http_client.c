/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_client.h"

#include <curl/curl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/safe.h"
#include "net/retry_after.h"

#define CONNECT_DEFAULT_NS (10 * NSEC_PER_SEC)
#define TOTAL_DEFAULT_NS (60 * NSEC_PER_SEC)
#define ANSWER_DEFAULT MIB(1)
#define HEADER_MAX KIB(16)
#define HEADERS_MAX KIB(256) /* of one answer; libcurl itself takes 300 KB */

struct http_client {
	struct http_client_config cfg;
	CURL *curl;
	struct curl_slist *headers; /* of the request under way */
	struct http_answer answer;  /* being received */
	size_t header_bytes;
	bool refused;  /* address_allowed() said no */
	bool no_room;  /* said answer_room() */
	bool was_sent; /* http_was_sent() */
};

static void client_freep(struct http_client **c)
{
	http_client_close(*c);
}

int http_client_open(const struct http_client_config *cfg, struct http_client **out)
{
	scoped(client_freep) struct http_client *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK) {
		free(c);
		c = NULL;
		return -ENOMEM;
	}
	c->cfg = *cfg;
	c->cfg.connect_ns = cfg->connect_ns ? cfg->connect_ns : CONNECT_DEFAULT_NS;
	c->cfg.total_ns = cfg->total_ns ? cfg->total_ns : TOTAL_DEFAULT_NS;
	c->cfg.answer_max = cfg->answer_max ? cfg->answer_max : ANSWER_DEFAULT;
	c->curl = curl_easy_init();
	if (!c->curl)
		return -ENOMEM;
	*out = c;
	c = NULL;
	return 0;
}

void http_client_close(struct http_client *c)
{
	if (!c)
		return;
	curl_easy_cleanup(c->curl);
	curl_slist_free_all(c->headers);
	http_answer_release(&c->answer);
	curl_global_cleanup();
	free(c);
}

void http_answer_release(struct http_answer *a)
{
	buf_release(&a->body);
}

/* libcurl's callbacks. @size is always 1. */

static size_t take_body(char *bytes, size_t size, size_t count, void *ctx)
{
	struct http_client *c = ctx;

	if (c->cfg.answer_room && !c->cfg.answer_room(c->cfg.ctx, size * count)) {
		c->answer.body.error = -E2BIG;
		c->no_room = true;
		return 0;
	}
	buf_add(&c->answer.body, bytes, size * count);
	return c->answer.body.error ? 0 : count;
}

static bool header_is(struct str line, struct str name, struct str *value)
{
	if (line.len <= name.len || line.ptr[name.len] != ':')
		return false;
	for (size_t i = 0; i < name.len; i++)
		if ((line.ptr[i] | 0x20) != name.ptr[i])
			return false;
	*value = str_trim(str_skip(line, name.len + 1));
	return true;
}

static void take_header_line(struct http_answer *a, struct str line)
{
	struct str value;

	if (header_is(line, STR("retry-after"), &value)) {
		uint64_t now_ns = clock_wall_ns(&clock_system);

		a->has_retry_after = retry_after_parse(value, now_ns, &a->retry_after_ns) == 0;
	} else if (header_is(line, STR("content-type"), &value)) {
		value = str_first(value, sizeof(a->content_type) - 1);
		memcpy(a->content_type, value.ptr, value.len);
		a->content_type[value.len] = '\0';
	}
}

static size_t take_header(char *bytes, size_t size, size_t count, void *ctx)
{
	struct http_client *c = ctx;

	c->header_bytes += size * count;
	if (count > HEADER_MAX || c->header_bytes > HEADERS_MAX)
		return 0;
	take_header_line(&c->answer, str_n(bytes, size * count));
	return count;
}

static int look_for_cancel(void *ctx, curl_off_t to_get, curl_off_t got, curl_off_t to_send, curl_off_t sent)
{
	const struct http_client *c = ctx;

	(void)to_get, (void)got, (void)to_send, (void)sent;
	return c->cfg.cancel && atomic_load_explicit(c->cfg.cancel, memory_order_relaxed);
}

static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *at)
{
	struct http_client *c = ctx;

	if (purpose != CURLSOCKTYPE_IPCXN || !c->cfg.address_allowed(c->cfg.ctx, &at->addr, at->addrlen)) {
		c->refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(at->family, at->socktype | SOCK_CLOEXEC, at->protocol);
}

bool http_was_sent(const struct http_client *c)
{
	return c->was_sent;
}

static int error_of(const struct http_client *c, CURLcode code)
{
	switch (code) {
	case CURLE_UNSUPPORTED_PROTOCOL: /* of the URL, or spoken by the peer */
		return c->was_sent ? -EPROTO : -EINVAL;
	case CURLE_URL_MALFORMAT:
		return -EINVAL;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return -EHOSTUNREACH;
	case CURLE_COULDNT_CONNECT:
		return c->refused ? -EPERM : -ECONNREFUSED;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_ABORTED_BY_CALLBACK:
		return -ECANCELED;
	case CURLE_WRITE_ERROR:
		return c->answer.body.error ? c->answer.body.error : -EPROTO;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_ISSUER_ERROR:
		return -EKEYREJECTED;
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_CONTENT_ENCODING:
		return -EPROTO;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

static bool has_control_byte(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f)
			return true;
	return false;
}

static int add_header(struct http_client *c, struct str name, struct str value)
{
	scoped(buf_release) struct buf line = BUF_INIT(HEADER_MAX);
	struct curl_slist *longer;

	if (has_control_byte(name) || has_control_byte(value))
		return -EINVAL;
	buf_addf(&line, STR_FMT "%s" STR_FMT, STR_ARG(name), value.len ? ": " : ":", STR_ARG(value));
	(void)buf_cstr(&line);
	if (line.error)
		return line.error == -E2BIG ? -EINVAL : line.error;
	longer = curl_slist_append(c->headers, line.ptr);
	if (!longer)
		return -ENOMEM;
	c->headers = longer;
	return 0;
}

static int add_headers(struct http_client *c, const struct http_request *request)
{
	scoped(buf_release) struct buf token = BUF_INIT(HEADER_MAX);
	int r = add_header(c, STR("Expect"), STR("")); /* no second round trip before the body */

	if (r == 0 && request->bearer.len) {
		buf_addf(&token, "Bearer " STR_FMT, STR_ARG(request->bearer));
		r = token.error ? token.error : add_header(c, STR("Authorization"), buf_str(&token));
	}
	for (size_t i = 0; i < request->header_count && r == 0; i++)
		r = add_header(c, request->headers[i].name, request->headers[i].value);
	return r;
}

static long milliseconds(uint64_t ns)
{
	return (long)MIN(MAX(ns / NSEC_PER_MSEC, UINT64_C(1)), UINT64_C(0x7fffffff));
}

static void set_limits(struct http_client *c, uint64_t more_ns)
{
	const struct http_client_config *cfg = &c->cfg;

	curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c->curl, CURLOPT_PROTOCOLS_STR, cfg->http_only ? "http" : "http,https");
	curl_easy_setopt(c->curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(cfg->connect_ns));
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, milliseconds(cfg->total_ns + more_ns));
	curl_easy_setopt(c->curl, CURLOPT_USERAGENT, cfg->user_agent ? cfg->user_agent : "hearth/" HEARTH_VERSION);
	curl_easy_setopt(c->curl, CURLOPT_SSL_VERIFYPEER, cfg->no_verify ? 0L : 1L);
	curl_easy_setopt(c->curl, CURLOPT_SSL_VERIFYHOST, cfg->no_verify ? 0L : 2L);
	curl_easy_setopt(c->curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (cfg->ca_file)
		curl_easy_setopt(c->curl, CURLOPT_CAINFO, cfg->ca_file);
	if (cfg->no_proxy)
		curl_easy_setopt(c->curl, CURLOPT_PROXY, "");
	if (cfg->expand)
		curl_easy_setopt(c->curl, CURLOPT_ACCEPT_ENCODING, "");
	if (cfg->address_allowed) {
		curl_easy_setopt(c->curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
		curl_easy_setopt(c->curl, CURLOPT_OPENSOCKETDATA, c);
	}
}

static void set_request(struct http_client *c, const struct http_request *request, char *error)
{
	curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, error);
	curl_easy_setopt(c->curl, CURLOPT_URL, request->url);
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(c->curl, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(c->curl, CURLOPT_HEADERDATA, c);
	curl_easy_setopt(c->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c->curl, CURLOPT_XFERINFOFUNCTION, look_for_cancel);
	curl_easy_setopt(c->curl, CURLOPT_XFERINFODATA, c);
	if (request->body) {
		curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
		curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_size);
		curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, request->body);
	}
	if (request->method)
		curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, request->method);
}

static int perform(struct http_client *c, const struct http_request *request, struct buf *why)
{
	char error[CURL_ERROR_SIZE] = "";
	long status = 0, sent = 0;
	CURLcode code;
	int r;

	set_request(c, request, error);
	code = curl_easy_perform(c->curl);
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(c->curl, CURLINFO_REQUEST_SIZE, &sent);
	c->was_sent = sent > 0;
	r = code == CURLE_OK ? 0 : error_of(c, code);
	if (r == 0 && (status < 100 || status > 999))
		r = -EPROTO;
	if (r == -E2BIG && c->no_room)
		buf_adds(why, STR("no room for the answer: others fill the memory"));
	else if (r == -E2BIG)
		buf_addf(why, "the answer is longer than %zu bytes", c->cfg.answer_max);
	else if (r == -EPERM)
		buf_adds(why, STR("its address is not allowed"));
	else if (r < 0)
		safe_add_url(why, str_of(error[0] ? error : curl_easy_strerror(code))); /* of a proxy, too */
	c->answer.status = (uint32_t)status;
	return r;
}

int http_send(struct http_client *c, const struct http_request *request, struct buf *why, struct http_answer *out)
{
	int r;

	c->answer = (struct http_answer){ .body = BUF_INIT(c->cfg.answer_max) };
	c->header_bytes = 0;
	c->refused = c->no_room = c->was_sent = false;
	curl_easy_reset(c->curl); /* keeps the connection */
	set_limits(c, request->more_ns);
	r = add_headers(c, request);
	if (r == 0)
		r = perform(c, request, why);
	else
		buf_adds(why, r == -EINVAL ? STR("a header has control bytes or is too long") : STR("out of memory"));
	curl_slist_free_all(c->headers);
	c->headers = NULL;
	if (r < 0) {
		http_answer_release(&c->answer);
		c->answer = (struct http_answer){ 0 };
		return r;
	}
	*out = c->answer;
	c->answer = (struct http_answer){ 0 };
	return 0;
}
