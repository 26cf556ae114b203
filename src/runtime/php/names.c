/* SPDX-License-Identifier: Apache-2.0 */
/* A name is "function" or "Class::method"; a file's own code, included or the outermost, and that of eval() is
 * "<main>", as phpspy has it. The file of an extension's function is "<internal>". */
#include "runtime/php/names.h"

#include "base/cur.h"
#include "base/utf8.h"
#include "walk/walk_php.h"

#define NO_NAME STR("<main>")
#define NO_FILE STR("<internal>")

struct text { /* as it lies there */
	struct str bytes;
	bool is_cut;
};

struct texts {
	struct text class_name, name, file;
	uint64_t name_hash, file_hash; /* 0: not worked out */
	bool is_internal, is_eval;
};

/* Bytes in an encoding that nobody tells: what is no UTF-8 is taken as Latin-1. */
static void add_text(struct buf *room, const struct text *text)
{
	struct str s = text->is_cut ? utf8_uncut(text->bytes) : text->bytes;

	if (utf8_valid(s)) {
		buf_adds(room, s);
		return;
	}
	for (size_t i = 0; i < s.len; i++)
		utf8_add(room, (uint8_t)s.ptr[i]);
}

/* "class@anonymous", a zero, and where it is declared: that is for the engine. */
static void hide_place(struct text *class_name)
{
	ptrdiff_t zero = str_find(class_name->bytes, '\0');

	if (zero < 0)
		return;
	class_name->bytes = str_first(class_name->bytes, (size_t)zero);
	class_name->is_cut = false;
}

/* ---- texts that are being freed ---- */

/* DJBX33A. Source: php-src, Zend/zend_string.h, zend_inline_hash_func(). */
static uint64_t hash_of(struct str s)
{
	uint64_t hash = 5381;

	for (size_t i = 0; i < s.len; i++)
		hash = hash * 33 + (uint8_t)s.ptr[i];
	return hash | UINT64_C(1) << 63;
}

/* Is the text still the one whose hash is in its head? That of what is just being freed may be half another one. */
static bool has_hash(const struct text *t, uint64_t hash)
{
	return !hash || t->is_cut || hash_of(t->bytes) == hash;
}

static bool is_printable(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((uint8_t)s.ptr[i] < ' ' || s.ptr[i] == 0x7f)
			return false;
	return utf8_valid(s);
}

/* From 8.1 on nobody works out the hash of an eval()'s file, whose frame outlives it by some instructions; from 8.4 on
 * freeing it writes over its end. Source: php-src, Zend/zend_alloc.c, zend_mm_set_next_free_slot(). */
static bool is_place_of_eval(struct str file)
{
	const struct str called = STR(" : eval()"), rest = STR("'d code");
	struct str behind = file;
	ptrdiff_t at;

	while ((at = str_search(behind, called)) >= 0) /* of one in another one */
		behind = str_skip(behind, (size_t)at + called.len);
	if (behind.len == file.len)
		return is_printable(file); /* "Command line code", or what a program with PHP inside calls it */
	return str_eq(behind, rest);
}

static bool is_sound(const struct texts *t)
{
	if (!has_hash(&t->name, t->name_hash) || (!t->is_internal && !has_hash(&t->file, t->file_hash)))
		return false;
	return !t->is_eval || t->file_hash || t->file.is_cut || is_place_of_eval(t->file.bytes);
}

/* No function or file has a zero in its name: such a text is memory that became something else. */
static int make(struct texts *t, uint32_t first_line, struct buf *room, struct runtime_function *out)
{
	size_t start = room->len, name;

	if (str_find(t->name.bytes, '\0') >= 0 || str_find(t->file.bytes, '\0') >= 0 || !is_sound(t))
		return -ENODATA;
	hide_place(&t->class_name);
	if (t->is_internal)
		buf_adds(room, NO_FILE);
	else
		add_text(room, &t->file);
	name = room->len;
	if (t->name.bytes.len && t->class_name.bytes.len) {
		add_text(room, &t->class_name);
		buf_adds(room, STR("::"));
	}
	if (t->name.bytes.len)
		add_text(room, &t->name);
	else
		buf_adds(room, NO_NAME);
	if (room->error)
		return room->error;
	*out = (struct runtime_function){
		.file = str_n(room->ptr + start, name - start),
		.name = str_n(room->ptr + name, room->len - name),
		.first_line = first_line <= INT32_MAX ? (int32_t)first_line : 0,
		.is_cut = t->class_name.is_cut || t->name.is_cut || t->file.is_cut,
	};
	return 0;
}

/* ---- as the record has it ---- */

static struct text take(struct cur *c, uint16_t sent, uint32_t size)
{
	const uint8_t *bytes = cur_bytes(c, align_up(sent, 8));

	if (sent > size)
		c->bad = true;
	return (struct text){ bytes ? str_n((const char *)bytes, sent) : STR(""), sent < size };
}

