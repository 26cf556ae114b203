/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/java/layout.h"

#define HOTSPOT_OF_8 25

/* When a version must have it. */
enum when {
	ALWAYS,
	EIGHT,   /* in 8: code begins and ends at offsets, all of it lies in the blob */
	OLD,     /* 9 to 22: at addresses */
	NEW,     /* from 23 on: at offsets */
	NINE,    /* from 9 on */
	EARLY,   /* up to 22 */
	OFFSETS, /* 8, and from 23 on */
	MAY,     /* it may lack; JAVA_NONE then */
	AGAIN,   /* another name of what the row before is */
};

struct row {
	uint16_t to;         /* offsetof() in struct java_layout */
	uint8_t when, width; /* width: bytes of it that are read; 0: an object in place, or several widths */
	const char *type, *field;
};

#define AT(member) offsetof(struct java_layout, member)

static const struct row statics[] = {
	{ AT(code_heaps), NINE, 8, "CodeCache", "_heaps" },
	{ AT(code_heaps), EIGHT, 8, "CodeCache", "_heap" },
	{ AT(code_low), NINE, 8, "CodeCache", "_low_bound" },
	{ AT(code_high), NINE, 8, "CodeCache", "_high_bound" },
	{ AT(interpreter), ALWAYS, 8, "AbstractInterpreter", "_code" },
	{ AT(call_stub_return), ALWAYS, 8, "StubRoutines", "_call_stub_return_address" },
	{ AT(continuation_return), MAY, 8, "ContinuationEntry", "_return_pc" },
	{ AT(threads), ALWAYS, 8, "ThreadsSMRSupport", "_java_thread_list" },
	{ AT(threads), AGAIN, 8, "Threads", "_thread_list" },
	{ AT(perf_start), ALWAYS, 8, "PerfMemory", "_start" },
	{ AT(perf_top), ALWAYS, 8, "PerfMemory", "_top" },
	{ AT(vm_release), ALWAYS, 8, "Abstract_VM_Version", "_s_vm_release" },
	{ AT(vm_info), MAY, 8, "Abstract_VM_Version", "_s_internal_vm_info_string" },
	{ AT(can_redefine), MAY, 1, "JvmtiExport", "_can_hotswap_or_post_breakpoint" },
	{ AT(jvm_flags), MAY, 8, "JVMFlag", "flags" },
	{ AT(jvm_flags), AGAIN, 8, "Flag", "flags" },
	{ AT(jvm_flag_count), MAY, 8, "JVMFlag", "numFlags" },
	{ AT(jvm_flag_count), AGAIN, 8, "Flag", "numFlags" },
	{ AT(oop_base), MAY, 8, "CompressedOops", "_base" },
	{ AT(oop_base), AGAIN, 8, "CompressedOops", "_narrow_oop._base" },
	{ AT(oop_base), AGAIN, 8, "Universe", "_narrow_oop._base" },
	{ AT(oop_shift), MAY, 4, "CompressedOops", "_shift" },
	{ AT(oop_shift), AGAIN, 4, "CompressedOops", "_narrow_oop._shift" },
	{ AT(oop_shift), AGAIN, 4, "Universe", "_narrow_oop._shift" },
	{ AT(string_class), MAY, 8, "vmClasses", "_klasses[static_cast<int>(vmClassID::String_klass_knum)]" },
	{ AT(string_class), AGAIN, 8, "SystemDictionary", "_well_known_klasses[SystemDictionary::String_klass_knum]" },
	{ AT(thread_class), MAY, 8, "vmClasses", "_klasses[static_cast<int>(vmClassID::Thread_klass_knum)]" },
	{ AT(thread_class), AGAIN, 8, "SystemDictionary", "_well_known_klasses[SystemDictionary::Thread_klass_knum]" },
};

