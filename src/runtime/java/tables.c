/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/java/tables.h"

#include "base/buf.h"
#include "base/u64map.h"

#define ENTRIES_MAX 4096 /* of one table; 838 fields in OpenJDK 11 */
#define STRIDE_MAX 256
#define TEXT_MAX 256     /* of one name */
#define TEXTS_MAX MIB(1) /* of all names; 60 KiB in OpenJDK 11 */
#define PAGE 4096U
#define PAGES_MAX 1024 /* where names lie */
#define CHUNK KIB(16)  /* of a table, in one read */

#define X(id, name) [JAVA_SYMBOL_##id] = (name),
const char *const java_symbol_names[JAVA_SYMBOL_COUNT] = { JAVA_SYMBOLS(X) };
#undef X

struct text { /* in java_tables.texts */
	uint32_t at, len;
};

struct field {
	struct text type, name, type_string;
	bool is_static;
	uint64_t offset, address;
};

struct value { /* a type with its size, or a constant */
	struct text name;
	uint64_t value;
};

struct values {
	struct value *items;
	size_t count;
};

struct java_tables {
	struct field *fields;
	size_t field_count;
	struct values types, ints, longs;
	struct buf texts;
};

struct reading {
	const struct java_memory *memory;
	const uint64_t *symbols;
	uint64_t words[JAVA_SYMBOL_COUNT]; /* what lies at the symbols */
	uint64_t bias;
	struct java_tables *tables;
	struct u64map pages; /* number of the page -> index in page_bytes */
	struct buf page_bytes;
};

struct table { /* one of the four, while it is read */
	enum java_symbol start, stride, name;
	uint32_t end; /* bytes of an entry that are looked at */
};

/* ---- names ---- */

/* @at: the page's first byte. Return: 0 and its bytes, valid until the next call; -EBADMSG: too many; -errno. */
static int page_at(struct reading *r, uint64_t at, const uint8_t **out)
{
	uint32_t index = (uint32_t)(r->page_bytes.len / PAGE);
	void *room;
	int e;

	if (u64map_get(&r->pages, at / PAGE, &index) == 0) {
		*out = (const uint8_t *)r->page_bytes.ptr + (size_t)index * PAGE;
		return 0;
	}
	room = buf_reserve(&r->page_bytes, PAGE);
	if (!room)
		return r->page_bytes.error == -ENOMEM ? -ENOMEM : -EBADMSG;
	e = java_read(r->memory, room, PAGE, at);
	if (e < 0)
		return e;
	e = u64map_put(&r->pages, at / PAGE, index);
	if (e < 0)
		return e;
	buf_commit(&r->page_bytes, PAGE);
	*out = room;
	return 0;
}

/* The text at @at, into the tables; NULL pointers are empty. Names are literals of libjvm and lie close together. */
static int read_text(struct reading *r, uint64_t at, struct text *out)
{
	struct buf *texts = &r->tables->texts;
	size_t start = texts->len;

	while (at && texts->len - start < TEXT_MAX) {
		const uint8_t *page = NULL;
		size_t in_page = at % PAGE, left = PAGE - in_page, room = TEXT_MAX - (texts->len - start);
		int e = page_at(r, at - in_page, &page);
		size_t len;

		if (e < 0)
			return e;
		len = strnlen((const char *)page + in_page, MIN(left, room));
		buf_add(texts, page + in_page, len);
		if (texts->error)
			return texts->error == -ENOMEM ? -ENOMEM : -EBADMSG;
		if (len < MIN(left, room))
			break;
		at += len;
	}
	if (texts->len - start >= TEXT_MAX)
		return -EBADMSG;
	*out = (struct text){ (uint32_t)start, (uint32_t)(texts->len - start) };
	return 0;
}

/* ---- entries ---- */

