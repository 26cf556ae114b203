/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "agent/cloud.h"
#include "codec/json.h"

/* The first byte says whose answer it is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf out = BUF_INIT(MIB(1));
	struct cloud_answer answer = { .life_cycle = STR("spot") };
	struct str rest, value;

	if (!size)
		return 0;
	answer.document = str_n((const char *)data + 1, size - 1);
	if (cloud_describe(data[0] % CLOUD_PROVIDERS, &answer, &out) < 0)
		return 0;
	rest = buf_str(&out);
	must(json_value(&rest, &value) == 0 && !rest.len); /* one object: it goes into another */
	return 0;
}
