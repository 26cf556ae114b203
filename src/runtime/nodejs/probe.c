/* SPDX-License-Identifier: Apache-2.0 */
/* Is a file Node.js, and of which V8? */
#include <elf.h>

#include "object/accessor.h"
#include "object/elf_find.h"
#include "runtime/nodejs/nodejs_int.h"

#define PREFIX "v8dbg_"
#define BUILTINS "v8_Default_embedded_blob_"

static int read_at(const struct elf *elf, uint64_t address, void *dst, size_t size)
{
	uint64_t offset;

	if (elf_offset_of(elf, address, &offset) < 0)
		return -ENOENT;
	return reader_read(&elf->in, dst, size, offset);
}

static int read_int(const struct elf *elf, const struct elf_dynamic *dynamic, const char *name, int32_t *out)
{
	struct elf_found found = { 0 };
	int r = elf_dynamic_find(elf, dynamic, name, &found);

	return r < 0 ? r : read_at(elf, found.address, out, sizeof(*out));
}

struct constant {
	const char *names[2];
	bool required;
};

#define X(field, need, name, other) { { PREFIX name, PREFIX other }, need },
static const struct constant constants[] = { NODEJS_CONSTANTS(X) };
#undef X

/* Return: 0 or the index of a constant that is missing, plus 1. */
static size_t read_constants(const struct elf *elf, const struct elf_dynamic *dynamic, struct nodejs_layout *out)
{
	int16_t *values[] = {
#define X(field, required, name, other) &out->field,
		NODEJS_CONSTANTS(X)
#undef X
	};

	for (size_t i = 0; i < ARRAY_SIZE(constants); i++) {
		int32_t value = 0;
		int r = read_int(elf, dynamic, constants[i].names[0], &value);

		if (r < 0)
			r = read_int(elf, dynamic, constants[i].names[1], &value);
		if ((r < 0 && constants[i].required) || value < INT16_MIN || value > INT16_MAX)
			return i + 1;
		*values[i] = (int16_t)value;
	}
	if (!out->sfi_name) /* its type has another name from 24 on */
		out->sfi_name = out->sfi_name_24;
	return 0;
}

/* What some versions do not say. */
static void fill_gaps(struct nodejs_layout *l)
{
	const struct nodejs_version *v = &l->version;
	const struct {
		int16_t *to, value;
	} gaps[] = {
		{ &l->fp_bytecode_array, v->fp_bytecode_array }, { &l->fp_bytecode_offset, v->fp_bytecode_offset },
		{ &l->bytecode_data, v->bytecode_data },         { &l->sfi_script, v->sfi_script },
		{ &l->script_source, v->script_source },         { &l->script_id, v->script_id },
	};

	for (size_t i = 0; i < ARRAY_SIZE(gaps); i++)
		if (!*gaps[i].to)
			*gaps[i].to = gaps[i].value;
}

/* What the step and the readers take for granted of constants that come from a file. Return: whether they hold. */
static bool is_sane(const struct nodejs_layout *l)
{
	const int16_t slots[] = { l->fp_marker, l->fp_function, l->fp_bytecode_array, l->fp_bytecode_offset };
	const int16_t words[] = { l->sfi_name, l->sfi_script };
	const int16_t members[] = { l->function_shared, l->string_length, l->string_chars,  l->string_first,
				    l->string_second,   l->string_parent, l->string_offset, l->string_actual,
				    l->string_resource, l->map_type,      l->bytecode_data, l->array_length,
				    l->array_data,      l->script_source, l->script_name,   l->scope_locals,
				    l->scope_first,     l->stream_start,  l->script_id };
	const int16_t needed[] = { l->bytecode_data, l->script_source };

	for (size_t i = 0; i < ARRAY_SIZE(slots); i++)
		if (slots[i] > -8 || slots[i] < -48 || slots[i] % 8)
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i] < 8 || words[i] > ABI_NODEJS_SFI_BYTES - 8 || words[i] % 8)
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (members[i] < 0 || members[i] > UINT8_MAX)
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!needed[i])
			return false;
	if (l->map_type > 62) /* of the 64 bytes of a map that are looked at */
		return false;
	return l->frame_builtin_exit > 0 && l->frame_builtin_exit < ABI_NODEJS_TYPES_MAX && l->frame_wasm >= 0 &&
	       l->frame_wasm < ABI_NODEJS_TYPES_MAX && l->frame_regexp >= 0 && l->frame_regexp < ABI_NODEJS_TYPES_MAX;
}

