/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of HotSpot's frames on aarch64, run on any machine: over recordings of real JVMs (tests/walk/java_record.c),
 * with memory that goes missing or lies, and over a made-up code cache, instruction by instruction. */
#define WALK_AARCH64 1
#define FOLDER "tests/corpus/walk_java_aarch64"
#include "java_recorded.h"

static const struct recording {
	const char *name;
	uint32_t frames, guessed; /* guessed: how many are marked */
	uint8_t top;              /* flags of the first one */
} recordings[] = {
	{ "17-compiled-whole-10", 10, 0, ABI_FRAME_COMPILED },
	{ "17-compiled-whole-7", 7, 0, ABI_FRAME_COMPILED },
	{ "17-stub-whole-10", 10, 0, ABI_FRAME_INTERNAL },
	{ "17-stub-whole-3", 3, 0, ABI_FRAME_INTERNAL },
	{ "17c1-compiled-whole-4", 4, 0, ABI_FRAME_COMPILED },
	{ "17c1-entry-whole-12", 12, 0, 0 },
	{ "17c1-stub-whole-5", 5, 0, ABI_FRAME_INTERNAL },
	{ "17int-entry-whole-14", 14, 0, 0 },
	{ "17int-interpreted-whole-14", 14, 0, 0 },
	{ "21-compiled-whole-11", 11, 0, ABI_FRAME_COMPILED },
	{ "21-stub-whole-13", 13, 0, ABI_FRAME_INTERNAL },
	{ "21c1-entry-whole-16", 16, 0, 0 },
	{ "21int-interpreted-whole-5", 5, 0, 0 },
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

/* Each read in turn: the walk ends, or takes the longer way, and keeps what it had. A walk to the root that marks
 * nothing lacks no method: one that cannot be read has no name. */
static void reads_fail(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(recordings); i++) {
		struct recorded *r = take(recordings[i].name);
		int methods;

		print_message("  %s\n", recordings[i].name);
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

/* Addresses have 48 bits there, and the highest says in a cookie that it is none. */
static void addresses_are_no_names(void **state)
{
	uint32_t count = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(recordings); i++) {
		struct recorded *r = take(recordings[i].name);

		walk(r);
		for (uint32_t k = 0; k < r->walk.count; k++) {
			const struct abi_frame *f = &r->walk.frames[k];

			if (f->flags & (ABI_FRAME_COMPILED | ABI_FRAME_INTERNAL))
				continue;
			assert_false(f->b & ABI_JAVA_FULL);
			count += f->b != 0;
		}
		drop(r);
	}
	assert_true(count > 0);
}

static void maps_of_segments_lie(void **state)
{
	static const int says[] = { 0, 1, 0xfe, 0xff };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(recordings); i++) {
		struct recorded *r = take(recordings[i].name);

		if (recordings[i].top & ABI_FRAME_COMPILED)
			for (size_t k = 0; k < ARRAY_SIZE(says); k++) {
				r->map_says = says[k];
				walk(r);
				assert_int_equal(r->walk.count, 0); /* no code there: the native rules' turn */
				assert_true(r->walk.passed);
				assert_true(r->reads < 100);
			}
		drop(r);
	}
}

/* Each word of the stack that the walk read is another one: it ends, and what it says is no more than it said. */
static void stacks_lie(void **state)
{
	static const uint64_t words[] = { 0, 8, ~UINT64_C(0), UINT64_C(0xffff80000000) };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(recordings); i++) {
		struct recorded *r = take(recordings[i].name);
		uint64_t sp = r->image.leaf[WALK_REG_SP];

		for (uint64_t at = sp - 96; at < sp + 1024; at += 8)
			for (size_t k = 0; k < ARRAY_SIZE(words); k++) {
				r->patches[0].at = at;
				r->patches[0].word = words[k];
				walk(r);
				assert_true(r->walk.count <= ABI_FRAMES_MAX && r->walk.end < ABI_END_COUNT);
			}
		drop(r);
	}
}

/* ---- a code cache made by hand ---- */

#define CODE UINT64_C(0xffff90000000)
#define CODE_SIZE 0x8000
#define MAP UINT64_C(0xffff80001000)
#define METHODS UINT64_C(0xffff70000000) /* each has its address of constants at 8 */
#define STACK UINT64_C(0xffffe0000000)
#define STACK_WORDS 512
#define LIBRARY UINT64_C(0xffffa0000000)

/* Blobs: where each begins; its code is HEAD behind. */
#define HEAD 0x100
#define CALLEE 0x1000
#define CALLER 0x1800
#define STUB 0x2000
#define SIZED 0x2800 /* a stub with a frame of four words */
#define ADAPTER 0x3000
#define INTERPRETER 0x4000
#define RETURNS (INTERPRETER + 0x100)
#define ENTRY (INTERPRETER + 0x200)
#define MATH (INTERPRETER + 0x300) /* an entry without a frame */
#define PLAIN (INTERPRETER + 0x400)
#define CALL_STUB 0x6000 /* of 0x60 bytes, which calls at 0x20 */

