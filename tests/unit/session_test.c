/* SPDX-License-Identifier: Apache-2.0 */
/* A whole session over a recording: placing, execs, ends of stacks, windows, counters. */
#include "support.h"

#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/session.h"
#include "base/io.h"
#include "proc/maps.h"
#include "raw_shot.h"
#include "sampler/recording.h"

#define PID 4242
#define START_NS 1000

static int known_function_for_the_test(void)
{
	return 7;
}

struct self_text {
	uint64_t start, end, offset, inode;
	uint32_t device_major, device_minor;
	char path[256];
};

static int find_text(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct self_text *out = ctx;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;
		uint64_t at = (uint64_t)(uintptr_t)known_function_for_the_test;

		if (p->p_type != PT_LOAD || at < start || at >= start + p->p_memsz)
			continue;
		out->start = start & ~UINT64_C(4095);
		out->end = (start + p->p_memsz + 4095) & ~UINT64_C(4095);
		out->offset = p->p_offset & ~UINT64_C(4095);
		return 1;
	}
	return 0;
}

static struct self_text self_text(void)
{
	struct self_text out = { 0 };
	struct stat st;
	ssize_t n = readlink("/proc/self/exe", out.path, sizeof(out.path) - 1);

	assert_true(n > 0);
	assert_int_equal(stat(out.path, &st), 0);
	out.inode = st.st_ino;
	out.device_major = major(st.st_dev);
	out.device_minor = minor(st.st_dev);
	assert_int_equal(dl_iterate_phdr(find_text, &out), 1);
	return out;
}

static void add_mapping(struct recording *r, uint64_t time_ns, const struct self_text *text)
{
	const struct abi_mapping map = {
		.header = { .type = ABI_RECORD_MAPPING, .version = ABI_VERSION, .time_ns = time_ns },
		.process_start_ns = START_NS,
		.start = text->start,
		.end = text->end,
		.file_offset = text->offset,
		.inode = text->inode,
		.device_major = text->device_major,
		.device_minor = text->device_minor,
		.pid = PID,
	};

	assert_int_equal(recording_add_mapping(r, &map, str_of(text->path)), 0);
}

static void add_event(struct recording *r, uint64_t time_ns, uint16_t type)
{
	const struct abi_process event = {
		.header = { .type = type, .version = ABI_VERSION, .size = sizeof(event), .time_ns = time_ns },
		.process_start_ns = START_NS,
		.pid = PID,
		.comm = "testee",
	};

	assert_int_equal(recording_add(r, &event.header), 0);
}

union one_frame {
	struct abi_sample sample;
	uint8_t bytes[sizeof(struct abi_sample) + sizeof(struct abi_frame)];
};

static union one_frame frame_sample(const struct abi_sample *head, const struct abi_frame *frame)
{
	union one_frame record = { .sample = *head };

	record.sample.header = (struct abi_header){ .type = ABI_RECORD_SAMPLE,
						    .version = ABI_VERSION,
						    .size = sizeof(record),
						    .time_ns = head->header.time_ns };
	record.sample.process_start_ns = START_NS;
	record.sample.pid = record.sample.tid = PID;
	record.sample.frame_count = 1;
	memcpy(record.sample.thread_name, "worker;1", sizeof("worker;1"));
	memcpy(record.bytes + sizeof(record.sample), frame, sizeof(*frame));
	return record;
}

static void add_frame_sample(struct recording *r, const struct abi_sample *head, const struct abi_frame *frame)
{
	const union one_frame record = frame_sample(head, frame);

	assert_int_equal(recording_add(r, &record.sample.header), 0);
}

static void add_sample(struct recording *r, uint64_t time_ns, uint64_t address, const char *comm)
{
	struct abi_sample head = { .header.time_ns = time_ns, .user_end = ABI_END_NO_FRAME_POINTER };
	const struct abi_frame frame = { .kind = ABI_FRAME_USER, .a = address };

	(void)snprintf(head.comm, sizeof(head.comm), "%s", comm);
	add_frame_sample(r, &head, &frame);
}

struct seen {
	size_t windows, known, unknown, cut, whole, unproven, kernel_cut;
	uint64_t samples, complete, unnamed, raw_walked;
};

