/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/maps.h"

#define DELETED STR(" (deleted)")

/* Hexadecimal digits up to @stop, which is eaten. */
static bool take_hex(struct str *s, char stop, uint64_t *out)
{
	ptrdiff_t at = str_find(*s, stop);

	if (at < 0 || str_to_hex64(str_first(*s, (size_t)at), out) < 0)
		return false;
	*s = str_skip(*s, (size_t)at + 1);
	return true;
}

/* "r-xp ": four letters, each with one place and two spellings. */
static bool take_rights(struct str *s, struct maps_line *line)
{
	const char *p = s->ptr;

	if (s->len < 5 || p[4] != ' ')
		return false;
	if ((p[0] != 'r' && p[0] != '-') || (p[1] != 'w' && p[1] != '-') || (p[2] != 'x' && p[2] != '-') ||
	    (p[3] != 's' && p[3] != 'p'))
		return false;
	line->readable = p[0] == 'r';
	line->writable = p[1] == 'w';
	line->executable = p[2] == 'x';
	line->shared = p[3] == 's';
	*s = str_skip(*s, 5);
	return true;
}

/* The inode, then blanks, then the name: both may end the line. */
static bool take_inode_and_path(struct str s, struct maps_line *line)
{
	ptrdiff_t blank = str_find(s, ' ');
	struct str number = blank < 0 ? s : str_first(s, (size_t)blank);

	if (str_to_u64(number, 0, UINT64_MAX, &line->inode) < 0)
		return false;
	s = str_skip(s, number.len);
	while (s.len && s.ptr[0] == ' ')
		s = str_skip(s, 1);
	line->deleted = line->inode && str_ends(s, DELETED);
	line->path = line->deleted ? str_first(s, s.len - DELETED.len) : s;
	return true;
}

static bool parse(struct str s, struct maps_line *line)
{
	uint64_t major, minor;

	if (!take_hex(&s, '-', &line->start) || !take_hex(&s, ' ', &line->end) || line->start >= line->end)
		return false;
	if (!take_rights(&s, line) || !take_hex(&s, ' ', &line->offset))
		return false;
	if (!take_hex(&s, ':', &major) || !take_hex(&s, ' ', &minor) || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	line->device_major = (uint32_t)major;
	line->device_minor = (uint32_t)minor;
	return take_inode_and_path(s, line);
}

int maps_next(struct str *rest, struct maps_line *out)
{
	struct maps_line line = { 0 };
	ptrdiff_t end;
	struct str text;

	if (!rest->len)
		return 0;
	end = str_find(*rest, '\n');
	text = end < 0 ? *rest : str_first(*rest, (size_t)end);
	*rest = str_skip(*rest, end < 0 ? rest->len : text.len + 1);
	if (end < 0 || !parse(text, &line))
		return -EBADMSG;
	*out = line;
	return 1;
}
