/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: raw samples of this very process come back whole, in order, and nothing is lost or shared wrongly. The
 * oracle is glibc's backtrace(), which unwinds by the same tables with other code. */
#include "raw_shot.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "unwind/table_memory.h"
#include "unwind/unwind.h"
#include "walk/walk.h"

struct fixture {
	struct files *files;
	struct buf scratch;
	struct mapping_reader reader;
	struct mappings maps;
	struct table_memory *memory;
	struct table_sink sink;
	struct unwind *unwind;
	/* What the worker did first; taken when it hands the first table over. */
	bool has_put, was_told; /* was_told: the process, before that */
	int nice_of_put;
	pthread_mutex_t gate; /* the worker goes through it with the first table */
};

static int put_and_note(void *self, const union abi_element *elements, uint32_t count, struct table *out)
{
	struct fixture *f = self;
	struct abi_space space;

	if (!f->has_put) {
		f->was_told = table_memory_space(f->memory, (uint32_t)getpid(), &space) == 0;
		f->nice_of_put = getpriority(PRIO_PROCESS, (id_t)gettid());
		pthread_mutex_lock(&f->gate);
		pthread_mutex_unlock(&f->gate);
	}
	f->has_put = true;
	return table_memory_sink(f->memory).put(f->memory, elements, count, out);
}

static size_t noted_cost(void *self, uint32_t count)
{
	struct fixture *f = self;

	return table_memory_sink(f->memory).cost(f->memory, count);
}

static void noted_drop(void *self, struct table *table)
{
	struct fixture *f = self;

	table_memory_sink(f->memory).drop(f->memory, table);
}

static int noted_tables(void *self, const struct table_change *changes, size_t count)
{
	struct fixture *f = self;

	return table_memory_sink(f->memory).change_tables(f->memory, changes, count);
}

static int noted_maps(void *self, const struct map_change *changes, size_t count)
{
	struct fixture *f = self;

	return table_memory_sink(f->memory).change_maps(f->memory, changes, count);
}

static int noted_space(void *self, uint32_t pid, const struct abi_space *space)
{
	struct fixture *f = self;

	return table_memory_sink(f->memory).set_space(f->memory, pid, space);
}

static void fixture_open(struct fixture *f, size_t budget)
{
	struct unwind_config cfg = { .budget_bytes = budget, .host_root = "", .clock = &clock_system, .wake_fd = -1 };
	int dir = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	pthread_mutex_init(&f->gate, NULL);
	assert_int_equal(files_open(64, &f->files), 0);
	f->scratch = (struct buf)BUF_INIT(MIB(4));
	mapping_reader_init(&f->reader, f->files, &f->scratch, 1000);
	assert_int_equal(mappings_read(&f->reader, dir, (uint32_t)getpid(), &f->maps), 0);
	close(dir);
	assert_int_equal(table_memory_new(&f->memory), 0);
	f->sink = (struct table_sink){ .cost = noted_cost,
				       .put = put_and_note,
				       .drop = noted_drop,
				       .change_tables = noted_tables,
				       .change_maps = noted_maps,
				       .set_space = noted_space,
				       .self = f };
	cfg.sink = &f->sink;
	assert_int_equal(unwind_open(&cfg, f->files, &f->unwind), 0);
}

static void fixture_close(struct fixture *f)
{
	unwind_close(f->unwind);
	if (f->memory)
		assert_int_equal(table_memory_bytes(f->memory), 0);
	table_memory_free(f->memory);
	mappings_release(&f->maps);
	mapping_reader_release(&f->reader);
	buf_release(&f->scratch);
	files_close(f->files);
}

static const struct mapping *mapping_of(const struct fixture *f, uint64_t address, uint64_t *offset)
{
	const struct mapping *m = mappings_find(&f->maps, address);

	assert_non_null(m);
	*offset = address - m->start + m->offset;
	return m;
}

