/* SPDX-License-Identifier: Apache-2.0 */
/* The depth of the stack is exact at every instruction, as long as the stack is the function's own. Functions that
 * switch stacks are followed by their frame pointer, which stays on the old one: systemstack, asmcgocall, cgocallback,
 * and what calls the vDSO on the stack of the thread. Where the old stack is left for good the new one begins: STOP.
 *
 *	x86-64                            aarch64
 *	depth + 8 above sp: CFA           depth above sp: CFA
 *	CFA - 8   return address          sp        x30 of the caller
 *	CFA - 16  rbp of the caller       sp - 8    x29 of the caller
 *
 * In older versions (1.19 is one, 1.26 is not) systemstack and asmcgocall have no frame of their own: the frame
 * register is their caller's, and following it passes over that caller.
 * Source: go1.26 and go1.19, src/runtime/asm_{amd64,arm64}.s and traceback.go, src/cmd/internal/obj/x86/obj6.go and
 * arm64/obj7.go */
#include "object/unwind/go.h"

#include <elf.h>

#include "object/pclntab.h"
#include "object/unwind/cfi_int.h"
#include "object/unwind/code.h"

#define CODE_SIZE 640   /* bytes of a function looked at: morestack's are the longest */
#define PROLOGUE_MAX 96 /* a frame is set up within these */
#define CODE_WINDOW KIB(64)
#define NAME_MAX_SIZE 48 /* longer names are not asked for */

enum kind {
	GO_PLAIN,
	GO_ROOT,   /* nothing calls it */
	GO_SIGNAL, /* what a signal handler returns to */
	GO_SWITCH, /* goes to another stack and comes back */
	GO_CALLER, /* the same without a frame of its own: the frame register is its caller's */
	GO_LEAVE,  /* goes to another stack, where it is the outermost frame */
	GO_JUMP,   /* goes to another stack in order to leave for the code there */
};

struct go {
	const struct elf *elf;
	struct cfi *out;
	struct pclntab table;
	uint8_t *steps;
	size_t steps_size;
	uint32_t turns_left; /* steps that may still be taken: functions share them, so their bytes are no limit */
	struct reader_window code, names;
};

struct function {
	struct pclntab_function f;
	enum kind kind;
	uint64_t frame_at;  /* the frame register is this function's from here on; UINT64_MAX: never */
	uint64_t switch_at; /* the stack pointer is another one from here on */
};

static void go_release(struct go *g)
{
	free(g->steps);
	reader_window_release(&g->code);
	reader_window_release(&g->names);
}

/* @size is cut to what there is. NULL: none of it can be read. */
static const uint8_t *window_bytes(struct reader_window *w, uint64_t offset, size_t *size)
{
	if (offset >= w->in.size)
		return NULL;
	*size = (size_t)MIN((uint64_t)*size, w->in.size - offset);
	return reader_window_get(w, offset, *size);
}

static struct str name_of(struct go *g, uint64_t offset)
{
	size_t size = NAME_MAX_SIZE;
	const uint8_t *bytes = window_bytes(&g->names, offset, &size);
	const uint8_t *end = bytes ? memchr(bytes, 0, size) : NULL;
	struct str name = str_n((const char *)bytes, end ? (size_t)(end - bytes) : 0);

	return str_ends(name, STR(".abi0")) ? str_first(name, name.len - 5) : name;
}

static bool is_one_of(struct str name, const char *const *names)
{
	for (; *names; names++)
		if (str_eq(name, str_of(*names)))
			return true;
	return false;
}

static enum kind kind_of(struct go *g, const struct pclntab_function *f)
{
	static const char *const signals[] = { "runtime.sigreturn", "runtime.sigreturn__sigaction", NULL };
	static const char *const leaves[] = { "runtime.mcall", "runtime.morestack", NULL };
	static const char *const jumps[] = { "runtime.gogo", "gogo", NULL };
	static const char *const calls[] = { "runtime.systemstack", "runtime.asmcgocall", NULL };
	/* Go 1.16 does not flag them. */
	static const char *const switches[] = { "runtime.cgocallback", "runtime.nanotime1", "runtime.walltime",
						"runtime.walltime1", NULL };
	struct str name;

	if (g->table.has_flags && !f->flags)
		return GO_PLAIN;
	name = name_of(g, f->name);
	if (code_is_root_name(name))
		return GO_ROOT;
	if (is_one_of(name, signals))
		return GO_SIGNAL;
	if (is_one_of(name, leaves))
		return GO_LEAVE;
	if (is_one_of(name, jumps))
		return GO_JUMP;
	if (is_one_of(name, calls))
		return GO_CALLER;
	return f->flags & PCLNTAB_SP_WRITE || is_one_of(name, switches) ? GO_SWITCH : GO_PLAIN;
}

