/* SPDX-License-Identifier: Apache-2.0 */
/* What compiled code says of its positions, as the fake runtime writes it; the first two bytes are the position, the
 * third whether it is a return address. What expand() says must hold for every runtime. */
#include "fuzz.h"

#include "tests/unit/fake_runtime.h"

#define HEAD 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct runtime_shown out[RUNTIME_EXPAND_MAX];
	struct runtime_function code = { .is_code = true };
	const char *low = (const char *)data, *high = low + size;
	size_t count;

	if (size < HEAD || size > MIB(1))
		return 0;
	code.lines = (struct runtime_lines){ data + HEAD, (uint32_t)(size - HEAD) };
	code.lines_whole = code.lines.size;
	count = fake_expand(&code, data[0] | (uint32_t)data[1] << 8, data[2] & 1, out);
	must(count <= RUNTIME_EXPAND_MAX);
	for (size_t i = 0; i < count; i++) {
		struct str name = out[i].function.name;

		must(name.ptr >= low && name.ptr <= high && name.len <= (size_t)(high - name.ptr));
	}
	return 0;
}
