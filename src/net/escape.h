/* SPDX-License-Identifier: Apache-2.0 */
/* Text into URLs. */
#pragma once

#include "base/buf.h"

/** escape_query - append @s so that it can be a value of a query: all but letters, digits and -._~ as %XX. */
void escape_query(struct buf *out, struct str s);
