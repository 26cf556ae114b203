/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of sinks: one line each. */
#include "sink/sinks.h"

static const struct sink *const sinks[] = { &sink_cycle, &sink_file, &sink_http, &sink_memory };

const struct sink *sink_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(sinks); i++)
		if (str_eq(name, str_of(sinks[i]->name)))
			return sinks[i];
	return NULL;
}
