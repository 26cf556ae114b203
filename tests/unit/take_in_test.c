/* SPDX-License-Identifier: Apache-2.0 */
/* Samples with frames of a runtime (a fake one, whose file this program is) on their way into a window. */
#include "support.h"

#include <sys/mman.h>
#include <unistd.h>

#include "agent/build_window.h"
#include "agent/take_in.h"
#include "base/clock.h"
#include "fake_runtime.h"
#include "proc/mappings.h"
#include "proc/proc_read.h"
#include "runtime/runtimes.h"

static const struct runtime *const only_fake[] = { &fake_runtime, NULL };

struct fixture {
	struct files *files;
	struct runtimes *runtimes;
	struct take_in *take_in;
	struct symbols *symbols;
	struct aggregate *aggregate;
	struct window window;
	struct proc p;
	uint32_t own, other; /* file ids: of the runtime, of a library */
};

static struct program program_of(const struct fixture *f)
{
	return (struct program){ .pid = f->p.pid, .exec_id = f->p.exec_id, .start_ns = f->p.start_ns };
}

/* Shows the engine our own mappings, when @tell. */
static void look_around(struct fixture *f, bool tell)
{
	struct buf scratch = BUF_INIT(MIB(4));
	struct program program = program_of(f);
	uint64_t here = (uint64_t)(uintptr_t)&look_around, libc = (uint64_t)(uintptr_t)&getpid;
	struct mapping_reader reader;
	struct mappings maps = { 0 };
	int dir = proc_dir_open("", f->p.pid);

	mapping_reader_init(&reader, f->files, &scratch, 1000);
	assert_int_equal(mappings_read(&reader, dir, &maps), 0);
	close(dir);
	f->own = mappings_find(&maps, here)->file_id;
	f->other = mappings_find(&maps, libc)->file_id;
	if (tell)
		runtimes_see(f->runtimes, &program, &maps);
	mappings_release(&maps);
	mapping_reader_release(&reader);
	buf_release(&scratch);
}

/* Waits until it knows that our file is a runtime. */
static void let_it_see(struct fixture *f)
{
	look_around(f, true);
	for (int i = 0; i < 2500 && !runtimes_file(f->runtimes, f->own); i++)
		usleep(2000);
	assert_non_null(runtimes_file(f->runtimes, f->own));
}

static void open_unseen(struct fixture *f, bool keep_interpreter, bool only_runtime)
{
	const struct runtimes_config cfg = { .runtimes = only_fake, .host_root = "", .clock = &clock_system };
	const struct symbols_config symbols = { .host_root = "" };
	struct take_in_config take_in = { .clock = &clock_system,
					  .host_root = "",
					  .keep_interpreter = keep_interpreter,
					  .only_runtime = only_runtime };

	*f = (struct fixture){ .p = { .pid = (uint32_t)getpid(), .exec_id = 1, .comm = "testee" } };
	assert_int_equal(files_open(64, &f->files), 0);
	assert_int_equal(runtimes_open(&cfg, f->files, &f->runtimes), 0);
	take_in.files = f->files;
	take_in.runtimes = f->runtimes;
	assert_int_equal(take_in_new(&take_in, &f->take_in), 0);
	assert_int_equal(symbols_open(&symbols, f->files, &f->symbols), 0);
	assert_int_equal(aggregate_new(&f->aggregate), 0);
}

static void open_all(struct fixture *f, bool keep_interpreter, bool only_runtime)
{
	open_unseen(f, keep_interpreter, only_runtime);
	let_it_see(f);
}

static void close_all(struct fixture *f)
{
	window_release(&f->window);
	aggregate_free(f->aggregate);
	symbols_close(f->symbols);
	take_in_free(f->take_in);
	runtimes_close(f->runtimes);
	files_close(f->files);
}

static void name(struct fixture *f, uint64_t key, const char *text)
{
	union {
		struct abi_name name;
		uint8_t bytes[sizeof(struct abi_name) + 64];
	} r = { .name = { .process_start_ns = f->p.start_ns,
			  .key = key,
			  .cookie = key + 1,
			  .pid = f->p.pid,
			  .exec_id = f->p.exec_id,
			  .bytes_size = (uint32_t)strlen(text),
			  .runtime = FAKE_RUNTIME } };

	memcpy(r.bytes + sizeof(r.name), text, strlen(text));
	runtimes_name(f->runtimes, &r.name);
}

union sample {
	struct abi_sample s;
	uint8_t bytes[sizeof(struct abi_sample) + 64 * sizeof(struct abi_frame)];
};

/* Frames as letters, leaf first: k of the kernel; n of a library, i of the interpreter, L of its loop; then the
 * runtime's: a-z their key, '.' behind one: the last of its activation, '_' behind it: a gap. */
