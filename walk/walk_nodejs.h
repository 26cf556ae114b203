/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* One step of the walk through frames of V8: JavaScript code, built-ins and stubs, which stand among the native frames.
 * All of this code keeps frame pointers; what lies below them says what kind of frame it is:
 *
 *	[fp + 8]   return address
 *	[fp]       caller's frame pointer
 *	[fp - 8]   type of the frame << 1; or, in frames of JavaScript functions, a context, which has a tag
 *	[fp - 16]  JSFunction -> SharedFunctionInfo
 *	[fp - 32]  BytecodeArray, when the interpreter runs the function (or a baseline frame)
 *	[fp - 40]  where in the bytecode, a small integer (baseline: not one)
 *
 * A frame in compiled code that is not baseline is known by its address and the bytes of code around it: the host finds
 * the code object and the functions that were inlined. Others are known by their SharedFunctionInfo. A JSFunction may
 * move or be freed within milliseconds, so nothing of it leaves the tick. The script's number tells functions apart
 * that came to lie where forgotten ones lay, with their names and scripts: V8 gives each script a new one.
 *
 * Source: V8, src/execution/frame-constants.h, src/execution/x64/frame-constants-x64.h; x86-64 only. */
#pragma once

#include "abi/nodejs.h"
#include "walk/walk_fp.h"

#define WALK_NODEJS_RDI 5 /* the JSFunction at a function's first instruction */

#define WALK_NODEJS_FRAME_BELOW 48 /* bytes below fp that are read with the frame */
#define WALK_NODEJS_FRAME_BYTES 96
#define WALK_NODEJS_CODE_BEFORE 16
#define WALK_NODEJS_CODE_BYTES 48
#define WALK_NODEJS_CODE_COOKIE 4                /* words of the code that make its cookie */
#define WALK_NODEJS_GUARD ABI_NODEJS_SFI_WORDS   /* of scratch: behind a SharedFunctionInfo walk_nodejs_guard() */
#define WALK_NODEJS_NEXT (WALK_NODEJS_GUARD + 1) /* what is read after it */
#define WALK_NODEJS_KEPT 16                      /* behind all of these */

#define WALK_NODEJS_PUSH 0xe5894855U       /* push %rbp; mov %rsp,%rbp */
#define WALK_NODEJS_POP 0x5de58b48U        /* mov %rbp,%rsp; pop %rbp, as V8 writes it */
#define WALK_NODEJS_AHEAD 24               /* bytes in front of the frame's making: checks of the code's first lines */
#define WALK_NODEJS_FRAME_MAX (1ULL << 20) /* bytes from sp to fp */

struct walk_nodejs_frame { /* what a frame says of itself */
	__u64 pc, fp, sp;  /* of the caller */
	__u64 marker, function, bytecode_array, bytecode_offset, target;
	__u8 has_frame; /* the code's frame is made: what is behind sp is valid */
};

WALK_FN __u64 walk_nodejs_mix(__u64 hash, __u64 word)
{
	hash ^= word;
	hash *= 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */
	return hash ^ hash >> 29;
}

WALK_FN int walk_nodejs_is_object(__u64 word)
{
	return (word & 3) == ABI_NODEJS_TAG && word > WALK_USER_MIN && word <= WALK_USER_MAX;
}

/* Is the object whose first word is @map, of which one isolate has @known, of @type? */
WALK_FN int walk_nodejs_has_type(struct walk *w, __u64 map, __u64 known, __u16 type)
{
	__u16 found = 0;

	if (map == known)
		return 1;
	return type && walk_nodejs_is_object(map) &&
	       !walk_read(w, &found, sizeof(found), map - ABI_NODEJS_TAG + ABI_NODEJS_MAP_TYPE) && found == type;
}

/** walk_nodejs_id_at - where the number lies of the script of a SharedFunctionInfo with @words; 0: it has none. It may
 * have an object of another type there, DebugInfo: then what is read is no number, or one that stays. */
WALK_FN __u64 walk_nodejs_id_at(const struct abi_nodejs *info, const __u64 *words)
{
	__u64 script = words[info->sfi_script / 8 & 7];

	return info->script_id && walk_nodejs_is_object(script) ? script - ABI_NODEJS_TAG + info->script_id : 0;
}

