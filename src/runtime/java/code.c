/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/java/code.h"

#include "base/u64map.h"
#include "runtime/java/lines.h"

#define HEAD_MAX 512    /* of an nmethod: 376 bytes in 11 */
#define INFO_MAX MIB(4) /* PcDescs and scopes of one; 100 KiB are many */
#define METADATA_MAX KIB(256)
#define LINES_WORK_MAX MIB(16) /* bytes of line tables that are gone through for one, all scopes together */
#define UNREADABLE UINT16_MAX  /* no number of a method: one that could not be read */

_Static_assert(JAVA_CODE_METHODS_MAX < UNREADABLE, "it is told from numbers");

/* ---- the header ---- */

/* Offsets that a header of @size bytes must have. */
static bool fits(const struct java_layout *l, uint32_t size)
{
	const uint16_t words[] = { l->nm_method,
				   l->flags & JAVA_LAYOUT_IMMUTABLE ? l->nm_immutable_data : 0,
				   l->flags & JAVA_LAYOUT_RELATIVE ? 0 : l->nm_scopes_data,
				   l->flags & JAVA_LAYOUT_RELATIVE ? 0 : l->blob_code_begin,
				   l->flags & JAVA_LAYOUT_RELATIVE ? 0 : l->blob_code_end,
				   l->flags & JAVA_LAYOUT_MUTABLE ? l->blob_mutable_data : 0 };
	const uint16_t halves[] = { l->nm_compile_id,
				    l->nm_scopes_pcs,
				    l->nm_scopes_pcs_end,
				    l->nm_level,
				    l->flags & JAVA_LAYOUT_IMMUTABLE ? l->nm_immutable_size : 0,
				    l->flags & JAVA_LAYOUT_RELATIVE ? l->nm_scopes_data : 0,
				    l->flags & JAVA_LAYOUT_RELATIVE ? l->blob_code_begin : 0,
				    l->flags & JAVA_LAYOUT_RELATIVE ? l->blob_code_end : 0,
				    l->flags & JAVA_LAYOUT_MUTABLE ? l->blob_relocation_size : l->nm_metadata,
				    l->flags & JAVA_LAYOUT_MUTABLE ? l->blob_mutable_size : 0 };

	if (size > HEAD_MAX)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i] + 8U > size)
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(halves); i++)
		if (halves[i] + 4U > size)
			return false;
	return true;
}

/* Up to 22: all of it lies in the blob; from 23 on the debug information is elsewhere. */
static void place_info(const struct java_layout *l, const uint8_t *head, struct java_code *c)
{
	uint64_t base = l->flags & JAVA_LAYOUT_IMMUTABLE ? java_u64(head, l->nm_immutable_data) : c->at;

	c->pcs = base + java_u32(head, l->nm_scopes_pcs);
	c->pcs_end = base + java_u32(head, l->nm_scopes_pcs_end);
	if (l->flags & JAVA_LAYOUT_RELATIVE) {
		c->code_begin = c->at + java_u32(head, l->blob_code_begin);
		c->code_end = c->at + java_u32(head, l->blob_code_end);
		c->data = base + java_u32(head, l->nm_scopes_data);
		c->data_end = l->flags & JAVA_LAYOUT_IMMUTABLE ? base + java_u32(head, l->nm_immutable_size) : c->pcs;
	} else {
		c->code_begin = java_u64(head, l->blob_code_begin);
		c->code_end = java_u64(head, l->blob_code_end);
		c->data = java_u64(head, l->nm_scopes_data);
		c->data_end = c->pcs;
	}
	if (l->flags & JAVA_LAYOUT_MUTABLE) {
		base = java_u64(head, l->blob_mutable_data);
		c->metadata = base + java_u32(head, l->blob_relocation_size);
		c->metadata_end = base + java_u32(head, l->blob_mutable_size);
	} else {
		c->metadata = c->at + java_u32(head, l->nm_metadata);
		c->metadata_end = c->data;
	}
}