static void draw(const struct fixture *f, const char *native, const char *runtime, uint8_t end, union sample *out)
{
	struct abi_frame *at = out->s.frames;

	*out = (union sample){ .s = { .pid = f->p.pid,
				      .tid = 7,
				      .comm = "testee",
				      .thread_name = "main",
				      .user_end = ABI_END_COMPLETE,
				      .runtime_end = end } };
	for (; *native; native++, out->s.frame_count++) {
		if (*native == 'k')
			out->s.kernel_count++;
		*at++ = *native == 'k' ? (struct abi_frame){ .kind = ABI_FRAME_KERNEL, .a = UINT64_MAX - 5 }
				       : (struct abi_frame){ .kind = ABI_FRAME_NATIVE,
							     .a = *native == 'n' ? f->other : f->own,
							     .b = *native == 'L' ? 1 : 5 };
	}
	for (; *runtime; runtime++) {
		if (*runtime == '.') {
			at[-1].flags = (uint8_t)(at[-1].flags | ABI_FRAME_ENTRY);
		} else if (*runtime == '_') {
			at[-1].flags = (uint8_t)(at[-1].flags | ABI_FRAME_GAP);
		} else {
			*at++ = (struct abi_frame){ .kind = ABI_FRAME_RUNTIME,
						    .runtime = FAKE_RUNTIME,
						    .extra = 10,
						    .a = (uint64_t)*runtime,
						    .b = (uint64_t)*runtime + 1 };
			out->s.runtime_count++;
		}
	}
}

static void take(struct fixture *f, const char *native, const char *runtime, uint8_t end, int want)
{
	static union sample sample;

	draw(f, native, runtime, end, &sample);
	assert_int_equal(take_in_sample(f->take_in, &f->p, &sample.s, 0, f->aggregate), want);
}

static void build(struct fixture *f)
{
	const struct build_config cfg = { .symbols = f->symbols, .runtimes = f->runtimes, .frequency_hz = 99 };

	assert_int_equal(build_window(f->aggregate, &cfg, &f->window), 0);
}

/* A frame's kind as one letter, or its name and line. */
static void add_frame(const struct model *m, uint32_t location, struct buf *out)
{
	const struct model_location *l = &m->locations[location];
	const struct model_line *line = &m->lines[l->first_line];

	switch (model_location_kind(m, location)) {
	case MODEL_KIND_KERNEL:
		buf_addc(out, 'k');
		return;
	case MODEL_KIND_PYTHON:
		buf_addf(out, "%c:%d", model_string(m, m->functions[line->function].name).ptr[0], (int)line->line);
		return;
	case MODEL_KIND_PYTHON_ERROR:
		buf_adds(out, model_string(m, m->functions[line->function].name));
		return;
	default:
		buf_addc(out, 'n');
	}
}

static void check_stack(const struct fixture *f, size_t sample, const char *want, const char *want_end)
{
	const struct model *m = f->window.model;
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));

	assert_true(sample < m->samples_count);
	for (uint32_t at = m->samples[sample].stack; at; at = m->stacks[at].parent) {
		if (text.len)
			buf_addc(&text, ' ');
		add_frame(m, m->stacks[at].location, &text);
	}
	assert_string_equal(buf_cstr(&text), want);
	assert_true(str_eq(model_string(m, m->samples[sample].end), str_of(want_end)));
}

#define WHOLE ABI_RUNTIME_END_WHOLE

static void frames_are_named_and_mixed(void **state)
{
	struct fixture f;

	(void)state;
	open_all(&f, false, false);
	name(&f, 'a', "alpha");
	name(&f, 'b', "beta");
	take(&f, "kniLiLin", "a.b.", WHOLE, 0);
	take(&f, "kniLiLin", "a.b.", WHOLE, 0);
	take(&f, "nLin", "b_.", ABI_RUNTIME_END_GAP, 0);
	take(&f, "nLLin", "a.", ABI_RUNTIME_END_FRAME_LIMIT, 0);
	take(&f, "nLLin", "a.", ABI_RUNTIME_END_BAD_CHAIN, 0);
	take(&f, "nLin", "", ABI_RUNTIME_END_NONE, 0);
	take(&f, "nLin", "z.", WHOLE, 0);
	build(&f);
	check_stack(&f, 0, "k n a:11 b:11 n", "complete"); /* as the fake runtime counts lines */
	check_stack(&f, 1, "n b:11 [missing Python frames] n", "cut:runtime-gap");
	check_stack(&f, 2, "n a:11 [Truncated Python Stack] n", "cut:runtime-frame-limit");
	check_stack(&f, 3, "n a:11 [missing Python frames] n", "cut:runtime-bad-chain");
	check_stack(&f, 4, "n n n n", "cut:runtime-not-ready");
	check_stack(&f, 5, "n [Lost Symbol] n", "complete");
	assert_int_equal(window_counter(&f.window, STR("runtime_samples")), 6);
	assert_int_equal(window_counter(&f.window, STR("runtime_complete")), 3);
	assert_int_equal(window_counter(&f.window, STR("runtime_frames")), 8);
	assert_int_equal(window_counter(&f.window, STR("runtime_unnamed_frames")), 1);
	assert_int_equal(window_counter(&f.window, STR("runtime_gap_frames")), 3);
	assert_int_equal(window_counter(&f.window, STR("samples")), 7);
	close_all(&f);
}

