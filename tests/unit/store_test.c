/* SPDX-License-Identifier: Apache-2.0 */
/* What every store keeps to, run on each of them. */
#include "support.h"

#include <pthread.h>
#include <unistd.h>

#include "base/io.h"
#include "base/wire.h"
#include "codec/window_codec.h"
#include "codec_samples.h"
#include "model_samples.h"
#include "store/columns.h"
#include "store/export.h"
#include "store/store.h"
#include "store_support.h"

#define DAY (UINT64_C(86400) * NSEC_PER_SEC)
#define HOUR (UINT64_C(3600) * NSEC_PER_SEC)
#define MORNING (UINT64_C(20000) * DAY + 8 * HOUR) /* 2024-10-04T08:00:00Z */

static void ids(void **state)
{
	/* An id in the layout of github.com/rs/xid */
	static const struct store_id example = { { 0x4a, 0xf9, 0xf0, 0x70, 0x72, 0xcf, 0x46, 0x29, 0xbd, 0x94, 0x35,
						   0x3a } };
	static const char *const wrong[] = { "",
					     "9bsv0s3ipt32jfck6kt",
					     "9bsv0s3ipt32jfck6kt00",
					     "9bsv0s3ipt32jfck6ktw",
					     "9bsv0s3ipt32jfck6ktg1",
					     "9BSV0S3IPT32JFCK6KT0",
					     "9bsv0s3ipt32jfck6kt1" };
	char text[STORE_ID_TEXT + 1];
	struct store_id back;

	(void)state;
	store_id_text(&example, text);
	assert_string_equal(text, "9bsv0s3ipt32jfck6kt0");
	assert_int_equal(store_id_parse(str_of(text), &back), 0);
	assert_memory_equal(&back, &example, sizeof(back));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(store_id_parse(str_of(wrong[i]), &back), -EBADMSG);
}

static void reads_what_was_put(void **state)
{
	struct fixture *f = *state;

	for (uint64_t seed = 1; seed <= 12; seed++) {
		scoped(window_release) struct window w = { 0 };
		struct store_id id;

		print_message("  seed %llu\n", (unsigned long long)seed);
		fixture_window(seed, &w);
		id = fixture_put(f, "api", "cpu", "", MORNING + seed, &w);
		fixture_assert_reads(f, &id, &w);
	}
	for (int with_long = 0; with_long < 2; with_long++) {
		scoped(window_release) struct window w = { 0 };
		struct store_id id;

		assert_int_equal(hostile_window(&w, with_long), 0);
		id = fixture_put(f, "hostile", "other", "", MORNING, &w);
		fixture_assert_reads(f, &id, &w);
		fixture_reopen(f);
		if (f->lasts)
			fixture_assert_reads(f, &id, &w);
	}
}

/* @way: how the times lie; 4: there are none. */
static void set_times(struct model *m, int way)
{
	for (uint64_t i = 0; i < m->samples_count; i++) {
		const uint64_t times[] = { i * 20 * NSEC_PER_MSEC, i % 7 * 999983 + 1,
					   i % 3 ? i / 2 * 20 * NSEC_PER_MSEC : MODEL_NO_TIME,
					   i % 2 ? UINT64_MAX - 1 : 0, MODEL_NO_TIME };

		m->samples[i].time_offset_ns = times[way];
	}
}

/* What is read has the times of its samples, what is added up has none and no more rows. */
static void keeps_times(void **state)
{
	struct store_selector timed = { .service = STR("timed"), .to_ns = UINT64_MAX },
			      plain = { .service = STR("plain"), .to_ns = UINT64_MAX };
	struct fixture *f = *state;
	struct store_id ids[4];

	for (int closed = 0; closed < 2; closed++) {
		scoped(window_release) struct window a = { 0 }, b = { 0 };
		scoped(content_release) struct content want = { 0 }, got = { 0 };
		struct store_sum info;

		for (int way = 0; way < 4; way++) {
			scoped(window_release) struct window w = { 0 };

			print_message("  %s, way %d\n", closed ? "closed" : "open", way);
			fixture_window((uint64_t)way + 1, &w);
			set_times(w.model, way);
			if (!closed)
				ids[way] = fixture_put(f, "timed", "cpu", "", MORNING + (uint64_t)way, &w);
			fixture_assert_reads(f, &ids[way], &w);
			set_times(w.model, 4);
			if (!closed)
				(void)fixture_put(f, "plain", "cpu", "", MORNING + (uint64_t)way, &w);
		}
		assert_int_equal(f->store->sum(f->s, &plain, &a, &info), 0);
		assert_int_equal(f->store->sum(f->s, &timed, &b, &info), 0);
		content_add(&want, a.model);
		content_add(&got, b.model);
		content_assert_same(&got, &want);
		assert_int_equal(b.model->samples_count, a.model->samples_count);
		for (size_t i = 0; i < b.model->samples_count; i++)
			assert_int_equal(b.model->samples[i].time_offset_ns, MODEL_NO_TIME);
		f->now = MORNING + 3 * DAY;
		assert_int_equal(f->store->maintain(f->s), 0); /* sums of hours and days; the file is packed anew */
	}
}

static void columns_of(const uint64_t *times, const uint32_t *keys, size_t count, struct columns *out)
{
	assert_int_equal(columns_room(out, count, 1), 0);
	out->has_times = true;
	for (size_t i = 0; i < count; i++) {
		out->keys[i] = keys[i];
		out->times[i] = times[i];
		out->values[i] = 1;
	}
}

/* Steps are small: a byte for each sample. What older versions wrote, ns, is read and written as steps; what is in no
 * order stays as it was. */
static void times_are_steps(void **state)
{
	static const uint8_t old[] = { 7, 0, 0, 1, 0x81, 0xb4, 0x89, 0x13, 0, 6, 3, 2 };
	static const uint64_t times[] = { 40 * NSEC_PER_MSEC, MODEL_NO_TIME, 5 };
	static const uint64_t odd[] = { 5, 4, 4 };
	static const uint32_t keys[] = { 0, 0, 1 };
	scoped(columns_release) struct columns c = { 0 }, want = { 0 };
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64)), large = BUF_INIT(KIB(1));
	static uint64_t many[500];
	static const uint32_t same[500];

	(void)state;
	assert_int_equal(columns_decode(str_n((const char *)old, sizeof(old)), 2, 1, &c), 0);
	assert_true(c.has_times && c.count == 3);
	assert_memory_equal(c.times, times, sizeof(times));
	columns_encode(&c, &bytes);
	assert_int_equal(bytes.ptr[0], 1);
	columns_release(&c);
	assert_int_equal(columns_decode(buf_str(&bytes), 2, 1, &c), 0);
	assert_memory_equal(c.times, times, sizeof(times));
	columns_of(odd, keys, 3, &want);
	buf_clear(&bytes);
	columns_encode(&want, &bytes);
	assert_int_equal(bytes.ptr[0], 7);
	assert_int_equal(columns_decode(buf_str(&bytes), 2, 1, &c), 0);
	assert_memory_equal(c.times, odd, sizeof(odd));
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = i * 20 * NSEC_PER_MSEC;
	columns_of(many, same, ARRAY_SIZE(many), &want);
	buf_clear(&bytes);
	columns_encode(&want, &bytes);
	assert_true(bytes.len < 3 * ARRAY_SIZE(many) + 16); /* key, low byte, high part; before compression */
	for (size_t i = 0; i < bytes.len; i++)
		assert_int_equal(columns_decode(str_first(buf_str(&bytes), i), 1, 1, &c), -EBADMSG);
	/* steps of nothing; two of 2^63; more steps than there are numbers */
	assert_int_equal(columns_decode(str_n("\1\3\0\0\3\0\3\2", 8), 1, 1, &c), -EBADMSG);
	buf_adds(&large, str_n("\1\3\0", 3));
	wire_add_varint(&large, UINT64_C(1) << 63);
	buf_adds(&large, str_n("\3\0\3\2", 4));
	assert_int_equal(columns_decode(buf_str(&large), 1, 1, &c), -EBADMSG);
	buf_clear(&large);
	buf_adds(&large, str_n("\1\3\0\1\3", 5));
	wire_add_varint(&large, UINT64_MAX >> 7);
	buf_adds(&large, str_n("\3\2", 2));
	assert_int_equal(columns_decode(buf_str(&large), 1, 1, &c), -EBADMSG);
}

