/* SPDX-License-Identifier: Apache-2.0 */
/* Since when a process has unloaded no class: what a walk over a copied stack reads of methods is of a later moment
 * than the stack is. Safe to call from any thread. */
#pragma once

#include <stdbool.h>

#include "proc/program.h"

/**
 * java_unloads_none_since - were no classes unloaded between @time_ns and now?
 * @count: how many the process has unloaded in all, read just now.
 * @now_ns: CLOCK_MONOTONIC, as @time_ns.
 *
 * The count only grows, so that it was the same in between when it was @count at @time_ns or before. That is known when
 * somebody has asked then; a process of which nobody has asked since some others is a new one. False: not known.
 */
bool java_unloads_none_since(const struct program *p, uint64_t count, uint64_t time_ns, uint64_t now_ns);
