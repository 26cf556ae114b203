/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks in a program without frame pointers: what travels raw while the kernel lacks something, and that the stack is
 * whole as soon as it lacks nothing. */
#include "bpf_support.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "deep.h"
#include "object/unwind/table.h"
#include "proc/maps.h"
#include "sampler/bpf_probe.h"
#include "sampler/sampler.h"
#include "unwind/table_sink.h"
#include "walk/walk.h"

#define MAPS_MAX 64
#define ASKS_MAX 64
#define FREQUENCY 499

static const char *deep_path;

struct target {
	pid_t pid;
	struct {
		uint64_t low, high;
	} functions[DEEP_FUNCTIONS]; /* leaf first */
};

struct live {
	struct sampler_state *state;
	struct sampler_events events;
	struct table_sink sink;
	struct target target;
	pid_t pid; /* whose samples count */
	struct map_change maps[MAPS_MAX];
	struct table tables[MAPS_MAX];
	size_t map_count;
	uint32_t spaces, table_base;
	/* what came */
	int samples, exact, complete, raw, guessed;
	int ends[ABI_END_COUNT];
	uint64_t start_ns, asks[ASKS_MAX];
	uint32_t exec_id;
	size_t ask_count;
	uint64_t *last; /* raw sample */
	uint32_t child, child_exec_id, new_exec_id;
	int execs;
};

/* ---- the program ---- */

static void start_target(struct target *t, const char *mode)
{
	int out[2];
	FILE *told;

	assert_int_equal(pipe(out), 0);
	t->pid = fork();
	assert_true(t->pid >= 0);
	if (!t->pid) {
		dup2(out[1], STDOUT_FILENO);
		execl(deep_path, "deep", mode, (char *)NULL);
		_exit(1);
	}
	close(out[1]);
	told = fdopen(out[0], "r");
	assert_non_null(told);
	for (size_t i = 0; i < DEEP_FUNCTIONS; i++) {
		unsigned long low, high;

		assert_int_equal(fscanf(told, " %lx %lx", &low, &high), 2);
		t->functions[i].low = low;
		t->functions[i].high = high;
	}
	fclose(told);
}

