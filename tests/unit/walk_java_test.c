/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of HotSpot's frames: over recordings of real JVMs (tests/walk/java_record.c), with memory that goes missing
 * or lies, and the rules for the top frame, instruction by instruction. */
#define FOLDER "tests/corpus/walk_java"
#include "java_recorded.h"

/* What the recording lacks: the call, and what was pushed, which is 0. */
static int pushed_read(struct recorded *r, uint8_t *dst, __u32 size, __u64 at)
{
	int32_t distance = (int32_t)r->call_to;

	if (at == r->back - 16 && size == 16) {
		memset(dst, 0x90, size);
		if (r->call_to != NO_CALL) {
			dst[11] = 0xe8;
			memcpy(dst + 12, &distance, sizeof(distance));
		}
		return 0;
	}
	if (size == WALK_JAVA_NEAR) { /* code */
		memset(dst, 0x90, size);
		return 0;
	}
	if (size % 8 || at < r->image.leaf[WALK_REG_SP])
		return -EFAULT;
	for (__u32 i = 0; i < size; i += 8)
		if (java_image_read(&r->image, dst + i, 8, at + i) < 0)
			memset(dst + i, 0, 8);
	return 0;
}

static const struct recording {
	const char *name;
	uint32_t frames, guessed; /* guessed: how many are marked */
	uint8_t top;              /* flags of the first one */
} recordings[] = {
	{ "11-compiled-whole-2", 2, 0, ABI_FRAME_COMPILED },
	{ "11-stub-whole-8", 8, 0, ABI_FRAME_INTERNAL },
	{ "21-compiled-whole-9", 9, 0, ABI_FRAME_COMPILED },
	{ "21-stub-whole-8", 8, 0, ABI_FRAME_INTERNAL },
	{ "26-compiled-whole-2", 2, 0, ABI_FRAME_COMPILED },
	{ "26-stub-whole-9", 9, 0, ABI_FRAME_INTERNAL },
	{ "8-compiled-whole-10", 10, 0, ABI_FRAME_COMPILED },
	{ "8int-entry-whole-5", 5, 0, 0 },
	{ "8int-interpreted-whole-12", 12, 0, 0 },
	{ "17-compiled-whole-4", 4, 0, ABI_FRAME_COMPILED },
	{ "17-entry-whole-5", 5, 0, 0 },
	{ "17-interpreted-whole-6", 6, 0, 0 },
	{ "17-stub-whole-7", 7, 0, ABI_FRAME_INTERNAL },
	{ "17c1-compiled-whole-14", 14, 0, ABI_FRAME_COMPILED },
	{ "17c1-stub-guessed-whole-22", 22, 1, ABI_FRAME_INTERNAL },
	{ "17int-entry-whole-5", 5, 0, 0 },
	{ "17int-interpreted-whole-8", 8, 0, 0 },
	{ "17int-stub-whole-5", 5, 0, ABI_FRAME_INTERNAL },
	{ "25-compiled-whole-13", 13, 0, ABI_FRAME_COMPILED },
	{ "25-entry-whole-18", 18, 0, 0 },
	{ "25-stub-whole-8", 8, 0, ABI_FRAME_INTERNAL },
	{ "25int-interpreted-whole-12", 12, 0, 0 },
	{ "25virtual-compiled-whole-28", 28, 0, ABI_FRAME_COMPILED },
};

/* Up to the native code that called Java. */
static void recordings_are_walked(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(recordings); i++) {
		const struct recording *want = &recordings[i];
		struct recorded *r = take(want->name);
		uint32_t guessed = 0;

		print_message("  %s\n", want->name);
		walk(r);
		for (uint32_t k = 0; k < r->walk.count; k++)
			guessed += (r->walk.frames[k].flags & ABI_FRAME_GUESSED) != 0;
		assert_int_equal(r->walk.end, ABI_END_FRAME_LIMIT);
		assert_false(walk_java_is_code(&r->image.info, r->walk.pc));
		assert_int_equal(r->walk.count, want->frames);
		assert_int_equal(guessed, want->guessed);
		assert_int_equal(r->walk.frames[0].flags, want->top);
		/* the last one is the stub that native code calls Java through */
		assert_true(r->walk.frames[want->frames - 1].flags & ABI_FRAME_INTERNAL);
		drop(r);
	}
}

/* Interpreted frames whose cookie is an address, which says nothing once a class was unloaded. */
static uint32_t by_address(struct recorded *r)
{
	uint32_t count = 0;

	walk(r);
	for (uint32_t i = 0; i < r->walk.count; i++) {
		const struct abi_frame *f = &r->walk.frames[i];

		count += !(f->flags & (ABI_FRAME_COMPILED | ABI_FRAME_INTERNAL)) && f->b && !(f->b & ABI_JAVA_FULL);
	}
	return count;
}

/* A recording lacks the Symbols: then nobody is named. */
static void unloaded_classes_are_no_address(void **state)
{
	static const char *const names[] = { "8int-interpreted-whole-12", "17-interpreted-whole-6",
					     "25int-interpreted-whole-12" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct recorded *r = take(names[i]);
		uint64_t count = 0;

		print_message("  %s\n", names[i]);
		assert_int_equal(java_image_read(&r->image, &count, sizeof(count), r->image.info.epoch_at), 0);
		r->image.info.epoch = count;
		assert_true(by_address(r) > 0);
		r->image.info.epoch = count - 1;
		assert_int_equal(by_address(r), 0);
		r->world.is_late = 1; /* the count of this moment is in the cookie */
		assert_true(by_address(r) > 0);
		drop(r);
	}
}

