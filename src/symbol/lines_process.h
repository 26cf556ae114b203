/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's end of the reader of debug information: start, packets with deadlines, end. */
#pragma once

#include <sys/types.h>

#include "base/buf.h"

struct lines_process {
	int fd; /* -1: none runs */
	pid_t pid;
};

#define LINES_PROCESS_INIT          \
	{                           \
		.fd = -1, .pid = -1 \
	}

/** lines_process_start - Return: 0 once it is confined and waits; -ENOTSUP: it @needs_libdw, and there is none; -errno.
 */
int lines_process_start(struct lines_process *p, uint64_t patience_ns, bool needs_libdw) warn_unused;
/** lines_process_send - one packet with up to two descriptors. Return: 0 or -errno. Does not wait: nothing is queued.
 */
int lines_process_send(struct lines_process *p, const struct buf *message, const int *fds, size_t fd_count) warn_unused;
/**
 * lines_process_receive - one packet
 * @bytes: room for LINES_MESSAGE_MAX
 * Return: its size; -ETIMEDOUT; -EPIPE when the reader is gone; -EBADMSG for a packet that is too long; -errno.
 */
int lines_process_receive(struct lines_process *p, void *bytes, uint64_t patience_ns) warn_unused;
/** lines_process_stop - kill it and wait for its end, at most about 2 s. Does nothing when none runs. */
void lines_process_stop(struct lines_process *p);
