/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the sampler's programs and puts the reason of a failure into words. */
#pragma once

#include "sampler/sampler.h"

/* What a program needs to see everything without being root; named in remedies. */
#define SAMPLER_SETCAP                                                                   \
	"sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_syslog," \
	"cap_checkpoint_restore+ep"

struct sampler_bpf; /* the generated skeleton */

/**
 * bpf_load - programs verified, maps filled, process events attached; nothing is sent before `active` is set
 * @cfg: filters, rate and ring size
 * @why: filled on failure
 *
 * Return: 0, -EPERM, -ENOTSUP or another -errno.
 */
int bpf_load(const struct sampler_config *cfg, struct buf *why, struct sampler_bpf **out) warn_unused;
void bpf_unload(struct sampler_bpf **skeleton);

/** bpf_ring_bytes - size of the ring for this configuration: a power of two. Pure. */
size_t bpf_ring_bytes(const struct sampler_config *cfg, unsigned int cpu_count);

/** bpf_explain - what stands in the way and what mends it, for an error of loading or of perf_event_open. */
void bpf_explain(struct buf *why, const char *what, int error);
