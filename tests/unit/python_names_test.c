/* SPDX-License-Identifier: Apache-2.0 */
/* What code objects are called: records by hand, and the memory of every installed interpreter. */
#include "support.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "proc/mappings.h"
#include "proc/proc_read.h"
#include "runtime/python/lines.h"
#include "runtime/python/names.h"
#include "runtime/registry.h"
#include "runtime/runtimes.h"
#include "walk/walk_python.h"

/* ---- records ---- */

static void add_padded(struct buf *b, const void *bytes, size_t size)
{
	static const uint8_t zeros[8];

	buf_add(b, bytes, size);
	buf_add(b, zeros, align_up(size, 8) - size);
}

struct record {
	const char *name;
	uint8_t file_text, name_text;
	const char *file_bytes;
	uint16_t file_size;
	const char *name_bytes;
	uint16_t name_size;
	uint32_t cut; /* so much longer in the target */
	const char *want_file, *want_name;
	bool want_cut;
	int result;
};

#define BYTES(text) text, sizeof(text) - 1

static const struct record records[] = {
	{ "plain", 1, 1, BYTES("/a.py"), BYTES("A.run"), 0, "/a.py", "A.run", false, 0 },
	{ "Latin-1", 2, 2, BYTES("/\xe9.py"), BYTES("na\xefve"), 0, "/é.py", "naïve", false, 0 },
	{ "UCS2", 3, 3, BYTES("/\0\xe5\x65\x2c\x67"), BYTES("\xa2\x95"), 0, "/日本", "関", false, 0 },
	{ "UCS4", 4, 4, BYTES("\x00\xf6\x01\x00"), BYTES("x\0\0\0"), 0, "\xf0\x9f\x98\x80", "x", false, 0 },
	{ "half a pair of UTF-16", 3, 1, BYTES("\x3d\xd8"), BYTES("f"), 0, "\xef\xbf\xbd", "f", false, 0 },
	{ "2.7 and UTF-8", 1, 1, BYTES("/\xc3\xa9.py"), BYTES("f"), 0, "/é.py", "f", false, 0 },
	{ "2.7 and something else", 1, 1, BYTES("/\xe9.py"), BYTES("f"), 0, "/é.py", "f", false, 0 },
	{ "cut in a character", 1, 1, BYTES("/a\xe6\x97"), BYTES("f"), 9, "/a", "f", true, 0 },
	{ "an odd byte of UCS2", 3, 1, BYTES("a\0b"), BYTES("f"), 9, "a", "f", true, 0 },
	{ "empty", 1, 1, BYTES(""), BYTES(""), 0, "", "", false, 0 },
	{ "no file", 0, 1, BYTES(""), BYTES("f"), 0, "", "f", true, 0 },
	{ "no name", 1, 0, BYTES("/a.py"), BYTES(""), 0, "", "", false, -ENODATA },
	{ "a kind that is none", 1, 77, BYTES("/a.py"), BYTES("f"), 0, "", "", false, -ENODATA },
	{ "longer than it is", 2, 2, BYTES("/a.py"), BYTES("inner\0\1\2"), 9, "", "", false, -ENODATA },
};

static void records_by_hand(void **state)
{
	static const uint8_t table[] = { 0x88, 1, 2 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
		const struct record *c = &records[i];
		const struct abi_python_name head = {
			.lines_at = 0x1000,
			.first_line = 7,
			.file_size = c->file_size + c->cut,
			.name_size = c->name_size,
			.lines_size = 100,
			.file_sent = c->file_size,
			.name_sent = c->name_size,
			.lines_sent = sizeof(table),
			.file_text = c->file_text,
			.name_text = c->name_text,
			.version_major = 3,
			.version_minor = 11,
		};
		scoped(buf_release) struct buf bytes = BUF_INIT(KIB(4)), room = BUF_INIT(KIB(4));
		struct runtime_function f = { 0 };
		struct cur guarded;

		print_message("  %s\n", c->name);
		add_padded(&bytes, &head, sizeof(head));
		add_padded(&bytes, c->file_bytes, c->file_size);
		add_padded(&bytes, c->name_bytes, c->name_size);
		buf_add(&bytes, table, sizeof(table));
		for (size_t size = 0; size < bytes.len; size++) { /* every end that is too early */
			guarded = guard_page(bytes.ptr, size);
			assert_true(python_decode_name(guarded.pos, size, &room, &f) < 0);
			buf_clear(&room);
		}
		guarded = guard_page(bytes.ptr, bytes.len);
		assert_int_equal(python_decode_name(guarded.pos, bytes.len, &room, &f), c->result);
		if (c->result < 0)
			continue;
		assert_true(str_eq(f.file, str_of(c->want_file)));
		assert_true(str_eq(f.name, str_of(c->want_name)));
		assert_int_equal(f.is_cut, c->want_cut);
		assert_int_equal(f.first_line, 7);
		assert_int_equal(f.lines.size, sizeof(table));
		assert_int_equal(f.lines_whole, 100);
		assert_int_equal(f.lines_at, 0x1000);
		assert_int_equal(f.version_major * 100 + f.version_minor, 311);
	}
}

