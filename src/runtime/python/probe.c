/* SPDX-License-Identifier: Apache-2.0 */
/* Is this file CPython? Its symbols say so, never its name: libpythonX.Y, the interpreter itself, any program that has
 * it inside. A name only makes us look at .symtab, too. */
#include <elf.h>

#include "base/cur.h"
#include "runtime/python/python_int.h"

#define TEXT_SIZE 32
#define ADDRESSES_MAX 8
#define CLEANUP_FILE_MAX MIB(64) /* bytes of one file; segments may overlap */

void python_release(struct runtime_binary *binary)
{
	free(binary);
}

static bool has(const struct python_file *f, enum python_symbol id)
{
	return f->symbols[id].info != 0;
}

static bool is_python(const struct python_file *f)
{
	return (has(f, PYTHON_SYMBOL_EVAL_DEFAULT) || has(f, PYTHON_SYMBOL_EVAL_EX)) &&
	       (has(f, PYTHON_SYMBOL_RUNTIME) || has(f, PYTHON_SYMBOL_CURRENT));
}

/* ---- symbols ---- */

static const char *const names[] = {
#define X(id, name) [PYTHON_SYMBOL_##id] = (name),
	PYTHON_SYMBOLS(X)
#undef X
};

_Static_assert(ARRAY_SIZE(names) <= ELF_FIND_NAMES_MAX, "one pass finds them all");

static own_frame int find_dynamic(struct python_file *f)
{
	int r = elf_dynamic_read(f->elf, &f->dynamic);

	if (r < 0)
		return r == -ENOENT || r == -EBADMSG || r == -ENODATA ? 0 : r;
	f->has_dynamic = true;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		r = elf_dynamic_find(f->elf, &f->dynamic, names[i], &f->symbols[i]);
		if (r < 0 && r != -ENOENT && r != -EBADMSG && r != -ENODATA)
			return r;
		/* Every file of the system comes here: two names are enough to tell. */
		if (i == PYTHON_SYMBOL_EVAL_EX && !has(f, PYTHON_SYMBOL_RUNTIME) && !has(f, PYTHON_SYMBOL_CURRENT) &&
		    !has(f, PYTHON_SYMBOL_EVAL_EX))
			return 0;
	}
	return 0;
}

static bool has_hint(const struct runtime_file *file, const struct python_file *f)
{
	return is_python(f) || str_search(str_base(file->path), STR("python")) >= 0 ||
	       elf_section_find(f->elf, STR(".PyRuntime"));
}

/* .symtab costs a pass over it, and texts and code some more: where the dynamic symbols say that it is Python, or
 * something else hints at it. Any main program may have it inside. */
static bool is_worth_more(const struct runtime_file *file, const struct python_file *f)
{
	return file->is_program || has_hint(file, f);
}

/* All texts are read of a program that does not say what it is, and of compiled modules, whose names are a hint:
 * "_json.cpython-313-x86_64-linux-gnu.so". */
static bool takes_long(const struct runtime_file *file, const struct python_file *f)
{
	if (file->is_program)
		return !has_hint(file, f);
	return has_hint(file, f) && !is_python(f) && !elf_section_find(f->elf, STR(".PyRuntime"));
}

static own_frame int find_static(struct python_file *f)
{
	struct elf_found more[ARRAY_SIZE(names)] = { 0 };
	int r = elf_symtab_find(f->elf, names, ARRAY_SIZE(names), more);

	if (r < 0)
		return r == -ENOMEM || r == -EIO ? r : 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!has(f, (enum python_symbol)i))
			f->symbols[i] = more[i];
	return 0;
}

/* ---- what is in it ---- */

static int read_at(const struct elf *elf, uint64_t address, void *dst, size_t size)
{
	uint64_t offset;

	if (elf_offset_of(elf, address, &offset) < 0)
		return -ENOENT;
	return reader_read(&elf->in, dst, size, offset);
}

/* The first bytes of a function; none when the file does not have it. */
static struct accessor_code code_of(const struct python_file *f, enum python_symbol id,
				    uint8_t room[ACCESSOR_BYTES_MAX])
{
	struct accessor_code code = { 0 };

	if (f->symbols[id].info)
		accessor_read(f->elf, f->symbols[id].address, f->symbols[id].size, room, &code);
	return code;
}

/* "3.9.18", "2.7.18+", "3.13.0rc1". */
static bool parse_version(struct str text, struct python_binary *b)
{
	unsigned int numbers[3] = { 0 };
	size_t at = 0;

	for (size_t i = 0; i < 3; i++) {
		size_t start = at;

		while (at < text.len && at - start < 3 && text.ptr[at] >= '0' && text.ptr[at] <= '9')
			numbers[i] = numbers[i] * 10 + (unsigned int)(text.ptr[at++] - '0');
		if (at == start || numbers[i] > 255 || (i < 2 && (at >= text.len || text.ptr[at++] != '.')))
			return false;
	}
	if (numbers[0] < 2 || numbers[0] > 3 || text.len - at > 8)
		return false;
	for (size_t i = at; i < text.len; i++)
		if (!strchr("+abrc0123456789", text.ptr[i]) || !text.ptr[i])
			return false;
	b->major = (uint8_t)numbers[0];
	b->minor = (uint8_t)numbers[1];
	b->micro = (uint8_t)numbers[2];
	snprintf(b->base.version, sizeof(b->base.version), STR_FMT, STR_ARG(text));
	return true;
}

