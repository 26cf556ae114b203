/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/remote/readers.h"

#include "sampler/remote/python/reader.h"

static const struct remote_reader *const readers[] = { &remote_python_reader };

const struct remote_reader *remote_reader_find(enum abi_runtime runtime)
{
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
		if (readers[i]->runtime == runtime)
			return readers[i];
	return NULL;
}
