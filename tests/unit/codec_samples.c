/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_samples.h"

static char long_name[KIB(64)];

static const struct str names[] = {
	{ "main", 4 },
	{ "", 0 },
	{ "a;b", 3 },
	{ ";", 1 },
	{ "line\nbreak", 10 },
	{ "carriage\r", 9 },
	{ "nul\0inside", 10 },
	{ "\x01\x02\x1f\x7f", 4 },
	{ "\xff\xfe bad utf-8 \xc3", 13 },
	{ "\xed\xa0\x80 surrogate", 13 },
	{ "\xef\xbb\xbf"
	  "bom",
	  6 },
	{ "a 5", 3 },
	{ "a 5 6", 5 },
	{ "task 5.5", 8 },
	{ "12345", 5 },
	{ "  leading", 9 },
	{ "trailing  ", 10 },
	{ " ", 1 },
	{ "   ", 3 },
	{ "x_[k]", 5 },
	{ "x_[j]_[k]", 9 },
	{ "_[k]", 4 },
	{ "_[pn]", 5 },
	{ "y_[p]", 5 },
	{ "appid: evil", 11 },
	{ "appid: ", 7 },
	{ "# {}", 4 },
	{ "{\"json\": [1, \"x\\", 16 },
	{ "<script>&amp;'\"", 15 },
	{ "[unknown]", 9 },
	{ "std::vector<int, std::allocator<int> >::push_back(int&&)", 56 },
	{ "\xf0\x9f\x94\xa5 fire", 9 },
	{ "hearth: host=evil", 17 },
	{ "pid", 3 },
	{ "comm", 4 },
	{ "f (/a.py:3)", 11 },
	{ "g (/a b.py:7 [x y==1;2])", 24 },
	{ "[python:x==1]", 13 },
	{ long_name, sizeof(long_name) },
	{ NULL, 0 },
};

const struct str *hostile_names(void)
{
	for (size_t i = 0; i < sizeof(long_name); i++)
		long_name[i] = (char)("ab;\n\xff 5"[i % 7]);
	return names;
}

static int add_names(struct model *m, const struct str *list, uint32_t *ids, size_t *count)
{
	int r = 0;

	for (*count = 0; r == 0 && list[*count].ptr; ++*count)
		r = model_add_string(m, list[*count], &ids[*count]);
	return r;
}

static bool ends_as(struct str name, enum model_kind kind)
{
	struct str suffix = model_kind_suffix(kind);

	return suffix.len && str_ends(name, suffix);
}

/* Every kind in turn, but a name that ends as a runtime's names do in text is of that runtime: docs/formats/col.md. */
static enum model_kind kind_of(struct str name, size_t turn)
{
	const struct model_runtime *runtime;

	for (size_t i = 0; (runtime = model_runtime_at(i)); i++) {
		if (ends_as(name, runtime->functions))
			return runtime->functions;
		if (ends_as(name, runtime->errors))
			return runtime->errors;
	}
	return (enum model_kind)(turn % MODEL_KIND_COUNT);
}

static int add_location(struct model *m, const uint32_t *ids, size_t count, size_t i, uint32_t *out)
{
	struct model_mapping mapping = { .start = 0x1000 * (i % 5),
					 .limit = 0x1000 * (i % 5) + 0x800,
					 .file_offset = i % 3 * 64,
					 .filename = ids[(i * 7) % count],
					 .build_id = i % 4 ? ids[(i * 5) % count] : 0,
					 .flags = (uint32_t)i % 16 };
	struct model_location location = { .address = 0x1000 * (i % 5) + i, .is_folded = i % 6 == 0 };
	struct model_line lines[3] = { { 0 } };
	int r = 0;

	if (model_string(m, mapping.build_id).len == 1)
		mapping.build_id = 0; /* go tool pprof slices [:2] off a build id and panics */
	if (i % 3)
		r = model_add_mapping(m, &mapping, &location.mapping);
	location.line_count = (uint32_t)(i % 4);
	for (size_t line = 0; r == 0 && line < location.line_count; line++) {
		struct model_function function = { .name = ids[(i + line) % count],
						   .system_name = ids[(i * 3) % count],
						   .filename = ids[(i + 1) % count],
						   .start_line = (int64_t)i - 3 };

		function.kind = kind_of(model_string(m, function.name), i + line);
		lines[line].line = (int64_t)i * 11 - 20;
		lines[line].column = (int64_t)i % 3;
		r = model_add_function(m, &function, &lines[line].function);
	}
	return r ? r : model_add_location(m, &location, lines, out);
}

