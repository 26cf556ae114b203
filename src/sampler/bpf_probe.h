/* SPDX-License-Identifier: Apache-2.0 */
/* Small trials of what the bpf sampler needs. Each leaves nothing behind. */
#pragma once

#include "sampler/sampler.h"

int bpf_probe_program(void);         /* a perf_event program can be loaded: 0 or -errno */
int bpf_probe_ring(void);            /* a ring buffer can be made: 0 or -errno */
int bpf_probe_process_event(void);   /* a program can be put on a scheduler event by BTF: 0 or -errno; tens of ms */
int bpf_probe_entry_registers(void); /* 1: by a helper; 0: the kernel is older, they are found by hand; or -errno */
int bpf_probe_find_vma(void);        /* 1: bpf_find_vma says what is mapped at an address; 0: before 5.17; or -errno */
int bpf_probe_sparse_hash(void);     /* 1: a tick may use a hash map that is allocated as it fills; 0: before 6.1 */
int bpf_probe_perf_event(void);      /* cpu-clock for all tasks of a CPU: 0 or -errno */

/** bpf_probe_kernel - is it new enough, not one that freezes, and do its processes have our numbers? Return: 0, or
 * -ENOTSUP and @why. */
int bpf_probe_kernel(const struct sampler_config *cfg, struct buf *why) warn_unused;

/** bpf_probe_all - what sampler->probe() answers; a millisecond. Return: 0, -EPERM or -ENOTSUP with @why. */
int bpf_probe_all(const struct sampler_config *cfg, struct buf *why) warn_unused;
