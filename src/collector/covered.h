/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a range profiles cover together, whoever sent them: what an amount of time is divided by to be CPUs. An
 * agent that runs for ten minutes says nothing of the other fifty of an hour. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define COVERED_SLOTS (1U << 16)

struct covered {
	uint64_t from_ns, slot_ns;
	uint64_t first_ns, last_ns;         /* where the first profile begins, and the last one ends */
	uint64_t sum_ns;                    /* of all profiles */
	uint64_t over_ns;                   /* what is covered behind the last slot */
	bool unknown;                       /* a profile did not say how long it took */
	uint64_t marks[COVERED_SLOTS / 64]; /* one bit a slot */
};

/** covered_init - nothing of a range is covered yet; profiles of the range may last beyond it */
void covered_init(struct covered *c, uint64_t from_ns, uint64_t to_ns);
/**
 * covered_note - a profile of the range
 * @created_ns:  where it begins
 * @duration_ns: 0: not said; then nothing is known of the range
 *
 * Rounded to slots, both ends down: ranges that follow each other leave no gap and add nothing, and many short ones
 * are right on average.
 */
void covered_note(struct covered *c, uint64_t created_ns, uint64_t duration_ns);
/** covered_ms - Return: how long the profiles took together, what several covered counted once; 0: nothing, or not
 * known. */
uint64_t covered_ms(const struct covered *c);
