/* SPDX-License-Identifier: Apache-2.0 */
/* May this program read another one's memory, and if not, what mends it? */
#pragma once

#include <sys/types.h>

#include "base/buf.h"

/**
 * remote_access - ask whether the memory of @pid can be read
 * Return: 0; -ESRCH: there is no such process; -EPERM with the reason and its remedy in @why, in one line.
 */
int remote_access(const char *host_root, pid_t pid, struct buf *why);
