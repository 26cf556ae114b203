/* SPDX-License-Identifier: Apache-2.0 */
#include "object/elf_find.h"

#include <elf.h>

#include "base/cur.h"
#include "object/elf_symbols_int.h"

#define DYNAMIC_MAX KIB(16)
#define NAME_MAX_BYTES 128 /* of the names that are looked for */
#define CHAIN_MAX 4096
#define RELOCATIONS_MAX ((uint64_t)1 << 20)
#define STRINGS_MAX MIB(64)
#define SYMBOLS_MAX ((uint64_t)1 << 20)
#define WINDOW_SIZE KIB(48) /* a multiple of the sizes of symbols and relocations */
#define PLACES_MAX 4        /* of one name in a string table: names share their tails */

static int read_words(const struct elf *elf, uint64_t offset, uint32_t *out, size_t count)
{
	uint8_t bytes[16];
	struct cur c = cur_of(bytes, count * 4);
	int r = reader_read(&elf->in, bytes, count * 4, offset);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		out[i] = cur_le32(&c);
	return 0;
}

/* ---- the dynamic table ---- */

static void place(const struct elf *elf, uint64_t address, uint64_t *out)
{
	uint64_t offset;

	if (elf_offset_of(elf, address, &offset) == 0)
		*out = offset;
}

static void take_entry(const struct elf *elf, uint64_t tag, uint64_t value, struct elf_dynamic *d)
{
	switch (tag) {
	case DT_SYMTAB:
		place(elf, value, &d->symbols);
		break;
	case DT_STRTAB:
		place(elf, value, &d->strings);
		break;
	case DT_STRSZ:
		d->strings_size = value;
		break;
	case DT_GNU_HASH:
		place(elf, value, &d->gnu_hash);
		break;
	case DT_HASH:
		place(elf, value, &d->hash);
		break;
	case DT_RELA:
		place(elf, value, &d->relocations);
		break;
	case DT_RELASZ:
		d->relocations_size = value;
		break;
	default:
		break;
	}
}

/* Return: 0 and *bytes, owned, which *c is over; -ENOENT: the file has none; -ENOMEM or the reader's error. */
static int read_table(const struct elf *elf, uint8_t **bytes, struct cur *c)
{
	const struct elf_segment *segment = NULL;
	size_t size;
	int r;

	for (size_t i = 0; i < elf->segment_count && !segment; i++)
		if (elf->segments[i].type == PT_DYNAMIC)
			segment = &elf->segments[i];
	if (!segment || !elf->is_64)
		return -ENOENT;
	size = (size_t)MIN(segment->file_size, (uint64_t)DYNAMIC_MAX);
	*bytes = malloc(size + 1);
	if (!*bytes)
		return -ENOMEM;
	r = reader_read(&elf->in, *bytes, size, segment->offset);
	if (r == 0)
		*c = cur_of(*bytes, size);
	return r;
}

/* Return: false at its end. */
static bool next_entry(struct cur *c, uint64_t *tag, uint64_t *value)
{
	if (cur_left(c) < sizeof(Elf64_Dyn))
		return false;
	*tag = cur_le64(c);
	*value = cur_le64(c);
	return *tag != DT_NULL;
}

static int parse_table(const struct elf *elf, struct cur c, struct elf_dynamic *out)
{
	struct elf_dynamic d = { 0 };
	uint64_t tag, value;

	while (next_entry(&c, &tag, &value))
		take_entry(elf, tag, value, &d);
	if (!d.symbols || !d.strings || d.strings > elf->in.size)
		return -EBADMSG;
	d.strings_size = MIN(d.strings_size, elf->in.size - d.strings);
	*out = d;
	return 0;
}

int elf_dynamic_read(const struct elf *elf, struct elf_dynamic *out)
{
	scoped(freep) uint8_t *bytes = NULL;
	struct cur c;
	int r = read_table(elf, &bytes, &c);

	return r < 0 ? r : parse_table(elf, c, out);
}

int elf_needs(const struct elf *elf, struct str name)
{
	scoped(freep) uint8_t *bytes = NULL;
	char text[NAME_MAX_BYTES + 1];
	struct elf_dynamic d;
	uint64_t tag, value;
	struct cur c;
	int r = read_table(elf, &bytes, &c);

	if (r == 0)
		r = parse_table(elf, c, &d);
	if (!name.len || name.len > NAME_MAX_BYTES)
		return MIN(r, 0);
	while (r == 0 && next_entry(&c, &tag, &value)) {
		if (tag != DT_NEEDED || value > d.strings_size || name.len + 1 > d.strings_size - value)
			continue;
		r = reader_read(&elf->in, text, name.len + 1, d.strings + value);
		if (r == 0 && !text[name.len] && !memcmp(text, name.ptr, name.len))
			return 1;
	}
	return r;
}

