/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of V8's frames over made-up memory: each kind of frame, what a tick can find at a function's begin and end,
 * and memory that lies. */
#include "support.h"

#include "../walk/nodejs_image.h"

#define CONTEXT (NODEJS_HEAP + 128 + ABI_NODEJS_TAG)
#define NATIVE 0x400100ULL /* no code of V8 */
#define FP (NODEJS_STACK + 512)
#define CALLER_FP (NODEJS_STACK + 1024)

struct fixture {
	struct nodejs_image im;
	struct walk walk;
	struct walk_world world;
};

static struct fixture *open_fixture(uint64_t pc, bool is_leaf)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	nodejs_image_init(&f->im);
	f->world = (struct walk_world){ .read = nodejs_image_read, .self = &f->im };
	f->walk.world = &f->world;
	f->walk.pc = pc;
	f->walk.sp = FP - 128;
	f->walk.fp = FP;
	f->walk.is_leaf = is_leaf;
	f->walk.is_return = !is_leaf;
	return f;
}

/* One step that ends at the caller, whose frame pointer is CALLER_FP. */
static const struct abi_frame *step(struct fixture *f, uint64_t sp)
{
	assert_int_equal(walk_nodejs_step(&f->walk, &f->im.info), WALK_MORE);
	assert_int_equal(f->walk.count, 1);
	assert_int_equal(f->walk.pc, NATIVE);
	assert_int_equal(f->walk.fp, CALLER_FP);
	assert_int_equal(f->walk.sp, sp);
	assert_true(f->walk.is_return && !f->walk.is_leaf);
	assert_int_equal(f->walk.frames[0].kind, ABI_FRAME_RUNTIME);
	assert_int_equal(f->walk.frames[0].runtime, ABI_RUNTIME_NODEJS);
	return &f->walk.frames[0];
}

static void interpreted(void **state)
{
	struct fixture *f = open_fixture(NODEJS_BUILTINS + 64, false);
	uint64_t shared, function = nodejs_image_function(&f->im, false, &shared);
	const struct abi_frame *frame;

	(void)state;
	nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, CONTEXT, function);
	*nodejs_image_at(&f->im, FP - 32) = nodejs_image_bytecode(&f->im);
	*nodejs_image_at(&f->im, FP - 40) = (uint64_t)(53 + 12) << 32;
	frame = step(f, FP + 16);
	assert_int_equal(frame->a, shared);
	assert_int_equal(frame->b, walk_nodejs_cookie(nodejs_image_guard(&f->im, shared), 0));
	assert_int_equal(frame->extra, 12);
	assert_int_equal(frame->flags, ABI_FRAME_RETURN);
	free(f);
}

/* The interpreter's code can be copied for a function. In other code the interpreter's slots say nothing: code that
 * took over from it in a loop leaves them as they were. */
static void interpreter_elsewhere(void **state)
{
	static const struct {
		uint64_t start;
		uint32_t size, position; /* NOWHERE: compiled */
		bool has_copy;
	} cases[] = {
		{ NODEJS_CODE, 1024, 12, true },
		{ NODEJS_CODE, 64, 12, true }, /* of a call at its end */
		{ NODEJS_CODE, 63, ABI_NODEJS_NOWHERE, true },
		{ NODEJS_CODE + 64, 1024, ABI_NODEJS_NOWHERE, true },
		{ 0, 0, ABI_NODEJS_NOWHERE, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f = open_fixture(NODEJS_CODE + 64, false);
		uint64_t shared, function = nodejs_image_function(&f->im, false, &shared);
		uint64_t bytecode = nodejs_image_bytecode(&f->im);
		bool is_code = cases[i].position == ABI_NODEJS_NOWHERE;
		const struct abi_frame *frame;

		nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, CONTEXT, function);
		*nodejs_image_at(&f->im, FP - 32) = bytecode;
		*nodejs_image_at(&f->im, FP - 40) = (uint64_t)(53 + 12) << 32;
		if (cases[i].has_copy)
			nodejs_image_copy(&f->im, shared, bytecode, cases[i].start, cases[i].size);
		frame = step(f, FP + 16);
		assert_int_equal(frame->a, is_code ? NODEJS_CODE + 64 : shared);
		assert_int_equal(frame->flags & ABI_FRAME_COMPILED, is_code ? ABI_FRAME_COMPILED : 0);
		assert_int_equal(frame->extra, is_code ? 0 : cases[i].position);
		free(f);
	}
}

