/* SPDX-License-Identifier: Apache-2.0 */
#include "object/elf.h"

#include <elf.h>

#include "base/cur.h"

#define PAGE_SIZE_MIN 4096

static uint64_t cur_word(struct cur *c, bool is_64)
{
	return is_64 ? cur_le64(c) : cur_le32(c);
}

struct tables { /* where the header says that the others are */
	uint64_t segments, sections;
	uint16_t segment_size, segment_count, section_size, section_count, names_index;
};

static int parse_header(struct elf *elf, struct tables *out)
{
	uint8_t bytes[sizeof(Elf64_Ehdr)];
	struct cur c;
	int r = reader_read(&elf->in, bytes, sizeof(Elf32_Ehdr), 0);

	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	if (memcmp(bytes, ELFMAG, SELFMAG) || bytes[EI_VERSION] != EV_CURRENT)
		return -EBADMSG;
	if (bytes[EI_DATA] != ELFDATA2LSB)
		return bytes[EI_DATA] == ELFDATA2MSB ? -ENOTSUP : -EBADMSG;
	if (bytes[EI_CLASS] != ELFCLASS64 && bytes[EI_CLASS] != ELFCLASS32)
		return -EBADMSG;
	elf->is_64 = bytes[EI_CLASS] == ELFCLASS64;
	r = elf->is_64 ? reader_read(&elf->in, bytes, sizeof(bytes), 0) : 0;
	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	c = cur_of(bytes + EI_NIDENT, (elf->is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)) - EI_NIDENT);
	elf->type = cur_le16(&c);
	elf->machine = cur_le16(&c);
	cur_le32(&c); /* version, once more */
	elf->entry = cur_word(&c, elf->is_64);
	out->segments = cur_word(&c, elf->is_64);
	out->sections = cur_word(&c, elf->is_64);
	cur_le32(&c); /* flags */
	cur_le16(&c); /* size of this header */
	out->segment_size = cur_le16(&c);
	out->segment_count = cur_le16(&c);
	out->section_size = cur_le16(&c);
	out->section_count = cur_le16(&c);
	out->names_index = cur_le16(&c);
	return c.bad ? -EBADMSG : 0;
}

static struct elf_segment parse_segment(struct cur *c, bool is_64)
{
	struct elf_segment s = { .type = cur_le32(c) };

	if (is_64)
		s.flags = cur_le32(c);
	s.offset = cur_word(c, is_64);
	s.address = cur_word(c, is_64);
	cur_word(c, is_64); /* physical address */
	s.file_size = cur_word(c, is_64);
	s.memory_size = cur_word(c, is_64);
	if (!is_64)
		s.flags = cur_le32(c);
	return s;
}

static int parse_segments(struct elf *elf, const struct tables *t)
{
	size_t entry = elf->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	size_t size = entry * t->segment_count;
	scoped(freep) uint8_t *bytes = NULL;
	struct cur c;
	int r;

	if (!t->segment_count)
		return 0;
	if (t->segment_count > ELF_SEGMENTS_MAX)
		return -E2BIG;
	if (t->segment_size != entry)
		return -EBADMSG;
	bytes = malloc(size);
	elf->segments = calloc(t->segment_count, sizeof(*elf->segments));
	if (!bytes || !elf->segments)
		return -ENOMEM;
	r = reader_read(&elf->in, bytes, size, t->segments);
	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	for (size_t i = 0; i < t->segment_count; i++) {
		c = cur_of(bytes + i * entry, entry);
		elf->segments[i] = parse_segment(&c, elf->is_64);
	}
	elf->segment_count = t->segment_count;
	return 0;
}

static struct elf_section parse_section(const uint8_t *bytes, bool is_64)
{
	struct cur c = cur_of(bytes, is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr));
	struct elf_section s = { .name = cur_le32(&c) };

	s.type = cur_le32(&c);
	s.flags = cur_word(&c, is_64);
	s.address = cur_word(&c, is_64);
	s.offset = cur_word(&c, is_64);
	s.size = cur_word(&c, is_64);
	s.link = cur_le32(&c);
	s.info = cur_le32(&c);
	cur_word(&c, is_64); /* alignment */
	s.entry_size = cur_word(&c, is_64);
	return s;
}

