/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc/proc_int.h"
#include "proc/proc_read.h"

#define MAPPING_MAX 65536
#define SCRATCH_MAX MIB(16)
#define PERF_MAP_RETRY_NS NSEC_PER_SEC
#define RESCAN_NS (100 * NSEC_PER_MSEC)
#define RESCAN_ATTEMPTS_MAX 8 /* 25.6 s */
#define MAPPED_ATTEMPTS_MAX 4 /* 1.6 s; what is freed before it is looked for comes to nothing, too */
#define RESCAN_SILENCE_NS (5 * NSEC_PER_SEC)
#define USER_READ_NS NSEC_PER_SEC
#define YOUNG_NS (2 * NSEC_PER_SEC)
#define YOUNG_RESCAN_NS (4 * NSEC_PER_MSEC)
#define RESCAN_COST_SHARE 20               /* reading maps takes at most a twentieth of the time, per process */
#define REFRESH_NS (30 * NSEC_PER_SEC)     /* code may have been unmapped and other code mapped at its place */
#define AGAIN_NS NSEC_PER_SEC              /* what found no room with a listener; doubled up to REFRESH_NS */
#define SWEEP_PER_EXPIRE 64                /* processes looked at for an exit record that was lost */
#define SWEEP_START_NS (30 * NSEC_PER_SEC) /* reading stat costs the kernel more, the more threads there are */
#define USER_ADDRESS_MAX (UINT64_C(1) << 56)
#define VSYSCALL_PAGE UINT64_C(0xffffffffff600000)

int proc_table_open(const struct proc_config *cfg, struct files *files, struct proc_table **out)
{
	struct proc_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->scratch = (struct buf)BUF_INIT(SCRATCH_MAX);
	u64map_init(&t->newest, PROCS_MAX);
	t->files = files;
	t->recorded = cfg->recorded;
	t->service_rules = cfg->service_rules;
	t->ended = cfg->ended;
	t->dropped = cfg->dropped;
	t->mapped = cfg->mapped;
	t->ctx = cfg->ctx;
	t->host_root = str_dup(str_of(cfg->host_root ? cfg->host_root : ""));
	t->container_socket = cfg->container_socket ? str_dup(str_of(cfg->container_socket)) : NULL;
	if (!t->host_root || (cfg->container_socket && !t->container_socket)) {
		proc_table_close(t);
		return -ENOMEM;
	}
	mapping_reader_init(&t->reader, files, &t->scratch, cfg->mapping_max ? cfg->mapping_max : MAPPING_MAX);
	*out = t;
	return 0;
}

void proc_table_close(struct proc_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->count; i++)
		entry_free(t, t->items[i]);
	free(t->items);
	containers_close(t->containers);
	mapping_reader_release(&t->reader);
	u64map_release(&t->newest);
	buf_release(&t->scratch);
	free(t->host_root);
	free(t->container_socket);
	free(t);
}

size_t proc_count(const struct proc_table *t)
{
	return t->count;
}

/* The mappings of a process that was read when a child of it was sampled: they are old by now. */
static void read_again(struct proc_table *t, struct entry *e)
{
	e->not_told = false;
	if (e->pub.exited)
		return;
	ignore(entry_rescan(t, e)); /* it may be gone: what was read is still right */
	e->scanned_ns = proc_clock_ns();
}

struct proc *proc_get(struct proc_table *t, uint32_t pid, uint64_t start_ns, uint32_t exec_id,
		      const char comm[ABI_COMM_SIZE])
{
	struct entry *e = entry_get(t, pid, start_ns, exec_id);

	if (!e)
		return NULL;
	entry_set_comm(e, comm);
	if (!e->was_read) {
		entry_read(t, e);
		e->scanned_ns = proc_clock_ns();
	} else if (!e->pub.service) {
		/* Read for a child's sake, or its program is over and /proc shows a later one. */
		entry_set_service(t, e);
	}
	if (e->not_told)
		read_again(t, e);
	entry_refresh_name(t, e);
	return &e->pub;
}

