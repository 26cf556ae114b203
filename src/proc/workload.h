/* SPDX-License-Identifier: Apache-2.0 */
/* What a process belongs to, as one name: the service that its profiles are kept under. */
#pragma once

#include "proc/proc.h"

/**
 * workload_unit_parse - the systemd service in the text of /proc/PID/cgroup, without ".service"
 *
 * A delegated cgroup below a service belongs to it; one in a scope or slice below (a user's session) does not.
 * Source: systemd.unit(5), Control Groups v2 (docs/CGROUP_DELEGATION.md of systemd).
 *
 * Return: borrowed from @cgroup; empty when there is none. Pure.
 */
struct str workload_unit_parse(struct str cgroup);

/**
 * workload_container - the pod's name when Docker runs the container for Kubernetes, else the name as it is
 * Source: kubernetes 1.23, pkg/kubelet/dockershim/naming.go: k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT
 */
struct str workload_container(struct str name);

/**
 * workload_name - container or pod, else systemd unit, else the program's file name, else @comm; "kernel" for kernel
 * threads. Borrowed from @p and @comm.
 */
struct str workload_name(const struct proc *p, struct str comm);
