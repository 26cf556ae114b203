/* SPDX-License-Identifier: Apache-2.0 */
/* The first pass over a pprof file: where its tables are, and its numbers. */
#include "codec/pprof_in.h"

#define COMMENTS_MAX 65536

static int span_add(struct pprof_in *in, struct span_list *list, const struct wire_field *f)
{
	int r = array_grow(&list->items, &list->cap, list->count, ROWS_MAX);

	if (r < 0)
		return failed(in, position(in, &f->bytes), r);
	list->items[list->count++] = (struct span){ (uint32_t)position(in, &f->bytes), (uint32_t)cur_left(&f->bytes) };
	return 0;
}
static int scan_time(struct pprof_in *in, const struct wire_field *f, uint64_t at)
{
	if (f->value && in->m->time_ns)
		return bad(in, at, "concatenated profiles detected");
	if (f->value)
		in->m->time_ns = (int64_t)f->value;
	return 0;
}

static int add_comment(struct pprof_in *in, uint64_t si, uint64_t at)
{
	int r = array_grow(&in->comments, &in->comments_cap, in->comments_count, COMMENTS_MAX);

	if (r < 0)
		return failed(in, at, r);
	in->comments[in->comments_count++] = si;
	return 0;
}

static int scan_comments(struct pprof_in *in, struct wire_field *f, uint64_t at)
{
	int r = 0;

	if (f->type == WIRE_VARINT)
		return add_comment(in, f->value, at);
	if (f->type != WIRE_BYTES)
		return bad(in, at, "comment of a wrong wire type");
	while (r == 0 && cur_left(&f->bytes)) {
		uint64_t si = wire_varint(&f->bytes);

		r = f->bytes.bad ? bad(in, at, "malformed number") : add_comment(in, si, at);
	}
	return r;
}

static int scan_sample(struct pprof_in *in, const struct wire_field *f, uint64_t at)
{
	if (!in->samples)
		in->samples_from = at;
	in->samples_to = position(in, &f->bytes) + cur_left(&f->bytes);
	if (++in->samples <= in->limits->samples_max || !in->limits->samples_max)
		return 0;
	codec_fail(in->error, at, false, "more than %zu samples", in->limits->samples_max);
	return -E2BIG;
}

static int scan_message(struct pprof_in *in, const struct wire_field *f, uint64_t at)
{
	switch (f->number) {
	case PROFILE_SAMPLE_TYPE:
		if (in->types.count == MODEL_VALUE_TYPES_MAX)
			return too_big(in, at, "too many sample types");
		return span_add(in, &in->types, f);
	case PROFILE_MAPPING:
		return span_add(in, &in->mappings, f);
	case PROFILE_LOCATION:
		return span_add(in, &in->locations, f);
	case PROFILE_FUNCTION:
		return span_add(in, &in->functions, f);
	case PROFILE_STRING_TABLE:
		if (!in->strings.count && cur_left(&f->bytes))
			return bad(in, at, "the first string is not empty");
		in->done += cur_left(&f->bytes);
		return span_add(in, &in->strings, f);
	case PROFILE_SAMPLE: /* read in the second pass */
		return scan_sample(in, f, at);
	case PROFILE_PERIOD_TYPE:
		in->period_type = (struct span){ (uint32_t)position(in, &f->bytes), (uint32_t)cur_left(&f->bytes) };
		break;
	default:
		break;
	}
	return 0;
}

static int scan_number(struct pprof_in *in, const struct wire_field *f, uint64_t at)
{
	switch (f->number) {
	case PROFILE_DROP_FRAMES:
		in->drop_frames = f->value;
		break;
	case PROFILE_KEEP_FRAMES:
		in->keep_frames = f->value;
		break;
	case PROFILE_TIME_NANOS:
		return scan_time(in, f, at);
	case PROFILE_DURATION_NANOS:
		in->m->duration_ns = (int64_t)f->value;
		break;
	case PROFILE_PERIOD:
		in->m->period = (int64_t)f->value;
		break;
	case PROFILE_DEFAULT_SAMPLE_TYPE:
		in->default_type = f->value;
		break;
	default:
		in->doc_url = f->value;
		break;
	}
	return 0;
}

static int scan_field(struct pprof_in *in, struct wire_field *f, uint64_t at)
{
	bool is_message = f->number <= PROFILE_STRING_TABLE || f->number == PROFILE_PERIOD_TYPE;

	if (!f->number || f->number > PROFILE_DOC_URL)
		return 0;
	if (f->number == PROFILE_COMMENT)
		return scan_comments(in, f, at);
	if (f->type != (is_message ? WIRE_BYTES : WIRE_VARINT))
		return bad(in, at, "known field of a wrong wire type");
	return is_message ? scan_message(in, f, at) : scan_number(in, f, at);
}

/* Most of a file are rows of three tables that lie one behind another. Eats them, as long as there is room for their
 * spans and their size has at most two bytes; the general way takes everything else, and makes room.
 * Return: how many. */
static size_t scan_rows(struct pprof_in *in, struct cur *c)
{
	struct span_list *const lists[] = { [PROFILE_LOCATION] = &in->locations,
					    [PROFILE_FUNCTION] = &in->functions,
					    [PROFILE_STRING_TABLE] = &in->strings };
	const uint8_t *at = c->pos, *end = c->end;
	size_t count = 0;

	while (!c->bad && count < PPROF_STEPS && end - at >= 3 && (at[0] & 0x87) == WIRE_BYTES &&
	       at[0] >> 3 < ARRAY_SIZE(lists)) {
		struct span_list *list = lists[at[0] >> 3];
		size_t size = at[1] & 0x7f, head = 2;

		if (at[1] >= 0x80) {
			size |= (size_t)at[2] << 7;
			head = 3;
		}
		if (!list || list->count == list->cap || size >= 1 << 14 || size > (size_t)(end - at) - head)
			break;
		list->items[list->count++] =
			(struct span){ (uint32_t)((const char *)at - in->bytes.ptr + head), (uint32_t)size };
		in->done += list == &in->strings ? size : 0;
		at += head + size;
		count++;
	}
	c->pos = at;
	return count;
}

int pprof_scan(struct pprof_in *in)
{
	struct cur c = cur_of(in->bytes.ptr, in->bytes.len);
	uint64_t at = 0;
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_next(&c, &f)) {
		r = scan_field(in, &f, at);
		r = r ? r : pprof_steps(in, 1 + scan_rows(in, &c));
		at = position(in, &c);
	}
	if (r == 0 && c.bad)
		return bad(in, at, "malformed or cut off protobuf field");
	if (r == 0 && !in->strings.count)
		return bad(in, in->bytes.len, "no string table");
	return r;
}
