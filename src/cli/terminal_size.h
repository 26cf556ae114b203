/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

/** terminal_width - columns of the terminal behind a descriptor; 0 where there is none. */
static inline size_t terminal_width(int fd)
{
	struct winsize size;

	return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/** terminal_height - its lines, in the same way. */
static inline size_t terminal_height(int fd)
{
	struct winsize size;

	return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}