/* ---- memory ---- */

/* Says where some code objects lie and what they are called, then waits. */
static const char program[] =
	"# -*- coding: utf-8 -*-\n"
	"import sys, os, json, argparse\n"
	"def show(co, qualified):\n"
	"  name = qualified if sys.version_info >= (3, 11) else co.co_name\n"
	"  t = bytearray(co.co_linetable if sys.version_info >= (3, 10) else co.co_lnotab)\n"
	"  out = '%d %d %d %s\\t%s\\n' % (id(co), co.co_firstlineno, len(t), co.co_filename, name)\n"
	"  if sys.version_info >= (3, 0): out = out.encode('utf-8', 'replace')\n"
	"  os.write(1, out)\n"
	"show(json.dumps.__code__, 'dumps')\n"
	"show(argparse.ArgumentParser.parse_known_args.__code__, 'ArgumentParser.parse_known_args')\n"
	"keep = []\n"
	"names = ['f' * 300]\n"
	"if sys.version_info >= (3, 0): names += [u'na\\xefve', u'\\u95a2\\u6570', u'\\U0001d5ba' * 2, u'g' + "
	"u'\\u95a2' * 200]\n"
	"for i, n in enumerate(names):\n"
	"  d = {}\n"
	"  exec(compile(u'\\n' * i + u'def %s(): pass' % n, '/tmp/' + n.encode('utf-8').decode('utf-8') + '.py' if "
	"sys.version_info >= (3, 0) else '/tmp/x' + 'y' * 300, 'exec'), d)\n"
	"  f = [v for v in d.values() if hasattr(v, '__code__')][0]\n"
	"  keep.append(f)\n"
	"  show(f.__code__, f.__name__)\n"
	"os.close(1)\n"
	"sys.stdin.read()\n";

struct told { /* what the engine finds out about the interpreter */
	pthread_mutex_t lock;
	uint8_t info[RUNTIME_INFO_MAX];
	size_t size, recalls;
};

static int told_set(void *self, enum abi_runtime runtime, uint32_t pid, const void *info, size_t size)
{
	struct told *t = self;

	(void)runtime;
	(void)pid;
	pthread_mutex_lock(&t->lock);
	memcpy(t->info, info, size);
	t->size = size;
	pthread_mutex_unlock(&t->lock);
	return 0;
}

static void told_recall(void *self)
{
	struct told *t = self;

	pthread_mutex_lock(&t->lock);
	t->recalls++;
	pthread_mutex_unlock(&t->lock);
}

static size_t recalls(struct told *t)
{
	size_t count;

	pthread_mutex_lock(&t->lock);
	count = t->recalls;
	pthread_mutex_unlock(&t->lock);
	return count;
}

struct memory {
	int fd;
	int fail_at; /* this read and all behind it fail; 0: none */
	int reads;
};

static int read_memory(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct memory *m = self;

	if (++m->reads == m->fail_at)
		return -EFAULT;
	return pread(m->fd, dst, size, (off_t)at) == (ssize_t)size ? 0 : -EFAULT;
}

struct child {
	pid_t pid;
	int in;
	FILE *out;
};

