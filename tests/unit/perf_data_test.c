/* SPDX-License-Identifier: Apache-2.0 */
/* perf.data made by hand: both headers, records in any order, what was mapped where, compressed records, limits. */
#include "support.h"

#include <zstd.h>

#include "codec/code_names.h"
#include "codec/perf_data.h"
#include "codec/perf_data_int.h"

#define OUT_MAX MIB(8)
#define TYPE_USUAL (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_PERIOD | SAMPLE_CALLCHAIN | SAMPLE_IDENTIFIER)
#define K UINT64_C(0xffffffff81000000)
#define CONTEXT_KERNEL ((uint64_t)-128)
#define CONTEXT_USER ((uint64_t)-512)

static void put(struct buf *b, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buf_addc(b, (char)(value >> 8 * i));
}

static void put_text(struct buf *b, const char *text)
{
	buf_adds(b, str_of(text));
	do
		buf_addc(b, '\0');
	while (b->len % 8);
}

/* A record whose body was made in @body, which is empty afterwards. */
static void record(struct buf *out, uint32_t type, uint16_t misc, struct buf *body)
{
	put(out, type, 4);
	put(out, misc, 2);
	put(out, 8 + body->len, 2);
	buf_adds(out, buf_str(body));
	buf_clear(body);
}

/* What stands behind all records but samples: pid and tid, time, identifier. */
static void put_id(struct buf *body, uint64_t time)
{
	put(body, 0, 8);
	put(body, time, 8);
	put(body, 1, 8);
}

static void map(struct buf *out, uint16_t misc, uint32_t pid, uint64_t time, const uint64_t area[3], const char *name)
{
	struct buf body = BUF_INIT(KIB(4));

	put(&body, pid, 4);
	put(&body, pid, 4);
	for (int i = 0; i < 3; i++)
		put(&body, area[i], 8);
	put_text(&body, name);
	put_id(&body, time);
	record(out, PERF_MMAP, misc, &body);
	buf_release(&body);
}

static void map2(struct buf *out, uint16_t misc, uint32_t pid, uint64_t time, const uint64_t area[3], uint32_t prot,
		 const char *name)
{
	struct buf body = BUF_INIT(KIB(4));

	put(&body, pid, 4);
	put(&body, pid, 4);
	for (int i = 0; i < 3; i++)
		put(&body, area[i], 8);
	put(&body, 20, 4);
	for (int i = 0; i < 20; i++)
		buf_addc(&body, (char)(0xa0 + i));
	put(&body, prot, 4);
	put(&body, 2, 4);
	put_text(&body, name);
	put_id(&body, time);
	record(out, PERF_MMAP2, misc, &body);
	buf_release(&body);
}

static void comm(struct buf *out, uint16_t misc, uint32_t pid, uint32_t tid, uint64_t time, const char *name)
{
	struct buf body = BUF_INIT(KIB(4));

	put(&body, pid, 4);
	put(&body, tid, 4);
	put_text(&body, name);
	put_id(&body, time);
	record(out, PERF_COMM, misc, &body);
	buf_release(&body);
}

static void fork_of(struct buf *out, uint32_t pid, uint32_t parent, uint32_t tid, uint64_t time)
{
	struct buf body = BUF_INIT(KIB(4));

	put(&body, pid, 4);
	put(&body, parent, 4);
	put(&body, tid, 4);
	put(&body, parent, 4);
	put(&body, time, 8);
	put_id(&body, time);
	record(out, PERF_FORK, 0, &body);
	buf_release(&body);
}

struct shot {
	uint64_t id, time, period;
	uint32_t pid, tid;
	uint64_t chain[8];
	size_t count;
};

static void sample(struct buf *out, const struct shot *s)
{
	struct buf body = BUF_INIT(KIB(4));

	put(&body, s->id, 8);
	put(&body, s->count > 1 ? s->chain[1] : 0, 8);
	put(&body, s->pid, 4);
	put(&body, s->tid, 4);
	put(&body, s->time, 8);
	put(&body, s->period, 8);
	put(&body, s->count, 8);
	for (size_t i = 0; i < s->count; i++)
		put(&body, s->chain[i], 8);
	record(out, PERF_SAMPLE, MODE_USER, &body);
	buf_release(&body);
}