static const struct row fields[] = {
	{ AT(array_length), ALWAYS, 4, "GrowableArrayBase", "_len" },
	{ AT(array_length), AGAIN, 4, "GenericGrowableArray", "_len" },
	{ AT(array_data), ALWAYS, 8, "GrowableArray<int>", "_data" },
	{ AT(heap_memory), ALWAYS, 0, "CodeHeap", "_memory" },
	{ AT(heap_segments), ALWAYS, 0, "CodeHeap", "_segmap" },
	{ AT(heap_shift), ALWAYS, 4, "CodeHeap", "_log2_segment_size" },
	{ AT(space_low), ALWAYS, 8, "VirtualSpace", "_low" },
	{ AT(space_high), ALWAYS, 8, "VirtualSpace", "_high" },
	{ AT(space_low_bound), ALWAYS, 8, "VirtualSpace", "_low_boundary" },
	{ AT(space_high_bound), ALWAYS, 8, "VirtualSpace", "_high_boundary" },
	{ AT(heap_block_used), ALWAYS, 1, "HeapBlock::Header", "_used" },
	{ AT(queue_buffer), ALWAYS, 8, "StubQueue", "_stub_buffer" },
	{ AT(queue_limit), ALWAYS, 4, "StubQueue", "_buffer_limit" },
	{ AT(queue_begin), ALWAYS, 4, "StubQueue", "_queue_begin" },
	{ AT(queue_end), ALWAYS, 4, "StubQueue", "_queue_end" },
	{ AT(queue_count), ALWAYS, 4, "StubQueue", "_number_of_stubs" },
	{ AT(codelet_size), ALWAYS, 4, "InterpreterCodelet", "_size" },
	{ AT(codelet_description), ALWAYS, 8, "InterpreterCodelet", "_description" },
	{ AT(codelet_bytecode), ALWAYS, 0, "InterpreterCodelet", "_bytecode" },
	{ AT(blob_name), ALWAYS, 8, "CodeBlob", "_name" },
	{ AT(blob_kind), MAY, 0, "CodeBlob", "_kind" },
	{ AT(blob_size), ALWAYS, 4, "CodeBlob", "_size" },
	{ AT(blob_header), ALWAYS, 0, "CodeBlob", "_header_size" },
	{ AT(blob_frame_complete), ALWAYS, 0, "CodeBlob", "_frame_complete_offset" },
	{ AT(blob_frame_size), ALWAYS, 4, "CodeBlob", "_frame_size" },
	{ AT(blob_data), ALWAYS, 4, "CodeBlob", "_data_offset" },
	{ AT(blob_code_begin), OLD, 8, "CodeBlob", "_code_begin" },
	{ AT(blob_code_end), OLD, 8, "CodeBlob", "_code_end" },
	{ AT(blob_code_begin), OFFSETS, 4, "CodeBlob", "_code_offset" },
	{ AT(blob_code_end), OFFSETS, 4, "CodeBlob", "_data_offset" },
	{ AT(blob_mutable_data), MAY, 8, "CodeBlob", "_mutable_data" },
	{ AT(blob_mutable_size), MAY, 4, "CodeBlob", "_mutable_data_size" },
	{ AT(blob_relocation_size), MAY, 4, "CodeBlob", "_relocation_size" },
	{ AT(nm_method), ALWAYS, 8, "nmethod", "_method" },
	{ AT(nm_method), AGAIN, 8, "CompiledMethod", "_method" },
	{ AT(nm_compile_id), ALWAYS, 4, "nmethod", "_compile_id" },
	{ AT(nm_level), ALWAYS, 0, "nmethod", "_comp_level" },
	{ AT(nm_entry_bci), ALWAYS, 4, "nmethod", "_entry_bci" },
	{ AT(nm_orig_pc), ALWAYS, 4, "nmethod", "_orig_pc_offset" },
	{ AT(nm_state), MAY, 1, "nmethod", "_state" },
	{ AT(nm_stub), ALWAYS, 4, "nmethod", "_stub_offset" },
	{ AT(nm_scopes_pcs), ALWAYS, 4, "nmethod", "_scopes_pcs_offset" },
	{ AT(nm_deopt), OLD, 8, "CompiledMethod", "_deopt_handler_begin" },
	{ AT(nm_deopt_mh), OLD, 8, "CompiledMethod", "_deopt_mh_handler_begin" },
	{ AT(nm_verified_entry), EARLY, 8, "nmethod", "_verified_entry_point" },
	{ AT(nm_scopes_data), OLD, 8, "CompiledMethod", "_scopes_data_begin" },
	{ AT(nm_scopes_pcs_end), EARLY, 4, "nmethod", "_dependencies_offset" },
	{ AT(nm_deopt), EIGHT, 4, "nmethod", "_deoptimize_offset" },
	{ AT(nm_deopt_mh), EIGHT, 4, "nmethod", "_deoptimize_mh_offset" },
	{ AT(nm_scopes_data), EIGHT, 4, "nmethod", "_scopes_data_offset" },
	{ AT(nm_deopt), NEW, 4, "nmethod", "_deopt_handler_entry_offset" },
	{ AT(nm_deopt), AGAIN, 4, "nmethod", "_deopt_handler_offset" },
	{ AT(nm_deopt_mh), MAY, 0, "nmethod", "_deopt_mh_handler_offset" },
	{ AT(nm_verified_entry), NEW, 2, "nmethod", "_verified_entry_offset" },
	{ AT(nm_scopes_data), NEW, 4, "nmethod", "_scopes_data_offset" },
	{ AT(nm_scopes_pcs_end), NEW, 4, "nmethod", "_scopes_data_offset" },
	{ AT(nm_immutable_data), NEW, 8, "nmethod", "_immutable_data" },
	{ AT(nm_immutable_size), NEW, 4, "nmethod", "_immutable_data_size" },
	{ AT(nm_metadata), MAY, 0, "nmethod", "_metadata_offset" },
	{ AT(pc_desc_pc), ALWAYS, 4, "PcDesc", "_pc_offset" },
	{ AT(pc_desc_scope), ALWAYS, 4, "PcDesc", "_scope_decode_offset" },
	{ AT(method_const), ALWAYS, 8, "Method", "_constMethod" },
	{ AT(method_access), ALWAYS, 0, "Method", "_access_flags" },
	{ AT(method_code), ALWAYS, 8, "Method", "_code" },
	{ AT(const_pool), ALWAYS, 8, "ConstMethod", "_constants" },
	{ AT(const_size), ALWAYS, 4, "ConstMethod", "_constMethod_size" },
	{ AT(const_flags), ALWAYS, 4, "ConstMethod", "_flags._flags" },
	{ AT(const_flags), AGAIN, 2, "ConstMethod", "_flags" },
	{ AT(const_code_size), ALWAYS, 2, "ConstMethod", "_code_size" },
	{ AT(const_name), ALWAYS, 2, "ConstMethod", "_name_index" },
	{ AT(const_signature), ALWAYS, 2, "ConstMethod", "_signature_index" },
	{ AT(pool_holder), ALWAYS, 8, "ConstantPool", "_pool_holder" },
	{ AT(pool_length), ALWAYS, 4, "ConstantPool", "_length" },
	{ AT(pool_source), ALWAYS, 2, "ConstantPool", "_source_file_name_index" },
	{ AT(pool_source), AGAIN, 2, "InstanceKlass", "_source_file_name_index" },
	{ AT(class_name), ALWAYS, 8, "Klass", "_name" },
	{ AT(class_constants), ALWAYS, 8, "InstanceKlass", "_constants" },
	{ AT(class_loader), MAY, 8, "Klass", "_class_loader_data" },
	{ AT(class_fields), MAY, 8, "InstanceKlass", "_fields" },
	{ AT(class_fields), AGAIN, 8, "InstanceKlass", "_fieldinfo_stream" },
	{ AT(class_field_count), MAY, 2, "InstanceKlass", "_java_fields_count" },
	{ AT(array_first), MAY, 0, "Array<u1>", "_data" },
	{ AT(symbol_length), ALWAYS, 2, "Symbol", "_length" },
	{ AT(symbol_body), ALWAYS, 0, "Symbol", "_body" },
	{ AT(symbol_hash), ALWAYS, 4, "Symbol", "_hash_and_refcount" },
	{ AT(symbol_hash), AGAIN, 0, "Symbol", "_identity_hash" },
	{ AT(list_length), MAY, 4, "ThreadsList", "_length" },
	{ AT(list_threads), ALWAYS, 8, "ThreadsList", "_threads" },
	{ AT(list_threads), AGAIN, 8, "JavaThread", "_next" },
	{ AT(thread_os), ALWAYS, 8, "JavaThread", "_osthread" },
	{ AT(thread_os), AGAIN, 8, "Thread", "_osthread" },
	{ AT(thread_object), ALWAYS, 0, "JavaThread", "_threadObj" },
	{ AT(thread_virtual), MAY, 8, "JavaThread", "_vthread" },
	{ AT(thread_anchor), ALWAYS, 0, "JavaThread", "_anchor" },
	{ AT(thread_continuation), MAY, 8, "JavaThread", "_cont_entry" },
	{ AT(thread_stack_base), ALWAYS, 8, "JavaThread", "_stack_base" },
	{ AT(thread_stack_size), ALWAYS, 8, "JavaThread", "_stack_size" },
	{ AT(os_id), ALWAYS, 4, "OSThread", "_thread_id" },
	{ AT(anchor_sp), ALWAYS, 8, "JavaFrameAnchor", "_last_Java_sp" },
	{ AT(anchor_pc), ALWAYS, 8, "JavaFrameAnchor", "_last_Java_pc" },
	{ AT(anchor_fp), ALWAYS, 8, "JavaFrameAnchor", "_last_Java_fp" },
	{ AT(flag_name), MAY, 8, "JVMFlag", "_name" },
	{ AT(flag_name), AGAIN, 8, "Flag", "_name" },
	{ AT(flag_address), MAY, 0, "JVMFlag", "_addr" },
	{ AT(flag_address), AGAIN, 0, "Flag", "_addr" },
	{ AT(flag_flags), MAY, 0, "JVMFlag", "_flags" },
	{ AT(flag_flags), AGAIN, 0, "Flag", "_flags" },
	{ AT(flag_type), MAY, 0, "JVMFlag", "_type" },
	{ AT(flag_type), AGAIN, 0, "Flag", "_type" },
};

