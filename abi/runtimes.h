/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the kernel side must know of a process's language runtimes before it walks a stack: one entry, so that a process
 * without any costs one look-up. What a walker must know besides is in a map of its own (abi/python.h ...). */
#pragma once

#define ABI_CODE_RANGES 4

/* Code whose frames are a runtime's although they are frames of the native stack. size 0: there is none. */
struct abi_code_range {
	__u64 low, size; /* addresses in the process */
	__u32 runtime;   /* enum abi_runtime */
	__u32 reserved;  /* zero */
};

/* Value of the map `runtimes`; its key is the pid. Valid only when start_ns and exec_id are those of the task. A child
 * that forks has its parent's. Written behind the entries that it refers to. */
struct abi_runtimes {
	__u64 start_ns; /* CLOCK_BOOTTIME start of the leader */
	__u32 exec_id;
	__u16 behind;      /* bits by enum abi_runtime: their frames are walked behind the native ones */
	__u16 range_count; /* <= ABI_CODE_RANGES */
	struct abi_code_range ranges[ABI_CODE_RANGES];
};

_Static_assert(sizeof(struct abi_code_range) == 24, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_runtimes) == 112, "layout changed: bump ABI_VERSION");
