/* SPDX-License-Identifier: Apache-2.0 */
/* Windows for the codec tests: every name of a hostile list in every place that takes a name. */
#pragma once

#include "codec/codec.h"

/** hostile_names - names that break formats; ends with an entry whose ptr is NULL. */
const struct str *hostile_names(void);

/** hostile_window - all kinds, all names, processes, threads, labels, ends; @with_long adds 64 KiB names. */
int hostile_window(struct window *out, bool with_long) warn_unused;