#define NOP 0xd503201f
#define RET 0xd65f03c0
#define ENTER 0xa9bf7bfd
#define LEAVE 0xa8c17bfd
#define DROP 0x910003bf
#define BLR_X8 0xd63f0100
#define SUB(n) (0xd10003ff | (n) << 10)       /* sub sp, sp, #n */
#define ADD(n) (0x910003ff | (n) << 10)       /* add sp, sp, #n */
#define STORE(n) (0xa9007bfd | (n) / 8 << 15) /* stp x29, x30, [sp, #n] */
#define LOAD(n) (0xa9407bfd | (n) / 8 << 15)  /* ldp x29, x30, [sp, #n] */
#define PUSH_X0_X1 0xa9bf07e0                 /* stp x0, x1, [sp, #-16]! */
#define POP_X0_X1 0xa8c107e0                  /* ldp x0, x1, [sp], #16 */
#define POLL 0xf941a388                       /* ldr x8, [x28, #832] */
#define CMP_SP 0xeb2863ff                     /* cmp sp, x8 */
#define B_HI 0x54000108
#define ADR_X8 0x10fffa88
#define STR_X8 0xf901af88 /* str x8, [x28, #856] */
#define B 0x14000800
#define ADRP_X8 0x90000008
#define ADD_X8 0x91000108
#define BR_X8 0xd61f0100
#define AND_SP 0x927cee9f /* and sp, x20, #-16 */
#define MOV_SP_X20 0x9100029f
#define MOV_X19_SP 0x910003f3
#define KEEP 0xa9bf7be0 /* stp x0, x30, [sp, #-16]! */

struct machine {
	uint32_t code[CODE_SIZE / 4];
	uint8_t map[CODE_SIZE / 128];
	uint64_t stack[STACK_WORDS];
	struct abi_java info;
	uint64_t leaf[WALK_REGS];
	bool is_return;
	struct walk_world world;
	struct walk walk;
};

static bool is_within(uint64_t begin, size_t bytes, __u32 size, __u64 at)
{
	return at >= begin && at - begin <= bytes && size <= bytes - (at - begin);
}

static int machine_read(void *self, void *dst, __u32 size, __u64 at)
{
	const struct machine *m = self;
	const uint64_t constant = METHODS + 0x1000;

	if (is_within(CODE, sizeof(m->code), size, at))
		memcpy(dst, (const uint8_t *)m->code + (at - CODE), size);
	else if (is_within(MAP, sizeof(m->map), size, at))
		memcpy(dst, m->map + (at - MAP), size);
	else if (is_within(STACK, sizeof(m->stack), size, at))
		memcpy(dst, (const uint8_t *)m->stack + (at - STACK), size);
	else if (is_within(METHODS, 0x1000, size, at) && size == 8)
		memcpy(dst, &constant, size);
	else if (is_within(LIBRARY, 0x1000, size, at))
		for (__u32 i = 0; i < size; i++)
			((uint8_t *)dst)[i] = (uint8_t)(BLR_X8 >> ((at + i) % 4 * 8));
	else
		return -EFAULT;
	return 0;
}

static void blob(struct machine *m, uint32_t at, uint32_t size, uint8_t kind, uint32_t frame_size, uint32_t complete)
{
	uint32_t *header = m->code + at / 4 + 4;
	uint64_t begin = CODE + at + HEAD, end = CODE + at + size;

	for (uint32_t i = 0; i < size / 128; i++)
		m->map[at / 128 + i] = (uint8_t)i;
	memcpy(header + 2, &begin, sizeof(begin));
	memcpy(header + 4, &end, sizeof(end));
	header[6] = frame_size;
	header[7] = complete;
	header[8] = kind;
	memcpy(header + 10, &begin, sizeof(begin)); /* the verified entry */
	for (uint32_t i = 0; i < (size - HEAD) / 4; i++)
		m->code[(at + HEAD) / 4 + i] = NOP;
}

static void put(struct machine *m, uint32_t at, const uint32_t *code, size_t count)
{
	memcpy(m->code + at / 4, code, count * sizeof(*code));
}

