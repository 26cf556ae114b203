/* SPDX-License-Identifier: Apache-2.0 */
/* Two runtimes in one process: Python, walked behind the native frames, calls code that was made at run time, whose
 * frames stand among them, and that calls Python again (in_line_target.py). Each has to be whole, and right beside the
 * other. The kernel side is the sampler's with one runtime more (fake_shell.h). */
#include "bpf_support.h"

#include <linux/types.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/files.h"
#include "proc/mappings.h"
#include "proc/proc_read.h"
#include "python_process.h"
#include "runtime/runtime_sink.h"
#include "sampler/sampler.h"
#include "unwind/unwind.h"
#include "walk_fake.h"

#define FREQUENCY 1999
#define WAIT_MS 60000
#define STACKS 3000
#define PLACE 0x6a0000000000ULL /* as in_line_target.py says */
#define CODES_MAX 4096
#define TEXT_MAX 512

static const char *target;

struct code {
	uint64_t key, cookie;
	char name[64];
};

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
	struct python_process process;
	struct code *codes;
	size_t code_count;
	bool is_known;
	/* what came */
	int samples, whole, right, wrong, in_line, called, without_list, cut, raw;
};

/* ---- what is known of the process ---- */

static void know(struct live *l, const struct abi_sample *sample)
{
	const struct program program = { .pid = sample->pid,
					 .exec_id = sample->exec_id,
					 .start_ns = sample->process_start_ns };
	const struct abi_fake fake = { .start_ns = program.start_ns, .exec_id = program.exec_id, .low = PLACE };
	const struct abi_runtimes head = {
		.start_ns = program.start_ns,
		.exec_id = program.exec_id,
		.behind = 1U << ABI_RUNTIME_PYTHON,
		.range_count = 1,
		.ranges = { { .low = PLACE, .size = FAKE_SLOTS * FAKE_CODE_BYTES, .runtime = FAKE_IN_LINE } },
	};
	int dir = proc_dir_open("", sample->pid);

	assert_true(dir >= 0);
	assert_int_equal(mappings_read(&l->reader, dir, sample->pid, &l->maps), 0);
	close(dir);
	assert_true(unwind_set_process(l->unwind, &program, &l->maps));
	l->process.info.start_ns = program.start_ns;
	l->process.info.exec_id = program.exec_id;
	assert_int_equal(l->runtimes.set(l->runtimes.self, ABI_RUNTIME_PYTHON, sample->pid, &l->process.info,
					 sizeof(l->process.info)),
			 0);
	assert_int_equal(l->runtimes.set(l->runtimes.self, FAKE_IN_LINE, sample->pid, &fake, sizeof(fake)), 0);
	assert_int_equal(l->runtimes.head(l->runtimes.self, sample->pid, &head), 0);
	l->is_known = true;
}

static void on_name(void *ctx, const struct abi_name *name)
{
	struct live *l = ctx;
	struct code *to = &l->codes[l->code_count];
	struct python_function function;

	assert_true(l->code_count < CODES_MAX);
	if (python_decode(name, &function) < 0)
		return;
	*to = (struct code){ .key = name->key, .cookie = name->cookie };
	snprintf(to->name, sizeof(to->name), "%.63s", function.name);
	l->code_count++;
}

static const char *name_of(const struct live *l, const struct abi_frame *f)
{
	for (size_t i = l->code_count; i > 0; i--)
		if (l->codes[i - 1].key == f->a && l->codes[i - 1].cookie == f->b)
			return l->codes[i - 1].name;
	return "?";
}

/* ---- a stack ---- */

/* The list of Python's frames, root first: "<module> main deep ... in_line | back called leaf | ". */
static void list_text(const struct live *l, const struct abi_sample *sample, char text[TEXT_MAX])
{
	const struct abi_frame *frames = sample->frames + sample->frame_count;
	size_t at = 0;

	text[0] = 0;
	for (size_t i = sample->runtime_count; i > 0 && at < TEXT_MAX; i--)
		at += (size_t)snprintf(text + at, TEXT_MAX - at, "%s ",
				       frames[i - 1].kind == ABI_FRAME_RUNTIME ? name_of(l, &frames[i - 1]) : "|");
}

struct among { /* the frame of the made code among the native ones */
	int count;
	bool is_leaf, is_root, is_odd;
};

static struct among look(const struct abi_sample *sample)
{
	struct among a = { 0 };

	for (size_t i = sample->kernel_count; i < sample->frame_count; i++) {
		const struct abi_frame *f = &sample->frames[i];

		if (f->kind == ABI_FRAME_NATIVE || f->kind == ABI_FRAME_JIT) /* libffi's trampolines are in no file */
			continue;
		a.is_odd |= f->kind != ABI_FRAME_RUNTIME || f->runtime != FAKE_IN_LINE || f->a != PLACE ||
			    f->b != FAKE_COOKIE || !(f->flags & ABI_FRAME_COMPILED);
		a.is_leaf |= i == sample->kernel_count;
		a.is_root |= i == sample->frame_count - 1U;
		a.count++;
	}
	return a;
}

/* Python's frames say what the native ones must have: who is called from the made code is so through a frame of it. */
static bool is_right(struct live *l, const struct abi_sample *sample, const char *list)
{
	static const char start[] = "<module> main deep deep deep deep in_line ";
	struct among a = look(sample);
	bool called = strstr(list, " back ");

	l->in_line += a.count;
	l->called += called;
	if (a.is_odd || a.is_root || a.count > 1 || (called && (!a.count || a.is_leaf)))
		return false;
	if (strstr(list, " leaf ") && !strstr(list, " back called leaf "))
		return false;
	return !(called || a.count) || strstr(list, start);
}

