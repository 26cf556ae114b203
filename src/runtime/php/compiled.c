/* SPDX-License-Identifier: Apache-2.0 */
/* Where PHP's compiler (opcache's JIT) puts its code: behind opcache's shared memory, in the same mapping of an unnamed
 * shared file, of which that part alone is executable. Workers share it. While the compiler writes, and while a script
 * is put into shared memory, that part is writable instead, so that the mapping has one line only. Source: php-src,
 * ext/opcache/shared_alloc_mmap.c and jit/zend_jit.c, zend_jit_unprotect(); /proc/PID/maps of 8.2 and 8.4. */
#include "proc/maps.h"
#include "runtime/code_ranges.h"
#include "runtime/php/php_int.h"

#define UNNAMED STR("/dev/zero")
#define UNNAMED_HUGE STR("/anon_hugepage") /* of huge pages, which opcache takes when there are free ones */
#define SHARED_MIN MIB(8) /* no opcache has less. Tables that php-fpm's and Apache's workers share are smaller */

static bool is_shared_memory(const struct maps_line *line)
{
	return line->shared && line->deleted && line->inode &&
	       (str_eq(line->path, UNNAMED) || str_eq(line->path, UNNAMED_HUGE));
}

static bool is_compiled(const struct maps_line *line, const struct maps_line *before)
{
	return is_shared_memory(line) && line->executable && line->readable && line->offset && before->shared &&
	       before->inode == line->inode && before->end == line->start;
}

int php_compiled_ranges(struct str maps, struct abi_code_range *ranges)
{
	struct maps_line line, before = { 0 };
	bool may_hide = false;
	int count = 0, r;

	while (count < ABI_CODE_RANGES && (r = maps_next(&maps, &line)) != 0) {
		if (r < 0)
			continue;
		if (is_compiled(&line, &before))
			ranges[count++] = (struct abi_code_range){ .low = line.start, .size = line.end - line.start };
		may_hide |=
			is_shared_memory(&line) && line.writable && !line.offset && line.end - line.start >= SHARED_MIN;
		before = line;
	}
	return !count && may_hide ? -EAGAIN : count;
}

int php_sync(const struct runtime_binary *binary, const struct runtime_target *target, void *info,
	     struct abi_code_range *ranges)
{
	(void)binary;
	(void)info;
	return code_ranges_read(target, php_compiled_ranges, ranges);
}
