/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP profiles: what is refused by version, messages of others, and what a window becomes. */
#include "support.h"

#include "base/wire.h"
#include "codec/otlp_int.h"
#include "codec_samples.h"

/* A file with one resource, scope and profile, from the messages inside. */
struct parts {
	struct buf resource, scope, profile, dictionary;
};

static void parts_release(struct parts *p)
{
	buf_release(&p->resource);
	buf_release(&p->scope);
	buf_release(&p->profile);
	buf_release(&p->dictionary);
}

#define PARTS_INIT                                                                                       \
	{                                                                                                \
		.resource = BUF_INIT(KIB(64)), .scope = BUF_INIT(KIB(64)), .profile = BUF_INIT(KIB(64)), \
		.dictionary = BUF_INIT(KIB(64))                                                          \
	}

static void add_string(struct parts *p, const char *text)
{
	wire_add_bytes(&p->dictionary, TABLE_STRING, str_of(text));
}

static void add_row(struct parts *p, uint32_t table, const char *bytes, size_t size)
{
	wire_add_bytes(&p->dictionary, table, str_n(bytes, size));
}

#define ROW(p, table, text) add_row((p), (table), (text), sizeof(text) - 1)

/* Strings 1 "cpu", 2 "ns", 3 "main", 4 "work", 5 "process.pid", 6 "color", 7 "red"; attributes 1 pid 7, 2 colour red;
 * locations and stacks 1 main, 2 work below main. */
static void add_tables(struct parts *p)
{
	static const char *const strings[] = { "", "cpu", "ns", "main", "work", "process.pid", "color", "red" };

	ROW(p, TABLE_MAPPING, "");
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		add_string(p, strings[i]);
	ROW(p, TABLE_FUNCTION, "");
	ROW(p, TABLE_FUNCTION, "\x08\x03");
	ROW(p, TABLE_FUNCTION, "\x08\x04");
	ROW(p, TABLE_LOCATION, "");
	ROW(p, TABLE_LOCATION, "\x1a\x02\x08\x01");
	ROW(p, TABLE_LOCATION, "\x1a\x04\x08\x02\x10\x09");
	ROW(p, TABLE_STACK, "");
	ROW(p, TABLE_STACK, "\x0a\x01\x01");
	ROW(p, TABLE_STACK, "\x0a\x02\x02\x01");
	ROW(p, TABLE_LINK, "");
	ROW(p, TABLE_LINK,
	    "\x0a\x10"
	    "0123456789abcdef"
	    "\x12\x08"
	    "01234567");
	ROW(p, TABLE_ATTRIBUTE, "");
	ROW(p, TABLE_ATTRIBUTE, "\x08\x05\x12\x02\x18\x07");
	ROW(p, TABLE_ATTRIBUTE, "\x08\x06\x12\x02\x40\x07"); /* by index */
}

static void add_profile(struct parts *p)
{
	wire_add_bytes(&p->scope, SCOPE_PROFILES_PROFILES, buf_str(&p->profile));
	buf_clear(&p->profile);
}

#define TYPE_CPU "\x0a\x04\x08\x01\x10\x02"

static void add_bytes(struct parts *p, const char *bytes, size_t size)
{
	buf_add(&p->profile, bytes, size);
}

#define PROFILE(p, text) add_bytes((p), (text), sizeof(text) - 1)

static void make(struct parts *p, struct buf *out)
{
	if (p->profile.len)
		add_profile(p);
	wire_add_bytes(&p->resource, RESOURCE_PROFILES_SCOPES, buf_str(&p->scope));
	wire_add_bytes(out, DATA_RESOURCE_PROFILES, buf_str(&p->resource));
	if (p->dictionary.len)
		wire_add_bytes(out, DATA_DICTIONARY, buf_str(&p->dictionary));
}

static int decode(struct parts *p, struct window *out, struct codec_error *error)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(256));
	struct cur in;

	make(p, &bytes);
	assert_int_equal(bytes.error, 0);
	in = guard_page(bytes.ptr, bytes.len);
	return codec_otlp.decode(str_n((const char *)in.pos, bytes.len), out, error);
}

