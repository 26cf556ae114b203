/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled methods, out of the memory of their process: which method, compiled by what, and its debug information. */
#pragma once

#include "runtime/java/names.h"
#include "runtime/java/scopes.h"

struct java_code { /* header of an nmethod */
	uint64_t at, method;
	uint64_t code_begin, code_end;
	uint64_t pcs, pcs_end, data, data_end, metadata, metadata_end;
	uint32_t compile_id;
	uint8_t level; /* 0: a wrapper of a native method; 1 to 3: C1; 4: C2 */
};

/** java_code_read - @at: address of the blob. Return: 0; -EBADMSG: that is none; the reader's error. */
int java_code_read(const struct java_process *p, uint64_t at, struct java_code *out) warn_unused;

/**
 * java_code_scopes - append to @room the form of java_scopes_expand(), and what java_method_read() appends in front
 * @method: of the method that was compiled. Return: 0; -EBADMSG; -ENOMEM, -E2BIG; the reader's or the room's error.
 */
int java_code_scopes(const struct java_process *p, const struct java_code *code, struct buf *room,
		     struct java_method *method, size_t *form_size) warn_unused;

/** java_read_code, java_expand - struct runtime's. @key: address of the nmethod. */
int java_read_code(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		   struct buf *room, struct runtime_function *out) warn_unused;
size_t java_expand(const struct runtime_function *code, uint32_t position, bool is_return,
		   struct runtime_shown out[RUNTIME_EXPAND_MAX]);
