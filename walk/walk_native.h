/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* One step of the native walk: by the unwind rows of the file that pc lies in (abi/unwind.h), by frame pointers where
 * there are none, or by frame pointers alone (enum walk_mode).
 *
 *	pc --map--> file, offset --page directory--> elements of that page --search--> row --> CFA, caller's fp and pc
 *
 * A walk that lacks something the host could get (the mappings of the process, this mapping, the rows of this file)
 * ends in front of the frame, with everything as it was: walk_native_resume() goes on from there. */
#pragma once

#include "walk/walk_fp.h"

/* How the step leaves the frame it has pushed: a row, or in its place what the mapping says. */
struct walk_caller {
	__u64 cfa, fp, pc;
};

/* ---- the row ---- */

#define WALK_SEARCH_NEAR 3 /* turns that look where the rows should be and beside it */
#define WALK_SEARCH_TURNS 13

_Static_assert(ABI_PAGE_ROWS_MAX / 8 < 1 << (WALK_SEARCH_TURNS - WALK_SEARCH_NEAR), "a search ends");

/* Where to look next among the elements [left, right). Rows lie about evenly in a page, so the first look is mostly at
 * the right element or next to it. Each look costs a cache line that is not there, so few looks are what counts. */
WALK_FN __u32 walk_search_at(const volatile struct walk_native *search, int turn)
{
	__u32 left = search->left, count = search->right - left;

	if (!turn)
		return left + (count * search->low >> ABI_PAGE_SHIFT);
	if (turn < WALK_SEARCH_NEAR)
		return search->up ? left : left + count - 1;
	return left + count / 2;
}

/* The last of the elements [left, right) whose first row is not above low. NULL: the table is not what it says. */
WALK_FN const union abi_element *walk_find_element(struct walk *w, const void *table)
{
	volatile struct walk_native *search = walk_native_state(w);
	const union abi_element *element, *found = 0;

	for (int turn = 0; turn < WALK_SEARCH_TURNS; turn++) {
		__u32 at;

		if (search->left >= search->right)
			break;
		at = walk_search_at(search, turn);
		element = walk_element(w, table, at);
		if (!element)
			return 0;
		search->up = element->rows[0].low <= search->low;
		if (!search->up) {
			search->right = at;
			continue;
		}
		found = element;
		if (search->low < element->rows[7].low) /* or a filler */
			break;
		search->left = at + 1;
	}
	return found;
}

/* The row in force at @offset; its cfa is INVALID when there is none. Return: 0, or 1 when the table is not loaded: an
 * evicted one is empty, so that no element of it is there. */
WALK_FN int walk_find_row(struct walk *w, __u64 offset, struct abi_row *out)
{
	__u64 page = (offset >> ABI_PAGE_SHIFT) - w->map.first_page;
	__u32 low = offset & ((1 << ABI_PAGE_SHIFT) - 1), slot = page & 7;
	struct walk_native *search = walk_native_state(w);
	const union abi_element *element;
	const void *table;

	if (page >= w->map.pages)
		return 0;
	table = walk_table(w, w->map.table);
	if (!table)
		return 1;
	element = walk_element(w, table, 1 + (__u32)(page >> 3));
	if (!element)
		return 1;
	if (!element->pages[slot].count)
		return 0;
	search->left = element->pages[slot].first;
	search->right = search->left + element->pages[slot].count;
	search->low = low;
	element = walk_find_element(w, table);
	if (!element)
		return 1;
	/* The last of eight that is not above low, without branches: bit 31 of the difference says "above". Old
	 * verifiers (5.10) lose the bounds of what | puts together, so they are told again. */
	slot = ~(low - element->rows[4].low) >> 29 & 4;
	slot |= ~(low - element->rows[slot + 2].low) >> 30 & 2;
	walk_opaque(slot);
	slot &= 6;
	slot |= ~(low - element->rows[slot + 1].low) >> 31;
	walk_opaque(slot);
	slot &= 7;
	*out = element->rows[slot];
	return 0;
}

