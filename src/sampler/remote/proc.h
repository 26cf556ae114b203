/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the processes that are looked at, and which of them use the CPU right now. All from /proc, through
 * descriptors that are held open: 1 us for a thread that has not run since the last look, 2 us for one that has.
 *
 * A thread counts when it is runnable and was so on a CPU: its run time or its number of time slices grew since it last
 * slept. Of the looks at which it is runnable, as many count as the share of that time that it did not wait for a CPU.
 */
#pragma once

#include <linux/types.h>
#include <sys/types.h>

#include "abi/abi.h"
#include "base/buf.h"
#include "base/u64map.h"
#include "runtime/runtime.h"
#include "sampler/remote/memory.h"

struct remote_root { /* code of a thread's first frame; code 0: none */
	uint64_t code, cookie;
};

struct remote_thread {
	uint32_t strange;        /* looks at which its thread pointer was not found */
	uint32_t tid, inner_tid; /* inner: in its own pid namespace; 0: not known yet */
	uint64_t tp;             /* its thread pointer; 0: not known yet */
	int stat_fd, state_fd;   /* schedstat and syscall; -1: opened for each look */
	uint64_t run_ns, delay_ns, slices;
	uint64_t idle_since_ns;
	uint64_t recent_run_ns, recent_delay_ns; /* of run_ns and delay_ns, fading */
	uint32_t share;                          /* of the runnable time that it ran, in 2^16 */
	uint32_t credit;                         /* in 2^16 */
	bool runnable, listed, met;              /* listed: scratch; met: run_ns and so on have been read */
	char name[ABI_COMM_SIZE];
	uint64_t named_ns;
	uint64_t state_at;       /* its thread state, when it was walked last */
	struct remote_root root; /* of its first frame, when there are votes for it */
	uint32_t root_votes, walks;
	const __u64 *leaf; /* its registers, when it is stopped: struct walk's leaf; NULL: not known */
	struct remote_plan plan;
};

struct remote_pointer { /* of one thread: pointer.h */
	uint64_t at;
	uint32_t tid; /* as it knows itself */
};

struct remote_process {
	uint32_t pid, parent_pid, exec_id;
	uint64_t start_ns;
	uint64_t stack_start; /* tells one program of the process from the next */
	char comm[ABI_COMM_SIZE];
	int dir, task_dir;
	nlink_t links; /* of task_dir at the last listing: number of threads and 2 */
	uint64_t listed_ns, checked_ns, met_ns, looked_ns, since_ns; /* since: its program runs, as far as is known */
	struct remote_thread *threads;
	size_t thread_count, thread_cap;
	bool gone, wanted, listed;
	enum abi_runtime runtime;            /* that `info` is of; NONE: not known yet, or it has none */
	uint64_t info[RUNTIME_INFO_MAX / 8]; /* what runtime.attach() said of it: its struct of abi/ */
	uint64_t info_version;               /* of the sink's table, see sampler_remote.c */
	struct remote_root roots[4];         /* first frames of its threads, newest first */
	uint64_t code_type;                  /* what all its code objects have as their type; 0: not known yet */
	struct remote_pointer *pointers;     /* of its threads */
	size_t pointer_count, pointer_cap;
};

struct remote_procs {
	const char *host_root;
	struct remote_process **items;
	size_t count, cap;
	struct u64map index;   /* pid -> index */
	struct u64map refused; /* pid -> 1: not ours to look at, or a kernel thread; forgotten when the pid goes */
	size_t descriptors, descriptor_max; /* two for each process; threads hold theirs up to half of them */
	struct buf scratch;
};

void remote_procs_init(struct remote_procs *p, const char *host_root, size_t descriptor_max);
void remote_procs_release(struct remote_procs *p);

/** remote_procs_find - NULL: not there. */
struct remote_process *remote_procs_find(const struct remote_procs *p, uint32_t pid);
/**
 * remote_procs_add - look at @pid from now on
 * Return: 0 and *out; -ESRCH: there is none, or it is a kernel thread; -EPERM: it may not be read; -EMFILE: no more
 * descriptors may be held; -ENOMEM; -errno.
 */
int remote_procs_add(struct remote_procs *p, uint32_t pid, struct remote_process **out) warn_unused;
/** remote_procs_expire - forget those that are gone. */
void remote_procs_expire(struct remote_procs *p);

struct remote_scan {
	bool all;      /* every process that may be read */
	bool children; /* those whose parent is wanted */
	uint32_t self; /* left out; 0: nobody */
};
/** remote_procs_scan - look for new processes in /proc. Return: how many there are, or -errno. */
int remote_procs_scan(struct remote_procs *p, const struct remote_scan *scan);

/**
 * remote_process_check - does it still live, and run the same program?
 * Return: 1 when it runs another one (exec_id has grown); 0; -ESRCH when it is gone, marked then.
 */
int remote_process_check(struct remote_procs *p, struct remote_process *process, uint64_t now_ns);
/** remote_process_list - bring its threads up to date, when they have changed or it is time. */
void remote_process_list(struct remote_procs *p, struct remote_process *process, uint64_t now_ns);
/**
 * remote_thread_runs - does it use the CPU?
 * Return: 1: yes; 0: no; -ESRCH: it has ended.
 */
int remote_thread_runs(struct remote_process *process, struct remote_thread *t, uint64_t now_ns);
/** remote_thread_name - read its name when it is not known or old, and its inner tid the first time. */
void remote_thread_name(struct remote_procs *p, struct remote_process *process, struct remote_thread *t,
			uint64_t now_ns);

struct remote_times { /* of /proc/PID/task/TID/schedstat */
	uint64_t run_ns, delay_ns, slices;
};
/** remote_times_parse - "RUN DELAY SLICES\n". Return: 0 or -EBADMSG. Pure. Source: linux 6.1, fs/proc/base.c. */
int remote_times_parse(struct str text, struct remote_times *out) warn_unused;
/**
 * remote_thread_judge - the decision of remote_thread_runs(), from what was read. Pure.
 * @state_known: false: schedstat is not filled on this kernel
 */
bool remote_thread_judge(struct remote_thread *t, const struct remote_times *now, bool runnable);
