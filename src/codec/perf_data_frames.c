/* SPDX-License-Identifier: Apache-2.0 */
/* An address of a recording as a location: by what was mapped there, with the name that code_names knows. */
#include "base/array.h"
#include "codec/perf_data_int.h"

#define KERNEL_HALF UINT64_C(0xffff000000000000) /* x86-64 and arm64 have the kernel there */
#define FILE_LIMIT (UINT64_C(1) << 40)           /* as in hearth's own profiles: addresses are offsets in the file */
#define KERNEL_NAME "[kernel.kallsyms]"

/* Names of memory without a file; linux 6.1, tools/perf/util/map.c, is_anon_memory(), is_no_dso_memory(). */
static bool is_anonymous(struct str name)
{
	static const char *const starts[] = { "//anon", "/anon_hugepage", "/dev/zero", "/memfd:",
					      "[anon",  "[heap]",         "[stack",    "/SYSV" };

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (str_starts(name, str_of(starts[i])))
			return true;
	return !name.len;
}

/* "[kernel.kallsyms]_text" is the kernel itself. */
static struct str kernel_name(struct str name)
{
	return str_starts(name, STR("[kernel.kallsyms]")) ? STR(KERNEL_NAME) : name;
}

int perf_data_file(struct perf_data *d, const struct perf_file_key *key, uint32_t *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(80));
	struct str name = key->is_kernel ? kernel_name(key->name) : key->name;
	struct perf_file row = { .build_id = key->build_id, .is_symbol = key->is_symbol };
	uint32_t id = 0;
	int r;

	if (key->is_kernel)
		row.kind = CODE_KERNEL;
	else
		row.kind = is_anonymous(name) ? CODE_JIT : CODE_FILE;
	buf_addc(&text, key->is_symbol ? 's' : key->is_kernel ? 'k' : 'u');
	buf_addc(&text, (char)key->build_id.size);
	buf_add(&text, key->build_id.bytes, key->build_id.size);
	buf_adds(&text, name);
	r = text.error ? text.error : intern_add(&d->file_keys, buf_str(&text), &id);
	r = r ? r : intern_add(&d->names, name, &row.name);
	if (r == 0 && id > d->file_count) {
		r = array_grow(&d->files, &d->file_cap, d->file_count, UINT32_MAX);
		if (r == 0)
			d->files[d->file_count++] = row;
	}
	if (r == 0)
		*out = id - 1;
	return r;
}

static int add_build_id(struct perf_data *d, const struct perf_build_id *id, uint32_t *out)
{
	scoped(buf_release) struct buf hex = BUF_INIT(2 * PERF_BUILD_ID_MAX + 1);

	for (size_t i = 0; i < id->size; i++)
		buf_addf(&hex, "%02x", id->bytes[i]);
	return hex.error ? hex.error : model_add_string(d->m, buf_str(&hex), out);
}

/* The mapping of a file, made when its first frame is met. */
static int get_mapping(struct perf_data *d, struct perf_file *f, uint32_t *out)
{
	struct model_mapping row = { .limit = f->kind == CODE_FILE ? FILE_LIMIT : UINT64_MAX };
	struct str name = intern_get(&d->names, f->name);
	int r = 0;

	if (f->has_mapping) {
		*out = f->mapping;
		return 0;
	}
	if (f->kind == CODE_JIT)
		name = model_kind_mapping(MODEL_KIND_JIT);
	else if (f->kind == CODE_KERNEL && model_kind_of_mapping(name) != MODEL_KIND_KERNEL)
		name = STR(KERNEL_NAME); /* "[ext4]", or a BPF program */
	r = model_add_string(d->m, codec_text(d->limits, name), &row.filename);
	if (r == 0 && f->kind != CODE_JIT)
		r = add_build_id(d, &f->build_id, &row.build_id);
	r = r ? r : model_add_mapping(d->m, &row, &f->mapping);
	f->has_mapping = r == 0;
	if (r == 0)
		*out = f->mapping;
	return r;
}

static enum model_kind kind_of(enum code_place_kind kind)
{
	return kind == CODE_KERNEL ? MODEL_KIND_KERNEL : kind == CODE_JIT ? MODEL_KIND_JIT : MODEL_KIND_NATIVE;
}

static int add_function(struct perf_data *d, enum model_kind kind, const struct code_name *name, struct model_line *out)
{
	struct model_function row = { .kind = kind };
	int r = model_add_string(d->m, codec_text(d->limits, name->name), &row.name);

	row.system_name = row.name;
	if (r == 0 && name->system_name.len)
		r = model_add_string(d->m, codec_text(d->limits, name->system_name), &row.system_name);
	if (r == 0 && name->file.len)
		r = model_add_string(d->m, codec_text(d->limits, name->file), &row.filename);
	out->line = name->line;
	return r ? r : model_add_function(d->m, &row, &out->function);
}

static int find_name(struct perf_data *d, const struct code_place *place, struct code_name *out)
{
	const struct code_names *names = d->limits->names;

	return names ? names->find(names->ctx, place, out) : -ENOENT;
}

