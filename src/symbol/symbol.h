/* SPDX-License-Identifier: Apache-2.0 */
/* (file id, offset), kernel address or JIT address -> name. Used by one thread, the symbol worker. A frame without a
 * name is `[module+0xoffset]` and is never lost. */
#pragma once

#include "base/clock.h"
#include "object/elf.h"
#include "proc/files.h"

struct symbols_config {
	const char *host_root; /* "" on the host: debug files are looked for below it */
	bool raw_names;        /* do not demangle */
	size_t memory_max; /* bytes of symbol tables kept, least recently used goes first; 0: 24 MiB. A third is for JIT
			    * code. The kernel's list (2 MiB) is not counted */
	size_t descriptor_max;     /* held open by symbol tables; 0: 768 */
	const struct clock *clock; /* when to read the kernel's list again; NULL: the system's */
};

/* A frame without a name is [module+0xADDRESS]: the last part of the file's path and the file's own virtual address,
 * what objdump, addr2line and readelf take (for most libraries this is the file offset too; where the file says nothing
 * about an offset, it is the file offset). A kernel address without a name is [kernel+0xADDRESS], absolute: without
 * kallsyms there is nothing it could be relative to. A JIT address is [jit+0xADDRESS], absolute. */
struct symbol {
	struct str name;        /* demangled, or in brackets as above */
	struct str system_name; /* as the file has it; empty when has_name is false */
	struct str module;      /* path of the file, "[kernel.kallsyms]", "[vdso]", the kernel module, or "" */
	uint64_t address;       /* in the file's own virtual addresses; kernel: absolute */
	uint64_t start;         /* of the symbol, same terms */
	bool has_name;
};

struct symbol_module { /* for pprof mappings */
	struct str path;
	struct build_id build_id;
};

struct symbols_stats {
	uint64_t lookups, unnamed;
	uint64_t tables_loaded, tables_evicted;
	uint64_t files_failed;  /* vanished (perhaps for a time), unreadable, no ELF file, malformed, over a limit */
	uint64_t names_failed;  /* a name that could not be read any more */
	uint64_t refused;       /* tables and maps not read because too much had been read lately */
	uint64_t kernel_reads;  /* of /proc/kallsyms */
	bool kernel_restricted; /* kallsyms shows zeros only: kptr_restrict, or no CAP_SYSLOG */
	size_t memory;          /* bytes of all tables, kernel included */
};

struct symbols;

int symbols_open(const struct symbols_config *cfg, struct files *files, struct symbols **out) warn_unused;
void symbols_close(struct symbols *s);

/* Text in @out is borrowed until the next call of any symbols_ function. All return 0 (has_name may be false) or
 * -ENOMEM. */
/** @is_return: the offset is behind a call, so offset-1 is looked up. */
int symbols_native(struct symbols *s, uint32_t file_id, uint64_t offset, bool is_return,
		   struct symbol *out) warn_unused;
int symbols_kernel(struct symbols *s, uint64_t address, bool is_return, struct symbol *out) warn_unused;
/** @perf_map_fd: of a perf map or a jitdump; borrowed; re-read when it grew. @process_key tells processes (and their
 * execs) apart. */
int symbols_jit(struct symbols *s, uint64_t process_key, int perf_map_fd, uint64_t address, bool is_return,
		struct symbol *out) warn_unused;
/** symbols_module - build id and path of a file; Return: 0 or -ENOENT. */
int symbols_module(struct symbols *s, uint32_t file_id, struct symbol_module *out);

/** symbols_root - does this code offset lie in entry code from which no caller exists (_start, clone's child side,
 * Go's goexit)? Only a proof counts. @offset: of a return address as it stands on the stack, not of the byte before. */
bool symbols_root(struct symbols *s, uint32_t file_id, uint64_t offset);

/** symbols_begins_coroutine - does a coroutine begin with the function that a code offset lies in? A proof only where
 * the chain ended there by itself (ABI_END_UNPROVEN_ROOT). @offset: as above. @searches: how many files' code may still
 * be searched; one less where that was done. Answers are kept. Cost: coroutine_begins() for a search. */
bool symbols_begins_coroutine(struct symbols *s, uint32_t file_id, uint64_t offset, uint32_t *searches);

void symbols_stats(const struct symbols *s, struct symbols_stats *out);
