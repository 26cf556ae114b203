/* SPDX-License-Identifier: Apache-2.0 */
/* A line table: the first byte is the version, the next two the position, the fourth the first line. */
#include "fuzz.h"

#include "runtime/python/lines.h"

#define HEAD 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct runtime_function f = { 0 };
	uint32_t position;
	int32_t line;

	if (size < HEAD)
		return 0;
	f.version_major = data[0] & 0x80 ? 2 : 3;
	f.version_minor = data[0] & 0xf;
	f.first_line = data[3];
	f.lines = (struct runtime_lines){ data + HEAD, (uint32_t)(size - HEAD) };
	f.lines_whole = f.lines.size + (data[0] >> 4 & 1);
	position = data[1] * 256u + data[2];
	line = python_line(&f, position);
	must(line >= 0);
	/* A cut table never says another line than the whole one. */
	if (line && f.lines.size) {
		struct runtime_function cut = f;
		int32_t less;

		cut.lines.size = position % f.lines.size;
		cut.lines_whole = f.lines.size + 1;
		less = python_line(&cut, position);
		must(!less || less == line);
	}
	return 0;
}
