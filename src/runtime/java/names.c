/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/java/names.h"

#include "base/utf8.h"
#include "runtime/java/lines.h"
#include "runtime/java/text.h"
#include "walk/java_identity.h"

#define HEAD_MAX 256 /* of Method, ConstMethod, ConstantPool: 88, 56, 72 bytes */
#define POOL_MAX UINT16_MAX
#define LINKER_POOL 3    /* entries of the pool of what links method handles; any class has more */
#define CONST_MAX MIB(1) /* a method has at most 64 KiB of bytecode, and tables behind it */

bool java_include_modifiers;

/* ---- objects ---- */

struct parts { /* of a method, while it is read */
	uint64_t const_method, pool, class;
	uint32_t access, code_size, const_size, flags, pool_length;
	uint16_t name, signature, source; /* indices into the pool */
};

/* Objects of the metaspace are aligned to words. */
static int read_head(const struct java_process *p, uint8_t *head, uint32_t size, uint64_t at)
{
	if (!at || at & 7 || size > HEAD_MAX)
		return -EBADMSG;
	return java_read(&p->memory, head, size, at);
}

static int read_method(const struct java_process *p, uint64_t method, struct parts *out)
{
	const struct java_layout *l = p->layout;
	uint8_t head[HEAD_MAX];
	int r = l->method_const + 8U > l->method_size || l->method_access + 2U > l->method_size
			? -EBADMSG
			: read_head(p, head, l->method_size, method);

	if (r < 0)
		return r;
	out->const_method = java_u64(head, l->method_const);
	out->access = java_u16(head, l->method_access);
	return 0;
}

static int read_const(const struct java_process *p, struct parts *out)
{
	const struct java_layout *l = p->layout;
	const uint32_t ends[] = { l->const_pool + 8U,      l->const_size + 4U, l->const_flags + 4U,
				  l->const_code_size + 2U, l->const_name + 2U, l->const_signature + 2U };
	uint8_t head[HEAD_MAX];
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		r = ends[i] > l->const_header ? -EBADMSG : r;
	r = r ? r : read_head(p, head, l->const_header, out->const_method);
	if (r < 0)
		return r;
	out->pool = java_u64(head, l->const_pool);
	out->const_size = java_u32(head, l->const_size);
	out->flags =
		l->flags & JAVA_LAYOUT_WIDE_FLAGS ? java_u32(head, l->const_flags) : java_u16(head, l->const_flags);
	out->code_size = java_u16(head, l->const_code_size);
	out->name = java_u16(head, l->const_name);
	out->signature = java_u16(head, l->const_signature);
	return out->const_size > CONST_MAX / 8 ? -EBADMSG : 0;
}

static int read_pool(const struct java_process *p, struct parts *out)
{
	const struct java_layout *l = p->layout;
	uint8_t head[HEAD_MAX];
	uint16_t source;
	int r = l->pool_holder + 8U > l->pool_header || l->pool_length + 4U > l->pool_header
			? -EBADMSG
			: read_head(p, head, l->pool_header, out->pool);

	if (r < 0)
		return r;
	out->class = java_u64(head, l->pool_holder);
	out->pool_length = java_u32(head, l->pool_length);
	if (out->pool_length > POOL_MAX + 1U || out->class & 7)
		return -EBADMSG;
	if (!(l->flags & JAVA_LAYOUT_SOURCE_IN_CLASS)) {
		if (l->pool_source + 2U > l->pool_header)
			return -EBADMSG;
		out->source = java_u16(head, l->pool_source);
		return 0;
	}
	r = java_read(&p->memory, &source, sizeof(source), out->class + l->pool_source);
	out->source = source;
	return r;
}

/* ---- texts ---- */

/* Bytes of a Symbol, at most JAVA_TEXT_MAX of them. */
static int read_symbol(const struct java_process *p, uint64_t symbol, struct buf *out, bool *is_cut)
{
	const struct java_layout *l = p->layout;
	uint16_t length;
	uint32_t size;
	void *room;
	int r = !symbol || symbol & 7 ? -EBADMSG
				      : java_read(&p->memory, &length, sizeof(length), symbol + l->symbol_length);

	if (r < 0)
		return r;
	size = MIN(length, (uint32_t)JAVA_TEXT_MAX);
	*is_cut |= size < length;
	room = size ? buf_reserve(out, size) : NULL;
	if (size && !room)
		return out->error;
	r = size ? java_read(&p->memory, room, size, symbol + l->symbol_body) : 0;
	if (r == 0 && size)
		buf_commit(out, size);
	return r;
}