static void end(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* ---- samples ---- */

/* Where the frame was in the process: the files are numbered from 1 in the order of the mappings. */
static uint64_t address_of(const struct live *l, const struct abi_frame *frame)
{
	for (size_t i = 0; frame->kind == ABI_FRAME_NATIVE && i < l->map_count; i++) {
		if (l->maps[i].map.file == frame->a)
			return l->maps[i].map.file_base + frame->b - (frame->flags & ABI_FRAME_RETURN);
	}
	return 0;
}

static bool is_exact(const struct live *l, const struct abi_frame *user, size_t count)
{
	for (size_t i = 0; i < DEEP_FUNCTIONS; i++) {
		uint64_t at = i < count ? address_of(l, &user[i]) : 0;

		if (at < l->target.functions[i].low || at >= l->target.functions[i].high)
			return false;
	}
	return count >= DEEP_FUNCTIONS + 1 && count <= DEEP_FUNCTIONS + 3; /* the C library, _start */
}

static void on_sample(void *ctx, const struct abi_sample *sample)
{
	struct live *l = ctx;
	const struct abi_frame *user = sample->frames + sample->kernel_count;
	size_t count = sample->frame_count - sample->kernel_count;

	if (sample->pid != (uint32_t)l->pid)
		return;
	l->samples++;
	l->start_ns = sample->process_start_ns;
	l->exec_id = sample->exec_id;
	l->ends[sample->user_end]++;
	l->complete += sample->user_end == ABI_END_COMPLETE;
	l->exact += is_exact(l, user, count);
	for (size_t i = 0; i < count; i++)
		l->guessed += !!(user[i].flags & ABI_FRAME_GUESSED);
	if (sample->flags & ABI_SAMPLE_RAW) {
		l->raw++;
		memcpy(l->last, sample, sample->header.size);
	}
	if (sample->flags & ABI_SAMPLE_ASK && l->ask_count < ASKS_MAX)
		l->asks[l->ask_count++] = sample->header.time_ns;
}

static void on_process(void *ctx, const struct abi_process *event)
{
	struct live *l = ctx;

	if (event->header.type == ABI_RECORD_FORK && event->parent_pid == (uint32_t)l->target.pid) {
		l->child = event->pid;
		l->child_exec_id = event->exec_id;
	}
	if (event->header.type == ABI_RECORD_EXEC && event->pid == (uint32_t)l->target.pid) {
		l->execs++;
		l->new_exec_id = event->exec_id;
	}
}

static void forget_samples(struct live *l)
{
	l->samples = l->exact = l->complete = l->raw = l->guessed = 0;
	l->ask_count = 0;
	memset(l->ends, 0, sizeof(l->ends));
}

static void poll_for(struct live *l, uint64_t ms)
{
	uint64_t until = clock_monotonic_ns(&clock_system) + ms * NSEC_PER_MSEC, now;

	while ((now = clock_monotonic_ns(&clock_system)) < until) {
		int wait = (int)MIN((until - now) / NSEC_PER_MSEC + 1, 100U);

		assert_true(sampler_find(STR("bpf"))->poll(l->state, wait, &l->events) >= 0);
	}
}

#define WAIT_MS 20000 /* a busy machine gives the target little */

/* Samples of before are taken in, then as many as wanted are waited for. */
static void sample_anew(struct live *l, int wanted)
{
	poll_for(l, 20);
	forget_samples(l);
	for (int waited = 0; l->samples < wanted; waited += 20) {
		assert_true(waited < WAIT_MS);
		poll_for(l, 20);
	}
}

static void wait_for_ask(struct live *l)
{
	for (int waited = 0; !l->ask_count; waited += 20) {
		assert_true(waited < WAIT_MS);
		poll_for(l, 20);
	}
}

static void open_live(struct live *l, const char *mode, uint8_t walk_mode)
{
	struct sampler_config cfg = { .frequency_hz = FREQUENCY,
				      .poll_interval_ms = 100,
				      .pids = &l->target.pid,
				      .pid_count = 1,
				      .follow_children = true,
				      .mode = walk_mode,
				      .host_root = "" };
	const struct sampler *bpf = sampler_find(STR("bpf"));
	struct buf why = BUF_INIT(KIB(64));

	memset(l, 0, sizeof(*l));
	start_target(&l->target, mode);
	l->pid = l->target.pid;
	l->last = calloc(1, ABI_SAMPLE_SIZE_MAX);
	assert_non_null(l->last);
	l->events = (struct sampler_events){ on_sample, on_process, NULL, l };
	if (bpf->open(&cfg, &why, &l->state) < 0)
		fail_msg("open: %s", buf_cstr(&why));
	buf_release(&why);
	assert_int_equal(bpf->tables(l->state, &l->sink), 0);
	assert_int_equal(bpf->start(l->state), 0);
}

static void close_live(struct live *l, uint64_t counters[ABI_COUNTER_COUNT])
{
	const struct sampler *bpf = sampler_find(STR("bpf"));

	end(l->target.pid);
	assert_int_equal(bpf->stop(l->state), 0);
	assert_true(bpf->poll(l->state, 0, &l->events) >= 0);
	bpf->counters(l->state, counters);
	for (size_t i = 0; i < l->map_count; i++)
		l->sink.drop(l->sink.self, &l->tables[i]);
	bpf->close(l->state);
	free(l->last);
	assert_int_equal(counters[ABI_COUNTER_LOST_REJECTED], 0);
	assert_int_equal(counters[ABI_COUNTER_LOST_NO_STATE], 0);
	assert_int_equal(counters[ABI_COUNTER_LOST_RING_FULL], 0);
}

/* ---- what the host tells the kernel ---- */

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	ssize_t got = pread((int)(intptr_t)self, dst, size, (off_t)offset);

	return got == (ssize_t)size ? 0 : got < 0 ? -errno : -ENODATA;
}

