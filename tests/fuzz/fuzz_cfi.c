/* SPDX-License-Identifier: Apache-2.0 */
/* Input: one byte that says how to read the rest: as an ELF file, or as a section of call frame information for an ELF
 * file that is otherwise made up. What comes out must be a table as abi/unwind.h promises it. */
#include "fuzz.h"

#include <elf.h>

#include "base/buf.h"
#include "object/unwind/cfi.h"
#include "object/unwind/table.h"
#include "object/unwind/text.h"

#define IS_FILE 1
#define IS_EH 2
#define IS_AARCH64 4
#define HAS_END 8

static void check_page(const struct abi_table_head *head, const union abi_element *elements, uint64_t index)
{
	const struct abi_page *page = &elements[1 + index / 8].pages[index % 8];
	int low = -1;
	bool is_filled = false;

	must((uint64_t)page->first + page->count <= head->size && page->count <= ABI_PAGE_ROWS_MAX / 8);
	for (uint32_t k = 0; k < page->count * 8u; k++) {
		const struct abi_row *row = &elements[page->first + k / 8].rows[k % 8];

		if (row->low == ABI_ROW_FILLER) {
			is_filled = true;
			must(k / 8 == page->count - 1u && k % 8);
			continue;
		}
		must(!is_filled && row->low > low && row->low < 1 << ABI_PAGE_SHIFT && (low >= 0 || !row->low));
		must(row->cfa < ABI_CFA_COUNT && row->saved < ABI_SAVED_COUNT);
		must(row->cfa != ABI_CFA_RULE || row->cfa_off < head->rule_count);
		low = row->low;
	}
}

static void check_table(const struct elf *elf, const struct unwind_table *t)
{
	const struct abi_table_head *head = &t->elements[0].head;
	struct unwind_span span;

	unwind_span_of(elf, &span);
	must(head->magic == ABI_TABLE_MAGIC && head->pages == span.pages && head->first_page == span.first_page);
	must(!head->rule_count || (uint64_t)head->rules + (head->rule_count + 1) / 2 <= head->size);
	for (uint64_t i = 0; i < head->pages; i++) {
		uint64_t offset = (head->first_page + i) << ABI_PAGE_SHIFT;
		const struct abi_row *row = unwind_table_find(t->elements, offset + (i * 37 & 0xfff));

		check_page(head, t->elements, i);
		must(!row || (row->low <= (i * 37 & 0xfff)));
	}
	must(!unwind_table_find(t->elements, (head->first_page + head->pages) << ABI_PAGE_SHIFT));
	must(!unwind_table_find(t->elements, UINT64_MAX));
}

static void try_file(const uint8_t *data, size_t size)
{
	scoped(unwind_table_release) struct unwind_table t = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	scoped(elf_release) struct elf elf = { 0 };
	struct reader in = reader_of(data, size);

	if (elf_parse(&in, &elf) < 0 || unwind_table_build(&elf, &elf, &t) < 0 || !t.elements)
		return;
	must(t.source != UNWIND_SOURCE_NONE);
	check_table(&elf, &t);
	unwind_text(&elf, &t, &text);
}

static void try_section(uint8_t how, const uint8_t *data, size_t size)
{
	scoped(cfi_release) struct cfi cfi = { 0 };
	struct cfi_section section = {
		.in = reader_of(data, size),
		.address = 0x1000,
		.machine = how & IS_AARCH64 ? EM_AARCH64 : EM_X86_64,
		.is_eh = how & IS_EH,
		.has_end = how & HAS_END,
	};

	cfi_init(&cfi, 1 << 16);
	if (cfi_read(&section, &cfi) < 0)
		return;
	for (size_t i = 0; i < cfi.span_count; i++) {
		const struct cfi_span *span = &cfi.spans[i];

		must(span->count && span->count <= cfi.row_count && span->first <= cfi.row_count - span->count);
		must(!cfi.rows[span->first].at);
		for (uint32_t k = 0; k < span->count; k++) {
			const struct cfi_row *row = &cfi.rows[span->first + k];

			must(row->at < span->size && (!k || row->at > row[-1].at));
			must(row->row.cfa <= CFI_CFA_POPPED && row->row.saved < ABI_SAVED_COUNT);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && data[0] & IS_FILE)
		try_file(data + 1, size - 1);
	else if (size)
		try_section(data[0], data + 1, size - 1);
	return 0;
}
