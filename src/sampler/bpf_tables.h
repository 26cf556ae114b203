/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's maps of unwind rows, mappings and address spaces as a table_sink. Everything here is a system call on a
 * descriptor: one thread may change tables while another reads the ring. */
#pragma once

#include "unwind/table_sink.h"

struct bpf_tables {
	int tables_fd, mappings_fd, spaces_fd; /* borrowed from the loaded object */
	int empty_fd;                          /* an empty table in place of one that was taken away: it has no rows,
						* but it is there */
	bool single;                           /* the kernel changes outer maps one by one only: before 6.0 */
	uint32_t *epochs;                      /* ABI_RECENT_SLOTS, of bpf/recent.h */
	size_t fds_kept, fds_max;              /* of tables that can be hidden */
};

/** bpf_tables_open - Return: 0 or -errno. The descriptors and @epochs, which walks read, must outlive it. */
int bpf_tables_open(int tables_fd, int mappings_fd, int spaces_fd, uint32_t *epochs,
		    struct bpf_tables *out) warn_unused;
void bpf_tables_close(struct bpf_tables *t);

/** bpf_tables_sink - @out is used by one thread and not beyond bpf_tables_close(). */
void bpf_tables_sink(struct bpf_tables *t, struct table_sink *out);

/**
 * bpf_tables_prefix - the largest aligned block at the beginning of the range [@start, @end): what one prefix covers
 * Return: its size in bytes, a power of two. @start < @end. Pure.
 */
uint64_t bpf_tables_prefix(uint64_t start, uint64_t end);
