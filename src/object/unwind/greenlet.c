/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked for, in this order:
 *
 * slp_switch() saves the stack, adds a difference to the stack and the frame pointer (inline assembly, always two
 * instructions in a row) and restores the stack. In between the stack is a mixture.
 *
 * g_switchstack() is its only caller. Behind the call the thread has the new native stack and, for some instructions,
 * still the old Python frames.
 *
 * The greenlet's entry is from 2.0 on UserGreenlet::inner_bootstrap(), by its symbol, and the call of it. Earlier it is
 * the part of g_initialstub() that only runs when g_switchstack() returned 1, which it does in a new greenlet. */
#include "object/unwind/greenlet.h"

#include <elf.h>

#include "object/elf_fde.h"
#include "object/elf_find.h"
#include "object/elf_symbols.h"
#include "object/x86.h"

#define MOVE_NEAR 32       /* bytes from the move of the stack pointer to the end of the call that restores */
#define COMPARE_NEAR 8     /* instructions from a call to the comparison of its result */
#define ENTRY_NAMES_MAX 16 /* the entry, its cold part and their PLT entries */
#define FOUND_MAX 16       /* calls of one function, and moves */
#define NAME_MAX 256       /* bytes of a symbol: the entry of greenlet 2.0 has 199 */

/* Marks of an instruction's first byte. */
enum { SEEN_FIRST = 1, SEEN_SECOND = 2 };

struct insn {
	size_t length;
	enum x86_flow flow;
	uint64_t target; /* 0: none, or not known */
	bool is_compare; /* of a call's int result with 1 */
};

struct call {
	uint64_t at, back;
	struct elf_fde in;
};

struct calls {
	struct call items[FOUND_MAX];
	size_t count;
};

struct target {
	const struct elf *elf;
	struct cfi *out;
	uint64_t address; /* of code[0] */
	uint8_t *code, *marks;
	size_t size;
	struct elf_fdes fdes;
	struct calls moves, calls; /* calls: those found last */
};

/* A way out of the instruction @at that is not followed: its jump, or what comes behind it. None: at is 0. */
struct edge {
	uint64_t at;
	bool is_jump;
};

static void target_freep(struct target **t)
{
	if (!*t)
		return;
	free((*t)->code);
	free((*t)->marks);
	free(*t);
}

static bool covers(const struct elf_fde *f, uint64_t at)
{
	return at - f->start < f->size;
}

static bool has_code(const struct target *t, uint64_t at, uint64_t size)
{
	return at - t->address < t->size && size <= t->size - (at - t->address);
}

