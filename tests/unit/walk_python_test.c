/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of CPython's frames over made-up memory: every layout, every way to the thread state, what a tick can find
 * between two instructions, and memory that lies. */
#include "support.h"

#include <linux/types.h>

#include "../walk/python_image.h"
#include "walk/walk_python.h"

#define IMAGE KIB(64)
#define TURNS_MAX (2 * WALK_PYTHON_THREADS + 16 + ABI_FRAMES_MAX + 8)

struct fixture {
	struct python_image im;
	struct walk walk;
	struct walk_world world;
	uint64_t hole, hole_size; /* cannot be read */
	size_t reads;
};

static int image_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct fixture *f = self;
	uint64_t offset = at - (uint64_t)(uintptr_t)f->im.memory;

	f->reads++;
	if (offset > f->im.size || size > f->im.size - offset)
		return -EFAULT;
	if (f->hole_size && at < f->hole + f->hole_size && f->hole < at + size)
		return -EFAULT;
	memcpy(dst, f->im.memory + offset, size);
	return 0;
}

static struct fixture *open_fixture(const struct python_layout_case *of)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	image_open(&f->im, of, IMAGE);
	f->world = (struct walk_world){ .read = image_read, .self = f };
	f->walk.world = &f->world;
	return f;
}

static void close_fixture(struct fixture *f)
{
	image_close(&f->im);
	free(f);
}

static enum abi_runtime_end run_as(struct fixture *f, uint64_t tp, uint32_t tid)
{
	struct walk *w = &f->walk;
	size_t turns = 0;

	w->tp = tp;
	w->tid = tid;
	walk_python_start(w, &f->im.info, 0);
	while (walk_python_step(w) == WALK_MORE)
		assert_true(turns++ < TURNS_MAX);
	assert_true(w->count + w->runtime_count <= ABI_FRAMES_MAX);
	assert_true(w->runtime_end < ABI_RUNTIME_END_COUNT);
	return w->runtime_end;
}

/* Kernel frames stand in front of the user frames: the head says how many. */
static void makes_room_behind_kernel_frames(void **state)
{
	static const uint16_t kernel[] = { 0, 60, ABI_KERNEL_FRAMES_MAX };
	struct walk *w = calloc(1, sizeof(*w));

	(void)state;
	assert_non_null(w);
	for (size_t i = 0; i < ARRAY_SIZE(kernel); i++) {
		walk_sample(w)->kernel_count = kernel[i];
		w->count = 640;
		w->runtime_end = ABI_RUNTIME_END_FRAME_LIMIT;
		assert_true(walk_python_make_room(w));
		assert_int_equal(w->count, kernel[i] + WALK_PYTHON_NATIVE_LEAST);
		w->runtime_end = ABI_RUNTIME_END_FRAME_LIMIT;
		assert_false(walk_python_make_room(w));
		w->count = 640;
		w->runtime_end = ABI_RUNTIME_END_WHOLE;
		assert_false(walk_python_make_room(w));
	}
	free(w);
}

static enum abi_runtime_end run(struct fixture *f)
{
	return run_as(f, f->im.tp, 0);
}

/* Frames from want[@skip] on. */
static void assert_frames(const struct fixture *f, size_t skip)
{
	const struct abi_frame *got = f->walk.frames + f->walk.count;

	assert_int_equal(f->walk.runtime_count, f->im.want_count - skip);
	for (size_t i = 0; i < f->walk.runtime_count; i++) {
		struct abi_frame frame = got[i];

		assert_int_equal(frame.b != ABI_PYTHON_NO_COOKIE, frame.kind == ABI_FRAME_RUNTIME);
		frame.b = 0;
		assert_memory_equal(&frame, &f->im.want[i + skip], sizeof(frame));
	}
}

#define FOR_LAYOUTS(name) \
	for (const struct python_layout_case *name = python_layout_at(0); name; name = next_layout(name))

static const struct python_layout_case *next_layout(const struct python_layout_case *of)
{
	for (size_t i = 0; python_layout_at(i); i++)
		if (python_layout_at(i) == of)
			return python_layout_at(i + 1);
	return NULL;
}