/* A program that was never asked while it lived had its parent's user, most likely. */
static bool take_user(const struct proc_table *t, struct entry *e)
{
	const struct entry *parent = entry_newest(t, e->pub.parent_pid);

	if (!parent || parent == e || !parent->user_known)
		return false;
	e->uid = parent->uid;
	e->effective_uid = parent->effective_uid;
	return true;
}

int proc_user(struct proc_table *t, struct proc *p, uint64_t now_ns, uint32_t *out)
{
	struct entry *e = (struct entry *)p;

	if (p->is_kernel) {
		*out = 0;
		return 0;
	}
	if (!e->user_ns || (!p->exited && now_ns - e->user_ns >= USER_READ_NS)) {
		e->user_ns = now_ns;
		if (entry_read_user(t, e) || (!e->user_known && take_user(t, e)))
			e->user_known = true;
	}
	*out = e->effective_uid;
	return e->user_known ? 0 : -ESRCH;
}

const struct proc *proc_parent(const struct proc_table *t, const struct abi_process *event)
{
	struct entry *e = entry_newest(t, event->parent_pid);

	while (e && e->pub.start_ns > event->process_start_ns) /* the pid was taken again since */
		e = e->older;
	return e ? &e->pub : NULL;
}

/* A new process takes nothing but a small entry: it is read when it is sampled. */
static void forked(struct proc_table *t, const struct abi_process *event)
{
	struct entry *e = entry_get(t, event->pid, event->process_start_ns, event->exec_id);
	const struct proc *parent;

	if (!e)
		return;
	entry_set_comm(e, event->comm);
	e->pub.parent_pid = event->parent_pid;
	e->forked = true;
	e->fork_ns = event->header.time_ns;
	parent = proc_parent(t, event);
	e->pub.born_ns = parent ? parent->born_ns : 0; /* the same program */
}

/* The same entry when it was met already: by a sample from within exec, or in recordings, which have no exec ids. */
static void execed(struct proc_table *t, const struct abi_process *event)
{
	struct entry *e = entry_get(t, event->pid, event->process_start_ns, event->exec_id);

	if (!e)
		return;
	entry_set_comm(e, event->comm);
	if (e->was_read || e->forked || e->exec_ns)
		e->pub.generation++;
	e->exec_ns = e->pub.born_ns = event->header.time_ns;
	e->forked = e->was_read = e->not_told = false;
	e->refresh_ns = e->paid_ns = 0;
	e->pub.see_again = e->pub.unwind_again = (struct proc_again){ 0 };
	e->met_ns = proc_clock_ns(); /* it loads its libraries from now on */
	memset(e->rescans, 0, sizeof(e->rescans));
	mappings_release(&e->maps);
	entry_count_maps(t, e);
	entry_close_perf_map(t, e);
	e->perf_map_retry_ns = 0;
	free(e->pub.exe);
	e->pub.exe = NULL;
}

void proc_event(struct proc_table *t, const struct abi_process *event)
{
	struct entry *e;

	t->event_ns = event->header.time_ns;
	switch (event->header.type) {
	case ABI_RECORD_FORK:
		forked(t, event);
		break;
	case ABI_RECORD_EXEC:
		execed(t, event);
		break;
	case ABI_RECORD_EXIT:
		e = entry_find(t, event->pid, event->process_start_ns);
		if (e) {
			e->pub.exited = true;
			e->pub.exit_ns = event->header.time_ns; /* better than what was guessed before */
			entry_ended(t, e);
		}
		break;
	default:
		break;
	}
	t->event_ns = 0;
}

void proc_mapping(struct proc_table *t, const struct abi_mapping *mapping)
{
	struct entry *e = entry_get(t, mapping->pid, mapping->process_start_ns, 0);
	struct mapping told;

	/* Out of memory or over a limit: the addresses stay unknown. */
	if (!e || mapping_told(&t->reader, t->host_root, mapping, &told) < 0)
		return;
	ignore(mappings_put(&e->maps, &told, t->reader.max));
	entry_count_maps(t, e);
}

