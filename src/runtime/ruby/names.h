/* SPDX-License-Identifier: Apache-2.0 */
/* What Ruby's functions are called: struct runtime's functions of that. */
#pragma once

#include "runtime/runtime.h"

int ruby_decode_name(const uint8_t *bytes, size_t size, struct buf *room, struct runtime_function *out) warn_unused;
int ruby_read_name(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		   struct buf *room, struct runtime_function *out) warn_unused;
/** ruby_read_name_of - the same of an iseq whose method belongs to the class at @owner; 0: not known. */
int ruby_read_name_of(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		      uint64_t owner, struct buf *room, struct runtime_function *out) warn_unused;
/** ruby_plain - struct runtime's: "block in each" of "block in Array#each". */
void ruby_plain(struct str name, struct buf *out);
