/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/python/text.h"

#include "base/utf8.h"

#define HEAD_MAX 64 /* the fields in front of the characters lie within so much */

static uint32_t unit_of(uint8_t form)
{
	switch (form) {
	case ABI_PYTHON_TEXT_UCS2:
		return 2;
	case ABI_PYTHON_TEXT_UCS4:
		return 4;
	default:
		return 1;
	}
}

/* Objects are aligned to words in all versions. */
static bool may_be_object(uint64_t at)
{
	return at && !(at & 7);
}

/* PEP 393; the state word: CPython 3.12, Include/cpython/unicodeobject.h. */
static int place(const struct abi_python_layout *l, uint64_t object, uint64_t length, uint32_t state,
		 struct python_text *out)
{
	uint32_t kind;

	state >>= l->string_kind_bit ? l->string_kind_bit & 31 : 2;
	kind = state & 7;
	if (length > PYTHON_OBJECT_SIZE_MAX || !(state & 8) || (kind != 1 && kind != 2 && kind != 4))
		return -EBADMSG; /* not compact: nothing that names code is so */
	*out = (struct python_text){ object + l->string_ascii, (uint32_t)length, ABI_PYTHON_TEXT_BYTES };
	if (state & 16)
		return kind == 1 ? 0 : -EBADMSG;
	out->at = object + l->string_compact;
	out->size *= kind;
	out->form = kind == 1 ? ABI_PYTHON_TEXT_LATIN1 : kind == 2 ? ABI_PYTHON_TEXT_UCS2 : ABI_PYTHON_TEXT_UCS4;
	return 0;
}

/* @length_at, @data_at: offsets in the object. */
static int find_bytes(const struct python_memory *m, uint64_t object, uint16_t length_at, uint16_t data_at,
		      struct python_text *out)
{
	uint64_t length;
	int r = may_be_object(object) ? m->read(m->self, &length, sizeof(length), object + length_at) : -EBADMSG;

	if (r == 0 && length > PYTHON_OBJECT_SIZE_MAX)
		r = -EBADMSG;
	if (r == 0)
		*out = (struct python_text){ object + data_at, (uint32_t)length, ABI_PYTHON_TEXT_BYTES };
	return r;
}

int python_bytes_find(const struct python_memory *m, const struct abi_python_layout *l, uint64_t object,
		      struct python_text *out)
{
	return find_bytes(m, object, l->bytes_length, l->bytes_data, out);
}

int python_text_find(const struct python_memory *m, const struct abi_python *info, uint64_t object,
		     struct python_text *out)
{
	const struct abi_python_layout *l = &info->layout;
	uint8_t head[HEAD_MAX];
	uint32_t state, size = MAX(l->string_length + 8U, l->string_state + 4U);
	uint64_t length;
	int r;

	if (info->flags & ABI_PYTHON_BYTE_STRINGS)
		return find_bytes(m, object, l->string_length, l->string_ascii, out);
	if (!may_be_object(object) || size > sizeof(head))
		return -EBADMSG;
	r = m->read(m->self, head, size, object); /* at once: both fields of one moment */
	if (r < 0)
		return r;
	memcpy(&length, head + l->string_length, sizeof(length));
	memcpy(&state, head + l->string_state, sizeof(state));
	return place(l, object, length, state, out);
}

int64_t python_text_copy(const struct python_memory *m, const struct python_text *text, uint32_t max, uint8_t *to)
{
	uint32_t size = MIN(text->size, max);
	int r;

	size -= size % unit_of(text->form);
	r = size ? m->read(m->self, to, size, text->at) : 0;
	return r < 0 ? r : (int64_t)size;
}

/* ---- as UTF-8 ---- */

static void add_units(struct buf *out, struct cur c, uint32_t unit)
{
	while (cur_left(&c) >= unit)
		utf8_add(out, unit == 1 ? cur_u8(&c) : unit == 2 ? cur_le16(&c) : cur_le32(&c));
}

/* What a cut has left of the last character. */
static size_t whole_characters(struct str s)
{
	struct str rest = str_skip(s, s.len - MIN(s.len, (size_t)3));

	while (rest.len) {
		struct str at = rest;

		if (utf8_next(&rest) < 0 && (uint8_t)at.ptr[0] >= 0xc0)
			return s.len - at.len;
	}
	return s.len;
}

bool python_text_add(struct buf *out, uint8_t form, struct cur bytes, bool is_cut)
{
	struct str s = str_n((const char *)bytes.pos, cur_left(&bytes));

	switch (form) {
	case ABI_PYTHON_TEXT_BYTES:
		if (is_cut)
			s = str_first(s, whole_characters(s));
		if (utf8_valid(s))
			buf_adds(out, s);
		else
			add_units(out, bytes, 1);
		return true;
	case ABI_PYTHON_TEXT_LATIN1:
	case ABI_PYTHON_TEXT_UCS2:
	case ABI_PYTHON_TEXT_UCS4:
		add_units(out, bytes, unit_of(form));
		return true;
	default:
		return false;
	}
}
