/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a session: rows of option tables, and what they mean, for every command that samples. How often, how
 * long and in which windows differ by command: each lists these itself. */
#pragma once

#include "agent/session.h"
#include "cli/command.h"
#include "cli/runtime_options.h"
#include "cli/service_options.h"
#include "cli/unwind_options.h"

struct session_options { /* a member of the command's configuration */
	uint64_t frequency, duration_ns, window_ns;
	uint64_t wait_min_ns, wait_percent, ring_bytes;
	bool off_cpu, lines, sample_times, allow_dangerous_kernel;
	const char *host_root, *container_socket, *service_name, *service_rules;
	const char *event;                         /* of perf's names; NULL: the CPU's clock */
	uint64_t event_period;                     /* events per sample; 0: by frequency */
	struct opt_list comms, users, units, pods; /* whose processes */
	const char *cgroup, *container;
	struct unwind_options unwind;
	struct runtime_options runtimes;
};

/* clang-format off: lists of rows, as tables are written */
/* Rows of a table over @config (a type) whose @member is a struct session_options. */
#define SESSION_MACHINE_OPTIONS(config, member)                                                                        \
	UNWIND_OPTIONS(config, member.unwind),                                                                         \
		{ "lines", 0, OPT_FLAG, .at = offsetof(config, member.lines),                                          \
		  .help = "inlined functions, source files and lines of native code, from its debug information "      \
			  "(needs "                                                                                    \
			  "libdw)" },                                                                                  \
		{ "ring-size",                                                                                         \
		  0,                                                                                                   \
		  OPT_SIZE,                                                                                            \
		  .at = offsetof(config, member.ring_bytes),                                                           \
		  .arg = "SIZE",                                                                                       \
		  .help = "memory between kernel and program (default: a quarter of a second's worst case, 256K to "   \
			  "8M)" },                                                                                     \
		{ "allow-dangerous-kernel", 0, OPT_FLAG, .at = offsetof(config, member.allow_dangerous_kernel),        \
		  .help = "sample even on kernels that are known to freeze (5.19 to 6.3, see hearth doctor)" },        \
		{ "host-root",                                                                                         \
		  0,                                                                                                   \
		  OPT_PATH,                                                                                            \
		  .at = offsetof(config, member.host_root),                                                            \
		  .fallback = "",                                                                                      \
		  .arg = "DIR",                                                                                        \
		  .help = "where the host's file system is mounted, when run in a container" },                        \
	{                                                                                                              \
		"container-socket", 0, OPT_PATH, .at = offsetof(config, member.container_socket), .arg = "PATH",       \
						 .help = "socket of the only container engine to ask (default: those " \
							 "of Docker, podman, containerd, CRI-O)"                       \
	}
/* Which processes; process ids are the command's own. A process has to fit all that is given. */
#define SESSION_WHO_OPTIONS(config, member)                                                                         \
	{ "comm",        0,                                                                                         \
	  OPT_LIST,      .at = offsetof(config, member.comms),                                                      \
	  .arg = "NAME", .help = "only processes of this name (at most 15 bytes; may have * and ?); repeatable" },  \
		{ "user",        0,                                                                                 \
		  OPT_LIST,      .at = offsetof(config, member.users),                                              \
		  .arg = "NAME", .help = "only processes of this user, by name or number; repeatable" },            \
		{ "unit",        0,                                                                                 \
		  OPT_LIST,      .at = offsetof(config, member.units),                                              \
		  .arg = "NAME", .help = "only processes of this systemd service (may have * and ?); repeatable" }, \
		{ "cgroup",     0,                                                                                  \
		  OPT_PATH,     .at = offsetof(config, member.cgroup),                                              \
		  .arg = "DIR", .help = "only processes of this cgroup v2 directory and those below it" },          \
		{ "container",                                                                                      \
		  0,                                                                                                \
		  OPT_TEXT,                                                                                         \
		  .at = offsetof(config, member.container),                                                         \
		  .arg = "NAME",                                                                                    \
		  .help = "only this container: its name (may have * and ?), or at least 12 digits of its id" },    \
	{                                                                                                           \
		"pod", 0, OPT_LIST, .at = offsetof(config, member.pods), .arg = "NAME",                             \
				    .help = "only containers of this Kubernetes pod (may have * and ?); repeatable" \
	}
