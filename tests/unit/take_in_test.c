/* SPDX-License-Identifier: Apache-2.0 */
/* Samples with frames of a runtime (a fake one, whose file this program is) on their way into a window. */
#include "support.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/build_window.h"
#include "agent/take_in.h"
#include "base/clock.h"
#include "codec/codec.h"
#include "fake_runtime.h"
#include "model/jit_kind.h"
#include "proc/mappings.h"
#include "proc/proc_read.h"
#include "render/render.h"
#include "render/tree.h"
#include "runtime/runtimes.h"
#include "sampler/sampler.h"

static const struct runtime *const only_fake[] = { &fake_runtime, NULL };
static const struct runtime *const only_inline[] = { &fake_inline, NULL };

struct fixture {
	struct files *files;
	struct proc_table *processes;
	struct runtimes *runtimes;
	struct take_in *take_in;
	struct symbols *symbols;
	struct aggregate *aggregate;
	struct window window;
	struct proc p;
	uint8_t behind[256]; /* proc_mappings() finds there that it has none */
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
	assert_int_equal(mappings_read(&reader, dir, f->p.pid, &maps), 0);
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

static void open_with(struct fixture *f, const struct runtime *const *all, bool keep_interpreter, bool only_runtime)
{
	const struct runtimes_config cfg = {
		.runtimes = all, .host_root = "", .clock = &clock_system, .want_threads = true
	};
	const struct symbols_config symbols = { .host_root = "" };
	struct take_in_config take_in = { .clock = &clock_system,
					  .host_root = "",
					  .keep_interpreter = keep_interpreter,
					  .only_runtime = only_runtime,
					  .thread_names = true };

	*f = (struct fixture){ .p = { .pid = (uint32_t)getpid(), .exec_id = 1, .comm = "testee" } };
	assert_int_equal(files_open(64, &f->files), 0);
	assert_int_equal(runtimes_open(&cfg, f->files, &f->runtimes), 0);
	assert_int_equal(proc_table_open(&(struct proc_config){ .host_root = "" }, f->files, &f->processes), 0);
	take_in.files = f->files;
	take_in.processes = f->processes;
	take_in.runtimes = f->runtimes;
	assert_int_equal(take_in_new(&take_in, &f->take_in), 0);
	assert_int_equal(symbols_open(&symbols, f->files, &f->symbols), 0);
	assert_int_equal(aggregate_new(&f->aggregate), 0);
}

static void open_unseen(struct fixture *f, bool keep_interpreter, bool only_runtime)
{
	open_with(f, only_fake, keep_interpreter, only_runtime);
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
	proc_table_close(f->processes);
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

/* Frames as letters, leaf first: k of the kernel; J of a compiler's code, n of a library, i of the interpreter, L of
 * its loop; then the runtime's: a-z their key, '.' behind one: the last of its activation, '_' behind it: a gap. Among
 * the native ones A-D: frames of the runtime in line, s: one of a stub. */
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
		if (*native == 's' || (*native >= 'A' && *native <= 'D')) {
			*at++ = (struct abi_frame){ .kind = ABI_FRAME_RUNTIME,
						    .flags = *native == 's' ? ABI_FRAME_INTERNAL : ABI_FRAME_RETURN,
						    .runtime = FAKE_RUNTIME,
						    .extra = 10,
						    .a = (uint64_t)*native - 'A' + 'a',
						    .b = (uint64_t)*native - 'A' + 'b' };
			continue;
		}
		if (*native == 'J') {
			*at++ = (struct abi_frame){ .kind = ABI_FRAME_JIT, .a = 0x1000 };
			continue;
		}
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
	check_stack(&f, 1, "n b:11 [missing Fake frames] n", "cut:runtime-gap");
	check_stack(&f, 2, "n a:11 [Truncated Fake Stack] n", "cut:runtime-frame-limit");
	check_stack(&f, 3, "n a:11 [missing Fake frames] n", "cut:runtime-bad-chain");
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

/* Compiled code that does not write down where it is: the innermost frame's line would be that of its last call. */
static void lines_of_compiled_code(void **state)
{
	static struct runtime vague;
	static const struct runtime *const only_vague[] = { &vague, NULL };
	static const struct {
		const char *native, *want;
		bool is_vague;
	} cases[] = {
		{ "JLn", "n a:0 b:11 n", true },     { "kJLn", "k n a:0 b:11 n", true },
		{ "nJLn", "n n a:11 b:11 n", true }, /* it called that, and wrote down where */
		{ "nLn", "n a:11 b:11 n", true },    { "JLn", "n a:11 b:11 n", false },
	};

	(void)state;
	vague = fake_runtime;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f;

		print_message("  %s\n", cases[i].native);
		vague.is_vague_compiled = cases[i].is_vague;
		open_with(&f, only_vague, false, false);
		let_it_see(&f);
		name(&f, 'a', "a");
		name(&f, 'b', "b");
		take(&f, cases[i].native, "ab.", WHOLE, 0);
		build(&f);
		check_stack(&f, 0, cases[i].want, "complete");
		close_all(&f);
	}
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

/* Of a process that is too young: nothing of what nobody asked for is missing. */
static void native_stacks_stay(void **state)
{
	const struct choice_config choice = { .runtimes = UINT32_MAX, .age_min_ns = UINT64_MAX / 2 };
	struct take_in_config cfg = { .clock = &clock_system, .host_root = "" };
	struct fixture f;

	(void)state;
	open_all(&f, false, false);
	take_in_free(f.take_in);
	cfg.files = f.files;
	cfg.runtimes = f.runtimes;
	assert_int_equal(choice_new(&choice, &cfg.choice), 0);
	assert_int_equal(take_in_new(&cfg, &f.take_in), 0);
	name(&f, 'a', "alpha");
	take(&f, "kniLin", "a.", WHOLE, 0);
	take(&f, "nLLin", "a.", ABI_RUNTIME_END_BAD_CHAIN, 0);
	build(&f);
	check_stack(&f, 0, "k n n n n n", "complete");
	check_stack(&f, 1, "n n n n n", "complete");
	assert_int_equal(window_counter(&f.window, STR("runtime_samples")), 0);
	close_all(&f);
	choice_free(cfg.choice);
}

/* A runtime whose frames are native ones, beside one that is walked behind them. */
static void frames_stand_in_line(void **state)
{
	struct fixture f;

	(void)state;
	open_all(&f, false, false);
	for (char key = 'a'; key <= 'd'; key++)
		name(&f, (uint64_t)key, (const char[]){ key, 0 });
	take(&f, "nAnBsn", "", ABI_RUNTIME_END_NONE, 0);
	take(&f, "kAiLinBLin", "c.d.", WHOLE, 0);
	take(&f, "nA", "", ABI_RUNTIME_END_NONE, 0); /* said to be complete: no root */
	take(&f, "A", "", ABI_RUNTIME_END_NONE, 0);
	build(&f);
	check_stack(&f, 0, "n a:11 n b:11 n", "complete");
	check_stack(&f, 1, "k a:11 c:11 n b:11 d:11 n", "complete");
	check_stack(&f, 2, "n a:11", "cut:unproven-root");
	check_stack(&f, 3, "a:11", "cut:unproven-root");
	close_all(&f);
	open_all(&f, true, false);
	name(&f, 'a', "alpha");
	take(&f, "nAsLn", "", ABI_RUNTIME_END_NONE, 0);
	build(&f);
	check_stack(&f, 0, "n a:11 [Lost Symbol] n n", "cut:runtime-not-ready");
	close_all(&f);
	open_all(&f, false, true);
	name(&f, 'a', "alpha");
	take(&f, "knAsn", "", ABI_RUNTIME_END_NONE, 0);
	take(&f, "knsn", "", ABI_RUNTIME_END_NONE, 1);
	build(&f);
	check_stack(&f, 0, "a:11", "complete");
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

/* ---- compiled code ---- */

#define CODE_COOKIE 77

/* Two ranges: "outer" runs at 0 to 9; at 10 to 20 "gamma" has "beta" inlined, which has "alpha" inlined. */
static const uint8_t code_bytes[] = {
	0,  0, 9,  0, 1,  3, 0, 0, 0, 1,   0,   0,   0,   5,   'o', 'u', 't', 'e', 'r', /* */
	10, 0, 20, 0, 3,  7, 0, 0, 0, 5,   0,   0,   0,   5,   'a', 'l', 'p', 'h', 'a', /* leaf first */
	17, 0, 0,  0, 15, 0, 0, 0, 4, 'b', 'e', 't', 'a',                               /* */
	27, 0, 0,  0, 25, 0, 0, 0, 5, 'g', 'a', 'm', 'm', 'a',
};
static union {
	struct fake_code code;
	uint8_t room[sizeof(struct fake_code) + sizeof(code_bytes)];
} compiled;

/* One frame of compiled code between two native ones. */
static int take_compiled(struct fixture *f, struct aggregate *a, uint32_t position, uint64_t cookie, uint8_t flags)
{
	static union sample sample;

	draw(f, "nn", "", WHOLE, &sample);
	sample.s.frames[2] = (struct abi_frame){ .kind = ABI_FRAME_RUNTIME,
						 .flags = ABI_FRAME_COMPILED | flags,
						 .runtime = FAKE_INLINE,
						 .extra = position,
						 .a = (uint64_t)(uintptr_t)&compiled.code,
						 .b = cookie };
	sample.s.runtime_count = 1;
	return take_in_sample(f->take_in, &f->p, &sample.s, 0, a);
}

static void open_compiled(struct fixture *f)
{
	struct program program;
	struct runtimes_process known = { 0 };

	compiled.code.cookie = CODE_COOKIE;
	compiled.code.size = sizeof(code_bytes);
	memcpy(compiled.code.bytes, code_bytes, sizeof(code_bytes));
	open_with(f, only_inline, false, false);
	let_it_see(f);
	program = program_of(f);
	for (int i = 0; i < 2500 && known.state != RUNTIMES_READY; i++) {
		usleep(2000);
		runtimes_process(f->runtimes, &program, &known);
	}
	assert_int_equal(known.state, RUNTIMES_READY);
}

/* Until the worker has read what the frames need. */
static void settle_all(struct fixture *f, size_t left)
{
	for (int i = 0; i < 8 && take_in_settle(f->take_in, f->aggregate) > left; i++)
		usleep(50000);
}

/* Each line of the location, leaf first: "name:line". */
static void check_lines(const struct model *m, uint32_t location, const char *want)
{
	const struct model_location *l = &m->locations[location];
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));

	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct model_line *line = &m->lines[l->first_line + i];

		buf_addf(&text, "%s" STR_FMT ":%d/%d", i ? " " : "",
			 STR_ARG(model_string(m, m->functions[line->function].name)), (int)line->line,
			 (int)m->functions[line->function].start_line);
	}
	assert_string_equal(buf_cstr(&text), want);
}