/** walk_nodejs_guard - what tells a SharedFunctionInfo with @words from another at the same address; @id: what was read
 * of its script, 0: nothing */
WALK_FN __u64 walk_nodejs_guard(const struct abi_nodejs *info, const __u64 *words, __u64 id)
{
	__u64 hash = walk_nodejs_mix(0x6e6f6465, words[info->sfi_name / 8 & 7]);

	return walk_nodejs_mix(walk_nodejs_mix(hash, words[info->sfi_script / 8 & 7]), (__u32)id ? 0 : id);
}

/** walk_nodejs_cookie - the same of a frame of it; @data: what it has of its baseline code, or 0; never 0 */
WALK_FN __u64 walk_nodejs_cookie(__u64 guard, __u64 data)
{
	__u64 hash = walk_nodejs_mix(guard, data);

	return hash ? hash : 1;
}

/** walk_nodejs_code_cookie - the same of compiled code: in its low half by WALK_NODEJS_CODE_COOKIE words from pc -
 * CODE_BEFORE on, in its high half by its function: other functions' code may have the same bytes. @shared: where its
 * SharedFunctionInfo lies; 0: it has none that is known; @guard: walk_nodejs_guard() of that */
WALK_FN __u64 walk_nodejs_code_cookie(const __u64 *words, __u64 shared, __u64 guard)
{
	__u64 hash = 0x636f6465, function = 0;

	for (int i = 0; i < WALK_NODEJS_CODE_COOKIE; i++)
		hash = walk_nodejs_mix(hash, words[i]);
	if (shared)
		function = walk_nodejs_mix(walk_nodejs_mix(hash, shared), guard);
	hash = function << 32 | (__u32)hash;
	return hash ? hash : 1;
}

/** walk_nodejs_same_code - is that the same code, whatever function @cookie is of? */
WALK_FN int walk_nodejs_same_code(const __u64 *words, __u64 cookie)
{
	return (__u32)walk_nodejs_code_cookie(words, 0, 0) == (__u32)cookie;
}

/** walk_nodejs_is_builtin - does @at, an address that a process can have, lie in a copy of V8's built-in code?
 * The last copy that does not begin behind it is found by halves, without branches: the verifier follows each. */
WALK_FN int walk_nodejs_is_builtin(const struct abi_nodejs *info, __u64 at)
{
	__u64 i = 0;

#pragma GCC unroll 8
	for (__u64 half = ABI_NODEJS_BUILTINS / 2; half; half /= 2) {
		__s64 mask = (__s64)(info->builtins[i + half] - 1 - at) >> 63;
		__u64 step;

		walk_opaque(mask); /* or the compiler makes a branch of it */
		step = half & (__u64)mask;
		walk_opaque(step); /* or it makes an `or` of the sum: verifiers up to 6.1 forget the bounds, then */
		i += step;         /* in all at most BUILTINS - 1 */
	}
	return at - info->builtins[i] < info->builtins_size;
}

/* ---- the top frame: is its frame made? ---- */

/* Four bytes of @code at @at, which is a constant. */
WALK_FN __u32 walk_nodejs_bytes(const __u64 *code, int at)
{
	__u64 low = code[at / 8] >> at % 8 * 8;

	return (__u32)(at % 8 <= 4 ? low : low | code[at / 8 + 1] << (8 - at % 8) * 8);
}

enum walk_nodejs_top {
	WALK_NODEJS_MADE,   /* fp leads to the caller */
	WALK_NODEJS_AT_SP,  /* the return address is at sp: nothing is made yet */
	WALK_NODEJS_BEHIND, /* the same: the frame is gone, what was in it still lies below sp */
	WALK_NODEJS_PUSHED, /* the caller's fp is at sp, the return address behind it */
};