static int count_entries(const uint8_t *bytes, size_t size, uint64_t stride, uint64_t name_at, size_t *count)
{
	for (size_t at = *count * stride; size - at >= stride; at += stride, ++*count)
		if (!java_u64(bytes, at + name_at))
			return 0;
	return -EAGAIN;
}

/* All entries of a table, without the last that ends it. Return: 0, and the number of them; -EBADMSG: it has no end. */
static int read_entries(struct reading *r, const struct table *t, struct buf *bytes, size_t *count)
{
	uint64_t at = r->words[t->start], stride = r->words[t->stride];
	uint32_t chunk = (uint32_t)(CHUNK / (stride ? stride : 1) * stride);

	if (stride < t->end || stride > STRIDE_MAX)
		return -EBADMSG;
	*count = 0;
	while (*count < ENTRIES_MAX) {
		uint32_t want = chunk;
		void *room = buf_reserve(bytes, want);
		int e;

		if (!room)
			return bytes->error == -ENOMEM ? -ENOMEM : -EBADMSG;
		e = java_read(r->memory, room, want, at + bytes->len);
		if (e < 0) { /* the mapping may end behind the table */
			want = (uint32_t)stride;
			e = java_read(r->memory, room, want, at + bytes->len);
		}
		if (e < 0)
			return e;
		buf_commit(bytes, want);
		if (count_entries((const uint8_t *)bytes->ptr, bytes->len, stride, r->words[t->name], count) == 0)
			return 0;
	}
	return -EBADMSG;
}

/* Offsets of members are small; each member lies within the entry. */
static int check_members(const struct reading *r, const enum java_symbol *members, size_t count, uint32_t *end)
{
	*end = 0;
	for (size_t i = 0; i < count; i++) {
		if (r->words[members[i]] > STRIDE_MAX - 8)
			return -EBADMSG;
		*end = MAX(*end, (uint32_t)r->words[members[i]] + 8);
	}
	return 0;
}

static int read_field(struct reading *r, const uint8_t *entry, struct field *f)
{
	int e = read_text(r, java_u64(entry, r->words[JAVA_SYMBOL_STRUCT_TYPE]), &f->type);

	if (e == 0)
		e = read_text(r, java_u64(entry, r->words[JAVA_SYMBOL_STRUCT_FIELD]), &f->name);
	if (e == 0)
		e = read_text(r, java_u64(entry, r->words[JAVA_SYMBOL_STRUCT_STRING]), &f->type_string);
	f->is_static = java_u32(entry, r->words[JAVA_SYMBOL_STRUCT_IS_STATIC]);
	f->offset = java_u64(entry, r->words[JAVA_SYMBOL_STRUCT_OFFSET]);
	f->address = java_u64(entry, r->words[JAVA_SYMBOL_STRUCT_ADDRESS]) - r->bias;
	return e;
}

static int read_fields(struct reading *r)
{
	static const enum java_symbol members[] = {
		JAVA_SYMBOL_STRUCT_TYPE,      JAVA_SYMBOL_STRUCT_FIELD,  JAVA_SYMBOL_STRUCT_STRING,
		JAVA_SYMBOL_STRUCT_IS_STATIC, JAVA_SYMBOL_STRUCT_OFFSET, JAVA_SYMBOL_STRUCT_ADDRESS,
	};
	struct table table = { JAVA_SYMBOL_STRUCTS, JAVA_SYMBOL_STRUCT_STRIDE, JAVA_SYMBOL_STRUCT_TYPE, 0 };
	scoped(buf_release) struct buf bytes = BUF_INIT(ENTRIES_MAX * STRIDE_MAX + CHUNK);
	struct java_tables *t = r->tables;
	size_t count;
	int e = check_members(r, members, ARRAY_SIZE(members), &table.end);

	if (e == 0)
		e = read_entries(r, &table, &bytes, &count);
	if (e < 0)
		return e;
	t->fields = calloc(count + 1, sizeof(*t->fields));
	if (!t->fields)
		return -ENOMEM;
	for (; e == 0 && t->field_count < count; t->field_count++)
		e = read_field(r, (const uint8_t *)bytes.ptr + t->field_count * r->words[JAVA_SYMBOL_STRUCT_STRIDE],
			       &t->fields[t->field_count]);
	return e;
}

