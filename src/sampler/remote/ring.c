// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/ring.h"

#include <sys/eventfd.h>
#include <unistd.h>

int remote_ring_init(struct remote_ring *r, size_t half_bytes)
{
	*r = (struct remote_ring){ .cap = half_bytes, .wake_fd = -1 };
	pthread_mutex_init(&r->lock, NULL);
	r->halves[0] = malloc(half_bytes);
	r->halves[1] = malloc(half_bytes);
	if (!r->halves[0] || !r->halves[1])
		return -ENOMEM;
	r->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return r->wake_fd < 0 ? -errno : 0;
}

void remote_ring_release(struct remote_ring *r)
{
	free(r->halves[0]);
	free(r->halves[1]);
	closep(&r->wake_fd);
}

static void signal_reader(struct remote_ring *r)
{
	uint64_t one = 1;

	if (r->signalled)
		return;
	r->signalled = true;
	ignore(write(r->wake_fd, &one, sizeof(one))); /* it cannot run over */
}

int remote_ring_put(struct remote_ring *r, const struct abi_header *record, bool wake)
{
	size_t size = record->size;
	int e = 0;

	pthread_mutex_lock(&r->lock);
	if (size > r->cap - r->used) {
		e = -ENOSPC;
	} else {
		memcpy(r->halves[r->filling] + r->used, record, size);
		r->used += size;
	}
	if (wake || r->used > r->cap / 2)
		signal_reader(r);
	pthread_mutex_unlock(&r->lock);
	return e;
}

size_t remote_ring_take(struct remote_ring *r, const uint8_t **out)
{
	uint64_t count;
	size_t used;

	pthread_mutex_lock(&r->lock);
	if (r->signalled)
		ignore(read(r->wake_fd, &count, sizeof(count)));
	r->signalled = false;
	*out = r->halves[r->filling];
	used = r->used;
	r->filling ^= 1;
	r->used = 0;
	pthread_mutex_unlock(&r->lock);
	return used;
}