static void take(struct live *l, const struct abi_sample *sample)
{
	char list[TEXT_MAX];

	l->without_list += sample->runtime_end != ABI_RUNTIME_END_WHOLE;
	l->cut += sample->user_end != ABI_END_COMPLETE;
	if (sample->runtime_end != ABI_RUNTIME_END_WHOLE || sample->user_end != ABI_END_COMPLETE)
		return;
	l->whole++;
	list_text(l, sample, list);
	if (is_right(l, sample, list)) {
		l->right++;
		return;
	}
	if (++l->wrong < 10)
		print_message("  %d in line: %s\n", look(sample).count, list);
}

static void on_sample(void *ctx, const struct abi_sample *sample)
{
	struct live *l = ctx;

	assert_int_equal(abi_record_check(sample, sample->header.size), sample->header.size);
	if (!l->is_known)
		know(l, sample);
	l->samples++;
	if (sample->flags & ABI_SAMPLE_RAW) {
		l->raw++;
		ignore(unwind_raw(l->unwind, sample, &l->maps));
		return;
	}
	take(l, sample);
}

static void on_process(void *ctx, const struct abi_process *event)
{
	(void)ctx;
	(void)event;
}

static void run_until(struct live *l, int wanted)
{
	uint64_t until = clock_monotonic_ns(&clock_system) + WAIT_MS * NSEC_PER_MSEC;
	struct abi_sample *sample;

	while (l->samples < wanted) {
		assert_true(clock_monotonic_ns(&clock_system) < until);
		assert_true(sampler_find(STR("bpf"))->poll(l->state, 20, &l->events) >= 0);
		while ((sample = unwind_take(l->unwind)))
			free(sample);
	}
}

static void open_live(struct live *l, const struct python_program *program)
{
	const struct sampler *bpf = sampler_find(STR("bpf"));
	struct unwind_config unwind = { .host_root = "", .mode = WALK_AUTO, .clock = &clock_system, .wake_fd = -1 };
	struct sampler_config cfg = { .frequency_hz = FREQUENCY,
				      .poll_interval_ms = 100,
				      .pids = &l->process.pid,
				      .pid_count = 1,
				      .mode = WALK_AUTO,
				      .host_root = "" };
	struct buf why = BUF_INIT(KIB(64));

	memset(l, 0, sizeof(*l));
	l->codes = calloc(CODES_MAX, sizeof(*l->codes));
	assert_non_null(l->codes);
	assert_int_equal(python_start(program, target, "in_line", 100, &l->process), 0);
	l->events = (struct sampler_events){ .sample = on_sample, .process = on_process, .name = on_name, .ctx = l };
	if (bpf->open(&cfg, &why, &l->state) < 0)
		fail_msg("open: %s", buf_cstr(&why));
	buf_release(&why);
	assert_int_equal(files_open(256, &l->files), 0);
	l->scratch = (struct buf)BUF_INIT(MIB(4));
	mapping_reader_init(&l->reader, l->files, &l->scratch, 1000);
	assert_int_equal(bpf->tables(l->state, &l->tables), 0);
	assert_int_equal(bpf->runtimes(l->state, &l->runtimes), 0);
	unwind.sink = &l->tables;
	assert_int_equal(unwind_open(&unwind, l->files, &l->unwind), 0);
	assert_int_equal(bpf->start(l->state), 0);
}

static void close_live(struct live *l, uint64_t counters[ABI_COUNTER_COUNT])
{
	const struct sampler *bpf = sampler_find(STR("bpf"));

	python_end(&l->process);
	assert_int_equal(bpf->stop(l->state), 0);
	bpf->counters(l->state, counters);
	unwind_close(l->unwind);
	bpf->close(l->state);
	mappings_release(&l->maps);
	mapping_reader_release(&l->reader);
	buf_release(&l->scratch);
	files_close(l->files);
	free(l->codes);
}

static void both_are_right(void **state)
{
	static struct python_program programs[PYTHONS_MAX];
	size_t count = python_programs(programs);
	uint64_t counters[ABI_COUNTER_COUNT];
	static struct live l;

	(void)state;
	if (!count)
		skip_because("no interpreter that this test knows");
	open_live(&l, &programs[count - 1]);
	run_until(&l, FREQUENCY); /* rows are loaded, all is told */
	l.samples = l.whole = l.right = l.wrong = l.in_line = l.called = l.without_list = l.cut = l.raw = 0;
	run_until(&l, STACKS);
	close_live(&l, counters);
	print_message(
		"  %s: %d samples, %d whole, %d right, %d wrong; %d with made code, %d called from it; %d lists not "
		"whole, %d native stacks cut, %d raw\n",
		programs[count - 1].version, l.samples, l.whole, l.right, l.wrong, l.in_line, l.called, l.without_list,
		l.cut, l.raw);
	assert_int_equal(l.wrong, 0);
	assert_true(l.whole * 100 >= l.samples * 98);
	assert_true(l.called * 4 > l.samples && l.in_line > l.called);
	assert_int_equal(counters[ABI_COUNTER_RUNTIME_STUCK], 0);
	assert_int_equal(counters[ABI_COUNTER_RUNTIME_NO_INFO], 0);
	assert_int_equal(counters[ABI_COUNTER_LOST_REJECTED], 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(both_are_right) };

	if (argc != 2)
		return 2;
	target = argv[1];
	bpf_tests_skip();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
