/* SPDX-License-Identifier: Apache-2.0 */
/* Names of Java: as the VM has them, with what differs from run to run taken out, and as people read them. Pure. */
#pragma once

#include "base/buf.h"

/**
 * java_text_add - append the text of a Symbol, which is modified UTF-8: 0 in two bytes, what lies above U+FFFF as two
 * surrogates. Malformed bytes become U+FFFD. Source: JVM specification, 4.4.7.
 */
void java_text_add(struct buf *out, struct str symbol);

/**
 * java_class_add - append a class's name, "com/acme/Db"
 *
 * Numbers and addresses that the VM puts into names of generated classes are left out: "Main$$Lambda$14+0x7c02a000" and
 * "Main$$Lambda+0x7c02a000" are Main$$Lambda, "jdk/internal/reflect/GeneratedMethodAccessor12" has no 12.
 */
void java_class_add(struct buf *out, struct str symbol);

#define JAVA_MODIFIERS 0x0fff /* of access flags: those that the class file has */
/** java_modifiers_add - append "private static ", as the flags of a method say. Source: JVM specification, 4.6. */
void java_modifiers_add(struct buf *out, uint32_t flags);

/**
 * java_readable - "com.acme.Db.get" of "private com/acme/Db.get(Ljava/lang/String;)V"
 * What is not of that form is appended as it is.
 */
void java_readable(struct str name, struct buf *out);
