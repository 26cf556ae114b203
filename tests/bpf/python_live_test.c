/* SPDX-License-Identifier: Apache-2.0 */
/* Real interpreters under real ticks: the frames of a known load, its names, and how often the walk has to say less. */
#include "bpf_support.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "python_process.h"
#include "runtime/runtime_sink.h"
#include "sampler/sampler.h"
#include "walk/walk.h"

#define NAMES_MAX 8192
#define LIVE_NS (1500 * NSEC_PER_MSEC)

static const char *target;

struct known {
	uint64_t key, cookie;
	struct python_function function;
};

struct live {
	struct sampler_state *state;
	struct sampler_events events;
	struct runtime_sink sink;
	struct python_process process;
	const char *const *chain; /* root first, those that always are there */
	size_t chain_count, known_count;
	struct known *known;
	bool is_set, is_recalled;
	uint64_t recall_ns;              /* when all names are asked for again; 0: never */
	uint64_t stacks[8];              /* ids of waits that were seen first */
	size_t stack_count, recalled_at; /* names known then */
	int children, waits;             /* samples of other processes; of threads that begin to wait */
	int samples, whole, gaps, no_state, others, legal, unnamed, unreadable, entries, activations, distances;
};

static const struct known *find_known(const struct live *l, const struct abi_frame *frame)
{
	for (size_t i = l->known_count; i > 0; i--) {
		if (l->known[i - 1].key == frame->a && l->known[i - 1].cookie == frame->b)
			return &l->known[i - 1];
	}
	return NULL;
}

static const char *name_of(struct live *l, const struct abi_frame *frame)
{
	const struct known *known = find_known(l, frame);

	if (known)
		return known->function.name;
	l->unnamed++;
	return "?";
}

static void on_name(void *ctx, const struct abi_name *name)
{
	struct live *l = ctx;
	struct known *to = &l->known[l->known_count];

	if (l->known_count == NAMES_MAX)
		return;
	*to = (struct known){ .key = name->key, .cookie = name->cookie };
	if (python_decode(name, &to->function) < 0) {
		l->unreadable++;
		snprintf(to->function.name, sizeof(to->function.name), "unreadable");
	}
	l->known_count++;
}

/* Qualified names end in the plain one. */
static bool is_called(const char *name, const char *want)
{
	size_t length = strlen(name), tail = strlen(want);

	return length >= tail && !strcmp(name + length - tail, want);
}

static void take_whole(struct live *l, const struct abi_sample *sample)
{
	const struct abi_frame *frames = sample->frames + sample->frame_count;
	size_t at = 0, bad = 0;

	for (size_t i = sample->runtime_count; i > 0; i--) {
		const struct abi_frame *frame = &frames[i - 1];

		l->entries += frame->flags & ABI_FRAME_ENTRY ? 1 : 0;
		l->activations += frame->kind == ABI_FRAME_ACTIVATION;
		if (frame->kind != ABI_FRAME_RUNTIME)
			continue;
		if (at < l->chain_count && !is_called(name_of(l, frame), l->chain[at]))
			bad++;
		at++;
	}
	l->legal += !bad && at >= l->chain_count;
	if ((bad || at < l->chain_count) && getenv("VERBOSE")) {
		for (size_t i = sample->runtime_count; i > 0; i--)
			print_message(" %s",
				      frames[i - 1].kind == ABI_FRAME_RUNTIME ? name_of(l, &frames[i - 1]) : "|");
		print_message("\n");
	}
}

static void check_distances(struct live *l, const struct abi_sample *sample)
{
	uint32_t last = 0;

	for (size_t i = sample->kernel_count; i < sample->frame_count; i++) {
		assert_true(i == sample->kernel_count ? !sample->frames[i].extra : sample->frames[i].extra >= last);
		last = sample->frames[i].extra;
		l->distances++;
	}
}

static void take_wait(struct live *l, const struct abi_sample *sample)
{
	l->waits++;
	for (size_t i = 0; i < l->stack_count; i++)
		if (l->stacks[i] == sample->stack_id)
			return;
	if (l->stack_count < ARRAY_SIZE(l->stacks))
		l->stacks[l->stack_count++] = sample->stack_id;
}

