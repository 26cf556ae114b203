/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_codec("perf-data", data, size);
}