/* Also where no dictionary takes so many mappings, and the window is kept whole. */
static void keeps_equal_rows_once(void **state)
{
	static const size_t mappings[] = { 0, 70000 };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(mappings); i++) {
		scoped(window_release) struct window once = { 0 }, twice = { 0 };
		struct store_id id;

		assert_int_equal(window_init(&once, 0), 0);
		assert_int_equal(window_init(&twice, 0), 0);
		model_release(once.model);
		model_release(twice.model);
		assert_int_equal(repeated_model(false, mappings[i], once.model), 0);
		assert_int_equal(repeated_model(true, mappings[i], twice.model), 0);
		assert_true(twice.model->functions_count > 10 * once.model->functions_count);
		id = fixture_put(f, "api", "cpu", "", MORNING, &twice);
		fixture_assert_reads(f, &id, &once);
	}
}

/* Two mappings of one file at two addresses, one of no size, the same file elsewhere in the next profile. */
static void keeps_addresses(void **state)
{
	struct fixture *f = *state;

	for (uint64_t base = 0x1000; base < 0x4000; base += 0x1000) {
		scoped(window_release) struct window w = { 0 };
		struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
		struct store_id id;
		const int64_t value = 1;

		assert_int_equal(window_init(&w, KIB(1)), 0);
		assert_int_equal(model_add_value_type(w.model, STR("x"), STR("count")), 0);
		for (uint64_t i = 0; i < 5; i++) {
			uint64_t start = i == 4 ? 0 : base + i / 2 * 0x100000;
			struct model_mapping mapping = { .start = start,
							 .limit = start + (i % 2 || i == 4 ? 0 : 0x800) };
			struct model_location location = { .address = start + i };

			mapping.flags = (uint32_t)i;
			assert_int_equal(model_add_string(w.model, STR("[python]"), &mapping.filename), 0);
			assert_int_equal(model_add_mapping(w.model, &mapping, &location.mapping), 0);
			assert_int_equal(model_add_location(w.model, &location, NULL, &sample.stack), 0);
			assert_int_equal(model_add_stack(w.model, 0, sample.stack, &sample.stack), 0);
			assert_int_equal(model_add_sample(w.model, &sample, &value), 0);
		}
		id = fixture_put(f, "api", "cpu", "", MORNING, &w);
		fixture_assert_reads(f, &id, &w);
	}
}

/* A part of a machine's window says of its processes whose they are. What is kept is kept under that name. */
static void keeps_no_workload_of_a_process(void **state)
{
	struct fixture *f = *state;
	scoped(window_release) struct window w = { 0 };
	struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
	struct model_process process = { .pid = 1 };
	struct store_selector all = { .to_ns = UINT64_MAX };
	const int64_t value = 1;

	assert_int_equal(window_init(&w, MIB(1)), 0);
	assert_int_equal(model_add_value_type(w.model, STR("x"), STR("count")), 0);
	for (int i = 0; i < 5000; i++) { /* their numbers are large ones, beyond all that is read back */
		char name[16];

		assert_int_equal(model_add_string(w.model,
						  str_n(name, (size_t)snprintf(name, sizeof(name), "name %d", i)),
						  &process.workload),
				 0);
	}
	process.service_kind = process.workload - 1;
	assert_int_equal(model_add_process(w.model, &process, &sample.process), 0);
	assert_int_equal(model_add_sample(w.model, &sample, &value), 0);
	for (uint64_t i = 0; i < 2; i++) {
		struct store_document d = { 0 };
		struct store_id id = fixture_put(f, "api", "cpu", "", MORNING + i, &w);

		assert_int_equal(f->store->read(f->s, &id, &d), 0);
		for (size_t at = 0; at < d.window.model->processes_count; at++)
			assert_true(d.window.model->processes[at].workload < intern_count(&d.window.model->strings));
		store_document_release(&d);
	}
	fixture_assert_sum(f, &all);
}

static void keeps_raw_bytes(void **state)
{
	struct fixture *f = *state;
	struct str raw = str_n("go 1.19 trace\0\0\0any\xff", 20);
	struct store_upload upload = { .service = STR("api"), .type = STR("trace"), .created_ns = MORNING, .raw = raw };
	struct store_document d = { 0 };
	scoped(window_release) struct window sum = { 0 };
	struct store_sum info;
	struct store_id id;

	assert_int_equal(f->store->put(f->s, &upload, &id), 0);
	assert_int_equal(f->store->read(f->s, &id, &d), 0);
	assert_true(d.is_raw && str_eq(buf_str(&d.raw), raw));
	store_document_release(&d);
	assert_int_equal(f->store->sum(f->s, &(struct store_selector){ .to_ns = UINT64_MAX }, &sum, &info), 0);
	assert_int_equal(info.skipped, 1);
	assert_int_equal(info.profiles, 0);
	assert_int_equal(sum.model->samples_count, 0);
}

static void refuses(void **state)
{
	struct fixture *f = *state;
	static char long_name[STORE_NAME_MAX + 2];
	struct store_label labels[STORE_LABELS_MAX + 1] = { { STR("k"), STR("v") } };
	const struct {
		const char *name;
		struct store_upload upload;
		int want;
	} cases[] = {
		{ "no service", { .type = STR("cpu"), .created_ns = MORNING }, -EINVAL },
		{ "no type", { .service = STR("api"), .created_ns = MORNING }, -EINVAL },
		{ "2106", { .service = STR("api"), .type = STR("cpu"), .created_ns = UINT64_MAX / 2 }, -ERANGE },
		{ "long service", { .service = str_n(long_name, sizeof(long_name)), .type = STR("cpu") }, -E2BIG },
		{ "33 labels",
		  { .service = STR("api"), .type = STR("cpu"), .labels = labels, .label_count = ARRAY_SIZE(labels) },
		  -E2BIG },
	};
	struct store_id id = { { 7 } };
	struct store_document d;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		assert_int_equal(f->store->put(f->s, &cases[i].upload, &id), cases[i].want);
		assert_int_equal(id.bytes[0], 7);
	}
	assert_int_equal(f->store->read(f->s, &id, &d), -ENOENT);
}

/* Lists */

struct listing {
	char text[1024];
};

static int note_profile(void *ctx, const struct store_profile *p)
{
	struct listing *l = ctx;
	size_t at = strlen(l->text);

	at += (size_t)snprintf(l->text + at, sizeof(l->text) - at, "%.*s/%.*s@%llu", STR_ARG(p->service),
			       STR_ARG(p->type), (unsigned long long)(p->created_ns - MORNING) / NSEC_PER_SEC);
	for (size_t i = 0; i < p->label_count; i++)
		at += (size_t)snprintf(l->text + at, sizeof(l->text) - at, ",%.*s=%.*s", STR_ARG(p->labels[i].key),
				       STR_ARG(p->labels[i].value));
	(void)snprintf(l->text + at, sizeof(l->text) - at, " ");
	return 0;
}

static void put_some(struct fixture *f)
{
	scoped(window_release) struct window w = { 0 };

	fixture_window(1, &w);
	(void)fixture_put(f, "api", "cpu", "host=b;zone=x", MORNING + 3 * NSEC_PER_SEC, &w);
	(void)fixture_put(f, "api", "cpu", "zone=x;host=a", MORNING + 1 * NSEC_PER_SEC, &w);
	(void)fixture_put(f, "api", "heap", "host=a", MORNING + 2 * NSEC_PER_SEC, &w);
	(void)fixture_put(f, "ap", "icpu", "", MORNING + 2 * DAY, &w);
	(void)fixture_put(f, "web", "cpu", "host=a;host=c", MORNING - 1 * DAY, &w);
}

