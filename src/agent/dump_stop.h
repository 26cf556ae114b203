/* SPDX-License-Identifier: Apache-2.0 */
/* All threads of a process stopped for a while, by ptrace(2), without a signal that the process could see. */
#pragma once

#include <linux/types.h>
#include <signal.h>
#include <sys/types.h>

#include "base/u64map.h"
#include "walk/walk.h"

struct stopped_thread {
	pid_t tid;
	int signal; /* that arrived meanwhile: delivered at the end */
	bool is_stopped;
};

struct dump_stop {
	pid_t pid;
	struct stopped_thread *threads;
	size_t count, cap;
	struct u64map index; /* tid -> threads */
	uint64_t since_ns;   /* monotonic: when the first of them may have stopped; 0: none */
	sigset_t signals;    /* the old mask: signals that end a program are blocked meanwhile */
	bool held;
};

/**
 * dump_stop_all - stop every thread of @pid, at most a quarter of a second
 * @task_dir: descriptor of /proc/PID/task. Those that do not stop in time are left running, is_stopped says so.
 * Return: 0; -EPERM: it may not be stopped, or somebody else traces it; -ESRCH; -ENOMEM.
 */
int dump_stop_all(struct dump_stop *s, pid_t pid, int task_dir) warn_unused;
/** dump_stop_registers - Return: 0: @w->leaf is filled, @is_return says whether it is in a system call; -ENOTSUP: a
 * 32-bit process; -ESRCH: it is not stopped. */
int dump_stop_registers(const struct dump_stop *s, pid_t tid, struct walk *w, bool *is_return) warn_unused;
/** dump_stop_release - all threads run on. A zeroed struct is fine. A program that is killed releases them, too. */
void dump_stop_release(struct dump_stop *s);
