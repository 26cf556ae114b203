/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/ruby/names.h"

#include <ctype.h>

#include "base/cur.h"
#include "base/utf8.h"
#include "runtime/ruby/lines.h"
#include "runtime/ruby/objects.h"
#include "walk/walk_ruby.h"

#define TEXT_MAX KIB(4) /* bytes of one name */

#define GC_NAME STR("(garbage collector)")
#define UNKNOWN_C_NAME STR("[C function]")

/* Places in the room, which moves while it grows. */
struct places {
	size_t start, file, name, lines;
};

static int place_texts(const struct buf *room, const struct places *at, struct runtime_function *out)
{
	if (room->error)
		return room->error;
	out->file = str_n(room->ptr + at->start, at->file - at->start);
	out->name = str_n(room->ptr + at->file, at->name - at->file);
	out->lines.bytes = (const uint8_t *)room->ptr + at->name;
	out->lines.size = (uint32_t)(at->lines - at->name);
	return 0;
}

/* Nothing that names code has a NUL: such a name is memory behind a string that lies about its length. Bytes that are
 * no UTF-8 (other encodings of source) are replaced. */
static bool add_text(struct buf *room, struct str text)
{
	if (!text.len || memchr(text.ptr, 0, text.len))
		return false;
	if (utf8_valid(text)) {
		buf_adds(room, text);
		return true;
	}
	while (text.len) {
		int32_t code = utf8_next(&text);

		utf8_add(room, code < 0 ? 0xfffd : (uint32_t)code);
	}
	return true;
}

/* ---- classes ---- */

/* "block in each" is a block of "each". Empty: it is not of a method that a class has. */
static struct str method_of(struct str label)
{
	const struct str in = STR(" in ");
	ptrdiff_t at;

	while ((at = str_search(label, in)) >= 0)
		label = str_skip(label, (size_t)at + in.len);
	if (str_find(label, ' ') >= 0) /* "singleton class" */
		return STR("");
	if (label.len > 1 && label.ptr[0] == '<' && isalpha((unsigned char)label.ptr[1])) /* "<main>", "<class:Shop>" */
		return STR("");
	return label;
}

/* One without a name, or with one of the moment: "#<Class:0x00007f>::Shop". */
static bool is_class_name(struct str name)
{
	return name.len && (isupper((unsigned char)name.ptr[0]) || (name.ptr[0] & 0x80)) && str_find(name, '#') < 0 &&
	       str_find(name, ' ') < 0 && str_find(name, '.') < 0 && !memchr(name.ptr, 0, name.len);
}

/* As Ruby's own backtraces have it from 3.4 on: "block in Array#each", "Shop.new". */
static bool add_label(struct buf *room, struct str label, struct str class_name, bool is_singleton)
{
	struct str method = method_of(label);
	size_t before = label.len - method.len;

	if (!method.len || !is_class_name(class_name) || !label.len || memchr(label.ptr, 0, label.len))
		return add_text(room, label);
	if (before)
		ignore(!add_text(room, str_first(label, before))); /* it is not empty */
	ignore(!add_text(room, class_name));                       /* likewise */
	buf_addc(room, is_singleton ? '.' : '#');
	return add_text(room, method);
}

void ruby_plain(struct str name, struct buf *out)
{
	struct str method = method_of(name);
	ptrdiff_t dot = str_rfind(method, '.'), sharp = str_rfind(method, '#');
	size_t at = (size_t)(MAX(dot, sharp) + 1);

	if (MAX(dot, sharp) <= 0 || at == method.len || !is_class_name(str_first(method, at - 1))) {
		buf_adds(out, name);
		return;
	}
	buf_adds(out, str_first(name, name.len - method.len));
	buf_adds(out, str_skip(method, at));
}

/* ---- as the record has it ---- */

static struct str take_text(struct cur *c, uint32_t sent)
{
	const uint8_t *p = cur_bytes(c, align_up(sent, 8));

	return p ? str_n((const char *)p, sent) : str_n(NULL, 0);
}