/* The location between the two native frames of sample @index. */
static uint32_t middle_of(const struct window *w, size_t index)
{
	const struct model *m = w->model;
	uint32_t leaf = m->samples[index].stack;

	/* Both lists are put one behind the other: there is no loop that says where. */
	for (uint32_t at = leaf; at; at = m->stacks[at].parent)
		if (model_location_kind(m, m->stacks[at].location) != MODEL_KIND_NATIVE)
			return m->stacks[at].location;
	fail();
	return 0;
}

static int64_t total_of(const struct model *m)
{
	int64_t sum = 0;

	for (size_t i = 0; i < m->samples_count; i++)
		sum += model_values(m, &m->samples[i])[0];
	return sum;
}

static const struct codec_options plain;

static void check_pprof(const struct window *w)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
	scoped(window_release) struct window back = { 0 };
	const struct codec *pprof = codec_find(STR("pprof"));

	assert_int_equal(codec_encode(pprof, w, &plain, &bytes), 0);
	assert_int_equal(pprof->decode(buf_str(&bytes), &back, NULL), 0);
	assert_int_equal(total_of(back.model), total_of(w->model));
	check_lines(back.model, middle_of(&back, 0), "alpha:7/5 beta:17/15 gamma:27/25");
}

static void check_col(const struct window *w)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
	scoped(tree_release) struct tree t = { 0 };
	uint64_t bad_line;

	assert_int_equal(codec_encode(codec_find(STR("col")), w, &plain, &bytes), 0);
	assert_true(str_search(buf_str(&bytes), STR(";testee;gamma_[j];beta_[j];alpha_[j];[libc")) > 0);
	assert_int_equal(tree_from_folded(buf_str(&bytes), NULL, &t, &bad_line), 0);
	assert_int_equal(t.total[0], total_of(w->model));
}

