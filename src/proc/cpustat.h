/* SPDX-License-Identifier: Apache-2.0 */
/* How busy the machine is: CPU time of /proc/stat, memory of /proc/meminfo. */
#pragma once

#include "base/str.h"

/* Of the whole machine since boot. All zero: not known, which no reading is. */
struct cpustat {
	uint64_t busy_ns;  /* user, nice, system, irq, softirq; not idle, iowait, steal. Guests are part of user */
	uint64_t total_ns; /* busy, idle, iowait and steal */
	uint64_t steal_ns;
	uint32_t cpu_count; /* online */
};

/** cpustat_parse - text of /proc/stat. Return: 0 or -EBADMSG. Pure. Source: proc(5). */
int cpustat_parse(struct str text, struct cpustat *out) warn_unused;
int cpustat_read(const char *host_root, struct cpustat *out) warn_unused;
/** cpustat_busy_ns - between two readings; 0 when one is not known. */
uint64_t cpustat_busy_ns(const struct cpustat *from, const struct cpustat *to);
/** cpustat_busy_percent - of all CPUs between two readings, 0 to 100; negative when one is not known or no time went
 * by. */
double cpustat_busy_percent(const struct cpustat *from, const struct cpustat *to);

/** meminfo_parse - total and used memory from the text of /proc/meminfo. Return: 0 or -EBADMSG. Pure. */
int meminfo_parse(struct str text, uint64_t *total_bytes, uint64_t *used_bytes) warn_unused;
int meminfo_read(const char *host_root, uint64_t *total_bytes, uint64_t *used_bytes) warn_unused;
/** cpustat_memory_percent - memory in use, 0 to 100; negative when unknown. */
double cpustat_memory_percent(const char *host_root);
