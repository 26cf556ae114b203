/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: changes a word of the process for as long as it computes, so that nothing else sees the change. */
#include <stdint.h>

uint64_t hold_word(volatile uint64_t *at, uint64_t value, uint64_t turns);

uint64_t hold_word(volatile uint64_t *at, uint64_t value, uint64_t turns)
{
	const uint64_t before = *at;
	volatile uint64_t sum = 0;

	*at = value;
	for (uint64_t i = 0; i < turns; i++)
		sum += i;
	*at = before;
	return sum;
}
