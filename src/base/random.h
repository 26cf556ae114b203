/* SPDX-License-Identifier: Apache-2.0 */
/* Randomness for hash seeds and run ids; not for keys. */
#pragma once

#include <stdint.h>

/** random_u64 - from the kernel; falls back to clock and address bits when the kernel has none. */
uint64_t random_u64(void);
