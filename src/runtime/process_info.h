/* SPDX-License-Identifier: Apache-2.0 */
/* What application ids and metadata of several runtimes need of a process. Members are gProfiler's
 * (application_metadata.py). */
#pragma once

#include "codec/json.h"
#include "object/elf.h"
#include "runtime/launched.h"
#include "runtime/runtime.h"

/** process_info_argv - append its command line, @max bytes at most. Return: 0 or -errno. */
int process_info_argv(int proc_dir, size_t max, struct buf *out) warn_unused;
/** process_info_environment - struct launched's */
int process_info_environment(const struct launched *l, size_t max, struct buf *out) warn_unused;
/** process_info_inside - a path of /proc as the process with that @root sees it: in a chroot they start at our own. */
struct str process_info_inside(struct str path, struct str root);
/** process_info_link - where /proc/PID/NAME points to, as the process sees it. NULL: not readable, or no memory. */
char *process_info_link(int proc_dir, const char *name);
/** process_info_open_exe - its program. Return: a descriptor or -errno. */
int process_info_open_exe(int proc_dir) warn_unused;

/** process_info_open_library - the first mapped file whose name begins with @prefix. Return: a descriptor; -ENODATA:
 * there is none; -errno. */
int process_info_open_library(const struct runtime_target *target, struct str prefix) warn_unused;

/* Members common to all; @out: appended. Return: 0 or -errno. */
int process_info_exe_id(const struct runtime_target *target, struct buf *out) warn_unused;
/** process_info_library_id - @prefix: as process_info_open_library() */
int process_info_library_id(const struct runtime_target *target, struct str prefix, struct buf *out) warn_unused;
int process_info_exe(int proc_dir, struct buf *out) warn_unused;
int process_info_execfn(const struct runtime_target *target, struct buf *out) warn_unused;
int process_info_arch(int proc_dir, struct buf *out) warn_unused;
/**
 * process_info_end - the members exe, execfn, arch, and the end of the object
 * @before: length of the text before the object
 * Return: 0; -ESRCH: the process ended meanwhile, half of it is of nobody: nothing is left of the object; the text's
 * error.
 */
int process_info_end(struct json_out *j, const struct runtime_target *target, size_t before) warn_unused;
/** process_info_add_text - a member; NULL or empty: null */
void process_info_add_text(struct json_out *j, const char *key, const char *text);

struct process_info_links { /* what a program is linked with */
	bool is_dynamic;
	const char *libc; /* "glibc", "musl"; NULL: with none that is loaded */
};

/** process_info_links_of - by its loader. Pure. */
void process_info_links_of(const struct elf *elf, struct process_info_links *out);
/** process_info_add_links - the members link and libc */
void process_info_add_links(struct json_out *j, const struct process_info_links *links);
/** process_info_links_read - those of a process's program. Return: 0 or -errno. */
int process_info_links_read(int proc_dir, struct process_info_links *out) warn_unused;
/** process_info_add - a member: what @text holds, or, when @r is -errno, why it holds nothing. */
void process_info_add(struct json_out *j, struct str key, const struct buf *text, int r);

struct process_info_words {              /* how a runtime's members are called, and what it knows itself */
	struct str version_key, version; /* version: empty: null */
	struct str library_key, library; /* library: what its file's name begins with */
};

/** process_info_metadata - append {VERSION_KEY, exe_elfid, LIBRARY_KEY (null without one), exe, execfn, arch}. Return:
 * 0; -ESRCH: it ended meanwhile; -ENOMEM. */
int process_info_metadata(const struct runtime_target *target, const struct process_info_words *words,
			  struct buf *json) warn_unused;