static const struct row sizes[] = {
	{ AT(heap_block_size), ALWAYS, 0, "HeapBlock", "" },
	{ AT(codelet_header), ALWAYS, 0, "InterpreterCodelet", "" },
	{ AT(blob_header_size), ALWAYS, 0, "CodeBlob", "" },
	{ AT(nmethod_header_size), ALWAYS, 0, "nmethod", "" },
	{ AT(pc_desc_size), ALWAYS, 0, "PcDesc", "" },
	{ AT(method_size), ALWAYS, 0, "Method", "" },
	{ AT(const_header), ALWAYS, 0, "ConstMethod", "" },
	{ AT(pool_header), ALWAYS, 0, "ConstantPool", "" },
	{ AT(continuation_size), MAY, 0, "ContinuationEntry", "" },
	{ AT(flag_size), MAY, 0, "JVMFlag", "" },
	{ AT(flag_size), AGAIN, 0, "Flag", "" },
};

struct filling {
	const struct java_tables *tables;
	struct java_layout *layout;
	char *why;
	enum when era; /* EIGHT, OLD or NEW */
};

static int refuse(const struct filling *f, const struct row *row, const char *what)
{
	snprintf(f->why, RUNTIME_WHY_MAX, "%s%s%s %s", row->type, row->field[0] ? "::" : "", row->field, what);
	return -ENOTSUP;
}