int ruby_decode_name(const uint8_t *bytes, size_t size, struct buf *room, struct runtime_function *out)
{
	struct cur c = cur_of(bytes, size);
	struct abi_ruby_name head;
	struct ruby_lines table = { 0 };
	struct places at = { .start = room->len };
	const uint8_t *p = cur_bytes(&c, sizeof(head));
	struct str file, name, class_name, index, lines;

	if (!p)
		return -EBADMSG;
	memcpy(&head, p, sizeof(head));
	file = take_text(&c, head.file_sent);
	name = take_text(&c, head.name_sent);
	class_name = take_text(&c, head.class_sent);
	index = take_text(&c, head.index_sent);
	lines = take_text(&c, head.lines_sent);
	if (head.class_sent < head.class_size) /* half a name is another one */
		class_name = STR("");
	if (c.bad || head.file_sent > head.file_size || head.name_sent > head.name_size ||
	    head.class_sent > head.class_size)
		return -EBADMSG;
	ignore(!add_text(room, file)); /* then it has none */
	at.file = room->len;
	if (!add_label(room, name, class_name, head.is_singleton))
		return -ENODATA;
	at.name = room->len;
	table = (struct ruby_lines){ .code_size = head.code_size,
				     .count = head.lines_count,
				     .index_size = (uint32_t)index.len,
				     .line_bytes = head.line_bytes,
				     .line_at = head.line_at,
				     .by_array = (head.flags & ABI_RUBY_LINES_BY_ARRAY) != 0 };
	if (table.by_array || index.len >= ruby_index_size(head.code_size)) {
		buf_add(room, &table, sizeof(table));
		buf_add(room, index.ptr, index.len);
		buf_add(room, lines.ptr, lines.len);
	}
	at.lines = room->len;
	*out = (struct runtime_function){
		.first_line = MAX(head.first_line, 0),
		.is_cut = at.file == at.start || head.file_sent < head.file_size || head.name_sent < head.name_size,
		.lines_at = head.lines_at,
		.version_major = head.version_major,
		.version_minor = head.version_minor,
	};
	if (head.lines_count <= RUBY_LINES_MAX / 16 && head.code_size)
		out->lines_whole = (uint32_t)sizeof(table) + (table.by_array ? 0 : ruby_index_size(head.code_size)) +
				   head.lines_count * head.line_bytes;
	if (at.lines - at.name >= out->lines_whole)
		out->lines_at = 0;
	return place_texts(room, &at, out);
}

/* ---- as the process has it ---- */

/* Return: 0; -ENOENT, -EBADMSG, -ENODATA: it has no name; -ESTALE: it has another one now; -ENOMEM; -errno. */
static int read_symbol(const struct runtime_target *t, const struct abi_ruby *info, uint64_t id, uint64_t owner,
		       struct buf *room)
{
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX), class_name = BUF_INIT(TEXT_MAX);
	bool is_singleton = false;
	uint64_t value, again;
	bool is_cut = false;
	int r = ruby_symbol_find(t, info, id, &value);

	if (r == 0)
		r = ruby_string_read(t, info, value, &text, &is_cut);
	if (r < 0)
		return r;
	r = ruby_symbol_find(t, info, id, &again);
	if (r == 0 && again != value)
		r = -ESTALE;
	if (r < 0)
		return r;
	if (ruby_class_read(t, info, owner, &class_name, &is_singleton) < 0)
		buf_clear(&class_name);
	return add_label(room, buf_str(&text), buf_str(&class_name), is_singleton) ? 0 : -ENODATA;
}

static int read_special(const struct runtime_target *t, const struct abi_ruby *info, uint64_t key, uint64_t cookie,
			struct buf *room, struct runtime_function *out)
{
	struct places at = { .start = room->len, .file = room->len };
	struct runtime_function f = { .version_major = info->layout.version_major,
				      .version_minor = info->layout.version_minor };
	int r = 0;

	if (key == ABI_RUBY_GC) {
		buf_adds(room, GC_NAME);
	} else {
		r = read_symbol(t, info, key & ~ABI_RUBY_CFUNC, cookie & 7 ? 0 : cookie, room);
		if (r == -ENOENT || r == -EBADMSG || r == -ENODATA)
			buf_adds(room, UNKNOWN_C_NAME);
		else if (r < 0)
			return r;
	}
	at.name = at.lines = room->len;
	r = place_texts(room, &at, &f);
	if (r == 0)
		*out = f;
	return r;
}

struct iseq {
	uint64_t body;
	uint64_t words[ABI_RUBY_BODY_BYTES / 8];
};

/* Return: 0; -ESTALE: another one lies there; -errno. */
static int read_iseq(const struct runtime_target *t, uint64_t key, uint64_t cookie, struct iseq *out)
{
	__u64 words[ABI_RUBY_BODY_BYTES / 8], label[WALK_RUBY_TEXT_BYTES / 8], path[WALK_RUBY_TEXT_BYTES / 8];
	int r = t->read(t->self, &out->body, sizeof(out->body), (key & ABI_RUBY_ISEQ) + 16);

	if (r == 0)
		r = t->read(t->self, words, sizeof(words), out->body);
	if (r == 0)
		r = t->read(t->self, label, sizeof(label), words[WALK_RUBY_BODY_LABEL] + WALK_RUBY_TEXT_AT);
	if (r == 0)
		r = t->read(t->self, path, sizeof(path), words[WALK_RUBY_BODY_PATH] + WALK_RUBY_TEXT_AT);
	if (r < 0)
		return r;
	memcpy(out->words, words, sizeof(out->words));
	return walk_ruby_cookie(out->body, words, label, path) == cookie ? 0 : -ESTALE;
}