static int read_names(struct elf *elf, uint64_t index)
{
	const struct elf_section *s;
	struct reader names;
	char *text;
	int r;

	if (index >= elf->section_count)
		return -EBADMSG;
	s = &elf->sections[index];
	names = elf_section_reader(elf, s);
	if (names.size > ELF_NAMES_MAX)
		return -E2BIG;
	text = calloc(1, (size_t)names.size + 1);
	if (!text)
		return -ENOMEM;
	r = reader_read(&names, text, (size_t)names.size, 0);
	if (r < 0) {
		free(text);
		return r;
	}
	elf->names = text;
	elf->names_size = (size_t)names.size;
	return 0;
}

/* Counts of 65280 and more stand in the first section (gabi 4.1, "ELF Header", e_shnum and e_shstrndx). */
static int parse_sections(struct elf *elf, const struct tables *t)
{
	size_t entry = elf->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	uint64_t count = t->section_count, names_index = t->names_index;
	uint8_t first[sizeof(Elf64_Shdr)];
	scoped(freep) uint8_t *bytes = NULL;
	struct elf_section section;
	int r;

	if (!t->sections || t->section_size != entry)
		return -ENOENT;
	r = reader_read(&elf->in, first, entry, t->sections);
	if (r < 0)
		return r;
	section = parse_section(first, elf->is_64);
	if (!count)
		count = section.size;
	if (names_index == SHN_XINDEX)
		names_index = section.link;
	if (!count || count > ELF_SECTIONS_MAX)
		return -E2BIG;
	bytes = malloc((size_t)count * entry);
	if (!bytes)
		return -ENOMEM;
	r = reader_read(&elf->in, bytes, (size_t)count * entry, t->sections);
	if (r < 0)
		return r;
	elf->sections = calloc((size_t)count, sizeof(*elf->sections));
	if (!elf->sections)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		elf->sections[i] = parse_section(bytes + i * entry, elf->is_64);
	elf->section_count = (size_t)count;
	return read_names(elf, names_index);
}

static void drop_sections(struct elf *elf)
{
	free(elf->sections);
	free(elf->names);
	elf->sections = NULL;
	elf->names = NULL;
	elf->section_count = elf->names_size = 0;
}

void elf_release(struct elf *elf)
{
	drop_sections(elf);
	free(elf->segments);
	*elf = (struct elf){ 0 };
}

int elf_parse(const struct reader *in, struct elf *out)
{
	scoped(elf_release) struct elf elf = { .in = *in };
	struct tables tables;
	int r = parse_header(&elf, &tables);

	if (r < 0)
		return r;
	r = parse_segments(&elf, &tables);
	if (r < 0)
		return r;
	r = parse_sections(&elf, &tables);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		drop_sections(&elf);
	*out = elf;
	elf = (struct elf){ 0 }; /* moved out */
	return 0;
}

static bool covers(uint64_t start, uint64_t size, uint64_t at)
{
	return at >= start && at - start < size;
}

int elf_address_of(const struct elf *elf, uint64_t offset, uint64_t *out)
{
	for (int round = 0; round < 3; round++) { /* code; any segment; any segment with its page-rounded edges */
		for (size_t i = 0; i < elf->segment_count; i++) {
			const struct elf_segment *s = &elf->segments[i];
			uint64_t edge = round == 2 ? s->offset % PAGE_SIZE_MIN : 0;
			uint64_t tail = round == 2 ? PAGE_SIZE_MIN - 1 : 0;

			if (s->type != PT_LOAD || (round == 0 && !(s->flags & PF_X)))
				continue;
			if (s->file_size > UINT64_MAX - edge - tail ||
			    !covers(s->offset - edge, s->file_size + edge + tail, offset))
				continue;
			*out = s->address + (offset - s->offset); /* modular on purpose: the edge lies before */
			return 0;
		}
	}
	return -ENOENT;
}

int elf_offset_of(const struct elf *elf, uint64_t address, uint64_t *out)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_LOAD || !covers(s->address, s->file_size, address))
			continue;
		*out = s->offset + (address - s->address);
		return 0;
	}
	return -ENOENT;
}

uint64_t elf_base(const struct elf *elf)
{
	uint64_t base = UINT64_MAX;

	for (size_t i = 0; i < elf->segment_count; i++)
		if (elf->segments[i].type == PT_LOAD)
			base = MIN(base, elf->segments[i].address);
	return base == UINT64_MAX ? 0 : base;
}

struct str elf_section_name(const struct elf *elf, const struct elf_section *section)
{
	return section->name < elf->names_size ? str_of(elf->names + section->name) : STR("");
}

const struct elf_section *elf_section_find(const struct elf *elf, struct str name)
{
	for (size_t i = 0; i < elf->section_count; i++)
		if (str_eq(elf_section_name(elf, &elf->sections[i]), name))
			return &elf->sections[i];
	return NULL;
}

