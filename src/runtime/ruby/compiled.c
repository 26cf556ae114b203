/* SPDX-License-Identifier: Apache-2.0 */
/* Where Ruby's compiler (YJIT) puts its code: into one reserved piece of anonymous memory, of 1 MiB at least
 * (--yjit-exec-mem-size). 3.1 maps all of it at once, executable, or as data while it writes; later ones page by page,
 * what is being written as data, and call it so where the kernel has names for memory: where it has none, code is found
 * from 1 MiB on. Sources: yjit_codegen.c, alloc_code_page() of 3.1; yjit.c, rb_yjit_reserve_addr_space() of 3.3. */
#include "proc/maps.h"
#include "runtime/code_ranges.h"
#include "runtime/ruby/ruby_int.h"

#define REGION_MIN MIB(1)
#define REGION_MAX GIB(2)
#define BEING_WRITTEN_MAX KIB(256) /* pages in the middle of code */

struct piece { /* neighbouring mappings of one kind */
	uint64_t start, end;
	uint64_t reach; /* behind what may be a part of it, if code follows */
	bool has_code;
};

static bool is_named(const struct maps_line *line)
{
	return str_starts(line->path, STR("[anon:Ruby:rb_yjit")) || str_starts(line->path, STR("[anon:Ruby:rb_jit"));
}

static bool is_data(const struct maps_line *line)
{
	return !line->path.len && line->writable && !line->executable;
}

static bool may_hold_code(const struct maps_line *line)
{
	return is_named(line) || (!line->path.len && line->executable && !line->writable);
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
	bool may_hide = false;
	int count = 0, r;

	while ((r = maps_next(&maps, &line)) != 0) {
		if (r < 0 || line.inode || line.shared)
			continue;
		may_hide |= is_data(&line) && line.end - line.start >= REGION_MIN;
		if (is_data(&line) && line.start == now.reach && line.end - line.start <= BEING_WRITTEN_MAX)
			now.reach = line.end;
		if (!may_hold_code(&line))
			continue;
		if (line.start != now.reach) {
			count = add(ranges, count, &now);
			now = (struct piece){ .start = line.start };
		}
		now.end = now.reach = line.end;
		now.has_code |= line.executable;
	}
	count = add(ranges, count, &now);
	return !count && may_hide ? -EAGAIN : count;
}

/* What is known stays while its memory is not executable, and when its compiler is not there any more. Up to 3.0 there
 * is none. */
int ruby_sync(const struct runtime_binary *binary, const struct runtime_target *target, void *info,
	      struct abi_code_range *ranges)
{
	const struct ruby_version *version = ((const struct ruby_binary *)binary)->version;
	int count;

	(void)info;
	if (!version || version->major < 3 || (version->major == 3 && version->minor < 1))
		return -ENOENT;
	count = code_ranges_read(target, ruby_compiled_ranges, ranges);
	return count ? count : -ENOENT;
}
