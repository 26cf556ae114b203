/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

void base64_add(struct buf *out, struct str in)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *bytes = (const uint8_t *)in.ptr;
	size_t size = in.len, length = (size + 2) / 3 * 4, i = 0;
	char *to = buf_reserve(out, length);

	if (!to)
		return;
	for (; i + 3 <= size; i += 3) {
		uint32_t v = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];

		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = digits[v >> 6 & 63];
		*to++ = digits[v & 63];
	}
	if (i < size) {
		uint32_t v = (uint32_t)bytes[i] << 16 | (i + 1 < size ? (uint32_t)bytes[i + 1] << 8 : 0);

		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = i + 1 < size ? digits[v >> 6 & 63] : '=';
		*to++ = '=';
	}
	buf_commit(out, length);
}
