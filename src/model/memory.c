/* SPDX-License-Identifier: Apache-2.0 */
/* What a model takes, and its bound: looked at only where something grows. */
#include "base/array.h"
#include "model/model_int.h"

#define ROWS_MAX ((size_t)UINT32_MAX - 1)

static size_t index_memory(const struct model_index *ix)
{
	size_t slots = ix->mappings.cap + ix->functions.cap + ix->locations.cap + ix->stacks.cap + ix->processes.cap +
		       ix->threads.cap + ix->label_sets.cap + ix->app_metadata.cap + ix->samples.cap;

	return slots * sizeof(uint32_t);
}

static size_t strings_memory(const struct intern *in)
{
	return in->byte_cap + in->end_cap * sizeof(*in->ends) + in->slot_cap * sizeof(*in->slots) +
	       in->hash_cap * sizeof(*in->hashes);
}

size_t model_memory(const struct model *m)
{
	size_t sum = strings_memory(&m->strings) + (m->index ? index_memory(m->index) : 0);

#define TABLE(name) sum += m->name##_cap * sizeof(*m->name)
	TABLE(mappings);
	TABLE(functions);
	TABLE(lines);
	TABLE(locations);
	TABLE(stacks);
	TABLE(processes);
	TABLE(threads);
	TABLE(labels);
	TABLE(label_sets);
	TABLE(samples);
	TABLE(values);
	TABLE(comments);
	TABLE(app_metadata);
#undef TABLE
	return sum;
}

int model_fits(const struct model *m, size_t more)
{
	size_t now = m->memory_max ? model_memory(m) : 0;

	return m->memory_max && (now > m->memory_max || more > m->memory_max - now) ? -E2BIG : 0;
}

int model_grow_(const struct model *m, void *items, size_t *cap, size_t count, size_t size)
{
	int r = 0;

	if (count < *cap)
		return 0;
	r = model_fits(m, (*cap / 2 + 16) * size); /* what array_grow() adds */
	return r ? r : array_grow_(items, cap, count, size, ROWS_MAX);
}
