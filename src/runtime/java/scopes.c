/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/java/scopes.h"

#include "base/array.h"
#include "base/u64map.h"
#include "runtime/java/lines.h"

#define CHAIN_MAX 128 /* functions inlined into one another; C2 stops at 100 even where it must */
#define NO_SCOPE UINT32_MAX
#define SCOPE_SIZE 12
#define POSITION_SIZE 8
#define METHOD_SIZE 8 /* without its texts */

void java_scopes_release(struct java_scopes *s)
{
	free(s->scopes);
	free(s->positions);
}

struct parsing {
	struct cur data;
	bool no_zero;
	struct u64map known; /* offset in data -> scope */
	struct java_scopes *out;
};

struct raw { /* a scope as it is encoded */
	uint32_t at, sender, method, index;
};

/* Senders are written first, so that offsets fall along a chain. Return: false: it is none. */
static bool decode(const struct parsing *p, uint32_t at, struct raw *out)
{
	struct cur c = p->data;

	if (!at || at >= cur_left(&c))
		return false;
	ignore(cur_bytes(&c, at)); /* it is there */
	out->at = at;
	out->sender = java_number(&c, p->no_zero);
	out->method = java_number(&c, p->no_zero);
	/* -1, of the method's entry, is written as 0. */
	out->index = java_number(&c, p->no_zero) - 1;
	if (out->index > JAVA_NO_INDEX)
		out->index = JAVA_NO_INDEX;
	return !c.bad && out->sender < at;
}

static int add_scope(struct parsing *p, const struct raw *raw, uint32_t *number)
{
	struct java_scopes *s = p->out;
	int r = array_grow(&s->scopes, &s->scope_cap, s->scope_count, JAVA_SCOPES_MAX);

	if (r == 0)
		r = u64map_put(&p->known, raw->at, (uint32_t)s->scope_count);
	if (r < 0)
		return r;
	s->scopes[s->scope_count] = (struct java_scope){ *number, raw->method, raw->index };
	*number = (uint32_t)++s->scope_count;
	return 0;
}

/* Scope at @at, and all its senders. Return: 0 and its number + 1; -ENOENT: it is none; -errno. */
static int find_scope(struct parsing *p, uint32_t at, uint32_t *number)
{
	struct raw chain[CHAIN_MAX];
	uint32_t known = 0, sender = 0;
	size_t depth = 0;
	int r = 0;

	while (at && u64map_get(&p->known, at, &known) < 0) {
		if (depth == CHAIN_MAX || !decode(p, at, &chain[depth]))
			return -ENOENT;
		at = chain[depth++].sender;
	}
	if (at)
		sender = known + 1;
	while (r == 0 && depth)
		r = add_scope(p, &chain[--depth], &sender);
	*number = sender;
	return r;
}

static int add_position(struct java_scopes *s, uint32_t pc, uint32_t scope)
{
	struct java_position *last = s->position_count ? &s->positions[s->position_count - 1] : NULL;
	int r;

	if (last && last->scope == scope) {
		last->pc = pc;
		return 0;
	}
	r = array_grow(&s->positions, &s->position_cap, s->position_count, JAVA_PCS_MAX);
	if (r < 0)
		return r;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): array_grow() has made room */
	s->positions[s->position_count++] = (struct java_position){ pc, scope };
	return 0;
}

/* One record. The first and the last are sentinels: in front of all code, and behind it. */
static int take_pc(struct parsing *p, const struct java_layout *l, const uint8_t *desc, uint32_t *before)
{
	uint32_t pc = java_u32(desc, l->pc_desc_pc), at = java_u32(desc, l->pc_desc_scope), scope = 0;
	int r;

	if (pc > INT32_MAX || pc < *before)
		return 0;
	r = find_scope(p, at, &scope);
	*before = pc;
	return r < 0 && r != -ENOENT ? r : add_position(p->out, pc, scope ? scope - 1 : NO_SCOPE);
}

