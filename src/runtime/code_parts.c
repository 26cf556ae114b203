/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/code_parts.h"

#include <elf.h>

#include "object/x86.h"

#define PART_MAX MIB(1) /* bytes of one stretch: 84 KB were met */
#define JUMPS_MAX 16384 /* jumps out of a stretch that are looked up; 379 were met */

struct parts {
	const struct elf *elf;
	struct elf_fdes fdes;
	struct elf_fde items[RUNTIME_RANGES_MAX];
	size_t count;
	size_t looked;
};

static bool covers(const struct elf_fde *part, uint64_t at)
{
	return at - part->start < part->size;
}

static bool is_known(const struct parts *p, uint64_t at)
{
	for (size_t i = 0; i < p->count; i++)
		if (covers(&p->items[i], at))
			return true;
	return false;
}

static void add_part(struct parts *p, uint64_t start, uint64_t size)
{
	if (p->count < RUNTIME_RANGES_MAX && size && size <= PART_MAX && !is_known(p, start))
		p->items[p->count++] = (struct elf_fde){ .start = start, .size = size };
}

/* Return: 0; -ENOMEM or the reader's error. What cannot be looked up is left out. */
static int follow(struct parts *p, const struct x86 *jump)
{
	struct elf_fde fde;
	int r;

	if (is_known(p, jump->target) || p->looked++ >= JUMPS_MAX)
		return 0;
	r = elf_fde_find(p->elf, &p->fdes, jump->target, &fde);
	if (r < 0)
		return r == -ENOENT || r == -ENOTSUP || r == -EBADMSG || r == -ENODATA ? 0 : r;
	if (jump->flow == X86_FLOW_JUMP_IF || jump->target != fde.start)
		add_part(p, fde.start, fde.size);
	return 0;
}

static int scan(struct parts *p, size_t index)
{
	struct elf_fde part = p->items[index];
	scoped(freep) uint8_t *code = NULL;
	uint64_t offset;
	int r;

	if (elf_offset_of(p->elf, part.start, &offset) < 0)
		return 0;
	code = malloc((size_t)part.size);
	if (!code)
		return -ENOMEM;
	r = reader_read(&p->elf->in, code, (size_t)part.size, offset);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	for (size_t at = 0; r == 0 && at < part.size;) {
		struct x86 i;

		if (x86_decode(code + at, (size_t)part.size - at, part.start + at, &i) < 0)
			break; /* no code any more: jump tables lie elsewhere */
		at += i.length;
		if ((i.flow == X86_FLOW_JUMP || i.flow == X86_FLOW_JUMP_IF) && i.target)
			r = follow(p, &i);
	}
	return r;
}

static void publish(const struct parts *p, struct runtime_binary *out)
{
	for (size_t i = 0; i < p->count; i++) {
		uint64_t offset;

		if (elf_offset_of(p->elf, p->items[i].start, &offset) < 0)
			continue;
		out->loops[out->loop_count].start = offset;
		out->loops[out->loop_count++].end = offset + p->items[i].size;
	}
}

int code_parts(const struct elf *elf, const struct elf_fde *seeds, size_t count, struct runtime_binary *out)
{
	struct parts p = { .elf = elf };
	int r = elf_fdes_open(elf, &p.fdes);

	if (r == -ENOMEM)
		return r;
	if (r < 0) /* then symbols are all there is */
		p.fdes = (struct elf_fdes){ 0 };
	for (size_t i = 0; i < count; i++) {
		struct elf_fde fde;

		if (seeds[i].size)
			add_part(&p, seeds[i].start, seeds[i].size);
		else if (elf_fde_find(elf, &p.fdes, seeds[i].start, &fde) == 0 && fde.start == seeds[i].start)
			add_part(&p, fde.start, fde.size);
	}
	r = 0;
	if (elf->machine == EM_X86_64)
		for (size_t i = 0; r == 0 && i < p.count; i++)
			r = scan(&p, i);
	publish(&p, out);
	return r;
}
