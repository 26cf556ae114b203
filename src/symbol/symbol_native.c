/* SPDX-License-Identifier: Apache-2.0 */
/* From an open ELF file to a table of its functions. */
#include <elf.h>

#include "base/io.h"
#include "object/elf_fde.h"
#include "object/xz.h"
#include "symbol/symbol_int.h"

#define MINI_MAX MIB(16) /* of an unpacked .gnu_debugdata; libxul's has 5 */

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all((int)(intptr_t)self, dst, size, offset);
}

struct reader symbol_fd_reader(int fd, uint64_t size)
{
	return (struct reader){ .read = read_fd, .self = (void *)(intptr_t)fd, .size = size };
}

void symbol_table_free(struct symbol_table *t)
{
	if (!t)
		return;
	elf_symbols_release(&t->symbols);
	closep(&t->fds[0]);
	closep(&t->fds[1]);
	free(t->owned);
	free(t);
}

static void table_freep(struct symbol_table **t)
{
	symbol_table_free(*t);
}

/* Running out of memory, or of the budget, ends the whole load: half a table would be kept for good. */
static bool is_final(int r)
{
	return r == -ENOMEM || r == -EAGAIN;
}

/* What elf_symbols_add() will read: a table over its limit costs nothing. */
static uint64_t work_of(const struct elf *elf, uint32_t type)
{
	const struct elf_section *section = elf_section_of_type(elf, type);
	uint64_t size = section ? elf_section_reader(elf, section).size : 0;

	return size > ELF_ENTRIES_MAX * sizeof(Elf64_Sym) ? 0 : size;
}

/* One source of symbols. Other failures cost this source only. */
static int add_source(struct symbols *s, struct symbol_table *t, const struct elf *elf, uint32_t type)
{
	size_t before = t->symbols.count;
	size_t strings = type == SHT_DYNSYM ? ELF_STRINGS_DYNAMIC : ELF_STRINGS_STATIC;
	struct reader in;
	int r = elf_symbols_strings(elf, type, &in);

	if (r == 0 && !symbol_work_take(s, work_of(elf, type)))
		r = -EAGAIN;
	if (r == 0)
		r = elf_symbols_add(&t->symbols, elf, type);
	if (r < 0 || t->symbols.count == before) {
		t->symbols.count = before;
		return is_final(r) ? r : -ENOENT;
	}
	t->strings[strings] = in;
	return 0;
}

static int add_plt(struct symbol_table *t, const struct elf *elf)
{
	size_t before = t->symbols.count;
	struct reader in;
	int r = elf_symbols_strings(elf, SHT_DYNSYM, &in);

	if (r == 0)
		r = elf_symbols_add_plt(&t->symbols, elf);
	if (r == 0 && t->symbols.count > before)
		t->strings[ELF_STRINGS_DYNAMIC] = in;
	return r == -ENOMEM ? r : 0;
}

/* A separate debug file: its symbols, and its descriptor for their names. */
static int add_debug_file(struct symbols *s, struct symbol_table *t, const struct symbol_object *m,
			  const struct symbol_file *file)
{
	scoped(symbol_file_release) struct symbol_file debug = { .view.fd = -1 };
	int r = symbol_debug_open(s, m, &file->elf, &debug);

	if (r == 0)
		r = add_source(s, t, &debug.elf, SHT_SYMTAB);
	if (r < 0)
		return r;
	t->fds[1] = debug.view.fd;
	debug.view.fd = -1; /* moved into the table */
	return 0;
}

/* MiniDebugInfo: an ELF file in xz, with the functions that .dynsym does not have. Of it only the names are kept. */
static int add_mini(struct symbols *s, struct symbol_table *t, const struct elf *elf)
{
	const struct elf_section *section = elf_section_find(elf, STR(".gnu_debugdata"));
	scoped(buf_release) struct buf image = BUF_INIT(MINI_MAX);
	scoped(elf_release) struct elf mini = { 0 };
	struct reader in, *names = &t->strings[ELF_STRINGS_STATIC];
	int r;

	if (!section)
		return -ENOENT;
	if (!symbol_work_take(s, MINI_MAX))
		return -EAGAIN;
	in = elf_section_reader(elf, section);
	r = xz_unpack(&in, &image);
	if (r < 0)
		return r;
	in = reader_of(image.ptr, image.len);
	r = elf_parse(&in, &mini);
	if (r == 0)
		r = add_source(s, t, &mini, SHT_SYMTAB);
	if (r < 0)
		return r;
	t->owned = malloc((size_t)names->size + 1);
	r = t->owned ? reader_read(names, t->owned, (size_t)names->size, 0) : -ENOMEM;
	if (r < 0) {
		t->symbols.count = 0;
		*names = (struct reader){ 0 };
		return r;
	}
	t->memory += (size_t)names->size;
	*names = reader_of(t->owned, (size_t)names->size);
	return 0;
}

/* In the order of trust and of content: the file's own table, its debug file, MiniDebugInfo beside .dynsym. */
static int add_functions(struct symbols *s, struct symbol_table *t, const struct symbol_object *m,
			 const struct symbol_file *file)
{
	int r = add_source(s, t, &file->elf, SHT_SYMTAB);

	if (r == 0 || is_final(r))
		return r;
	r = add_debug_file(s, t, m, file);
	if (r == 0 || is_final(r))
		return r;
	r = add_mini(s, t, &file->elf);
	if (is_final(r))
		return r;
	r = add_source(s, t, &file->elf, SHT_DYNSYM);
	return is_final(r) ? r : 0;
}

/* Where code begins: labels of assembly are names there. */
static int add_starts(struct symbols *s, struct symbol_table *t, const struct elf *elf)
{
	struct elf_fdes fdes;

	if (elf_fdes_open(elf, &fdes) == 0 && !symbol_work_take(s, (uint64_t)fdes.count * ELF_FDES_ENTRY))
		return -EAGAIN;
	return elf_symbols_use_fdes(&t->symbols, elf);
}

int symbol_table_load(struct symbols *s, const struct symbol_object *m, struct symbol_file *file,
		      struct symbol_table **out)
{
	scoped(table_freep) struct symbol_table *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->fds[0] = t->fds[1] = -1;
	elf_symbols_init(&t->symbols, elf_base(&m->elf));
	r = add_starts(s, t, &file->elf);
	if (r == 0)
		r = add_functions(s, t, m, file);
	if (r == 0 && !t->strings[ELF_STRINGS_STATIC].size && pclntab_open(&file->elf, &t->go) < 0)
		t->go = (struct pclntab){ 0 };
	if (r == 0)
		r = add_plt(t, &file->elf);
	if (r < 0)
		return r;
	if (!t->symbols.count && !t->go.count)
		return -ENOENT;
	elf_symbols_finish(&t->symbols, &file->elf, t->strings);
	t->memory += sizeof(*t) + t->symbols.cap * sizeof(*t->symbols.items);
	t->fds[0] = file->view.fd;
	file->view.fd = -1; /* moved into the table */
	*out = t;
	t = NULL;
	return 0;
}