/* Does symbol @index have that name? Return: 1 and *sym, 0, or the reader's error. */
static int is_named(const struct elf *elf, const struct elf_dynamic *d, uint32_t index, struct str name,
		    struct elf_sym *sym)
{
	uint8_t bytes[sizeof(Elf64_Sym)];
	char text[NAME_MAX_BYTES + 1];
	int r = reader_read(&elf->in, bytes, sizeof(bytes), d->symbols + (uint64_t)index * sizeof(bytes));

	if (r < 0)
		return r;
	*sym = elf_sym_parse(bytes, true);
	if (sym->name > d->strings_size || name.len + 1 > d->strings_size - sym->name)
		return 0;
	r = reader_read(&elf->in, text, name.len + 1, d->strings + sym->name);
	if (r < 0)
		return r;
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a null name has length 0 */
	return !text[name.len] && memcmp(text, name.ptr, name.len) == 0;
}

static uint32_t gnu_hash(struct str name)
{
	uint32_t h = 5381;

	for (size_t i = 0; i < name.len; i++)
		h = h * 33 + (uint8_t)name.ptr[i];
	return h;
}

static uint32_t sysv_hash(struct str name)
{
	uint32_t h = 0;

	for (size_t i = 0; i < name.len; i++) {
		uint32_t high;

		h = (h << 4) + (uint8_t)name.ptr[i];
		high = h & 0xf0000000;
		h ^= high >> 24;
		h &= ~high;
	}
	return h;
}

/* Layout: u32 buckets, first symbol, words of the filter, shift; u64 filter[]; u32 bucket[]; u32 hash[], whose lowest
 * bit ends a chain. Source: glibc 2.36, elf/dl-setup_hash.c and dl-lookup.c. Return: 1 and *sym, 0 or an error. */
static int find_gnu(const struct elf *elf, const struct elf_dynamic *d, struct str name, struct elf_sym *sym)
{
	uint32_t hash = gnu_hash(name), head[4], filter[2], index, chain;
	uint64_t buckets, chains, word;
	int r = read_words(elf, d->gnu_hash, head, 4);

	if (r < 0)
		return r;
	if (!head[0] || !head[2] || head[3] > 31)
		return -EBADMSG;
	r = read_words(elf, d->gnu_hash + 16 + (uint64_t)(hash / 64 % head[2]) * 8, filter, 2);
	if (r < 0)
		return r;
	word = (uint64_t)filter[1] << 32 | filter[0];
	if (!(word >> (hash % 64) & 1) || !(word >> ((hash >> head[3]) % 64) & 1))
		return 0;
	buckets = d->gnu_hash + 16 + (uint64_t)head[2] * 8;
	chains = buckets + (uint64_t)head[0] * 4;
	r = read_words(elf, buckets + (uint64_t)(hash % head[0]) * 4, &index, 1);
	for (size_t turn = 0; r == 0 && turn < CHAIN_MAX && index >= head[1]; turn++, index++) {
		r = read_words(elf, chains + (uint64_t)(index - head[1]) * 4, &chain, 1);
		if (r == 0 && (chain | 1) == (hash | 1))
			r = is_named(elf, d, index, name, sym);
		if (r == 0 && (chain & 1))
			break;
	}
	return r;
}

/* Layout: u32 buckets, chains; u32 bucket[]; u32 chain[]. */
static int find_sysv(const struct elf *elf, const struct elf_dynamic *d, struct str name, struct elf_sym *sym)
{
	uint32_t head[2], index;
	int r = read_words(elf, d->hash, head, 2);

	if (r < 0)
		return r;
	if (!head[0])
		return -EBADMSG;
	r = read_words(elf, d->hash + 8 + (uint64_t)(sysv_hash(name) % head[0]) * 4, &index, 1);
	for (size_t turn = 0; r == 0 && turn < CHAIN_MAX && index && index < head[1]; turn++) {
		r = is_named(elf, d, index, name, sym);
		if (r == 0)
			r = read_words(elf, d->hash + 8 + ((uint64_t)head[0] + index) * 4, &index, 1);
	}
	return r;
}

static struct elf_found found_of(const struct elf_sym *s)
{
	return (struct elf_found){ .address = s->address, .size = s->size, .section = s->section, .info = s->info };
}

static bool is_defined(const struct elf_sym *s)
{
	return s->section != SHN_UNDEF && s->section != SHN_ABS && s->info;
}

int elf_dynamic_find(const struct elf *elf, const struct elf_dynamic *dynamic, const char *name, struct elf_found *out)
{
	struct str text = str_of(name);
	struct elf_sym sym = { 0 };
	int r;

	must(text.len <= NAME_MAX_BYTES);
	if (!dynamic->gnu_hash && !dynamic->hash)
		return -ENOENT;
	r = dynamic->gnu_hash ? find_gnu(elf, dynamic, text, &sym) : find_sysv(elf, dynamic, text, &sym);
	if (r < 0)
		return r;
	if (r == 0 || !is_defined(&sym))
		return -ENOENT;
	*out = found_of(&sym);
	return 0;
}