static void lists(void **state)
{
	struct fixture *f = *state;
	const struct store_label a = { STR("host"), STR("a") }, c[] = { { STR("host"), STR("c") }, a };
	const struct {
		struct store_selector sel;
		const char *want;
	} cases[] = {
		{ { .service = STR("api"), .to_ns = UINT64_MAX },
		  "api/cpu@1,host=a,zone=x api/heap@2,host=a api/cpu@3,host=b,zone=x " },
		{ { .service = STR("api"), .type = STR("cpu"), .to_ns = UINT64_MAX, .limit = 1 },
		  "api/cpu@3,host=b,zone=x " },
		{ { .service = STR("api"), .from_ns = MORNING + NSEC_PER_SEC, .to_ns = MORNING + 2 * NSEC_PER_SEC },
		  "api/cpu@1,host=a,zone=x api/heap@2,host=a " },
		{ { .service = STR("api"), .to_ns = UINT64_MAX, .labels = &a, .label_count = 1 },
		  "api/cpu@1,host=a,zone=x api/heap@2,host=a " },
		{ { .service = STR("web"), .to_ns = UINT64_MAX, .labels = c, .label_count = 2 },
		  "web/cpu@18446657673,host=a,host=c " },
		{ { .service = STR("ap"), .to_ns = UINT64_MAX }, "ap/icpu@172800 " },
		{ { .service = STR("none"), .to_ns = UINT64_MAX }, "" },
		{ { .to_ns = UINT64_MAX, .limit = 2 }, "api/cpu@3,host=b,zone=x ap/icpu@172800 " },
	};

	put_some(f);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct listing l = { "" };

		assert_int_equal(f->store->list(f->s, &cases[i].sel, note_profile, &l), 0);
		if (i != 4) /* before MORNING: the number wraps */
			assert_string_equal(l.text, cases[i].want);
		else
			assert_non_null(strstr(l.text, ",host=a,host=c "));
	}
}

static int note_series(void *ctx, const struct store_series *s)
{
	return note_profile(ctx, &(struct store_profile){ .service = s->service,
							  .type = s->type,
							  .labels = s->labels,
							  .label_count = s->label_count,
							  .created_ns = MORNING });
}

static void knows_its_series(void **state)
{
	struct fixture *f = *state;
	struct listing l = { "" };
	struct store_selector sel = { .service = STR("api"), .to_ns = UINT64_MAX };

	put_some(f);
	put_some(f);
	assert_int_equal(f->store->series(f->s, &sel, note_series, &l), 0);
	assert_int_equal(strlen(l.text), strlen("api/cpu@0,host=a,zone=x api/cpu@0,host=b,zone=x api/heap@0,host=a "));
	assert_non_null(strstr(l.text, "api/cpu@0,host=b,zone=x "));
	assert_non_null(strstr(l.text, "api/heap@0,host=a "));
	l.text[0] = 0;
	sel.service = STR("days");
	for (uint64_t day = 0; day < 6; day++) /* the second series comes later, then either */
		fixture_put_random(f, "days", (uint64_t[]){ 3, 3, 4, 6, 5, 3 }[day], MORNING + day * DAY);
	assert_int_equal(f->store->series(f->s, &sel, note_series, &l), 0);
	assert_int_equal(strlen(l.text), strlen("days/cpu@0,host=a days/cpu@0,host=b "));
	assert_non_null(strstr(l.text, "days/cpu@0,host=a "));
	assert_non_null(strstr(l.text, "days/cpu@0,host=b "));
}

/* What the API layers build on: lists by time, then id, also where a limit cuts among profiles of one moment; series in
 * the order of their names; points that say whose they are. */

struct ordered {
	struct store_profile last;
	struct store_id ids[16];
	size_t count;
	char text[256];
};

static int note_order(void *ctx, const struct store_profile *p)
{
	struct ordered *o = ctx;

	assert_true(o->count < ARRAY_SIZE(o->ids));
	if (o->count)
		assert_true(p->created_ns > o->last.created_ns ||
			    (p->created_ns == o->last.created_ns &&
			     memcmp(p->id.bytes, o->last.id.bytes, STORE_ID_SIZE) > 0));
	o->ids[o->count++] = p->id;
	o->last = *p;
	return 0;
}

static int note_name(void *ctx, const struct store_series *s)
{
	struct ordered *o = ctx;
	size_t at = strlen(o->text);

	(void)snprintf(o->text + at, sizeof(o->text) - at, STR_FMT "/" STR_FMT "/" STR_FMT " ", STR_ARG(s->service),
		       STR_ARG(s->type), STR_ARG(s->label_count ? s->labels[0].value : STR("")));
	return 0;
}

static int note_point(void *ctx, const struct store_point *p)
{
	const struct store_label *label = p->series->labels;

	assert_string_equal(str_eq(p->series->service, STR("b")) ? "ok" : "other", "ok");
	assert_true(p->series->label_count == 1 && str_eq(label->key, STR("host")) && p->value_count == 2);
	*(size_t *)ctx += 1;
	return 0;
}

static void keeps_order(void **state)
{
	struct fixture *f = *state;
	scoped(window_release) struct window w = { 0 };
	struct store_selector all = { .to_ns = UINT64_MAX }, last = { .to_ns = UINT64_MAX, .limit = 5 };
	struct store_selector of_b = { .service = STR("b"), .to_ns = UINT64_MAX };
	struct ordered every = { 0 }, some = { 0 };
	size_t points = 0;

	fixture_window(1, &w);
	for (uint64_t i = 0; i < 4; i++) { /* six of one moment, two of them in one series; days out of order */
		(void)fixture_put(f, i & 1 ? "b" : "a", "cpu", i & 2 ? "host=y" : "host=x", MORNING + DAY, &w);
		(void)fixture_put(f, "b", i & 1 ? "wall" : "cpu", "host=x", MORNING + (i & 1) * DAY, &w);
	}
	assert_int_equal(f->store->list(f->s, &all, note_order, &every), 0);
	assert_int_equal(every.count, 8);
	assert_int_equal(f->store->list(f->s, &last, note_order, &some), 0);
	assert_int_equal(some.count, 5);
	assert_memory_equal(some.ids, every.ids + 3, 5 * sizeof(some.ids[0]));
	assert_int_equal(f->store->series(f->s, &all, note_name, &every), 0);
	assert_string_equal(every.text, "a/cpu/x a/cpu/y b/cpu/x b/cpu/y b/wall/x ");
	assert_int_equal(f->store->totals(f->s, &of_b, note_point, &points), 0);
	assert_int_equal(points, 6);
}

/* Sums */

static void sums(void **state)
{
	struct fixture *f = *state;
	struct store_selector all = { .service = STR("api"), .type = STR("cpu"), .to_ns = UINT64_MAX };
	struct store_selector part = { .from_ns = MORNING + 5 * HOUR / 2, .to_ns = MORNING + 30 * HOUR };
	struct store_selector last = { .service = STR("api"), .to_ns = UINT64_MAX, .limit = 7 };

	for (uint64_t i = 0; i < 40; i++)
		fixture_put_random(f, i % 5 ? "api" : "web", i, MORNING + i * HOUR);
	fixture_assert_sum(f, &all);
	fixture_assert_sum(f, &part);
	fixture_assert_sum(f, &last);
	/* The same from rollups, and from closed files */
	for (uint64_t hours = 1; hours < 60; hours += 7) {
		f->now = MORNING + hours * HOUR;
		assert_int_equal(f->store->maintain(f->s), 0);
		fixture_assert_sum(f, &all);
		fixture_assert_sum(f, &part);
		fixture_assert_sum(f, &last);
	}
	fixture_reopen(f);
	assert_int_equal(f->store->warm(f->s), 0);
	if (f->lasts)
		fixture_assert_sum(f, &all);
}