#define PUT(m, at, ...) \
	put(m, at, (const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

/* bl at @from to @to */
static void call(struct machine *m, uint32_t from, uint32_t to)
{
	m->code[from / 4] = 0x94000000 | ((to - from) / 4 & 0x3ffffff);
}

static uint64_t *word(struct machine *m, uint64_t at)
{
	return &m->stack[(at - STACK) / 8];
}

#define SP (STACK + 0x400)
#define CALLED (CALLER + HEAD + 0x44) /* behind the caller's call, at 0x40 */
#define CALLEE_WORDS 6
#define CALLER_WORDS 4
#define SIGNED(address) ((address) | UINT64_C(0x5a2f) << 48)

/* Native code called Java through the stub, that called CALLER, whose frame begins at SP; who it calls is for the test
 * to say. */
static struct machine *machine_new(void)
{
	struct machine *m = calloc(1, sizeof(*m));
	uint64_t native = SP + CALLER_WORDS * 8 + 64;

	must(m);
	memset(m->map, 0xff, sizeof(m->map));
	blob(m, CALLEE, 0x800, ABI_JAVA_KIND_NMETHOD, CALLEE_WORDS, 0x40);
	blob(m, CALLER, 0x800, ABI_JAVA_KIND_NMETHOD, CALLER_WORDS, 0x20);
	blob(m, STUB, 0x800, 0, 0, 0);
	blob(m, SIZED, 0x800, 0, 4, 0);
	blob(m, ADAPTER, 0x800, ABI_JAVA_KIND_ADAPTER, 0, 0);
	blob(m, INTERPRETER - HEAD, 0x1000, 0, 0, 0);
	blob(m, CALL_STUB - HEAD, 0x200, 0, 0, 0);
	PUT(m, CALL_STUB, ENTER, 0x910003fd, 0xd10343bf);
	m->code[(CALL_STUB + 0x1c) / 4] = 0xd63f0080; /* blr x4 */
	PUT(m, CALL_STUB + 0x40, DROP, LEAVE, RET);
	m->info = (struct abi_java){
		.flags = ABI_JAVA_KINDS | ABI_JAVA_ENTRY_ADDRESS,
		.shift = 7,
		.heaps = { { CODE, CODE + CODE_SIZE, MAP } },
		.low = CODE,
		.high = CODE + CODE_SIZE,
		.interpreter_low = CODE + INTERPRETER,
		.interpreter_high = CODE + INTERPRETER + 0x800,
		.call_stub_return = CODE + CALL_STUB + 0x20,
		.call_stub_before = 0x20,
		.call_stub_ret = 0x28,
		.call_stub_after = 0x40,
		.returns_low = RETURNS - INTERPRETER,
		.returns_high = RETURNS - INTERPRETER + 0x80,
		.entries_low = ENTRY - INTERPRETER,
		.entries_high = MATH - INTERPRETER + 0x100,
		.entries = { { .low = ENTRY - INTERPRETER,
			       .high = ENTRY - INTERPRETER + 0x100,
			       .push = 0x24,
			       .filled = 0x30,
			       .sender = 19 } },
		.block_header = 16,
		.code_begin = 8,
		.code_end = 16,
		.frame_size = 24,
		.frame_complete = 28,
		.kind = 32,
		.entry = 40,
		.compile_id = 48,
		.deopt = 56,
		.deopt_mh = 0xffff,
		.level = 33,
		.method_const = 8,
		.bcp_slot = 9,
		.epoch_at = CODE + 0x200,
	};
	m->world = (struct walk_world){ .read = machine_read, .find_map = java_image_find_map, .self = m };
	for (size_t i = 0; i < STACK_WORDS; i++)
		m->stack[i] = 0x1111 * i;
	/* the caller's frame, and the stub's, whose frame pointer lies at native */
	*word(m, SP + CALLER_WORDS * 8 - 16) = native;
	*word(m, SP + CALLER_WORDS * 8 - 8) = SIGNED(CODE + CALL_STUB + 0x20);
	*word(m, native) = 0xabcde0;
	*word(m, native + 8) = LIBRARY + 0x40;
	call(m, CALLED - 4, CALLEE + HEAD);
	for (size_t i = 0; i < WALK_REGS; i++)
		m->leaf[i] = 0x2220 + i;
	m->leaf[29] = 0x77770;
	return m;
}

static void machine_walk(struct machine *m)
{
	memset(&m->walk, 0, sizeof(m->walk));
	m->walk.world = &m->world;
	java_image_walk(&m->walk, &m->info, m->leaf, m->is_return);
}

static void run_at(struct machine *m, uint32_t pc, uint64_t sp, uint64_t link)
{
	m->leaf[WALK_REG_PC] = CODE + pc;
	m->leaf[WALK_REG_SP] = sp;
	m->leaf[WALK_REG_LR] = link;
	machine_walk(m);
}

/* @top: the first frame's flags; then CALLER, called at @called, and the stub. */
static void assert_whole(struct machine *m, uint8_t top, uint32_t called)
{
	const struct abi_frame *f = m->walk.frames;

	assert_int_equal(m->walk.end, ABI_END_FRAME_LIMIT);
	assert_int_equal(m->walk.count, 3);
	assert_int_equal(f[0].flags, top);
	assert_int_equal(f[1].flags, ABI_FRAME_COMPILED | ABI_FRAME_RETURN);
	assert_int_equal(f[1].a, CODE + CALLER + 16);
	assert_int_equal(f[1].extra, called - CALLER - HEAD);
	assert_int_equal(f[2].flags, ABI_FRAME_INTERNAL | ABI_FRAME_RETURN);
	assert_int_equal(m->walk.pc, LIBRARY + 0x40);
	assert_int_equal(m->walk.sp, SP + CALLER_WORDS * 8 + 64 + 16);
	assert_int_equal(m->walk.fp, 0xabcde0);
}

static void assert_cut(struct machine *m, uint32_t frames)
{
	assert_int_equal(m->walk.end, ABI_END_UNSUPPORTED);
	assert_int_equal(m->walk.count, frames);
}

/* Puts a frame record of who was called at CALLED. */
static void record_at(struct machine *m, uint64_t at)
{
	*word(m, at) = 0x77770;
	*word(m, at + 8) = SIGNED(CODE + CALLED);
}

#define METHOD (METHODS + 0x100)

/* Of a method that CALLER called, at fp; @monitors: where they end. */
static void interpreted_frame(struct machine *m, uint64_t fp, uint64_t monitors)
{
	record_at(m, fp);
	*word(m, fp - 8) = SP;
	*word(m, fp - 24) = METHOD;
	*word(m, fp - 72) = METHODS + 0x1000 + 7; /* bytecode 7: constants have no size here */
	*word(m, fp - 80) = monitors;
}

struct step {
	const char *what;
	uint32_t code;
	uint64_t lower; /* bytes by which sp is lower than the caller's, before it has run */
	bool is_stored; /* the caller's address is in the frame, and x30 is something else */
};

#define FRAME (CALLEE_WORDS * 8)

static void steps_are_walked(const struct step *steps, size_t count, uint32_t at, uint32_t complete)
{
	for (size_t i = 0; i < count; i++) {
		struct machine *m = machine_new();

		print_message("  %s\n", steps[i].what);
		blob(m, CALLEE, 0x800, ABI_JAVA_KIND_NMETHOD, CALLEE_WORDS, complete);
		for (size_t k = 0; k < count; k++)
			m->code[at / 4 + k] = steps[k].code;
		if (steps[i].is_stored)
			record_at(m, SP - 16);
		run_at(m, at + 4 * (uint32_t)i, SP - steps[i].lower,
		       steps[i].is_stored ? CODE + CALLEE + HEAD + 0x80 : SIGNED(CODE + CALLED));
		assert_whole(m, ABI_FRAME_COMPILED, CALLED);
		free(m);
	}
}

static void prologues(void **state)
{
	static const struct step small[] = {
		{ "nop", NOP, 0, false },
		{ "the bang: sub x9, sp, #n", 0xd14053e9, 0, false },
		{ "str xzr, [x9]", 0xf900013f, 0, false },
		{ "sub sp, sp, #n", SUB(FRAME), 0, false },
		{ "stp x29, x30, [sp, #n]", STORE(FRAME - 16), FRAME, false },
		{ "the barrier", 0x18000069, FRAME, true },
		{ "behind it", NOP, FRAME, true },
	}, large[] = {
		{ "nop", NOP, 0, false },
		{ "stp x29, x30, [sp, #-16]!", ENTER, 0, false },
		{ "mov x8, #n", 0xd2800408, 16, true },
		{ "sub sp, sp, x8", 0xcb2863ff, 16, true },
		{ "behind it", NOP, FRAME, true },
	}, signed_too[] = {
		{ "pacia x30, x29", 0xdac103be, 0, false },
		{ "sub sp, sp, #n", SUB(FRAME), 0, false },
		{ "stp x29, x30, [sp, #n]", STORE(FRAME - 16), FRAME, false },
		{ "behind it", NOP, FRAME, true },
	};

	(void)state;
	steps_are_walked(small, ARRAY_SIZE(small), CALLEE + HEAD, 0x40);
	steps_are_walked(large, ARRAY_SIZE(large), CALLEE + HEAD, 0x40);
	steps_are_walked(signed_too, ARRAY_SIZE(signed_too), CALLEE + HEAD, 0x40);
}

static void epilogues(void **state)
{
	static const struct step small[] = {
		{ "an instruction", NOP, FRAME, true },
		{ "ldp x29, x30, [sp, #n]", LOAD(FRAME - 16), FRAME, true },
		{ "add sp, sp, #n", ADD(FRAME), FRAME, true },
		{ "ldr x8, [x28, #n]", POLL, 0, false },
		{ "cmp sp, x8", CMP_SP, 0, false },
		{ "b.hi", B_HI, 0, false },
		{ "ret", RET, 0, false },
		{ "the next one", NOP, FRAME, true },
	}, large[] = {
		{ "mov x8, #n", 0xd2800408, FRAME, true },
		{ "add sp, sp, x8", 0x8b2863ff, FRAME, true },
		{ "ldp x29, x30, [sp], #16", LEAVE, 16, true },
		{ "autia x30, x29", 0xdac113be, 0, false },
		{ "ret", RET, 0, false },
		{ "the next one", NOP, FRAME, true },
	}, native[] = {
		{ "blr x8: what was called", BLR_X8, FRAME, true },
		{ "stp x29, x30, [sp, #-16]!: a frame within", ENTER, FRAME, true },
		{ "an instruction there", NOP, FRAME + 16, true },
	}, jump[] = {
		{ "ldp x29, x30, [sp, #n]", LOAD(FRAME - 16), FRAME, true },
		{ "add sp, sp, #n", ADD(FRAME), FRAME, true },
		{ "adrp x8", ADRP_X8, 0, false },
		{ "add x8, x8, #n", ADD_X8, 0, false },
		{ "br x8", BR_X8, 0, false },
	}, stop[] = {
		{ "a jump", B, FRAME, true },
		{ "adr x8: the poll says stop", ADR_X8, 0, false },
		{ "str x8, [x28, #n]", STR_X8, 0, false },
		{ "b", B, 0, false },
		{ "adr x8, far away", ADR_X8, 0, false },
		{ "str x8, [x28, #n]", STR_X8, 0, false },
		{ "adrp x8", ADRP_X8, 0, false },
		{ "add x8, x8, #n", ADD_X8, 0, false },
		{ "br x8", BR_X8, 0, false },
		{ "adr x8, for a call", ADR_X8, FRAME, true },
		{ "str x8, [x28, #n]", STR_X8, FRAME, true },
		{ "something else", NOP, FRAME, true },
	}, pushed[] = {
		{ "stp x0, x1, [sp, #-16]!", PUSH_X0_X1, FRAME, true },
		{ "an instruction", NOP, FRAME + 16, true },
		{ "blr x8", BLR_X8, FRAME + 16, true },
		{ "ldp x0, x1, [sp], #16", POP_X0_X1, FRAME + 16, true },
		{ "an instruction", NOP, FRAME, true },
	}, reserved[] = {
		{ "br x8, in front of where a branch leads", BR_X8, FRAME, true },
		{ "ldr x8, [x28, #n]", POLL, 0, false },
		{ "cmp sp, x8", CMP_SP, 0, false },
		{ "b.hi", B_HI, 0, false },
		{ "ret", RET, 0, false },
	}, again[] = {
		{ "sub sp, sp, #n: a second entry", SUB(FRAME), 0, false },
		{ "stp x29, x30, [sp, #n]", STORE(FRAME - 16), FRAME, false },
	};

	(void)state;
	steps_are_walked(small, ARRAY_SIZE(small), CALLEE + HEAD + 0x60, 0x40);
	steps_are_walked(large, ARRAY_SIZE(large), CALLEE + HEAD + 0x60, 0x40);
	steps_are_walked(native, ARRAY_SIZE(native), CALLEE + HEAD + 0x60, 0x40);
	steps_are_walked(jump, ARRAY_SIZE(jump), CALLEE + HEAD + 0x60, 0x40);
	steps_are_walked(stop, ARRAY_SIZE(stop), CALLEE + HEAD + 0x60, 0x40);
	steps_are_walked(pushed, ARRAY_SIZE(pushed), CALLEE + HEAD + 0x60, 0x40);
	steps_are_walked(reserved, ARRAY_SIZE(reserved), CALLEE + HEAD + 0x60, 0x40);
	steps_are_walked(again, ARRAY_SIZE(again), CALLEE + HEAD + 0x60, 0x40);
}

/* A prologue that nobody has seen is not believed; a collector's barrier may have called from it. */
static void unknown_prologues_are_cut(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	blob(m, CALLEE, 0x800, ABI_JAVA_KIND_NMETHOD, CALLEE_WORDS, 0x200);
	run_at(m, CALLEE + HEAD + 0x100, SP, CODE + CALLED);
	assert_cut(m, 1);
	m->code[(CALLEE + HEAD) / 4] = SUB(FRAME);
	m->code[(CALLEE + HEAD) / 4 + 1] = STORE(FRAME - 16);
	record_at(m, SP - 16);
	run_at(m, CALLEE + HEAD + 0x100, SP - FRAME, 0);
	assert_whole(m, ABI_FRAME_COMPILED, CALLED);
	free(m);
}

/* ---- return addresses ---- */

static void calls_are_read(void **state)
{
	static const struct {
		const char *what;
		uint32_t code[4];
		uint64_t want;
	} cases[] = {
		{ "bl", { NOP, NOP, NOP, 0x94000000 | 0x100 }, CODE + 0x10c + 0x400 },
		{ "bl back", { NOP, NOP, NOP, 0x97ffffff }, CODE + 0x108 },
		{ "mov, movk, movk, blr", { 0xd2955688, 0xf2affde8, 0xf2dfffe8, BLR_X8 }, UINT64_C(0xffff7fefaab4) },
		{ "of another register", { 0xd2955688, 0xf2affde9, 0xf2dfffe8, BLR_X8 }, 0 },
		{ "adrp, add, blr", { NOP, 0xb0000008, 0x91012108, BLR_X8 }, CODE + 0x1048 },
		{ "adrp back", { NOP, 0xf0ffffe8, 0x91012108, BLR_X8 }, CODE - 0x1000 + 0x48 },
		{ "blr", { NOP, NOP, NOP, 0xd63f0220 }, 0 },
		{ "b", { NOP, NOP, NOP, 0x14000100 }, WALK_JAVA_CALL_NONE },
		{ "nop", { NOP, NOP, NOP, NOP }, WALK_JAVA_CALL_NONE },
	};
	struct machine *m = machine_new();

	(void)state;
	m->walk.world = &m->world;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].what);
		put(m, 0x100, cases[i].code, 4);
		assert_int_equal(walk_java_called(&m->walk, CODE + 0x110), cases[i].want);
	}
	print_message("  through a trampoline\n");
	call(m, 0x10c, 0x400);
	PUT(m, 0x400, 0x58000048, BR_X8, 0x12345678, 0xffff);
	assert_int_equal(walk_java_called(&m->walk, CODE + 0x110), UINT64_C(0xffff12345678));
	assert_int_equal(walk_java_called(&m->walk, 0x1000), WALK_JAVA_CALL_NONE);
	free(m);
}