static void on_sample(void *ctx, const struct abi_sample *sample)
{
	struct live *l = ctx;

	if (!l->is_set) {
		const struct abi_runtimes head = { .start_ns = sample->process_start_ns,
						   .exec_id = sample->exec_id,
						   .behind = 1U << ABI_RUNTIME_PYTHON };

		l->process.info.start_ns = sample->process_start_ns;
		l->process.info.exec_id = sample->exec_id;
		assert_int_equal(l->sink.set(l->sink.self, ABI_RUNTIME_PYTHON, sample->pid, &l->process.info,
					     sizeof(l->process.info)),
				 0);
		assert_int_equal(l->sink.head(l->sink.self, sample->pid, &head), 0);
		l->is_set = true;
		return;
	}
	if (sample->runtime_end == ABI_RUNTIME_END_NONE)
		return;
	l->samples++;
	l->children += sample->pid != (uint32_t)l->process.pid;
	if (sample->trigger == ABI_TRIGGER_SWITCH)
		take_wait(l, sample);
	l->gaps += sample->runtime_end == ABI_RUNTIME_END_GAP;
	l->no_state += sample->runtime_end == ABI_RUNTIME_END_NO_STATE;
	check_distances(l, sample);
	if (sample->runtime_end == ABI_RUNTIME_END_WHOLE) {
		l->whole++;
		take_whole(l, sample);
	} else if (sample->runtime_end != ABI_RUNTIME_END_GAP && sample->runtime_end != ABI_RUNTIME_END_NO_STATE) {
		l->others++;
		print_message("  end %d, %d frames:", sample->runtime_end, sample->runtime_count);
		for (size_t i = 0; i < sample->runtime_count; i++) {
			const struct abi_frame *frame = &sample->frames[sample->frame_count + i];

			print_message(" %s%s", frame->kind == ABI_FRAME_RUNTIME ? name_of(l, frame) : "|",
				      frame->flags & ABI_FRAME_GAP ? "..." : "");
		}
		print_message("\n");
	}
}

static void on_process(void *ctx, const struct abi_process *event)
{
	(void)ctx;
	(void)event;
}

static void open_live(struct live *l, const struct sampler_config *cfg)
{
	const struct sampler *bpf = sampler_find(STR("bpf"));
	struct buf why = BUF_INIT(KIB(64));

	l->known = calloc(NAMES_MAX, sizeof(*l->known));
	assert_non_null(l->known);
	l->events = (struct sampler_events){ .sample = on_sample, .process = on_process, .name = on_name, .ctx = l };
	if (bpf->open(cfg, &why, &l->state) < 0)
		fail_msg("open: %s", buf_cstr(&why));
	buf_release(&why);
	assert_int_equal(bpf->runtimes(l->state, &l->sink), 0);
	assert_int_equal(bpf->start(l->state), 0);
}

static void run_live(struct live *l, uint64_t ns, uint64_t counters[ABI_COUNTER_COUNT])
{
	const struct sampler *bpf = sampler_find(STR("bpf"));
	uint64_t until = clock_monotonic_ns(&clock_system) + ns;

	while (clock_monotonic_ns(&clock_system) < until) {
		assert_true(bpf->poll(l->state, 50, &l->events) >= 0);
		if (l->recall_ns && !l->is_recalled && clock_monotonic_ns(&clock_system) > until - l->recall_ns) {
			l->is_recalled = true;
			l->recalled_at = l->known_count;
			l->sink.recall(l->sink.self);
		}
	}
	assert_int_equal(bpf->stop(l->state), 0);
	assert_true(bpf->poll(l->state, 0, &l->events) >= 0);
	bpf->counters(l->state, counters);
	bpf->close(l->state);
	free(l->known);
	python_end(&l->process);
	assert_int_equal(counters[ABI_COUNTER_LOST_REJECTED], 0);
}

#define CONFIG(...)                                                                                                    \
	{                                                                                                              \
		.frequency_hz = 997, .poll_interval_ms = 100, .host_root = "", .pid_count = 1, .pids = &l.process.pid, \
		.mode = WALK_FP, __VA_ARGS__                                                                           \
	}

