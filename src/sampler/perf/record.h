/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a perf ring, as events of perf_open() (perf/rings.h) leave them. Source: linux 6.1,
 * include/uapi/linux/perf_event.h, enum perf_event_type. Pure; fuzzed. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/cur.h"

#if defined(__x86_64__)
#define PERF_REGS 17 /* of a sample: those of PERF_REGS_MASK, in the order of their bits */
#else
#define PERF_REGS 33
#endif

#define PERF_RECORD_SIZE_MAX 65536 /* the header's size has 16 bits */

/* What the events were asked for beyond time, thread, CPU and call chain. */
struct perf_format {
	bool with_stack; /* user registers and a copy of the user stack */
};

enum perf_record_kind {
	PERF_KIND_OTHER, /* nothing to do with it */
	PERF_KIND_SAMPLE,
	PERF_KIND_FORK, /* of a thread too */
	PERF_KIND_EXIT, /* likewise */
	PERF_KIND_COMM,
	PERF_KIND_MAP, /* of executable memory */
	PERF_KIND_LOST,
};

/* Texts and arrays point into the record. */
struct perf_record {
	enum perf_record_kind kind;
	uint32_t pid, tid, cpu;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	/* sample */
	bool in_kernel;     /* the event hit kernel code */
	const uint8_t *ips; /* ip_count numbers of 64 bits, with marks of whose frames follow: perf_frames() */
	size_t ip_count;
	uint64_t regs_abi;        /* PERF_SAMPLE_REGS_ABI_... */
	uint64_t regs[PERF_REGS]; /* 0 without any */
	const uint8_t *stack;     /* from the stack pointer on */
	size_t stack_size;
	/* fork, exit */
	uint32_t parent_pid, parent_tid;
	/* comm */
	bool is_exec; /* a new program, and not only a new name */
	struct str comm;
	/* map */
	uint64_t start, end, file_offset, inode;
	uint32_t device_major, device_minor;
	struct str path;
	/* lost */
	uint64_t lost;
};

/**
 * perf_record_parse - @bytes: one record, header included; @size: as its header says
 * Return: 0, or -EBADMSG (*out is undefined then).
 */
int perf_record_parse(const void *bytes, size_t size, const struct perf_format *format,
		      struct perf_record *out) warn_unused;

/** perf_record_time - of one that perf_record_parse() may refuse; 0 when it is too short for one. */
uint64_t perf_record_time(const void *bytes, size_t size);

#define PERF_ABI_SAMPLE_MAX ABI_SAMPLE_SIZE_MAX

/* What a sample needs to know that is not in its record. */
struct perf_identity {
	uint64_t process_start_ns;
	uint32_t exec_id;
	bool is_kernel;
	const char *comm, *thread_name; /* ABI_COMM_SIZE bytes each, terminated */
};

enum perf_walk {
	PERF_WALK_CHAIN, /* the user frames that the kernel found by frame pointers */
	PERF_WALK_STACK, /* registers and stack: raw, the host walks them */
};

/**
 * perf_sample_make - a record of abi.h from a sample's
 * @chain_max: frames that the kernel takes at most (kernel.perf_event_max_stack): a chain so long is cut
 * @out: PERF_ABI_SAMPLE_MAX bytes
 *
 * Return: true when the kernel frames could not be taken.
 */
bool perf_sample_make(const struct perf_record *r, const struct perf_identity *who, enum perf_walk walk,
		      size_t chain_max, struct abi_sample *out);
