/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in the order of the file -> the elements of a table: pages, directory, fillers. Used by table.c. */
#pragma once

#include <linux/types.h>

#include "abi/unwind.h"
#include "object/unwind/table.h"

struct layout {
	union abi_element *elements; /* owned */
	size_t count, cap;
	struct unwind_span span;
	uint64_t page;       /* the one rows go to, as an index of the directory; ~0: none yet */
	unsigned int in_use; /* rows of the last element, 0: none of this page yet */
	struct abi_row now;  /* in force behind the last row put */
	uint64_t row_count;
};

int layout_init(struct layout *l, struct unwind_span span) warn_unused;
void layout_release(struct layout *l);
/** layout_put - @row is in force from @offset on, which must grow from call to call. Return: 0, -E2BIG or -ENOMEM. */
int layout_put(struct layout *l, uint64_t offset, struct abi_row row) warn_unused;
/** layout_finish - the last page, the rules, the head; the elements are the caller's then. */
int layout_finish(struct layout *l, const struct abi_rule *rules, size_t rule_count,
		  union abi_element **out) warn_unused;
