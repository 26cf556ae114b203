// SPDX-License-Identifier: Apache-2.0
#include "sampler/samplers.h"

static const struct sampler *const samplers[] = { &sampler_bpf, &sampler_perf, &sampler_remote, &sampler_recorded };

const struct sampler *sampler_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(samplers); i++) {
		if (str_eq(name, str_of(samplers[i]->name)))
			return samplers[i];
	}
	return NULL;
}

const struct sampler *sampler_at(size_t index)
{
	return index < ARRAY_SIZE(samplers) ? samplers[index] : NULL;
}

int sampler_choose(const struct sampler_config *cfg, struct buf *why, const struct sampler **out)
{
	int first = -ENOTSUP;

	for (size_t i = 0; i < ARRAY_SIZE(samplers); i++) {
		int r;

		if (samplers[i]->is_replay != !!cfg->recording)
			continue; /* a file that was named is to be replayed, and nothing else is */
		buf_addf(why, "%s%s: ", why->len ? "; " : "", samplers[i]->name);
		r = samplers[i]->probe(cfg, why);
		if (!r) {
			buf_adds(why, STR("taken"));
			*out = samplers[i];
			return 0;
		}
		if (r == -EPERM)
			first = -EPERM; /* rights can be granted: the more useful answer */
	}
	return first;
}
