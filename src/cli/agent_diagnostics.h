/* SPDX-License-Identifier: Apache-2.0 */
/* What runs on the machine: how much, and with --diagnostics now and then all of it, with what the kernel said last,
 * for the debug log. */
#pragma once

#include "base/base.h"

#define AGENT_DIAGNOSTICS_NS (15 * 60 * NSEC_PER_SEC)

/** agent_diagnostics_log - at most once in AGENT_DIAGNOSTICS_NS; *last_ns: 0 at first. */
void agent_diagnostics_log(const char *host_root, uint64_t *last_ns);
/** agent_process_count - processes that run now; 0: not known. */
size_t agent_process_count(const char *host_root);