static void sums_of_a_long_range(void **state)
{
	struct fixture *f = *state;
	struct store_selector all = { .service = STR("api"), .type = STR("cpu"), .to_ns = MORNING + 40 * DAY };
	struct store_selector part = { .service = STR("api"), .from_ns = MORNING + HOUR, .to_ns = MORNING + 12 * DAY };

	for (uint64_t i = 0; i < 60; i++) {
		f->now = MORNING + i * DAY / 4;
		fixture_put_random(f, "api", i, f->now);
		if (i % 3 == 0)
			assert_int_equal(f->store->maintain(f->s), 0);
	}
	f->now += 3 * DAY;
	assert_int_equal(f->store->maintain(f->s), 0);
	fixture_assert_sum(f, &all);
	fixture_assert_sum(f, &part);
	/* A late profile of a day whose sum is made; before and after the next compaction */
	fixture_put_random(f, "api", 100, MORNING + 3 * DAY + 5);
	fixture_assert_sum(f, &all);
	f->now += DAY;
	assert_int_equal(f->store->maintain(f->s), 0);
	fixture_assert_sum(f, &all);
	fixture_assert_sum(f, &part);
}

/* A day with bytes that cannot be added up is summed once, not at every turn. */
static void sums_a_day_once(void **state)
{
	struct fixture *f = *state;
	struct store_upload trace = {
		.service = STR("api"), .type = STR("trace"), .created_ns = MORNING, .raw = STR("go trace")
	};
	struct store_stats before, after;
	struct store_id id;

	f->now = MORNING;
	for (uint64_t i = 0; i < 3; i++)
		fixture_put_random(f, "api", 2, MORNING + i);
	assert_int_equal(f->store->put(f->s, &trace, &id), 0);
	f->now = MORNING + 3 * DAY;
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(f->store->stats(f->s, &before), 0);
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(f->store->stats(f->s, &after), 0);
	assert_int_equal(after.commits, before.commits);
	assert_int_equal(fixture_count(f, &(struct store_selector){ .to_ns = UINT64_MAX }), 4);
}

static void refuses_to_sum_other_types(void **state)
{
	struct fixture *f = *state;
	scoped(window_release) struct window w = { 0 }, sum = { 0 };
	struct store_selector sel = { .service = STR("api"), .to_ns = UINT64_MAX };
	struct store_sum info;

	fixture_put_random(f, "api", 1, MORNING);
	fixture_window(2, &w);
	assert_int_equal(model_add_string(w.model, STR("seconds"), &w.model->value_types[1].unit), 0);
	(void)fixture_put(f, "api", "cpu", "", MORNING + HOUR, &w);
	assert_int_equal(f->store->sum(f->s, &sel, &sum, &info), -EINVAL);
	assert_null(sum.model);
	f->now = MORNING + 3 * DAY;
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(f->store->sum(f->s, &sel, &sum, &info), -EINVAL);
	sel.to_ns = MORNING;
	assert_int_equal(f->store->sum(f->s, &sel, &sum, &info), 0);
	assert_int_equal(info.profiles, 1);
}

static bool stop_at_once(void *ctx)
{
	++*(int *)ctx;
	return true;
}

static void stops(void **state)
{
	struct fixture *f = *state;
	scoped(window_release) struct window sum = { 0 };
	int asked = 0;
	struct store_selector sel = { .to_ns = UINT64_MAX, .stop = stop_at_once, .stop_ctx = &asked };
	struct store_sum info;

	fixture_put_random(f, "api", 1, MORNING);
	assert_int_equal(f->store->sum(f->s, &sel, &sum, &info), -ECANCELED);
	assert_int_equal(asked, 1);
}

static int add_point(void *ctx, const struct store_point *p)
{
	int64_t *totals = ctx;

	assert_int_equal(p->value_count, 2);
	assert_true(str_eq(p->columns[1].key, STR("cpu")) && str_eq(p->columns[1].value, STR("nanoseconds")));
	assert_true(str_eq(p->period.key, STR("cpu")) && str_eq(p->period.value, STR("nanoseconds")));
	totals[0] += p->values[0];
	totals[1] += p->values[1];
	totals[2]++;
	return 0;
}

static void totals(void **state)
{
	struct fixture *f = *state;
	struct store_selector sel = { .service = STR("api"), .from_ns = MORNING + HOUR, .to_ns = UINT64_MAX };
	int64_t want[3] = { 0 }, got[3] = { 0 };

	for (uint64_t i = 0; i < 4; i++) {
		scoped(window_release) struct window w = { 0 };

		fixture_window(i + 1, &w);
		(void)fixture_put(f, "api", "cpu", "", MORNING + i * HOUR, &w);
		for (size_t row = 0; i && row < w.model->samples_count; row++)
			for (size_t v = 0; v < 2; v++)
				want[v] += model_values(w.model, &w.model->samples[row])[v];
		want[2] += i > 0;
	}
	assert_int_equal(f->store->totals(f->s, &sel, add_point, got), 0);
	assert_memory_equal(got, want, sizeof(got));
}

/* Points as lines of text. */
struct point_lines {
	char *lines[64];
	size_t count;
};

static void lines_clear(struct point_lines *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->lines[i]);
	l->count = 0;
}

static int note_line(void *ctx, const struct store_point *p)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(64));
	struct point_lines *l = ctx;
	size_t size;

	buf_addf(&line, STR_FMT " " STR_FMT " %llu", STR_ARG(p->series->service), STR_ARG(p->series->type),
		 (unsigned long long)p->created_ns);
	buf_addf(&line, " of %zu labels, default %zu, %llu profiles, %llu ns, every " STR_FMT "/" STR_FMT ":",
		 p->series->label_count, p->default_column, (unsigned long long)p->profiles,
		 (unsigned long long)p->duration_ns, STR_ARG(p->period.key), STR_ARG(p->period.value));
	for (size_t i = 0; i < p->value_count; i++)
		buf_addf(&line, " " STR_FMT "/" STR_FMT " %lld", STR_ARG(p->columns[i].key),
			 STR_ARG(p->columns[i].value), (long long)p->values[i]);
	buf_addc(&line, 0);
	assert_int_equal(line.error, 0);
	assert_true(l->count < ARRAY_SIZE(l->lines));
	l->lines[l->count++] = buf_take(&line, &size);
	return 0;
}

static int line_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void assert_equal_lines(struct point_lines *got, const struct point_lines *want)
{
	qsort(got->lines, got->count, sizeof(*got->lines), line_order);
	assert_int_equal(got->count, want->count);
	for (size_t i = 0; i < got->count; i++)
		assert_string_equal(got->lines[i], want->lines[i]);
}

static void assert_same_lines(struct fixture *f, const struct point_lines *want)
{
	const struct store_selector all = { .to_ns = UINT64_MAX };
	scoped(lines_clear) struct point_lines got = { 0 };

	assert_int_equal(f->store->totals(f->s, &all, note_line, &got), 0);
	assert_equal_lines(&got, want);
}

/* Three days of two services whose profiles differ in unit and default column: the same points of open and closed
 * files, with and without dictionaries in memory, and beside a service that went. */
