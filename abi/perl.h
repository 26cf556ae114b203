/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the Perl walker (walk/walk_perl.h) must know of one process, and the form in which it sends names.
 *
 * Offsets are bytes from the start of the object they belong to. Those that differ between 5.28 and 5.42 are in struct
 * abi_perl_layout, the others below. Source: the headers of Perl 5.28 to 5.42, intrpvar.h, cop.h, cv.h, gv.h, hv.h,
 * sv.h; src/runtime/perl/versions/ has the table. */
#pragma once

enum abi_perl_flags {
	ABI_PERL_THREADS = 1,      /* the interpreter is a value of each thread; else its variables are global */
	ABI_PERL_KEY_INDIRECT = 2, /* key_at is the place of a pointer to the array of values */
	ABI_PERL_AUX_IN_BODY = 4,  /* a package's name lies in its body: 5.36 on; before, behind its array */
};

struct abi_perl_layout {
	__u16 interp_cop;         /* struct interpreter: Icurcop; Icurstackinfo lies ABI_PERL_INTERP_INFO behind it */
	__u16 context;            /* bytes of a PERL_CONTEXT */
	__u16 context_cv;         /* blk_sub.cv, blk_format.cv */
	__u16 info_type;          /* PERL_SI.si_type */
	__u8 version, subversion; /* 36, 0 */
	__u16 reserved;
};

#define ABI_PERL_INTERP_INFO 16
/* PERL_SI */
#define ABI_PERL_INFO_CONTEXTS 8
#define ABI_PERL_INFO_PREVIOUS 16
#define ABI_PERL_INFO_INDEX 32 /* of the innermost context; -1: none */
#define ABI_PERL_INFO_MAX 36
#define ABI_PERL_INFO_BYTES 48
/* PERL_CONTEXT */
#define ABI_PERL_CONTEXT_OLDCOP 16
#define ABI_PERL_CONTEXT_RETOP 48
#define ABI_PERL_CONTEXT_BYTES 80 /* read at one: all its fields lie within */
/* OP and COP. With threads file is a C string, without the GV of "_<FILE". */
#define ABI_PERL_OP_FUNCTION 16
#define ABI_PERL_COP_LINE 36
#define ABI_PERL_COP_FILE 48
#define ABI_PERL_COP_SEQ 60 /* counts what was compiled */
#define ABI_PERL_COP_BYTES 64
/* SV heads: body, count, flags, u */
#define ABI_PERL_HEAD_BYTES 24
#define ABI_PERL_HEAD_FLAGS 12
#define ABI_PERL_HEAD_ARRAY 16 /* of a package: its array */
#define ABI_PERL_TYPE_GV 9
#define ABI_PERL_TYPE_HV 12
#define ABI_PERL_TYPE_CV 13
#define ABI_PERL_TYPE_FORMAT 14
#define ABI_PERL_FLAG_AUX 0x02000000U /* SVf_OOK of a hash: it has a struct xpvhv_aux */
/* bodies */
#define ABI_PERL_CV_STASH 32
#define ABI_PERL_CV_START 40
#define ABI_PERL_CV_ROOT 48
#define ABI_PERL_CV_GV 56
#define ABI_PERL_CV_FILE 64 /* a C string */
#define ABI_PERL_CV_SEQ 88  /* as that of a COP; equal in all closures of one text */
#define ABI_PERL_CV_FLAGS 92
#define ABI_PERL_CV_BYTES 96
#define ABI_PERL_CV_NAMED 0x8000U /* CVf_NAMED: where the GV would be is the name itself */
#define ABI_PERL_GV_NAME 32
#define ABI_PERL_GV_STASH 40
#define ABI_PERL_GV_BYTES 48
#define ABI_PERL_HV_MAX 24
#define ABI_PERL_HV_BYTES 32
#define ABI_PERL_AUX_NAME 0 /* of the name; with a count that is not 0: of a list of names */
#define ABI_PERL_AUX_COUNT 28
#define ABI_PERL_AUX_BYTES 32
#define ABI_PERL_BODY_BYTES 64 /* of a package whose aux lies in its body */
/* HEK: hash, length, text */
#define ABI_PERL_HEK_LENGTH 4
#define ABI_PERL_HEK_TEXT 8

/* abi_frame.a of frames that are no sub's; the keys of subs are larger. */
enum abi_perl_key {
	ABI_PERL_KEY_NONE = 0,
	ABI_PERL_KEY_EVAL, /* eval, require, do FILE */
	ABI_PERL_KEY_MAIN, /* the program, outside of any sub */
	ABI_PERL_KEY_SUBS = 8,
};

#define ABI_PERL_NO_COOKIE 0 /* abi_frame.b: the memory of the name could not be read */

/* Value of the map `perls`; its key is the pid. Valid only when start_ns and exec_id are those of the task. A child
 * that forks has its parent's. */
struct abi_perl {
	__u64 start_ns; /* CLOCK_BOOTTIME start of the leader */
	__u32 exec_id;
	__u32 flags;      /* enum abi_perl_flags */
	__s64 key_at;     /* THREADS: from the thread pointer to the interpreter's address (INDIRECT: to the array's) */
	__u32 key_offset; /* INDIRECT: of the value in the array */
	__u32 reserved;
	__u64 first;     /* THREADS: the interpreter of the program's first thread */
	__u64 cop, info; /* without threads: addresses of PL_curcop and PL_curstackinfo */
	struct abi_perl_layout layout;
	__u32 reserved_end;
};

#define ABI_PERL_FILE_BYTES 256
#define ABI_PERL_PACKAGE_BYTES 128
#define ABI_PERL_NAME_BYTES 128

enum abi_perl_what { ABI_PERL_SUB, ABI_PERL_EVAL, ABI_PERL_MAIN };

/* abi_name.bytes: this, then the bytes of the file's, the package's and the name's text, each padded to a multiple of
 * 8. Text is UTF-8 or Latin-1, as it lies in the process. */
struct abi_perl_name {
	__u32 package_size, name_size;            /* in the process, in bytes */
	__u16 file_sent, package_sent, name_sent; /* bytes that travel */
	__u8 what;                                /* enum abi_perl_what */
	__u8 file_is_cut;
};

_Static_assert(sizeof(struct abi_perl_layout) == 12, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_perl) == 72, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_perl_name) == 16, "layout changed: bump ABI_VERSION");
