/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/registry.h"

static const struct runtime *const runtimes[] = { &runtime_python };

const struct runtime *runtime_at(size_t index)
{
	return index < ARRAY_SIZE(runtimes) ? runtimes[index] : NULL;
}

const struct runtime *runtime_find(enum abi_runtime id)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
		if (runtimes[i]->id == id)
			return runtimes[i];
	return NULL;
}