static void baseline(void **state)
{
	static const struct {
		uint64_t start;
		uint32_t size, position; /* NOWHERE: other code */
		bool has_bytecode;
	} cases[] = {
		{ NODEJS_CODE, 1024, 63, true },
		{ NODEJS_CODE, 64, 63, true },
		{ NODEJS_CODE, 63, ABI_NODEJS_NOWHERE, true },
		{ NODEJS_CODE + 64, 1024, ABI_NODEJS_NOWHERE, true },
		{ NODEJS_CODE, 1024, ABI_NODEJS_NOWHERE, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f = open_fixture(NODEJS_CODE + 64, false);
		uint64_t shared, function = nodejs_image_function(&f->im, false, &shared);
		uint64_t code = nodejs_image_compiled(&f->im, cases[i].start, cases[i].size);
		uint64_t bytecode = cases[i].has_bytecode ? nodejs_image_bytecode(&f->im) : 0;
		bool is_code = cases[i].position == ABI_NODEJS_NOWHERE;
		const struct abi_frame *frame;

		nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, CONTEXT, function);
		*nodejs_image_at(&f->im, shared + f->im.info.sfi_data) = code;
		*nodejs_image_at(&f->im, FP - 32) = bytecode;
		*nodejs_image_at(&f->im, code - ABI_NODEJS_TAG + 8) = bytecode; /* as from V8 12 on */
		frame = step(f, FP + 16);
		assert_int_equal(frame->a, is_code ? NODEJS_CODE + 64 : shared + ABI_NODEJS_TAG);
		assert_int_equal(frame->flags & ABI_FRAME_COMPILED, is_code ? ABI_FRAME_COMPILED : 0);
		assert_int_equal(frame->extra, is_code ? 0 : cases[i].position);
		if (!is_code)
			assert_int_equal(frame->b, walk_nodejs_cookie(nodejs_image_guard(&f->im, shared), code));
		free(f);
	}
}

/* The same bytes at the same place may become another function's code: the cookie has the function. */
static void compiled(void **state)
{
	static const __u64 words[] = { 1, 2, 3, 4 };
	uint64_t seen[3];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++) { /* a function, another one, none */
		struct fixture *f = open_fixture(NODEJS_CODE + 64, false);
		uint64_t shared = 0, function = 0;
		const struct abi_frame *frame;

		for (size_t n = 0; n <= i && i < 2; n++)
			function = nodejs_image_function(&f->im, false, &shared);
		nodejs_image_code(&f->im, NODEJS_CODE + 48, words, sizeof(words));
		nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, CONTEXT, function);
		frame = step(f, FP + 16);
		assert_int_equal(frame->a, NODEJS_CODE + 64);
		assert_int_equal(frame->b, walk_nodejs_code_cookie(words, shared, nodejs_image_guard(&f->im, shared)));
		assert_int_equal(frame->flags, ABI_FRAME_COMPILED | ABI_FRAME_RETURN);
		seen[i] = frame->b;
		for (size_t n = 0; n < i; n++)
			assert_int_not_equal(seen[n], seen[i]);
		free(f);
	}
}

/* A function that lies where a forgotten one lay, with its name and its script: the script's number tells. */
static void script_numbers(void **state)
{
	static const uint64_t words[] = { 7ULL << 32, 8ULL << 32, 9, 10, 0 };
	uint64_t seen[ARRAY_SIZE(words) + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seen);
	     i++) { /* the last two: no script can be read, its place is not known */
		struct fixture *f = open_fixture(NODEJS_BUILTINS + 64, false);
		uint64_t shared, function = nodejs_image_function(&f->im, false, &shared);
		uint64_t *script = nodejs_image_at(&f->im, shared + f->im.info.sfi_script);

		if (i < ARRAY_SIZE(words))
			*nodejs_image_at(&f->im, *script - ABI_NODEJS_TAG + f->im.info.script_id) = words[i];
		if (i == ARRAY_SIZE(words))
			*script += NODEJS_PIECE;
		if (i == ARRAY_SIZE(words) + 1)
			f->im.info.script_id = 0;
		nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, CONTEXT, function);
		seen[i] = step(f, FP + 16)->b;
		assert_int_equal(seen[i], walk_nodejs_cookie(nodejs_image_guard(&f->im, shared), 0));
		free(f);
	}
	assert_int_not_equal(seen[0], seen[1]);
	assert_int_not_equal(seen[0], seen[2]);
	assert_int_equal(seen[2], seen[3]); /* no numbers */
	assert_int_equal(seen[2], seen[4]);
	assert_int_not_equal(seen[2], seen[5]); /* the script itself is another one */
	assert_int_equal(seen[2], seen[6]);
}

