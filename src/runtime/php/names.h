/* SPDX-License-Identifier: Apache-2.0 */
/* What PHP's functions are called. */
#pragma once

#include "runtime/runtime.h"

/** php_decode_name, php_read_name, php_line - struct runtime's; see runtime.h. */
int php_decode_name(const uint8_t *bytes, size_t size, struct buf *room, struct runtime_function *out) warn_unused;
int php_read_name(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		  struct buf *room, struct runtime_function *out) warn_unused;
int32_t php_line(const struct runtime_function *function, uint32_t position);
