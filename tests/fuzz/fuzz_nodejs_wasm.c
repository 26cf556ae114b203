/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions of WebAssembly, from a module's bytes: bounded, UTF-8. */
#include "fuzz.h"

#include <linux/types.h>

#include "base/utf8.h"
#include "runtime/nodejs/nodejs_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct reader in = reader_of(data, size);
	struct buf first = BUF_INIT(KIB(64));

	for (uint32_t index = 0; index < 4; index++) {
		struct nodejs_wasm_names n;

		buf_clear(&first);
		if (nodejs_wasm_names_read(&in, index, &first, &n) < 0)
			continue;
		must(n.function.len <= NODEJS_TEXT_MAX && n.module.len <= NODEJS_TEXT_MAX);
		must(n.function.at + n.function.len <= first.len && utf8_valid(buf_str(&first)));
	}
	buf_release(&first);
	return 0;
}
