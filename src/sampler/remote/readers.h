/* SPDX-License-Identifier: Apache-2.0 */
/* Who reads the stacks of a runtime from outside, thread by thread: one row for each that can be read so. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "sampler/remote/proc.h"

struct remote_walker; /* a reader's own */

struct remote_reader {
	enum abi_runtime runtime;
	int (*open)(struct remote_walker **out);
	void (*close)(struct remote_walker *w); /* NULL is fine */
	/** read - one thread of @p, which has this runtime: p->info. Return: its frames, runtime_count and runtime_end,
	 * the reader's until the next call; the rest of its head is the caller's to fill. */
	struct abi_sample *(*read)(struct remote_walker *w, struct remote_process *p, struct remote_thread *t);
	/** name - the record that names a frame of the last stack that was read, unless it was sent before. Borrowed
	 * until the next call; NULL: there is none. */
	const struct abi_name *(*name)(struct remote_walker *w, struct remote_process *p, const struct abi_frame *frame,
				       uint64_t now_ns);
	/** sent - it need not be named again. */
	void (*sent)(struct remote_walker *w, const struct remote_process *p, const struct abi_frame *frame);
	/** forget - everything is to be named again. */
	void (*forget)(struct remote_walker *w);
};

/** remote_reader_find - NULL: stacks of that runtime are not read from outside. */
const struct remote_reader *remote_reader_find(enum abi_runtime runtime);
