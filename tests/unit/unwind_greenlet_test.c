/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "object/unwind/table.h"
#include "object/unwind/text.h"

struct library { /* one of greenlet_shape.S */
	void *handle;
	int fd;
	uint64_t base;
	struct elf elf;
	struct unwind_table table;
};

static int read_file(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all(*(int *)self, dst, size, offset);
}

static void library_release(struct library *l)
{
	unwind_table_release(&l->table);
	elf_release(&l->elf);
	closep(&l->fd);
	if (l->handle)
		dlclose(l->handle);
}

/* Return: its path in HEARTH_GREENLET_SHAPES, a list with spaces in between. */
static const char *path_of(const char *name)
{
	static char path[512];
	const char *all = getenv("HEARTH_GREENLET_SHAPES"), *found = all ? strstr(all, name) : NULL, *start = found,
		   *end;

	if (!found)
		skip_because("no libraries to read here");
	while (start > all && start[-1] != ' ')
		start--;
	end = strchrnul(start, ' ');
	must((size_t)(end - start) < sizeof(path));
	memcpy(path, start, (size_t)(end - start));
	path[end - start] = 0;
	return path;
}

static void open_library(const char *name, struct library *out)
{
	const char *path = path_of(name);
	struct reader in = { .read = read_file, .self = &out->fd };
	Dl_info info;
	struct stat st;

	out->fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(out->fd >= 0 && fstat(out->fd, &st) == 0);
	in.size = (uint64_t)st.st_size;
	out->handle = dlopen(path, RTLD_NOW);
	assert_non_null(out->handle);
	assert_true(dladdr(dlsym(out->handle, "at_move"), &info));
	out->base = (uint64_t)(uintptr_t)info.dli_fbase;
	assert_int_equal(elf_parse(&in, &out->elf), 0);
	assert_int_equal(unwind_table_build(&out->elf, NULL, &out->table), 0);
}

/* The row that a walk uses at label @name, or, @is_return, for the return address there. */
static const struct abi_row *row_at(const struct library *l, const char *name, bool is_return)
{
	void *at = dlsym(l->handle, name);
	uint64_t offset;

	assert_non_null(at);
	assert_int_equal(elf_offset_of(&l->elf, (uint64_t)(uintptr_t)at - l->base - is_return, &offset), 0);
	return unwind_table_find(l->table.elements, offset);
}

struct want {
	const char *label;
	bool is_return;
	uint8_t cfa;
};

static void check(const struct library *l, const struct want *wanted, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct abi_row *row = row_at(l, wanted[i].label, wanted[i].is_return);

		print_message("  %s%s\n", wanted[i].label, wanted[i].is_return ? " (return address)" : "");
		assert_non_null(row);
		assert_int_equal(row->cfa, wanted[i].cfa);
		if (row->cfa == ABI_CFA_MOVED)
			assert_int_equal(row->cfa_off, ABI_MOVED_NOW);
	}
}

/* What every version has: two stacks are mixed from the move of the stack pointer to the end of g_switchstack. */
static void check_switch(const struct library *l)
{
	static const struct want wanted[] = {
		{ "at_move", false, ABI_CFA_SP }, /* not yet moved */
		{ "at_move", true, ABI_CFA_SP },  /* while the old stack is saved */
		{ "at_moved", false, ABI_CFA_MOVED },    { "at_restored", true, ABI_CFA_MOVED },
		{ "at_restored", false, ABI_CFA_MOVED }, /* the Python frames are still the old ones */
		{ "at_not_saved", false, ABI_CFA_SP },   { "at_switch", false, ABI_CFA_SP },
		{ "at_switched", true, ABI_CFA_SP },     { "at_switched", false, ABI_CFA_MOVED },
		{ "at_other", true, ABI_CFA_SP }, /* in another greenlet that waits, or the first one */
	};

	check(l, wanted, ARRAY_SIZE(wanted));
}

/* As in 0.4 and 1.1: only what runs when the result is 1 is a new greenlet's. */
static void finds_the_entry_by_its_comparison(void **state)
{
	static const struct want wanted[] = {
		{ "at_before", false, ABI_CFA_SP }, { "at_switched_to", true, ABI_CFA_SP },
		{ "at_parent", false, ABI_CFA_SP }, { "at_new", false, ABI_CFA_STOP },
		{ "at_again", true, ABI_CFA_STOP },
	};
	scoped(library_release) struct library l = { .fd = -1 };

	(void)state;
	open_library("shape_compared", &l);
	check_switch(&l);
	check(&l, wanted, ARRAY_SIZE(wanted));
}

/* As from 2.0 on; the call goes through the PLT. */
static void finds_the_entry_by_its_name(void **state)
{
	static const struct want wanted[] = {
		{ "at_before", false, ABI_CFA_SP },      { "at_switched_to", true, ABI_CFA_SP },
		{ "at_parent", false, ABI_CFA_SP },      { "at_call", true, ABI_CFA_SP },
		{ "at_called", true, ABI_CFA_STOP },     { "at_entry_end", true, ABI_CFA_STOP },
		{ "at_entry_end", false, ABI_CFA_STOP },
	};
	scoped(library_release) struct library l = { .fd = -1 };

	(void)state;
	open_library("shape_named", &l);
	check_switch(&l);
	check(&l, wanted, ARRAY_SIZE(wanted));
}