static void assert_like_backtrace(const struct fixture *f, const struct raw_shot *shot, const struct abi_sample *whole)
{
	int skip = 0; /* a sanitizer's own backtrace() */

	/* The leaf is in raw_shot_take() itself, a little before the call of backtrace(). */
	while ((uintptr_t)shot->callers[skip] - (uintptr_t)raw_shot_take > 4096)
		assert_true(++skip < 3);
	assert_int_equal(whole->frame_count, shot->caller_count - skip);
	for (int i = 1; i < whole->frame_count; i++) {
		uint64_t offset;
		const struct mapping *m = mapping_of(f, (uint64_t)(uintptr_t)shot->callers[i + skip], &offset);

		assert_int_equal(whole->frames[i].kind, ABI_FRAME_NATIVE);
		assert_int_equal(whole->frames[i].flags, ABI_FRAME_RETURN);
		assert_int_equal(whole->frames[i].a, m->file_id);
		assert_int_equal(whole->frames[i].b, offset);
	}
	assert_int_equal(whole->user_end, ABI_END_COMPLETE);
	assert_int_equal(whole->flags, 0);
	assert_int_equal(whole->header.size,
			 sizeof(*whole) + (whole->frame_count + whole->runtime_count) * sizeof(struct abi_frame));
	for (int i = 1; i < whole->frame_count; i++)
		assert_true(whole->frames[i].extra > whole->frames[i - 1].extra);
	assert_int_equal(whole->frames[0].extra, 0);
}

static struct unwind_totals totals_of(struct fixture *f)
{
	struct unwind_totals t;

	unwind_totals(f->unwind, &t);
	return t;
}

static void finishes_the_walk(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	scoped(freep) struct abi_sample *whole = NULL;
	struct abi_space space;

	(void)state;
	fixture_open(&f, 0);
	raw_shot_deep(&shot, ABI_STACK_MAX, 10);
	assert_int_equal(unwind_raw(f.unwind, shot.sample, &f.maps), 0);
	unwind_drain(f.unwind);
	whole = unwind_take(f.unwind);
	assert_non_null(whole);
	assert_null(unwind_take(f.unwind));
	assert_like_backtrace(&f, &shot, whole);
	assert_int_equal(totals_of(&f).raw_walked, 1);
	assert_true(totals_of(&f).tables_loaded >= 2); /* this program and libc */
	assert_int_equal(totals_of(&f).bytes, table_memory_bytes(f.memory));
	/* The process is as old as the machine: the kernel is told at once. */
	assert_int_equal(table_memory_space(f.memory, (uint32_t)getpid(), &space), 0);
	assert_int_equal(space.exec_id, 1);
	assert_non_null(table_memory_find(f.memory, space.space, (uint64_t)(uintptr_t)raw_shot_take));
}

static void says_when_the_copy_ends(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	scoped(freep) struct abi_sample *whole = NULL;

	(void)state;
	fixture_open(&f, 0);
	raw_shot_deep(&shot, KIB(8), 80);
	assert_int_equal(unwind_raw(f.unwind, shot.sample, &f.maps), 0);
	unwind_drain(f.unwind);
	whole = unwind_take(f.unwind);
	assert_non_null(whole);
	assert_int_equal(whole->user_end, ABI_END_COPY_END);
	assert_in_range(whole->frame_count, 2, shot.caller_count - 1);
}

/* Waits for one sample without unwind_drain(), which is in a hurry itself. */
static struct abi_sample *wait_for(struct unwind *u)
{
	struct abi_sample *s;

	for (int i = 0; i < 6000; i++) {
		s = unwind_take(u);
		if (s)
			return s;
		usleep(10000);
	}
	return NULL;
}

/* A process too young to be told of at its first sample. */
static void make_young(struct abi_sample *sample)
{
	sample->process_start_ns = UINT64_C(1) << 62;
}