static void built_in_function(void **state)
{
	(void)state;
	for (int elsewhere = 0; elsewhere < 2; elsewhere++) { /* in a copy that nobody told of */
		struct fixture *f = open_fixture(elsewhere ? NODEJS_CODE + 64 : NODEJS_BUILTINS + 64, false);
		uint64_t shared, function = nodejs_image_function(&f->im, true, &shared);
		const struct abi_frame *frame;

		nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, CONTEXT, function);
		frame = step(f, FP + 16);
		assert_int_equal(frame->a, shared);
		assert_int_equal(frame->extra, ABI_NODEJS_NOWHERE);
		free(f);
	}
}

static void typed(void **state)
{
	static const struct {
		uint64_t type, key;
		uint8_t flags;
	} cases[] = {
		{ 1, 0, ABI_FRAME_INTERNAL },  { 3, 0, ABI_FRAME_INTERNAL },
		{ 17, 0, ABI_FRAME_INTERNAL }, { 27, ABI_NODEJS_REGEXP, 0 },
		{ 63, 0, ABI_FRAME_INTERNAL }, { 25, 0, ABI_FRAME_INTERNAL }, /* a built-in's exit without a function */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f = open_fixture(NODEJS_BUILTINS + 64, false);
		const struct abi_frame *frame;

		nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, cases[i].type << 1, 0);
		frame = step(f, FP + 16);
		assert_int_equal(frame->a, cases[i].key);
		assert_int_equal(frame->b, ABI_NODEJS_PLAIN);
		assert_int_equal(frame->flags, cases[i].flags | ABI_FRAME_RETURN);
		free(f);
	}
}

/* WebAssembly's code is known by its address, its cookie says that it is no JavaScript. */
static void wasm(void **state)
{
	static const __u64 words[] = { 1, 2, 3, 4 };

	(void)state;
	for (int has_code = 0; has_code < 2; has_code++) {
		struct fixture *f = open_fixture(has_code ? NODEJS_CODE + 64 : NODEJS_CODE + 2 * NODEJS_PIECE, false);
		const struct abi_frame *frame;

		nodejs_image_code(&f->im, NODEJS_CODE + 48, words, sizeof(words));
		nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, 4 << 1, 0);
		frame = step(f, FP + 16);
		assert_int_equal(frame->a, has_code ? NODEJS_CODE + 64 : NODEJS_CODE + 2 * NODEJS_PIECE);
		assert_int_equal(frame->flags, ABI_FRAME_COMPILED | ABI_FRAME_RETURN);
		assert_int_equal(frame->b, has_code ? walk_nodejs_code_cookie(words, ABI_NODEJS_WASM, 0) : 0);
		assert_int_not_equal(frame->b, walk_nodejs_code_cookie(words, 0, 0));
		free(f);
	}
}

static void built_in_exit(void **state)
{
	struct fixture *f = open_fixture(NODEJS_BUILTINS + 64, false);
	uint64_t shared, function = nodejs_image_function(&f->im, true, &shared);
	const struct abi_frame *frame;

	(void)state;
	nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, 25 << 1, 0);
	*nodejs_image_at(&f->im, FP + 24) = function;
	frame = step(f, FP + 16);
	assert_int_equal(frame->a, shared);
	free(f);
}

