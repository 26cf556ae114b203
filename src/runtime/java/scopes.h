/* SPDX-License-Identifier: Apache-2.0 */
/* Debug information of compiled code: which bytecode of which method each position belongs to, inlined ones included.
 *
 *	PcDesc    position of a safepoint or a call  -> scope
 *	scope     sender (the scope that it was inlined into), method, bytecode index
 *
 * A position between two PcDescs has what the next one says: compiled code is described at safepoints only, unless
 * -XX:+DebugNonSafepoints asks for more. Source: OpenJDK 17, share/code/pcDesc.hpp, scopeDesc.cpp, debugInfo.cpp.
 *
 * java_scopes_read() makes of it what expand() needs, all texts included:
 *
 *	u32 methods, u32 scopes, u32 positions
 *	per method     i32 first line, u16 size of name, u16 size of file, both texts
 *	per scope      u32 sender + 1 (0: none), u16 method, u16 bytecode index (0xffff: none), i32 line
 *	per position   u32 first position that is behind it ("up to and with"), u32 scope (0xffffffff: not known);
 *ascending
 *
 * Numbers are little-endian. The scope of the method that was compiled has no sender. */
#pragma once

#include "base/buf.h"
#include "base/cur.h"
#include "runtime/java/layout.h"
#include "runtime/runtime.h"

#define JAVA_PCS_MAX 65536
#define JAVA_SCOPES_MAX 65536
#define JAVA_CODE_METHODS_MAX 4096 /* distinct ones that were inlined into one */
#define JAVA_NO_INDEX 0xffff

struct java_scope {
	uint32_t sender; /* index + 1; 0: none */
	uint32_t method; /* index into metadata, from 1 on; 0: none */
	uint32_t index;  /* of the bytecode; JAVA_NO_INDEX: none, the method's entry */
};

struct java_position {
	uint32_t pc, scope;
};

struct java_scopes { /* arrays are owned */
	struct java_scope *scopes;
	size_t scope_count, scope_cap;
	struct java_position *positions;
	size_t position_count, position_cap;
};

void java_scopes_release(struct java_scopes *s);

/**
 * java_scopes_parse - @pcs: the PcDescs; @data: the scopes
 * Where a scope cannot be read, nothing is known. Return: 0, -ENOMEM, -E2BIG. Pure.
 */
int java_scopes_parse(const struct java_layout *l, struct cur pcs, struct cur data,
		      struct java_scopes *out) warn_unused;

struct java_shown { /* as java_scopes_expand() finds it */
	struct str name, file;
	int32_t first_line, line;
	uint16_t index;
};

/**
 * java_scopes_expand - the functions at a position, leaf first, in the form above
 * Return: how many; 0: nothing is known of it, or the bytes are not of that form; JAVA_SHOWN_LOST: a method of them
 * could not be read. When there are more than @max, the last is the method that was compiled all the same. Pure.
 */
#define JAVA_SHOWN_LOST SIZE_MAX
size_t java_scopes_expand(struct cur form, uint32_t position, bool is_return, size_t max, struct java_shown *out);
