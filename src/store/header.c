/* SPDX-License-Identifier: Apache-2.0 */
#include "store/header.h"

#include "base/array.h"
#include "base/wire.h"
#include "store/zigzag.h"

/* Comments of a sum: those behind are dropped, so that adding up thousands of profiles full of them stays cheap. */
#define COMMENTS_SUM_MAX 256

void header_release(struct header *h)
{
	free(h->comments);
	free(h->mappings);
	*h = (struct header){ 0 };
}

int header_add_comment(struct header *h, uint32_t string)
{
	int r = array_grow(&h->comments, &h->comments_cap, h->comments_count, HEADER_COMMENTS_MAX);

	if (r == 0)
		h->comments[h->comments_count++] = string;
	return r;
}

int header_add_mapping(struct header *h, const struct header_mapping *row)
{
	int r = array_grow(&h->mappings, &h->mappings_cap, h->mappings_count, HEADER_MAPPINGS_MAX);

	if (r == 0)
		h->mappings[h->mappings_count++] = *row;
	return r;
}

void header_encode(const struct header *h, struct buf *out)
{
	const uint64_t numbers[] = { h->profiles,
				     h->period_type.type,
				     h->period_type.unit,
				     zigzag(h->period),
				     zigzag(h->time_ns),
				     zigzag(h->duration_ns),
				     zigzag((int64_t)(h->start_ns - (uint64_t)h->time_ns)),
				     zigzag((int64_t)(h->end_ns - h->start_ns - (uint64_t)h->duration_ns)),
				     h->drop_frames,
				     h->keep_frames,
				     h->default_type,
				     h->doc_url,
				     h->value_type_count };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		wire_add_varint(out, numbers[i]);
	for (size_t i = 0; i < h->value_type_count; i++) {
		wire_add_varint(out, h->value_types[i].type);
		wire_add_varint(out, h->value_types[i].unit);
		wire_add_varint(out, zigzag(h->totals[i]));
	}
	wire_add_varint(out, h->comments_count);
	for (size_t i = 0; i < h->comments_count; i++)
		wire_add_varint(out, h->comments[i]);
	wire_add_varint(out, h->mappings_count);
	for (size_t i = 0; i < h->mappings_count; i++) {
		wire_add_varint(out, h->mappings[i].row);
		wire_add_varint(out, h->mappings[i].flags);
		wire_add_varint(out, h->mappings[i].start);
	}
}

static uint32_t row_of(struct cur *c, size_t count)
{
	uint64_t value = wire_varint(c);

	if (value >= count || value > UINT32_MAX) {
		c->bad = true;
		return 0;
	}
	return (uint32_t)value;
}

static void read_scalars(struct cur *c, size_t strings, struct header *h)
{
	h->profiles = wire_varint(c);
	h->period_type.type = row_of(c, strings);
	h->period_type.unit = row_of(c, strings);
	h->period = unzigzag(wire_varint(c));
	h->time_ns = unzigzag(wire_varint(c));
	h->duration_ns = unzigzag(wire_varint(c));
	h->start_ns = (uint64_t)h->time_ns + (uint64_t)unzigzag(wire_varint(c));
	h->end_ns = h->start_ns + (uint64_t)h->duration_ns + (uint64_t)unzigzag(wire_varint(c));
	h->drop_frames = row_of(c, strings);
	h->keep_frames = row_of(c, strings);
	h->default_type = row_of(c, strings);
	h->doc_url = row_of(c, strings);
	h->value_type_count = row_of(c, MODEL_VALUE_TYPES_MAX + 1);
	for (size_t i = 0; i < h->value_type_count; i++) {
		h->value_types[i].type = row_of(c, strings);
		h->value_types[i].unit = row_of(c, strings);
		h->totals[i] = unzigzag(wire_varint(c));
	}
}

