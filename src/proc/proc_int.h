/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the process table share; see proc.h. */
#pragma once

#include "base/u64map.h"
#include "proc/container.h"
#include "proc/mappings.h"
#include "proc/proc.h"

#define PROCS_MAX (1U << 18)
/* A process may have 65,536 executable mappings, and so may each of its 10,000 children. Those beyond the first few are
 * kept as long as there are not too many of them in all processes together (48 MiB). */
#define PROC_FEW 512
#define PROC_MANY_MAX ((size_t)1 << 20)

/* How often mappings are read again for addresses that lie in none of them. */
struct rescans {
	uint64_t next_ns, miss_ns; /* on the caller's clock */
	unsigned attempt;
};

struct entry {
	struct proc pub;     /* first: struct proc * is struct entry * */
	struct entry *older; /* of the same pid: an earlier program, or an earlier process */
	size_t index;
	struct mappings maps;
	size_t many;               /* mappings beyond the first PROC_FEW, as counted in the table */
	bool was_read, forked;     /* forked: since then no exec, so its parent's mappings are its own */
	bool not_told;             /* read for a child's sake only: nobody was told of its mappings */
	uint64_t fork_ns, exec_ns; /* CLOCK_MONOTONIC; 0: not seen */
	uint32_t uid, effective_uid;
	bool user_known;
	uint64_t user_ns; /* when the user was read, on the caller's clock; 0: not yet */
	int perf_map_fd;
	uint64_t perf_map_retry_ns;
	uint64_t scan_cost_ns;        /* of the last reading of the mappings */
	uint64_t met_ns;              /* when this entry was made, or its exec record read */
	uint64_t refresh_ns, paid_ns; /* on the caller's clock; paid_ns: until then another reading costs too much */
	uint64_t swept_ns;            /* when its start time was compared last; 0: not yet */
	uint64_t scanned_ns;          /* when proc_get() or proc_reread() read the mappings last */
	struct rescans rescans[2];    /* [1]: for addresses where the kernel says that code is mapped */
	char *machine;                /* name of its container without an engine, or NULL */
	char *cgroup, *argv;          /* what its service's name needs, or NULL */
	size_t argv_size;
	bool name_pending;
	uint32_t name_generation;
};

struct proc_table {
	char *host_root, *container_socket;
	bool recorded;
	void (*ended)(void *ctx, const struct proc *p);
	void (*dropped)(void *ctx, const struct proc *p);
	void (*mapped)(void *ctx, struct proc *p);
	void *ctx;
	const struct service_rules *service_rules;
	uint64_t event_ns; /* of the record at hand; 0: there is none */
	struct files *files;
	struct containers *containers; /* NULL until the first container is met */
	bool containers_failed;
	struct mapping_reader reader;
	struct buf scratch;
	struct entry **items;
	size_t count, cap;
	struct u64map newest; /* pid -> index of the entry that started, or execed, last */
	size_t perf_map_fds, sweep_at;
	size_t many; /* of all entries */
};

/* Entries and their chains: proc_entries.c. */
struct entry *entry_newest(const struct proc_table *t, uint32_t pid);
/** entry_find - its newest program; @start_ns 0: of the process that started last. NULL: none. */
struct entry *entry_find(const struct proc_table *t, uint32_t pid, uint64_t start_ns);
/** entry_get - the program, made when there is none; @exec_id 0: the newest. NULL: out of memory, or PROCS_MAX reached.
 */
struct entry *entry_get(struct proc_table *t, uint32_t pid, uint64_t start_ns, uint32_t exec_id);
void entry_set_comm(struct entry *e, const char comm[ABI_COMM_SIZE]);
/** entry_copy_group - what @e does not know of its cgroup is what @from knows. */
void entry_copy_group(struct entry *e, const struct entry *from);
void entry_drop(struct proc_table *t, struct entry *e);
void entry_free(struct proc_table *t, struct entry *e);
void entry_close_perf_map(struct proc_table *t, struct entry *e);
void entry_exited(struct entry *e, uint64_t exit_ns);                /* the first time counts */
void entry_ended(const struct proc_table *t, const struct entry *e); /* tell the listeners */
void entry_mapped(const struct proc_table *t, struct entry *e);
uint64_t proc_clock_ns(void);

/* Reading: proc_fill.c. */
/**
 * entry_read - all that /proc says of a process not read yet. One that forked and has not execed has its parent's
 * mappings, and the rest of what the parent had too when it is gone.
 */
void entry_read(struct proc_table *t, struct entry *e);
/** entry_rescan - mappings only. Return: true when they were read. */
bool entry_rescan(struct proc_table *t, struct entry *e);
/** entry_set_service - name the service it belongs to by what is known of it now. */
void entry_set_service(struct proc_table *t, struct entry *e);
/** entry_refresh_name - look up the container's name again when it may have changed. */
void entry_refresh_name(struct proc_table *t, struct entry *e);
/** entry_count_maps - after every change of e->maps: cuts it to PROC_FEW when all processes together have too many. */
void entry_count_maps(struct proc_table *t, struct entry *e);
/** entry_read_user - its users, as they are now. Return: true when they could be read. */
bool entry_read_user(struct proc_table *t, struct entry *e);
int entry_open_perf_map(struct proc_table *t, struct entry *e);
