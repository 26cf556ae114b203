/* SPDX-License-Identifier: Apache-2.0 */
/* The executable mappings of one process, with the files behind them opened. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/buf.h"
#include "base/u64map.h"
#include "proc/files.h"
#include "proc/proc.h"

struct mapping {
	uint64_t start, end, offset;
	uint64_t device, inode; /* as /proc/PID/maps says, which is not always what stat says */
	uint32_t file_id;
	enum proc_place_kind kind;
};

struct mappings { /* sorted by start, no overlaps */
	struct mapping *items;
	size_t count, cap;
};

void mappings_release(struct mappings *m);
const struct mapping *mappings_find(const struct mappings *m, uint64_t address);
/** mappings_copy - Return: 0 or -ENOMEM, @to untouched then. */
int mappings_copy(struct mappings *to, const struct mappings *from) warn_unused;
/** mappings_cut - only the first @count stay. */
void mappings_cut(struct mappings *m, size_t count);
/** mappings_put - add one; others lose the part that it covers. Return: 0, -ENOMEM or -E2BIG. */
int mappings_put(struct mappings *m, const struct mapping *mapping, size_t max) warn_unused;

struct mapping_reader {
	struct files *files;
	struct buf *scratch; /* for the text of maps */
	size_t max;
	uint32_t vdso_id; /* our own vDSO; 0: none */
	size_t vdso_size;
	struct u64map seen; /* hash of device and inode, as maps shows them -> id of the file seen there last */
};

/** mapping_reader_init - copies our own vDSO into the file table. */
void mapping_reader_init(struct mapping_reader *reader, struct files *files, struct buf *scratch, size_t max);

void mapping_reader_release(struct mapping_reader *reader);
/** mapping_reader_file - the file that any process mapped from there before, or 0. */
uint32_t mapping_reader_file(const struct mapping_reader *reader, uint64_t device, uint64_t inode);

/**
 * mappings_read - read a process's mappings anew
 * @dir: descriptor of /proc/PID
 * @pid: through which the files can be opened again
 * @m: replaced on success only
 *
 * Return: 0; -ESRCH when the process has no memory (any more); -errno.
 */
int mappings_read(struct mapping_reader *reader, int dir, uint32_t pid, struct mappings *m) warn_unused;

/** mapping_told - what a recording says of a mapping, with its file by its path below @host_root when it is there. */
int mapping_told(struct mapping_reader *reader, const char *host_root, const struct abi_mapping *told,
		 struct mapping *out) warn_unused;
