/* SPDX-License-Identifier: Apache-2.0 */
#include "net/escape.h"

static bool is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
	       c == '_' || c == '~';
}

void escape_query(struct buf *out, struct str s)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if (is_plain(c)) {
			buf_addc(out, (char)c);
			continue;
		}
		buf_addc(out, '%');
		buf_addc(out, digits[c >> 4]);
		buf_addc(out, digits[c & 15]);
	}
}
