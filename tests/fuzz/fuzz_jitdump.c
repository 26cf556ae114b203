/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "base/str.h"
#include "codec/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jitdump dump = { 0 };
	struct jitdump_hit hit;

	if (jitdump_parse(str_n((const char *)data, size), KIB(64), &dump) < 0) {
		must(!dump.loads);
		return 0;
	}
	for (size_t i = 0; i < dump.load_count && i < 64; i++) {
		const struct jitdump_load *load = &dump.loads[i];

		if (dump.load_count < 512)
			must(jitdump_find(&dump, load->start, UINT64_MAX, &hit) == 0);
		ignore(jitdump_find(&dump, load->start - 1, load->time_ns, &hit));
		ignore(jitdump_find(&dump, load->start + dump.codes[load->code].size, 0, &hit));
	}
	jitdump_release(&dump);
	return 0;
}
