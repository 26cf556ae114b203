/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of living interpreters, against what they and readelf-like facts say of themselves. */
#include "support.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "codec/json.h"
#include "runtime/elf_id.h"
#include "runtime/python/info.h"

#define PYTHON "/usr/bin/python3"

struct child {
	pid_t pid;
	int proc_dir, out;
	struct runtime_target target;
};

static int read_memory(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct iovec local = { dst, size }, remote = { (void *)(uintptr_t)at, size };
	ssize_t n = process_vm_readv(*(pid_t *)self, &local, 1, &remote, 1, 0);

	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EFAULT;
}

/* The whole file system once more, below @root, for us alone. */
static bool enter(const char *root)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("/", root, NULL, MS_BIND, NULL) && !chroot(root);
}

/* Starts a program in @cwd and waits for the first byte it writes. @root: NULL or a folder. */
static void start_below(struct child *c, const char *root, const char *cwd, char *const argv[])
{
	int ends[2];
	char path[64], byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	c->pid = fork();
	if (!c->pid) {
		if ((!root || enter(root)) && chdir(cwd) == 0 && dup2(ends[1], 1) == 1)
			execv(argv[0], argv);
		_exit(1);
	}
	close(ends[1]);
	c->out = ends[0];
	snprintf(path, sizeof(path), "/proc/%d", c->pid);
	c->proc_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	c->target = (struct runtime_target){
		.pid = (uint32_t)c->pid, .read = read_memory, .self = &c->pid, .host_root = "", .proc_dir = c->proc_dir
	};
	assert_int_equal(read(ends[0], &byte, 1), 1);
}

static void start(struct child *c, const char *cwd, char *const argv[])
{
	start_below(c, NULL, cwd, argv);
}

static void stop(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->out);
}

static void assert_has(const struct buf *json, const char *want)
{
	if (str_search(buf_str(json), str_of(want)) < 0) {
		print_message("'%s' is not in '" STR_FMT "'\n", want, STR_ARG(buf_str(json)));
		fail();
	}
}

static void metadata_of(const struct child *c, const char *version, struct buf *out)
{
	struct runtime_binary binary = { 0 };
	scoped(buf_release) struct buf again = BUF_INIT(KIB(64));
	struct str value, rest;

	snprintf(binary.version, sizeof(binary.version), "%s", version);
	assert_int_equal(python_metadata(&binary, &c->target, out), 0);
	print_message("  " STR_FMT "\n", STR_ARG(buf_str(out)));
	rest = buf_str(out);
	assert_int_equal(json_value(&rest, &value), 0);
	assert_int_equal(json_reformat(buf_str(out), &again), 0);
	assert_true(str_eq(buf_str(out), buf_str(&again)));
}

static void tells_of_a_program(void **state)
{
	char *const argv[] = { (char *)PYTHON, (char *)"app.py", NULL };
	char folder[] = "/tmp/hearth-app-XXXXXX", file[64], want[128];
	scoped(buf_release) struct buf json = BUF_INIT(KIB(64)), id = BUF_INIT(KIB(4));
	static const char source[] = "import time\nprint('.', flush=True)\ntime.sleep(60)\n";
	struct child c;

	(void)state;
	if (access(PYTHON, X_OK) < 0)
		skip_because("needs " PYTHON);
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/app.py", folder);
	assert_int_equal(io_replace_file(file, source, strlen(source)), 0);
	start(&c, folder, argv);
	assert_int_equal(python_application(&c.target, &id), 0);
	snprintf(want, sizeof(want), "python: app.py (%s)", file);
	assert_string_equal(buf_cstr(&id), want);
	metadata_of(&c, "3.11.2", &json);
	assert_has(&json, "{\"python_version\": \"Python 3.11.2\", \"exe_elfid\": \"buildid:");
	assert_has(&json, "\"libpython_elfid\": null, \"exe\": \"/usr/bin/python3");
	assert_has(&json, "\"execfn\": \"" PYTHON "\", \"arch\": \"");
	stop(&c);
	buf_clear(&id);
	assert_int_equal(python_application(&c.target, &id), -ENOENT);
	{
		struct runtime_binary binary = { .version = "3.11.2" };

		assert_int_equal(python_metadata(&binary, &c.target, &id), -ESRCH);
		assert_int_equal(id.len, 0);
	}
	close(c.proc_dir);
	assert_int_equal(unlink(file) | rmdir(folder), 0);
}

/* An interpreter of a version manager has its library beside it; both kinds of Python 2 exist. */
static const char *find_built(char path[256])
{
	static const char *const roots[] = { "/root/.pyenv/versions", "/opt/pyenv/versions" };

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		snprintf(path, 256, "%s/2.7.18/bin/python2.7", roots[i]);
		if (access(path, X_OK) == 0)
			return path;
	}
	skip_because("needs a Python 2.7.18 of a version manager");
	return NULL;
}

