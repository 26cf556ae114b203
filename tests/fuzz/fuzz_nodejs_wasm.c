/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions of WebAssembly, from a module's bytes: bounded, UTF-8, and the same where it is known where they
 * are. */
#include "fuzz.h"

#include <linux/types.h>

#include "base/utf8.h"
#include "runtime/nodejs/nodejs_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct reader in = reader_of(data, size);
	struct buf first = BUF_INIT(KIB(64)), again = BUF_INIT(KIB(64));

	for (uint32_t index = 0; index < 4; index++) {
		struct nodejs_wasm_names n, hinted;

		buf_clear(&first);
		buf_clear(&again);
		if (nodejs_wasm_names_read(&in, index, 0, &first, &n) < 0)
			continue;
		must(n.function.len <= NODEJS_TEXT_MAX && n.module.len <= NODEJS_TEXT_MAX && n.place < MAX(size, 1U));
		must(n.function.at + n.function.len <= first.len && utf8_valid(buf_str(&first)));
		must(nodejs_wasm_names_read(&in, index, n.place, &again, &hinted) == 0);
		must(hinted.function.len == n.function.len && hinted.place == n.place &&
		     !memcmp(first.ptr + n.function.at, again.ptr + hinted.function.at, n.function.len));
		must(nodejs_wasm_names_read(&in, index, size / 2, &again, &hinted) == 0);
	}
	buf_release(&first);
	buf_release(&again);
	return 0;
}