/* @code: WALK_NODEJS_CODE_BYTES from pc - WALK_NODEJS_CODE_BEFORE on. */
WALK_FN enum walk_nodejs_top walk_nodejs_top(const __u64 *code)
{
	__u32 here = walk_nodejs_bytes(code, WALK_NODEJS_CODE_BEFORE), first = here & 0xff;

	if (first == 0xc3 || first == 0xc2) /* ret; ret $bytes */
		return WALK_NODEJS_BEHIND;
	/* Behind `mov %rsp, %rbp`, too: what says which frame it is comes next, an older one's lies in its place. */
	if (walk_nodejs_bytes(code, WALK_NODEJS_CODE_BEFORE - 1) == WALK_NODEJS_PUSH ||
	    walk_nodejs_bytes(code, WALK_NODEJS_CODE_BEFORE - 4) == WALK_NODEJS_PUSH)
		return WALK_NODEJS_PUSHED;
#pragma GCC unroll 32
	for (int i = 0; i < WALK_NODEJS_AHEAD; i++)
		if (walk_nodejs_bytes(code, WALK_NODEJS_CODE_BEFORE + i) == WALK_NODEJS_PUSH)
			return WALK_NODEJS_AT_SP;
			/* Behind the pop, in front of the return: a comparison of argument counts. */
#pragma GCC unroll 32
	for (int i = 0; i <= WALK_NODEJS_CODE_BEFORE - 4; i++)
		if (walk_nodejs_bytes(code, i) == WALK_NODEJS_POP)
			return WALK_NODEJS_BEHIND;
	return WALK_NODEJS_MADE;
}

/* ---- the frame ---- */

/* One read has all that is asked of a frame. Return: 0, or 1 when it cannot be a frame. */
WALK_FN int walk_nodejs_at_fp(struct walk *w, const struct abi_nodejs *info, struct walk_nodejs_frame *f)
{
	__u64 *words = w->scratch;
	__u32 marker = (__u32)(WALK_NODEJS_FRAME_BELOW + info->fp_marker) / 8,
	      function = (__u32)(WALK_NODEJS_FRAME_BELOW + info->fp_function) / 8,
	      array = (__u32)(WALK_NODEJS_FRAME_BELOW + info->fp_bytecode_array) / 8,
	      offset = (__u32)(WALK_NODEJS_FRAME_BELOW + info->fp_bytecode_offset) / 8,
	      target = (__u32)(WALK_NODEJS_FRAME_BELOW + info->fp_target) / 8;

	if ((w->fp & 7) || w->fp < w->sp || w->fp - w->sp > WALK_NODEJS_FRAME_MAX ||
	    walk_read(w, words, WALK_NODEJS_FRAME_BYTES, w->fp - WALK_NODEJS_FRAME_BELOW))
		return 1;
	f->fp = words[WALK_NODEJS_FRAME_BELOW / 8];
	f->pc = words[WALK_NODEJS_FRAME_BELOW / 8 + 1];
	f->sp = w->fp + 16;
	f->marker = words[marker & 15];
	f->function = words[function & 15];
	f->bytecode_array = words[array & 15];
	f->bytecode_offset = words[offset & 15];
	f->target = words[target & 15];
	f->has_frame = 1;
	/* The context is pushed, the function comes next: an older frame's lies in its place. */
	if (w->is_leaf && !w->is_return && w->fp - w->sp == 8)
		f->function = w->leaf[WALK_NODEJS_RDI];
	return 0;
}

/* The caller of a function whose frame is not made, or not any more. Return: 0, or 1: what lies there is no return
 * address. */
WALK_FN int walk_nodejs_at_sp(struct walk *w, const struct abi_nodejs *info, enum walk_nodejs_top top,
			      struct walk_nodejs_frame *f)
{
	__u64 *words = w->scratch;

	if ((w->sp & 7) || walk_read(w, words, 16, w->sp))
		return 1;
	f->fp = top == WALK_NODEJS_PUSHED ? words[0] : w->fp;
	f->pc = words[top == WALK_NODEJS_PUSHED];
	f->sp = w->sp + (top == WALK_NODEJS_PUSHED ? 16 : 8);
	f->marker = 0;
	f->function = w->leaf[WALK_NODEJS_RDI];
	f->has_frame = 0;
	if (top == WALK_NODEJS_BEHIND && walk_read(w, &f->function, sizeof(f->function), w->sp - 8 + info->fp_function))
		f->function = 0;
	return f->pc < WALK_USER_MIN || f->pc > WALK_USER_MAX || walk_code_before(w, f->pc) != WALK_CODE_CALL;
}

