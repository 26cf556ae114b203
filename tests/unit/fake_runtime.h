/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime that does nothing but be one: files are its that have the symbol fake_runtime_state, a struct in which a
 * linked list of frames hangs. What it needs is what adding one needs: this file (probe, attach, names), a walker
 * (fake_start, fake_step), a table (fake_versions), a line in a list of runtimes. */
#pragma once

#include "runtime/runtime.h"

#define FAKE_RUNTIME ((enum abi_runtime)(ABI_RUNTIME_COUNT - 1))

struct fake_frame {
	uint64_t caller, function;
};

struct fake_state { /* in the process */
	uint64_t ready, version, top;
};

struct fake_info { /* what its walker knows of a process; begins as all of them */
	uint64_t start_ns;
	uint32_t exec_id, version;
	uint64_t top;
};

extern const struct runtime fake_runtime;
extern struct fake_state fake_runtime_state;