const struct elf_section *elf_section_of_type(const struct elf *elf, uint32_t type)
{
	for (size_t i = 0; i < elf->section_count; i++)
		if (elf->sections[i].type == type)
			return &elf->sections[i];
	return NULL;
}

struct reader elf_section_reader(const struct elf *elf, const struct elf_section *section)
{
	if (section->type == SHT_NOBITS || section->flags & SHF_COMPRESSED)
		return reader_slice(&elf->in, 0, 0);
	return reader_slice(&elf->in, section->offset, section->size);
}

bool elf_is_code(const struct elf *elf, size_t section_index)
{
	return section_index < elf->section_count && elf->sections[section_index].flags & SHF_EXECINSTR;
}

int elf_notes_build_id(const void *notes, size_t size, uint8_t out[ELF_BUILD_ID_MAX])
{
	struct cur c = cur_of(notes, size);

	while (cur_left(&c)) { /* each turn eats at least 12 bytes or sets bad */
		uint32_t name_size = cur_le32(&c), desc_size = cur_le32(&c), type = cur_le32(&c);
		const uint8_t *name = cur_bytes(&c, align_up(name_size, 4));
		/* The padding behind the last note may be missing. */
		const uint8_t *desc = cur_bytes(&c, MIN(align_up(desc_size, 4), MAX(cur_left(&c), (size_t)desc_size)));

		if (c.bad)
			return -EBADMSG;
		if (type != NT_GNU_BUILD_ID || name_size != 4 || memcmp(name, "GNU", 4))
			continue;
		if (!desc_size || desc_size > ELF_BUILD_ID_MAX)
			return -EBADMSG;
		memcpy(out, desc, desc_size);
		return (int)desc_size;
	}
	return -ENOENT;
}

static int read_build_id(const struct elf *elf, uint64_t offset, uint64_t size, uint8_t out[ELF_BUILD_ID_MAX])
{
	struct reader notes = reader_slice(&elf->in, offset, MIN(size, ELF_NOTES_MAX));
	scoped(freep) uint8_t *bytes = malloc((size_t)notes.size + 1);
	int r;

	if (!bytes)
		return -ENOMEM;
	r = reader_read(&notes, bytes, (size_t)notes.size, 0);
	return r < 0 ? r : elf_notes_build_id(bytes, (size_t)notes.size, out);
}

int elf_build_id(const struct elf *elf, uint8_t out[ELF_BUILD_ID_MAX])
{
	int result = -ENOENT;

	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		int r = s->type == PT_NOTE ? read_build_id(elf, s->offset, s->file_size, out) : -ENOENT;

		if (r > 0 || r == -ENOMEM)
			return r;
		if (r != -ENOENT)
			result = r;
	}
	/* A separate debug file keeps the note's section, its segments point at nothing. */
	for (size_t i = 0; i < elf->section_count; i++) {
		const struct elf_section *s = &elf->sections[i];
		int r = s->type == SHT_NOTE ? read_build_id(elf, s->offset, s->size, out) : -ENOENT;

		if (r > 0 || r == -ENOMEM)
			return r;
		if (r != -ENOENT)
			result = r;
	}
	return result;
}

/* Layout: name, NUL, padding to 4, CRC-32 (gdb 13 manual, "Debugging Information in Separate Files"). */
int elf_debug_link(const struct elf *elf, char name[ELF_LINK_NAME_MAX], uint32_t *crc)
{
	const struct elf_section *section = elf_section_find(elf, STR(".gnu_debuglink"));
	uint8_t bytes[ELF_LINK_NAME_MAX + 8];
	struct reader in;
	struct cur c;
	struct str text;
	uint32_t value;

	if (!section)
		return -ENOENT;
	in = elf_section_reader(elf, section);
	if (in.size > sizeof(bytes) || reader_read(&in, bytes, (size_t)in.size, 0) < 0)
		return -EBADMSG;
	c = cur_of(bytes, (size_t)in.size);
	text = cur_cstr(&c);
	ignore(cur_bytes(&c, align_up(text.len + 1, 4) - (text.len + 1)) == NULL); /* padding: bad sticks */
	value = cur_le32(&c);
	if (c.bad || !text.len || text.len >= ELF_LINK_NAME_MAX || str_find(text, '/') >= 0 || str_eq(text, STR(".")) ||
	    str_eq(text, STR("..")))
		return -EBADMSG;
	memcpy(name, text.ptr, text.len);
	name[text.len] = 0;
	*crc = value;
	return 0;
}
