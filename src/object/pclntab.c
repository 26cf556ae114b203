/* SPDX-License-Identifier: Apache-2.0 */
#include "object/pclntab.h"

#include <elf.h>

#include "base/cur.h"

#define MAGIC_1_2 0xfffffffbu
#define MAGIC_1_16 0xfffffffau
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u
#define HEADER_SIZE (8 + 8 * 8)
#define SCAN_STEP 8
#define SCAN_WINDOW KIB(32)
#define SCAN_MAX MIB(256)                 /* of .data.rel.ro */
#define RELOCATIONS_MAX ((size_t)4 << 20) /* of one file; the rest is not looked at */

static uint64_t cur_pointer(struct cur *c, uint8_t size)
{
	return size == 8 ? cur_le64(c) : cur_le32(c);
}

/* {u32 magic, u16 0, u8 unit of code, u8 pointer size} */
static bool is_header(const uint8_t *p)
{
	return p[0] >= 0xf0 && p[0] <= 0xfb && p[1] == 0xff && p[2] == 0xff && p[3] == 0xff && !p[4] && !p[5] &&
	       (p[6] == 1 || p[6] == 2 || p[6] == 4) && (p[7] == 4 || p[7] == 8);
}

/* What follows, in pointers. 1.2: count. 1.16: count, files, names, units, file names, pcs, functions.
 * 1.18 and later: count, files, text, names, units, file names, pcs, functions. */
static int parse_tables(struct pclntab *t, uint32_t magic, struct cur *c, uint64_t text)
{
	t->field_size = t->pointer_size;
	t->count = cur_pointer(c, t->pointer_size);
	if (magic == MAGIC_1_2) {
		t->functions = 8 + (uint64_t)t->pointer_size;
		return 0;
	}
	if (magic != MAGIC_1_16 && magic != MAGIC_1_18 && magic != MAGIC_1_20)
		return -ENOTSUP;
	cur_pointer(c, t->pointer_size); /* number of files */
	if (magic != MAGIC_1_16) {
		t->text = cur_pointer(c, t->pointer_size);
		t->text = t->text ? t->text : text;
		t->field_size = 4;
	}
	t->in_functions = true;
	t->names = cur_pointer(c, t->pointer_size);
	for (int i = 0; i < 2; i++)
		cur_pointer(c, t->pointer_size);
	t->steps = cur_pointer(c, t->pointer_size);
	/* Address, i32 name, then seven words; Go 1.20 has one more; the id, one byte, and the flags. */
	t->flags_at = (uint8_t)(t->field_size + 8 * 4 + (magic == MAGIC_1_20 ? 4 : 0) + 1);
	t->has_flags = magic != MAGIC_1_16;
	t->functions = cur_pointer(c, t->pointer_size);
	return 0;
}

int pclntab_parse(const struct reader *in, uint64_t text, struct pclntab *out)
{
	struct pclntab t = { .in = *in };
	uint8_t bytes[HEADER_SIZE];
	size_t size = (size_t)MIN((uint64_t)sizeof(bytes), in->size);
	struct cur c;
	uint32_t magic;
	int r = size < 8 ? -EBADMSG : reader_read(in, bytes, size, 0);

	if (r < 0)
		return r;
	if (!is_header(bytes))
		return -EBADMSG;
	c = cur_of(bytes, size);
	magic = cur_le32(&c);
	cur_le16(&c);
	t.code_unit = cur_u8(&c);
	t.pointer_size = cur_u8(&c);
	r = parse_tables(&t, magic, &c, text);
	if (r < 0)
		return r;
	/* One more address closes the table of functions. */
	if (c.bad || !t.count || t.count > PCLNTAB_FUNCTIONS_MAX || t.functions > in->size || t.names > in->size ||
	    t.steps > t.functions || (t.count * 2 + 1) * t.field_size > in->size - t.functions)
		return -EBADMSG;
	*out = t;
	return 0;
}

static int read_field(const struct pclntab *t, uint64_t offset, uint8_t field_size, uint64_t *out)
{
	uint8_t bytes[8];
	struct cur c;
	int r = reader_read(&t->in, bytes, field_size, offset);

	if (r < 0)
		return r;
	c = cur_of(bytes, field_size);
	*out = cur_pointer(&c, field_size);
	return 0;
}

/* Address of function @index; @count gives the end of the last one. */
static int read_address(const struct pclntab *t, uint64_t index, uint64_t *out)
{
	int r = read_field(t, t->functions + index * 2 * t->field_size, t->field_size, out);

	if (r == 0 && t->field_size != t->pointer_size)
		/* NOLINTNEXTLINE(bugprone-branch-clone): two reasons for one sum */
		*out += t->text;
	else if (r == 0 && t->in_functions && t->field_size == 4)
		*out += t->text; /* 32-bit Go 1.18 and later: offsets as well; text is 0 for 1.16 */
	return r;
}

