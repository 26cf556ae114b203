/* SPDX-License-Identifier: Apache-2.0 */
/* What Java calls its threads: java.lang.Thread.name, of which the kernel has 15 bytes.
 *
 *	list of threads -> JavaThread -> OSThread, its number
 *	                              -> Thread -> String -> array of bytes, or of UTF-16
 *
 * Objects move while this is read. A name counts when all that led to it is the same afterwards. Where a collector
 * colours references (generational ZGC) there are no names. A virtual thread has none of its own here: what carries it
 * is told. */
#pragma once

#include "runtime/java/names.h"

#define JAVA_THREADS_MAX 16384    /* that are looked at */
#define JAVA_THREAD_UNITS_MAX 256 /* bytes or UTF-16 units of a name; longer ones are cut */
#define JAVA_FIELDS_MAX 256       /* of a class that are looked at */

/**
 * java_threads_learn - where the fields of Thread and String are, out of the classes themselves
 * @l: thread_name, string_value, string_coder, object_header are filled, or stay JAVA_NONE; @p has this layout. It may
 * be called again.
 * Return: 0; -EAGAIN: the JVM has not loaded these classes yet; -ENOTSUP: this version does not tell them; the reader's
 * error.
 */
int java_threads_learn(const struct java_process *p, struct java_layout *l) warn_unused;

/** java_field_find - Return: the offset of a field that is not static, by name and signature; JAVA_NONE. @lowest: of
 * all fields that are not static; JAVA_NONE: there are none, or not all could be read. May be NULL. */
uint16_t java_field_find(const struct java_process *p, uint64_t class, struct str name, struct str signature,
			 uint16_t *lowest);

/** java_threads_each - as struct runtime's thread_names(). */
int java_threads_each(const struct java_process *p, runtime_thread_fn *each, void *ctx) warn_unused;
/** java_thread_names - struct runtime's. Learns the layout's fields of Thread and String when they are not known yet.
 */
int java_thread_names(const struct runtime_target *target, const void *info, runtime_thread_fn *each,
		      void *ctx) warn_unused;