static void check_page(const struct window *w)
{
	scoped(tree_release) struct tree t = { 0 };
	const struct frame_style style = { 0 };
	uint32_t found = 0;

	assert_int_equal(tree_from_model(w->model, 0, 1, &style, &t), 0);
	assert_int_equal(t.total[0], total_of(w->model));
	for (uint32_t node = 2; node < t.node_count; node++)
		found += str_starts(tree_frame_text(&t, t.frame[node]), STR("alpha")) &&
			 str_starts(tree_frame_text(&t, t.frame[node - 1]), STR("beta")) &&
			 str_starts(tree_frame_text(&t, t.frame[node - 2]), STR("gamma")) && t.total[node] == 3;
	assert_int_equal(found, 1);
}

static void check_report(const struct window *w)
{
	scoped(freep) struct render_top_row *rows = NULL;
	const struct frame_style style = { 0 };
	size_t count, named = 0;

	assert_int_equal(render_top(w->model, 0, &style, &rows, &count), 0);
	for (size_t i = 0; i < count; i++) {
		scoped(buf_release) struct buf name = BUF_INIT(KIB(1));

		render_top_name(w->model, &style, &rows[i], &name);
		if (!str_starts(buf_str(&name), STR("alpha")) && !str_starts(buf_str(&name), STR("beta")) &&
		    !str_starts(buf_str(&name), STR("gamma")))
			continue;
		named++;
		assert_int_equal(rows[i].total, 3);
		assert_int_equal(rows[i].self, 0);
	}
	assert_int_equal(named, 3);
}

