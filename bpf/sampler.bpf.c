// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The kernel side of the sampler: a perf tick becomes one record with the kernel stack and the user stack; exec, fork
 * and exit become records of their own. */
#include "unwind.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "abi/settings.h"
#include "walk/walk_native.h"

#define PIDS_MAX 4096
#define PROGRAMS_MAX 1024
#define STACK_SIZE_MAX (1ULL << 30) /* of a main thread that calls exec: far from any other program's */

char LICENSE[] SEC("license") = "GPL";

const volatile struct abi_settings settings = {};
extern int LINUX_KERNEL_VERSION __kconfig;
__u32 active; /* the host sets it: between start and stop */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 262144); /* the host sets it */
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ABI_COUNTER_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct { /* processes and threads that pass the filter; enum abi_listed */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PIDS_MAX); /* 1 without a filter */
	__type(key, __u32);
	__type(value, __u8);
} listed SEC(".maps");

/* The next two may be maps of others: what their values say is nobody's business. */
struct { /* ids of cgroups that pass the filter */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u64);
} cgroup_ids SEC(".maps");

struct { /* inodes of mount namespaces that do */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u32);
} mounts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} cgroups SEC(".maps");

struct { /* programs that are language runtimes: a process that starts one is looked at without delay */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PROGRAMS_MAX);
	__type(key, struct abi_program);
	__type(value, __u8);
} programs SEC(".maps");

struct { /* what a tick goes on with when a mapping is missing; empty on kernels without bpf_find_vma */
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} misses SEC(".maps");

static __always_inline void count_add(__u32 counter, __u64 n)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &counter);

	if (value)
		*value += n;
}

static __always_inline bool is_listed(__u32 id, enum abi_listed as)
{
	__u8 *bits = bpf_map_lookup_elem(&listed, &id);

	return bits && (!settings.filter_threads || *bits & as);
}

static __always_inline bool cgroup_is_listed(void)
{
	__u64 id = bpf_get_current_cgroup_id();

	return bpf_map_lookup_elem(&cgroup_ids, &id) != NULL;
}

static __always_inline bool mounts_are_listed(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 inode = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);

	return bpf_map_lookup_elem(&mounts, &inode) != NULL;
}

/* What holds for all threads of a process at the same moment. The current task is one of them. */
static __always_inline bool process_passes(__u32 pid)
{
	if (settings.skip_pid && pid == settings.skip_pid)
		return false;
	if (settings.filter_pids && !is_listed(pid, ABI_LISTED_PROCESS))
		return false;
	if (settings.filter_cgroup && bpf_current_task_under_cgroup(&cgroups, 0) != 1)
		return false;
	if (settings.filter_cgroup_ids && !cgroup_is_listed())
		return false;
	return !settings.filter_mounts || mounts_are_listed();
}

static __always_inline bool filter_passes(__u64 pid_tgid)
{
	if (settings.filter_threads && !is_listed((__u32)pid_tgid, ABI_LISTED_THREAD))
		return false;
	return process_passes(pid_tgid >> 32);
}