static bool is_span(uint64_t start, uint64_t end, uint64_t max)
{
	return start <= end && end - start <= max;
}

int java_code_read(const struct java_process *p, uint64_t at, struct java_code *out)
{
	const struct java_layout *l = p->layout;
	uint32_t size = l->nmethod_header_size;
	struct java_code c = { .at = at };
	uint8_t head[HEAD_MAX];
	int r = !at || at & 7 || !fits(l, size) ? -EBADMSG : java_read(&p->memory, head, size, at);

	if (r < 0)
		return r;
	c.method = java_u64(head, l->nm_method);
	c.compile_id = java_u32(head, l->nm_compile_id);
	c.level = head[l->nm_level];
	place_info(l, head, &c);
	if (!is_span(c.pcs, c.pcs_end, INFO_MAX) || !is_span(c.data, c.data_end, INFO_MAX) ||
	    !is_span(c.metadata, c.metadata_end, METADATA_MAX) || !is_span(c.code_begin, c.code_end, INT32_MAX))
		return -EBADMSG;
	*out = c;
	return 0;
}

/* ---- its debug information ---- */

struct reading {
	const struct java_process *process;
	struct java_scopes scopes;
	struct buf pcs, data, metadata;
	struct buf methods;  /* in the form of java_scopes_expand() */
	struct buf lines;    /* their line tables ... */
	struct buf places;   /* ... and where each is: two u32 */
	struct u64map known; /* index into metadata -> number of the method, or UNREADABLE */
	uint32_t method_count;
	uint64_t lines_work;
};

static void reading_release(struct reading *r)
{
	java_scopes_release(&r->scopes);
	buf_release(&r->pcs);
	buf_release(&r->data);
	buf_release(&r->metadata);
	buf_release(&r->methods);
	buf_release(&r->lines);
	buf_release(&r->places);
	u64map_release(&r->known);
}

static int read_span(const struct java_process *p, uint64_t start, uint64_t end, struct buf *out)
{
	uint32_t size = (uint32_t)(end - start);
	void *room = size ? buf_reserve(out, size) : NULL;
	int r;

	if (!size)
		return 0;
	if (!room)
		return out->error;
	r = java_read(&p->memory, room, size, start);
	if (r == 0)
		buf_commit(out, size);
	return r;
}

static void add_u16(struct buf *out, uint16_t v)
{
	buf_add(out, &v, sizeof(v));
}

static void add_u32(struct buf *out, uint32_t v)
{
	buf_add(out, &v, sizeof(v));
}

/* A method of the metadata, in the form, and its line table. Return: 0; -ENOENT: it cannot be read. */
static int add_method(struct reading *r, uint64_t method)
{
	scoped(buf_release) struct buf room = BUF_INIT(3 * JAVA_TEXT_MAX * 3 + JAVA_LINES_MAX + KIB(1));
	struct java_method m;
	int e = java_method_read(r->process, method, java_include_modifiers, &room, &m);

	if (e < 0)
		return e == -ENOMEM ? e : -ENOENT;
	add_u32(&r->methods, (uint32_t)m.first_line);
	add_u16(&r->methods, (uint16_t)m.name);
	add_u16(&r->methods, (uint16_t)m.file);
	buf_add(&r->methods, room.ptr, m.name + m.file);
	add_u32(&r->places, (uint32_t)r->lines.len);
	add_u32(&r->places, (uint32_t)m.lines);
	buf_add(&r->lines, room.ptr + m.name + m.file, m.lines);
	r->method_count++;
	return r->methods.error ? r->methods.error : r->lines.error ? r->lines.error : r->places.error;
}

