/* SPDX-License-Identifier: Apache-2.0 */
/* Ruby over made-up memory: the walk in every layout, every way to the context, what a tick can find between two
 * instructions, memory that lies; names and lines from the same memory. HEARTH_RUBY_SEEDS=FOLDER writes what
 * fuzz_walk_ruby begins with. */
#include "support.h"

#include <elf.h>
#include <linux/types.h>

#include "runtime/ruby/lines.h"
#include "runtime/ruby/names.h"
#include "runtime/ruby/objects.h"
#include "runtime/ruby/versions/layouts.h"
#include "walk/walk_ruby.h"

#define BASE 0x10000ULL
#define IMAGE KIB(6)
#define TP (BASE + 0x100)
#define EC (BASE + 0x200)
#define THREAD (BASE + 0x300)
#define RACTOR (BASE + 0x400)
#define VARIABLES (BASE + 0x700) /* the table of blocks, the collector's flags, symbols, the current context */
#define STACK (BASE + 0x800)
#define STACK_BYTES KIB(1)
#define HEAP (STACK + STACK_BYTES)
#define TURNS_MAX 4096

struct image {
	uint64_t words[IMAGE / 8];
	const struct ruby_version *version;
	struct abi_ruby info;
	uint64_t heap, sp, frame; /* where the next object, env and frame go */
	uint64_t hole;            /* eight bytes that cannot be read */
	struct walk walk;
	struct walk_world world;
};

static int image_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct image *im = self;

	if (at < BASE || at - BASE > IMAGE || size > IMAGE - (at - BASE))
		return -EFAULT;
	if (im->hole && at < im->hole + 8 && im->hole < at + size)
		return -EFAULT;
	memcpy(dst, (const char *)im->words + (at - BASE), size);
	return 0;
}

static int target_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	return image_read(self, dst, size, at);
}

static uint64_t *word(struct image *im, uint64_t at)
{
	assert_true(at >= BASE && at - BASE < IMAGE && !(at & 7));
	return &im->words[(at - BASE) / 8];
}

static uint64_t take(struct image *im, uint64_t bytes)
{
	uint64_t at = im->heap;

	im->heap += align_up(bytes, 8);
	assert_true(im->heap <= BASE + IMAGE);
	return at;
}

static bool has(const struct image *im, uint8_t flag)
{
	return im->info.layout.flags & flag;
}

/* A String, long enough not to fit into the object when @is_far. */
static uint64_t make_string(struct image *im, const char *text, bool is_far)
{
	uint64_t at = take(im, 64), size = strlen(text), bytes;

	*word(im, at) = 5;
	if (is_far) {
		bytes = take(im, size + 1);
		*word(im, at) |= 1 << 13;
		*word(im, at + 16) = size;
		*word(im, at + 24) = bytes;
	} else if (has(im, ABI_RUBY_LONG_STRINGS)) {
		bytes = at + 24;
		*word(im, at + 16) = size;
	} else {
		bytes = at + 16;
		*word(im, at) |= size << 14;
	}
	memcpy(word(im, bytes), text, size);
	return at;
}

/* An iseq of 4 words of code: the first two are of line @first + 1, the others of @first + 2. */
static uint64_t make_iseq(struct image *im, const char *label, const char *path, int first)
{
	const struct abi_ruby_layout *l = &im->info.layout;
	uint64_t iseq = take(im, 24), body = take(im, 256), index = take(im, 48), lines = take(im, 32),
		 pair = take(im, 48);

	*word(im, iseq + 16) = body;
	*word(im, body) = 4ULL << 32;
	*word(im, body + 8) = take(im, 32);
	*word(im, pair) = 7 | 1 << 13 | 2 << 15; /* an Array of two: the path as given and the real one */
	*word(im, pair + 16) = make_string(im, "given.rb", false);
	*word(im, pair + 24) = make_string(im, path, true);
	*word(im, body + 64) = pair;
	*word(im, body + 80) = make_string(im, label, false);
	*word(im, body + 88) = has(im, ABI_RUBY_TAGGED_LINE) ? (uint64_t)first << 1 | 1 : (uint64_t)first;
	*word(im, body + l->body_lines) = lines;
	memcpy((char *)im->words + (body + l->body_lines_count - BASE), &(uint32_t){ 2 }, 4);
	for (uint32_t i = 0; i < 2; i++) {
		char *entry = (char *)word(im, lines) + i * l->line_bytes;

		memcpy(entry, &(uint32_t){ i * 2 }, 4);
		memcpy(entry + l->line_at, &(int32_t){ first + 1 + (int32_t)i }, 4);
	}
	if (l->body_lines_index == ABI_RUBY_NONE)
		return iseq;
	*word(im, body + l->body_lines_index) = index;
	*word(im, index) = 1 | 1 << 7 | 2 << 14 | 2 << 21;
	return iseq;
}

static uint64_t code_of(struct image *im, uint64_t iseq)
{
	return *word(im, *word(im, iseq + 16) + 8);
}

static uint64_t make_method(struct image *im, uint64_t id)
{
	uint64_t entry = take(im, 40), definition = take(im, 40);

	*word(im, entry) = 0x1a | 6 << 12;
	*word(im, entry + 16) = definition;
	*word(im, definition + 32) = id;
	return entry;
}