static void put_attr(struct buf *out, uint32_t type, uint64_t config, uint64_t sample_type)
{
	size_t start = out->len;

	put(out, type, 4);
	put(out, 112, 4);
	put(out, config, 8);
	put(out, 99, 8);
	put(out, sample_type, 8);
	put(out, 0, 8); /* read_format */
	put(out, ATTR_FREQ | ATTR_SAMPLE_ID_ALL, 8);
	while (out->len < start + 112)
		buf_addc(out, 0);
}

static void attr_record(struct buf *out, uint32_t type, uint64_t config, uint64_t id)
{
	struct buf body = BUF_INIT(KIB(4));

	put_attr(&body, type, config, TYPE_USUAL);
	put(&body, id, 8);
	record(out, PERF_HEADER_ATTR, 0, &body);
	buf_release(&body);
}

/* Both processes, the kernel, two events; the samples stand before what they need, as other CPUs' buffers have it. */
static void add_records(struct buf *out)
{
	static const uint64_t kernel[] = { K, 0x1000000, K }, a[] = { 0x400000, 0x10000, 0x1000 },
			      b[] = { 0x402000, 0x1000, 0 }, heap[] = { 0x900000, 0x1000, 0 };

	sample(out,
	       &(struct shot){ 1, 100, 250, 7, 7, { CONTEXT_KERNEL, K + 16, CONTEXT_USER, 0x400100, 0x400201 }, 5 });
	sample(out, &(struct shot){ 2, 300, 3, 8, 9, { CONTEXT_USER, 0x402010, 0x900001 }, 3 });
	sample(out, &(struct shot){ 1, 50, 1, 7, 7, { CONTEXT_USER, 0x5000 }, 2 });
	map(out, MODE_KERNEL, UINT32_MAX, 0, kernel, "[kernel.kallsyms]_text");
	map2(out, MODE_USER | PERF_MISC_MMAP_BUILD_ID, 7, 60, a, 5, "/bin/a b");
	map2(out, MODE_USER | PERF_MISC_MMAP_BUILD_ID, 7, 61, heap, 7, "//anon");
	comm(out, 0, 7, 7, 0, "first");
	fork_of(out, 8, 7, 8, 150);
	map2(out, MODE_USER, 8, 200, b, 5, "/bin/other");
	map2(out, MODE_USER, 8, 201, a, 3, "/bin/not-code");
	comm(out, 0, 8, 9, 160, "worker");
}

static void make_pipe(struct buf *out, void (*add)(struct buf *out))
{
	buf_adds(out, STR("PERFILE2"));
	put(out, 16, 8);
	attr_record(out, 1, 0, 1);
	attr_record(out, 0, 1, 2);
	add(out);
}

static void put_section(struct buf *out, uint64_t offset, uint64_t size)
{
	put(out, offset, 8);
	put(out, size, 8);
}

/* A string of the header: its room, then the text. */
static void put_header_text(struct buf *out, const char *text)
{
	put(out, 64, 4);
	buf_adds(out, str_of(text));
	for (size_t i = strlen(text); i < 64; i++)
		buf_addc(out, 0);
}

static void make_file(struct buf *out, void (*add)(struct buf *out))
{
	struct buf records = BUF_INIT(OUT_MAX), names = BUF_INIT(KIB(4)), ids = BUF_INIT(KIB(4));
	uint64_t attrs_at = 104, ids_at = attrs_at + 2 * 128, data_at = ids_at + 16, features_at;

	add(&records);
	features_at = data_at + records.len + 3 * 16;
	buf_adds(out, STR("PERFILE2"));
	put(out, 104, 8);
	put(out, 128, 8);
	put_section(out, attrs_at, 2 * 128);
	put_section(out, data_at, records.len);
	put_section(out, 0, 0);
	put(out, 1 << FEATURE_BUILD_ID | 1 << FEATURE_HOSTNAME | 1 << FEATURE_EVENT_DESC, 8);
	for (int i = 0; i < 3; i++)
		put(out, 0, 8);
	put_attr(out, 1, 0, TYPE_USUAL);
	put_section(out, ids_at, 8);
	put_attr(out, 0, 1, TYPE_USUAL);
	put_section(out, ids_at + 8, 8);
	put(out, 1, 8);
	put(out, 2, 8);
	buf_adds(out, buf_str(&records));
	put(&ids, UINT32_MAX, 4); /* build ids */
	for (int i = 0; i < 24; i++)
		buf_addc(&ids, (char)(i < 20 ? 0xb0 + i : 0));
	put_text(&ids, "/bin/other");
	record(&names, PERF_HEADER_BUILD_ID, MODE_USER, &ids);
	put_section(out, features_at, names.len);
	put_section(out, features_at + names.len, 68);
	put_section(out, features_at + names.len + 68, 8 + 2 * (112 + 4 + 68 + 8));
	buf_adds(out, buf_str(&names));
	put_header_text(out, "box");
	put(out, 2, 4);
	put(out, 112, 4);
	for (uint64_t i = 2; i > 0; i--) {
		put_attr(out, 0, 0, 0);
		put(out, 1, 4);
		put_header_text(out, i == 1 ? "cpu-clock:u" : "instructions:u");
		put(out, i, 8);
	}
	buf_release(&records);
	buf_release(&names);
	buf_release(&ids);
}