static int add_sample(struct model *m, const uint32_t *ids, size_t count, const uint32_t *locations, size_t i)
{
	struct model_process process = { .pid = i % 3 ? (uint32_t)(i % 11) : 0,
					 .start_ns = i % 5,
					 .comm = ids[i % count],
					 .container = ids[(i * 3 + 1) % count],
					 .app_id = i % 4 ? 0 : ids[(i + 2) % count],
					 .workload = i % 2 ? ids[(i + 4) % count] : 0,
					 .service_kind = i % 3 ? ids[(i + 5) % count] : 0 };
	struct model_label labels[4] = {
		{ .key = ids[(i + 5) % count], .text = ids[(i + 6) % count] },
		{ .key = ids[33], .is_number = true, .number = (int64_t)i - 40 },
		{ .key = ids[34], .text = ids[i % count] },
		{ .key = ids[0], .is_number = true, .number = 0, .unit = ids[i % count] },
	};
	struct model_sample sample = { .end = i % 3 ? ids[i % count] : 0,
				       .time_offset_ns = i % 2 ? MODEL_NO_TIME : i * 1000 };
	const int64_t values[2] = { (int64_t)i % 7 + 1, (int64_t)(i % 7 + 1) * 10101010 };
	struct model_thread thread = { .tid = (uint32_t)i, .name = ids[(i + 9) % count] };
	int r = i % 8 == 7 ? model_add_app_metadata(m, STR("{\"x\":1}"), &process.app_metadata) : 0;

	for (size_t depth = 0; r == 0 && depth < i % 9; depth++)
		r = model_add_stack(m, sample.stack, locations[(i * 5 + depth * 3) % (2 * count)], &sample.stack);
	r = r ? r : model_add_process(m, &process, &sample.process);
	thread.process = sample.process;
	if (i % 2)
		r = r ? r : model_add_thread(m, &thread, &sample.thread);
	r = r ? r : model_add_label_set(m, labels, i % 5 ? 0 : i % 4 + 1, &sample.label_set);
	return r ? r : model_add_sample(m, &sample, values);
}

static int fill_model(struct model *m, const struct str *list)
{
	uint32_t ids[64], locations[128];
	size_t count;
	int r = add_names(m, list, ids, &count);

	r = r ? r : model_add_value_type(m, STR("samples"), STR("count"));
	r = r ? r : model_add_value_type(m, STR("cpu"), STR("nanoseconds"));
	r = r ? r : model_add_string(m, STR("cpu"), &m->period_type.type);
	r = r ? r : model_add_string(m, STR("nanoseconds"), &m->period_type.unit);
	m->period = 10101010;
	for (size_t i = 0; r == 0 && i < 2 * count; i++)
		r = add_location(m, ids, count, i, &locations[i]);
	for (size_t i = 0; r == 0 && i < 4 * count; i++)
		r = add_sample(m, ids, count, locations, i);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = model_add_comment(m, list[i]);
	return r;
}

static int fill_window(struct window *w, const struct str *list)
{
	int r = window_set_text(&w->host, STR("host; \"a\"\n"));

	w->start_ns = UINT64_C(1790000000000000000);
	w->end_ns = w->start_ns + 10 * NSEC_PER_SEC;
	w->frequency_hz = 99;
	w->cpu_count = 2;
	w->run_id[0] = 5;
	w->run_id[1] = UINT64_MAX;
	w->cpu_average = 12.25;
	w->memory_average = 0;
	w->busy_ns = 12345;
	r = r ? r : window_set_text(&w->agent_version, STR("0.1.0"));
	r = r ? r : window_set_text(&w->command, STR("\xff\x01 x=y"));
	for (size_t i = 0; r == 0 && list[i].ptr; i++) {
		r = window_add_label(w, list[i], list[i]);
		r = r ? r : window_set_counter(w, list[i], i * 17);
	}
	r = r ? r : window_set_counter(w, STR("user_samples"), 1000);
	r = r ? r : window_set_counter(w, STR("complete"), 987);
	return r ? r
		 : window_set_text(&w->metadata_json,
				   STR("{\"a\":[1,2.50,\"\\udc80\\u00e9\\n\"],\"b\":{}, \"hostname\":\"h\"}"));
}

int hostile_window(struct window *out, bool with_long)
{
	scoped(window_release) struct window w = { 0 };
	struct str list[ARRAY_SIZE(names)];
	int r = window_init(&w, MIB(16));

	memcpy(list, hostile_names(), sizeof(list));
	if (!with_long)
		list[ARRAY_SIZE(list) - 2] = (struct str){ NULL, 0 };
	r = r ? r : fill_model(w.model, list);
	r = r ? r : fill_window(&w, list);
	if (r < 0)
		return r;
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}
