/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the CPython walker (walk/walk_python.h) must know of one process, and the form in which it sends names.
 *
 * Offsets are bytes from the start of the object they belong to; ABI_PYTHON_NONE: this version has no such field.
 * Sources: debug information of CPython 2.7 to 3.13, _Py_DebugOffsets of 3.13 and 3.14; src/runtime/python/versions/
 * has the table, tests/runtime/ what recomputes it. */
#pragma once

#define ABI_PYTHON_NONE 0xffff

/* How the thread state of the current thread is found; tried from the lowest bit up. The last resort, the list of all
 * threads, is always there. */
enum abi_python_way {
	ABI_PYTHON_HOLDER = 1, /* *holder, when that thread state is this thread's: up to 3.11 */
	ABI_PYTHON_KEY = 2,    /* the pthread key of the GIL-state API: 3.6 on */
	ABI_PYTHON_TLS = 4,    /* the variable _Py_tss_tstate: 3.12 on; NULL without the GIL */
};

enum abi_python_flags {
	ABI_PYTHON_KEY_INDIRECT = 1, /* musl: key_at is the place of a pointer to the array of keys */
	ABI_PYTHON_TAGGED = 2,       /* the code pointer of a frame has marks in its low bits: 3.14, free-threaded */
	ABI_PYTHON_BYTE_STRINGS = 4, /* names are byte strings: 2.7 */
};

/* Which frames end an activation of the interpreter's native loop. */
enum abi_python_entry {
	ABI_PYTHON_ENTRY_EACH = 1, /* every frame: up to 3.10 */
	ABI_PYTHON_ENTRY_MARK,     /* those with the byte frame_entry == 1: 3.11 */
	ABI_PYTHON_ENTRY_SHIM,     /* shims on the native stack, frames with frame_entry == entry_value: 3.12 on */
};

struct abi_python_layout {
	/* PyThreadState */
	__u16 thread_next, thread_frame; /* thread_frame: of the first frame, or of cframe when cframe_frame is there */
	__u16 cframe_frame;              /* _PyCFrame.current_frame: 3.11 and 3.12 */
	__u16 cframe_previous;
	__u16 thread_id,
		thread_native_id; /* pthread_self(); the kernel's tid in the innermost pid namespace: 3.11 on */
	/* PyInterpreterState */
	__u16 interp_next, interp_threads;
	/* frame: PyFrameObject or _PyInterpreterFrame */
	__u16 frame_back, frame_code, frame_last; /* f_lasti: an int; prev_instr or instr_ptr: a pointer */
	__u16 frame_entry;                        /* the byte that abi_python_entry speaks of */
	__u16 frame_size;                         /* bytes to read at a frame: at most 128, 80 from 3.11 on */
	/* PyCodeObject */
	__u16 code_filename, code_name, code_qualname, code_first_line, code_lines;
	__u16 code_bytes; /* of the bytecode inside the code object: frame_last is a pointer; NONE: it is an index */
	/* str (or 2.7's bytes) and bytes */
	__u16 string_length, string_state, string_ascii, string_compact; /* data of ASCII, of other compact strings */
	__u16 bytes_length, bytes_data;                                  /* the line table is a bytes object */
	__u8 last_unit;   /* bytes of bytecode per unit of an index: 1, in 3.10 2 */
	__u8 entry;       /* enum abi_python_entry */
	__u8 entry_value; /* of a shim: 3 */
	__u8 version_minor, version_major;
	/* Of the str's state word: bits below `kind` (3 bits; then compact and ascii, 1 bit each): 2, 8 in
	 * free-threaded builds from 3.14 on. 0 means 2. */
	__u8 string_kind_bit;
	__u16 thread_interp; /* PyThreadState: the interpreter; 0: not known */
};

#define ABI_PYTHON_THREAD_BYTES 192 /* read at a thread state: all its fields lie within */
#define ABI_PYTHON_FRAME_BYTES 80   /* read at a frame from 3.11 on, where they end a page at times; before: 128 */
#define ABI_PYTHON_OLD_BYTES 128    /* read at a frame up to 3.10 */
#define ABI_PYTHON_CODE_BEFORE 24   /* bytes read in front of code_filename */
#define ABI_PYTHON_CODE_BYTES \
	56 /* read in all: name, qualname and lines lie within 32 from code_filename on, at multiples of 8 */
#define ABI_PYTHON_TYPE 8             /* PyObject.ob_type; elsewhere in free-threaded builds, which have no code_type */
#define ABI_PYTHON_NOWHERE 0xffffffff /* abi_frame.extra: the place in the bytecode is not known */
#define ABI_PYTHON_NO_COOKIE 0        /* abi_frame.b: the code object was not in memory; nothing says what it is */

/* Value of the map `pythons`; its key is the pid. Valid only when start_ns and exec_id are those of the task. A child
 * that forks has its parent's. */
struct abi_python {
	__u64 start_ns; /* CLOCK_BOOTTIME start of the leader */
	__u32 exec_id;
	__u8 ways;  /* enum abi_python_way */
	__u8 flags; /* enum abi_python_flags */
	__u16 reserved;
	__u64 holder;           /* address of the variable with the thread state that has the GIL */
	__u64 interpreters;     /* address of the variable with the head of the list of interpreters */
	__u64 none;             /* _Py_NoneStruct, or 0: the code of a shim; from 3.13 on */
	__u64 cleanup;          /* code of _Py_InitCleanup, or 0: frames with it are left out; from 3.13 on */
	__u64 code_type;        /* PyCode_Type: what every code object points to at ABI_PYTHON_TYPE; 0: not known */
	__u64 main_interpreter; /* the first one; 0: not known. Subinterpreters run in its threads */
	__s64 key_at, tls_at; /* from the thread pointer to the key's value (INDIRECT: to the array), to the variable */
	__u32 key_offset;     /* INDIRECT: of the value in the array */
	__s32 self_at;        /* from the thread pointer to what pthread_self() says: 0 on x86-64 */
	struct abi_python_layout layout;
};

/* How a string of the target travels: as it lies there. */
enum abi_python_text {
	ABI_PYTHON_TEXT_NONE = 0, /* could not be read */
	ABI_PYTHON_TEXT_BYTES,    /* ASCII, or 2.7's bytes in an encoding nobody tells */
	ABI_PYTHON_TEXT_LATIN1,   /* 1, 2 and 4 bytes a character: PEP 393 */
	ABI_PYTHON_TEXT_UCS2,
	ABI_PYTHON_TEXT_UCS4,
};

#define ABI_PYTHON_FILE_BYTES 256
#define ABI_PYTHON_NAME_BYTES 128
#define ABI_PYTHON_LINES_BYTES 256

/* abi_name.bytes of a code object; then the file's, the name's and the line table's bytes, each padded to a multiple of
 * 8. What does not fit is cut: the sizes that it has in the target tell. The rest can be read from the target while the
 * cookie holds. */
struct abi_python_name {
	__u64 lines_at; /* address of the line table's first byte */
	__s32 first_line;
	__u32 file_size, name_size, lines_size; /* in the target, in bytes */
	__u16 file_sent, name_sent, lines_sent; /* bytes that travel */
	__u8 file_text, name_text;              /* enum abi_python_text */
	__u8 is_qualified;                      /* the name is co_qualname, not co_name */
	__u8 version_minor, version_major;
	__u8 reserved[5];
};

_Static_assert(sizeof(struct abi_python_name) == 8 + 16 + 8 + 8, "layout changed: bump ABI_VERSION");