static void on_window(void *ctx, const struct window *w)
{
	struct seen *seen = ctx;
	const struct model *m = w->model;

	seen->windows++;
	seen->samples += window_counter(w, STR("samples"));
	seen->complete += window_counter(w, STR("complete"));
	seen->unnamed += window_counter(w, STR("unnamed_frames"));
	seen->raw_walked += window_counter(w, STR("raw_walked"));
	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_sample *s = &m->samples[i];
		scoped(buf_release) struct buf name = BUF_INIT(KIB(4));
		size_t count = (size_t)model_values(m, s)[0];

		model_frame_name(m, m->stacks[s->stack].location, 0, &name);
		if (str_eq(buf_str(&name), STR("known_function_for_the_test")))
			seen->known += count;
		else
			seen->unknown += count;
		seen->cut += str_eq(model_string(m, s->end), STR("cut:no-frame-pointer")) ? count : 0;
		seen->whole += str_eq(model_string(m, s->end), STR("complete")) ? count : 0;
		seen->unproven += str_eq(model_string(m, s->end), STR("cut:unproven-root")) ? count : 0;
		seen->kernel_cut += str_eq(model_string(m, s->end), STR("cut:kernel-stack")) ? count : 0;
		assert_int_equal(m->processes[s->process].pid, PID);
		assert_true(str_eq(model_string(m, m->threads[s->thread].name), STR("worker;1")));
		assert_int_equal(model_values(m, s)[1], model_values(m, s)[0] * (int64_t)(NSEC_PER_SEC / 99));
	}
}

static void replay(const char *path, struct seen *seen)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	const struct session_config cfg = { .sampler = sampler_find(STR("recorded")),
					    .sampling = { .frequency_hz = 99, .recording = path, .host_root = "" },
					    .clock = &clock_system,
					    .host_root = "",
					    .on_window = on_window,
					    .ctx = seen };
	struct session *s = NULL;
	int r;

	*seen = (struct seen){ 0 };
	assert_int_equal(session_open(&cfg, &why, &s), 0);
	assert_int_equal(session_start(s), 0);
	do
		r = session_step(s, 10);
	while (r >= 0);
	assert_int_equal(r, -ENODATA);
	assert_int_equal(session_stop(s), 0);
	assert_int_equal(session_stop(s), 0); /* a second stop does nothing */
	session_close(s);
}

/* A window that is lost for want of memory is no success. Return: windows that came. */
static size_t stop_without_memory(const char *path, unsigned long failing, int *result, bool *any_failed)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	struct seen seen = { 0 };
	const struct session_config cfg = { .sampler = sampler_find(STR("recorded")),
					    .sampling = { .frequency_hz = 99, .recording = path, .host_root = "" },
					    .clock = &clock_system,
					    .host_root = "",
					    .on_window = on_window,
					    .ctx = &seen };
	struct session *s = NULL;

	assert_int_equal(session_open(&cfg, &why, &s), 0);
	assert_int_equal(session_start(s), 0);
	while (session_step(s, 10) >= 0)
		;
	fail_allocation(failing);
	*result = session_stop(s);
	*any_failed = allocation_failed();
	fail_allocation(0);
	session_close(s);
	return seen.windows;
}

static void a_lost_window_is_no_success(void **state)
{
	char path[] = "/tmp/hearth-session-XXXXXX";
	const struct self_text text = self_text();
	struct recording *r = NULL;
	bool any_failed = true;
	size_t lost = 0;

	(void)state;
	close(mkstemp(path));
	assert_int_equal(recording_create(path, &r), 0);
	add_mapping(r, 10, &text);
	add_sample(r, 20, (uint64_t)(uintptr_t)known_function_for_the_test, "some");
	assert_int_equal(recording_close(r), 0);
	for (unsigned long n = 1; any_failed; n++) {
		int result;
		size_t windows = stop_without_memory(path, n, &result, &any_failed);

		assert_true(windows == 1 || result == -ENOMEM);
		lost += windows == 0;
	}
	unlink(path);
	assert_true(lost > 0);
}

