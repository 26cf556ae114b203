/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/python/names.h"

#include "base/cur.h"
#include "runtime/python/text.h"
#include "walk/walk_python.h"

/* ---- texts ---- */

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
	has_file = python_text_add(room, head.file_text, file, head.file_sent < head.file_size);
	at.file = room->len;
	if (!python_text_add(room, head.name_text, name, head.name_sent < head.name_size))
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

static struct python_memory memory_of(const struct runtime_target *t)
{
	return (struct python_memory){ .read = t->read, .self = t->self };
}

/* The cookie of a module's code object. Return: 0 or -errno. */
static int file_cookie(const struct runtime_target *t, const struct abi_python *info, const __u64 *words, uint64_t *out)
{
	const struct abi_python_layout *l = &info->layout;
	const struct python_memory memory = memory_of(t);
	__u64 tail[WALK_PYTHON_TAIL_BYTES / 8] = { 0 };
	struct python_text text;
	uint32_t taken;
	int r = python_text_find(&memory, info, walk_python_word_of(l, words, l->code_filename), &text);

	if (r < 0)
		return r;
	taken = MIN(text.size, (uint32_t)sizeof(tail));
	r = taken ? t->read(t->self, tail, taken, text.at + text.size - taken) : 0;
	if (r == 0)
		*out = walk_python_file_cookie(walk_python_cookie(l, words), text.size, tail);
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

/* Appends at most @max bytes of it as they lie there. Return: how many, -errno. */
static int64_t take_bytes(const struct python_memory *m, const struct python_text *text, uint32_t max, struct buf *out)
{
	uint32_t size = MIN(text->size, max);
	uint8_t *room = buf_reserve(out, size);
	int64_t taken = room ? python_text_copy(m, text, size, room) : out->error;

	if (taken > 0)
		buf_commit(out, (size_t)taken);
	return taken;
}

static int take_text(const struct runtime_target *t, const struct abi_python *info, uint64_t object, struct buf *room,
		     bool *is_cut)
{
	scoped(buf_release) struct buf raw = BUF_INIT(PYTHON_TEXT_MAX);
	const struct python_memory memory = memory_of(t);
	struct python_text text;
	int64_t taken;
	int r = python_text_find(&memory, info, object, &text);

	if (r < 0)
		return r;
	taken = take_bytes(&memory, &text, PYTHON_TEXT_MAX, &raw);
	if (taken < 0)
		return (int)taken;
	*is_cut |= taken < text.size;
	ignore(!python_text_add(room, text.form, cur_of(raw.ptr, raw.len),
				taken < text.size)); /* it is one of those it knows */
	return room->error;
}

static int take_lines(const struct runtime_target *t, const struct abi_python_layout *l, uint64_t object,
		      struct buf *room, struct runtime_function *out)
{
	const struct python_memory memory = memory_of(t);
	struct python_text table;
	int64_t taken;
	int r = python_bytes_find(&memory, l, object, &table);

	if (r < 0)
		return r;
	taken = take_bytes(&memory, &table, PYTHON_LINES_MAX, room);
	if (taken < 0)
		return (int)taken;
	out->lines_whole = table.size;
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