static void one_frame_is_several_functions(void **state)
{
	struct fixture f;

	(void)state;
	open_compiled(&f);
	for (int i = 0; i < 3; i++)
		assert_int_equal(take_compiled(&f, f.aggregate, 12, CODE_COOKIE, 0), 0);
	assert_int_equal(take_compiled(&f, f.aggregate, 10, CODE_COOKIE, ABI_FRAME_RETURN), 0);
	assert_int_equal(take_compiled(&f, f.aggregate, 500, CODE_COOKIE, 0), 0);
	assert_int_equal(take_compiled(&f, f.aggregate, 12, CODE_COOKIE + 1, 0), 0); /* other code lay there */
	settle_all(&f, 1);
	memset(&compiled, 0, sizeof(compiled)); /* was read once: it may go */
	assert_int_equal(take_compiled(&f, f.aggregate, 5, CODE_COOKIE, 0), 0);
	build(&f);
	check_lines(f.window.model, middle_of(&f.window, 0), "alpha:7/5 beta:17/15 gamma:27/25");
	check_lines(f.window.model, middle_of(&f.window, 1), "outer:3/1"); /* the call lies before 10 */
	check_lines(f.window.model, middle_of(&f.window, 2), "compiled:0/0");
	check_lines(f.window.model, middle_of(&f.window, 3), "[Lost Symbol]:0/0");
	check_lines(f.window.model, middle_of(&f.window, 4), "outer:3/1");
	assert_int_equal(total_of(f.window.model), 7);
	assert_int_equal(window_counter(&f.window, STR("runtime_frames")), 7);
	assert_int_equal(window_counter(&f.window, STR("runtime_vague_frames")), 4); /* those that run, not the call */
	check_pprof(&f.window);
	check_col(&f.window);
	check_page(&f.window);
	check_report(&f.window);
	close_all(&f);
}

/* As many positions as a window keeps, of nothing. */
static void fill_positions(struct aggregate *a)
{
	struct aggregate_pending row = { .is_settled = true, .function = AGGREGATE_NO_FUNCTION };
	uint32_t at;
	int r;

	do {
		row.position++;
		r = aggregate_add_pending(a, &row, &at);
		a->unsettled -= r == 0;
	} while (r == 0);
	assert_int_equal(r, -E2BIG);
}

/* The frames between the two native ones of sample @index, leaf first: "name:line". */
static void check_middle(const struct window *w, size_t index, const char *want)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
	const struct model *m = w->model;

	for (uint32_t at = m->samples[index].stack; at; at = m->stacks[at].parent) {
		const struct model_location *l = &m->locations[m->stacks[at].location];
		const struct model_line *line = &m->lines[l->first_line];

		if (model_location_kind(m, m->stacks[at].location) != MODEL_KIND_NATIVE)
			buf_addf(&text, "%s" STR_FMT ":%d", text.len ? " " : "",
				 STR_ARG(model_string(m, m->functions[line->function].name)), (int)line->line);
	}
	assert_string_equal(buf_cstr(&text), want);
}

