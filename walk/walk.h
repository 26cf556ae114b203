/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The state of one stack walk and the world it reads. Steps live in walk_*.h and are compiled twice: into BPF, where
 * the state is the element of a per-CPU map, and for the host, where a struct walk_world does the reading. A step
 * pushes one frame and moves to its caller; loops live in the shells, never here. */
#pragma once

#include "abi/abi.h"
#include "abi/runtimes.h"
#include "abi/unwind.h"

#if !defined(WALK_X86_64) && !defined(WALK_AARCH64)
#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#define WALK_X86_64 1
#elif defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#define WALK_AARCH64 1
#else
#error "no walker for this architecture"
#endif
#endif

/* Addresses that a process can have. */
#define WALK_USER_MIN 4096ULL
#ifdef WALK_X86_64
#define WALK_USER_MAX 0x00ffffffffffffffULL /* five-level page tables: 56 bits for user space */
#else
#define WALK_USER_MAX 0x000fffffffffffffULL /* 52 bits */
#endif

/* leaf[] is indexed by DWARF register number: x86-64 psABI figure 3.36, AArch64 DWARF section 4.1. */
#define WALK_REGS ABI_REGS
#ifdef WALK_X86_64
#define WALK_REG_FP 6
#define WALK_REG_SP 7
#define WALK_REG_PC 16
#else
#define WALK_REG_FP 29
#define WALK_REG_LR 30
#define WALK_REG_SP 31
#define WALK_REG_PC 32
#endif

#define WALK_WINDOW 512   /* bytes of stack fetched at once */
#define WALK_UNWINDERS 16 /* native and the language runtimes: enum abi_runtime */
#define WALK_INFO 512     /* RUNTIME_INFO_MAX */

enum walk_next {
	WALK_MORE,   /* a frame was pushed, the same walker goes on */
	WALK_SWITCH, /* native: pc lies in code of w->unwinder, whose turn it is. In line: this is not its code after
			all */
	WALK_DONE,   /* w->end says why */
};

/* How a walk finds its next frame. */
enum walk_mode {
	WALK_AUTO = 0, /* unwind rows; where a file has none, and in JIT code, frame pointers, marked as guessed */
	WALK_FP,       /* frame pointers only */
	WALK_TABLE,    /* unwind rows only */
};

#ifndef __bpf__
struct walk;

struct walk_world {
	/** read - Return: 0 when all @size bytes were copied, otherwise anything else; @dst is undefined then. */
	int (*read)(void *self, void *dst, __u32 size, __u64 at);
	/** find_map - the mapping that covers @pc. Return: 0, otherwise anything else; @out is undefined then. */
	int (*find_map)(void *self, __u64 pc, struct abi_map *out);
	/** table - what element() takes for table number @number. NULL: it is not loaded. May load it. */
	const void *(*table)(void *self, __u32 number);
	/** element - Return: borrowed until the next call of table(), or NULL outside of the table. */
	const union abi_element *(*element)(void *self, const void *table, __u32 index);
	void *self;
	/** in_line - one step of runtime w->unwinder, in whose code pc lies; what it returns walk_stepped() judges.
	 * NULL: no ranges of code are known. */
	enum walk_next (*in_line)(void *self, struct walk *w);
	int is_late; /* the stack is a copy, and the rest of memory that of a later moment */
};
#endif

struct walk_before { /* a step of a runtime in line */
	__u64 pc, sp;
	__u32 count;
};

struct walk {
	__u64 leaf[WALK_REGS]; /* all registers at the tick: valid for the top frame only */
	__u64 pc, sp, fp, lr;
	__u64 window_at;   /* stack address of window[0] */
	__u32 pid, count;  /* frames[0 .. count) are filled, kernel frames first */
	__u32 window_size; /* bytes of window[] that are valid: 0 or WALK_WINDOW */
	__u32 read_failures;
	__u8 unwinder, end;
	__u8 is_return;      /* pc is a return address */
	__u8 is_leaf;        /* the registers are those of the tick (or of a signal), not of a caller */
	__u8 guessed;        /* the next frame pushed was found by a rule that can be wrong */
	__u8 at_signal;      /* pc is the kernel's return point of a signal handler */
	__u8 mode;           /* enum walk_mode */
	__u8 leaf_is_return; /* is_return where leaf[] holds */
	__u32 space;         /* of the process, see struct abi_space; 0: not known (BPF only) */
	/* ---- of a runtime's frames: frames[count .. count + runtime_count), after the native walk ---- */
	__u32 runtime_count;
	__u64 recent; /* what marks the rows looked up before as this space's; 0: none are kept (BPF only) */
	__u64 tp;     /* the thread pointer; 0: not known */
	__u32 tid;    /* as the thread itself knows it; 0: not known */
	__u8 runtime_end;
	__u8 others_end;    /* runtime_end of the runtimes that were walked before this one: walk_set_aside() */
	__u16 behind;       /* bits by enum abi_runtime: what may have frames behind the native ones (BPF only) */
	__u32 others_count; /* runtime_count of those; their frames are among the first w->count meanwhile */
	__u32 leaf_count;   /* frames that were there before the one that leaf[] belongs to */
	/* ---- of runtimes whose frames are native ones ---- */
	__u16 range_count; /* <= ABI_CODE_RANGES */
	__u8 info_of;      /* enum abi_runtime: whose is info[]; 0: nobody's yet */
	__u8 passed;       /* the code at pc lies in a range, but the runtime says that it is not its own */
	__u8 leapt;        /* the caller's frame lies elsewhere than on this stack */
	__u8 in_line;      /* the native walk takes the steps of runtimes in their ranges */
	struct abi_code_range ranges[ABI_CODE_RANGES];
	__u64 info[WALK_INFO / 8]; /* what the walker knows of the process: its struct of abi/ */
	struct walk_before before; /* not on BPF's stack, which is short */
	struct abi_map map;        /* that of the last frame, which is mostly that of the next; kind NONE: none yet */
	__u64 state[WALK_UNWINDERS][8]; /* each walker overlays its own struct */
	__u64 window[WALK_WINDOW / 8];
	__u64 scratch[512]; /* in BPF also where the kernel stack and the registers arrive */
#ifndef __bpf__
	const struct walk_world *world;
#endif
	__u64 head[sizeof(struct abi_sample) / 8]; /* so that record and frames are sent in one piece */
	struct abi_frame frames[ABI_FRAMES_MAX];
};