/* Where pc is mapped and which row is in force. Return: 0, or 1 with w->end set and nothing but w->map changed. */
WALK_FN int walk_locate(struct walk *w, struct abi_row *out)
{
	__u64 at = w->pc - (w->is_return ? 1 : 0);

	if (!walk_knows_process(w)) {
		w->end = ABI_END_NO_PROCESS;
		return 1;
	}
	if (walk_recall(w, at, out))
		return 0;
	if (at - w->map.start >= w->map.end - w->map.start) {
		if (walk_find_map(w, at) || at - w->map.start >= w->map.end - w->map.start) {
			w->map.start = w->map.end = 0;
			w->end = ABI_END_NO_MAPPING;
			return 1;
		}
	}
	if (w->map.kind != ABI_MAP_FILE)
		return 0;
	if (walk_find_row(w, at - w->map.file_base, out)) {
		w->end = ABI_END_NO_TABLE;
		return 1;
	}
	walk_remember(w, at, out);
	return 0;
}

WALK_FN int walk_push_native(struct walk *w, __u8 flags)
{
	__u64 pc = w->pc;
	__u32 at = w->count;

	if (w->mode == WALK_FP)
		return walk_push(w, ABI_FRAME_USER, flags, pc);
	if (w->map.kind == ABI_MAP_JIT)
		return walk_push(w, ABI_FRAME_JIT, flags, pc);
	if (walk_push(w, ABI_FRAME_NATIVE, flags, w->map.file) || at >= ABI_FRAMES_MAX)
		return 1;
	w->frames[at].b = pc - w->map.file_base;
	return 0;
}

/* ---- the caller by a row ---- */

#ifdef WALK_X86_64
WALK_FN int walk_return_address(struct walk *w, __u64 cfa, __u64 *out)
{
	return walk_stack_word(w, cfa - 8, out);
}

/* The lower word first: the window starts there. Return: 0, or 1 with w->end set. */
WALK_FN int walk_saved(struct walk *w, const struct abi_row *row, struct walk_caller *to)
{
	__u64 at = to->cfa + (__u64)((__s64)row->fp_off * 8);

	switch (row->saved) {
	case ABI_SAVED_SAME:
		break;
	case ABI_SAVED_AT:
		/* Behind the pop, compilers' rules still name the slot. It lies below sp then, where a copied stack has
		 * nothing; but fp has the value again. */
		if (walk_stack_word(w, at, &to->fp)) {
			if (at >= w->sp)
				return 1;
			to->fp = w->fp;
		}
		break;
	case ABI_SAVED_UNDEFINED:
		to->fp = 0;
		break;
	default:
		w->end = ABI_END_UNSUPPORTED;
		return 1;
	}
	return walk_return_address(w, to->cfa, &to->pc);
}
#else
/* x30 is the caller's only until it calls. */
WALK_FN int walk_return_address(struct walk *w, __u64 cfa, __u64 *out)
{
	(void)cfa;
	if (!w->is_leaf) {
		w->end = ABI_END_UNSUPPORTED;
		return 1;
	}
	*out = w->lr;
	return 0;
}

WALK_FN int walk_saved(struct walk *w, const struct abi_row *row, struct walk_caller *to)
{
	__u64 at = to->cfa + (__u64)((__s64)row->fp_off * 8);

	switch (row->saved) {
	case ABI_SAVED_SAME:
		break;
	case ABI_SAVED_PAIR:
		return walk_stack_word(w, at, &to->fp) || walk_stack_word(w, at + 8, &to->pc);
	case ABI_SAVED_RETURN:
		return walk_stack_word(w, at, &to->pc);
	case ABI_SAVED_AT:
		if (walk_stack_word(w, at, &to->fp))
			return 1;
		break;
	case ABI_SAVED_UNDEFINED:
		to->fp = 0;
		break;
	default:
		w->end = ABI_END_UNSUPPORTED;
		return 1;
	}
	return walk_return_address(w, to->cfa, &to->pc);
}
#endif

