/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"

static int open_file(struct log_file *f)
{
	struct stat st;

	f->fd = open(f->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0644);
	if (f->fd < 0)
		return -errno;
	if (fstat(f->fd, &st) < 0)
		return -errno;
	f->is_regular = S_ISREG(st.st_mode);
	f->size = f->is_regular ? (uint64_t)st.st_size : 0;
	return 0;
}

int log_file_open(const char *path, uint64_t max_bytes, unsigned int backups, struct log_file *out)
{
	struct log_file f = { .path = str_dup(str_of(path)), .max_bytes = max_bytes, .backups = backups, .fd = -1 };
	int r = f.path ? io_make_folders(path) : -ENOMEM;

	r = r ? r : open_file(&f);
	if (r < 0) {
		log_file_release(&f);
		return r;
	}
	*out = f;
	return 0;
}

static void name_of(const struct log_file *f, unsigned int number, struct buf *out)
{
	buf_clear(out);
	buf_adds(out, str_of(f->path));
	if (number)
		buf_addf(out, ".%u", number);
}

/* The oldest is written over. A file that cannot be renamed goes on as it is; one that somebody moved away does not: it
 * would grow without an end where nobody sees it. */
static void rotate(struct log_file *f)
{
	scoped(buf_release) struct buf from = BUF_INIT(KIB(16)), to = BUF_INIT(KIB(16));

	for (unsigned int i = f->backups; i > 0; i--) {
		name_of(f, i - 1, &from);
		name_of(f, i, &to);
		if (rename(buf_cstr(&from), buf_cstr(&to)) < 0 && i == 1 && errno != ENOENT)
			return;
	}
	closep(&f->fd);
	ignore(open_file(f)); /* tried again at the next line */
}

/* Others may have removed the file or cut it. */
static void look_again(struct log_file *f)
{
	struct stat st;

	if (f->fd < 0 || fstat(f->fd, &st) < 0 || !f->is_regular)
		return;
	f->size = (uint64_t)st.st_size;
	if (!st.st_nlink)
		closep(&f->fd);
}

bool log_file_write(struct log_file *f, const char *lines, size_t size)
{
	bool is_written;

	look_again(f);
	if (f->fd < 0 && open_file(f) < 0)
		return false;
	if (f->max_bytes && f->backups && f->size && f->size + size > f->max_bytes)
		rotate(f);
	if (f->fd < 0)
		return false;
	is_written = io_write_all(f->fd, lines, size) == 0;
	if (is_written)
		f->size += size;
	else if (f->is_regular) /* half a line would have the next one behind it */
		ignore(ftruncate(f->fd, (off_t)f->size));
	return is_written;
}

void log_file_release(struct log_file *f)
{
	closep(&f->fd);
	free(f->path);
	f->path = NULL;
}