/* The same address before and after an exec: the name of the old program must not be given to the new one. */
static void an_exec_ends_the_old_names(void **state)
{
	char path[] = "/tmp/hearth-session-XXXXXX";
	const struct self_text text = self_text();
	uint64_t address = (uint64_t)(uintptr_t)known_function_for_the_test;
	struct recording *r = NULL;
	struct seen seen;

	(void)state;
	assert_int_equal(known_function_for_the_test(), 7);
	close(mkstemp(path));
	assert_int_equal(recording_create(path, &r), 0);
	add_mapping(r, 10, &text);
	for (uint64_t i = 0; i < 5; i++)
		add_sample(r, 20 + i, address, "before");
	add_event(r, 30, ABI_RECORD_EXEC);
	for (uint64_t i = 0; i < 3; i++)
		add_sample(r, 40 + i, address, "after");
	add_event(r, 50, ABI_RECORD_EXIT);
	assert_int_equal(recording_close(r), 0);
	replay(path, &seen);
	unlink(path);
	assert_int_equal(seen.windows, 1);
	assert_int_equal(seen.samples, 8);
	assert_int_equal(seen.known, 5);
	assert_int_equal(seen.unknown, 3);
	assert_int_equal(seen.unnamed, 3);
	assert_int_equal(seen.cut, 8);
	assert_int_equal(seen.complete, 0);
}

/* Whole is only a stack that ends in code without a caller and has no hole. */
static void whole_stacks_are_proven(void **state)
{
	const uint64_t entry = getauxval(AT_ENTRY);
	const struct {
		const char *name;
		struct abi_frame frame;
		uint16_t flags;
	} cases[] = {
		{ "behind the first byte of _start",
		  { .kind = ABI_FRAME_USER, .a = entry + 1, .flags = ABI_FRAME_RETURN },
		  0 },
		{ "deep in _start", { .kind = ABI_FRAME_USER, .a = entry + 9, .flags = ABI_FRAME_RETURN }, 0 },
		{ "behind what comes before _start",
		  { .kind = ABI_FRAME_USER, .a = entry, .flags = ABI_FRAME_RETURN },
		  0 },
		{ "without some kernel frames",
		  { .kind = ABI_FRAME_USER, .a = entry + 9, .flags = ABI_FRAME_RETURN },
		  ABI_SAMPLE_IN_KERNEL | ABI_SAMPLE_KERNEL_CUT },
	};
	char path[] = "/tmp/hearth-session-XXXXXX";
	const struct self_text text = self_text();
	struct recording *r = NULL;
	struct seen seen;

	(void)state;
	close(mkstemp(path));
	assert_int_equal(recording_create(path, &r), 0);
	add_mapping(r, 10, &text);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct abi_sample head = { .header.time_ns = 20 + i,
						 .user_end = ABI_END_UNPROVEN_ROOT,
						 .flags = cases[i].flags,
						 .comm = "testee" };

		print_message("  %s\n", cases[i].name);
		add_frame_sample(r, &head, &cases[i].frame);
	}
	assert_int_equal(recording_close(r), 0);
	replay(path, &seen);
	unlink(path);
	assert_int_equal(seen.samples, 4);
	assert_int_equal(seen.whole, 2);
	assert_int_equal(seen.complete, 2);
	assert_int_equal(seen.unproven, 1);
	assert_int_equal(seen.kernel_cut, 1);
}

/* Every executable mapping of this process, as a recorder would have told of it. */
static void tell_own_mappings(struct recording *r, uint64_t time_ns)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(4));
	struct maps_line line;
	struct str rest;

	assert_int_equal(io_read_file("/proc/self/maps", &text), 0);
	rest = buf_str(&text);
	while (maps_next(&rest, &line) > 0) {
		const struct abi_mapping map = {
			.header = { .type = ABI_RECORD_MAPPING, .version = ABI_VERSION, .time_ns = time_ns },
			.process_start_ns = RAW_SHOT_START_NS,
			.start = line.start,
			.end = line.end,
			.file_offset = line.offset,
			.inode = line.inode,
			.device_major = line.device_major,
			.device_minor = line.device_minor,
			.pid = PID,
		};

		if (line.executable && line.inode)
			assert_int_equal(recording_add_mapping(r, &map, line.path), 0);
	}
}