/* Inlined code may push words that the frame's size does not tell of. The first word behind them that stands behind a
 * call is the return address; it is certain when the method itself was called there. */
static void pushed_words_are_skipped(void **state)
{
	static const struct {
		const char *what;
		uint64_t words;
		bool has_call, is_own;
		uint32_t frames;
		uint8_t guessed;
	} cases[] = {
		{ "none: any word", 0, false, false, 10, 0 },
		{ "one, called by a stub", 1, true, false, 10, ABI_FRAME_GUESSED },
		{ "one, called itself", 1, true, true, 10, 0 },
		{ "six, called by a stub", 6, true, false, 10, ABI_FRAME_GUESSED },
		{ "six, no call", 6, false, false, 1, 0 },
		{ "seven", 7, true, true, 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct recorded *r = take("8-compiled-whole-10");

		print_message("  %s\n", cases[i].what);
		memset(&r->walk, 0, sizeof(r->walk));
		r->walk.world = &r->world;
		r->walk.count = ABI_FRAMES_MAX - 1; /* room for one frame */
		java_image_walk(&r->walk, &r->image.info, r->image.leaf, false);
		r->back = r->walk.pc;
		r->call_to = !cases[i].has_call ? NO_CALL
			     : cases[i].is_own  ? (int64_t)(r->image.leaf[WALK_REG_PC] - r->back)
						: 0;
		r->beyond = pushed_read;
		r->image.leaf[WALK_REG_SP] -= cases[i].words * 8;
		walk(r);
		assert_int_equal(r->walk.count, cases[i].frames);
		if (r->walk.count > 1) {
			assert_true(r->walk.frames[1].flags & ABI_FRAME_COMPILED);
			assert_int_equal(r->walk.frames[1].flags & ABI_FRAME_GUESSED, cases[i].guessed);
			assert_false(r->walk.frames[2].flags & ABI_FRAME_GUESSED);
		}
		drop(r);
	}
}

/* A tick in the stub itself: the caller is where it is when Java has been called, wherever in the stub that is. */
static void ticks_in_the_call_stub(void **state)
{
	enum { BEFORE = 137, RET = 102, AFTER = 120 };
	static const struct {
		const char *what;
		int at;     /* from its return address on */
		int pushed; /* words between sp and the caller's. 0: its address is on top; 1: its fp is */
		bool has_fp;
		uint32_t frames; /* 1: the stub's; 0: it is not known to be that */
	} cases[] = {
		{ "push %rbp", -BEFORE, 0, false, 1 },
		{ "mov %rsp,%rbp", 1 - BEFORE, 1, false, 1 },
		{ "its frame is there", 4 - BEFORE, 1, true, 1 },
		{ "parameters are pushed", -20, 40, true, 1 },
		{ "behind the call", 7, 12, true, 1 },
		{ "pop %rbp", RET - 1, 1, true, 1 },
		{ "ret", RET, 0, false, 1 },
		{ "another way out", RET + 1, 12, true, 1 },
		{ "the code behind it", AFTER, 12, true, 0 },
		{ "the code in front of it", -BEFORE - 1, 12, true, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct recorded *r = take("17-compiled-whole-4");
		uint64_t native, sp, fp, callers;

		print_message("  %s\n", cases[i].what);
		walk(r); /* where native code goes on */
		native = r->walk.pc;
		sp = r->walk.sp;
		callers = r->walk.fp;
		fp = sp - 16;
		r->image.info.call_stub_before = BEFORE;
		r->image.info.call_stub_ret = RET;
		r->image.info.call_stub_after = AFTER;
		r->image.leaf[WALK_REG_PC] = r->image.info.call_stub_return + (uint64_t)(int64_t)cases[i].at;
		r->image.leaf[WALK_REG_SP] = sp - 8 - 8 * (uint64_t)cases[i].pushed;
		r->image.leaf[WALK_REG_FP] = cases[i].has_fp ? fp : callers;
		r->image.is_return = false;
		r->beyond = pushed_read; /* words that the recording lacks are 0 */
		r->call_to = NO_CALL;
		walk(r);
		if (cases[i].frames) {
			assert_int_equal(r->walk.end, ABI_END_FRAME_LIMIT);
			assert_int_equal(r->walk.count, 1);
			assert_true(r->walk.frames[0].flags & ABI_FRAME_INTERNAL);
			assert_int_equal(r->walk.pc, native);
			assert_int_equal(r->walk.sp, sp);
			assert_int_equal(r->walk.fp, callers);
			assert_true(r->walk.is_return);
		} else {
			assert_int_not_equal(r->walk.pc, native);
		}
		drop(r);
	}
}

/* To the caller of the top frame. Words that the recording lacks are 0, now and later. */
static void walk_one(struct recorded *r)
{
	r->beyond = pushed_read;
	r->call_to = NO_CALL;
	memset(&r->walk, 0, sizeof(r->walk));
	r->walk.world = &r->world;
	r->walk.count = ABI_FRAMES_MAX - 1; /* room for one frame */
	java_image_walk(&r->walk, &r->image.info, r->image.leaf, false);
}

struct known {                /* of a recording, before sp is moved */
	uint64_t back, place; /* the top frame's return address, and where it is */
	uint32_t frames;
	struct abi_frame caller;
};

static struct known known_of(struct recorded *r)
{
	struct known k;

	walk_one(r);
	k.back = r->walk.pc;
	k.place = r->walk.sp - 8;
	walk(r);
	k.frames = r->walk.count;
	k.caller = r->walk.frames[1];
	return k;
}

/* sp is lower by @words; where the frame's end would be then, the address of some code lies. */
static void move_sp(struct recorded *r, const struct known *k, uint64_t words)
{
	r->image.leaf[WALK_REG_SP] -= words * 8;
	r->patches[0].at = k->place - words * 8;
	r->patches[0].word = k->back - 1;
}

static bool finds(const struct recorded *r, const struct known *k)
{
	return r->walk.count == k->frames && r->walk.frames[1].a == k->caller.a &&
	       r->walk.frames[1].extra == k->caller.extra;
}

/* C1 pushes two words for a call of a stub, and pops them behind it. Where the frame's size says that the return
 * address is, the address of another call may lie. C2 pushes nothing, and what is popped there is the frame. */
static void popped_words_are_known(void **state)
{
	static const struct {
		const char *what;
		uint64_t code, words;
		bool is_return;
		uint8_t level;
		bool is_known;
	} cases[] = {
		{ "behind the call: pop %rbx; pop %rbx", 0x905b5b, 2, true, 3, true },
		{ "pop %r8; pop %rsi", 0x905e5841, 2, true, 1, true },
		{ "in front of the second pop", 0x90c35b, 1, false, 3, true },
		{ "the compiler is C2", 0x905b5b, 2, true, 4, false },
		{ "no compiler: a native method's", 0x905b5b, 2, true, 0, false },
		{ "pop %rbp", 0x905d, 1, true, 3, false },
		{ "no pop", 0x909090, 2, true, 3, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct recorded *r = take("8-compiled-whole-10");
		struct known k = known_of(r);

		print_message("  %s\n", cases[i].what);
		move_sp(r, &k, cases[i].words);
		r->patches[1].at = r->image.leaf[WALK_REG_PC];
		r->patches[1].word = cases[i].code;
		r->patches[2].at = r->walk.frames[0].a + WALK_JAVA_HEADER - 8;
		r->patches[2].word = cases[i].level;
		r->image.info.level = WALK_JAVA_HEADER - 8;
		r->image.is_return = cases[i].is_return;
		walk(r);
		assert_int_equal(finds(r, &k), cases[i].is_known);
		drop(r);
	}
}

#define COMPARES 0x90900c036179e3c4     /* pcmpestri with VEX */
#define COMPARES_SSE 0x90900c03613a0f66 /* without */

/* C2's code for String.indexOf moves sp, and knows what it was. Where the frame's size says that the return address is,
 * the address of another call may lie. */
static void a_search_has_moved_sp(void **state)
{
	static const struct {
		const char *what;
		uint64_t words, told; /* told: on top of the stack, in bytes from sp on; 0: no such word */
		bool is_in_rcx, is_last, is_return, has_call, is_known;
		int64_t near; /* from pc to what compares */
		uint64_t compares;
	} cases[] = {
		{ "on top of the stack", 4, 32, false, false, false, true, true, -60, COMPARES },
		{ "pop %rsp is next", 4, 32, false, true, false, true, true, -66, COMPARES_SSE },
		{ "of a text that does not change", 1, 8, false, false, false, true, true, 6, COMPARES },
		{ "with both copies", 8, 64, false, false, false, true, true, 40, COMPARES_SSE },
		{ "in rcx: registers are being pushed", 3, 0, true, false, false, true, true, 110, COMPARES },
		{ "in rcx, and a copy's address on top", 5, 24, true, false, false, true, true, 40, COMPARES },
		{ "no return address lies there", 4, 32, false, false, false, false, false, 6, COMPARES },
		{ "farther than it goes", 9, 72, false, false, false, true, false, 6, COMPARES },
		{ "no multiple of 8", 4, 33, false, false, false, true, false, 6, COMPARES },
		{ "nowhere", 4, 0, false, false, false, true, false, 6, COMPARES },
		{ "it is in a call", 4, 32, false, false, true, true, false, 6, COMPARES },
		{ "nothing compares texts", 4, 32, false, false, false, true, false, 6, 0x909090909090909 },
		{ "in rcx, and nothing compares texts", 3, 0, true, false, false, true, false, 6, 0x909090909090909 },
		{ "far behind it texts were compared", 4, 32, false, false, false, true, false, -80, COMPARES },
		{ "far ahead texts will be compared", 4, 32, false, false, false, true, false, 80, COMPARES },
		{ "in rcx, and texts were compared", 3, 0, true, false, false, true, false, -60, COMPARES },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct recorded *r = take("8-compiled-whole-10");
		struct known k = known_of(r);
		uint64_t sp;

		print_message("  %s\n", cases[i].what);
		r->back = k.back;
		move_sp(r, &k, cases[i].words);
		sp = r->image.leaf[WALK_REG_SP];
		r->call_to = cases[i].has_call ? 0 : NO_CALL;
		r->patches[1].at = sp;
		r->patches[1].word = cases[i].told ? sp + cases[i].told : 0;
		r->image.leaf[WALK_JAVA_RCX] = cases[i].is_in_rcx ? sp + cases[i].words * 8 : 0;
		r->patches[2].at = r->image.leaf[WALK_REG_PC];
		r->patches[2].word = cases[i].is_last ? 0x90905c : 0x909090; /* pop %rsp */
		r->patches[3].at = r->image.leaf[WALK_REG_PC] + (uint64_t)cases[i].near;
		r->patches[3].word = cases[i].compares;
		r->image.is_return = cases[i].is_return;
		walk(r);
		assert_int_equal(finds(r, &k), cases[i].is_known);
		if (cases[i].is_known)
			assert_false(r->walk.frames[1].flags & ABI_FRAME_GUESSED);
		drop(r);
	}
}

/* Most of its frames lie in the heap, the last five of them interpreted. Without references it is a guess. */
static void frames_of_a_virtual_thread(void **state)
{
	struct recorded *r = take("25virtual-compiled-whole-28");
	uint32_t guessed = 0;

	(void)state;
	walk(r);
	assert_int_not_equal(walk_java_info(&r->walk)->chunk, 0);
	assert_int_equal(walk_java_info(&r->walk)->chunk_end, 0);
	r->image.info.oop_shift = 1;
	walk(r);
	assert_int_equal(walk_java_info(&r->walk)->chunk, 0);
	for (uint32_t i = 0; i < r->walk.count; i++)
		guessed += (r->walk.frames[i].flags & ABI_FRAME_GUESSED) != 0;
	assert_int_equal(guessed, 1);
	assert_true(r->walk.count < 28);
	drop(r);
}

#define STACK 0x10000ULL
#define CHUNK 0x20000ULL

static int chunk_read(void *self, void *dst, __u32 size, __u64 at)
{
	const uint64_t *words = self; /* four of the stack, then the chunk's pc */

	if (at == STACK && size == 32)
		memcpy(dst, words, size);
	else if (at == CHUNK + WALK_JAVA_CHUNK_PC && size == 8)
		memcpy(dst, words + 4, size);
	else
		return -EFAULT;
	return 0;
}

/* A chunk whose pc lies on top of the frames on the stack has copies of them. */
static void frames_that_are_being_copied(void **state)
{
	uint64_t words[5] = { 1, 2, 3, 4, 5 };
	const struct walk_world world = { .read = chunk_read, .self = words };
	struct walk *w = calloc(1, sizeof(*w));

	(void)state;
	assert_non_null(w);
	w->world = &world;
	assert_false(walk_java_is_copy(w, CHUNK, STACK));
	for (uint64_t i = 1; i <= 4; i++) {
		words[4] = i;
		assert_true(walk_java_is_copy(w, CHUNK, STACK));
		assert_false(walk_java_is_copy(w, CHUNK, 0)); /* code of Java runs: the VM copies nothing */
		assert_false(walk_java_is_copy(w, CHUNK, STACK + 8));
		assert_false(walk_java_is_copy(w, CHUNK + 8, STACK));
	}
	words[0] = words[4] = 0; /* it has none yet */
	assert_false(walk_java_is_copy(w, CHUNK, STACK));
	free(w);
}

#define CODE 0x30000ULL

static int code_read(void *self, void *dst, __u32 size, __u64 at)
{
	uint64_t word = at == CODE ? *(const uint64_t *)self : 0x9090909090909090;

	memcpy(dst, &word, MIN(size, (__u32)8));
	return at >= CODE && at < CODE + 0x1000 && size == 8 ? 0 : -EFAULT;
}

/* The VM is filling the stack behind sp: what lies there is older. It is known by how the blob begins. */
static void frames_that_come_out_of_the_heap(void **state)
{
	uint64_t begin = 0xbeff8b4959; /* pop %rcx; mov %r15,%rdi; mov $..., %esi */
	const struct walk_world world = { .read = code_read, .self = &begin };
	struct walk *w = calloc(1, sizeof(*w));

	(void)state;
	assert_non_null(w);
	w->world = &world;
	w->pc = CODE + 0x40;
	w->sp = STACK;
	walk_java_state(w)->begin = CODE;
	assert_int_equal(walk_java_barrier(w, walk_java_info(w)), WALK_DONE);
	assert_int_equal(w->end, ABI_END_UNSUPPORTED);
	w->end = 0;
	begin ^= 1 << 8;
	assert_int_equal(walk_java_barrier(w, walk_java_info(w)), WALK_SWITCH);
	assert_int_equal(w->end, 0);
	free(w);
}

/* Frames of methods; -1: one of them is marked as a guess. */
static int methods_of(const struct recorded *r)
{
	int count = 0;

	for (uint32_t i = 0; i < r->walk.count; i++) {
		if (r->walk.frames[i].flags & ABI_FRAME_GUESSED)
			return -1;
		count += !(r->walk.frames[i].flags & ABI_FRAME_INTERNAL);
	}
	return count;
}

static size_t hex(const char *text, uint8_t *out)
{
	size_t count = 0;

	for (; text[0] && text[1]; text += text[2] == ' ' ? 3 : 2) {
		const char digits[3] = { text[0], text[1], 0 };

		out[count++] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return count;
}

/* A stub that goes on to the handler of an exception, in front of each of its last instructions, and in front of its
 * first one. */
static void stubs_that_throw(void **state)
{
	static const struct {
		const char *what, *code; /* from the byte in front of pc on */
		int words;               /* below the caller's stack pointer */
		int reg;                 /* the register that has the return address; -1: it is on the stack */
		bool at_begin, is_known;
	} cases[] = {
		{ "push %rdx; sub", "00 52 48 83 ec 08 90 90", 0, WALK_JAVA_RDX, true, true },
		{ "the same elsewhere", "00 52 48 83 ec 08 90 90", 0, WALK_JAVA_RDX, false, false },
		{ "behind pop %rdx: jmp *%r10", "5a 41 ff e2 90 90 90 90", 0, WALK_JAVA_RDX, false, true },
		{ "behind pop %rcx: jmp *%rcx", "59 ff e1 90 90 90 90 90", 0, WALK_JAVA_RCX, false, true },
		{ "pop %rcx; jmp *%rcx", "c9 59 ff e1 90 90 90 90", 1, -1, false, true },
		{ "leave; pop %rcx; jmp *%rcx", "90 c9 59 ff e1 90 90 90", 4, -1, false, true },
		{ "behind something else: jmp *%rcx", "90 ff e1 90 90 90 90 90", 0, WALK_JAVA_RCX, false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct recorded *r = take("17c1-stub-whole-7");
		uint64_t back, sp, fp;
		struct abi_frame caller;
		uint8_t code[8];

		print_message("  %s\n", cases[i].what);
		walk_one(r);
		back = r->walk.pc;
		sp = r->walk.sp;
		fp = r->walk.fp;
		walk(r);
		caller = r->walk.frames[1];
		if (cases[i].at_begin) {
			r->patches[3].at = r->walk.frames[0].a + r->image.info.code_begin;
			r->patches[3].word = r->image.leaf[WALK_REG_PC];
		}
		r->image.leaf[WALK_REG_SP] = sp - 8 * (uint64_t)cases[i].words;
		r->image.leaf[WALK_REG_FP] = cases[i].words == 4 ? sp - 16 : fp;
		if (cases[i].reg >= 0)
			r->image.leaf[cases[i].reg] = back;
		assert_int_equal(hex(cases[i].code, code), sizeof(code));
		r->patches[0].at = r->image.leaf[WALK_REG_PC] - 1;
		memcpy(&r->patches[0].word, code, sizeof(code));
		if (cases[i].words) {
			r->patches[1].at = sp - 8;
			r->patches[1].word = back;
			r->patches[2].at = sp - 16;
			r->patches[2].word = fp;
		}
		walk(r);
		assert_int_equal(r->walk.count > 1 && r->walk.frames[1].a == caller.a &&
					 r->walk.frames[1].extra == caller.extra && !r->walk.guessed,
				 cases[i].is_known);
		drop(r);
	}
}

/* Each read in turn: the walk ends, or takes the longer way, and keeps what it had. A walk to the root that marks
 * nothing lacks no method: one that cannot be read has no name. */
static void reads_fail(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(recordings); i++) {
		struct recorded *r = take(recordings[i].name);
		int methods;

		walk(r);
		methods = methods_of(r);
		for (size_t n = 1, all = r->reads; n <= all; n++) {
			r->fails_at = n;
			walk(r);
			assert_true(r->walk.count <= recordings[i].frames + 1);
			assert_true(r->walk.end == ABI_END_FRAME_LIMIT || r->walk.end == ABI_END_UNSUPPORTED ||
				    r->walk.end == ABI_END_READ_FAILED || r->walk.end == ABI_END_NO_PROGRESS);
			if (!walk_java_is_code(&r->image.info, r->walk.pc) && methods_of(r) >= 0)
				assert_int_equal(methods_of(r), methods);
		}
		drop(r);
	}
}

/* A class that is unloaded before a late walk comes: where its method lay is nothing. At the tick that is no method. */
static void freed_methods_have_no_name(void **state)
{
	struct recorded *r = take("17-interpreted-whole-6");
	int methods;

	(void)state;
	walk(r);
	methods = methods_of(r);
	r->patches[0].at = (r->walk.frames[0].a & ((1ULL << ABI_JAVA_COOKIE_BITS) - 1)) + r->image.info.method_const;
	walk(r);
	assert_int_equal(methods_of(r), methods - 1);
	r->world.is_late = 1;
	walk(r);
	assert_int_equal(methods_of(r), methods);
	assert_int_equal(r->walk.frames[0].flags, 0);
	assert_int_equal(r->walk.frames[0].b, 0);
	assert_int_not_equal(r->walk.frames[1].b, 0);
	drop(r);
}

/* ---- frames that deoptimisation is making ---- */

#define MAKER_WORDS 8 /* of the frame of the stub that makes them */

static uint64_t maker(const struct recorded *r)
{
	return r->image.info.heaps[0].low + (r->image.info.heaps[0].high - r->image.info.heaps[0].low) / 2;
}

/* Its segment, its header, and its frame, whose words are 0. */
static int maker_read(struct recorded *r, uint8_t *dst, __u32 size, __u64 at)
{
	const struct abi_java *info = &r->image.info;
	uint64_t words[] = { maker(r) + 16, maker(r) + 128 };
	uint32_t frame_size = MAKER_WORDS;

	memset(dst, 0, size);
	if (at != maker(r) + info->block_header || size != WALK_JAVA_HEADER)
		return size > sizeof(struct walk_pair) ? -EFAULT : 0;
	memcpy(dst + info->code_begin, &words[0], sizeof(words[0]));
	memcpy(dst + info->code_end, &words[1], sizeof(words[1]));
	memcpy(dst + info->frame_size, &frame_size, sizeof(frame_size));
	return 0;
}

/* Where the walk stands when it has pushed @frames. */
static void stand_at(struct recorded *r, uint32_t frames)
{
	memset(&r->walk, 0, sizeof(r->walk));
	r->walk.world = &r->world;
	r->walk.count = ABI_FRAMES_MAX - frames;
	java_image_walk(&r->walk, &r->image.info, r->image.leaf, r->image.is_return);
}

/* Those that native code has not filled in yet have an earlier frame's method, or none, where their own would be. */
static void frames_being_made_have_no_name(void **state)
{
	static const struct {
		const char *what;
		uint64_t pad; /* bytes below the stub's frame: its stack is aligned for the call */
		bool is_top;  /* not the stub, but the interpreted frame above them has called */
		uint32_t unfilled, lost;
	} cases[] = {
		{ "all are filled in", 0, false, 0, 0 },
		{ "all but the youngest are", 0, false, 1, 1 },
		{ "none is", 0, false, 2, 2 },
		{ "none is, and the stack was aligned", 8, false, 2, 2 },
		{ "as if: but the method above them was called", 0, true, 2, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct recorded *r = take("17int-interpreted-whole-8");
		uint64_t fp = r->image.leaf[WALK_REG_FP];
		uint32_t frames, lost = 0;

		print_message("  %s\n", cases[i].what);
		walk(r);
		frames = r->walk.count;
		for (uint32_t k = 0; k < cases[i].unfilled; k++) {
			stand_at(r, k + 1);
			assert_true(walk_java_in_interpreter(&r->image.info, r->walk.pc));
			r->patches[k].at = r->walk.fp - 16;
		}
		if (!cases[i].is_top) {
			r->beyond = maker_read;
			r->image.is_return = true;
			r->image.leaf[WALK_REG_PC] = maker(r) + 100;
			r->image.leaf[WALK_REG_SP] = fp + 16 - MAKER_WORDS * 8 - cases[i].pad;
		}
		walk(r);
		assert_int_equal(r->walk.end, ABI_END_FRAME_LIMIT);
		assert_int_equal(r->walk.count, frames);
		assert_true(cases[i].is_top || r->walk.frames[0].flags & ABI_FRAME_INTERNAL);
		for (uint32_t k = 1; k < frames; k++) {
			const struct abi_frame *f = &r->walk.frames[k];
			bool is_lost = !(f->flags & ABI_FRAME_INTERNAL) && !f->b;

			assert_int_equal(f->flags & ABI_FRAME_GUESSED, 0);
			assert_int_equal(is_lost, k <= cases[i].lost);
			lost += is_lost;
		}
		assert_int_equal(lost, cases[i].lost);
		drop(r);
	}
}

static void maps_of_segments_lie(void **state)
{
	static const int says[] = { 0, 1, 0xfe, 0xff };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(says); i++) {
		struct recorded *r = take("17-compiled-whole-4");

		r->map_says = says[i];
		walk(r);
		assert_int_equal(r->walk.count, 0); /* no code there: the native rules' turn */
		assert_true(r->walk.passed);
		assert_true(r->reads < 100);
		drop(r);
	}
}

static const char *const compiled[] = { "8-compiled-whole-10", "17-compiled-whole-4", "25-compiled-whole-13" };

/* Is there a frame of @f's code in @from? */
static bool has_code(const struct walk *from, const struct abi_frame *f)
{
	for (uint32_t i = 0; i < from->count; i++)
		if (from->frames[i].a == f->a && from->frames[i].flags & ABI_FRAME_COMPILED)
			return true;
	return false;
}

/* A segment map that its JVM rewrites all the time: half of its bytes are others when they are read, mostly small ones,
 * which lead on. */
static int changing_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct recorded *r = self;
	uint32_t noise;

	if (size != 1)
		return counted_read(r, dst, size, at);
	r->noise = r->noise * 1103515245U + 12345U;
	noise = r->noise >> 16;
	if (counted_read(r, dst, size, at) == 0 && noise & 1)
		return 0;
	*(uint8_t *)dst = (uint8_t)(noise & 14 ? noise >> 4 & 3 : noise >> 4);
	return 0;
}

static void maps_of_segments_change(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(compiled); i++) {
		struct recorded *r = take(compiled[i]);
		struct walk *whole = malloc(sizeof(*whole));
		size_t frames = 0;

		must(whole);
		walk(r);
		memcpy(whole, &r->walk, sizeof(*whole));
		r->world.read = changing_read;
		for (int seed = 1; seed < 2000; seed++) {
			r->noise = (uint32_t)seed;
			walk(r);
			assert_true(r->walk.count <= whole->count + 1);
			assert_true(r->reads < 100 * (r->walk.count + 2));
			for (uint32_t k = 0; k < r->walk.count; k++)
				assert_true(!(r->walk.frames[k].flags & ABI_FRAME_COMPILED) ||
					    has_code(whole, &r->walk.frames[k]));
			frames += r->walk.count;
		}
		assert_true(frames > 0); /* some maps were right for a moment */
		free(whole);
		drop(r);
	}
}

/* Code above `back` is not mapped any more. */
static int shrunk_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct recorded *r = self;

	return at + size > r->back && at < r->image.info.high ? -EFAULT : counted_read(r, dst, size, at);
}

/* A code cache that shrinks: what lay in its end has no frames any more, and the walk is not said to be whole. */
static void code_caches_shrink(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(compiled); i++) {
		struct recorded *r = take(compiled[i]);
		struct walk *whole = malloc(sizeof(*whole));

		must(whole);
		walk(r);
		memcpy(whole, &r->walk, sizeof(*whole));
		r->world.read = shrunk_read;
		for (uint32_t k = 0; k < whole->count; k++) {
			if (!(whole->frames[k].flags & ABI_FRAME_COMPILED))
				continue;
			r->back = whole->frames[k].a;
			walk(r);
			assert_true(r->walk.count <= k);
			assert_true(r->walk.end != ABI_END_FRAME_LIMIT ||
				    walk_java_is_code(&r->image.info, r->walk.pc));
			for (uint32_t n = 0; n < r->walk.count; n++)
				assert_true(r->walk.frames[n].a < r->back || r->walk.frames[n].a >= r->image.info.high);
		}
		free(whole);
		drop(r);
	}
}

