/* SPDX-License-Identifier: Apache-2.0 */
#include "object/unwind/vdso.h"

#include <elf.h>

#include "base/cur.h"
#include "object/elf_symbols.h"

#define STRINGS_MAX KIB(2)

#define RET 0xd65f03c0u
#define PUSH_PAIR 0xa9807bfdu /* stp x29, x30, [sp, #-n]! (Arm ARM C6.2.314); n / 8 in bits 15 to 21, signed */
#define POP_PAIR 0xa8c07bfdu  /* ldp x29, x30, [sp], #n */
#define PAIR_MASK 0xffc07fffu

static bool is_vdso(const struct elf *elf)
{
	char text[STRINGS_MAX];
	struct reader in;

	return elf->machine == EM_AARCH64 && elf_symbols_strings(elf, SHT_DYNSYM, &in) == 0 &&
	       in.size <= sizeof(text) && reader_read(&in, text, (size_t)in.size, 0) == 0 &&
	       str_search(str_n(text, (size_t)in.size), STR("__kernel_rt_sigreturn")) >= 0;
}

/* In force behind the instruction: x30 holds the return address until the pair is stored, and again once it is loaded.
 * Behind a return the function goes on as it was before the frame was taken down. */
static struct abi_row row_behind(uint32_t code, const struct abi_row *now, struct abi_row *framed)
{
	const struct abi_row plain = { .cfa = ABI_CFA_SP };
	int words = (int)(code << 10) >> 25;

	if ((code & PAIR_MASK) == PUSH_PAIR && words < 0) {
		*framed = (struct abi_row){ .cfa = ABI_CFA_SP, .saved = ABI_SAVED_PAIR };
		framed->cfa_off = (uint16_t)-words;
		framed->fp_off = (int16_t)words;
		return *framed;
	}
	if ((code & PAIR_MASK) == POP_PAIR)
		return plain;
	return code == RET ? *framed : *now;
}

static int add_function(const struct elf *elf, uint64_t start, uint64_t size, struct cfi *out)
{
	struct abi_row now = { .cfa = ABI_CFA_SP }, framed = now;
	size_t first = out->row_count;
	uint64_t offset;
	int r;

	if (!size || size > UNWIND_VDSO_FUNCTION_MAX || elf_offset_of(elf, start, &offset) < 0)
		return 0;
	r = cfi_put_row(out, 0, now);
	for (uint32_t at = 0; r == 0 && at + 4 <= size; at += 4) {
		uint8_t bytes[4];
		struct cur c = cur_of(bytes, sizeof(bytes));
		struct abi_row next;

		r = reader_read(&elf->in, bytes, sizeof(bytes), offset + at);
		next = row_behind(cur_le32(&c), &now, &framed);
		if (r == 0 && at + 4 < size && memcmp(&next, &now, sizeof(now)) != 0)
			r = cfi_put_row(out, at + 4, next);
		now = next;
	}
	if (r == -ENODATA) {
		out->row_count = first;
		return 0;
	}
	/* A signal frame, if its code says so: __kernel_rt_sigreturn. */
	return r < 0 ? r : cfi_put_span(out, start, (uint32_t)size, first, true);
}

int unwind_vdso_read(const struct elf *elf, struct cfi *out)
{
	scoped(elf_symbols_release) struct elf_symbols symbols = { 0 };
	int r;

	if (!is_vdso(elf))
		return 0;
	elf_symbols_init(&symbols, elf_base(elf));
	r = elf_symbols_add(&symbols, elf, SHT_DYNSYM);
	if (r < 0)
		return r == -ENOENT || r == -EBADMSG ? 0 : r;
	elf_symbols_finish(&symbols, elf, (const struct reader[ELF_STRINGS_COUNT]){ 0 });
	for (size_t i = 0; r == 0 && i < MIN(symbols.count, (size_t)UNWIND_VDSO_SYMBOLS_MAX); i++) {
		const struct elf_symbol *s = &symbols.items[i];
		uint64_t size = s->size & ((1u << 28) - 1);

		r = add_function(elf, symbols.base + s->start, size, out);
	}
	return r;
}
