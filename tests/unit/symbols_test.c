/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "object/demangle.h"
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

#define assert_str(s, wanted)                                                                            \
	do {                                                                                             \
		struct str assert_s_ = (s);                                                              \
		if (!str_eq(assert_s_, str_of(wanted)))                                                  \
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
		skip_because("this process has no vDSO");
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

static void demangles(void **state)
{
	static const struct {
		const char *name, *mangled, *want;
	} cases[] = {
		{ "C++", "_ZN4node5StartEiPPc", "node::Start(int, char**)" },
		{ "C++ clone", "_ZL3addii.constprop.0", "add(int, int) [clone .constprop.0]" },
		{ "Rust, v0", "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
		{ "Rust, legacy", "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt" },
		{ "D", "_D3std5stdio4File5closeMFZv", "std.stdio.File.close()" },
		{ "C", "main", "main" },
		{ "Go", "main.(*T).Run", "main.(*T).Run" },
		{ "only looks like C++", "_Zebra", "_Zebra" },
		{ "of a PLT entry", "_Znwm@plt", "_Znwm@plt" },
		{ "empty", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(128));

		print_message("  %s\n", cases[i].name);
		demangle_add(str_of(cases[i].mangled), &out);
		assert_str(buf_str(&out), cases[i].want);
	}
}

static void demangling_is_bounded(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	scoped(buf_release) struct buf bomb = BUF_INIT(KIB(64)), out = BUF_INIT(KIB(128));

	(void)state;
	/* Each argument is twice the one before: the readable form would have 2^34 bytes. */
	buf_adds(&bomb, STR("_Z1fSt4pairIiiE"));
	for (int i = 0; i < 34; i++)
		buf_addf(&bomb, "S_IS%c_S%c_E", digits[i], digits[i]);
	demangle_add(buf_str(&bomb), &out);
	assert_true(str_eq(buf_str(&out), buf_str(&bomb))); /* as it is */
	/* The same in Rust: pairs of references to the pair before. */
	buf_clear(&bomb);
	buf_clear(&out);
	buf_adds(&bomb, STR("_RINvC1a1bTllETB7_B7_ETBb_Bb_ETBj_Bj_ETBr_Br_ETBz_Bz_ETBH_BH_ETBP_BP_ETBX_BX_ETB"
			    "15_B15_ETB1d_B1d_ETB1n_B1n_ETB1x_B1x_ETB1H_B1H_ETB1R_B1R_ETB21_B21_ETB2b_B2b_ETB"
			    "2l_B2l_ETB2v_B2v_ETB2F_B2F_ETB2P_B2P_ETB2Z_B2Z_ETB39_B39_ETB3j_B3j_ETB3t_B3t_ETB"
			    "3D_B3D_ETB3N_B3N_ETB3X_B3X_ETB47_B47_ETB4h_B4h_ETB4r_B4r_ETB4B_B4B_ETB4L_B4L_ETB"
			    "4V_B4V_ETB55_B55_EE"));
	demangle_add(buf_str(&bomb), &out);
	assert_true(str_eq(buf_str(&out), buf_str(&bomb)));
	buf_clear(&bomb);
	buf_clear(&out);
	buf_adds(&bomb, STR("_Z1f"));
	for (int i = 0; i < 15000; i++)
		buf_addc(&bomb, 'P'); /* deep: a pointer to a pointer to ... */
	buf_addc(&bomb, 'i');
	demangle_add(buf_str(&bomb), &out);
	assert_int_equal(out.error, 0);
	assert_true(out.len > 0);
}

static int temporary(const char *text)
{
	char path[] = "/tmp/hearth-symbols-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	return fd;
}

static void append(int fd, const char *text)
{
	assert_int_equal(lseek(fd, 0, SEEK_END) >= 0, 1);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void expect_jit(struct session *s, uint64_t key, int fd, uint64_t address, const char *wanted)
{
	struct symbol symbol;

	assert_int_equal(symbols_jit(s->symbols, key, fd, address, false, &symbol), 0);
	assert_str(symbol.name, wanted);
	assert_int_equal(symbol.has_name, wanted[0] != '[');
}

static void follows_perf_maps(void **state)
{
	scoped(closep) int fd = temporary("1000 10 first\n2000 10 sec");
	scoped(closep) int other = temporary("1000 10 other process\n");
	scoped(closep) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct session s;

	(void)state;
	session_open(&s, "");
	expect_jit(&s, 1, fd, 0x1000, "first");
	expect_jit(&s, 1, fd, 0x2000, "[jit+0x2000]"); /* its line is not whole yet */
	append(fd, "ond\n1000 8 first moved\n");
	expect_jit(&s, 1, fd, 0x2000, "second");
	expect_jit(&s, 1, fd, 0x1007, "first moved");
	expect_jit(&s, 1, fd, 0x1008, "first");
	expect_jit(&s, 2, other, 0x1007, "other process");
	expect_jit(&s, 3, null, 0x1007, "[jit+0x1007]");
	expect_jit(&s, 4, -1, 0x1007, "[jit+0x1007]");
	assert_int_equal(ftruncate(fd, 0), 0);
	append(fd, "3000 10 new\n");
	expect_jit(&s, 1, fd, 0x3000, "new");
	expect_jit(&s, 1, fd, 0x2000, "[jit+0x2000]");
	/* Written over with more than there was. */
	assert_int_equal(ftruncate(fd, 0), 0);
	append(fd, "4000 10 newer\n4010 10 newest\n");
	expect_jit(&s, 1, fd, 0x3000, "[jit+0x3000]");
	expect_jit(&s, 1, fd, 0x401f, "newest");
	/* The process is gone, its descriptor too: what was read stays. */
	expect_jit(&s, 1, -1, 0x401f, "newest");
	session_close(&s);
}

/* A record JIT_CODE_LOAD of a function of 16 bytes, which are left out: cut records end a file. */
static void append_load(int fd, uint64_t time_ns, uint64_t address, const char *name)
{
	const struct {
		uint32_t type, size;
		uint64_t time_ns;
		uint32_t pid, tid;
		uint64_t vma, address, code_size, index;
	} load = { 0, (uint32_t)(sizeof(load) + strlen(name) + 1 + 16), time_ns, 1, 1, address, address, 16, address };
	static const char code[16];

	assert_int_equal(lseek(fd, 0, SEEK_END) >= 0, 1);
	assert_int_equal(write(fd, &load, sizeof(load)), sizeof(load));
	assert_int_equal(write(fd, name, strlen(name) + 1), (ssize_t)strlen(name) + 1);
	assert_int_equal(write(fd, code, sizeof(code)), sizeof(code));
}

static void follows_jitdumps(void **state)
{
	const struct {
		uint32_t magic, version, size, machine, pad, pid;
		uint64_t time_ns, flags;
	} header = { 0x4a695444, 1, 40, 62, 0, 1, 5, 0 };
	const struct timespec second = { .tv_sec = 1, .tv_nsec = 50000000 };
	scoped(closep) int fd = temporary("");
	struct session s;

	(void)state;
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	append_load(fd, 10, 0x1000, "first");
	session_open(&s, "");
	expect_jit(&s, 1, fd, 0x100f, "first");
	expect_jit(&s, 1, fd, 0x1010, "[jit+0x1010]");
	append_load(fd, 20, 0x1000, "later");
	append_load(fd, 20, 0x2000, "other");
	expect_jit(&s, 1, fd, 0x1000, "first"); /* read a moment ago */
	assert_int_equal(nanosleep(&second, NULL), 0);
	expect_jit(&s, 1, fd, 0x1000, "later");
	expect_jit(&s, 1, fd, 0x2000, "other");
	expect_jit(&s, 1, -1, 0x2000, "other"); /* gone: what was read stays */
	assert_int_equal(ftruncate(fd, 20), 0); /* no jitdump any more */
	assert_int_equal(nanosleep(&second, NULL), 0);
	expect_jit(&s, 1, fd, 0x2000, "other");
	assert_int_equal(ftruncate(fd, 0), 0);
	append(fd, "3000 10 of a map\n");
	expect_jit(&s, 1, fd, 0x3000, "of a map");
	expect_jit(&s, 1, fd, 0x2000, "[jit+0x2000]");
	session_close(&s);
}

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void expect_kernel(const char *list, uint64_t address, bool is_return, const char *name, const char *module)
{
	char root[] = "/tmp/hearth-symbols-XXXXXX", path[64];
	struct symbols_stats stats;
	struct symbol symbol;
	struct session s;

	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/proc", root);
	assert_int_equal(mkdir(path, 0700), 0);
	if (list)
		write_file(path, "kallsyms", list);
	session_open(&s, root);
	assert_int_equal(symbols_kernel(s.symbols, address, is_return, &symbol), 0);
	assert_str(symbol.name, name);
	assert_str(symbol.module, module);
	assert_int_equal(symbol.address, address);
	symbols_stats(s.symbols, &stats);
	assert_int_equal(stats.kernel_restricted, list && strstr(list, "00000000 T _text"));
	session_close(&s);
	if (list) {
		char file[128];

		snprintf(file, sizeof(file), "%s/kallsyms", path);
		unlink(file);
	}
	rmdir(path);
	rmdir(root);
}

static void names_kernel_code(void **state)
{
	static const char list[] = "ffffffff81000000 T _text\nffffffff81001000 T do_it\nffffffff81001100 T next_one\n"
				   "ffffffffc0000000 t read_block\t[ext4]\n";
	static const char kernel[] = "[kernel.kallsyms]";

	(void)state;
	expect_kernel(list, 0xffffffff81001004ULL, false, "do_it", kernel);
	expect_kernel(list, 0xffffffff81001100ULL, true, "do_it", kernel);
	expect_kernel(list, 0xffffffff81001100ULL, false, "next_one", kernel);
	expect_kernel(list, 0xffffffffc0000004ULL, false, "read_block", "[ext4]");
	expect_kernel(list, 0xffffffffa0000004ULL, false, "[kernel+0xffffffffa0000004]", kernel);
	expect_kernel("0000000000000000 T _text\n", 0xffffffff81001004ULL, false, "[kernel+0xffffffff81001004]",
		      kernel);
	expect_kernel(NULL, 0xffffffff81001004ULL, false, "[kernel+0xffffffff81001004]", kernel);
}

static void expect_at(struct symbols *s, uint64_t *now_ns, uint64_t seconds, bool named, uint64_t readings)
{
	struct symbols_stats stats;
	struct symbol symbol;

	*now_ns = seconds * NSEC_PER_SEC;
	assert_int_equal(symbols_kernel(s, 0xffffffffc0000004ULL, false, &symbol), 0);
	assert_int_equal(symbol.has_name, named);
	symbols_stats(s, &stats);
	assert_int_equal(stats.kernel_reads, readings);
}

/* Somebody writes a huge map anew before each look at it: reading it is given up, until time has passed. */
static void a_budget_ends_rereading(void **state)
{
	static const off_t size = MIB(200);
	uint64_t now_ns = NSEC_PER_SEC;
	const struct clock clock = { .monotonic_ns = simulated_ns, .wall_ns = simulated_ns, .self = &now_ns };
	const struct symbols_config cfg = { .host_root = "", .clock = &clock };
	scoped(closep) int fd = temporary("1000 10 first\n"), honest = temporary("1000 10 honest\n");
	struct symbols_stats stats;
	struct session s;

	(void)state;
	assert_int_equal(files_open(4, &s.files), 0);
	assert_int_equal(symbols_open(&cfg, s.files, &s.symbols), 0);
	for (off_t i = 0; i < 8; i++) {
		assert_int_equal(ftruncate(fd, size - i), 0); /* shorter: all of it is read again */
		expect_jit(&s, 1, fd, 0x1000, i < 1 ? "first" : "[jit+0x1000]");
	}
	symbols_stats(s.symbols, &stats);
	assert_int_equal(stats.refused, 7);
	expect_jit(&s, 2, honest, 0x1000, "honest"); /* a small one still fits */
	now_ns += 60 * NSEC_PER_SEC;
	expect_jit(&s, 1, fd, 0x1000, "first");
	session_close(&s);
}

/* Its end is damaged: only the last record says so. */
static void a_damaged_jitdump_costs_little(void **state)
{
	const uint32_t header[] = { 0x4a695444, 1, 40, 62, 0, 1, 5, 0, 0, 0 }, damaged[] = { 0, 3, 0, 0 };
	uint64_t now_ns = NSEC_PER_SEC;
	const struct clock clock = { .monotonic_ns = simulated_ns, .wall_ns = simulated_ns, .self = &now_ns };
	const struct symbols_config cfg = { .host_root = "", .clock = &clock };
	scoped(closep) int fd = temporary("");
	struct symbols_stats stats;
	struct session s;

	(void)state;
	assert_int_equal(write(fd, header, sizeof(header)), sizeof(header));
	for (uint64_t i = 0; i < 50000; i++)
		append_load(fd, 10, 0x1000 + 16 * i, "some");
	assert_int_equal(write(fd, damaged, sizeof(damaged)), sizeof(damaged));
	assert_int_equal(files_open(4, &s.files), 0);
	assert_int_equal(symbols_open(&cfg, s.files, &s.symbols), 0);
	for (uint64_t i = 0; i < 300; i++)
		expect_jit(&s, 1, fd, 0x5000, "[jit+0x5000]");
	symbols_stats(s.symbols, &stats);
	assert_int_equal(stats.refused, 0);
	session_close(&s);
}

static void reads_the_kernel_list_again(void **state)
{
	static const char before[] = "ffffffff81000000 T _text\n",
			  after[] = "ffffffff81000000 T _text\nffffffffc0000000 t read_block\t[ext4]\n";
	char root[] = "/tmp/hearth-symbols-XXXXXX", folder[64], file[128];
	uint64_t now_ns = 0;
	const struct clock clock = { .monotonic_ns = simulated_ns, .wall_ns = simulated_ns, .self = &now_ns };
	const struct symbols_config cfg = { .host_root = root, .clock = &clock };
	struct session s;

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(folder, sizeof(folder), "%s/proc", root);
	assert_int_equal(mkdir(folder, 0700), 0);
	write_file(folder, "kallsyms", before);
	write_file(folder, "modules", "loop 4096 0 - Live 0x0\n");
	assert_int_equal(files_open(4, &s.files), 0);
	assert_int_equal(symbols_open(&cfg, s.files, &s.symbols), 0);
	expect_at(s.symbols, &now_ns, 100, false, 1);
	write_file(folder, "kallsyms", after);
	write_file(folder, "modules", "loop 4096 9 - Live 0x0\n"); /* only a use count */
	expect_at(s.symbols, &now_ns, 115, false, 1);
	write_file(folder, "modules", "loop 4096 0 - Live 0x0\next4 1 0 - Live 0x0\n");
	expect_at(s.symbols, &now_ns, 124, false, 1); /* asked 9 s ago */
	expect_at(s.symbols, &now_ns, 126, true, 2);
	write_file(folder, "kallsyms", before);
	expect_at(s.symbols, &now_ns, 300, true, 2); /* a hit asks for nothing */
	session_close(&s);
	/* Without a change of the modules: after a minute. */
	assert_int_equal(files_open(4, &s.files), 0);
	assert_int_equal(symbols_open(&cfg, s.files, &s.symbols), 0);
	expect_at(s.symbols, &now_ns, 400, false, 1);
	write_file(folder, "kallsyms", after);
	expect_at(s.symbols, &now_ns, 450, false, 1);
	expect_at(s.symbols, &now_ns, 461, true, 2);
	session_close(&s);
	snprintf(file, sizeof(file), "%s/kallsyms", folder);
	unlink(file);
	snprintf(file, sizeof(file), "%s/modules", folder);
	unlink(file);
	rmdir(folder);
	rmdir(root);
}

/* Path of the C library that is mapped here, or "". */
static void libc_path(char *out, size_t size)
{
	scoped(freep) char *line = NULL;
	FILE *maps = fopen("/proc/self/maps", "re");
	size_t cap = 0;

	out[0] = 0;
	assert_non_null(maps);
	while (getline(&line, &cap, maps) > 0)
		if (strstr(line, "/libc.so.6") && !out[0])
			snprintf(out, size, "%.*s", (int)strcspn(strchr(line, '/'), "\n"), strchr(line, '/'));
	fclose(maps);
}

/* Two inodes with the same content; then a budget that holds one table only. */
static void shares_and_drops_tables(void **state)
{
	const struct symbols_config small = { .host_root = "/nonexistent", .memory_max = 1 };
	scoped(buf_release) struct buf exe = BUF_INIT(MIB(64));
	char copy[] = "/tmp/hearth-symbols-XXXXXX", libc[256];
	uint64_t offset = own_offset((const void *)(uintptr_t)own_offset);
	uint32_t ids[3] = { 0 };
	struct symbols_stats stats;
	struct symbol symbol;
	struct session s;
	int fd = mkstemp(copy);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(io_read_file("/proc/self/exe", &exe), 0);
	assert_int_equal(io_write_all(fd, exe.ptr, exe.len), 0);
	close(fd);
	session_open(&s, "/nonexistent");
	ids[0] = add_file(&s, "/proc/self/exe");
	ids[1] = add_file(&s, copy);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(symbols_native(s.symbols, ids[i % 2], offset, false, &symbol), 0);
		assert_str(symbol.name, "own_offset");
	}
	symbols_stats(s.symbols, &stats);
	assert_int_equal(stats.tables_loaded, 1);
	session_close(&s);
	assert_int_equal(files_open(4, &s.files), 0);
	assert_int_equal(symbols_open(&small, s.files, &s.symbols), 0);
	libc_path(libc, sizeof(libc));
	ids[0] = add_file(&s, "/proc/self/exe");
	ids[1] = add_file(&s, libc[0] ? libc : copy);
	for (int i = 0; i < 4; i++)
		assert_int_equal(symbols_native(s.symbols, ids[i % 2], offset, false, &symbol), 0);
	symbols_stats(s.symbols, &stats);
	if (libc[0]) {
		assert_int_equal(stats.tables_loaded, 4);
		assert_int_equal(stats.tables_evicted, 3);
	}
	session_close(&s);
	unlink(copy);
}

static void falls_back_to_the_module(void **state)
{
	scoped(closep) int not_elf =
		temporary("no ELF file at all, but long enough to have had a header if it were one");
	static const struct file_key gone_key = { 1, 2, 3, 4 }, other_key = { 5, 6, 7, 8 };
	struct symbols_stats stats;
	struct file_key key;
	struct symbol symbol;
	struct session s;
	struct stat st;
	uint32_t id;

	(void)state;
	session_open(&s, "");
	assert_int_equal(fstat(not_elf, &st), 0);
	file_key_of(&st, &key);
	assert_int_equal(files_add(s.files, dup(not_elf), &key, STR("/opt/data.bin"), &id), 0);
	assert_int_equal(symbols_native(s.symbols, id, 0x123, true, &symbol), 0);
	assert_str(symbol.name, "[data.bin+0x123]");
	assert_str(symbol.module, "/opt/data.bin");
	assert_false(symbol.has_name);
	assert_false(symbols_root(s.symbols, id, 0x123));
	assert_int_equal(files_add(s.files, -1, &gone_key, STR("/nonexistent/libgone.so"), &id), 0);
	assert_int_equal(symbols_native(s.symbols, id, 0x4567, true, &symbol), 0);
	assert_str(symbol.name, "[libgone.so+0x4567]");
	/* Another file stands under that path by now. */
	assert_int_equal(files_add(s.files, -1, &other_key, STR("/proc/self/exe"), &id), 0);
	assert_int_equal(symbols_native(s.symbols, id, 0x4567, true, &symbol), 0);
	assert_str(symbol.name, "[exe+0x4567]");
	assert_int_equal(symbols_native(s.symbols, 77, 0x4567, true, &symbol), 0);
	assert_str(symbol.name, "[unknown+0x4567]");
	assert_int_equal(symbols_native(s.symbols, 0, UINT64_MAX, true, &symbol), 0);
	assert_str(symbol.name, "[unknown+0xffffffffffffffff]");
	symbols_stats(s.symbols, &stats);
	assert_int_equal(stats.unnamed, 5);
	assert_true(stats.files_failed >= 3);
	session_close(&s);
}

static void assert_has_name(struct session *s, uint32_t id, uint64_t offset, bool wanted)
{
	struct symbol symbol;

	assert_int_equal(symbols_native(s->symbols, id, offset, false, &symbol), 0);
	assert_int_equal(symbol.has_name, wanted);
	if (wanted)
		assert_str(symbol.name, "own_offset");
}

/* A container's file whose descriptor was given up, and which no process has mapped just then. @is_known: its headers
 * were read before. */
static void brings_back(bool is_known)
{
	uint64_t now_ns = NSEC_PER_SEC, offset = own_offset((const void *)(uintptr_t)own_offset);
	const struct clock clock = { .monotonic_ns = simulated_ns, .wall_ns = simulated_ns, .self = &now_ns };
	const struct symbols_config cfg = { .host_root = "", .clock = &clock };
	scoped(buf_release) struct buf exe = BUF_INIT(MIB(64));
	char copy[] = "/tmp/hearth-symbols-XXXXXX", away[64];
	scoped(closep) int fd = mkstemp(copy);
	struct symbol_module module;
	struct symbols_stats stats;
	struct file_key key;
	struct session s;
	struct stat st;
	uint32_t id;

	assert_true(fd >= 0);
	assert_int_equal(io_read_file("/proc/self/exe", &exe), 0);
	assert_int_equal(io_write_all(fd, exe.ptr, exe.len), 0);
	assert_int_equal(fstat(fd, &st), 0);
	file_key_of(&st, &key);
	snprintf(away, sizeof(away), "%s.away", copy);
	assert_int_equal(files_open(4, &s.files), 0);
	assert_int_equal(symbols_open(&cfg, s.files, &s.symbols), 0);
	assert_int_equal(files_add(s.files, -1, &key, str_of(copy), &id), 0);
	if (is_known)
		assert_int_equal(symbols_module(s.symbols, id, &module), 0);
	assert_int_equal(rename(copy, away), 0);
	assert_has_name(&s, id, offset, false);
	now_ns += 30 * NSEC_PER_SEC;
	assert_has_name(&s, id, offset, false);
	assert_int_equal(rename(away, copy), 0);
	now_ns += 59 * NSEC_PER_SEC; /* more rarely */
	assert_has_name(&s, id, offset, false);
	now_ns += NSEC_PER_SEC;
	assert_has_name(&s, id, offset, true);
	assert_int_equal(symbols_module(s.symbols, id, &module), 0);
	assert_int_equal(module.build_id.size, 20);
	assert_str(module.path, copy);
	symbols_stats(s.symbols, &stats);
	assert_int_equal(stats.files_failed, 1);
	session_close(&s);
	unlink(copy);
}

static void what_is_away_is_tried_again(void **state)
{
	(void)state;
	brings_back(false);
	brings_back(true);
}

#ifdef __x86_64__
/* Functions that nothing calls; whether a coroutine begins with them; the code that says so, or something like it. */
#define COROUTINES(X)                                                                                                  \
	X(by_rax, true, "and $-16,%rax; movq $0,-8(%rax); mov 8(%rdi),%rdx; lea by_rax(%rip),%rcx; mov %rcx,-8(%rdx)") \
	X(by_r12, true, "and $-16,%r12; call by_rax; movq $0,-8(%r12); lea by_r12(%rip),%r9; mov %r9,-8(%r13)")        \
	X(early, true, "and $-16,%rbx; lea early(%rip),%rcx; movq $0,-8(%rbx); nop; mov %rcx,-8(%rdx)")                \
	X(not_rounded, false, "movq $0,-8(%rax); lea not_rounded(%rip),%rcx; mov %rcx,-8(%rdx)")                       \
	X(other, false, "and $-16,%rcx; movq $0,-8(%rax); lea other(%rip),%rcx; mov %rcx,-8(%rdx)")                    \
	X(no_zero, false, "and $-16,%rax; movq $1,-8(%rax); lea no_zero(%rip),%rcx; mov %rcx,-8(%rdx)")                \
	X(elsewhere, false, "and $-16,%rax; movq $0,-8(%rax); lea elsewhere(%rip),%rcx; mov %rcx,-16(%rdx)")           \
	X(not_stored, false, "and $-16,%rax; movq $0,-8(%rax); lea not_stored(%rip),%rcx; mov %rsi,-8(%rdx)")          \
	X(again, false, "and $-16,%rax; movq $0,-8(%rax); lea again(%rip),%rcx; mov (%rdi),%rcx; mov %rcx,-8(%rdx)")   \
	X(jumps, false, "and $-16,%rax; movq $0,-8(%rax); lea jumps(%rip),%rcx; call by_rax; mov %rcx,-8(%rdx)")

#define X(name, begins, code)                                                                                     \
	extern const char name[];                                                                                 \
	asm(".text; .globl " #name "; .type " #name ",@function\n" #name ": .cfi_startproc; nop; nop; nop; ret\n" \
	    ".cfi_endproc; .size " #name ",.-" #name "\n"                                                         \
	    ".cfi_startproc; " code "; ret; .cfi_endproc");
COROUTINES(X)
#undef X

static void proves_coroutines(void **state)
{
	static const struct {
		const char *name, *at;
		bool begins;
	} cases[] = {
#define X(name, begins, code) { #name, name, begins },
		COROUTINES(X)
#undef X
	};
	uint32_t id, searches = 0;
	struct session s;

	(void)state;
	session_open(&s, "");
	id = add_file(&s, "/proc/self/exe");
	assert_false(symbols_begins_coroutine(s.symbols, id, own_offset(cases[0].at) + 1, &searches));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t at = own_offset(cases[i].at);
		uint32_t none = 0;

		searches = 4;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(symbols_begins_coroutine(s.symbols, id, at + 1, &searches), cases[i].begins);
		assert_int_equal(symbols_begins_coroutine(s.symbols, id, at + 4, &searches), cases[i].begins);
		assert_int_equal(searches, 2);
		assert_int_equal(symbols_begins_coroutine(s.symbols, id, at + 1, &none), cases[i].begins); /* kept */
		assert_false(symbols_begins_coroutine(s.symbols, id, at,
						      &searches)); /* the function before it calls there */
		assert_false(symbols_begins_coroutine(s.symbols, id, at + 5, &searches));
	}
	assert_false(symbols_begins_coroutine(s.symbols, id + 1, 1, &searches));
	session_close(&s);
}
#endif

static void proves_roots(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(16));
	char path[256];
	size_t roots = 0, calls = 0;
	struct session s;
	uint32_t id = 0;

	(void)state;
	session_open(&s, "");
	id = add_file(&s, "/proc/self/exe");
	assert_false(symbols_root(s.symbols, id, own_offset((const void *)(uintptr_t)proves_roots) + 8));
	/* The first byte of _start, as a return address, belongs to the code before it. */
	for (uint64_t at = own_offset((const void *)(uintptr_t)getauxval(AT_ENTRY)), i = 0; i < 0x20; i++)
		assert_int_equal(symbols_root(s.symbols, id, at + i), i > 0);
	/* Of all indirect calls of libc, those of clone and clone3 alone. */
	libc_path(path, sizeof(path));
	if (!path[0] || io_read_file(path, &bytes) < 0) {
		session_close(&s);
		print_message("  skipped: no libc.so.6 is mapped here\n");
		return;
	}
	id = add_file(&s, path);
	for (size_t at = 2; at < bytes.len; at++) {
		const uint8_t *p = (const uint8_t *)bytes.ptr + at;
		struct symbol symbol;

		if (p[-2] != 0xff || (p[-1] & 0xf8) != 0xd0)
			continue;
		calls++;
		if (!symbols_root(s.symbols, id, at))
			continue;
		roots++;
		assert_int_equal(symbols_native(s.symbols, id, at, true, &symbol), 0);
		print_message("  root: " STR_FMT "\n", STR_ARG(symbol.name));
	}
	print_message("  %zu roots behind %zu indirect calls\n", roots, calls);
#ifdef __x86_64__
	assert_true(roots >= 1 && roots <= 3);
#endif
	session_close(&s);
}

