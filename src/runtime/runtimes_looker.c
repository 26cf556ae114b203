/* SPDX-License-Identifier: Apache-2.0 */
/* The looker: reads through files that a quick look does not tell of: programs without symbols, compiled modules of an
 * interpreter. From a disk that has not read them before, one of 60 MB takes a second and more, in which the worker
 * attaches to other processes. */
#include "runtime/runtimes_int.h"

#include <sys/resource.h>
#include <unistd.h>

#define LOOKER_NICE 0 /* the worker's creator may run at a higher priority */
#define FAIR 4

/* Those that are runtimes for sure first: they are few. Return: whether one is; what it has not come to stays unsure.
 */
static bool has_runtime(struct runtimes *r, struct runtimes_message *m, bool only_sure)
{
	for (size_t i = 0; i < m->seen_count; i++) {
		struct runtimes_seen *s = &m->seen[i];
		unsigned int look = RUNTIMES_LOOK_LONG | (s->file_id == m->main_file ? RUNTIMES_LOOK_PROGRAM : 0);
		const struct runtimes_probed *probed;

		if (!s->is_unsure || (only_sure && !s->is_runtime))
			continue;
		probed = runtimes_probe(r, s->file_id, look);
		s->is_unsure = s->is_runtime = false;
		if (probed && probed->binary)
			return true;
	}
	return false;
}

/* What is left of @m waits behind all others of its kind: the process has a runtime already, or others would wait for
 * it. */
static void look_later(struct runtimes *r, const struct runtimes_message *m)
{
	struct runtimes_message *rest;
	bool is_unsure = false, is_urgent = false;

	for (size_t i = 0; i < m->seen_count; i++) {
		is_unsure |= m->seen[i].is_unsure;
		is_urgent |= m->seen[i].is_runtime;
	}
	rest = is_unsure ? malloc(m->bytes) : NULL;
	if (!rest)
		return;
	memcpy(rest, m, m->bytes);
	rest->is_urgent = is_urgent;
	ignore(runtimes_hand_over(r, rest,
				  RUNTIMES_QUEUE_BYTES)); /* else its mappings are told again in half a minute */
}

/* With the lock held; there is one. Those in front are urgent; each FAIR-th look is at the first that is not: files
 * that look like a runtime are easily made, again and again. */
static struct runtimes_message *take_next(struct runtimes *r)
{
	struct runtimes_message **at = &r->looks.first, *m;

	if (r->looks.done % FAIR == FAIR - 1)
		while (*at && (*at)->is_urgent)
			at = &(*at)->next;
	if (!*at)
		at = &r->looks.first;
	m = *at;
	*at = m->next;
	if (r->looks.end == &m->next)
		r->looks.end = at;
	return m;
}

static void look(struct runtimes *r, struct runtimes_message *m)
{
	if (!has_runtime(r, m, true) && !has_runtime(r, m, false)) {
		free(m);
		return;
	}
	look_later(r, m);       /* before the worker sees them and asks for the same */
	m->kind = RUNTIMES_SEE; /* now the worker knows what it is */
	m->is_urgent = false;
	ignore(runtimes_hand_over(r, m, RUNTIMES_QUEUE_BYTES)); /* else its mappings are told again in half a minute */
}

void *runtimes_looker_main(void *argument)
{
	struct runtimes *r = argument;

	ignore(setpriority(PRIO_PROCESS, (id_t)gettid(), LOOKER_NICE)); /* without the right: as it is */
	pthread_mutex_lock(&r->lock);
	for (;;) {
		struct runtimes_message *m;

		while (!r->looks.first && !r->stops)
			pthread_cond_wait(&r->looks_changed, &r->lock);
		if (r->stops)
			break;
		m = take_next(r);
		r->bytes -= m->bytes;
		r->is_looking = true;
		pthread_mutex_unlock(&r->lock);
		look(r, m);
		pthread_mutex_lock(&r->lock);
		r->looks.done++;
		r->is_looking = false;
		pthread_cond_broadcast(&r->settled);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}
