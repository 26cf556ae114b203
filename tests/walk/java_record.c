/* SPDX-License-Identifier: Apache-2.0 */
/* java_record PID FOLDER: stops threads of a JVM while they run Java code, walks up to the native code that called it,
 * and writes what the walk read: seeds for fuzz_walk_java, which walk_java_test walks, too. One for each kind of top
 * frame and of what it takes to leave it: FOLDER/KIND-FRAMES; and what attaching read: FOLDER/attach. Prints a line for
 * each stop: KIND, frames, how it ended.
 */
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "java_attach_image.h"
#include "java_image.h"
#include "proc/maps.h"
#include "recorder.h"
#include "runtime/java/java_int.h"

#define STOPS 4000
#define KINDS_MAX 64

struct recorder {
	pid_t pid;
	uint64_t bias;
	char path[4096];
	struct abi_java info;
	struct buf out;
	struct pieces seen; /* what is in there: bytes are not used */
};

static int read_process(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct recorder *r = self;

	return recorder_read(r->pid, dst, size, at);
}

static int recorded_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct recorder *r = self;

	if (read_process(r, dst, size, at) < 0)
		return -EFAULT;
	for (size_t i = 0; i < r->seen.count; i++)
		if (r->seen.pieces[i].at == at && r->seen.pieces[i].size == size)
			return 0;
	if (r->seen.count < PIECES_MAX)
		r->seen.pieces[r->seen.count++] = (struct piece){ .at = at, .size = size };
	recorder_put_piece(&r->out, at, dst, size);
	return 0;
}

static int recorded_attach_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	return recorded_read(self, dst, size, at);
}

static void find_library(struct recorder *r)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(16));
	struct maps_line line;
	struct str rest;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/maps", r->pid);
	if (io_read_file(name, &text) < 0)
		recorder_give_up(name, ENOENT);
	rest = buf_str(&text);
	while (maps_next(&rest, &line) > 0) {
		if (!str_eq(str_base(line.path), STR("libjvm.so")))
			continue;
		r->bias = line.start - line.offset;
		snprintf(r->path, sizeof(r->path), "/proc/%d/root" STR_FMT, r->pid, STR_ARG(line.path));
		return;
	}
	recorder_give_up("libjvm.so", ENOENT);
}

/* The same once more, written down. */
static void record_attach(struct recorder *r, const struct java_binary *b, const struct java_layout *layout,
			  const char *folder)
{
	struct java_layout copy = *layout;
	struct runtime_target target = { .read = recorded_attach_read, .self = r, .bias = r->bias };

	copy.flags |= b->machine == EM_AARCH64 ? JAVA_ATTACH_AARCH64 : 0;
	uint64_t numbers[] = { r->bias, b->literals[JAVA_LITERAL_NATIVE], b->literals[JAVA_LITERAL_ADAPTER],
			       b->literals[JAVA_LITERAL_COMPILED],
#define X(field) copy.field,
			       JAVA_ATTACH_FIELDS(X)
#undef X
	};
	uint8_t info[RUNTIME_INFO_MAX];
	char path[1024];

	copy.perf_start = 0;
	buf_clear(&r->out);
	recorder_put(&r->out, numbers, sizeof(numbers));
	if (java_attach_with(&b->base, &target, &copy, info) < 0)
		recorder_give_up("attach", EIO);
	snprintf(path, sizeof(path), "%s/attach", folder);
	if (recorder_write(path, &r->out) < 0)
		recorder_give_up(path, errno);
}

static void attach(struct recorder *r, const char *folder)
{
	scoped(elf_release) struct elf elf = { 0 };
	scoped(closep) int fd = open(r->path, O_RDONLY | O_CLOEXEC);
	struct reader in = { .read = recorder_read_fd,
			     .self = &fd,
			     .size = fd < 0 ? 0 : (uint64_t)lseek(fd, 0, SEEK_END) };
	struct runtime_file file = { .elf = &elf };
	struct runtime_binary *binary = NULL;
	struct runtime_target target = { .read = read_process, .self = r, .bias = r->bias };
	uint8_t info[RUNTIME_INFO_MAX];
	struct java_layout layout;
	int result = elf_parse(&in, &elf);

	if (result < 0 || java_probe(&file, &binary) != 1)
		recorder_give_up("probe", EBADMSG);
	result = java_layout_of((const struct java_binary *)(const void *)binary, &target, &layout);
	if (result == 0)
		result = java_attach_with(binary, &target, &layout, info);
	if (result != sizeof(r->info))
		recorder_give_up("attach", result);
	memcpy(&r->info, info, sizeof(r->info));
	record_attach(r, (const struct java_binary *)(const void *)binary, &layout, folder);
	java_release(binary);
}

