/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/perf_data.h"

#include "codec/perf_data_int.h"

#define TEXT_ROOM MIB(1) /* for names of events, build ids and what else is not in the file as text */

/* What was left out or cannot be told, in one line. */
static void say_what_is_lost(const struct perf_data *d, struct codec_error *error)
{
	struct codec_lost *lost = error ? &error->lost : NULL;

	if (d->not_unwound)
		codec_lose(lost,
			   "%llu samples have a copy of the stack instead of user frames, which perf script unwinds",
			   (unsigned long long)d->not_unwound);
	if (d->deferred)
		codec_lose(lost, "%llu samples have their user frames in records of their own, which are not read",
			   (unsigned long long)d->deferred);
	if (d->is_cut_off)
		codec_lose(lost, "perf record did not end as it should: what was not written is missing");
}

static void init_tables(struct perf_data *d)
{
	size_t text_max = d->limits->memory_max ? d->limits->memory_max / 4 : GIB(1);

	u64map_init(&d->attr_of, UINT32_MAX);
	u64map_init(&d->processes, UINT32_MAX);
	u64map_init(&d->comms, UINT32_MAX);
	intern_init(&d->names, text_max);
	intern_init(&d->file_keys, text_max);
	intern_init(&d->build_id_names, text_max);
}

static int decode_limited(struct str bytes, const struct codec_limits *limits, struct window *out,
			  struct codec_error *error)
{
	scoped(window_release) struct window w = { 0 };
	scoped(perf_data_release) struct perf_data d = { .bytes = bytes, .limits = limits, .error = error, .w = &w };
	size_t text_max = limits->memory_max ? limits->memory_max : GIB(2);
	int r = window_init(&w, text_max + TEXT_ROOM);

	if (r < 0) {
		codec_fail(error, 0, false, "out of memory");
		return r;
	}
	init_tables(&d);
	d.m = w.model;
	d.m->memory_max = limits->memory_max;
	r = perf_data_scan(&d);
	r = r ? r : perf_data_apply(&d);
	if (r < 0)
		return r;
	say_what_is_lost(&d, error);
	d.m->memory_max = 0; /* what is done with it later has limits of its own */
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}

static int decode(struct str bytes, struct window *out, struct codec_error *error)
{
	return decode_limited(bytes, &(struct codec_limits){ 0 }, out, error);
}

static int sniff(struct str bytes)
{
	static const char *const magics[] = { "PERFILE2", "2ELIFREP", "PERFFILE" };

	for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
		if (str_starts(bytes, str_of(magics[i])))
			return 1;
	return 0;
}

static const char *const suffixes[] = { "perf.data", ".perfdata", NULL };

const struct codec codec_perf_data = {
	.name = "perf-data",
	.suffixes = suffixes,
	.help = "what perf record writes",
	.sniff = sniff,
	.decode = decode,
	.decode_limited = decode_limited,
};
