/* SPDX-License-Identifier: Apache-2.0 */
/* The looker: reads through files that a quick look does not tell of: programs without symbols, compiled modules of an
 * interpreter. From a disk that has not read them before, one of 60 MB takes a second and more, in which the worker
 * attaches to other processes. */
#include "runtime/runtimes_int.h"

#include <sys/resource.h>
#include <unistd.h>

#define LOOKER_NICE 0 /* the worker's creator may run at a higher priority */

/* Return: whether one of the files that the worker could not tell is a runtime. */
static bool has_runtime(struct runtimes *r, const struct runtimes_message *m)
{
	bool has_found = false;

	for (size_t i = 0; i < m->seen_count; i++) {
		uint32_t id = m->seen[i].file_id;
		unsigned int look = RUNTIMES_LOOK_LONG | (id == m->main_file ? RUNTIMES_LOOK_PROGRAM : 0);
		const struct runtimes_probed *probed = m->seen[i].is_unsure ? runtimes_probe(r, id, look) : NULL;

		has_found |= probed && probed->binary;
	}
	return has_found;
}

static void look(struct runtimes *r, struct runtimes_message *m)
{
	if (!has_runtime(r, m)) {
		free(m);
		return;
	}
	m->kind = RUNTIMES_SEE;                                 /* now the worker knows what it is */
	ignore(runtimes_hand_over(r, m, RUNTIMES_QUEUE_BYTES)); /* its next sample tells of it again */
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
		m = runtimes_list_take(&r->looks);
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