/* Pushes one frame, the outermost first. */
static void push(struct image *im, uint64_t flags, uint64_t iseq, uint64_t pc, uint64_t entry)
{
	uint64_t ep = im->sp + 16;

	im->frame -= im->info.layout.frame_size;
	*word(im, im->sp) = entry;
	*word(im, ep) = flags;
	im->sp += 48;
	assert_true(im->sp < im->frame);
	*word(im, im->frame) = pc;
	*word(im, im->frame + 16) = iseq;
	*word(im, im->frame + 32) = ep;
	*word(im, EC + 16) = im->frame;
}

static void push_iseq(struct image *im, uint64_t flags, uint64_t iseq, uint32_t words)
{
	push(im, flags, iseq, code_of(im, iseq) + 8 * (uint64_t)words, 0);
}

static struct image *open_image(const struct ruby_version *version)
{
	struct image *im = calloc(1, sizeof(*im));

	assert_non_null(im);
	im->version = version;
	im->info = (struct abi_ruby){ .layout = version->layout, .gc_flags = VARIABLES, .last_operator = 0xa9 };
	im->heap = HEAP;
	im->sp = STACK;
	im->frame = STACK + STACK_BYTES;
	im->world = (struct walk_world){ .read = image_read, .self = im };
	im->walk.world = &im->world;
	*word(im, EC) = STACK;
	*word(im, EC + 8) = STACK_BYTES / 8;
	*word(im, EC + version->layout.ec_thread) = THREAD;
	*word(im, THREAD + version->layout.thread_ec) = EC;
	if (version->major >= 3) {
		im->info.way = ABI_RUBY_TLS;
		*word(im, TP + 0x20) = EC;
		*word(im, THREAD + version->layout.thread_ractor) = RACTOR;
	} else {
		im->info.way = ABI_RUBY_KEY;
		*word(im, TP + 0x20) = THREAD;
		im->info.current = VARIABLES + 8;
	}
	im->info.key_at = 0x20;
	push(im, 0x79990001 | 0xa0, 0, 0, 0);
	return im;
}

/* The thread of the image has the GVL: the other one has it otherwise. */
static void run_it(struct image *im, bool ours)
{
	if (im->version->major < 3)
		*word(im, VARIABLES + 8) = ours ? EC : EC + 8;
	else if (im->info.layout.ractor_running != ABI_RUBY_NONE)
		*word(im, RACTOR + im->info.layout.ractor_running) = ours ? EC : EC + 8;
}

static uint8_t run(struct image *im)
{
	struct walk *w = &im->walk;
	size_t turns = 0;

	w->tp = TP;
	w->count = 3;
	walk_ruby_start(w, &im->info, 0);
	while (walk_ruby_step(w) == WALK_MORE)
		assert_true(turns++ < TURNS_MAX);
	assert_int_equal(w->count, 3);
	assert_true(w->count + w->runtime_count <= ABI_FRAMES_MAX);
	return w->runtime_end;
}

static const struct abi_frame *frame(const struct image *im, uint32_t index)
{
	assert_true(index < im->walk.runtime_count);
	return &im->walk.frames[3 + index];
}

static void write_seed(const struct image *im)
{
	const char *folder = getenv("HEARTH_RUBY_SEEDS");
	const uint64_t head[2] = { TP, 3 }, piece[2] = { BASE, IMAGE };
	char path[256];
	FILE *f;

	if (!folder)
		return;
	snprintf(path, sizeof(path), "%s/%u.%u", folder, im->version->major, im->version->minor);
	f = fopen(path, "w");
	assert_non_null(f);
	fwrite(&im->info, sizeof(im->info), 1, f);
	fwrite(head, sizeof(head), 1, f);
	fwrite(piece, sizeof(piece), 1, f);
	fwrite(im->words, sizeof(im->words), 1, f);
	fclose(f);
}

#define METHOD 0x11110001ULL
#define BLOCK 0x22220001ULL
#define TOP 0x44440001ULL
#define CFUNC 0x55550081ULL
#define IFUNC 0x66660081ULL
#define RESCUE 0x78880001ULL
#define FINISH 0x20ULL

/* <main> - each (C) - a method - itself again */
static void fill(struct image *im, uint64_t iseqs[2])
{
	iseqs[0] = make_iseq(im, "<main>", "/srv/main.rb", 1);
	iseqs[1] = make_iseq(im, "work", "/srv/a_rather_long_name_of_a_file.rb", 10);
	push_iseq(im, TOP | FINISH, iseqs[0], 2);
	push(im, CFUNC, 0, 0, make_method(im, 0x1234));
	push(im, IFUNC, 0x8, 0, 0);
	push_iseq(im, METHOD | FINISH, iseqs[1], 0);
	push_iseq(im, BLOCK, iseqs[1], 3);
}

static void every_layout(void **state)
{
	const struct ruby_version *v;

	(void)state;
	for (size_t i = 0; (v = ruby_version_at(i)); i++) {
		struct image *im = open_image(v);
		uint64_t iseqs[2];

		assert_ptr_equal(ruby_version_find(v->major, v->minor), v);
		fill(im, iseqs);
		assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
		assert_int_equal(im->walk.runtime_count, 4);
		assert_int_equal(frame(im, 0)->a, iseqs[1]);
		assert_int_equal(frame(im, 0)->extra, 2);
		assert_int_equal(frame(im, 0)->flags, 0);
		assert_int_equal(frame(im, 1)->a, iseqs[1]);
		assert_int_equal(frame(im, 1)->extra, 0);
		assert_int_equal(frame(im, 1)->flags, ABI_FRAME_ENTRY);
		assert_int_equal(frame(im, 1)->b, frame(im, 0)->b);
		assert_int_equal(frame(im, 2)->a, ABI_RUBY_CFUNC | 0x1234);
		assert_int_equal(frame(im, 3)->a, iseqs[0]);
		assert_int_equal(frame(im, 3)->flags, ABI_FRAME_ENTRY);
		assert_true(frame(im, 3)->b != ABI_RUBY_NO_COOKIE && frame(im, 3)->b != frame(im, 0)->b);
		write_seed(im);
		free(im);
	}
	assert_null(ruby_version_find(1, 9));
	assert_null(ruby_version_find(3, 5));
}