/* Its next samples would be cut while rows load. */
static void a_full_copy_is_told_before_rows_load(void **state)
{
	scoped(raw_shot_release) struct raw_shot full = { 0 }, small = { 0 };
	struct raw_shot *const shots[] = { &full, &small };

	(void)state;
	raw_shot_deep(&full, ABI_STACK_MAX, 200);
	raw_shot_deep(&small, ABI_STACK_MAX - 8, 200);
	for (size_t i = 0; i < ARRAY_SIZE(shots); i++) {
		scoped(fixture_close) struct fixture f = { 0 };
		scoped(freep) struct abi_sample *s = NULL;

		fixture_open(&f, 0);
		make_young(shots[i]->sample);
		assert_int_equal(unwind_raw(f.unwind, shots[i]->sample, &f.maps), 0);
		s = wait_for(f.unwind);
		assert_non_null(s);
		assert_true(f.has_put);
		assert_int_equal(f.was_told, shots[i] == &full);
	}
}

/* However few bytes wait: more samples come raw until the rows are there. */
static void loading_is_urgent(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	scoped(freep) struct abi_sample *s = NULL;

	(void)state;
	if (setpriority(PRIO_PROCESS, (id_t)gettid(), -1) < 0) {
		print_message("skipped: may not raise a priority\n");
		skip();
	}
	assert_int_equal(setpriority(PRIO_PROCESS, (id_t)gettid(), 0), 0);
	fixture_open(&f, 0);
	raw_shot_deep(&shot, KIB(1), 10);
	assert_int_equal(unwind_raw(f.unwind, shot.sample, &f.maps), 0);
	s = wait_for(f.unwind);
	assert_non_null(s);
	assert_true(f.has_put);
	assert_true(f.nice_of_put < 0);
}

#ifdef WALK_X86_64
/* Calls @fn(@arg) from a frame that rows cannot leave: it begins where rbx says, which only the host knows there. */
void call_oddly(void (*fn)(void *), void *arg);

asm(".text\n"
    ".globl call_oddly\n"
    ".type call_oddly, @function\n"
    "call_oddly:\n"
    "	.cfi_startproc\n"
    "	push %rbx\n"
    "	.cfi_def_cfa_offset 16\n"
    "	.cfi_offset %rbx, -16\n"
    "	mov %rsp, %rbx\n"
    "	.cfi_def_cfa_register %rbx\n"
    "	mov %rdi, %rax\n"
    "	mov %rsi, %rdi\n"
    "	call *%rax\n"
    "	pop %rbx\n"
    "	.cfi_def_cfa %rsp, 8\n"
    "	ret\n"
    "	.cfi_endproc\n"
    "	.size call_oddly, . - call_oddly\n");

struct odd_plan {
	struct raw_shot *shot;
	int odd_left, between; /* frames of call_oddly() to come, each behind so many usual ones */
};

static void go_on_oddly(void *arg);

__attribute__((noinline)) static void go_down(struct odd_plan *p, int left)
{
	volatile uint8_t room[16];

	room[0] = (uint8_t)left;
	if (left > 1)
		go_down(p, left - 1);
	else if (p->odd_left-- > 0)
		call_oddly(go_on_oddly, p);
	else
		raw_shot_take(p->shot, KIB(256));
	room[1] = room[0]; /* no tail call */
}

static void go_on_oddly(void *arg)
{
	struct odd_plan *p = arg;

	go_down(p, p->between);
}

static uint8_t end_of_odd(int odd, int between)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	scoped(freep) struct abi_sample *s = NULL;
	struct odd_plan plan = { .shot = &shot, .odd_left = odd, .between = between };

	fixture_open(&f, 0);
	go_on_oddly(&plan);
	assert_int_equal(unwind_raw(f.unwind, shot.sample, &f.maps), 0);
	unwind_drain(f.unwind);
	s = unwind_take(f.unwind);
	assert_non_null(s);
	if (s->user_end == ABI_END_COMPLETE && shot.caller_count < RAW_SHOT_FRAMES)
		assert_like_backtrace(&f, &shot, s);
	return s->user_end;
}
#endif

