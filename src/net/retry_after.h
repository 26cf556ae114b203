/* SPDX-License-Identifier: Apache-2.0 */
/* The Retry-After header (RFC 9110, 10.2.3): seconds, or an HTTP date. */
#pragma once

#include "base/str.h"

/** retry_after_parse - @now_ns: wall clock, for dates; one in the past is 0. Return: 0 or -EBADMSG. */
int retry_after_parse(struct str value, uint64_t now_ns, uint64_t *out_ns) warn_unused;