static int check_loader(const struct java_process *p, const struct parts *m)
{
	uint64_t loader;
	int r = java_read_word(&p->memory, m->class + p->layout->class_loader, &loader);

	return r < 0 ? r : loader == p->only_loader ? 0 : -ESTALE;
}

static int read_entry(const struct java_process *p, const struct parts *m, uint16_t index, struct buf *out,
		      bool *is_cut)
{
	uint64_t symbol;
	int r = !index || index >= m->pool_length
			? -EBADMSG
			: java_read_word(&p->memory, m->pool + p->layout->pool_header + 8ULL * index, &symbol);

	return r < 0 ? r : read_symbol(p, symbol, out, is_cut);
}

/* What a cut has left of the last character, and of an address in a class's name, which is taken out of whole ones. */
static struct str without_rest(struct str text, bool is_class)
{
	ptrdiff_t plus = is_class ? str_rfind(text, '+') : -1;

	return plus >= 0 ? str_first(text, (size_t)plus) : utf8_uncut(text);
}

/* No name has three dots in a row. */
static void add_text(struct buf *room, struct str text, bool is_class, bool is_cut)
{
	if (is_cut)
		text = without_rest(text, is_class);
	if (is_class && !is_cut)
		java_class_add(room, text);
	else
		java_text_add(room, text);
	if (is_cut)
		buf_adds(room, STR("..."));
}

static int add_class(const struct java_process *p, const struct parts *m, struct buf *room, bool *is_cut)
{
	scoped(buf_release) struct buf text = BUF_INIT(JAVA_TEXT_MAX);
	bool is_long = false;
	uint64_t symbol;
	int r = java_read_word(&p->memory, m->class + p->layout->class_name, &symbol);

	if (r == 0)
		r = read_symbol(p, symbol, &text, &is_long);
	if (r == 0)
		add_text(room, buf_str(&text), true, is_long);
	*is_cut |= is_long;
	return r;
}

static int add_entry(const struct java_process *p, const struct parts *m, uint16_t index, struct buf *room,
		     bool *is_cut)
{
	scoped(buf_release) struct buf text = BUF_INIT(JAVA_TEXT_MAX);
	bool is_long = false;
	int r = read_entry(p, m, index, &text, &is_long);

	if (r == 0)
		add_text(room, buf_str(&text), false, is_long);
	*is_cut |= is_long;
	return r;
}

static int add_name(const struct java_process *p, const struct parts *m, struct buf *room, bool *is_cut)
{
	int r = add_class(p, m, room, is_cut);

	buf_addc(room, '.');
	if (r == 0)
		r = add_entry(p, m, m->name, room, is_cut);
	if (r == 0)
		r = add_entry(p, m, m->signature, room, is_cut);
	return r ? r : room->error;
}

/* The table lies behind the bytecode, and other tables behind it. */
static int add_lines(const struct java_process *p, const struct parts *m, struct buf *room, struct java_method *out)
{
	const struct java_layout *l = p->layout;
	uint64_t start = (uint64_t)l->const_header + m->code_size, end = (uint64_t)m->const_size * 8;
	scoped(buf_release) struct buf bytes = BUF_INIT(JAVA_LINES_MAX);
	uint32_t size = (uint32_t)MIN(end - start, JAVA_LINES_MAX);
	void *there;
	size_t used;
	int r;

	if (!(m->flags & l->const_has_lines) || start >= end)
		return 0;
	there = buf_reserve(&bytes, size);
	if (!there)
		return bytes.error;
	r = java_read(&p->memory, there, size, m->const_method + start);
	if (r < 0)
		return r;
	used = java_lines_size(cur_of(there, size), l->flags & JAVA_LAYOUT_NO_ZERO, &out->first_line);
	buf_add(room, there, used); /* none, if it has no end here */
	out->lines = used;
	return room->error;
}

/* Generated classes have none. Nor has what links method handles, whose pool has three entries and any number there:
 * nobody writes it. Source: OpenJDK 25, method.cpp, Method::make_method_handle_intrinsic(). */
