/* SPDX-License-Identifier: Apache-2.0 */
/* A query string as the range that it names: the first byte chooses the API's rules. */
#include "fuzz.h"
#include "query/range.h"

#define NOW UINT64_C(1700000000000000000)

static void check(const struct http_query *q, const struct query_range_rules *rules, size_t size)
{
	scoped(buf_release) struct buf why = BUF_INIT(MIB(1));
	static const struct store_label labels[] = { { STR("a"), STR("aaaaaaaa") }, { STR("a"), STR("b") } };
	static const struct store_series series = { STR("shop"), STR("cpu"), labels, ARRAY_SIZE(labels) };
	struct query_range range;
	struct store_selector sel;
	int r = query_range_read(q, rules, NOW, &range, &why);

	must(r == 0 ? !why.len : why.len && why.len < KIB(8));
	if (r < 0)
		return;
	must(range.from_ns <= range.to_ns && range.to_ns <= (uint64_t)INT64_MAX);
	must(range.service.len <= MIN(size, (size_t)STORE_NAME_MAX) && range.labels.count <= STORE_LABELS_MAX);
	must(!rules->needs_service || range.service.len);
	must(!rules->known_type || query_type_known(range.type));
	must(!range.within.to_ns || (rules->has_within && range.within.from_ns < range.within.to_ns &&
				     range.within.to_ns - range.within.from_ns <= WITHIN_SPAN_MAX_NS));
	sel = query_range_select(&range);
	must(sel.label_count == range.labels.count && !sel.fits == !range.matchers);
	if (range.matchers) {
		must(rules->has_matchers && !range.labels.count && range.matchers->count <= MATCHERS_MAX);
		(void)sel.fits(sel.fits_ctx, &series);
	}
	query_range_release(&range);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct query_range_rules *const rules[] = { &query_range_profefe, &query_range_pyroscope,
								 &query_range_view, &query_range_base };
	struct http_query q;

	if (size < 1 || size > KIB(64) || http_query_parse(str_n((const char *)data + 1, size - 1), &q) < 0)
		return 0;
	check(&q, rules[(size_t)(data[0] - '0') % ARRAY_SIZE(rules)], size);
	http_query_release(&q);
	return 0;
}
