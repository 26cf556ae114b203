/* SPDX-License-Identifier: Apache-2.0 */
/* Folded text to a tree: any input makes a well-formed tree, and its columns and its overview can be written. */
#include "fuzz.h"
#include "render/render.h"
#include "render/tree.h"

/* The sum over all lines, read the slow way; it saturates. */
static uint64_t sum_lines(struct str text)
{
	uint64_t sum = 0, value;
	struct str line;

	for (size_t n = 1; str_next(&text, '\n', &line); n++) {
		if (line.len && line.ptr[line.len - 1] == '\r')
			line.len--;
		if (n == 1 && line.len && line.ptr[0] == '#')
			continue;
		if (line.len && !str_to_u64(str_skip(line, (size_t)str_rfind(line, ' ') + 1), 0, INT64_MAX, &value))
			sum = MIN(sum + value, (uint64_t)INT64_MAX);
	}
	return sum;
}

static void check_tree(const struct tree *t)
{
	uint64_t roots = 0;

	for (uint32_t i = 1; i < t->node_count; i++) {
		must(t->level[i] >= 1 && t->level[i] <= t->level[i - 1] + 1);
		must(t->frame[i] < t->frame_count);
		must(t->total[i] > 0 && t->total[i] <= t->total[0]);
		if (t->level[i] == 1)
			roots += t->total[i];
	}
	must(t->origin || roots == t->total[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_n((const char *)data, size);
	scoped(tree_release) struct tree t = { 0 }, overview = { 0 };
	scoped(buf_release) struct buf columns = BUF_INIT(MIB(64));
	struct render_html_config cfg = { .compression_level = 1 };
	scoped(buf_release) struct buf html = BUF_INIT(MIB(64));
	uint64_t bad_line = 0;

	if (size > KIB(64))
		return 0;
	if (tree_from_folded(text, NULL, &t, &bad_line) < 0) {
		must(bad_line > 0);
		return 0;
	}
	must(t.total[0] == sum_lines(text));
	check_tree(&t);
	must(tree_encode(&t, &columns) == 0);
	must(tree_prune(&t, 1 + t.node_count / 2, &overview) == 0);
	check_tree(&overview);
	must(overview.node_count == MIN(1 + t.node_count / 2, t.node_count));
	must(tree_encode(&overview, &columns) == 0);
	must(render_html_folded(text, &cfg, &html, &bad_line) == 0);
	return 0;
}
