/* SPDX-License-Identifier: Apache-2.0 */
/* What a record says a code object is called. */
#include "fuzz.h"

#include "base/utf8.h"
#include "runtime/python/lines.h"
#include "runtime/python/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1));
	struct runtime_function f;

	if (size > ABI_NAME_BYTES_MAX || python_decode_name(data, size, &room, &f) < 0)
		return 0;
	must(f.file.len + f.name.len + f.lines.size == room.len);
	must(utf8_valid(f.file) && utf8_valid(f.name));
	must(f.lines.size <= f.lines_whole && f.first_line >= 0);
	for (uint32_t position = 0; position < 64; position++)
		must(python_line(&f, position) >= 0);
	return 0;
}
