/* SPDX-License-Identifier: Apache-2.0 */
/* What probe() finds in libjvm.so, and what each process of that file says of itself: its tables lie in data that it
 * may write, so what one says is believed for that one only. */
#pragma once

#include "runtime/java/layout.h"
#include "runtime/runtime.h"

/* Names that blobs of code have by address, up to JDK 22. A linker may have made "nmethod" the tail of "native
 * nmethod": then it is not found by itself. On aarch64 any text may have it as its tail. */
enum java_literal { JAVA_LITERAL_NATIVE, JAVA_LITERAL_ADAPTER, JAVA_LITERAL_COMPILED, JAVA_LITERAL_COUNT };

struct java_binary {
	struct runtime_binary base;
	uint16_t machine;                      /* EM_X86_64 or EM_AARCH64 */
	uint64_t symbols[JAVA_SYMBOL_COUNT];   /* addresses in the file */
	uint64_t literals[JAVA_LITERAL_COUNT]; /* likewise; 0: not found */
};

/**
 * java_layout_of - what the tables of this process say
 * Return: 0; -EAGAIN: it starts up still; -ENOTSUP: refused; -ENOMEM; the reader's error.
 */
int java_layout_of(const struct java_binary *binary, const struct runtime_target *target,
		   struct java_layout *out) warn_unused;
/** java_attach_with - java_attach() when the layout is known */
int java_attach_with(const struct runtime_binary *binary, const struct runtime_target *target,
		     const struct java_layout *layout, void *info) warn_unused;

/** java_is_openj9 - is the library at @path OpenJ9's? Judged by its name. */
bool java_is_openj9(struct str path);

/** java_probe, java_release, java_learn_file, java_unlearn, java_attach, java_sync - struct runtime's
 * learn_file() says where the tables are, learn_process() what is in them. */
int java_probe(const struct runtime_file *file, struct runtime_binary **out);
void java_release(struct runtime_binary *binary);
int java_learn_file(const struct runtime_binary *binary, const struct runtime_target *target, void **out);
int java_learn_process(const struct runtime_target *target, const void *info, void **out);
void java_unlearn(void *learnt);
int java_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info);
int java_sync(const struct runtime_binary *binary, const struct runtime_target *target, void *info,
	      struct abi_code_range *ranges);