#define COMPILED 0x7f0000000000ULL /* code of the compiler lies there */

/* A compiled function writes down where it is before it calls what may look at that, and what calls nothing, never. */
static void compiled_leaves(void **state)
{
	struct image *im = open_image(ruby_version_find(3, 1));
	uint64_t iseqs[2];

	(void)state;
	fill(im, iseqs);
	push(im, METHOD, iseqs[1], 0, 0);
	assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(im->walk.runtime_count, 4); /* without a compiler such a frame is one to be hidden */
	im->walk.range_count = 1;
	im->walk.ranges[0] = (struct abi_code_range){ COMPILED, 4096, ABI_RUNTIME_RUBY, 0 };
	im->walk.leaf[WALK_REG_PC] = COMPILED + 4096; /* a function that compiled code has called runs */
	assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(im->walk.runtime_count, 5);
	assert_int_equal(frame(im, 0)->a, iseqs[1]);
	assert_int_equal(frame(im, 0)->extra, ABI_RUBY_NOWHERE);
	push_iseq(im, METHOD, iseqs[1], 3);
	assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(im->walk.runtime_count, 5); /* only the innermost one is shown without */
	assert_int_equal(frame(im, 0)->extra, 2);
	im->walk.leaf[WALK_REG_PC] = COMPILED + 4095;
	assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(frame(im, 0)->extra, ABI_RUBY_NOWHERE);
	assert_int_equal(frame(im, 1)->extra, 2);
	/* The frame of a C function that compiled code is about to call is what lay there before. */
	push(im, CFUNC, 0, 0, make_method(im, 0x1235));
	im->walk.leaf[WALK_RUBY_REG_FRAME] = im->frame + im->info.layout.frame_size;
	assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(im->walk.runtime_count, 5);
	assert_int_equal(frame(im, 0)->a, iseqs[1]);
	im->walk.leaf[WALK_RUBY_REG_FRAME] += im->info.layout.frame_size; /* that cannot be */
	assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(im->walk.runtime_count, 6);
	assert_int_equal(frame(im, 0)->a, ABI_RUBY_CFUNC | 0x1235);
	free(im);
}

/* What 3.1's compiler makes of a call of a Ruby function, from behind the instruction that puts the frame into the
 * context: as a program of 3.1.2 has it. */
static const uint8_t push_code[] = {
	0x48, 0x8b, 0x0b,                                     /* mov (%rbx),%rcx */
	0x49, 0x89, 0x4d, 0x18,                               /* mov %rcx,0x18(%r13): self */
	0x48, 0x89, 0xc3,                                     /* mov %rax,%rbx */
	0x49, 0x89, 0x45, 0x08,                               /* mov %rax,0x8(%r13): sp */
	0x49, 0x89, 0x45, 0x30,                               /* mov %rax,0x30(%r13) */
	0x48, 0x83, 0xe8, 0x08,                               /* sub $8,%rax */
	0x49, 0x89, 0x45, 0x20,                               /* mov %rax,0x20(%r13): ep */
	0x48, 0xb8, 0x30, 0x42, 0x7d, 0xa4, 0x0a, 0x7f, 0, 0, /* movabs $iseq,%rax */
	0x49, 0x89, 0x45, 0x10,                               /* mov %rax,0x10(%r13) */
	0x49, 0xc7, 0x45, 0x28, 0,    0,    0,    0,          /* movq $0,0x28(%r13) */
	0x48, 0xb8, 0xfd, 0xc4, 0xa6, 0xa4, 0x0a, 0x7f, 0, 0, /* movabs $return,%rax */
};

#define PUSH_STORES 36 /* where the iseq is stored */

static const uint8_t starts[] = { 0, 3, 7, 10, 14, 18, 22, 26, PUSH_STORES, 40, 48 }; /* of its instructions */

static void frames_that_compiled_code_fills_in(void **state)
{
	struct image *im = open_image(ruby_version_find(3, 1));
	const uint64_t code = take(im, 128), size = im->info.layout.frame_size;
	uint64_t iseqs[2];

	(void)state;
	fill(im, iseqs);
	push_iseq(im, METHOD, iseqs[1], 3);
	push_iseq(im, METHOD, iseqs[0], 1); /* what lay there before */
	memcpy(word(im, code), push_code, sizeof(push_code));
	im->walk.range_count = 1;
	im->walk.ranges[0] = (struct abi_code_range){ code, 128, ABI_RUNTIME_RUBY, 0 };
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		uint64_t at = starts[i];
		bool is_old = at <= PUSH_STORES;

		im->walk.leaf[WALK_REG_PC] = code + at;
		im->walk.leaf[WALK_RUBY_REG_FRAME] = im->frame;
		assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
		assert_int_equal(im->walk.runtime_count, is_old ? 5 : 6);
		assert_int_equal(frame(im, 0)->a, iseqs[is_old]);
		assert_int_equal(frame(im, 0)->extra, ABI_RUBY_NOWHERE);
	}
	im->walk.leaf[WALK_REG_PC] = code;
	im->walk.leaf[WALK_RUBY_REG_FRAME] = im->frame + 2 * size; /* another function's code */
	assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(im->walk.runtime_count, 6);
	im->walk.leaf[WALK_RUBY_REG_FRAME] = im->frame;
	im->walk.leaf[WALK_REG_PC] = code - 0x10000; /* not the compiler's */
	assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(im->walk.runtime_count, 6);
	im->walk.ranges[0].low = UINT64_MAX / 2; /* it cannot be read: the frame is believed */
	im->walk.leaf[WALK_REG_PC] = UINT64_MAX / 2;
	assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
	assert_int_equal(im->walk.runtime_count, 6);
	free(im);
}

