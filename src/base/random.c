/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <sys/random.h>
#include <time.h>

uint64_t random_u64(void)
{
	uint64_t value;
	struct timespec now;

	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) == (ssize_t)sizeof(value))
		return value;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_nsec * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)(uintptr_t)&value;
}
