/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that read files of strangers take no more memory than they may: a file of 40 kB can stand for gigabytes. */
#pragma once

#include "cli/command.h"
#include "codec/codec.h"

/* A row of a table over @config (a type) whose @member is a uint64_t. */
#define MEMORY_OPTION(config, member)                                                                                 \
	{                                                                                                             \
		"memory-limit", 0, OPT_SIZE, .at = offsetof(config, member), .min = MIB(16), .arg = "SIZE",           \
					     .help = "memory that may be used; what needs more is refused (default: " \
						     "a quarter of the machine's, or of "                             \
						     "what its control group grants)"                                 \
	}

/** memory_total - what this process may have in all: the machine's memory, or less by its control group. */
uint64_t memory_total(void);
/** memory_limit - no more than @bytes from here on, 0: a quarter of memory_total(). Beyond it allocations fail. */
void memory_limit(uint64_t bytes);
/** memory_codec_limits - what a decoder may take of it, so that what comes behind it has the rest. */
struct codec_limits memory_codec_limits(void);
/** memory_reason - strerror(-r), but for what is too large: how much was allowed, and what raises it. @room holds it.
 */
const char *memory_reason(int r, char room[160]);
