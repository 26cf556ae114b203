/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the Ruby walker (walk/walk_ruby.h) must know of one process, and the form in which it sends names.
 *
 * Offsets are bytes from the start of the object they belong to. Sources: the headers of each version's tag (vm_core.h,
 * iseq.h, method.h, vm_exec.h); src/runtime/ruby/versions/ has the table. */
#pragma once

#define ABI_RUBY_NONE 0xffff

/* How the execution context (struct rb_execution_context_struct) of the current thread is found. */
enum abi_ruby_way {
	ABI_RUBY_KEY = 1,     /* the pthread key of the thread's struct, which has its context: up to 2.7 */
	ABI_RUBY_TLS,         /* a thread-local variable at a constant distance from the thread pointer: 3.0 on */
	ABI_RUBY_TLS_DYNAMIC, /* the same by the thread's table of blocks */
};

enum abi_ruby_flags {
	ABI_RUBY_TAGGED_LINE = 1,    /* the first line is a Fixnum: up to 3.1 */
	ABI_RUBY_LONG_STRINGS = 2,   /* every String has its length in a word of its own: 3.2 on */
	ABI_RUBY_MERGED_RESCUE = 4,  /* a rescue's frame stands for that of its method, too: 3.4 on */
	ABI_RUBY_EARLY_FRAMES = 8,   /* a frame is in the list before it is filled in: up to 2.7 */
	ABI_RUBY_KEY_INDIRECT = 16,  /* of abi_ruby.key_at: musl */
	ABI_RUBY_LINES_BY_ARRAY = 32 /* the line table has positions inside: 2.5 */
};

struct abi_ruby_layout {
	__u16 frame_size;                    /* rb_control_frame_t */
	__u16 ec_thread, thread_ec;          /* ec_thread: within ABI_RUBY_EC_BYTES */
	__u16 thread_ractor, ractor_running; /* rb_ractor_t.threads.running_ec; NONE: not known */
	__u16 body_lines, body_lines_count;  /* rb_iseq_constant_body.insns_info */
	__u16 body_lines_index;              /* its succ_index_table; NONE: there is none */
	__u8 line_bytes;                     /* an entry of the line table */
	__u8 line_at;                        /* of the line in it */
	__u8 flags;                          /* enum abi_ruby_flags */
	__u8 version_minor, version_major;
	__u8 singleton;                 /* bit of a class's flags: it is that of one object */
	__u16 class_path, class_object; /* of a class: its name, the object that it is of; NONE: not known */
	__u16 reserved[2];
};

/* Value of the map `rubies`; its key is the pid. Valid only when start_ns and exec_id are those of the task. A child
 * that forks has its parent's. */
struct abi_ruby {
	__u64 start_ns; /* CLOCK_BOOTTIME start of the leader */
	__u32 exec_id;
	__u8 way; /* enum abi_ruby_way */
	__u8 reserved[3];
	__s64 key_at;   /* from the thread pointer to the key's value (INDIRECT: to the array), or to the variable */
	__u64 module;   /* TLS_DYNAMIC: number in the table of blocks */
	__u64 offset;   /* TLS_DYNAMIC: in the block; KEY, INDIRECT: in the array */
	__u64 current;  /* address of the variable with the context of who has the GVL: up to 2.7; 0: not known */
	__u64 gc_flags; /* address of rb_objspace.flags; 0: not known */
	__u64 symbols;  /* address of the table of symbols; 0: not known */
	__u32 last_operator; /* identifiers up to this one are operators and have no scope bits */
	__u32 reserved32;
	struct abi_ruby_layout layout;
	__u64 code_low, code_size; /* of the code of the file that has the loop, which enters compiled code */
};

_Static_assert(sizeof(struct abi_ruby) == 120, "layout changed: bump ABI_VERSION");

#define ABI_RUBY_EC_BYTES 80        /* read at a context */
#define ABI_RUBY_BODY_BYTES 96      /* read at a body (rb_iseq_constant_body) */
#define ABI_RUBY_GC_RUNNING 0x20    /* of rb_objspace.flags: gc.c, struct rb_objspace */
#define ABI_RUBY_NOWHERE 0xffffffff /* abi_frame.extra: the place in the code is not known */
#define ABI_RUBY_NO_COOKIE 0        /* abi_frame.b: the iseq was not in memory */

/* abi_frame.a: the address of an iseq, and, where classes are known, which class its method belongs to: one iseq can be
 * a method of several. */
#define ABI_RUBY_ISEQ ((1ULL << 48) - 1)
#define ABI_RUBY_OWNED (1ULL << 62) /* bits 48 to 61 are of a hash of the class */

/* abi_frame.a of what is no iseq; the cookie is the class of a C function, or 1. Identifiers of C functions are never
 * given to another name. */
#define ABI_RUBY_CFUNC (1ULL << 63)               /* | the identifier of its name; 0: not known */
#define ABI_RUBY_GC (ABI_RUBY_CFUNC | 1ULL << 62) /* the garbage collector */

#define ABI_RUBY_FILE_BYTES 256
#define ABI_RUBY_NAME_BYTES 128
#define ABI_RUBY_CLASS_BYTES 128
#define ABI_RUBY_INDEX_BYTES 128 /* positions up to 565 */
#define ABI_RUBY_LINES_BYTES 256

/* abi_name.bytes of an iseq; then the bytes of its file's name, its label, its class's name, the index and the entries
 * of its line table, each padded to a multiple of 8. What does not fit is cut; the sizes that it has in the target
 * tell. The index is sent whole or not at all. */
struct abi_ruby_name {
	__u64 lines_at; /* address of the entries */
	__s32 first_line;
	__u32 file_size, name_size;                         /* in the target, in bytes */
	__u32 lines_count;                                  /* in the target, entries */
	__u32 code_size;                                    /* words of the code: positions are below it */
	__u16 file_sent, name_sent, index_sent, lines_sent; /* bytes that travel */
	__u8 line_bytes, line_at;
	__u8 flags; /* enum abi_ruby_flags */
	__u8 version_minor, version_major;
	__u8 is_singleton; /* a method of the class itself */
	__u16 class_sent;
	__u32 class_size; /* in the target, in bytes; 0: not known */
};

_Static_assert(sizeof(struct abi_ruby_name) == 8 + 20 + 8 + 12, "layout changed: bump ABI_VERSION");