static const struct python_layout_case *layout_called(const char *name)
{
	FOR_LAYOUTS(of)
	{
		if (!strcmp(of->name, name))
			return of;
	}
	fail();
	return NULL;
}

/* ---- what should be found ---- */

static void whole_stacks(void **state)
{
	static const char *const shapes[] = { "a", "ab", "a|b", "ab|c|def", "a|b|c|d|e|f", "abcdefghijkl|m" };

	(void)state;
	FOR_LAYOUTS(of)
	{
		print_message("  %s\n", of->name);
		for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
			struct fixture *f = open_fixture(of);

			image_stack(&f->im, shapes[i]);
			f->walk.count = (uint32_t)i; /* behind so many others */
			assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
			assert_frames(f, 0);
			close_fixture(f);
		}
	}
}

static void no_frames(void **state)
{
	(void)state;
	FOR_LAYOUTS(of)
	{
		struct fixture *f = open_fixture(of);

		assert_int_equal(run(f), ABI_RUNTIME_END_NO_STATE);
		assert_int_equal(f->walk.runtime_count, 0);
		image_stack(&f->im, "a");
		assert_int_equal(run_as(f, f->im.tp + 64, 0), ABI_RUNTIME_END_NO_STATE);
		assert_int_equal(f->walk.runtime_count, 0);
		f->im.info.interpreters = 0;
		assert_int_equal(run(f), ABI_RUNTIME_END_NO_STATE);
		close_fixture(f);
	}
}

/* An activation that has no frame yet, marked as one or not yet. */
static void shim_on_top(void **state)
{
	static const char *const names[] = { "3.13", "3.14" };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(names); i++) {
		struct fixture *f = open_fixture(layout_called(names[i / 2]));
		uint64_t shim;

		image_stack(&f->im, "ab");
		shim = image_frame(&f->im, f->im.none, f->im.frames[1], 0);
		image_mark(&f->im, shim, i % 2);
		image_put(&f->im, f->im.thread + f->im.info.layout.thread_frame, 8, shim);
		assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
		assert_int_equal(f->walk.frames[0].kind, ABI_FRAME_ACTIVATION);
		assert_int_equal(f->walk.frames[0].a, shim);
		assert_int_equal(f->walk.runtime_count, 4);
		close_fixture(f);
	}
}

/* Inlined constructors of 3.13 on. */
static void cleanup_frames(void **state)
{
	struct fixture *f = open_fixture(layout_called("3.13"));
	uint64_t frame, leaf;

	(void)state;
	image_stack(&f->im, "ab");
	frame = image_frame(&f->im, f->im.cleanup, f->im.frames[0], 4);
	leaf = f->im.frames[1];
	image_put(&f->im, leaf + f->im.info.layout.frame_back, 8, frame);
	assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
	assert_frames(f, 0);
	close_fixture(f);
}

