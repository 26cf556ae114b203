// SPDX-License-Identifier: Apache-2.0
/* stops PID COUNT SECONDS [gdb|eu-stack]: stops a running thread of PID at random instants and walks its stack three
 * ways: full_walk() over the live process, full_walk() over a copy of the top of the stack, and libdw in the very
 * same stop. In a tenth of the stops the thread is left stopped for the program named last, whose text is compared,
 * too.
 *
 * Frames are compared up to the first one in JIT code, where there is nothing to agree on. Prints both stacks of every
 * disagreement and one line of figures: key=value. Exit status 0: the comparison was made; the figures are for the
 * caller. */
#include <dirent.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <linux/types.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/mappings.h"
#include "proc/proc_read.h"
#include "unwind/full_walk.h"
#include "unwind/rows_files.h"
#include "unwind/table_memory.h"
#include "unwind/world.h"
#include "walk/walk_native.h"

#define STACK_MAX ABI_STACK_MAX
#define GAP_MAX_US 12000 /* between two stops, at random */
#define TEXT_EVERY 10
#define SHOWN_MAX 10

struct stack { /* frames as addresses in the process, leaf first */
	uint64_t pcs[ABI_FRAMES_MAX];
	uint32_t count;
};

struct totals {
	uint64_t stops, equal, copies, copies_equal, texts, texts_equal, compared, jit_tops, walk_ns, walk_frames;
	uint64_t complete, guessed, shown;
};

struct stops {
	uint32_t pid, tid;
	const char *tool;
	int dir; /* of /proc/PID */
	struct files *files;
	struct buf scratch;
	struct mapping_reader reader;
	struct mappings maps;
	struct table_memory *memory;
	struct table_sink sink;
	struct rows_files source_files;
	struct rows_source source;
	struct rows *rows;
	struct world_tables tables;
	struct full_walk *full;
	Dwfl *dwfl;
	struct user_regs_struct regs;
	struct walk live, copy;
	struct stack dw, text;
	struct totals totals;
};

static _Noreturn void give_up(const char *what, int error)
{
	fprintf(stderr, "stops: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(2);
}

/* ---- our walks ---- */

static int tables_file(void *self, uint32_t file_id, struct abi_map *out)
{
	return rows_describe(self, file_id, true, out);
}

static const void *tables_table(void *self, uint32_t number)
{
	return rows_table(self, number);
}

static const union abi_element *tables_element(void *self, const void *table, uint32_t index)
{
	(void)self;
	return rows_element(table, index);
}

static void start_walk(const struct stops *s, struct walk *w)
{
	const struct user_regs_struct *r = &s->regs;
	const uint64_t regs[] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
				  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip };

	memcpy(w->leaf, regs, sizeof(regs));
	w->mode = WALK_AUTO;
	w->count = 0;
	walk_native_start(w, (int64_t)r->orig_rax >= 0);
}

static void walk_live(struct stops *s)
{
	struct world_live live = { .pid = s->pid };
	struct walk *w = &s->live;
	struct world world;
	uint64_t begin;

	world_init(&world, &s->maps, &s->tables, (struct world_memory){ world_live_read, &live });
	w->world = &world.walk;
	start_walk(s, w);
	full_walk(s->full, w); /* loads the rows it meets: the second one is timed */
	start_walk(s, w);
	begin = clock_monotonic_ns(&clock_system);
	full_walk(s->full, w);
	s->totals.walk_ns += clock_monotonic_ns(&clock_system) - begin;
	s->totals.walk_frames += w->count;
	w->world = NULL;
}

/* Return: whether the copy reached far enough. */
static bool walk_copy(struct stops *s)
{
	static uint8_t stack[STACK_MAX];
	struct iovec to = { stack, sizeof(stack) }, from = { (void *)s->regs.rsp, sizeof(stack) };
	ssize_t size = process_vm_readv((pid_t)s->pid, &to, 1, &from, 1, 0);
	struct world_copy copy = { .stack = stack, .at = s->regs.rsp, .maps = &s->maps, .files = s->files };
	struct world world;

	if (size <= 0)
		return false;
	copy.size = (uint32_t)size;
	world_init(&world, &s->maps, &s->tables, (struct world_memory){ world_copy_read, &copy });
	s->copy.world = &world.walk;
	start_walk(s, &s->copy);
	full_walk(s->full, &s->copy);
	s->copy.world = NULL;
	return !(s->copy.end == ABI_END_READ_FAILED && copy.ran_out);
}

/* ---- the others ---- */

static int on_frame(Dwfl_Frame *frame, void *context)
{
	struct stops *s = context;
	Dwarf_Addr pc;
	bool activation;

	if (s->dw.count == ABI_FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &activation))
		return DWARF_CB_ABORT;
	s->dw.pcs[s->dw.count++] = pc;
	return DWARF_CB_OK;
}