/* ---- V8's built-in code ---- */

/* Where it lies, or where a pointer to it does, and where its size. Addresses of the file; 0: not known. */
struct blob {
	uint64_t code, pointer, size;
};

static void take_builtins(const struct elf *elf, const struct blob *blob, struct nodejs_binary *b)
{
	uint32_t size;

	if ((!blob->code && !blob->pointer) || !blob->size || read_at(elf, blob->size, &size, sizeof(size)) < 0)
		return;
	b->builtins = blob->code;
	b->builtins_pointer = blob->code ? 0 : blob->pointer;
	b->builtins_size = size;
}

/* @found: of the code itself, or up to V8 10.2 a variable that points to it; and of its size. */
static void take_found(const struct elf *elf, const struct elf_found *found, struct nodejs_binary *b)
{
	struct blob blob = { .size = found[1].address };

	if (!found[0].section || !found[1].section)
		return;
	if (elf_is_code(elf, found[0].section))
		blob.code = found[0].address;
	else
		blob.pointer = found[0].address;
	take_builtins(elf, &blob, b);
}

/* In a file without .symtab, as Debian's libnode is, by functions that return it; V8 exports them from 8.5 on. */
static void take_returned(const struct elf *elf, const struct elf_dynamic *dynamic, struct nodejs_binary *b)
{
	static const char *const names[] = { "_ZN2v88internal23DefaultEmbeddedBlobCodeEv",
					     "_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv" };
	struct accessor_value returned[ARRAY_SIZE(names)];
	struct elf_found found = { 0 };
	struct blob blob = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		uint8_t room[ACCESSOR_BYTES_MAX];
		struct accessor_code code;

		if (elf_dynamic_find(elf, dynamic, names[i], &found) < 0)
			return;
		accessor_read(elf, found.address, found.size, room, &code);
		if (!accessor_value(&code, &returned[i]))
			return;
	}
	if (!returned[1].is_read)
		return;
	if (returned[0].is_read)
		blob.pointer = returned[0].at;
	else
		blob.code = returned[0].at;
	blob.size = returned[1].at;
	take_builtins(elf, &blob, b);
}

/* A file without .symtab. attach() proves them with the process's bytecode. */
static void take_known_bytecodes(struct nodejs_layout *l)
{
	const struct nodejs_bytecode_sizes *known = l->version.bytecodes;
	size_t count = known ? strlen(known->narrow) : 0;

	must(count <= NODEJS_BYTECODES_MAX);
	for (size_t i = 0; i < count; i++)
		for (unsigned int scale = 0; scale < ARRAY_SIZE(l->bytecode_sizes); scale++)
			l->bytecode_sizes[scale][i] =
				(uint8_t)(known->narrow[i] - '0' + (known->operands[i] - '0') * ((1 << scale) - 1));
	l->bytecode_count = (uint16_t)count;
}

/* Three tables, one behind the other; a byte each from V8 9 on, the first one with baseline code. */
static void take_bytecodes(const struct elf *elf, const struct elf_found *found, struct nodejs_layout *l)
{
	uint64_t count = found->size / ARRAY_SIZE(l->bytecode_sizes);

	if (!found->section || found->size % ARRAY_SIZE(l->bytecode_sizes) || count > NODEJS_BYTECODES_MAX ||
	    l->version.kind_baseline == NODEJS_NO_KIND)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(l->bytecode_sizes); i++)
		if (read_at(elf, found->address + i * count, l->bytecode_sizes[i], count) < 0)
			return;
	l->bytecode_count = (uint16_t)count;
}

/* The function that returns it reads the pointer to it. */
static void take_wasm(const struct elf *elf, const struct elf_found *found, struct nodejs_layout *l)
{
	uint8_t room[ACCESSOR_BYTES_MAX];
	struct accessor_code code;
	uint64_t address;

	if (!found->section)
		return;
	accessor_read(elf, found->address, found->size, room, &code);
	if (accessor_load(&code, &address))
		l->wasm_manager = address;
}

