/* SPDX-License-Identifier: Apache-2.0 */
/* Signed numbers as varints. */
#pragma once

#include <stdint.h>

static inline uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}