static void walk_dw(struct stops *s)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
	};

	s->dw.count = 0;
	if (!s->dwfl) {
		s->dwfl = dwfl_begin(&callbacks);
		if (!s->dwfl)
			give_up("dwfl_begin", ENOMEM);
	}
	dwfl_report_begin(s->dwfl);
	if (dwfl_linux_proc_report(s->dwfl, (pid_t)s->pid) || dwfl_report_end(s->dwfl, NULL, NULL))
		return;
	if (!dwfl_pid(s->dwfl) || dwfl_pid(s->dwfl) < 0) {
		if (dwfl_linux_proc_attach(s->dwfl, (pid_t)s->pid, true) < 0)
			give_up(dwfl_errmsg(-1), ECHILD);
	}
	dwfl_getthread_frames(s->dwfl, (pid_t)s->tid, on_frame, s);
}

/* "#1  0x0000aaaa in f ()" of either program; the section of our thread begins with its id. */
static void read_text(struct stops *s, FILE *in)
{
	bool ours = false, is_gdb = !strcmp(s->tool, "gdb");
	char line[2048], thread[64];

	snprintf(thread, sizeof(thread), is_gdb ? "LWP %u)" : "TID %u:", s->tid);
	while (fgets(line, sizeof(line), in)) {
		unsigned long long pc;
		unsigned int number;

		if (strstr(line, "(LWP ") || !strncmp(line, "TID ", 4) || !strncmp(line, "Thread ", 7)) {
			ours = strstr(line, thread) != NULL;
			continue;
		}
		if (!ours || line[0] != '#' || s->text.count == ABI_FRAMES_MAX)
			continue;
		if (sscanf(line, "#%u 0x%llx", &number, &pc) == 2)
			s->text.pcs[s->text.count++] = pc;
		else
			s->text.pcs[s->text.count++] = 0; /* the line has no address: a signal's return point */
	}
}

static int walk_text(struct stops *s)
{
	char command[512];
	FILE *in;

	if (!strcmp(s->tool, "gdb"))
		snprintf(command, sizeof(command),
			 "gdb -nx -q -batch -p %u -iex 'set debuginfod enabled off' -iex 'set auto-load off' "
			 "-iex 'set debug-file-directory /nonexistent' " /* it would add inlined and tail calls */
			 "-iex 'set print frame-info short-location' -iex 'set backtrace past-main on' "
			 "-iex 'set backtrace past-entry on' -ex 'thread apply all bt %u' 2>/dev/null",
			 s->pid, ABI_FRAMES_MAX);
	else
		snprintf(command, sizeof(command), "eu-stack -r -n %u -p %u 2>/dev/null", ABI_FRAMES_MAX, s->pid);
	s->text.count = 0;
	in = popen(command, "r");
	if (!in)
		return -errno;
	read_text(s, in);
	pclose(in);
	return s->text.count ? 0 : -ENODATA;
}

/* ---- comparison ---- */

static bool is_jit(const struct walk *w, uint32_t i)
{
	return w->frames[i].kind == ABI_FRAME_JIT;
}

/* The frame an address stands for. Return addresses can lie behind the end of a mapping's last function. */
static bool frame_is(const struct stops *s, const struct abi_frame *frame, uint64_t pc)
{
	const struct mapping *m = mappings_find(&s->maps, pc - (frame->flags & ABI_FRAME_RETURN ? 1 : 0));

	if (frame->kind != ABI_FRAME_NATIVE)
		return frame->a == pc;
	return m && frame->a == m->file_id && frame->b == pc - m->start + m->offset;
}

/* @guesses: libdw has the same fall-back as ours, others have none or another. */
static bool stacks_equal(const struct stops *s, const struct stack *other, bool guesses)
{
	const struct walk *w = &s->live;

	for (uint32_t i = 0; i < w->count; i++) {
		if (!guesses && w->frames[i].flags & ABI_FRAME_GUESSED)
			return true;
		if (i >= other->count || (other->pcs[i] && !frame_is(s, &w->frames[i], other->pcs[i])))
			return false;
		if (is_jit(w, i))
			return true;
	}
	return w->count == other->count;
}

static bool copy_equal(const struct stops *s)
{
	for (uint32_t i = 0; i < s->live.count; i++) {
		if (is_jit(&s->live, i)) /* its code is not in the copy, so that nothing there can be checked */
			return true;
		if (i >= s->copy.count || memcmp(&s->live.frames[i], &s->copy.frames[i], sizeof(s->live.frames[i])))
			return false;
	}
	return s->live.count == s->copy.count && s->live.end == s->copy.end;
}

