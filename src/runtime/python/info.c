/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/python/info.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cur.h"
#include "base/io.h"
#include "codec/json.h"
#include "object/elf_find.h"
#include "runtime/process_info.h"
#include "runtime/python/app.h"

#define TEXT_MAX KIB(8)

struct info {
	const struct runtime_binary *binary;
	const struct runtime_target *target;
};

/* ---- application ---- */

int python_application(const struct runtime_target *target, struct buf *out)
{
	scoped(buf_release) struct buf argv = BUF_INIT(PYTHON_ARGV_MAX);
	scoped(closep) int root = openat(target->proc_dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped(freep) char *cwd = process_info_link(target->proc_dir, "cwd");
	const struct target_files files = target_files_below(&root);
	const struct python_app app = { .cwd = str_of(cwd), .files = &files };
	struct python_app with_argv = app;
	int r = process_info_argv(target->proc_dir, PYTHON_ARGV_MAX, &argv);

	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	with_argv.argv = buf_str(&argv);
	return python_app_id(&with_argv, out);
}

/* ---- metadata ---- */

#define LIBRARY STR("libpython")

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all(*(const int *)self, dst, size, offset);
}

static int exe_id(const struct info *i, struct buf *out)
{
	return process_info_exe_id(i->target, out);
}

static int library_id(const struct info *i, struct buf *out)
{
	return process_info_library_id(i->target, LIBRARY, out);
}

/* Wide and narrow builds of Python 2 call their functions differently, so that extensions of the other kind do not
 * load. Source: CPython 2.7, Include/unicodeobject.h. */
static int max_unicode(const struct info *i, struct buf *out)
{
	scoped(elf_release) struct elf elf = { 0 };
	scoped(closep) int fd = process_info_open_library(i->target, LIBRARY);
	struct reader in = { .read = read_fd, .self = &fd };
	struct elf_dynamic dynamic;
	struct elf_found found;
	struct stat st;
	int r;

	if (fd == -ENODATA)
		fd = process_info_open_exe(i->target->proc_dir);
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

static int exe_path(const struct info *i, struct buf *out)
{
	return process_info_exe(i->target->proc_dir, out);
}

static int execfn(const struct info *i, struct buf *out)
{
	return process_info_execfn(i->target, out);
}

static int arch(const struct info *i, struct buf *out)
{
	return process_info_arch(i->target->proc_dir, out);
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
	const struct info i = { binary, target };
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
		process_info_add(&j, members[m].key, &text, r);
	}
	json_out_end(&j, '}');
	if (faccessat(target->proc_dir, "stat", F_OK, 0) < 0) { /* it ended meanwhile: half of it is from nobody */
		json->len = before;
		return -ESRCH;
	}
	return json->error;
}
