/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/java/unloads.h"

#include <pthread.h>

#define PROCESSES 256 /* one for each place; the last that asked stays */

static struct seen {
	struct program program;
	uint64_t count, since_ns;
} seen[PROCESSES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool java_unloads_none_since(const struct program *p, uint64_t count, uint64_t time_ns, uint64_t now_ns)
{
	struct seen *s = &seen[p->pid % PROCESSES];
	bool is_known;

	if (count == 0)
		return true;
	pthread_mutex_lock(&lock);
	is_known = s->program.pid == p->pid && s->program.exec_id == p->exec_id && s->program.start_ns == p->start_ns &&
		   s->count == count;
	if (!is_known)
		*s = (struct seen){ .program = *p, .count = count, .since_ns = now_ns };
	is_known = is_known && s->since_ns <= time_ns;
	pthread_mutex_unlock(&lock);
	return is_known;
}
