/* SPDX-License-Identifier: Apache-2.0 */
/* What the source files of runtimes' functions belong to: a cache for each runtime that can say so (struct runtime's
 * sources_new()). Slow the first time a folder is met; used by one thread, the symbol worker. */
#pragma once

#include "runtime/runtime.h"

struct runtime_sources;

/** runtime_sources_new - @runtimes: ends with NULL, borrowed. Return: 0 or -ENOMEM. */
int runtime_sources_new(const struct runtime *const *runtimes, struct runtime_sources **out) warn_unused;
void runtime_sources_free(struct runtime_sources *s); /* NULL is fine */

/**
 * runtime_sources_find - never fails: what cannot be found out is empty
 * @s: NULL: nothing is found out. @out: borrowed until the next question
 */
void runtime_sources_find(struct runtime_sources *s, enum abi_runtime runtime, const struct runtime_source_file *file,
			  struct runtime_source *out);