static const char *const main_chain[] = { "<module>", "main", "deep", "deep", "deep", "deep" };

static void print_live(const struct live *l, const char *version, const char *load)
{
	print_message("  %s %s: %d samples, %d whole, %d legal, %d gaps, %d no state, %d other ends; %zu names, %d not "
		      "sent, %d unreadable; %d entries, %d activations\n",
		      version, load, l->samples, l->whole, l->legal, l->gaps, l->no_state, l->others, l->known_count,
		      l->unnamed, l->unreadable, l->entries, l->activations);
}

static void check_load(const struct python_program *program, const char *load, const char *const *chain, size_t count)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	struct live l = { .chain = chain, .chain_count = count };
	struct sampler_config cfg = CONFIG(.off_cpu = false);

	assert_int_equal(python_start(program, target, load, 60, &l.process), 0);
	open_live(&l, &cfg);
	run_live(&l, LIVE_NS, counters);
	print_live(&l, program->version, load);
	assert_true(l.samples > 50);
	assert_int_equal(l.others, 0);
	assert_true(l.gaps * 20 <= l.samples);
	assert_true((l.whole + l.gaps) * 100 >= l.samples * 98);
	if (strcmp(load, "threads"))
		assert_int_equal(l.legal, l.whole);
	else /* the main thread may still be starting the last of them */
		assert_true(l.legal * 100 >= l.whole * 95);
	assert_int_equal(l.unnamed, 0);
	assert_true(l.unreadable <= 8 * l.gaps); /* what lay there was no frame, and is in no sample */
	assert_int_equal(counters[ABI_COUNTER_NAMES], l.known_count);
	assert_int_equal(counters[ABI_COUNTER_NAMES_LOST], 0);
	assert_int_equal(counters[ABI_COUNTER_RUNTIME_WALKS], l.samples);
	assert_int_equal(counters[ABI_COUNTER_RUNTIME_GAPS], l.gaps);
}