/* ---- stubs ---- */

/* CALLER calls one: a leaf, one with a frame record, one that pushes something. */
static void stubs(void **state)
{
	static const struct step leaf[] = {
		{ "a leaf", NOP, 0, false },
		{ "its ret", RET, 0, false },
	}, record[] = {
		{ "stp x29, x30, [sp, #-16]!", ENTER, 0, false },
		{ "mov x29, sp", 0x910003fd, 16, false },
	}, pushes[] = {
		{ "stp x0, x2, [sp, #-32]!", 0xa9be0be0, 0, false },
		{ "behind it", NOP, 32, false },
		{ "ldp x0, x2, [sp], #32", 0xa8c20be0, 32, false },
		{ "ret", RET, 0, false },
		{ "on another way", NOP, 32, false },
	};
	static const struct {
		const struct step *steps;
		size_t count;
	} kinds[] = { { leaf, ARRAY_SIZE(leaf) }, { record, ARRAY_SIZE(record) }, { pushes, ARRAY_SIZE(pushes) } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (size_t k = 0; k < kinds[i].count; k++) {
			struct machine *m = machine_new();

			print_message("  %s\n", kinds[i].steps[k].what);
			for (size_t n = 0; n < kinds[i].count; n++)
				m->code[(STUB + HEAD) / 4 + n] = kinds[i].steps[n].code;
			call(m, CALLED - 4, STUB + HEAD);
			run_at(m, STUB + HEAD + 4 * (uint32_t)k, SP - kinds[i].steps[k].lower, SIGNED(CODE + CALLED));
			assert_whole(m, ABI_FRAME_INTERNAL, CALLED);
			free(m);
		}
}

/* With a record: in its middle, also when it was called by another stub's code or has called something itself. */
static void stubs_with_records(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	call(m, CALLED - 4, STUB + HEAD);
	record_at(m, SP - 16);
	m->leaf[29] = SP - 16;
	print_message("  x30 is the same\n");
	run_at(m, STUB + HEAD + 0x40, SP - 64, CODE + CALLED);
	assert_whole(m, ABI_FRAME_INTERNAL, CALLED);
	print_message("  x30 is a number\n");
	run_at(m, STUB + HEAD + 0x40, SP - 64, 4711);
	assert_whole(m, ABI_FRAME_INTERNAL, CALLED);
	print_message("  x30 is that of a call of its own\n");
	call(m, STUB + HEAD + 0x3c, STUB + HEAD + 0x80);
	run_at(m, STUB + HEAD + 0x44, SP - 64, CODE + STUB + HEAD + 0x40);
	assert_whole(m, ABI_FRAME_INTERNAL, CALLED);
	print_message("  the record is not of this stub\n");
	call(m, CALLED - 4, CALLEE + HEAD);
	run_at(m, STUB + HEAD + 0x40, SP - 64, 4711);
	assert_cut(m, 1);
	print_message("  nor is x30 of a call that is under way\n");
	run_at(m, STUB + HEAD + 0x44, SP - 64, CODE + STUB + HEAD + 0x40);
	assert_cut(m, 1);
	free(m);
}

/* What native code called from there. */
static void stubs_in_a_call(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	m->is_return = true;
	print_message("  a frame size\n");
	record_at(m, SP - 16);
	run_at(m, SIZED + HEAD + 0x40, SP - 32, 0);
	assert_whole(m, ABI_FRAME_INTERNAL | ABI_FRAME_RETURN, CALLED);
	print_message("  neither size nor record\n");
	run_at(m, STUB + HEAD + 0x40, SP - 32, CODE + CALLED);
	assert_cut(m, 1);
	print_message("  an adapter's record\n");
	m->leaf[29] = SP - 16;
	run_at(m, ADAPTER + HEAD + 0x40, SP - 64, 0);
	assert_whole(m, ABI_FRAME_INTERNAL | ABI_FRAME_RETURN, CALLED);
	free(m);
}

/* It asks where an exception goes: at the top behind the call, and in it. */
static void stubs_that_hand_on_exceptions(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	PUT(m, STUB + HEAD + 0x40, 0xa9bf03fe, NOP, PUSH_X0_X1, NOP, BLR_X8, POP_X0_X1);
	*word(m, SP - 16) = CODE + CALLED;
	run_at(m, STUB + HEAD + 0x54, SP - 32, CODE + STUB + HEAD + 0x54);
	assert_whole(m, ABI_FRAME_INTERNAL, CALLED);
	m->is_return = true;
	run_at(m, STUB + HEAD + 0x54, SP - 32, 0);
	assert_whole(m, ABI_FRAME_INTERNAL | ABI_FRAME_RETURN, CALLED);
	free(m);
}

/* The interpreter jumps to stubs, too: what they return to says nothing, but where their record is does. */
static void stubs_return_to_the_interpreter(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	interpreted_frame(m, SP - 64, SP - 144);
	*word(m, SP - 304) = SP - 64;
	*word(m, SP - 296) = CODE + RETURNS;
	m->leaf[29] = SP - 304;
	run_at(m, STUB + HEAD + 0x40, SP - 304, CODE + RETURNS);
	assert_int_equal(m->walk.count, 4);
	assert_int_equal(m->walk.frames[1].a, METHOD);
	assert_int_equal(m->walk.end, ABI_END_FRAME_LIMIT);
	print_message("  the interpreter's own\n");
	*word(m, SP - 56) = CODE + RETURNS; /* it returns to the same place */
	m->leaf[29] = SP - 64;
	run_at(m, STUB + HEAD + 0x40, SP - 304, CODE + RETURNS);
	assert_int_equal(m->walk.frames[1].a, METHOD);
	free(m);
}

/* One that is not known to have been called lets its caller look for its frame, and only behind calls. */
static void frames_behind_unknown_words(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	m->code[(CALLED - 4) / 4] = BLR_X8;
	print_message("  two words\n");
	*word(m, SP - 16 + CALLER_WORDS * 8 - 8) = CODE + CALLEE + HEAD + 0x80; /* code, but no call */
	run_at(m, STUB + HEAD + 0x40, SP - 16, CODE + CALLED);
	assert_whole(m, ABI_FRAME_INTERNAL, CALLED);
	print_message("  eight words\n");
	run_at(m, STUB + HEAD + 0x40, SP - 64, CODE + CALLED);
	assert_cut(m, 2);
	free(m);
}

static void native_code_calls_stubs(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	run_at(m, STUB + HEAD + 0x40, SP, LIBRARY + 0x80);
	assert_int_equal(m->walk.count, 1);
	assert_int_equal(m->walk.end, ABI_END_FRAME_LIMIT);
	assert_int_equal(m->walk.pc, LIBRARY + 0x80);
	assert_int_equal(m->walk.sp, SP);
	run_at(m, STUB + HEAD + 0x40, SP, 0x12345678); /* nothing is mapped there */
	assert_cut(m, 1);
	print_message("  a stub that calls another one\n");
	*word(m, SP - 16) = 0x77770;
	*word(m, SP - 8) = LIBRARY + 0x80;
	m->leaf[29] = SP - 16;
	call(m, STUB + HEAD + 0x3c, STUB + HEAD + 0x80);
	run_at(m, STUB + HEAD + 0x88, SP - 16, CODE + STUB + HEAD + 0x40);
	assert_int_equal(m->walk.count, 1);
	assert_int_equal(m->walk.end, ABI_END_FRAME_LIMIT);
	assert_int_equal(m->walk.sp, SP);
	assert_int_equal(m->walk.fp, 0x77770);
	print_message("  no record of its own\n");
	m->leaf[29] = SP - 16;
	m->is_return = true;
	run_at(m, STUB + HEAD + 0x40, SP - 32, 0);
	assert_cut(m, 1);
	free(m);
}

static void adapters(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	PUT(m, ADAPTER + HEAD, 0xf9402188, MOV_X19_SP, SUB(64), NOP);
	print_message("  before it makes room\n");
	m->leaf[19] = SP + 128; /* of an earlier call */
	run_at(m, ADAPTER + HEAD + 4, SP, CODE + CALLED);
	assert_whole(m, ABI_FRAME_INTERNAL, CALLED);
	print_message("  and behind\n");
	m->leaf[19] = SP;
	run_at(m, ADAPTER + HEAD + 12, SP - 64, CODE + CALLED);
	assert_whole(m, ABI_FRAME_INTERNAL, CALLED);
	free(m);
}

/* ---- the interpreter ---- */

static void interpreted_frames(void **state)
{
	static const struct {
		const char *what;
		int64_t monitors; /* of the slot, from fp on */
		bool is_relative, is_frame;
	} cases[] = {
		{ "no monitor", -80, false, true },
		{ "two monitors", -112, false, true },
		{ "in words: from 22 on", -10, true, true },
		{ "an address above", 80, false, false },
		{ "a number", 5, true, false },
		{ "nothing", 0, false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct machine *m = machine_new();
		uint64_t fp = SP - 64;

		print_message("  %s\n", cases[i].what);
		interpreted_frame(m, fp, (cases[i].is_relative ? 0 : fp) + (uint64_t)cases[i].monitors);
		m->leaf[29] = fp;
		run_at(m, PLAIN, fp - 128, 0);
		if (cases[i].is_frame) {
			assert_whole(m, 0, CALLED);
			assert_int_equal(m->walk.frames[0].a, METHOD);
			assert_int_equal(m->walk.frames[0].extra, 7);
		} else {
			assert_cut(m, 0);
		}
		free(m);
	}
}

/* The caller's sp leaves room for what it may push, where this frame is; that of compiled code does not. */
static void callers_have_room(void **state)
{
	static const struct {
		const char *what;
		int64_t sender; /* from fp on */
		bool is_frame;
	} cases[] = { { "below this frame", -256, true }, { "above", 32, true }, { "far away", INT64_MAX, false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct machine *m = machine_new();
		uint64_t outer = SP - 64, fp = SP - 320;

		print_message("  %s\n", cases[i].what);
		interpreted_frame(m, outer, outer - 80);
		interpreted_frame(m, fp, fp - 80);
		*word(m, fp) = outer;
		*word(m, fp + 8) = CODE + RETURNS;
		*word(m, fp - 8) = fp + (uint64_t)cases[i].sender;
		m->leaf[29] = fp;
		run_at(m, PLAIN, fp - 128, 0);
		assert_int_equal(m->walk.count, cases[i].is_frame ? 4 : 0);
		assert_int_equal(m->walk.end, cases[i].is_frame ? ABI_END_FRAME_LIMIT : ABI_END_UNSUPPORTED);
		free(m);
	}
}

/* The bytecode is that in x22 as long as it is one of this method. */
static void bytecodes_are_in_a_register(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	interpreted_frame(m, SP - 64, SP - 144);
	m->leaf[29] = SP - 64;
	m->leaf[22] = METHODS + 0x1000 + 12;
	run_at(m, PLAIN, SP - 160, 0);
	assert_int_equal(m->walk.frames[0].extra, 12);
	m->leaf[22] = 4711;
	run_at(m, PLAIN, SP - 160, 0);
	assert_int_equal(m->walk.frames[0].extra, 7);
	free(m);
}

/* stp x20, x22, [sp, #-96]!; stp x29, x30, [sp, #80]; add x29, sp, #80; stp xzr, x19, [sp, #64] */
static void entries(void **state)
{
	static const struct {
		const char *what;
		uint32_t in;
		uint64_t lower;
		bool has_fp, is_filled;
	} cases[] = {
		{ "the first instruction", 0, 64, false, false },    { "room for locals", 0x10, 128, false, false },
		{ "the record is stored", 0x24, 224, false, false }, { "x29 is its own", 0x28, 224, true, false },
		{ "it is filled", 0x30, 224, true, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct machine *m = machine_new();
		uint64_t fp = SP - 128;

		print_message("  %s\n", cases[i].what);
		if (cases[i].has_fp) {
			record_at(m, fp);
			m->leaf[29] = fp;
		}
		if (cases[i].is_filled)
			interpreted_frame(m, fp, fp - 80);
		m->leaf[12] = METHOD;
		m->leaf[19] = cases[i].is_filled ? 4711 : SP;
		run_at(m, ENTRY + cases[i].in, SP - cases[i].lower, SIGNED(CODE + CALLED));
		assert_whole(m, 0, CALLED);
		assert_int_equal(m->walk.frames[0].a, METHOD);
		free(m);
	}
}

/* Methods without a frame: their caller is in x30, unless they have called C code; one of them makes a record. */
static void entries_without_frames(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	m->leaf[12] = METHOD;
	m->leaf[19] = SP;
	print_message("  no frame\n");
	run_at(m, MATH + 0x10, SP - 32, CODE + CALLED);
	assert_whole(m, 0, CALLED);
	print_message("  a record\n");
	record_at(m, SP - 48);
	m->leaf[29] = SP - 48;
	run_at(m, MATH + 0x10, SP - 48, CODE + CALLED);
	assert_whole(m, 0, CALLED);
	print_message("  behind a call\n");
	run_at(m, MATH + 0x10, SP, CODE + MATH + 0x10);
	assert_cut(m, 1);
	print_message("  in a call\n");
	m->is_return = true;
	interpreted_frame(m, SP - 64, SP - 144); /* that is another method's */
	m->leaf[29] = SP - 64;
	run_at(m, MATH + 0x10, SP - 160, CODE + CALLED);
	assert_cut(m, 0);
	free(m);
}

static void methods_are_left(void **state)
{
	static const struct step ends[] = {
		{ "mov sp, x29", DROP, 160, true },
		{ "ldp x29, x30, [sp], #16", LEAVE, 64, true },
		{ "and sp, x20, #-16", AND_SP, 48, false },
		{ "ret", RET, 0, false },
		{ "the next one", NOP, 160, true },
	}, native[] = {
		{ "mov sp, x29", DROP, 160, true },
		{ "ldp x29, x30, [sp], #16", LEAVE, 64, true },
		{ "mov sp, x20", MOV_SP_X20, 48, false },
		{ "ret", RET, 0, false },
	}, within[] = {
		{ "ldp x29, x30, [sp], #16: a frame within", NOP, 160, true },
		{ "the same", LEAVE, 160, true },
		{ "an instruction", NOP, 160, true },
	};
	static const struct {
		const struct step *steps;
		size_t count;
	} kinds[] = { { ends, ARRAY_SIZE(ends) }, { native, ARRAY_SIZE(native) }, { within, ARRAY_SIZE(within) } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (size_t k = 0; k < kinds[i].count; k++) {
			struct machine *m = machine_new();
			const struct step *s = &kinds[i].steps[k];

			print_message("  %s\n", s->what);
			for (size_t n = 0; n < kinds[i].count; n++)
				m->code[PLAIN / 4 + n] = kinds[i].steps[n].code;
			interpreted_frame(m, SP - 64, SP - 144);
			m->leaf[29] = s->is_stored ? SP - 64 : 0x77770;
			m->leaf[20] = s->is_stored ? SP - 200 : SP;
			run_at(m, PLAIN + 4 * (uint32_t)k, SP - s->lower, s->is_stored ? 4711 : CODE + CALLED);
			assert_whole(m, s->is_stored ? 0 : ABI_FRAME_INTERNAL, CALLED);
			free(m);
		}
}

/* The frame is gone, and the caller's handler of an exception is asked for. */
static void exceptions_are_handed_on(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	PUT(m, PLAIN, DROP, LEAVE, AND_SP, NOP, KEEP, NOP, PUSH_X0_X1, BLR_X8, POP_X0_X1);
	interpreted_frame(m, STACK + 0x800, STACK + 0x800 - 80); /* of somebody further up */
	m->leaf[29] = STACK + 0x800;
	m->leaf[20] = SP;
	print_message("  stp x0, x30, [sp, #-16]!\n");
	run_at(m, PLAIN + 0x10, SP, CODE + CALLED);
	assert_whole(m, ABI_FRAME_INTERNAL, CALLED);
	print_message("  behind it\n");
	*word(m, SP - 8) = CODE + CALLED;
	run_at(m, PLAIN + 0x18, SP - 16, 4711);
	assert_whole(m, ABI_FRAME_INTERNAL, CALLED);
	print_message("  in the call\n");
	m->is_return = true;
	run_at(m, PLAIN + 0x20, SP - 32, 4711);
	assert_whole(m, ABI_FRAME_INTERNAL | ABI_FRAME_RETURN, CALLED);
	free(m);
}

/* ---- the stub through which native code calls Java ---- */

static void ticks_in_the_call_stub(void **state)
{
	static const struct {
		const char *what;
		uint32_t at;
		uint64_t lower;
		bool has_record, has_fp;
	} cases[] = {
		{ "stp x29, x30, [sp, #-16]!", 0, 0, false, false },
		{ "mov x29, sp", 4, 16, true, false },
		{ "its frame is there", 8, 16, true, true },
		{ "parameters are pushed", 0x18, 320, true, true },
		{ "behind the call", 0x24, 200, true, true },
		{ "ldp x29, x30, [sp], #16", 0x44, 16, true, true },
		{ "ret", 0x48, 0, false, false },
		{ "another way out", 0x50, 200, true, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct machine *m = machine_new();
		uint64_t link = LIBRARY + 0x40;

		print_message("  %s\n", cases[i].what);
		if (cases[i].has_record) {
			*word(m, SP - 16) = 0x77770;
			*word(m, SP - 8) = link;
			link = 4711;
		}
		if (cases[i].has_fp)
			m->leaf[29] = SP - 16;
		run_at(m, CALL_STUB + cases[i].at, SP - cases[i].lower, link);
		assert_int_equal(m->walk.end, ABI_END_FRAME_LIMIT);
		assert_int_equal(m->walk.count, 1);
		assert_int_equal(m->walk.frames[0].flags, ABI_FRAME_INTERNAL);
		assert_int_equal(m->walk.pc, LIBRARY + 0x40);
		assert_int_equal(m->walk.sp, SP);
		assert_int_equal(m->walk.fp, 0x77770);
		free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recordings_are_walked),
		cmocka_unit_test(reads_fail),
		cmocka_unit_test(addresses_are_no_names),
		cmocka_unit_test(maps_of_segments_lie),
		cmocka_unit_test(stacks_lie),
		cmocka_unit_test(prologues),
		cmocka_unit_test(epilogues),
		cmocka_unit_test(unknown_prologues_are_cut),
		cmocka_unit_test(calls_are_read),
		cmocka_unit_test(stubs),
		cmocka_unit_test(stubs_with_records),
		cmocka_unit_test(stubs_in_a_call),
		cmocka_unit_test(stubs_that_hand_on_exceptions),
		cmocka_unit_test(stubs_return_to_the_interpreter),
		cmocka_unit_test(frames_behind_unknown_words),
		cmocka_unit_test(native_code_calls_stubs),
		cmocka_unit_test(adapters),
		cmocka_unit_test(interpreted_frames),
		cmocka_unit_test(callers_have_room),
		cmocka_unit_test(bytecodes_are_in_a_register),
		cmocka_unit_test(entries),
		cmocka_unit_test(entries_without_frames),
		cmocka_unit_test(methods_are_left),
		cmocka_unit_test(exceptions_are_handed_on),
		cmocka_unit_test(ticks_in_the_call_stub),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
