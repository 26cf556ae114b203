/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and line tables: u8 no byte is 0, then a table and what follows it. */
#include "fuzz.h"

#include "runtime/java/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur c = cur_of(data, size), table;
	bool no_zero = cur_u8(&c) & 1;
	int32_t first = 0;
	size_t used;

	if (c.bad)
		return 0;
	table = c;
	used = java_lines_size(table, no_zero, &first);
	must(used <= cur_left(&table) && first >= 0);
	must(!used || !table.pos[used - 1]);
	for (uint32_t at = 0; at < 300; at += 7)
		must(java_lines_find(table, no_zero, at) >= 0);
	while (!c.bad)
		ignore(java_number(&c, no_zero)); /* it ends */
	return 0;
}
