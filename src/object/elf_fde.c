/* SPDX-License-Identifier: Apache-2.0 */
#include "object/elf_fde.h"

#include <elf.h>

#include "base/cur.h"

#define PCREL_SDATA4 0x1b
#define DATAREL_SDATA4 0x3b
#define UDATA4 0x03
#define HEAD_SIZE 12
#define FDES_MAX ((uint32_t)2 << 20)
#define CIE_MAX 64 /* bytes of a CIE up to the encoding of its pointers */

static uint64_t relative(uint64_t base, uint32_t value)
{
	return base + (uint64_t)(int64_t)(int32_t)value;
}

int elf_fdes_open(const struct elf *elf, struct elf_fdes *out)
{
	const struct elf_segment *s = NULL;
	uint8_t bytes[HEAD_SIZE], version, pointer_form, count_form, table_form;
	struct cur c = cur_of(bytes, sizeof(bytes));
	uint32_t count;
	int r;

	for (size_t i = 0; i < elf->segment_count && !s; i++)
		if (elf->segments[i].type == PT_GNU_EH_FRAME)
			s = &elf->segments[i];
	if (!s)
		return -ENOENT;
	r = reader_read(&elf->in, bytes, sizeof(bytes), s->offset);
	if (r < 0)
		return r;
	version = cur_u8(&c);
	pointer_form = cur_u8(&c);
	count_form = cur_u8(&c);
	table_form = cur_u8(&c);
	cur_le32(&c); /* where .eh_frame is */
	count = cur_le32(&c);
	if (version != 1 || pointer_form != PCREL_SDATA4 || count_form != UDATA4 || table_form != DATAREL_SDATA4)
		return -ENOTSUP;
	out->table = reader_slice(&elf->in, s->offset, s->file_size);
	out->table = reader_slice(&out->table, HEAD_SIZE, out->table.size);
	out->address = s->address;
	out->count = (uint32_t)MIN((uint64_t)MIN(count, FDES_MAX), out->table.size / ELF_FDES_ENTRY);
	return 0;
}

uint64_t elf_fdes_start(const struct elf_fdes *fdes, const uint8_t entry[ELF_FDES_ENTRY])
{
	struct cur c = cur_of(entry, ELF_FDES_ENTRY);

	return relative(fdes->address, cur_le32(&c));
}

static int entry_at(const struct elf_fdes *fdes, uint32_t index, uint64_t *start, uint64_t *fde)
{
	uint8_t bytes[ELF_FDES_ENTRY];
	struct cur c = cur_of(bytes, sizeof(bytes));
	int r = reader_read(&fdes->table, bytes, sizeof(bytes), (uint64_t)index * ELF_FDES_ENTRY);

	if (r < 0)
		return r;
	*start = relative(fdes->address, cur_le32(&c));
	*fde = relative(fdes->address, cur_le32(&c));
	return 0;
}

static int read_at(const struct elf *elf, uint64_t address, uint8_t *dst, size_t size)
{
	uint64_t offset;

	if (elf_offset_of(elf, address, &offset) < 0)
		return -EBADMSG;
	return reader_read(&elf->in, dst, size, offset);
}

/* The form of an FDE's addresses, by its CIE: u32 length, id 0; u8 version; text; code and data alignment, return
 * register; behind 'z': size, and one field per letter. 0x1b is what compilers write. */
static int check_cie(const struct elf *elf, uint64_t address)
{
	uint8_t bytes[CIE_MAX], version;
	struct cur c = cur_of(bytes, sizeof(bytes));
	struct str letters;
	uint64_t number;
	int r = read_at(elf, address, bytes, sizeof(bytes));

	if (r < 0)
		return r;
	cur_le32(&c);
	if (cur_le32(&c) != 0)
		return -EBADMSG;
	version = cur_u8(&c);
	letters = cur_cstr(&c);
	if (version != 1 || !letters.len || letters.ptr[0] != 'z')
		return -ENOTSUP;
	for (size_t i = 0; i < 2 && !c.bad; i++)  /* alignments */
		ignore(cur_uvarint(&c, &number)); /* c.bad tells */
	cur_u8(&c);
	ignore(cur_uvarint(&c, &number));
	for (size_t i = 1; i < letters.len && !c.bad; i++) {
		switch (letters.ptr[i]) {
		case 'R':
			return cur_u8(&c) == PCREL_SDATA4 && !c.bad ? 0 : -ENOTSUP;
		case 'L':
			cur_u8(&c);
			break;
		case 'P': { /* personality: pcrel | sdata4, perhaps indirect */
			uint8_t form = cur_u8(&c);

			if ((form & 0x0f) != 0x0b && (form & 0x0f) != 0x03)
				return -ENOTSUP;
			cur_le32(&c);
			break;
		}
		case 'S':
		case 'B':
			break;
		default:
			return -ENOTSUP;
		}
	}
	return c.bad ? -EBADMSG : -ENOTSUP;
}

int elf_fde_at(const struct elf *elf, const struct elf_fdes *fdes, uint32_t index, struct elf_fde *out)
{
	uint64_t start, at;
	uint8_t bytes[16];
	struct cur c = cur_of(bytes, sizeof(bytes));
	uint32_t length, cie, size;
	int r;

	if (index >= fdes->count)
		return -ENOENT;
	r = entry_at(fdes, index, &start, &at);
	if (r == 0)
		r = read_at(elf, at, bytes, sizeof(bytes));
	if (r < 0)
		return r;
	length = cur_le32(&c);
	cie = cur_le32(&c);
	if (relative(at + 8, cur_le32(&c)) != start || length < 12 || length == UINT32_MAX || !cie)
		return -EBADMSG;
	size = cur_le32(&c);
	r = check_cie(elf, at + 4 - cie);
	if (r < 0)
		return r;
	*out = (struct elf_fde){ .start = start, .size = size, .at = at };
	return 0;
}

uint64_t elf_fde_room(const struct elf_fdes *fdes, uint32_t index)
{
	uint64_t start, next, at;

	if (entry_at(fdes, index, &start, &at) < 0)
		return 0;
	if (index + 1 >= fdes->count || entry_at(fdes, index + 1, &next, &at) < 0)
		return UINT64_MAX;
	return next > start ? next - start : 0;
}

int elf_fde_find(const struct elf *elf, const struct elf_fdes *fdes, uint64_t address, struct elf_fde *out)
{
	uint32_t low = 0, high = fdes->count; /* entries before low start at or below it, those from high on above */
	struct elf_fde found;
	uint64_t start, at;
	int r;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		r = entry_at(fdes, middle, &start, &at);
		if (r < 0)
			return r;
		if (start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return -ENOENT;
	r = elf_fde_at(elf, fdes, low - 1, &found);
	if (r < 0)
		return r;
	if (address - found.start >= found.size)
		return -ENOENT;
	*out = found;
	return 0;
}
