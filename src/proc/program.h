/* SPDX-License-Identifier: Apache-2.0 */
/* One program in one process: what a pid runs between two execs. */
#pragma once

#include <stdint.h>

struct program {
	uint32_t pid, exec_id; /* exec_id: low half of the leader's self_exec_id */
	uint64_t start_ns;     /* CLOCK_BOOTTIME, of the process */
};
