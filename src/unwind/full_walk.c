/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/full_walk.h"

#include "object/unwind/cfi_caller.h"
#include "unwind/elf_file.h"
#include "unwind/world.h"
#include "walk/walk_native.h"

#define OPEN_MAX 8 /* files kept open: those of the last walks */
/* Frames whose registers are looked up on the way to one that rows cannot leave, each of which takes 10 to 30 us; and
 * how many of those one stack may have. */
#define FRAMES_FULL_MAX 64
#define PASSES_MAX 8
#define CALLERS_MAX 128 /* asked for in one walk: a hostile file makes each as dear as it can (CFI_RULES_BYTES) */

struct open_file {
	uint32_t id; /* 0: none */
	uint64_t used;
	struct elf_file file;
	struct cfi_file cfi;
	bool is_usable;
};

struct full_walk {
	struct files *files;
	struct open_file open[OPEN_MAX];
	uint64_t clock;
	unsigned int callers_left; /* of the walk at hand */
};

static void close_file(struct open_file *o)
{
	elf_file_release(&o->file);
	*o = (struct open_file){ .file = ELF_FILE_INIT };
}

int full_walk_new(struct files *files, struct full_walk **out)
{
	struct full_walk *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->files = files;
	for (size_t i = 0; i < OPEN_MAX; i++)
		f->open[i].file = (struct elf_file)ELF_FILE_INIT;
	*out = f;
	return 0;
}

void full_walk_free(struct full_walk *f)
{
	for (size_t i = 0; f && i < OPEN_MAX; i++)
		close_file(&f->open[i]);
	free(f);
}

/* NULL: it has no call frame information that can be asked. */
static const struct cfi_file *get_file(struct full_walk *f, uint32_t id)
{
	struct open_file *o = &f->open[0];
	int r;

	for (size_t i = 0; i < OPEN_MAX; i++) {
		if (f->open[i].id == id) {
			f->open[i].used = ++f->clock;
			return f->open[i].is_usable ? &f->open[i].cfi : NULL;
		}
		if (f->open[i].used < o->used)
			o = &f->open[i];
	}
	close_file(o);
	o->id = id;
	o->used = ++f->clock;
	r = elf_file_open(f->files, id, &o->file);
	o->is_usable = r == 0 && cfi_file_open(&o->file.elf, &o->cfi) == 0;
	if (r < 0 && !files_error_is_final(r))
		o->id = 0; /* it is opened again for the next frame */
	return o->is_usable ? &o->cfi : NULL;
}

/* Where a step began. */
struct place {
	uint64_t pc, sp;
	struct abi_map map;
	bool is_return, is_leaf;
};

static struct place place_of(const struct walk *w)
{
	return (struct place){ .pc = w->pc, .sp = w->sp, .is_return = w->is_return, .is_leaf = w->is_leaf };
}

static int read_memory(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct walk *w = self;

	return walk_read(w, dst, size, at);
}

/* The registers of the caller of the frame at @at, which has @now. */
static int find_caller(struct full_walk *f, struct walk *w, const struct place *at, const struct cfi_registers *now,
		       struct cfi_registers *out)
{
	const struct cfi_memory memory = { .read = read_memory, .self = w };
	uint64_t address, offset = at->pc - (at->is_return ? 1 : 0) - at->map.file_base;
	const struct cfi_file *file;

	if (!f->callers_left)
		return -ENOTSUP;
	f->callers_left--;
	if (!now->known || at->map.kind == ABI_MAP_JIT || at->map.kind == ABI_MAP_NONE || !at->map.file)
		return -ENOTSUP;
	file = get_file(f, at->map.file);
	if (!file || elf_address_of(file->elf, offset, &address) < 0)
		return -ENOTSUP;
	return cfi_caller(file, address, at->is_leaf, now, &memory, out);
}

/* Those that are known in any frame. */
static void forget_others(const struct walk *w, struct cfi_registers *regs)
{
	regs->value[WALK_REG_SP] = w->sp;
	regs->value[WALK_REG_FP] = w->fp;
	regs->value[WALK_REG_PC] = w->pc;
	regs->known = UINT64_C(1) << WALK_REG_SP | UINT64_C(1) << WALK_REG_FP | UINT64_C(1) << WALK_REG_PC;
}

static void know_all(const struct walk *w, struct cfi_registers *regs)
{
	memcpy(regs->value, w->leaf, sizeof(regs->value));
	regs->known = (UINT64_C(2) << WALK_REG_PC) - 1;
}

static bool knows(const struct cfi_registers *regs, unsigned int reg)
{
	return regs->known >> reg & 1;
}

