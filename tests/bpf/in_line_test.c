/* SPDX-License-Identifier: Apache-2.0 */
/* Real ticks and switches in a program whose native code calls code that it made, which calls native code, and so on
 * (fake_program.c): frames of both kinds have to stand in line, all of them, in order. The kernel side is the sampler's
 * with one runtime more (fake_shell.h). */
#include "bpf_support.h"

#include <linux/types.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/files.h"
#include "proc/mappings.h"
#include "proc/proc_read.h"
#include "runtime/runtime_sink.h"
#include "sampler/sampler.h"
#include "unwind/unwind.h"
#include "walk_fake.h"

#define FREQUENCY 2999
#define WAIT_MS 60000
#define NATIVES 4 /* leaf, middle, outer, main: as the program tells */

static const char *program_path;

struct live {
	struct sampler_state *state;
	struct sampler_events events;
	struct table_sink tables;
	struct runtime_sink runtimes;
	struct files *files;
	struct buf scratch;
	struct mapping_reader reader;
	struct mappings maps;
	struct unwind *unwind;
	uint64_t made; /* where its own code lies */
	struct {
		uint64_t low, high;
	} natives[NATIVES];
	pid_t pid;             /* of the program */
	struct program target; /* whose samples count; exec_id and start_ns are of the first sample */
	bool is_known, want_raw;
	struct abi_fake info;
	struct abi_runtimes head;
	bool host_knows; /* what head() and info() say */
	_Atomic int lives;
	uint32_t child;
	/* what came */
	int samples, whole, raw, wrong, in_line, guessed, switches, first_in_child;
	struct {
		uint64_t id;
		bool is_right;
	} stacks[1024];
	size_t stack_count;
	int waits, right_waits;
	int natives_seen; /* samples with a known native function */
	bool is_quiet;
	int depths[8], ends[ABI_END_COUNT];
};

/* ---- the program ---- */

static void start_program(struct live *l, const char *mode)
{
	int out[2];
	FILE *told;

	assert_int_equal(pipe(out), 0);
	l->pid = fork();
	assert_true(l->pid >= 0);
	if (!l->pid) {
		dup2(out[1], STDOUT_FILENO);
		execl(program_path, "fake_program", mode, (char *)NULL);
		_exit(1);
	}
	close(out[1]);
	told = fdopen(out[0], "r");
	assert_non_null(told);
	assert_int_equal(fscanf(told, " %lx", &l->made), 1);
	for (size_t i = 0; i < NATIVES; i++)
		assert_int_equal(fscanf(told, " %lx %lx", &l->natives[i].low, &l->natives[i].high), 2);
	fclose(told);
}

/* ---- a stack as text: m(ain), o(uter), 0, M(iddle), 1, s(tub), l(eaf), others as '.', root first ---- */

static uint64_t address_of(const struct live *l, const struct abi_frame *f)
{
	for (size_t i = 0; i < l->maps.count; i++)
		if (l->maps.items[i].file_id == f->a && f->b >= l->maps.items[i].offset &&
		    f->b - l->maps.items[i].offset < l->maps.items[i].end - l->maps.items[i].start)
			return l->maps.items[i].start + f->b - l->maps.items[i].offset - (f->flags & ABI_FRAME_RETURN);
	return 0;
}

static char letter_of(struct live *l, const struct abi_frame *f)
{
	static const char natives[NATIVES] = "lMom";
	uint64_t at;

	if (f->kind == ABI_FRAME_RUNTIME) {
		uint64_t slot = (f->a - l->made) / FAKE_CODE_BYTES;
		bool is_stub = slot == FAKE_STUB;

		l->in_line++;
		if (f->runtime != FAKE_IN_LINE || f->b != FAKE_COOKIE || f->extra >= FAKE_CODE_BYTES ||
		    slot > FAKE_STUB ||
		    (f->flags & ~ABI_FRAME_RETURN) != (is_stub ? ABI_FRAME_INTERNAL : ABI_FRAME_COMPILED))
			return '!';
		return "01s"[slot];
	}
	at = f->kind == ABI_FRAME_NATIVE ? address_of(l, f) : 0;
	for (size_t i = 0; i < NATIVES; i++)
		if (at >= l->natives[i].low && at < l->natives[i].high)
			return natives[i];
	return f->kind == ABI_FRAME_NATIVE ? '.' : '?';
}

