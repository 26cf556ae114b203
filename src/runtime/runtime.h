/* SPDX-License-Identifier: Apache-2.0 */
/* A language runtime: how to recognise its files, attach to its processes, and name its frames.
 *
 *	probe          one file       -> where its interpreter loop is, which version    (once per file)
 *	learn_file     one process    -> what holds for every process of the file        (once per file)
 *	attach         one process    -> the walker's map entry                          (again until it is ready)
 *	sync           one process    -> where its compiled code is (after its mappings changed)
 *	decode_name    bytes          -> file, name, first line, line table              (once per function)
 *	learn_process  one process    -> what the next two need of it                    (before the first of them)
 *	read_name      memory         -> as decode_name, when its record was lost
 *	read_code      memory         -> what compiled code says of its positions        (once per code)
 *	line, column   name, position -> executing line, place in it                     (once per distinct frame)
 *	expand         code, position -> the functions that were inlined there           (once per distinct frame)
 *	sources_find   source file    -> its package and distribution                    (once per file and window)
 *
 * CONTRIBUTING.md lists what adding one takes; tests/unit/fake_runtime.c (walked behind) and fake_inline.c (in line)
 * are templates. Every function works on bytes of strangers: bounded, never trusting, fuzzed. decode_name, line and
 * expand are pure and run on the reader of the ring, walk_step on who finishes walks, sources_find on the symbol
 * worker; all others run on the worker of struct runtimes (runtimes.h), probe on its looker, too. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "abi/runtimes.h"
#include "base/buf.h"
#include "model/model.h"
#include "object/elf.h"
#include "runtime/phases.h"
#include "walk/walk.h"

#define RUNTIME_RANGES_MAX 8
#define RUNTIME_INFO_MAX 512       /* bytes of what a walker's map has of one process */
#define RUNTIME_WHY_MAX 96         /* bytes of a reason, for people */
#define RUNTIME_NOWHERE UINT32_MAX /* a position (abi_frame.extra) that is not known; line() returns 0 of it */
#define RUNTIME_EXPAND_MAX 64      /* functions that one frame of compiled code stands for */
#define RUNTIME_EXPAND_LOST SIZE_MAX

struct runtime_range { /* file offsets */
	uint64_t start, end;
};

/* What probe() found in one file; immutable from then on, shared by all threads. */
struct runtime_binary {
	const struct runtime *runtime;
	/* The interpreter's native loop, its outside parts included: a native frame in here is an activation, whose
	 * runtime frames take its place. */
	struct runtime_range loops[RUNTIME_RANGES_MAX];
	size_t loop_count;
	char version[32]; /* "3.11.2", or as much of it as the file says */
	/* Why frames of this runtime cannot be walked ("version 3.15 is not known"), for people, said once; or empty.
	 */
	char refused[RUNTIME_WHY_MAX];
	/* the runtime's own data follows in a larger struct */
};

struct runtime_file { /* to be probed */
	const struct elf *elf;
	struct str path; /* as some process saw it: a hint, nothing more */
	bool is_program; /* no other file of the process is its main program */
	bool be_quick;   /* others wait: -EAGAIN or -EINPROGRESS rather than a search through the whole file */
};

/* A process as runtimes see it. */
struct runtime_target {
	uint32_t pid, exec_id;
	uint64_t start_ns;
	/* Its memory. Return: 0 when all @size bytes were read, -errno. */
	int (*read)(void *self, void *dst, uint32_t size, uint64_t at);
	void *self;
	uint64_t bias; /* address in the process - address in the file, of the file that was probed */
	const char *host_root;
	int proc_dir; /* descriptor of /proc/PID, borrowed */
	/* RUNTIME_WHY_MAX bytes each, NULL: nobody asks. attach() says why it refuses, if it can; learn_process() and
	 * read_code() what people should know of the process. */
	char *why, *remark;
	uint64_t *effort;    /* what attaching to it has cost so far, in the runtime's own unit; NULL: nobody counts */
	struct elf_ids *ids; /* names of files that were read before (elf_id.h); NULL: they are read each time */
	const void *of_file; /* what learn_file() said; NULL: nothing */
	void *of_process;    /* what learn_process() said; NULL: nothing. One thread uses it at a time. */
	/* Nothing is freed or moved while it is read: what a cookie was compared with once needs no second look. Who
	 * calls has read the epoch, reads it again, and asks anew without this when it has changed. */
	bool in_epoch;
};

