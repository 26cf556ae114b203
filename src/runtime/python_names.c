/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/python_names.h"

#include "base/cur.h"
#include "base/utf8.h"
#include "walk/walk_python.h"

/* ---- texts ---- */

static uint32_t unit_of(uint8_t text)
{
	switch (text) {
	case ABI_PYTHON_TEXT_UCS2:
		return 2;
	case ABI_PYTHON_TEXT_UCS4:
		return 4;
	default:
		return 1;
	}
}

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

/* UTF-8 of @bytes as they lie in the target. Those of 2.7 are in an encoding that nobody tells: what is no UTF-8 is
 * taken as Latin-1. Return: false when there is no text. */
static bool add_text(struct buf *out, uint8_t text, struct cur bytes, bool is_cut)
{
	struct str s = str_n((const char *)bytes.pos, cur_left(&bytes));

	switch (text) {
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
		add_units(out, bytes, unit_of(text));
		return true;
	default:
		return false;
	}
}

/* Places in the room, which moves while it grows. */
struct places {
	size_t start, file, name, lines;
};

/* Source has no way to put a NUL into the name of code: such a name is memory behind a string that lies about its
 * length. */
static int place_texts(const struct buf *room, const struct places *at, struct runtime_function *out)
{
	if (room->error)
		return room->error;
	if (at->name > at->file && memchr(room->ptr + at->file, 0, at->name - at->file))
		return -ENODATA;
	out->file = str_n(room->ptr + at->start, at->file - at->start);
	out->name = str_n(room->ptr + at->file, at->name - at->file);
	out->lines.bytes = (const uint8_t *)room->ptr + at->name;
	out->lines.size = (uint32_t)(at->lines - at->name);
	return 0;
}

/* ---- as the record has it ---- */

int python_decode_name(const uint8_t *bytes, size_t size, struct buf *room, struct runtime_function *out)
{
	struct cur c = cur_of(bytes, size), file, name, lines;
	struct abi_python_name head;
	struct places at = { .start = room->len };
	const uint8_t *p = cur_bytes(&c, sizeof(head));
	bool has_file;

	if (!p)
		return -EBADMSG;
	memcpy(&head, p, sizeof(head));
	file = cur_sub(&c, head.file_sent);
	ignore(cur_bytes(&c, align_up(head.file_sent, 8) - head.file_sent)); /* it sticks */
	name = cur_sub(&c, head.name_sent);
	ignore(cur_bytes(&c, align_up(head.name_sent, 8) - head.name_sent));
	lines = cur_sub(&c, head.lines_sent);
	if (c.bad || head.file_sent > head.file_size || head.name_sent > head.name_size ||
	    head.lines_sent > head.lines_size)
		return -EBADMSG;
	has_file = add_text(room, head.file_text, file, head.file_sent < head.file_size);
	at.file = room->len;
	if (!add_text(room, head.name_text, name, head.name_sent < head.name_size))
		return -ENODATA;
	at.name = room->len;
	buf_add(room, lines.pos, cur_left(&lines));
	at.lines = room->len;
	*out = (struct runtime_function){
		.first_line = MAX(head.first_line, 0),
		.is_cut = !has_file || head.file_sent < head.file_size || head.name_sent < head.name_size,
		.lines_at = head.lines_sent < head.lines_size ? head.lines_at : 0,
		.lines_whole = head.lines_size,
		.version_major = head.version_major,
		.version_minor = head.version_minor,
	};
	return place_texts(room, &at, out);
}

/* ---- as the process has it ---- */

static int read_word(const struct runtime_target *t, uint64_t at, uint64_t *out)
{
	return t->read(t->self, out, sizeof(*out), at);
}

/* PEP 393; the state word: CPython 3.12, Include/cpython/unicodeobject.h. Return: 0 and where its characters lie. */
static int find_text(const struct runtime_target *t, const struct abi_python *info, uint64_t object, uint64_t *data,
		     uint64_t *size, uint8_t *text)
{
	const struct abi_python_layout *l = &info->layout;
	uint32_t state, kind, bit = l->string_kind_bit ? l->string_kind_bit & 31 : 2;
	int r = read_word(t, object + l->string_length, size);

	if (r < 0)
		return r;
	*data = object + l->string_ascii;
	*text = ABI_PYTHON_TEXT_BYTES;
	if (info->flags & ABI_PYTHON_BYTE_STRINGS)
		return 0;
	r = t->read(t->self, &state, sizeof(state), object + l->string_state);
	if (r < 0)
		return r;
	state >>= bit;
	kind = state & 7;
	if (!(state & 8) || (kind != 1 && kind != 2 && kind != 4)) /* not compact: nothing that names code is so */
		return -EBADMSG;
	if (state & 16)
		return 0;
	*data = object + l->string_compact;
	*text = kind == 1 ? ABI_PYTHON_TEXT_LATIN1 : kind == 2 ? ABI_PYTHON_TEXT_UCS2 : ABI_PYTHON_TEXT_UCS4;
	return __builtin_mul_overflow(*size, kind, size) ? -E2BIG : 0;
}

