/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process_info.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cur.h"
#include "base/io.h"
#include "proc/maps.h"
#include "proc/proc_read.h"
#include "runtime/elf_id.h"
#include "runtime/target_files.h"

#define MAPS_MAX MIB(16)
#define TEXT_MAX KIB(8)

/* As much of a command line as counts; a longer one is no reason to know nothing. */
static int read_texts(int proc_dir, const char *name, size_t max, struct buf *out)
{
	scoped(closep) int fd = openat(proc_dir, name, O_RDONLY | O_CLOEXEC);
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

int process_info_argv(int proc_dir, size_t max, struct buf *out)
{
	return read_texts(proc_dir, "cmdline", max, out);
}

int process_info_environment(const struct launched *l, size_t max, struct buf *out)
{
	return read_texts(l->proc_dir, "environ", max, out);
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

/* ---- files ---- */

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all(*(const int *)self, dst, size, offset);
}

static int id_of(const struct runtime_target *target, const int *fd, struct buf *out)
{
	struct reader in = { .read = read_fd, .self = (void *)(uintptr_t)fd };
	struct stat st;

	if (fstat(*fd, &st) < 0)
		return -errno;
	in.size = (uint64_t)st.st_size;
	return target->ids ? elf_ids_get(target->ids, &st, &in, out) : elf_id(&in, out);
}

int process_info_exe_id(const struct runtime_target *target, struct buf *out)
{
	scoped(closep) int fd = process_info_open_exe(target->proc_dir);

	return fd < 0 ? fd : id_of(target, &fd, out);
}

int process_info_open_library(const struct runtime_target *target, struct str prefix)
{
	scoped(closep) int root = openat(target->proc_dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped(buf_release) struct buf text = BUF_INIT(MAPS_MAX), path = BUF_INIT(TEXT_MAX);
	scoped(freep) char *root_path = proc_link_read(target->proc_dir, "root");
	int r = io_read_file_at(target->proc_dir, "maps", &text);
	struct maps_line line;
	struct str rest;
	uint64_t size;

	if (r < 0)
		return r;
	rest = buf_str(&text);
	while ((r = maps_next(&rest, &line)) != 0) {
		if (r < 0 || !str_starts(str_base(line.path), prefix))
			continue;
		buf_adds(&path, process_info_inside(line.path, str_of(root_path)));
		(void)buf_cstr(&path);
		return path.error ? path.error : target_open(root, path.ptr, &size);
	}
	return -ENODATA;
}

int process_info_library_id(const struct runtime_target *target, struct str prefix, struct buf *out)
{
	scoped(closep) int fd = process_info_open_library(target, prefix);

	return fd < 0 ? fd : id_of(target, &fd, out);
}

void process_info_links_of(const struct elf *elf, struct process_info_links *out)
{
	*out = (struct process_info_links){ 0 };
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		char loader[256];
		size_t size = (size_t)MIN(s->file_size, (uint64_t)sizeof(loader));

		out->is_dynamic |= s->type == PT_DYNAMIC;
		if (s->type != PT_INTERP || elf->in.read(elf->in.self, loader, size, s->offset) < 0)
			continue;
		out->libc = str_search(str_n(loader, size), STR("musl")) >= 0 ? "musl" : "glibc";
	}
}

int process_info_links_read(int proc_dir, struct process_info_links *out)
{
	scoped(elf_release) struct elf elf = { 0 };
	scoped(closep) int fd = process_info_open_exe(proc_dir);
	struct reader in = { .read = read_fd, .self = &fd };
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	in.size = (uint64_t)st.st_size;
	r = elf_parse(&in, &elf);
	if (r == 0)
		process_info_links_of(&elf, out);
	return r;
}

/* ---- members that several have ---- */

void process_info_add_text(struct json_out *j, const char *key, const char *text)
{
	json_out_key(j, str_of(key));
	if (text && *text)
		json_out_string(j, str_of(text));
	else
		json_out_raw(j, STR("null"));
}

void process_info_add_links(struct json_out *j, const struct process_info_links *links)
{
	process_info_add_text(j, "link", links->is_dynamic ? "dynamic" : "static");
	process_info_add_text(j, "libc", links->libc);
}

int process_info_end(struct json_out *j, const struct runtime_target *target, size_t before)
{
	scoped(buf_release) struct buf exe = BUF_INIT(TEXT_MAX), execfn = BUF_INIT(TEXT_MAX), arch = BUF_INIT(TEXT_MAX);
	int r = process_info_exe(target->proc_dir, &exe);

	process_info_add(j, STR("exe"), &exe, r);
	r = process_info_execfn(target, &execfn);
	process_info_add(j, STR("execfn"), &execfn, r);
	r = process_info_arch(target->proc_dir, &arch);
	process_info_add(j, STR("arch"), &arch, r);
	json_out_end(j, '}');
	if (faccessat(target->proc_dir, "stat", F_OK, 0) < 0) {
		j->out->len = before;
		return -ESRCH;
	}
	return j->out->error;
}

/* ---- a runtime without more to say ---- */

static int exe_path(const struct runtime_target *target, struct buf *out)
{
	return process_info_exe(target->proc_dir, out);
}

static int arch(const struct runtime_target *target, struct buf *out)
{
	return process_info_arch(target->proc_dir, out);
}

static void add_or_null(struct json_out *j, struct str key, const struct buf *text, int r)
{
	if (r == 0 && text->len) {
		process_info_add(j, key, text, r);
		return;
	}
	json_out_key(j, key);
	json_out_raw(j, STR("null"));
}

static int add_library(const struct runtime_target *target, const struct process_info_words *words, struct json_out *j)
{
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
	int r = process_info_library_id(target, words->library, &text);

	if (r == -ENOMEM || r == -ESRCH)
		return r;
	if (r == -ENODATA)
		add_or_null(j, words->library_key, &text, r);
	else
		process_info_add(j, words->library_key, &text, r);
	return 0;
}

static int add_members(const struct runtime_target *target, const struct process_info_words *words, struct json_out *j)
{
	static const struct {
		struct str key;
		int (*get)(const struct runtime_target *target, struct buf *out);
	} members[] = {
		{ { "exe_elfid", 9 }, process_info_exe_id },
		{ { NULL, 0 }, NULL }, /* the library's */
		{ { "exe", 3 }, exe_path },
		{ { "execfn", 6 }, process_info_execfn },
		{ { "arch", 4 }, arch },
	};
	scoped(buf_release) struct buf version = BUF_INIT(TEXT_MAX);
	int r = 0;

	buf_adds(&version, words->version);
	add_or_null(j, words->version_key, &version, version.error);
	for (size_t i = 0; i < ARRAY_SIZE(members) && r == 0; i++) {
		scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);

		if (!members[i].get) {
			r = add_library(target, words, j);
			continue;
		}
		r = members[i].get(target, &text);
		if (r == -ENOMEM || r == -ESRCH)
			return r;
		process_info_add(j, members[i].key, &text, r);
		r = 0;
	}
	return r;
}

int process_info_metadata(const struct runtime_target *target, const struct process_info_words *words, struct buf *json)
{
	struct json_out j = { .out = json };
	size_t before = json->len;
	int r;

	json_out_begin(&j, '{');
	r = add_members(target, words, &j);
	json_out_end(&j, '}');
	if (r == 0 &&
	    faccessat(target->proc_dir, "stat", F_OK, 0) < 0) /* it ended meanwhile: half of it is from nobody */
		r = -ESRCH;
	if (r < 0) {
		json->len = before;
		return r;
	}
	return json->error;
}
