/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the types that a recording's metadata declares. */
#include "base/utf8.h"
#include "codec/jfr_int.h"

#define DEPTH_MAX 32     /* of types inside of types */
#define BYTES_A_VALUE 16 /* of a constant that is read again: that many are as much work as a value */

uint64_t jfr_big_endian(struct cur *c, size_t size)
{
	const uint8_t *at = cur_bytes(c, size);
	uint64_t value = at && at[0] & 0x80 ? UINT64_MAX : 0;

	for (size_t i = 0; at && i < size; i++)
		value = value << 8 | at[i];
	return value;
}

/* Seven bits a byte, lowest first; a ninth byte has eight. */
static uint64_t compressed(struct cur *c)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < 8; i++) {
		uint8_t byte = cur_u8(c);

		value |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (byte < 0x80)
			return value;
	}
	return value | (uint64_t)cur_u8(c) << 56;
}

uint64_t jfr_number(const struct jfr_chunk *k, struct cur *c, enum jfr_primitive primitive)
{
	static const uint8_t sizes[] = {
		[JFR_BOOLEAN] = 1, [JFR_BYTE] = 1,  [JFR_SHORT] = 2,  [JFR_CHAR] = 2,  [JFR_INT] = 4,
		[JFR_LONG] = 8,    [JFR_FLOAT] = 4, [JFR_DOUBLE] = 8, [JFR_STRING] = 1
	};

	switch (primitive) {
	case JFR_SHORT:
	case JFR_CHAR:
	case JFR_INT:
	case JFR_LONG:
		return k->is_plain ? jfr_big_endian(c, sizes[primitive]) : compressed(c);
	case JFR_COMPOSITE:
		return 0;
	default:
		return jfr_big_endian(c, sizes[primitive]);
	}
}

/* A count of things of at least one byte each. */
uint64_t jfr_count(const struct jfr_chunk *k, struct cur *c)
{
	uint64_t count = jfr_number(k, c, JFR_INT);

	if (count > cur_left(c))
		c->bad = true;
	return c->bad ? 0 : count;
}

void jfr_read_string(const struct jfr_chunk *k, struct cur *c, struct jfr_string *out)
{
	*out = (struct jfr_string){ .encoding = cur_u8(c) };
	switch (out->encoding) {
	case JFR_STRING_NULL:
	case JFR_STRING_EMPTY:
		break;
	case JFR_STRING_CONSTANT:
		out->key = jfr_number(k, c, JFR_LONG);
		break;
	case JFR_STRING_UTF8:
	case JFR_STRING_LATIN1:
		out->bytes = cur_sub(c, (size_t)jfr_count(k, c));
		break;
	case JFR_STRING_CHARS:
		out->count = jfr_count(k, c);
		out->bytes = *c;
		for (uint64_t i = 0; i < out->count && !c->bad; i++)
			ignore(jfr_number(k, c, JFR_CHAR));
		break;
	default:
		c->bad = true;
	}
}

/* A type's fields that are still to be passed over, and how many more values of the type follow. */
struct level {
	uint32_t class, field;
	uint64_t repeats;
};

static void skip_numbers(const struct jfr_chunk *k, struct cur *c, enum jfr_primitive primitive, uint64_t count)
{
	struct jfr_string string;

	for (uint64_t i = 0; i < count && !c->bad; i++) {
		if (primitive == JFR_STRING)
			jfr_read_string(k, c, &string);
		else
			ignore(jfr_number(k, c, primitive));
	}
}

/* One field. Return: whether values of another type have to be passed over first, in *next. */
static bool skip_field(struct jfr_chunk *k, struct cur *c, const struct jfr_field *field, struct level *next)
{
	uint64_t count = 1;
	enum jfr_primitive primitive;

	if (field->class == JFR_NO_CLASS && !field->is_constant) {
		c->bad = true;
		return false;
	}
	primitive = field->is_constant ? JFR_LONG : k->classes[field->class].primitive;
	if (field->is_array)
		count = primitive == JFR_COMPOSITE ? jfr_number(k, c, JFR_INT) : jfr_count(k, c);
	if (primitive != JFR_COMPOSITE) {
		skip_numbers(k, c, primitive, count);
		return false;
	}
	*next = (struct level){ .class = field->class, .repeats = count };
	return count && k->classes[field->class].field_count && !c->bad;
}

/* Types can nest in each other, and those without fields take no bytes: depth and work are bounded. */
static void skip_levels(struct jfr_chunk *k, struct cur *c, struct level first)
{
	struct level levels[DEPTH_MAX];
	size_t depth = 1;

	levels[0] = first;
	while (depth && !c->bad) {
		struct level *top = &levels[depth - 1];
		const struct jfr_class *class = &k->classes[top->class];
		struct level next;

		if (++k->in->work > k->in->work_max) {
			c->bad = true;
		} else if (top->field == class->field_count) {
			top->field = 0;
			if (!--top->repeats)
				depth--;
		} else if (skip_field(k, c, &k->fields[class->first_field + top->field++], &next)) {
			if (depth == DEPTH_MAX)
				c->bad = true;
			else
				levels[depth++] = next;
		}
	}
}

void jfr_skip_value(struct jfr_chunk *k, struct cur *c, uint32_t class)
{
	if (k->classes[class].primitive != JFR_COMPOSITE)
		skip_numbers(k, c, k->classes[class].primitive, 1);
	else if (k->classes[class].field_count)
		skip_levels(k, c, (struct level){ .class = class, .repeats = 1 });
}