static void start(const char *path, struct child *c)
{
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (!c->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		setenv("PYTHONIOENCODING", "utf-8", 1);
		setenv("PYTHONUTF8", "1", 1);
		execl(path, path, "-c", program, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = fdopen(out[0], "r");
	assert_non_null(c->out);
}

static void stop(struct child *c)
{
	int status;

	fclose(c->out);
	close(c->in);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_int_equal(status, 0);
}

struct engine {
	struct files *files;
	struct buf scratch;
	struct mapping_reader reader;
	struct runtimes *runtimes;
	struct program program;
	int dir;
};

/* Attached to the process: what the walker is told of it is in @told. */
static void engine_open(struct engine *e, pid_t pid, struct told *told, size_t name_bytes)
{
	const struct runtime_sink sink = { .set = told_set, .recall = told_recall, .self = told };
	const struct runtimes_config cfg = {
		.host_root = "", .sink = &sink, .clock = &clock_system, .name_bytes = name_bytes
	};
	struct mappings maps = { 0 };
	struct proc_facts facts;
	bool ready = false;

	*e = (struct engine){ .scratch = BUF_INIT(MIB(4)), .program = { .pid = (uint32_t)pid } };
	e->dir = proc_dir_open("", e->program.pid);
	assert_int_equal(files_open(64, &e->files), 0);
	mapping_reader_init(&e->reader, e->files, &e->scratch, 1000);
	assert_int_equal(runtimes_open(&cfg, e->files, &e->runtimes), 0);
	assert_int_equal(proc_facts_read(e->dir, 0, &e->scratch, &facts), 0);
	e->program.start_ns = facts.start_ticks * (NSEC_PER_SEC / 100) + 1;
	assert_int_equal(mappings_read(&e->reader, e->dir, e->program.pid, &maps), 0);
	runtimes_see(e->runtimes, &e->program, &maps);
	mappings_release(&maps);
	for (int i = 0; i < 2000 && !ready; i++) {
		usleep(2000);
		pthread_mutex_lock(&told->lock);
		ready = told->size;
		pthread_mutex_unlock(&told->lock);
	}
	assert_true(ready);
}

static void engine_close(struct engine *e)
{
	runtimes_close(e->runtimes);
	mapping_reader_release(&e->reader);
	buf_release(&e->scratch);
	files_close(e->files);
	close(e->dir);
}

struct truth {
	uint64_t key, cookie;
	int32_t first_line;
	uint32_t lines_size;
	struct str file, name;
};

static void parse(char *line, struct truth *out)
{
	char *tab = strchr(line, '\t'), *at = line;

	out->key = strtoull(at, &at, 10);
	out->first_line = (int32_t)strtol(at, &at, 10);
	out->lines_size = (uint32_t)strtoul(at, &at, 10);
	assert_non_null(tab);
	out->file = str_n(at + 1, (size_t)(tab - at - 1));
	out->name = str_of(tab + 1);
	out->name.len--; /* the line's end */
}

/* Up to 3.11 BPF mixes the end of the file's name into the cookie of a module. */
static void check_module(const struct runtime_target *target, struct told *told, const struct truth *want,
			 uint64_t cookie)
{
	const struct abi_python *info = (const void *)told->info;
	size_t taken = MIN(want->file.len, (size_t)WALK_PYTHON_TAIL_BYTES);
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1));
	__u64 tail[WALK_PYTHON_TAIL_BYTES / 8] = { 0 };
	struct runtime_function f = { 0 };
	int right = walk_python_needs_file(&info->layout) ? 0 : -ESTALE;

	for (size_t i = 0; i < want->file.len; i++)
		if ((unsigned char)want->file.ptr[i] >= 0x80) /* it lies in the process in another form */
			return;
	memcpy(tail, want->file.ptr + want->file.len - taken, taken);
	assert_int_equal(python_read_name(target, info, want->key,
					  walk_python_file_cookie(cookie, want->file.len, tail), &room, &f),
			 right);
	if (right == 0)
		assert_true(str_eq(f.name, want->name) && str_eq(f.file, want->file));
	tail[0] ^= 1;
	assert_int_equal(python_read_name(target, info, want->key,
					  walk_python_file_cookie(cookie, want->file.len, tail), &room, &f),
			 -ESTALE);
	tail[0] ^= 1;
	assert_int_equal(python_read_name(target, info, want->key,
					  walk_python_file_cookie(cookie, want->file.len + 1, tail), &room, &f),
			 -ESTALE);
}