/* Is this row for another kind of version, or was it found under its other name? */
static bool is_skipped(const struct filling *f, const struct row *row, bool was_found)
{
	switch ((enum when)row->when) {
	case EIGHT:
	case OLD:
	case NEW:
		return row->when != f->era;
	case NINE:
		return f->era == EIGHT;
	case EARLY:
		return f->era == NEW;
	case OFFSETS:
		return f->era == OLD;
	case AGAIN:
		return was_found;
	default:
		return false;
	}
}

/* The last row of those that are names of one thing says that it lacks. */
static bool is_last(const struct row *rows, size_t count, size_t at)
{
	return at + 1 == count || rows[at + 1].when != AGAIN;
}

static bool is_needed(const struct filling *f, const struct row *rows, size_t at)
{
	while (rows[at].when == AGAIN)
		at--;
	return rows[at].when != MAY && !is_skipped(f, &rows[at], false);
}

typedef int (*fetch_fn)(const struct filling *f, const struct row *row);

static int fetch_static(const struct filling *f, const struct row *row)
{
	struct java_field field;
	int r = java_tables_field(f->tables, row->type, row->field, &field);
	uint32_t width = r == 0 ? java_width(field.type_string) : 0;

	if (r < 0)
		return r;
	if (!field.is_static || !field.address)
		return refuse(f, row, "is not static");
	if (width && width < row->width)
		return refuse(f, row, "has another type");
	memcpy((uint8_t *)f->layout + row->to, &field.address, sizeof(field.address));
	return 0;
}