/* A new location: asks for its name. */
static int add_location(struct perf_data *d, struct perf_file *f, const struct code_place *place, uint32_t *out)
{
	struct model_location row = { .address = place->address - (place->is_return ? 1 : 0) };
	struct code_name name = { 0 };
	struct model_line line = { 0 };
	int r = get_mapping(d, f, &row.mapping);

	if (r < 0)
		return r;
	if (f->is_symbol)
		name.name = intern_get(&d->names, f->name);
	else
		r = find_name(d, place, &name);
	if (r < 0 && r != -ENOENT)
		return r;
	if (name.name.len) {
		row.line_count = 1;
		r = add_function(d, kind_of(f->kind), &name, &line);
		d->m->mappings[row.mapping].flags |= MODEL_HAS_FUNCTIONS;
	} else {
		r = 0;
	}
	return r ? r : model_add_location(d->m, &row, &line, out);
}

static int push(struct perf_data *d, uint32_t location)
{
	int r = array_grow(&d->stack, &d->stack_cap, d->stack_count, UINT32_MAX);

	if (r == 0)
		d->stack[d->stack_count++] = location;
	return r;
}

/* Code of a JIT compiler may be another function at another time: that is asked for anew each time. */
static int find_location(struct perf_data *d, struct perf_file *f, const struct code_place *place, uint32_t *out)
{
	uint64_t key = place->address - (place->is_return ? 1 : 0);
	int r;

	if (f->kind == CODE_JIT && place->path.len)
		return add_location(d, f, place, out);
	if (!f->found) {
		f->found = calloc(1, sizeof(*f->found));
		if (!f->found)
			return -ENOMEM;
		u64map_init(f->found, UINT32_MAX);
	}
	if (u64map_get(f->found, key, out) == 0)
		return 0;
	r = add_location(d, f, place, out);
	return r ? r : u64map_put(f->found, key, *out);
}

/* Nothing was mapped there, as far as the recording tells. */
static int add_nowhere(struct perf_data *d, const struct perf_frame_at *at, const char *of)
{
	struct model_location row = { .address = at->address - (at->is_return ? 1 : 0) };
	struct model_mapping mapping = { .limit = UINT64_MAX };
	uint32_t location;
	int r = 0;

	if (of)
		r = model_add_string(d->m, str_of(of), &mapping.filename);
	if (r == 0 && of)
		r = model_add_mapping(d->m, &mapping, &row.mapping);
	r = r ? r : model_add_location(d->m, &row, NULL, &location);
	return r ? r : push(d, location);
}

static int add_kernel_frame(struct perf_data *d, const struct perf_frame_at *at)
{
	const struct perf_area *area = perf_space_find(d->kernel, at->address - (at->is_return ? 1 : 0));
	struct perf_file_key key = { .name = STR(KERNEL_NAME), .build_id = d->kernel_build_id, .is_kernel = true };
	struct code_place place = { .kind = CODE_KERNEL, .address = at->address, .is_return = at->is_return };
	uint32_t file = 0, location;
	int r = 0;

	if (area)
		file = area->file;
	else
		r = perf_data_file(d, &key, &file);
	if (r < 0)
		return r;
	place.path = intern_get(&d->names, d->files[file].name);
	place.build_id = str_n((const char *)d->kernel_build_id.bytes, d->kernel_build_id.size);
	place.kernel_text = d->kernel_text;
	r = find_location(d, &d->files[file], &place, &location);
	return r ? r : push(d, location);
}

static int add_user_frame(struct perf_data *d, const struct perf_space *space, const struct perf_frame_at *at)
{
	const struct perf_area *area = perf_space_find(space, at->address - (at->is_return ? 1 : 0));
	struct code_place place = { .address = at->address, .time_ns = at->time_ns, .is_return = at->is_return };
	struct perf_file *f;
	uint32_t location;
	int r;

	if (!area)
		return add_nowhere(d, at, NULL);
	f = &d->files[area->file];
	place.kind = f->kind;
	if (f->kind == CODE_JIT) {
		place.path = space->jitdump ? intern_get(&d->names, d->files[space->jitdump - 1].name) : STR("");
	} else {
		place.path = intern_get(&d->names, f->name);
		place.build_id = str_n((const char *)f->build_id.bytes, f->build_id.size);
		place.address = at->address - area->start + area->offset;
	}
	r = find_location(d, f, &place, &location);
	return r ? r : push(d, location);
}

int perf_data_frame(struct perf_data *d, const struct perf_space *space, const struct perf_frame_at *at)
{
	switch (at->mode) {
	case MODE_KERNEL:
		return add_kernel_frame(d, at);
	case MODE_HYPERVISOR:
		return add_nowhere(d, at, "[hypervisor]");
	case MODE_GUEST_KERNEL:
		return add_nowhere(d, at, "[guest.kernel.kallsyms]");
	case MODE_GUEST_USER:
		return add_nowhere(d, at, "[guest]");
	case MODE_UNKNOWN:
		if (at->address >= KERNEL_HALF)
			return add_kernel_frame(d, at);
		return add_user_frame(d, space, at);
	default:
		return add_user_frame(d, space, at);
	}
}