static void refuses(void **state)
{
	static const struct {
		const char *name;
		const char *profile;
		size_t size;
		int want;
		const char *reason;
	} cases[] = {
#define CASE(name, bytes, want, reason) { name, bytes, sizeof(bytes) - 1, want, reason }
		CASE("1.9: values where attributes are", TYPE_CPU "\x12\x05\x08\x01\x12\x01\x02", -ENOTSUP, "1.9.0"),
		CASE("1.9: attributes where the link is", TYPE_CPU "\x12\x08\x08\x01\x12\x01\x05\x1a\x01\x01", -ENOTSUP,
		     "1.9.0"),
		CASE("1.8: an id where a number is", TYPE_CPU "\x42\x01x", -ENOTSUP, "1.8.0"),
		CASE("1.7: two types", TYPE_CPU TYPE_CPU, -ENOTSUP, "1.7.0"),
		CASE("1.7: locations where the time is", "\x1a\x01\x01", -ENOTSUP, "1.7.0"),
		CASE("1.7: a number where the period's type is", "\x28\x01", -ENOTSUP, "1.7.0"),
		CASE("1.4: a time where samples are",
		     "\x11"
		     "12345678",
		     -ENOTSUP, "1.4.0"),
		CASE("a stack outside", TYPE_CPU "\x12\x05\x08\x03\x22\x01\x01", -EBADMSG, "stack index"),
		CASE("an attribute outside", TYPE_CPU "\x12\x08\x08\x01\x12\x01\x03\x22\x01\x01", -EBADMSG,
		     "attribute index"),
		CASE("a link outside", TYPE_CPU "\x12\x07\x08\x01\x18\x02\x22\x01\x01", -EBADMSG, "link index"),
		CASE("a negative stack", TYPE_CPU "\x12\x0e\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x22\x01\x01",
		     -EBADMSG, "stack index"),
		CASE("more values than times",
		     TYPE_CPU "\x12\x10\x08\x01\x22\x02\x01\x01\x2a\x08"
			      "12345678",
		     -EBADMSG, "not as many"),
		CASE("times that are cut",
		     TYPE_CPU "\x12\x0b\x08\x01\x2a\x07"
			      "1234567",
		     -EBADMSG, "cut off"),
		CASE("a type outside", "\x0a\x02\x08\x09", -EBADMSG, "string index"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(parts_release) struct parts p = PARTS_INIT;
		struct window w = { .frequency_hz = 77 };
		struct codec_error error = { 0 };

		print_message("  %s\n", cases[i].name);
		add_tables(&p);
		add_bytes(&p, cases[i].profile, cases[i].size);
		assert_int_equal(decode(&p, &w, &error), cases[i].want);
		assert_non_null(strstr(error.reason, cases[i].reason));
		assert_int_equal(w.frequency_hz, 77);
		assert_null(w.model);
	}
}

static void refuses_a_file_without_a_dictionary(void **state)
{
	scoped(parts_release) struct parts p = PARTS_INIT;
	struct window w = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	PROFILE(&p, "\x12\x05\x08\x01\x22\x01\x01");
	assert_int_equal(decode(&p, &w, &error), -ENOTSUP);
	assert_non_null(strstr(error.reason, "1.6.0"));
}

static void refuses_attributes_of_1_7(void **state)
{
	scoped(parts_release) struct parts p = PARTS_INIT;
	struct window w = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	add_tables(&p);
	ROW(&p, TABLE_ATTRIBUTE, "\x0a\x01k\x12\x03\x0a\x01v");
	PROFILE(&p, TYPE_CPU);
	assert_int_equal(decode(&p, &w, &error), -ENOTSUP);
	assert_non_null(strstr(error.reason, "1.7.0"));
}

static void assert_text(const struct model *m, uint32_t id, const char *want)
{
	assert_true(str_eq(model_string(m, id), str_of(want)));
}

/* Three forms of one value, an attribute by index, a link, several times in one sample. */
static void reads_samples_of_others(void **state)
{
	scoped(parts_release) struct parts p = PARTS_INIT;
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };
	const struct model *m;
	const struct model_label *labels;

	(void)state;
	add_tables(&p);
	PROFILE(&p, TYPE_CPU);
	PROFILE(&p, "\x19\x05\0\0\0\0\0\0\0");                                                       /* starts at 5 */
	PROFILE(&p, "\x20\x64");                                                                     /* lasts 100 */
	PROFILE(&p, "\x12\x0a\x08\x02\x12\x02\x01\x02\x22\x02\x80\x01");                             /* 128 */
	PROFILE(&p, "\x12\x14\x08\x01\x2a\x10\x06\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0");                 /* twice 1 */
	PROFILE(&p, "\x12\x18\x18\x01\x20\x03\x20\x04\x2a\x10\x04\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0"); /* unpacked */
	PROFILE(&p, "\x4a\x03jfr\x52\x05"
		    "12345");
	assert_int_equal(decode(&p, &w, &error), 0);
	m = w.model;
	assert_int_equal(m->samples_count, 5);
	assert_int_equal(w.start_ns, 5);
	assert_int_equal(w.end_ns, 105);
	assert_int_equal(m->values[0], 128);
	assert_int_equal(m->processes[m->samples[0].process].pid, 7);
	labels = &m->labels[m->label_sets[m->samples[0].label_set].first];
	assert_int_equal(m->label_sets[m->samples[0].label_set].count, 1);
	assert_text(m, labels[0].key, "color");
	assert_text(m, labels[0].text, "red");
	assert_int_equal(m->values[1] + m->values[2], 2);
	assert_int_equal(m->samples[1].time_offset_ns, 1);
	assert_int_equal(m->samples[2].time_offset_ns, 2);
	assert_int_equal(m->samples[3].time_offset_ns, MODEL_NO_TIME); /* before the start */
	assert_int_equal(m->samples[4].time_offset_ns, 4);
	labels = &m->labels[m->label_sets[m->samples[3].label_set].first];
	assert_text(m, labels[0].key, "trace_id");
	assert_text(m, labels[0].text, "30313233343536373839616263646566");
	assert_text(m, labels[1].text, "3031323334353637");
	assert_non_null(strstr(error.lost.text, "original payload (jfr, 5 bytes)"));
	assert_non_null(strstr(error.lost.text, "1 timestamps before"));
}

