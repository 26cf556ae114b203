/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs are online. */
#pragma once

#include "base/str.h"

#define CPUS_MAX 8192

struct cpus {
	uint64_t bits[CPUS_MAX / 64];
};

static inline bool cpus_has(const struct cpus *c, unsigned int cpu)
{
	return cpu < CPUS_MAX && (c->bits[cpu / 64] >> cpu % 64 & 1);
}

/**
 * cpus_parse - "0-3,8,10-11" with or without a newline, as in /sys/devices/system/cpu/online
 *
 * Return: number of CPUs, at least 1; -EBADMSG, or -ERANGE for a number of CPUS_MAX and more. *out untouched then.
 * Pure.
 */
int cpus_parse(struct str text, struct cpus *out) warn_unused;

/** cpus_online - of this machine. Return: as cpus_parse(), or -errno. */
int cpus_online(const char *host_root, struct cpus *out) warn_unused;