/* Number of the method at @index of the metadata, from 1 on. Return: 0; -ENOENT: there is none. */
static int method_at(struct reading *r, uint32_t index, uint32_t *number)
{
	uint64_t method;
	int e;

	if (u64map_get(&r->known, index, number) == 0)
		return *number == UNREADABLE ? -ENOENT : 0;
	if (!index || index > r->metadata.len / 8 || r->known.used == JAVA_CODE_METHODS_MAX)
		return -ENOENT;
	method = java_u64(r->metadata.ptr, (index - 1) * 8UL);
	e = add_method(r, method);
	if (e < 0 && e != -ENOENT)
		return e;
	*number = e < 0 ? UNREADABLE : r->method_count - 1;
	if (u64map_put(&r->known, index, *number) < 0)
		return -ENOMEM;
	return e;
}

/* Many scopes on one large table cost no more than LINES_WORK_MAX; those behind it have no line. */
static int32_t line_of(struct reading *r, uint32_t method, uint32_t index)
{
	const char *lines = r->lines.ptr + java_u32(r->places.ptr, method * 8UL);
	uint32_t size = java_u32(r->places.ptr, method * 8UL + 4);
	bool no_zero = r->process->layout->flags & JAVA_LAYOUT_NO_ZERO;

	if (!size || index == JAVA_NO_INDEX || r->lines_work + size > LINES_WORK_MAX)
		return 0;
	r->lines_work += size;
	return java_lines_find(cur_of(lines, size), no_zero, index);
}

/* A scope whose method cannot be read has a method number that is none: what stands on it is not shown. */
static int add_scopes(struct reading *r, struct buf *out)
{
	for (size_t i = 0; i < r->scopes.scope_count; i++) {
		const struct java_scope *s = &r->scopes.scopes[i];
		uint32_t method = 0;
		int e = method_at(r, s->method, &method);

		if (e < 0 && e != -ENOENT)
			return e;
		add_u32(out, s->sender);
		add_u16(out, e < 0 ? UINT16_MAX : (uint16_t)method);
		add_u16(out, (uint16_t)s->index);
		add_u32(out, e < 0 ? 0 : (uint32_t)line_of(r, method, s->index));
	}
	return out->error;
}

static int add_form(struct reading *r, struct buf *room)
{
	scoped(buf_release) struct buf scopes = BUF_INIT(MIB(1));
	int e = add_scopes(r, &scopes);

	if (e < 0)
		return e;
	add_u32(room, r->method_count);
	add_u32(room, (uint32_t)r->scopes.scope_count);
	add_u32(room, (uint32_t)r->scopes.position_count);
	buf_adds(room, buf_str(&r->methods));
	buf_adds(room, buf_str(&scopes));
	for (size_t i = 0; i < r->scopes.position_count; i++) {
		add_u32(room, r->scopes.positions[i].pc);
		add_u32(room, r->scopes.positions[i].scope);
	}
	return room->error;
}

int java_code_scopes(const struct java_process *p, const struct java_code *code, struct buf *room,
		     struct java_method *method, size_t *form_size)
{
	scoped(reading_release) struct reading r = { .process = p };
	size_t start;
	int e = java_method_read(p, code->method, java_include_modifiers, room, method);

	r.pcs.max = r.data.max = INFO_MAX;
	r.metadata.max = METADATA_MAX;
	r.methods.max = r.lines.max = r.places.max = MIB(1);
	u64map_init(&r.known, JAVA_CODE_METHODS_MAX);
	start = room->len;
	e = e ? e : read_span(p, code->pcs, code->pcs_end, &r.pcs);
	e = e ? e : read_span(p, code->data, code->data_end, &r.data);
	e = e ? e : read_span(p, code->metadata, code->metadata_end, &r.metadata);
	if (e == 0)
		e = java_scopes_parse(p->layout, cur_of(r.pcs.ptr, r.pcs.len), cur_of(r.data.ptr, r.data.len),
				      &r.scopes);
	e = e ? e : add_form(&r, room);
	if (e == 0)
		*form_size = room->len - start;
	return e;
}

/* ---- as struct runtime asks for it ---- */

static uint8_t kind_of(uint8_t level)
{
	return level >= 1 && level <= 3 ? MODEL_KIND_JAVA_C1 : MODEL_KIND_JAVA;
}