/* Stacks are moved, and nobody knows where they begin: nothing of the file is walked through. */
static void walks_through_nothing_without_an_entry(void **state)
{
	static const char *const labels[] = { "at_before", "at_move", "at_switched", "at_other", "at_new" };
	scoped(library_release) struct library l = { .fd = -1 };

	(void)state;
	open_library("shape_bare", &l);
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
		const struct abi_row *row = row_at(&l, labels[i], false);

		assert_non_null(row);
		assert_int_equal(row->cfa, ABI_CFA_MOVED);
		assert_int_equal(row->cfa_off, ABI_MOVED_UNKNOWN);
	}
}

/* The same code in a library that is no module of this name. */
static void leaves_other_files_alone(void **state)
{
	static const struct want wanted[] = { { "at_moved", false, ABI_CFA_SP },
					      { "at_switched", false, ABI_CFA_SP },
					      { "at_new", false, ABI_CFA_SP } };
	scoped(library_release) struct library l = { .fd = -1 };

	(void)state;
	open_library("shape_other", &l);
	check(&l, wanted, ARRAY_SIZE(wanted));
}

/* The same shape for aarch64, assembled once: tests/corpus/cfi/greenlet_aarch64. */
static void knows_the_instructions_of_aarch64(void **state)
{
	scoped(unwind_table_release) struct unwind_table t = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	scoped(elf_release) struct elf elf = { 0 };
	scoped(closep) int fd = -1;
	struct reader in = { .read = read_file, .self = &fd };
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	char path[512];
	struct stat st;

	(void)state;
	if (!root)
		skip_because("HEARTH_SOURCE_ROOT is not set");
	snprintf(path, sizeof(path), "%s/tests/corpus/cfi/greenlet_aarch64", root);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	in.size = (uint64_t)st.st_size;
	in = reader_slice(&in, 1, in.size); /* behind the fuzz target's own byte */
	assert_int_equal(elf_parse(&in, &elf), 0);
	assert_int_equal(unwind_table_build(&elf, NULL, &t), 0);
	unwind_text(&elf, &t, &text);
	assert_non_null(strstr(buf_cstr(&text), "\n00000000000003b0 moving\n00000000000003c4 sp+16 c-16 c-8\n"));
	assert_non_null(strstr(buf_cstr(&text), "\n00000000000003d8 moving\n00000000000003e0 sp+0 s s\n"));
	assert_non_null(strstr(buf_cstr(&text), "\n00000000000003f8 stop\n0000000000000404 sp+16 c-16 c-8\n"));
}

/* Makes the function with label @name stand twice in the sorted table of .eh_frame_hdr, in the place of the first. */
static void list_twice(const struct library *l, const char *name, uint8_t *file, size_t size)
{
	uint64_t address = (uint64_t)(uintptr_t)dlsym(l->handle, name) - l->base;
	uint64_t offset = 0, hdr = 0;
	uint32_t count, at = 0;

	for (size_t i = 0; i < l->elf.segment_count; i++)
		if (l->elf.segments[i].type == PT_GNU_EH_FRAME) {
			offset = l->elf.segments[i].offset;
			hdr = l->elf.segments[i].address;
		}
	assert_true(offset && offset + 12 < size);
	memcpy(&count, file + offset + 8, sizeof(count));
	assert_in_range(count, 2, (size - offset - 12) / 8);
	for (uint32_t i = 0; i < count; i++) {
		int32_t start;

		memcpy(&start, file + offset + 12 + (size_t)i * 8, sizeof(start));
		if (hdr + (uint64_t)(int64_t)start <= address)
			at = i;
	}
	assert_true(at > 1);
	memmove(file + offset + 12, file + offset + 12 + 8, (size_t)at * 8);
}

static int read_copy(void *self, void *dst, size_t size, uint64_t offset)
{
	memcpy(dst, (const uint8_t *)self + offset, size);
	return 0;
}

/* A file may list one function as often as it likes: its code is looked at once. */
static void reads_no_code_twice(void **state)
{
	scoped(library_release) struct library l = { .fd = -1 }, copy = { .fd = -1 };
	scoped(freep) uint8_t *file = NULL;
	struct reader in = { .read = read_copy };
	struct stat st;

	(void)state;
	open_library("shape_compared", &l);
	must(fstat(l.fd, &st) == 0);
	file = malloc((size_t)st.st_size);
	assert_non_null(file);
	assert_int_equal(io_pread_all(l.fd, file, (size_t)st.st_size, 0), 0);
	list_twice(&l, "at_switched", file, (size_t)st.st_size);
	in.self = file;
	in.size = (uint64_t)st.st_size;
	assert_int_equal(elf_parse(&in, &copy.elf), 0);
	assert_int_equal(unwind_table_build(&copy.elf, NULL, &copy.table), 0);
	copy.handle = l.handle;
	copy.base = l.base;
	assert_int_equal(row_at(&copy, "at_new", false)->cfa, ABI_CFA_STOP);
	assert_int_equal(row_at(&copy, "at_switched", false)->cfa, ABI_CFA_MOVED);
	copy.handle = NULL;
}

static int build_failing(void *ctx)
{
	scoped(unwind_table_release) struct unwind_table t = { 0 };
	struct library *l = ctx;

	return unwind_table_build(&l->elf, NULL, &t);
}

static void survives_failing_allocations(void **state)
{
	scoped(library_release) struct library l = { .fd = -1 };

	(void)state;
	open_library("shape_named", &l);
	for_each_failing_allocation(build_failing, &l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_entry_by_its_comparison),      cmocka_unit_test(finds_the_entry_by_its_name),
		cmocka_unit_test(walks_through_nothing_without_an_entry), cmocka_unit_test(leaves_other_files_alone),
		cmocka_unit_test(knows_the_instructions_of_aarch64),      cmocka_unit_test(reads_no_code_twice),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
