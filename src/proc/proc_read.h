/* SPDX-License-Identifier: Apache-2.0 */
/* One process as /proc shows it. Everything is read through one descriptor of /proc/PID, which never comes to mean a
 * later process with the same pid: reads fail with -ESRCH instead. */
#pragma once

#include "base/buf.h"

/* What /proc/PID/stat and status say. */
struct proc_facts {
	char comm[16]; /* cut and terminated */
	uint32_t parent_pid;
	uint64_t start_ticks; /* of 1/100 s since boot */
	uint32_t inner_pid;   /* 0: status was not readable */
	uint32_t uid, effective_uid;
	bool is_kernel, is_zombie; /* zombie: the leader is gone, other threads may live */
};

/** proc_stat_parse - text of /proc/PID/stat. Return: 0 or -EBADMSG. Pure. Source: proc(5), linux 6.1 fs/proc/array.c.
 */
int proc_stat_parse(struct str text, struct proc_facts *out) warn_unused;
/** proc_status_parse - adds inner_pid and the uids. A text without them changes nothing. Pure. */
void proc_status_parse(struct str text, struct proc_facts *facts);

/** proc_dir_open - Return: a descriptor of HOST_ROOT/proc/PID, or -errno (-ENOENT: gone). */
int proc_dir_open(const char *host_root, uint32_t pid);

/**
 * proc_facts_read - stat only
 * @start_ns: what the process is expected to have; 0: any
 *
 * Return: 0; -ESRCH when it is another process that has this pid by now; -errno.
 */
int proc_facts_read(int dir, uint64_t start_ns, struct buf *scratch, struct proc_facts *out) warn_unused;

/** proc_status_read - adds what status says, when it can be read. */
void proc_status_read(int dir, struct buf *scratch, struct proc_facts *facts);

/**
 * proc_living_dir - the directory of a thread that still has the memory of a process whose leader is gone
 *
 * @out_tid: which thread that is; NULL: nobody asks. Return: a descriptor like that of proc_dir_open(), -ESRCH when no
 * thread is left, -errno.
 */
int proc_living_dir(const char *host_root, int dir, uint32_t pid, uint32_t *out_tid);

/** proc_auxv - what the kernel told the program as AT_... @type (getauxval(3)). Return: 0; -ENODATA: nothing; -errno.
 */
int proc_auxv(int dir, uint64_t type, uint64_t *out) warn_unused;

/** proc_link_read - where /proc/PID/NAME points to, without " (deleted)". NULL when it can't be read. */
char *proc_link_read(int dir, const char *name);

#define PROC_MAP_FILE_SIZE 48
/** proc_map_file - below /proc/PID, the file that is mapped from @start to @end, wherever it lies and even when it is
 * deleted. Opening it takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. */
void proc_map_file(uint64_t start, uint64_t end, char out[PROC_MAP_FILE_SIZE]);

/**
 * proc_open_below - open a regular file by the path the process itself would use, never leaving its root
 * @root: the directory that path starts at, relative to @dir: "root"
 *
 * Return: a descriptor, -ENODEV when it is no regular file, -errno.
 */
int proc_open_below(int dir, const char *root, const char *path, bool follow_last);
