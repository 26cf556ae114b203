/* SPDX-License-Identifier: Apache-2.0 */
/* What a sampler counts, by the names that perf gives it: software and hardware events, those of the caches, rHEX,
 * PMU/.../ and the names below /sys/bus/event_source, tracepoints GROUP:NAME. Modifiers behind a colon: u, k, p. */
#pragma once

#include "base/buf.h"
#include "sampler/sampler.h"

struct perf_event_attr;

/**
 * event_parse - the event called @name; *out has no period yet
 * @host_root: prefix of /sys; may be NULL
 * @why: one line on failure
 *
 * Return: 0; -ENOENT (no such event), -EBADMSG (malformed), -ENOTSUP (it can't be looked up here: no tracefs), -EPERM,
 * -ENOMEM. *out is untouched then.
 */
int event_parse(const char *host_root, struct str name, struct sampler_event *out, struct buf *why) warn_unused;

/**
 * event_probe - can it be sampled here, by @frequency_hz or by its period?
 * @why: one line on failure, with what helps
 *
 * Return: 0, -EPERM, -ENOTSUP.
 */
int event_probe(const struct sampler_event *event, uint32_t frequency_hz, struct buf *why) warn_unused;

/** event_explain - why perf_event_open() gave @error (negative); appends one line. Return: -EPERM or -ENOTSUP. */
int event_explain(const struct sampler_event *event, int error, struct buf *why);

/** event_attr - what is to be opened, disabled and without samples; NULL: the CPU's clock. Pure. */
void event_attr(const struct sampler_event *event, uint32_t frequency_hz, struct perf_event_attr *out);

/** event_is_tracepoint - BPF programs of perf events can't be attached to one. NULL: no. Pure. */
bool event_is_tracepoint(const struct sampler_event *event);