/* The compiled function alone would seem to call what those call that were inlined into it. */
static void without_room_for_positions(void **state)
{
	struct fixture f;

	(void)state;
	open_compiled(&f);
	assert_int_equal(take_compiled(&f, f.aggregate, 12, CODE_COOKIE, 0), 0);
	settle_all(&f, 0);
	fill_positions(f.aggregate);
	assert_int_equal(take_compiled(&f, f.aggregate, 13, CODE_COOKIE, 0), 0);
	assert_int_equal(take_compiled(&f, f.aggregate, 500, CODE_COOKIE, 0), 0);
	assert_int_equal(take_compiled(&f, f.aggregate, 14, CODE_COOKIE + 1, 0), 0); /* nobody has read it */
	build(&f);
	check_lines(f.window.model, middle_of(&f.window, 0), "alpha:7/5 beta:17/15 gamma:27/25");
	check_middle(&f.window, 1, "alpha:7 beta:17 gamma:27");
	check_middle(&f.window, 2, "compiled:0");
	check_middle(&f.window, 3, "[Lost Symbol]:0");
	assert_int_equal(total_of(f.window.model), 4);
	close_all(&f);
}

/* Takes something into an aggregate of its own and builds a window of it. */
static int build_of(struct fixture *f, const struct build_config *cfg,
		    int (*fill)(struct fixture *, struct aggregate *))
{
	struct aggregate *a = NULL;
	struct window w = { 0 };
	int r = aggregate_new(&a);

	if (r < 0)
		return r;
	r = fill(f, a);
	take_in_settle(f->take_in, a);
	if (r == 0)
		r = build_window(a, cfg, &w);
	window_release(&w);
	aggregate_free(a);
	return r;
}

static int take_one_compiled(struct fixture *f, struct aggregate *a)
{
	return take_compiled(f, a, 12, CODE_COOKIE, 0);
}

static int expand_and_build(void *ctx)
{
	struct fixture *f = ctx;
	const struct build_config cfg = { .symbols = f->symbols, .runtimes = f->runtimes, .frequency_hz = 99 };

	return build_of(f, &cfg, take_one_compiled);
}

static void expanding_survives_failing_allocations(void **state)
{
	struct fixture f;

	(void)state;
	open_compiled(&f);
	assert_int_equal(take_compiled(&f, f.aggregate, 12, CODE_COOKIE, 0), 0);
	settle_all(&f, 0);
	for_each_failing_allocation(expand_and_build, &f);
	close_all(&f);
}

/* @at: index of a native frame that was found by a rule that can be wrong. */
static void take_guessed(struct fixture *f, const char *native, size_t at, uint8_t user_end)
{
	static union sample sample;

	draw(f, native, "", ABI_RUNTIME_END_NONE, &sample);
	sample.s.user_end = user_end;
	sample.s.frames[at].flags |= ABI_FRAME_GUESSED;
	assert_int_equal(take_in_sample(f->take_in, &f->p, &sample.s, 0, f->aggregate), 0);
}

static void take_at(struct fixture *f, const char *native, uint64_t time_ms)
{
	static union sample sample;

	draw(f, native, "", ABI_RUNTIME_END_NONE, &sample);
	sample.s.header.time_ns = time_ms * NSEC_PER_MSEC;
	assert_int_equal(take_in_sample(f->take_in, &f->p, &sample.s, 0, f->aggregate), 0);
}

/* A window of 100 ms from 1 s on. */
static void open_timed(struct fixture *f)
{
	open_unseen(f, false, false);
	f->aggregate->with_times = true;
	f->aggregate->start_ns = NSEC_PER_SEC;
	f->window.start_ns = 1790000000 * NSEC_PER_SEC;
	f->window.end_ns = f->window.start_ns + 100 * NSEC_PER_MSEC;
	take_at(f, "nn", 1055);
	take_at(f, "nnn", 1000);
	take_at(f, "nn", 1019);
	take_at(f, "nn", 1041); /* with the first one */
	take_at(f, "nn", 990);  /* before it begins */
	take_at(f, "nn", 1100); /* behind its end: in its last step */
}

static void check_row(const struct fixture *f, size_t index, const char *stack, uint64_t time_ns, int64_t count)
{
	const struct model *m = f->window.model;

	check_stack(f, index, stack, "complete");
	assert_int_equal(m->samples[index].time_offset_ns, time_ns);
	assert_int_equal(model_values(m, &m->samples[index])[0], count);
	assert_int_equal(model_values(m, &m->samples[index])[1], count * (int64_t)(NSEC_PER_SEC / 99));
}