static void totals_stay_the_same(void **state)
{
	const struct store_selector all = { .to_ns = UINT64_MAX }, api = { .service = STR("api"), .to_ns = UINT64_MAX },
				    web = { .service = STR("web"), .to_ns = UINT64_MAX },
				    cpu = { .service = STR("api"), .type = STR("cpu"), .to_ns = UINT64_MAX };
	scoped(lines_clear) struct point_lines want = { 0 }, days = { 0 };
	scoped(window_release) struct window sum = { 0 };
	struct fixture *f = *state;
	struct store_stats stats;
	struct store_sum info;

	for (uint64_t i = 0; i < 24; i++) {
		scoped(window_release) struct window w = { 0 };

		fixture_window(i + 1, &w);
		if (i % 3 == 0 || i % 4 == 3) /* one row in both dictionaries has another text in each */
			assert_int_equal(model_add_string(w.model, i % 3 ? STR("seconds") : STR("bytes"),
							  &w.model->value_types[1].unit),
					 0);
		if (i % 5 == 2)
			w.model->default_type = w.model->value_types[0].type;
		(void)fixture_put(f, i % 3 ? "api" : "web", i % 4 == 3 ? "wall" : "cpu", i % 2 ? "host=a" : "",
				  MORNING + i * 2 * HOUR, &w);
	}
	assert_int_equal(f->store->totals(f->s, &all, note_line, &want), 0);
	assert_int_equal(want.count, 24);
	qsort(want.lines, want.count, sizeof(*want.lines), line_order);
	for (int closed = 0; closed < 2; closed++) {
		if (f->lasts)
			fixture_reopen(f);
		assert_same_lines(f, &want);
		assert_int_equal(f->store->stats(f->s, &stats), 0);
		assert_true(!f->lasts || !closed || !stats.dictionary_bytes); /* closed files: strings alone */
		if (!closed)
			f->now = MORNING + 5 * DAY;
		assert_int_equal(f->store->maintain(f->s), 0);
		assert_same_lines(f, &want);
	}
	assert_int_equal(f->store->sum(f->s, &cpu, &sum, &info), 0);
	assert_same_lines(f, &want); /* some dictionaries are in memory now */
	for (uint64_t day = 0; day < 4; day++) {
		struct store_selector one = { .from_ns = MORNING - 8 * HOUR + day * DAY };

		one.to_ns = one.from_ns + DAY - 1;
		assert_int_equal(f->store->totals(f->s, &one, note_line, &days), 0);
	}
	assert_equal_lines(&days, &want); /* short ranges load them */
	assert_int_equal(fixture_remove(f, &web), 8);
	for (size_t i = 16; i < want.count; i++) /* they are behind the other's */
		free(want.lines[i]);
	want.count = 16;
	assert_same_lines(f, &want);
	assert_int_equal(fixture_count(f, &api), 16);
}

/* A file that a service was cut out of while it took profiles has its dictionaries in pieces. */
static void totals_beside_a_deletion(void **state)
{
	const struct store_selector all = { .to_ns = UINT64_MAX }, web = { .service = STR("web"), .to_ns = UINT64_MAX };
	scoped(lines_clear) struct point_lines want = { 0 };
	struct fixture *f = *state;

	f->now = MORNING;
	for (uint64_t i = 0; i < 6; i++) {
		scoped(window_release) struct window w = { 0 };

		fixture_window(i + 1, &w);
		if (i > 3)
			assert_int_equal(model_add_string(w.model, STR("seconds"), &w.model->value_types[1].unit), 0);
		(void)fixture_put(f, "api", i > 3 ? "wall" : "cpu", "", MORNING + i, &w);
	}
	assert_int_equal(f->store->totals(f->s, &all, note_line, &want), 0);
	qsort(want.lines, want.count, sizeof(*want.lines), line_order);
	fixture_put_random(f, "web", 7, MORNING);
	assert_int_equal(fixture_remove(f, &web), 1);
	assert_same_lines(f, &want);
	if (f->lasts)
		fixture_reopen(f);
	assert_same_lines(f, &want);
	fixture_put_random(f, "web", 7, MORNING); /* the day has a second file */
	assert_int_equal(fixture_remove(f, &web), 1);
	assert_same_lines(f, &want);
}

/* Owners: sums of two columns by moment (or hour), series and owner, as text. */

struct owned {
	char *key;
	int64_t values[2];
};

struct owned_list {
	struct owned items[2048];
	size_t count;
	uint64_t unit; /* of moments */
	size_t points, profiles;
};

static void owned_clear(struct owned_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i].key);
	*l = (struct owned_list){ .unit = l->unit };
}

static void owned_add(struct owned_list *l, uint64_t created_ns, struct str service, const struct store_owner *owner,
		      const int64_t *values)
{
	struct buf key = BUF_INIT(KIB(64));
	size_t at = 0, size;

	if (!values[0] && !values[1])
		return; /* a sum has no such rows */
	buf_addf(&key, "%llu " STR_FMT " %u/%llu %u", (unsigned long long)(created_ns / l->unit), STR_ARG(service),
		 owner->pid, (unsigned long long)owner->start_ns, owner->tid);
	buf_addf(&key, " " STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT, STR_ARG(owner->comm), STR_ARG(owner->container),
		 STR_ARG(owner->app_id), STR_ARG(owner->thread));
	buf_addc(&key, 0);
	assert_int_equal(key.error, 0);
	while (at < l->count && strcmp(l->items[at].key, key.ptr) != 0)
		at++;
	if (at == l->count) {
		assert_true(l->count < ARRAY_SIZE(l->items));
		l->items[l->count++] = (struct owned){ .key = buf_take(&key, &size) };
	}
	buf_release(&key);
	for (size_t i = 0; i < 2; i++)
		l->items[at].values[i] = saturating_add(l->items[at].values[i], values[i]);
}

static int note_owners(void *ctx, const struct store_point *p, const struct store_owner *owners, size_t count)
{
	struct owned_list *l = ctx;
	int64_t sums[2] = { 0 };

	assert_int_equal(p->value_count, 2);
	assert_true(str_eq(p->columns[1].key, STR("cpu")) && str_eq(p->columns[1].value, STR("nanoseconds")));
	for (size_t i = 0; i < count; i++) {
		owned_add(l, p->created_ns, p->series->service, &owners[i], owners[i].values);
		for (size_t v = 0; v < 2; v++)
			sums[v] = saturating_add(sums[v], owners[i].values[v]);
	}
	assert_memory_equal(sums, p->values, sizeof(sums));
	l->points++;
	l->profiles += p->profiles;
	return 0;
}

/* The same, sample by sample. */
static void owned_add_window(struct owned_list *l, uint64_t created_ns, const char *service, const struct window *w)
{
	const struct model *m = w->model;

	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_process *process = &m->processes[m->samples[i].process];
		const struct model_thread *thread = &m->threads[m->samples[i].thread];
		struct store_owner owner = { .pid = process->pid,
					     .tid = thread->tid,
					     .start_ns = process->start_ns,
					     .comm = model_string(m, process->comm),
					     .container = model_string(m, process->container),
					     .app_id = model_string(m, process->app_id),
					     .thread = model_string(m, thread->name) };

		owned_add(l, created_ns, str_of(service), &owner, model_values(m, &m->samples[i]));
	}
	l->profiles++;
}

static int owned_order(const void *a, const void *b)
{
	return strcmp(((const struct owned *)a)->key, ((const struct owned *)b)->key);
}

/* What adds up to nothing says nothing. */
static void owned_drop_zeros(struct owned_list *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++) {
		if (l->items[i].values[0] || l->items[i].values[1])
			l->items[kept++] = l->items[i];
		else
			free(l->items[i].key);
	}
	l->count = kept;
}

static void owned_assert_same(struct owned_list *a, struct owned_list *b)
{
	owned_drop_zeros(a);
	owned_drop_zeros(b);
	qsort(a->items, a->count, sizeof(*a->items), owned_order);
	qsort(b->items, b->count, sizeof(*b->items), owned_order);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->profiles, b->profiles);
	for (size_t i = 0; i < a->count; i++) {
		assert_string_equal(a->items[i].key, b->items[i].key);
		assert_memory_equal(a->items[i].values, b->items[i].values, sizeof(a->items[i].values));
	}
}

static void owners(void **state)
{
	struct fixture *f = *state;
	struct store_selector sel = { .type = STR("cpu"),
				      .from_ns = MORNING + HOUR / 2,
				      .to_ns = MORNING + 5 * HOUR + HOUR / 3 };
	static struct owned_list want, want_hours, got;

	want.unit = 1;
	want_hours.unit = HOUR;
	for (uint64_t i = 0; i < 40; i++) {
		const char *service = i % 5 ? "api" : "web";
		uint64_t at = MORNING + i * HOUR / 6;
		scoped(window_release) struct window w = { 0 };

		fixture_window(i + 1, &w);
		if (at >= sel.from_ns && at <= sel.to_ns) {
			owned_add_window(&want, at, service, &w);
			owned_add_window(&want_hours, at, service, &w);
		}
		(void)fixture_put(f, service, "cpu", i % 3 ? "host=a" : "host=b", at, &w);
	}
	for (int closed = 0; closed < 3; closed++) { /* no sums; hours; the day's file is closed */
		got.unit = 1;
		assert_int_equal(f->store->owners(f->s, &sel, false, note_owners, &got), 0);
		assert_int_equal(got.points, got.profiles);
		owned_assert_same(&got, &want);
		owned_clear(&got);
		got.unit = HOUR;
		assert_int_equal(f->store->owners(f->s, &sel, true, note_owners, &got), 0);
		owned_assert_same(&got, &want_hours);
		if (closed == 1 && f->lasts)
			assert_true(got.points < got.profiles);
		owned_clear(&got);
		f->now = MORNING + (closed ? 2 * DAY : 8 * HOUR);
		assert_int_equal(f->store->maintain(f->s), 0);
	}
	owned_clear(&want);
	owned_clear(&want_hours);
}

