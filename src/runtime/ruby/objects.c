/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/ruby/objects.h"

#define TYPE_MASK 0x1f
#define TYPE_CLASS 0x02
#define TYPE_MODULE 0x03
#define TYPE_STRING 0x05
#define TYPE_ARRAY 0x07
#define USER1 (1u << 13) /* String: its bytes are elsewhere; Array: its elements are here */
#define STRING_LENGTH_SHIFT 14
#define STRING_LENGTH_MASK 0x1f /* up to 3.1 */
#define ARRAY_LENGTH_SHIFT 15
#define ARRAY_LENGTH_MASK 0x03      /* up to 3.1 */
#define LONG_ARRAY_LENGTH_MASK 0x7f /* 3.2 on */
#define SYMBOL_UNIT 512             /* symbol.c, ID_ENTRY_UNIT; an entry is a String and a Symbol */
#define NIL_MAX 8                   /* up to 3.1; 4 from 3.2 on */
#define SCOPE_SHIFT 4               /* id.h, RUBY_ID_SCOPE_SHIFT */

static int read_words(const struct runtime_target *t, uint64_t at, uint64_t *words, size_t count)
{
	if (at <= NIL_MAX || (at & 7))
		return -EBADMSG;
	return t->read(t->self, words, (uint32_t)(count * sizeof(*words)), at);
}

int ruby_string_read(const struct runtime_target *t, const struct abi_ruby *info, uint64_t value, struct buf *out,
		     bool *is_cut)
{
	bool is_long = info->layout.flags & ABI_RUBY_LONG_STRINGS;
	uint64_t words[4], size, at;
	size_t room = out->max - out->len;
	uint8_t *p;
	int r = read_words(t, value, words, ARRAY_SIZE(words));

	if (r < 0)
		return r;
	if ((words[0] & TYPE_MASK) != TYPE_STRING)
		return -EBADMSG;
	if (words[0] & USER1) {
		size = words[2];
		at = words[3];
	} else {
		size = is_long ? words[2] : words[0] >> STRING_LENGTH_SHIFT & STRING_LENGTH_MASK;
		at = value + (is_long ? 24 : 16);
	}
	if (size > MIB(1))
		return -EBADMSG;
	*is_cut |= size > room;
	size = MIN(size, room);
	p = buf_reserve(out, size);
	if (!p)
		return out->error;
	r = size ? t->read(t->self, p, (uint32_t)size, at) : 0;
	if (r == 0)
		buf_commit(out, size);
	return r;
}

/* Element @index of an Array. Return: 0; -ENOENT: it has none; -EBADMSG; -errno. */
static int read_element(const struct runtime_target *t, const struct abi_ruby *info, uint64_t array, uint64_t index,
			uint64_t *out)
{
	uint32_t mask = info->layout.flags & ABI_RUBY_LONG_STRINGS ? LONG_ARRAY_LENGTH_MASK : ARRAY_LENGTH_MASK;
	uint64_t words[5], size, at;
	int r = read_words(t, array, words, ARRAY_SIZE(words));

	if (r < 0)
		return r;
	if ((words[0] & TYPE_MASK) != TYPE_ARRAY)
		return -EBADMSG;
	size = words[0] & USER1 ? words[0] >> ARRAY_LENGTH_SHIFT & mask : words[2];
	at = words[0] & USER1 ? array + 16 : words[4];
	if (index >= size)
		return -ENOENT;
	return read_words(t, at + index * 8, out, 1);
}

int ruby_path_find(const struct runtime_target *t, const struct abi_ruby *info, uint64_t value, uint64_t *out)
{
	uint64_t flags, real;
	int r = read_words(t, value, &flags, 1);

	if (r < 0)
		return r;
	if ((flags & TYPE_MASK) != TYPE_ARRAY) {
		*out = value;
		return 0;
	}
	/* iseq.c, iseq_pathobj: the path and the real path, which may be nil */
	r = read_element(t, info, value, 1, &real);
	if (r == 0 && !(real & 7) && read_words(t, real, &flags, 1) == 0 && (flags & TYPE_MASK) == TYPE_STRING)
		*out = real;
	else
		r = read_element(t, info, value, 0, out);
	return r;
}

int ruby_class_read(const struct runtime_target *t, const struct abi_ruby *info, uint64_t owner, struct buf *out,
		    bool *is_singleton)
{
	const struct abi_ruby_layout *l = &info->layout;
	bool of_object = false, is_cut = false;
	uint64_t flags, path;
	int r = l->class_path == ABI_RUBY_NONE || !owner ? -ENOENT : read_words(t, owner, &flags, 1);

	if (r == 0 && (flags & TYPE_MASK) == TYPE_CLASS && flags >> (l->singleton & 63) & 1) {
		of_object = true;
		r = read_words(t, owner + l->class_object, &owner, 1);
		if (r == 0)
			r = read_words(t, owner, &flags, 1);
	}
	if (r < 0)
		return r;
	if ((flags & TYPE_MASK) != TYPE_CLASS && (flags & TYPE_MASK) != TYPE_MODULE)
		return -ENOENT;
	r = read_words(t, owner + l->class_path, &path, 1);
	if (r == 0)
		r = path > NIL_MAX ? ruby_string_read(t, info, path, out, &is_cut) : -ENOENT;
	if (r == 0)
		*is_singleton = of_object;
	return r < 0 ? r : is_cut ? -ENOENT : 0;
}

int ruby_symbol_find(const struct runtime_target *t, const struct abi_ruby *info, uint64_t id, uint64_t *out)
{
	uint64_t serial = id > info->last_operator ? id >> SCOPE_SHIFT : id, array;
	int r;

	if (!id || !info->symbols || !info->last_operator)
		return -ENOENT;
	r = read_words(t, info->symbols + 16, &array, 1);
	if (r == 0)
		r = read_element(t, info, array, serial / SYMBOL_UNIT, &array);
	return r == 0 ? read_element(t, info, array, serial % SYMBOL_UNIT * 2, out) : r;
}
