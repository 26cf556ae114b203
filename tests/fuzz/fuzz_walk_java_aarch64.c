// SPDX-License-Identifier: Apache-2.0
/* fuzz_walk_java.c with the frames of aarch64. */
#define WALK_AARCH64 1
#include "fuzz_walk_java.c"