/* Index of the last function that starts at or below @address. */
static int search(const struct pclntab *t, uint64_t address, uint64_t *index, uint64_t *start)
{
	uint64_t low = 0, high = t->count, at, found = 0; /* function low - 1 starts at or below, high above */

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int r = read_address(t, middle, &at);

		if (r < 0)
			return r;
		if (at <= address) {
			low = middle + 1;
			found = at;
		} else {
			high = middle;
		}
	}
	if (!low)
		return -ENOENT;
	if (low == t->count) {
		int r = read_address(t, t->count, &at);

		if (r < 0 || address >= at)
			return r < 0 ? r : -ENOENT;
	}
	*index = low - 1;
	*start = found;
	return 0;
}

int pclntab_find(const struct pclntab *t, uint64_t address, char *text, size_t size, struct str *name, uint64_t *start)
{
	uint64_t index = 0, from = 0, function, name_offset;
	struct str found;
	int r = search(t, address, &index, &from);

	if (r == 0)
		r = read_field(t, t->functions + (index * 2 + 1) * t->field_size, t->field_size, &function);
	if (r < 0)
		return r;
	if (__builtin_add_overflow(function, t->in_functions ? t->functions : 0, &function) ||
	    __builtin_add_overflow(function, t->field_size, &function)) /* struct: address, i32 offset of the name */
		return -EBADMSG;
	r = read_field(t, function, 4, &name_offset);
	if (r < 0)
		return r;
	r = reader_text(&t->in, t->names + name_offset, text, size, &found);
	if (r < 0)
		return r;
	*name = found;
	*start = from;
	return 0;
}

/* In a position-independent program the header's text field is filled by a relocation {offset, info, addend}. */
static uint64_t relocated(const struct elf *elf, uint64_t address)
{
	scoped(reader_window_release) struct reader_window w = { 0 };
	size_t seen = 0;

	for (size_t i = 0; i < elf->section_count; i++) {
		struct reader in = elf_section_reader(elf, &elf->sections[i]);

		reader_window_release(&w);
		if (elf->sections[i].type != SHT_RELA || reader_window_init(&w, &in, SCAN_WINDOW) < 0)
			continue;
		for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= in.size && seen < RELOCATIONS_MAX;
		     at += sizeof(Elf64_Rela), seen++) {
			const uint8_t *bytes = reader_window_get(&w, at, sizeof(Elf64_Rela));
			struct cur c = cur_of(bytes, bytes ? sizeof(Elf64_Rela) : 0);

			if (!bytes)
				break;
			if (cur_le64(&c) != address)
				continue;
			cur_le64(&c);
			return cur_le64(&c);
		}
	}
	return 0;
}

/* Go 1.26 leaves the header's field empty for good and has the address only in the runtime's description of the module.
 * Source: go1.26 src/runtime/symtab.go, moduledata. */
static uint64_t text_of_module(const struct elf *elf)
{
	const struct elf_section *module = elf_section_find(elf, STR(".go.module"));
	const uint64_t text_at = 176;
	struct reader in;
	uint8_t bytes[8];
	struct cur c = cur_of(bytes, sizeof(bytes));
	uint64_t text;

	if (!module || !elf->is_64)
		return 0;
	in = elf_section_reader(elf, module);
	if (reader_read(&in, bytes, sizeof(bytes), text_at) < 0)
		return 0;
	text = cur_le64(&c);
	return text ? text : relocated(elf, module->address + text_at);
}

static uint64_t text_of(const struct elf *elf, uint64_t header_address)
{
	const struct elf_section *code = elf_section_find(elf, STR(".text"));
	uint64_t text = elf->is_64 ? relocated(elf, header_address + 8 + 2 * 8) : 0;

	text = text ? text : text_of_module(elf);
	return text || !code ? text : code->address;
}

static int open_at(const struct elf *elf, const struct elf_section *section, uint64_t at, struct pclntab *out)
{
	struct reader whole = elf_section_reader(elf, section);
	struct reader in = reader_slice(&whole, at, whole.size);
	struct pclntab t;
	uint64_t first;
	int r = pclntab_parse(&in, 0, &t);

	if (r == 0 && !t.text && t.in_functions)
		r = pclntab_parse(&in, text_of(elf, section->address + at), &t);
	if (r == 0)
		r = read_address(&t, 0, &first);
	if (r < 0)
		return r;
	/* Go 1.16 and 1.17 in a position-independent program: every address is left to a relocation. */
	if (!first)
		return -ENOTSUP;
	*out = t;
	return 0;
}