/* A collector that moved the SharedFunctionInfo left its new place. */
static void moved(void **state)
{
	struct fixture *f = open_fixture(NODEJS_BUILTINS + 64, false);
	uint64_t shared, now, function = nodejs_image_function(&f->im, false, &shared);
	const struct abi_frame *frame;

	(void)state;
	(void)nodejs_image_function(&f->im, false, &now);
	*nodejs_image_at(&f->im, shared) = now;
	nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, CONTEXT, function);
	frame = step(f, FP + 16);
	assert_int_equal(frame->a, now);
	free(f);
}

struct top_case {
	const char *name;
	uint8_t code[24];      /* before is what lies in front of pc */
	uint8_t before, words; /* words between sp and the return address; 9: the frame is made */
	bool is_behind;        /* the frame that was there says which function it is; else a register */
};

static const struct top_case tops[] = {
	{ "ret", { 0xc3 }, 0, 0, true },
	{ "ret with arguments", { 0xc2, 8, 0 }, 0, 0, true },
	{ "before the push", { 0x90, 0x90, 0x55, 0x48, 0x89, 0xe5 }, 0, 0 },
	{ "at the push", { 0x55, 0x48, 0x89, 0xe5 }, 0, 0 },
	{ "behind the push", { 0x55, 0x48, 0x89, 0xe5 }, 1, 1 },
	{ "behind the move", { 0x55, 0x48, 0x89, 0xe5, 0x56, 0x57 }, 4, 1 },
	{ "behind more", { 0x55, 0x48, 0x89, 0xe5, 0x56, 0x57, 0x90 }, 6, 9 },
	{ "before the pop", { 0x48, 0x8b, 0xe5, 0x5d, 0x90 }, 3, 9 },
	{ "behind the pop", { 0x48, 0x8b, 0xe5, 0x5d, 0x90, 0x90, 0xc2, 8, 0 }, 4, 0, true },
	{ "in the middle", { 0x90 }, 0, 9 },
};

static const uint8_t call_code[] = { 0xe8, 0, 0, 0, 0 };

static void at_the_edges(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tops); i++) {
		const struct top_case *c = &tops[i];
		struct fixture *f = open_fixture(NODEJS_CODE + 512, true);
		uint64_t ret = NODEJS_CODE + 1024, shared, function = nodejs_image_function(&f->im, false, &shared);
		__u64 code[WALK_NODEJS_CODE_COOKIE];

		print_message("  %s\n", c->name);
		f->walk.leaf[WALK_NODEJS_RDI] = c->is_behind ? 1 : function;
		nodejs_image_code(&f->im, NODEJS_CODE + 512 - c->before, c->code, sizeof(c->code));
		nodejs_image_code(&f->im, ret - sizeof(call_code), call_code, sizeof(call_code));
		if (c->words == 9) {
			nodejs_image_frame(&f->im, FP, CALLER_FP, ret, CONTEXT, function);
		} else {
			f->walk.fp = c->words ? FP : CALLER_FP;
			*nodejs_image_at(&f->im, f->walk.sp) = CALLER_FP;
			*nodejs_image_at(&f->im, f->walk.sp - 24) = c->is_behind ? function : 1;
			*nodejs_image_at(&f->im, f->walk.sp + c->words * 8) = ret;
		}
		assert_int_equal(walk_nodejs_step(&f->walk, &f->im.info), WALK_MORE);
		assert_int_equal(f->walk.pc, ret);
		assert_int_equal(f->walk.fp, CALLER_FP);
		assert_int_equal(f->walk.sp, c->words == 9 ? FP + 16 : FP - 128 + c->words * 8 + 8);
		assert_int_equal(f->walk.frames[0].a, NODEJS_CODE + 512);
		assert_int_equal(f->walk.frames[0].flags, ABI_FRAME_COMPILED);
		memcpy(code, (uint8_t *)nodejs_image_at(&f->im, NODEJS_CODE + 512) - WALK_NODEJS_CODE_BEFORE,
		       sizeof(code));
		assert_int_equal(f->walk.frames[0].b,
				 walk_nodejs_code_cookie(code, shared, nodejs_image_guard(&f->im, shared)));
		free(f);
	}
}

