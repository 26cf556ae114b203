/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The kernel's types and numbers as far as the programs touch them. Fields are found by name in the running kernel's
 * BTF (CO-RE), so order and neighbours do not matter here. Constants: linux 6.1, include/uapi/linux/bpf.h, ABI of the
 * kernel. */
#pragma once

#include <stdbool.h>

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_CGROUP_ARRAY = 8,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1024, BPF_F_INNER_MAP = 4096 };
enum { BPF_ANY = 0 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0 };

enum bpf_func_id {
	BPF_FUNC_get_current_task_btf = 158, /* 5.11 */
	BPF_FUNC_task_pt_regs = 175,         /* 5.15 */
};

#define ENOENT 2

#define PF_IO_WORKER 0x00000010
#define PF_USER_WORKER 0x00004000 /* since 6.4; before, a bit about freezing that user tasks have only while frozen */
#define PF_KTHREAD 0x00200000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

struct super_block {
	__u32 s_dev;
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
};

struct file {
	unsigned int f_mode;
	struct inode *f_inode;
};

#define FMODE_BACKING 0x1000000 /* linux 6.18, include/linux/fs.h */
#define FMODE_BACKING_6_13 0x2000000

struct mm_struct {
	unsigned long start_stack;
	struct file *exe_file;
};

struct dentry {
	struct inode *d_inode;
};

struct path {
	struct dentry *dentry;
};

struct backing_file { /* what overlayfs maps; user_path since 6.7 */
	struct path user_path;
};

#define VM_EXEC 0x00000004 /* linux, include/linux/mm.h */

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags, vm_pgoff;
	struct file *vm_file;
};

#define PF_EXITING 0x00000004 /* linux, include/linux/sched.h */

#if defined(__TARGET_ARCH_arm64)
struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
};
#else
struct thread_struct {
	unsigned long fsbase;
};
#endif

struct ns_common {
	unsigned int inum;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct task_struct {
	unsigned int flags;
	unsigned int __state; /* since 5.14 */
	int pid, tgid;
	__u64 start_boottime;
	__u64 self_exec_id;
	void *stack;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct nsproxy *nsproxy;
	char comm[16];
	struct thread_struct thread;
};

struct task_struct___5_13 {
	long state;
};

#if defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};

struct pt_regs {
	struct user_pt_regs user_regs;
	int syscallno;
};
#else
/* Declared whole and in the kernel's order, which ptrace has frozen; read in one piece. */
struct pt_regs {
	unsigned long r15;
};
#endif

#pragma clang attribute pop

/* What a perf_event program is given: struct bpf_perf_event_data. The verifier knows these offsets; no relocation. */
#if defined(__TARGET_ARCH_arm64)
struct tick_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
#define THREAD_SIZE 16384
#define STACK_PADDING 0
#else
struct tick_regs { /* linux, arch/x86/include/uapi/asm/ptrace.h */
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#define THREAD_SIZE 16384
#define STACK_PADDING 0
#endif

struct tick {
	struct tick_regs regs;
};