/* Is it what the program can be in? Behind main come frames of the C library, in front of them those of nanosleep(). */
static bool is_legal(const char *text)
{
	static const char *const chains[] = { "mo0M1l", "msl" };

	text += strspn(text, ".");
	for (size_t i = 0; i < ARRAY_SIZE(chains); i++) {
		size_t same = 0;

		while (text[same] && text[same] == chains[i][same])
			same++;
		if (!text[same] && same)
			return true;
		if (!chains[i][same] && text[same + strspn(text + same, ".")] == 0)
			return true;
	}
	return false;
}

/* Stacks of waits travel once: struct abi_wait says how often each was there. */
static void know_stack(struct live *l, const struct abi_sample *sample, bool is_right)
{
	if (sample->trigger != ABI_TRIGGER_SWITCH || l->stack_count == ARRAY_SIZE(l->stacks))
		return;
	l->stacks[l->stack_count].id = sample->stack_id;
	l->stacks[l->stack_count++].is_right = is_right;
}

static void on_wait(void *ctx, const struct abi_wait *wait)
{
	struct live *l = ctx;

	l->waits++;
	for (size_t i = 0; i < l->stack_count; i++) {
		if (l->stacks[i].id != wait->stack_id)
			continue;
		l->right_waits += l->stacks[i].is_right;
		return;
	}
}

static void take_whole(struct live *l, const struct abi_sample *sample)
{
	size_t count = sample->frame_count - sample->kernel_count;
	char text[64] = "";

	for (size_t i = 0; i < count && i < sizeof(text) - 1; i++) {
		const struct abi_frame *f = &sample->frames[sample->frame_count - 1 - i];

		text[i] = letter_of(l, f);
		l->guessed += !!(f->flags & ABI_FRAME_GUESSED);
	}
	know_stack(l, sample, sample->user_end == ABI_END_COMPLETE && is_legal(text));
	l->natives_seen += strpbrk(text, "lMom") != NULL;
	l->whole += sample->user_end == ABI_END_COMPLETE && is_legal(text);
	if (sample->user_end == ABI_END_COMPLETE && is_legal(text)) {
		l->depths[MIN(strlen(text + strspn(text, ".")), 7U)]++;
		return;
	}
	l->wrong++;
	if (l->wrong < 10 && !l->is_quiet)
		print_message("  %s, end %d\n", text, sample->user_end);
}

/* ---- samples ---- */

static void know(struct live *l, const struct abi_sample *sample)
{
	int dir = proc_dir_open("", sample->pid);

	l->target = (struct program){ .pid = sample->pid,
				      .exec_id = sample->exec_id,
				      .start_ns = sample->process_start_ns };
	assert_true(dir >= 0);
	assert_int_equal(mappings_read(&l->reader, dir, sample->pid, &l->maps), 0);
	close(dir);
	assert_true(unwind_set_process(l->unwind, &l->target, &l->maps));
	l->info.start_ns = l->target.start_ns;
	l->info.exec_id = l->target.exec_id;
	l->info.low = l->made;
	l->head = (struct abi_runtimes){
		.start_ns = l->target.start_ns,
		.exec_id = l->target.exec_id,
		.range_count = 1,
		.ranges = { { .low = l->made, .size = FAKE_SLOTS * FAKE_CODE_BYTES, .runtime = FAKE_IN_LINE } }
	};
	l->is_known = true;
}

static void on_sample(void *ctx, const struct abi_sample *sample)
{
	struct live *l = ctx;

	assert_int_equal(abi_record_check(sample, sample->header.size), sample->header.size);
	if (l->child && sample->pid == l->child)
		l->first_in_child += !l->first_in_child && !(sample->flags & ABI_SAMPLE_RAW);
	if (sample->pid != (l->child ? l->child : (uint32_t)l->pid))
		return;
	if (!l->is_known)
		know(l, sample);
	l->samples++;
	l->switches += sample->trigger == ABI_TRIGGER_SWITCH;
	l->ends[sample->user_end]++;
	if (sample->flags & ABI_SAMPLE_RAW) {
		l->raw++;
		ignore(unwind_raw(l->unwind, sample, &l->maps));
		return;
	}
	take_whole(l, sample);
}

static void on_process(void *ctx, const struct abi_process *event)
{
	struct live *l = ctx;

	if (event->header.type == ABI_RECORD_FORK && event->parent_pid == (uint32_t)l->pid)
		l->child = event->pid;
}

