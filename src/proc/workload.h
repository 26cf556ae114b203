/* SPDX-License-Identifier: Apache-2.0 */
/* What a process belongs to, as one name: the service that its profiles are kept under. The rules are decided here and
 * nowhere else; docs/services.md explains them. All functions are pure. */
#pragma once

#include "base/buf.h"
#include "proc/container.h"
#include "proc/service_rules.h"

#define WORKLOAD_NAME_MAX 200 /* bytes of a service's name */
#define WORKLOAD_SHORT_NS NSEC_PER_SEC
#define WORKLOAD_SHORT_NAME "(short-lived)"

/* What a service is named after; kept beside the name as the label service_kind. */
#define WORKLOAD_KINDS(X)                                                                          \
	X(RULE, "rule") /* a rule of --service-rules */                                            \
	X(POD, "pod")                                                                              \
	X(CONTAINER, "container")                                                                  \
	X(UNIT, "unit")               /* a systemd service */                                      \
	X(APPLICATION, "application") /* what an interpreter or a virtual machine runs */          \
	X(EXECUTABLE, "executable")   /* a program's or a shell script's file name */              \
	X(SHORT_LIVED, "short-lived") /* programs of the kind before that ended within a second */ \
	X(KERNEL, "kernel")

#define X(id, name) WORKLOAD_##id,
enum workload_kind { WORKLOAD_KINDS(X) WORKLOAD_KIND_COUNT };
#undef X

struct str workload_kind_name(enum workload_kind kind);
/** workload_may_be_short - do programs of this kind become short-lived ones when they end within WORKLOAD_SHORT_NS? */
bool workload_may_be_short(enum workload_kind kind);

/* What the text of /proc/PID/cgroup says. */
struct workload_group {
	char container_id[CONTAINER_ID_SIZE + 1]; /* or empty */
	struct str container;                     /* a name that needs no engine: LXC, systemd-nspawn */
	struct str unit;                          /* systemd service, without ".service"; not in containers */
	struct str path;                          /* of systemd's hierarchy, or of the only one */
	bool is_pod;                              /* Kubernetes runs the container */
};

/**
 * workload_group_parse - texts are borrowed from @cgroup
 *
 * A delegated cgroup below a service belongs to it; one in a scope or slice below (a user's session) does not. The
 * monitor of a container is none. Sources: cgroups(7); docs/CGROUP_DELEGATION.md and docs/CONTAINER_INTERFACE.md of
 * systemd; runc, crun, podman, CRI-O, lxc: the names of their groups.
 */
void workload_group_parse(struct str cgroup, struct workload_group *out);

/**
 * workload_container - the pod's name when Docker runs the container for Kubernetes, else the name as it is
 * Source: kubernetes 1.23, pkg/kubelet/dockershim/naming.go: k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT
 */
struct str workload_container(struct str name, bool *is_pod);

/** workload_hostname - the value of HOSTNAME in @environ: pieces with a NUL behind each. Empty: there is none. */
struct str workload_hostname(struct str environ);

/* What is known of one process; empty: not known. */
struct workload_facts {
	bool is_kernel;
	struct str pod;       /* its name */
	struct str container; /* the engine's name for it, or a short id */
	struct str unit;
	struct str exe, comm;
	struct str argv;   /* as /proc/PID/cmdline */
	struct str cgroup; /* path */
};

/**
 * workload_name - append the service's name: a rule's, else "kernel", else pod or container, else systemd unit, else
 * application, else the program's file name, else its comm
 * @rules: NULL: none
 *
 * The name is at most WORKLOAD_NAME_MAX bytes of UTF-8 and never empty; what could act or hide in it is escaped
 * (base/safe.h). Return: what it is named after.
 */
enum workload_kind workload_name(const struct workload_facts *facts, const struct service_rules *rules,
				 struct buf *out);
