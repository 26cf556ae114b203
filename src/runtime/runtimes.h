/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes of all processes of a session: probes their files, attaches to them, keeps the names of their functions.
 *
 *	reader --- a program's mappings, exec, names ---> worker --- what walkers have to know ---> runtime_sink
 *	       <-- files that are runtimes, processes that are ready, what they are called ---
 *
 * One worker thread reads files and memory of processes; it asks again those that are not ready, after 2 ms and then
 * ever more rarely. What takes long to look at, it hands to the looker, a second thread. The reader never waits for
 * either: what it asks below is answered from what is known. */
#pragma once

#include "proc/files.h"
#include "proc/mappings.h"
#include "proc/program.h"
#include "runtime/runtime.h"
#include "runtime/runtime_sink.h"

struct runtimes_config {
	const struct runtime *const *runtimes; /* NULL: all of the registry; ends with NULL */
	const char *host_root;
	const struct runtime_sink *sink; /* copied */
	const struct clock *clock;
	size_t name_bytes;      /* for names and line tables; 0: 32 MiB */
	bool want_application;  /* application ids and metadata */
	bool want_threads;      /* what runtimes call threads */
	bool by_frame_pointers; /* stacks are: frames in line are not walked, which is said of a runtime of that kind */
	bool only_runtimes; /* samples without frames of a runtime are left out: nothing of what is refused is seen */
	uint64_t end_ns;    /* how long runtimes_close() waits for what is being read; 0: 5 s */
	uint64_t doubt_ns;  /* how long a process must look wrong before it is refused; 0: 3 s */
};

struct runtimes;

int runtimes_open(const struct runtimes_config *cfg, struct files *files, struct runtimes **out) warn_unused;
/**
 * runtimes_close - NULL is fine
 *
 * Return: 0; -ETIMEDOUT: it hangs in a page of a process that never comes. Then @r, its files and what its sink is of
 * must be left as they are until the program's end.
 */
int runtimes_close(struct runtimes *r);

/* ---- the reader's; none of them blocks ---- */

/** runtimes_see - these are its mappings now. Cheap when no file of it is new and none is a runtime. Return: false: no
 * room for what they tell, tell it again; true: it was told, or is known. */
bool runtimes_see(struct runtimes *r, const struct program *process, const struct mappings *maps);
/** runtimes_started - it has just been started by exec: perhaps from a file that is known as a runtime. What the sink
 * was told of it during the exec is told again. */
void runtimes_started(struct runtimes *r, const struct program *process);
void runtimes_share(struct runtimes *r, const struct program *child, const struct program *parent);
void runtimes_forget(struct runtimes *r, const struct program *process);

/** runtimes_forget_names - not even a sample that was held back will come of it. */
void runtimes_forget_names(struct runtimes *r, const struct program *process);

/** runtimes_file - the runtime that file @file_id is; NULL: none, or not known yet. Lives as long as @r. */
const struct runtime_binary *runtimes_file(const struct runtimes *r, uint32_t file_id);

/**
 * runtimes_in_loop - does that place of a file lie in the loop of a runtime, be it one that is refused?
 * Any thread. false as well while nobody has looked at the file: see runtimes_settle().
 */
bool runtimes_in_loop(const struct runtimes *r, uint32_t file_id, uint64_t offset);

enum runtimes_state {
	RUNTIMES_NONE,    /* no runtime is known in it */
	RUNTIMES_PENDING, /* one is, but its frames cannot be walked yet */
	RUNTIMES_READY,
	RUNTIMES_REFUSED, /* one is, and its frames cannot be walked: a version that is not known */
};

struct runtimes_process { /* what is known of one; strings are borrowed until the next call that is given a process */
	enum runtimes_state state;
	const struct runtime_binary *binary;
	struct str application, metadata_json;
};

void runtimes_process(struct runtimes *r, const struct program *process, struct runtimes_process *out);