/* @is_wide: values of eight bytes, not four with a sign. */
static int read_values(struct reading *r, struct table table, enum java_symbol value, bool is_wide, struct values *out)
{
	const enum java_symbol members[] = { table.name, value };
	scoped(buf_release) struct buf bytes = BUF_INIT(ENTRIES_MAX * STRIDE_MAX + CHUNK);
	size_t count;
	int e = check_members(r, members, ARRAY_SIZE(members), &table.end);

	if (e == 0)
		e = read_entries(r, &table, &bytes, &count);
	if (e < 0)
		return e;
	out->items = calloc(count + 1, sizeof(*out->items));
	if (!out->items)
		return -ENOMEM;
	for (; e == 0 && out->count < count; out->count++) {
		const uint8_t *entry = (const uint8_t *)bytes.ptr + out->count * r->words[table.stride];
		struct value *v = &out->items[out->count];

		e = read_text(r, java_u64(entry, r->words[table.name]), &v->name);
		v->value = is_wide ? java_u64(entry, r->words[value])
				   : (uint64_t)(int64_t)(int32_t)java_u32(entry, r->words[value]);
	}
	return e;
}

static void reading_release(struct reading *r)
{
	u64map_release(&r->pages);
	buf_release(&r->page_bytes);
	java_tables_free(r->tables);
}

/* The words at the symbols lie close together, but each may be elsewhere: 20 reads. */
static int read_words(struct reading *r)
{
	for (size_t i = 0; i < JAVA_SYMBOL_COUNT; i++) {
		int e = r->symbols[i] ? java_read_word(r->memory, r->symbols[i] + r->bias, &r->words[i]) : -EBADMSG;

		if (e < 0)
			return e;
	}
	return 0;
}

/* The tables may be filled by initialisers, in the order in which vmStructs.cpp has them: fields, types, ints, longs.
 * When the last one has been begun, the others are whole, and of that one nothing is needed here. */
static int read_all(struct reading *r)
{
	static const struct table ints = { JAVA_SYMBOL_INTS, JAVA_SYMBOL_INT_STRIDE, JAVA_SYMBOL_INT_NAME, 0 };
	static const struct table longs = { JAVA_SYMBOL_LONGS, JAVA_SYMBOL_LONG_STRIDE, JAVA_SYMBOL_LONG_NAME, 0 };
	static const struct table types = { JAVA_SYMBOL_TYPES, JAVA_SYMBOL_TYPE_STRIDE, JAVA_SYMBOL_TYPE_NAME, 0 };
	struct java_tables *t = r->tables;
	int e = read_values(r, longs, JAVA_SYMBOL_LONG_VALUE, true, &t->longs);

	if (e == 0)
		e = read_values(r, ints, JAVA_SYMBOL_INT_VALUE, false, &t->ints);
	if (e == 0)
		e = read_values(r, types, JAVA_SYMBOL_TYPE_SIZE, true, &t->types);
	if (e == 0)
		e = read_fields(r);
	if (e == 0 && (!t->longs.count || !t->ints.count || !t->types.count || !t->field_count))
		e = -EAGAIN;
	return e;
}

int java_tables_read(const struct java_memory *m, const uint64_t symbols[JAVA_SYMBOL_COUNT], uint64_t bias,
		     struct java_tables **out)
{
	scoped(reading_release) struct reading r = { .memory = m, .symbols = symbols, .bias = bias };
	int e;