/* Other registers than sp and fp are known in the top frame only. Return: 0, or 1 with w->end set. */
WALK_FN int walk_place(struct walk *w, const struct abi_where *where, __u64 cfa, __u64 *out)
{
	__u64 value = (__u64)(__s64)where->off;
	__u32 base = where->base;

	if (base == ABI_BASE_CFA) {
		value += cfa;
	} else if (base == WALK_REG_SP) {
		value += w->sp;
	} else if (base == WALK_REG_FP) {
		value += w->fp;
	} else if (w->is_leaf && base <= WALK_REG_PC) {
		value += w->leaf[base];
	} else {
		w->end = ABI_END_UNSUPPORTED;
		return 1;
	}
	if (where->place == ABI_PLACE_MEMORY)
		return walk_stack_word(w, value, out);
	*out = value;
	return 0;
}

WALK_FN const struct abi_rule *walk_find_rule(struct walk *w, __u32 number)
{
	const void *table = walk_table(w, w->map.table);
	const union abi_element *element;
	__u32 rules;

	if (!table)
		return 0;
	element = walk_element(w, table, 0);
	if (!element || !element->head.rules || number >= element->head.rule_count)
		return 0;
	rules = element->head.rules;
	element = walk_element(w, table, rules + number / 2);
	return element ? &element->rules[number & 1] : 0;
}

/* Return: 0, or 1 with w->end set. */
WALK_FN int walk_rule(struct walk *w, __u32 number, struct walk_caller *to)
{
	const struct abi_rule *rule = walk_find_rule(w, number);

	if (!rule || rule->cfa.place < ABI_PLACE_VALUE || rule->cfa.base == ABI_BASE_CFA) {
		w->end = ABI_END_UNSUPPORTED;
		return 1;
	}
	if (walk_place(w, &rule->cfa, 0, &to->cfa))
		return 1;
	to->cfa += (__u64)(__s64)rule->cfa_add;
	if (rule->fp.place == ABI_PLACE_UNDEFINED)
		to->fp = 0;
	else if (rule->fp.place != ABI_PLACE_SAME && walk_place(w, &rule->fp, to->cfa, &to->fp))
		return 1;
	if (rule->ra.place == ABI_PLACE_UNDEFINED) {
		w->end = ABI_END_COMPLETE;
		return 1;
	}
	if (rule->ra.place == ABI_PLACE_SAME)
		return walk_return_address(w, to->cfa, &to->pc);
	return walk_place(w, &rule->ra, to->cfa, &to->pc);
}

/* Return: 0, or 1 with w->end set. */
WALK_FN int walk_row(struct walk *w, const struct abi_row *row, struct walk_caller *to)
{
	switch (row->cfa) {
	case ABI_CFA_STOP:
		w->end = ABI_END_COMPLETE;
		return 1;
	case ABI_CFA_FORKED:
		if (w->is_leaf && !w->leaf[0]) { /* rax, x0 */
			w->end = ABI_END_COMPLETE;
			return 1;
		}
		to->cfa = w->sp + row->cfa_off * 8ULL;
		break;
	case ABI_CFA_SP:
		to->cfa = w->sp + row->cfa_off * 8ULL;
		break;
	case ABI_CFA_FP:
		to->cfa = w->fp + row->cfa_off * 8ULL;
		break;
	case ABI_CFA_PLT:
		to->cfa = w->sp + ((w->pc & 15) >= row->cfa_off ? 16 : 8);
		break;
	case ABI_CFA_RULE:
		return walk_rule(w, row->cfa_off, to);
	case ABI_CFA_MOVED:
		w->end = row->cfa_off == ABI_MOVED_NOW ? ABI_END_STACK_SWITCH : ABI_END_STACK_ENTRY;
		return 1;
	default:
		w->end = ABI_END_UNSUPPORTED;
		return 1;
	}
	return walk_saved(w, row, to);
}

