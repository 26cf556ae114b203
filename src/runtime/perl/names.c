/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cur.h"
#include "base/utf8.h"
#include "runtime/perl/perl_int.h"

/* Without the bytes of a character that was cut. */
static struct str whole_characters(struct str s)
{
	for (size_t cut = 0; cut < 4 && cut < s.len; cut++)
		if (utf8_valid(str_first(s, s.len - cut)))
			return str_first(s, s.len - cut);
	return s;
}

/* Perl's texts are UTF-8 or Latin-1; what is no UTF-8 is the latter. NUL has no place in a name. */
static void add_text(struct buf *out, struct cur bytes, bool is_cut)
{
	struct str s = str_n((const char *)bytes.pos, cur_left(&bytes));

	if (is_cut)
		s = whole_characters(s);
	if (utf8_valid(s)) {
		for (size_t i = 0; i < s.len; i++)
			buf_addc(out, s.ptr[i] ? s.ptr[i] : '?');
		return;
	}
	for (size_t i = 0; i < s.len; i++)
		utf8_add(out, s.ptr[i] ? (uint8_t)s.ptr[i] : '?');
}

static struct cur padded(struct cur *c, uint16_t size)
{
	struct cur text = cur_sub(c, size);

	ignore(cur_bytes(c, align_up(size, 8) - size) == NULL); /* it sticks */
	return text;
}

/* caller() has the same words for evals. */
static void add_name(struct buf *room, const struct abi_perl_name *head, struct cur package, struct cur name)
{
	if (head->what == ABI_PERL_EVAL) {
		buf_adds(room, STR("(eval)"));
		return;
	}
	if (head->what == ABI_PERL_MAIN) {
		buf_adds(room, STR("(main program)"));
		return;
	}
	if (cur_left(&package)) {
		add_text(room, package, head->package_sent < head->package_size);
		buf_adds(room, STR("::"));
	}
	if (cur_left(&name))
		add_text(room, name, head->name_sent < head->name_size);
	else
		buf_adds(room, STR("__ANON__"));
}

int perl_decode_name(const uint8_t *bytes, size_t size, struct buf *room, struct runtime_function *out)
{
	struct cur c = cur_of(bytes, size), file, package, name;
	struct abi_perl_name head;
	size_t start = room->len, middle;
	const uint8_t *p = cur_bytes(&c, sizeof(head));

	if (!p)
		return -EBADMSG;
	memcpy(&head, p, sizeof(head));
	file = padded(&c, head.file_sent);
	package = padded(&c, head.package_sent);
	name = padded(&c, head.name_sent);
	if (c.bad || head.package_sent > head.package_size || head.name_sent > head.name_size ||
	    head.what > ABI_PERL_MAIN)
		return -EBADMSG;
	if ((head.package_size && !head.package_sent) || (head.name_size && !head.name_sent))
		return -ENODATA;
	add_text(room, file, head.file_is_cut);
	middle = room->len;
	add_name(room, &head, package, name);
	if (room->error)
		return room->error;
	*out = (struct runtime_function){
		.file = str_n(room->ptr + start, middle - start),
		.name = str_n(room->ptr + middle, room->len - middle),
		.is_cut = false, /* nobody can read the rest later: what was sent is all there is */
	};
	return 0;
}