/* Eight such frames of one stack are left, unless that takes looking at more than 128 frames' registers. */
static void few_frames_are_walked_with_all_registers(void **state)
{
	(void)state;
#ifdef WALK_X86_64
	assert_int_equal(end_of_odd(1, 40), ABI_END_COMPLETE);
	assert_int_equal(end_of_odd(8, 5), ABI_END_COMPLETE);
	assert_int_equal(end_of_odd(9, 5), ABI_END_UNSUPPORTED);
	assert_int_equal(end_of_odd(1, 70), ABI_END_UNSUPPORTED);
	assert_int_equal(end_of_odd(8, 12), ABI_END_COMPLETE);
	assert_int_equal(end_of_odd(8, 25), ABI_END_UNSUPPORTED);
#else
	skip();
#endif
}

/* More than a usual copy holds. */
static void a_long_copy_is_walked(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	scoped(freep) struct abi_sample *whole = NULL;

	(void)state;
	fixture_open(&f, 0);
	raw_shot_deep(&shot, KIB(64), 100);
	assert_true(unwind_raw_state(shot.sample).stack_size > ABI_STACK_MAX);
	assert_int_equal(unwind_raw(f.unwind, shot.sample, &f.maps), 0);
	unwind_drain(f.unwind);
	whole = unwind_take(f.unwind);
	assert_non_null(whole);
	assert_like_backtrace(&f, &shot, whole);
}

/* While rows load, long copies fill the queue up to its half; then there is room for 240 usual ones. */
static void long_copies_leave_room(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	const uint64_t wanted = 4 * MIB(1) / KIB(60) + 200;
	struct abi_sample *s;
	uint64_t taken = 0;

	(void)state;
	fixture_open(&f, 0);
	raw_shot_deep(&shot, KIB(60), 500);
	assert_int_equal(unwind_raw_state(shot.sample).stack_size, KIB(60));
	pthread_mutex_lock(&f.gate);
	for (uint64_t i = 0; i < wanted; i++)
		assert_int_equal(unwind_raw(f.unwind, shot.sample, &f.maps), 0);
	pthread_mutex_unlock(&f.gate);
	unwind_drain(f.unwind);
	for (; (s = unwind_take(f.unwind)); taken++)
		free(s);
	assert_int_equal(taken, wanted);
	assert_int_equal(totals_of(&f).raw_dropped, 0);
}

/* Nothing is known of the process: the address is kept, nothing else is made up. */
static void a_process_that_is_gone(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	scoped(freep) struct abi_sample *whole = NULL;
	const struct mappings none = { 0 };

	(void)state;
	fixture_open(&f, 0);
	raw_shot_take(&shot, ABI_STACK_MAX);
	assert_int_equal(unwind_raw(f.unwind, shot.sample, &none), 0);
	unwind_drain(f.unwind);
	whole = unwind_take(f.unwind);
	assert_non_null(whole);
	assert_int_equal(whole->frame_count, 0);
	assert_int_equal(whole->user_end, ABI_END_NO_MAPPING);
	assert_int_equal(whole->header.size, shot.sample->header.size); /* it could go on, when it were known */
	unwind_strip(whole);
	assert_int_equal(whole->frame_count, 1);
	assert_int_equal(whole->frames[0].kind, ABI_FRAME_USER);
	assert_int_equal(whole->flags, 0);
}