static void positions(void **state)
{
	static const struct {
		const char *layout;
		int64_t last;
		uint32_t want;
	} cases[] = {
		{ "3.8", -1, 0 },
		{ "3.8", 66, 66 },
		{ "3.10", -1, 0 },
		{ "3.10", 33, 66 },
		{ "3.11", -2, 0 },
		{ "3.11", 0, 0 },
		{ "3.11", 66, 66 },
		{ "3.14", 66, 66 },
		{ "3.14", -4, ABI_PYTHON_NOWHERE },
		{ "3.14", INT64_MAX - 9, ABI_PYTHON_NOWHERE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f = open_fixture(layout_called(cases[i].layout));
		const struct abi_python_layout *l = &f->im.info.layout;
		uint64_t last = (uint64_t)cases[i].last;

		image_stack(&f->im, "a");
		if (l->code_bytes != ABI_PYTHON_NONE)
			last += f->im.codes[0] + l->code_bytes;
		image_put(&f->im, f->im.frames[0] + l->frame_last, l->code_bytes == ABI_PYTHON_NONE ? 4 : 8, last);
		assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
		assert_int_equal(f->walk.frames[0].extra, cases[i].want);
		close_fixture(f);
	}
}

/* The cookie is that of pointers that stay; co_zombieframe is not. */
static void cookies(void **state)
{
	(void)state;
	FOR_LAYOUTS(of)
	{
		const struct abi_python_layout *l = &of->layout;
		struct fixture *f = open_fixture(of);
		uint64_t code, before;

		image_stack(&f->im, "a");
		run(f);
		code = f->im.codes[0];
		before = f->walk.frames[0].b;
		if (l->code_qualname == ABI_PYTHON_NONE)
			image_put(&f->im, code + l->code_lines + 8, 8, 4711);
		run(f);
		assert_int_equal(f->walk.frames[0].b, before);
		image_put(&f->im, code + l->code_lines, 8, 4711);
		run(f);
		assert_int_not_equal(f->walk.frames[0].b, before);
		close_fixture(f);
	}
}

/* ---- the thread state ---- */

static void put_way(struct fixture *f, uint8_t way, uint64_t thread)
{
	struct abi_python *info = &f->im.info;

	info->ways = way;
	if (way == ABI_PYTHON_HOLDER) {
		info->holder = image_alloc(&f->im, 8);
		image_put(&f->im, info->holder, 8, thread);
	} else if (way == ABI_PYTHON_KEY) {
		info->key_at = 792;
		image_put(&f->im, f->im.tp + 792, 8, thread);
	} else {
		info->tls_at = -24;
		image_put(&f->im, f->im.tp - 24, 8, thread);
	}
}

static void ways(void **state)
{
	static const uint8_t all[] = { ABI_PYTHON_HOLDER, ABI_PYTHON_KEY, ABI_PYTHON_TLS };

	(void)state;
	FOR_LAYOUTS(of)
	{
		for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
			struct fixture *f = open_fixture(of);
			uint64_t other = image_thread(&f->im, f->im.interpreter, f->im.tp + 4096), list;

			image_stack(&f->im, "a|bc");
			list = f->im.info.interpreters;
			f->im.info.interpreters = 0;
			put_way(f, all[i], f->im.thread);
			assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
			assert_frames(f, 0);
			put_way(f, all[i], other); /* has the GIL now, or a wrong key */
			assert_int_equal(run(f), ABI_RUNTIME_END_NO_STATE);
			f->im.info.interpreters = list;
			assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
			assert_frames(f, 0);
			put_way(f, all[i], 0);
			assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
			put_way(f, all[i], 0x4711); /* no memory there */
			assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
			assert_frames(f, 0);
			close_fixture(f);
		}
	}
}

/* Up to 3.11: the holder says the subinterpreter's thread state, the key that of the interpreter that runs it. */
static void subinterpreters(void **state)
{
	static const char *const names[] = { "3.7", "3.8", "3.10", "3.11" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct fixture *f = open_fixture(layout_called(names[i]));
		struct abi_frame outer[8];
		uint64_t main = f->im.thread;
		size_t inner_count, outer_count;

		image_stack(&f->im, "ab|c");
		outer_count = f->im.want_count;
		memcpy(outer, f->im.want, outer_count * sizeof(outer[0]));
		f->im.frame_count = f->im.activation_count = f->im.want_count = 0;
		f->im.thread = image_thread(&f->im, image_interpreter(&f->im), f->im.tp);
		image_stack(&f->im, "d|ef");
		inner_count = f->im.want_count;
		memcpy(f->im.want + inner_count, outer, outer_count * sizeof(outer[0]));
		f->im.want_count += outer_count;
		f->im.info.interpreters = 0;
		put_way(f, ABI_PYTHON_HOLDER, f->im.thread);
		put_way(f, ABI_PYTHON_KEY, main);
		f->im.info.ways = ABI_PYTHON_HOLDER | ABI_PYTHON_KEY;
		assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
		assert_frames(f, 0);
		/* The GIL is another thread's now: only the key is left. */
		put_way(f, ABI_PYTHON_HOLDER, image_thread(&f->im, f->im.interpreter, f->im.tp + 4096));
		f->im.info.ways = ABI_PYTHON_HOLDER | ABI_PYTHON_KEY;
		assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
		assert_frames(f, inner_count);
		close_fixture(f);
	}
}

