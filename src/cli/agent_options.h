/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of gProfiler 1.57: its options, what goes together and what does not. Source: intel/gprofiler,
 * gprofiler/main.py parse_cmd_args() and the @register_profiler() of gprofiler/profilers. */
#pragma once

#include "cli/python_options.h"
#include "cli/session_options.h"

/* Profilers of gProfiler that hearth has no runtime for yet. Their rows leave as runtimes come (runtime/registry.h). */
#define AGENT_LATER(X) X(dotnet, "dotnet", "dotnet-trace, disabled", "dotnet-trace disabled none", false)

enum agent_later {
#define X(id, ...) AGENT_LATER_##id,
	AGENT_LATER(X) AGENT_LATER_COUNT
#undef X
};

/* --min-duration and --max-processes-runtime-profiler are of the profilers that gProfiler starts for each process.
 * Java's is one, too, but here its frames are native ones; phpspy is one program for all. Source: gprofiler/profilers.
 */
#define AGENT_CHOSEN_RUNTIMES (1U << ABI_RUNTIME_PYTHON | 1U << ABI_RUNTIME_RUBY)

enum agent_mode { AGENT_MODE_CPU, AGENT_MODE_ALLOCATION, AGENT_MODE_NONE };

struct agent_options {
	struct session_options session; /* frequency_hz 0: not given */
	struct frame_options frames;
	bool java_modifiers, java_threads, php_request;
	const char *java_flags, *java_safemode; /* java_safemode: NULL: not given */
	bool java_no_version_check, java_full_hserr;
	size_t java_lines; /* 0: none, 1: of the function */
	uint64_t duration_s, min_duration_s;
	size_t mode; /* enum agent_mode */
	const char *alloc_interval;
	/* files */
	const char *output_dir, *pid_file, *heartbeat_file, *external_metadata;
	bool flamegraph, rotating_output;
	/* what is sampled */
	struct opt_list pids;
	uint64_t max_processes, skip_above, controller_pid;
	bool spawned, insert_dso_name;
	/* how it runs */
	bool continuous, rootless, log_usage, keep_core_files, verbose, diagnostics;
	bool without_containers, without_pidns_check, without_metrics, without_metadata, without_app_ids,
		without_app_metadata;
	struct opt_list app_id_args;
	bool spark_names;
	const char *api_version;
	/* sending */
	bool upload, curlify, verify;
	const char *server_host, *api_server, *token;
	uint64_t upload_timeout_s;
	bool heartbeat_server;
	uint64_t heartbeat_interval_s;
	/* logging */
	const char *log_file;
	uint64_t log_rotate_bytes, log_rotate_count;
	bool without_log_upload;
	/* profilers */
	const char *later_mode[AGENT_LATER_COUNT]; /* NULL: not asked for */
	bool later_on[AGENT_LATER_COUNT];          /* not --no-NAME */
	struct agent_perf {
		uint64_t event_period, max_cgroups, max_docker_containers;
		const char *event, *hw_events_file;
		bool no_memory_restart, use_cgroups;
		bool on; /* not --no-perf */
	} perf;
	/* of sub-commands */
	const char *upload_file, *resources_folder;
	/* taken, without meaning here */
	struct agent_unused {
		const char *text[16], *features;
		size_t choice[2];
		uint64_t number[16];
		bool flag[24];
		struct opt_list list[2];
	} unused;
};

extern const struct opt_group agent_option_groups[];
extern const struct opt_dialect agent_dialect; /* GPROFILER_NAME, /etc/gprofiler/config.ini */

/**
 * agent_options_check - what may not stand together, and what is not there yet
 * Return: EXIT_DONE; EXIT_USAGE, or EXIT_FAILED for what comes later, after saying why in one line.
 */
int agent_options_check(const struct command *c, struct agent_options *o);
/** agent_options_warn - at the start, what of gProfiler's defaults or of what was asked has no effect: a line each. */
void agent_options_warn(const struct agent_options *o);
/** agent_options_leave_out - take names out that neither the .col files nor the pages may have. */
void agent_options_leave_out(const struct agent_options *o, struct model *m);
