/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers and the walker of HotSpot need of the tables: one struct for each process, out of its own tables.
 * Offsets are bytes; addresses are those of the file, to which each process adds its bias. */
#pragma once

#include "runtime/java/tables.h"
#include "runtime/runtime.h"

#define JAVA_NONE UINT16_MAX /* an offset that this version does not have */

enum java_layout_flags {
	/* Ends of code, of a blob and of what belongs to it, are offsets (8, 23 and later), not addresses. */
	JAVA_LAYOUT_RELATIVE = 1,
	/* Metadata of an nmethod lie in mutable data behind its relocations (25 and later), not in the blob. */
	JAVA_LAYOUT_MUTABLE = 2,
	/* Numbers of debug information have no byte that is 0: each byte is one more (21 and later). No table says so.
	 * Source: OpenJDK 21, src/hotspot/share/utilities/unsigned5.hpp. */
	JAVA_LAYOUT_NO_ZERO = 4,
	/* The frame_complete offset has 16 bits (25 and later), not 32. */
	JAVA_LAYOUT_SHORT_COMPLETE = 8,
	/* The array of threads is a list by JavaThread::_next (11), not ThreadsSMRSupport's. */
	JAVA_LAYOUT_THREAD_CHAIN = 16,
	/* The flags word of ConstMethod has 32 bits (21 and later), not 16. */
	JAVA_LAYOUT_WIDE_FLAGS = 32,
	/* The index of the source file's name is the class's (11), not the constant pool's. */
	JAVA_LAYOUT_SOURCE_IN_CLASS = 64,
	/* _kind of a flag is text (11: JVMFlag::_type is a name), not a number. */
	JAVA_LAYOUT_FLAG_TYPE_TEXT = 128,
	/* An oop that the VM holds is behind a handle (15 and later). */
	JAVA_LAYOUT_OOP_HANDLES = 256,
	/* Debug information of an nmethod lies elsewhere (23 and later), not in the blob. */
	JAVA_LAYOUT_IMMUTABLE = 512,
	/* code_heaps is the only heap itself (8), not an array of them. */
	JAVA_LAYOUT_ONE_HEAP = 1024,
};

struct java_layout {
	uint8_t version; /* feature release: 17 */
	uint32_t flags;

	/* Static variables; 0: this version has none. */
	uint64_t code_heaps;          /* CodeCache::_heaps: GrowableArray<CodeHeap*>*; ONE_HEAP: CodeHeap* */
	uint64_t code_low, code_high; /* ONE_HEAP: 0 */
	uint64_t interpreter;         /* AbstractInterpreter::_code: StubQueue* */
	uint64_t call_stub_return;    /* an address of code */
	uint64_t continuation_return; /* likewise: where a virtual thread's frames end (25 and later) */
	uint64_t threads;             /* ThreadsList*, or the first JavaThread* */
	uint64_t perf_start, perf_top;
	uint64_t vm_release, vm_info; /* const char* */
	uint64_t can_redefine;        /* bool: an agent may redefine classes */
	uint64_t jvm_flags, jvm_flag_count;
	uint64_t oop_base, oop_shift;        /* of compressed oops */
	uint64_t string_class, thread_class; /* InstanceKlass* */

	/* Heaps of code. */
	uint16_t array_length, array_data;               /* GrowableArray */
	uint16_t heap_memory, heap_segments, heap_shift; /* CodeHeap; both first are VirtualSpaces in place */
	uint16_t space_low, space_high, space_low_bound, space_high_bound;
	uint16_t heap_block_size, heap_block_used;

	/* The interpreter. */
	uint16_t queue_buffer, queue_limit, queue_begin, queue_end, queue_count; /* StubQueue */
	uint16_t codelet_size, codelet_description, codelet_bytecode, codelet_header;

	/* CodeBlob. */
	uint16_t blob_name, blob_kind; /* blob_kind: JAVA_NONE: there is the name only */
	uint16_t blob_size, blob_header, blob_frame_complete, blob_frame_size, blob_data;
	uint16_t blob_code_begin, blob_code_end; /* RELATIVE: offset of the code, of the data; else addresses */
	uint16_t blob_mutable_data, blob_mutable_size, blob_relocation_size;
	uint16_t blob_header_size, nmethod_header_size;

	/* nmethod. */
	uint16_t nm_method, nm_compile_id, nm_level, nm_entry_bci, nm_orig_pc, nm_state;
	uint16_t nm_deopt, nm_deopt_mh;            /* RELATIVE: int offsets from the blob; else addresses */
	uint16_t nm_verified_entry;                /* IMMUTABLE: u2 offset from the code; else an address */
	uint16_t nm_scopes_pcs, nm_scopes_pcs_end; /* int offsets */
	uint16_t nm_scopes_data;                   /* RELATIVE: int offset; else an address */
	uint16_t nm_immutable_data, nm_immutable_size;
	uint16_t nm_metadata; /* int offset; they end where scopes data begin; JAVA_NONE: MUTABLE */
	uint16_t nm_stub;     /* int offset: where the code ends and its stubs begin */
	uint16_t pc_desc_size, pc_desc_pc, pc_desc_scope;

	/* Methods and names. */
	uint16_t method_const, method_access, method_code, method_size;
	uint16_t const_pool, const_size, const_flags, const_code_size, const_name, const_signature, const_header;
	uint32_t const_has_lines;                                    /* mask of const_flags */
	uint16_t pool_holder, pool_length, pool_header, pool_source; /* pool_source: SOURCE_IN_CLASS: of the class */
	uint16_t class_name, class_constants, class_loader;          /* class_loader: ClassLoaderData* */
	uint16_t symbol_length, symbol_body, symbol_hash;            /* both u2 */
	/* Fields of a class: 16 bits each, as many as there are; from 21 on a stream, and no count. */
	uint16_t class_fields, class_field_count;
	uint16_t array_first; /* of the VM's own arrays: behind the length */

	/* Threads. */
	uint16_t list_length, list_threads; /* THREAD_CHAIN: JAVA_NONE, and offset of the next one */
	uint16_t thread_os, thread_object, thread_virtual, thread_anchor, thread_continuation;
	uint16_t thread_stack_base, thread_stack_size;
	uint16_t os_id; /* the kernel's number of the thread, as its namespace of pids has it */
	uint16_t anchor_sp, anchor_pc, anchor_fp;
	uint16_t continuation_size;
	/* Of objects, by their classes: java_threads_learn(). object_header: what lies in front of all fields. */
	uint16_t thread_name, string_value, string_coder, object_header;

	/* Compiled code is described at more than safepoints (-XX:+DebugNonSafepoints), as java_learn_process() found
	 * it: code that is older than an agent that changes the flag may be without. */
	bool exact_lines;
	/* Compiled by a compiler that is written in Java and loaded (-XX:+UseJVMCICompiler): Graal.
	 * java_learn_process() finds it, too. */
	bool by_jvmci;

	/* JVMFlag. */
	uint16_t flag_name, flag_address, flag_flags, flag_type, flag_size;
};

/**
 * java_layout_fill - of the tables
 * @why: what is missing, for people ("CodeHeap::_segmap is not there"); set when it is refused
 * Return: 0; -EAGAIN: the process starts up still; -ENOTSUP: refused.
 */
int java_layout_fill(const struct java_memory *m, const struct java_tables *t, uint64_t bias, struct java_layout *out,
		     char why[RUNTIME_WHY_MAX]) warn_unused;
