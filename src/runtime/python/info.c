/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/python/info.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cur.h"
#include "base/io.h"
#include "codec/json.h"
#include "object/elf_find.h"
#include "proc/maps.h"
#include "proc/proc_read.h"
#include "runtime/elf_id.h"
#include "runtime/python/app.h"

#define MAPS_MAX MIB(16)
#define TEXT_MAX KIB(8)

struct info {
	const struct runtime_binary *binary;
	const struct runtime_target *target;
	int root; /* the process's root directory; -1: it cannot be opened */
};

static void info_release(struct info *i)
{
	closep(&i->root);
}

static int open_root(const struct runtime_target *target)
{
	return openat(target->proc_dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* ---- application ---- */

/* As much of a command line as counts; a longer one is no reason to know nothing. */
static int read_argv(int proc_dir, struct buf *out)
{
	scoped(closep) int fd = openat(proc_dir, "cmdline", O_RDONLY | O_CLOEXEC);
	char *bytes = buf_reserve(out, PYTHON_ARGV_MAX);
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (!bytes)
		return -ENOMEM;
	while (out->len < PYTHON_ARGV_MAX) {
		n = read(fd, bytes + out->len, PYTHON_ARGV_MAX - out->len);
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
static struct str inner_of(struct str path, struct str root)
{
	if (root.len <= 1 || !str_starts(path, root) || (path.len > root.len && path.ptr[root.len] != '/'))
		return path;
	return path.len == root.len ? STR("/") : str_skip(path, root.len);
}

static char *inner_path(int proc_dir, const char *name)
{
	scoped(freep) char *path = proc_link_read(proc_dir, name), *root = proc_link_read(proc_dir, "root");

	return path ? str_dup(inner_of(str_of(path), str_of(root))) : NULL;
}

int python_application(const struct runtime_target *target, struct buf *out)
{
	scoped(buf_release) struct buf argv = BUF_INIT(PYTHON_ARGV_MAX);
	scoped(closep) int root = open_root(target);
	scoped(freep) char *cwd = inner_path(target->proc_dir, "cwd");
	const struct target_files files = target_files_below(&root);
	const struct python_app app = { .cwd = str_of(cwd), .files = &files };
	struct python_app with_argv = app;
	int r = read_argv(target->proc_dir, &argv);

	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	with_argv.argv = buf_str(&argv);
	return python_app_id(&with_argv, out);
}

/* ---- metadata ---- */

/* The class of Python's exception for an error: what gProfiler would have written. */
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

/* A member: what @text holds, or why it holds nothing. */
static void add_member(struct json_out *j, struct str key, const struct buf *text, int r)
{
	char error[64];

	json_out_key(j, key);
	snprintf(error, sizeof(error), "error: %s", error_class(r));
	json_out_string(j, r < 0 ? str_of(error) : buf_str(text));
}

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all(*(const int *)self, dst, size, offset);
}

static int id_of_fd(const struct info *i, const int *fd, struct buf *out)
{
	struct reader in = { .read = read_fd, .self = (void *)(uintptr_t)fd };
	struct stat st;

	if (fstat(*fd, &st) < 0)
		return -errno;
	in.size = (uint64_t)st.st_size;
	return i->target->ids ? elf_ids_get(i->target->ids, &st, &in, out) : elf_id(&in, out);
}

static int open_exe(const struct info *i)
{
	scoped(closep) int path = openat(i->target->proc_dir, "exe", O_PATH | O_CLOEXEC);
	struct stat st;

	return path < 0 ? -errno : io_open_regular(path, &st);
}

static int exe_id(const struct info *i, struct buf *out)
{
	scoped(closep) int fd = open_exe(i);

	return fd < 0 ? fd : id_of_fd(i, &fd, out);
}

/* The first mapped file called libpython...; -ENODATA when there is none. */
static int find_library(const struct info *i, struct buf *path)
{
	scoped(buf_release) struct buf text = BUF_INIT(MAPS_MAX);
	scoped(freep) char *root = proc_link_read(i->target->proc_dir, "root");
	int r = io_read_file_at(i->target->proc_dir, "maps", &text);
	struct maps_line line;
	struct str rest;

	if (r < 0)
		return r;
	rest = buf_str(&text);
	while ((r = maps_next(&rest, &line)) != 0) {
		if (r < 0 || !str_starts(str_base(line.path), STR("libpython")))
			continue;
		buf_adds(path, inner_of(line.path, str_of(root)));
		(void)buf_cstr(path);
		return path->error;
	}
	return -ENODATA;
}

static int library_id(const struct info *i, struct buf *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(TEXT_MAX);
	int r = find_library(i, &path);
	scoped(closep) int fd = -1;
	uint64_t size;

	if (r < 0)
		return r;
	fd = target_open(i->root, path.ptr, &size);
	return fd < 0 ? fd : id_of_fd(i, &fd, out);
}

/* The file name that exec was given. Small pieces: the text stands at the end of the stack's memory. Source: proc(5),
 * getauxval(3). */
static int execfn(const struct info *i, struct buf *out)
{
	uint64_t at;
	int r = proc_auxv(i->target->proc_dir, AT_EXECFN, &at);

	if (r == -ENODATA)
		return -EIO;
	while (r == 0 && out->len < TARGET_PATH_MAX) {
		char piece[16];
		size_t n = sizeof(piece) - at % sizeof(piece);

		r = i->target->read(i->target->self, piece, (uint32_t)n, at);
		if (r < 0)
			break;
		buf_add(out, piece, strnlen(piece, n));
		if (strnlen(piece, n) < n)
			break;
		at += n;
	}
	return r < 0 ? r : out->error;
}

static int exe_path(const struct info *i, struct buf *out)
{
	scoped(freep) char *path = inner_path(i->target->proc_dir, "exe");
	char first;

	if (!path)
		return readlinkat(i->target->proc_dir, "exe", &first, 1) < 0 ? -errno : -ENOMEM;
	buf_adds(out, str_of(path));
	return out->error;
}

static int arch(const struct info *i, struct buf *out)
{
	scoped(closep) int fd = open_exe(i);
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

/* Wide and narrow builds of Python 2 call their functions differently, so that extensions of the other kind do not
 * load. Source: CPython 2.7, Include/unicodeobject.h. */
static int max_unicode(const struct info *i, struct buf *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(TEXT_MAX);
	scoped(elf_release) struct elf elf = { 0 };
	scoped(closep) int fd = -1;
	struct reader in = { .read = read_fd, .self = &fd };
	struct elf_dynamic dynamic;
	struct elf_found found;
	struct stat st;
	uint64_t size;
	int r = find_library(i, &path);

	fd = r == 0 ? target_open(i->root, path.ptr, &size) : open_exe(i);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	in.size = (uint64_t)st.st_size;
	r = elf_parse(&in, &elf);
	r = r ? r : elf_dynamic_read(&elf, &dynamic);
	if (r < 0)
		return r;
	if (elf_dynamic_find(&elf, &dynamic, "PyUnicodeUCS4_FromUnicode", &found) == 0)
		buf_adds(out, STR("1114111"));
	else if (elf_dynamic_find(&elf, &dynamic, "PyUnicodeUCS2_FromUnicode", &found) == 0)
		buf_adds(out, STR("65535"));
	else
		return -ENOTSUP;
	return out->error;
}

static void add_version(const struct info *i, struct json_out *j)
{
	char text[sizeof("Python ") + sizeof(i->binary->version)];

	json_out_key(j, STR("python_version"));
	snprintf(text, sizeof(text), "Python %s", i->binary->version);
	if (i->binary->version[0])
		json_out_string(j, str_of(text));
	else
		json_out_raw(j, STR("null"));
}

int python_metadata(const struct runtime_binary *binary, const struct runtime_target *target, struct buf *json)
{
	static const struct {
		struct str key;
		int (*get)(const struct info *i, struct buf *out);
		bool only_2, may_lack; /* may_lack: null when there is no such thing */
	} members[] = {
		{ { "exe_elfid", 9 }, exe_id, false, false },
		{ { "libpython_elfid", 15 }, library_id, false, true },
		{ { "sys_maxunicode", 14 }, max_unicode, true, false },
		{ { "exe", 3 }, exe_path, false, false },
		{ { "execfn", 6 }, execfn, false, false },
		{ { "arch", 4 }, arch, false, false },
	};
	scoped(info_release) struct info i = { binary, target, open_root(target) };
	struct json_out j = { .out = json };
	size_t before = json->len;

	json_out_begin(&j, '{');
	add_version(&i, &j);
	for (size_t m = 0; m < ARRAY_SIZE(members); m++) {
		scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
		int r;

		if (members[m].only_2 && binary->version[0] != '2')
			continue;
		r = members[m].get(&i, &text);
		if (r == -ENOMEM || r == -ESRCH) {
			json->len = before;
			return r;
		}
		if (r == -ENODATA && members[m].may_lack) {
			json_out_key(&j, members[m].key);
			json_out_raw(&j, STR("null"));
			continue;
		}
		add_member(&j, members[m].key, &text, r);
	}
	json_out_end(&j, '}');
	if (faccessat(target->proc_dir, "stat", F_OK, 0) < 0) { /* it ended meanwhile: half of it is from nobody */
		json->len = before;
		return -ESRCH;
	}
	return json->error;
}
