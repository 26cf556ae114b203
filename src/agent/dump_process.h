/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of all threads of a live process, read once: kernel frames, native ones and those of a language runtime,
 * in call order. They are read from outside; the process is stopped only on request. */
#pragma once

#include "base/buf.h"
#include "base/intern.h"

struct dump_config {
	uint32_t pid;
	bool freeze;               /* stop all threads while their registers, stacks and memory are read: ptrace(2) */
	uint32_t without_runtimes; /* bits of enum abi_runtime: their frames stay native */
	const char *host_root;
};

enum dump_kind { DUMP_KERNEL, DUMP_NATIVE, DUMP_RUNTIME };

struct dump_frame { /* texts: strings of the dump; 0: not known */
	enum dump_kind kind;
	uint32_t name, file, module;
	int32_t line, first_line; /* 0: not known */
	bool guessed;
};

#define DUMP_REMARKS_MAX 6

struct dump_thread {
	uint32_t tid, name;
	char state;                         /* R, S, D ... as /proc says; '?' */
	size_t first, count;                /* of the dump's frames, leaf first */
	uint32_t remarks[DUMP_REMARKS_MAX]; /* what is missing, and why */
	size_t remark_count;
};

struct dump {
	struct intern strings;
	uint32_t pid, comm, exe;
	uint32_t runtime, title,
		version; /* of the runtime whose frames are shown: its name, what people call it, "3.11.2" */
	struct dump_thread *threads;
	size_t thread_count, thread_cap;
	struct dump_frame *frames;
	size_t frame_count, frame_cap;
	uint64_t stopped_ns; /* from the first stop to the last thread's going on; 0: never */
	uint32_t remark;     /* about all of it */
};

/**
 * dump_process - fill @out, a zeroed struct
 * @why: one line on failure. Return: 0; -ESRCH: there is no such process; -EPERM; -ENOMEM; -errno.
 */
int dump_process(const struct dump_config *cfg, struct buf *why, struct dump *out) warn_unused;
void dump_release(struct dump *d); /* a zeroed struct is fine */

/** dump_text - for people: one block a thread. */
void dump_text(const struct dump *d, struct buf *out);
/** dump_json - one object. */
void dump_json(const struct dump *d, struct buf *out);

struct dump_registers { /* of a blocked thread, from /proc/PID/task/TID/syscall */
	bool runs, in_syscall;
	uint64_t sp, pc; /* 0: not told */
};
/** dump_registers_parse - Return: 0 or -EBADMSG. Pure. Source: linux 6.1, fs/proc/base.c, proc_pid_syscall(). */
int dump_registers_parse(struct str text, struct dump_registers *out) warn_unused;
/** dump_kernel_line - "[<0>] do_poll+0x1/0x2" -> "do_poll". Return: false when it is none. Pure. */
bool dump_kernel_line(struct str line, struct str *name);
