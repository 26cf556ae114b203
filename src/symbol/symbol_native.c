/* SPDX-License-Identifier: Apache-2.0 */
/* From an open ELF file to a table of its functions. */
#include <elf.h>

#include "base/io.h"
#include "symbol/symbol_int.h"

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

/* One source of symbols. What it cannot give costs this source only; running out of memory ends the whole load. */
static int add_source(struct symbol_table *t, const struct elf *elf, uint32_t type)
{
	size_t before = t->symbols.count;
	size_t strings = type == SHT_DYNSYM ? ELF_STRINGS_DYNAMIC : ELF_STRINGS_STATIC;
	struct reader in;
	int r = elf_symbols_strings(elf, type, &in);

	if (r == 0)
		r = elf_symbols_add(&t->symbols, elf, type);
	if (r < 0 || t->symbols.count == before) {
		t->symbols.count = before;
		return r == -ENOMEM ? r : -ENOENT;
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

int symbol_table_load(struct symbols *s, const struct symbol_object *m, struct symbol_file *file,
		      struct symbol_table **out)
{
	scoped(table_freep) struct symbol_table *t = calloc(1, sizeof(*t));
	int r;

	(void)s;
	if (!t)
		return -ENOMEM;
	t->fds[0] = t->fds[1] = -1;
	elf_symbols_init(&t->symbols, elf_base(&m->elf));
	r = add_source(t, &file->elf, SHT_SYMTAB);
	if (r == -ENOENT)
		r = add_source(t, &file->elf, SHT_DYNSYM);
	if (r == 0 || r == -ENOENT)
		r = add_plt(t, &file->elf);
	if (r < 0)
		return r;
	if (!t->symbols.count)
		return -ENOENT;
	elf_symbols_finish(&t->symbols, &file->elf, t->strings);
	t->memory = sizeof(*t) + t->symbols.cap * sizeof(*t->symbols.items);
	t->fds[0] = file->view.fd;
	file->view.fd = -1; /* moved into the table */
	*out = t;
	t = NULL;
	return 0;
}
