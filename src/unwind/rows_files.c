/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/rows_files.h"

#include "unwind/elf_file.h"

static int span(void *self, uint32_t file_id, struct unwind_span *out)
{
	scoped(elf_file_release) struct elf_file file = ELF_FILE_INIT;
	struct rows_files *f = self;
	int r = elf_file_open(f->files, file_id, &file);

	if (r == 0)
		unwind_span_of(&file.elf, out);
	return r;
}

/* Code has dozens of rows a page. A file with less than one was built without .eh_frame, or had it stripped: its
 * separate debug file may have .debug_frame. */
static bool has_hardly_any(const struct elf_file *file, const struct unwind_table *table)
{
	struct unwind_span code;

	unwind_span_of(&file->elf, &code);
	return table->source != UNWIND_SOURCE_GO && table->stats.rows < code.pages;
}

static int build(void *self, uint32_t file_id, struct unwind_table *out)
{
	scoped(elf_file_release) struct elf_file file = ELF_FILE_INIT, debug = ELF_FILE_INIT;
	scoped(unwind_table_release) struct unwind_table table = { 0 }, more = { 0 };
	struct rows_files *f = self;
	int r = elf_file_open(f->files, file_id, &file);

	if (r == 0)
		r = unwind_table_build(&file.elf, NULL, &table);
	if (r < 0)
		return r;
	if (has_hardly_any(&file, &table) && elf_file_open_debug(f->host_root, &file, &debug) == 0 &&
	    unwind_table_build(&file.elf, &debug.elf, &more) == 0 && more.stats.rows > table.stats.rows) {
		*out = more;
		more = (struct unwind_table){ 0 };
		return 0;
	}
	*out = table;
	table = (struct unwind_table){ 0 };
	return 0;
}

struct rows_source rows_files_source(struct rows_files *f)
{
	return (struct rows_source){ .span = span, .build = build, .self = f };
}
