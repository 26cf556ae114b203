/* SPDX-License-Identifier: Apache-2.0 */
/* The body that names a call path, and looking it up in a small tree; what a graph is grouped by. */
#include "fuzz.h"
#include "query/flame.h"

static void groups(struct str text)
{
	scoped(flame_groups_release) struct flame_groups g = { 0 };

	if (flame_groups_parse(text, &g) < 0)
		return;
	must(g.count <= TREE_GROUPS_MAX);
	for (size_t i = 0; i < g.count; i++) {
		must(g.items[i].kind >= TREE_KIND_THREAD && g.items[i].kind <= TREE_KIND_LABEL);
		must((g.items[i].label.len > 0) == (g.items[i].kind != TREE_KIND_THREAD));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char folded[] = "a;b;c 3\na;b 1\na;\xff;d 2\n";
	scoped(flame_path_release) struct flame_path path = { 0 };
	scoped(tree_release) struct tree tree = { 0 };
	uint64_t bad_line;
	uint32_t node = UINT32_MAX;

	if (size > KIB(64))
		return 0;
	groups(str_n((const char *)data, size));
	if (flame_path_parse(str_n((const char *)data, size), &path) < 0)
		return 0;
	must(path.count <= FLAME_PATH_MAX);
	for (size_t i = 0; i < path.count; i++)
		must(path.steps[i].name.len + path.steps[i].kind.len + path.steps[i].module.len <= size);
	must(tree_from_folded(str_n(folded, sizeof(folded) - 1), NULL, &tree, &bad_line) == 0);
	if (tree_find(&tree, path.steps, path.count, &node) == 0)
		must(node < tree.node_count && tree.level[node] == path.count);
	return 0;
}