static bool has_source(const struct parts *m)
{
	return m->source && m->source < m->pool_length && m->pool_length != LINKER_POOL;
}

int java_method_read(const struct java_process *p, uint64_t method, bool with_modifiers, struct buf *room,
		     struct java_method *out)
{
	struct java_method found = { 0 };
	size_t start = room->len;
	struct parts m = { 0 };
	int r = read_method(p, method, &m);

	r = r ? r : read_const(p, &m);
	r = r ? r : read_pool(p, &m);
	if (r == 0 && p->only_loader)
		r = check_loader(p, &m);
	if (r == 0 && with_modifiers)
		java_modifiers_add(room, m.access);
	r = r ? r : add_name(p, &m, room, &found.is_cut);
	found.name = room->len - start;
	if (r == 0 && has_source(&m))
		r = add_entry(p, &m, m.source, room, &found.is_cut);
	found.file = room->len - start - found.name;
	r = r ? r : add_lines(p, &m, room, &found);
	r = r ? r : room->error;
	if (r < 0)
		return r;
	found.const_method = m.const_method;
	found.code_size = m.code_size;
	*out = found;
	return 0;
}

/* ---- as struct runtime asks for them ---- */

int java_epoch(const struct runtime_target *target, const void *info_bytes, uint64_t *out)
{
	const struct abi_java *info = info_bytes;

	return info->epoch_at ? target->read(target->self, out, sizeof(*out), info->epoch_at) : -ENOENT;
}

/* The loader that has java.lang.String. */
static int boot_loader(const struct java_process *p, uint64_t *out)
{
	const struct java_layout *l = p->layout;
	uint64_t class;
	int r = !l->string_class || l->class_loader == JAVA_NONE
			? -ESTALE
			: java_read_word(&p->memory, l->string_class + p->bias, &class);

	r = r ? r : java_read_word(&p->memory, class + l->class_loader, out);
	return r ? r : *out ? 0 : -ESTALE;
}

/*
 * May what lies in memory now be taken for what lay there at a sample?
 *
 * While no class was unloaded, it may. Afterwards only classes of the boot loader may be, which are never unloaded:
 * p->only_loader is set to that one. Return: 0; -ESTALE: nothing may be; the reader's error.
 */
static int check_epoch(struct java_process *p, const struct abi_java *info, uint64_t cookie)
{
	uint64_t now;
	int r;

	if (!info->epoch_at || cookie & ABI_JAVA_FULL) /* check_identity() knows */
		return 0;
	r = java_read_word(&p->memory, info->epoch_at, &now);
	if (r < 0 || (now & 0xffff) == cookie >> ABI_JAVA_COOKIE_BITS)
		return r;
	return boot_loader(p, &p->only_loader);
}

static int read_hashed(const struct java_process *p, uint64_t at, uint64_t *symbol, uint64_t *out)
{
	uint16_t hash = 0;
	int r = java_read_word(&p->memory, at, symbol);

	r = r ? r : java_read(&p->memory, &hash, sizeof(hash), *symbol + p->layout->symbol_hash);
	*out = *symbol | (uint64_t)hash << ABI_JAVA_COOKIE_BITS;
	return r;
}

static int read_end(const struct java_process *p, uint64_t symbol, uint64_t *out)
{
	uint64_t word = 0;
	uint16_t length;
	int r = java_read(&p->memory, &length, sizeof(length), symbol + p->layout->symbol_length);

	r = r ? r : java_read_word(&p->memory, java_identity_end_at(symbol + p->layout->symbol_body, length), &word);
	*out = java_identity_end(word, length);
	return r;
}

/* As walk_java_identify(). */
static int check_identity(const struct java_process *p, uint64_t key, uint64_t cookie)
{
	const uint64_t mask = (1ULL << ABI_JAVA_COOKIE_BITS) - 1, method = key & mask;
	const struct java_layout *l = p->layout;
	uint64_t places[3];
	uint64_t hash = 0, symbol = 0, hashed, end = 0;
	struct parts m = { 0 };
	int r = read_method(p, method, &m);

	r = r ? r : read_const(p, &m);
	r = r ? r : read_pool(p, &m);
	if (r < 0)
		return r;
	places[0] = m.class + l->class_name;
	places[1] = m.pool + l->pool_header + 8ULL * m.name;
	places[2] = m.pool + l->pool_header + 8ULL * m.signature;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(places); i++) {
		r = read_hashed(p, places[i], &symbol, &hashed);
		if (r == 0 && i == 0)
			r = read_end(p, symbol, &end);
		hash = r == 0 ? java_identity_mix(i ? hash : end, hashed) : 0;
	}
	if (r < 0)
		return r;
	return java_identity_key(method, m.const_method, m.pool) == key && java_identity_name(hash) == (cookie & mask)
		       ? 0
		       : -ESTALE;
}

