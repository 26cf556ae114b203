/* SPDX-License-Identifier: Apache-2.0 */
/* What HotSpot says of itself: four tables in libjvm.so, for its own serviceability agent.
 *
 *	gHotSpotVMStructs        type, field, type of the field, static or not, offset or address
 *	gHotSpotVMTypes          type, size
 *	gHotSpotVMIntConstants   name, value
 *	gHotSpotVMLongConstants  name, value
 *
 * Each ends with an entry without a name. Where the members of an entry lie is said by symbols of their own. Source:
 * OpenJDK 17, src/hotspot/share/runtime/vmStructs.hpp. The tables of processes of one file differ by its load address
 * only, but lie in data that each may write: they are read of each, about 100 reads, 1 ms. */
#pragma once

#include "base/str.h"
#include "runtime/java/memory.h"

#define JAVA_SYMBOLS(X)                                            \
	X(STRUCTS, "gHotSpotVMStructs")                            \
	X(STRUCT_TYPE, "gHotSpotVMStructEntryTypeNameOffset")      \
	X(STRUCT_FIELD, "gHotSpotVMStructEntryFieldNameOffset")    \
	X(STRUCT_STRING, "gHotSpotVMStructEntryTypeStringOffset")  \
	X(STRUCT_IS_STATIC, "gHotSpotVMStructEntryIsStaticOffset") \
	X(STRUCT_OFFSET, "gHotSpotVMStructEntryOffsetOffset")      \
	X(STRUCT_ADDRESS, "gHotSpotVMStructEntryAddressOffset")    \
	X(STRUCT_STRIDE, "gHotSpotVMStructEntryArrayStride")       \
	X(TYPES, "gHotSpotVMTypes")                                \
	X(TYPE_NAME, "gHotSpotVMTypeEntryTypeNameOffset")          \
	X(TYPE_SIZE, "gHotSpotVMTypeEntrySizeOffset")              \
	X(TYPE_STRIDE, "gHotSpotVMTypeEntryArrayStride")           \
	X(INTS, "gHotSpotVMIntConstants")                          \
	X(INT_NAME, "gHotSpotVMIntConstantEntryNameOffset")        \
	X(INT_VALUE, "gHotSpotVMIntConstantEntryValueOffset")      \
	X(INT_STRIDE, "gHotSpotVMIntConstantEntryArrayStride")     \
	X(LONGS, "gHotSpotVMLongConstants")                        \
	X(LONG_NAME, "gHotSpotVMLongConstantEntryNameOffset")      \
	X(LONG_VALUE, "gHotSpotVMLongConstantEntryValueOffset")    \
	X(LONG_STRIDE, "gHotSpotVMLongConstantEntryArrayStride")

#define X(id, name) JAVA_SYMBOL_##id,
enum java_symbol { JAVA_SYMBOLS(X) JAVA_SYMBOL_COUNT };
#undef X

/** java_symbol_names - in the order of enum java_symbol: dynamic symbols of libjvm.so, all of them words of data. */
extern const char *const java_symbol_names[JAVA_SYMBOL_COUNT];

struct java_field {
	struct str type_string; /* "CodeHeap*"; borrowed from the tables; empty: the table says none */
	bool is_static;
	uint64_t offset;  /* in an object of its type */
	uint64_t address; /* of a static one: in the file, that is, less the bias */
};

struct java_tables;

/**
 * java_tables_read - all four tables of a process
 * @symbols: addresses in the file; @bias: address in the process less address in the file
 * Return: 0; -EAGAIN: the library is being loaded, they are empty still; -EBADMSG: they have no end, or are too large;
 * -ENOMEM; the reader's error.
 */
int java_tables_read(const struct java_memory *m, const uint64_t symbols[JAVA_SYMBOL_COUNT], uint64_t bias,
		     struct java_tables **out) warn_unused;
void java_tables_free(struct java_tables *t); /* NULL is fine */
static inline void java_tables_freep(struct java_tables **t)
{
	java_tables_free(*t);
}

/** java_tables_field - Return: 0 or -ENOENT. Type and field are told apart by case and by every character. */
int java_tables_field(const struct java_tables *t, const char *type, const char *field, struct java_field *out);
/** java_tables_size - bytes of a type. Return: 0 or -ENOENT. */
int java_tables_size(const struct java_tables *t, const char *type, uint64_t *out);
/** java_tables_constant - of ints or longs; ints are sign-extended. Return: 0 or -ENOENT. */
int java_tables_constant(const struct java_tables *t, const char *name, int64_t *out);

/** java_width - bytes of a field whose type is written so; 0: not known (an object in place, a typedef). */
uint32_t java_width(struct str type_string);
