/* SPDX-License-Identifier: Apache-2.0 */
/* Small unwind tables for tests of the walkers, laid out as abi/unwind.h says. */
#pragma once

#include <linux/types.h>

#include "abi/unwind.h"
#include "base/base.h"

struct row_sample {
	uint32_t offset; /* in the file; ascending */
	uint8_t cfa, saved;
	uint16_t cfa_off;
	int16_t fp_off;
};

/** table_sample - a table of these rows; the caller frees it. Fails the test when out of memory. */
union abi_element *table_sample(const struct row_sample *rows, size_t count, const struct abi_rule *rules,
				size_t rule_count);
