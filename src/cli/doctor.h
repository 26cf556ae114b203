/* SPDX-License-Identifier: Apache-2.0 */
/* What `hearth doctor` says: facts in, text or JSON out. */
#pragma once

#include "sampler/probe.h"

#define DOCTOR_FACT_MAX (PROBE_FACT_MAX + 16)

struct doctor_config {
	const char *host_root;        /* "" on the host */
	const char *container_socket; /* NULL: the usual place */
	const char *data_dir;         /* NULL: /var/lib/hearth for root, else below $XDG_STATE_HOME */
	bool allow_dangerous_kernel;
};

/**
 * doctor_collect - look at everything once
 * @out: room for DOCTOR_FACT_MAX facts; the first, "sampler", says which sampler would be taken, or why none can be
 *
 * Return: number of facts.
 */
size_t doctor_collect(const struct doctor_config *cfg, struct probe_fact *out);

/**
 * doctor_remedy - append the one command that mends all that a command can mend; nothing when there is nothing to mend
 * @program: path of this program; when it cannot be given to a shell in one line, rights are left out
 * @root: the reader is root and needs no sudo
 *
 * Return: how many facts it mends. Pure.
 */
size_t doctor_remedy(const struct probe_fact *facts, size_t count, const char *program, bool root, struct buf *out);

/**
 * doctor_text - a line per fact (mark, name, value), its remedy below, a closing sentence, and the command of
 * doctor_remedy() in the last line; what that mends has no remedy of its own. Pure.
 */
void doctor_text(const struct probe_fact *facts, size_t count, const char *program, bool root, struct buf *out);
/**
 * doctor_json - {"version", "usable", "remedy", "facts": [{"name", "need", "ok", "value", "remedy"}]}, as one line
 * Return: 0, -ENOMEM or -E2BIG.
 */
int doctor_json(const struct probe_fact *facts, size_t count, const char *program, bool root,
		struct buf *out) warn_unused;
/** doctor_usable - can the whole machine be sampled here, native code too? Pure. */
bool doctor_usable(const struct probe_fact *facts, size_t count);

/** doctor_capabilities - a fact for each capability that matters. @held: bit set of effective ones. Return: count.
 * Pure. */
size_t doctor_capabilities(uint64_t held, const char *program, struct probe_fact *out);
