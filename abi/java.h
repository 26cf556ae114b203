/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the walker must know of one HotSpot process (the value of the map `javas`), and what its frames say. Filled by
 * src/runtime/java/ from the tables that HotSpot has for its own serviceability agent; walked by walk/walk_java.h. */
#pragma once

#define ABI_JAVA_HEAPS 4 /* of code: three where the code cache is segmented, otherwise one */
#define ABI_JAVA_ENTRIES \
	6 /* of methods, into the interpreter: plain, synchronized, native, both; empty, accessor in 8 */

enum abi_java_flags {
	ABI_JAVA_RELATIVE = 1, /* code and data of a blob lie at offsets from it (8, 23 and later), not at addresses */
	ABI_JAVA_KINDS = 2,    /* the kind of a blob is a byte, not the address of its name */
	ABI_JAVA_SHORT_COMPLETE = 4, /* frame_complete has 16 bits (25 and later), not 32 */
	ABI_JAVA_ENTRY_ADDRESS = 8,  /* the verified entry of a method is an address (up to 22), not an offset */
	/* Methods are told apart by their symbols: there is no epoch. On the walker's side also where classes were
	 * unloaded, or may be redefined. */
	ABI_JAVA_NAMED = 32,
	ABI_JAVA_CHUNKS = 16, /* frames of virtual threads that are not on the stack are found (21 and later) */
};

/* CodeBlobKind::Nmethod, where ABI_JAVA_KINDS is set. Source: OpenJDK 25, src/hotspot/share/code/codeBlob.hpp. */
#define ABI_JAVA_KIND_NMETHOD 1
#define ABI_JAVA_KIND_ADAPTER 3

/* A heap of code: which blob an address belongs to is found by its map of segments, one byte for each: 0 where a block
 * begins, 255 where nothing is, otherwise how many segments back to look. */
struct abi_java_heap {
	__u64 low, high; /* reserved, of which code is committed later */
	__u64 map;
};

/* Code that begins a method in the interpreter, up to where its frame can be recognised: offsets from
 * interpreter_low. */
struct abi_java_entry {
	__u32 low, high; /* of the whole */
	__u16 pop;       /* from low on: the instruction that takes the return address from the stack into rax ... */
	/* ... that puts it there again, with push %rbp and mov %rsp,%rbp behind it; aarch64: add x29, sp, #n */
	__u16 push;
	__u16 filled; /* behind the instruction that completes the frame */
	__u16 sender; /* aarch64: the register that has the caller's sp: 13, from 21 on 19 */
};