/* @is_mapped: the kernel says that code is mapped at the address that is missing. */
static bool may_rescan(struct entry *e, bool is_mapped, uint64_t now_ns)
{
	struct rescans *l = &e->rescans[is_mapped];

	if (now_ns - l->miss_ns > RESCAN_SILENCE_NS)
		l->next_ns = l->attempt = 0;
	l->miss_ns = now_ns;
	return now_ns >= MAX(l->next_ns, e->paid_ns);
}

static void limit_rescan(struct entry *e, bool is_mapped, uint64_t now_ns, bool useful)
{
	struct rescans *l = &e->rescans[is_mapped];

	if (useful)
		l->attempt = 0;
	l->next_ns = now_ns + (RESCAN_NS << l->attempt);
	e->paid_ns = now_ns + e->scan_cost_ns * RESCAN_COST_SHARE;
	if (!useful && l->attempt < (is_mapped ? MAPPED_ATTEMPTS_MAX : RESCAN_ATTEMPTS_MAX))
		l->attempt++;
}

bool proc_refresh(struct proc_table *t, struct proc *p, uint64_t now_ns)
{
	struct entry *e = (struct entry *)p;
	bool first = !e->refresh_ns; /* just read by proc_get() */

	if (t->recorded || p->is_kernel || p->exited || now_ns < e->refresh_ns)
		return false;
	e->refresh_ns = now_ns + REFRESH_NS;
	return !first && entry_rescan(t, e);
}

void proc_look_soon(struct proc *p, uint64_t now_ns, uint64_t delay_ns)
{
	struct entry *e = (struct entry *)p;
	uint64_t at_ns = now_ns + MAX(delay_ns, e->scan_cost_ns * RESCAN_COST_SHARE);

	if (!e->refresh_ns || at_ns < e->refresh_ns)
		e->refresh_ns = at_ns;
}

void proc_look_again(struct proc *p, struct proc_again *again, uint64_t now_ns)
{
	if (now_ns >= again->due_ns) {
		again->delay_ns = again->delay_ns ? MIN(2 * again->delay_ns, REFRESH_NS) : AGAIN_NS;
		again->due_ns = now_ns + again->delay_ns;
	}
	proc_look_soon(p, now_ns, again->due_ns - now_ns);
}

static const struct mapping *locate(struct proc_table *t, struct entry *e, uint64_t address, uint64_t now_ns)
{
	const struct mapping *m = mappings_find(&e->maps, address);

	if (t->recorded || e->pub.exited)
		return m;
	if (m)
		return proc_refresh(t, &e->pub, now_ns) ? mappings_find(&e->maps, address) : m;
	if (!may_rescan(e, false, now_ns))
		return NULL;
	m = entry_rescan(t, e) ? mappings_find(&e->maps, address) : NULL;
	limit_rescan(e, false, now_ns, m);
	return m;
}

void proc_find_place(struct proc_table *t, struct proc *p, uint64_t address, uint64_t now_ns, struct proc_place *out)
{
	struct entry *e = (struct entry *)p;
	const struct mapping *m = NULL;

	*out = (struct proc_place){ .kind = PROC_PLACE_UNKNOWN };
	if (p->is_kernel || (address >= USER_ADDRESS_MAX && (address & ~UINT64_C(0xfff)) != VSYSCALL_PAGE))
		return; /* nothing can be mapped there, so looking again is no use */
	m = locate(t, e, address, now_ns);
	if (!m)
		return;
	*out = (struct proc_place){
		.kind = m->kind,
		.file_id = m->file_id,
		.offset = address - m->start + m->offset,
		.map_start = m->start,
		.map_end = m->end,
		.map_offset = m->offset,
	};
}

const struct mappings *proc_mappings(const struct proc *p)
{
	return &((const struct entry *)p)->maps;
}

bool proc_reread(struct proc_table *t, struct proc *p, uint64_t address, bool is_mapped, uint64_t now_ns)
{
	struct entry *e = (struct entry *)p;
	bool is_young = proc_clock_ns() - e->met_ns < YOUNG_NS, done;

	if (mappings_find(&e->maps, address))
		return true;
	if (t->recorded || p->is_kernel || p->exited)
		return false;
	if (!(is_young && now_ns - e->scanned_ns >= MAX(YOUNG_RESCAN_NS, e->scan_cost_ns * RESCAN_COST_SHARE)) &&
	    !may_rescan(e, is_mapped, now_ns))
		return false;
	e->scanned_ns = now_ns;
	done = entry_rescan(t, e) && mappings_find(&e->maps, address);
	limit_rescan(e, is_mapped, now_ns, done);
	return done;
}