static void ways_to_the_context(void **state)
{
	struct image *im = open_image(ruby_version_find(3, 1));
	uint64_t iseqs[2];

	(void)state;
	fill(im, iseqs);
	im->info.way = ABI_RUBY_TLS_DYNAMIC;
	im->info.module = 2;
	im->info.offset = 8;
	*word(im, TP + 8) = VARIABLES + 0x20;
	*word(im, VARIABLES + 0x20 + 32) = VARIABLES + 0x80;
	*word(im, VARIABLES + 0x88) = EC;
	assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
	*word(im, VARIABLES + 0x20 + 32) = UINT64_MAX; /* not allocated yet */
	assert_int_equal(run(im), ABI_RUNTIME_END_NO_STATE);
	assert_int_equal(im->walk.runtime_count, 0);
	free(im);

	im = open_image(ruby_version_find(2, 7));
	fill(im, iseqs);
	im->info.layout.flags |= ABI_RUBY_KEY_INDIRECT;
	im->info.offset = 16;
	*word(im, TP + 0x20) = VARIABLES + 0x40;
	*word(im, VARIABLES + 0x50) = THREAD;
	assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
	*word(im, VARIABLES + 0x50) = 0; /* no thread of Ruby */
	assert_int_equal(run(im), ABI_RUNTIME_END_NO_STATE);
	*word(im, TP + 0x20) = BASE + IMAGE; /* unreadable */
	assert_int_equal(run(im), ABI_RUNTIME_END_READ_FAILED);
	free(im);
}

static void only_the_own_collector(void **state)
{
	const struct ruby_version *v;

	(void)state;
	for (size_t i = 0; (v = ruby_version_at(i)); i++) {
		struct image *im = open_image(v);
		bool is_known = v->major < 3 || v->layout.ractor_running != ABI_RUBY_NONE;
		uint64_t iseqs[2];

		fill(im, iseqs);
		*word(im, VARIABLES) = 0xff ^ ABI_RUBY_GC_RUNNING;
		run_it(im, true);
		run(im);
		assert_int_equal(im->walk.runtime_count, 4);
		*word(im, VARIABLES) = ABI_RUBY_GC_RUNNING;
		run_it(im, false);
		run(im);
		assert_int_equal(im->walk.runtime_count, 4);
		run_it(im, true);
		assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
		assert_int_equal(im->walk.runtime_count, is_known ? 5 : 4);
		if (is_known)
			assert_int_equal(frame(im, 0)->a, ABI_RUBY_GC);
		free(im);
	}
}

