/* SPDX-License-Identifier: Apache-2.0 */
/* The processes a session has met: their mappings while they live, their container, and what stays known after exit.
 * Keyed by pid, start time and exec id: a program that execs becomes another process here, which has the same pid.
 * Used by one thread: the ring reader. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "proc/files.h"
#include "proc/workload.h"

struct mappings;
struct proc;

struct proc_config {
	const char *host_root;                     /* "" on the host; prefix of /proc, /sys and socket paths */
	const char *container_socket;              /* NULL: /var/run/docker.sock below the root of pid 1 */
	size_t mapping_max;                        /* per process; 0: 65536 */
	const struct service_rules *service_rules; /* borrowed; NULL: none */
	bool recorded; /* replay: processes and mappings come from records, /proc is not asked */
	/** A program has ended, by exit or by exec, or is forgotten. May be called more than once. NULL: no listener.
	 */
	void (*ended)(void *ctx, const struct proc *p);
	/** It is forgotten: no further record of it will come, and no held record will be asked for. NULL: no
	 * listener. */
	void (*dropped)(void *ctx, const struct proc *p);
	/** Its mappings were read, or read again: proc_mappings() has them. The listener may call proc_look_soon() and
	 * proc_look_again(), and no other function that changes the table. NULL: no listener. */
	void (*mapped)(void *ctx, struct proc *p);
	void *ctx;
};

enum proc_place_kind {
	PROC_PLACE_UNKNOWN, /* nothing mapped there that we know of */
	PROC_PLACE_FILE,
	PROC_PLACE_VDSO, /* file_id names the vDSO image */
	PROC_PLACE_VSYSCALL,
	PROC_PLACE_ANONYMOUS, /* executable memory without a file: JIT code */
};

struct proc_place {
	enum proc_place_kind kind;
	uint32_t file_id;                        /* struct files */
	uint64_t offset;                         /* in the file */
	uint64_t map_start, map_end, map_offset; /* of the mapping */
};

struct proc_again { /* when mappings that found no room with one who wants them are told again; 0: they found room */
	uint64_t delay_ns, due_ns;
};

struct proc {
	uint32_t pid;
	uint64_t start_ns;              /* CLOCK_BOOTTIME */
	uint32_t parent_pid, inner_pid; /* inner: in its own pid namespace; known once proc_perf_map_fd() was asked */
	uint32_t exec_id;               /* of the program, grows with each exec; 0: not known (yet) */
	uint32_t generation;            /* counts execs: a JIT address means something only together with it */
	char comm[ABI_COMM_SIZE];
	char container_id[65]; /* 64 hex digits, or empty */
	char *container;       /* name, short id when the engine does not answer, or NULL; proc_get() may replace it */
	char *pod;             /* name of its pod, as its own HOSTNAME has it, or NULL */
	char *unit;            /* systemd service, without ".service", or NULL; not looked for in containers */
	char *exe;             /* path of the program, or NULL */
	/* What the program's profiles are kept under (workload.h). It may change when the container engine has
	 * answered. NULL: not read yet, or out of memory. */
	char *service;
	enum workload_kind service_kind;
	uint64_t born_ns; /* CLOCK_MONOTONIC, when the program began: exec, also the parent's; 0: not seen */
	bool is_kernel, exited, unreadable;
	uint64_t exit_ns;                          /* CLOCK_MONOTONIC, when exited */
	struct proc_again see_again, unwind_again; /* of the runtimes and the unwinder: the session's, for
						      proc_look_again() */
};

struct proc_table;

int proc_table_open(const struct proc_config *cfg, struct files *files, struct proc_table **out) warn_unused;
void proc_table_close(struct proc_table *t);

/**
 * proc_get - the process of a sample; reads /proc on first sight
 * @exec_id: one that was not met yet is a new program, even when its exec record was lost; 0: the newest
 *
 * Return: NULL only when out of memory, or when 262,144 processes are kept already. A process that is gone already has
 * unreadable set. Borrowed; stays valid until proc_expire() drops it.
 */
struct proc *proc_get(struct proc_table *t, uint32_t pid, uint64_t start_ns, uint32_t exec_id,
		      const char comm[ABI_COMM_SIZE]);
/** proc_parent - who made the process of a fork record. NULL: not met. */
const struct proc *proc_parent(const struct proc_table *t, const struct abi_process *event);

/** proc_event - exec, fork and exit as they come out of the ring. */
void proc_event(struct proc_table *t, const struct abi_process *event);
/** proc_mapping - a mapping told by a recording. */
void proc_mapping(struct proc_table *t, const struct abi_mapping *mapping);

/**
 * proc_find_place - what an address means
 *
 * Reads the mappings again when nothing covers it (rate-limited: 100 ms doubling to 25.6 s while that finds nothing,
 * from the start when it found something and after 5 s without a miss) and when they were read half a minute ago.
 */
void proc_find_place(struct proc_table *t, struct proc *p, uint64_t address, uint64_t now_ns, struct proc_place *out);

/** proc_mappings - borrowed until the next call for this process. */
const struct mappings *proc_mappings(const struct proc *p);
/**
 * proc_reread - read the mappings again, because one is known to be missing at @address. Rate-limited as
 * proc_find_place(), but more often in a process's first seconds, when it loads its libraries
 * @is_mapped: the kernel says that code is mapped there: waits 1.6 s at most between readings, apart from the limit of
 * their cost; misses of other addresses do not lengthen that
 * Return: true when @address is known now.
 */
bool proc_reread(struct proc_table *t, struct proc *p, uint64_t address, bool is_mapped, uint64_t now_ns);
/** proc_reread_young - read the mappings again while a process loads its libraries, at most every 4 ms. */
void proc_reread_young(struct proc_table *t, struct proc *p, uint64_t now_ns);
/** proc_refresh - read the mappings again when they are half a minute old, or proc_look_soon() asked for it. Return:
 * true when they were read. */
bool proc_refresh(struct proc_table *t, struct proc *p, uint64_t now_ns);
/** proc_look_soon - proc_refresh() reads the mappings @delay_ns after @now_ns, or earlier if it was to do so anyway. */
void proc_look_soon(struct proc *p, uint64_t now_ns, uint64_t delay_ns);
/**
 * proc_look_again - proc_look_soon() for a listener that had no room for the mappings: after a second, then after twice
 * the time, up to 30 s, until the listener sets *again to {0}
 * Calls before that time has passed do not lengthen it.
 */
void proc_look_again(struct proc *p, struct proc_again *again, uint64_t now_ns);
/**
 * proc_tell_mapping - add one mapping that the kernel reported, of a process that is gone from /proc
 * Its file is known when it was in any process's mappings before. Return: true when the mapping is new and its file
 * is known.
 */
bool proc_tell_mapping(struct proc_table *t, struct proc *p, const struct abi_vma *vma);

/**
 * proc_perf_map_fd - /tmp/perf-PID.map of the process's own view, or without one the jit-PID.dump that it has mapped
 * Opened once, kept after exit. Return: borrowed; -1: none.
 */
int proc_perf_map_fd(struct proc_table *t, struct proc *p);

/**
 * proc_user - the effective user a process has, read again each second: programs change it
 * Return: 0; -ESRCH: nobody can tell any more.
 */
int proc_user(struct proc_table *t, struct proc *p, uint64_t now_ns, uint32_t *out) warn_unused;

/** proc_expire - forget processes that exited before @before_ns (CLOCK_MONOTONIC): every record older was read. */
void proc_expire(struct proc_table *t, uint64_t before_ns);
size_t proc_count(const struct proc_table *t);
