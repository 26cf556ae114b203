/* SPDX-License-Identifier: Apache-2.0 */
#include "query/within.h"

#define SHOWN 64
#define MOST_MS ((uint64_t)INT64_MAX / NSEC_PER_MSEC) /* in the year 2262 */

int query_within_read(struct str raw, struct query_within *out, struct buf *why)
{
	ptrdiff_t dash = str_find(raw, '-');
	uint64_t from_ms, to_ms;

	*out = (struct query_within){ 0 };
	if (!raw.len)
		return 0;
	if (dash < 0 || str_to_u64(str_first(raw, (size_t)dash), 0, UINT64_MAX, &from_ms) < 0 ||
	    str_to_u64(str_skip(raw, (size_t)dash + 1), 0, UINT64_MAX, &to_ms) < 0 || to_ms <= from_ms)
		buf_addf(why, "bad \"within\" \"" STR_FMT "\": FROM-TO in milliseconds since 1970",
			 STR_ARG(str_first(raw, SHOWN)));
	else if (to_ms - from_ms > WITHIN_SPAN_MAX_NS / NSEC_PER_MSEC)
		buf_addf(why, "bad \"within\" \"" STR_FMT "\": at most ten minutes; from and to take more",
			 STR_ARG(str_first(raw, SHOWN)));
	else if (to_ms > MOST_MS)
		buf_addf(why, "bad \"within\" \"" STR_FMT "\": no time after April 2262 is known",
			 STR_ARG(str_first(raw, SHOWN)));
	else
		*out = (struct query_within){ from_ms * NSEC_PER_MSEC, to_ms * NSEC_PER_MSEC };
	return out->to_ns ? 0 : -EBADMSG;
}

struct store_selector query_within_select(const struct query_within *w, struct store_selector sel)
{
	sel.from_ns = w->from_ns - MIN(w->from_ns, WITHIN_BACK_NS);
	sel.to_ns = w->to_ns + WITHIN_SLACK_NS; /* created_ns may be a little behind the start */
	return sel;
}

uint64_t query_within_since(const struct query_within *w)
{
	return w->from_ns - MIN(w->from_ns, 2 * WITHIN_SLACK_NS);
}

static uint64_t start_of(const struct query_moment *p)
{
	uint64_t apart = p->start_ns > p->created_ns ? p->start_ns - p->created_ns : p->created_ns - p->start_ns;

	return p->start_ns && apart <= WITHIN_SLACK_NS ? p->start_ns : p->created_ns;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

bool query_within_meets(const struct query_within *w, const struct query_moment *p)
{
	uint64_t start = start_of(p);

	return start < w->to_ns && (start >= w->from_ns || plus(start, p->duration_ns) > w->from_ns);
}

bool query_within_time(const struct query_moment *p, uint64_t offset_ns, uint64_t *out)
{
	uint64_t most = p->duration_ns ? plus(p->duration_ns, WITHIN_SLACK_NS) : WITHIN_BACK_NS;

	if (offset_ns == MODEL_NO_TIME || offset_ns > MIN(most, WITHIN_BACK_NS))
		return false;
	*out = plus(start_of(p), offset_ns);
	return true;
}

void query_within_pick(const struct query_within *w, const struct query_moment *p, size_t column, struct model *m,
		       uint64_t *untimed)
{
	bool meets = query_within_meets(w, p);
	size_t kept = 0;
	uint64_t at;

	*untimed = 0;
	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_sample s = m->samples[i];
		int64_t value = column < m->value_type_count ? model_values(m, &s)[column] : 0;

		if (!query_within_time(p, s.time_offset_ns, &at))
			*untimed = plus(*untimed, meets && value > 0 ? (uint64_t)value : 0);
		else if (at >= w->from_ns && at < w->to_ns)
			m->samples[kept++] = s;
	}
	m->samples_count = kept;
}
