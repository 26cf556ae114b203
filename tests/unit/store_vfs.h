/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that fails on command: SQLite's own file layer with a fault in front (sqlite.org/vfs.html). */
#pragma once

#include <stdint.h>

enum vfs_fault { VFS_OK, VFS_FULL, VFS_WRITE, VFS_SYNC, VFS_KILL /* at a write or sync: SIGKILL */ };

/** store_vfs_install - for all databases opened from now on. */
void store_vfs_install(void);
/** store_vfs_fail - let @after operations of the kind pass, then fail every one until told otherwise. */
void store_vfs_fail(enum vfs_fault fault, uint64_t after);