/* Return: 0, or 1 with w->end set. */
WALK_FN int walk_by_row(struct walk *w, const struct abi_row *row)
{
	struct walk_caller to = { .fp = w->fp };

	if (walk_row(w, row, &to))
		return 1;
	to.pc = walk_strip(to.pc);
	if (!to.pc) {
		w->end = ABI_END_UNPROVEN_ROOT;
		return 1;
	}
	if (to.pc < WALK_USER_MIN || to.pc > WALK_USER_MAX || to.cfa < WALK_USER_MIN || to.cfa > WALK_USER_MAX ||
	    (to.cfa & 7)) {
		w->end = ABI_END_UNSUPPORTED;
		return 1;
	}
	if (to.cfa <= w->sp) {
		/* A leaf need not have a frame; a frame pointer can lead to another stack. */
		if (to.cfa == w->sp ? !w->is_leaf || to.pc == w->pc
				    : row->cfa == ABI_CFA_SP || row->cfa == ABI_CFA_PLT) {
			w->end = ABI_END_NO_PROGRESS;
			return 1;
		}
		if (to.cfa < w->sp && walk_fall(w))
			return 1;
	}
	w->pc = to.pc;
	w->sp = to.cfa;
	w->fp = to.fp;
	w->is_leaf = 0;
	w->is_return = 1;
	w->guessed = 0;
	return 0;
}

/* ---- the caller without a row ---- */

/* The last resort in a top frame: hand-written code without rules is mostly a leaf that pushes nothing.
 * Return: 1 when w is at the caller now. */
WALK_FN int walk_top_word(struct walk *w)
{
	__u64 caller;

#ifdef WALK_X86_64
	if ((w->sp & 7) || walk_stack_word(w, w->sp, &caller))
		return 0;
#else
	caller = walk_strip(w->lr);
#endif
	if (caller < WALK_USER_MIN || caller > WALK_USER_MAX || walk_code_before(w, caller) != WALK_CODE_CALL)
		return 0;
	if (walk_find_map(w, caller - 1)) {
		w->map.start = w->map.end = 0;
		return 0;
	}
	w->pc = caller;
#ifdef WALK_X86_64
	w->sp += 8;
#endif
	return 1;
}

/* Return: 0, or 1 with w->end set. @known: the code is known to keep frame pointers. */
WALK_FN int walk_by_record(struct walk *w, int known)
{
	__u8 end;

	if (known && !w->is_leaf && w->fp < w->sp && w->fp >= WALK_USER_MIN) {
		if (walk_fall(w)) /* a switch of stacks, as Go's systemstack */
			return 1;
		w->sp = w->fp;
	}
	if ((!w->is_leaf || !walk_leaf(w)) && walk_frame_record(w)) {
		end = w->end;
		if (w->mode != WALK_AUTO || known || !w->is_leaf || !walk_top_word(w)) {
			w->end = end;
			return 1;
		}
		w->end = ABI_END_FRAME_LIMIT; /* as it started */
	}
	w->is_leaf = 0;
	w->is_return = !w->at_signal; /* the first instruction behind a handler was not called */
	if (w->mode != WALK_FP)
		w->guessed = !known;
	return 0;
}

/* Is pc what a signal handler returns to, in a file that does not say so? */
WALK_FN int walk_is_sigreturn(struct walk *w)
{
	__u64 code;

	return w->is_return && !walk_read(w, &code, sizeof(code), w->pc) && code == WALK_SIGRETURN;
}

/* ---- the step ---- */

