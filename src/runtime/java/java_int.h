/* SPDX-License-Identifier: Apache-2.0 */
/* What probe() finds in libjvm.so, and what the first process of that file tells of all of them. */
#pragma once

#include "runtime/java/layout.h"
#include "runtime/runtime.h"

/* Names that blobs of code have by address, up to JDK 22; "nmethod" is the tail of "native nmethod". */
enum java_literal { JAVA_LITERAL_NATIVE, JAVA_LITERAL_ADAPTER, JAVA_LITERAL_COUNT };

struct java_binary {
	struct runtime_binary base;
	uint64_t symbols[JAVA_SYMBOL_COUNT];   /* addresses in the file */
	uint64_t literals[JAVA_LITERAL_COUNT]; /* likewise; 0: not found */
};

/** java_probe, java_release, java_learn_file, java_unlearn, java_attach, java_sync - struct runtime's */
int java_probe(const struct runtime_file *file, struct runtime_binary **out);
void java_release(struct runtime_binary *binary);
int java_learn_file(const struct runtime_binary *binary, const struct runtime_target *target, void **out);
void java_unlearn(void *learnt);
int java_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info);
int java_sync(const struct runtime_binary *binary, const struct runtime_target *target, const void *info,
	      struct abi_code_range *ranges);