static int put_offset(const struct filling *f, const struct row *row, uint64_t offset)
{
	uint16_t value = (uint16_t)offset;

	if (offset >= JAVA_NONE)
		return refuse(f, row, "is too far away");
	memcpy((uint8_t *)f->layout + row->to, &value, sizeof(value));
	return 0;
}

static int fetch_field(const struct filling *f, const struct row *row)
{
	struct java_field field;
	int r = java_tables_field(f->tables, row->type, row->field, &field);
	uint32_t width = r == 0 ? java_width(field.type_string) : 0;

	if (r < 0)
		return r;
	if (field.is_static)
		return refuse(f, row, "is static");
	if (row->width && width && width != row->width)
		return refuse(f, row, "has another type");
	return put_offset(f, row, field.offset);
}

static int fetch_size(const struct filling *f, const struct row *row)
{
	uint64_t size = 0;
	int r = java_tables_size(f->tables, row->type, &size);

	return r < 0 ? r : put_offset(f, row, size);
}

static int fill(const struct filling *f, const struct row *rows, size_t count, fetch_fn fetch)
{
	bool is_found = false;

	for (size_t i = 0; i < count; i++) {
		int r;

		if (rows[i].when != AGAIN)
			is_found = false;
		if (is_skipped(f, &rows[i], is_found))
			continue;
		r = fetch(f, &rows[i]);
		if (r < 0 && r != -ENOENT)
			return r;
		is_found = is_found || r == 0;
		if (!is_found && is_last(rows, count, i) && is_needed(f, rows, i))
			return refuse(f, &rows[i], "is not there");
	}
	return 0;
}

static bool has(const struct filling *f, const char *type, const char *field)
{
	struct java_field found;

	return java_tables_field(f->tables, type, field, &found) == 0;
}

static uint32_t width_of(const struct filling *f, const char *type, const char *field)
{
	struct java_field found;

	return java_tables_field(f->tables, type, field, &found) == 0 ? java_width(found.type_string) : 0;
}