/* Offsets that no JVM has: nothing is read outside of the header. */
static void offsets_lie(void **state)
{
	struct recorded *r = take("25-compiled-whole-13");

	(void)state;
	r->image.info.frame_size = 0xfffe;
	r->image.info.compile_id = 0xffff;
	r->image.info.orig_pc = 0xfff8;
	r->image.info.entry = 0xffff;
	walk(r);
	assert_true(r->walk.count <= 1);
	drop(r);
}

static void full_records_end(void **state)
{
	struct recorded *r = take("17-compiled-whole-4");

	(void)state;
	memset(&r->walk, 0, sizeof(r->walk));
	r->walk.world = &r->world;
	r->walk.count = ABI_FRAMES_MAX - 1;
	java_image_walk(&r->walk, &r->image.info, r->image.leaf, false);
	assert_int_equal(r->walk.count, ABI_FRAMES_MAX);
	assert_int_equal(r->walk.end, ABI_END_FRAME_LIMIT);
	drop(r);
}

/* ---- the top frame ---- */

static void epilogues(void **state)
{
	static const struct {
		const char *what, *code;
		enum walk_java_top want;
		const char *before; /* NULL: no-ops */
	} cases[] = {
		{ "ret", "c3", WALK_JAVA_RETURN },
		{ "pop rbp; ret", "5d c3", WALK_JAVA_SAVED },
		{ "pop rbp; cmp rsp,[r15+n]; ja", "5d 49 3b a7 48 03 00 00 0f 87 12 34 00 00 c3", WALK_JAVA_SAVED },
		{ "cmp rsp,[r15+n]", "49 3b 67 28 0f 87 12 34 00 00 c3", WALK_JAVA_RETURN },
		{ "ja; ret", "0f 87 12 34 00 00 c3", WALK_JAVA_RETURN },
		{ "11: mov r10,[r15+n]; test; ret", "4d 8b 97 08 01 00 00 41 85 02 c3", WALK_JAVA_RETURN },
		{ "11: test; ret", "41 85 02 c3", WALK_JAVA_RETURN },
		{ "a loop's poll", "4d 8b 97 48 03 00 00 41 85 02 75 10", WALK_JAVA_WHOLE },
		{ "cmp [r15+n],0; jne; ret", "49 83 7f 08 00 0f 85 12 34 00 00 c3", WALK_JAVA_RETURN },
		{ "the same, no ret", "49 83 7f 08 00 0f 85 12 34 00 00 90", WALK_JAVA_WHOLE },
		{ "mov [r15+n],r10; jmp", "4d 89 97 58 03 00 00 e9 12 34 00 00", WALK_JAVA_RETURN },
		{ "lea r10,[rip+n]; mov", "4c 8d 15 12 34 00 00 4d 89 97 58 03 00 00 e9", WALK_JAVA_RETURN },
		{ "pop rbp in the middle", "5d 48 89 c3", WALK_JAVA_WHOLE },
		{ "add", "48 83 c4 20 5d c3", WALK_JAVA_WHOLE },
		{ "25: testb 1,[r15+n]; je; movabs",
		  "41 f6 47 28 01 74 16 49 ba 8a 83 b4 3c 34 7f 00 00 4d 89 97 38 05 00 00", WALK_JAVA_RETURN },
		{ "25: je; movabs r10; mov [r15+n],r10", "74 16 49 ba 8a 83 b4 3c 34 7f 00 00 4d 89 97 38 05 00 00 e9",
		  WALK_JAVA_RETURN },
		{ "another testb", "41 f6 47 28 01 75 16 49 ba 8a 83 b4 3c 34 7f 00 00", WALK_JAVA_WHOLE },
		{ "another je", "74 16 49 ba 8a 83 b4 3c 34 7f 00 00 4d 8b 97 38 05 00 00 e9", WALK_JAVA_WHOLE },
		{ "jb; mov rdi,r15", "0f 82 3f 00 00 00 49 8b ff f7 c4 0f 00 00 00", WALK_JAVA_RETURN },
		{ "another jb", "0f 82 3f 00 00 00 49 8b fe f7 c4 0f 00 00 00", WALK_JAVA_WHOLE },
		{ "pop rbp; jmp behind add", "5d e9 d4 aa ab ff", WALK_JAVA_SAVED, "48 83 c4 40" },
		{ "pop rbp; jmp behind a long add", "5d e9 d4 aa ab ff", WALK_JAVA_SAVED, "48 81 c4 10 01 00 00" },
		{ "pop rbp; jmp behind something else", "5d e9 d4 aa ab ff", WALK_JAVA_WHOLE, "48 83 c0 40" },
		{ "jmp behind add; pop rbp", "e9 d4 aa ab ff", WALK_JAVA_RETURN, "48 83 c4 40 5d" },
		{ "jmp behind a long add; pop rbp", "e9 d4 aa ab ff", WALK_JAVA_RETURN, "48 81 c4 10 01 00 00 5d" },
		{ "jmp behind a byte like pop rbp", "e9 d4 aa ab ff", WALK_JAVA_WHOLE, "48 83 c0 5d" },
	};
	struct walk *w = calloc(1, sizeof(*w));
	uint8_t before[WALK_JAVA_BEHIND];

	(void)state;
	must(w);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].what);
		memset(w->scratch, 0x90, sizeof(w->scratch));
		hex(cases[i].code, (uint8_t *)(w->scratch + WALK_JAVA_CODE) + WALK_JAVA_BEHIND);
		if (cases[i].before) {
			size_t count = hex(cases[i].before, before);

			memcpy((uint8_t *)(w->scratch + WALK_JAVA_CODE) + WALK_JAVA_BEHIND - count, before, count);
		}
		assert_int_equal(walk_java_epilogue(w), cases[i].want);
	}
	free(w);
}

