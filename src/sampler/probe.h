/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine allows a profiler to do, found by trying and not by reading version numbers: the facts behind
 * `hearth doctor` and behind the reasons a sampler gives. */
#pragma once

#include "base/buf.h"

#define PROBE_FACT_MAX 24

enum probe_need {
	PROBE_NEED_SAMPLER, /* without it the bpf sampler does not run */
	PROBE_NEED_DETAIL,  /* without it something is missing or nameless; the remedy says what */
	PROBE_NEED_NOTHING, /* worth knowing; never wrong in itself */
};

/* What the one command of doctor_remedy() is made of. */
enum probe_mend {
	PROBE_MEND_RIGHTS = 1, /* capabilities for the program: setcap */
	PROBE_MEND_KPTR = 2,   /* kernel.kptr_restrict hides addresses from everybody */
	PROBE_MEND_LIBDW = 4,  /* a package of Debian's */
};

struct probe_fact {
	const char *name; /* stable, lower case with dashes: "perf-events" */
	enum probe_need need;
	bool ok;
	char value[160];   /* what was found: "6.18.44", "Permission denied"; printable ASCII */
	char remedy[200];  /* one line, empty when ok: a command, or what to change */
	unsigned int mend; /* PROBE_MEND_ bits: all of these commands mend it; 0: none does, see remedy */
};

struct probe_config {
	const char *host_root; /* prefix of /proc and /sys paths; "" on the host */
	const char *program;   /* path named in remedies; NULL: this executable */
	bool allow_dangerous_kernel;
};

/**
 * probe_run - try everything once; takes tens of milliseconds and leaves nothing behind
 * @out: room for PROBE_FACT_MAX facts
 *
 * Facts, in this order: kernel, perf-events, bpf, ring-buffer, btf, process-events, kernel-mode-registers,
 * new-mappings, perf-event-paranoid, kernel-symbols, kptr-restrict, other-processes, pid-namespace, mapped-files,
 * lockdown, memlock, tracefs. Return: number of facts.
 */
size_t probe_run(const struct probe_config *cfg, struct probe_fact *out);

/** probe_find - the fact of that name, or NULL. */
const struct probe_fact *probe_find(const struct probe_fact *facts, size_t count, const char *name);

struct probe_kernel {
	unsigned int major, minor, patch;
};

/**
 * probe_kernel_parse - the upstream version behind the names a kernel gives itself
 * @release: uname -r; distributions freeze its last number
 * @version: uname -v; Debian tells the upstream version there
 * @signature: /proc/version_signature of Ubuntu, or empty
 *
 * Return: 0, or -EBADMSG; *out untouched then. Pure.
 */
int probe_kernel_parse(struct str release, struct str version, struct str signature,
		       struct probe_kernel *out) warn_unused;

/**
 * probe_kernel_verdict - Return: 0; -ENOTSUP when older than 5.10; -EDEADLK for one of the kernels that can freeze when
 * BPF reads user memory (5.19 to 6.0, 6.1 before 6.1.36, 6.2, 6.3 before 6.3.10).
 */
int probe_kernel_verdict(const struct probe_kernel *kernel);

/** probe_kernel_running - of this machine. Return: 0 or -EBADMSG. */
int probe_kernel_running(const char *host_root, struct probe_kernel *out) warn_unused;

/**
 * probe_pid_namespace - are the numbers of the processes in @host_root/proc those that BPF programs see?
 *
 * In a pid namespace of a container's own they are not: a program in the kernel sees the machine's numbers, and here
 * the same numbers are other processes. Source: PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h. Return: yes,
 * also where it cannot be known.
 */
bool probe_pid_namespace(const char *host_root);