/* "pid:comm/tid:name +time values: frames" with the root first. */
static void model_text(const struct model *m, struct buf *out)
{
	for (size_t i = 0; i < m->value_type_count; i++)
		buf_addf(out, "%s" STR_FMT "/" STR_FMT, i ? " " : "", STR_ARG(model_string(m, m->value_types[i].type)),
			 STR_ARG(model_string(m, m->value_types[i].unit)));
	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_sample *s = &m->samples[i];
		const struct model_process *p = &m->processes[s->process];
		uint32_t path[16];
		size_t count = 0;

		buf_addf(out, "\n%u:" STR_FMT "/%u:" STR_FMT " +%llu", p->pid, STR_ARG(model_string(m, p->comm)),
			 m->threads[s->thread].tid, STR_ARG(model_string(m, m->threads[s->thread].name)),
			 (unsigned long long)s->time_offset_ns);
		for (size_t k = 0; k < m->value_type_count; k++)
			buf_addf(out, " %lld", (long long)model_values(m, s)[k]);
		buf_addc(out, ':');
		for (uint32_t node = s->stack; node && count < ARRAY_SIZE(path); node = m->stacks[node].parent)
			path[count++] = m->stacks[node].location;
		while (count-- > 0) {
			const struct model_location *location = &m->locations[path[count]];

			buf_addc(out, ' ');
			model_frame_name(m, path[count], 0, out);
			if (!location->mapping)
				buf_addf(out, "@%llx", (unsigned long long)location->address);
			buf_adds(out, model_kind_suffix(model_location_kind(m, path[count])));
		}
		if (s->end)
			buf_addf(out, " " STR_FMT, STR_ARG(model_string(m, s->end)));
	}
	buf_addc(out, '\n');
}

static int decode(const struct buf *bytes, const struct codec_limits *limits, struct window *out,
		  struct codec_error *error)
{
	struct cur c = guard_page(bytes->ptr, bytes->len);

	return codec_perf_data.decode_limited(cur_rest(&c), limits, out, error);
}

static void expect(const struct buf *bytes, const struct codec_limits *limits, const char *want)
{
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf found = BUF_INIT(OUT_MAX);
	struct codec_error error = { 0 };
	int r = decode(bytes, limits, &w, &error);

	if (r < 0)
		print_message("%s at byte %llu\n", error.reason, (unsigned long long)error.position);
	assert_int_equal(r, 0);
	assert_string_equal(error.lost.text, "");
	model_text(w.model, &found);
	assert_string_equal(buf_cstr(&found), want);
}

#define WANT(events)                                                                                          \
	"samples/count " events "\n"                                                                          \
	"7:first/7:first +0 1 1 0: [unknown]@5000\n"                                                          \
	"7:first/7:first +50 1 250 0: [a b+0x1200] [a b+0x1100] [[kernel.kallsyms]+0xffffffff81000010]_[k]\n" \
	"8:first/9:worker +250 1 0 3: [[jit]+0x900000] [other+0x10]\n"

static void records_of_a_pipe(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);

	(void)state;
	make_pipe(&bytes, add_records);
	assert_ptr_equal(codec_sniff(buf_str(&bytes)), &codec_perf_data);
	expect(&bytes, &(struct codec_limits){ 0 }, WANT("cpu-clock/nanoseconds instructions/count"));
}

static void records_of_a_file(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };
	bool any = false;

	(void)state;
	make_file(&bytes, add_records);
	expect(&bytes, &(struct codec_limits){ 0 }, WANT("cpu-clock:u/nanoseconds instructions:u/count"));
	assert_int_equal(decode(&bytes, &(struct codec_limits){ 0 }, &w, &error), 0);
	assert_string_equal(w.host, "box");
	assert_int_equal(w.frequency_hz, 99);
	for (size_t i = 0; i < w.model->mappings_count; i++) {
		const struct model_mapping *row = &w.model->mappings[i];

		if (!str_eq(model_string(w.model, row->filename), STR("/bin/other")))
			continue;
		any = true;
		assert_true(
			str_eq(model_string(w.model, row->build_id), STR("b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3")));
	}
	assert_true(any);
}

