/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/remote/readers.h"

#include "sampler/remote/perl/reader.h"
#include "sampler/remote/php/reader.h"
#include "sampler/remote/python/reader.h"
#include "sampler/remote/ruby/reader.h"

static const struct remote_reader *const readers[] = { &remote_python_reader, &remote_ruby_reader, &remote_php_reader,
						       &remote_perl_reader };

const struct remote_reader *remote_reader_find(enum abi_runtime runtime)
{
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
		if (readers[i]->runtime == runtime)
			return readers[i];
	return NULL;
}
