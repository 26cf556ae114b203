/* SPDX-License-Identifier: Apache-2.0 */
/* The container engines of a machine, asked for all their containers: Docker and podman by Docker's REST, containerd
 * and CRI-O by gRPC. One thread at a time. */
#pragma once

#include <stdatomic.h>

#include "proc/container.h"

struct engines;

/** engines_new - @host_root, @socket: as for containers_open(). */
int engines_new(const char *host_root, const char *socket, struct engines **out) warn_unused;
void engines_free(struct engines *e); /* NULL is fine */

enum engines_dialect { ENGINES_REST, ENGINES_CRI };

struct engines_answer {
	size_t rank; /* of the engine: where two know a container, the lower one's name counts */
	enum engines_dialect dialect;
	struct str message; /* for engines_parse(); borrowed */
};

/** Return: 0; 1: no other answer is needed; -errno of engines_parse(): the engine may speak another dialect. */
typedef int engines_take_fn(void *ctx, const struct engines_answer *answer);

/**
 * engines_ask - ask all of them at once
 * @cancel: looked at several times a second; true ends it. NULL: never
 * @take: called for each answer, as soon as it is there
 *
 * An engine that did not answer in time is left out for ten seconds. Return: how many answered; -ENOENT: there is no
 * socket; -errno: why the first one gave no answer.
 */
int engines_ask(struct engines *e, uint64_t timeout_ns, const atomic_bool *cancel, engines_take_fn *take,
		void *ctx) warn_unused;

/** engines_parse - as container_list_parse(). */
int engines_parse(const struct engines_answer *answer, container_visit_fn *visit, void *ctx) warn_unused;

/** engines_text - append the paths that are asked, for people. */
void engines_text(const struct engines *e, struct buf *out);