/* ---- instructions ---- */

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int64_t sign_extended(uint32_t value, unsigned int bits)
{
	return (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

static bool decode_x86(const uint8_t *code, size_t size, uint64_t at, struct insn *out)
{
	struct x86 i;

	if (x86_decode(code, size, at, &i) < 0)
		return false;
	*out = (struct insn){ .length = i.length, .flow = i.flow, .target = i.target };
	out->is_compare = i.length == 3 && !memcmp(code, "\x83\xf8\x01", 3); /* cmp $1,%eax */
	return true;
}

/* Source: Arm Architecture Reference Manual for A-profile (DDI 0487J.a), chapter C4.1. */
static bool decode_aarch64(const uint8_t *code, size_t size, uint64_t at, struct insn *out)
{
	uint32_t word;

	if (size < 4)
		return false;
	word = le32(code);
	*out = (struct insn){ .length = 4 };
	out->is_compare = word == 0x7100041f;    /* cmp w0, #1 */
	if ((word & 0x7c000000) == 0x14000000) { /* b, bl */
		out->flow = word >> 31 ? X86_FLOW_CALL : X86_FLOW_JUMP;
		out->target = at + (uint64_t)(sign_extended(word & 0x3ffffff, 26) * 4);
	} else if ((word & 0xff000000) == 0x54000000 || (word & 0x7e000000) == 0x34000000) { /* b.cond, cbz, cbnz */
		out->flow = X86_FLOW_JUMP_IF;
		out->target = at + (uint64_t)(sign_extended(word >> 5 & 0x7ffff, 19) * 4);
	} else if ((word & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		out->flow = X86_FLOW_JUMP_IF;
		out->target = at + (uint64_t)(sign_extended(word >> 5 & 0x3fff, 14) * 4);
	} else if ((word & 0xfffffc1f) == 0xd63f0000) { /* blr */
		out->flow = X86_FLOW_CALL;
	} else if ((word & 0xfffffc1f) == 0xd61f0000) { /* br */
		out->flow = X86_FLOW_JUMP;
	} else if ((word & 0xfffffc1f) == 0xd65f0000 || !word) { /* ret, udf */
		out->flow = X86_FLOW_END;
	}
	return true;
}

/* The instruction at @at inside of function @f. */
static bool decode(const struct target *t, const struct elf_fde *f, uint64_t at, struct insn *out)
{
	const uint8_t *code = t->code + (at - t->address);
	size_t left = (size_t)(f->size - (at - f->start));

	return t->elf->machine == EM_X86_64 ? decode_x86(code, left, at, out) : decode_aarch64(code, left, at, out);
}

/* Is the move of the stack pointer here? x86-64: add %reg,%rsp; add %reg,%rbp. aarch64: add sp, sp, xN; add x29, x29,
 * xN. Return: bytes of the first instruction, or 0. */
static size_t move_size(uint16_t machine, const uint8_t *p, size_t left)
{
	if (left < 8)
		return 0;
	if (machine == EM_X86_64)
		return (p[0] & 0xfb) == 0x48 && p[1] == 0x01 && (p[2] & 0xc7) == 0xc4 && p[3] == p[0] && p[4] == 0x01 &&
				       p[5] == (p[2] | 1)
			       ? 3
			       : 0;
	return (le32(p) & 0xffe0ffff) == 0x8b2063ff && (le32(p + 4) & 0xffe0ffff) == 0x8b0003bd &&
			       (le32(p) >> 16 & 31) == (le32(p + 4) >> 16 & 31)
		       ? 4
		       : 0;
}

/* ---- what instructions lead to ---- */

/* Marks with @mark what can be reached from @from inside of @f, @not left out. What lies in another function, also a
 * cold part of this one, is not followed. Return: 0; -ENOTSUP when something cannot be followed; -ENOMEM. */
static int reach(struct target *t, const struct elf_fde *f, uint64_t from, struct edge not, uint8_t mark)
{
	scoped(freep) uint64_t *todo = malloc((size_t)(f->size + 1) * sizeof(*todo));
	size_t count = 0;

	if (!todo)
		return -ENOMEM;
	for (todo[count++] = from; count;) {
		uint64_t at = todo[--count];
		struct insn i;

		while (covers(f, at) && !(t->marks[at - t->address] & mark)) {
			uint64_t back = at + (decode(t, f, at, &i) ? i.length : 0);

			if (back == at || (i.flow == X86_FLOW_JUMP && !i.target))
				return -ENOTSUP;
			t->marks[at - t->address] |= mark;
			if ((i.flow == X86_FLOW_JUMP || i.flow == X86_FLOW_JUMP_IF) && covers(f, i.target) &&
			    !(at == not .at && not .is_jump) && !(t->marks[i.target - t->address] & mark))
				todo[count++] = i.target; /* less than one for each byte: each was marked */
			if (i.flow == X86_FLOW_JUMP || i.flow == X86_FLOW_END || (at == not .at && !not .is_jump))
				break;
			at = back;
		}
	}
	return 0;
}

static void forget(struct target *t, const struct elf_fde *f)
{
	memset(t->marks + (f->start - t->address), 0, (size_t)f->size);
}

/* The function that covers @at, as far as its code is there. */
static bool find_function(struct target *t, uint64_t at, struct elf_fde *out)
{
	return elf_fde_find(t->elf, &t->fdes, at, out) == 0 && out->size && has_code(t, out->start, out->size);
}

/* Puts every call of one of @wanted into t->calls. No code is read twice: what overlaps the function before is left
 * out. Return: 0 or -ENOTSUP: more than can be. */
static int find_calls(struct target *t, const uint64_t *wanted, size_t wanted_count)
{
	struct calls *out = &t->calls;
	uint64_t done = t->address;

	out->count = 0;
	for (uint32_t k = 0; k < t->fdes.count; k++) {
		struct elf_fde f;
		struct insn i;

		if (elf_fde_at(t->elf, &t->fdes, k, &f) < 0 || !has_code(t, f.start, f.size) || f.start < done)
			continue;
		done = f.start + f.size;
		for (uint64_t at = f.start; covers(&f, at) && decode(t, &f, at, &i); at += i.length) {
			bool is_wanted = false;

			for (size_t n = 0; n < wanted_count && i.flow == X86_FLOW_CALL && i.target; n++)
				is_wanted |= i.target == wanted[n];
			if (!is_wanted)
				continue;
			if (out->count == FOUND_MAX)
				return -ENOTSUP;
			out->items[out->count++] = (struct call){ .at = at, .back = at + i.length, .in = f };
		}
	}
	return 0;
}

/* ---- rows ---- */

static int put(struct target *t, uint64_t start, uint64_t size, struct abi_row row)
{
	size_t first = t->out->row_count;
	int r = cfi_put_row(t->out, 0, row);

	return r < 0 ? r : cfi_put_span(t->out, start, (uint32_t)size, first, false);
}

/* Puts @row over the runs of instructions in @f that have SEEN_SECOND; @only: and not SEEN_FIRST. */
static int put_marked(struct target *t, const struct elf_fde *f, bool only, struct abi_row row)
{
	uint64_t start = 0;
	struct insn i;
	int r = 0;

	for (uint64_t at = f->start; r == 0 && covers(f, at); at += i.length) {
		uint8_t marks = t->marks[at - t->address];
		bool is_wanted = only ? marks == SEEN_SECOND : (marks & SEEN_SECOND) != 0;

		/* Code that was not reached, as padding: byte by byte to the next that was. */
		if (!marks || !decode(t, f, at, &i))
			i.length = 1;
		if (is_wanted && !start)
			start = at;
		if (start && (!is_wanted || !covers(f, at + i.length))) {
			r = put(t, start, (is_wanted ? at + i.length : at) - start, row);
			start = 0;
		}
	}
	return r;
}

static const struct abi_row root_row = { .cfa = ABI_CFA_STOP };
static const struct abi_row moving_row = { .cfa = ABI_CFA_MOVED, .cfa_off = ABI_MOVED_NOW };
static const struct abi_row unknown_row = { .cfa = ABI_CFA_MOVED, .cfa_off = ABI_MOVED_UNKNOWN };

/* ---- what moves stacks ---- */

/* Behind the call at @c the Python frames are not yet those of the new stack. */
static int put_after(struct target *t, const struct call *c)
{
	int r = reach(t, &c->in, c->back, (struct edge){ 0 }, SEEN_SECOND);

	if (r == 0)
		r = put_marked(t, &c->in, false, moving_row);
	else if (r == -ENOTSUP)
		r = put(t, c->in.start, c->in.size, moving_row);
	forget(t, &c->in);
	return r;
}

/* From the move at @at, whose first instruction has @size bytes, to the end of the call that restores the stack.
 * *calls: that call is added. */
static int put_move(struct target *t, uint64_t at, size_t size, struct calls *calls)
{
	struct call c = { .at = at };
	struct insn i = { 0 };

	if (!find_function(t, at, &c.in) || calls->count == FOUND_MAX)
		return 0;
	for (c.back = at; c.back - at < MOVE_NEAR && i.flow != X86_FLOW_CALL; c.back += i.length) {
		if (!covers(&c.in, c.back) || !decode(t, &c.in, c.back, &i))
			return 0;
		c.at = c.back;
	}
	if (i.flow != X86_FLOW_CALL)
		return 0;
	calls->items[calls->count++] = c;
	return put(t, at + size, c.back - (at + size), moving_row);
}

static int find_moves(struct target *t, struct calls *out)
{
	size_t step = t->elf->machine == EM_X86_64 ? 1 : 4;
	int r = 0;

	for (size_t i = 0; r == 0 && i + 8 <= t->size; i += step) {
		size_t size = move_size(t->elf->machine, t->code + i, t->size - i);

		if (size)
			r = put_move(t, t->address + i, size, out);
	}
	return r;
}

/* ---- where greenlets begin ---- */

/* From 2.0 on: the function by its symbol, its cold part, and the calls of it. Return: 0, -ENOENT or an error. */
static int put_named_entry(struct target *t)
{
	scoped(elf_symbols_release) struct elf_symbols symbols = { 0 };
	struct reader strings[ELF_STRINGS_COUNT] = { { 0 } };
	uint64_t entries[ENTRY_NAMES_MAX];
	size_t count = 0, found = 0;
	int r;

	elf_symbols_init(&symbols, elf_base(t->elf));
	r = elf_symbols_add(&symbols, t->elf, SHT_DYNSYM);
	if (r == 0)
		r = elf_symbols_add_plt(&symbols, t->elf);
	if (r == 0 || r == -ENOENT)
		r = elf_symbols_add(&symbols, t->elf, SHT_SYMTAB);
	if (r < 0 && r != -ENOENT)
		return r;
	for (size_t i = 0; i < ELF_STRINGS_COUNT; i++) {
		r = elf_symbols_strings(t->elf, i == ELF_STRINGS_STATIC ? SHT_SYMTAB : SHT_DYNSYM, &strings[i]);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	elf_symbols_finish(&symbols, t->elf, strings);
	for (size_t i = 0; i < MIN(symbols.count, (size_t)UNWIND_GREENLET_SYMBOLS_MAX) && count < ENTRY_NAMES_MAX;
	     i++) {
		uint64_t at = symbols.base + symbols.items[i].start;
		struct elf_symbol_hit hit;
		struct str name = STR("");
		char text[NAME_MAX];
		struct elf_fde f;

		if (elf_symbols_find(&symbols, at, &hit) < 0 ||
		    reader_text(&strings[hit.strings], hit.name, text, sizeof(text), &name) < 0 ||
		    !str_starts(name, STR("_ZN8greenlet12UserGreenlet15inner_bootstrapE")))
			continue;
		entries[count++] = at;
		if (hit.is_plt || !find_function(t, at, &f) || f.start != at)
			continue;
		r = put(t, f.start, f.size, root_row);
		if (r < 0)
			return r;
		found++;
	}
	if (!found)
		return -ENOENT;
	r = find_calls(t, entries, count);
	for (size_t i = 0; r == 0 && i < t->calls.count; i++)
		r = put(t, t->calls.items[i].at, t->calls.items[i].back - t->calls.items[i].at, root_row);
	return r;
}

/* Up to 1.1: is the result of the call @c compared with 1, and where does the flow go if it is 1? */
static bool find_compare(struct target *t, const struct call *c, uint64_t *out, struct edge *edge)
{
	uint64_t at = c->back;
	bool compared = false;
	struct insn i;

	for (int k = 0; k < COMPARE_NEAR && covers(&c->in, at) && decode(t, &c->in, at, &i); k++, at += i.length) {
		const uint8_t *code = t->code + (at - t->address);
		bool is_x86 = t->elf->machine == EM_X86_64;
		bool equal, unequal;

		if (compared && i.flow == X86_FLOW_JUMP_IF) {
			/* je, jne; b.eq, b.ne */
			equal = is_x86 ? code[0] == 0x74 || (code[0] == 0x0f && code[1] == 0x84)
				       : (le32(code) & 0xff00001f) == 0x54000000;
			unequal = is_x86 ? code[0] == 0x75 || (code[0] == 0x0f && code[1] == 0x85)
					 : (le32(code) & 0xff00001f) == 0x54000001;
			*out = equal ? i.target : at + i.length;
			*edge = (struct edge){ .at = at, .is_jump = equal };
			return equal || unequal;
		}
		compared |= i.is_compare;
		if (i.flow != X86_FLOW_NEXT)
			return false;
	}
	return false;
}

/* Up to 1.1. Return: 0, -ENOENT or an error. */
static int put_compared_entry(struct target *t, uint64_t switchstack)
{
	const struct call *found = NULL;
	struct edge edge = { 0 }, candidate;
	uint64_t from = 0, begin;
	int r = find_calls(t, &switchstack, 1);

	for (size_t i = 0; r == 0 && i < t->calls.count; i++) {
		if (!find_compare(t, &t->calls.items[i], &begin, &candidate))
			continue;
		if (found)
			return -ENOENT; /* which of them? */
		found = &t->calls.items[i];
		from = begin;
		edge = candidate;
	}
	if (r < 0 || !found)
		return r < 0 ? r : -ENOENT;
	r = reach(t, &found->in, found->in.start, edge, SEEN_FIRST);
	if (r == 0)
		r = reach(t, &found->in, from, (struct edge){ 0 }, SEEN_SECOND);
	if (r == 0)
		r = put_marked(t, &found->in, true, root_row);
	forget(t, &found->in);
	return r;
}

/* ---- the file ---- */

static bool is_extension(const struct elf *elf)
{
	static const char *const names[] = { "PyInit__greenlet", "PyInit_greenlet", "init_greenlet", "initgreenlet" };
	struct elf_dynamic dynamic;
	struct elf_found found;

	if (elf_dynamic_read(elf, &dynamic) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (elf_dynamic_find(elf, &dynamic, names[i], &found) == 0)
			return true;
	return false;
}

/* Return: 0; -ENOENT when there is no code, or more than is looked at. */
static int load(struct target *t)
{
	const struct elf *elf = t->elf;
	uint64_t offset = 0;

	for (size_t i = 0; i < elf->segment_count && !t->size; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_LOAD || !(s->flags & PF_X) || !s->file_size)
			continue;
		if (s->file_size > UNWIND_GREENLET_CODE_MAX)
			return -ENOENT;
		t->address = s->address;
		t->size = (size_t)s->file_size;
		offset = s->offset;
	}
	if (!t->size || elf_fdes_open(elf, &t->fdes) < 0 || t->fdes.count > UNWIND_GREENLET_FUNCTIONS_MAX)
		return -ENOENT;
	t->code = malloc(t->size);
	t->marks = calloc(t->size, 1);
	if (!t->code || !t->marks)
		return -ENOMEM;
	return reader_read(&elf->in, t->code, t->size, offset);
}

int unwind_greenlet_read(const struct elf *elf, struct cfi *out)
{
	scoped(target_freep) struct target *t = NULL; /* 5 KiB */
	uint64_t switchstack;
	size_t rows = out->row_count, spans = out->span_count;
	int r;

	if (!is_extension(elf))
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->elf = elf;
	t->out = out;
	r = load(t);
	if (r == 0)
		r = find_moves(t, &t->moves);
	/* Without moves: an extension of this name without the code that moves stacks; gevent 1.3 had one. */
	if (r < 0 || !t->moves.count)
		return r == -ENOENT ? 0 : r;
	for (size_t i = 0; r == 0 && i < t->moves.count; i++)
		r = put_after(t, &t->moves.items[i]);
	switchstack = t->moves.items[0].in.start;
	if (r == 0)
		r = find_calls(t, &switchstack, 1);
	if (r == 0 && t->calls.count == 1) { /* otherwise it is g_switchstack() itself */
		r = put_after(t, &t->calls.items[0]);
		switchstack = t->calls.items[0].in.start;
	}
	if (r == 0)
		r = put_named_entry(t);
	if (r == -ENOENT)
		r = put_compared_entry(t, switchstack);
	if (r == 0 || r == -ENOMEM)
		return r;
	/* Not proven, or not to be read. */
	out->row_count = rows;
	out->span_count = spans;
	return put(t, t->address, t->size, unknown_row);
}
