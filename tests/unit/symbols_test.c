/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/symbol.h"

struct session {
	struct files *files;
	struct symbols *symbols;
};

static void session_open(struct session *s, const char *host_root)
{
	const struct symbols_config cfg = { .host_root = host_root };

	assert_int_equal(files_open(64, &s->files), 0);
	assert_int_equal(symbols_open(&cfg, s->files, &s->symbols), 0);
}

static void session_close(struct session *s)
{
	symbols_close(s->symbols);
	files_close(s->files);
}

static uint32_t add_file(struct session *s, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct file_key key;
	struct stat st;
	uint32_t id;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	file_key_of(&st, &key);
	assert_int_equal(files_add(s->files, fd, &key, str_of(path), &id), 0);
	return id;
}

#define assert_str(s, wanted)                                                                             \
	do {                                                                                              \
		struct str assert_s_ = (s);                                                               \
		if (!str_eq(assert_s_, str_of(wanted)))                                                   \
			fail_msg("%s is \"" STR_FMT "\", not \"%s\"", #s, STR_ARG(assert_s_), (wanted)); \
	} while (0)

/* Offset in our own file of one of our functions: where it runs, less where the first page of the file is mapped. */
static uint64_t own_offset(const void *code)
{
	extern const char __executable_start[];
	uint64_t base = (uint64_t)(uintptr_t)__executable_start;
	scoped(freep) char *line = NULL;
	size_t cap = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t at = (uint64_t)(uintptr_t)code, found = 0;

	assert_non_null(maps);
	assert_true(at > base);
	while (getline(&line, &cap, maps) > 0) {
		unsigned long start, end, offset;

		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && at >= start && at < end)
			found = at - start + offset;
	}
	fclose(maps);
	assert_true(found);
	return found;
}

static void names_our_own_functions(void **state)
{
	struct session s;
	struct symbol symbol;
	struct symbol_module module;
	uint64_t offset = own_offset((const void *)(uintptr_t)own_offset);
	uint32_t id;

	(void)state;
	session_open(&s, "");
	id = add_file(&s, "/proc/self/exe");
	assert_int_equal(symbols_native(s.symbols, id, offset, false, &symbol), 0);
	assert_true(symbol.has_name);
	assert_str(symbol.name, "own_offset");
	assert_int_equal(symbol.address, symbol.start);
	/* As a return address the first byte belongs to the function before. */
	assert_int_equal(symbols_native(s.symbols, id, offset, true, &symbol), 0);
	assert_false(str_eq(symbol.name, STR("own_offset")));
	assert_int_equal(symbols_native(s.symbols, id, offset + 1, true, &symbol), 0);
	assert_str(symbol.name, "own_offset");
	assert_int_equal(symbols_module(s.symbols, id, &module), 0);
	assert_str(module.path, "/proc/self/exe");
	assert_int_equal(module.build_id.size, 20);
	assert_int_equal(symbols_module(s.symbols, 99, &module), -ENOENT);
	session_close(&s);
}

/* The vDSO of this process, whole: the auxiliary vector tells where it starts, the mappings how long it is. */
static size_t own_vdso(const void **out)
{
	uint64_t at = getauxval(AT_SYSINFO_EHDR);
	scoped(freep) char *line = NULL;
	FILE *maps = fopen("/proc/self/maps", "re");
	size_t cap = 0, size = 0;

	assert_non_null(maps);
	while (getline(&line, &cap, maps) > 0) {
		unsigned long start, end;

		if (at && sscanf(line, "%lx-%lx", &start, &end) == 2 && start == at)
			size = end - start;
	}
	fclose(maps);
	*out = (const void *)(uintptr_t)at;
	return size;
}

static void names_the_vdso(void **state)
{
	const void *image;
	size_t size = own_vdso(&image);
	struct session s;
	struct symbol symbol;
	bool found = false;
	uint32_t id;

	(void)state;
	if (!size)
		skip();
	session_open(&s, "");
	assert_int_equal(files_add_image(s.files, image, size, STR("[vdso]"), &id), 0);
	for (uint64_t offset = 0; offset < size && !found; offset += 16) {
		assert_int_equal(symbols_native(s.symbols, id, offset, false, &symbol), 0);
		assert_str(symbol.module, "[vdso]");
		found = str_search(symbol.name, STR("clock_gettime")) >= 0;
	}
	assert_true(found);
	session_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_our_own_functions),
		cmocka_unit_test(names_the_vdso),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
