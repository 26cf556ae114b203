/* SPDX-License-Identifier: Apache-2.0 */
#include "libhearth/places.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "proc/maps.h"

#define MAPS_MAX MIB(64)
#define PLACES_MAX 65536
#define NAME_MAX_BYTES KIB(3)
#define EH_FRAME_MAX MIB(16) /* of a file whose rows are read: they are kept in the program's memory */

static void place_release(struct place *at)
{
	elf_release(&at->elf);
	elf_symbols_release(&at->symbols);
	unwind_table_release(&at->table);
	closep(&at->fd);
	free(at->path);
}

void places_release(struct places *p)
{
	for (size_t i = 0; i < p->count; i++)
		place_release(&p->items[i]);
	free(p->items);
	free(p->writable);
	*p = (struct places){ 0 };
}

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	const struct place *at = self;

	return io_pread_all(at->fd, dst, size, offset);
}

/* The file of that name may be another one by now: then it says nothing about this mapping. */
static bool open_file(struct place *at)
{
	struct stat st;

	at->fd = open(at->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (at->fd < 0 || fstat(at->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != at->inode ||
	    major(st.st_dev) != at->device_major || minor(st.st_dev) != at->device_minor) {
		closep(&at->fd);
		return false;
	}
	at->file_size = (uint64_t)st.st_size;
	return true;
}

static void read_build_id(struct place *at)
{
	uint8_t bytes[ELF_BUILD_ID_MAX];
	int size = elf_build_id(&at->elf, bytes);

	for (int i = 0; i < size; i++)
		(void)snprintf(at->build_id + (size_t)i * 2, 3, "%02x", bytes[i]);
}

/* Items move when the array grows, so readers point at their place only while it stands still: see settle(). */
static void settle(struct place *at)
{
	at->in.self = at;
	at->elf.in.self = at;
	for (size_t i = 0; i < ELF_STRINGS_COUNT; i++)
		at->strings[i].self = at;
}

void places_open(struct place *at)
{
	settle(at);
	if (at->was_opened)
		return;
	at->was_opened = true;
	if (at->is_deleted || at->path[0] != '/' || !open_file(at))
		return;
	at->in = (struct reader){ .read = read_fd, .self = at, .size = at->file_size };
	if (elf_parse(&at->in, &at->elf) == 0)
		read_build_id(at);
}

static int load_symbols(struct place *at)
{
	static const uint32_t types[ELF_STRINGS_COUNT] = {
		[ELF_STRINGS_STATIC] = SHT_SYMTAB, [ELF_STRINGS_DYNAMIC] = SHT_DYNSYM
	};

	if (at->symbols.items || at->fd < 0 || !at->elf.segment_count)
		return at->symbols.count ? 0 : -ENOENT;
	elf_symbols_init(&at->symbols, elf_base(&at->elf));
	for (size_t i = 0; i < ELF_STRINGS_COUNT; i++)
		if (elf_symbols_add(&at->symbols, &at->elf, types[i]) == 0)
			ignore(elf_symbols_strings(&at->elf, types[i], &at->strings[i])); /* then names are not found */
	ignore(elf_symbols_add_plt(&at->symbols, &at->elf));                              /* there may be none */
	elf_symbols_finish(&at->symbols, &at->elf, at->strings);
	return at->symbols.count ? 0 : -ENOENT;
}

int places_name(struct place *at, uint64_t address, struct buf *out)
{
	struct elf_symbol_hit hit;
	char text[NAME_MAX_BYTES];
	struct str name;
	uint64_t in_file;
	int r;

	places_open(at);
	r = load_symbols(at);
	if (r == 0)
		r = elf_address_of(&at->elf, address - at->start + at->offset, &in_file);
	if (r == 0)
		r = elf_symbols_find(&at->symbols, in_file, &hit);
	if (r == 0)
		r = reader_text(&at->strings[hit.strings], hit.name, text, sizeof(text), &name);
	if (r < 0 || !name.len)
		return -ENOENT;
	buf_adds(out, name);
	if (hit.is_plt)
		buf_adds(out, STR("@plt"));
	return out->error;
}

static void build_table(struct place *at)
{
	const struct elf_section *frames = elf_section_find(&at->elf, STR(".eh_frame"));

	if (at->table_was_built)
		return;
	at->table_was_built = true;
	if (at->fd >= 0 && at->elf.segment_count && frames && frames->size <= EH_FRAME_MAX &&
	    unwind_table_build(&at->elf, NULL, &at->table) < 0)
		at->table = (struct unwind_table){ 0 };
}

/* Words above sp where the return address is, or -1: in a frame that the frame pointer knows, or nowhere. */
static ptrdiff_t return_word(const struct abi_row *row)
{
	if (row->saved == ABI_SAVED_PAIR)
		return row->cfa_off + row->fp_off + 1;
	if (row->saved == ABI_SAVED_RETURN)
		return row->cfa_off + row->fp_off;
	return row->cfa_off - 1;
}

bool places_caller(struct place *at, const struct sample *s, uint64_t *out)
{
	const struct abi_row *row;
	ptrdiff_t word;

	places_open(at);
	build_table(at);
	row = at->table.elements ? unwind_table_find(at->table.elements, s->frames[0] - at->start + at->offset) : NULL;
	if (!row || row->cfa != ABI_CFA_SP)
		return false;
	if (s->lr && (row->saved == ABI_SAVED_SAME || row->saved == ABI_SAVED_UNDEFINED)) {
		*out = s->lr;
		return true;
	}
	word = return_word(row);
	if (word < 0 || (size_t)word >= s->word_count)
		return false;
	*out = s->words[word];
	return true;
}

static bool same(const struct place *at, const struct maps_line *line)
{
	return at->start == line->start && at->end == line->end && at->offset == line->offset &&
	       at->inode == line->inode && at->device_major == line->device_major &&
	       at->device_minor == line->device_minor && str_eq(str_of(at->path), line->path);
}

static int add_place(struct places *p, const struct maps_line *line)
{
	struct place *at;
	int r;

	for (size_t i = 0; i < p->count; i++) {
		if (!same(&p->items[i], line))
			continue;
		p->items[i].is_current = true;
		return 0;
	}
	r = array_grow(&p->items, &p->cap, p->count, PLACES_MAX);
	if (r < 0)
		return r;
	at = &p->items[p->count];
	*at = (struct place){ .start = line->start,
			      .end = line->end,
			      .offset = line->offset,
			      .path = str_dup(line->path),
			      .is_current = true,
			      .is_deleted = line->deleted,
			      .fd = -1,
			      .inode = line->inode,
			      .device_major = line->device_major,
			      .device_minor = line->device_minor };
	if (!at->path)
		return -ENOMEM;
	p->count++;
	return 0;
}

static int add_line(struct places *p, const struct maps_line *line)
{
	int r;

	if (line->executable)
		return add_place(p, line);
	if (!line->writable)
		return 0;
	r = array_grow(&p->writable, &p->writable_cap, p->writable_count, PLACES_MAX);
	if (r < 0)
		return r;
	p->writable[p->writable_count++] = (struct stack_range){ line->start, line->end };
	return 0;
}

int places_read(struct places *p)
{
	scoped(buf_release) struct buf text = BUF_INIT(MAPS_MAX);
	struct maps_line line;
	struct str rest;
	int r = io_read_file("/proc/self/maps", &text), got;

	if (r < 0)
		return r;
	for (size_t i = 0; i < p->count; i++)
		p->items[i].is_current = false;
	p->writable_count = 0;
	rest = buf_str(&text);
	while (r == 0 && (got = maps_next(&rest, &line)) != 0)
		r = got < 0 ? 0 : add_line(p, &line);
	return r;
}

ptrdiff_t places_find(const struct places *p, uint64_t address)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->items[i].is_current && address >= p->items[i].start && address < p->items[i].end)
			return (ptrdiff_t)i;
	return -1;
}

bool places_stack(const struct places *p, uint64_t address, struct stack_range *out)
{
	for (size_t i = 0; i < p->writable_count; i++) {
		if (address < p->writable[i].start || address >= p->writable[i].end)
			continue;
		*out = p->writable[i];
		return true;
	}
	return false;
}
