/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's performance counters, as they lie in its memory: numbers that grow, by name (and texts, which nobody needs
 * here). Source: OpenJDK 17, src/hotspot/share/runtime/perfMemory.hpp.
 *
 * The file /tmp/hsperfdata_USER/PID is not read: it is the same memory, of which a walk reads a counter at its address.
 * Another process may have put a file there, and with -XX:+PerfDisableSharedMem there is none. With -XX:-UsePerfData
 * there are no counters at all. */
#pragma once

#include "base/buf.h"
#include "runtime/java/layout.h"

struct java_perf { /* a copy of it all */
	struct buf bytes;
	uint64_t at; /* in the process */
	uint32_t entries, count;
};

/**
 * java_perf_read - out of a process
 * Return: 0; -ENOENT: it has none (-XX:-UsePerfData, or not yet); -EBADMSG; -ENOMEM; the reader's error.
 */
int java_perf_read(const struct java_memory *m, const struct java_layout *l, uint64_t bias,
		   struct java_perf *out) warn_unused;
/** java_perf_parse - what it has read at @at, which is moved in. Return: 0 or -EBADMSG; *bytes is kept then. Pure. */
int java_perf_parse(struct buf *bytes, uint64_t at, struct java_perf *out) warn_unused;
void java_perf_release(struct java_perf *p);

/** java_perf_number - Return: 0, its value and where it is in the process; -ENOENT. Each of @value and @at may be NULL.
 */
int java_perf_number(const struct java_perf *p, const char *name, int64_t *value, uint64_t *at);

/**
 * java_epoch_find - where the process counts the classes that it has unloaded
 *
 * Memory of methods is freed when their class is unloaded, and the class is counted before that, so that nothing has
 * been freed while the count stays. All are counted there: the other counter, of classes of an archive that were
 * unloaded, is made and never moved. Redefining a class frees memory of methods without either. Source: OpenJDK 8 to
 * 17, services/classLoadingService.cpp, notify_class_unloaded(), "Classes that can be unloaded must be non-shared".
 * Return: 0; -ENOENT: there is no such counter; else as java_perf_read().
 */
int java_epoch_find(const struct java_memory *m, const struct java_layout *l, uint64_t bias, uint64_t *out) warn_unused;