/* PY_VERSION_HEX: 0x030b07f0 is 3.11.7; the last byte says alpha, beta, candidate or final. */
static bool version_of_word(uint32_t word, struct python_binary *b)
{
	static const char *const levels[16] = { [0xa] = "a", [0xb] = "b", [0xc] = "rc" };
	const char *level = levels[word >> 4 & 15];

	if (word >> 24 != 3)
		return false;
	b->major = 3;
	b->minor = (uint8_t)(word >> 16);
	b->micro = (uint8_t)(word >> 8);
	if (level)
		snprintf(b->base.version, sizeof(b->base.version), "3.%u.%u%s%u", b->minor, b->micro, level, word & 15);
	else
		snprintf(b->base.version, sizeof(b->base.version), "3.%u.%u", b->minor, b->micro);
	return true;
}

static bool version_by_words(const struct python_file *f, struct python_binary *b)
{
	uint8_t bytes[16];
	struct cur c = cur_of(bytes, sizeof(bytes));

	if (has(f, PYTHON_SYMBOL_VERSION) &&
	    read_at(f->elf, f->symbols[PYTHON_SYMBOL_VERSION].address, bytes, 4) == 0 &&
	    version_of_word(cur_le32(&c), b))
		return true;
	c = cur_of(bytes, sizeof(bytes));
	if (!b->runtime || read_at(f->elf, b->runtime, bytes, sizeof(bytes)) < 0 || memcmp(bytes, "xdebugpy", 8) != 0)
		return false;
	cur_le64(&c);
	return version_of_word(cur_le32(&c), b);
}

/* One of the texts that Py_GetVersion() puts together. */
static bool version_by_text(const struct python_file *f, struct python_binary *b)
{
	uint8_t room[ACCESSOR_BYTES_MAX];
	struct accessor_code code = code_of(f, PYTHON_SYMBOL_GET_VERSION, room);
	uint64_t at[ADDRESSES_MAX];
	size_t count = accessor_addresses(&code, at, ARRAY_SIZE(at));

	for (size_t i = 0; i < count; i++) {
		char text[TEXT_SIZE];
		struct str found;
		uint64_t offset;

		if (elf_offset_of(f->elf, at[i], &offset) == 0 &&
		    reader_text(&f->elf->in, offset, text, sizeof(text), &found) == 0 && parse_version(found, b))
			return true;
	}
	return false;
}

static bool find_version(const struct python_file *f, struct python_binary *b)
{
	return version_by_words(f, b) || version_by_text(f, b);
}

static uint64_t address_of(const struct python_file *f, enum python_symbol id)
{
	return has(f, id) ? f->symbols[id].address : 0;
}

static void find_data(const struct python_file *f, struct python_binary *b)
{
	for (size_t i = 0; i < f->elf->segment_count; i++) {
		const struct elf_segment *s = &f->elf->segments[i];

		if (s->type != PT_LOAD || !(s->flags & PF_W) || s->memory_size > UINT64_MAX - s->address)
			continue;
		if (!b->data_end)
			b->data_start = s->address;
		b->data_end = s->address + s->memory_size;
	}
}

static void find_variables(const struct python_file *f, struct python_binary *b)
{
	static const enum python_symbol getters[] = { PYTHON_SYMBOL_GET_CURRENT, PYTHON_SYMBOL_GET_UNCHECKED,
						      PYTHON_SYMBOL_UNCHECKED_GET };
	uint8_t room[ACCESSOR_BYTES_MAX];
	struct accessor_code code = code_of(f, PYTHON_SYMBOL_THIS_THREAD, room);
	bool is_old = b->major == 2 || b->minor <= 6;

	if (!is_old) {
		ignore(!accessor_argument(&code, &b->key)); /* then the table knows */
	} else if (accessor_int_argument(&code, &b->key.at)) {
		b->key.kind = ACCESSOR_ADDRESS;
	}
	code = code_of(f, PYTHON_SYMBOL_HEAD, room);
	if (is_old)
		ignore(!accessor_load(&code, &b->interp_head)); /* then attaching says that it cannot */
	for (size_t i = 0; i < ARRAY_SIZE(getters) && b->minor >= 12 && !b->tls.kind; i++) {
		code = code_of(f, getters[i], room);
		ignore(!accessor_thread_local(&code, &b->tls)); /* the key is enough */
	}
	if (b->major == 3 && b->minor >= 13 && f->has_dynamic)
		ignore(elf_dynamic_slot(f->elf, &f->dynamic, names[PYTHON_SYMBOL_NONE], &b->none_slot) <
		       0); /* not moved */
	if (f->has_dynamic)
		ignore(elf_dynamic_slot(f->elf, &f->dynamic, names[PYTHON_SYMBOL_CODE_TYPE], &b->code_type_slot) < 0);
	find_data(f, b);
}