static void what_is_kept(void **state)
{
	struct fixture f;

	(void)state;
	open_all(&f, true, false);
	name(&f, 'a', "alpha");
	take(&f, "niLin", "a.", WHOLE, 0);
	build(&f);
	check_stack(&f, 0, "n n a:11 n n n", "complete");
	close_all(&f);
}

static void only_the_runtimes(void **state)
{
	struct fixture f;

	(void)state;
	open_all(&f, false, true);
	name(&f, 'a', "alpha");
	take(&f, "kniLin", "a.", WHOLE, 0);
	take(&f, "knn", "", ABI_RUNTIME_END_NONE, 1);
	build(&f);
	check_stack(&f, 0, "a:11", "complete");
	assert_int_equal(window_counter(&f.window, STR("samples")), 1);
	assert_int_equal(window_counter(&f.window, STR("left_out")), 1);
	close_all(&f);
}

/* The first samples of a program come before anybody has looked at its file: its window says what they lack. */
static void a_file_is_looked_at_later(void **state)
{
	struct fixture f;

	(void)state;
	open_unseen(&f, false, false);
	look_around(&f, false);
	take(&f, "nLiLin", "", ABI_RUNTIME_END_NONE, 0);
	take(&f, "nin", "", ABI_RUNTIME_END_NONE, 0);
	take(&f, "nnn", "", ABI_RUNTIME_END_NONE, 0);
	look_around(&f, true);
	build(&f);
	check_stack(&f, 0, "n n n n n n", "cut:runtime-not-ready");
	check_stack(&f, 1, "n n n", "complete"); /* not in the loop */
	check_stack(&f, 2, "n n n", "complete");
	assert_int_equal(window_counter(&f.window, STR("cut_runtime_not_ready")), 1);
	close_all(&f);
}

/* The record of a name comes behind the sample, or is read. */
static void a_late_name_is_a_name(void **state)
{
	struct fixture f;

	(void)state;
	open_all(&f, false, false);
	take(&f, "nLin", "a.", WHOLE, 0);
	take(&f, "nLin", "b.", WHOLE, 0);
	assert_int_equal(take_in_settle(f.take_in, f.aggregate), 2);
	name(&f, 'a', "alpha");
	assert_int_equal(take_in_settle(f.take_in, f.aggregate), 1);
	take(&f, "nLin", "a.", WHOLE, 0);
	for (int i = 0; i < 20; i++) /* nobody waits for ever */
		take_in_settle(f.take_in, f.aggregate);
	assert_int_equal(take_in_settle(f.take_in, f.aggregate), 0);
	build(&f);
	check_stack(&f, 0, "n a:11 n", "complete");
	check_stack(&f, 1, "n [Lost Symbol] n", "complete");
	assert_int_equal(window_counter(&f.window, STR("runtime_unnamed_frames")), 1);
	close_all(&f);
}

static int take_and_build(void *ctx)
{
	static union sample sample;
	struct fixture *f = ctx;
	const struct build_config cfg = { .symbols = f->symbols, .frequency_hz = 99 };
	struct window w = { 0 };
	struct aggregate *a;
	int r = aggregate_new(&a);

	if (r < 0)
		return r;
	draw(f, "kniLiLin", "a.c_.", WHOLE, &sample);
	r = take_in_sample(f->take_in, &f->p, &sample.s, 0, a);
	take_in_settle(f->take_in, a);
	if (r == 0)
		r = build_window(a, &cfg, &w);
	window_release(&w);
	aggregate_free(a);
	return r;
}

static void survives_failing_allocations(void **state)
{
	struct fixture f;

	(void)state;
	open_all(&f, false, false);
	name(&f, 'a', "alpha");
	assert_int_equal(take_and_build(&f), 0);
	for_each_failing_allocation(take_and_build, &f);
	close_all(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_named_and_mixed),
		cmocka_unit_test(what_is_kept),
		cmocka_unit_test(only_the_runtimes),
		cmocka_unit_test(a_file_is_looked_at_later),
		cmocka_unit_test(a_late_name_is_a_name),
		cmocka_unit_test(survives_failing_allocations),
	};

	fake_runtime_state = (struct fake_state){ .ready = 1, .version = 1 };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