/* Samples whose walk was left to the host: each is counted once, whole, in the window it belongs to. */
static void raw_samples_are_finished(void **state)
{
	char path[] = "/tmp/hearth-session-XXXXXX";
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	struct recording *r = NULL;
	struct seen seen;

	(void)state;
	close(mkstemp(path));
	assert_int_equal(recording_create(path, &r), 0);
	tell_own_mappings(r, 10);
	raw_shot_deep(&shot, ABI_STACK_MAX, 5);
	shot.sample->pid = shot.sample->tid = PID;
	memcpy(shot.sample->thread_name, "worker;1", sizeof("worker;1"));
	for (int i = 0; i < 1000; i++) /* more than fits into the unwinder's queue at once */
		assert_int_equal(recording_add(r, &shot.sample->header), 0);
	assert_int_equal(recording_close(r), 0);
	replay(path, &seen);
	unlink(path);
	assert_int_equal(seen.windows, 1);
	assert_int_equal(seen.samples, 1000);
	assert_int_equal(seen.complete, 1000);
	assert_int_equal(seen.raw_walked, 1000);
}

static void add_wait(struct recording *r, uint64_t time_ns)
{
	const struct abi_wait wait = {
		.header = { .type = ABI_RECORD_WAIT, .version = ABI_VERSION, .size = sizeof(wait), .time_ns = time_ns },
		.process_start_ns = START_NS,
		.stack_id = 77,
		.wait_ns = 5,
		.pid = PID,
		.tid = PID,
	};

	assert_int_equal(recording_add(r, &wait.header), 0);
}

struct seen_waits {
	uint64_t lost, filtered, told;
	int64_t waits, wait_ns;
};

static void on_window_of_waits(void *ctx, const struct window *w)
{
	struct seen_waits *seen = ctx;

	seen->lost += window_counter(w, STR("waits_lost"));
	seen->filtered += window_counter(w, STR("filtered"));
	seen->told += window_counter(w, STR("waits"));
	for (size_t i = 0; i < w->model->samples_count; i++) {
		seen->waits += model_values(w->model, &w->model->samples[i])[2];
		seen->wait_ns += model_values(w->model, &w->model->samples[i])[3];
	}
}

/* A wait without its stack is lost; a wait of another container than the one asked for is not. */
static void waits_are_counted_or_lost(void **state)
{
	static const struct {
		const char *name, *container;
		bool has_stack;
		struct seen_waits want;
	} cases[] = {
		{ "with a stack", NULL, true, { .told = 3, .waits = 3, .wait_ns = 15 } },
		{ "without", NULL, false, { .lost = 3 } },
		{ "of no container", "web", true, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct abi_sample head = { .header.time_ns = 20,
						 .stack_id = 77,
						 .kernel_count = 1,
						 .trigger = ABI_TRIGGER_SWITCH,
						 .comm = "testee" };
		const struct abi_frame frame = { .kind = ABI_FRAME_KERNEL, .a = 1 };
		scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
		char path[] = "/tmp/hearth-session-XXXXXX";
		struct seen_waits seen = { 0 };
		struct recording *r = NULL;
		struct session *s = NULL;
		struct session_config cfg = { .sampler = sampler_find(STR("recorded")),
					      .sampling = { .frequency_hz = 99, .host_root = "", .off_cpu = true },
					      .clock = &clock_system,
					      .host_root = "",
					      .selection.container = cases[i].container,
					      .on_window = on_window_of_waits,
					      .ctx = &seen };

		print_message("  %s\n", cases[i].name);
		close(mkstemp(path));
		assert_int_equal(recording_create(path, &r), 0);
		if (cases[i].has_stack)
			add_frame_sample(r, &head, &frame);
		for (uint64_t n = 0; n < 3; n++)
			add_wait(r, 30 + n);
		assert_int_equal(recording_close(r), 0);
		cfg.sampling.recording = path;
		assert_int_equal(session_open(&cfg, &why, &s), 0);
		assert_int_equal(session_start(s), 0);
		while (session_step(s, 10) >= 0)
			;
		assert_int_equal(session_stop(s), 0);
		session_close(s);
		unlink(path);
		assert_memory_equal(&seen, &cases[i].want, sizeof(seen));
	}
}

static void a_bad_recording_is_refused(void **state)
{
	static const char *const contents[] = { "", "hearth", "something else entirely" };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(contents); i++) {
		char path[] = "/tmp/hearth-session-XXXXXX";
		int fd = mkstemp(path);
		const struct session_config cfg = {
			.sampler = sampler_find(STR("recorded")),
			.sampling = { .frequency_hz = 99, .recording = path, .host_root = "" },
			.clock = &clock_system,
			.host_root = ""
		};
		struct session *s = NULL;

		assert_true(write(fd, contents[i], strlen(contents[i])) >= 0);
		close(fd);
		buf_clear(&why);
		assert_true(session_open(&cfg, &why, &s) < 0);
		assert_true(why.len > 0);
		assert_null(s);
		unlink(path);
	}
}