/* Profiles of one scope are columns; the same type again adds up. */
static void joins_columns(void **state)
{
	scoped(parts_release) struct parts p = PARTS_INIT;
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	add_tables(&p);
	PROFILE(&p, TYPE_CPU "\x12\x05\x08\x01\x22\x01\x05"
			     "\x12\x05\x08\x02\x22\x01\x06");
	add_profile(&p);
	PROFILE(&p, "\x0a\x02\x08\x03"
		    "\x12\x05\x08\x01\x22\x01\x07"
		    "\x12\x05\x08\x01\x22\x01\x08");
	add_profile(&p);
	PROFILE(&p, TYPE_CPU "\x12\x05\x08\x01\x22\x01\x09");
	assert_int_equal(decode(&p, &w, &error), 0);
	assert_int_equal(w.model->value_type_count, 2);
	assert_int_equal(w.model->samples_count, 4);
	assert_int_equal(w.model->values[0], 5);
	assert_int_equal(w.model->values[1], 7); /* the same sample */
	assert_int_equal(w.model->values[2], 6);
	assert_int_equal(w.model->values[3], 0);
	assert_int_equal(w.model->values[5], 8); /* another stack: a sample of its own */
	assert_int_equal(w.model->values[6], 9);
}

static int64_t total(const struct window *w, size_t column)
{
	int64_t sum = 0;

	for (size_t i = 0; i < w->model->samples_count; i++)
		sum += model_values(w->model, &w->model->samples[i])[column];
	return sum;
}

