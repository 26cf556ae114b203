/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a method over hostile memory. */
#include "fuzz.h"

#include "base/utf8.h"
#include "java_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur block = cur_of(data, size);
	const struct java_process process = { { java_block_read, &block }, &java_layout_17, 0, 0 };
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1));
	struct java_method m;

	if (java_method_read(&process, JAVA_BASE, size & 1, &room, &m) < 0)
		return 0;
	must(m.name + m.file + m.lines == room.len);
	must(utf8_valid(str_n(room.ptr, m.name + m.file)));
	must(m.lines <= JAVA_LINES_MAX && m.first_line >= 0);
	return 0;
}