static void library_below(const char *root)
{
	scoped(buf_release) struct buf json = BUF_INIT(KIB(64));
	char path[256];
	char *const argv[] = { (char *)(uintptr_t)find_built(path), (char *)"-c",
			       (char *)"import sys,time; sys.stdout.write('.'); sys.stdout.flush(); time.sleep(60)",
			       NULL };
	struct child c;

	start_below(&c, root, "/", argv);
	metadata_of(&c, "2.7.18", &json);
	assert_has(&json, "\"libpython_elfid\": \"buildid:");
	assert_true(str_search(buf_str(&json), STR("\"sys_maxunicode\": \"65535\"")) >= 0 ||
		    str_search(buf_str(&json), STR("\"sys_maxunicode\": \"1114111\"")) >= 0);
	stop(&c);
	close(c.proc_dir);
}

static void tells_of_the_library(void **state)
{
	(void)state;
	library_below(NULL);
}

/* There /proc/PID/maps names files from our root, not from the process's. */
static void tells_of_the_library_in_a_chroot(void **state)
{
	char folder[] = "/tmp/hearth-root-XXXXXX", path[256];

	(void)state;
	if (geteuid() != 0)
		skip_because("chroot needs root");
	find_built(path);
	assert_non_null(mkdtemp(folder));
	library_below(folder);
	assert_int_equal(rmdir(folder), 0);
}

static void hashes_files_without_build_id(void **state)
{
	uint8_t elf[64] = { 0x7f, 'E', 'L', 'F', 2, 1, 1, [16] = 2, [18] = 62, [20] = 1, [52] = 64 };
	struct cur in = guard_page(elf, sizeof(elf));
	struct reader reader = reader_of(in.pos, sizeof(elf));
	scoped(buf_release) struct buf id = BUF_INIT(KIB(4));

	(void)state;
	assert_int_equal(elf_id(&reader, &id), 0);
	assert_string_equal(buf_cstr(&id), "sha1:9f8da8fa1ed12821800844b1d95702b46b3caa11");
	reader.size = ELF_ID_FILE_MAX + 1;
	assert_int_equal(elf_id(&reader, &id), -E2BIG);
	reader = reader_of("#!/bin/sh\n", 10);
	assert_int_equal(elf_id(&reader, &id), -EBADMSG);
}

struct counted {
	const uint8_t *bytes;
	size_t reads;
};

static int read_counted(void *self, void *dst, size_t size, uint64_t offset)
{
	struct counted *c = self;

	c->reads++;
	memcpy(dst, c->bytes + offset, size);
	return 0;
}

/* Each process of an interpreter asks for its file: it is read when it has changed, or was forgotten for others. */
static void reads_a_file_once(void **state)
{
	uint8_t elf[64] = { 0x7f, 'E', 'L', 'F', 2, 1, 1, [16] = 2, [18] = 62, [20] = 1, [52] = 64 };
	struct elf_ids *ids = calloc(1, sizeof(*ids));
	struct stat st = { .st_dev = 1, .st_ino = 2, .st_size = sizeof(elf) };
	struct counted c = { .bytes = elf };
	const struct reader in = { .read = read_counted, .self = &c, .size = sizeof(elf) };
	scoped(buf_release) struct buf first = BUF_INIT(KIB(4)), again = BUF_INIT(KIB(4)), other = BUF_INIT(KIB(64));
	size_t reads;

	(void)state;
	assert_non_null(ids);
	assert_int_equal(elf_ids_get(ids, &st, &in, &first), 0);
	reads = c.reads;
	assert_true(reads > 0);
	buf_addc(&again, '>');
	assert_int_equal(elf_ids_get(ids, &st, &in, &again), 0);
	assert_int_equal(c.reads, reads);
	assert_string_equal(buf_cstr(&again) + 1, buf_cstr(&first));
	st.st_ctim.tv_nsec++; /* written to */
	elf[8] = 1;
	assert_int_equal(elf_ids_get(ids, &st, &in, &other), 0);
	assert_true(c.reads > reads && !str_eq(buf_str(&other), buf_str(&first)));
	for (size_t i = 0; i < ELF_IDS_MAX; i++) {
		st.st_ino++;
		assert_int_equal(elf_ids_get(ids, &st, &in, &other), 0);
	}
	reads = c.reads;
	assert_int_equal(elf_ids_get(ids, &st, &in, &other), 0);
	assert_int_equal(c.reads, reads);
	st.st_ino = 2;
	assert_int_equal(elf_ids_get(ids, &st, &in, &other), 0);
	assert_true(c.reads > reads);
	free(ids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_of_a_program),
		cmocka_unit_test(tells_of_the_library),
		cmocka_unit_test(tells_of_the_library_in_a_chroot),
		cmocka_unit_test(hashes_files_without_build_id),
		cmocka_unit_test(reads_a_file_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