static int end_walk(void *ctx, const struct store_point *p, const struct store_owner *owners, size_t count)
{
	(void)p, (void)owners, (void)count;
	return ++*(int *)ctx < 3 ? 0 : 7;
}

static int visit_owners_once(void *ctx)
{
	struct fixture *f = ctx;
	int calls = 0, r;

	r = f->store->owners(f->s, &(struct store_selector){ .to_ns = UINT64_MAX }, true, end_walk, &calls);
	return r == 7 ? 0 : r;
}

static void owners_end(void **state)
{
	struct fixture *f = *state;
	int asked = 0, calls = 0;
	struct store_selector all = { .to_ns = UINT64_MAX };

	for (uint64_t i = 0; i < 5; i++)
		fixture_put_random(f, "api", i + 1, MORNING + i);
	assert_int_equal(f->store->owners(f->s, &all, false, end_walk, &calls), 7);
	assert_int_equal(calls, 3);
	for_each_failing_allocation(visit_owners_once, f);
	if (f->lasts) {
		all.stop = stop_at_once;
		all.stop_ctx = &asked;
		calls = -1000000;
		assert_int_equal(f->store->owners(f->s, &all, false, end_walk, &calls), -ECANCELED);
	}
}

/* Moments: the samples of a profile with their times, whatever order they are in. */

struct moments {
	uint64_t created_ns, start_ns, offsets; /* added up, each times its value and its owner's number */
	int64_t values;
	size_t rows, points, untimed;
};

static uint64_t moment_mark(uint64_t offset_ns, int64_t value, uint32_t pid)
{
	return (offset_ns + 1) * (uint64_t)(value + 3) * (pid + 7);
}

static int note_moments(void *ctx, const struct store_point *p, const struct store_moments *rows)
{
	struct moments *m = ctx;

	m->created_ns = p->created_ns;
	m->start_ns = rows->start_ns;
	m->points++;
	for (size_t i = 0; i < rows->count; i++) {
		int64_t value = rows->values[rows->count + i]; /* the second column */
		uint64_t offset = rows->offsets ? rows->offsets[i] : MODEL_NO_TIME;

		m->rows++;
		m->untimed += offset == MODEL_NO_TIME;
		m->values = saturating_add(m->values, value);
		m->offsets += moment_mark(offset, value, rows->owners[rows->owner_of[i]].pid);
	}
	assert_int_equal(m->values, p->values[1]);
	return 0;
}

static void moments(void **state)
{
	struct fixture *f = *state;
	struct store_selector all = { .to_ns = UINT64_MAX };
	struct moments got = { 0 }, want = { 0 };
	scoped(window_release) struct window w = { 0 };

	fixture_window(3, &w);
	w.start_ns = MORNING + 1;
	w.model->time_ns = MORNING + 1;
	w.model->duration_ns = 1000;
	for (size_t i = 0; i < w.model->samples_count; i++) {
		struct model_sample *s = &w.model->samples[i];
		int64_t value = model_values(w.model, s)[1];

		s->time_offset_ns = i % 3 ? i * 20 : i % 2 ? UINT64_MAX - 1 : MODEL_NO_TIME;
		want.untimed += s->time_offset_ns == MODEL_NO_TIME;
		want.values = saturating_add(want.values, value);
		want.offsets += moment_mark(s->time_offset_ns, value, w.model->processes[s->process].pid);
	}
	(void)fixture_put(f, "api", "cpu", "", MORNING, &w);
	assert_int_equal(f->store->moments(f->s, &all, 0, note_moments, &got), 0);
	assert_int_equal(got.points, 1);
	assert_int_equal(got.created_ns, MORNING);
	assert_int_equal(got.start_ns, MORNING + 1);
	assert_int_equal(got.rows, w.model->samples_count);
	assert_int_equal(got.untimed, want.untimed);
	assert_int_equal(got.values, want.values);
	assert_int_equal(got.offsets, want.offsets);
	assert_int_equal(f->store->moments(f->s, &all, MORNING + 1000, note_moments, &(struct moments){ 0 }), 0);
	got = (struct moments){ 0 };
	assert_int_equal(f->store->moments(f->s, &all, MORNING + 1001, note_moments, &got), 0);
	assert_int_equal(got.points, 0);
}

/* Not on zone x, and not of the service web. */
static bool is_elsewhere(void *ctx, const struct store_series *series)
{
	*(size_t *)ctx += 1;
	for (size_t i = 0; i < series->label_count; i++)
		if (str_eq(series->labels[i].value, STR("x")))
			return false;
	return !str_eq(series->service, STR("web"));
}

static void asks_which_series_fit(void **state)
{
	struct fixture *f = *state;
	struct store_sum info = { 0 };
	scoped(window_release) struct window sum = { 0 };
	struct listing l = { "" }, series = { "" };
	int64_t totals[3] = { 0 };
	size_t asked = 0;
	struct store_selector sel = { .to_ns = UINT64_MAX, .fits = is_elsewhere, .fits_ctx = &asked };

	put_some(f);
	assert_int_equal(f->store->list(f->s, &sel, note_profile, &l), 0);
	assert_string_equal(l.text, "api/heap@2,host=a ap/icpu@172800 ");
	assert_true(asked >= 5);
	assert_int_equal(f->store->series(f->s, &sel, note_series, &series), 0);
	assert_string_equal(series.text, "ap/icpu@0 api/heap@0,host=a ");
	assert_int_equal(f->store->sum(f->s, &sel, &sum, &info), 0);
	assert_int_equal(info.profiles, 2);
	assert_int_equal(f->store->totals(f->s, &sel, add_point, totals), 0);
	assert_int_equal(totals[2], 2);
	assert_int_equal(fixture_remove(f, &sel), 2);
	assert_int_equal(f->store->list(f->s, &(struct store_selector){ .to_ns = UINT64_MAX }, note_profile, &l), 0);
	assert_null(strstr(l.text + strlen("api/heap@2,host=a ap/icpu@172800 "), "heap"));
}

/* Going */

static size_t count(struct fixture *f, const char *service)
{
	return fixture_count(f, &(struct store_selector){ .service = str_of(service), .to_ns = UINT64_MAX });
}

/* What the engine says that it has: SQLite counts on from what it counted last. */
static uint64_t stored(struct fixture *f)
{
	struct store_stats stats;

	assert_int_equal(f->store->stats(f->s, &stats), 0);
	return stats.profiles;
}

static void removes(void **state)
{
	struct fixture *f = *state;
	struct store_selector api = { .service = STR("api"), .to_ns = UINT64_MAX };
	struct store_selector web = { .service = STR("web"), .from_ns = MORNING + HOUR, .to_ns = MORNING + 10 * DAY };
	struct store_selector all = { .to_ns = UINT64_MAX };

	for (int closed = 0; closed < 2; closed++) {
		print_message("  %s\n", closed ? "closed" : "open");
		assert_int_equal(f->store->warm(f->s), 0);
		for (uint64_t i = 0; i < 20; i++)
			fixture_put_random(f, i % 2 ? "api" : "web", i, MORNING + i * 9 * HOUR);
		assert_int_equal(stored(f), 20);
		f->now = MORNING + (closed ? 30 : 1) * DAY;
		if (closed)
			assert_int_equal(f->store->maintain(f->s), 0);
		assert_int_equal(fixture_remove(f, &api), 10);
		assert_int_equal(stored(f), 10);
		assert_int_equal(count(f, "api"), 0);
		assert_int_equal(fixture_remove(f, &api), 0);
		fixture_assert_sum(f, &all);
		assert_int_equal(stored(f), 10);
		assert_int_equal(fixture_remove(f, &web), 9);
		assert_int_equal(stored(f), 1);
		assert_int_equal(count(f, "web"), 1);
		fixture_assert_sum(f, &all);
		assert_int_equal(fixture_remove(f, &all), 1);
		assert_int_equal(stored(f), 0);
		fixture_put_random(f, "api", 5, MORNING); /* a service may come again */
		assert_int_equal(stored(f), 1);
		fixture_assert_sum(f, &all);
		assert_int_equal(fixture_remove(f, &all), 1);
	}
}

