/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of source positions, lines of bytecode and lists of inlined functions: bounded, whatever the bytes. */
#include "fuzz.h"

#include "runtime/nodejs/nodejs_int.h"

/* The first third are bytecodes, the second lengths of code, the last positions. */
static void baseline(const uint8_t *data, size_t size)
{
	struct nodejs_layout layout = { .bytecode_count = 7,
					.bytecode_sizes = { { 1, 1, 1, 2, 3, 4, 0 }, { 0, 0, 1, 3, 5 }, { 0, 0, 9 } } };
	static uint32_t ends[] = { 3, 9, 12 };
	const struct nodejs_lines lines = { .length = 30, .count = ARRAY_SIZE(ends), .ends = ends };
	struct buf out = BUF_INIT(MIB(1));
	size_t third = size / 3;
	bool fits;
	int r;

	layout.version = *nodejs_version_find(11, 3);
	r = nodejs_baseline_lines(&layout, cur_of(data, third), cur_of(data + third, third),
				  cur_of(data + 2 * third, third), &lines, &out);
	must(!out.error && out.len <= 12 * third);
	must(r <= 0);
	fits = nodejs_positions_fit(&layout, cur_of(data, third), cur_of(data + 2 * third, third));
	layout.bytecode_count = 0; /* who knows less finds less that does not fit */
	must(!fits || nodejs_positions_fit(&layout, cur_of(data, third), cur_of(data + 2 * third, third)));
	must(nodejs_baseline_lines(&layout, cur_of(data, third), cur_of(data + third, third), cur_of(data, third),
				   &lines, &out) == -ENODATA);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct runtime_function f = { .first_line = 3, .lines = { data, (uint32_t)size } };
	static struct runtime_shown out[RUNTIME_EXPAND_MAX];
	const struct nodejs_version *version = size & 1 ? nodejs_version_find(14, 6) : nodejs_version_find(10, 2);
	struct nodejs_positions p;
	uint64_t position;
	size_t entries = 0;

	nodejs_positions_init(&p, version, cur_of(data, size));
	while (nodejs_positions_next(&p))
		must(++entries <= size);
	if (nodejs_code_positions_fit(version, cur_of(data, size), 64, 4)) /* then what is looked up is within both */
		must(!nodejs_position_at(version, cur_of(data, size), 64, &position) || NODEJS_INLINING(position) < 4);
	ignore(nodejs_position_at(version, cur_of(data, size), (int64_t)size, &position));
	must(nodejs_line(&f, 100) >= 0 && nodejs_column(&f, 100) >= 0);
	baseline(data, size);
	for (int list = 0; list < 2; list++) {
		size_t count = nodejs_expand(&f, 0, list, out);

		must(count <= RUNTIME_EXPAND_MAX);
		for (size_t i = 0; i < count; i++)
			must(out[i].function.name.len + out[i].function.file.len <= size && out[i].line >= 0 &&
			     out[i].column >= 0);
	}
	return 0;
}
