/* SPDX-License-Identifier: Apache-2.0 */
/* Borrowed text: a pointer and a length, not terminated. Owned text is a struct buf. */
#pragma once

#include "base/base.h"

struct str {
	const char *ptr; /* may be NULL when len is 0 */
	size_t len;
};

#define STR(literal) ((struct str){ "" literal, sizeof(literal) - 1 })
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).len, (s).ptr ? (s).ptr : ""

static inline struct str str_of(const char *text)
{
	return (struct str){ text, text ? strlen(text) : 0 };
}

static inline struct str str_n(const char *ptr, size_t len)
{
	return (struct str){ ptr, len };
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

int str_cmp(struct str a, struct str b); /* bytewise, shorter first on a tie */
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
/* Position of the first (last) byte c, or -1. */
ptrdiff_t str_find(struct str s, char c);
ptrdiff_t str_rfind(struct str s, char c);
/* Position of the first occurrence of needle, or -1. */
ptrdiff_t str_search(struct str s, struct str needle);
struct str str_skip(struct str s, size_t count); /* drops up to count bytes from the front */
struct str str_first(struct str s, size_t count);
struct str str_trim(struct str s);    /* ASCII blanks and control bytes at both ends */
struct str str_base(struct str path); /* what follows the last slash */

/**
 * str_next - cut the next piece off the front
 * @rest: advanced past the piece and its separator
 * @separator: a byte
 * @out: the piece, without the separator
 *
 * Return: false when *rest was already used up (ptr NULL). "a,,b" gives three pieces, "" gives one empty piece.
 */
bool str_next(struct str *rest, char separator, struct str *out);

/**
 * str_to_u64 - read a decimal number that fills the whole of @s
 *
 * Signs, blanks, tails and overflow are refused. Return: 0, -EBADMSG, or -ERANGE outside [min, max]; *out untouched
 * on failure.
 */
int str_to_u64(struct str s, uint64_t min, uint64_t max, uint64_t *out) warn_unused;

/** str_to_hex64 - the same for hexadecimal digits without a prefix. */
int str_to_hex64(struct str s, uint64_t *out) warn_unused;

/** str_to_i64 - decimal with an optional leading '-'. */
int str_to_i64(struct str s, int64_t *out) warn_unused;

/** str_dup - a terminated copy; the caller frees it. NULL when out of memory. */
char *str_dup(struct str s) warn_unused;
