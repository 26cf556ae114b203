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
	/** know - what runtime.attach() said of the process, before the first of its threads is read. */
	void (*know)(struct remote_process *p, const void *info);
	/** read - one thread. Return: its frames, runtime_count and runtime_end, the reader's until the next call. */
	const struct abi_sample *(*read)(struct remote_walker *w, struct remote_process *p, struct remote_thread *t);
};

/** remote_reader_find - NULL: stacks of that runtime are not read from outside. */
const struct remote_reader *remote_reader_find(enum abi_runtime runtime);
