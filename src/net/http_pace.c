/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "net/http_int.h"

#define WINDOW_NS (5 * NSEC_PER_SEC)

void pace_begin(struct http_pace *p, uint64_t now_ns, uint64_t bytes)
{
	*p = (struct http_pace){ .since_ns = now_ns, .mark_ns = now_ns, .bytes = bytes, .mark_bytes = bytes };
}

bool pace_is_slow(struct http_pace *p, uint64_t now_ns, uint64_t bytes, uint64_t rate)
{
	uint64_t took_ns = now_ns - MIN(p->mark_ns, now_ns);
	bool slow;

	p->bytes = bytes;
	if (took_ns < WINDOW_NS)
		return false;
	slow = p->mark_ns != p->since_ns && bytes - p->mark_bytes < took_ns / NSEC_PER_SEC * rate;
	p->mark_ns = now_ns;
	p->mark_bytes = bytes;
	return slow;
}