/* From 3.12 on: the key says the subinterpreter's, the other is in the main interpreter's list. */
static void subinterpreters_by_list(void **state)
{
	static const char *const names[] = { "3.12", "3.13", "3.14" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct fixture *f = open_fixture(layout_called(names[i]));
		struct abi_frame outer[8];
		size_t outer_count;
		uint64_t sub;

		f->im.info.layout.thread_interp = 16;
		f->im.info.main_interpreter = f->im.interpreter;
		image_put(&f->im, f->im.thread + 16, 8, f->im.interpreter);
		image_stack(&f->im, "ab|c");
		outer_count = f->im.want_count;
		memcpy(outer, f->im.want, outer_count * sizeof(outer[0]));
		for (uint64_t n = 1; n < 5; n++)
			image_thread(&f->im, f->im.interpreter, f->im.tp + 4096 * n);
		f->im.frame_count = f->im.activation_count = f->im.want_count = 0;
		sub = image_interpreter(&f->im);
		f->im.thread = image_thread(&f->im, sub, f->im.tp);
		image_put(&f->im, f->im.thread + 16, 8, sub);
		image_stack(&f->im, "d|ef");
		put_way(f, ABI_PYTHON_KEY, f->im.thread);
		memcpy(f->im.want + f->im.want_count, outer, outer_count * sizeof(outer[0]));
		f->im.want_count += outer_count;
		assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
		assert_frames(f, 0);
		f->im.info.ways = 0; /* new ones go in front: the inner one comes first */
		assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
		assert_frames(f, 0);
		f->im.want_count -= outer_count;
		f->im.info.main_interpreter = 0;
		assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
		assert_frames(f, 0);
		close_fixture(f);
	}
}

static void musl_key(void **state)
{
	struct fixture *f = open_fixture(layout_called("3.11"));
	uint64_t keys = image_alloc(&f->im, 1024);

	(void)state;
	image_stack(&f->im, "ab");
	f->im.info.ways = ABI_PYTHON_KEY;
	f->im.info.flags |= ABI_PYTHON_KEY_INDIRECT;
	f->im.info.key_at = 128;
	f->im.info.key_offset = 40;
	f->im.info.interpreters = 0;
	assert_int_equal(run(f), ABI_RUNTIME_END_NO_STATE); /* no array of keys yet */
	image_put(&f->im, f->im.tp + 128, 8, keys);
	image_put(&f->im, keys + 40, 8, f->im.thread);
	assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
	assert_frames(f, 0);
	close_fixture(f);
}

static void thread_lists(void **state)
{
	(void)state;
	FOR_LAYOUTS(of)
	{
		struct fixture *f = open_fixture(of);
		uint64_t second;

		image_stack(&f->im, "ab|c");
		for (uint64_t i = 1; i <= 20; i++)
			image_thread(&f->im, f->im.interpreter, f->im.tp + 4096 * i);
		second = image_interpreter(&f->im);
		for (uint64_t i = 30; i <= 40; i++)
			image_thread(&f->im, second, f->im.tp + 4096 * i);
		image_interpreter(&f->im); /* without threads */
		assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
		assert_frames(f, 0);
		f->walk.tid = 0;
		assert_int_equal(run_as(f, f->im.tp + 4096 * 33, 0), ABI_RUNTIME_END_NO_STATE);
		if (of->layout.thread_native_id != ABI_PYTHON_NONE) {
			assert_int_equal(run_as(f, 0, f->im.tp >> 4 & 0xffff), ABI_RUNTIME_END_WHOLE);
			assert_frames(f, 0);
		}
		assert_int_equal(run_as(f, 0, 0), ABI_RUNTIME_END_NO_STATE);
		/* Where pthread_self() is not the thread pointer. */
		f->im.info.self_at = -2368;
		assert_int_equal(run_as(f, f->im.tp + 2368, 0), ABI_RUNTIME_END_WHOLE);
		assert_frames(f, 0);
		close_fixture(f);
	}
}

static void known_thread(void **state)
{
	struct walk *w;
	struct fixture *f = open_fixture(layout_called("3.12"));

	(void)state;
	image_stack(&f->im, "ab|c");
	w = &f->walk;
	assert_int_equal(walk_python_start_at(w, &f->im.info, f->im.thread), WALK_MORE);
	while (walk_python_step(w) == WALK_MORE)
		assert_true(w->runtime_count < 10);
	assert_int_equal(w->runtime_end, ABI_RUNTIME_END_WHOLE);
	assert_frames(f, 0);
	assert_int_equal(walk_python_start_at(w, &f->im.info, 0x4711), WALK_DONE);
	assert_int_equal(w->runtime_end, ABI_RUNTIME_END_READ_FAILED);
	close_fixture(f);
}

