/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of /proc/PID/maps. Pure. Source: linux 6.1, fs/proc/task_mmu.c, show_map_vma(). */
#pragma once

#include "base/str.h"

struct maps_line {
	uint64_t start, end; /* start < end */
	uint64_t offset;     /* in the file */
	uint64_t inode;      /* 0: no file */
	uint32_t device_major, device_minor;
	bool readable, writable, executable, shared;
	bool deleted;    /* the name was followed by " (deleted)", which is cut off */
	struct str path; /* borrowed; a newline in it stands as \012; empty for anonymous memory */
};

/**
 * maps_next - the next line
 * @rest: advanced behind the line in any case
 *
 * Return: 1 and *out; 0 at the end; -EBADMSG when the line is malformed or cut off (the next one may be fine).
 */
int maps_next(struct str *rest, struct maps_line *out);
