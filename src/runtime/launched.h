/* SPDX-License-Identifier: Apache-2.0 */
/* Which application a process is that runs under Node.js, Ruby or a JVM, told by its command line and files (of pm2
 * by a variable), as gProfiler names it. docs/applications.md has the rules. */
#pragma once

#include "runtime/target_files.h"

#define LAUNCHED_ARGV_MAX KIB(64)
#define LAUNCHED_ARGS_MAX 1024
#define LAUNCHED_ENVIRONMENT_MAX KIB(128)

struct launched {
	struct str exe;  /* path of the program */
	struct str argv; /* as /proc/PID/cmdline: each argument with a NUL behind it */
	struct str cwd;  /* as the process sees it; empty: not known */
	const struct target_files *files;
	/** Append /proc/PID/environ; called for what only a variable tells. NULL: it cannot be read. Return: 0 or
	 * -errno. */
	int (*environment)(const struct launched *l, size_t max, struct buf *out);
	int proc_dir; /* for it: of /proc/PID */
	/** Is this argument of a JVM a part of the id? NULL: none is. */
	bool (*wants_argument)(void *ctx, struct str argument);
	void *ctx;
	bool with_spark; /* executors of Spark are named by their application, too */
};

/** launched_is_known - is its command line worth reading? @exe: a path. Pure. */
bool launched_is_known(struct str exe);

/**
 * launched_app_id - append "nodejs: server.js (/srv/server.js)"
 * Return: 0; -ENOENT: nobody can tell; -ENOMEM, -E2BIG. Nothing is appended on failure.
 */
int launched_app_id(const struct launched *l, struct buf *out) warn_unused;
