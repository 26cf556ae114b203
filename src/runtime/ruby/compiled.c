/* SPDX-License-Identifier: Apache-2.0 */
/* Where Ruby's compiler (YJIT) puts its code: into one reserved piece of anonymous memory, of 1 MiB at least
 * (--yjit-exec-mem-size). 3.1 maps all of it at once and executable; later ones page by page, what is being written as
 * data, and call it so where the kernel has names for memory: where it has none, code is found from 1 MiB on. Sources:
 * yjit_codegen.c, alloc_code_page() of 3.1; yjit.c, rb_yjit_reserve_addr_space() of 3.3. */
#include "proc/maps.h"
#include "runtime/code_ranges.h"
#include "runtime/ruby/ruby_int.h"

#define REGION_MIN MIB(1)
#define REGION_MAX GIB(2)

struct piece { /* neighbouring mappings of one kind */
	uint64_t start, end;
	bool has_code;
};

static bool may_hold_code(const struct maps_line *line)
{
	bool is_named =
		str_starts(line->path, STR("[anon:Ruby:rb_yjit")) || str_starts(line->path, STR("[anon:Ruby:rb_jit"));

	return !line->inode && !line->shared && (is_named || (!line->path.len && line->executable && !line->writable));
}

static int add(struct abi_code_range *ranges, int count, const struct piece *p)
{
	if (!p->has_code || p->end - p->start < REGION_MIN || p->end - p->start > REGION_MAX ||
	    count == ABI_CODE_RANGES)
		return count;
	ranges[count] = (struct abi_code_range){ .low = p->start, .size = p->end - p->start };
	return count + 1;
}

int ruby_compiled_ranges(struct str maps, struct abi_code_range *ranges)
{
	struct maps_line line;
	struct piece now = { 0 };
	int count = 0, r;

	while ((r = maps_next(&maps, &line)) != 0) {
		if (r < 0 || !may_hold_code(&line))
			continue;
		if (line.start != now.end) {
			count = add(ranges, count, &now);
			now = (struct piece){ .start = line.start };
		}
		now.end = line.end;
		now.has_code |= line.executable;
	}
	return add(ranges, count, &now);
}

/* While code is being written the memory may not be executable: what is known stays. */
int ruby_sync(const struct runtime_binary *binary, const struct runtime_target *target, void *info,
	      struct abi_code_range *ranges)
{
	int count = code_ranges_read(target, ruby_compiled_ranges, ranges);

	(void)binary;
	(void)info;
	return count ? count : -ENOENT;
}
