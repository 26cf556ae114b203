/* SPDX-License-Identifier: Apache-2.0 */
/* The binary CPU profile of gperftools: machine words of either size and byte order.
 *
 *	0 | 3 | 0 | period in us | 0          header: words that follow its first two are 3
 *	count | depth | address ...           records, leaf first
 *	0 | 1 | 0                             end; the memory map's text follows
 */
#include "base/cur.h"
#include "codec/pprof_legacy_int.h"

#define HEADER_WORDS 5
#define JAVA_VERSION 1 /* in the third word: names instead of a memory map */

struct words {
	struct cur c;
	size_t size; /* 4 or 8 bytes */
	bool big;
};

static uint64_t next_word(struct words *w)
{
	const uint8_t *at = cur_bytes(&w->c, w->size);
	uint64_t value = 0;

	for (size_t i = 0; at && i < w->size; i++)
		value = value << 8 | at[w->big ? i : w->size - 1 - i];
	return value;
}

/* Return: false when the bytes do not start like such a profile. @out stands behind the header. */
static bool read_header(struct str bytes, struct words *out, uint64_t *version, uint64_t *period_us)
{
	for (unsigned int form = 0; form < 4; form++) {
		struct words w = { cur_of(bytes.ptr, bytes.len), form < 2 ? 4 : 8, form & 1 };
		uint64_t head[HEADER_WORDS];

		for (size_t i = 0; i < HEADER_WORDS; i++)
			head[i] = next_word(&w);
		if (w.c.bad || head[0] || head[1] != 3 || head[2] > JAVA_VERSION || !head[3] || head[4])
			continue;
		*out = w;
		*version = head[2];
		*period_us = head[3];
		return true;
	}
	return false;
}

bool legacy_cpu_is(struct str bytes)
{
	uint64_t version, period_us;
	struct words w;

	return read_header(bytes, &w, &version, &period_us);
}

static int bad(const struct legacy *in, const struct words *w, const char *reason)
{
	codec_fail(in->error, (uint64_t)((const char *)w->c.pos - in->bytes.ptr), false, "%s", reason);
	return -EBADMSG;
}

static int64_t saturating_product(uint64_t count, int64_t period)
{
	int64_t product;

	return __builtin_mul_overflow(count, period, &product) ? INT64_MAX : product;
}

static int read_frames(struct legacy *in, struct words *w, uint64_t depth)
{
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < depth; i++)
		r = legacy_add_frame(in, next_word(w) - (i > 0)); /* callers: back into the call instruction */
	return r;
}

/* Return: 1 for a record, 0 for the mark of the end, or -errno. */
static int read_record(struct legacy *in, struct words *w)
{
	uint64_t count = next_word(w), depth = next_word(w);
	struct legacy_sample row = { 0 };
	struct words peek;
	int r;

	if (w->c.bad || depth > cur_left(&w->c) / w->size)
		return bad(in, w, "a record is cut off");
	peek = *w;
	if (!count && depth == 1 && !next_word(&peek)) {
		*w = peek;
		return 0;
	}
	row.values[0] = (int64_t)MIN(count, (uint64_t)INT64_MAX);
	row.values[1] = saturating_product(count, in->m->period);
	r = legacy_begin_sample(in, &row);
	r = r ? r : read_frames(in, w, depth);
	return r ? r : 1;
}

/* The frame after the leaf that more than half of the samples share, if there is one (the majority vote of Boyer and
 * Moore). */
static uint32_t common_second(const struct legacy *in)
{
	uint32_t place = 0;
	size_t lead = 0;

	for (size_t i = 0; i < in->samples_count; i++) {
		const struct legacy_sample *s = &in->samples[i];
		uint32_t second;

		if (s->frame_count < 2)
			continue;
		second = in->frames[s->first_frame + 1];
		if (!lead)
			place = second;
		lead = second == place ? lead + 1 : lead - 1;
	}
	return place;
}

/* A signal handler's frame lies between the leaf, which comes from the registers, and its callers. It shows by being
 * there in all samples but one in 32. There may be two of them. */
static void drop_handler(struct legacy *in)
{
	uint32_t place = common_second(in);
	size_t found = 0;

	for (size_t i = 0; i < in->samples_count; i++) {
		const struct legacy_sample *s = &in->samples[i];

		found += s->frame_count > 1 && in->frames[s->first_frame + 1] == place;
	}
	if (found < in->samples_count - in->samples_count / 32)
		return;
	for (size_t i = 0; i < in->samples_count; i++) {
		struct legacy_sample *s = &in->samples[i];

		if (s->frame_count > 1 && in->frames[s->first_frame + 1] == place)
			legacy_drop_second(in, s);
	}
}

static int set_types(struct legacy *in)
{
	int r = model_add_value_type(in->m, STR("samples"), STR("count"));

	r = r ? r : model_add_value_type(in->m, STR("cpu"), STR("nanoseconds"));
	in->m->period_type = in->m->value_types[1];
	return legacy_failed(in, r);
}

int legacy_cpu_read(struct legacy *in)
{
	struct legacy_line line = { .text = STR("") };
	uint64_t version, period_us;
	struct words w;
	int r;

	must(read_header(in->bytes, &w, &version, &period_us));
	if (version == JAVA_VERSION) {
		codec_fail(in->error, 2 * w.size, false, "binary CPU profiles of Java are not read");
		return -ENOTSUP;
	}
	in->m->period = saturating_product(period_us, 1000);
	r = set_types(in);
	if (r < 0)
		return r;
	for (r = 1; r > 0 && cur_left(&w.c);)
		r = read_record(in, &w);
	if (r < 0)
		return r;
	drop_handler(in);
	drop_handler(in);
	line.rest = cur_rest(&w.c);
	r = legacy_read_map(in, &line);
	r = r ? r : legacy_place_all(in);
	if (r == 0)
		legacy_drop_doubled_leaves(in);
	return r;
}