/* The libraries were mapped after the mappings were read: the walk stops at main(), and goes on when they are known. */
static void goes_on_when_a_mapping_is_known(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	scoped(freep) struct abi_sample *part = NULL, *whole = NULL;
	struct mappings early;

	(void)state;
	fixture_open(&f, 0);
	raw_shot_deep(&shot, ABI_STACK_MAX, 10);
	for (early = (struct mappings){ .items = f.maps.items }; early.count < f.maps.count; early.count++)
		if (early.items[early.count].start > (uint64_t)(uintptr_t)raw_shot_take)
			break;
	assert_int_equal(unwind_raw(f.unwind, shot.sample, &early), 0);
	unwind_drain(f.unwind);
	part = unwind_take(f.unwind);
	assert_non_null(part);
	assert_int_equal(part->flags, ABI_SAMPLE_RAW);
	assert_true(part->frame_count > 10);
	assert_int_equal(unwind_raw(f.unwind, part, &f.maps), 0);
	unwind_drain(f.unwind);
	whole = unwind_take(f.unwind);
	assert_non_null(whole);
	assert_like_backtrace(&f, &shot, whole);
}

#define RUNTIME_FRAMES 5

/* Puts frames of a runtime between the native ones and the raw part. */
static void add_runtime_frames(struct raw_shot *shot, uint16_t count)
{
	size_t grown = count * sizeof(struct abi_frame), size = shot->sample->header.size;
	struct abi_sample *sample = realloc(shot->sample, size + grown);

	assert_non_null(sample);
	memmove(sample->frames + count, sample->frames, size - sizeof(*sample));
	for (uint16_t i = 0; i < count; i++)
		sample->frames[i] = (struct abi_frame){ .kind = ABI_FRAME_RUNTIME, .runtime = 1, .a = i };
	sample->runtime_count = count;
	sample->runtime_end = ABI_RUNTIME_END_WHOLE;
	sample->header.size += (uint32_t)grown;
	shot->sample = sample;
}

static void assert_runtime_frames(const struct abi_sample *sample, uint16_t count)
{
	assert_int_equal(sample->runtime_count, count);
	assert_int_equal(sample->runtime_end, ABI_RUNTIME_END_WHOLE);
	for (uint16_t i = 0; i < count; i++) {
		const struct abi_frame *frame = &sample->frames[sample->frame_count + i];

		assert_int_equal(frame->kind, ABI_FRAME_RUNTIME);
		assert_int_equal(frame->a, i);
	}
}

static struct abi_sample *finish(struct fixture *f, const struct abi_sample *sample, const struct mappings *maps)
{
	struct abi_sample *out;

	assert_int_equal(unwind_raw(f->unwind, sample, maps), 0);
	unwind_drain(f->unwind);
	out = unwind_take(f->unwind);
	assert_non_null(out);
	return out;
}

/* Through a walk that is finished in two parts, and through none at all. */
static void runtime_frames_stay_behind(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	scoped(freep) struct abi_sample *part = NULL, *whole = NULL;
	struct mappings early;
	uint16_t before;

	(void)state;
	fixture_open(&f, 0);
	raw_shot_deep(&shot, ABI_STACK_MAX, 10);
	add_runtime_frames(&shot, RUNTIME_FRAMES);
	for (early = (struct mappings){ .items = f.maps.items }; early.count < f.maps.count; early.count++)
		if (early.items[early.count].start > (uint64_t)(uintptr_t)raw_shot_take)
			break;
	part = finish(&f, shot.sample, &early);
	assert_int_equal(part->flags, ABI_SAMPLE_RAW);
	assert_runtime_frames(part, RUNTIME_FRAMES);
	whole = finish(&f, part, &f.maps);
	assert_runtime_frames(whole, RUNTIME_FRAMES);
	assert_like_backtrace(&f, &shot, whole);
	before = part->frame_count;
	unwind_strip(part);
	assert_int_equal(part->frame_count, before + 1);
	assert_int_equal(part->frames[before].kind, ABI_FRAME_USER);
	assert_true(part->frames[before].extra > part->frames[before - 1].extra);
	assert_runtime_frames(part, RUNTIME_FRAMES);
	assert_int_equal(part->header.size, sizeof(*part) + (before + 1U + RUNTIME_FRAMES) * sizeof(struct abi_frame));
	assert_int_equal(part->flags, 0);
}

