/* SPDX-License-Identifier: Apache-2.0 */
/* What programs that record a process's memory share: reading it, and pieces as tests/walk/pieces.h reads them. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"

/** recorder_give_up - say why, and end. @error: errno, or -errno */
static inline _Noreturn void recorder_give_up(const char *what, int error)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(error < 0 ? -error : error));
	exit(2);
}

/** recorder_read_fd - struct reader's read(). @self: int, a descriptor */
static inline int recorder_read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all(*(int *)self, dst, size, offset);
}

/** recorder_read - @size bytes of a process, or -EFAULT. */
static inline int recorder_read(pid_t pid, void *dst, uint32_t size, uint64_t at)
{
	struct iovec to = { dst, size }, from = { (void *)(uintptr_t)at, size };

	return process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

/** recorder_put - bytes, padded up to a multiple of 8. */
static inline void recorder_put(struct buf *out, const void *bytes, size_t size)
{
	static const uint8_t zeros[8];

	buf_add(out, bytes, size);
	buf_add(out, zeros, (8 - size % 8) % 8);
}

/** recorder_put_piece - address, size and bytes of what was read. */
static inline void recorder_put_piece(struct buf *out, uint64_t at, const void *bytes, size_t size)
{
	const uint64_t head[2] = { at, size };

	recorder_put(out, head, sizeof(head));
	recorder_put(out, bytes, size);
}

/** recorder_write - the file @path. Return: 0 or -errno. */
static inline int recorder_write(const char *path, const struct buf *bytes)
{
	scoped(closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	return fd < 0 ? -errno : io_write_all(fd, bytes->ptr, bytes->len);
}
