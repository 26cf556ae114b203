/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of a JVM (-XX), as `jcmd PID VM.flags -all` has them, out of its memory. */
#pragma once

#include "codec/json.h"
#include "runtime/java/names.h"

/**
 * java_flags_add - an array of objects {name, type, value, origin, kind}, sorted by name
 * @which: "default": what is not as it always is, without what depends on the platform; "all"; "none"; or names with
 * commas between them. Texts and flags that can be set from outside are never told. Source: gProfiler,
 * metadata/application_metadata.py and docs.
 * Return: 0; -ENOTSUP: this version's are not known; -EBADMSG, -ENOMEM; the reader's error. Nothing is added then.
 */
int java_flags_add(const struct java_process *p, struct str which, struct json_out *j) warn_unused;

struct java_flag { /* one that is true or false */
	const char *name;
	bool *out;
};

/** java_flags_read - some of them, all at once. What is not there, or is no such flag, leaves its *out as it is.
 * Return: 0; as java_flags_add(). */
int java_flags_read(const struct java_process *p, const struct java_flag *wanted, size_t count) warn_unused;

/** java_flags_learn - those that say how code is to be read, into @l. What cannot be read stays as it is. */
void java_flags_learn(const struct java_process *p, struct java_layout *l);

/** java_text_read - a C string of at most @size - 1 bytes, which is terminated. Return: 0; -EBADMSG: it is longer; the
 * reader's error. */
int java_text_read(const struct java_process *p, uint64_t at, char *out, size_t size) warn_unused;

/** java_collect_flags - @which of metadata; set once at the start (--java-collect-jvm-flags). */
extern const char *java_collect_flags;