/* A record that is full of them leaves room for a few native ones only. */
static void runtime_frames_keep_their_room(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	scoped(freep) struct abi_sample *whole = NULL;

	(void)state;
	fixture_open(&f, 0);
	raw_shot_deep(&shot, ABI_STACK_MAX, 10);
	add_runtime_frames(&shot, ABI_FRAMES_MAX - 3);
	whole = finish(&f, shot.sample, &f.maps);
	assert_int_equal(whole->frame_count, 3);
	assert_int_equal(whole->user_end, ABI_END_FRAME_LIMIT);
	assert_int_equal(whole->flags, 0);
	assert_runtime_frames(whole, ABI_FRAMES_MAX - 3);
	add_runtime_frames(&shot, ABI_FRAMES_MAX);
	shot.sample->header.size -= (uint32_t)((ABI_FRAMES_MAX - 3) * sizeof(struct abi_frame));
	memmove(shot.sample->frames + ABI_FRAMES_MAX, shot.sample->frames + 2 * ABI_FRAMES_MAX - 3,
		shot.sample->header.size - sizeof(*whole) - ABI_FRAMES_MAX * sizeof(struct abi_frame));
	unwind_strip(shot.sample);
	assert_int_equal(shot.sample->frame_count, 0);
	assert_runtime_frames(shot.sample, ABI_FRAMES_MAX);
}

static void a_full_queue_says_so(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	uint64_t handed = 0, taken = 0, refused = 0;
	struct abi_sample *s;

	(void)state;
	fixture_open(&f, 0);
	raw_shot_deep(&shot, ABI_STACK_MAX, 5);
	for (int i = 0; i < 60000; i++) { /* finished ones count too, and nobody takes them */
		if (unwind_raw(f.unwind, shot.sample, &f.maps) == 0)
			handed++;
		else
			refused++;
	}
	unwind_drain(f.unwind);
	while ((s = unwind_take(f.unwind))) {
		taken++;
		free(s);
	}
	assert_int_equal(handed, taken);
	assert_int_equal(totals_of(&f).raw_dropped, refused);
	assert_true(refused > 0);
	assert_int_equal(unwind_raw(f.unwind, shot.sample, &f.maps), 0); /* and there is room again */
}

/* More than the queue may hold, as if others had filled it. */
static void mappings_without_room_are_refused(void **state)
{
	enum { COUNT = 400000 };
	scoped(fixture_close) struct fixture f = { 0 };
	struct program p = { .pid = 1, .exec_id = 1, .start_ns = 1000 };
	struct mappings many = { .items = calloc(COUNT, sizeof(*many.items)), .count = COUNT };

	(void)state;
	fixture_open(&f, 0);
	assert_non_null(many.items);
	assert_true(COUNT * sizeof(*many.items) > MIB(8));
	assert_false(unwind_set_process(f.unwind, &p, &many));
	unwind_drain(f.unwind);
	assert_int_equal(totals_of(&f).spaces, 0);
	assert_true(unwind_set_process(f.unwind, &p, &f.maps));
	unwind_drain(f.unwind);
	assert_int_equal(totals_of(&f).spaces, 1);
	free(many.items);
}

/* What the kernel would know, with a budget that is too small for libc: by frame pointers. */
static void refused_tables_are_guessed(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	scoped(freep) struct abi_sample *whole = NULL;

	(void)state;
	fixture_open(&f, 64);
	raw_shot_deep(&shot, ABI_STACK_MAX, 3);
	assert_int_equal(unwind_raw(f.unwind, shot.sample, &f.maps), 0);
	unwind_drain(f.unwind);
	whole = unwind_take(f.unwind);
	assert_non_null(whole);
	assert_true(totals_of(&f).tables_refused >= 1);
	assert_int_equal(totals_of(&f).bytes, 0);
	assert_true(whole->frame_count >= 1);
	for (int i = 1; i < whole->frame_count; i++)
		assert_true(whole->frames[i].flags & ABI_FRAME_GUESSED);
	assert_int_not_equal(whole->user_end, ABI_END_COMPLETE);
}

