/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel side lets through: processes, threads, cgroups, mount namespaces. */
#pragma once

#include "sampler/sampler.h"

struct sampler_bpf;

/**
 * bpf_filters_use - take pinned maps in place of the program's own; before the program is loaded
 * @why: on failure one line that names the path
 */
int bpf_filters_use(struct sampler_bpf *skel, const struct sampler_config *cfg, struct buf *why) warn_unused;
/** bpf_filters_fill - the others, once it is loaded. */
int bpf_filters_fill(struct sampler_bpf *skel, const struct sampler_config *cfg, struct buf *why) warn_unused;
