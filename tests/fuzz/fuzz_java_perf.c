/* SPDX-License-Identifier: Apache-2.0 */
/* Performance counters, as a process has them. */
#include "fuzz.h"

#include "runtime/java/perf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(java_perf_release) struct java_perf perf = { 0 };
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
	int64_t value;
	uint64_t at;

	buf_add(&bytes, data, MIN(size, MIB(1)));
	if (java_perf_parse(&bytes, 0, &perf) < 0)
		return 0;
	if (java_perf_number(&perf, "java.cls.unloadedClasses", &value, &at) == 0)
		must(at <= perf.bytes.len - 8);
	return 0;
}
