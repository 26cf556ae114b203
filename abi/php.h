/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the PHP walker (walk/walk_php.h) must know of one process, and the form in which it sends names.
 *
 * Offsets are bytes from the start of the object they belong to. What is equal in all versions from 7.0 to 8.5 is a
 * constant here; the rest differs by version: src/runtime/php/versions/ has the table. Sources: php-src,
 * Zend/zend_compile.h, zend_types.h and zend_globals.h of 7.0 to 8.5; Debian's headers of 7.4, 8.2 and 8.4. */
#pragma once

/* zend_execute_data: opline 0, func 24, This.u1.type_info 40 */
#define ABI_PHP_FRAME_OPLINE 0
#define ABI_PHP_FRAME_FUNC 24
#define ABI_PHP_FRAME_INFO 40
#define ABI_PHP_FRAME_BYTES 64 /* read at a frame: frame_prev lies within */
/* zend_function: type 0, function_name 8, scope 16 */
#define ABI_PHP_FUNC_TYPE 0
#define ABI_PHP_FUNC_NAME 8
#define ABI_PHP_FUNC_SCOPE 16
#define ABI_PHP_FUNC_BYTES 184 /* read at a function of a program: all its fields lie within */
#define ABI_PHP_FUNC_HEAD 24   /* at a function of an extension, where not even so much memory may follow */
#define ABI_PHP_CLASS_NAME 8   /* zend_class_entry.name */
/* zend_string: h 8, len 16, val 24 */
#define ABI_PHP_STRING_HASH 8
#define ABI_PHP_STRING_LENGTH 16
#define ABI_PHP_STRING_BYTES 24
/* zend_op: lineno 24 */
#define ABI_PHP_OP_SIZE 32
#define ABI_PHP_OP_LINE 24

/* sapi_globals: server_context 0, request_info 8, in that path_translated 32, request_uri 40, both of char. The first
 * one is set when a request begins, and by then so is the other, if there is one. PHP itself never clears them: only
 * php-fpm and php-cgi do, when they have answered. Elsewhere they go on pointing at memory that was freed. */
#define ABI_PHP_REQUEST_CONTEXT 0
#define ABI_PHP_REQUEST_SCRIPT 40
#define ABI_PHP_REQUEST_URI 48
#define ABI_PHP_REQUEST_BYTES 56

/* In php-fpm and php-cgi the context is a fcgi_request, whose variables are a table of 128 chains: env 8296. Source:
 * php-src, main/fastcgi.c of 7.0 to 8.5. */
#define ABI_PHP_FCGI_TABLE 8296
#define ABI_PHP_FCGI_URI_HASH 1955U /* FCGI_HASH_FUNC("REQUEST_URI") */

enum abi_php_function_type { /* zend_compile.h */
			     ABI_PHP_INTERNAL = 1,
			     ABI_PHP_USER = 2,
			     ABI_PHP_EVAL = 4,
};

struct abi_php_layout {
	__u32 top;       /* bits of type_info: the frame ends an activation of execute_ex */
	__u32 code;      /* it is a file or an eval(), not a function */
	__u32 generator; /* it is that of a generator; 0: no bit says so */
	__u16 current;   /* executor_globals: current_execute_data */
	__u16 frame_prev;
	__u16 func_last, func_opcodes; /* zend_op_array: how many there are, where the first one lies */
	__u16 func_file, func_line;    /* filename, line_start */
	__u8 version_major, version_minor;
	__u8 reserved[6];
};

enum abi_php_flags {
	ABI_PHP_THREADS = 1, /* ZTS: every thread has its own globals, found through the thread pointer */
	ABI_PHP_R14_R15 = 2, /* the loop has the frame in r14 and the operation in r15: GCC's hybrid VM on x86-64 */
	ABI_PHP_STALE = 4, /* sapi_globals may tell of a script that has ended: one runs only where there is a frame */
};

/* Value of the map `phps`; its key is the pid. Valid only when start_ns and exec_id are those of the task. A child that
 * forks has its parent's. */
struct abi_php {
	__u64 start_ns; /* CLOCK_BOOTTIME start of the leader */
	__u32 exec_id;
	__u32 flags;      /* enum abi_php_flags */
	__u64 globals;    /* address of executor_globals; THREADS: 0 */
	__s64 tls_at;     /* THREADS: from the thread pointer to the address of the thread's globals */
	__u64 tls_offset; /* THREADS: from there to executor_globals */
	__u64 request;    /* address of sapi_globals; THREADS: from the thread's globals to it; 0: not to be read */
	__u64 loop_low, loop_size; /* execute_ex */
	__u64 body;                /* an address in the middle of execute_ex, where its frame is set up; 0: not known */
	struct abi_php_layout layout;
};

#define ABI_PHP_NO_COOKIE 0 /* abi_frame.b: what the function is called could not be read */

#define ABI_PHP_CLASS_BYTES 128
#define ABI_PHP_NAME_BYTES 128
#define ABI_PHP_FILE_BYTES 256

/* abi_name.bytes of a function: this, then its class's, its own and its file's name, each padded to a multiple of 8.
 * What does not fit is cut: the sizes that they have in the target tell. */
struct abi_php_name {
	__u64 name_hash, file_hash; /* as the texts' own heads have it; 0: not worked out */
	__u32 first_line;
	__u32 class_size, name_size, file_size; /* in the target, in bytes */
	__u16 class_sent, name_sent, file_sent; /* bytes that travel */
	__u8 type;                              /* enum abi_php_function_type */
	__u8 reserved;
};

_Static_assert(sizeof(struct abi_php) == 104, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_php_layout) == 32, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_php_name) == 40, "layout changed: bump ABI_VERSION");