/** walk_native_step - push the frame at w->pc and move to its caller; SWITCH: it is a runtime's, nothing was done */
WALK_FN enum walk_next walk_native_step(struct walk *w)
{
	struct abi_row row = { .cfa = ABI_CFA_INVALID };
	int failed, signal;
	__u8 flags;

	if (w->in_line && walk_in_runtime(w)) /* needs no mapping, which the kernel side learns late */
		return WALK_SWITCH;
	if (w->mode != WALK_FP && walk_locate(w, &row))
		return WALK_DONE;
	signal = w->at_signal || row.cfa == ABI_CFA_SIGNAL ||
		 (row.cfa == ABI_CFA_INVALID && w->mode != WALK_FP && walk_is_sigreturn(w));
	flags = (w->is_return && !signal ? ABI_FRAME_RETURN : 0) | (w->guessed ? ABI_FRAME_GUESSED : 0);
	if (walk_push_native(w, flags))
		return WALK_DONE;
	if (signal) {
		failed = walk_signal(w);
	} else if (row.cfa == ABI_CFA_INVALID && w->mode == WALK_TABLE) {
		w->end = ABI_END_NO_RULE;
		failed = 1;
	} else if (row.cfa == ABI_CFA_INVALID || row.cfa == ABI_CFA_FRAME_RECORD) {
		failed = walk_by_record(w, row.cfa == ABI_CFA_FRAME_RECORD);
	} else {
		failed = walk_by_row(w, &row);
	}
	return failed ? WALK_DONE : WALK_MORE;
}

/* What every walk starts from. */
WALK_FN void walk_native_clear(struct walk *w)
{
	w->window_at = 0;
	w->window_size = 0;
	w->read_failures = 0;
	w->unwinder = 0;
	w->passed = 0;
	w->info_of = 0;
	w->map.start = 0;
	w->map.end = 0;
	w->map.kind = ABI_MAP_NONE;
	walk_native_state(w)->falls = 0;
	w->end = ABI_END_FRAME_LIMIT; /* what remains when the shell's loop runs out of turns */
}

/** walk_native_start - at the registers in leaf[]; @is_return: interrupted behind a call, as in a system call */
WALK_FN void walk_native_start(struct walk *w, int is_return)
{
	w->pc = w->leaf[WALK_REG_PC];
	w->sp = w->leaf[WALK_REG_SP];
	w->fp = w->leaf[WALK_REG_FP];
#ifdef WALK_AARCH64
	w->lr = w->leaf[WALK_REG_LR];
#else
	w->lr = 0;
#endif
	w->is_return = is_return ? 1 : 0;
	w->leaf_is_return = w->is_return;
	w->leaf_count = w->count;
	w->is_leaf = 1;
	w->guessed = 0;
	w->at_signal = 0;
	walk_sample(w)->stack_pointer = w->sp;
	walk_native_clear(w);
}

/** walk_native_rewind - back to the frame whose registers are all known. Return: 0, or 1 in a walk by frame pointers.
 */
WALK_FN int walk_native_rewind(struct walk *w)
{
	if (w->mode == WALK_FP)
		return 1;
	w->pc = w->leaf[WALK_REG_PC];
	w->sp = w->leaf[WALK_REG_SP];
	w->fp = w->leaf[WALK_REG_FP];
#ifdef WALK_AARCH64
	w->lr = w->leaf[WALK_REG_LR];
#endif
	w->count = w->leaf_count;
	w->is_return = w->leaf_is_return;
	w->is_leaf = 1;
	w->guessed = 0;
	w->at_signal = 0;
	return 0;
}

#ifndef __bpf__
/** walk_native_resume - where the walk of a raw sample goes on; frames and count are the caller's */
WALK_FN void walk_native_resume(struct walk *w, const struct abi_raw *raw)
{
	for (int i = 0; i < WALK_REGS; i++)
		w->leaf[i] = raw->regs[i];
	w->pc = raw->pc;
	w->sp = raw->sp;
	w->fp = raw->fp;
	w->lr = raw->lr;
	w->is_return = raw->is_return;
	w->is_leaf = raw->is_leaf;
	w->guessed = raw->guessed;
	w->at_signal = raw->at_signal;
	walk_native_clear(w);
}
#endif
