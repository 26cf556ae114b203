/* SPDX-License-Identifier: Apache-2.0 */
/* Where V8's code lies, from the text of /proc/PID/maps: at most ABI_CODE_RANGES ranges, none of them empty; its
 * built-in code as the walker searches it, from the lowest address up. */
#include "fuzz.h"

#include "runtime/nodejs/nodejs_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nodejs_maps out;

	for (int named = 0; named < 2; named++) {
		nodejs_maps_read(str_n((const char *)data, size), 0x18c4000, named ? 0x192000 : 0, 0x5650b34, &out);
		must(out.range_count <= ABI_CODE_RANGES && out.builtin_count <= ABI_NODEJS_BUILTINS);
		must(out.maybe_count <= ABI_NODEJS_BUILTINS);
		for (size_t i = 0; i < out.range_count; i++)
			must(out.ranges[i].size);
		for (size_t i = 0; i < ABI_NODEJS_BUILTINS; i++) {
			must((i >= out.builtin_count) == (out.builtins[i] == ABI_NODEJS_NO_BUILTINS));
			must(!i || out.builtins[i] >= out.builtins[i - 1]);
		}
	}
	return 0;
}