static void samples_have_times(void **state)
{
	struct fixture f;

	(void)state;
	open_timed(&f);
	f.aggregate->tick_count--; /* found no room */
	f.aggregate->untimed++;
	take_at(&f, "nnn", 1001);
	build(&f);
	check_row(&f, 0, "n n", 0, 2);
	check_row(&f, 1, "n n", 40 * NSEC_PER_MSEC, 2);
	check_row(&f, 2, "n n", MODEL_NO_TIME, 1);
	check_row(&f, 3, "n n n", 0, 2);
	assert_int_equal(f.window.model->samples_count, 4);
	assert_int_equal(window_counter(&f.window, STR("samples")), 7);
	assert_int_equal(window_counter(&f.window, STR("user_samples")), 7);
	assert_int_equal(window_counter(&f.window, STR("untimed_samples")), 1);
	close_all(&f);
	open_timed(&f);
	build(&f);
	check_row(&f, 2, "n n", 80 * NSEC_PER_MSEC, 1);
	assert_int_equal(f.window.model->samples_count, 4);
	close_all(&f);
}

static int build_timed(void *ctx)
{
	struct fixture *f = ctx;
	const struct build_config cfg = { .symbols = f->symbols, .runtimes = f->runtimes, .frequency_hz = 99 };
	struct window w = { .end_ns = 100 * NSEC_PER_MSEC };
	int r = build_window(f->aggregate, &cfg, &w);

	window_release(&w);
	return r;
}

static void times_survive_failing_allocations(void **state)
{
	struct fixture f;

	(void)state;
	open_timed(&f);
	for_each_failing_allocation(build_timed, &f);
	close_all(&f);
}

/* A sample in code of a JIT compiler, of a process of that kind. */
static void add_jit_sample(struct fixture *f, enum jit_kind kind, int perf_map_fd)
{
	const struct aggregate_process process = { .pid = 100 + kind + 10 * (perf_map_fd >= 0),
						   .jit_kind = (uint8_t)kind,
						   .perf_map_fd = perf_map_fd };
	struct aggregate_frame frame = { .kind = ABI_FRAME_JIT, .at = 0x1000 };
	struct aggregate_sample sample = { .user_end = ABI_END_COMPLETE, .has_user = true };

	assert_int_equal(aggregate_add_process(f->aggregate, &process, &sample.process), 0);
	frame.owner = sample.process;
	assert_int_equal(aggregate_add_frame(f->aggregate, &frame, &sample.root_frame), 0);
	assert_int_equal(aggregate_add_stack(f->aggregate, 0, sample.root_frame, &sample.stack), 0);
	assert_int_equal(aggregate_add_stack(f->aggregate, sample.stack, sample.root_frame, &sample.stack), 0);
	assert_int_equal(aggregate_add_sample(f->aggregate, &sample, 0), 0);
	sample.is_wait = true; /* no sample of the CPU: not counted */
	assert_int_equal(aggregate_add_sample(f->aggregate, &sample, 0), 0);
}

static void assert_row_as(const char *kind_of, char *service, enum workload_kind kind, uint64_t ended_ns,
			  const char *want)
{
	struct fixture f;
	const struct model *m;

	open_unseen(&f, false, false);
	f.p.service = service;
	f.p.service_kind = kind;
	f.p.born_ns = 5;
	f.p.exited = ended_ns != 0;
	f.p.exit_ns = ended_ns;
	take(&f, "nn", "", ABI_RUNTIME_END_NONE, 0);
	build(&f);
	m = f.window.model;
	assert_true(str_eq(model_string(m, m->processes[1].workload), str_of(want)));
	assert_true(str_eq(model_string(m, m->processes[1].service_kind), str_of(kind_of)));
	assert_true(str_eq(model_string(m, m->processes[1].comm), STR("testee"))); /* its own name stays */
	close_all(&f);
}

static void assert_built_as(const char *kind_of, enum workload_kind kind, uint64_t ended_ns, const char *want)
{
	char service[] = "tool";

	assert_row_as(kind_of, service, kind, ended_ns, want);
}

/* Its comm is all that is known. */
static void one_that_nobody_saw_is_a_program(void **state)
{
	(void)state;
	assert_row_as("executable", NULL, WORKLOAD_UNIT, 0, "testee");
	assert_row_as("short-lived", NULL, WORKLOAD_UNIT, 4 + WORKLOAD_SHORT_NS, WORKLOAD_SHORT_NAME);
}

