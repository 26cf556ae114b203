/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the VM become UTF-8, of bounded size; what java_class_add() leaves out stays out. */
#include "fuzz.h"

#include "base/utf8.h"
#include "runtime/java/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf once = BUF_INIT(MIB(1)), again = BUF_INIT(MIB(1)), readable = BUF_INIT(MIB(1));

	if (size > KIB(64))
		return 0;
	java_class_add(&once, str_n((const char *)data, size));
	must(!once.error && once.len <= 3 * size && utf8_valid(buf_str(&once)));
	java_text_add(&again, buf_str(&once));
	must(str_eq(buf_str(&once), buf_str(&again)));
	java_readable(buf_str(&once), &readable);
	must(!readable.error && readable.len <= once.len && utf8_valid(buf_str(&readable)));
	return 0;
}