struct abi_java {
	__u64 start_ns; /* CLOCK_BOOTTIME start of the leader */
	__u32 exec_id;
	__u16 flags; /* enum abi_java_flags */
	__u8 met;    /* on the walker's side: this walk has met Java; the host says 0 */
	__u8 shift;  /* log2 of bytes in a segment */
	struct abi_java_heap heaps[ABI_JAVA_HEAPS];
	__u64 low, high;                         /* of all code */
	__u64 interpreter_low, interpreter_high; /* of the interpreter; the same: it is not there */
	__u64 call_stub_return; /* native code calls Java through a stub: the address behind its call */
	__u64 names[3];         /* without KINDS: of compiled methods, of native ones, of adapters; 0: none */
	/* The number of classes that were unloaded, 64 bits. 0: no such counter. As long as it stays the same, no
	 * method is another one. */
	__u64 epoch_at;
	__u64 redefines_at; /* a byte: classes may be redefined now; 0: nobody can tell */
	__u64 epoch;        /* its value, as it was attached to; on the walker's side, as it is in this walk */
	struct abi_java_entry entries[ABI_JAVA_ENTRIES];
	__u32 entries_low, entries_high; /* all ways into a method, those without a frame too; as entries[].low */
	__u32 returns_low, returns_high; /* what calls of the interpreter return to; likewise */
	/* Offsets in the header of a blob, and of what is larger than a header; 0xffff: there is none. */
	__u16 block_header; /* bytes in front of a blob */
	__u16 name, kind, frame_size, frame_complete, code_begin, code_end;
	__u16 method, compile_id, orig_pc, deopt, deopt_mh, entry; /* entry: the verified one */
	/* Elsewhere. */
	__u16 method_const, const_size; /* Method::_constMethod; sizeof(ConstMethod), which bytecode follows */
	__u16 bcp_slot;                 /* words below fp where an interpreted frame keeps its bytecode pointer */
	/* NAMED: of ConstMethod; of its pool, whose size is where entries begin; of the class; of a Symbol. */
	__u16 const_pool, const_name, const_signature;
	__u16 pool_holder, pool_size, class_name, symbol_hash;
	__u8 symbol_length, symbol_body; /* its length has 16 bits */
	__u16 oop_shift;                 /* CHUNKS: of compressed references to objects */
	__u16 level;                     /* of a blob's header: which compiler made it, a byte */
	/* The stub of call_stub_return: bytes in front of that address, from there up to its ret, and up to its end.
	 * All 0: they are not known. */
	__u8 call_stub_before, call_stub_ret, call_stub_after;
	__u8 reserved;
	__u64 oop_base;
	__u64 continuation_return_at; /* CHUNKS: where it stands into what virtual threads begin; 0: not known (21) */
	/* On the walker's side, the host says 0: frames are in a chunk of a virtual thread. */
	__u64 chunk, chunk_end; /* chunk_end: where its last frame ends; 0: frames are on the stack */
	__u64 chunk_link;       /* where an interpreted frame has its caller's frame pointer; 0: below sp */
	/* Where the stack goes on behind its last chunk; before a chunk is met, sp of the first frame if that is a
	 * caller, or 0. */
	__u64 chunk_entry;
};

_Static_assert(sizeof(struct abi_java) == 416, "layout changed: bump ABI_VERSION");

/* Frames. ABI_FRAME_RUNTIME, among the native ones:
 *
 *	interpreted     a: Method*, extra: index of the bytecode, ABI_JAVA_NO_INDEX when it is not known; with NAMED
 *			a hash above the 48 bits of a
 *	compiled        a: nmethod, ABI_FRAME_COMPILED, extra: pc - begin of its code
 *	anything else   a: CodeBlob, or 0; ABI_FRAME_INTERNAL, b: 0, extra: pc - begin of its code, or of
 *			the interpreter
 *
 * b, the cookie: of an interpreted frame the low 47 bits of the ConstMethod's address, and from bit 48 on 16
 * bits of the epoch. What was read while that was the same is right: methods are freed when classes are unloaded.
 * Of a compiled one ABI_JAVA_COMPILED and the compilation's number, which no other has: the methods of code that is
 * there are not freed. A b of 0: it could not be told what lies there. */
#define ABI_JAVA_NO_INDEX 0xffffffff
/* NAMED, interpreted: no epoch; bit 47 of b, below it a hash of what the method is called (walk/java_identity.h); above
 * the 48 bits of a's address, one of where its constants lie. */
#define ABI_JAVA_FULL 0x800000000000ULL
/* abi_name.bytes of a frame that has it: behind this the texts of those three Symbols, each padded to a multiple of 8.
 * What does not fit is cut; lines, and the rest, are read while the method is there. */
#define ABI_JAVA_TEXT_BYTES 128
#define ABI_JAVA_TEXTS 3 /* of class, name and signature */

struct abi_java_name {
	__u16 sizes[ABI_JAVA_TEXTS]; /* in the target, in bytes */
	__u16 reserved;              /* zero */
};

_Static_assert(sizeof(struct abi_java_name) == 8, "layout changed: bump ABI_VERSION");

#define ABI_JAVA_COMPILED 0x100000000ULL
#define ABI_JAVA_COOKIE_BITS 48
