/* SPDX-License-Identifier: Apache-2.0 */
/* The options of hearth profile: as bcc's profile has them, with its checks and its words for what is wrong. */
#pragma once

#include "cli/profile_live.h"
#include "cli/session_options.h"
#include "render/profile_text.h"
#include "sampler/cpus.h"

#define PROFILE_FOREVER_S 99999999 /* bcc's default duration: until Ctrl-C */
#define PROFILE_IDS_MAX 1024

struct profile_options { /* filled by profile_groups */
	struct session_options session;
	struct profile_live_options live;
	struct opt_list pids, tids;
	const char *frequency, *count, *interval, *stack_storage, *hash_storage, *depth;
	const char *cpus, *cgroup, *container, *cgroup_map, *mount_map;
	bool user_only, kernel_only, idle, delimited, annotated, folded, addresses, aggregate;
	bool ebpf, verbose, version;
};

struct profile_ids {
	pid_t ids[PROFILE_IDS_MAX]; /* in the order given */
	size_t count;
};

/* What they ask for. */
struct profile_plan {
	struct profile_ids pids, tids;
	struct cpus cpus;                /* with options->cpus */
	bool is_limited;                 /* to these */
	uint64_t count;                  /* events for each sample; 0: by frequency */
	uint64_t duration_s, interval_s; /* PROFILE_FOREVER_S; 0: one report at the end */
	struct profile_text_config text;
};

extern const struct opt_group profile_groups[];
extern const struct opt_dialect profile_dialect;

/**
 * profile_options_get - check them all; sets options->session.frequency, duration_ns and window_ns, too
 * Return: EXIT_DONE, or EXIT_USAGE after saying why.
 */
int profile_options_get(const struct command *c, struct profile_options *o, int operand_count, char **operands,
			struct profile_plan *out) warn_unused;

/**
 * profile_options_event - with -c: what is counted, cycles where the machine has a counter, else nanoseconds of CPU
 * time, which it says. With verbose it says so in any case.
 */
void profile_options_event(const struct command *c, struct profile_options *o, const struct profile_plan *plan);

/** profile_header - the line that multi-line output begins with. */
void profile_header(const struct profile_options *o, const struct profile_plan *plan, struct buf *out);
