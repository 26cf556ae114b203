/* SPDX-License-Identifier: Apache-2.0 */
#include "object/lines.h"

void lines_release(struct lines *l)
{
	buf_release(&l->partial);
	l->is_too_long = false;
}

static int end_line(struct lines *l, struct str rest, lines_take_fn *take, void *ctx)
{
	int r;

	if (!l->partial.len && !l->is_too_long) { /* most lines: nothing is copied */
		if (rest.len > l->partial.max)
			return 1;
		return rest.len ? take(ctx, rest) : 0;
	}
	buf_adds(&l->partial, rest);
	if (l->partial.error == -ENOMEM)
		r = -ENOMEM;
	else
		r = l->partial.error || l->is_too_long ? 1 : take(ctx, buf_str(&l->partial));
	buf_clear(&l->partial);
	l->is_too_long = false;
	return r;
}

int lines_feed(struct lines *l, const void *bytes, size_t size, lines_take_fn *take, void *ctx)
{
	const char *pos = bytes, *end = pos + size;
	int too_long = 0;

	while (pos < end) {
		const char *newline = memchr(pos, '\n', (size_t)(end - pos));
		int r;

		if (!newline)
			break;
		r = end_line(l, str_n(pos, (size_t)(newline - pos)), take, ctx);
		if (r < 0)
			return r;
		too_long += r;
		pos = newline + 1;
	}
	if (!l->is_too_long)
		buf_add(&l->partial, pos, (size_t)(end - pos));
	l->is_too_long |= l->partial.error == -E2BIG;
	return l->partial.error == -ENOMEM ? -ENOMEM : too_long;
}

int lines_end(struct lines *l, lines_take_fn *take, void *ctx)
{
	return end_line(l, STR(""), take, ctx);
}
