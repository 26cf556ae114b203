/* SPDX-License-Identifier: Apache-2.0 */
/* Which packages of debug symbols would name more of what runs here. */
#pragma once

#include "sampler/probe.h"

/**
 * doctor_debug_packages - the fact "debug-packages": files of code that processes map now, that have neither a symbol
 * table nor a separate debug file, and the packages that own the most mapped ones
 *
 * Reads below @host_root: maps of the processes it may read, headers of the files, dpkg's lists; runs no program and
 * looks for half a second at most.
 */
void doctor_debug_packages(const char *host_root, struct probe_fact *out);
