/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of source positions, lines of bytecode and lists of inlined functions: bounded, whatever the bytes. */
#include "fuzz.h"

#include "runtime/nodejs/nodejs_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct runtime_function f = { .first_line = 3, .lines = { data, (uint32_t)size } };
	static struct runtime_shown out[RUNTIME_EXPAND_MAX];
	struct nodejs_positions p;
	uint64_t position;
	size_t entries = 0;

	nodejs_positions_init(&p, cur_of(data, size));
	while (nodejs_positions_next(&p))
		must(++entries <= size);
	ignore(nodejs_position_at(cur_of(data, size), (int64_t)size, &position));
	must(nodejs_line(&f, 100) >= 0);
	for (int list = 0; list < 2; list++) {
		size_t count = nodejs_expand(&f, 0, list, out);

		must(count <= RUNTIME_EXPAND_MAX);
		for (size_t i = 0; i < count; i++)
			must(out[i].function.name.len + out[i].function.file.len <= size && out[i].line >= 0);
	}
	return 0;
}
