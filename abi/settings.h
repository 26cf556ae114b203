/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What only the sampler's own two sides share: what the host fixes before the programs are loaded (the verifier sees
 * constants), and a map that it looks into. */
#pragma once

struct abi_settings {
	__u64 young_ns;       /* a process younger than this is young */
	__u64 ring_half;      /* wake the reader when more bytes than this wait */
	__u32 skip_pid;       /* 0, or the profiler's own */
	__u8 filter_pids;     /* only what the map `listed` has */
	__u8 follow_children; /* and those they start */
	__u8 filter_cgroup;   /* only tasks below the cgroup in the map `cgroups` */
	__u8 mode;            /* enum walk_mode */
	__u8 find_vma;        /* the program sample_miss is loaded: it says why an address has no mapping */
	__u8 page_shift;
	__u8 copy_all; /* walk nothing at the tick: every user stack is copied and left to the host */
	__u8 reserved[1];
	__u32 wait_share;        /* of waits, in 2^32: each is taken or not by chance; the largest number: all */
	__u64 wait_min_ns;       /* shorter waits are not told */
	__u8 filter_threads;     /* with filter_pids: only ticks of listed threads */
	__u8 filter_cgroup_ids;  /* only what is in a cgroup of the map `cgroup_ids` */
	__u8 filter_mounts;      /* only what is in a mount namespace of the map `mounts` */
	__u8 idle;               /* the idle tasks, too */
	__u8 no_kernel, no_user; /* these parts of stacks are not taken */
	__u8 php_request;        /* what PHP is busy with is sent: struct abi_request */
	__u8 reserved2[1];
};

/* Bits of a value of the map `listed`; its keys are ids of processes and threads. */
enum abi_listed { ABI_LISTED_PROCESS = 1, ABI_LISTED_THREAD = 2 };

struct abi_waiting { /* a thread that is off its CPU; key: its id */
	__u64 since_ns, stack_id, process_start_ns;
	__u32 pid, reserved;
};

struct abi_program {  /* key of the map `programs`: the file of a main program */
	__u64 device; /* the kernel's number: major << 20 | minor */
	__u64 inode;
};
