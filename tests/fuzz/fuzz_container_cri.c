/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "proc/container.h"

static int visit(void *ctx, struct str id, struct str name)
{
	(void)ctx;
	must(id.len == CONTAINER_ID_SIZE);
	must(name.len && !memchr(name.ptr, 0, name.len));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str message, body = str_n((const char *)data, size);

	if (container_grpc_parse(body, &message) == 0)
		ignore(container_cri_parse(message, visit, NULL)); /* any answer but a crash */
	ignore(container_cri_parse(body, visit, NULL));
	return 0;
}