/* Pieces of a zstd stream, cut anywhere, also within a record. */
static void add_compressed(struct buf *out)
{
	struct buf plain = BUF_INIT(OUT_MAX), body = BUF_INIT(KIB(8));
	char packed[KIB(2)];
	size_t size, half;

	add_records(&plain);
	size = ZSTD_compress(packed, sizeof(packed), plain.ptr, plain.len, 1);
	assert_false(ZSTD_isError(size));
	half = size / 3;
	buf_add(&body, packed, half);
	record(out, PERF_COMPRESSED, 0, &body);
	put(&body, size - half, 8);
	buf_add(&body, packed + half, size - half);
	put(&body, 0, (8 - body.len % 8) % 8);
	record(out, PERF_COMPRESSED2, 0, &body);
	buf_release(&plain);
	buf_release(&body);
}

static void compressed_records(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);
	scoped(window_release) struct window none = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	make_pipe(&bytes, add_compressed);
	expect(&bytes, &(struct codec_limits){ 0 }, WANT("cpu-clock/nanoseconds instructions/count"));
	assert_int_equal(decode(&bytes, &(struct codec_limits){ .expanded_max = 100 }, &none, &error), -E2BIG);
	assert_string_equal(error.reason, "compressed records that expand too far");
}

static void add_more(struct buf *out)
{
	static const uint64_t kernel[] = { K, 0x1000000, K }, a[] = { 0x400000, 0x10000, 0 };
	scoped(buf_release) struct buf body = BUF_INIT(KIB(4));

	map(out, MODE_KERNEL, UINT32_MAX, 0, kernel, "[kernel.kallsyms]_text");
	map(out, MODE_USER, 7, 1, a, "/bin/a");
	put(&body, K + 0x2000000, 8); /* a BPF program */
	put(&body, 64, 4);
	put(&body, 1, 2);
	put(&body, 0, 2);
	put_text(&body, "bpf_prog_1_x");
	put_id(&body, 1);
	record(out, PERF_KSYMBOL, 0, &body);
	put(&body, 1, 8); /* 5 lost */
	put(&body, 5, 8);
	put_id(&body, 1);
	record(out, PERF_LOST, 0, &body);
	sample(out, &(struct shot){ 1, 10, 1, 7, 7, { CONTEXT_KERNEL, K + 0x2000010, K + 0x21 }, 3 });
	comm(out, PERF_MISC_COMM_EXEC, 7, 7, 20, "execed");
	sample(out, &(struct shot){ 1, 30, 1, 7, 7, { CONTEXT_USER, 0x400010 }, 2 });
	sample(out, &(struct shot){ 1, 40, 1, UINT32_MAX, UINT32_MAX, { CONTEXT_USER, 0x400010 }, 2 });
}

static void programs_of_bpf_and_exec(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	make_pipe(&bytes, add_more);
	expect(&bytes, &(struct codec_limits){ 0 },
	       "samples/count cpu-clock/nanoseconds\n"
	       "7:/7: +0 1 1: [[kernel.kallsyms]+0xffffffff81000020]_[k] bpf_prog_1_x_[k]\n"
	       "7:execed/7:execed +20 1 1: [unknown]@400010\n"
	       "0:/0: +30 1 1: [unknown]@400010\n");
	assert_int_equal(decode(&bytes, &(struct codec_limits){ 0 }, &w, &error), 0);
	assert_int_equal(window_counter(&w, STR("lost_by_perf")), 5);
}

/* Names: every question is written down. */
struct asked {
	struct buf text;
};

static int answer(void *ctx, const struct code_place *place, struct code_name *out)
{
	struct asked *asked = ctx;

	buf_addf(&asked->text, "%d " STR_FMT " %zu %llx%s\n", (int)place->kind, STR_ARG(place->path),
		 place->build_id.len, (unsigned long long)place->address, place->is_return ? " r" : "");
	if (place->kind == CODE_FILE)
		*out = (struct code_name){ .name = STR("named"), .file = STR("x.c"), .line = 3 };
	return place->kind == CODE_FILE ? 0 : -ENOENT;
}