/* ---- what runs in it ---- */

/* The SharedFunctionInfo of @function into @out, untagged, its words and what guards it into w->scratch. A collector
 * that moves it leaves its new address in place of its map. Return: 0, or 1 when there is none. */
WALK_FN int walk_nodejs_shared(struct walk *w, const struct abi_nodejs *info, __u64 function, __u64 *out)
{
	__u64 *words = w->scratch, shared, at, id = 0;

	if (!walk_nodejs_is_object(function) ||
	    walk_read(w, &shared, sizeof(shared), function - ABI_NODEJS_TAG + info->function_shared) ||
	    !walk_nodejs_is_object(shared) || walk_read(w, words, ABI_NODEJS_SFI_BYTES, shared - ABI_NODEJS_TAG))
		return 1;
	if (!walk_nodejs_has_type(w, words[0], info->sfi_map, info->type_sfi)) {
		shared = words[0] + ABI_NODEJS_TAG;
		if (!walk_nodejs_is_object(shared) ||
		    walk_read(w, words, ABI_NODEJS_SFI_BYTES, shared - ABI_NODEJS_TAG) ||
		    !walk_nodejs_has_type(w, words[0], info->sfi_map, info->type_sfi))
			return 1;
	}
	at = walk_nodejs_id_at(info, words);
	if (at && walk_read(w, &id, sizeof(id), at))
		id = 0;
	words[WALK_NODEJS_GUARD] = walk_nodejs_guard(info, words, id);
	*out = shared - ABI_NODEJS_TAG;
	return 0;
}

/* ---- what stands for it ---- */

struct walk_nodejs_what { /* a frame's key and cookie */
	__u64 a, b;
	__u32 extra;
	__u8 flags;
};

/* A frame that a SharedFunctionInfo stands for. */
WALK_FN struct walk_nodejs_what walk_nodejs_function(struct walk *w, __u64 key, __u32 position, __u64 data)
{
	return (struct walk_nodejs_what){ .a = key,
					  .b = walk_nodejs_cookie(w->scratch[WALK_NODEJS_GUARD], data),
					  .extra = position };
}

WALK_FN struct walk_nodejs_what walk_nodejs_plain(__u8 flags, __u64 key)
{
	return (struct walk_nodejs_what){
		.a = key, .b = ABI_NODEJS_PLAIN, .extra = ABI_NODEJS_NOWHERE, .flags = flags
	};
}

/* A function that the frame has, but cannot be read: not in memory, or gone when a copy of the stack is walked. It has
 * no cookie, so nothing is read for it, and it is shown as lost. */
WALK_FN struct walk_nodejs_what walk_nodejs_lost(void)
{
	return (struct walk_nodejs_what){ .extra = ABI_NODEJS_NOWHERE };
}

/* A frame of compiled code; walk_nodejs_push() has its key and cookie. @shared: of its function, whose words lie in
 * w->scratch; 0: it has none that is known; ABI_NODEJS_WASM: w->scratch has a guard of 0. */
WALK_FN struct walk_nodejs_what walk_nodejs_code(__u64 shared)
{
	return (struct walk_nodejs_what){ .a = shared, .flags = ABI_FRAME_COMPILED };
}

/* How far the frame's pc is from the first instruction of compiled code @code, tagged; NOWHERE: it is not in it. */
WALK_FN __u32 walk_nodejs_in_code(struct walk *w, const struct abi_nodejs *info, __u64 code)
{
	__u64 *words = w->scratch + WALK_NODEJS_NEXT, offset;
	__u32 at = info->code_size - ABI_NODEJS_CODE_FROM, size;

	if (!walk_nodejs_is_object(code) ||
	    walk_read(w, words, ABI_NODEJS_CODE_BYTES, code - ABI_NODEJS_TAG + ABI_NODEJS_CODE_FROM))
		return ABI_NODEJS_NOWHERE;
	offset = w->pc - (w->is_return ? 1 : 0) -
		 (info->code_start ? words[0] : code - ABI_NODEJS_TAG + info->stream_start);
	size = (__u32)(words[at / 8 & 3] >> (at & 4) * 8);
	return offset < size ? (__u32)offset : ABI_NODEJS_NOWHERE;
}

