/* SPDX-License-Identifier: Apache-2.0 */
/* A language runtime: what has to be known of its files and processes so that its frames can be walked and named.
 *
 *	probe   one file         -> where its interpreter loop is, which version       (once per file, cached)
 *	attach  one process      -> what the walker's map has to say of it             (again until it is ready)
 *	sync    one process      -> code ranges that came or went (JIT)                (after its mappings changed)
 *	decode_name, read_name   bytes, or memory -> file, name, first line, line table                 (once per
 * function) line    name and frame   -> executing line                                     (once per distinct frame)
 *
 * Adding one: a walker in walk/, a file here, a line in runtimes.c, a table in versions/; CONTRIBUTING.md has the list.
 * Every function works on bytes of strangers: bounded, never trusting, fuzzed. All but decode_name and line run on the
 * worker of struct runtimes (runtimes.h). */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/buf.h"
#include "object/elf.h"
#include "walk/walk.h"

#define RUNTIME_RANGES_MAX 8
#define RUNTIME_INFO_MAX 512 /* bytes of what a walker's map has of one process */

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
	char refused[96];
	/* the runtime's own data follows in a larger struct */
};

struct runtime_file { /* to be probed */
	const struct elf *elf;
	struct str path; /* as some process saw it: a hint, nothing more */
	bool is_program; /* no other file of the process is its main program */
	bool be_quick;   /* others wait: -EAGAIN rather than a search through the whole file */
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
	int proc_dir;        /* descriptor of /proc/PID, borrowed */
	uint64_t *effort;    /* what attaching to it has cost so far, in the runtime's own unit; NULL: nobody counts */
	struct elf_ids *ids; /* names of files that were read before (elf_id.h); NULL: they are read each time */
};

struct runtime_stats { /* of one runtime, since the start */
	uint64_t binaries, refused, attached, retries, failed, names, names_read, names_stale, names_unreadable;
};

struct runtime_lines { /* how positions in a function become lines; the runtime knows the encoding */
	const uint8_t *bytes;
	uint32_t size;
};

/* A function as the runtime names it; strings are UTF-8. */
struct runtime_function {
	struct str file, name; /* name: qualified inside its file ("Class.method") when the runtime says so */
	int32_t first_line;    /* 0: not known */
	bool is_cut;           /* a text is longer than what is here */
	struct runtime_lines lines;
	uint64_t lines_at; /* where the rest of the table lies in the process; 0: it is all here */
	uint32_t lines_whole;
	uint8_t version_major, version_minor;
};

struct runtime {
	const char *name; /* "python" */
	enum abi_runtime id;
	/**
	 * probe - is this file the runtime?
	 * Return: 1 and *out (malloc'd, released by release()); 0: it is not; -EAGAIN: see be_quick; -ENOMEM, -EBADMSG
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
	/** sync - code ranges of the process that have no file: JIT. NULL: it has none. */
	int (*sync)(const struct runtime_binary *binary, const struct runtime_target *target,
		    struct runtime_range ranges[RUNTIME_RANGES_MAX]);
	/** walk_start - find the thread's first frame; walk_step - push one; compiled for the host from walk/. */
	enum walk_next (*walk_start)(struct walk *w, const void *info);
	enum walk_next (*walk_step)(struct walk *w, const void *info);
	/**
	 * decode_name - what abi_name.bytes say
	 * @out: its strings lie in @room. Return: 0; -ENODATA: nothing readable was sent; -EBADMSG; -ENOMEM.
	 */
	int (*decode_name)(const uint8_t *bytes, size_t size, struct buf *room, struct runtime_function *out);
	/**
	 * read_name - read it from the process: texts in full, the whole line table
	 * Only what was read while the cookie held before and after counts. Return: 0; -ESTALE: another function lies
	 * there now; -errno.
	 */
	int (*read_name)(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
			 struct buf *room, struct runtime_function *out);
	/** line - of a position (abi_frame.extra) in a function. Return: 0 when nothing is known; first_line where the
	 * code has no line. Pure. */
	int32_t (*line)(const struct runtime_function *function, uint32_t position);
	/** metadata - of the process, for people: a JSON object (spec/agent.md section 8). May be NULL. */
	int (*metadata)(const struct runtime_binary *binary, const struct runtime_target *target, struct buf *json);
	/** application - which application it is: "python: app.py (/srv/app.py)". -ENOENT: nobody can tell. May be
	 * NULL. */
	int (*application)(const struct runtime_target *target, struct buf *out);
	/** activate - switch on in the process what only it can do, because the user asked for it. May be NULL. */
	int (*activate)(const struct runtime_binary *binary, const struct runtime_target *target);
};

/** runtime_at - the registry; NULL behind the last. */
const struct runtime *runtime_at(size_t index);
const struct runtime *runtime_find(enum abi_runtime id);
