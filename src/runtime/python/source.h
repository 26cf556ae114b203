/* SPDX-License-Identifier: Apache-2.0 */
/* What a Python source file belongs to: its import path and its distribution, read from the file system of the process.
 * Slow the first time a folder is met, then from a cache; used by one thread, the symbol worker. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"

struct python_source {
	struct str package;      /* import path of the module: "json.decoder"; empty: a script, or nobody can tell */
	struct str distribution; /* "requests==2.31.0", "standard-library==3.11.2"; empty: none */
};

struct python_sources;

int python_sources_new(struct python_sources **out) warn_unused;
/** python_sources_new_on - the same on another clock: what is installed is looked at again from time to time. */
int python_sources_new_on(const struct clock *clock, struct python_sources **out) warn_unused;
void python_sources_free(struct python_sources *s); /* NULL is fine */

/**
 * python_sources_find - never fails: what cannot be found out is empty
 * @origin: a number for the file system that @file lies in (one per container); answers are kept per origin and folder
 * @root_fd: its root directory, borrowed; -1: gone, then only the path itself is looked at
 * @version: of the interpreter, "3.11.2", for the standard library
 * @out: borrowed until the next question. Source: gProfiler, metadata/py_module_version.py
 */
void python_sources_find(struct python_sources *s, uint32_t origin, int root_fd, struct str file, struct str version,
			 struct python_source *out);
