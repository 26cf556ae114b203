/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts of those whom the server is fair between. */
#include <netinet/in.h>

#include "base/clock.h"
#include "net/http_int.h"

#define DRAIN_PART 20                   /* of a CPU may be used for ever without counting */
#define SPENT_MAX_NS (4 * NSEC_PER_SEC) /* more is not remembered: nobody waits for ever */

static struct http_sender **place_of(struct http_senders *all, uint64_t id)
{
	struct http_sender **at = &all->buckets[id % HTTP_SENDER_BUCKETS];

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

struct http_sender *sender_get(struct http_senders *all, uint64_t id)
{
	struct http_sender **at = place_of(all, id), *s = *at;

	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		s->id = id;
		*at = s;
		all->count++;
	}
	s->refs++;
	return s;
}

static void forget(struct http_senders *all, struct http_sender **at)
{
	struct http_sender *s = *at;

	must(s);
	*at = s->next;
	all->count--;
	free(s);
}

void sender_put(struct http_senders *all, struct http_sender *s, uint64_t now_ns)
{
	if (!s || --s->refs)
		return;
	if (!sender_spent(s, now_ns) || all->count > HTTP_SENDERS_IDLE)
		forget(all, place_of(all, s->id));
}

uint64_t sender_spent(const struct http_sender *s, uint64_t now_ns)
{
	uint64_t drained = s ? (now_ns - MIN(s->spent_at_ns, now_ns)) / DRAIN_PART : 0;

	return s ? s->spent_ns - MIN(drained, s->spent_ns) : 0;
}

void sender_spend(struct http_sender *s, uint64_t now_ns, uint64_t cpu_ns)
{
	if (!s)
		return;
	s->spent_ns = MIN(sender_spent(s, now_ns) + cpu_ns, (uint64_t)SPENT_MAX_NS);
	s->spent_at_ns = now_ns;
}

void senders_tidy(struct http_senders *all, uint64_t now_ns)
{
	for (size_t i = 0; i < HTTP_SENDER_BUCKETS; i++) {
		struct http_sender **at = &all->buckets[i];

		while (*at) {
			if (!(*at)->refs && !sender_spent(*at, now_ns))
				forget(all, at);
			else
				at = &(*at)->next;
		}
	}
}

void senders_release(struct http_senders *all)
{
	for (size_t i = 0; i < HTTP_SENDER_BUCKETS; i++)
		while (all->buckets[i])
			forget(all, &all->buckets[i]);
}

/* The ids differ from those that begin() gives only by chance, 1 in 2^63 pairs. */
uint64_t sender_address(const struct sockaddr *a)
{
	static const uint64_t v4_prefix = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t id = 0;

	if (a->sa_family == AF_INET) {
		id = v4_prefix ^ ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr;
	} else if (a->sa_family == AF_INET6) {
		const struct in6_addr *in = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
		uint32_t v4;

		memcpy(&v4, in->s6_addr + 12, sizeof(v4));
		memcpy(&id, in->s6_addr, sizeof(id));
		id = IN6_IS_ADDR_V4MAPPED(in) ? v4_prefix ^ v4 : id;
	}
	id *= UINT64_C(0xff51afd7ed558ccd); /* MurmurHash3's finalizer: neighbours in different buckets */
	return (id ^ id >> 33) | 1;
}
