/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking rubbish stays within its limits, and what is packed comes back. */
#include "fuzz.h"

#include "codec/gzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf out = BUF_INIT(KIB(256)), packed = BUF_INIT(MIB(1)), back = BUF_INIT(MIB(1));
	struct str bytes = str_n((const char *)data, size);
	int r;

	if (size > KIB(64))
		return 0;
	r = gzip_unpack(bytes, KIB(128), 10, &out);
	must(r == 0 || r == -EBADMSG || r == -E2BIG || r == -ENOMEM);
	must(r == 0 ? out.len <= KIB(128) : !out.len);
	must(gzip_pack(bytes, 1, &packed) == 0);
	must(gzip_pack(bytes, 1, &packed) == 0); /* two members */
	must(gzip_unpack(buf_str(&packed), 2 * size, 0, &back) == 0);
	must(back.len == 2 * size);
	must(!size || (!memcmp(back.ptr, data, size) && !memcmp(back.ptr + size, data, size)));
	return 0;
}
