/* SPDX-License-Identifier: Apache-2.0 */
/* All formats a window can be written in: the codecs, and the flame graph page, which is only written. */
#pragma once

#include "base/buf.h"
#include "model/window.h"

struct format;

/** format_find - by name ("html", "pprof", ...), or NULL. Only formats that can be written. */
const struct format *format_find(struct str name);
/** format_for_path - by the longest matching suffix, or NULL. */
const struct format *format_for_path(struct str path);
const char *format_name(const struct format *f);
/** format_suffix - its usual suffix, with the dot. */
const char *format_suffix(const struct format *f);
/** format_suffix_of - the suffix of @path that names @f, or an empty string at its end. */
struct str format_suffix_of(const struct format *f, struct str path);
/** format_names - NULL-terminated names, for option tables and messages. */
const char *const *format_names(void);
/** format_encode - append the whole file. Return: 0, -ENOMEM, -E2BIG. */
int format_encode(const struct format *f, const struct window *w, struct buf *out) warn_unused;
