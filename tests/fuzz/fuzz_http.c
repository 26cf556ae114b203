/* SPDX-License-Identifier: Apache-2.0 */
/* Everything of a request that we read ourselves: the first byte chooses the parser. */
#include "collector/tokens.h"
#include "fuzz.h"
#include "net/http_parse.h"
#include "query/render_query.h"
#include "query/whose.h"

#define NOW UINT64_C(1700000000000000000)

static void query(struct str in)
{
	struct http_query q;
	size_t size = 0;

	if (http_query_parse(in, &q) < 0)
		return;
	for (size_t i = 0; i < q.count; i++)
		size += q.items[i].name.len + q.items[i].value.len;
	must(size <= in.len);
	http_query_release(&q);
}

/* Whatever is encoded decodes to itself. */
static void escapes(struct str in)
{
	scoped(buf_release) struct buf there = BUF_INIT(MIB(1)), back = BUF_INIT(MIB(1));

	ignore(http_decode(in, true, &back)); /* must only not crash */
	buf_clear(&back);
	http_encode(in, &there);
	must(http_decode(buf_str(&there), true, &back) == 0);
	must(str_eq(in, buf_str(&back)));
}

/* A clean path is clean. */
static void path(struct str in)
{
	scoped(buf_release) struct buf once = BUF_INIT(MIB(1)), again = BUF_INIT(MIB(1));

	if (http_path_clean(in, &once) < 0)
		return;
	must(once.len <= in.len && http_path_clean(buf_str(&once), &again) == 0);
	must(str_eq(buf_str(&once), buf_str(&again)) && str_search(buf_str(&once), STR("//")) < 0);
}

static void head(struct str in)
{
	scoped(buf_release) struct buf secret = BUF_INIT(MIB(1));
	struct str host;
	uint16_t port;

	ignore(http_credentials(in, &secret)); /* must only not crash */
	if (http_host_split(in, &host, &port) == 0)
		must(host.len <= in.len);
	(void)http_host_is_loopback(in);
	if (http_cookie(in, STR("a"), &host) == 0)
		must(host.len < in.len);
}

static void labels(struct str in)
{
	struct query_labels l;
	struct str name;

	if (query_labels_parse(in, &l) == 0) {
		for (size_t i = 1; i < l.count; i++)
			must(str_cmp(l.items[i - 1].key, l.items[i].key) <= 0);
		query_labels_release(&l);
	}
	if (query_name_parse(in, &name, &l) == 0) {
		must(name.len <= in.len);
		query_labels_release(&l);
	}
}

static void render(struct str in)
{
	scoped(query_render_release) struct query_render q = { 0 };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));

	if (query_render_parse(in, &q, &why) < 0)
		return;
	must(q.type.len && q.service.len <= in.len && q.sample.len <= in.len && !why.len);
	for (size_t i = 0; i < q.matchers.count; i++)
		must(q.matchers.items[i].name.len <= in.len && q.matchers.items[i].value.len <= in.len);
}

/* A process that is named is named so again. */
static void whose(struct str in)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4)), once = BUF_INIT(KIB(1)), again = BUF_INIT(KIB(1));
	struct query_whose w, back;
	struct http_query q;

	if (http_query_parse(in, &q) < 0)
		return;
	if (query_whose_read(&q, &w, &why) == 0 && w.has_pid && w.has_start) {
		query_whose_process(&once, w.pid, w.start_ns);
		q.count = 1;
		q.items[0] = (struct http_param){ STR("process"), buf_str(&once) };
		must(query_whose_read(&q, &back, &why) == 0);
		query_whose_process(&again, back.pid, back.start_ns);
		must(str_eq(buf_str(&once), buf_str(&again)));
	}
	http_query_release(&q);
}

static void times(struct str in)
{
	uint64_t ns;

	if (query_time(in, NOW, &ns) == 0)
		must(ns <= (uint64_t)INT64_MAX);
	(void)query_is_trace(in);
}

static void multipart(struct str in)
{
	struct str rest = in, boundary = STR("xYz");
	struct http_part part;
	size_t total = 0;

	(void)http_accepts(in, STR("gzip"));
	(void)http_value_param(in, STR("boundary"), &boundary); /* or the one above */
	while (http_multipart_next(&rest, boundary, &part) == 1) {
		total += part.body.len;
		must(total <= in.len && part.name.len <= in.len && part.filename.len <= in.len);
	}
}

static void tokens(struct str in)
{
	scoped(token_list_release) struct token_list first = { 0 }, second = { 0 };
	scoped(buf_release) struct buf once = BUF_INIT(MIB(4)), again = BUF_INIT(MIB(4));
	unsigned int line;

	if (token_list_parse(in, &first, &line) < 0)
		return;
	token_list_write(&first, &once);
	must(token_list_parse(buf_str(&once), &second, &line) == 0);
	token_list_write(&second, &again);
	must(str_eq(buf_str(&once), buf_str(&again)));
}

static void token_request(struct str in)
{
	scoped(buf_release) struct buf name = BUF_INIT(KIB(4));
	unsigned int scopes = 0;

	if (token_request_parse(in, &name, &scopes) == 0)
		must(scopes && scopes <= (TOKEN_INGEST | TOKEN_READ | TOKEN_ADMIN) && name.len <= 3 * in.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const parsers[])(struct str) = { query,     escapes, path,   head,  labels,       times,
						       multipart, tokens,  render, whose, token_request };

	if (size < 1 || size > KIB(64))
		return 0;
	parsers[(size_t)(data[0] - '0') % ARRAY_SIZE(parsers)](str_n((const char *)data + 1, size - 1));
	return 0;
}