static int use_everything(void *ctx)
{
	const struct symbols_config cfg = { .host_root = "/nonexistent" };
	scoped(closep) int map = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct files *files = NULL;
	struct symbols *symbols = NULL;
	struct symbol symbol;
	struct file_key key;
	struct stat st;
	uint32_t id;
	int fd, r = files_open(8, &files);

	if (r == 0)
		r = symbols_open(&cfg, files, &symbols);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	must(fstat(fd, &st) == 0);
	file_key_of(&st, &key);
	if (r == 0)
		r = files_add(files, dup(fd), &key, STR("/proc/self/exe"), &id);
	closep(&fd);
	if (r == 0)
		r = symbols_native(symbols, id, *(uint64_t *)ctx, false, &symbol);
	if (r == 0 && !allocation_failed())
		must(symbol.has_name);
	if (r == 0)
		r = symbols_jit(symbols, 1, map, 0x1000, false, &symbol);
	if (r == 0)
		r = symbols_kernel(symbols, 0xffffffff81001004ULL, false, &symbol);
	symbols_close(symbols);
	files_close(files);
	return r;
}

static void survives_failing_allocations(void **state)
{
	uint64_t offset = own_offset((const void *)(uintptr_t)own_offset);

	(void)state;
	for_each_failing_allocation(use_everything, &offset);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_our_own_functions),
		cmocka_unit_test(names_the_vdso),
		cmocka_unit_test(demangles),
		cmocka_unit_test(demangling_is_bounded),
		cmocka_unit_test(follows_perf_maps),
		cmocka_unit_test(follows_jitdumps),
		cmocka_unit_test(a_damaged_jitdump_costs_little),
		cmocka_unit_test(a_budget_ends_rereading),
		cmocka_unit_test(names_kernel_code),
		cmocka_unit_test(reads_the_kernel_list_again),
		cmocka_unit_test(shares_and_drops_tables),
		cmocka_unit_test(falls_back_to_the_module),
		cmocka_unit_test(what_is_away_is_tried_again),
		cmocka_unit_test(proves_roots),
#ifdef __x86_64__
		cmocka_unit_test(proves_coroutines),
#endif
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
