/* SPDX-License-Identifier: Apache-2.0 */
/* Errors in words for people. */
#pragma once

#include <errno.h>
#include <string.h>

/** reason_of - of -errno; valid until the next call in this thread. -E2BIG is a bound of ours: for the system it is a
 * list of arguments. */
static inline const char *reason_of(int r)
{
	return r == -E2BIG ? "too large" : strerror(-r);
}