static void endless_lists(void **state)
{
	struct fixture *f = open_fixture(layout_called("3.8"));
	uint64_t other;

	(void)state;
	image_stack(&f->im, "a");
	other = image_thread(&f->im, f->im.interpreter, 4096);
	image_put(&f->im, other + f->im.info.layout.thread_next, 8, other);
	assert_int_equal(run(f), ABI_RUNTIME_END_NO_STATE);
	assert_true(f->reads <= WALK_PYTHON_THREADS + 8);
	image_put(&f->im, f->im.interpreter + f->im.info.layout.interp_threads, 8, 0);
	image_put(&f->im, f->im.interpreter + f->im.info.layout.interp_next, 8, f->im.interpreter);
	assert_int_equal(run(f), ABI_RUNTIME_END_NO_STATE);
	close_fixture(f);
}

/* ---- between two instructions: 3.11 and 3.12 ---- */

/* Behind the innermost activation of "ab|cd|ef": what is left when that cannot be believed. */
static void assert_restarted(struct fixture *f, bool shim)
{
	size_t skip = 3, first = shim ? 1 : 0; /* two frames and the end of their activation */

	assert_int_equal(f->walk.runtime_end, ABI_RUNTIME_END_GAP);
	assert_int_equal(f->walk.runtime_count, f->im.want_count - skip + first);
	if (shim) {
		assert_int_equal(f->walk.frames[0].kind, ABI_FRAME_ACTIVATION);
		assert_int_equal(f->walk.frames[0].a, f->im.cframes[2]);
	}
	for (size_t i = first; i < f->walk.runtime_count; i++)
		assert_int_equal(f->walk.frames[i].a, f->im.want[i - first + skip].a);
}

static void entry_races(void **state)
{
	static const char *const names[] = { "3.11", "3.12" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct fixture *f = open_fixture(layout_called(names[i]));
		const struct abi_python_layout *l = &f->im.info.layout;
		bool shim = l->entry == ABI_PYTHON_ENTRY_SHIM;
		uint64_t cframe, entry, stale, loop;

		image_stack(&f->im, "ab|cd|ef");
		cframe = f->im.cframes[2];
		assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);

		/* current_frame is that of an activation that has ended, and led elsewhere */
		entry = image_frame(&f->im, shim ? f->im.none : f->im.codes[1], f->im.frames[0], 1);
		image_mark(&f->im, entry, true);
		stale = image_frame(&f->im, f->im.codes[0], entry, 1);
		image_put(&f->im, cframe + l->cframe_frame, 8, stale);
		run(f);
		assert_restarted(f, shim);

		/* it is nothing, or leads nowhere, or in a circle */
		image_put(&f->im, cframe + l->cframe_frame, 8, 0);
		run(f);
		assert_restarted(f, shim);
		image_put(&f->im, cframe + l->cframe_frame, 8, 0x4711);
		run(f);
		assert_restarted(f, shim);
		loop = image_frame(&f->im, f->im.codes[0], 0, 1);
		image_put(&f->im, loop + l->frame_back, 8, loop);
		image_put(&f->im, cframe + l->cframe_frame, 8, loop);
		run(f);
		assert_restarted(f, shim);
		image_put(&f->im, loop + l->frame_back, 8, 0);
		run(f);
		assert_restarted(f, shim);

		/* nor is what seems to be its caller */
		loop = image_alloc(&f->im, 32);
		image_put(&f->im, loop + l->cframe_frame, 8, f->im.frames[3]);
		image_put(&f->im, cframe + l->cframe_previous, 8, loop);
		run(f);
		assert_restarted(f, shim);
		image_put(&f->im, loop + l->cframe_frame, 8, stale);
		image_put(&f->im, entry + l->frame_back, 8, 0x4711);
		assert_int_equal(run(f), ABI_RUNTIME_END_GAP);
		assert_int_equal(f->walk.runtime_count, 0);
		image_mark(&f->im, entry, false);
		image_put(&f->im, entry + l->frame_back, 8, 0);
		assert_int_equal(run(f), ABI_RUNTIME_END_GAP);
		assert_int_equal(f->walk.runtime_count, 0);

		/* nor can its caller be known: nothing is said */
		image_put(&f->im, cframe + l->cframe_previous, 8, 0x4711);
		assert_int_equal(run(f), ABI_RUNTIME_END_GAP);
		assert_int_equal(f->walk.runtime_count, shim);
		f->hole = cframe;
		f->hole_size = 8;
		run(f);
		assert_true(f->walk.runtime_count <= 1);
		assert_true(f->walk.runtime_end == ABI_RUNTIME_END_GAP ||
			    f->walk.runtime_end == ABI_RUNTIME_END_NO_STATE);
		close_fixture(f);
	}
}

