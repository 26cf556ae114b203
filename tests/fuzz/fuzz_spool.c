/* SPDX-License-Identifier: Apache-2.0 */
/* A file of the spool: rubbish is refused; what is taken is written the same way; everything that is written is taken.
 */
#include "fuzz.h"

#include "sink/spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
	struct str text = str_n((const char *)data, size);
	struct upload u = { .query = STR("service=a&type=cpu"), .key = STR("k-1"), .body = text }, back;

	if (size > KIB(64))
		return 0;
	spool_encode(&u, &bytes);
	must(spool_decode(buf_str(&bytes), &back) == 0 && str_eq(back.body, text) && str_eq(back.key, u.key));
	must(bytes.len <= spool_size(&u));
	if (spool_decode(text, &u) < 0)
		return 0;
	buf_clear(&bytes);
	spool_encode(&u, &bytes);
	must(spool_decode(buf_str(&bytes), &back) == 0 && str_eq(back.query, u.query) && str_eq(back.body, u.body));
	return 0;
}