/* What the walk met, as a name. */
static void describe(const struct walk *w, const struct abi_java *info, char name[64])
{
	const struct abi_frame *top = &w->frames[0];
	bool in_entry = walk_java_in_interpreter(info, w->leaf[WALK_REG_PC]) &&
			(uint32_t)(w->leaf[WALK_REG_PC] - info->interpreter_low) - info->entries_low <
				info->entries_high - info->entries_low;
	const char *kind = in_entry                                               ? "entry"
			   : walk_java_in_interpreter(info, w->leaf[WALK_REG_PC]) ? "interpreted"
			   : top->flags & ABI_FRAME_COMPILED                      ? "compiled"
										  : "stub";
	uint64_t moved = w->count > 1 ? (uint64_t)(w->frames[1].flags & ABI_FRAME_GUESSED) : 0;

	snprintf(name, 64, "%s%s-%s", kind, moved ? "-guessed" : "", w->end == ABI_END_FRAME_LIMIT ? "whole" : "cut");
}

static bool read_registers(pid_t tid, uint64_t out[WALK_REGS])
{
	struct user_regs_struct u;
	struct iovec whole = { &u, sizeof(u) };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &whole) < 0)
		return false;
#ifdef WALK_X86_64
	const uint64_t regs[WALK_REGS] = { u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8,
					   u.r9,  u.r10, u.r11, u.r12, u.r13, u.r14, u.r15, u.rip };

	memcpy(out, regs, sizeof(regs));
#else
	memcpy(out, u.regs, sizeof(u.regs));
	out[WALK_REG_SP] = u.sp;
	out[WALK_REG_PC] = u.pc;
#endif
	return true;
}

static void record(struct recorder *r, const uint64_t regs[WALK_REGS], const char *folder)
{
	static char kinds[KINDS_MAX][64];
	struct walk_world world = { .read = recorded_read, .find_map = java_image_find_map, .self = r };
	struct walk *w = calloc(1, sizeof(*w));
	uint64_t no_return = 0;
	char name[64], path[1024];

	must(w);
	buf_clear(&r->out);
	r->seen.count = 0;
	recorder_put(&r->out, &r->info, sizeof(r->info));
	recorder_put(&r->out, regs, WALK_REGS * sizeof(*regs));
	recorder_put(&r->out, &no_return, sizeof(no_return));
	w->world = &world;
	java_image_walk(w, &r->info, regs, false);
	describe(w, &r->info, name);
	printf("%s %u end %u pc %#" PRIx64 "\n", name, w->count, w->end, (uint64_t)w->pc);
	for (size_t i = 0; i < KINDS_MAX; i++) {
		if (!strcmp(kinds[i], name))
			break;
		if (kinds[i][0])
			continue;
		memcpy(kinds[i], name, sizeof(name));
		snprintf(path, sizeof(path), "%s/%s-%u", folder, name, w->count);
		if (recorder_write(path, &r->out) < 0)
			recorder_give_up(path, errno);
		break;
	}
	free(w);
}

static void stop(struct recorder *r, pid_t tid, const char *folder)
{
	uint64_t regs[WALK_REGS] = { 0 };
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 && waitpid(tid, &status, __WALL) == tid &&
	    WIFSTOPPED(status) && read_registers(tid, regs) && walk_java_is_code(&r->info, regs[WALK_REG_PC]))
		record(r, regs, folder);
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
}

int main(int argc, char **argv)
{
	struct recorder *r = calloc(1, sizeof(*r));
	char name[64];

	if (argc != 3 || !r) {
		fprintf(stderr, "usage: java_record PID FOLDER\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	r->pid = (pid_t)strtol(argv[1], NULL, 10);
	r->out = (struct buf)BUF_INIT(MIB(1));
	find_library(r);
	attach(r, argv[2]);
	snprintf(name, sizeof(name), "/proc/%d/task", r->pid);
	for (int i = 0; i < STOPS; i++) {
		DIR *tasks = opendir(name);
		struct dirent *entry;

		if (!tasks)
			break;
		while ((entry = readdir(tasks)))
			if (entry->d_name[0] != '.')
				stop(r, (pid_t)strtol(entry->d_name, NULL, 10), argv[2]);
		closedir(tasks);
		usleep(1000 + (useconds_t)(i * 37 % 3000));
	}
	buf_release(&r->out);
	free(r);
	return 0;
}