static void short_programs_are_one_service(void **state)
{
	(void)state;
	assert_built_as("short-lived", WORKLOAD_EXECUTABLE, 4 + WORKLOAD_SHORT_NS, WORKLOAD_SHORT_NAME);
	assert_built_as("short-lived", WORKLOAD_APPLICATION, 4 + WORKLOAD_SHORT_NS, WORKLOAD_SHORT_NAME);
	assert_built_as("executable", WORKLOAD_EXECUTABLE, 5 + WORKLOAD_SHORT_NS, "tool");
	assert_built_as("executable", WORKLOAD_EXECUTABLE, 0, "tool");
	assert_built_as("unit", WORKLOAD_UNIT, 6, "tool");
	assert_built_as("rule", WORKLOAD_RULE, 6, "tool");
}

static void guesses_are_a_class_of_their_own(void **state)
{
	struct fixture f;
	struct window_classes classes;

	(void)state;
	open_all(&f, false, false);
	take_guessed(&f, "knnn", 1, ABI_END_COMPLETE);
	take_guessed(&f, "nn", 0, ABI_END_READ_FAILED);
	take(&f, "nnnn", "", ABI_RUNTIME_END_NONE, 0);
	build(&f);
	check_stack(&f, 0, "k n n n", "guessed");
	check_stack(&f, 1, "n n", "cut:read-failed");
	check_stack(&f, 2, "n n n n", "complete");
	classes = window_classes(&f.window);
	assert_int_equal(classes.user, 3);
	assert_int_equal(classes.whole, 1);
	assert_int_equal(classes.guessed, 1);
	assert_int_equal(classes.cut, 1);
	assert_int_equal(window_counter(&f.window, STR("cut_guessed")), 0);
	assert_int_equal(window_counter(&f.window, STR("cut_read_failed")), 1);
	close_all(&f);
}

static void jit_code_without_names_is_counted_by_kind(void **state)
{
	struct fixture f;

	(void)state;
	open_all(&f, false, false);
	add_jit_sample(&f, JIT_KIND_NODE, -1);
	add_jit_sample(&f, JIT_KIND_NODE, -1);
	add_jit_sample(&f, JIT_KIND_OTHER, -1);
	add_jit_sample(&f, JIT_KIND_JAVA, open("/dev/null", O_RDONLY | O_CLOEXEC)); /* it has a map: no line for it */
	build(&f);
	assert_int_equal(window_counter(&f.window, STR("unnamed_jit_node")), 2);
	assert_int_equal(window_counter(&f.window, STR("unnamed_jit_other")), 1);
	assert_int_equal(window_counter(&f.window, STR("unnamed_jit_java")), 0);
	close_all(&f);
}

