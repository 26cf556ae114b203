/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about the machine a profile was taken on: the `metadata` object of a .col file. */
#pragma once

#include "base/buf.h"

struct sampler_event;

struct metadata_config {
	const char *host_root; /* "" on the host */
	const char *run_mode;  /* k8s, container, standalone_executable or local_python; NULL: from the environment */
	uint64_t spawn_wall_ns, now_wall_ns;
	uint32_t frequency_hz;
	const struct sampler_event *event; /* what was sampled; NULL: the CPU's clock */
	const char *cloud_provider;        /* NULL: not known */
	const char *cloud_info;            /* a JSON object; NULL: none */
	const char *external;              /* a JSON object of somebody else's; NULL: none */
	const char *arguments;             /* the JSON object run_arguments; NULL: rate and mode alone */
};

/**
 * metadata_json - append the object as one line
 *
 * Holds every key that needs neither the network nor another program; what cannot be read is "unknown". Keys, order and
 * types are those gProfiler 1.57 writes, but spawn_uptime_ms, which is in milliseconds here. Return: 0 or -ENOMEM,
 * -E2BIG.
 */
int metadata_json(const struct metadata_config *cfg, struct buf *out) warn_unused;

/** metadata_os_release - value of a key in the text of os-release, without quotes; empty when absent. Pure. */
struct str metadata_os_release(struct str text, struct str key);
