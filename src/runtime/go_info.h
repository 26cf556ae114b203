/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of a Go program, which has no runtime to be walked: its frames are native. */
#pragma once

#include "object/elf.h"
#include "runtime/process_info.h"

#define GO_VERSION_MAX 64

struct go_info {
	char version[GO_VERSION_MAX]; /* "go1.18.3"; empty: the file does not say */
	bool is_stripped;
	struct process_info_links links;
};

/** go_info_read - Return: 0; -ENOENT: no Go program; -EBADMSG, -ENOMEM or the reader's error. Pure. */
int go_info_read(const struct elf *elf, struct go_info *out) warn_unused;
/** go_info_metadata - append gProfiler's object of a process. Return: as go_info_read(); -ESRCH: it is gone. */
int go_info_metadata(const struct runtime_target *target, struct buf *json) warn_unused;
