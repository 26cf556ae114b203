// SPDX-License-Identifier: Apache-2.0
#include "table_sample.h"

#define PAGE_SIZE (1u << ABI_PAGE_SHIFT)

static struct abi_row row_of(const struct row_sample *sample, uint32_t page)
{
	return (struct abi_row){
		.low = sample->offset / PAGE_SIZE == page ? (uint16_t)(sample->offset % PAGE_SIZE) : 0,
		.cfa = sample->cfa,
		.saved = sample->saved,
		.cfa_off = sample->cfa_off,
		.fp_off = sample->fp_off,
	};
}

/* The rows of one page: the one in force at its start, then those in it. Return: how many. */
static uint32_t page_rows(const struct row_sample *rows, size_t count, uint32_t page, struct abi_row *out)
{
	uint32_t filled = 0;

	for (size_t i = 0; i < count && rows[i].offset / PAGE_SIZE <= page; i++) {
		if (rows[i].offset <= page * PAGE_SIZE)
			filled = 0;
		out[filled++] = row_of(&rows[i], page);
	}
	return filled;
}

union abi_element *table_sample(const struct row_sample *rows, size_t count, const struct abi_rule *rules,
				size_t rule_count)
{
	uint32_t first_page = rows[0].offset / PAGE_SIZE, pages = rows[count - 1].offset / PAGE_SIZE - first_page + 1;
	uint32_t next = 1 + (pages + 7) / 8;
	size_t most = next + pages * (count / 8 + 2) + rule_count;
	union abi_element *elements = calloc(most, sizeof(*elements));
	struct abi_row *scratch = calloc(count + 1, sizeof(*scratch));

	must(elements && scratch);
	for (uint32_t i = 0; i < pages; i++) {
		uint32_t filled = page_rows(rows, count, first_page + i, scratch), used = (filled + 7) / 8;

		must(!filled || !scratch[0].low); /* a page starts with the row in force */
		elements[1 + i / 8].pages[i % 8] = (struct abi_page){ .first = next, .count = (uint16_t)used };
		for (uint32_t j = 0; j < used * 8; j++) {
			elements[next + j / 8].rows[j % 8] =
				j < filled ? scratch[j] : (struct abi_row){ .low = ABI_ROW_FILLER };
		}
		next += used;
	}
	elements[0].head = (struct abi_table_head){
		.magic = ABI_TABLE_MAGIC,
		.size = next + (uint32_t)(rule_count + 1) / 2,
		.first_page = first_page,
		.pages = pages,
		.rules = rule_count ? next : 0,
		.rule_count = (uint32_t)rule_count,
		.row_count = (uint32_t)count,
	};
	for (size_t i = 0; i < rule_count; i++)
		elements[next + i / 2].rules[i % 2] = rules[i];
	free(scratch);
	return elements;
}
