/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Thread groups that were sampled before, and how often their mappings may be asked for. Reading /proc/PID/maps costs
 * the host far more than a sample: a process that keeps missing is asked about ever more rarely. */
#pragma once

#include "unwind.h"

#define SEEN_MAX 4096
#define ASK_FIRST_NS 100000000ULL   /* to the second time; then twice as long each time */
#define ASK_ATTEMPTS 8              /* 25.6 s */
#define ASK_FORGET_NS 5000000000ULL /* after such a silence it begins anew */

struct seen {
	__u64 start_ns;  /* of the group's leader */
	__u64 missed_ns; /* the last time a mapping was missing */
	__u64 ask_ns;    /* not to be asked about before */
	__u32 attempt;
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SEEN_MAX);
	__type(key, __u32); /* pid */
	__type(value, struct seen);
} seen SEC(".maps");

/* Return: whether this is the first sample of the process. */
static __always_inline bool seen_first(__u32 pid, __u64 start_ns, bool exiting)
{
	struct seen *known = bpf_map_lookup_elem(&seen, &pid);
	struct seen fresh = { .start_ns = start_ns };

	if (known && known->start_ns == start_ns)
		return false;
	/* A tick after the exit event would bring back an entry that nobody deletes any more. */
	if (!exiting)
		bpf_map_update_elem(&seen, &pid, &fresh, BPF_ANY);
	return true;
}

/* A mapping of the process is missing: may it be asked for? Two CPUs can both hear yes at the same moment; the host
 * reads the mappings once for both. */
static __always_inline bool seen_may_ask(__u32 pid, __u64 start_ns, __u64 now_ns)
{
	struct seen *known = bpf_map_lookup_elem(&seen, &pid);
	__u32 attempt;

	if (!known || known->start_ns != start_ns) /* on its way out */
		return false;
	attempt = known->attempt;
	if (now_ns - known->missed_ns > ASK_FORGET_NS)
		attempt = 0;
	known->missed_ns = now_ns;
	if (attempt && now_ns < known->ask_ns)
		return false;
	if (attempt > ASK_ATTEMPTS)
		attempt = ASK_ATTEMPTS;
	known->ask_ns = now_ns + (ASK_FIRST_NS << attempt);
	known->attempt = attempt + 1;
	return true;
}