int php_decode_name(const uint8_t *bytes, size_t size, struct buf *room, struct runtime_function *out)
{
	struct cur c = cur_of(bytes, size);
	const uint8_t *p = cur_bytes(&c, sizeof(struct abi_php_name));
	struct abi_php_name head;
	struct texts t;

	if (!p)
		return -EBADMSG;
	memcpy(&head, p, sizeof(head));
	t.class_name = take(&c, head.class_sent, head.class_size);
	t.name = take(&c, head.name_sent, head.name_size);
	t.file = take(&c, head.file_sent, head.file_size);
	t.name_hash = head.name_hash;
	t.file_hash = head.file_hash;
	t.is_internal = head.type == ABI_PHP_INTERNAL;
	t.is_eval = head.type == ABI_PHP_EVAL;
	if (c.bad)
		return -EBADMSG;
	if ((head.name_size && !head.name_sent) || (head.class_size && !head.class_sent) ||
	    (!t.is_internal && head.file_size && !head.file_sent))
		return -ENODATA; /* its page was not in memory */
	return make(&t, head.first_line, room, out);
}

/* ---- as the process has it ---- */

#define TEXT_MAX 4096 /* bytes */

struct world {
	const struct runtime_target *target;
	int error;
};

static int world_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct world *w = self;
	int r = w->target->read(w->target->self, dst, size, at);

	if (r < 0)
		w->error = r;
	return r;
}

/* Appends a zend_string's bytes. Return: 0 or -errno. */
static int take_string(const struct runtime_target *t, uint64_t at, struct buf *out, bool *is_cut, uint64_t *hash)
{
	uint64_t head[2]; /* hash, length */
	size_t length;
	uint8_t *to;
	int r;

	if (!at)
		return 0;
	r = t->read(t->self, head, sizeof(head), at + ABI_PHP_STRING_HASH);
	if (r < 0 || !head[1])
		return r;
	*hash = head[0];
	*is_cut = head[1] > TEXT_MAX;
	length = (size_t)MIN(head[1], (uint64_t)TEXT_MAX);
	to = buf_reserve(out, length);
	if (!to)
		return out->error;
	r = t->read(t->self, to, (uint32_t)length, at + ABI_PHP_STRING_BYTES);
	if (r == 0)
		buf_commit(out, length);
	return r;
}

static int class_name_of(const struct runtime_target *t, uint64_t scope, uint64_t *out)
{
	*out = 0;
	return scope ? t->read(t->self, out, sizeof(*out), scope + ABI_PHP_CLASS_NAME) : 0;
}

/* Is the function at @key the one that @cookie is of? Its words are in scratch then. Return: 0, -ESTALE or -errno. */
static int check(struct walk *w, struct world *world, uint64_t key, uint64_t cookie, bool *is_program)
{
	uint8_t type;

	if (cookie == ABI_PHP_NO_COOKIE) /* that is of texts that cannot be read */
		return -ESTALE;
	world->error = 0;
	if (walk_php_read_func(w, key))
		return world->error ? world->error : -ESTALE;
	type = (uint8_t)walk_php_func_word(w, ABI_PHP_FUNC_TYPE);
	*is_program = type == ABI_PHP_USER || type == ABI_PHP_EVAL;
	return walk_php_find_cookie(w, *is_program) == cookie ? 0 : -ESTALE;
}

static int read_texts(const struct runtime_target *t, struct walk *w, bool is_program, struct buf *raw,
		      struct texts *out)
{
	uint64_t class_name = 0, unused;
	size_t name, file;
	int r = class_name_of(t, walk_php_func_word(w, ABI_PHP_FUNC_SCOPE), &class_name);

	if (r == 0)
		r = take_string(t, class_name, raw, &out->class_name.is_cut, &unused);
	name = raw->len;
	if (r == 0)
		r = take_string(t, walk_php_func_word(w, ABI_PHP_FUNC_NAME), raw, &out->name.is_cut, &out->name_hash);
	file = raw->len;
	if (r == 0 && is_program)
		r = take_string(t, walk_php_func_word(w, walk_php_info(w)->layout.func_file), raw, &out->file.is_cut,
				&out->file_hash);
	if (r < 0)
		return r;
	out->class_name.bytes = str_first(buf_str(raw), name);
	out->name.bytes = str_first(str_skip(buf_str(raw), name), file - name);
	out->file.bytes = str_skip(buf_str(raw), file);
	return 0;
}

int php_read_name(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		  struct buf *room, struct runtime_function *out)
{
	scoped(buf_release) struct buf raw = BUF_INIT(4 * TEXT_MAX);
	scoped(freep) struct walk *w = calloc(1, sizeof(*w));
	struct world world = { .target = target };
	const struct walk_world reads = { .read = world_read, .self = &world };
	struct texts t = { 0 };
	uint32_t first_line;
	bool is_program;
	int r;

	if (!w)
		return -ENOMEM;
	w->world = &reads;
	memcpy(w->info, info, sizeof(struct abi_php));
	r = check(w, &world, key, cookie, &is_program);
	if (r < 0)
		return r;
	first_line = is_program ? (uint32_t)walk_php_func_word(w, walk_php_info(w)->layout.func_line) : 0;
	t.is_internal = !is_program;
	t.is_eval = (uint8_t)walk_php_func_word(w, ABI_PHP_FUNC_TYPE) == ABI_PHP_EVAL;
	r = read_texts(target, w, is_program, &raw, &t);
	if (r == 0) /* all of it was that function's */
		r = check(w, &world, key, cookie, &is_program);
	return r < 0 ? r : make(&t, first_line, room, out);
}

/* A frame has its line. */
int32_t php_line(const struct runtime_function *function, uint32_t position)
{
	(void)function;
	return position <= INT32_MAX ? (int32_t)position : 0;
}
