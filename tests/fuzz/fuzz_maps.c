/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "base/buf.h"
#include "proc/maps.h"

/* Whatever is accepted, written again in the kernel's form, gives the same line. */
static void check(const struct maps_line *line)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
	struct maps_line again;
	struct str rest;

	must(line->start < line->end);
	buf_addf(&text, "%llx-%llx %c%c%c%c %08llx %02x:%02x %llu ", (unsigned long long)line->start,
		 (unsigned long long)line->end, line->readable ? 'r' : '-', line->writable ? 'w' : '-',
		 line->executable ? 'x' : '-', line->shared ? 's' : 'p', (unsigned long long)line->offset,
		 line->device_major, line->device_minor, (unsigned long long)line->inode);
	buf_adds(&text, line->path);
	if (line->deleted)
		buf_adds(&text, STR(" (deleted)"));
	buf_addc(&text, '\n');
	rest = buf_str(&text);
	must(maps_next(&rest, &again) == 1);
	must(again.start == line->start && again.end == line->end && again.offset == line->offset);
	must(again.inode == line->inode && again.device_major == line->device_major);
	must(again.executable == line->executable && again.deleted == line->deleted);
	must(str_eq(again.path, line->path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_n((const char *)data, size);
	struct maps_line line;
	int r;

	while ((r = maps_next(&rest, &line)) != 0)
		if (r > 0)
			check(&line);
	must(!rest.len);
	return 0;
}
