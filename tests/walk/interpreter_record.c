/* SPDX-License-Identifier: Apache-2.0 */
/* interpreter_record ruby|perl PID FILE: attaches to a process whose first thread waits (recorded.rb, recorded.pl),
 * walks that thread's frames, names them where the host can, and writes what was read to FILE: a seed for
 * fuzz_walk_ruby or fuzz_walk_perl, which tests/unit/recorded_test.c walks, too. */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/maps.h"
#include "proc/proc_read.h"
#include "recorder.h"
#include "runtime/perl/perl_int.h"
#include "runtime/ruby/names.h"
#include "runtime/ruby/ruby_int.h"
#include "walk/walk_perl.h"
#include "walk/walk_ruby.h"

#define PIECES_MAX 1024
#define TRIES 100

struct piece {
	uint64_t at, size;
};

struct recorder {
	pid_t pid;
	uint64_t bias;
	uint8_t info[RUNTIME_INFO_MAX];
	struct piece seen[PIECES_MAX];
	size_t seen_count;
	struct buf out;
};

struct language {
	const char *name;
	int (*probe)(const struct runtime_file *file, struct runtime_binary **out);
	void (*release)(struct runtime_binary *binary);
	int (*attach)(const struct runtime_binary *binary, const struct runtime_target *target, void *info);
	void (*walk)(struct recorder *r, struct walk *w);
	size_t info_size;
	bool has_thread; /* its recordings say which thread it is */
};

static int read_process(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct recorder *r = self;

	return recorder_read(r->pid, dst, size, at);
}

/* The process stands still: what lies within an earlier piece is there already. */
static bool is_there(const struct recorder *r, uint64_t at, uint64_t size)
{
	for (size_t i = 0; i < r->seen_count; i++)
		if (at >= r->seen[i].at && at + size <= r->seen[i].at + r->seen[i].size)
			return true;
	return false;
}

static int recorded_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct recorder *r = self;

	if (read_process(r, dst, size, at) < 0)
		return -EFAULT;
	if (is_there(r, at, size) || r->seen_count == PIECES_MAX)
		return 0;
	r->seen[r->seen_count++] = (struct piece){ at, size };
	recorder_put_piece(&r->out, at, dst, size);
	return 0;
}

static int recorded_target_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	return recorded_read(self, dst, size, at);
}

static void walk_ruby(struct recorder *r, struct walk *w)
{
	const struct runtime_target target = { .read = recorded_target_read, .self = r };

	walk_ruby_start(w, (const struct abi_ruby *)(const void *)r->info, 0);
	for (size_t turn = 0; turn < ABI_FRAMES_MAX && walk_ruby_step(w) == WALK_MORE; turn++)
		;
	for (uint32_t i = 0; i < w->runtime_count; i++) {
		const struct abi_frame *frame = &w->frames[w->count + i];
		scoped(buf_release) struct buf room = BUF_INIT(MIB(1));
		struct runtime_function f = { 0 };

		if (ruby_read_name(&target, r->info, frame->a, frame->b, &room, &f) == 0)
			printf("  " STR_FMT "\n", STR_ARG(f.name));
	}
}

static void walk_perl(struct recorder *r, struct walk *w)
{
	walk_perl_start(w, (const struct abi_perl *)(const void *)r->info, 0);
	for (size_t turn = 0; turn < WALK_PERL_TURNS && walk_perl_step(w) == WALK_MORE; turn++)
		;
}

static const struct language languages[] = {
	{ "ruby", ruby_probe, ruby_release, ruby_attach, walk_ruby, sizeof(struct abi_ruby), false },
	{ "perl", perl_probe, perl_release, perl_attach, walk_perl, sizeof(struct abi_perl), true },
};

/* Where the first byte of a file lies is not where its addresses begin, when it is no position-independent one. */
static uint64_t first_address(const struct elf *elf)
{
	for (size_t i = 0; i < elf->segment_count; i++)
		if (elf->segments[i].type == PT_LOAD)
			return elf->segments[i].address - elf->segments[i].offset;
	return 0;
}

