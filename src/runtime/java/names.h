/* SPDX-License-Identifier: Apache-2.0 */
/* Names of Java methods, out of the memory of their process:
 *
 *	Method -> ConstMethod -> ConstantPool -> Symbols of name, signature, source file, and of the holder's class
 */
#pragma once

#include <linux/types.h>

#include "abi/java.h"
#include "model/model.h"
#include "runtime/java/layout.h"
#include "runtime/runtime.h"

struct java_process { /* as the readers need it */
	struct java_memory memory;
	const struct java_layout *layout;
	uint64_t bias;
	uint64_t only_loader; /* ClassLoaderData*: methods of no other are read, -ESTALE; 0: all are */
};

/** java_process_of - @target->of_process is the layout, without a version: it could not be read. Then, and when nobody
 * tried, p->layout is NULL. */
static inline struct java_process java_process_of(const struct runtime_target *target)
{
	const struct java_layout *l = target->of_process;

	return (struct java_process){ { target->read, target->self }, l && l->version ? l : NULL, target->bias, 0 };
}

#define JAVA_TEXT_MAX KIB(2)   /* of one Symbol; those of 64 KiB are cut, and end with "..." */
#define JAVA_LINES_MAX KIB(64) /* of one method's line table */

struct java_method {
	uint64_t const_method;
	uint32_t code_size; /* bytes of bytecode */
	bool is_cut;
	int32_t first_line;
	/* Lengths in the room, one behind the other from where it ended before. */
	size_t name, file, lines;
};

/**
 * java_method_read - append to @room: name ("com/acme/Db.get(Ljava/lang/String;)V"), source file, line table
 * @with_modifiers: "private static " in front
 * Return: 0; -EBADMSG: that is no method; -ESTALE: another loader's; the reader's or the room's error. The room may
 * have grown on failure.
 */
int java_method_read(const struct java_process *p, uint64_t method, bool with_modifiers, struct buf *room,
		     struct java_method *out) warn_unused;

/** java_include_modifiers - set once at the start: names have modifiers in front (--java-include-method-modifiers). */
extern bool java_include_modifiers;

/** java_epoch - struct runtime's. */
int java_epoch(const struct runtime_target *target, const void *info, uint64_t *out) warn_unused;

/** java_read_name, java_line - struct runtime's: of interpreted frames. @key: Method*, with NAMED a
 * hash above its 48 bits (abi/java.h). */
int java_read_name(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		   struct buf *room, struct runtime_function *out) warn_unused;
/** java_decode_name - struct runtime's: of interpreted frames, without a line. */
int java_decode_name(const uint8_t *bytes, size_t size, struct buf *room, struct runtime_function *out) warn_unused;
/** java_lasting - struct runtime's: hash of a method's symbols, where the cookie has it. */
uint64_t java_lasting(uint64_t cookie);
int32_t java_line(const struct runtime_function *function, uint32_t position);
