/* SPDX-License-Identifier: Apache-2.0 */
/* What a window can be written as: the flame graph page, and every codec that writes. */
#pragma once

#include "codec/codec.h"

/** format_at - the page first, then the codecs; NULL behind the last. encode is set, sniff and decode may not be. */
const struct codec *format_at(size_t index);
/** format_find - by name ("html", "pprof", ...), or NULL. */
const struct codec *format_find(struct str name);
/** format_for_path - by the longest matching suffix, or NULL. */
const struct codec *format_for_path(struct str path);
