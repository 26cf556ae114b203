/* SPDX-License-Identifier: Apache-2.0 */
#include "store/remap.h"

#include "base/array.h"

int remap_init(struct remap *rm, struct model *into, const struct model *from)
{
	rm->into = into;
	rm->from = from;
	rm->strings = calloc(intern_count(&from->strings), sizeof(uint32_t));
	rm->mappings = calloc(from->mappings_count, sizeof(uint32_t));
	rm->shifts = calloc(from->mappings_count, sizeof(uint64_t));
	rm->functions = calloc(from->functions_count, sizeof(uint32_t));
	rm->locations = calloc(from->locations_count, sizeof(uint32_t));
	rm->stacks = calloc(from->stacks_count, sizeof(uint32_t));
	rm->processes = calloc(from->processes_count, sizeof(uint32_t));
	rm->threads = calloc(from->threads_count, sizeof(uint32_t));
	rm->label_sets = calloc(from->label_sets_count, sizeof(uint32_t));
	rm->labels = calloc(MODEL_LABELS_MAX, sizeof(*rm->labels));
	return rm->labels && rm->strings && rm->mappings && rm->shifts && rm->functions && rm->locations &&
			       rm->stacks && rm->processes && rm->threads && rm->label_sets
		       ? 0
		       : -ENOMEM;
}

void remap_release(struct remap *rm)
{
	free(rm->strings);
	free(rm->mappings);
	free(rm->shifts);
	free(rm->functions);
	free(rm->locations);
	free(rm->stacks);
	free(rm->processes);
	free(rm->threads);
	free(rm->label_sets);
	free(rm->lines);
	free(rm->path);
	free(rm->labels);
}

void remap_find_strings(struct remap *rm)
{
	intern_find_all(&rm->into->strings, &rm->from->strings, rm->strings);
}

int remap_string(struct remap *rm, uint32_t row, uint32_t *out)
{
	int r = 0;

	if (row && !rm->strings[row])
		r = model_add_string(rm->into, model_string(rm->from, row), &rm->strings[row]);
	if (r == 0)
		*out = rm->strings[row];
	return r;
}

int remap_type(struct remap *rm, struct model_value_type row, struct model_value_type *out)
{
	int r = remap_string(rm, row.type, &out->type);

	return r ? r : remap_string(rm, row.unit, &out->unit);
}

int remap_place(struct remap *rm, uint32_t row, const struct model_mapping *as)
{
	struct model_mapping mapping = *as;
	int r = remap_string(rm, as->filename, &mapping.filename);

	r = r ? r : remap_string(rm, as->build_id, &mapping.build_id);
	r = r ? r : model_add_mapping(rm->into, &mapping, &rm->mappings[row]);
	rm->shifts[row] = as->start - rm->from->mappings[row].start;
	return r;
}

/* Functions whose strings are there may be there too. */
static void find_functions(struct remap *rm)
{
	struct model_function rows[MODEL_FIND_MAX];
	uint32_t from[MODEL_FIND_MAX], found[MODEL_FIND_MAX];
	size_t count = 0;

	for (uint32_t row = 1; row < rm->from->functions_count; row++) {
		struct model_function f = rm->from->functions[row];
		uint32_t name = rm->strings[f.name], system_name = rm->strings[f.system_name],
			 filename = rm->strings[f.filename];

		if (!rm->functions[row] && !(f.name && !name) && !(f.system_name && !system_name) &&
		    !(f.filename && !filename)) {
			f.name = name;
			f.system_name = system_name;
			f.filename = filename;
			rows[count] = f;
			from[count++] = row;
		}
		if (count < MODEL_FIND_MAX && row + 1 < rm->from->functions_count)
			continue;
		model_find_functions(rm->into, rows, count, found);
		for (size_t i = 0; i < count; i++)
			rm->functions[from[i]] = found[i];
		count = 0;
	}
}

#define FIND_LINES_MAX 4 /* inlined functions of a location; those of more are looked up one by one */

/* The same of locations, but for those with many inlined functions. */
static void find_locations(struct remap *rm)
{
	struct model_location rows[MODEL_FIND_MAX];
	struct model_line lines[FIND_LINES_MAX * MODEL_FIND_MAX];
	uint32_t from[MODEL_FIND_MAX], found[MODEL_FIND_MAX];
	size_t count = 0, line_count = 0;

	for (uint32_t row = 1; row < rm->from->locations_count; row++) {
		struct model_location location = rm->from->locations[row];
		bool known = !rm->locations[row] && location.line_count <= FIND_LINES_MAX &&
			     !(location.mapping && !rm->mappings[location.mapping]);

		for (uint32_t i = 0; known && i < location.line_count; i++) {
			struct model_line line = rm->from->lines[location.first_line + i];

			known = !line.function || rm->functions[line.function];
			line.function = rm->functions[line.function];
			lines[line_count + i] = line;
		}
		if (known) {
			location.address += rm->shifts[location.mapping];
			location.mapping = rm->mappings[location.mapping];
			rows[count] = location;
			from[count++] = row;
			line_count += location.line_count;
		}
		if (count < MODEL_FIND_MAX && row + 1 < rm->from->locations_count)
			continue;
		model_find_locations(rm->into, rows, lines, count, found);
		for (size_t i = 0; i < count; i++)
			rm->locations[from[i]] = found[i];
		count = line_count = 0;
	}
}

