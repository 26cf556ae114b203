/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 4648 base64 with padding. */
#pragma once

#include "base/buf.h"

/** base64_add - append @in, encoded. Errors stick to @out. */
void base64_add(struct buf *out, struct str in);
