/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled method over hostile memory: header, debug information, the methods that were inlined. */
#include "fuzz.h"

#include "base/utf8.h"
#include "java_memory.h"
#include "runtime/java/code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur block = cur_of(data, size);
	const struct java_process process = { { java_block_read, &block }, &java_layout_17, 0, 0 };
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1));
	struct java_shown shown[RUNTIME_EXPAND_MAX];
	struct java_method m;
	struct java_code code;
	size_t form;

	if (java_code_read(&process, JAVA_BASE, &code) < 0 || java_code_scopes(&process, &code, &room, &m, &form) < 0)
		return 0;
	must(m.name + m.file + m.lines + form == room.len);
	for (uint32_t at = 0; at < 256; at++) {
		size_t count = java_scopes_expand(cur_of(room.ptr + room.len - form, form), at, at & 1,
						  RUNTIME_EXPAND_MAX, shown);

		if (count == JAVA_SHOWN_LOST)
			continue;
		for (size_t i = 0; i < count; i++)
			must(utf8_valid(shown[i].name) && utf8_valid(shown[i].file));
	}
	return 0;
}