static void check(struct told *told, struct memory *m, const struct truth *want)
{
	const struct abi_python_layout *l = &((const struct abi_python *)(void *)told->info)->layout;
	const struct runtime_target target = { .read = read_memory, .self = m };
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1));
	struct runtime_function f = { 0 };
	__u64 words[ABI_PYTHON_CODE_BYTES / 8];
	uint64_t cookie;
	int reads;

	*m = (struct memory){ .fd = m->fd };
	assert_int_equal(read_memory(m, words, sizeof(words), want->key + l->code_filename - ABI_PYTHON_CODE_BEFORE),
			 0);
	cookie = walk_python_cookie(l, words);
	m->reads = 0;
	assert_int_equal(python_read_name(&target, told->info, want->key, cookie, &room, &f), 0);
	if (!str_eq(f.file, want->file) || !str_eq(f.name, want->name))
		fail_msg(STR_FMT " in " STR_FMT ", not " STR_FMT " in " STR_FMT, STR_ARG(f.name), STR_ARG(f.file),
			 STR_ARG(want->name), STR_ARG(want->file));
	assert_int_equal(f.first_line, want->first_line);
	assert_int_equal(f.lines.size, want->lines_size);
	assert_int_equal(f.lines_whole, want->lines_size);
	assert_false(f.is_cut);
	assert_true(python_line(&f, 0) >= want->first_line);
	reads = m->reads;
	assert_int_equal(python_read_name(&target, told->info, want->key, cookie ^ 2, &room, &f), -ESTALE);
	for (int i = 1; i <= reads; i++) {
		*m = (struct memory){ .fd = m->fd, .fail_at = i };
		assert_int_equal(python_read_name(&target, told->info, want->key, cookie, &room, &f), -EFAULT);
	}
	*m = (struct memory){ .fd = m->fd };
	check_module(&target, told, want, cookie);
}

static void as_processes_have_them(void **state)
{
	struct told told = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct memory memory = { 0 };
	scoped(freep) char *line = NULL;
	char path[256];
	struct engine e;
	struct child c;
	size_t cap = 0, count = 0;

	if (!find_python(*state, path, sizeof(path)))
		skip_because("this version of Python is not installed");
	start(path, &c);
	while (getline(&line, &cap, c.out) > 0) {
		struct truth want;

		if (!count++) {
			engine_open(&e, c.pid, &told, 0);
			engine_close(&e);
			(void)snprintf(path, sizeof(path), "/proc/%d/mem", c.pid);
			memory.fd = open(path, O_RDONLY | O_CLOEXEC);
			assert_true(memory.fd >= 0);
		}
		parse(line, &want);
		check(&told, &memory, &want);
	}
	assert_int_equal(count, *(const char *)*state == '2' ? 3 : 7);
	close(memory.fd);
	stop(&c);
}

/* ---- records that were lost, or forgotten ---- */

static uint64_t cookie_of(const struct told *told, pid_t pid, uint64_t key)
{
	const struct abi_python_layout *l = &((const struct abi_python *)(const void *)told->info)->layout;
	__u64 words[ABI_PYTHON_CODE_BYTES / 8];
	struct memory memory = { 0 };
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	memory.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read_memory(&memory, words, sizeof(words), key + l->code_filename - ABI_PYTHON_CODE_BEFORE),
			 0);
	close(memory.fd);
	return walk_python_cookie(l, words);
}

/* Return: whether it got a name before long. */
static bool is_named(struct engine *e, uint64_t key, uint64_t cookie, struct runtimes_frame *out)
{
	const struct abi_frame frame = {
		.kind = ABI_FRAME_RUNTIME, .runtime = ABI_RUNTIME_PYTHON, .a = key, .b = cookie
	};

	*out = (struct runtimes_frame){ 0 };
	for (int i = 0; i < 200 && !out->function; i++) {
		runtimes_frame(e->runtimes, &e->program, &frame, out);
		usleep(out->function ? 0 : 1000);
	}
	return out->function;
}