static __always_inline __u64 ring_flags(bool urgent)
{
	if (urgent || bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > settings.ring_half)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

#include "long.h"
#include "runtimes.h"
#include "sample.h"

UNWIND_NATIVE_OF(UNWIND_TICK, native)

/* ---- registers: volatile, since the verifier wants the context read field by field and as wide as it is ---- */

#if defined(__TARGET_ARCH_arm64)
static __always_inline bool regs_user(const volatile struct tick_regs *r)
{
	return (r->pstate & 0xf) == 0;
}

static __always_inline bool regs_compat(const volatile struct tick_regs *r)
{
	return r->pstate & 0x10;
}

static __always_inline void regs_store(struct walk *w, const volatile struct tick_regs *r)
{
#pragma clang loop unroll(full) /* the verifier refuses a context pointer that was added to */
	for (int i = 0; i < 31; i++)
		w->leaf[i] = r->regs[i];
	w->leaf[WALK_REG_SP] = r->sp;
	w->leaf[WALK_REG_PC] = r->pc;
}

static __always_inline bool regs_syscall(const struct tick_regs *r, const struct pt_regs *kernel)
{
	return BPF_CORE_READ(kernel, syscallno) != -1;
}

static __always_inline bool regs_exec(const struct tick_regs *r, const struct pt_regs *kernel)
{
	int number = BPF_CORE_READ(kernel, syscallno);

	return number == 221 || number == 281; /* execve, execveat: linux, include/uapi/asm-generic/unistd.h */
}

#define REGS_SIZE bpf_core_type_size(struct pt_regs)
#else
static __always_inline bool regs_user(const volatile struct tick_regs *r)
{
	return (r->cs & 3) == 3;
}

static __always_inline bool regs_compat(const volatile struct tick_regs *r)
{
	return r->cs == 0x23; /* __USER32_CS */
}

static __always_inline void regs_store(struct walk *w, const volatile struct tick_regs *r)
{
	w->leaf[0] = r->ax;
	w->leaf[1] = r->dx;
	w->leaf[2] = r->cx;
	w->leaf[3] = r->bx;
	w->leaf[4] = r->si;
	w->leaf[5] = r->di;
	w->leaf[WALK_REG_FP] = r->bp;
	w->leaf[WALK_REG_SP] = r->sp;
	w->leaf[8] = r->r8;
	w->leaf[9] = r->r9;
	w->leaf[10] = r->r10;
	w->leaf[11] = r->r11;
	w->leaf[12] = r->r12;
	w->leaf[13] = r->r13;
	w->leaf[14] = r->r14;
	w->leaf[15] = r->r15;
	w->leaf[WALK_REG_PC] = r->ip;
}

static __always_inline bool regs_syscall(const struct tick_regs *r, const struct pt_regs *kernel)
{
	return r->orig_ax != ~0ULL; /* entry code of interrupts and faults stores -1 */
}

static __always_inline bool regs_exec(const struct tick_regs *r, const struct pt_regs *kernel)
{
	return r->orig_ax == 59 || r->orig_ax == 322; /* execve, execveat: arch/x86/entry/syscalls/syscall_64.tbl */
}

#define REGS_SIZE sizeof(struct tick_regs)
#endif

_Static_assert(sizeof(struct tick_regs) <= sizeof(((struct walk *)0)->scratch), "they pass through w->scratch");

/* Where the kernel keeps the registers with which the current task entered it. */
static __always_inline const struct pt_regs *regs_at_entry(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (const struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	/* Before 5.15: on top of the kernel stack (task_pt_regs() of both architectures). */
	return (const struct pt_regs *)((char *)BPF_CORE_READ(task, stack) + THREAD_SIZE - REGS_SIZE);
}

/* Does @sp lie in the stack that begins at @start, or what could become one? */
static __always_inline bool sp_is_below(__u64 sp, __u64 start)
{
	return sp <= start && start - sp < STACK_SIZE_MAX;
}

/* The user registers of a tick that hit the kernel. Return: 0, or 1 when the user stack cannot be walked; w->end set.
 */
static __always_inline int regs_from_kernel(struct walk *w, struct task_struct *task, __u32 task_flags)
{
	const struct pt_regs *kernel = regs_at_entry(task);
	struct tick_regs *r = (struct tick_regs *)w->scratch;
	struct abi_sample *sample = walk_sample(w);
	int in_syscall;

	if (!kernel || bpf_probe_read_kernel(r, sizeof(*r), kernel)) {
		w->end = ABI_END_NO_REGISTERS;
		return 1;
	}
	if (!regs_user(r)) { /* io_uring's and vhost's workers have a user's memory but no user code */
		w->end = task_flags & (PF_IO_WORKER | PF_USER_WORKER) ? ABI_END_COMPLETE : ABI_END_NO_REGISTERS;
		return 1;
	}
	in_syscall = regs_syscall(r, kernel);
	if (in_syscall)
		sample->flags |= ABI_SAMPLE_IN_SYSCALL;
	if (regs_compat(r)) {
		w->end = ABI_END_COMPAT;
		return 1;
	}
	if (regs_exec(r, kernel) && !sp_is_below(r->sp, BPF_CORE_READ(task, mm, start_stack))) {
		w->end = ABI_END_COMPLETE; /* has_user_stack(), a moment later */
		return 1;
	}
	regs_store(w, r);
	walk_native_start(w, in_syscall);
	return 0;
}

/* ---- one tick ---- */

/* In the middle of an exec the memory is the next program's, which has no stack yet (or one that nothing runs on), and
 * the registers are those of the program before, which is no more. Source: linux 6.1, fs/binfmt_elf.c,
 * load_elf_binary(). */
static __always_inline bool has_user_stack(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	return mm && BPF_CORE_READ(mm, start_stack);
}

/* Sets w up for the user stack. Return: whether there is one to walk. */
static __always_inline bool take_registers(struct walk *w, struct tick *ctx, struct task_struct *task, bool user)
{
	struct abi_sample *sample = walk_sample(w);
	__u32 flags = BPF_CORE_READ(task, flags);

	if (user && !settings.no_user) {
		if (regs_compat(&ctx->regs)) {
			w->end = ABI_END_COMPAT;
			return false;
		}
		regs_store(w, &ctx->regs);
		walk_native_start(w, 0);
		return true;
	}
	w->end = ABI_END_COMPLETE;
	if (flags & PF_KTHREAD || !sample->pid) /* the idle tasks are none before 5.15 */
		sample->flags |= ABI_SAMPLE_KERNEL_THREAD;
	if (sample->flags & ABI_SAMPLE_KERNEL_THREAD || settings.no_user || !has_user_stack(task))
		return false;
	return !regs_from_kernel(w, task, flags);
}

/* The walk met something that the kernel side does not know. Sends the sample. */
static __always_inline void miss(struct walk *w, struct tick *ctx)
{
	if (w->end == ABI_END_NO_TABLE)
		count_add(ABI_COUNTER_ROWS_MISSED, 1);
	else if (settings.find_vma && w->end != ABI_END_UNSUPPORTED)
		bpf_tail_call(ctx, &misses, 0); /* sample_miss; comes back only when it could not be called */
	send_raw_unknown(w, w->end == ABI_END_NO_PROCESS || (w->end == ABI_END_NO_MAPPING && !settings.find_vma));
}

SEC("perf_event")
int sample_tick(struct tick *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct task_struct *task;
	struct abi_sample *sample;
	struct walk *w;
	bool user;

	if (!active)
		return 0;
	count_add(ABI_COUNTER_TICKS, 1);
	if (!(__u32)pid_tgid && !settings.idle) {
		count_add(ABI_COUNTER_IDLE, 1);
		return 0;
	}
	if (!filter_passes(pid_tgid)) {
		count_add(ABI_COUNTER_FILTERED, 1);
		return 0;
	}
	w = unwind_state();
	if (!w) {
		count_add(ABI_COUNTER_LOST_NO_STATE, 1);
		return 0;
	}
	task = (struct task_struct *)bpf_get_current_task();
	sample = sample_begin(w, task, pid_tgid, bpf_ktime_get_ns(), ABI_TRIGGER_TICK);
	user = regs_user(&ctx->regs);
	if (!user) {
		sample->flags |= ABI_SAMPLE_IN_KERNEL;
		take_kernel_stack(w, ctx);
	}
	if (!take_registers(w, ctx, task, user)) {
		send_sample(w, 0);
		return 0;
	}
	w->space = find_space(sample);
	runtimes_begin(w);
	recent_begin(w);
	UNWIND_LOOP(native);
	raw_rewind(w);
	RUNTIMES_BEHIND(w, task, );
	if (raw_wanted(w))
		miss(w, ctx);
	else
		send_sample(w, 0);
	return 0;
}

/* ---- why a mapping is missing: apart, because kernels before 5.17 refuse any program that names bpf_find_vma ---- */

/* That which /proc/PID/maps shows: behind a file of overlayfs lies another, and since 6.7 the mapping has that one. */
static __always_inline struct inode *file_inode(struct file *file)
{
	__u32 is_backing = LINUX_KERNEL_VERSION < KERNEL_VERSION(6, 14, 0) ? FMODE_BACKING_6_13 : FMODE_BACKING;
	struct backing_file *backing = (void *)file;

	if (bpf_core_field_exists(backing->user_path) && BPF_CORE_READ(file, f_mode) & is_backing)
		return BPF_CORE_READ(backing, user_path.dentry, d_inode);
	return BPF_CORE_READ(file, f_inode);
}

static long on_vma(struct task_struct *task, struct vm_area_struct *vma, struct abi_vma *out)
{
	struct file *file = BPF_CORE_READ(vma, vm_file);
	struct inode *inode;
	__u32 device;

	out->start = BPF_CORE_READ(vma, vm_start);
	out->end = BPF_CORE_READ(vma, vm_end);
	out->kind = !(BPF_CORE_READ(vma, vm_flags) & VM_EXEC) ? ABI_VMA_DATA : ABI_VMA_ANONYMOUS;
	if (!file)
		return 0;
	if (out->kind == ABI_VMA_ANONYMOUS)
		out->kind = ABI_VMA_FILE;
	out->offset = BPF_CORE_READ(vma, vm_pgoff) << settings.page_shift;
	inode = file_inode(file);
	out->inode = BPF_CORE_READ(inode, i_ino);
	device = BPF_CORE_READ(inode, i_sb, s_dev); /* linux, include/linux/kdev_t.h */
	out->device_major = device >> 20;
	out->device_minor = device & 0xfffff;
	return 0;
}

SEC("perf_event")
int sample_miss(struct tick *ctx)
{
	struct walk *w = unwind_state();
	struct abi_vma vma = {};
	long r;

	if (!w) {
		count_add(ABI_COUNTER_LOST_NO_STATE, 1);
		return 0;
	}
	r = bpf_find_vma(bpf_get_current_task_btf(), w->pc - (w->is_return & 1), on_vma, &vma, 0);
	if (r == -ENOENT)
		vma.kind = ABI_VMA_NONE;
	if (vma.kind == ABI_VMA_NONE || vma.kind == ABI_VMA_DATA)
		send_sample(w, 0); /* nothing that is read anew or walked again makes code of it */
	else
		send_raw(w, &vma, w->end == ABI_END_NO_PROCESS || vma.kind != ABI_VMA_UNKNOWN);
	return 0;
}

#include "waits.h"

/* ---- processes ---- */

/* @urgent: otherwise what a new program has mapped is read when its first sample wakes the reader. */
static __always_inline void send_process(struct task_struct *leader, __u32 pid, __u32 parent, __u16 type, bool urgent)
{
	struct abi_process event = {
		.header = { .type = type,
			    .version = ABI_VERSION,
			    .size = sizeof(event),
			    .time_ns = bpf_ktime_get_ns() },
		.process_start_ns = leader->start_boottime,
		.pid = pid,
		.parent_pid = parent,
		.exec_id = (__u32)leader->self_exec_id,
	};

	if (!active)
		return;
	bpf_probe_read_kernel_str(event.comm, sizeof(event.comm), leader->comm);
	if (bpf_ringbuf_output(&ring, &event, sizeof(event), ring_flags(urgent)))
		count_add(ABI_COUNTER_EVENTS_LOST, 1);
}

/* Is the program that has just been started known as a runtime? */
static __always_inline bool is_runtime(struct task_struct *task)
{
	struct file *exe = BPF_CORE_READ(task, mm, exe_file);
	struct abi_program key = {};
	struct inode *inode;

	if (!exe)
		return false;
	inode = file_inode(exe);
	key.inode = BPF_CORE_READ(inode, i_ino);
	key.device = BPF_CORE_READ(inode, i_sb, s_dev);
	return bpf_map_lookup_elem(&programs, &key) != NULL;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task)
{
	__u32 pid = task->tgid;

	bpf_map_delete_elem(&seen, &pid);
	bpf_map_delete_elem(&spaces, &pid); /* its exec_id is another now: this only makes room */
	runtimes_forget(pid);
	if (process_passes(pid))
		send_process(task->group_leader, pid, 0, ABI_RECORD_EXEC, is_runtime(task));
	return 0;
}

/* A child runs in a copy of its parent's address space, or in the very same: what is known of the one holds for the
 * other, until exec. */
static __always_inline void share_space(struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = parent->tgid, pid = child->tgid;
	struct abi_space *space = bpf_map_lookup_elem(&spaces, &parent_pid), copy;

	if (!space || space->start_ns != parent->group_leader->start_boottime ||
	    space->exec_id != (__u32)parent->group_leader->self_exec_id)
		return;
	copy.start_ns = child->start_boottime;
	copy.exec_id = (__u32)child->self_exec_id;
	copy.space = space->space;
	bpf_map_update_elem(&spaces, &pid, &copy, BPF_ANY);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = parent->tgid, pid = child->tgid;
	__u8 as = ABI_LISTED_PROCESS;

	if (child->pid != child->tgid) /* a thread */
		return 0;
	if (!process_passes(parent_pid))
		return 0;
	if (settings.filter_pids && !settings.follow_children)
		return 0;
	if (settings.filter_pids && bpf_map_update_elem(&listed, &pid, &as, BPF_ANY))
		count_add(ABI_COUNTER_FILTER_FULL, 1);
	if (settings.mode != WALK_FP)
		share_space(parent, child);
	runtimes_share(parent, child);
	send_process(child, pid, parent_pid, ABI_RECORD_FORK, false);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct *task)
{
	__u32 pid = task->tgid, tid = task->pid;
	bool passes;

	if (settings.filter_threads && tid != pid) /* its number may be another's soon */
		bpf_map_delete_elem(&listed, &tid);
	/* `live` was counted down before: it is 0 for the last thread (or for several that leave at the same moment).
	 */
	if (task->signal->live.counter)
		return 0;
	passes = process_passes(pid);
	bpf_map_delete_elem(&seen, &pid);
	bpf_map_delete_elem(&spaces, &pid);
	runtimes_forget(pid);
	if (settings.filter_pids)
		bpf_map_delete_elem(&listed, &pid);
	if (passes)
		send_process(task->group_leader, pid, 0, ABI_RECORD_EXIT, false);
	return 0;
}
