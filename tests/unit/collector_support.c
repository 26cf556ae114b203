/* SPDX-License-Identifier: Apache-2.0 */
#include "collector_support.h"

#include "net/http_int.h"
#include "support.h"

int served_open(int (*fixture)(void **), uint64_t now_ns, size_t names_max, struct served *out)
{
	void *f = NULL;

	if (fixture(&f))
		return -1;
	out->f = f;
	out->f->now = now_ns;
	return collector_new(&(struct collector_config){ .store = out->f->store,
							 .state = out->f->s,
							 .clock = &out->f->clock,
							 .body_max = MIB(1),
							 .expanded_max = MIB(1),
							 .samples_max = 1000,
							 .list_limit = 100,
							 .names_max = names_max,
							 .flame_max = MIB(64),
							 .decoders = 1 },
			     &out->c);
}

int served_close(struct served *s)
{
	void *f = s->f;

	collector_free(s->c);
	return fixture_end(&f);
}

json_t *served_ask(const struct served *s, call_fn *what, const char *query, unsigned int want)
{
	static struct http_server server; /* nothing stops it */
	struct http_exchange x = { .server = &server };
	struct call call = { .collector = s->c, .rq = &x.request, .rs = &x.response, .now_ns = s->f->now };
	json_t *answer;

	x.request.exchange = &x;
	x.response.body = (struct buf)BUF_INIT(MIB(64));
	assert_int_equal(http_query_parse(str_of(query), &call.query), 0);
	what(&call);
	if (x.response.status != want)
		print_message("%s: %u " STR_FMT "\n", query, x.response.status,
			      STR_ARG(str_first(buf_str(&x.response.body), 300)));
	assert_int_equal(x.response.status, want);
	answer = json_loadb(x.response.body.ptr, x.response.body.len, 0, NULL);
	assert_non_null(answer);
	response_release(&x.response);
	http_query_release(&call.query);
	return answer;
}

uint64_t json_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	assert_true(json_is_integer(value));
	return (uint64_t)json_integer_value(value);
}
