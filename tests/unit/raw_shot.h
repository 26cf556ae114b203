/* SPDX-License-Identifier: Apache-2.0 */
/* A raw sample of this very process, as the kernel's side makes them, and what glibc's backtrace() says of the same
 * place: it unwinds by the same tables with other code. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "support.h"

#define RAW_SHOT_FRAMES 128
#define RAW_SHOT_START_NS 1000 /* of the process, as the sample says */

/* A raw sample of where it was taken, with what backtrace() says of the same place. */
struct raw_shot {
	struct abi_sample *sample;
	void *callers[RAW_SHOT_FRAMES];
	int caller_count;
};

void raw_shot_release(struct raw_shot *s);
/** raw_shot_take - @stack_max: bytes of the stack that travel; the leaf is in this function. */
void raw_shot_take(struct raw_shot *out, size_t stack_max);
/** raw_shot_deep - the same with @depth calls of this function below it. */
void raw_shot_deep(struct raw_shot *out, size_t stack_max, int depth);