/* A tick between the pushes of context and function: below sp lies the function of an older frame. */
static void between_the_pushes(void **state)
{
	static const uint8_t push[] = { 0x55, 0x48, 0x89, 0xe5, 0x56, 0x57, 0x90, 0x90 };
	struct fixture *f = open_fixture(NODEJS_CODE + 512, true);
	uint64_t shared, function = nodejs_image_function(&f->im, false, &shared);
	__u64 code[WALK_NODEJS_CODE_COOKIE];

	(void)state;
	nodejs_image_code(&f->im, NODEJS_CODE + 512 - 5, push, sizeof(push));
	nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, CONTEXT, CONTEXT);
	f->walk.sp = FP - 8;
	f->walk.leaf[WALK_NODEJS_RDI] = function;
	(void)step(f, FP + 16);
	memcpy(code, (uint8_t *)nodejs_image_at(&f->im, NODEJS_CODE + 512) - WALK_NODEJS_CODE_BEFORE, sizeof(code));
	assert_int_equal(f->walk.frames[0].b,
			 walk_nodejs_code_cookie(code, shared, nodejs_image_guard(&f->im, shared)));
	free(f);
}

/* Code that functions share is told from other code whatever function a frame of it is of. */
static void code_without_a_function(void **state)
{
	const __u64 code[] = { 1, 2, 3, 4 }, other[] = { 1, 2, 3, 5 };

	(void)state;
	for (__u64 shared = 0; shared < 3; shared++) {
		assert_true(walk_nodejs_same_code(code, walk_nodejs_code_cookie(code, shared, 7)));
		assert_false(walk_nodejs_same_code(other, walk_nodejs_code_cookie(code, shared, 7)));
	}
	assert_int_not_equal(walk_nodejs_code_cookie(code, 1, 7), walk_nodejs_code_cookie(code, 2, 7));
	assert_int_not_equal(walk_nodejs_code_cookie(code, 1, 7), walk_nodejs_code_cookie(code, 1, 8));
}

/* What looks like a function's end is believed only when the word at sp is a return address. */
static void ret_without_a_caller(void **state)
{
	static const uint8_t ret_code[] = { 0xc3 };
	struct fixture *f = open_fixture(NODEJS_CODE + 512, true);
	uint64_t shared, function = nodejs_image_function(&f->im, false, &shared);

	(void)state;
	nodejs_image_code(&f->im, NODEJS_CODE + 512, ret_code, sizeof(ret_code));
	nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, CONTEXT, function);
	*nodejs_image_at(&f->im, f->walk.sp) = NODEJS_HEAP + 1;
	(void)step(f, FP + 16);
	free(f);
}

static void no_frame(void **state)
{
	static const struct {
		uint64_t fp, marker, pc;
	} cases[] = {
		{ FP + 4, CONTEXT, NATIVE },            /* not aligned */
		{ FP - 256, CONTEXT, NATIVE },          /* below sp */
		{ FP, 0, NATIVE },                      /* no type */
		{ FP, 3, NATIVE },                      /* neither a type nor an object */
		{ FP, 64 << 1, NATIVE },                /* no such type */
		{ FP, CONTEXT, 17 },                    /* no code */
		{ FP + NODEJS_PIECE, CONTEXT, NATIVE }, /* nothing there */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f = open_fixture(NODEJS_BUILTINS + 64, false);

		nodejs_image_frame(&f->im, FP, CALLER_FP, cases[i].pc, cases[i].marker, 0);
		f->walk.fp = cases[i].fp;
		assert_int_equal(walk_nodejs_step(&f->walk, &f->im.info), WALK_SWITCH);
		assert_int_equal(f->walk.count, 0);
		free(f);
	}
}

/* A context, but no function: a stub among built-ins, code elsewhere. A function that cannot be read is there all the
 * same: its frame is shown as lost, for which it has no cookie. */
static void no_function(void **state)
{
	static const struct {
		uint64_t function;
		bool is_lost;
	} functions[] = {
		{ 0, false },
		{ 1, false },
		{ NODEJS_HEAP, false },
		{ NODEJS_HEAP + 1, true }, /* it has no SharedFunctionInfo */
		{ NODEJS_STACK + NODEJS_PIECE + 1, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		struct fixture *f = open_fixture(NODEJS_BUILTINS + 64, false);

		const struct abi_frame *frame;

		nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, CONTEXT, functions[i].function);
		frame = step(f, FP + 16);
		assert_int_equal(frame->flags,
				 functions[i].is_lost ? ABI_FRAME_RETURN : ABI_FRAME_INTERNAL | ABI_FRAME_RETURN);
		assert_int_equal(frame->b, functions[i].is_lost ? 0 : ABI_NODEJS_PLAIN);
		assert_int_equal(frame->extra, ABI_NODEJS_NOWHERE);
		free(f);
	}
}

