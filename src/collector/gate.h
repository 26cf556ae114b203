/* SPDX-License-Identifier: Apache-2.0 */
/* A number of places; who waits for one gets it by rank. */
#pragma once

#include <pthread.h>

#include "base/base.h"

struct gate {
	pthread_mutex_t lock; /* guards the rest */
	unsigned int free;
	struct gate_place *first; /* who waits */
};

void gate_init(struct gate *g, unsigned int places);
void gate_destroy(struct gate *g);
/** gate_enter - take a place, or wait for one; the lowest @rank goes first, and of equal ones who came first. */
void gate_enter(struct gate *g, uint64_t rank);
/** gate_try - Return: whether a place was free; it is taken then. */
bool gate_try(struct gate *g);
void gate_leave(struct gate *g);