int header_decode(struct str bytes, size_t strings, size_t mappings, struct header *h)
{
	struct cur c = cur_of(bytes.ptr, bytes.len);
	uint64_t count;
	int r = 0;

	read_scalars(&c, strings, h);
	h->comments_count = h->mappings_count = 0;
	count = wire_varint(&c);
	for (uint64_t i = 0; r == 0 && !c.bad && i < count; i++)
		r = header_add_comment(h, row_of(&c, strings));
	count = wire_varint(&c);
	for (uint64_t i = 0; r == 0 && !c.bad && i < count; i++) {
		struct header_mapping row = { .row = row_of(&c, mappings) };

		row.flags = row_of(&c, (size_t)UINT32_MAX + 1);
		row.start = wire_varint(&c);
		r = row.row ? header_add_mapping(h, &row) : -EBADMSG;
	}
	return r == 0 && (c.bad || cur_left(&c)) ? -EBADMSG : r;
}

static bool same_type(struct model_value_type a, struct model_value_type b)
{
	return a.type == b.type && a.unit == b.unit;
}

bool header_same_types(const struct header *a, const struct header *b)
{
	if (a->value_type_count != b->value_type_count || !same_type(a->period_type, b->period_type))
		return false;
	for (size_t i = 0; i < a->value_type_count; i++)
		if (!same_type(a->value_types[i], b->value_types[i]))
			return false;
	return true;
}

static int add_comments(struct header *into, const struct header *from)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < MIN(from->comments_count, (size_t)COMMENTS_SUM_MAX); i++) {
		size_t at = 0;

		while (at < into->comments_count && into->comments[at] != from->comments[i])
			at++;
		if (at == into->comments_count && at < COMMENTS_SUM_MAX)
			r = header_add_comment(into, from->comments[i]);
	}
	return r;
}

static int add_mappings(struct header *into, const struct header *from, uint32_t *mapping_at)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->mappings_count; i++) {
		uint32_t row = from->mappings[i].row;

		if (mapping_at[row]) {
			into->mappings[mapping_at[row] - 1].flags |= from->mappings[i].flags;
			continue;
		}
		r = header_add_mapping(into, &from->mappings[i]);
		if (r == 0)
			mapping_at[row] = (uint32_t)into->mappings_count;
	}
	return r;
}

static void take_types(struct header *into, const struct header *from)
{
	memcpy(into->value_types, from->value_types, sizeof(into->value_types));
	memset(into->totals, 0, sizeof(into->totals));
	into->value_type_count = from->value_type_count;
	into->period_type = from->period_type;
	into->drop_frames = from->drop_frames;
	into->keep_frames = from->keep_frames;
	into->start_ns = from->start_ns;
	into->end_ns = from->end_ns;
}

/* As window_duration_ns(). */
static int64_t duration_of(const struct header *h)
{
	if (h->duration_ns || h->end_ns < h->start_ns)
		return h->duration_ns;
	return (int64_t)MIN(h->end_ns - h->start_ns, (uint64_t)INT64_MAX);
}

int header_add(struct header *into, const struct header *from, uint32_t *mapping_at)
{
	int r;

	if (!into->profiles)
		take_types(into, from);
	else if (!header_same_types(into, from))
		return -EINVAL;
	r = add_comments(into, from);
	r = r ? r : add_mappings(into, from, mapping_at);
	if (r < 0)
		return r;
	for (size_t i = 0; i < into->value_type_count; i++)
		into->totals[i] = saturating_add(into->totals[i], from->totals[i]);
	if (from->time_ns && (!into->time_ns || from->time_ns < into->time_ns))
		into->time_ns = from->time_ns;
	into->start_ns = MIN(into->start_ns, from->start_ns);
	into->end_ns = MAX(into->end_ns, from->end_ns);
	into->duration_ns = saturating_add(into->duration_ns, duration_of(from));
	if (!into->duration_ns) /* a sum of profiles without a duration has none */
		into->end_ns = into->start_ns;
	into->period = MAX(into->period, from->period);
	into->default_type = into->default_type ? into->default_type : from->default_type;
	into->doc_url = into->doc_url ? into->doc_url : from->doc_url;
	into->profiles += from->profiles;
	return 0;
}
