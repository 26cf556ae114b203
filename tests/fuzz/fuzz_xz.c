/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "object/xz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf out = BUF_INIT(KIB(256));
	struct reader in = reader_of(data, size);

	ignore(xz_unpack(&in, &out));
	must(out.len <= KIB(256));
	return 0;
}