/* What a window says of a clock and of other events: no time is claimed where none was counted. */
static void columns_say_what_was_counted(void **state)
{
	static const struct {
		struct sampler_event event;
		uint32_t rate;
		const char *type, *unit; /* of the second column; NULL: there is none */
		int64_t value, period;
		const char *counted;
	} rows[] = {
		{ { .is_clock = true, .name = "task-clock" }, 100, "cpu", "nanoseconds", 30000000, 10000000, "cpu" },
		{ { .is_clock = true, .period = 7 }, 100, "cpu", "nanoseconds", 21, 7, "cpu" },
		{ { .period = 100, .name = "page-faults" }, 100, "page-faults", "count", 300, 100, "page-faults" },
		{ { .name = "context-switches" }, 100, NULL, NULL, 0, 0, "context-switches" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct fixture f;
		struct build_config cfg = { .frequency_hz = rows[i].rate, .event = &rows[i].event };
		const struct model *m;

		open_unseen(&f, false, false);
		cfg.symbols = f.symbols;
		cfg.runtimes = f.runtimes;
		for (int n = 0; n < 3; n++)
			take(&f, "nn", "", ABI_RUNTIME_END_NONE, 0);
		assert_int_equal(build_window(f.aggregate, &cfg, &f.window), 0);
		m = f.window.model;
		assert_int_equal(m->value_type_count, rows[i].type ? 2 : 1);
		assert_true(str_eq(model_string(m, m->value_types[0].type), STR("samples")));
		assert_int_equal(model_values(m, &m->samples[0])[0], 3);
		if (rows[i].type) {
			assert_true(str_eq(model_string(m, m->value_types[1].type), str_of(rows[i].type)));
			assert_true(str_eq(model_string(m, m->value_types[1].unit), str_of(rows[i].unit)));
			assert_int_equal(model_values(m, &m->samples[0])[1], rows[i].value);
		}
		assert_int_equal(m->period, rows[i].period);
		assert_true(str_eq(model_string(m, m->period_type.type), str_of(rows[i].counted)));
		close_all(&f);
	}
}

static struct str root_of(const struct window *w, size_t sample)
{
	const struct model *m = w->model;
	uint32_t at = m->samples[sample].stack;

	while (m->stacks[at].parent)
		at = m->stacks[at].parent;
	return model_string(m, m->functions[m->lines[m->locations[m->stacks[at].location].first_line].function].name);
}

/* Of a process whose runtime names threads: one with such a name, and one that keeps the kernel's. */
static void stacks_begin_with_their_thread(void **state)
{
	scoped(buf_release) struct buf named = BUF_INIT(KIB(1)), text = BUF_INIT(KIB(1)), col = BUF_INIT(MIB(1));
	static union sample sample;
	struct build_config cfg = { .frequency_hz = 99, .thread_frames = true };
	struct fixture f;
	struct program program;
	const struct model *m;
	char comm[16];

	(void)state;
	assert_int_equal(prctl(PR_GET_NAME, comm), 0);
	open_compiled(&f);
	program = program_of(&f);
	draw(&f, "knn", "", ABI_RUNTIME_END_NONE, &sample);
	assert_int_equal(take_in_sample(f.take_in, &f.p, &sample.s, 0, f.aggregate), 0);
	sample.s.tid = f.p.pid;
	snprintf(sample.s.thread_name, sizeof(sample.s.thread_name), "%s", comm);
	usleep(1100000); /* a process is asked once a second */
	assert_int_equal(take_in_sample(f.take_in, &f.p, &sample.s, 0, f.aggregate), 0);
	for (int i = 0; i < 2500 && !named.len; i++) {
		usleep(2000);
		ignore(runtimes_thread_name(f.runtimes, &program, f.p.pid, str_of(comm), &named) < 0);
	}
	cfg.symbols = f.symbols;
	cfg.runtimes = f.runtimes;
	assert_int_equal(build_window(f.aggregate, &cfg, &f.window), 0);
	m = f.window.model;
	assert_true(str_eq(root_of(&f.window, 0), STR("[main tid=7]")));
	buf_addf(&text, "[" FAKE_THREAD_NAME " tid=%u]", f.p.pid);
	assert_true(str_eq(root_of(&f.window, 1), buf_str(&text)));
	assert_true(str_eq(model_string(m, m->threads[m->samples[0].thread].name), STR("main")));
	assert_true(str_eq(model_string(m, m->threads[m->samples[1].thread].name), STR(FAKE_THREAD_NAME)));
	assert_int_equal(codec_encode(codec_find(STR("col")), &f.window, &plain, &col), 0);
	assert_true(str_search(buf_str(&col), STR(";testee;[main tid=7];[libc")) > 0);
	assert_true(str_search(buf_str(&col), STR(";testee;[longer than the kernel's| [x tid=")) > 0);
	close_all(&f);
}

static int take_one_mixed(struct fixture *f, struct aggregate *a)
{
	static union sample sample;

	draw(f, "kniLiLin", "a.c_.", WHOLE, &sample);
	return take_in_sample(f->take_in, &f->p, &sample.s, 0, a);
}

static int take_and_build(void *ctx)
{
	struct fixture *f = ctx;
	const struct build_config cfg = { .symbols = f->symbols, .frequency_hz = 99 };

	return build_of(f, &cfg, take_one_mixed);
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
		cmocka_unit_test(lines_of_compiled_code),
		cmocka_unit_test(stacks_begin_with_their_thread),
		cmocka_unit_test(what_is_kept),
		cmocka_unit_test(native_stacks_stay),
		cmocka_unit_test(only_the_runtimes),
		cmocka_unit_test(frames_stand_in_line),
		cmocka_unit_test(a_file_is_looked_at_later),
		cmocka_unit_test(a_late_name_is_a_name),
		cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(one_frame_is_several_functions),
		cmocka_unit_test(without_room_for_positions),
		cmocka_unit_test(expanding_survives_failing_allocations),
		cmocka_unit_test(short_programs_are_one_service),
		cmocka_unit_test(one_that_nobody_saw_is_a_program),
		cmocka_unit_test(samples_have_times),
		cmocka_unit_test(times_survive_failing_allocations),
		cmocka_unit_test(guesses_are_a_class_of_their_own),
		cmocka_unit_test(jit_code_without_names_is_counted_by_kind),
		cmocka_unit_test(columns_say_what_was_counted),
	};

	fake_runtime_state = (struct fake_state){ .ready = 1, .version = 1 };
	fake_inline_state = (struct fake_inline_state){ .ready = 1, .version = 1 };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
