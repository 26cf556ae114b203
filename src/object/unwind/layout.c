/* SPDX-License-Identifier: Apache-2.0 */
#include "object/unwind/layout.h"

#include "base/array.h"

#define ROWS ARRAY_SIZE(((union abi_element *)0)->rows)
#define PAGES ARRAY_SIZE(((union abi_element *)0)->pages)
#define RULES ARRAY_SIZE(((union abi_element *)0)->rules)
#define PAGE_NONE UINT64_MAX

/* Every row puts at most one element, and every page; the limits on both keep an element's number below 2^32. */
#define ELEMENTS_MAX ((size_t)UNWIND_ROWS_MAX + (size_t)UNWIND_PAGES_MAX * 2 + 65536)

static int add_element(struct layout *l, union abi_element **out)
{
	int r = array_grow(&l->elements, &l->cap, l->count, ELEMENTS_MAX);

	if (r < 0)
		return r;
	*out = &l->elements[l->count++];
	**out = (union abi_element){ 0 };
	return 0;
}

int layout_init(struct layout *l, struct unwind_span span)
{
	union abi_element *element;
	int r = 0;

	*l = (struct layout){ .span = span, .page = PAGE_NONE, .now = { .cfa = ABI_CFA_INVALID } };
	for (size_t i = 0; r == 0 && i < 1 + (span.pages + PAGES - 1) / PAGES; i++)
		r = add_element(l, &element);
	if (r < 0)
		layout_release(l);
	return r;
}

void layout_release(struct layout *l)
{
	free(l->elements);
	*l = (struct layout){ 0 };
}

static struct abi_page *page_of(struct layout *l, uint64_t index)
{
	return &l->elements[1 + index / PAGES].pages[index % PAGES];
}

static int add_row(struct layout *l, uint16_t low, struct abi_row row)
{
	union abi_element *element;

	if (l->in_use == 0 || l->in_use == ROWS) {
		int r = add_element(l, &element);

		if (r < 0)
			return r;
		for (size_t i = 0; i < ROWS; i++)
			element->rows[i].low = ABI_ROW_FILLER;
		page_of(l, l->page)->count++; /* at most 4096 / 8 */
		l->in_use = 0;
	}
	row.low = low;
	l->elements[l->count - 1].rows[l->in_use++] = row;
	l->row_count++;
	return 0;
}

/* Rows go to page @index from now on; those before it that had none of their own get the row in force. */
static int open_page(struct layout *l, uint64_t index)
{
	int r = 0;

	for (uint64_t i = l->page == PAGE_NONE ? index : l->page + 1; r == 0 && i <= index; i++) {
		if (i < index && l->now.cfa == ABI_CFA_INVALID)
			continue;
		l->page = i;
		l->in_use = 0;
		page_of(l, i)->first = (uint32_t)l->count;
		r = i < index ? add_row(l, 0, l->now) : 0;
	}
	return r;
}

int layout_put(struct layout *l, uint64_t offset, struct abi_row row)
{
	uint64_t index = (offset >> ABI_PAGE_SHIFT) - l->span.first_page;
	uint16_t low = offset & ((1u << ABI_PAGE_SHIFT) - 1);
	int r = 0;

	row.low = 0;
	if (!memcmp(&row, &l->now, sizeof(row)))
		return 0;
	must(index < l->span.pages && (l->page == PAGE_NONE || index >= l->page));
	if (index != l->page) {
		r = open_page(l, index);
		if (r == 0 && low)
			r = add_row(l, 0, l->now);
	}
	if (r == 0)
		r = add_row(l, low, row);
	l->now = row;
	return r;
}

int layout_finish(struct layout *l, const struct abi_rule *rules, size_t rule_count, union abi_element **out)
{
	struct abi_table_head head = { .magic = ABI_TABLE_MAGIC,
				       .first_page = l->span.first_page,
				       .pages = l->span.pages };
	union abi_element *element = NULL, *fit;
	int r = 0;

	if (rule_count)
		head.rules = (uint32_t)l->count;
	for (size_t i = 0; r == 0 && i < rule_count; i++) {
		if (i % RULES == 0)
			r = add_element(l, &element);
		if (r == 0)
			element->rules[i % RULES] = rules[i];
	}
	if (r < 0)
		return r;
	head.rule_count = (uint32_t)rule_count;
	head.row_count = (uint32_t)l->row_count;
	head.size = (uint32_t)l->count;
	l->elements[0].head = head;
	fit = realloc(l->elements, l->count * sizeof(*fit));
	*out = fit ? fit : l->elements;
	l->elements = NULL;
	return 0;
}