/* Up to V8 9 an isolate has maps of its own: objects of the others are known by the type that their map says. */
static void other_isolate(void **state)
{
	static const struct {
		uint16_t asked, sfi, bytecode; /* types; asked 0: all isolates have one map */
		bool is_known, has_position;
	} cases[] = {
		{ 100, 100, 101, true, true },
		{ 100, 100, 7, true, false },
		{ 100, 101, 101, false, false },
		{ 0, 100, 101, false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f = open_fixture(NODEJS_BUILTINS + 64, false);
		uint64_t shared, function = nodejs_image_function(&f->im, false, &shared);
		uint64_t bytecode = nodejs_image_bytecode(&f->im), maps = NODEJS_HEAP + 2048;
		const struct abi_frame *frame;

		f->im.info.type_sfi = cases[i].asked;
		f->im.info.type_bytecode = 101;
		*nodejs_image_at(&f->im, shared) = maps + ABI_NODEJS_TAG;
		*nodejs_image_at(&f->im, bytecode - ABI_NODEJS_TAG) = maps + 64 + ABI_NODEJS_TAG;
		*nodejs_image_at(&f->im, maps + 8) = (uint64_t)cases[i].sfi << 32;
		*nodejs_image_at(&f->im, maps + 64 + 8) = (uint64_t)cases[i].bytecode << 32 | 0xffff000000000000;
		nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, CONTEXT, function);
		*nodejs_image_at(&f->im, FP - 32) = bytecode;
		*nodejs_image_at(&f->im, FP - 40) = (uint64_t)(53 + 12) << 32;
		frame = step(f, FP + 16);
		assert_int_equal(frame->a, cases[i].is_known ? shared : 0);
		assert_int_equal(!frame->b, !cases[i].is_known);
		assert_int_equal(frame->extra, cases[i].has_position ? 12 : ABI_NODEJS_NOWHERE);
		free(f);
	}
}

/* Behind the last object of a page that is in memory nothing can be read. */
static void last_of_its_page(void **state)
{
	struct fixture *f = open_fixture(NODEJS_BUILTINS + 64, false);
	uint64_t shared, function;

	(void)state;
	f->im.heap_used = NODEJS_PIECE - 64 - 72 - ABI_NODEJS_SFI_BYTES;
	function = nodejs_image_function(&f->im, false, &shared);
	assert_int_equal(shared + ABI_NODEJS_SFI_BYTES, NODEJS_HEAP + NODEJS_PIECE);
	nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, CONTEXT, function);
	assert_int_equal(step(f, FP + 16)->a, shared);
	free(f);
}

static void full_record(void **state)
{
	struct fixture *f = open_fixture(NODEJS_BUILTINS + 64, false);

	(void)state;
	nodejs_image_frame(&f->im, FP, CALLER_FP, NATIVE, 2, 0);
	f->walk.count = ABI_FRAMES_MAX;
	assert_int_equal(walk_nodejs_step(&f->walk, &f->im.info), WALK_DONE);
	assert_int_equal(f->walk.end, ABI_END_FRAME_LIMIT);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wasm),
		cmocka_unit_test(interpreted),
		cmocka_unit_test(interpreter_elsewhere),
		cmocka_unit_test(baseline),
		cmocka_unit_test(compiled),
		cmocka_unit_test(built_in_function),
		cmocka_unit_test(typed),
		cmocka_unit_test(built_in_exit),
		cmocka_unit_test(moved),
		cmocka_unit_test(at_the_edges),
		cmocka_unit_test(between_the_pushes),
		cmocka_unit_test(code_without_a_function),
		cmocka_unit_test(ret_without_a_caller),
		cmocka_unit_test(no_frame),
		cmocka_unit_test(no_function),
		cmocka_unit_test(last_of_its_page),
		cmocka_unit_test(other_isolate),
		cmocka_unit_test(full_record),
		cmocka_unit_test(script_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
