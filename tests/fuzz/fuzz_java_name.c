/* SPDX-License-Identifier: Apache-2.0 */
/* A name as the kernel side sends it: texts of Symbols, any of them cut or malformed. */
#include "fuzz.h"

#include <linux/types.h>

#include "abi/java.h"
#include "base/utf8.h"
#include "runtime/java/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
	struct runtime_function f = { 0 };

	if (java_decode_name(data, size, &room, &f) < 0)
		return 0;
	must(f.name.len && utf8_valid(f.name) && !f.file.len && !f.lines.size && f.is_cut);
	return 0;
}
