/* SPDX-License-Identifier: Apache-2.0 */
#include "python_samples.h"

static int add_text(struct model *m, const char *text, uint32_t *out)
{
	return model_add_string(m, str_of(text), out);
}

int python_location(struct model *m, const struct python_frame *frame, uint32_t *out)
{
	struct model_mapping mapping = { .flags = MODEL_HAS_FUNCTIONS | MODEL_HAS_FILENAMES | MODEL_HAS_LINE_NUMBERS };
	struct model_function function = { .start_line = frame->first, .kind = frame->kind };
	struct model_location location = { .line_count = 1 };
	struct model_line line = { .line = frame->line };
	int r = add_text(m, frame->name, &function.name);

	r = r ? r : add_text(m, frame->qualified ? frame->qualified : frame->name, &function.system_name);
	r = r ? r : add_text(m, frame->file, &function.filename);
	r = r ? r : model_add_function(m, &function, &line.function);
	if (frame->mapping) {
		r = r ? r : add_text(m, frame->mapping, &mapping.filename);
		r = r ? r : model_add_mapping(m, &mapping, &location.mapping);
	}
	return r ? r : model_add_location(m, &location, &line, out);
}

#define JSON_FILE "/usr/lib/python3.11/json/decoder.py"

static const struct python_frame frames[] = {
	{ .name = "_start", .kind = MODEL_KIND_NATIVE },
	{ "<module>", "<module>", "/srv/app.py", 1, 30, MODEL_KIND_PYTHON, "[python]" },
	{ "app.Worker.run", "Worker.run", "/srv/app.py", 12, 19, MODEL_KIND_PYTHON, "[python]" },
	{ "json.decoder.JSONDecoder.raw_decode", "JSONDecoder.raw_decode", JSON_FILE, 343, 353, MODEL_KIND_PYTHON,
	  "[python:standard-library==3.11.2]" },
	{ .name = "scan_once", .kind = MODEL_KIND_NATIVE },
	{ .name = "do_user_addr_fault", .kind = MODEL_KIND_KERNEL },
	{ .name = "[Lost Symbol]", .kind = MODEL_KIND_PYTHON_ERROR },
	{ .name = "gc_thread", .kind = MODEL_KIND_NATIVE },
};

static const struct {
	uint8_t depth, path[8], process; /* path: frames, root first */
	int64_t count;
} samples[] = {
	{ 6, { 0, 1, 2, 3, 4, 5 }, 1, 3 },
	{ 3, { 0, 6, 4 }, 1, 2 },
	{ 2, { 0, 7 }, 1, 5 },
	{ 2, { 0, 5 }, 2, 1 },
};

static int add_processes(struct model *m, uint32_t ids[3])
{
	struct model_process python = { .pid = 10 }, other = { .pid = 11 };
	int r = add_text(m, "python3", &python.comm);

	r = r ? r : add_text(m, "web-1", &python.container);
	r = r ? r : add_text(m, "python: app.py (/srv/app.py)", &python.app_id);
	r = r ? r : model_add_app_metadata(m, STR("{\"python_version\":\"Python 3.11.2\"}"), &python.app_metadata);
	r = r ? r : model_add_process(m, &python, &ids[1]);
	r = r ? r : add_text(m, "cat", &other.comm);
	return r ? r : model_add_process(m, &other, &ids[2]);
}

int python_window(struct window *out)
{
	scoped(window_release) struct window w = { 0 };
	uint32_t locations[ARRAY_SIZE(frames)], processes[3] = { 0 };
	int r = window_init(&w, MIB(1));

	r = r ? r : model_add_value_type(w.model, STR("samples"), STR("count"));
	r = r ? r : add_processes(w.model, processes);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(frames); i++)
		r = python_location(w.model, &frames[i], &locations[i]);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(samples); i++) {
		struct model_sample row = { .process = processes[samples[i].process], .time_offset_ns = MODEL_NO_TIME };

		for (size_t d = 0; r == 0 && d < samples[i].depth; d++)
			r = model_add_stack(w.model, row.stack, locations[samples[i].path[d]], &row.stack);
		r = r ? r : model_add_sample(w.model, &row, &samples[i].count);
	}
	if (r < 0)
		return r;
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}
