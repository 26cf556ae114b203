/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes show frames of language runtimes, when that is limited by age or number: the others keep their native
 * stacks. Used by one thread, the reader. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/base.h"

struct choice_config {
	uint32_t runtimes;   /* bits of enum abi_runtime: frames of others are always shown */
	uint64_t age_min_ns; /* of the process; 0: any */
	size_t process_max;  /* of each runtime, those with the most samples; 0: all */
	uint64_t look_ns;    /* how long samples are counted before processes are chosen for the first time */
};

struct choice;

int choice_new(const struct choice_config *cfg, struct choice **out) warn_unused;
void choice_free(struct choice *c); /* NULL is fine */
/**
 * choice_takes - may this sample show its frames of a runtime? One without such frames may.
 * @boot_ns: CLOCK_BOOTTIME now
 */
bool choice_takes(struct choice *c, const struct abi_sample *sample, uint64_t boot_ns);
/** choice_cut - choose again: for the next window those that had the most samples in this one. */
void choice_cut(struct choice *c);
