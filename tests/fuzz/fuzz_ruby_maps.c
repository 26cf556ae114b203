/* SPDX-License-Identifier: Apache-2.0 */
/* Where code of Ruby's compiler lies, from the text of /proc/PID/maps: at most ABI_CODE_RANGES ranges, each of 1 MiB to
 * 2 GiB, within the address space, and none of them twice. */
#include "fuzz.h"

#include "runtime/ruby/ruby_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct abi_code_range out[ABI_CODE_RANGES] = { 0 };
	int count = ruby_compiled_ranges(str_n((const char *)data, size), out);

	must(count >= 0 && count <= ABI_CODE_RANGES);
	for (int i = 0; i < count; i++) {
		must(out[i].size >= MIB(1) && out[i].size <= GIB(2));
		must(out[i].low + out[i].size > out[i].low);
	}
	for (int i = count; i < ABI_CODE_RANGES; i++)
		must(!out[i].low && !out[i].size); /* untouched */
	return 0;
}