void remap_find(struct remap *rm)
{
	find_functions(rm);
	find_locations(rm);
}

static int remap_function(struct remap *rm, uint32_t row, uint32_t *out)
{
	struct model_function function = rm->from->functions[row];
	int r = 0;

	if (!rm->functions[row] && row) {
		r = remap_string(rm, function.name, &function.name);
		r = r ? r : remap_string(rm, function.system_name, &function.system_name);
		r = r ? r : remap_string(rm, function.filename, &function.filename);
		r = r ? r : model_add_function(rm->into, &function, &rm->functions[row]);
	}
	if (r == 0)
		*out = rm->functions[row];
	return r;
}

static int remap_location(struct remap *rm, uint32_t row, uint32_t *out)
{
	struct model_location location = rm->from->locations[row];
	int r = 0;

	if (!row || rm->locations[row]) {
		*out = rm->locations[row];
		return 0;
	}
	location.address += rm->shifts[location.mapping];
	location.mapping = rm->mappings[location.mapping];
	for (uint32_t i = 0; r == 0 && i < location.line_count; i++) {
		r = array_grow(&rm->lines, &rm->lines_cap, i, UINT32_MAX);
		if (r < 0)
			return r;
		rm->lines[i] = rm->from->lines[location.first_line + i];
		r = remap_function(rm, rm->lines[i].function, &rm->lines[i].function);
	}
	r = r ? r : model_add_location(rm->into, &location, rm->lines, &rm->locations[row]);
	if (r == 0)
		*out = rm->locations[row];
	return r;
}

int remap_all(struct remap *rm)
{
	const struct model *from = rm->from;
	uint32_t out = 0;
	int r = 0;

	must(rm->into->may_repeat && rm->into->functions_count == 1 && rm->into->locations_count == 1);
	for (uint32_t i = 1; r == 0 && i < from->functions_count; i++)
		r = remap_function(rm, i, &out);
	for (uint32_t i = 1; r == 0 && i < from->locations_count; i++)
		r = remap_location(rm, i, &out);
	r = r ? r : model_copy_stacks(rm->into, from);
	for (uint32_t i = 0; r == 0 && i < from->stacks_count; i++)
		rm->stacks[i] = i;
	return r;
}

/* Up to the first ancestor that is there already, and down again. */
int remap_stack(struct remap *rm, uint32_t row, uint32_t *out)
{
	const struct model_stack *stacks = rm->from->stacks;
	size_t count = 0;
	uint32_t node;
	int r = 0;

	for (node = row; node && !rm->stacks[node]; node = stacks[node].parent) {
		r = array_grow(&rm->path, &rm->path_cap, count, UINT32_MAX);
		if (r < 0)
			return r;
		rm->path[count++] = node;
	}
	while (r == 0 && count) {
		uint32_t location = 0;

		node = rm->path[--count];
		r = remap_location(rm, stacks[node].location, &location);
		r = r ? r : model_add_stack(rm->into, rm->stacks[stacks[node].parent], location, &rm->stacks[node]);
	}
	if (r == 0)
		*out = rm->stacks[row];
	return r;
}

int remap_process(struct remap *rm, uint32_t row, uint32_t *out)
{
	struct model_process process = rm->from->processes[row];
	int r = 0;

	if (row && !rm->processes[row]) {
		struct str json = model_string(rm->from, rm->from->app_metadata[process.app_metadata]);

		r = remap_string(rm, process.comm, &process.comm);
		r = r ? r : remap_string(rm, process.container, &process.container);
		r = r ? r : remap_string(rm, process.app_id, &process.app_id);
		r = r ? r : model_add_app_metadata(rm->into, json, &process.app_metadata);
		/* Said by the profile's service and its label. */
		process.workload = process.service_kind = 0;
		r = r ? r : model_add_process(rm->into, &process, &rm->processes[row]);
	}
	if (r == 0)
		*out = rm->processes[row];
	return r;
}

int remap_thread(struct remap *rm, uint32_t row, uint32_t *out)
{
	struct model_thread thread = rm->from->threads[row];
	int r = 0;

	if (row && !rm->threads[row]) {
		r = remap_process(rm, thread.process, &thread.process);
		r = r ? r : remap_string(rm, thread.name, &thread.name);
		r = r ? r : model_add_thread(rm->into, &thread, &rm->threads[row]);
	}
	if (r == 0)
		*out = rm->threads[row];
	return r;
}

int remap_label_set(struct remap *rm, uint32_t row, uint32_t *out)
{
	struct model_label_set set = rm->from->label_sets[row];
	int r = 0;

	if (!row || rm->label_sets[row]) {
		*out = rm->label_sets[row];
		return 0;
	}
	for (uint32_t i = 0; r == 0 && i < set.count; i++) {
		struct model_label *label = &rm->labels[i];

		*label = rm->from->labels[set.first + i];
		r = remap_string(rm, label->key, &label->key);
		if (r == 0 && label->is_number)
			r = remap_string(rm, label->unit, &label->unit);
		else if (r == 0)
			r = remap_string(rm, label->text, &label->text);
	}
	r = r ? r : model_add_label_set(rm->into, rm->labels, set.count, &rm->label_sets[row]);
	if (r == 0)
		*out = rm->label_sets[row];
	return r;
}