static void keeps_what_a_window_has(void **state)
{
	scoped(window_release) struct window w = { 0 }, back = { 0 };
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(64));
	struct codec_lost lost = { 0 };
	const struct codec_options options = { .lost = &lost };
	struct codec_error error = { 0 };
	size_t kinds[2] = { 0 }, ends[2] = { 0 }, times[2] = { 0 };
	const struct window *both[2] = { &w, &back };

	(void)state;
	assert_int_equal(hostile_window(&w, true), 0);
	assert_int_equal(codec_otlp.encode_as(&w, &options, &bytes), 0);
	assert_non_null(strstr(lost.text, "not UTF-8"));
	assert_non_null(strstr(lost.text, "metadata"));
	assert_int_equal(codec_otlp.decode(buf_str(&bytes), &back, &error), 0);
	assert_string_equal(error.lost.text, "");
	assert_int_equal(back.model->samples_count, w.model->samples_count);
	for (size_t i = 0; i < 2; i++) {
		const struct model *m = both[i]->model;

		assert_int_equal(total(&back, i), total(&w, i));
		for (size_t s = 0; s < m->samples_count; s++) {
			ends[i] += m->samples[s].end != 0;
			times[i] += m->samples[s].time_offset_ns != MODEL_NO_TIME;
			for (uint32_t stack = m->samples[s].stack; stack; stack = m->stacks[stack].parent)
				kinds[i] += model_location_kind(m, m->stacks[stack].location);
		}
	}
	assert_int_equal(ends[0], ends[1]);
	assert_int_equal(times[0], times[1]);
	assert_int_equal(kinds[0], kinds[1]);
	assert_int_equal(back.frequency_hz, 99);
	assert_int_equal(window_counter(&back, STR("complete")), 987);
	assert_int_equal(back.start_ns, w.start_ns);
	assert_int_equal(back.end_ns, w.end_ns);
	assert_int_equal(back.model->period, w.model->period);
	assert_string_equal(back.host, w.host);
}

static void one_resource_for_each_container(void **state)
{
	scoped(window_release) struct window w = { 0 }, back = { 0 };
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64));
	struct codec_error error = { 0 };
	const char *const names[] = { "web", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "" };
	int64_t value = 1;

	(void)state;
	assert_int_equal(window_init(&w, KIB(64)), 0);
	assert_int_equal(model_add_value_type(w.model, STR("samples"), STR("count")), 0);
	assert_int_equal(window_add_label(&w, STR("service"), STR("shop")), 0);
	for (uint32_t i = 0; i < 6; i++) {
		struct model_process process = { .pid = 1 + i };
		struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };

		assert_int_equal(model_add_string(w.model, str_of(names[i % 3]), &process.container), 0);
		if (i == 4)
			assert_int_equal(model_add_string(w.model, STR("db"), &process.workload), 0);
		assert_int_equal(model_add_process(w.model, &process, &sample.process), 0);
		assert_int_equal(model_add_sample(w.model, &sample, &value), 0);
	}
	assert_int_equal(codec_otlp.encode(&w, &bytes), 0);
	assert_true(str_search(buf_str(&bytes), STR("container.id")) >= 0);
	assert_int_equal(codec_otlp.decode(buf_str(&bytes), &back, &error), 0);
	assert_int_equal(back.model->samples_count, 6);
	for (size_t i = 0; i < 6; i++) {
		static const uint32_t pids[] = { 1, 4, 2, 3, 6, 5 }; /* by container and service */
		const struct model_process *process = &back.model->processes[back.model->samples[i].process];

		assert_int_equal(process->pid, pids[i]);
		assert_text(back.model, process->container, names[(pids[i] - 1) % 3]);
		assert_text(back.model, process->workload, pids[i] == 5 ? "db" : "");
	}
	assert_true(str_eq(window_label(&back, STR("service")), STR("shop")));
}