static uint64_t word_at(const uint8_t *bytes, size_t at)
{
	struct cur c = cur_of(bytes + at, 8);

	return cur_le64(&c);
}

bool python_is_cleanup(const uint8_t *object, const struct abi_python_layout *l, uint16_t type_at, uint64_t code_type)
{
	uint64_t name = word_at(object, l->code_name);

	return word_at(object, type_at) == code_type && name && word_at(object, l->code_filename) == name &&
	       word_at(object, l->code_qualname) == name;
}

static int scan_segment(const struct python_file *f, const struct elf_segment *s, const struct python_offsets *o,
			uint64_t *left, struct python_binary *b)
{
	scoped(reader_window_release) struct reader_window w = { 0 };
	struct reader in = reader_slice(&f->elf->in, s->offset, MIN(s->file_size, *left));
	int r = reader_window_init(&w, &in, KIB(64));

	*left -= in.size;
	for (uint64_t at = 0; r == 0 && at + PYTHON_CLEANUP_SIZE <= in.size; at += 8) {
		const uint8_t *object = reader_window_get(&w, at, PYTHON_CLEANUP_SIZE);

		if (!object)
			return w.error;
		if (python_is_cleanup(object, &o->layout, o->object_type, b->code_type)) {
			b->cleanup = s->address + at;
			break;
		}
	}
	return r;
}

/* In a program at a fixed address the pointers are in the file already; elsewhere attaching looks in memory. */
static int find_cleanup(const struct python_file *f, struct python_binary *b)
{
	uint8_t bytes[PYTHON_OFFSETS_SIZE];
	struct python_offsets offsets;
	uint64_t left = CLEANUP_FILE_MAX;
	int r = 0;

	if (b->cleanup || !b->code_type || f->elf->type != ET_EXEC || !b->version || !b->version->has_offsets ||
	    read_at(f->elf, b->runtime, bytes, sizeof(bytes)) < 0 ||
	    python_offsets(bytes, sizeof(bytes), b->version, &offsets) < 0 ||
	    offsets.layout.code_qualname + 8 > PYTHON_CLEANUP_SIZE ||
	    offsets.layout.code_filename + 8 > PYTHON_CLEANUP_SIZE ||
	    offsets.layout.code_name + 8 > PYTHON_CLEANUP_SIZE)
		return 0;
	for (size_t i = 0; r == 0 && !b->cleanup && i < f->elf->segment_count; i++) {
		const struct elf_segment *s = &f->elf->segments[i];

		if (s->type == PT_LOAD)
			r = scan_segment(f, s, &offsets, &left, b);
	}
	return r == -ENOMEM ? r : 0;
}

static own_frame int fill(const struct python_file *f, struct str stripped, struct python_binary *b)
{
	int r;

	b->machine = f->elf->machine;
	b->runtime = address_of(f, PYTHON_SYMBOL_RUNTIME);
	b->current = address_of(f, PYTHON_SYMBOL_CURRENT);
	b->none = address_of(f, PYTHON_SYMBOL_NONE);
	b->cleanup = address_of(f, PYTHON_SYMBOL_CLEANUP);
	b->code_type = address_of(f, PYTHON_SYMBOL_CODE_TYPE);
	b->is_stripped = stripped.len != 0;
	if (b->is_stripped ? !parse_version(stripped, b) : !find_version(f, b)) {
		snprintf(b->base.refused, sizeof(b->base.refused), "its version cannot be found");
		return python_loops(f, &b->base);
	}
	b->version = python_version_find(b->major, b->minor, b->micro);
	if (!b->version)
		snprintf(b->base.refused, sizeof(b->base.refused), "version %s is not known", b->base.version);
	find_variables(f, b);
	r = find_cleanup(f, b);
	return r < 0 ? r : python_loops(f, &b->base);
}

static void binary_release(struct python_binary **b)
{
	free(*b);
}

int python_probe(const struct runtime_file *file, struct runtime_binary **out)
{
	scoped(binary_release) struct python_binary *b = NULL;
	struct python_file f = { .elf = file->elf };
	char stripped[32] = "";
	int r;

	if (!file->elf->is_64 || (file->elf->machine != EM_X86_64 && file->elf->machine != EM_AARCH64))
		return 0;
	r = find_dynamic(&f);
	if (r == 0 && file->be_quick && takes_long(file, &f))
		return -EAGAIN;
	if (r == 0 && is_worth_more(file, &f))
		r = find_static(&f);
	if (r < 0)
		return r;
	if (!is_python(&f) && is_worth_more(file, &f))
		r = python_stripped(&f, stripped);
	if (r < 0 || (!is_python(&f) && !r))
		return r;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	r = fill(&f, str_of(stripped), b);
	if (r < 0)
		return r;
	*out = &b->base;
	b = NULL;
	return 1;
}