/* ---- when windows end ---- */

#define WALL_NS (UINT64_C(1700000000) * NSEC_PER_SEC)
#define BEGIN_NS (77 * NSEC_PER_SEC)

struct cuts {
	uint64_t ends_ms[8]; /* since the start */
	size_t count;
};

static uint64_t now_of(void *self)
{
	return *(uint64_t *)self;
}

/* Set back by an hour once the session runs. */
static uint64_t wall_for_the_test(void *self)
{
	uint64_t ran_ns = now_of(self) - BEGIN_NS;

	return ran_ns ? WALL_NS - 3600 * NSEC_PER_SEC + ran_ns : WALL_NS;
}

static void note_end(void *ctx, const struct window *w)
{
	struct cuts *cuts = ctx;

	assert_true(cuts->count < ARRAY_SIZE(cuts->ends_ms));
	assert_int_equal(w->start_ns - WALL_NS, cuts->count ? cuts->ends_ms[cuts->count - 1] * NSEC_PER_MSEC : 0);
	cuts->ends_ms[cuts->count++] = (w->end_ns - WALL_NS) / NSEC_PER_MSEC;
}

static void note_times(void *ctx, const struct window *w)
{
	struct cuts *cuts = ctx;

	assert_true(cuts->count + 2 <= ARRAY_SIZE(cuts->ends_ms));
	cuts->ends_ms[cuts->count++] = (w->start_ns + 3600 * NSEC_PER_SEC - WALL_NS) / NSEC_PER_MSEC;
	cuts->ends_ms[cuts->count++] = (w->end_ns + 3600 * NSEC_PER_SEC - WALL_NS) / NSEC_PER_MSEC;
}

/* A session that runs by @cfg, over a recording at @path that has nothing; the caller stops it. */
static struct session *start_over_nothing(const char *path, struct session_config *cfg)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	struct recording *r = NULL;
	struct session *s = NULL;

	cfg->sampling.recording = path;
	assert_int_equal(recording_create(path, &r), 0);
	assert_int_equal(recording_close(r), 0);
	assert_int_equal(session_open(cfg, &why, &s), 0);
	assert_int_equal(session_start(s), 0);
	return s;
}

/* Windows of five seconds: @steps_ms are when the caller comes, up to a 0, @stop_ms when it stops. */
static void cut_at(const uint64_t *steps_ms, uint64_t stop_ms, uint64_t duration_ms, bool follows_clock,
		   struct cuts *out)
{
	uint64_t now_ns = BEGIN_NS;
	const struct clock clock = { .monotonic_ns = now_of, .wall_ns = wall_for_the_test, .self = &now_ns };
	char path[] = "/tmp/hearth-session-XXXXXX";
	struct session_config cfg = { .sampler = sampler_find(STR("recorded")),
				      .sampling = { .frequency_hz = 99, .host_root = "" },
				      .clock = &clock,
				      .host_root = "",
				      .window_ns = 5 * NSEC_PER_SEC,
				      .duration_ns = duration_ms * NSEC_PER_MSEC,
				      .follows_clock = follows_clock,
				      .on_window = follows_clock ? note_times : note_end,
				      .ctx = out };
	struct session *s;

	*out = (struct cuts){ 0 };
	close(mkstemp(path));
	s = start_over_nothing(path, &cfg);
	for (; *steps_ms; steps_ms++) {
		now_ns = BEGIN_NS + *steps_ms * NSEC_PER_MSEC;
		ignore(session_step(s, 0));
	}
	now_ns = BEGIN_NS + stop_ms * NSEC_PER_MSEC;
	assert_int_equal(session_stop(s), 0);
	session_close(s);
	unlink(path);
}

