/* SPDX-License-Identifier: Apache-2.0 */
/* Owned, growable bytes with a maximum. The first failure sticks, so a writer may test once at the end. */
#pragma once

#include "base/str.h"

struct buf {
	char *ptr;
	size_t len, cap, max;
	int error; /* 0, -ENOMEM or -E2BIG; once set, nothing more is added */
};

#define BUF_INIT(max_bytes)        \
	{                          \
		.max = (max_bytes) \
	}

void buf_release(struct buf *b);
void buf_clear(struct buf *b); /* keeps the memory, forgets the error */

/**
 * buf_reserve - room for @size more bytes
 *
 * Return: where they start, or NULL after setting b->error. buf_commit() makes what was written there part of the
 * content.
 */
void *buf_reserve(struct buf *b, size_t size);
void buf_commit(struct buf *b, size_t size);

void buf_add(struct buf *b, const void *bytes, size_t size);
void buf_addc(struct buf *b, char c);
void buf_adds(struct buf *b, struct str s);
void buf_addf(struct buf *b, const char *format, ...) printf_like(2, 3);
void buf_addu64(struct buf *b, uint64_t value); /* decimal, without printf */

static inline struct str buf_str(const struct buf *b)
{
	return str_n(b->ptr, b->len);
}

/** buf_cstr - the content with a NUL behind it (not counted in len), or "" on failure. Valid until the next change. */
const char *buf_cstr(struct buf *b);

/** buf_take - the bytes themselves; the caller frees them, @b is empty afterwards. */
char *buf_take(struct buf *b, size_t *len);
