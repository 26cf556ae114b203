/* SPDX-License-Identifier: Apache-2.0 */
/* Making foreign bytes safe to show. */
#pragma once

#include "base/buf.h"

/**
 * utf8_next - decode one code point
 * @s: advanced by its bytes, or by one byte when malformed
 *
 * Return: the code point, or -1 for a malformed byte (overlong, surrogate, above U+10FFFF, cut off). @s not empty.
 */
int32_t utf8_next(struct str *s);

/** utf8_valid - true when every byte belongs to a well-formed code point. */
bool utf8_valid(struct str s);

/**
 * utf8_clean - append @s with malformed bytes as U+FFFD, controls (below U+0020, U+007F to U+009F) and line separators
 * (U+2028, U+2029) as '?', and, when @semicolon is not 0, every ';' as that byte
 *
 * This is the form of text in .col and folded lines; @semicolon is '|' there.
 */
void utf8_clean(struct buf *out, struct str s, char semicolon);

/** utf8_uncut - @s, whose end was cut off, without what that has left of the last character; a whole one goes, too. */
struct str utf8_uncut(struct str s);

/** utf8_add - append a code point; surrogates and what lies above U+10FFFF as U+FFFD. */
void utf8_add(struct buf *out, uint32_t code);