struct runtime_stats { /* of one runtime, since the start */
	uint64_t binaries, refused, attached, retries, failed, names, names_read, names_stale, names_unreadable;
	uint64_t names_again;    /* of names: that were known, and came from the kernel once more */
	uint64_t ranges_refused; /* of sync(): not within the process's addresses, or in another one's */
};

struct runtime_lines { /* how positions in a function become lines; the runtime knows the encoding */
	const uint8_t *bytes;
	uint32_t size;
};

/* A function as the runtime names it; strings are UTF-8. */
struct runtime_function {
	struct str file, name; /* name: qualified inside its file ("Class.method") when the runtime says so */
	uint8_t kind;          /* enum model_kind; 0: the runtime's */
	int32_t first_line;    /* 0: not known */
	int32_t first_column;  /* in that line, from 1 on; 0: not known */
	/* Which source map lies beside the file, target_file_id(); 0: none that is of this code. */
	uint64_t map_id;
	int32_t name_column; /* in the first line, where the name stands that the map may know; 0: not known */
	bool is_cut;         /* a text is longer than what is here */
	bool is_code;        /* what read_code() gave: lines are for expand() */
	/* Lines that a later read may find: the runtime makes tables late, or too much was read in this second. */
	bool lacks_lines;
	bool is_sparse; /* read_code(): what runs, and no call of it, has the line of the next place described */
	struct runtime_lines lines;
	uint64_t lines_at; /* where the rest of the table lies in the process; 0: it is all here, or nobody knows */
	uint32_t lines_whole;
	uint8_t version_major, version_minor;
};

enum runtime_way {                   /* how stacks of a runtime are had */
		   RUNTIME_WAY_AUTO, /* with the sampler where it works, from outside otherwise, if there is such a way
				      */
		   RUNTIME_WAY_KERNEL,  /* by BPF only */
		   RUNTIME_WAY_OUTSIDE, /* from outside, beside the sampler: agent/merge_runtime.h */
		   RUNTIME_WAY_OFF,
};

struct runtime_source_file { /* a file that functions come from */
	uint32_t origin;     /* a number for the file system that it lies in, one per container */
	int root_fd;         /* root directory of that, borrowed; -1: gone, then only the path itself is looked at */
	struct str path;
	struct str version; /* of the runtime, "3.11.2" */
};

struct runtime_source {          /* what it belongs to */
	struct str package;      /* goes before functions' names: "json.decoder"; empty: nobody can tell */
	struct str distribution; /* "requests==2.31.0"; empty: none */
};

#define RUNTIME_THREAD_NAME_MAX 1024 /* bytes */
/** runtime_thread_fn - @name: UTF-8, valid during the call. Return: 0: go on; else it ends with that. */
typedef int runtime_thread_fn(void *ctx, uint32_t tid, struct str name);

struct runtime_shown { /* one function of a frame */
	struct runtime_function function;
	int32_t line;   /* executing, or of the call that was inlined; 0: not known */
	int32_t column; /* in that line, from 1 on; 0: not known */
	bool is_vague;  /* it is that of a place behind the position, and so may the inlined functions be */
};