/* Another method, other debug information: what was read in between is of nobody. */
static bool is_same_code(const struct java_code *a, const struct java_code *b)
{
	return a->compile_id == b->compile_id && a->method == b->method && a->pcs == b->pcs &&
	       a->pcs_end == b->pcs_end && a->data == b->data && a->data_end == b->data_end &&
	       a->metadata == b->metadata && a->metadata_end == b->metadata_end;
}

/* Where code waits to be freed (up to 20), its methods may be so already. Source: src/hotspot/share/code/nmethod.hpp of
 * OpenJDK 8 (zombie 2), 11 and 17 (zombie 3); later ones have no such state. */
static bool is_dead(const struct java_layout *l, uint8_t state)
{
	return l->version < 21 && (int8_t)state >= (l->version == 8 ? 2 : 3);
}

/* Is that block of the heap one that is used? What was freed still has its bytes. */
static int check_used(const struct java_process *p, uint64_t at)
{
	const struct java_layout *l = p->layout;
	uint8_t used, state = 0;
	int r = java_read(&p->memory, &used, 1, at - l->heap_block_size + l->heap_block_used);

	if (r == 0 && l->nm_state != JAVA_NONE)
		r = java_read(&p->memory, &state, 1, at + l->nm_state);
	return r < 0 ? r : used != 1 || is_dead(l, state) ? -ESTALE : 0;
}

/* Is it the code that was sampled? Numbers of compilations are never used twice. */
static int read_checked(const struct java_process *p, uint64_t at, uint64_t cookie, struct java_code *out)
{
	struct java_code code;
	int r = java_code_read(p, at, &code);

	if (r == 0 && (!(cookie & ABI_JAVA_COMPILED) || code.compile_id != (uint32_t)cookie || !code.method))
		r = -ESTALE;
	r = r ? r : check_used(p, at);
	if (r == 0)
		*out = code;
	return r == -EBADMSG ? -ESTALE : r;
}

int java_read_code(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		   struct buf *room, struct runtime_function *out)
{
	struct java_process p = java_process_of(target);
	size_t start = room->len, form = 0, texts;
	struct java_code code, again;
	struct java_method m;
	int r = p.layout ? 0 : -ENOMEM;

	(void)info; /* there is no epoch in the cookie */
	r = r ? r : read_checked(&p, key, cookie, &code);
	r = r ? r : java_code_scopes(&p, &code, room, &m, &form);
	r = r ? r : read_checked(&p, key, cookie, &again);
	if (r == 0 && !is_same_code(&code, &again))
		r = -ESTALE;
	if (r < 0)
		return r;
	texts = room->len - form;
	*out = (struct runtime_function){
		.name = str_n(room->ptr + start, m.name),
		.file = str_n(room->ptr + start + m.name, m.file),
		.kind = kind_of(code.level),
		.first_line = m.first_line,
		.is_cut = m.is_cut,
		.is_sparse = !p.layout->exact_lines,
		.lines = { (const uint8_t *)room->ptr + texts, (uint32_t)form },
		.lines_whole = (uint32_t)form,
		.version_major = p.layout->version,
	};
	return 0;
}

size_t java_expand(const struct runtime_function *code, uint32_t position, bool is_return,
		   struct runtime_shown out[RUNTIME_EXPAND_MAX])
{
	struct java_shown shown[RUNTIME_EXPAND_MAX];
	size_t count = java_scopes_expand(cur_of(code->lines.bytes, code->lines.size), position, is_return,
					  RUNTIME_EXPAND_MAX, shown);

	if (count == JAVA_SHOWN_LOST)
		return RUNTIME_EXPAND_LOST;
	for (size_t i = 0; i < count; i++)
		out[i] = (struct runtime_shown){
			.function = { .name = shown[i].name,
				      .file = shown[i].file,
				      .kind = i + 1 < count ? MODEL_KIND_JAVA_INLINED : code->kind,
				      .first_line = shown[i].first_line },
			.line = shown[i].line,
			.is_vague = code->is_sparse && !is_return && shown[i].line,
		};
	return count;
}