/* The cookie of a module's code object. Return: 0 or -errno. */
static int file_cookie(const struct runtime_target *t, const struct abi_python *info, const __u64 *words, uint64_t *out)
{
	const struct abi_python_layout *l = &info->layout;
	__u64 tail[WALK_PYTHON_TAIL_BYTES / 8] = { 0 };
	uint64_t data, size, taken;
	uint8_t text;
	int r = find_text(t, info, walk_python_word_of(l, words, l->code_filename), &data, &size, &text);

	if (r < 0)
		return r;
	taken = MIN(size, (uint64_t)sizeof(tail));
	r = taken ? t->read(t->self, tail, (uint32_t)taken, data + size - taken) : 0;
	if (r == 0)
		*out = walk_python_file_cookie(walk_python_cookie(l, words), size, tail);
	return r;
}

/* The bytes of the code object that make its cookie. Return: 0; -ESTALE: it is another one's; -errno. */
static int read_code(const struct runtime_target *t, const struct abi_python *info, uint64_t key, uint64_t cookie,
		     __u64 words[ABI_PYTHON_CODE_BYTES / 8])
{
	const struct abi_python_layout *l = &info->layout;
	uint64_t found = 0;
	int r = t->read(t->self, words, ABI_PYTHON_CODE_BYTES, key + l->code_filename - ABI_PYTHON_CODE_BEFORE);

	if (r < 0)
		return r;
	if (walk_python_cookie(l, words) == cookie)
		return 0;
	if (!walk_python_needs_file(l))
		return -ESTALE;
	r = file_cookie(t, info, words, &found);
	if (r < 0)
		return r;
	return found == cookie ? 0 : -ESTALE;
}

/* Appends @size bytes of the process, at most @max. Return: how many, -errno. */
static int64_t take_bytes(const struct runtime_target *t, struct buf *out, uint64_t at, uint64_t size, uint32_t max)
{
	uint32_t taken = (uint32_t)MIN(size, (uint64_t)max);
	void *room = buf_reserve(out, taken);
	int r;

	if (!room)
		return out->error;
	r = taken ? t->read(t->self, room, taken, at) : 0;
	if (r < 0)
		return r;
	buf_commit(out, taken);
	return taken;
}

static int take_text(const struct runtime_target *t, const struct abi_python *info, uint64_t object, struct buf *room,
		     bool *is_cut)
{
	scoped(buf_release) struct buf raw = BUF_INIT(PYTHON_TEXT_MAX);
	uint64_t data, size;
	uint8_t text;
	int64_t taken;
	int r = find_text(t, info, object, &data, &size, &text);

	if (r < 0)
		return r;
	taken = take_bytes(t, &raw, data, size, PYTHON_TEXT_MAX);
	if (taken < 0)
		return (int)taken;
	*is_cut |= (uint64_t)taken < size;
	ignore(!add_text(room, text, cur_of(raw.ptr, raw.len),
			 (uint64_t)taken < size)); /* it is one of those it knows */
	return room->error;
}

static int take_lines(const struct runtime_target *t, const struct abi_python_layout *l, uint64_t object,
		      struct buf *room, struct runtime_function *out)
{
	uint64_t size;
	int64_t taken;
	int r = read_word(t, object + l->bytes_length, &size);

	if (r < 0)
		return r;
	taken = take_bytes(t, room, object + l->bytes_data, size, PYTHON_LINES_MAX);
	if (taken < 0)
		return (int)taken;
	out->lines_whole = (uint32_t)MIN(size, (uint64_t)UINT32_MAX);
	return 0;
}

int python_read_name(const struct runtime_target *target, const void *info_bytes, uint64_t key, uint64_t cookie,
		     struct buf *room, struct runtime_function *out)
{
	const struct abi_python *info = info_bytes;
	const struct abi_python_layout *l = &info->layout;
	__u64 words[ABI_PYTHON_CODE_BYTES / 8];
	struct places at = { .start = room->len };
	struct runtime_function f = { .version_major = l->version_major, .version_minor = l->version_minor };
	int r = read_code(target, info, key, cookie, words);

	if (r == 0)
		r = target->read(target->self, &f.first_line, sizeof(f.first_line), key + l->code_first_line);
	f.first_line = MAX(f.first_line, 0);
	if (r == 0)
		r = take_text(target, info, walk_python_word_of(l, words, l->code_filename), room, &f.is_cut);
	at.file = room->len;
	if (r == 0)
		r = take_text(target, info,
			      walk_python_word_of(
				      l, words, l->code_qualname == ABI_PYTHON_NONE ? l->code_name : l->code_qualname),
			      room, &f.is_cut);
	at.name = room->len;
	if (r == 0)
		r = take_lines(target, l, walk_python_word_of(l, words, l->code_lines), room, &f);
	at.lines = room->len;
	if (r == 0) /* all of it was that function's */
		r = read_code(target, info, key, cookie, words);
	if (r == 0)
		r = place_texts(room, &at, &f);
	if (r == 0)
		*out = f;
	return r;
}