enum walk_nodejs_owner {                       /* whose the code at pc is, outside of the built-ins */
			 WALK_NODEJS_COMPILED, /* an optimising compiler's, or nobody knows */
			 WALK_NODEJS_BASELINE,
			 WALK_NODEJS_COPY, /* the interpreter's, copied for a function:
					      --interpreted-frames-native-stack */
};

/* What a function has beside optimised code: its SharedFunctionInfo, whose words lie in w->scratch, has its baseline
 * code, in V8 9 a pair {code, bytecode}, or a pair {BytecodeArray, copy of the interpreter}. */
WALK_FN enum walk_nodejs_owner walk_nodejs_owner(struct walk *w, const struct abi_nodejs *info,
						 const struct walk_nodejs_frame *f, __u32 *at)
{
	__u64 data = w->scratch[info->sfi_data / 8 & 7], *pair = w->scratch + WALK_NODEJS_NEXT;
	__u64 bytecode, copy;

	/* Frames of both have it, and so has a frame that optimised code took over from them in a loop. */
	if (!walk_nodejs_is_object(f->bytecode_array) || !walk_nodejs_is_object(data) ||
	    walk_read(w, pair, 24, data - ABI_NODEJS_TAG))
		return WALK_NODEJS_COMPILED;
	bytecode = pair[1]; /* the next read overwrites them */
	copy = pair[2];
	*at = walk_nodejs_in_code(w, info, info->baseline_pair ? bytecode : data);
	if (*at != ABI_NODEJS_NOWHERE)
		return WALK_NODEJS_BASELINE;
	if (bytecode != f->bytecode_array || walk_nodejs_in_code(w, info, copy) == ABI_NODEJS_NOWHERE)
		return WALK_NODEJS_COMPILED;
	return WALK_NODEJS_COPY;
}

/* Where in its bytecode the interpreter runs a function; NOWHERE: the frame is not the interpreter's. */
WALK_FN __u32 walk_nodejs_position(struct walk *w, const struct abi_nodejs *info, const struct walk_nodejs_frame *f)
{
	__u64 at = (f->bytecode_offset >> 32) + ABI_NODEJS_TAG - info->bytecode_data, map;

	if ((__u32)f->bytecode_offset || at >= ABI_NODEJS_NOWHERE || !walk_nodejs_is_object(f->bytecode_array) ||
	    walk_read(w, &map, sizeof(map), f->bytecode_array - ABI_NODEJS_TAG) ||
	    !walk_nodejs_has_type(w, map, info->bytecode_map, info->type_bytecode))
		return ABI_NODEJS_NOWHERE;
	return (__u32)at;
}

/* A JavaScript function, or a built-in that stands for one. */
WALK_FN struct walk_nodejs_what walk_nodejs_js(struct walk *w, const struct abi_nodejs *info,
					       const struct walk_nodejs_frame *f)
{
	volatile __u64 *is_builtin = &w->scratch[WALK_NODEJS_KEPT]; /* kept in memory: the verifier follows one value */
	__u32 position = ABI_NODEJS_NOWHERE;
	__u64 shared = 0;

	*is_builtin = (__u64)walk_nodejs_is_builtin(info, w->pc - (w->is_return ? 1 : 0));
	/* Of a built-in's first instructions nobody can tell whether they are a function's: a stub. */
	if (!f->has_frame && *is_builtin)
		return walk_nodejs_plain(ABI_FRAME_INTERNAL, 0);
	if (walk_nodejs_shared(w, info, f->function, &shared)) {
		if (!*is_builtin)
			return walk_nodejs_code(0);
		return walk_nodejs_is_object(f->function) ? walk_nodejs_lost()
							  : walk_nodejs_plain(ABI_FRAME_INTERNAL, 0);
	}
	if (!f->has_frame)
		return walk_nodejs_code(shared);
	if (!*is_builtin && w->scratch[info->sfi_data / 8 & 7] & ABI_NODEJS_TAG) {
		enum walk_nodejs_owner owner = walk_nodejs_owner(w, info, f, &position);

		if (owner == WALK_NODEJS_COMPILED)
			return walk_nodejs_code(shared);
		/* The tag tells baseline code's key from the interpreter's. */
		if (owner == WALK_NODEJS_BASELINE)
			return walk_nodejs_function(w, shared + ABI_NODEJS_TAG, position,
						    w->scratch[info->sfi_data / 8 & 7]);
		*is_builtin = 1; /* a copy of the interpreter is as good */
	}
	if (*is_builtin)
		position = walk_nodejs_position(w, info, f);
	return walk_nodejs_function(w, shared, position, 0);
}

