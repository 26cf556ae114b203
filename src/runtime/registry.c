/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/registry.h"

#define X(name, ...) &runtime_##name,
static const struct runtime *const runtimes[] = { RUNTIMES(X) };
#undef X

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