/* What has a name in .symtab only; in libraries up to V8 8 among the dynamic symbols too. */
static int find_locals(const struct elf *elf, const struct elf_dynamic *dynamic, struct nodejs_binary *b)
{
	static const char *const names[] = { BUILTINS "code_",
					     BUILTINS "code_size_",
					     BUILTINS,
					     BUILTINS "size_", /* these two up to V8 8.4 */
					     "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE",
					     "_ZN2v88internal4wasm18GetWasmCodeManagerEv" };
	struct elf_found found[ARRAY_SIZE(names)] = { 0 };
	int r = elf_symtab_find(elf, names, ARRAY_SIZE(names), found);

	if (r == -ENOMEM || r == -EIO)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!found[i].section && elf_dynamic_find(elf, dynamic, names[i], &found[i]) < 0)
			found[i] = (struct elf_found){ 0 };
	take_found(elf, found[0].section ? &found[0] : &found[2], b);
	if (!b->builtins_size)
		take_returned(elf, dynamic, b);
	take_bytecodes(elf, &found[4], &b->layout);
	if (!b->layout.bytecode_count)
		take_known_bytecodes(&b->layout);
	take_wasm(elf, &found[5], &b->layout);
	return 0;
}

static int fill(const struct elf *elf, const struct elf_dynamic *dynamic, struct nodejs_binary *b)
{
	static const char *const names[] = { "_ZN2v88internal7Version6major_E", "_ZN2v88internal7Version6minor_E",
					     "_ZN2v88internal7Version6build_E" };
	const struct nodejs_version *version;
	struct elf_found found = { 0 };
	int32_t numbers[ARRAY_SIZE(names)] = { 0 };
	size_t missing;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (read_int(elf, dynamic, names[i], &numbers[i]) < 0) {
			snprintf(b->base.refused, sizeof(b->base.refused), "its version of V8 cannot be found");
			return 0;
		}
	if (elf_dynamic_find(elf, dynamic, names[0], &found) == 0)
		b->here = found.address;
	if (elf_dynamic_find(elf, dynamic, "_ZN4node11per_process8metadataE", &found) == 0)
		b->metadata = found.address;
	snprintf(b->base.version, sizeof(b->base.version), "V8 %d.%d.%d", numbers[0], numbers[1], numbers[2]);
	version = numbers[0] > 0 && numbers[1] >= 0 ? nodejs_version_find((uint32_t)numbers[0], (uint32_t)numbers[1])
						    : NULL;
	if (elf->machine != EM_X86_64) {
		snprintf(b->base.refused, sizeof(b->base.refused), "only x86-64 is known");
	} else if (!version) {
		snprintf(b->base.refused, sizeof(b->base.refused), "%s is not known", b->base.version);
	} else {
		missing = read_constants(elf, dynamic, &b->layout);
		b->layout.version = *version;
		fill_gaps(&b->layout);
		if (missing)
			snprintf(b->base.refused, sizeof(b->base.refused), "it lacks %s",
				 constants[missing - 1].names[0]);
		else if (!is_sane(&b->layout))
			snprintf(b->base.refused, sizeof(b->base.refused), "its constants make no sense");
	}
	return b->base.refused[0] ? 0 : find_locals(elf, dynamic, b);
}

void nodejs_release(struct runtime_binary *binary)
{
	free(binary);
}

static void binary_release(struct nodejs_binary **b)
{
	free(*b);
}

int nodejs_probe(const struct runtime_file *file, struct runtime_binary **out)
{
	scoped(binary_release) struct nodejs_binary *b = NULL;
	struct elf_dynamic dynamic;
	int32_t value;
	int r;

	if (!file->elf->is_64 || (file->elf->machine != EM_X86_64 && file->elf->machine != EM_AARCH64))
		return 0;
	r = elf_dynamic_read(file->elf, &dynamic);
	if (r == 0)
		r = read_int(file->elf, &dynamic, PREFIX "off_fp_context", &value);
	if (r < 0)
		return r == -ENOMEM || r == -EIO ? r : 0;
	if (file->be_quick) /* fill() reads the whole .symtab */
		return -EINPROGRESS;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	r = fill(file->elf, &dynamic, b);
	if (r < 0)
		return r;
	*out = &b->base;
	b = NULL;
	return 1;
}
