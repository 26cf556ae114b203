/* SPDX-License-Identifier: Apache-2.0 */
/* A recording: chunks one behind another, each with its own types and constants. They are gone through twice, because
 * the profile's value types come from the events that there are. */
#include "base/limit.h"
#include "codec/jfr_int.h"

#define JFR_EXPANDED_MAX GIB(1)
#define WORK_PER_BYTE 16
#define COMM "java"

static void jfr_in_release(struct jfr_in *in)
{
	free(in->event_counts);
	free(in->columns);
	free(in->frames);
	free(in->nodes);
	buf_release(&in->text);
	buf_release(&in->parts);
}

static int count_chunk(struct jfr_chunk *k)
{
	struct jfr_in *in = k->in;
	uint64_t end;

	if (__builtin_add_overflow(k->start_ns, k->duration_ns, &end) || end > INT64_MAX)
		return jfr_bad(in, k->at, "the chunk's time is wrong");
	in->start_ns = k->at ? MIN(in->start_ns, k->start_ns) : k->start_ns;
	in->end_ns = MAX(in->end_ns, end);
	return jfr_count_events(k);
}

static int read_chunk(struct jfr_chunk *k)
{
	int r = jfr_chunk_constants(k);

	return r ? r : jfr_read_samples(k);
}

static int each_chunk(struct jfr_in *in, int (*each)(struct jfr_chunk *k))
{
	uint64_t at = 0;
	int r = 0;

	while (r == 0 && at < in->bytes.len) {
		scoped(jfr_chunk_release) struct jfr_chunk k;

		r = jfr_chunk_open(in, at, &k);
		r = r ? r : each(&k);
		at += k.bytes.len;
	}
	return r;
}

static int prepare(struct jfr_in *in)
{
	const struct {
		uint32_t *id;
		struct str text;
	} strings[] = { { &in->cut, STR(CODEC_STACK_CUT) },
			{ &in->truncated, STR("cut:jfr-stack-depth") },
			{ &in->class_key, STR("class") },
			{ &in->unknown, STR("[unknown]") } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(strings); i++)
		r = jfr_failed(in, 0, model_add_string(in->m, strings[i].text, strings[i].id));
	return r ? r : jfr_events_prepare(in);
}

static int add_process(struct jfr_in *in)
{
	struct model_process row = { .pid = in->pid };
	int r = model_add_string(in->m, STR(COMM), &row.comm);

	return jfr_failed(in, 0, r ? r : model_add_process(in->m, &row, &in->process));
}

static int read_recording(struct jfr_in *in)
{
	int r = prepare(in);

	r = r ? r : each_chunk(in, count_chunk);
	r = r ? r : jfr_add_columns(in);
	r = r ? r : add_process(in);
	r = r ? r : each_chunk(in, read_chunk);
	if (r < 0)
		return r;
	in->window->start_ns = in->start_ns;
	in->window->end_ns = in->end_ns;
	in->m->time_ns = (int64_t)in->start_ns;
	in->m->duration_ns = (int64_t)(in->end_ns - in->start_ns);
	return jfr_failed(in, 0, window_set_text(&in->window->sampler, STR("jfr")));
}

static void say_what_is_lost(const struct jfr_in *in)
{
	struct codec_lost *lost = in->error ? &in->error->lost : NULL;

	if (!in->m->samples_count)
		codec_lose(lost, "the recording has no samples");
	if (in->lost_stacks)
		codec_lose(lost, "%llu samples have a stack that the recording does not have",
			   (unsigned long long)in->lost_stacks);
	if (in->lost_methods)
		codec_lose(lost, "%llu frames have a method that the recording does not have",
			   (unsigned long long)in->lost_methods);
	if (in->other_events)
		codec_lose(lost, "%llu events that are no samples are left out", (unsigned long long)in->other_events);
}

static int decode_plain(struct str bytes, const struct codec_limits *limits, struct window *out,
			struct codec_error *error)
{
	scoped(window_release) struct window w = { 0 };
	scoped(jfr_in_release) struct jfr_in in = { .bytes = bytes,
						    .limits = limits,
						    .error = error,
						    .work_max = (uint64_t)bytes.len * WORK_PER_BYTE + 1000000,
						    .text = BUF_INIT(GIB(1)),
						    .parts = BUF_INIT(GIB(1)) };
	int r;

	if (!bytes.len)
		return jfr_bad(&in, 0, "empty input file");
	r = window_init(&w, MIN(limit_of_sizes(bytes.len, 32, KIB(64)), GIB(2)));
	if (r < 0)
		return jfr_failed(&in, 0, r);
	in.window = &w;
	in.m = w.model;
	in.m->memory_max = limits->memory_max;
	r = read_recording(&in);
	if (r < 0)
		return r;
	say_what_is_lost(&in);
	in.m->memory_max = 0; /* what is done with it later has limits of its own */
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}

static int decode_limited(struct str bytes, const struct codec_limits *limits, struct window *out,
			  struct codec_error *error)
{
	scoped(buf_release) struct buf room;
	struct str plain;
	int r = codec_unpack(bytes, limits, JFR_EXPANDED_MAX, &room, &plain, error);

	return r ? r : decode_plain(plain, limits, out, error);
}

static int decode(struct str bytes, struct window *out, struct codec_error *error)
{
	return decode_limited(bytes, &(struct codec_limits){ 0 }, out, error);
}

static int sniff(struct str bytes)
{
	return str_starts(bytes, str_n("FLR", 4));
}

static const char *const suffixes[] = { ".jfr", NULL };

const struct codec codec_jfr = {
	.name = "jfr",
	.suffixes = suffixes,
	.help = "recordings of the JDK Flight Recorder and async-profiler",
	.sniff = sniff,
	.decode = decode,
	.decode_limited = decode_limited,
};