/* 3.12: the frames are right, but the shim is that of another activation. */
static void far_shim(void **state)
{
	struct fixture *f = open_fixture(layout_called("3.12"));
	uint64_t shim, back;

	(void)state;
	image_stack(&f->im, "ab|cd|ef");
	back = f->im.info.layout.frame_back;
	image_alloc(&f->im, 2 * WALK_PYTHON_SHIM_REACH);
	shim = image_frame(&f->im, f->im.none, f->im.frames[3], 0);
	image_mark(&f->im, shim, true);
	image_put(&f->im, f->im.frames[4] + back, 8, shim);
	run(f);
	assert_restarted(f, true);
	close_fixture(f);
}

/* 3.12: a resumed generator before it is linked to its caller. */
static void generator_hole(void **state)
{
	struct fixture *f = open_fixture(layout_called("3.12"));
	const struct abi_python_layout *l = &f->im.info.layout;
	uint64_t generator;

	(void)state;
	image_stack(&f->im, "ab|cd|ef");
	generator = image_frame(&f->im, f->im.codes[5], 0, 7);
	image_put(&f->im, generator + l->frame_entry, 1, WALK_PYTHON_GENERATOR);
	image_put(&f->im, f->im.cframes[2] + l->cframe_frame, 8, generator);
	assert_int_equal(run(f), ABI_RUNTIME_END_GAP);
	assert_int_equal(f->walk.frames[0].a, f->im.codes[5]);
	assert_int_equal(f->walk.frames[0].flags, ABI_FRAME_GAP);
	assert_int_equal(f->walk.frames[1].kind, ABI_FRAME_ACTIVATION);
	assert_int_equal(f->walk.frames[1].a, f->im.cframes[2]);
	assert_int_equal(f->walk.runtime_count, f->im.want_count - 3 + 2);
	for (size_t i = 2; i < f->walk.runtime_count; i++)
		assert_int_equal(f->walk.frames[i].a, f->im.want[i + 1].a);
	close_fixture(f);
}

/* The chain ends at a frame that ends no activation: something is missing. */
static void early_end(void **state)
{
	(void)state;
	FOR_LAYOUTS(of)
	{
		struct fixture *f = open_fixture(of);
		const struct abi_python_layout *l = &of->layout;

		if (l->entry == ABI_PYTHON_ENTRY_EACH) {
			close_fixture(f);
			continue;
		}
		image_stack(&f->im, "abc|d|ef");
		image_put(&f->im, f->im.frames[1] + l->frame_back, 8, 0);
		assert_int_equal(run(f), ABI_RUNTIME_END_GAP);
		assert_int_equal(f->walk.frames[f->walk.runtime_count - 1].a, f->im.codes[1]);
		assert_int_equal(f->walk.frames[f->walk.runtime_count - 1].flags, ABI_FRAME_GAP);
		close_fixture(f);
	}
}

/* ---- memory that lies ---- */

static void circles(void **state)
{
	(void)state;
	FOR_LAYOUTS(of)
	{
		for (size_t length = 1; length <= 9; length++) {
			struct fixture *f = open_fixture(of);

			image_stack(&f->im, "abcdefghi|z");
			image_put(&f->im, f->im.frames[9 - length] + of->layout.frame_back, 8, f->im.frames[8]);
			run(f);
			assert_int_equal(f->walk.runtime_end, ABI_RUNTIME_END_BAD_CHAIN);
			assert_true(f->walk.runtime_count < 64);
			close_fixture(f);
		}
	}
}