/* Behind the instruction that makes the frame register this function's: mov %rsp,%rbp, or until Go 1.20
 * lea n(%rsp),%rbp. */
static uint64_t find_frame(const uint8_t *code, size_t size)
{
	for (size_t i = 0; i + 3 <= size; i++) {
		if (!memcmp(code + i, "\x48\x89\xe5", 3))
			return i + 3;
		if (i + 5 <= size && !memcmp(code + i, "\x48\x8d\x6c\x24", 4))
			return i + 5;
		if (i + 8 <= size && !memcmp(code + i, "\x48\x8d\xac\x24", 4))
			return i + 8;
	}
	return UINT64_MAX;
}

/* mov 0x38(%reg),%rsp, from g.sched.sp; mov (%reg),%rsp, from a gobuf; on aarch64 mov sp, xN. */
static bool is_switch(uint16_t machine, const uint8_t *p)
{
	if (machine == EM_AARCH64)
		return (p[0] & 0x1f) == 0x1f && !(p[1] & 0xfc) && !p[2] && p[3] == 0x91;
	if ((p[0] & 0xfe) != 0x48 || p[1] != 0x8b || (p[2] & 7) == 4) /* 4: with another byte behind it */
		return false;
	return ((p[2] & 0xf8) == 0x60 && p[3] == 0x38) || ((p[2] & 0xf8) == 0x20 && p[2] != 0x25);
}

/* Behind the instruction that loads the stack pointer of another stack. */
static uint64_t find_switch(uint16_t machine, const uint8_t *code, size_t size)
{
	for (size_t i = 0; i + 4 <= size; i += machine == EM_AARCH64 ? 4 : 1)
		if (is_switch(machine, code + i))
			return i + (machine == EM_X86_64 && (code[i + 2] & 0xf8) == 0x20 ? 3 : 4);
	return UINT64_MAX;
}

static void read_code(struct go *g, struct function *fn)
{
	size_t size = (size_t)MIN(fn->f.end - fn->f.start, (uint64_t)CODE_SIZE);
	const uint8_t *code;
	uint64_t offset;

	fn->frame_at = fn->switch_at = UINT64_MAX;
	if (elf_offset_of(g->elf, fn->f.start, &offset) < 0)
		return;
	code = window_bytes(&g->code, offset, &size);
	if (!code)
		return;
	if (g->elf->machine == EM_X86_64)
		fn->frame_at = find_frame(code, MIN(size, PROLOGUE_MAX));
	if (fn->kind == GO_CALLER && (fn->frame_at != UINT64_MAX || g->elf->machine == EM_AARCH64))
		fn->kind = GO_SWITCH;
	if (fn->kind == GO_LEAVE || fn->kind == GO_JUMP)
		fn->switch_at = find_switch(g->elf->machine, code, size);
}

static struct cfi_value at_cfa(int64_t off)
{
	return (struct cfi_value){ .how = CFI_MEMORY, .base = ABI_BASE_CFA, .off = off };
}

/* Where the stack is the function's own, or (@by_fp) where the frame register is. */
static struct cfi_state state_of(uint16_t machine, int64_t depth, bool has_frame, bool by_fp)
{
	struct cfi_state s = { .cfa.how = CFI_VALUE };

	if (machine == EM_X86_64) {
		s.cfa.base = by_fp ? 6 : 7;
		s.cfa.off = by_fp ? 16 : depth + 8;
		s.ra = at_cfa(-8);
		if (has_frame && depth)
			s.fp = at_cfa(-16);
		return s;
	}
	s.cfa.base = by_fp ? 29 : 31;
	s.cfa.off = by_fp ? depth + 8 : depth;
	if (depth) {
		s.ra = at_cfa(-depth);
		s.fp = at_cfa(-depth - 8);
	}
	return s;
}

static int row_of(struct go *g, const struct function *fn, uint64_t at, int64_t depth, struct abi_row *out)
{
	bool has_frame = g->elf->machine == EM_AARCH64 ? depth > 0 : at >= fn->frame_at && depth > 0;
	struct cfi_state state;

	*out = (struct abi_row){ 0 };
	if (fn->kind == GO_ROOT || (fn->kind == GO_LEAVE && at >= fn->switch_at)) {
		out->cfa = ABI_CFA_STOP;
		return 0;
	}
	if (depth < 0 || (fn->kind == GO_JUMP && at >= fn->switch_at)) {
		g->out->stats.unsupported++;
		out->cfa = ABI_CFA_UNSUPPORTED;
		return 0;
	}
	if (fn->kind == GO_CALLER) { /* there is nothing better than the caller's record */
		out->cfa = ABI_CFA_FRAME_RECORD;
		return 0;
	}
	state = state_of(g->elf->machine, depth, has_frame, fn->kind == GO_SWITCH && has_frame);
	return cfi_row_of(g->out, g->elf->machine, &state, out);
}

