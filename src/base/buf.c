/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

void buf_release(struct buf *b)
{
	free(b->ptr);
	*b = (struct buf)BUF_INIT(b->max);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->error = 0;
}

void *buf_reserve(struct buf *b, size_t size)
{
	size_t want, cap;
	char *grown;

	if (b->error)
		return NULL;
	if (size > b->max - b->len) { /* len <= max always */
		b->error = -E2BIG;
		return NULL;
	}
	want = b->len + size;
	if (want <= b->cap && b->ptr)
		return b->ptr + b->len;
	cap = MAX(b->cap + b->cap / 2, want);
	cap = MIN(MAX(cap, (size_t)64), MAX(b->max, (size_t)1));
	grown = realloc(b->ptr, cap);
	if (!grown) {
		b->error = -ENOMEM;
		return NULL;
	}
	b->ptr = grown;
	b->cap = cap;
	return b->ptr + b->len;
}

void buf_commit(struct buf *b, size_t size)
{
	must(!b->error && size <= b->cap - b->len);
	b->len += size;
}

void buf_add(struct buf *b, const void *bytes, size_t size)
{
	void *at;

	if (!size)
		return;
	at = buf_reserve(b, size);
	if (!at)
		return;
	memcpy(at, bytes, size);
	b->len += size;
}

void buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_adds(struct buf *b, struct str s)
{
	buf_add(b, s.ptr, s.len);
}

void buf_addf(struct buf *b, const char *format, ...)
{
	size_t room = b->cap - b->len;
	va_list args;
	char *at;
	int size;

	if (b->error)
		return;
	va_start(args, format);
	size = vsnprintf(room ? b->ptr + b->len : NULL, room, format, args);
	va_end(args);
	must(size >= 0);
	if ((size_t)size >= room) { /* the end and its NUL did not fit: once more with room for both */
		at = buf_reserve(b, (size_t)size + 1);
		if (!at)
			return;
		va_start(args, format);
		(void)vsnprintf(at, (size_t)size + 1, format, args); /* same arguments, same size */
		va_end(args);
	}
	b->len += (size_t)size;
}

void buf_addu64(struct buf *b, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	buf_add(b, digits + at, sizeof(digits) - at);
}

const char *buf_cstr(struct buf *b)
{
	char *end = buf_reserve(b, 1);

	if (!end)
		return "";
	*end = 0;
	return b->ptr;
}

char *buf_take(struct buf *b, size_t *len)
{
	char *taken = b->ptr;

	*len = b->len;
	*b = (struct buf)BUF_INIT(b->max);
	return taken;
}