int java_scopes_parse(const struct java_layout *l, struct cur pcs, struct cur data, struct java_scopes *out)
{
	struct java_scopes s = { 0 };
	struct parsing p = { .data = data, .no_zero = l->flags & JAVA_LAYOUT_NO_ZERO, .out = &s };
	uint32_t before = 0;
	int r = 0;

	if (l->pc_desc_pc + 4U > l->pc_desc_size || l->pc_desc_scope + 4U > l->pc_desc_size)
		return -EBADMSG;
	u64map_init(&p.known, JAVA_SCOPES_MAX);
	while (r == 0 && cur_left(&pcs) >= l->pc_desc_size)
		r = take_pc(&p, l, cur_bytes(&pcs, l->pc_desc_size), &before);
	u64map_release(&p.known);
	if (r < 0) {
		java_scopes_release(&s);
		return r;
	}
	*out = s;
	return 0;
}

/* ---- the form for expand() ---- */

struct form {
	struct cur methods, scopes, positions;
	uint32_t method_count, scope_count, position_count;
};

static bool open_form(struct cur c, struct form *out)
{
	out->method_count = cur_le32(&c);
	out->scope_count = cur_le32(&c);
	out->position_count = cur_le32(&c);
	out->methods = c;
	for (uint32_t i = 0; i < out->method_count && !c.bad; i++) {
		size_t name, file;

		ignore(cur_le32(&c)); /* it sticks */
		name = cur_le16(&c);
		file = cur_le16(&c);
		ignore(cur_bytes(&c, name + file)); /* likewise */
	}
	if (out->scope_count > JAVA_SCOPES_MAX || out->position_count > JAVA_PCS_MAX)
		return false;
	out->scopes = cur_sub(&c, (size_t)out->scope_count * SCOPE_SIZE);
	out->positions = cur_sub(&c, (size_t)out->position_count * POSITION_SIZE);
	return !c.bad;
}

/* The first position at or behind @wanted. */
static bool find_position(const struct form *f, uint64_t wanted, uint32_t *scope)
{
	size_t low = 0, high = f->position_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (java_u32(f->positions.pos, middle * POSITION_SIZE) < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == f->position_count)
		return false;
	*scope = java_u32(f->positions.pos, low * POSITION_SIZE + 4);
	return true;
}

static bool show_method(const struct form *f, uint32_t wanted, struct java_shown *out)
{
	struct cur c = f->methods;

	if (wanted >= f->method_count)
		return false;
	for (uint32_t i = 0;; i++) {
		size_t name, file;

		out->first_line = (int32_t)cur_le32(&c);
		name = cur_le16(&c);
		file = cur_le16(&c);
		out->name = str_n((const char *)cur_bytes(&c, name), name);
		out->file = str_n((const char *)cur_bytes(&c, file), file);
		if (i == wanted || c.bad)
			return !c.bad;
	}
}

static bool show_scope(const struct form *f, const uint8_t *scope, struct java_shown *out)
{
	out->index = java_u16(scope, 6);
	out->line = (int32_t)java_u32(scope, 8);
	return show_method(f, java_u16(scope, 4), out);
}

size_t java_scopes_expand(struct cur form, uint32_t position, bool is_return, size_t max, struct java_shown *out)
{
	struct form f;
	uint32_t at;
	size_t count = 0;

	/* A call has its PcDesc at the return address; code that runs is what the next one behind it describes. */
	if (!open_form(form, &f) || !find_position(&f, (uint64_t)position + (is_return ? 0 : 1), &at))
		return 0;
	for (at++; at; count++) {
		const uint8_t *scope;
		uint32_t sender;

		if (at > f.scope_count || count >= JAVA_SCOPES_MAX)
			return 0;
		scope = f.scopes.pos + (size_t)(at - 1) * SCOPE_SIZE;
		sender = java_u32(scope, 0);
		if (sender >= at) /* they only go down */
			return 0;
		if ((count < max - 1 || !sender) && !show_scope(&f, scope, &out[MIN(count, max - 1)]))
			return JAVA_SHOWN_LOST;
		at = sender;
	}
	return MIN(count, max);
}