#define SESSION_EVENT_OPTIONS(config, member)                                                                        \
	{ "event",                                                                                                   \
	  'e',                                                                                                       \
	  OPT_TEXT,                                                                                                  \
	  .at = offsetof(config, member.event),                                                                      \
	  .arg = "NAME",                                                                                             \
	  .help = "sample another event than the CPU's clock, by perf's name: context-switches, page-faults, "       \
		  "cycles, GROUP:NAME of a tracepoint" },                                                            \
	{                                                                                                            \
		"count", 'c', OPT_UINT, .at = offsetof(config, member.event_period), .min = 1, .max = INT64_MAX / 2, \
					.arg = "N",                                                                  \
					.help = "a sample each N events (of a clock: nanoseconds), instead of by "   \
						"--frequency"                                                        \
	}
#define SESSION_WAIT_OPTIONS(config, member)                                                                  \
	{ "off-cpu", 0, OPT_FLAG, .at = offsetof(config, member.off_cpu),                                     \
	  .help = "also where threads wait, and how long: the sample types waits/count and "                  \
		  "off_cpu/nanoseconds" },                                                                    \
		{ "off-cpu-min",                                                                              \
		  0,                                                                                          \
		  OPT_DURATION,                                                                               \
		  .at = offsetof(config, member.wait_min_ns),                                                 \
		  .fallback = "1ms",                                                                          \
		  .arg = "TIME",                                                                              \
		  .help = "leave out waits shorter than this" },                                              \
	{                                                                                                     \
		"off-cpu-share", 0, OPT_UINT,                                                                 \
			.at = offsetof(config, member.wait_percent), .min = 1, .max = 100, .fallback = "100", \
			.arg = "PERCENT",                                                                     \
			.help = "take only this share of all waits, by chance; each stands for the others"    \
	}
#define SESSION_SAMPLING_OPTIONS(config, member) \
	SESSION_MACHINE_OPTIONS(config, member), SESSION_WAIT_OPTIONS(config, member)
/* For commands that write or keep profiles in forms that have times. @usual: "true" or NULL. */
#define SESSION_TIMES_OPTION(config, member, usual)                                                            \
	{                                                                                                      \
		"sample-times", 0, OPT_FLAG, .at = offsetof(config, member.sample_times), .fallback = (usual), \
					     .help = "when samples were taken, in steps of 20 ms; "            \
						     "of waits it is not told"                                 \
	}
#define SESSION_SERVICE_OPTIONS(config, member)                                     \
	{ "service-name", 0,                                                        \
	  OPT_TEXT,       .at = offsetof(config, member.service_name),              \
	  .arg = "NAME",  .help = "stored with every profile as the label group" }, \
		SERVICE_RULES_OPTION(config, member.service_rules)
/* clang-format on */

/**
 * session_options_open - open the session that the options ask for
 * @o: has to outlive the session: it refers to lists of it
 * @cfg: what the command adds: sampler, processes, windows' receiver; zero otherwise. Filled up by the options.
 * @rules: of service_rules_load(); has to outlive the session
 *
 * Also has the C library give back memory that was used for moments, and raises the limit of open files, so programs
 * that keep theirs are forked before. Return: EXIT_DONE; EXIT_USAGE (no such event), EXIT_FAILED or
 * EXIT_NOT_PERMITTED after saying why.
 */
int session_options_open(const struct command *c, const struct session_options *o, const struct service_rules *rules,
			 struct session_config *cfg, struct session **out) warn_unused;

/** session_options_notices - add what session_notices() has, as lines for a terminal: paths in them are strangers' */
void session_options_notices(struct session *s, struct buf *out);
