/* SPDX-License-Identifier: Apache-2.0 */
/* A name as the kernel side sends it, and the lines of its positions. */
#include "fuzz.h"

#include <linux/types.h>

#include "abi/ruby.h"
#include "base/utf8.h"
#include "runtime/ruby/lines.h"
#include "runtime/ruby/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t positions[] = { 0, 1, 53, 54, 55, 63, 118, 565, 566, 5000, 1u << 20, ABI_RUBY_NOWHERE };
	scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
	struct runtime_function f = { 0 };

	if (ruby_decode_name(data, size, &room, &f) < 0)
		return 0;
	must(f.name.len && utf8_valid(f.name) && utf8_valid(f.file) && f.first_line >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(positions); i++)
		must(ruby_line(&f, positions[i]) >= 0);
	return 0;
}
