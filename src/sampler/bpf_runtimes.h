/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's maps of what the runtimes' walkers know of processes, as a runtime_sink. Everything here is a system
 * call on a descriptor, or one atomic: one thread may use it while another reads the ring. */
#pragma once

#include "runtime/runtime_sink.h"

struct bpf_runtimes {
	int heads_fd, programs_fd; /* borrowed from the loaded object */
	struct {
		int fd;
		uint32_t size; /* of what the runtime's walker knows of a process; 0: this object has no such walker */
	} maps[ABI_RUNTIME_COUNT];
	uint32_t *names_epoch; /* likewise: shared with the kernel side */
};

struct bpf_object;

/** bpf_runtimes_open - looks for the maps of all walkers in the loaded @object. */
void bpf_runtimes_open(struct bpf_runtimes *r, const struct bpf_object *object, uint32_t *names_epoch);

/** bpf_runtimes_sink - @out is used by one thread, and only as long as @r and its descriptors are there. */
void bpf_runtimes_sink(struct bpf_runtimes *r, struct runtime_sink *out);