static bool has_module(const struct python_program *program, const char *module)
{
	pid_t pid = fork();
	char code[64];
	int status;

	if (pid == 0) {
		snprintf(code, sizeof(code), "import %s", module);
		ignore(freopen("/dev/null", "w", stderr) == NULL);
		execl(program->path, program->path, "-c", code, (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* The interpreters of this form of the test (HEARTH_FORM, scripts/testing.py): of all, the quick one takes the oldest
 * and the newest, the sampled one another one in rotation, too. */
static size_t some_programs(struct python_program out[PYTHONS_MAX])
{
	const char *form = getenv("HEARTH_FORM"), *turn = getenv("HEARTH_ROTATION");
	bool is_quick = form && !strcmp(form, "quick"), is_sampled = form && !strcmp(form, "sampled");
	size_t count = python_programs(out), kept = 1, other;

	if ((!is_quick && !is_sampled) || count < 3)
		return count;
	other = 1 + (turn ? strtoul(turn, NULL, 10) : 0) % (count - 2);
	if (is_sampled)
		out[kept++] = out[other];
	out[kept++] = out[count - 1];
	return kept;
}

static void known_loads(void **state)
{
	static const char *const loads[] = { "recursive", "classes", "generators", "made" };
	static struct python_program programs[PYTHONS_MAX];
	size_t count = some_programs(programs);
	const char *only = getenv("ONLY");

	(void)state;
	if (!count)
		skip_because("no interpreter that this test knows");
	for (size_t i = 0; i < count; i++) {
		if (only && strcmp(only, programs[i].version))
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(loads); k++)
			check_load(&programs[i], loads[k], main_chain, ARRAY_SIZE(main_chain));
	}
}

/* Threads that wait for the GIL, too; each begins with a function of the module threading. */
static void threads(void **state)
{
	static const char *const chain[] = { "bootstrap", "bootstrap_inner", "run", "deep", "deep", "deep", "deep" };
	static struct python_program programs[PYTHONS_MAX];
	size_t count = some_programs(programs);

	(void)state;
	for (size_t i = 0; i < count; i++)
		check_load(&programs[i], "threads", chain, ARRAY_SIZE(chain));
}

/* The last interpreter that is there. */
static void need_program(struct python_program *out)
{
	static struct python_program programs[PYTHONS_MAX];
	size_t count = python_programs(programs);

	if (!count)
		skip_because("no interpreter that this test knows");
	*out = programs[count - 1];
}

static void greenlets(void **state)
{
	static const char *const chain[] = { "<lambda>", "deeper", "deeper", "deeper", "deeper", "deeper", "deeper" };
	static struct python_program programs[PYTHONS_MAX];
	size_t count = python_own_programs(programs);

	(void)state;
	while (count && !has_module(&programs[count - 1], "greenlet"))
		count--;
	if (!count)
		skip_because("needs the Python module greenlet");
	check_load(&programs[count - 1], "greenlets", chain, ARRAY_SIZE(chain));
}

/* What is known of a process is known of its children before their first tick. */
static void forked_children(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	struct live l = { .chain = main_chain, .chain_count = 2 };
	struct sampler_config cfg = CONFIG(.follow_children = true);
	struct python_program program;

	(void)state;
	need_program(&program);
	assert_int_equal(python_start(&program, target, "fork", 60, &l.process), 0);
	open_live(&l, &cfg);
	run_live(&l, 2 * LIVE_NS, counters);
	print_live(&l, program.version, "fork");
	print_message("  %d of children\n", l.children);
	assert_true(l.children > 50);
	/* Of a child whose pages go, or are not there yet: its stack says so. */
	assert_in_range(l.others, 0, l.samples / 500);
	assert_int_equal(l.unnamed, 0);
	assert_int_equal(l.legal, l.whole);
	assert_true((l.whole + l.gaps) * 100 >= l.samples * 95);
}

static void waits_have_frames(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	struct live l = { .chain = main_chain, .chain_count = ARRAY_SIZE(main_chain) };
	struct sampler_config cfg = CONFIG(.off_cpu = true);
	struct python_program program;

	(void)state;
	need_program(&program);
	assert_int_equal(python_start(&program, target, "sleep", 60, &l.process), 0);
	open_live(&l, &cfg);
	run_live(&l, LIVE_NS, counters);
	print_live(&l, program.version, "sleep");
	print_message("  %d stacks of waits told, %zu different; %llu waits\n", l.waits, l.stack_count,
		      (unsigned long long)counters[ABI_COUNTER_WAITS]);
	assert_true(l.waits > 0);
	assert_true(counters[ABI_COUNTER_WAITS] > 100);
	assert_in_range(l.stack_count, 1, 7); /* the same place again and again */
	assert_int_equal(l.others, 0);
	assert_int_equal(l.unnamed, 0);
	assert_int_equal(l.legal, l.whole);
}

static void names_are_recalled(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	struct live l = { .chain = main_chain, .chain_count = ARRAY_SIZE(main_chain), .recall_ns = LIVE_NS / 2 };
	struct sampler_config cfg = CONFIG(.off_cpu = false);
	struct python_program program;

	(void)state;
	need_program(&program);
	assert_int_equal(python_start(&program, target, "recursive", 60, &l.process), 0);
	open_live(&l, &cfg);
	run_live(&l, LIVE_NS, counters);
	print_message("  %zu names, %zu after they were asked for again\n", l.recalled_at,
		      l.known_count - l.recalled_at);
	assert_true(l.recalled_at >= 5);
	assert_true(l.known_count - l.recalled_at >= 5);
}

/* ---- the exec of a program that is known as a runtime ---- */

static void sleep_and_exec(const char *path, int gate)
{
	char byte;

	ignore(read(gate, &byte, 1) < 0);
	usleep(300000);
	execl(path, path, "-c", "", (char *)NULL);
	_exit(127);
}

static void on_any_sample(void *ctx, const struct abi_sample *sample)
{
	(void)ctx;
	(void)sample;
}

static void on_exec(void *ctx, const struct abi_process *event)
{
	int *execs = ctx;

	*execs += event->header.type == ABI_RECORD_EXEC;
}

/* Return: ns until the reader was woken, 2 s at most. */
static uint64_t time_to_wake(const char *path, bool is_known)
{
	const struct sampler *bpf = sampler_find(STR("bpf"));
	int gate[2], opened = pipe(gate);
	pid_t pid = fork();
	struct live l = { .process = { .pid = pid } };
	struct sampler_config cfg = CONFIG(.follow_children = true);
	struct buf why = BUF_INIT(KIB(64));
	int execs = 0;
	struct sampler_events events = { .sample = on_any_sample, .process = on_exec, .ctx = &execs };
	uint64_t start, took;
	struct stat st;

	if (pid == 0)
		sleep_and_exec(path, gate[0]);
	assert_true(opened == 0 && pid > 0);
	cfg.frequency_hz = 1;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(bpf->open(&cfg, &why, &l.state), 0);
	assert_int_equal(bpf->runtimes(l.state, &l.sink), 0);
	if (is_known)
		assert_int_equal(l.sink.set_program(l.sink.self, st.st_dev, st.st_ino), 0);
	assert_int_equal(bpf->start(l.state), 0);
	start = clock_monotonic_ns(&clock_system);
	assert_int_equal(write(gate[1], "x", 1), 1);
	assert_true(bpf->poll(l.state, 2000, &events) >= 0);
	took = clock_monotonic_ns(&clock_system) - start;
	waitpid(pid, NULL, 0);
	assert_int_equal(execs, 1);
	bpf->close(l.state);
	close(gate[0]);
	close(gate[1]);
	buf_release(&why);
	return took;
}

static void known_programs_wake(void **state)
{
	uint64_t known, other;

	(void)state;
	known = time_to_wake("/bin/true", true);
	other = time_to_wake("/bin/true", false);
	print_message("  woken %.0f ms after the beginning, %.0f when it is not known\n", (double)known / NSEC_PER_MSEC,
		      (double)other / NSEC_PER_MSEC);
	assert_true(known < 1500 * NSEC_PER_MSEC);
	assert_true(other >= 1900 * NSEC_PER_MSEC);
}

static void the_map_is_full(void **state)
{
	struct live l = { 0 };
	struct sampler_config cfg = CONFIG(.off_cpu = false);
	const struct abi_python info = { 0 };
	uint8_t short_one[8] = { 0 };
	uint32_t pid = 1;
	int r = 0;

	(void)state;
	cfg.pid_count = 0;
	open_live(&l, &cfg);
	assert_int_equal(l.sink.set(l.sink.self, ABI_RUNTIME_PYTHON, 1, short_one, sizeof(short_one)), -EINVAL);
	assert_int_equal(l.sink.set(l.sink.self, ABI_RUNTIME_COUNT - 1, 1, &info, sizeof(info)), -ENOTSUP);
	for (; r == 0 && pid < 100000; pid++)
		r = l.sink.set(l.sink.self, ABI_RUNTIME_PYTHON, 1 + pid, &info, sizeof(info));
	assert_int_equal(r, -ENOSPC);
	assert_in_range(pid, 1024, 50000);
	l.sink.forget(l.sink.self, ABI_RUNTIME_PYTHON, 2);
	l.sink.forget(l.sink.self, ABI_RUNTIME_PYTHON, 2);
	assert_int_equal(l.sink.set(l.sink.self, ABI_RUNTIME_PYTHON, 2, &info, sizeof(info)), 0);
	for (r = 0, pid = 0; r == 0 && pid < 100000; pid++)
		r = l.sink.set_program(l.sink.self, 1, pid);
	assert_int_equal(r, 1); /* there was no room: it begins anew */
	assert_in_range(pid, 1024, 50000);
	assert_int_equal(l.sink.set_program(l.sink.self, 1, 0), 0);
	sampler_find(STR("bpf"))->close(l.state);
	free(l.known);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_loads),         cmocka_unit_test(threads),
		cmocka_unit_test(greenlets),           cmocka_unit_test(forked_children),
		cmocka_unit_test(waits_have_frames),   cmocka_unit_test(names_are_recalled),
		cmocka_unit_test(known_programs_wake), cmocka_unit_test(the_map_is_full),
	};

	target = argc > 1 ? argv[1] : "";
	bpf_tests_skip();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
