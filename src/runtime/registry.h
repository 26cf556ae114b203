/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes that there are: a row each. Its struct, its options (cli/runtime_options.h) and its place in every list
 * come of that row. */
#pragma once

#include "runtime/runtime.h"

/* What X is given for each: its name, in options as gProfiler has it (python, java, nodejs, ruby, php, dotnet), which
 * its struct has, too: runtime_NAME; what people call it; what the words of --NAME-mode mean (runtime_modes_NAME), for
 * --help; and what else was handed on. */
#define RUNTIMES(X, ...)                                                                                               \
	X(python, "Python",                                                                                            \
	  "in the kernel, together with the native ones (pyperf); from outside, and then in place of the native ones " \
	  "(pyspy, py-spy); the first that works (auto); none (disabled, none)",                                       \
	  ##__VA_ARGS__)                                                                                               \
	X(java, "Java", "as frames of the native stack (auto, ap); none (disabled, none)", ##__VA_ARGS__)              \
	X(nodejs, "Node.js",                                                                                           \
	  "as frames of the native stack (auto; perf and attach-maps, gProfiler's words, mean the "                    \
	  "same: no perf map is needed); none (disabled, none)",                                                       \
	  ##__VA_ARGS__)                                                                                               \
	X(ruby, "Ruby",                                                                                                \
	  "together with the native ones, or from outside where the sampler cannot (auto, rbspy); none (disabled, "    \
	  "none)",                                                                                                     \
	  ##__VA_ARGS__)                                                                                               \
	X(php, "PHP",                                                                                                  \
	  "together with the native ones, or from outside where the sampler cannot (auto, phpspy); none (disabled, "   \
	  "none)",                                                                                                     \
	  ##__VA_ARGS__)                                                                                               \
	X(perl, "Perl",                                                                                                \
	  "together with the native ones, or from outside where the sampler cannot (auto); none (disabled, none)",     \
	  ##__VA_ARGS__)

#define X(name, ...) RUNTIME_##name,
enum runtime_index { RUNTIMES(X) RUNTIME_COUNT }; /* as runtime_at() counts */
#undef X

#define X(name, ...)                                \
	extern const struct runtime runtime_##name; \
	extern const char *const runtime_modes_##name[]; /* ends with NULL; runtime.ways has what they mean */
RUNTIMES(X)
#undef X
