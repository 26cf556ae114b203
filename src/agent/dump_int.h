/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of dump_process share. */
#pragma once

#include <linux/types.h>

#include "agent/dump_process.h"
#include "agent/dump_stop.h"
#include "agent/mix.h"
#include "base/u64map.h"
#include "proc/mappings.h"
#include "runtime/runtime.h"
#include "sampler/remote/readers.h"
#include "symbol/symbol.h"
#include "unwind/full_walk.h"
#include "unwind/rows_files.h"
#include "unwind/table_memory.h"
#include "unwind/world.h"

#define DUMP_RUNTIMES_MAX 8
/* From the first thread's stop on: names of frames in line that come later are read when the process runs again,
 * threads that come later as if there was no stop. */
#define DUMP_NAMING_NS (NSEC_PER_SEC / 4)
#define DUMP_STOPPED_NS (NSEC_PER_SEC / 2)
#define DUMP_CODES_MAX 16384
#define DUMP_CODES_BYTES MIB(64)  /* of what was read of them */
#define DUMP_NAMES_BYTES MIB(64)  /* of the texts that the process makes up */
#define DUMP_STRING_BYTES MIB(68) /* of all, our own words and names of threads included */

/* Of one thread, read before its process is stopped: after that its kernel stack shows only the stop. */
struct dump_before {
	uint32_t tid;
	char state;
	uint64_t sp;     /* 0: not known */
	size_t at, size; /* of the text of its kernel stack, in the dumper's `kernel` */
	int error;       /* why there is no kernel stack */
};

struct dump_unnamed { /* a frame whose name is looked up when the process runs again */
	size_t at;    /* of the dump's frames */
	struct abi_frame frame;
	bool in_line;
};

struct dump_code { /* a function, or compiled code, of a runtime in line */
	uint64_t key, cookie;
	struct buf room;
	struct runtime_function function; /* its texts lie in room */
	bool is_compiled, is_known;
};

struct dump_runtime { /* a mapped file that is a runtime */
	uint32_t file_id;
	const struct mapping *mapping; /* the first one of the file */
	bool is_program;
	struct runtime_binary *binary;
	void *learnt; /* what the process says of the file */
};

struct dumper {
	const struct dump_config *cfg;
	struct dump *out;
	/* The process. */
	struct remote_procs procs;
	struct remote_process *process; /* of procs */
	uint32_t tid;                   /* the thread it is read by: the first one, or, when that has ended, another */
	struct buf scratch;
	struct files *files;
	struct mapping_reader reader;
	bool reader_is_open;
	struct mappings maps;
	/* Native frames. */
	struct table_memory *memory;
	struct table_sink sink;
	struct rows_files source_files;
	struct rows_source source;
	struct rows *rows;
	struct full_walk *full;
	struct world_tables tables;
	struct walk *walk;
	struct symbols *symbols;
	/* The runtime's. */
	struct dump_runtime runtimes[DUMP_RUNTIMES_MAX];
	size_t runtime_count;
	struct u64map probed;          /* file ids that were asked */
	const struct runtime *runtime; /* that frames of the process belong to; NULL: none */
	struct runtime_target target;
	uint64_t info[RUNTIME_INFO_MAX / 8];
	const struct remote_reader *outside; /* of that runtime; NULL: its frames stay native */
	struct remote_walker *walker;        /* the reader's */
	/* Of a runtime whose frames are native ones: where its code lies, and what was read of it. */
	struct abi_code_range ranges[ABI_CODE_RANGES];
	uint16_t range_count;       /* 0: there is none */
	void *learnt;               /* of the process */
	struct u64map thread_names; /* number, as the process knows it -> string: what the runtime calls it */
	struct dump_code *codes;
	size_t code_count, code_cap, code_bytes;
	struct u64map code_index; /* its key -> codes */
	struct dump_code passing; /* the last one for which there was no room in codes */
	struct runtime_shown shown[RUNTIME_EXPAND_MAX];
	/* Of the thread at hand. */
	bool has_lost_names;
	const struct abi_sample *sample; /* its frames of the runtime: the reader's, or nothing */
	uint8_t roles[ABI_FRAMES_MAX];
	struct mix_output mixed;
	struct dump_stop stop;
	struct dump_before *before;
	size_t before_count, before_cap;
	struct u64map before_index; /* tid -> before */
	struct dump_unnamed *unnamed;
	size_t unnamed_count, unnamed_cap;
	struct buf kernel;
	struct abi_sample nothing; /* last: it has no frames */
};

/** dump_find_runtime - which runtime it is, and what its walker has to know: dump_runtime.c. Return: 0 or -ENOMEM; no
 * runtime is no error, one that cannot be read is a remark. */
int dump_find_runtime(struct dumper *d) warn_unused;
void dump_release_runtimes(struct dumper *d);
/** dump_role - the part that a native frame plays in the interpreter. */
enum mix_role dump_role(const struct dumper *d, const struct abi_frame *f);
/** dump_runtime_frame - name and line of a frame, read from the process. Return: 0 or -ENOMEM. */
int dump_runtime_frame(struct dumper *d, const struct abi_frame *f, struct dump_frame *out) warn_unused;

/**
 * dump_learn - before a process is attached to: what struct runtime's learn_file() says. Return: as that.
 * dump_sync - behind it: what else walks and names need of a runtime whose frames are native ones. Return: 0 or
 * -ENOMEM.
 */
int dump_learn(struct dumper *d, struct dump_runtime *runtime) warn_unused;
int dump_sync(struct dumper *d, const struct runtime_binary *binary) warn_unused;
/** dump_learn_names - what the runtime calls the threads; those that nobody can tell keep the kernel's. Return: 0 or
 * -ENOMEM. */
int dump_learn_names(struct dumper *d) warn_unused;
void dump_release_learnt(struct dumper *d);

struct dump_world { /* of a walk: the living process */
	struct world world;
	struct world_live live;
	struct dumper *d;
};
/** dump_world_begin - let the steps of the runtime take part in d->walk; @self is to live as long. */
void dump_world_begin(struct dumper *d, struct dump_world *self);

/** dump_add_in_line - add the functions of a runtime's frame among the native ones: dump_in_line.c. */
int dump_add_in_line(struct dumper *d, const struct abi_frame *f) warn_unused;
int dump_add_frame(struct dumper *d, const struct dump_frame *f) warn_unused;

/** dump_add_thread - read one thread's stacks and put them in order: dump_threads.c. */
int dump_add_thread(struct dumper *d, struct remote_thread *t) warn_unused;
/** dump_name_frames - name all native frames, and those of the runtime that came too late. This takes long, so the
 * process must run again. */
int dump_name_frames(struct dumper *d) warn_unused;
/** dump_look_before - read what can be read of all threads before they are stopped. Return: 0 or -ENOMEM. */
int dump_look_before(struct dumper *d) warn_unused;
/** dump_name - the id of a text of the process; 0, and a remark of the thread, when there are too many. Return: 0 or
 * -ENOMEM. */
int dump_name(struct dumper *d, struct str text, uint32_t *out) warn_unused;
int dump_remark(struct dumper *d, struct dump_thread *t, const char *text) warn_unused;
