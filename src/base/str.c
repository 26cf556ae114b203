/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

int str_cmp(struct str a, struct str b)
{
	size_t common = MIN(a.len, b.len);
	int order = common ? memcmp(a.ptr, b.ptr, common) : 0;

	if (order)
		return order;
	return (a.len > b.len) - (a.len < b.len);
}

bool str_starts(struct str s, struct str prefix)
{
	return s.len >= prefix.len && str_eq(str_first(s, prefix.len), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
	return s.len >= suffix.len && str_eq(str_skip(s, s.len - suffix.len), suffix);
}

ptrdiff_t str_find(struct str s, char c)
{
	const char *at = s.len ? memchr(s.ptr, c, s.len) : NULL;

	return at ? at - s.ptr : -1;
}

ptrdiff_t str_rfind(struct str s, char c)
{
	const char *at = s.len ? memrchr(s.ptr, c, s.len) : NULL;

	return at ? at - s.ptr : -1;
}

ptrdiff_t str_search(struct str s, struct str needle)
{
	const char *at;

	if (!needle.len)
		return 0;
	at = s.len ? memmem(s.ptr, s.len, needle.ptr, needle.len) : NULL;
	return at ? at - s.ptr : -1;
}

struct str str_skip(struct str s, size_t count)
{
	count = MIN(count, s.len);
	return count ? (struct str){ s.ptr + count, s.len - count } : s;
}

struct str str_first(struct str s, size_t count)
{
	return (struct str){ s.ptr, MIN(count, s.len) };
}

struct str str_trim(struct str s)
{
	while (s.len && (unsigned char)s.ptr[0] <= ' ')
		s = str_skip(s, 1);
	while (s.len && (unsigned char)s.ptr[s.len - 1] <= ' ')
		s.len--;
	return s;
}

struct str str_base(struct str path)
{
	return str_skip(path, (size_t)(str_rfind(path, '/') + 1));
}

bool str_next(struct str *rest, char separator, struct str *out)
{
	ptrdiff_t at;

	if (!rest->ptr)
		return false;
	at = str_find(*rest, separator);
	if (at < 0) {
		*out = *rest;
		*rest = (struct str){ NULL, 0 };
		return true;
	}
	*out = str_first(*rest, (size_t)at);
	*rest = str_n(rest->ptr + at + 1, rest->len - (size_t)at - 1);
	return true;
}

int str_to_u64(struct str s, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	if (!s.len)
		return -EBADMSG;
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return -EBADMSG;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(s.ptr[i] - '0'), &value))
			return -ERANGE;
	}
	if (value < min || value > max)
		return -ERANGE;
	*out = value;
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int str_to_hex64(struct str s, uint64_t *out)
{
	uint64_t value = 0;

	if (!s.len)
		return -EBADMSG;
	for (size_t i = 0; i < s.len; i++) {
		int digit = hex_digit(s.ptr[i]);

		if (digit < 0)
			return -EBADMSG;
		if (value >> 60)
			return -ERANGE;
		value = value << 4 | (uint64_t)digit;
	}
	*out = value;
	return 0;
}

int str_to_i64(struct str s, int64_t *out)
{
	bool negative = s.len && s.ptr[0] == '-';
	uint64_t magnitude;
	int r = str_to_u64(negative ? str_skip(s, 1) : s, 0, (uint64_t)INT64_MAX + negative, &magnitude);

	if (r < 0)
		return r;
	*out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
	return 0;
}

char *str_dup(struct str s)
{
	char *copy = malloc(s.len + 1);

	if (!copy)
		return NULL;
	if (s.len)
		memcpy(copy, s.ptr, s.len);
	copy[s.len] = 0;
	return copy;
}
