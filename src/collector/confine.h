/* SPDX-License-Identifier: Apache-2.0 */
/* What a server may still ask of the kernel once it listens: files of its folder, its sockets, threads, memory, time.
 */
#pragma once

#include "base/buf.h"

/**
 * confine_server - from now on, in this thread and those it starts, other system calls fail with EPERM
 *
 * @connects: it asks others for something (scrapes): sockets of its own may be made, of the internet and to find names
 *
 * Otherwise no new sockets; no programs, no other processes, no kernel interfaces. Does nothing in a build with
 * sanitizers, whose own calls are others. Return: 0 or -errno. @why: one line on failure.
 */
int confine_server(bool connects, struct buf *why) warn_unused;