static void names_are_asked_for_once(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);
	struct asked asked = { .text = BUF_INIT(OUT_MAX) };
	const struct code_names names = { .ctx = &asked, .find = answer };

	(void)state;
	make_pipe(&bytes, add_records);
	add_records(&bytes);
	expect(&bytes, &(struct codec_limits){ .names = &names, .samples_max = 6 },
	       "samples/count cpu-clock/nanoseconds instructions/count\n"
	       "7:first/7:first +0 1 1 0: [unknown]@5000\n7:first/7:first +0 1 1 0: [unknown]@5000\n"
	       "7:first/7:first +50 1 250 0: named named [[kernel.kallsyms]+0xffffffff81000010]_[k]\n"
	       "7:first/7:first +50 1 250 0: named named [[kernel.kallsyms]+0xffffffff81000010]_[k]\n"
	       "8:first/9:worker +250 1 0 3: [[jit]+0x900000] named\n"
	       "8:first/9:worker +250 1 0 3: [[jit]+0x900000] named\n");
	assert_string_equal(buf_cstr(&asked.text), "1 [kernel.kallsyms] 0 ffffffff81000010\n0 /bin/a b 20 1100\n"
						   "0 /bin/a b 20 1201 r\n0 /bin/other 0 10\n2  0 900001 r\n");
	buf_release(&asked.text);
}

static void limits_are_kept(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);
	scoped(window_release) struct window none = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	make_pipe(&bytes, add_records);
	expect(&bytes, &(struct codec_limits){ .depth_max = 1, .samples_max = 3 },
	       "samples/count cpu-clock/nanoseconds instructions/count\n"
	       "7:first/7:first +0 1 1 0: [unknown]@5000\n"
	       "7:first/7:first +50 1 250 0: [[kernel.kallsyms]+0xffffffff81000010]_[k] cut:frame-limit\n"
	       "8:first/9:worker +250 1 0 3: [other+0x10] cut:frame-limit\n");
	assert_int_equal(decode(&bytes, &(struct codec_limits){ .samples_max = 2 }, &none, &error), -E2BIG);
	assert_string_equal(error.reason, "too many samples");
	assert_null(none.model);
}

static bool stop(void *ctx)
{
	++*(int *)ctx;
	return true;
}

static void a_stop_is_seen(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);
	scoped(window_release) struct window none = { 0 };
	struct codec_error error = { 0 };
	int asked = 0;

	(void)state;
	make_pipe(&bytes, add_records);
	assert_int_equal(decode(&bytes, &(struct codec_limits){ .stop = stop, .stop_ctx = &asked }, &none, &error),
			 -ECANCELED);
	assert_int_equal(asked, 1);
	assert_null(none.model);
}

/* Processes with many mappings, each forked and changed in turn: every fork would copy all of them. */
static void add_copies(struct buf *out)
{
	uint64_t area[] = { 0, 0x1000, 0 };

	for (uint64_t i = 0; i < 20000; i++) {
		area[0] = i << 13;
		map(out, MODE_USER, 1, 0, area, "/a");
	}
	for (uint32_t i = 2; i < 20000; i++) {
		fork_of(out, i, i - 1, i, i);
		area[0] = (uint64_t)i << 13 | 0x400;
		map(out, MODE_USER, i, i, area, "/b");
	}
	sample(out, &(struct shot){ 1, 1, 1, 1, 1, { CONTEXT_USER, 0x1000 }, 2 });
}

static void copies_are_bounded(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);
	scoped(window_release) struct window none = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	make_pipe(&bytes, add_copies);
	assert_int_equal(bytes.error, 0);
	assert_int_equal(decode(&bytes, &(struct codec_limits){ .memory_max = MIB(64) }, &none, &error), -E2BIG);
	assert_null(none.model);
}

