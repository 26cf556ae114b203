/* SPDX-License-Identifier: Apache-2.0 */
/* What a CPython code object is called: decoded from the record that was made of it at first sight, or read from the
 * process while the cookie holds. The two functions that struct runtime wants; see runtime.h. */
#pragma once

#include "runtime/runtime.h"

#define PYTHON_TEXT_MAX KIB(4)    /* bytes of one text in the target; the rest is cut and said */
#define PYTHON_LINES_MAX KIB(256) /* bytes of a line table; the rest is cut: lines beyond are not known */

int python_decode_name(const uint8_t *bytes, size_t size, struct buf *room, struct runtime_function *out) warn_unused;
int python_read_name(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		     struct buf *room, struct runtime_function *out) warn_unused;