static int read_text(const struct runtime_target *t, const struct abi_ruby *info, uint64_t value, struct buf *room,
		     bool *is_cut)
{
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
	int r = ruby_string_read(t, info, value, &text, is_cut);

	if (r == 0 && !add_text(room, buf_str(&text)))
		r = -ENODATA;
	return r;
}

static int read_label(const struct runtime_target *t, const struct abi_ruby *info, uint64_t value, uint64_t owner,
		      struct buf *room, bool *is_cut)
{
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX), class_name = BUF_INIT(TEXT_MAX);
	bool is_singleton = false;
	int r = ruby_string_read(t, info, value, &text, is_cut);

	if (ruby_class_read(t, info, owner, &class_name, &is_singleton) < 0)
		buf_clear(&class_name);
	if (r == 0 && !add_label(room, buf_str(&text), buf_str(&class_name), is_singleton))
		r = -ENODATA;
	return r;
}

static int read_bytes(const struct runtime_target *t, uint64_t at, uint32_t size, struct buf *room)
{
	uint8_t *p = buf_reserve(room, size);
	int r;

	if (!p)
		return room->error;
	r = size ? t->read(t->self, p, size, at) : 0;
	if (r == 0)
		buf_commit(room, size);
	return r;
}

/* The line table. What makes no sense is none. */
static int read_lines(const struct runtime_target *t, const struct abi_ruby *info, const struct iseq *i,
		      struct buf *room)
{
	const struct abi_ruby_layout *l = &info->layout;
	struct ruby_lines table = { .code_size = (uint32_t)(i->words[0] >> 32),
				    .line_bytes = l->line_bytes,
				    .line_at = l->line_at,
				    .by_array = (l->flags & ABI_RUBY_LINES_BY_ARRAY) != 0 };
	uint64_t entries, index = 0;
	int r = t->read(t->self, &entries, sizeof(entries), i->body + l->body_lines);

	if (r == 0)
		r = t->read(t->self, &table.count, sizeof(table.count), i->body + l->body_lines_count);
	if (r == 0 && !table.by_array)
		r = t->read(t->self, &index, sizeof(index), i->body + l->body_lines_index);
	if (r < 0)
		return r;
	if (!table.by_array)
		table.index_size = ruby_index_size(table.code_size);
	if (!table.count || table.count > RUBY_LINES_MAX / 16 || (!table.index_size && !table.by_array) ||
	    table.index_size > RUBY_LINES_MAX)
		return 0;
	buf_add(room, &table, sizeof(table));
	r = table.index_size ? read_bytes(t, index, table.index_size, room) : 0;
	return r == 0 ? read_bytes(t, entries, table.count * table.line_bytes, room) : r;
}

static int32_t first_line_of(const struct abi_ruby *info, const struct iseq *i)
{
	uint64_t value = i->words[WALK_RUBY_BODY_FIRST_LINE];
	int64_t line = info->layout.flags & ABI_RUBY_TAGGED_LINE ? (int64_t)value >> 1 : (int32_t)value;

	return line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
}

int ruby_read_name_of(const struct runtime_target *target, const void *info_bytes, uint64_t key, uint64_t cookie,
		      uint64_t owner, struct buf *room, struct runtime_function *out)
{
	const struct abi_ruby *info = info_bytes;
	struct places at = { .start = room->len };
	struct runtime_function f = { .version_major = info->layout.version_major,
				      .version_minor = info->layout.version_minor };
	struct iseq i, again;
	bool lacks_lines = false;
	uint64_t path;
	int r;

	if (key & ABI_RUBY_CFUNC)
		return read_special(target, info, key, cookie, room, out);
	r = read_iseq(target, key, cookie, &i);
	if (r == 0)
		r = ruby_path_find(target, info, i.words[WALK_RUBY_BODY_PATH], &path);
	if (r == 0)
		r = read_text(target, info, path, room, &f.is_cut);
	at.file = room->len;
	if (r == 0)
		r = read_label(target, info, i.words[WALK_RUBY_BODY_LABEL], owner, room, &f.is_cut);
	at.name = room->len;
	if (r == 0 && read_lines(target, info, &i, room) < 0) { /* its name is as good without them */
		room->len = at.name;
		lacks_lines = true;
	}
	at.lines = room->len;
	if (r == 0) /* all of it was that function's */
		r = read_iseq(target, key, cookie, &again);
	f.first_line = first_line_of(info, &i);
	f.lines_whole = (uint32_t)(at.lines - at.name) + lacks_lines;
	if (r == 0)
		r = place_texts(room, &at, &f);
	if (r == 0)
		*out = f;
	return r;
}

/* Which class an iseq is of is known where a frame is met, and not later. */
int ruby_read_name(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		   struct buf *room, struct runtime_function *out)
{
	return ruby_read_name_of(target, info, key, cookie, 0, room, out);
}
