/* SPDX-License-Identifier: Apache-2.0 */
/* Records on their way from the thread that looks to the one that polls: two halves, one is filled while the other is
 * read. */
#pragma once

#include <linux/types.h>
#include <pthread.h>

#include "abi/abi.h"
#include "base/base.h"

struct remote_ring {
	pthread_mutex_t lock; /* guards all but what the reader has taken */
	uint8_t *halves[2];
	size_t used, cap; /* of the half being filled */
	int filling;
	int wake_fd; /* readable: somebody should poll */
	bool signalled;
};

int remote_ring_init(struct remote_ring *r, size_t half_bytes) warn_unused;
void remote_ring_release(struct remote_ring *r); /* also of one that was zeroed with wake_fd -1 */
/**
 * remote_ring_put - one record, header.size bytes
 * @wake: the reader should not wait for its next poll. Return: 0, or -ENOSPC.
 */
int remote_ring_put(struct remote_ring *r, const struct abi_header *record, bool wake);
/** remote_ring_take - what has gathered; valid until the next call. Return: its bytes, 0 when there is nothing. */
size_t remote_ring_take(struct remote_ring *r, const uint8_t **out);