static void others_are_refused_by_name(void **state)
{
	static const struct {
		const char *name;
		struct str bytes;
		int want;
		const char *reason;
	} cases[] = {
		{ "big-endian",
		  { "2ELIFREP\0\0\0\0\0\0\0\x68", 16 },
		  -ENOTSUP,
		  "recorded on a machine of the other byte order (big-endian)" },
		{ "the first version",
		  { "PERFFILE\x68\0\0\0\0\0\0\0", 16 },
		  -ENOTSUP,
		  "the first version of perf.data (before Linux 2.6.32)" },
		{ "cut in the magic", { "PERFILE2\x10\0\0", 11 }, -EBADMSG, "the header is cut off" },
		{ "no records", { "PERFILE2\x10\0\0\0\0\0\0\0", 16 }, -EBADMSG, "no samples in it" },
		{ "a sample without an event",
		  { "PERFILE2\x10\0\0\0\0\0\0\0\x09\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0", 32 },
		  -EBADMSG,
		  "a sample before its event's description" },
		{ "a record of size 0",
		  { "PERFILE2\x10\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0", 24 },
		  -EBADMSG,
		  "a record's size is smaller than its header" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(window_release) struct window none = { 0 };
		struct codec_error error = { 0 };
		struct cur c = guard_page(cases[i].bytes.ptr, cases[i].bytes.len);

		print_message("  %s\n", cases[i].name);
		assert_int_equal(codec_perf_data.decode(cur_rest(&c), &none, &error), cases[i].want);
		assert_string_equal(error.reason, cases[i].reason);
		assert_null(none.model);
	}
}

static void a_recording_that_was_cut_off(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	make_pipe(&bytes, add_records);
	bytes.len -= 5;
	assert_int_equal(decode(&bytes, &(struct codec_limits){ 0 }, &w, &error), 0);
	assert_int_equal(w.model->samples_count, 3);
	assert_int_equal(window_counter(&w, STR("recording_cut_off")), 1);
	assert_string_equal(error.lost.text, "perf record did not end as it should: what was not written is missing");
}

/* Both events' ids are said to lie all over the file: with many events that would be work without end. */
static void ids_that_overlap(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX), section = BUF_INIT(KIB(1));
	scoped(window_release) struct window none = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	make_file(&bytes, add_records);
	put_section(&section, 0, bytes.len);
	memcpy(bytes.ptr + 104 + 112, section.ptr, 16);
	memcpy(bytes.ptr + 104 + 128 + 112, section.ptr, 16);
	assert_int_equal(decode(&bytes, &(struct codec_limits){ 0 }, &none, &error), -EBADMSG);
	assert_string_equal(error.reason, "more ids of events than the file has room for");
	assert_int_equal(error.position, 104 + 128);
	assert_null(none.model);
}

static void add_deferred(struct buf *out)
{
	sample(out, &(struct shot){ 1, 100, 250, 7, 7, { CONTEXT_KERNEL, K + 16, (uint64_t)-640, 0x400100 }, 4 });
}

/* What stands behind the mark is a number and no frame. */
static void frames_that_come_later(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX), found = BUF_INIT(OUT_MAX);
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	make_pipe(&bytes, add_deferred);
	assert_int_equal(decode(&bytes, &(struct codec_limits){ 0 }, &w, &error), 0);
	model_text(w.model, &found);
	assert_string_equal(buf_cstr(&found), "samples/count cpu-clock/nanoseconds\n"
					      "7:/7: +0 1 250: [[kernel.kallsyms]+0xffffffff81000010]_[k]\n");
	assert_string_equal(error.lost.text,
			    "1 samples have their user frames in records of their own, which are not read");
	assert_int_equal(window_counter(&w, STR("stacks_deferred")), 1);
}

static int decode_failing(void *ctx)
{
	const struct buf *bytes = ctx;
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };
	int r = codec_perf_data.decode(buf_str(bytes), &w, &error);

	if (r == -EBADMSG) /* zstd's own allocations are not told from damage by its result */
		r = -ENOMEM;
	assert_true(r == 0 || (r == -ENOMEM && !w.model));
	return r;
}

static void allocations_fail(void **state)
{
	scoped(buf_release) struct buf pipe = BUF_INIT(OUT_MAX), file = BUF_INIT(OUT_MAX), more = BUF_INIT(OUT_MAX);

	(void)state;
	make_pipe(&pipe, add_compressed);
	make_file(&file, add_records);
	make_pipe(&more, add_more);
	for_each_failing_allocation(decode_failing, &pipe);
	for_each_failing_allocation(decode_failing, &file);
	for_each_failing_allocation(decode_failing, &more);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_of_a_pipe),
		cmocka_unit_test(records_of_a_file),
		cmocka_unit_test(compressed_records),
		cmocka_unit_test(programs_of_bpf_and_exec),
		cmocka_unit_test(names_are_asked_for_once),
		cmocka_unit_test(limits_are_kept),
		cmocka_unit_test(a_stop_is_seen),
		cmocka_unit_test(copies_are_bounded),
		cmocka_unit_test(others_are_refused_by_name),
		cmocka_unit_test(a_recording_that_was_cut_off),
		cmocka_unit_test(ids_that_overlap),
		cmocka_unit_test(frames_that_come_later),
		cmocka_unit_test(allocations_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