WALK_FN struct walk_nodejs_what walk_nodejs_judge(struct walk *w, const struct abi_nodejs *info,
						  const struct walk_nodejs_frame *f)
{
	__u64 type = f->marker >> 1, shared = 0;

	if (!f->has_frame || walk_nodejs_is_object(f->marker))
		return walk_nodejs_js(w, info, f);
	if (type == info->frame_builtin_exit && !walk_nodejs_shared(w, info, f->target, &shared))
		return walk_nodejs_function(w, shared, ABI_NODEJS_NOWHERE, 0);
	if (info->frame_wasm && type == info->frame_wasm) {
		w->scratch[WALK_NODEJS_GUARD] = 0;
		return walk_nodejs_code(ABI_NODEJS_WASM);
	}
	if (info->frame_regexp && type == info->frame_regexp)
		return walk_nodejs_plain(0, ABI_NODEJS_REGEXP);
	return walk_nodejs_plain(ABI_FRAME_INTERNAL, 0);
}

/* Return: 0, or 1 when the record is full. */
WALK_FN int walk_nodejs_push(struct walk *w, const struct abi_nodejs *info, const struct walk_nodejs_frame *f)
{
	struct walk_nodejs_what what = walk_nodejs_judge(w, info, f);
	__u64 *words = w->scratch + WALK_NODEJS_NEXT;
	struct abi_frame *frame;

	/* Compiled code: the address is the key. What is not in memory has no cookie. */
	if (what.flags & ABI_FRAME_COMPILED) {
		if (!walk_read(w, words, WALK_NODEJS_CODE_COOKIE * 8, w->pc - WALK_NODEJS_CODE_BEFORE))
			what.b = walk_nodejs_code_cookie(words, what.a, w->scratch[WALK_NODEJS_GUARD]);
		what.a = w->pc;
	}
	frame = walk_push_in_line(w, ABI_RUNTIME_NODEJS, what.flags);
	if (!frame)
		return 1;
	frame->extra = what.extra;
	frame->a = what.a;
	frame->b = what.b;
	return 0;
}

/** walk_nodejs_step - push the frame at w->pc and move to its caller; SWITCH: this is no frame of V8 */
WALK_FN enum walk_next walk_nodejs_step(struct walk *w, const struct abi_nodejs *info)
{
	enum walk_nodejs_top top = WALK_NODEJS_MADE;
	struct walk_nodejs_frame f = { 0 };

	if (w->is_leaf && !w->is_return &&
	    !walk_read(w, w->scratch, WALK_NODEJS_CODE_BYTES, w->pc - WALK_NODEJS_CODE_BEFORE))
		top = walk_nodejs_top(w->scratch);
	if ((top == WALK_NODEJS_MADE || walk_nodejs_at_sp(w, info, top, &f)) && walk_nodejs_at_fp(w, info, &f))
		return WALK_SWITCH;
	if (f.pc < WALK_USER_MIN || f.pc > WALK_USER_MAX)
		return WALK_SWITCH;
	if (f.has_frame && !walk_nodejs_is_object(f.marker) &&
	    ((f.marker & 1) || !f.marker || f.marker >= 2 * ABI_NODEJS_TYPES_MAX))
		return WALK_SWITCH;
	if (walk_nodejs_push(w, info, &f))
		return WALK_DONE;
	walk_move_in_line(w, f.pc, f.sp, f.fp);
	return WALK_MORE;
}
