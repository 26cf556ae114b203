/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process_info.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cur.h"
#include "base/io.h"
#include "proc/proc_read.h"
#include "runtime/target_files.h"

/* As much of a command line as counts; a longer one is no reason to know nothing. */
int process_info_argv(int proc_dir, size_t max, struct buf *out)
{
	scoped(closep) int fd = openat(proc_dir, "cmdline", O_RDONLY | O_CLOEXEC);
	char *bytes = buf_reserve(out, max);
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (!bytes)
		return -ENOMEM;
	while (out->len < max) {
		n = read(fd, bytes + out->len, max - out->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		buf_commit(out, (size_t)n);
	}
	return 0;
}

/* A path of /proc as the process sees it: in a chroot they start at our own root. */
struct str process_info_inside(struct str path, struct str root)
{
	if (root.len <= 1 || !str_starts(path, root) || (path.len > root.len && path.ptr[root.len] != '/'))
		return path;
	return path.len == root.len ? STR("/") : str_skip(path, root.len);
}

char *process_info_link(int proc_dir, const char *name)
{
	scoped(freep) char *path = proc_link_read(proc_dir, name), *root = proc_link_read(proc_dir, "root");

	return path ? str_dup(process_info_inside(str_of(path), str_of(root))) : NULL;
}

/* The class of an exception for an error: what gProfiler would have written. */
static const char *error_class(int e)
{
	switch (-e) {
	case ENOENT:
		return "FileNotFoundError";
	case EACCES:
	case EPERM:
		return "PermissionError";
	case ESRCH:
		return "ProcessLookupError";
	case EBADMSG:
	case ENOTSUP:
		return "ELFError";
	default:
		return "OSError";
	}
}

void process_info_add(struct json_out *j, struct str key, const struct buf *text, int r)
{
	char error[64];

	json_out_key(j, key);
	snprintf(error, sizeof(error), "error: %s", error_class(r));
	json_out_string(j, r < 0 ? str_of(error) : buf_str(text));
}

int process_info_open_exe(int proc_dir)
{
	scoped(closep) int path = openat(proc_dir, "exe", O_PATH | O_CLOEXEC);
	struct stat st;

	return path < 0 ? -errno : io_open_regular(path, &st);
}

/* The file name that exec was given. Small pieces: the text stands at the end of the stack's memory. Source: proc(5),
 * getauxval(3). */
int process_info_execfn(const struct runtime_target *target, struct buf *out)
{
	uint64_t at;
	int r = proc_auxv(target->proc_dir, AT_EXECFN, &at);

	if (r == -ENODATA)
		return -EIO;
	while (r == 0 && out->len < TARGET_PATH_MAX) {
		char piece[16];
		size_t n = sizeof(piece) - at % sizeof(piece);

		r = target->read(target->self, piece, (uint32_t)n, at);
		if (r < 0)
			break;
		buf_add(out, piece, strnlen(piece, n));
		if (strnlen(piece, n) < n)
			break;
		at += n;
	}
	return r < 0 ? r : out->error;
}

int process_info_exe(int proc_dir, struct buf *out)
{
	scoped(freep) char *path = process_info_link(proc_dir, "exe");
	char first;

	if (!path)
		return readlinkat(proc_dir, "exe", &first, 1) < 0 ? -errno : -ENOMEM;
	buf_adds(out, str_of(path));
	return out->error;
}

int process_info_arch(int proc_dir, struct buf *out)
{
	scoped(closep) int fd = process_info_open_exe(proc_dir);
	uint8_t head[20];
	int r = fd < 0 ? fd : io_pread_all(fd, head, sizeof(head), 0);
	struct cur c = cur_of(head + 18, 2);
	uint16_t machine = r == 0 ? cur_le16(&c) : 0;

	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	if (memcmp(head, ELFMAG, SELFMAG) != 0)
		return -EBADMSG;
	if (machine == EM_X86_64)
		buf_adds(out, STR("x86_64"));
	else if (machine == EM_AARCH64)
		buf_adds(out, STR("aarch64"));
	else
		return -ENOTSUP;
	return out->error;
}