	u64map_init(&r.pages, PAGES_MAX);
	r.page_bytes.max = PAGES_MAX * (size_t)PAGE;
	r.tables = calloc(1, sizeof(*r.tables));
	if (!r.tables)
		return -ENOMEM;
	r.tables->texts.max = TEXTS_MAX;
	e = read_words(&r);
	if (e == 0)
		e = read_all(&r);
	if (e < 0)
		return e;
	*out = r.tables;
	r.tables = NULL;
	return 0;
}

void java_tables_free(struct java_tables *t)
{
	if (!t)
		return;
	free(t->fields);
	free(t->types.items);
	free(t->ints.items);
	free(t->longs.items);
	buf_release(&t->texts);
	free(t);
}

/* ---- look-up: by a plain search, some fifty times for a file ---- */

static bool is_text(const struct java_tables *t, struct text text, const char *name)
{
	return str_eq(str_n(t->texts.ptr + text.at, text.len), str_of(name));
}

int java_tables_field(const struct java_tables *t, const char *type, const char *field, struct java_field *out)
{
	for (size_t i = 0; i < t->field_count; i++) {
		const struct field *f = &t->fields[i];

		if (!is_text(t, f->name, field) || !is_text(t, f->type, type))
			continue;
		*out = (struct java_field){ str_n(t->texts.ptr + f->type_string.at, f->type_string.len), f->is_static,
					    f->offset, f->address };
		return 0;
	}
	return -ENOENT;
}

static int find_value(const struct java_tables *t, const struct values *values, const char *name, uint64_t *out)
{
	for (size_t i = 0; i < values->count; i++) {
		if (!is_text(t, values->items[i].name, name))
			continue;
		*out = values->items[i].value;
		return 0;
	}
	return -ENOENT;
}

int java_tables_size(const struct java_tables *t, const char *type, uint64_t *out)
{
	return find_value(t, &t->types, type, out);
}

int java_tables_constant(const struct java_tables *t, const char *name, int64_t *out)
{
	uint64_t value;
	int r = find_value(t, &t->ints, name, &value);

	if (r < 0)
		r = find_value(t, &t->longs, name, &value);
	if (r == 0)
		*out = (int64_t)value;
	return r;
}

uint32_t java_width(struct str type_string)
{
	static const struct {
		struct str name;
		uint32_t width;
	} widths[] = {
		{ { "address", 7 }, 8 },
		{ { "bool", 4 }, 1 },
		{ { "char", 4 }, 1 },
		{ { "int", 3 }, 4 },
		{ { "int16_t", 7 }, 2 },
		{ { "int64_t", 7 }, 8 },
		{ { "intptr_t", 8 }, 8 },
		{ { "intx", 4 }, 8 },
		{ { "jbyte", 5 }, 1 },
		{ { "jint", 4 }, 4 },
		{ { "jlong", 5 }, 8 },
		{ { "long", 4 }, 8 },
		{ { "pid_t", 5 }, 4 },
		{ { "short", 5 }, 2 },
		{ { "size_t", 6 }, 8 },
		{ { "u1", 2 }, 1 },
		{ { "u2", 2 }, 2 },
		{ { "u4", 2 }, 4 },
		{ { "u8", 2 }, 8 },
		{ { "uint", 4 }, 4 },
		{ { "uint16_t", 8 }, 2 },
		{ { "uint32_t", 8 }, 4 },
		{ { "uint64_t", 8 }, 8 },
		{ { "uintptr_t", 9 }, 8 },
		{ { "unsigned char", 13 }, 1 },
		{ { "unsigned int", 12 }, 4 },
		{ { "unsigned short", 14 }, 2 },
		{ { "volatile signed char", 20 }, 1 },
		{ { "const uint", 10 }, 4 },
		{ { "OopHandle", 9 }, 8 },
		{ { "OSThread::thread_id_t", 21 }, 4 },
	};

	if (str_ends(type_string, STR("*")) || str_ends(type_string, STR("*const")))
		return 8;
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++)
		if (str_eq(widths[i].name, type_string))
			return widths[i].width;
	return 0;
}