static void fill_flags(const struct filling *f)
{
	struct java_layout *l = f->layout;
	int64_t mask = 1;

	l->flags = f->era != OLD ? JAVA_LAYOUT_RELATIVE : 0;
	if (f->era == NEW)
		l->flags |= JAVA_LAYOUT_IMMUTABLE;
	if (f->era == EIGHT)
		l->flags |= JAVA_LAYOUT_ONE_HEAP;
	if (l->nm_metadata == JAVA_NONE)
		l->flags |= JAVA_LAYOUT_MUTABLE;
	if (l->version >= 21)
		l->flags |= JAVA_LAYOUT_NO_ZERO;
	if (width_of(f, "CodeBlob", "_frame_complete_offset") == 2)
		l->flags |= JAVA_LAYOUT_SHORT_COMPLETE;
	if (!has(f, "ThreadsSMRSupport", "_java_thread_list"))
		l->flags |= JAVA_LAYOUT_THREAD_CHAIN;
	if (has(f, "ConstMethod", "_flags._flags"))
		l->flags |= JAVA_LAYOUT_WIDE_FLAGS;
	if (!has(f, "ConstantPool", "_source_file_name_index"))
		l->flags |= JAVA_LAYOUT_SOURCE_IN_CLASS;
	if (width_of(f, "JVMFlag", "_type") == 8 || width_of(f, "Flag", "_type") == 8)
		l->flags |= JAVA_LAYOUT_FLAG_TYPE_TEXT;
	if (has(f, "OopHandle", "_obj"))
		l->flags |= JAVA_LAYOUT_OOP_HANDLES;
	if (java_tables_constant(f->tables, "ConstMethodFlags::_misc_has_linenumber_table", &mask) < 0)
		ignore(java_tables_constant(f->tables, "ConstMethod::_has_linenumber_table", &mask)); /* or 1 */
	l->const_has_lines = (uint32_t)mask;
	if (width_of(f, "Symbol", "_hash_and_refcount") == 4)
		l->symbol_hash += 2; /* the upper half. Source: OpenJDK 17, share/oops/symbol.hpp */
}

/* The feature release is a constant in all versions that are known here; that of OpenJDK 8 is 25, HotSpot's own. */
static int fill_version(const struct java_memory *m, uint64_t bias, const struct filling *f)
{
	static const uint8_t known[] = { 8, 11, 17, 21, 25, 26 };
	struct java_field field;
	uint32_t major;
	int r = java_tables_field(f->tables, "Abstract_VM_Version", "_vm_major_version", &field);

	if (r < 0 || !field.is_static) {
		snprintf(f->why, RUNTIME_WHY_MAX, "OpenJDK before 8");
		return -ENOTSUP;
	}
	r = java_read(m, &major, sizeof(major), field.address + bias);
	if (r < 0)
		return r;
	if (f->era == EIGHT)
		major = major == HOTSPOT_OF_8 ? 8 : 0;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (major == known[i]) {
			f->layout->version = known[i];
			return 0;
		}
	snprintf(f->why, RUNTIME_WHY_MAX, "version %u is not known", major);
	return -ENOTSUP;
}

int java_layout_fill(const struct java_memory *m, const struct java_tables *t, uint64_t bias, struct java_layout *out,
		     char why[RUNTIME_WHY_MAX])
{
	struct java_layout layout;
	struct filling f = { .tables = t, .layout = &layout, .why = why };
	int r;

	memset(&layout, 0xff, sizeof(layout)); /* JAVA_NONE */
	memset(&layout, 0, AT(array_length));
	layout.exact_lines = layout.by_jvmci = false; /* java_flags_learn() */
	f.era = has(&f, "CodeCache", "_heap") ? EIGHT : has(&f, "CodeBlob", "_code_begin") ? OLD : NEW;
	r = fill_version(m, bias, &f);
	if (r == 0)
		r = fill(&f, statics, ARRAY_SIZE(statics), fetch_static);
	if (r == 0)
		r = fill(&f, fields, ARRAY_SIZE(fields), fetch_field);
	if (r == 0)
		r = fill(&f, sizes, ARRAY_SIZE(sizes), fetch_size);
	if (r < 0)
		return r;
	if (layout.nm_metadata == JAVA_NONE &&
	    (layout.blob_mutable_data == JAVA_NONE || layout.blob_relocation_size == JAVA_NONE)) {
		snprintf(why, RUNTIME_WHY_MAX, "nmethod::_metadata_offset is not there");
		return -ENOTSUP;
	}
	fill_flags(&f);
	*out = layout;
	return 0;
}