/* An external linker leaves the table inside of .data.rel.ro. */
static int scan(const struct elf *elf, const struct elf_section *section, struct pclntab *out)
{
	scoped(reader_window_release) struct reader_window w = { 0 };
	struct reader in = elf_section_reader(elf, section);
	int r = reader_window_init(&w, &in, SCAN_WINDOW);

	for (uint64_t at = 0; r == 0 && at + HEADER_SIZE <= MIN(in.size, (uint64_t)SCAN_MAX); at += SCAN_STEP) {
		const uint8_t *bytes = reader_window_get(&w, at, 8);

		if (!bytes)
			return w.error;
		if (is_header(bytes) && open_at(elf, section, at, out) == 0)
			return 0;
	}
	return r < 0 ? r : -ENOENT;
}

int pclntab_open(const struct elf *elf, struct pclntab *out)
{
	const struct elf_section *section = elf_section_find(elf, STR(".gopclntab"));

	if (!section)
		section = elf_section_find(elf, STR(".data.rel.ro.gopclntab"));
	if (section)
		return open_at(elf, section, 0, out);
	/* Go's build information tells a Go program from others, which are not worth a scan. */
	if (!elf_section_find(elf, STR(".go.buildinfo")))
		return -ENOENT;
	section = elf_section_find(elf, STR(".data.rel.ro"));
	return section ? scan(elf, section, out) : -ENOENT;
}

int pclntab_walk_init(struct pclntab_walk *w, const struct pclntab *t)
{
	struct pclntab_walk walk = { .table = t };
	int r = reader_window_init(&walk.entries, &t->in, SCAN_WINDOW);

	if (r == 0)
		r = reader_window_init(&walk.functions, &t->in, SCAN_WINDOW);
	if (r < 0)
		pclntab_walk_release(&walk);
	else
		*w = walk;
	return r;
}

void pclntab_walk_release(struct pclntab_walk *w)
{
	reader_window_release(&w->entries);
	reader_window_release(&w->functions);
}

static int parse_function(struct pclntab_walk *w, uint64_t at, struct pclntab_function *out)
{
	const struct pclntab *t = w->table;
	const uint8_t *bytes;
	struct cur c;

	if (__builtin_add_overflow(at, t->functions, &at))
		return -EBADMSG;
	bytes = reader_window_get(&w->functions, at, (size_t)t->flags_at + 1);
	if (!bytes)
		return w->functions.error == -ENODATA ? -EBADMSG : w->functions.error;
	c = cur_of(bytes, (size_t)t->flags_at + 1);
	cur_bytes(&c, t->field_size);
	out->name = t->names + cur_le32(&c);
	cur_le64(&c); /* size of the arguments; where deferred calls return */
	out->steps = cur_le32(&c);
	out->flags = t->has_flags ? bytes[t->flags_at] : 0;
	return 0;
}

int pclntab_walk_next(struct pclntab_walk *w, struct pclntab_function *out)
{
	const struct pclntab *t = w->table;
	uint64_t size = t->field_size, base = t->field_size == 4 ? t->text : 0, function;
	const uint8_t *bytes;
	struct cur c;
	int r;

	if (w->index >= t->count || !t->steps)
		return 0;
	bytes = reader_window_get(&w->entries, t->functions + w->index * 2 * size, (size_t)size * 3);
	if (!bytes)
		return w->entries.error;
	c = cur_of(bytes, (size_t)size * 3);
	out->start = base + cur_pointer(&c, t->field_size);
	function = cur_pointer(&c, t->field_size);
	out->end = base + cur_pointer(&c, t->field_size);
	w->index++;
	r = out->end < out->start ? -EBADMSG : parse_function(w, function, out);
	return r < 0 ? r : 1;
}

/* Pairs of numbers: zigzag change of the depth, which starts at -1, and units of code that have the new one. */
int pclntab_step(struct pclntab_steps *s, uint64_t *from)
{
	uint64_t change, units = 0;

	if (cur_uvarint(&s->bytes, &change) < 0)
		return -EBADMSG;
	if (!change && s->is_started)
		return 0;
	if (cur_uvarint(&s->bytes, &units) < 0 || !units || change > UINT32_MAX || units > UINT32_MAX)
		return -EBADMSG;
	if (!s->is_started)
		s->depth = -1;
	s->is_started = true;
	s->depth += change & 1 ? -(int64_t)(change >> 1) - 1 : (int64_t)(change >> 1);
	*from = s->at;
	s->at += units * s->code_unit;
	return 1;
}
