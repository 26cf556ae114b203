/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's performance counters, as they lie in its memory: numbers that grow, and texts that never change, by name.
 * The file in /tmp/hsperfdata_USER is the same memory, but another process may have put a file there, or none may be
 * (-XX:+PerfDisableSharedMem). Source: OpenJDK 17, src/hotspot/share/runtime/perfMemory.hpp. */
#pragma once

#include "base/buf.h"
#include "runtime/java/layout.h"

struct java_perf { /* a copy of it all */
	struct buf bytes;
	uint64_t at; /* in the process; 0: of a file */
	uint32_t entries, count;
};

/**
 * java_perf_read - out of a process
 * Return: 0; -ENOENT: it has none (-XX:-UsePerfData, or not yet); -EBADMSG; -ENOMEM; the reader's error.
 */
int java_perf_read(const struct java_memory *m, const struct java_layout *l, uint64_t bias,
		   struct java_perf *out) warn_unused;
/** java_perf_parse - the same of a file's bytes, which are moved in. Return: 0 or -EBADMSG; *bytes is kept then. */
int java_perf_parse(struct buf *bytes, struct java_perf *out) warn_unused;
void java_perf_release(struct java_perf *p);

/** java_perf_number - Return: 0, its value and where it is in the process; -ENOENT. Each of @value and @at may be NULL.
 */
int java_perf_number(const struct java_perf *p, const char *name, int64_t *value, uint64_t *at);
/** java_perf_text - "sun.rt.javaCommand"; cut at the first NUL. Return: 0; -ENOENT. @out lies in @p. */
int java_perf_text(const struct java_perf *p, const char *name, struct str *out);

/**
 * java_epoch_find - where the process counts the classes that it has unloaded: ordinary ones, those of an archive
 * Memory of methods is freed when their class is unloaded, so that nothing has been freed while both stay as they are.
 * Redefining a class frees memory of methods without that. Return: 0; -ENOENT: there are no such counters; else as
 * java_perf_read().
 */
int java_epoch_find(const struct java_memory *m, const struct java_layout *l, uint64_t bias,
		    uint64_t out[2]) warn_unused;