/* Up to 2.7 the leaf may be what lay there before: dropped and said where it can be seen. */
static void half_made_leaves(void **state)
{
	static const uint8_t numbers[][2] = { { 2, 7 }, { 3, 1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		for (int kind = 0; kind < 3; kind++) {
			struct image *im = open_image(ruby_version_find(numbers[i][0], numbers[i][1]));
			bool is_early = has(im, ABI_RUBY_EARLY_FRAMES), is_iseq = kind == 2;
			uint64_t iseqs[2];

			fill(im, iseqs);
			if (kind == 0)
				push(im, 0x1234, 0, 0, 0);
			else if (kind == 1)
				push(im, CFUNC, 0, 0, iseqs[0]);
			else
				push(im, METHOD, iseqs[1], code_of(im, iseqs[0]) + 8000, 0);
			if (is_early) {
				assert_int_equal(run(im), ABI_RUNTIME_END_GAP);
				assert_int_equal(im->walk.runtime_count, 4);
				assert_int_equal(frame(im, 0)->a, iseqs[1]);
			} else if (is_iseq) {
				assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
				assert_int_equal(frame(im, 0)->extra, ABI_RUBY_NOWHERE);
			} else {
				assert_int_equal(run(im), ABI_RUNTIME_END_BAD_CHAIN);
				assert_int_equal(im->walk.runtime_count, 0);
			}
			free(im);
		}
}

static void rescues(void **state)
{
	const struct ruby_version *v;

	(void)state;
	for (size_t i = 0; (v = ruby_version_at(i)); i++) {
		struct image *im = open_image(v);
		uint64_t iseqs[2], rescue;

		fill(im, iseqs);
		rescue = make_iseq(im, "rescue in work", "/srv/main.rb", 30);
		push_iseq(im, METHOD | FINISH, iseqs[0], 1);
		push_iseq(im, RESCUE, rescue, 1);
		assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
		assert_int_equal(frame(im, 0)->a, rescue);
		if (has(im, ABI_RUBY_MERGED_RESCUE)) {
			assert_int_equal(im->walk.runtime_count, 5);
			assert_int_equal(frame(im, 0)->flags, ABI_FRAME_ENTRY);
		} else {
			assert_int_equal(im->walk.runtime_count, 6);
			assert_int_equal(frame(im, 1)->flags, ABI_FRAME_ENTRY);
		}
		free(im);
	}
}

static void threads_without_frames(void **state)
{
	struct image *im = open_image(ruby_version_find(2, 7));

	(void)state;
	assert_int_equal(run(im), ABI_RUNTIME_END_NO_STATE); /* nothing but the first one */
	*word(im, EC + 16) = STACK + STACK_BYTES;            /* a fiber that has just been made */
	assert_int_equal(run(im), ABI_RUNTIME_END_NO_STATE);
	*word(im, EC) = 0;
	assert_int_equal(run(im), ABI_RUNTIME_END_NO_STATE);
	*word(im, TP + 0x20) = 0;
	assert_int_equal(run(im), ABI_RUNTIME_END_NO_STATE);
	im->walk.tp = 0;
	free(im);
}

static void memory_that_lies(void **state)
{
	const struct {
		uint64_t at, value;
		uint8_t end;
	} cases[] = {
		{ EC + 16, STACK - 8, ABI_RUNTIME_END_BAD_CHAIN },
		{ EC + 16, STACK + STACK_BYTES + 8, ABI_RUNTIME_END_BAD_CHAIN },
		{ EC + 8, 8, ABI_RUNTIME_END_BAD_CHAIN },
		{ EC + 8, UINT64_MAX, ABI_RUNTIME_END_BAD_CHAIN },
		{ EC, STACK + 4, ABI_RUNTIME_END_BAD_CHAIN },
		{ EC + 16, STACK + STACK_BYTES - 8, ABI_RUNTIME_END_READ_FAILED },
		{ TP + 0x20, BASE + IMAGE, ABI_RUNTIME_END_READ_FAILED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct image *im = open_image(ruby_version_find(3, 3));
		uint64_t iseqs[2];

		fill(im, iseqs);
		*word(im, cases[i].at) = cases[i].value;
		assert_int_equal(run(im), cases[i].end);
		free(im);
	}
}

/* Whatever cannot be read, the walk ends, and an iseq that could not be read has no cookie. */
static void holes(void **state)
{
	(void)state;
	for (uint64_t at = BASE; at < BASE + IMAGE; at += 8) {
		struct image *im = open_image(ruby_version_find(3, 3));
		uint64_t iseqs[2];

		fill(im, iseqs);
		im->hole = at;
		run(im);
		for (uint32_t i = 0; i < im->walk.runtime_count; i++)
			assert_true(frame(im, i)->b || frame(im, i)->extra == ABI_RUBY_NOWHERE);
		free(im);
	}
}

static void no_room(void **state)
{
	struct image *im = open_image(ruby_version_find(3, 3));
	struct walk *w = &im->walk;
	uint64_t iseqs[2];

	(void)state;
	fill(im, iseqs);
	w->tp = TP;
	w->count = ABI_FRAMES_MAX - 2;
	walk_ruby_start(w, &im->info, 0);
	while (walk_ruby_step(w) == WALK_MORE)
		;
	assert_int_equal(w->runtime_end, ABI_RUNTIME_END_FRAME_LIMIT);
	assert_int_equal(w->runtime_count, 2);
	assert_true(walk_ruby_make_room(w));
	assert_int_equal(w->count, WALK_RUBY_NATIVE_LEAST);
	while (walk_ruby_step(w) == WALK_MORE)
		;
	assert_int_equal(w->runtime_end, ABI_RUNTIME_END_WHOLE);
	assert_false(walk_ruby_make_room(w));
	free(im);
}

/* ---- names ---- */

static void names_from_memory(void **state)
{
	const struct ruby_version *v;

	(void)state;
	for (size_t i = 0; (v = ruby_version_at(i)); i++) {
		struct image *im = open_image(v);
		struct runtime_target target = { .read = target_read, .self = im };
		scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
		struct runtime_function f = { 0 };
		uint64_t iseqs[2];

		fill(im, iseqs);
		run(im);
		assert_int_equal(ruby_read_name(&target, &im->info, iseqs[1], frame(im, 0)->b, &room, &f), 0);
		assert_true(str_eq(f.name, STR("work")));
		assert_true(str_eq(f.file, STR("/srv/a_rather_long_name_of_a_file.rb")));
		assert_int_equal(f.first_line, 10);
		assert_int_equal(ruby_line(&f, 0), 11);
		assert_int_equal(ruby_line(&f, 1), 11);
		assert_int_equal(ruby_line(&f, 2), 12);
		assert_int_equal(ruby_line(&f, ABI_RUBY_NOWHERE), 0);
		assert_int_equal(ruby_read_name(&target, &im->info, iseqs[0], frame(im, 0)->b, &room, &f), -ESTALE);
		*word(im, *word(im, iseqs[1] + 16) + 80) = make_string(im, "later", false);
		assert_int_equal(ruby_read_name(&target, &im->info, iseqs[1], frame(im, 0)->b, &room, &f), -ESTALE);
		free(im);
	}
}

/* Nothing is mapped behind the index; then it, or the table, is not there at all: the name is. */
static void names_without_lines(void **state)
{
	const struct ruby_version *v;

	(void)state;
	for (size_t i = 0; (v = ruby_version_at(i)); i++) {
		struct image *im = open_image(v);
		struct runtime_target target = { .read = target_read, .self = im };
		scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
		struct runtime_function f = { 0 };
		uint64_t iseqs[2], *at;
		uint32_t index = im->info.layout.body_lines_index;

		fill(im, iseqs);
		run(im);
		at = word(im, *word(im, iseqs[1] + 16) + (index == ABI_RUBY_NONE ? im->info.layout.body_lines : index));
		if (index != ABI_RUBY_NONE) {
			*word(im, BASE + IMAGE - 8) = *word(im, *at);
			*at = BASE + IMAGE - 8;
		}
		assert_int_equal(ruby_read_name(&target, &im->info, iseqs[1], frame(im, 0)->b, &room, &f), 0);
		assert_int_equal(ruby_line(&f, 2), 12);
		assert_int_equal(f.lines.size, f.lines_whole);
		*at = BASE + IMAGE;
		assert_int_equal(ruby_read_name(&target, &im->info, iseqs[1], frame(im, 0)->b, &room, &f), 0);
		assert_true(str_eq(f.name, STR("work")));
		assert_int_equal(f.first_line, 10);
		assert_int_equal(ruby_line(&f, 2), 0);
		assert_true(f.lines.size < f.lines_whole); /* they are asked for again */
		free(im);
	}
}

/* ---- classes ---- */

static uint64_t make_class(struct image *im, uint64_t type, const char *name)
{
	uint64_t at = take(im, 168);

	*word(im, at) = type;
	if (name)
		*word(im, at + im->info.layout.class_path) = make_string(im, name, false);
	return at;
}

static uint64_t owned(struct image *im, uint64_t id, uint64_t owner)
{
	uint64_t entry = make_method(im, id);

	*word(im, entry + 32) = owner;
	return entry;
}

/* A block's environment says where the one is that it is in. */
static void push_block(struct image *im, uint64_t iseq, uint64_t outer_ep)
{
	push_iseq(im, BLOCK, iseq, 3);
	*word(im, im->sp - 48 + 8) = outer_ep | 1;
}

static void classes(void **state)
{
	static const struct ruby_version *v;

	(void)state;
	for (size_t i = 0; (v = ruby_version_at(i)); i++) {
		struct image *im = open_image(v);
		struct runtime_target target = { .read = target_read, .self = im };
		bool has_classes = v->layout.class_path != ABI_RUBY_NONE;
		scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
		struct runtime_function f = { 0 };
		uint64_t iseq, shop, single, entry, entries, ep;

		assert_int_equal(has_classes, (v->major == 3 && v->minor >= 3));
		im->info.layout.class_path = 152; /* where it is not known, nobody looks */
		shop = make_class(im, 2, "Shop");
		single = make_class(im, 2 | 1ULL << v->layout.singleton, NULL);
		im->info.layout = v->layout;
		*word(im, single + 128) = shop;
		iseq = make_iseq(im, "work", "/srv/a.rb", 1);
		push(im, METHOD | WALK_RUBY_LOCAL, iseq, code_of(im, iseq), owned(im, 1, single));
		push(im, METHOD | WALK_RUBY_LOCAL, iseq, code_of(im, iseq), owned(im, 1, shop));
		ep = im->sp - 48 + 16;
		push_block(im, iseq, ep);
		push(im, CFUNC | WALK_RUBY_LOCAL, 0, 0, owned(im, 0x31, shop));
		assert_int_equal(run(im), ABI_RUNTIME_END_WHOLE);
		assert_int_equal(im->walk.runtime_count, 4);
		assert_int_equal(frame(im, 0)->b, has_classes ? shop : 1);
		assert_int_equal(frame(im, 1)->a & ABI_RUBY_ISEQ, iseq);
		assert_int_equal((frame(im, 1)->a & ABI_RUBY_OWNED) != 0, has_classes);
		assert_int_equal(frame(im, 1)->a, frame(im, 2)->a); /* a block of the method */
		assert_int_equal(frame(im, 2)->a != frame(im, 3)->a, has_classes);
		assert_int_equal(frame(im, 2)->b, frame(im, 3)->b);

		assert_int_equal(
			ruby_read_name_of(&target, &im->info, frame(im, 2)->a, frame(im, 2)->b, shop, &room, &f), 0);
		assert_true(str_eq(f.name, has_classes ? STR("Shop#work") : STR("work")));
		assert_int_equal(
			ruby_read_name_of(&target, &im->info, frame(im, 3)->a, frame(im, 3)->b, single, &room, &f), 0);
		assert_true(str_eq(f.name, has_classes ? STR("Shop.work") : STR("work")));
		assert_int_equal(ruby_read_name(&target, &im->info, frame(im, 2)->a, frame(im, 2)->b, &room, &f), 0);
		assert_true(str_eq(f.name, STR("work"))); /* nobody knows the class any more */

		entry = take(im, 48);
		entries = take(im, 64);
		im->info.symbols = VARIABLES;
		im->info.last_operator = 1;
		*word(im, VARIABLES + 16) = entry;
		*word(im, entry) = 7 | 1 << 13 | 1 << 15;
		*word(im, entry + 16) = entry + 24;
		*word(im, entry + 24) = 7;
		*word(im, entry + 40) = 8;
		*word(im, entry + 24 + 32) = entries;
		*word(im, entries + 48) = make_string(im, "each", false);
		assert_int_equal(ruby_read_name(&target, &im->info, ABI_RUBY_CFUNC | 0x31, frame(im, 0)->b, &room, &f),
				 0);
		assert_true(str_eq(f.name, has_classes ? STR("Shop#each") : STR("each")));
		*word(im, shop) = 5; /* it is a String now */
		assert_int_equal(ruby_read_name(&target, &im->info, ABI_RUBY_CFUNC | 0x31, frame(im, 0)->b, &room, &f),
				 0);
		assert_true(str_eq(f.name, STR("each")));
		free(im);
	}
}

static void labels_with_classes(void **state)
{
	static const struct {
		const char *label, *class_name, *want;
		bool is_singleton;
	} cases[] = {
		{ "each", "Array", "Array#each", false },
		{ "new", "Shop::Cart", "Shop::Cart.new", true },
		{ "block (2 levels) in each", "Array", "block (2 levels) in Array#each", false },
		{ "rescue in block in <=>", "Shop", "rescue in block in Shop#<=>", false },
		{ "block in <class:Shop>", "Shop", "block in <class:Shop>", false },
		{ "block in singleton class", "Shop", "block in singleton class", false },
		{ "<top (required)>", "Shop", "<top (required)>", false },
		{ "go", "#<Class:0x00007f12>", "go", false },
		{ "go", "Shop::#<Class:0x00007f12>", "go", false },
		{ "go", "", "go", false },
		{ "a.b", "Shop", "Shop#a.b", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf room = BUF_INIT(KIB(4)), plain = BUF_INIT(KIB(4));
		struct str label = str_of(cases[i].label), class_name = str_of(cases[i].class_name);
		struct abi_ruby_name head = { .name_size = (uint32_t)label.len,
					      .name_sent = (uint16_t)label.len,
					      .class_size = (uint32_t)class_name.len,
					      .class_sent = (uint16_t)class_name.len,
					      .is_singleton = cases[i].is_singleton };
		uint8_t bytes[sizeof(head) + 128] = { 0 };
		struct runtime_function f = { 0 };

		print_message("  %s\n", cases[i].want);
		memcpy(bytes, &head, sizeof(head));
		memcpy(bytes + sizeof(head), label.ptr, label.len);
		memcpy(bytes + sizeof(head) + align_up(label.len, 8), class_name.ptr, class_name.len);
		assert_int_equal(ruby_decode_name(bytes, sizeof(bytes), &room, &f), 0);
		assert_true(str_eq(f.name, str_of(cases[i].want)));
		ruby_plain(f.name, &plain);
		assert_true(str_eq(buf_str(&plain), label) || i == ARRAY_SIZE(cases) - 1);
		if (!head.class_size)
			continue;
		head.class_size++; /* it was cut: another class, perhaps */
		memcpy(bytes, &head, sizeof(head));
		assert_int_equal(ruby_decode_name(bytes, sizeof(bytes), &room, &f), 0);
		assert_true(str_eq(f.name, label));
	}
}

struct changing { /* when it is read at @when, the word at @at becomes @value */
	struct image *im;
	uint64_t when, at, value;
};

static int changing_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct changing *c = self;
	int r = image_read(c->im, dst, size, at);

	if (at == c->when)
		*word(c->im, c->at) = c->value;
	return r;
}

static void symbols(void **state)
{
	struct image *im = open_image(ruby_version_find(3, 1));
	struct runtime_target target = { .read = target_read, .self = im };
	scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
	uint64_t all = take(im, 48), some = take(im, 48), entries = take(im, 64);
	struct runtime_function f = { 0 };
	struct changing change;

	(void)state;
	im->info.symbols = VARIABLES;
	*word(im, VARIABLES + 16) = all;
	*word(im, all) = 7 | 1 << 13 | 1 << 15;
	*word(im, all + 16) = some;
	*word(im, some) = 7;
	*word(im, some + 16) = 8;
	*word(im, some + 32) = entries;
	*word(im, entries + 6 * 8) = make_string(im, "each", false);
	/* serial 3 */
	assert_int_equal(ruby_read_name(&target, &im->info, ABI_RUBY_CFUNC | 3 << 4 | 0xf00, 1, &room, &f), 0);
	assert_true(str_eq(f.name, STR("[C function]")));
	assert_int_equal(ruby_read_name(&target, &im->info, ABI_RUBY_CFUNC | 3, 1, &room, &f), 0);
	assert_true(str_eq(f.name, STR("each"))); /* up to the last operator there is no scope */
	im->info.last_operator = 1;
	assert_int_equal(ruby_read_name(&target, &im->info, ABI_RUBY_CFUNC | 0x31, 1, &room, &f), 0);
	assert_true(str_eq(f.name, STR("each")));
	assert_int_equal(f.file.len, 0);
	change = (struct changing){ im, *word(im, entries + 6 * 8), entries + 6 * 8, make_string(im, "map", false) };
	target = (struct runtime_target){ .read = changing_read, .self = &change };
	assert_int_equal(ruby_read_name(&target, &im->info, ABI_RUBY_CFUNC | 0x31, 1, &room, &f), -ESTALE);
	assert_int_equal(ruby_read_name(&target, &im->info, ABI_RUBY_CFUNC | 0x31, 1, &room, &f), 0);
	assert_true(str_eq(f.name, STR("map")));
	*word(im, entries + 6 * 8) = 8; /* nil */
	assert_int_equal(ruby_read_name(&target, &im->info, ABI_RUBY_CFUNC | 0x31, 1, &room, &f), 0);
	assert_true(str_eq(f.name, STR("[C function]")));
	*word(im, entries + 6 * 8) = BASE + IMAGE; /* unreadable: it may be another time */
	assert_true(ruby_read_name(&target, &im->info, ABI_RUBY_CFUNC | 0x31, 1, &room, &f) < 0);
	assert_int_equal(ruby_read_name(&target, &im->info, ABI_RUBY_GC, 1, &room, &f), 0);
	assert_true(str_eq(f.name, STR("(garbage collector)")));
	free(im);
}

static void names_from_records(void **state)
{
	struct abi_ruby_name head = { .first_line = 7,
				      .file_size = 4,
				      .file_sent = 4,
				      .name_size = 5,
				      .name_sent = 5,
				      .lines_count = 1,
				      .code_size = 3,
				      .index_sent = 8,
				      .lines_sent = 12,
				      .line_bytes = 12,
				      .lines_at = 0x1000 };
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(4)), room = BUF_INIT(KIB(4));
	uint64_t index[1] = { 1 | 1 << 7 | 1 << 14 };
	struct runtime_function f = { 0 };
	uint32_t line[4] = { 9 };

	(void)state;
	buf_add(&bytes, &head, sizeof(head));
	buf_add(&bytes, "a.rb\0\0\0\0b\xffock\0\0\0", 16);
	buf_add(&bytes, index, sizeof(index));
	buf_add(&bytes, line, sizeof(line));
	assert_int_equal(ruby_decode_name((const uint8_t *)bytes.ptr, bytes.len, &room, &f), 0);
	assert_true(str_eq(f.file, STR("a.rb")));
	assert_true(str_eq(f.name, STR("b\xef\xbf\xbdock")));
	assert_int_equal(f.lines.size, f.lines_whole);
	assert_int_equal(ruby_line(&f, 2), 9);
	assert_int_equal(ruby_line(&f, 3), 0);
	for (size_t size = 0; size < bytes.len - 8; size++)
		assert_int_equal(ruby_decode_name((const uint8_t *)bytes.ptr, size, &room, &f), -EBADMSG);
	bytes.ptr[sizeof(head) + 9] = 0; /* a name with a NUL is none */
	assert_int_equal(ruby_decode_name((const uint8_t *)bytes.ptr, bytes.len, &room, &f), -ENODATA);
}

/* Positions behind the first 54 are in blocks of 512 bits. */
static void long_functions(void **state)
{
	enum { SIZE = 1200 };
	struct ruby_lines head = { .code_size = SIZE, .count = SIZE / 10, .line_bytes = 8 };
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(16));
	uint64_t index[6 + 3 * 10] = { 0 };
	uint32_t rank = 0;
	struct runtime_function f = { .first_line = 1 };

	(void)state;
	head.index_size = ruby_index_size(SIZE);
	assert_int_equal(head.index_size, sizeof(index));
	for (uint32_t at = 0; at < SIZE; at++) { /* an entry begins at every tenth position */
		uint32_t behind = at < 54 ? 0 : at - 54, bit = behind % 512;
		uint64_t *block = &index[6 + behind / 512 * 10];

		if (at >= 54 && bit == 0)
			block[0] = rank;
		else if (at >= 54 && bit % 64 == 0)
			block[1] |= (uint64_t)(rank - block[0]) << (bit / 64 - 1) * 9;
		rank += at % 10 == 0;
		if (at < 54)
			index[at / 9] |= (uint64_t)rank << at % 9 * 7;
		else if (at % 10 == 0)
			block[2 + bit / 64] |= 1ULL << bit % 64;
	}
	buf_add(&bytes, &head, sizeof(head));
	buf_add(&bytes, index, sizeof(index));
	for (uint32_t i = 0; i < SIZE / 10; i++)
		buf_add(&bytes, &(uint32_t[2]){ 100 + i, 0 }, 8);
	f.lines = (struct runtime_lines){ (const uint8_t *)bytes.ptr, (uint32_t)bytes.len };
	for (uint32_t at = 0; at < SIZE; at++)
		assert_int_equal(ruby_line(&f, at), 100 + at / 10);
	assert_int_equal(ruby_line(&f, SIZE + 1000), 0);
}

/* No more than Ruby has made: behind a short function's index nothing need be mapped. */
static void sizes_of_indexes(void **state)
{
	(void)state;
	assert_int_equal(ruby_index_size(0), 0);
	assert_int_equal(ruby_index_size(1), 8);
	assert_int_equal(ruby_index_size(9), 8);
	assert_int_equal(ruby_index_size(10), 16);
	assert_int_equal(ruby_index_size(53), 48);
	assert_int_equal(ruby_index_size(54), 48);
	assert_int_equal(ruby_index_size(55), 48 + 80);
	assert_int_equal(ruby_index_size(UINT32_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layout),
		cmocka_unit_test(compiled_leaves),
		cmocka_unit_test(frames_that_compiled_code_fills_in),
		cmocka_unit_test(ways_to_the_context),
		cmocka_unit_test(only_the_own_collector),
		cmocka_unit_test(half_made_leaves),
		cmocka_unit_test(rescues),
		cmocka_unit_test(threads_without_frames),
		cmocka_unit_test(memory_that_lies),
		cmocka_unit_test(holes),
		cmocka_unit_test(no_room),
		cmocka_unit_test(names_from_memory),
		cmocka_unit_test(names_without_lines),
		cmocka_unit_test(symbols),
		cmocka_unit_test(classes),
		cmocka_unit_test(labels_with_classes),
		cmocka_unit_test(names_from_records),
		cmocka_unit_test(long_functions),
		cmocka_unit_test(sizes_of_indexes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