void jfr_plan_make(const struct jfr_chunk *k, uint32_t class, const char *const *wants, size_t count,
		   struct jfr_plan *out)
{
	memset(out->slots, -1, sizeof(out->slots));
	out->class = class;
	for (uint32_t i = 0; class != JFR_NO_CLASS && i < k->classes[class].field_count && i < JFR_PLAN_FIELDS; i++) {
		struct str name = jfr_name(k, k->fields[k->classes[class].first_field + i].name);

		for (size_t slot = 0; slot < count; slot++)
			if (wants[slot] && str_eq(name, str_of(wants[slot])))
				out->slots[i] = (int8_t)slot;
	}
}

static void read_slot(struct jfr_chunk *k, struct cur *c, const struct jfr_field *field, struct jfr_slot *slot)
{
	enum jfr_primitive primitive = field->is_constant ? JFR_LONG : k->classes[field->class].primitive;

	slot->is_set = true;
	if (primitive == JFR_STRING) {
		jfr_read_string(k, c, &slot->string);
	} else {
		slot->number = jfr_number(k, c, primitive);
		slot->string = (struct jfr_string){ .encoding = JFR_STRING_CONSTANT, .key = slot->number };
	}
}

void jfr_read(struct jfr_chunk *k, struct cur *c, const struct jfr_plan *plan, struct jfr_slot *slots)
{
	const struct jfr_class *class;

	memset(slots, 0, JFR_SLOTS_MAX * sizeof(*slots));
	if (plan->class == JFR_NO_CLASS)
		return;
	class = &k->classes[plan->class];
	for (uint32_t i = 0; i < class->field_count && !c->bad; i++) {
		const struct jfr_field *field = &k->fields[class->first_field + i];
		int slot = i < JFR_PLAN_FIELDS ? plan->slots[i] : -1;
		const uint8_t *start = c->pos;
		bool is_value = field->is_constant ||
				(field->class != JFR_NO_CLASS && k->classes[field->class].primitive != JFR_COMPOSITE);
		struct level next;

		if (slot >= 0 && is_value && !field->is_array) {
			read_slot(k, c, field, &slots[slot]);
			continue;
		}
		if (slot >= 0 && field->is_array) {
			slots[slot].is_set = true;
			slots[slot].array = *c;
		}
		if (skip_field(k, c, field, &next))
			skip_levels(k, c, next);
		if (c->pos == start && ++k->in->work > k->in->work_max)
			c->bad = true; /* fields of types without fields take no bytes */
	}
}

bool jfr_take_work(struct jfr_chunk *k, const struct cur *from, const struct cur *to)
{
	k->in->work += (uint64_t)(to->pos - from->pos) / BYTES_A_VALUE;
	return k->in->work <= k->in->work_max;
}

uint32_t jfr_find_class(const struct jfr_chunk *k, uint64_t id)
{
	uint32_t index;

	return u64map_get(&k->class_by_id, id, &index) == 0 ? index : JFR_NO_CLASS;
}

/* Strings */

/* Pairs of surrogates become one character. */
static void add_chars(const struct jfr_chunk *k, const struct jfr_string *s, struct buf *out)
{
	struct cur c = s->bytes;
	uint32_t high = 0;

	for (uint64_t i = 0; i < s->count && !c.bad; i++) {
		uint32_t code = (uint32_t)jfr_number(k, &c, JFR_CHAR) & 0xffff;
		bool is_low = (code & 0xfc00) == 0xdc00;

		if (high && is_low)
			utf8_add(out, 0x10000 + ((high & 0x3ff) << 10 | (code & 0x3ff)));
		else if (high)
			utf8_add(out, high);
		if ((code & 0xfc00) != 0xd800 && !(high && is_low))
			utf8_add(out, code);
		high = (code & 0xfc00) == 0xd800 ? code : 0;
	}
	if (high)
		utf8_add(out, high);
}

bool jfr_string_add_plain(struct jfr_chunk *k, const struct jfr_string *s, struct buf *out)
{
	switch (s->encoding) {
	case JFR_STRING_EMPTY:
		return true;
	case JFR_STRING_UTF8:
		buf_adds(out, cur_rest(&s->bytes));
		return true;
	case JFR_STRING_LATIN1:
		for (size_t i = 0; i < cur_left(&s->bytes); i++)
			utf8_add(out, s->bytes.pos[i]);
		return true;
	case JFR_STRING_CHARS:
		add_chars(k, s, out);
		return true;
	default:
		return false;
	}
}

bool jfr_string_add(struct jfr_chunk *k, const struct jfr_string *s, struct buf *out)
{
	const struct jfr_constant *constant;
	struct jfr_string text;
	struct cur c, start;

	if (s->encoding != JFR_STRING_CONSTANT)
		return jfr_string_add_plain(k, s, out);
	constant = jfr_constant(k, JFR_POOL_STRING, s->key);
	if (!constant)
		return false;
	start = c = cur_of(k->bytes.ptr + constant->at, k->bytes.len - constant->at);
	jfr_read_string(k, &c, &text);
	return !c.bad && jfr_take_work(k, &start, &c) && jfr_string_add_plain(k, &text, out);
}