static const char *end_name(uint8_t end)
{
	static const char *const names[] = {
#define X(id, name, help) name,
		ABI_ENDS(X)
#undef X
	};

	return end < ARRAY_SIZE(names) ? names[end] : "?";
}

static void print_walk(const struct stops *s, const char *title, const struct walk *w)
{
	printf("  %s, end: %s\n", title, end_name(w->end));
	for (uint32_t i = 0; i < w->count; i++) {
		const struct abi_frame *f = &w->frames[i];
		char *path = NULL;

		if (f->kind == ABI_FRAME_NATIVE)
			ignore(files_path(s->files, (uint32_t)f->a, &path));
		printf("    %2u %s%s %s+0x%llx\n", i, f->flags & ABI_FRAME_RETURN ? "r" : "-",
		       f->flags & ABI_FRAME_GUESSED ? "g" : "-", path ? path : "jit",
		       (unsigned long long)(f->kind == ABI_FRAME_NATIVE ? f->b : f->a));
		free(path);
	}
}

static void print_stack(const struct stops *s, const char *title, const struct stack *stack)
{
	printf("  %s\n", title);
	for (uint32_t i = 0; i < stack->count; i++) {
		const struct mapping *m = mappings_find(&s->maps, stack->pcs[i]);
		char *path = NULL;

		if (m && m->file_id)
			ignore(files_path(s->files, m->file_id, &path));
		printf("    %2u    %s+0x%llx\n", i, path ? path : "?",
		       (unsigned long long)(path ? stack->pcs[i] - m->start + m->offset : stack->pcs[i]));
		free(path);
	}
}

static void show(struct stops *s, const char *what, const struct stack *other)
{
	if (s->totals.shown++ >= SHOWN_MAX)
		return;
	printf("stop %llu of thread %u: %s\n", (unsigned long long)s->totals.stops, s->tid, what);
	printf("  pc %llx sp %llx bp %llx\n", s->regs.rip, s->regs.rsp, s->regs.rbp);
	print_walk(s, "ours", &s->live);
	if (other)
		print_stack(s, what, other);
	else
		print_walk(s, "copy", &s->copy);
}

static void compare(struct stops *s)
{
	struct totals *t = &s->totals;

	t->stops++;
	for (uint32_t i = 0; i < s->live.count; i++) {
		t->compared++;
		if (is_jit(&s->live, i)) {
			t->jit_tops += i == 0;
			break;
		}
	}
	t->complete += s->live.end == ABI_END_COMPLETE;
	for (uint32_t i = 0; i < s->live.count; i++) {
		if (s->live.frames[i].flags & ABI_FRAME_GUESSED) {
			t->guessed++;
			break;
		}
	}
	if (stacks_equal(s, &s->dw, true))
		t->equal++;
	else
		show(s, "libdw", &s->dw);
	if (walk_copy(s)) {
		t->copies++;
		if (copy_equal(s))
			t->copies_equal++;
		else
			show(s, "copy", NULL);
	}
}

/* ---- stopping ---- */

static uint64_t random_below(uint64_t n)
{
	return (uint64_t)random() % n;
}

/* What /proc says it does: R, S, T, Z ...; 0: it has gone. */
static char thread_state(uint32_t pid, uint32_t tid)
{
	char path[64], stat[128], state = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
	in = fopen(path, "r");
	if (!in)
		return 0;
	if (!fgets(stat, sizeof(stat), in) || !strrchr(stat, ')') || sscanf(strrchr(stat, ')'), ") %c", &state) != 1)
		state = 0;
	fclose(in);
	return state;
}

/* A thread that runs, or else the first. 0: the process has ended. */
static uint32_t pick_thread(uint32_t pid)
{
	uint32_t running = 0, seen = 0, tid;
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		if (tid && thread_state(pid, tid) == 'R' && !random_below(++seen))
			running = tid;
	}
	closedir(dir);
	if (running)
		return running;
	return thread_state(pid, pid) == 'Z' ? 0 : pid;
}

/* Return: 0, the thread is stopped and s->regs are its own; 1: it could not be. */
static int stop_thread(struct stops *s, int *signal)
{
	struct iovec io = { &s->regs, sizeof(s->regs) };
	int status;

	*signal = 0;
	if (ptrace(PTRACE_SEIZE, s->tid, 0, 0) < 0)
		return 1;
	if (ptrace(PTRACE_INTERRUPT, s->tid, 0, 0) < 0 || waitpid((pid_t)s->tid, &status, __WALL) < 0)
		return 1;
	if (!WIFSTOPPED(status))
		return 1;
	if (status >> 16 == 0) /* a signal came first: it has to be handed on */
		*signal = WSTOPSIG(status);
	if (ptrace(PTRACE_GETREGSET, s->tid, 1 /* NT_PRSTATUS */, &io) < 0 || s->regs.cs != 0x33) {
		ptrace(PTRACE_DETACH, s->tid, 0, *signal);
		return 1;
	}
	return 0;
}