static void poll_once(struct live *l)
{
	struct abi_sample *sample;

	assert_true(sampler_find(STR("bpf"))->poll(l->state, 20, &l->events) >= 0);
	while ((sample = unwind_take(l->unwind))) {
		if (l->want_raw) {
			assert_int_equal(abi_record_check(sample, sample->header.size), sample->header.size);
			take_whole(l, sample);
		}
		free(sample);
	}
}

static void clear(struct live *l)
{
	for (int i = 0; i < 10; i++)
		poll_once(l);
	l->samples = l->whole = l->raw = l->wrong = l->in_line = l->guessed = l->switches = l->natives_seen = 0;
	l->waits = l->right_waits = 0;
	memset(l->depths, 0, sizeof(l->depths));
	memset(l->ends, 0, sizeof(l->ends));
}

static void run_until(struct live *l, const int *what, int wanted)
{
	uint64_t until = clock_monotonic_ns(&clock_system) + WAIT_MS * NSEC_PER_MSEC;

	while (*what < wanted) {
		assert_true(clock_monotonic_ns(&clock_system) < until);
		poll_once(l);
	}
}

static void tell(struct live *l)
{
	assert_int_equal(l->runtimes.set(l->runtimes.self, FAKE_IN_LINE, l->target.pid, &l->info, sizeof(l->info)), 0);
	assert_int_equal(l->runtimes.head(l->runtimes.self, l->target.pid, &l->head), 0);
}

/* ---- the host's steps ---- */

static int host_head(void *self, const struct program *p, struct abi_runtimes *out)
{
	const struct live *l = self;

	assert_int_equal(p->pid, l->target.pid);
	*out = l->head;
	return l->host_knows ? 0 : -ENOENT;
}

static int host_info(void *self, const struct program *p, enum abi_runtime runtime, void *out)
{
	const struct live *l = self;

	(void)p;
	assert_int_equal(runtime, FAKE_IN_LINE);
	memcpy(out, &l->info, sizeof(l->info));
	return 0;
}

/* What code there says, it says in the living process only: the mapping has no file. */
static enum walk_next host_step(void *self, struct walk *w)
{
	const struct abi_fake *info = (const struct abi_fake *)w->info;
	uint8_t first;

	(void)self;
	if (walk_read(w, &first, 1, info->low) || first != 0x48)
		return WALK_SWITCH;
	return walk_fake_step(w, info);
}

static bool host_lives(void *self, const struct program *p)
{
	struct live *l = self;

	(void)p;
	return l->lives-- > 0;
}

static void open_live(struct live *l, const char *mode, bool off_cpu, bool copy_all)
{
	const struct sampler *bpf = sampler_find(STR("bpf"));
	const struct in_line runtimes = {
		.head = host_head, .info = host_info, .step = host_step, .lives = host_lives, .self = l
	};
	struct unwind_config unwind = { .host_root = "", .mode = WALK_AUTO, .clock = &clock_system, .wake_fd = -1 };
	struct sampler_config cfg = { .frequency_hz = FREQUENCY,
				      .poll_interval_ms = 100,
				      .pids = &l->pid,
				      .pid_count = 1,
				      .follow_children = true,
				      .off_cpu = off_cpu,
				      .copy_all = copy_all,
				      .mode = WALK_AUTO,
				      .host_root = "" };
	struct buf why = BUF_INIT(KIB(64));

	memset(l, 0, sizeof(*l));
	start_program(l, mode);
	l->events = (struct sampler_events){ .sample = on_sample, .process = on_process, .wait = on_wait, .ctx = l };
	if (bpf->open(&cfg, &why, &l->state) < 0)
		fail_msg("open: %s", buf_cstr(&why));
	buf_release(&why);
	assert_int_equal(files_open(256, &l->files), 0);
	l->scratch = (struct buf)BUF_INIT(MIB(4));
	mapping_reader_init(&l->reader, l->files, &l->scratch, 1000);
	assert_int_equal(bpf->tables(l->state, &l->tables), 0);
	assert_int_equal(bpf->runtimes(l->state, &l->runtimes), 0);
	unwind.sink = &l->tables;
	unwind.runtimes = &runtimes;
	assert_int_equal(unwind_open(&unwind, l->files, &l->unwind), 0);
	assert_int_equal(bpf->start(l->state), 0);
	run_until(l, &l->samples, 1);
}

