/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_walk.c with the step of aarch64. */
#define WALK_AARCH64 1
#include "fuzz_walk.c"