static void too_many_frames(void **state)
{
	(void)state;
	FOR_LAYOUTS(of)
	{
		struct fixture *f = calloc(1, sizeof(*f));
		uint64_t back;

		assert_non_null(f);
		image_open(&f->im, of, KIB(512));
		f->world = (struct walk_world){ .read = image_read, .self = f };
		f->walk.world = &f->world;
		f->walk.count = 24;
		image_stack(&f->im, "a");
		back = f->im.frames[0];
		for (int i = 0; i < 1100; i++)
			back = image_frame(&f->im, f->im.codes[0], back, 1);
		image_put(&f->im,
			  of->layout.cframe_frame == ABI_PYTHON_NONE ? f->im.thread + of->layout.thread_frame
								     : f->im.cframes[0] + of->layout.cframe_frame,
			  8, back);
		assert_int_equal(run(f), ABI_RUNTIME_END_FRAME_LIMIT);
		assert_int_equal(f->walk.runtime_count, ABI_FRAMES_MAX - 24);
		close_fixture(f);
	}
}

/* With any eight bytes unreadable no stack is said to be whole that is not. */
static void unreadable_bytes(void **state)
{
	(void)state;
	FOR_LAYOUTS(of)
	{
		struct fixture *f = open_fixture(of);
		size_t whole = 0, failed = 0, nameless = 0;

		image_stack(&f->im, "ab|c|de");
		for (size_t at = 0; at < f->im.used; at += 8) {
			f->hole = (uint64_t)(uintptr_t)f->im.memory + at;
			f->hole_size = 8;
			if (run(f) != ABI_RUNTIME_END_WHOLE) {
				failed++;
				continue;
			}
			whole++;
			assert_int_equal(f->walk.runtime_count, f->im.want_count);
			for (size_t i = 0; i < f->walk.runtime_count; i++) {
				assert_int_equal(f->walk.frames[i].a, f->im.want[i].a);
				nameless += f->walk.frames[i].kind == ABI_FRAME_RUNTIME && !f->walk.frames[i].b;
			}
		}
		assert_true(whole > 100 && failed > 30 && nameless >= 5 * 4);
		close_fixture(f);
	}
}

/* With any word something else the walk ends and the frames are well formed. */
static void changed_words(void **state)
{
	static const uint64_t values[] = { 0, 1, 8, 0x4711, UINT64_MAX, 1ULL << 63 };

	(void)state;
	FOR_LAYOUTS(of)
	{
		struct fixture *f = open_fixture(of);

		image_stack(&f->im, "ab|c|de");
		for (size_t at = 0; at + 8 <= f->im.used; at += 8) {
			uint64_t address = (uint64_t)(uintptr_t)f->im.memory + at, before = image_get(&f->im, address);

			for (size_t i = 0; i < ARRAY_SIZE(values) + 2; i++) {
				image_put(&f->im, address, 8,
					  i < ARRAY_SIZE(values) ? values[i] : f->im.frames[i - ARRAY_SIZE(values)]);
				run(f);
			}
			image_put(&f->im, address, 8, before);
		}
		assert_int_equal(run(f), ABI_RUNTIME_END_WHOLE);
		close_fixture(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_room_behind_kernel_frames),
		cmocka_unit_test(whole_stacks),
		cmocka_unit_test(no_frames),
		cmocka_unit_test(shim_on_top),
		cmocka_unit_test(cleanup_frames),
		cmocka_unit_test(positions),
		cmocka_unit_test(cookies),
		cmocka_unit_test(ways),
		cmocka_unit_test(musl_key),
		cmocka_unit_test(subinterpreters),
		cmocka_unit_test(subinterpreters_by_list),
		cmocka_unit_test(thread_lists),
		cmocka_unit_test(known_thread),
		cmocka_unit_test(endless_lists),
		cmocka_unit_test(entry_races),
		cmocka_unit_test(far_shim),
		cmocka_unit_test(generator_hole),
		cmocka_unit_test(early_end),
		cmocka_unit_test(circles),
		cmocka_unit_test(too_many_frames),
		cmocka_unit_test(unreadable_bytes),
		cmocka_unit_test(changed_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
