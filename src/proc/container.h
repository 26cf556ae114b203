/* SPDX-License-Identifier: Apache-2.0 */
/* Which container a process belongs to, and what its engine calls it. A thread of its own asks the engine. The
 * sampling path waits for it only once, briefly, at the start. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#define CONTAINER_ID_SIZE 64
#define CONTAINER_SHORT_SIZE 12

/**
 * container_id_parse - the id in the text of /proc/PID/cgroup
 * @out: 64 digits and a NUL; the last run of exactly 64 hexadecimal digits in the first line that has one. A
 *container's monitor (conmon) is in none
 *
 * Return: false when no line has one. Pure.
 */
bool container_id_parse(struct str cgroup, char out[CONTAINER_ID_SIZE + 1]);

/** container_is_id - exactly CONTAINER_ID_SIZE digits? Pure. */
bool container_is_id(struct str s);

typedef int container_visit_fn(void *ctx, struct str id, struct str name);

/**
 * container_list_parse - the answer of Docker's GET /containers/json
 * @visit: called for each container with an id and a name (without its leading slash); non-zero ends the walk
 *
 * Return: 0, -EBADMSG when it is no such list, -ENOMEM, or what @visit returned. Entries of a wrong shape are skipped.
 * Source: Docker Engine API v1.41, ContainerList.
 */
int container_list_parse(struct str json, container_visit_fn *visit, void *ctx) warn_unused;

/**
 * container_cri_parse - the message that containerd's or CRI-O's ListContainers answers
 * @visit: as for container_list_parse(); names are k8s_CONTAINER_POD_NAMESPACE_UID_RESTARTS, in gProfiler's form
 *
 * Return: as container_list_parse(). Pure.
 */
int container_cri_parse(struct str message, container_visit_fn *visit, void *ctx) warn_unused;

#define CONTAINER_GRPC_HEAD 5 /* bytes before a message: compressed or not, its size */

/** container_grpc_parse - the only message of a gRPC answer, borrowed. Return: 0, or -EBADMSG. Pure. */
int container_grpc_parse(struct str body, struct str *message) warn_unused;

struct containers;

/**
 * containers_open - @socket: an engine's, of any kind, below @host_root; NULL: the usual ones of Docker, podman,
 * containerd and CRI-O, below the root of pid 1
 *
 * Starts the thread. Nothing is asked before the first container is met.
 */
int containers_open(const char *host_root, const char *socket, struct containers **out) warn_unused;
void containers_close(struct containers *c);

/**
 * containers_name - the name of a container, from the engine's answers so far
 * @id: 64 digits
 * @out: owned by the caller
 *
 * Return: 0; -EAGAIN when the engine is being asked or will be; -ENOENT when it does not know this container or does
 * not answer at all, for now; -ENOMEM.
 */
int containers_name(struct containers *c, const char *id, char **out) warn_unused;
/** containers_generation - changes whenever asking again may give another answer. */
uint32_t containers_generation(const struct containers *c);

/**
 * containers_find - does @wanted name a container: by its name, or by at least 12 digits of its id?
 * @host_root, @socket: as for containers_open()
 * @why: on failure one line without a line end: that there is none, or that the engine does not answer
 *
 * Asks the engine and waits for its answer; an id that it does not tell is looked for in the cgroups of all processes.
 * Return: 0, -ENOENT, -ENOMEM.
 */
int containers_find(const char *host_root, const char *socket, struct str wanted, struct buf *why) warn_unused;
