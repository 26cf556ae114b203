/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of one thread: its first line decides which parser gets it. */
#include "fuzz.h"

#include "agent/dump_process.h"
#include "sampler/remote/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_n((const char *)data, size), line, name;
	struct dump_registers registers;
	struct remote_times times;

	if (dump_registers_parse(text, &registers) == 0)
		must(!registers.runs || (!registers.sp && !registers.pc));
	if (remote_times_parse(text, &times) == 0)
		must(size >= 5);
	while (str_next(&text, '\n', &line))
		if (dump_kernel_line(line, &name))
			must(name.len && name.ptr >= line.ptr && name.ptr + name.len <= line.ptr + line.len);
	return 0;
}
