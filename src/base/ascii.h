/* SPDX-License-Identifier: Apache-2.0 */
/* What a byte of a text is, whatever the locale says. */
#pragma once

#include <stdbool.h>

static inline bool ascii_is_digit(char c)
{
	return c >= '0' && c <= '9';
}
