/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "proc/container.h"

static int visit(void *ctx, struct str id, struct str name)
{
	(void)ctx;
	must(id.len == CONTAINER_ID_SIZE);
	must(name.len && str_find(name, '/') < 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ignore(container_list_parse(str_n((const char *)data, size), visit, NULL)); /* any answer but a crash */
	return 0;
}
