/* SPDX-License-Identifier: Apache-2.0 */
/* Which application a Python process is, told by its command line. docs/applications.md has the rules. */
#pragma once

#include "runtime/target_files.h"

#define PYTHON_ARGV_MAX KIB(64) /* bytes of a command line that are looked at */
#define PYTHON_ARGS_MAX 1024
#define PYTHON_INI_MAX KIB(64)

struct python_app {
	struct str argv; /* as /proc/PID/cmdline: each argument with a NUL behind it */
	struct str cwd;  /* as the process sees it; empty: not known */
	const struct target_files *files;
};

/**
 * python_app_id - append "gunicorn: my.wsgi:app (/srv/my/wsgi.py)"
 * Return: 0; -ENOENT: nobody can tell; -ENOMEM, -E2BIG. Nothing is appended on failure.
 */
int python_app_id(const struct python_app *app, struct buf *out) warn_unused;

/**
 * python_ini_find - the last value of @key in [@section] of an ini file, as Python's configparser reads it
 * @out: borrowed from @text, the first line of it only. Return: 0 or -ENOENT. Pure.
 */
int python_ini_find(struct str text, struct str section, struct str key, struct str *out);
