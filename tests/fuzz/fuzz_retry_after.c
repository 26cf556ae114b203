/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "net/retry_after.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t out = 7;
	int r = retry_after_parse(str_n((const char *)data, size), UINT64_C(1700000000) * NSEC_PER_SEC, &out);

	must(r == 0 || (r == -EBADMSG && out == 7));
	must(out <= UINT64_C(1000000000) * NSEC_PER_SEC);
	return 0;
}