/* Reader and worker at once, for ThreadSanitizer: order kept, nothing lost. */
static void both_threads_at_once(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };
	uint64_t handed = 0, taken = 0;
	struct abi_sample *s;

	(void)state;
	fixture_open(&f, 0);
	raw_shot_deep(&shot, KIB(4), 2);
	for (uint32_t i = 0; i < 4000; i++) {
		struct program p = { .pid = 1 + i % 50, .exec_id = 1, .start_ns = 1000 };
		struct program child = { .pid = 1000 + i % 50, .exec_id = 1, .start_ns = 2000 };

		shot.sample->pid = p.pid;
		shot.sample->tid = 1 + i; /* number */
		if (i % 7 == 0)
			ignore(unwind_set_process(f.unwind, &p, &f.maps)); /* it may be full */
		if (i % 11 == 0)
			unwind_share(f.unwind, &child, &p);
		if (i % 13 == 0)
			unwind_forget(f.unwind, &child);
		if (i % 17 == 0)
			unwind_forget(f.unwind, &p);
		unwind_touch(f.unwind, i % 10);
		handed += unwind_raw(f.unwind, shot.sample, &f.maps) == 0;
		if (i % 16)
			continue;
		while ((s = unwind_take(f.unwind))) {
			assert_true(s->tid > taken); /* in order */
			taken++;
			free(s);
		}
	}
	unwind_drain(f.unwind);
	while ((s = unwind_take(f.unwind))) {
		taken++;
		free(s);
	}
	assert_int_equal(taken, handed);
	assert_int_equal(totals_of(&f).raw_walked, handed);
	for (uint32_t pid = 1; pid <= 50; pid++) {
		unwind_forget(f.unwind, &(struct program){ .pid = pid, .exec_id = 1, .start_ns = 1000 });
		unwind_forget(f.unwind, &(struct program){ .pid = 999 + pid, .exec_id = 1, .start_ns = 2000 });
	}
	unwind_drain(f.unwind);
	assert_int_equal(totals_of(&f).spaces, 0);
	assert_int_equal(table_memory_maps(f.memory), 0);
}

/* Closed while there is work: no leak, no wait. */
static void closes_with_work_left(void **state)
{
	scoped(fixture_close) struct fixture f = { 0 };
	scoped(raw_shot_release) struct raw_shot shot = { 0 };

	(void)state;
	fixture_open(&f, 0);
	raw_shot_take(&shot, KIB(1));
	for (int i = 0; i < 100; i++)
		assert_int_equal(unwind_raw(f.unwind, shot.sample, &f.maps), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finishes_the_walk),
		cmocka_unit_test(says_when_the_copy_ends),
		cmocka_unit_test(a_process_that_is_gone),
		cmocka_unit_test(goes_on_when_a_mapping_is_known),
		cmocka_unit_test(runtime_frames_stay_behind),
		cmocka_unit_test(runtime_frames_keep_their_room),
		cmocka_unit_test(a_full_queue_says_so),
		cmocka_unit_test(mappings_without_room_are_refused),
		cmocka_unit_test(refused_tables_are_guessed),
		cmocka_unit_test(both_threads_at_once),
		cmocka_unit_test(closes_with_work_left),
		cmocka_unit_test(few_frames_are_walked_with_all_registers),
		cmocka_unit_test(a_long_copy_is_walked),
		cmocka_unit_test(long_copies_leave_room),
		cmocka_unit_test(loading_is_urgent),
		cmocka_unit_test(a_full_copy_is_told_before_rows_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
