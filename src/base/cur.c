/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cur.h"

int cur_uvarint(struct cur *c, uint64_t *out)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t byte = cur_u8(c);

		if (c->bad)
			return -EBADMSG;
		if (shift == 63 && (byte & 0x7e)) {
			c->bad = true;
			return byte & 0x80 ? -EBADMSG : -EOVERFLOW;
		}
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*out = value;
			return 0;
		}
	}
	c->bad = true;
	return -EBADMSG;
}

struct str cur_cstr(struct cur *c)
{
	const uint8_t *nul = cur_left(c) ? memchr(c->pos, 0, cur_left(c)) : NULL;
	struct str text;

	if (!nul) {
		c->bad = true;
		return str_n("", 0);
	}
	text = str_n((const char *)c->pos, (size_t)(nul - c->pos));
	c->pos = nul + 1;
	return text;
}
