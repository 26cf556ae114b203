/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of a JVM over hostile memory: what is told is JSON. */
#include "fuzz.h"

#include "java_memory.h"
#include "runtime/java/flags.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur block = cur_of(data, size);
	const struct java_process process = { { java_block_read, &block }, &java_layout_17, 0, 0 };
	static const struct str which[] = { { "all", 3 }, { "default", 7 }, { "none", 4 }, { "UseG1GC, X", 10 } };

	for (size_t i = 0; i < ARRAY_SIZE(which); i++) {
		scoped(buf_release) struct buf json = BUF_INIT(MIB(4));
		struct json_out out = { .out = &json };
		struct java_layout layout = java_layout_17;
		struct str rest, value;
		int r = java_flags_add(&process, which[i], &out);

		rest = buf_str(&json);
		java_flags_learn(&process, &layout);
		must(r == 0 ? json_value(&rest, &value) == 0 && !rest.len : !json.len);
	}
	return 0;
}
