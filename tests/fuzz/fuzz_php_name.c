/* SPDX-License-Identifier: Apache-2.0 */
/* What a record says a function of PHP is called. */
#include "fuzz.h"

#include <linux/types.h>

#include "abi/php.h"
#include "base/utf8.h"
#include "runtime/php/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1));
	struct runtime_function f;

	if (size > ABI_NAME_BYTES_MAX || php_decode_name(data, size, &room, &f) < 0)
		return 0;
	must(f.file.len + f.name.len == room.len && f.name.len);
	must(utf8_valid(f.file) && utf8_valid(f.name));
	must(f.first_line >= 0 && !f.lines.size);
	return 0;
}
