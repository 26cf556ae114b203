/* SPDX-License-Identifier: Apache-2.0 */
/* Where code of PHP's compiler lies, from the text of /proc/PID/maps: at most ABI_CODE_RANGES ranges, each one a line
 * of the text, none of them empty; and the walk's step in such code, which stands for execute_ex where that is known.
 */
#include "fuzz.h"

#include "proc/maps.h"
#include "runtime/php/php_int.h"
#include "walk/walk_php.h"

/* Is it a line of an executable, shared mapping behind one of the same file? */
static bool is_line(struct str maps, const struct abi_code_range *range)
{
	struct maps_line line;
	uint64_t end = 0, inode = 0; /* of the line before */
	int r;

	while ((r = maps_next(&maps, &line)) != 0) {
		if (r < 0)
			continue;
		if (line.start == range->low && line.end - line.start == range->size && line.executable &&
		    line.shared && end == line.start && inode == line.inode && str_eq(line.path, STR("/dev/zero")))
			return true;
		end = line.end;
		inode = line.inode;
	}
	return false;
}

static void check_step(uint64_t body, uint64_t pc)
{
	static struct walk w;
	const struct abi_php info = { .body = body };
	enum walk_next next;

	w.pc = pc;
	next = walk_php_compiled_step(&w, &info);
	must(next == (body ? WALK_MORE : WALK_SWITCH) && w.pc == (body ? body : pc));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str maps = str_n((const char *)data, size);
	struct abi_code_range ranges[ABI_CODE_RANGES + 1] = { 0 };
	int count = php_compiled_ranges(maps, ranges);

	must((count >= 0 || count == -EAGAIN) && count <= ABI_CODE_RANGES && !ranges[ABI_CODE_RANGES].low &&
	     !ranges[ABI_CODE_RANGES].size);
	for (int i = 0; i < count; i++) {
		must(ranges[i].size && ranges[i].low + ranges[i].size > ranges[i].low);
		must(is_line(maps, &ranges[i]));
		check_step(ranges[i].low, ranges[i].size);
	}
	check_step(0, size);
	return 0;
}
