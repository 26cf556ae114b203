/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/code_ranges.h"

#include "base/io.h"

#define MAPS_MAX MIB(4)

int code_ranges_read(const struct runtime_target *target, code_ranges_fn *find, struct abi_code_range *ranges)
{
	scoped(buf_release) struct buf text = BUF_INIT(MAPS_MAX);
	int r = io_read_file_at(target->proc_dir, "maps", &text);

	return r < 0 ? r : find(buf_str(&text), ranges);
}
