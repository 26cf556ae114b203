/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of querier.v1 in both forms (the first byte chooses the method), the selectors in them over a few series, and
 * any bytes as an answer on its way to JSON. */
#include "fuzz.h"

#include "query/matchers.h"
#include "query/querier_answer.h"

static void check_selector(struct str text)
{
	static const struct store_label labels[] = { { STR("a"), STR("aaaaaaaa") }, { STR("k8s.pod"), STR("x-1") } };
	const struct store_series series = { STR("shop"), STR("cpu"), labels, ARRAY_SIZE(labels) };
	struct query_column column = { STR("process_cpu"), STR("cpu"), STR("ns"), STR("cpu"), STR("ns") };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(8));
	scoped(matchers_release) struct matchers m = { 0 };

	if (matchers_parse(text, &m, &why) < 0)
		return;
	must(m.count <= MATCHERS_MAX && !why.len);
	if (m.count == 0)
		must(matchers_fit(&m, &series) && matchers_fit_column(&m, &column));
	(void)matchers_fit(&m, &series);
	(void)matchers_fit_column(&m, &column);
	(void)matchers_type(&m);
}

static void check_request(enum querier_method method, struct str body, unsigned int depth)
{
	struct querier_request rq;

	if (querier_request_read(method, body, &rq) < 0)
		return;
	must(rq.matchers.count <= QUERIER_MATCHERS_MAX && rq.names.count <= QUERIER_NAMES_MAX);
	must(rq.call_site.count <= QUERIER_STEPS_MAX && rq.spans.count <= QUERIER_IDS_MAX);
	must(rq.selector.len <= body.len && rq.left.len <= body.len);
	check_selector(rq.selector);
	for (size_t i = 0; i < rq.matchers.count; i++)
		check_selector(rq.matchers.items[i]);
	if (depth) {
		check_request(QUERIER_MERGE_STACKTRACES, rq.left, 0);
		check_request(QUERIER_MERGE_STACKTRACES, rq.right, 0);
	}
	querier_request_release(&rq);
}

/* In pieces it is what it is at once; cleaned it stays what it is. */
static void check_answer(const struct proto_message *m, struct str body)
{
	scoped(buf_release) struct buf whole = BUF_INIT(MIB(16)), pieces = BUF_INIT(MIB(16));
	scoped(buf_release) struct buf clean = BUF_INIT(MIB(16)), again = BUF_INIT(MIB(16));
	struct proto_json at_once, in_pieces;
	int r, s;

	proto_json_begin(&at_once, m, body);
	r = proto_json_next(&at_once, SIZE_MAX, &whole);
	proto_json_begin(&in_pieces, m, body);
	do
		s = proto_json_next(&in_pieces, 16, &pieces);
	while (s == 1);
	must(r == s && (r < 0 || str_eq(buf_str(&whole), buf_str(&pieces))));
	if (r == 0) {
		struct str rest = buf_str(&whole), value;

		must(json_value(&rest, &value) == 0 && !rest.len);
	}
	if (proto_clean(m, body, &clean) < 0)
		return;
	must(proto_clean(m, buf_str(&clean), &again) == 0);
	must(str_eq(buf_str(&clean), buf_str(&again)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf message = BUF_INIT(MIB(1));
	enum querier_method method;
	struct str body;

	if (size < 1 || size > KIB(16))
		return 0;
	method = (enum querier_method)(data[0] % QUERIER_METHODS);
	body = str_n((const char *)data + 1, size - 1);
	check_request(method, body, 1);
	check_answer(querier_answer(method), body);
	if (querier_request_json(method, body, &message) == 0)
		check_request(method, buf_str(&message), 1);
	check_selector(body);
	return 0;
}