struct runtime {
	const char *name;  /* "python" */
	const char *title; /* "Python": for people */
	enum abi_runtime id;
	const enum runtime_way *ways;     /* one for each word of runtime_modes_NAME (registry.h) */
	uint32_t outside_hz_max;          /* RUNTIME_WAY_OUTSIDE: samples a second */
	enum model_kind kind, error_kind; /* of its functions; of what stands for frames that are not known */
	/* Its frames are frames of the native stack: they are found by the address of their code (sync()), as steps of
	 * the native walk. Otherwise they are walked behind the native ones. */
	bool in_line;
	/* Walked behind: an activation is in the runtime's list before its loop has a frame on the native stack, so
	 * that the innermost one may lack its loop (Ruby, PHP, Perl). CPython enters the loop first. */
	bool begins_early;
	/* Native functions of its files that do what is the runtime's own: a frame with the phase's name stands above
	 * the outermost one. NULL: none are known. */
	const struct runtime_phase *phases;
	/* Walked behind: code of its compiler seldom writes down where it is, so that while it runs the innermost frame
	 * is at its last call. Its line is then not known. (PHP's walker looks at that itself.) */
	bool is_vague_compiled;
	/**
	 * probe - is this file the runtime?
	 * Return: 1 and *out (malloc'd, released by release()); 0: it is not; -EAGAIN: a long look will tell;
	 * -EINPROGRESS: it is, and a long look will tell the rest (both with be_quick alone); -ENOMEM, -EBADMSG
	 * and the reader's errors.
	 */
	int (*probe)(const struct runtime_file *file, struct runtime_binary **out);
	void (*release)(struct runtime_binary *binary);
	/**
	 * attach - what the walker has to know of one process
	 * @info: RUNTIME_INFO_MAX bytes; filled with the struct of abi/ on success. Return: its size; -EAGAIN: the
	 * runtime has not started up yet, ask again; -ENOTSUP: never; -errno.
	 */
	int (*attach)(const struct runtime_binary *binary, const struct runtime_target *target, void *info);
	/**
	 * learn_file - what one process tells of every process of the file: once for each file, before attach()
	 *
	 * For tables that take many reads and differ by the load address only. That process may lie: what is kept is
	 * tried in each process before it is believed. *out: released by unlearn(). Return: as attach(), 0: done. NULL:
	 * there is nothing.
	 */
	int (*learn_file)(const struct runtime_binary *binary, const struct runtime_target *target, void **out);
	/** learn_process - what read_name() and read_code() need of a process, once for each, before the first of them;
	 * otherwise as learn_file(). */
	int (*learn_process)(const struct runtime_target *target, const void *info, void **out);
	void (*unlearn)(void *learnt);
	/**
	 * epoch - a number that changes whenever memory of functions is freed or moved: HotSpot's count of unloaded
	 * classes. NULL: nothing in the process says so, cookies are compared before and after each read.
	 */
	int (*epoch)(const struct runtime_target *target, const void *info, uint64_t *out);
	/**
	 * sync - where code lies whose frames are the runtime's: in line, or of one walked behind what its compiler
	 *	made, which the native walk cannot cross by itself; NULL: there is none
	 * @info: as attach() filled it; what of it is another now is renewed there
	 * @ranges: ABI_CODE_RANGES; low and size are to be filled. Who calls judges them.
	 * Return: how many; -errno: they could not be read, those of last time stay; -EAGAIN: likewise, they may be
	 *	seen a moment later.
	 */
	int (*sync)(const struct runtime_binary *binary, const struct runtime_target *target, void *info,
		    struct abi_code_range *ranges);
	/* sync() says something else later: code is made in ranges that come and go. */
	bool code_moves;
	/** walk_step - push one frame and stand at its caller: for walks that the host finishes, so of those with
	 * sync() only; compiled from walk/. */
	enum walk_next (*walk_step)(struct walk *w, const void *info);
	/**
	 * decode_name - what abi_name.bytes say
	 * @out: its strings lie in @room. Return: 0; -ENODATA: nothing readable was sent; -EBADMSG; -ENOMEM.
	 */
	int (*decode_name)(const uint8_t *bytes, size_t size, struct buf *room, struct runtime_function *out);
	/**
	 * read_name - read it from the process: texts in full, the whole line table
	 * Only what was read while the cookie held before and after counts (target->in_epoch: before). Return: 0;
	 * -ESTALE: another function lies there now; -errno.
	 */
	int (*read_name)(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
			 struct buf *room, struct runtime_function *out);
	/**
	 * lasting - of a cookie that says what a function is called, wherever it lies: what is the same in all such
	 * cookies of the process. A function that is gone before its name is read has that of another one, and no line.
	 * Return: 0: the cookie says nothing. Pure. NULL: none does.
	 */
	uint64_t (*lasting)(uint64_t cookie);
	/** line - of a position (abi_frame.extra) in a function. Return: 0 when nothing is known; first_line where the
	 * code has no line. Pure. */
	int32_t (*line)(const struct runtime_function *function, uint32_t position);
	/** column - of a position in its line, from 1 on. Return: 0 when nothing is known. Pure. NULL: nobody can tell.
	 */
	int32_t (*column)(const struct runtime_function *function, uint32_t position);
	/**
	 * read_code - what compiled code says of its positions: once for each code, at the first frame in it
	 *
	 * For frames with ABI_FRAME_COMPILED. @out: name, file and first line of the function that was compiled;
	 * out->lines: what expand() needs, in the runtime's own form, all texts included: the functions' memory may be
	 * another's later. Guarded by the cookie as read_name() is. NULL: it has no compiled code.
	 */
	int (*read_code)(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
			 struct buf *room, struct runtime_function *out);
	/**
	 * expand - which functions a position in compiled code belongs to
	 * @position: abi_frame.extra: of a return address when the frame has ABI_FRAME_RETURN
	 * @out: leaf first, the function that was compiled last; their texts lie in code->lines
	 *
	 * Return: how many, at most RUNTIME_EXPAND_MAX; 0: nothing is known of the position: then the frame is the
	 * function that was compiled, without a line; RUNTIME_EXPAND_LOST: one of them cannot be told, and so none.
	 * Pure; work is bounded by the bytes of code->lines.
	 */
	size_t (*expand)(const struct runtime_function *code, uint32_t position, bool is_return,
			 struct runtime_shown out[RUNTIME_EXPAND_MAX]);
	/**
	 * readable - append what people call the function @name: "com.acme.Db.get"
	 * What decode_name() and the others gave stays beside it, and tells functions of one name apart. Pure. NULL: it
	 * is readable as it is.
	 */
	void (*readable)(struct str name, struct buf *out);
	/**
	 * plain - append what stays of the function @name without what it is qualified by: "each" of "Array#each"
	 * It stands beside the name as the system's. What read_name() says may be the plain one, when the rest was
	 * known only where the frame was met. Pure. NULL: names are what decode_name() and the others gave.
	 */
	void (*plain)(struct str name, struct buf *out);
	/** sources_new - a cache for sources_find(): what a source file belongs to; used by the symbol worker alone.
	 * NULL: source files belong to nothing. Return: 0 or -ENOMEM. */
	int (*sources_new)(void **out);
	void (*sources_free)(void *sources);
	/** sources_find - reads the file system of the process; never fails. @out: cleared by the caller, borrowed
	 * until the next question. */
	void (*sources_find)(void *sources, const struct runtime_source_file *file, struct runtime_source *out);
	/**
	 * thread_names - what the runtime calls the threads of the process, those that have a name now
	 * @each: their numbers are those of the process's own namespace of pids. Behind learn_process(). Return: 0;
	 * -EAGAIN: it has not started up so far, ask again in a second; -ENOTSUP: nobody can tell; what each() said;
	 * -errno. NULL: the kernel knows all of it.
	 */
	int (*thread_names)(const struct runtime_target *target, const void *info, runtime_thread_fn *each, void *ctx);
	/** metadata - of the process, for people: a JSON object (docs/applications.md). May be NULL. */
	int (*metadata)(const struct runtime_binary *binary, const struct runtime_target *target, struct buf *json);
	/** application - which application it is: "python: app.py (/srv/app.py)". -ENOENT: nobody can tell. May be
	 * NULL. */
	int (*application)(const struct runtime_target *target, struct buf *out);
};

/** runtime_at - the registry; NULL behind the last. */
const struct runtime *runtime_at(size_t index);
const struct runtime *runtime_find(enum abi_runtime id);