static void expires(void **state)
{
	struct fixture *f = *state;

	f->now = MORNING;
	fixture_put_random(f, "api", 1, MORNING);
	f->now = MORNING + 2 * DAY;
	fixture_put_random(f, "api", 2, MORNING - 500 * DAY); /* old, but just uploaded */
	fixture_put_random(f, "api", 3, MORNING + 2 * DAY);
	assert_int_equal(f->store->expire(f->s, MORNING), 0);
	assert_int_equal(f->store->expire(f->s, MORNING + DAY), 1);
	assert_int_equal(count(f, "api"), 2);
	fixture_put_random(f, "api", 4, MORNING);
	assert_int_equal(count(f, "api"), 3);
	assert_int_equal(f->store->expire(f->s, MORNING + 3 * DAY), 3);
	assert_int_equal(count(f, "api"), 0);
}

static void expires_by_itself(void **state)
{
	struct fixture *f = *state;

	f->config.age_max_ns = 14 * DAY;
	fixture_reopen(f);
	f->now = MORNING;
	fixture_put_random(f, "api", 1, MORNING);
	f->now = MORNING + 10 * DAY;
	fixture_put_random(f, "api", 1, f->now);
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(count(f, "api"), 2);
	f->now = MORNING + 15 * DAY;
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(count(f, "api"), 1);
}

static void tell(void *ctx, const char *where, const char *what)
{
	(void)ctx;
	print_message("  %s: %s\n", where, what);
}

/* A look a minute, for @hours. Return: how many days went. */
static uint64_t keep_for(struct fixture *f, uint64_t hours)
{
	struct store_stats before, after;

	assert_int_equal(f->store->stats(f->s, &before), 0);
	for (uint64_t end = f->now + hours * HOUR; f->now < end; f->now += 60 * NSEC_PER_SEC)
		assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(f->store->stats(f->s, &after), 0);
	return after.expired_partitions - before.expired_partitions;
}

/* A clock that runs ahead must not empty the store while nobody looks. */
static void expires_a_day_an_hour(void **state)
{
	struct fixture *f = *state;

	f->config.age_max_ns = 14 * DAY;
	fixture_reopen(f);
	for (uint64_t i = 0; i < 8; i++) {
		f->now = MORNING + i * DAY;
		fixture_put_random(f, "api", i, f->now);
		assert_int_equal(f->store->maintain(f->s), 0);
	}
	f->now += 100 * DAY;
	assert_in_range(keep_for(f, 1), 0, 1);
	assert_in_range(keep_for(f, 3), 2, 3);
	assert_int_equal(count(f, "api"), 8 - 4 + (count(f, "api") == 5));
	f->now -= 100 * DAY;
	assert_int_equal(keep_for(f, 5), 0);
	if (!f->lasts)
		return;
	for (int i = 0; i < 30; i++) { /* nor by starting again and again */
		fixture_reopen(f);
		f->now += (i % 2 ? 1 : 0) * 60 * NSEC_PER_SEC;
		assert_int_equal(f->store->maintain(f->s), 0);
	}
	assert_in_range(count(f, "api"), 4, 5);
}

/* The clock is set to and fro over midnight while profiles come: days are closed and seeded at the wrong time. */
static void survives_a_clock_that_goes_back(void **state)
{
	struct fixture *f = *state;
	static const int64_t steps[] = {
		-2, 30, -60, 90, 1500, -1500, 3000, -2990, 60, 100000, -100000, 61, -1, 2
	}; /* minutes */
	uint64_t midnight = MORNING / DAY * DAY + DAY;
	struct store_selector all = { .to_ns = UINT64_MAX };

	f->config.age_max_ns = 200 * DAY; /* the monotonic clock of the tests goes along */
	fixture_reopen(f);
	f->now = midnight;
	for (uint64_t i = 0; i < ARRAY_SIZE(steps); i++) {
		f->now += (uint64_t)(steps[i] * (int64_t)(60 * NSEC_PER_SEC));
		fixture_put_random(f, i % 2 ? "api" : "web", i, f->now);
		assert_int_equal(f->store->maintain(f->s), 0);
		assert_int_equal(fixture_count(f, &all), i + 1);
		if (f->lasts && i % 4 == 3)
			fixture_reopen(f);
		assert_int_equal(f->store->maintain(f->s), 0);
		assert_int_equal(fixture_count(f, &all), i + 1);
	}
	fixture_assert_sum(f, &all);
	assert_int_equal(f->store->check(f->s, tell, NULL), 0);
}

/* For room days go by their newest upload, and never today. */
static void keeps_today(void **state)
{
	struct fixture *f = *state;
	const uint64_t order[] = { 1, 3, 0, 2 }; /* days behind MORNING; the last upload is of today */

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		f->now = MORNING + 2 * DAY + i * HOUR;
		fixture_put_random(f, "api", 1, MORNING + order[i] * DAY);
	}
	fixture_put_random(f, "api", 2, MORNING + 2 * DAY);
	f->config.size_max = 1;
	if (f->lasts) {
		fixture_reopen(f);
		assert_int_equal(f->store->maintain(f->s), 0);
		assert_int_equal(count(f, "api"), 2);
		assert_int_equal(fixture_count(f, &(struct store_selector){ .from_ns = MORNING + 2 * DAY,
									    .to_ns = MORNING + 2 * DAY }),
				 2);
	}
}

static void takes_times_near_and_far(void **state)
{
	struct fixture *f = *state;
	scoped(window_release) struct window w = { 0 };
	struct store_upload upload = { .service = STR("api"), .type = STR("cpu"), .window = &w };
	const struct {
		int64_t offset; /* days */
		bool any;
		int want;
	} cases[] = { { 0, false, 0 },  { -9, false, 0 },         { -11, false, -ETIME },
		      { -11, true, 0 }, { 1, false, 0 },          { 2, false, -ETIME },
		      { 2, true, 0 },   { 40000, true, -ERANGE }, { -4000, false, -ETIME } };
	struct store_id id;

	f->config.past_max_ns = 10 * DAY;
	f->config.ahead_max_ns = DAY;
	fixture_reopen(f);
	f->now = MORNING;
	fixture_window(1, &w);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		upload.created_ns = MORNING + (uint64_t)(cases[i].offset * (int64_t)DAY);
		upload.any_time = cases[i].any;
		print_message("  %lld\n", (long long)cases[i].offset);
		assert_int_equal(f->store->put(f->s, &upload, &id), cases[i].want);
	}
}

static uint64_t partitions(struct fixture *f)
{
	struct store_stats stats;

	assert_int_equal(f->store->stats(f->s, &stats), 0);
	assert_int_equal(stats.expired_partitions, 0);
	return stats.partitions;
}

/* Half an hour before midnight the next day's file is there, with what the last hour used; it stays, unless nothing
 * comes. */
static void prepares_the_next_day(void **state)
{
	struct fixture *f = *state;
	uint64_t midnight = MORNING / DAY * DAY + DAY;
	struct store_selector all = { .to_ns = UINT64_MAX };

	f->config.age_max_ns = 14 * DAY;
	fixture_reopen(f);
	for (uint64_t i = 0; i < 5; i++) {
		f->now = midnight - (50 - 10 * i) * 60 * NSEC_PER_SEC;
		fixture_put_random(f, i % 2 ? "api" : "web", i, f->now);
		assert_int_equal(f->store->maintain(f->s), 0);
	}
	assert_int_equal(partitions(f), f->lasts ? 2 : 0);
	f->now = midnight + 1;
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(partitions(f), f->lasts ? 2 : 0);
	fixture_put_random(f, "api", 3, f->now);
	fixture_put_random(f, "web", 9, f->now);
	fixture_reopen(f);
	fixture_assert_sum(f, &all);
	f->now = midnight + DAY - 1;
	fixture_put_random(f, "web", 2, f->now);
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(partitions(f), f->lasts ? 4 : 0); /* the first closed, its year, today, tomorrow */
	f->now = midnight + 3 * DAY;
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(partitions(f), f->lasts ? 3 : 0);
	fixture_assert_sum(f, &all);
}

