/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/remote/python/reader.h"

#include "sampler/remote/python/names.h"
#include "sampler/remote/python/walk.h"

static struct abi_sample *read_thread(struct remote_walker *w, struct remote_process *p, struct remote_thread *t)
{
	struct abi_sample *sample = remote_walker_sample(w);

	sample->runtime_count = 0;
	sample->runtime_end = ABI_RUNTIME_END_NONE;
	remote_walk_thread(w, p, t);
	return sample;
}

static const struct abi_name *name(struct remote_walker *w, struct remote_process *p, const struct abi_frame *frame,
				   uint64_t now_ns)
{
	return remote_names_read(remote_walker_names(w), p, frame, now_ns);
}

static void sent(struct remote_walker *w, const struct remote_process *p, const struct abi_frame *frame)
{
	remote_names_sent(remote_walker_names(w), p, frame);
}

static void forget(struct remote_walker *w)
{
	remote_names_forget(remote_walker_names(w));
}

const struct remote_reader remote_python_reader = {
	.runtime = ABI_RUNTIME_PYTHON,
	.open = remote_walker_new,
	.close = remote_walker_free,
	.read = read_thread,
	.name = name,
	.sent = sent,
	.forget = forget,
};
