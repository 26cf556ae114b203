/* SPDX-License-Identifier: Apache-2.0 */
#include "object/unwind/text.h"

#include <elf.h>

static void add_register(struct buf *out, uint16_t machine, uint8_t reg)
{
	static const char *const x86[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
					   "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip" };

	if (reg == ABI_BASE_CFA)
		buf_addc(out, 'c');
	else if (machine == EM_X86_64 && reg < ARRAY_SIZE(x86))
		buf_adds(out, str_of(x86[reg]));
	else if (machine == EM_AARCH64 && reg == 31)
		buf_adds(out, STR("sp"));
	else
		buf_addf(out, "x%u", reg);
}

static void add_place(struct buf *out, uint16_t machine, uint8_t reg, int64_t off)
{
	add_register(out, machine, reg);
	buf_addf(out, "%+lld", (long long)off);
}

static void add_where(struct buf *out, uint16_t machine, const struct abi_where *w)
{
	switch (w->place) {
	case ABI_PLACE_SAME:
		buf_addc(out, 's');
		break;
	case ABI_PLACE_VALUE:
		buf_addc(out, '=');
		add_place(out, machine, w->base, w->off);
		break;
	case ABI_PLACE_MEMORY:
		if (w->base != ABI_BASE_CFA)
			buf_addc(out, '@');
		add_place(out, machine, w->base, w->off);
		break;
	default:
		buf_addc(out, 'u');
	}
}

static void add_rule(struct buf *out, uint16_t machine, const struct abi_rule *rule)
{
	if (rule->cfa.place == ABI_PLACE_MEMORY)
		buf_adds(out, STR("*("));
	add_place(out, machine, rule->cfa.base, rule->cfa.off);
	if (rule->cfa.place == ABI_PLACE_MEMORY)
		buf_addf(out, ")%+d", rule->cfa_add);
	buf_addc(out, ' ');
	add_where(out, machine, &rule->fp);
	buf_addc(out, ' ');
	add_where(out, machine, &rule->ra);
}

static void add_saved(struct buf *out, uint16_t machine, const struct abi_row *row)
{
	int off = row->fp_off * 8;

	switch (row->saved) {
	case ABI_SAVED_AT:
	case ABI_SAVED_PAIR:
		buf_addf(out, " c%+d", off);
		break;
	case ABI_SAVED_UNDEFINED:
		buf_adds(out, STR(" u"));
		break;
	default:
		buf_adds(out, STR(" s"));
	}
	if (machine == EM_X86_64)
		buf_adds(out, STR(" c-8"));
	else if (row->saved == ABI_SAVED_PAIR || row->saved == ABI_SAVED_RETURN)
		buf_addf(out, " c%+d", row->saved == ABI_SAVED_PAIR ? off + 8 : off);
	else
		buf_adds(out, STR(" s"));
}

static void add_row(struct buf *out, uint16_t machine, const union abi_element *elements, const struct abi_row *row)
{
	static const char *const plain[ABI_CFA_COUNT] = {
		[ABI_CFA_INVALID] = "none",
		[ABI_CFA_STOP] = "stop",
		[ABI_CFA_UNSUPPORTED] = "unsupported",
		[ABI_CFA_SIGNAL] = "signal",
		[ABI_CFA_FRAME_RECORD] = "frame-record",
	};

	if (row->cfa < ABI_CFA_COUNT && plain[row->cfa]) {
		buf_adds(out, str_of(plain[row->cfa]));
		return;
	}
	if (row->cfa == ABI_CFA_RULE) {
		add_rule(out, machine, &elements[elements[0].head.rules + row->cfa_off / 2].rules[row->cfa_off % 2]);
		return;
	}
	if (row->cfa == ABI_CFA_MOVED) {
		buf_adds(out, row->cfa_off == ABI_MOVED_NOW ? STR("moving") : STR("moved"));
		return;
	}
	if (row->cfa == ABI_CFA_FORKED)
		buf_adds(out, STR("forked:"));
	if (row->cfa == ABI_CFA_PLT) {
		buf_addf(out, "plt:%u", row->cfa_off);
	} else {
		uint8_t fp = machine == EM_X86_64 ? 6 : 29, sp = machine == EM_X86_64 ? 7 : 31;

		add_place(out, machine, row->cfa == ABI_CFA_FP ? fp : sp, (int64_t)row->cfa_off * 8);
	}
	add_saved(out, machine, row);
}

void unwind_text(const struct elf *elf, const struct unwind_table *t, struct buf *out)
{
	const struct abi_table_head *head;
	struct abi_row last = { .low = ABI_ROW_FILLER };

	if (!t->elements)
		return;
	head = &t->elements[0].head;
	for (uint64_t i = 0; i < head->pages; i++) {
		const struct abi_page *page = &t->elements[1 + i / 8].pages[i % 8];

		for (size_t k = 0; k < (size_t)page->count * 8; k++) {
			const struct abi_row *row = &t->elements[page->first + k / 8].rows[k % 8];
			uint64_t offset = (head->first_page + i) << ABI_PAGE_SHIFT | row->low, address;

			if (row->low == ABI_ROW_FILLER)
				break;
			last.low = row->low;
			if (!memcmp(&last, row, sizeof(last)) || elf_address_of(elf, offset, &address) < 0)
				continue;
			last = *row;
			buf_addf(out, "%016llx ", (unsigned long long)address);
			add_row(out, elf->machine, t->elements, row);
			buf_addc(out, '\n');
		}
	}
}
