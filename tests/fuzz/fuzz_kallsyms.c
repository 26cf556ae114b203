/* SPDX-License-Identifier: Apache-2.0 */
/* Fed whole and in two pieces: the same answers. */
#include "fuzz.h"

#include "object/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(kallsyms_release) struct kallsyms whole, pieces;
	size_t cut = size ? data[0] * 7u % size : 0;
	int r;

	kallsyms_init(&whole);
	kallsyms_init(&pieces);
	kallsyms_feed(&whole, data, size);
	kallsyms_feed(&pieces, data, cut);
	kallsyms_feed(&pieces, data + cut, size - cut);
	r = kallsyms_finish(&whole);
	must(kallsyms_finish(&pieces) == r);
	must(whole.count == pieces.count && whole.bad_lines == pieces.bad_lines);
	for (size_t i = 0; r == 0 && i < whole.count; i++) {
		uint64_t at = whole.base + whole.items[i].start;
		struct kallsyms_hit a, b;

		must(kallsyms_find(&whole, at, &a) == 0 && kallsyms_find(&pieces, at, &b) == 0);
		must(a.start == at && b.start == at && a.name.len && str_eq(a.name, b.name) &&
		     str_eq(a.module, b.module));
	}
	return 0;
}
