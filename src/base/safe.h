/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text made safe to read: on terminals, in logs, in messages. Nothing in it can act, hide or reorder what is
 * around it. */
#pragma once

#include "base/buf.h"

/** safe_hides - a code point that is control, direction or invisible: C0, DEL, C1, bidirectional, zero-width, tags. */
bool safe_hides(uint32_t code);

struct safe_piece {
	char text[16]; /* how it may be shown; not terminated */
	size_t size;
	int32_t code; /* the code point that is shown as it is; -1: it is escaped */
};

/**
 * safe_next - the next code point of *@s, which is not empty, or one malformed byte
 *
 * Control bytes and malformed UTF-8 become \xNN, other hidden code points \uNNNN.
 */
struct safe_piece safe_next(struct str *s);

/** safe_add - append @s, piece by piece. */
void safe_add(struct buf *out, struct str s);

/** safe_add_json - append @s as a JSON string with its quotes: hidden ones as \uNNNN, malformed bytes as U+FFFD. */
void safe_add_json(struct buf *out, struct str s);

/**
 * safe_add_url - append a URL or a text about one, for people: what stands between "://" (or the start of a word) and
 * an '@' is left out, since it may be a password
 */
void safe_add_url(struct buf *out, struct str s);
