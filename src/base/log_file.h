/* SPDX-License-Identifier: Apache-2.0 */
/* A log file that does not grow for ever: full, it becomes FILE.1, what was that FILE.2, and so on, as
 * logging.handlers.RotatingFileHandler has it (which with max_bytes or backups 0 never begins a new one). Not for
 * several threads. */
#pragma once

#include "base/str.h"

struct log_file {
	char *path; /* owned */
	uint64_t max_bytes, size;
	unsigned int backups;
	int fd;
	bool is_regular;
};

/** log_file_open - folders are made, too. A link in the file's place is refused. Return: 0 or -errno. */
int log_file_open(const char *path, uint64_t max_bytes, unsigned int backups, struct log_file *out) warn_unused;
/** log_file_write - whole lines. A file that was removed is made anew. Return: false when they are lost. */
bool log_file_write(struct log_file *f, const char *lines, size_t size);
void log_file_release(struct log_file *f);