int elf_dynamic_slot(const struct elf *elf, const struct elf_dynamic *dynamic, const char *name, uint64_t *out)
{
	const uint32_t type = elf->machine == EM_AARCH64 ? R_AARCH64_GLOB_DAT : R_X86_64_GLOB_DAT;
	scoped(reader_window_release) struct reader_window w = { 0 };
	struct reader in = reader_slice(&elf->in, dynamic->relocations, dynamic->relocations_size);
	uint64_t count = in.size / sizeof(Elf64_Rela);
	struct elf_sym sym;
	int r;

	if (!dynamic->relocations || count > RELOCATIONS_MAX)
		return -ENOENT;
	r = reader_window_init(&w, &in, WINDOW_SIZE);
	for (uint64_t i = 0; r == 0 && i < count; i++) {
		const uint8_t *bytes = reader_window_get(&w, i * sizeof(Elf64_Rela), sizeof(Elf64_Rela));
		struct cur c = cur_of(bytes, bytes ? sizeof(Elf64_Rela) : 0);
		uint64_t address = cur_le64(&c), info = cur_le64(&c);

		if (!bytes)
			return w.error;
		if (ELF64_R_TYPE(info) != type)
			continue;
		r = is_named(elf, dynamic, (uint32_t)ELF64_R_SYM(info), str_of(name), &sym);
		if (r == 1) {
			*out = address;
			return 0;
		}
	}
	return r < 0 ? r : -ENOENT;
}

/* ---- .symtab ---- */

/* A place in assembly without a type, for this file alone. */
static bool is_label(const struct elf_sym *s)
{
	return s->section != SHN_UNDEF && s->section < SHN_LORESERVE && !s->info;
}

struct places { /* of one name in the string table */
	uint32_t at[PLACES_MAX];
	size_t count;
};

static void find_in_piece(const char *const *names, size_t count, const uint8_t *bytes, size_t size, uint64_t base,
			  struct places *places)
{
	struct str piece = str_n((const char *)bytes, size);

	for (size_t i = 0; i < count; i++) {
		size_t whole = strlen(names[i]) + 1, at = 0;

		while (places[i].count < PLACES_MAX) {
			ptrdiff_t next = str_search(str_skip(piece, at), str_n(names[i], whole));

			if (next < 0)
				break;
			at += (size_t)next;
			if (!places[i].count || places[i].at[places[i].count - 1] != base + at)
				places[i].at[places[i].count++] = (uint32_t)(base + at);
			at++;
		}
	}
}

/* Names of most functions are long and all different: reading the strings once and comparing numbers then is far less
 * than looking up the name of each symbol. */
static int find_places(const struct reader *strings, const char *const *names, size_t count, struct places *places)
{
	scoped(reader_window_release) struct reader_window w = { 0 };
	int r;

	if (strings->size > STRINGS_MAX)
		return -E2BIG;
	r = reader_window_init(&w, strings, WINDOW_SIZE);
	for (uint64_t at = 0; r == 0 && at < strings->size; at += WINDOW_SIZE - NAME_MAX_BYTES) {
		size_t size = (size_t)MIN(strings->size - at, (uint64_t)WINDOW_SIZE);
		const uint8_t *bytes = reader_window_get(&w, at, size);

		if (!bytes)
			return w.error;
		find_in_piece(names, count, bytes, size, at, places);
	}
	return r;
}

static bool is_at(const struct places *places, uint32_t name)
{
	for (size_t i = 0; i < places->count; i++)
		if (places->at[i] == name)
			return true;
	return false;
}

int elf_symtab_find(const struct elf *elf, const char *const *names, size_t count, struct elf_found *out)
{
	const struct elf_section *section = elf_section_of_type(elf, SHT_SYMTAB);
	scoped(reader_window_release) struct reader_window w = { 0 };
	struct places places[ELF_FIND_NAMES_MAX] = { 0 };
	struct reader in, strings;
	int r, found = 0;

	must(count <= ELF_FIND_NAMES_MAX);
	if (!section || !elf->is_64 || section->entry_size != sizeof(Elf64_Sym) || section->link >= elf->section_count)
		return -ENOENT;
	in = elf_section_reader(elf, section);
	strings = elf_section_reader(elf, &elf->sections[section->link]);
	if (in.size / sizeof(Elf64_Sym) > SYMBOLS_MAX)
		return -E2BIG;
	r = find_places(&strings, names, count, places);
	if (r == 0)
		r = reader_window_init(&w, &in, WINDOW_SIZE);
	for (uint64_t at = 0; r == 0 && at + sizeof(Elf64_Sym) <= in.size; at += sizeof(Elf64_Sym)) {
		const uint8_t *bytes = reader_window_get(&w, at, sizeof(Elf64_Sym));
		struct elf_sym s;

		if (!bytes)
			return w.error;
		s = elf_sym_parse(bytes, true);
		for (size_t i = 0; s.name && i < count; i++)
			if (!out[i].info && is_at(&places[i], s.name) && (is_defined(&s) || is_label(&s))) {
				found += !out[i].section;
				out[i] = found_of(&s);
			}
	}
	return r < 0 ? r : found;
}