static void close_live(struct live *l, uint64_t counters[ABI_COUNTER_COUNT])
{
	const struct sampler *bpf = sampler_find(STR("bpf"));
	int status;

	kill(l->pid, SIGKILL);
	assert_int_equal(waitpid(l->pid, &status, 0), l->pid);
	assert_int_equal(bpf->stop(l->state), 0);
	assert_true(bpf->poll(l->state, 0, &l->events) >= 0);
	bpf->counters(l->state, counters);
	unwind_close(l->unwind);
	bpf->close(l->state);
	mappings_release(&l->maps);
	mapping_reader_release(&l->reader);
	buf_release(&l->scratch);
	files_close(l->files);
	assert_int_equal(counters[ABI_COUNTER_LOST_REJECTED], 0);
	assert_int_equal(counters[ABI_COUNTER_LOST_NO_STATE], 0);
}

static void print_live(const struct live *l, const char *what)
{
	print_message("  %s: %d samples, %d whole, %d wrong, %d raw, %d in line, %d guessed, %d at switches; depths",
		      what, l->samples, l->whole, l->wrong, l->raw, l->in_line, l->guessed, l->switches);
	for (size_t i = 0; i < ARRAY_SIZE(l->depths); i++)
		print_message(" %d", l->depths[i]);
	print_message("\n");
}

#define STACKS 5000

static void ticks(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	static struct live l;

	(void)state;
	open_live(&l, NULL, false, false);
	clear(&l);
	run_until(&l, &l.samples, 300);
	print_live(&l, "nothing told");
	assert_int_equal(l.in_line, 0);
	assert_true(l.whole * 10 < l.samples * 9); /* or the program would prove nothing */
	tell(&l);
	clear(&l);
	run_until(&l, &l.samples, STACKS);
	print_live(&l, "ticks");
	close_live(&l, counters);
	assert_int_equal(l.whole, l.samples);
	assert_int_equal(l.raw + l.guessed, 0);
	for (size_t depth = 1; depth <= 6; depth++)
		assert_true(l.depths[depth] > 0 || depth == 1);
	assert_int_equal(counters[ABI_COUNTER_RUNTIME_STUCK], 0);
	assert_int_equal(counters[ABI_COUNTER_RUNTIME_NO_INFO], 0);
}

static void switches(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	static struct live l;

	(void)state;
	open_live(&l, "wait", true, false);
	tell(&l);
	clear(&l);
	run_until(&l, &l.waits, STACKS);
	print_live(&l, "switches");
	print_message("  %d waits, %d with a whole stack in order, of %zu stacks\n", l.waits, l.right_waits,
		      l.stack_count);
	close_live(&l, counters);
	assert_int_equal(l.right_waits, l.waits);
	assert_int_equal(l.whole, l.samples);
	assert_int_equal(l.raw + l.guessed, 0);
}

/* Nothing is walked in the kernel: stacks come as copies, what the runtime's step reads of its code comes from the
 * living process. */
static void copies(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	static struct live l;

	(void)state;
	open_live(&l, NULL, false, true);
	l.want_raw = true;
	clear(&l);
	run_until(&l, &l.raw, 100);
	print_live(&l, "copies, nothing told");
	assert_int_equal(l.in_line, 0);
	l.lives = INT32_MAX;
	l.host_knows = true;
	clear(&l);
	run_until(&l, &l.raw, STACKS);
	unwind_drain(l.unwind);
	poll_once(&l);
	print_live(&l, "copies");
	assert_int_equal(l.wrong + l.guessed, 0);
	assert_true(l.whole >= STACKS && l.in_line > STACKS / 2);

	l.lives = 0; /* another process has its number by now: nothing of it is read */
	clear(&l);
	run_until(&l, &l.raw, 100);
	print_live(&l, "copies of one that has ended");
	assert_int_equal(l.in_line, 0);
	close_live(&l, counters);
}

/* The child is walked as its parent from its first tick on, without a word of the host. */
static void a_child_has_its_parents_ranges(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	static struct live l;

	(void)state;
	open_live(&l, NULL, false, false);
	tell(&l);
	clear(&l);
	run_until(&l, &l.samples, 100);
	assert_int_equal(l.wrong, 0);
	kill(l.pid, SIGUSR2);
	while (!l.child)
		poll_once(&l);
	l.samples = l.whole = l.in_line = l.wrong = 0;
	run_until(&l, &l.samples, 300);
	print_live(&l, "child");
	assert_true(l.first_in_child > 0);
	assert_true(l.in_line > 200);
	assert_true(l.wrong * 100 <= l.samples * 2); /* in fork() and on the way back from the signal's handler */
	close_live(&l, counters);
}

