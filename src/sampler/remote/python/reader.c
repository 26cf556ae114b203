/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/remote/python/reader.h"

#include "sampler/remote/python/walk.h"

static void know(struct remote_process *p, const void *info)
{
	memcpy(&p->python, info, sizeof(p->python));
	p->has_python = true;
}

static const struct abi_sample *read_thread(struct remote_walker *w, struct remote_process *p, struct remote_thread *t)
{
	struct abi_sample *sample = remote_walker_sample(w);

	sample->runtime_count = 0;
	sample->runtime_end = ABI_RUNTIME_END_NONE;
	remote_walk_thread(w, p, t);
	return sample;
}

const struct remote_reader remote_python_reader = {
	.runtime = ABI_RUNTIME_PYTHON,
	.open = remote_walker_new,
	.close = remote_walker_free,
	.know = know,
	.read = read_thread,
};