static int put_row(struct go *g, const struct function *fn, uint64_t at, int64_t depth, size_t first)
{
	struct cfi *out = g->out;
	struct abi_row row;
	int r = row_of(g, fn, at, depth, &row);

	if (r < 0 || (out->row_count > first && !memcmp(&out->rows[out->row_count - 1].row, &row, sizeof(row))))
		return r;
	return cfi_put_row(out, (uint32_t)at, row);
}

/* Rows of one function: where the depth changes, and where the frame register or the stack pointer does. */
static int add_rows(struct go *g, struct function *fn, size_t first)
{
	uint64_t from, size = fn->f.end - fn->f.start, special[2];
	struct pclntab_steps steps = { .code_unit = g->table.code_unit };
	int r = 1;

	special[0] = MIN(fn->frame_at, fn->switch_at);
	special[1] = MAX(fn->frame_at, fn->switch_at);
	steps.bytes = cur_of(g->steps + fn->f.steps, g->steps_size - (size_t)fn->f.steps);
	while (steps.at < size && (r = pclntab_step(&steps, &from)) > 0) {
		if (!g->turns_left--)
			return -E2BIG;
		r = put_row(g, fn, from, steps.depth, first);
		for (size_t i = 0; r == 0 && i < ARRAY_SIZE(special); i++)
			if (special[i] > from && special[i] < MIN(steps.at, size))
				r = put_row(g, fn, special[i], steps.depth, first);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	fn->f.end = fn->f.start + MIN(steps.at, size); /* behind it there is padding, or code that is not Go's */
	return 0;
}

static int add_function(struct go *g, struct function *fn)
{
	size_t first = g->out->row_count;
	int r;

	if (fn->f.end == fn->f.start || !fn->f.steps)
		return 0;
	if (fn->f.end - fn->f.start > UINT32_MAX || fn->f.steps >= g->steps_size)
		return -EBADMSG;
	fn->kind = kind_of(g, &fn->f);
	read_code(g, fn);
	r = add_rows(g, fn, first);
	if (r == 0 && g->out->row_count > first) {
		uint32_t size = (uint32_t)(fn->f.end - fn->f.start);

		r = cfi_put_span(g->out, fn->f.start, size, first, fn->kind == GO_SIGNAL);
		g->out->stats.fdes += r == 0;
	}
	if (r == -EBADMSG)
		g->out->row_count = first;
	return r;
}

static int load(struct go *g)
{
	uint64_t size = g->table.functions - g->table.steps;
	int r;

	if (size > UNWIND_GO_STEPS_MAX)
		return -E2BIG;
	g->steps = malloc((size_t)size + 1);
	if (!g->steps)
		return -ENOMEM;
	g->steps_size = (size_t)size;
	r = reader_read(&g->table.in, g->steps, (size_t)size, g->table.steps);
	if (r == 0)
		r = reader_window_init(&g->code, &g->elf->in, CODE_WINDOW);
	if (r == 0)
		r = reader_window_init(&g->names, &g->table.in, CODE_WINDOW);
	return r;
}

static void walk_releasep(struct pclntab_walk *w)
{
	pclntab_walk_release(w);
}

static int add_functions(struct go *g)
{
	scoped(walk_releasep) struct pclntab_walk walk = { 0 };
	struct function fn;
	int r = pclntab_walk_init(&walk, &g->table);

	if (r < 0)
		return r;
	while ((r = pclntab_walk_next(&walk, &fn.f)) != 0) {
		if (r > 0)
			r = add_function(g, &fn);
		if (r == -EBADMSG)
			g->out->stats.bad++;
		else if (r < 0)
			return r;
		if (walk.entries.error || walk.functions.error)
			return 0;
		if (g->code.error && g->code.error != -ENODATA)
			return g->code.error;
	}
	return 0;
}

int unwind_go_read(const struct elf *elf, struct cfi *out)
{
	scoped(go_release) struct go g = { .elf = elf, .out = out, .turns_left = UNWIND_GO_TURNS_MAX };
	int r = pclntab_open(elf, &g.table);

	if (r == -ENOENT || r == -ENOTSUP)
		return 0;
	if (r == 0 && !g.table.steps)
		return 0;
	if (r == 0)
		r = load(&g);
	return r < 0 ? r : add_functions(&g);
}