struct bad_case {
	const char *name;
	struct abi_code_range ranges[ABI_CODE_RANGES];
	uint16_t range_count;
	uint32_t fault;   /* enum fake_fault */
	uint32_t exec_id; /* added to that of the info */
	uint8_t counter;  /* enum abi_counter that has to grow; 0: none */
	bool as_without;  /* the native stack is as if nothing had been told */
	bool is_whole;    /* nothing is lost */
};

#define ALL_USER ((1ULL << 47) - 4096)

static const struct bad_case bad_cases[] = {
	{ "a step that stands still", .fault = FAKE_STANDS_STILL, .counter = ABI_COUNTER_RUNTIME_STUCK },
	{ "one that goes down", .fault = FAKE_GOES_DOWN, .counter = ABI_COUNTER_RUNTIME_STUCK },
	{ "one that knows no code", .fault = FAKE_NEVER_MINE, .as_without = true },
	{ "info of another exec", .exec_id = 1, .counter = ABI_COUNTER_RUNTIME_NO_INFO, .as_without = true },
	{ "a runtime without a step", .range_count = 1, .ranges = { { 4096, ALL_USER, 9, 0 } },
	  .counter = ABI_COUNTER_RUNTIME_NO_INFO, .as_without = true },
	{ "a runtime that cannot be", .range_count = 1, .ranges = { { 4096, ALL_USER, UINT32_MAX, 0 } },
	  .counter = ABI_COUNTER_RUNTIME_NO_INFO, .as_without = true },
	{ "more ranges than there may be", .range_count = UINT16_MAX, .is_whole = true },
	{ "all code there is", .range_count = 1, .ranges = { { 4096, ALL_USER, FAKE_IN_LINE, 0 } }, .is_whole = true },
	{ "one that wraps", .range_count = 1, .ranges = { { 0, UINT64_MAX, FAKE_IN_LINE, 0 } }, .is_whole = true },
	{ "ranges over each other", .range_count = 4,
	  .ranges = { { 4096, ALL_USER, FAKE_IN_LINE, 0 },
		      { 8192, ALL_USER, FAKE_IN_LINE, 0 },
		      { 0, UINT64_MAX, 9, 0 },
		      { UINT64_MAX - 1, 4, FAKE_IN_LINE, 0 } },
	  .is_whole = true },
};

/* What is told of the process is wrong: bounded, counted, and what is native stays. */
static void bad_input(void **state)
{
	const struct sampler *bpf = sampler_find(STR("bpf"));
	uint64_t counters[ABI_COUNTER_COUNT];
	static struct live l;
	struct abi_runtimes good;
	struct abi_fake info;

	(void)state;
	open_live(&l, NULL, false, false);
	good = l.head;
	info = l.info;
	for (size_t i = 0; i < ARRAY_SIZE(bad_cases); i++) {
		const struct bad_case *c = &bad_cases[i];
		uint64_t before;

		l.head = good;
		l.info = info;
		l.info.fault = c->fault;
		l.info.exec_id += c->exec_id;
		if (c->range_count)
			l.head.range_count = c->range_count;
		if (c->ranges[0].size)
			memcpy(l.head.ranges, c->ranges, sizeof(l.head.ranges));
		bpf->counters(l.state, counters);
		before = counters[c->counter];
		l.is_quiet = true;
		tell(&l);
		clear(&l);
		run_until(&l, &l.samples, 300);
		print_live(&l, c->name);
		bpf->counters(l.state, counters);
		assert_true(!c->counter || counters[c->counter] > before);
		assert_true(!c->as_without || !l.in_line);
		assert_true(!c->is_whole || l.whole == l.samples);
		assert_true(l.natives_seen >= l.samples / 4); /* those whose leaf is native */
	}
	close_live(&l, counters);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ticks),     cmocka_unit_test(switches),
		cmocka_unit_test(copies),    cmocka_unit_test(a_child_has_its_parents_ranges),
		cmocka_unit_test(bad_input),
	};

	if (argc != 2)
		return 2;
	program_path = argv[1];
	bpf_tests_skip();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