_Static_assert(sizeof(struct walk) <= 32768, "one element of a per-CPU map is 32 KiB at most");
_Static_assert(sizeof(struct abi_sample) % 8 == 0, "frames follow the head without a gap");
_Static_assert(__builtin_offsetof(struct walk, frames) ==
		       __builtin_offsetof(struct walk, head) + sizeof(struct abi_sample),
	       "the record is sent in one piece");
_Static_assert(ABI_KERNEL_FRAMES_MAX <= 256, "the kernel stack fits scratch");

#ifdef __bpf__
#define WALK_FN static __always_inline
#define walk_read(w, dst, size, at) bpf_probe_read_user((dst), (size), (const void *)(at))
/* Hides a value's history, so that the verifier does not follow every value it could have. */
#define walk_opaque(x) asm volatile("" : "+r"(x))
#define walk_knows_process(w) ((w)->space != 0)
#define walk_is_late(w) 0
/* walk_find_map(w, pc), walk_table(w, number) and walk_element(w, table, index) are in bpf/unwind.h,
 * walk_recall(w, at, row) and walk_remember(w, at, row) in bpf/recent.h. */
#else
#define WALK_FN static inline
#define walk_read(w, dst, size, at) (w)->world->read((w)->world->self, (dst), (size), (at))
#define walk_opaque(x) ((void)0)
#define walk_knows_process(w) 1
#define walk_is_late(w) ((w)->world->is_late)
#define walk_find_map(w, pc) (w)->world->find_map((w)->world->self, (pc), &(w)->map)
#define walk_table(w, number) (w)->world->table((w)->world->self, (number))
#define walk_recall(w, at, row) 0
#define walk_remember(w, at, row) ((void)0)
#define walk_element(w, table, index) (w)->world->element((w)->world->self, (table), (index))
#endif

WALK_FN struct abi_sample *walk_sample(struct walk *w)
{
	return (struct abi_sample *)w->head;
}

/* How far the frame at w->sp lies from the stack's top at the tick, in words: what puts runtime frames between native
 * ones. What lies below (another stack) is as far as can be. */
WALK_FN __u32 walk_distance(struct walk *w)
{
	__u64 words = (w->sp - walk_sample(w)->stack_pointer) >> 3;

	return words > 0xffffffff ? 0xffffffff : (__u32)words;
}

/** walk_push - add a user frame; Return: 0, or 1 when the record is full, with w->end set. */
WALK_FN int walk_push(struct walk *w, __u8 kind, __u8 flags, __u64 address)
{
	__u32 at = w->count;
	struct abi_frame *frame;

	if (at >= ABI_FRAMES_MAX) {
		w->end = ABI_END_FRAME_LIMIT;
		return 1;
	}
	frame = &w->frames[at];
	frame->kind = kind;
	frame->flags = flags;
	frame->runtime = 0;
	frame->extra = walk_distance(w);
	frame->a = address;
	frame->b = 0;
	w->count = at + 1;
	return 0;
}

/* ---- runtimes whose frames are native ones ---- */

/** walk_in_runtime - does pc lie in code of a runtime? w->unwinder says of which one. */
WALK_FN int walk_in_runtime(struct walk *w)
{
	__u64 at = w->pc - (w->is_return ? 1 : 0);

	w->unwinder = 0;
	if (w->passed) {
		w->passed = 0;
		return 0;
	}
	for (__u32 i = 0; i < ABI_CODE_RANGES; i++) {
		if (i >= w->range_count)
			break;
		if (at - w->ranges[i].low < w->ranges[i].size) {
			w->unwinder = (__u8)w->ranges[i].runtime;
			return 1;
		}
	}
	return 0;
}

