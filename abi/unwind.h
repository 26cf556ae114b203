/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The tables the native walker reads, made by src/object/unwind/table.c, kept by src/unwind/, read by walk/ on both
 * sides: unwind rows of one file, the mappings of one address space, and which address space a process has.
 *
 * Rows are found by the file offset of the code, not by its address: one table serves every process that maps the file,
 * at every place, and a frame's (file id, offset) is the same number.
 *
 * A table is an array of 64-byte elements:
 *
 *	element 0                      struct abi_table_head
 *	element 1 ..                   directory: one struct abi_page per 4 KiB of file offset from head.first_page on
 *	                               (the page of offset o: o >> 12), 8 an element
 *	element page.first .. + count  rows of that page, sorted by low, 8 an element; the first row is the one in force
 *	                               at the page's start (low 0); the last element is filled up with ABI_ROW_FILLER
 *	element head.rules ..          struct abi_rule, 2 an element: what a row cannot express
 *
 * A page without any row has count 0: no rule is known there. */
#pragma once

#define ABI_TABLE_MAGIC 0x31545755 /* "UWT1" */
#define ABI_PAGE_SHIFT 12
#define ABI_PAGE_ROWS_MAX 4096
#define ABI_ROW_FILLER 0xffff
#define ABI_RECENT_SLOTS 16  /* processes whose last rows each CPU keeps at hand; a power of two */
#define ABI_TABLES_MAX 16384 /* table numbers; 0 is never a table */

/* Where the frame begins: the CFA of DWARF 5, section 6.4. off is a row's cfa_off. */
enum abi_cfa {
	ABI_CFA_INVALID = 0,  /* no rule: nothing is known of this code */
	ABI_CFA_STOP,         /* proven root: the return address is undefined here */
	ABI_CFA_UNSUPPORTED,  /* there is a rule, but no way to express it */
	ABI_CFA_SP,           /* sp + off * 8, off unsigned */
	ABI_CFA_FP,           /* fp + off * 8, off unsigned */
	ABI_CFA_PLT,          /* x86-64 PLT: sp + 8 + ((pc & 15) >= off ? 8 : 0) */
	ABI_CFA_SIGNAL,       /* what a signal handler returns to: the registers are in the signal frame at sp */
	ABI_CFA_FRAME_RECORD, /* code known to keep frame pointers (Go): follow the record at fp; no guess */
	ABI_CFA_RULE,         /* see struct abi_rule number off */
	ABI_CFA_MOVED,        /* what lies above may belong to another stack: the walk ends; off: enum abi_moved */
	ABI_CFA_FORKED, /* behind clone's system call: the child, to whom it returns 0, has no caller; else as SP */
	ABI_CFA_COUNT
};

/* Code that lets several stacks take turns in the same memory (greenlet). */
enum abi_moved {
	ABI_MOVED_NOW = 0, /* the stack is being replaced: ABI_END_STACK_SWITCH */
	ABI_MOVED_UNKNOWN, /* where its stacks begin is not known: ABI_END_STACK_ENTRY */
};

/* Where the caller's frame register is (rbp, x29) and, with it, the return address. fp_off is signed, unit 8, relative
 * to the CFA. */
enum abi_saved {
	ABI_SAVED_SAME = 0,  /* fp unchanged; return address: x86-64 at CFA - 8, aarch64 in x30 (top frame only) */
	ABI_SAVED_AT,        /* fp at CFA + fp_off * 8; return address as above: x86-64 at CFA - 8, aarch64 in x30 */
	ABI_SAVED_PAIR,      /* aarch64: fp at CFA + fp_off * 8 and the return address in the word behind it */
	ABI_SAVED_RETURN,    /* aarch64: fp unchanged, return address at CFA + fp_off * 8 */
	ABI_SAVED_UNDEFINED, /* fp lost; return address as with SAME */
	ABI_SAVED_COUNT
};

struct abi_row {
	__u16 low;  /* of the file offset: its last 12 bits; ABI_ROW_FILLER behind the last row */
	__u8 cfa;   /* enum abi_cfa */
	__u8 saved; /* enum abi_saved */
	__u16 cfa_off;
	__s16 fp_off;
};

/* How a rule finds a value. base: a register by DWARF number, valid for the top frame only unless it is sp or fp. */
enum abi_place {
	ABI_PLACE_SAME = 0, /* unchanged (cfa: not allowed; ra: as with ABI_SAVED_SAME) */
	ABI_PLACE_UNDEFINED,
	ABI_PLACE_VALUE,  /* base + off */
	ABI_PLACE_MEMORY, /* *(base + off) + add */
	ABI_PLACE_COUNT
};

#define ABI_BASE_CFA 0xff /* not for cfa itself */

struct abi_where {
	__u8 place; /* enum abi_place */
	__u8 base;  /* DWARF register number, or ABI_BASE_CFA */
	__u16 reserved;
	__s32 off;
};

struct abi_rule {
	struct abi_where cfa, fp, ra;
	__s32 cfa_add; /* behind the dereference of cfa: *(base + off) + cfa_add */
	__u32 reserved;
};

struct abi_page {
	__u32 first; /* element */
	__u16 count; /* elements */
	__u16 reserved;
};

struct abi_table_head {
	__u32 magic;
	__u32 size;       /* elements of the whole table */
	__u64 first_page; /* file offset >> ABI_PAGE_SHIFT of directory entry 0 */
	__u32 pages;      /* directory entries */
	__u32 rules;      /* element of rule 0; 0: none */
	__u32 rule_count;
	__u32 row_count; /* without fillers: for people */
	__u64 reserved[4];
};

union abi_element {
	struct abi_table_head head;
	struct abi_page pages[8];
	struct abi_row rows[8];
	struct abi_rule rules[2];
};

/* ---- mappings ---- */

enum abi_map_kind {
	ABI_MAP_NONE = 0,
	ABI_MAP_FILE, /* rows in table number `table`; the number stays while the file is evicted and loaded again */
	ABI_MAP_BARE, /* a file without any unwind information: frame pointers are all there is */
	ABI_MAP_JIT,  /* executable memory without a file */
};

/* Key of the trie of mappings: big-endian bytes, so that prefixes are ranges. */
struct abi_map_key {
	__u32 prefix;  /* bits that count: 32 for the space + up to 64 of the address */
	__u32 space;   /* big-endian */
	__u64 address; /* big-endian */
};

struct abi_map {
	__u64 start, end; /* addresses in the process */
	__u64 file_base;  /* address - file_base = file offset */
	__u64 first_page; /* of the table's head */
	__u32 pages;      /* of the table's head: offsets beyond have no row */
	__u32 file;       /* id of the file on the host */
	__u32 table;      /* number in the outer map of tables */
	__u32 kind;       /* enum abi_map_kind */
};

/* Which address space a process has; key: its pid. A child that forked has its parent's until it execs or maps
 * something itself. Valid only when both start_ns and exec_id are those of the task. */
struct abi_space {
	__u64 start_ns; /* CLOCK_BOOTTIME start of the leader */
	__u32 exec_id;  /* low half of task_struct.self_exec_id of the leader */
	__u32 space;    /* first part of the trie's key; never 0, never used twice in a session */
};

_Static_assert(sizeof(struct abi_row) == 8, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_rule) == 32, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_page) == 8, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(union abi_element) == 64, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_map_key) == 16, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_map) == 48, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_space) == 16, "layout changed: bump ABI_VERSION");
