/* SPDX-License-Identifier: Apache-2.0 */
/* What event.c (names, opening) and event_files.c (what the kernel's files know) share. */
#pragma once

#include "sampler/event.h"

/** event_tracepoint - @group and @name to a type and config. Return: 0, -ENOENT, -ENOTSUP, -EPERM. */
int event_tracepoint(const char *host_root, struct str group, struct str name, struct sampler_event *out,
		     struct buf *why) warn_unused;
/** event_of_pmu - an event of the unit @pmu with @terms: "name", "event=0x3c,umask=1". Return: 0, -ENOENT, -EBADMSG. */
int event_of_pmu(const char *host_root, struct str pmu, struct str terms, struct sampler_event *out,
		 struct buf *why) warn_unused;
/** event_of_any_pmu - a name that one of the units has. Return: 0, -ENOENT. */
int event_of_any_pmu(const char *host_root, struct str name, struct sampler_event *out) warn_unused;
