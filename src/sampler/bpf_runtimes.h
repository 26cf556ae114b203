/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's maps of what the runtimes' walkers know of processes, as a runtime_sink. Everything here is a system
 * call on a descriptor, or one atomic: one thread may use it while another reads the ring. */
#pragma once

#include "runtime/runtime_sink.h"

struct bpf_runtimes {
	int pythons_fd, programs_fd; /* borrowed from the loaded object */
	uint32_t *names_epoch;       /* likewise: shared with the kernel side */
};

/** bpf_runtimes_sink - @out is used by one thread, and only as long as @r and its descriptors are there. */
void bpf_runtimes_sink(struct bpf_runtimes *r, struct runtime_sink *out);
