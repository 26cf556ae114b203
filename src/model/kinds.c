/* SPDX-License-Identifier: Apache-2.0 */
/* Names of frame kinds and of frames. */
#include <inttypes.h>

#include "model/model.h"

#define X(id, name, suffix) STR(suffix),
static const struct str suffixes[] = { MODEL_KINDS(X) };
#undef X
#define X(id, name, suffix) STR("[" name "]"),
static const struct str mappings[] = { MODEL_KINDS(X) };
#undef X

#define X(name, title, functions, errors) { STR(name), STR(title), MODEL_KIND_##functions, MODEL_KIND_##errors },
static const struct model_runtime runtimes[] = { MODEL_RUNTIMES(X) };
#undef X

const struct model_runtime *model_runtime_at(size_t index)
{
	return index < ARRAY_SIZE(runtimes) ? &runtimes[index] : NULL;
}

bool model_kind_is_function(enum model_kind kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
		if (runtimes[i].functions == kind)
			return true;
	return false;
}

bool model_kind_is_runtime(enum model_kind kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
		if (runtimes[i].functions == kind || runtimes[i].errors == kind)
			return true;
	return false;
}

struct str model_kind_suffix(enum model_kind kind)
{
	must((size_t)kind < MODEL_KIND_COUNT);
	return suffixes[kind];
}

struct str model_kind_mapping(enum model_kind kind)
{
	must((size_t)kind < MODEL_KIND_COUNT);
	if (kind == MODEL_KIND_NATIVE)
		return STR("");
	return kind == MODEL_KIND_KERNEL ? STR("[kernel.kallsyms]") : mappings[kind];
}

/* perf names the kernel "[kernel.kallsyms]", with "_text" or "_stext" behind it, or gives the path of vmlinux; its
 * modules are "[name]" (not told apart from others here) or files with the suffix .ko, perhaps compressed. */
static bool is_kernel(struct str filename)
{
	struct str base = str_base(filename);

	return str_starts(filename, STR("[kernel")) || str_starts(base, STR("vmlinux")) || str_ends(base, STR(".ko")) ||
	       str_ends(base, STR(".ko.xz")) || str_ends(base, STR(".ko.gz")) || str_ends(base, STR(".ko.zst"));
}

enum model_kind model_kind_of_mapping(struct str filename)
{
	if (!filename.len)
		return MODEL_KIND_NATIVE;
	if (is_kernel(filename))
		return MODEL_KIND_KERNEL;
	for (size_t kind = MODEL_KIND_KERNEL + 1; filename.ptr[0] == '[' && kind < MODEL_KIND_COUNT; kind++)
		if (str_eq(filename, mappings[kind]))
			return (enum model_kind)kind;
	return model_distribution_of_mapping(filename).len ? MODEL_KIND_PYTHON : MODEL_KIND_NATIVE;
}

struct str model_distribution_of_mapping(struct str filename)
{
	const struct str start = STR("[python:");

	if (filename.len <= start.len + 1 || !str_starts(filename, start) || !str_ends(filename, STR("]")))
		return STR("");
	return str_n(filename.ptr + start.len, filename.len - start.len - 1);
}

enum model_kind model_location_kind(const struct model *m, uint32_t location)
{
	const struct model_location *row = &m->locations[location];

	if (row->line_count)
		return m->functions[m->lines[row->first_line + row->line_count - 1].function].kind;
	return model_kind_of_mapping(model_string(m, m->mappings[row->mapping].filename));
}

void model_frame_name(const struct model *m, uint32_t location, uint32_t line, struct buf *out)
{
	const struct model_location *row = &m->locations[location];
	const struct model_mapping *mapping = &m->mappings[row->mapping];
	struct str file = str_base(model_string(m, mapping->filename));

	if (line < row->line_count) {
		struct str name = model_string(m, m->functions[m->lines[row->first_line + line].function].name);

		buf_adds(out, name.len ? name : STR("[unknown]"));
	} else if (file.len) {
		buf_addc(out, '[');
		buf_adds(out, file);
		buf_addf(out, "+0x%" PRIx64 "]", row->address - mapping->start + mapping->file_offset);
	} else {
		buf_adds(out, STR("[unknown]"));
	}
}
