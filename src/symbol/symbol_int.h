/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder. */
#pragma once

#include "base/u64map.h"
#include "object/demangle.h"
#include "object/elf_symbols.h"
#include "object/kallsyms.h"
#include "object/pclntab.h"
#include "symbol/symbol.h"

#define SYMBOL_TABLES_MAX 384 /* each holds up to two descriptors: names are read when they are asked for */
#define SYMBOL_FILES_MAX 65536
#define SYMBOL_JITS_MAX 256
#define SYMBOL_COROUTINES_MAX 4096 /* answers kept; with more all are forgotten */
#define SYMBOL_NAME_MAX DEMANGLE_NAME_MAX
#define SYMBOL_TEXT_MAX DEMANGLE_TEXT_MAX

/* What makes two files the same. */
struct symbol_key {
	struct build_id build_id; /* size 0: shared with nobody */
	uint64_t size;
	uint32_t owner; /* a stranger's file that carries libc's build id must not name libc's functions */
};

/* The symbols of one file, from whichever place gave them. */
struct symbol_table {
	struct symbol_key key;
	struct elf_symbols symbols;
	struct reader strings[ELF_STRINGS_COUNT];
	struct pclntab go; /* asked when symbols has no answer; count 0: none */
	int fds[2];        /* of the file and of its debug file, which strings reads from; or -1 */
	void *owned;       /* strings of .gnu_debugdata, or NULL */
	size_t memory;
	uint64_t used; /* symbols.clock at the last look-up */
	uint64_t serial;
};

struct symbol_object { /* what is kept of a file for good */
	char *path;
	struct build_id build_id;
	struct elf elf; /* headers only: no reader, no sections, PT_LOAD segments */
	bool is_elf;
	bool tableless; /* tried: there are no symbols, or they can't be read */
	size_t table;   /* in symbols.tables, while that has table_serial */
	uint64_t table_serial;
	uint64_t later_ns; /* CLOCK_MONOTONIC: not loaded before this, the budget was used up; 0: now */
	struct file_retry reopen;
};

struct symbol_file { /* an open file while it is looked at */
	struct reader in;
	struct file_view view;
	struct elf elf;
};

struct symbol_kernel {
	struct kallsyms list;
	int state;                    /* 0: not read yet; 1: usable; else -errno */
	uint64_t read_ns, checked_ns; /* CLOCK_MONOTONIC of the last reading, of the last look at the modules */
	uint64_t modules_hash;        /* of /proc/modules at that time */
};

struct symbols {
	char *host_root;
	bool raw_names;
	size_t memory_max;
	struct files *files;
	const struct clock *time;
	struct symbol_object **objects; /* by file id - 1; NULL: not seen yet */
	size_t object_count;
	struct symbol_table *tables[SYMBOL_TABLES_MAX];
	size_t table_max; /* how many of these are used */
	uint64_t clock, serial;
	struct symbol_kernel kernel;
	struct symbol_jit *jits[SYMBOL_JITS_MAX];
	size_t jit_memory_max;
	uint64_t work_left, work_ns; /* bytes that may still be read; when that was last raised */
	struct u64map coroutines;    /* file id and offset: does a coroutine begin there? */
	struct symbols_stats stats;
	size_t tables_memory;
	char *raw;       /* SYMBOL_NAME_MAX bytes: the name as the file has it */
	struct buf text; /* the answer's name */
};

/* symbol_native.c */
int symbol_table_load(struct symbols *s, const struct symbol_object *m, struct symbol_file *file,
		      struct symbol_table **out) warn_unused;
void symbol_table_free(struct symbol_table *t);
struct reader symbol_fd_reader(int fd, uint64_t size);

/* symbol_debug.c */
/** symbol_debug_open - the separate debug file that belongs to @m. Return: 0, -ENOENT or -ENOMEM. */
int symbol_debug_open(struct symbols *s, const struct symbol_object *m, const struct elf *elf,
		      struct symbol_file *out) warn_unused;

/** symbol_debug_open_alt - what the .gnu_debugaltlink of @elf, a file or its debug file, names. Return: as above. */
int symbol_debug_open_alt(struct symbols *s, const struct elf *elf, struct symbol_file *out) warn_unused;

/* symbol_file.c */
int symbol_object_get(struct symbols *s, uint32_t file_id, struct symbol_object **out) warn_unused;
/** symbol_object_failed - its file could not be opened or read; notes when it is tried again, if ever. */
void symbol_object_failed(struct symbols *s, struct symbol_object *m, int r);
void symbol_object_opened(struct symbol_object *m);
/** symbol_object_waits - its file could not be opened, and it is too early to try again. */
bool symbol_object_waits(const struct symbols *s, const struct symbol_object *m);
/** symbol_file_open - Return: 0 (file->in is set), -ENOMEM, or why the file cannot be read. */
int symbol_file_open(struct symbols *s, uint32_t file_id, struct symbol_file *file) warn_unused;
/** symbol_table_get - the table of a module, loaded when need be. Return: 0, -ENOENT (none) or -ENOMEM. */
int symbol_table_get(struct symbols *s, uint32_t file_id, struct symbol_object *m,
		     struct symbol_table **out) warn_unused;
struct symbol_key symbol_key_of(const struct symbol_object *m, const struct symbol_file *file);
/** symbol_key_same - false without build ids. */
bool symbol_key_same(const struct symbol_key *a, const struct symbol_key *b);
void symbol_object_free(struct symbol_object *m);
void symbol_file_release(struct symbol_file *file);

/* symbols.c */
/** symbol_answer - fill @out's names from @raw (empty: @prefix and @address in brackets). Return: 0 or -ENOMEM. */
int symbol_answer(struct symbols *s, struct str raw, struct str prefix, uint64_t address,
		  struct symbol *out) warn_unused;

/** symbol_find_native - Return: 0, *name empty when there is none (then *start is untouched), or -ENOMEM. */
int symbol_find_native(struct symbols *s, uint32_t file_id, struct symbol_object *m, uint64_t address, struct str *name,
		       uint64_t *start) warn_unused;

/**
 * symbol_work_take - may this many bytes of a stranger's file be read through?
 *
 * Any user may run a hundred programs with huge tables, or write a huge perf map again before each look at it.
 * Without a budget that could block the worker for hours. Return: false when it is used up (counted); it fills up with
 * time.
 */
bool symbol_work_take(struct symbols *s, uint64_t bytes);

/* symbol_kernel.c */
void symbol_kernel_release(struct symbol_kernel *k);

/* symbol_jit.c */
void symbol_jits_release(struct symbols *s);
size_t symbol_jits_memory(const struct symbols *s);
