/* SPDX-License-Identifier: Apache-2.0 */
/* Reading pprof. One pass over the top level finds the tables (messages may come in any order, so nothing can be
 * resolved before its end), then tables, then a second pass for the samples. Nothing is allocated from a number that
 * the file only claims. */
#include "codec/gzip.h"
#include "codec/pprof_in.h"
#include "codec/pprof_legacy.h"

static void pprof_in_release(struct pprof_in *in)
{
	free(in->strings.items);
	free(in->mappings.items);
	free(in->locations.items);
	free(in->functions.items);
	free(in->types.items);
	free(in->string_ids);
	free(in->comments);
	free(in->function_rows);
	pprof_id_release(&in->mapping_ids);
	pprof_id_release(&in->location_ids);
	pprof_id_release(&in->function_ids);
	free(in->lines);
	free(in->frames);
	free(in->nodes);
	free(in->labels);
}

static size_t spans_memory(const struct pprof_in *in)
{
	return (in->strings.cap + in->mappings.cap + in->locations.cap + in->functions.cap + in->types.cap) *
	       sizeof(struct span);
}

/* Ids that are no row numbers are kept in hashes; a slot of one is 16 bytes. */
static size_t ids_memory(const struct id_table *t)
{
	return t->dense_count * sizeof(*t->dense) + t->sparse.cap * 16;
}

static size_t scratch_memory(const struct pprof_in *in)
{
	return spans_memory(in) + ids_memory(&in->mapping_ids) + ids_memory(&in->location_ids) +
	       ids_memory(&in->function_ids) + in->function_rows_cap * sizeof(*in->function_rows) +
	       (in->string_ids ? in->strings.count * sizeof(*in->string_ids) : 0) +
	       in->comments_cap * sizeof(*in->comments) + in->lines_cap * sizeof(*in->lines) +
	       (in->frames_cap + in->nodes_cap) * sizeof(*in->frames);
}

int pprof_limits_look(struct pprof_in *in)
{
	if (codec_stopped(in->limits, in->done))
		return -ECANCELED;
	if (in->limits->memory_max && scratch_memory(in) > in->limits->memory_max / 2)
		return too_big(in, 0, "too many or too long entries");
	return 0;
}

#define RESERVE_MAX (UINT32_C(1) << 20) /* rows of a table; larger ones grow */

/* The messages have been counted: each makes a row at most. A location of one function has one line. */
static void reserve_rows(struct pprof_in *in)
{
	struct model_room room = { .strings = in->strings.count,
				   .functions = in->functions.count,
				   .locations = in->locations.count,
				   .lines = in->locations.count };

	if (MAX(room.strings, MAX(room.functions, room.locations)) > RESERVE_MAX)
		return;
	for (size_t i = 0; i < in->strings.count; i++)
		room.string_bytes += in->strings.items[i].size;
	model_reserve(in->m, &room);
}

static int read_profile(struct pprof_in *in)
{
	int r = pprof_scan(in);

	if (r < 0)
		return r;
	in->string_ids = calloc(in->strings.count, sizeof(*in->string_ids));
	if (!in->string_ids)
		return failed(in, 0, -ENOMEM);
	reserve_rows(in);
	r = pprof_read_header(in);
	r = r ? r : pprof_read_tables(in);
	r = r ? r : pprof_read_samples(in);
	return r ? r : failed(in, 0, pprof_comments_lift(in->window));
}

/* Times of the window from the profile's, where they make sense. */
static void set_times(struct window *w)
{
	const struct model *m = w->model;

	if (m->time_ns <= 0)
		return;
	w->start_ns = (uint64_t)m->time_ns;
	w->end_ns = w->start_ns + (m->duration_ns > 0 ? (uint64_t)m->duration_ns : 0); /* two of 63 bits: fits */
}

static int decode_plain(struct str bytes, const struct codec_limits *limits, struct window *out,
			struct codec_error *error)
{
	scoped(window_release) struct window w = { 0 };
	scoped(pprof_in_release) struct pprof_in in = { .bytes = bytes, .limits = limits, .error = error };
	int r;

	if (!bytes.len) {
		codec_fail(error, 0, false, "empty input file");
		return -EBADMSG;
	}
	r = window_init(&w, bytes.len + KIB(64));
	if (r < 0)
		return failed(&in, 0, r);
	in.window = &w;
	in.m = w.model;
	in.m->memory_max = limits->memory_max;
	in.m->may_repeat = limits->may_repeat;
	r = read_profile(&in);
	if (r < 0)
		return r;
	set_times(&w);
	in.m->memory_max = 0; /* what is done with it later has limits of its own */
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}

int pprof_decode_limited(struct str bytes, const struct codec_limits *limits, struct window *out,
			 struct codec_error *error)
{
	scoped(buf_release) struct buf room;
	struct str plain;
	int r = codec_unpack(bytes, limits, PPROF_EXPANDED_MAX, &room, &plain, error);

	if (r < 0)
		return r;
	r = decode_plain(plain, limits, out, error);
	if (r == -EBADMSG && gzip_is(bytes) && codec_legacy.sniff(plain)) /* packed too: only now does it show */
		r = codec_legacy.decode_limited(plain, limits, out, error);
	return r;
}