void proc_reread_young(struct proc_table *t, struct proc *p, uint64_t now_ns)
{
	struct entry *e = (struct entry *)p;

	if (t->recorded || p->is_kernel || p->exited || proc_clock_ns() - e->met_ns >= YOUNG_NS ||
	    now_ns < e->scanned_ns + MAX(YOUNG_RESCAN_NS, e->scan_cost_ns * RESCAN_COST_SHARE))
		return;
	e->scanned_ns = now_ns;
	ignore(entry_rescan(t, e)); /* it may be gone: use what is known */
}

bool proc_tell_mapping(struct proc_table *t, struct proc *p, const struct abi_vma *vma)
{
	struct entry *e = (struct entry *)p;
	struct mapping m = { .start = vma->start,
			     .end = vma->end,
			     .offset = vma->offset,
			     .device = makedev(vma->device_major, vma->device_minor),
			     .inode = vma->inode,
			     .kind = PROC_PLACE_ANONYMOUS };

	if (vma->start >= vma->end || mappings_find(&e->maps, vma->start))
		return false;
	if (vma->kind == ABI_VMA_FILE) {
		m.kind = PROC_PLACE_FILE;
		m.file_id = mapping_reader_file(&t->reader, m.device, m.inode);
	}
	if (vma->kind != ABI_VMA_ANONYMOUS && !m.file_id)
		return false;
	if (mappings_put(&e->maps, &m, t->reader.max) < 0)
		return false;
	entry_count_maps(t, e);
	return mappings_find(&e->maps, vma->start) != NULL;
}

int proc_perf_map_fd(struct proc_table *t, struct proc *p)
{
	struct entry *e = (struct entry *)p;
	uint64_t now = proc_clock_ns();
	int fd;

	if (e->perf_map_fd >= 0 || t->recorded || p->is_kernel || p->exited || now < e->perf_map_retry_ns)
		return e->perf_map_fd;
	e->perf_map_retry_ns = now + PERF_MAP_RETRY_NS;
	fd = entry_open_perf_map(t, e); /* asks /proc for what only this needs */
	if (fd >= 0)
		e->perf_map_fd = fd;
	return e->perf_map_fd;
}

/* Its pid is free, or another process has it by now, one that may never be sampled. */
static bool is_gone(struct proc_table *t, struct entry *e, uint64_t now_ns)
{
	scoped(closep) int dir = proc_dir_open(t->host_root, e->pub.pid);
	struct proc_facts facts;
	int r;

	if (dir < 0)
		return dir == -ENOENT;
	if (e->swept_ns && now_ns - e->swept_ns < SWEEP_START_NS)
		return false;
	e->swept_ns = now_ns;
	r = proc_facts_read(dir, e->pub.start_ns, &t->scratch, &facts);
	return r == -ESRCH || r == -ENOENT;
}

/* Exit records can be lost, so a few processes at a time are looked at. */
static void sweep(struct proc_table *t)
{
	uint64_t now_ns = proc_clock_ns();

	for (size_t i = 0; i < MIN(t->count, (size_t)SWEEP_PER_EXPIRE); i++) {
		struct entry *e = t->items[t->sweep_at++ % t->count];

		if (!e->pub.exited && e->pub.pid != 0 && is_gone(t, e, now_ns))
			entry_exited(e, now_ns);
	}
}

void proc_expire(struct proc_table *t, uint64_t before_ns)
{
	if (!t->recorded)
		sweep(t);
	for (size_t i = t->count; i > 0; i--) { /* backwards: dropping an entry moves the last one here, which was
						 * looked at already */
		struct entry *e = t->items[i - 1];

		if (e->pub.exited && e->pub.exit_ns < before_ns)
			entry_drop(t, e);
	}
}
