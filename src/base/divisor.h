/* SPDX-License-Identifier: Apache-2.0 */
/* Euclid's algorithm. */
#pragma once

#include <stdint.h>

/** greatest_divisor - the largest number that both are multiples of; the other one when one is 0. */
static inline uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}
