/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to a JVM whose memory, and whose layout, is the input (tests/walk/java_attach_image.h): it ends within a
 * number of reads, and what it says lies within the code cache. */
#include "fuzz.h"

#include <linux/types.h>

#include "abi/java.h"
#include "tests/walk/java_attach_image.h"

#define READS_MAX 10000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct java_attach_image image;
	struct runtime_target target = { .pid = 1, .read = java_attach_read, .self = &image, .start_ns = 1 };
	struct abi_code_range ranges[ABI_CODE_RANGES] = { 0 };
	struct abi_java info;
	uint8_t room[RUNTIME_INFO_MAX];
	int r;

	if (!java_attach_open(cur_of(data, size), &image))
		return 0;
	target.bias = image.bias;
	r = java_attach_with(&image.binary.base, &target, &image.layout, room);
	must(image.reads < READS_MAX);
	if (r < 0)
		return 0;
	must(r == (int)sizeof(info));
	memcpy(&info, room, sizeof(info));
	must(info.start_ns == 1 && info.low < info.high && info.shift <= 16 && !info.met);
	must(info.interpreter_low >= info.low && info.interpreter_high <= info.high);
	must(info.entries_low < info.entries_high && info.entries_high <= info.interpreter_high - info.interpreter_low);
	must(info.returns_low < info.returns_high && info.returns_high <= info.interpreter_high - info.interpreter_low);
	must(info.call_stub_before ? info.call_stub_ret && info.call_stub_ret < info.call_stub_after
				   : !info.call_stub_ret && !info.call_stub_after);
	must(info.oop_shift <= 7 && !info.chunk && !info.chunk_end && !info.chunk_link && !info.chunk_entry);
	for (size_t i = 0; i < ABI_JAVA_ENTRIES && info.entries[i].high; i++) {
		must(info.entries[i].pop < info.entries[i].push && info.entries[i].push < info.entries[i].filled);
		must(info.entries[i].high <= info.interpreter_high - info.interpreter_low);
		must(image.binary.machine == EM_AARCH64 ? info.entries[i].sender == 13 || info.entries[i].sender == 19
							: !info.entries[i].sender);
	}
	must(java_sync(&image.binary.base, &target, &info, ranges) == 1 && ranges[0].size);
	return 0;
}