/** walk_has_code - is there code that the compiler of @runtime made? */
WALK_FN int walk_has_code(const struct walk *w, __u32 runtime)
{
	for (__u32 i = 0; i < ABI_CODE_RANGES; i++)
		if (i < w->range_count && w->ranges[i].runtime == runtime)
			return 1;
	return 0;
}

/** walk_in_code - does such code lie at @pc? */
WALK_FN int walk_in_code(const struct walk *w, __u32 runtime, __u64 pc)
{
	for (__u32 i = 0; i < ABI_CODE_RANGES; i++)
		if (i < w->range_count && w->ranges[i].runtime == runtime && pc - w->ranges[i].low < w->ranges[i].size)
			return 1;
	return 0;
}

/** walk_push_in_line - add the frame at pc as a frame of @runtime; Return: it, or NULL when the record is full, with
 * w->end set. @flags: beside RETURN and GUESSED, which come from the walk. The caller fills extra, a and b. */
WALK_FN struct abi_frame *walk_push_in_line(struct walk *w, __u16 runtime, __u8 flags)
{
	__u32 at = w->count;
	struct abi_frame *frame;

	if (at >= ABI_FRAMES_MAX) {
		w->end = ABI_END_FRAME_LIMIT;
		return 0;
	}
	frame = &w->frames[at];
	frame->kind = ABI_FRAME_RUNTIME;
	frame->flags = (__u8)(flags | (w->is_return ? ABI_FRAME_RETURN : 0) | (w->guessed ? ABI_FRAME_GUESSED : 0));
	frame->runtime = runtime;
	w->count = at + 1;
	return frame;
}

/** walk_move_in_line - to the caller of a frame of a runtime */
WALK_FN void walk_move_in_line(struct walk *w, __u64 pc, __u64 sp, __u64 fp)
{
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	w->is_leaf = 0;
	w->is_return = 1;
	w->at_signal = 0;
	w->guessed = 0;
}

/* Before a step of a runtime in line. */
WALK_FN void walk_begin_step(struct walk *w)
{
	w->before.pc = w->pc;
	w->before.sp = w->sp;
	w->before.count = w->count;
}

/** walk_stepped - what comes behind a step of a runtime in line that returned @next
 * Each step has to move towards the root. Code that is not the runtime's is left to the native rules. */
WALK_FN enum walk_next walk_stepped(struct walk *w, enum walk_next next)
{
	const struct walk_before *before = &w->before;

	if (next == WALK_SWITCH && w->count == before->count && w->sp == before->sp && w->pc == before->pc) {
		w->passed = 1;
		return WALK_MORE;
	}
	if (next == WALK_DONE)
		return WALK_DONE;
	if (w->leapt && next == WALK_MORE && w->count > before->count) { /* what a full record ends */
		w->leapt = 0;
		return WALK_MORE;
	}
	if (next != WALK_MORE || w->sp < before->sp || (w->sp == before->sp && w->pc == before->pc)) {
		w->end = ABI_END_NO_PROGRESS;
		return WALK_DONE;
	}
	return WALK_MORE;
}

/** walk_push_runtime - add a frame behind all native ones; Return: it, or NULL when the record is full, with
 * w->runtime_end set. Its fields but kind and runtime are the caller's to fill. */
WALK_FN struct abi_frame *walk_push_runtime(struct walk *w, __u8 kind, __u16 runtime)
{
	__u64 at = (__u64)w->count + w->runtime_count;
	struct abi_frame *frame;

	if (at >= ABI_FRAMES_MAX) {
		w->runtime_end = ABI_RUNTIME_END_FRAME_LIMIT;
		return 0;
	}
	frame = &w->frames[at];
	frame->kind = kind;
	frame->runtime = runtime;
	w->runtime_count++;
	return frame;
}

/* ---- several runtimes in one process, walked behind the native frames one after the other ---- */

/** walk_set_aside - before a runtime's walk: frames that others have behind the native ones count as native meanwhile,
 * so that each walker finds runtime_count 0 and may take its own frames back. walk_put_back() belongs to it. */
WALK_FN void walk_set_aside(struct walk *w)
{
	w->others_count = w->runtime_count;
	w->others_end = w->runtime_end;
	w->count += w->runtime_count;
	w->runtime_count = 0;
	w->runtime_end = ABI_RUNTIME_END_NONE;
}

/** walk_put_back - behind it: all runtimes' frames together, and one end for them
 * A thread mostly runs the code of one. Where it runs that of two, nothing says whose frames called whose. */
WALK_FN void walk_put_back(struct walk *w)
{
	__u8 end = w->runtime_end, others = w->others_end;

	if (!w->runtime_count && (end == ABI_RUNTIME_END_NONE || end == ABI_RUNTIME_END_NO_STATE)) {
		if (others != ABI_RUNTIME_END_NONE)
			end = others;
	} else if (others != ABI_RUNTIME_END_NONE && (w->others_count || others != ABI_RUNTIME_END_NO_STATE)) {
		end = ABI_RUNTIME_END_UNPAIRED;
	}
	w->runtime_end = end;
	w->count -= w->others_count;
	w->runtime_count += w->others_count;
	w->others_count = 0;
}
