/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of HotSpot over recorded memory of real JVMs, mutated. */
#include "fuzz.h"

#include "java_image.h"
#include "runtime/java/layout.h"

#define READS_MAX 30000 /* entries one by one where chunks cannot be read, and a page for each name */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct java_image image;
	const struct java_memory memory = { .read = java_image_read, .self = &image };
	struct java_tables *tables = NULL;
	struct java_layout layout;
	char why[96] = "";
	int r;

	if (!java_image_open(cur_of(data, size), &image))
		return 0;
	r = java_tables_read(&memory, image.symbols, 0, &tables);
	must(image.reads < READS_MAX);
	must((r == 0) == (tables != NULL));
	if (r < 0)
		return 0;
	r = java_layout_fill(&memory, tables, 0, &layout, why);
	must(r != -ENOTSUP || why[0]);
	must(r < 0 || (layout.code_heaps && layout.version >= 8 && layout.method_const != JAVA_NONE));
	must(r < 0 || (layout.nm_metadata != JAVA_NONE) == !(layout.flags & JAVA_LAYOUT_MUTABLE));
	java_tables_free(tables);
	return 0;
}