static int check_address(const struct java_process *p, uint64_t method, uint64_t cookie)
{
	uint64_t const_method, mask = ABI_JAVA_FULL - 1;
	int r = java_read_word(&p->memory, method + p->layout->method_const, &const_method);

	return r < 0 ? r : (const_method & mask) == (cookie & mask) ? 0 : -ESTALE;
}

/* Is it the method that was sampled? Return: 0; -ESTALE: another one lies there; the reader's error. */
static int check_method(const struct java_process *p, uint64_t method, uint64_t cookie)
{
	if (cookie & ABI_JAVA_FULL) {
		int r = check_identity(p, method, cookie);

		return r == -EBADMSG ? -ESTALE : r;
	}
	return check_address(p, method, cookie);
}

int java_read_name(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		   struct buf *room, struct runtime_function *out)
{
	struct java_process p = java_process_of(target);
	size_t start = room->len;
	struct java_method m;
	int r = !cookie ? -ESTALE : p.layout ? check_epoch(&p, info, cookie) : -ENOMEM; /* 0: nobody could tell */

	r = r ? r : check_method(&p, key, cookie);
	r = r ? r : java_method_read(&p, key & ((1ULL << ABI_JAVA_COOKIE_BITS) - 1), java_include_modifiers, room, &m);
	r = r ? r : check_method(&p, key, cookie);
	if (r < 0)
		return r;
	*out = (struct runtime_function){
		.name = str_n(room->ptr + start, m.name),
		.file = str_n(room->ptr + start + m.name, m.file),
		.kind = MODEL_KIND_JAVA_INTERPRETED,
		.first_line = m.first_line,
		.is_cut = m.is_cut,
		.lines = { (const uint8_t *)room->ptr + start + m.name + m.file, (uint32_t)m.lines },
		.lines_whole = (uint32_t)m.lines,
		.version_major = p.layout->version,
	};
	return 0;
}

/* A cut text ends the name: more is read while the method is there. */
int java_decode_name(const uint8_t *bytes, size_t size, struct buf *room, struct runtime_function *out)
{
	struct cur in = cur_of(bytes, size);
	uint16_t sizes[ABI_JAVA_TEXTS];
	size_t start = room->len;
	bool is_cut = false;

	if (java_include_modifiers) /* they are not in it */
		return -ENOTSUP;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		sizes[i] = cur_le16(&in);
	ignore(cur_le16(&in));
	for (size_t i = 0; i < ARRAY_SIZE(sizes) && !is_cut; i++) {
		size_t sent = MIN(sizes[i], (uint16_t)ABI_JAVA_TEXT_BYTES);
		struct str text = str_n((const char *)cur_bytes(&in, align_up(sent, 8)), sent);

		if (in.bad || !sent) /* none of the three is empty */
			return -EBADMSG;
		is_cut = sent < sizes[i];
		add_text(room, text, i == 0, is_cut);
		if (i == 0 && !is_cut)
			buf_addc(room, '.');
	}
	if (room->len == start)
		return -EBADMSG;
	*out = (struct runtime_function){
		.name = str_n(room->ptr + start, room->len - start),
		.kind = MODEL_KIND_JAVA_INTERPRETED,
		.is_cut = true, /* it lacks the file and lines */
	};
	return room->error;
}

uint64_t java_lasting(uint64_t cookie)
{
	return cookie & ABI_JAVA_FULL ? cookie & ((1ULL << ABI_JAVA_COOKIE_BITS) - 1) : 0;
}

int32_t java_line(const struct runtime_function *function, uint32_t position)
{
	bool no_zero = function->version_major >= 21; /* as JAVA_LAYOUT_NO_ZERO */

	if (position == ABI_JAVA_NO_INDEX || !function->lines.size)
		return function->first_line;
	return java_lines_find(cur_of(function->lines.bytes, function->lines.size), no_zero, position);
}