static void prologues(void **state)
{
	static const struct {
		const char *what, *before, *next;
		enum walk_java_top want;
	} cases[] = {
		{ "bang", "89 84 24 00 c0 fe ff", "55", WALK_JAVA_RETURN },
		{ "push rbp", "89 84 24 00 c0 fe ff 55", "48 83 ec 20", WALK_JAVA_SAVED },
		{ "push rbp; mov rbp,rsp", "89 84 24 00 c0 fe ff 55 48 8b ec", "48 83 ec 20", WALK_JAVA_SAVED },
		{ "push rbp; sub", "89 84 24 00 c0 fe ff 55 48 83 ec 20", "41 81 7f 20", WALK_JAVA_WHOLE },
		{ "sub n", "48 81 ec 88 01 00 00", "48 89 ac 24 80 01 00 00", WALK_JAVA_ROOM },
		{ "sub n; mov", "48 81 ec 18 00 00 00 48 89 6c 24 10", "90", WALK_JAVA_WHOLE },
		{ "and a barrier", "48 83 ec 18 48 89 6c 24 10 41 81 7f 20 01 00 00 00", "0f 85 00 00 00 00",
		  WALK_JAVA_WHOLE },
	};
	struct walk *w = calloc(1, sizeof(*w));

	(void)state;
	must(w);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t before[WALK_JAVA_BEHIND];
		uint8_t *code = (uint8_t *)(w->scratch + WALK_JAVA_CODE);
		size_t count = hex(cases[i].before, before);

		print_message("  %s\n", cases[i].what);
		/* in front of the entry: what looks like a prologue, and is not this method's */
		memset(code, 0x90, WALK_JAVA_BEHIND);
		hex("48 81 ec 88 01 00 00", code + WALK_JAVA_BEHIND - count - 7);
		memcpy(code + WALK_JAVA_BEHIND - count, before, count);
		memset(code + WALK_JAVA_BEHIND, 0x90, WALK_JAVA_AHEAD);
		hex(cases[i].next, code + WALK_JAVA_BEHIND);
		assert_int_equal(walk_java_prologue(w, count), cases[i].want);
	}
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recordings_are_walked),
		cmocka_unit_test(frames_of_a_virtual_thread),
		cmocka_unit_test(frames_that_are_being_copied),
		cmocka_unit_test(frames_that_come_out_of_the_heap),
		cmocka_unit_test(unloaded_classes_are_no_address),
		cmocka_unit_test(pushed_words_are_skipped),
		cmocka_unit_test(popped_words_are_known),
		cmocka_unit_test(a_search_has_moved_sp),
		cmocka_unit_test(ticks_in_the_call_stub),
		cmocka_unit_test(stubs_that_throw),
		cmocka_unit_test(reads_fail),
		cmocka_unit_test(freed_methods_have_no_name),
		cmocka_unit_test(frames_being_made_have_no_name),
		cmocka_unit_test(maps_of_segments_lie),
		cmocka_unit_test(maps_of_segments_change),
		cmocka_unit_test(code_caches_shrink),
		cmocka_unit_test(offsets_lie),
		cmocka_unit_test(full_records_end),
		cmocka_unit_test(epilogues),
		cmocka_unit_test(prologues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
