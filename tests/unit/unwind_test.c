/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: raw samples of this very process come back whole, in order, and nothing is lost or shared wrongly. The
 * oracle is glibc's backtrace(), which unwinds by the same tables with other code. */
#include "raw_shot.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "unwind/table_memory.h"
#include "unwind/unwind.h"

struct fixture {
	struct files *files;
	struct buf scratch;
	struct mapping_reader reader;
	struct mappings maps;
	struct table_memory *memory;
	struct table_sink sink;
	struct unwind *unwind;
};

static void fixture_open(struct fixture *f, size_t budget)
{
	struct unwind_config cfg = { .budget_bytes = budget, .host_root = "", .clock = &clock_system, .wake_fd = -1 };
	int dir = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(files_open(64, &f->files), 0);
	f->scratch = (struct buf)BUF_INIT(MIB(4));
	mapping_reader_init(&f->reader, f->files, &f->scratch, 1000);
	assert_int_equal(mappings_read(&f->reader, dir, &f->maps), 0);
	close(dir);
	assert_int_equal(table_memory_new(&f->memory), 0);
	f->sink = table_memory_sink(f->memory);
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
			unwind_set_process(f.unwind, &p, &f.maps);
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
		cmocka_unit_test(finishes_the_walk),          cmocka_unit_test(says_when_the_copy_ends),
		cmocka_unit_test(a_process_that_is_gone),     cmocka_unit_test(goes_on_when_a_mapping_is_known),
		cmocka_unit_test(runtime_frames_stay_behind), cmocka_unit_test(runtime_frames_keep_their_room),
		cmocka_unit_test(a_full_queue_says_so),       cmocka_unit_test(refused_tables_are_guessed),
		cmocka_unit_test(both_threads_at_once),       cmocka_unit_test(closes_with_work_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