/* Links with one id only, which is the sample's only label; each is read once, however often it is asked for. */
static void links_with_one_id(void **state)
{
	static const char *const keys[] = { OTLP_TRACE_ID, OTLP_SPAN_ID }, *const texts[] = {
		"30313233343536373839616263646566", "3031323334353637"
	};
	scoped(parts_release) struct parts p = PARTS_INIT;
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	add_tables(&p);
	ROW(&p, TABLE_LINK,
	    "\x0a\x10"
	    "0123456789abcdef");
	ROW(&p, TABLE_LINK,
	    "\x12\x08"
	    "01234567");
	PROFILE(&p, TYPE_CPU);
	PROFILE(&p, "\x12\x07\x08\x01\x18\x02\x22\x01\x01");
	PROFILE(&p, "\x12\x07\x08\x01\x18\x03\x22\x01\x02");
	PROFILE(&p, "\x12\x07\x08\x02\x18\x02\x22\x01\x03");
	PROFILE(&p, "\x12\x07\x08\x02\x18\x03\x22\x01\x04");
	assert_int_equal(decode(&p, &w, &error), 0);
	assert_int_equal(w.model->samples_count, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct model_label_set *set = &w.model->label_sets[w.model->samples[i].label_set];
		const struct model_label *label = &w.model->labels[set->first];

		assert_int_equal(set->count, 1);
		assert_true(str_eq(model_string(w.model, label->key), str_of(keys[i % 2])));
		assert_true(str_eq(model_string(w.model, label->text), str_of(texts[i % 2])));
	}
}

/* Kinds of frames for far more lines than a location has, and all locations have them: read once for each, this would
 * take minutes. */
static void long_kinds_are_not_read_again(void **state)
{
	enum { LOCATIONS = 60000, WORDS = 100000 };
	scoped(buf_release) struct buf value = BUF_INIT(MIB(1)), attribute = BUF_INIT(MIB(1)),
				       location = BUF_INIT(KIB(1)), tables = BUF_INIT(MIB(4)), file = BUF_INIT(MIB(4));
	scoped(buf_release) struct buf kinds = BUF_INIT(MIB(1));
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	for (int i = 0; i < WORDS; i++)
		buf_adds(&kinds, i ? STR(",php") : STR("php"));
	wire_add_bytes(&value, ANY_STRING, buf_str(&kinds));
	wire_add_value(&attribute, ATTRIBUTE_KEY, 1);
	wire_add_bytes(&attribute, ATTRIBUTE_VALUE, buf_str(&value));
	wire_add_bytes(&tables, TABLE_LOCATION, STR(""));
	for (uint64_t i = 1; i <= LOCATIONS; i++) {
		buf_clear(&location);
		wire_add_value(&location, LOCATION_ADDRESS, i);
		wire_add_bytes(&location, LOCATION_ATTRIBUTES, STR("\x01"));
		wire_add_bytes(&tables, TABLE_LOCATION, buf_str(&location));
	}
	wire_add_bytes(&tables, TABLE_STRING, STR(""));
	wire_add_bytes(&tables, TABLE_STRING, STR(OTLP_FRAME_KINDS));
	wire_add_bytes(&tables, TABLE_ATTRIBUTE, STR(""));
	wire_add_bytes(&tables, TABLE_ATTRIBUTE, buf_str(&attribute));
	wire_add_bytes(&file, DATA_DICTIONARY, buf_str(&tables));
	assert_int_equal(file.error, 0);
	assert_int_equal(codec_otlp.decode(buf_str(&file), &w, &error), 0);
	assert_int_equal(w.model->locations_count, LOCATIONS + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses),
		cmocka_unit_test(refuses_a_file_without_a_dictionary),
		cmocka_unit_test(refuses_attributes_of_1_7),
		cmocka_unit_test(reads_samples_of_others),
		cmocka_unit_test(joins_columns),
		cmocka_unit_test(keeps_what_a_window_has),
		cmocka_unit_test(one_resource_for_each_container),
		cmocka_unit_test(links_with_one_id),
		cmocka_unit_test(long_kinds_are_not_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
