/* SPDX-License-Identifier: Apache-2.0 */
/* The native step over a process whose registers, unwind rows and memory are the input: it ends, within bounds, and its
 * stack goes down only as often as it may. Layout: pc, sp, fp, lr (8 bytes each), a byte of flags, a byte with the mode
 * (two bits) and the elements of the table (six), those elements, then the memory. Memory is seen at CODE, where a file
 * is mapped, at JIT and at STACK. */
#include "fuzz.h"

#include <linux/types.h>

#include "base/cur.h"
#include "walk/walk_native.h"

#define CODE UINT64_C(0x10000)
#define JIT UINT64_C(0x7ff000000000)
#define STACK UINT64_C(0x7ffe00000000)
#define PART UINT64_C(0x10000000) /* how far each of them is mapped */

struct process {
	struct cur memory;
	union abi_element table[64];
	uint32_t count;
};

static int memory_read(void *self, void *dst, __u32 size, __u64 at)
{
	const struct process *p = self;
	size_t left = cur_left(&p->memory);
	uint64_t offset = at >= STACK ? at - STACK : at >= JIT ? at - JIT : at - CODE;

	if (size > left || offset > left - size)
		return -EFAULT;
	memcpy(dst, p->memory.pos + offset, size);
	return 0;
}

static int memory_map(void *self, __u64 pc, struct abi_map *out)
{
	const struct process *p = self;
	uint64_t start = pc >= JIT ? JIT : CODE;

	*out = (struct abi_map){ .start = start, .end = start + PART, .file_base = CODE - 0x800, .kind = ABI_MAP_JIT };
	if (start == CODE) {
		out->kind = p->count ? ABI_MAP_FILE : ABI_MAP_BARE;
		out->first_page = p->table[0].head.first_page;
		out->pages = p->table[0].head.pages;
		out->table = p->table[0].head.row_count & 1;
	}
	return pc >= out->start && pc < out->end ? 0 : -ENOENT;
}

static const void *memory_table(void *self, __u32 number)
{
	return number ? NULL : self;
}

static const union abi_element *memory_element(void *self, const void *table, __u32 index)
{
	struct process *p = self;

	must(table == self);
	return index < p->count ? &p->table[index] : NULL;
}

/* What a step must not change when the host could go on from here. */
struct resume {
	uint64_t pc, sp, fp, lr;
	uint32_t count;
	uint8_t flags[4];
};

static struct resume resume_of(const struct walk *w)
{
	return (struct resume){
		.pc = w->pc,
		.sp = w->sp,
		.fp = w->fp,
		.lr = w->lr,
		.count = w->count,
		.flags = { w->is_return, w->is_leaf, w->guessed, w->at_signal },
	};
}

static void check_end(const struct walk *w, const struct resume *before)
{
	struct resume after = resume_of(w);

	must(w->count <= ABI_FRAMES_MAX && w->end < ABI_END_COUNT);
	must(w->end != ABI_END_COMPLETE || w->mode != WALK_FP);
	must(w->end != ABI_END_NO_PROCESS);
	if (w->end == ABI_END_NO_MAPPING || w->end == ABI_END_NO_TABLE)
		must(!memcmp(before, &after, sizeof(after)));
	for (uint32_t i = 0; i < w->count; i++)
		must(w->mode != WALK_TABLE || !(w->frames[i].flags & ABI_FRAME_GUESSED));
}

static void run(struct walk *w)
{
	struct resume before;
	uint32_t falls = 0;
	bool signal;

	for (size_t turn = 0;; turn++) {
		must(turn <= ABI_FRAMES_MAX);
		before = resume_of(w);
		signal = w->at_signal;
		if (walk_native_step(w) != WALK_MORE)
			break;
		falls += w->sp < before.sp;
		must(falls <= WALK_FALLS_MAX + 1); /* the first frame record may lie anywhere */
		must(w->mode != WALK_FP || w->sp > before.sp || turn == 0 || signal);
		must(w->pc >= WALK_USER_MIN && w->pc <= WALK_USER_MAX);
		must(w->count == before.count + 1);
	}
	check_end(w, &before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur in = cur_of(data, size);
	struct process *p = calloc(1, sizeof(*p));
	struct walk *w = calloc(1, sizeof(*w));
	struct walk_world world = { memory_read, memory_map, memory_table, memory_element, p };
	uint8_t flags, shape;
	const void *table;

	must(w && p);
	w->world = &world;
	w->leaf[WALK_REG_PC] = cur_le64(&in);
	w->leaf[WALK_REG_SP] = cur_le64(&in);
	w->leaf[WALK_REG_FP] = cur_le64(&in);
	w->leaf[WALK_REG_FP + 1] = cur_le64(&in); /* x30 on aarch64; the stack pointer again on x86-64 */
	flags = cur_u8(&in);
	shape = cur_u8(&in);
	p->count = shape >> 2;
	table = cur_bytes(&in, p->count * sizeof(p->table[0]));
	if (table)
		memcpy(p->table, table, p->count * sizeof(p->table[0]));
	else
		p->count = 0;
	p->memory = in;
	w->mode = (uint8_t)((shape & 3) % 3);
	w->count = flags >> 1; /* kernel frames in front */
	walk_native_start(w, flags & 1);
	run(w);
	free(w);
	free(p);
	return 0;
}