static void compare_text(struct stops *s)
{
	int r = walk_text(s);

	kill((pid_t)s->pid, SIGCONT);
	if (r < 0)
		return;
	s->totals.texts++;
	if (stacks_equal(s, &s->text, false))
		s->totals.texts_equal++;
	else
		show(s, s->tool, &s->text);
}

/* Return: whether the process is still there. */
static bool stop_once(struct stops *s)
{
	bool text;
	int signal;

	s->tid = pick_thread(s->pid);
	if (!s->tid)
		return false;
	if (stop_thread(s, &signal))
		return true;
	if (mappings_read(&s->reader, s->dir, (uint32_t)s->pid, &s->maps) < 0) {
		ptrace(PTRACE_DETACH, s->tid, 0, signal);
		return false;
	}
	walk_live(s);
	walk_dw(s);
	compare(s);
	text = s->tool && !signal && s->totals.stops % TEXT_EVERY == 0;
	/* Taken before the next instruction, so the other program finds the same registers. */
	if (text)
		ignore(tgkill((pid_t)s->pid, (pid_t)s->tid, SIGSTOP));
	ptrace(PTRACE_DETACH, s->tid, 0, signal);
	if (text)
		compare_text(s);
	return true;
}

static void open_all(struct stops *s)
{
	int r = files_open(4096, &s->files);

	s->scratch = (struct buf)BUF_INIT(MIB(16));
	s->dir = proc_dir_open("", s->pid);
	if (r < 0 || s->dir < 0)
		give_up("process", r < 0 ? r : s->dir);
	mapping_reader_init(&s->reader, s->files, &s->scratch, 65536);
	r = table_memory_new(&s->memory);
	if (r < 0)
		give_up("tables", r);
	s->sink = table_memory_sink(s->memory);
	s->source_files = (struct rows_files){ .files = s->files, .host_root = "" };
	s->source = rows_files_source(&s->source_files);
	r = rows_open(
		&(struct rows_config){
			.budget_bytes = MIB(512), .sink = &s->sink, .source = &s->source, .clock = &clock_system },
		&s->rows);
	if (r == 0)
		r = full_walk_new(s->files, &s->full);
	if (r < 0)
		give_up("rows", r);
	s->tables = (struct world_tables){
		.file = tables_file, .table = tables_table, .element = tables_element, .self = s->rows
	};
}

static void close_all(struct stops *s)
{
	if (s->dwfl)
		dwfl_end(s->dwfl);
	full_walk_free(s->full);
	rows_close(s->rows);
	table_memory_free(s->memory);
	mapping_reader_release(&s->reader);
	mappings_release(&s->maps);
	buf_release(&s->scratch);
	files_close(s->files);
	close(s->dir);
}

static void print_totals(const struct totals *t)
{
	printf("stops=%llu equal=%llu copies=%llu copies_equal=%llu texts=%llu texts_equal=%llu frames=%llu "
	       "jit_tops=%llu "
	       "complete=%llu guessed=%llu ns_per_frame=%llu\n",
	       (unsigned long long)t->stops, (unsigned long long)t->equal, (unsigned long long)t->copies,
	       (unsigned long long)t->copies_equal, (unsigned long long)t->texts, (unsigned long long)t->texts_equal,
	       (unsigned long long)t->compared, (unsigned long long)t->jit_tops, (unsigned long long)t->complete,
	       (unsigned long long)t->guessed, (unsigned long long)(t->walk_frames ? t->walk_ns / t->walk_frames : 0));
}

int main(int argc, char **argv)
{
	struct stops *s = calloc(1, sizeof(*s));
	uint64_t count, until;

	if (!s || argc < 4) {
		fprintf(stderr, "usage: stops PID COUNT SECONDS [gdb|eu-stack]\n");
		return 2;
	}
	s->pid = (uint32_t)strtoul(argv[1], NULL, 10);
	count = strtoull(argv[2], NULL, 10);
	s->tool = argc > 4 ? argv[4] : NULL;
	open_all(s);
	srandom((unsigned int)clock_monotonic_ns(&clock_system));
	until = clock_monotonic_ns(&clock_system) + strtoull(argv[3], NULL, 10) * NSEC_PER_SEC;
	while (s->totals.stops < count && clock_monotonic_ns(&clock_system) < until) {
		usleep((useconds_t)random_below(GAP_MAX_US));
		if (!stop_once(s))
			break;
	}
	print_totals(&s->totals);
	close_all(s);
	free(s);
	return 0;
}
