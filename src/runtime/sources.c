/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/sources.h"

struct runtime_sources {
	const struct runtime *runtimes[ABI_RUNTIME_COUNT]; /* by enum abi_runtime; NULL: nothing is asked of it */
	void *caches[ABI_RUNTIME_COUNT];
};

int runtime_sources_new(const struct runtime *const *runtimes, struct runtime_sources **out)
{
	struct runtime_sources *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	for (; *runtimes; runtimes++) {
		const struct runtime *runtime = *runtimes;

		if (!runtime->sources_new)
			continue;
		must(runtime->id < ABI_RUNTIME_COUNT);
		if (runtime->sources_new(&s->caches[runtime->id]) < 0) {
			runtime_sources_free(s);
			return -ENOMEM;
		}
		s->runtimes[runtime->id] = runtime;
	}
	*out = s;
	return 0;
}

void runtime_sources_free(struct runtime_sources *s)
{
	for (size_t i = 0; s && i < ARRAY_SIZE(s->runtimes); i++)
		if (s->runtimes[i])
			s->runtimes[i]->sources_free(s->caches[i]);
	free(s);
}

void runtime_sources_find(struct runtime_sources *s, enum abi_runtime runtime, const struct runtime_source_file *file,
			  struct runtime_source *out)
{
	*out = (struct runtime_source){ 0 };
	if (s && runtime < ABI_RUNTIME_COUNT && s->runtimes[runtime])
		s->runtimes[runtime]->sources_find(s->caches[runtime], file, out);
}