/* A row has moved @w from @at to its caller: the other registers follow. */
static void follow(struct full_walk *f, struct walk *w, const struct place *at, struct cfi_registers *regs)
{
	struct cfi_registers up;

	if (w->is_leaf) { /* what a signal interrupted */
		know_all(w, regs);
		return;
	}
	if (find_caller(f, w, at, regs, &up) < 0 || up.value[WALK_REG_SP] != w->sp ||
	    walk_strip(up.value[WALK_REG_PC]) != w->pc) {
		forget_others(w, regs);
		return;
	}
	*regs = up;
	regs->value[WALK_REG_FP] = w->fp;
	regs->value[WALK_REG_PC] = w->pc;
	regs->known |= UINT64_C(1) << WALK_REG_FP;
}

/* A row could not lead on from @at, whose frame was pushed. Return: whether @w is at its caller now. */
static bool leave(struct full_walk *f, struct walk *w, const struct place *at, struct cfi_registers *regs)
{
	struct cfi_registers up;
	uint64_t pc, sp;

	if (find_caller(f, w, at, regs, &up) < 0 || !knows(&up, WALK_REG_SP))
		return false;
	pc = walk_strip(up.value[WALK_REG_PC]);
	sp = up.value[WALK_REG_SP];
	if (pc < WALK_USER_MIN || pc > WALK_USER_MAX || sp <= at->sp || sp > WALK_USER_MAX || (sp & 7) ||
	    walk_code_before(w, pc) != WALK_CODE_CALL)
		return false;
	w->pc = pc;
	w->sp = sp;
	w->fp = knows(&up, WALK_REG_FP) ? up.value[WALK_REG_FP] : 0;
	w->is_leaf = 0;
	w->is_return = 1;
	w->guessed = 0;
	w->end = ABI_END_FRAME_LIMIT; /* as it started */
	*regs = up;
	return true;
}

/* Where a walk stands, with the registers known there. */
struct stand {
	uint64_t leaf[WALK_REGS], pc, sp, fp, lr;
	uint32_t count;
	uint8_t is_return, is_leaf, guessed;
	struct cfi_registers regs;
};

static void take_stand(struct stand *s, const struct walk *w)
{
	memcpy(s->leaf, w->leaf, sizeof(s->leaf));
	s->pc = w->pc;
	s->sp = w->sp;
	s->fp = w->fp;
	s->lr = w->lr;
	s->count = w->count;
	s->is_return = w->is_return;
	s->is_leaf = w->is_leaf;
	s->guessed = w->guessed;
}

static void return_to(struct walk *w, const struct stand *s)
{
	memcpy(w->leaf, s->leaf, sizeof(s->leaf));
	w->pc = s->pc;
	w->sp = s->sp;
	w->fp = s->fp;
	w->lr = s->lr;
	w->count = s->count;
	w->is_return = s->is_return;
	w->is_leaf = s->is_leaf;
	w->guessed = s->guessed;
	w->at_signal = 0;
	walk_native_clear(w);
}

/* Goes from the stand to the frame that rows cannot leave and leaves it. Return: whether it could. */
static bool pass(struct full_walk *f, struct walk *w, struct stand *s)
{
	struct cfi_registers regs = s->regs;

	return_to(w, s);
	for (int turn = 0; turn < FRAMES_FULL_MAX; turn++) {
		struct place at = place_of(w);
		enum walk_next next = unwind_turn(w);

		at.map = w->map;
		if (w->unwinder) { /* which registers a runtime keeps nobody says */
			if (next != WALK_MORE)
				return false;
			if (!w->passed)
				forget_others(w, &regs);
		} else if (next == WALK_MORE) {
			follow(f, w, &at, &regs);
		} else {
			if (w->end != ABI_END_UNSUPPORTED || !leave(f, w, &at, &regs))
				return false;
			take_stand(s, w);
			s->regs = regs;
			return true;
		}
	}
	return false;
}

void full_walk(struct full_walk *f, struct walk *w)
{
	bool may_repeat = w->is_leaf && !w->at_signal && w->mode != WALK_FP;
	struct stand stand;

	f->callers_left = CALLERS_MAX;
	take_stand(&stand, w);
	know_all(w, &stand.regs);
	unwind_walk(w);
	for (int turn = 0; may_repeat && w->end == ABI_END_UNSUPPORTED && turn < PASSES_MAX; turn++) {
		if (!pass(f, w, &stand)) {
			return_to(w, &stand);
			unwind_walk(w); /* as far as rows go */
			return;
		}
		unwind_walk(w);
	}
}