static void tell_names(struct engine *e, uint64_t from, uint64_t to)
{
	union {
		struct abi_name name;
		uint8_t bytes[sizeof(struct abi_name) + sizeof(struct abi_python_name) + 16];
	} r = { .name = { .process_start_ns = e->program.start_ns,
			  .cookie = 1,
			  .pid = e->program.pid,
			  .bytes_size = sizeof(struct abi_python_name) + 16,
			  .runtime = ABI_RUNTIME_PYTHON } };
	struct abi_python_name head = { .name_size = 16,
					.name_sent = 16,
					.name_text = ABI_PYTHON_TEXT_BYTES,
					.file_text = ABI_PYTHON_TEXT_BYTES,
					.version_major = 3,
					.version_minor = 11 };

	for (r.name.key = from; r.name.key < to; r.name.key += 8) {
		char text[32];

		(void)snprintf(text, sizeof(text), "f%015llx", (unsigned long long)r.name.key);
		memcpy(r.bytes + sizeof(r.name), &head, sizeof(head));
		memcpy(r.bytes + sizeof(r.name) + sizeof(head), text, 16);
		runtimes_name(e->runtimes, &r.name);
	}
}

static void what_was_lost_is_read(void **state)
{
	struct told told = { .lock = PTHREAD_MUTEX_INITIALIZER };
	scoped(freep) char *line = NULL;
	struct runtime_stats stats;
	struct runtimes_frame out;
	struct runtime_function f;
	struct truth want;
	struct engine e;
	struct child c;
	uint64_t cookie;
	size_t cap = 0;

	(void)state;
	if (access("/usr/bin/python3", X_OK) < 0)
		skip_because("/usr/bin/python3 is not installed");
	start("/usr/bin/python3", &c);
	assert_true(getline(&line, &cap, c.out) > 0);
	parse(line, &want);
	engine_open(&e, c.pid, &told, KIB(64));
	cookie = cookie_of(&told, c.pid, want.key);
	assert_true(is_named(&e, want.key, cookie, &out));
	assert_true(out.line >= want.first_line);
	assert_int_equal(runtimes_function(e.runtimes, out.function, &f), 0);
	assert_true(str_eq(f.name, want.name) && str_eq(f.file, want.file));
	assert_false(is_named(&e, want.key, cookie ^ 2, &out)); /* another function lay there */
	assert_false(is_named(&e, 0x1000, 9, &out));
	runtimes_stats(e.runtimes, ABI_RUNTIME_PYTHON, &stats);
	assert_int_equal(stats.names_read, 1);
	assert_true(stats.names_stale >= 1); /* it is asked for again while it is met */
	assert_true(stats.names_unreadable >= 1);
	/* More than there is room for: what went is missed, and the kernel told to send it again. */
	tell_names(&e, 0x100000, 0x110000);
	assert_int_equal(recalls(&told), 0);
	assert_false(is_named(&e, 0x100000, 1, &out));
	for (int i = 0; i < 1000 && !recalls(&told); i++)
		usleep(2000);
	assert_int_equal(recalls(&told), 1);
	runtimes_stats(e.runtimes, ABI_RUNTIME_PYTHON, &stats);
	assert_true(stats.names > 0);
	assert_int_equal(stats.names_again, 0);
	tell_names(&e, 0x100000, 0x100008);
	assert_true(is_named(&e, 0x100000, 1, &out));
	tell_names(&e, 0x100000, 0x100008);
	runtimes_stats(e.runtimes, ABI_RUNTIME_PYTHON, &stats);
	assert_int_equal(stats.names_again, 1);
	engine_close(&e);
	while (getline(&line, &cap, c.out) > 0)
		;
	stop(&c);
}

#define OF(version)                                                                                              \
	{                                                                                                        \
		"as_python_" version "_has_them", as_processes_have_them, NULL, NULL, (void *)(uintptr_t)version \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_by_hand),
		cmocka_unit_test(what_was_lost_is_read),
		OF("2.7"),
		OF("3.5"),
		OF("3.6"),
		OF("3.7"),
		OF("3.8"),
		OF("3.9"),
		OF("3.10"),
		OF("3.11"),
		OF("3.12"),
		OF("3.13"),
		OF("3.14"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