/* Puts the rows of the file behind a mapping into the kernel. */
static void add_rows(struct live *l, const char *path, struct abi_map *map, struct table *table)
{
	scoped(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct reader in = { .read = read_fd, .self = (void *)(intptr_t)fd };
	struct unwind_table rows = { 0 };
	struct elf elf = { 0 };
	struct stat st;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	in.size = (uint64_t)st.st_size;
	assert_int_equal(elf_parse(&in, &elf), 0);
	assert_int_equal(unwind_table_build(&elf, NULL, &rows), 0);
	assert_int_not_equal(rows.source, UNWIND_SOURCE_NONE);
	map->first_page = rows.elements[0].head.first_page;
	map->pages = rows.elements[0].head.pages;
	assert_int_equal(l->sink.put(l->sink.self, rows.elements, rows.elements[0].head.size, table), 0);
	unwind_table_release(&rows);
	elf_release(&elf);
}

static void add_mapping(struct live *l, const struct maps_line *line)
{
	struct map_change *change = &l->maps[l->map_count];
	char path[1024];

	assert_true(l->map_count < MAPS_MAX);
	snprintf(path, sizeof(path), STR_FMT, STR_ARG(line->path));
	change->map = (struct abi_map){
		.start = line->start,
		.end = line->end,
		.file_base = line->start - line->offset,
		.file = (uint32_t)l->map_count + 1,
		.table = l->table_base + (uint32_t)l->map_count + 1,
		.kind = ABI_MAP_FILE,
	};
	add_rows(l, path, &change->map, &l->tables[l->map_count]);
	l->map_count++;
}

/* Reads the mappings of the target, code from files only. */
static void read_mappings(struct live *l)
{
	struct buf text = BUF_INIT(KIB(64));
	struct maps_line line;
	char path[64];
	struct str rest;

	snprintf(path, sizeof(path), "/proc/%d/maps", l->target.pid);
	assert_int_equal(io_read_file(path, &text), 0);
	rest = buf_str(&text);
	while (maps_next(&rest, &line) == 1) {
		if (line.executable && line.inode)
			add_mapping(l, &line);
	}
	buf_release(&text);
	assert_true(l->map_count >= 2);
}

static void tell_mappings(struct live *l)
{
	l->spaces++;
	for (size_t i = 0; i < l->map_count; i++)
		l->maps[i].space = l->spaces;
	assert_int_equal(l->sink.change_maps(l->sink.self, l->maps, l->map_count), 0);
}

static void tell_space(struct live *l)
{
	struct abi_space space = { .start_ns = l->start_ns, .exec_id = l->exec_id, .space = l->spaces };

	assert_int_equal(l->sink.set_space(l->sink.self, (uint32_t)l->target.pid, &space), 0);
}

static void change_tables(struct live *l, bool come)
{
	struct table_change changes[MAPS_MAX];

	for (size_t i = 0; i < l->map_count; i++)
		changes[i] = (struct table_change){ l->maps[i].map.table, come ? &l->tables[i] : NULL };
	assert_int_equal(l->sink.change_tables(l->sink.self, changes, l->map_count), 0);
}

static void tell_all(struct live *l)
{
	read_mappings(l);
	change_tables(l, true);
	tell_mappings(l);
	tell_space(l);
}

static void print_samples(const struct live *l, const char *what)
{
	print_message("  %s: %d samples, %d exact, %d complete, %d raw, %zu asked\n", what, l->samples, l->exact,
		      l->complete, l->raw, l->ask_count);
}

static void assert_whole(const struct live *l)
{
	assert_true(l->exact * 1000 >= l->samples * 995); /* a tick can hit the moment of a signal or a start */
	assert_true(l->complete * 1000 >= l->samples * 995);
	assert_int_equal(l->guessed, 0);
}

/* ---- raw samples ---- */

/* Not the top: the leaf works there. */
#define WORKING 256

static const struct abi_raw *raw_of(const struct live *l)
{
	const struct abi_sample *sample = (const struct abi_sample *)l->last;

	assert_int_equal(abi_record_check(sample, sample->header.size), sample->header.size);
	assert_true(sample->flags & ABI_SAMPLE_RAW);
	return (const struct abi_raw *)&sample->frames[sample->frame_count];
}

/* Registers and stack of the last raw sample are those of the target, whose outer frames do not change. */
static void assert_raw_is_true(const struct live *l, size_t least, size_t most)
{
	const struct abi_raw *raw = raw_of(l);
	const uint8_t *stack = (const uint8_t *)(raw + 1);
	static uint8_t now[ABI_STACK_LONG_MAX];
	struct iovec to = { now, raw->stack_size }, from = { (void *)(uintptr_t)raw->sp, raw->stack_size };

	assert_true(raw->pc >= l->target.functions[0].low && raw->pc < l->target.functions[0].high);
	assert_int_equal(raw->regs[WALK_REG_PC], raw->pc);
	assert_int_equal(raw->regs[WALK_REG_SP], raw->sp);
	assert_int_equal(raw->is_leaf, 1);
	assert_int_equal(raw->guessed + raw->at_signal, 0);
	assert_true(raw->stack_size > least); /* all frames, and no more than to the start of the program */
	assert_true(raw->stack_size < most);
	assert_int_equal(process_vm_readv(l->target.pid, &to, 1, &from, 1, 0), raw->stack_size);
	assert_memory_equal(stack + WORKING, now + WORKING, raw->stack_size - WORKING);
}

/* Before 5.17 the kernel does not say. */
static bool reasons_are_told(const struct abi_raw *raw)
{
	if (bpf_probe_find_vma() == 1)
		return true;
	assert_int_equal(raw->vma.kind, ABI_VMA_UNKNOWN);
	return false;
}

/* The mapping of that address as /proc says it. */
static struct maps_line line_at(const struct live *l, uint64_t address)
{
	struct buf text = BUF_INIT(KIB(64));
	struct maps_line line = { 0 };
	char path[64];
	struct str rest;

	snprintf(path, sizeof(path), "/proc/%d/maps", l->target.pid);
	assert_int_equal(io_read_file(path, &text), 0);
	rest = buf_str(&text);
	while (maps_next(&rest, &line) == 1 && (address < line.start || address >= line.end))
		;
	buf_release(&text);
	line.path = (struct str){ 0 };
	return line;
}

static void assert_vma_is_code(const struct live *l)
{
	const struct abi_raw *raw = raw_of(l);
	struct maps_line line = line_at(l, raw->pc);

	if (!reasons_are_told(raw))
		return;
	assert_int_equal(raw->vma.kind, ABI_VMA_FILE);
	assert_int_equal(raw->vma.start, line.start);
	assert_int_equal(raw->vma.end, line.end);
	assert_int_equal(raw->vma.offset, line.offset);
	assert_int_equal(raw->vma.inode, line.inode);
	assert_int_equal(raw->vma.device_major, line.device_major);
	assert_int_equal(raw->vma.device_minor, line.device_minor);
}

/* 100 ms, then twice as long each time. */
static void assert_asked_rarely(const struct live *l)
{
	uint64_t wait = 100 * NSEC_PER_MSEC;

	for (size_t i = 1; i < l->ask_count; i++, wait *= 2)
		assert_true(l->asks[i] - l->asks[i - 1] >= wait);
}

static void unknown_process_is_asked_for(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	static struct live l;

	(void)state;
	open_live(&l, NULL, WALK_AUTO);
	poll_for(&l, 1800);
	print_samples(&l, "unknown");
	assert_true(l.samples > 20);
	assert_int_equal(l.raw, l.samples);
	assert_int_equal(l.ends[ABI_END_NO_PROCESS], l.samples);
	assert_true(l.ask_count >= 3 && l.ask_count <= 5);
	assert_asked_rarely(&l);
	assert_raw_is_true(&l, KIB(3), ABI_STACK_MAX);
	assert_vma_is_code(&l);
	close_live(&l, counters);
	assert_int_equal(counters[ABI_COUNTER_MAPPINGS_ASKED], l.ask_count);
	assert_true(counters[ABI_COUNTER_RAW] >= (uint64_t)l.raw);
	assert_int_equal(counters[ABI_COUNTER_ROWS_MISSED], 0);
}

/* Up to the start of the program, in a copy that is longer than usual, while the allowance lasts: 8 MiB at once. */
static void deep_stacks_travel_longer(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	static struct live l;

	(void)state;
	open_live(&l, "big", WALK_AUTO);
	sample_anew(&l, 20);
	print_samples(&l, "deep");
	assert_int_equal(l.raw, l.samples);
	assert_raw_is_true(&l, DEEP_BIG + KIB(3), DEEP_BIG + KIB(16));
	close_live(&l, counters);
	assert_in_range(counters[ABI_COUNTER_LONG_COPIES], l.raw, counters[ABI_COUNTER_RAW]);
}

/* A copy of the program below an overlay, as containers have it. Return: whether it is there. */
static bool mount_overlay(const char *dir)
{
	char command[1024];

	snprintf(command, sizeof(command),
		 "cd %s && mkdir lower upper work all && cp '%s' lower/deep && "
		 "mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=work all 2>/dev/null",
		 dir, deep_path);
	return system(command) == 0;
}

static void files_of_overlays_are_named_as_in_maps(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	char dir[] = "/tmp/hearth-overlay-XXXXXX", program[64], command[128];
	const char *path = deep_path;
	static struct live l;
	bool mounted;

	(void)state;
	assert_non_null(mkdtemp(dir));
	mounted = mount_overlay(dir);
	if (mounted) {
		snprintf(program, sizeof(program), "%s/all/deep", dir);
		deep_path = program;
		open_live(&l, NULL, WALK_AUTO);
		sample_anew(&l, 5);
		assert_vma_is_code(&l);
		close_live(&l, counters);
		deep_path = path;
		snprintf(command, sizeof(command), "umount -l %s/all", dir);
		assert_int_equal(system(command), 0);
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	if (!mounted)
		skip_because("cannot mount an overlay");
}

static void unknown_mapping_is_asked_for(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	static struct live l;

	(void)state;
	open_live(&l, NULL, WALK_AUTO);
	sample_anew(&l, 1);
	l.spaces = 1;
	tell_space(&l); /* of a process without mappings */
	sample_anew(&l, 100);
	wait_for_ask(&l);
	print_samples(&l, "no mappings");
	assert_int_equal(l.raw, l.samples);
	assert_int_equal(l.ends[ABI_END_NO_MAPPING], l.samples);
	assert_raw_is_true(&l, KIB(3), ABI_STACK_MAX);
	assert_vma_is_code(&l);
	close_live(&l, counters);
}

static void jit_code_is_asked_for(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	const struct abi_raw *raw;
	static struct live l;

	(void)state;
	open_live(&l, "jit", WALK_AUTO);
	sample_anew(&l, 1);
	tell_all(&l);
	sample_anew(&l, 100);
	wait_for_ask(&l);
	print_samples(&l, "JIT code");
	assert_int_equal(l.ends[ABI_END_NO_MAPPING], l.samples);
	assert_int_equal(l.raw, l.samples);
	raw = raw_of(&l);
	if (reasons_are_told(raw)) {
		assert_int_equal(raw->vma.kind, ABI_VMA_ANONYMOUS);
		assert_true(raw->vma.start <= raw->pc && raw->pc < raw->vma.end);
	}
	close_live(&l, counters);
}

/* ---- whole stacks ---- */

static void rows_make_stacks_whole(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	static struct live l;

	(void)state;
	open_live(&l, NULL, WALK_AUTO);
	sample_anew(&l, 1);
	tell_all(&l);
	sample_anew(&l, 300);
	print_samples(&l, "with rows");
	assert_whole(&l);
	assert_int_equal(l.raw, 0);
	assert_int_equal(l.ask_count, 0);

	change_tables(&l, false);
	sample_anew(&l, 50);
	print_samples(&l, "rows taken away");
	assert_int_equal(l.ends[ABI_END_NO_TABLE], l.samples);
	assert_int_equal(l.raw, l.samples);
	assert_int_equal(l.ask_count, 0);
	assert_raw_is_true(&l, KIB(3), ABI_STACK_MAX);
	close_live(&l, counters);
	assert_true(counters[ABI_COUNTER_ROWS_MISSED] >= (uint64_t)l.samples);
}

static void frame_pointers_are_not_there(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	static struct live l;

	(void)state;
	open_live(&l, NULL, WALK_FP);
	sample_anew(&l, 50);
	print_samples(&l, "frame pointers");
	assert_int_equal(l.exact, 0); /* or the program would prove nothing */
	assert_int_equal(l.raw, 0);
	assert_int_equal(l.ask_count, 0);
	close_live(&l, counters);
}

static void child_has_its_parents_mappings(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	static struct live l;

	(void)state;
	open_live(&l, NULL, WALK_TABLE);
	sample_anew(&l, 1);
	tell_all(&l);
	kill(l.target.pid, SIGUSR2);
	for (int waited = 0; !l.child && waited < WAIT_MS; waited += 20)
		poll_for(&l, 20);
	assert_true(l.child != 0);
	assert_int_equal(l.child_exec_id, l.exec_id);
	l.pid = (pid_t)l.child;
	sample_anew(&l, 50);
	print_samples(&l, "child");
	assert_int_equal(l.ends[ABI_END_NO_PROCESS], 0);
	assert_int_equal(l.raw, 0);
	assert_true(l.complete * 100 >= l.samples * 98);
	close_live(&l, counters);
}

/* The old program's mappings say nothing about the new one. */
static void exec_forgets_mappings(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	static struct live l;
	uint32_t before;

	(void)state;
	open_live(&l, NULL, WALK_AUTO);
	sample_anew(&l, 1);
	tell_all(&l);
	sample_anew(&l, 50);
	assert_whole(&l);
	before = l.exec_id;
	kill(l.target.pid, SIGUSR1);
	for (int waited = 0; !l.execs && waited < WAIT_MS; waited += 20)
		poll_for(&l, 20);
	sample_anew(&l, 50);
	print_samples(&l, "after exec");
	assert_int_equal(l.execs, 1);
	assert_int_not_equal(l.new_exec_id, before);
	assert_int_equal(l.new_exec_id, l.exec_id);
	assert_int_equal(l.exact, 0);
	assert_true(l.ends[ABI_END_NO_PROCESS] * 10 >= l.samples * 9); /* the others: ticks in the exec itself */
	tell_space(&l); /* space of the old program for the new one: only to see that the key is right */
	sample_anew(&l, 50);
	assert_int_equal(l.ends[ABI_END_NO_PROCESS], 0);
	close_live(&l, counters);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_process_is_asked_for),
		cmocka_unit_test(deep_stacks_travel_longer),
		cmocka_unit_test(files_of_overlays_are_named_as_in_maps),
		cmocka_unit_test(unknown_mapping_is_asked_for),
		cmocka_unit_test(jit_code_is_asked_for),
		cmocka_unit_test(rows_make_stacks_whole),
		cmocka_unit_test(frame_pointers_are_not_there),
		cmocka_unit_test(child_has_its_parents_mappings),
		cmocka_unit_test(exec_forgets_mappings),
	};

	if (argc != 2)
		return 2;
	deep_path = argv[1];
	bpf_tests_skip();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