/* Return: the probed file that a line of maps is the beginning of, or NULL. */
static struct runtime_binary *probe(struct recorder *r, const struct language *l, const struct maps_line *line)
{
	scoped(elf_release) struct elf elf = { 0 };
	scoped(closep) int fd = -1;
	struct runtime_binary *binary = NULL;
	struct runtime_file file = { .elf = &elf, .path = line->path };
	char place[PROC_MAP_FILE_SIZE], path[128];

	proc_map_file(line->start, line->end, place);
	snprintf(path, sizeof(path), "/proc/%d/%s", r->pid, place);
	fd = open(path, O_RDONLY | O_CLOEXEC);

	struct reader in = { .read = recorder_read_fd,
			     .self = &fd,
			     .size = fd < 0 ? 0 : (uint64_t)lseek(fd, 0, SEEK_END) };

	if (fd < 0 || elf_parse(&in, &elf) < 0 || l->probe(&file, &binary) != 1)
		return NULL;
	r->bias = line->start - first_address(&elf);
	printf("%s " STR_FMT " %s\n", binary->version, STR_ARG(line->path), binary->refused);
	return binary;
}

static struct runtime_binary *find_binary(struct recorder *r, const struct language *l)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(16));
	struct runtime_binary *binary = NULL;
	struct maps_line line;
	struct str rest;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/maps", r->pid);
	if (io_read_file(name, &text) < 0)
		recorder_give_up(name, ENOENT);
	rest = buf_str(&text);
	while (!binary && maps_next(&rest, &line) > 0)
		if (line.inode && !line.offset && line.path.len)
			binary = probe(r, l, &line);
	if (!binary)
		recorder_give_up("no such interpreter", ENOENT);
	return binary;
}

static void attach(struct recorder *r, const struct language *l)
{
	struct runtime_binary *binary = find_binary(r, l);
	struct runtime_target target = {
		.pid = (uint32_t)r->pid, .read = read_process, .self = r, .bias = r->bias, .proc_dir = -1
	};
	int result = -EAGAIN;

	for (int i = 0; i < TRIES && result == -EAGAIN; i++)
		result = l->attach(binary, &target, r->info);
	if (result != (int)l->info_size)
		recorder_give_up("attach", result);
	l->release(binary);
}

static uint64_t thread_pointer(pid_t pid)
{
	struct user_regs_struct registers;
	struct iovec whole = { &registers, sizeof(registers) };
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0 ||
	    waitpid(pid, &status, __WALL) != pid || ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &whole) < 0)
		recorder_give_up("ptrace", errno);
#ifdef __x86_64__
	return registers.fs_base;
#else
	recorder_give_up("the thread pointer", ENOTSUP);
#endif
}

static void record(struct recorder *r, const struct language *l, const char *path)
{
	struct walk_world world = { .read = recorded_read, .self = r };
	struct walk *w = calloc(1, sizeof(*w));
	const uint64_t native = 2, thread = (uint64_t)r->pid;

	if (!w)
		recorder_give_up("memory", ENOMEM);
	w->world = &world;
	w->tp = thread_pointer(r->pid);
	w->count = native;
	walk_sample(w)->pid = walk_sample(w)->tid = (uint32_t)r->pid;
	recorder_put(&r->out, r->info, l->info_size);
	recorder_put(&r->out, &w->tp, sizeof(w->tp));
	if (l->has_thread)
		recorder_put(&r->out, &thread, sizeof(thread));
	recorder_put(&r->out, &native, sizeof(native));
	l->walk(r, w);
	if (recorder_write(path, &r->out) < 0)
		recorder_give_up(path, errno);
	printf("%s: end %d, %u frames, %zu bytes\n", path, w->runtime_end, w->runtime_count, r->out.len);
	free(w);
}

int main(int argc, char **argv)
{
	static struct recorder r;

	if (argc != 4) {
		fprintf(stderr, "usage: interpreter_record ruby|perl PID FILE\n");
		return 2;
	}
	r.pid = (pid_t)strtol(argv[2], NULL, 10);
	r.out = (struct buf)BUF_INIT(KIB(128));
	for (size_t i = 0; i < ARRAY_SIZE(languages); i++) {
		if (strcmp(argv[1], languages[i].name) != 0)
			continue;
		attach(&r, &languages[i]);
		record(&r, &languages[i], argv[3]);
		buf_release(&r.out);
		return 0;
	}
	recorder_give_up(argv[1], EINVAL);
}
