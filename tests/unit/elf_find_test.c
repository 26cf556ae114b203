/* SPDX-License-Identifier: Apache-2.0 */
/* Two libraries of the same source, tests/corpus/elf_find: one with each form of the symbol hash; and this program. */
#include "support.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "object/elf_fde.h"
#include "object/elf_find.h"

static void read_seed(const char *name, struct buf *out)
{
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	char path[1024];

	snprintf(path, sizeof(path), "%s/tests/corpus/elf_find/%s", root ? root : ".", name);
	assert_int_equal(io_read_file(path, out), 0);
}

static void check_names(const struct elf *elf)
{
	static const char *const names[] = { "counter", "answer", "bump", "main_", "mai", "ounter", "" };
	struct elf_found table[ARRAY_SIZE(names)] = { 0 }, found;
	struct elf_dynamic dynamic;

	assert_int_equal(elf_dynamic_read(elf, &dynamic), 0);
	assert_int_equal(elf_symtab_find(elf, names, ARRAY_SIZE(names), table), 4);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int r = elf_dynamic_find(elf, &dynamic, names[i], &found);

		assert_int_equal(r, i < 4 ? 0 : -ENOENT);
		if (r < 0) {
			assert_int_equal(table[i].info, 0);
			continue;
		}
		assert_int_equal(found.address, table[i].address);
		assert_int_equal(found.size, table[i].size);
		assert_int_equal(ELF64_ST_TYPE(found.info), i < 2 ? STT_OBJECT : STT_FUNC);
	}
}

static void check_functions(const struct elf *elf)
{
	static const char *const name = "bump";
	struct elf_found found = { 0 };
	struct elf_fdes fdes;
	struct elf_fde fde;

	assert_int_equal(elf_symtab_find(elf, &name, 1, &found), 1);
	assert_int_equal(elf_fdes_open(elf, &fdes), 0);
	assert_int_equal(elf_fde_find(elf, &fdes, found.address + 1, &fde), 0);
	assert_int_equal(fde.start, found.address);
	assert_int_equal(fde.size, found.size);
	assert_int_equal(elf_fde_find(elf, &fdes, 0, &fde), -ENOENT);
	assert_int_equal(elf_fde_find(elf, &fdes, UINT64_MAX, &fde), -ENOENT);
	assert_int_equal(elf_fde_at(elf, &fdes, fdes.count, &fde), -ENOENT);
	for (uint32_t i = 0; i < fdes.count; i++) {
		assert_int_equal(elf_fde_at(elf, &fdes, i, &fde), 0);
		assert_true(elf_fde_room(&fdes, i) >= fde.size);
	}
}

static void both_forms(void **state)
{
	static const char *const seeds[] = { "seed.gnu", "seed.sysv" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
		scoped(elf_release) struct elf elf = { 0 };
		struct elf_dynamic dynamic;
		struct reader in;
		uint64_t slot;

		print_message("  %s\n", seeds[i]);
		read_seed(seeds[i], &bytes);
		in = reader_of(bytes.ptr, bytes.len);
		assert_int_equal(elf_parse(&in, &elf), 0);
		check_names(&elf);
		check_functions(&elf);
		assert_int_equal(elf_dynamic_read(&elf, &dynamic), 0);
		assert_int_equal(elf_dynamic_slot(&elf, &dynamic, "counter", &slot), 0);
		assert_int_equal(elf_dynamic_slot(&elf, &dynamic, "bump", &slot), -ENOENT);
		assert_int_equal(elf_dynamic_slot(&elf, &dynamic, "nothing", &slot), -ENOENT);
	}
}

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all((int)(intptr_t)self, dst, size, offset);
}

static void this_program(void **state)
{
	static const char *const name = "elf_fde_find";
	scoped(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	scoped(elf_release) struct elf elf = { 0 };
	const struct reader in = { .read = read_fd, .self = (void *)(intptr_t)fd, .size = MIB(1024) };
	struct elf_found found = { 0 };
	struct elf_fdes fdes;
	struct elf_fde fde;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(elf_parse(&in, &elf), 0);
	assert_int_equal(elf_symtab_find(&elf, &name, 1, &found), 1);
	assert_int_equal(elf_needs(&elf, STR("libc.so.6")), 1);
	assert_int_equal(elf_needs(&elf, STR("c.so.6")), 0);
	assert_int_equal(elf_needs(&elf, STR("libc.so")), 0);
	assert_int_equal(elf_needs(&elf, STR("libjvm.so")), 0);
	assert_int_equal(elf_needs(&elf, STR("")), 0);
	assert_int_equal(elf_fdes_open(&elf, &fdes), 0);
	assert_int_equal(elf_fde_find(&elf, &fdes, found.address + found.size - 1, &fde), 0);
	assert_int_equal(fde.start, found.address);
}

static int find_all(void *ctx)
{
	static const char *const name = "answer";
	scoped(elf_release) struct elf elf = { 0 };
	struct elf_found found = { 0 };
	struct elf_dynamic dynamic;
	struct reader in = *(const struct reader *)ctx;
	uint64_t slot;
	int r = elf_parse(&in, &elf);

	if (r == 0)
		r = elf_dynamic_read(&elf, &dynamic);
	if (r == 0)
		r = elf_needs(&elf, STR("libc.so.6"));
	if (r == 0)
		r = elf_dynamic_slot(&elf, &dynamic, "counter", &slot);
	if (r == 0)
		r = elf_symtab_find(&elf, &name, 1, &found);
	return r > 0 ? 0 : r;
}

static void out_of_memory(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
	struct reader in;

	(void)state;
	read_seed("seed.gnu", &bytes);
	in = reader_of(bytes.ptr, bytes.len);
	for_each_failing_allocation(find_all, &in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms),
		cmocka_unit_test(this_program),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