static void windows_end_on_a_grid(void **state)
{
	static const struct {
		const char *name;
		uint64_t steps_ms[8], stop_ms, duration_ms, ends_ms[8];
		size_t count;
	} cases[] = {
		{ "late steps make no window later",
		  { 4990, 5130, 10190, 15001 },
		  16000,
		  0,
		  { 5000, 10000, 15000 },
		  3 },
		{ "several that are over are one", { 5100, 16000, 20100 }, 20100, 0, { 5000, 15000, 20000 }, 3 },
		{ "an empty rest is left out", { 5100, 10003 }, 10004, 0, { 5000, 10000 }, 2 },
		{ "the length divides the duration", { 5100, 10003 }, 10004, 10000, { 5000, 10004 }, 2 },
		{ "it does not", { 5100, 10003 }, 12000, 12000, { 5000, 10000 }, 2 },
		{ "a first window that is empty is told", { 100 }, 300, 0, { 300 }, 1 },
	};
	struct cuts cuts;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		cut_at(cases[i].steps_ms, cases[i].stop_ms, cases[i].duration_ms, false, &cuts);
		assert_int_equal(cuts.count, cases[i].count);
		for (size_t k = 0; k < cuts.count; k++)
			assert_int_equal(cuts.ends_ms[k], cases[i].ends_ms[k]);
	}
}

/* Set back by an hour in the first window: that keeps its time, the next ones have the new. */
static void windows_follow_the_clock(void **state)
{
	static const uint64_t steps_ms[] = { 5100, 10003, 15001, 0 };
	static const uint64_t want_ms[] = { 3600000, 3605000, 5000, 10000, 10000, 15000 };
	struct cuts cuts;

	(void)state;
	cut_at(steps_ms, 15002, 0, true, &cuts);
	assert_int_equal(cuts.count, ARRAY_SIZE(want_ms));
	for (size_t i = 0; i < cuts.count; i++)
		assert_int_equal(cuts.ends_ms[i], want_ms[i]);
}

/* ---- how often it reads ---- */

static struct {
	const union one_frame *comes; /* with the next read; or NULL */
	int timeout_ms;               /* of the last read */
} reads;

static int poll_for_the_test(struct sampler_state *state, int timeout_ms, const struct sampler_events *events)
{
	(void)state;
	reads.timeout_ms = timeout_ms;
	if (!reads.comes)
		return 0;
	events->sample(events->ctx, &reads.comes->sample);
	reads.comes = NULL;
	return 1;
}

static void assert_waits(struct session *s, int timeout_ms)
{
	ignore(session_step(s, 200));
	assert_int_equal(reads.timeout_ms, timeout_ms);
}

/* A program that waits for a CPU has nothing new in some reads; what comes then is read no later. */
static void behind_new_code_it_reads_often(void **state)
{
	uint64_t now_ns = BEGIN_NS;
	const struct clock clock = { .monotonic_ns = now_of, .wall_ns = wall_for_the_test, .self = &now_ns };
	const struct abi_sample head = { .header.time_ns = BEGIN_NS, .user_end = ABI_END_NO_FRAME_POINTER };
	const struct abi_frame frame = { .kind = ABI_FRAME_RUNTIME, .runtime = ABI_RUNTIME_PYTHON, .a = 64, .b = 1 };
	const union one_frame record = frame_sample(&head, &frame);
	struct sampler sampler = *sampler_find(STR("recorded"));
	char path[] = "/tmp/hearth-session-XXXXXX";
	struct cuts cuts = { 0 };
	struct session_config cfg = { .sampler = &sampler,
				      .sampling = { .frequency_hz = 99, .host_root = "" },
				      .clock = &clock,
				      .host_root = "",
				      .on_window = note_end,
				      .ctx = &cuts };
	struct session *s;

	(void)state;
	sampler.poll = poll_for_the_test;
	close(mkstemp(path));
	s = start_over_nothing(path, &cfg);
	assert_waits(s, 200);
	reads.comes = &record;
	assert_waits(s, 200);
	for (uint64_t ms = 0; ms < 500; ms += 100) {
		assert_waits(s, 20);
		now_ns += 100 * NSEC_PER_MSEC;
	}
	assert_waits(s, 200);
	assert_int_equal(session_stop(s), 0);
	session_close(s);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lost_window_is_no_success),    cmocka_unit_test(an_exec_ends_the_old_names),
		cmocka_unit_test(whole_stacks_are_proven),        cmocka_unit_test(raw_samples_are_finished),
		cmocka_unit_test(waits_are_counted_or_lost),      cmocka_unit_test(a_bad_recording_is_refused),
		cmocka_unit_test(windows_end_on_a_grid),          cmocka_unit_test(windows_follow_the_clock),
		cmocka_unit_test(behind_new_code_it_reads_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
