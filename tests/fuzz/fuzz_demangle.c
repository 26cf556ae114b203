/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "object/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf out = BUF_INIT(KIB(128));

	if (size > KIB(32) || memchr(data, 0, size))
		return 0;
	demangle_add(str_n((const char *)data, size), &out);
	must(!out.error && (!size || out.len));
	return 0;
}