/* Requests */

static void knows_requests_again(void **state)
{
	struct fixture *f = *state;
	scoped(window_release) struct window w = { 0 };
	struct store_upload upload = { .service = STR("api"),
				       .type = STR("cpu"),
				       .created_ns = MORNING,
				       .request_key = STR("one"),
				       .window = &w };
	struct store_id first, again;

	fixture_window(1, &w);
	f->now = MORNING;
	assert_int_equal(f->store->put(f->s, &upload, &first), 0);
	assert_int_equal(f->store->put(f->s, &upload, &again), 1);
	assert_memory_equal(&first, &again, sizeof(first));
	upload.created_ns += DAY; /* a retry after midnight, without created_at */
	f->now += 23 * HOUR;
	fixture_reopen(f);
	if (f->lasts) {
		assert_int_equal(f->store->put(f->s, &upload, &again), 1);
		assert_memory_equal(&first, &again, sizeof(first));
		assert_int_equal(count(f, "api"), 1);
	}
	upload.request_key = STR("two");
	assert_int_equal(f->store->put(f->s, &upload, &again), 0);
	upload.request_key = STR("one");
	f->now += 2 * HOUR;
	assert_int_equal(f->store->maintain(f->s), 0);
	assert_int_equal(f->store->put(f->s, &upload, &again), 0);
	upload.request_key = STR("");
	assert_int_equal(f->store->put(f->s, &upload, &again), 0);
	assert_int_equal(f->store->put(f->s, &upload, &again), 0); /* equal bytes are two profiles */
}

/* The tools */

static void checks_and_exports(void **state)
{
	struct fixture *f = *state;
	struct store_selector api = { .service = STR("api"), .to_ns = UINT64_MAX };
	struct store_upload trace = {
		.service = STR("api"), .type = STR("../x"), .created_ns = MORNING, .raw = STR("go trace")
	};
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1)), path = BUF_INIT(KIB(1));
	char folder[] = "/tmp/hearth-export-XXXXXX", text[STORE_ID_TEXT + 1];
	struct store_id id;
	uint64_t count;

	for (uint64_t i = 0; i < 9; i++)
		fixture_put_random(f, i % 3 ? "api" : "web", i, MORNING + i * 9 * HOUR);
	assert_int_equal(f->store->put(f->s, &trace, &id), 0);
	store_id_text(&id, text);
	assert_int_equal(f->store->check(f->s, tell, NULL), 0);
	f->now = MORNING + 2 * DAY;
	assert_int_equal(f->store->compact(f->s), f->lasts ? 2 : 0);
	assert_int_equal(f->store->compact(f->s), 0);
	assert_int_equal(f->store->check(f->s, tell, NULL), 0);
	assert_non_null(mkdtemp(folder));
	assert_int_equal(store_export(f->store, f->s, &api, folder, &count), 0);
	assert_int_equal(count, 7);
	buf_addf(&path, "%s/___x-20241004T080000-%s.bin", folder, text);
	assert_int_equal(io_read_file(buf_cstr(&path), &bytes), 0);
	assert_true(str_eq(buf_str(&bytes), STR("go trace")));
	assert_int_equal(fixture_clear(folder), 7);
	assert_int_equal(store_export(f->store, f->s, &api, folder, &count), -ENOENT);
}

/* Many at once */

#define THREADS 4
#define EACH 15

struct crowd {
	struct fixture *f;
	uint64_t number;
};

static void *put_many(void *arg)
{
	struct crowd *crowd = arg;

	for (uint64_t i = 0; i < EACH; i++) {
		scoped(window_release) struct window w = { 0 };
		struct store_upload upload = { .service = i % 3 ? STR("api") : STR("web"),
					       .type = STR("cpu"),
					       .created_ns = MORNING + i * HOUR,
					       .window = &w };
		struct store_id id;

		upload.request_key = i % 5 ? STR("") : STR("the same of all");
		fixture_window(crowd->number * 100 + i, &w);
		must(crowd->f->store->put(crowd->f->s, &upload, &id) >= 0);
		if (i % 4 == 0)
			must(crowd->f->store->maintain(crowd->f->s) >= 0);
	}
	return NULL;
}

static void takes_many_at_once(void **state)
{
	struct fixture *f = *state;
	struct crowd crowds[THREADS];
	pthread_t threads[THREADS];
	struct store_selector all = { .to_ns = UINT64_MAX };

	f->now = MORNING + 2 * DAY;
	for (uint64_t i = 0; i < THREADS; i++) {
		crowds[i] = (struct crowd){ f, i };
		assert_int_equal(pthread_create(&threads[i], NULL, put_many, &crowds[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(fixture_count(f, &all), THREADS * EACH - (THREADS * 3 - 1)); /* one of 12 equal requests */
	fixture_assert_sum(f, &all);
}

static int put_and_read(void *ctx)
{
	struct fixture *f = ctx;
	scoped(window_release) struct window w = { 0 };
	struct store_document d = { 0 };
	struct store_upload upload = { .service = STR("api"), .type = STR("cpu"), .created_ns = MORNING, .window = &w };
	struct store_id id;
	int r = window_init(&w, MIB(1));

	if (r < 0)
		return r;
	model_release(w.model);
	r = random_model(1, w.model);
	r = r ? r : f->store->put(f->s, &upload, &id);
	r = r ? r : f->store->read(f->s, &id, &d);
	store_document_release(&d);
	return r;
}

static void survives_failing_allocations(void **state)
{
	struct fixture *f = *state;
	struct store_selector all = { .to_ns = UINT64_MAX };

	assert_int_equal(put_and_read(f), 0);
	for_each_failing_allocation(put_and_read, f);
	fixture_assert_sum(f, &all);
}

#define CASES(X)                           \
	X(reads_what_was_put)              \
	X(keeps_times)                     \
	X(keeps_addresses)                 \
	X(keeps_equal_rows_once)           \
	X(keeps_no_workload_of_a_process)  \
	X(keeps_raw_bytes)                 \
	X(refuses)                         \
	X(keeps_order)                     \
	X(lists)                           \
	X(knows_its_series)                \
	X(asks_which_series_fit)           \
	X(sums)                            \
	X(sums_of_a_long_range)            \
	X(sums_a_day_once)                 \
	X(refuses_to_sum_other_types)      \
	X(stops)                           \
	X(totals)                          \
	X(totals_stay_the_same)            \
	X(totals_beside_a_deletion)        \
	X(owners)                          \
	X(owners_end)                      \
	X(moments)                         \
	X(removes)                         \
	X(expires)                         \
	X(expires_by_itself)               \
	X(expires_a_day_an_hour)           \
	X(keeps_today)                     \
	X(survives_a_clock_that_goes_back) \
	X(takes_times_near_and_far)        \
	X(prepares_the_next_day)           \
	X(knows_requests_again)            \
	X(checks_and_exports)              \
	X(takes_many_at_once)              \
	X(survives_failing_allocations)

#define ON_MEMORY(case) { "memory: " #case, case, fixture_memory, fixture_end, NULL },
#define ON_SQLITE(case) { "sqlite: " #case, case, fixture_sqlite, fixture_end, NULL },
#define ON_SQLITE_TIGHT(case) \
	{ "sqlite, no room for dictionaries: " #case, case, fixture_sqlite_tight, fixture_end, NULL },

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(ids), cmocka_unit_test(times_are_steps),
						   CASES(ON_MEMORY) CASES(ON_SQLITE) CASES(ON_SQLITE_TIGHT) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