/** runtimes_version - of runtime @runtime in that process; empty: it has none that is known. Lives as long as @r. */
struct str runtimes_version(struct runtimes *r, const struct program *process, enum abi_runtime runtime);

/** runtimes_of - the runtime that says @id; NULL: none of this session's. */
const struct runtime *runtimes_of(const struct runtimes *r, enum abi_runtime id);

/** runtimes_head - what the walkers were told of its runtimes. Any thread. Return: 0, or -ENOENT: it has none. */
int runtimes_head(struct runtimes *r, const struct program *process, struct abi_runtimes *out);
/**
 * runtimes_info - what the walker of @runtime must know of that process. Any thread.
 * @out: RUNTIME_INFO_MAX bytes. Return: 0, or -ENOENT.
 */
int runtimes_info(struct runtimes *r, const struct program *process, enum abi_runtime runtime, void *out);
/** runtimes_lives - is it still there, and the same? Any thread. An exec does not show. */
bool runtimes_lives(const struct runtimes *r, const struct program *process);

/** runtimes_name - keep what a function is called: abi_name as the ring brought it, checked. */
void runtimes_name(struct runtimes *r, const struct abi_name *name);

/** runtimes_recall - have the kernel side send again what it sends at first sight. */
void runtimes_recall(struct runtimes *r);

struct runtimes_frame {    /* a runtime frame of a sample, named */
	uint32_t function; /* number, dense from 1, never used again; 0: it has no name */
	int32_t line;      /* executing line, 0: not known */
	int32_t column;    /* in it, from 1 on; 0: not known */
};

/** runtimes_frame - the function and line of a frame, at once: never by reading the process. Of compiled code the
 * number is for runtimes_expand(). */
void runtimes_frame(struct runtimes *r, const struct program *process, const struct abi_frame *frame,
		    struct runtimes_frame *out);
/** runtimes_has_asked - was the worker asked for a name since the last call? What is new may be gone soon. */
bool runtimes_has_asked(struct runtimes *r);
/**
 * runtimes_function - what is called by number @function
 * @out: strings are borrowed until the reader's next call. Return: 0, or -ENOENT when it was forgotten.
 */
int runtimes_function(struct runtimes *r, uint32_t function, struct runtime_function *out);

/**
 * runtimes_expand - the functions of a frame of compiled code, leaf first
 * @function: number that runtimes_frame() gave for @frame, which has ABI_FRAME_COMPILED
 * @out: strings are borrowed until the reader's next call. Return: how many; 0: nothing is known of its position: the
 * frame is the function itself; -EAGAIN: ask later; -ENODATA: they cannot be told; -ENOENT: it was forgotten.
 */
int runtimes_expand(struct runtimes *r, uint32_t function, const struct abi_frame *frame,
		    struct runtime_shown out[RUNTIME_EXPAND_MAX]);

/**
 * runtimes_thread - a thread of @process was sampled, and the kernel calls it @comm: what its runtime calls it is read
 * Return: does the process have a runtime that names threads? false: nobody wants to know, or it is not ready yet.
 */
bool runtimes_thread(struct runtimes *r, const struct program *process, uint32_t tid, struct str comm);
/** runtimes_thread_name - append what has been read of it; any thread, also when the process is gone. Return: 0;
 * -ENOENT: nothing; the buffer's error. */
int runtimes_thread_name(struct runtimes *r, const struct program *process, uint32_t tid, struct str comm,
			 struct buf *out) warn_unused;

/**
 * runtimes_settle - wait until all files that were told of before the call have been looked at, @patience_ns at most
 * Any thread that may wait: not the reader's.
 */
void runtimes_settle(struct runtimes *r, uint64_t patience_ns);

void runtimes_stats(struct runtimes *r, enum abi_runtime id, struct runtime_stats *out);
/** runtimes_notices - append one line for each file that was refused, and each remark on a process, since the last
 * call; for people. */
void runtimes_notices(struct runtimes *r, struct buf *out);
