/* SPDX-License-Identifier: Apache-2.0 */
/* Names of real files against binutils' reading of them, and of files made here by the tools of the machine. What needs
 * a tool that is not installed is skipped by name. */
#include "support.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "object/elf.h"
#include "symbol/symbol.h"

#define SAMPLES_PER_FILE 200

struct oracle_symbol {
	uint64_t start, size;
	char *name;
};

struct oracle {
	struct oracle_symbol *items;
	size_t count, cap;
};

static void oracle_release(struct oracle *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->items[i].name);
	free(o->items);
}

static int by_start(const void *a, const void *b)
{
	uint64_t x = ((const struct oracle_symbol *)a)->start, y = ((const struct oracle_symbol *)b)->start;

	return (x > y) - (x < y);
}

static FILE *run(const char *format, const char *argument)
{
	scoped(buf_release) struct buf command = BUF_INIT(KIB(8));
	FILE *out;

	buf_addf(&command, "exec 2>/dev/null; %s '%s'", format, argument);
	out = popen(buf_cstr(&command), "re"); /* NOLINT: a test's own commands */
	assert_non_null(out);
	return out;
}

/* Lines of readelf -sW: "Num: Value Size Type Bind Vis Ndx Name[@version]". */
static void oracle_read(struct oracle *o, const char *path)
{
	FILE *in = run("readelf -sW", path);
	scoped(freep) char *line = NULL;
	size_t cap = 0;

	while (getline(&line, &cap, in) > 0) {
		unsigned long long start;
		char size_text[32], type[16], bind[16], index[16];
		scoped(freep) char *name = NULL;

		if (sscanf(line, " %*u: %llx %31s %15s %15s %*s %15s %ms", &start, size_text, type, bind, index,
			   &name) != 6)
			continue;
		if ((strcmp(type, "FUNC") && strcmp(type, "IFUNC")) || !strcmp(index, "UND") || !strcmp(index, "ABS"))
			continue;
		if (strchr(name, '@') && strchr(name, '@') > name)
			*strchr(name, '@') = 0;
		assert_int_equal(array_grow(&o->items, &o->cap, o->count, SIZE_MAX), 0);
		o->items[o->count++] = (struct oracle_symbol){ start, strtoull(size_text, NULL, 0), name };
		name = NULL;
	}
	pclose(in);
	if (o->count)
		qsort(o->items, o->count, sizeof(*o->items), by_start);
}

struct session {
	struct files *files;
	struct symbols *symbols;
	char root[64]; /* of debug files; removed at the end */
};

static void session_open(struct session *s, const char *host_root)
{
	const struct symbols_config cfg = { .host_root = host_root, .raw_names = true };

	assert_int_equal(files_open(64, &s->files), 0);
	assert_int_equal(symbols_open(&cfg, s->files, &s->symbols), 0);
}

static void session_close(struct session *s)
{
	symbols_close(s->symbols);
	files_close(s->files);
}

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all(*(int *)self, dst, size, offset);
}

/* Go's linker marks assembly functions in .symtab, not in its own table. */
static bool same_name(struct str ours, struct str theirs)
{
	return str_eq(ours, theirs) ||
	       (str_ends(theirs, STR(".abi0")) && str_eq(ours, str_first(theirs, theirs.len - 5)));
}

struct figure {
	size_t asked, agreed, files;
	bool only_go; /* C's functions are not in Go's table */
};

/* Our name in the middle of every n-th function of @o must be one of those that the oracle has there. */
static void compare(struct session *s, const struct oracle *o, const char *path, struct figure *out, bool loud)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct reader in = { .read = read_fd, .self = &fd };
	scoped(elf_release) struct elf elf = { 0 };
	struct file_key key;
	struct stat st;
	size_t step = o->count / SAMPLES_PER_FILE + 1;
	uint32_t id;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	in.size = (uint64_t)st.st_size;
	assert_int_equal(elf_parse(&in, &elf), 0);
	file_key_of(&st, &key);
	assert_int_equal(files_add(s->files, dup(fd), &key, str_of(path), &id), 0);
	out->files++;
	for (size_t i = 0; i < o->count; i += step) {
		uint64_t at = o->items[i].start + o->items[i].size / 2, offset;
		struct symbol symbol;
		size_t innermost = i;
		bool found = false;

		if (elf_offset_of(&elf, at, &offset) < 0 || (out->only_go && !strchr(o->items[i].name, '.')))
			continue;
		for (size_t j = i; j < o->count && o->items[j].start <= at; j++)
			if (at - o->items[j].start < o->items[j].size)
				innermost = j;
		assert_int_equal(symbols_native(s->symbols, id, offset, false, &symbol), 0);
		assert_int_equal(symbol.address, at);
		for (size_t j = 0; j < o->count && !found; j++)
			found = o->items[j].start == o->items[innermost].start &&
				same_name(symbol.system_name, str_of(o->items[j].name));
		out->asked++;
		out->agreed += found;
		if (!found && loud)
			print_message("  %s at %llx: " STR_FMT ", not %s\n", path, (unsigned long long)at,
				      STR_ARG(symbol.name), o->items[innermost].name);
	}
	close(fd);
}

static void compare_files(const char *oracle_path, const char *path, const char *host_root, struct figure *figure)
{
	scoped(oracle_release) struct oracle o = { 0 };
	struct session s;

	oracle_read(&o, oracle_path);
	session_open(&s, host_root);
	compare(&s, &o, path, figure, figure->asked == figure->agreed);
	session_close(&s);
}

static bool is_elf(const char *path)
{
	unsigned char head[5] = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is = fd >= 0 && pread(fd, head, 5, 0) == 5 && !memcmp(head, ELFMAG, SELFMAG) && head[4] == ELFCLASS64;

	closep(&fd);
	return is;
}

static void compare_folder(const char *folder, size_t every, struct figure *figure)
{
	DIR *dir = opendir(folder);
	size_t seen = 0;

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		scoped(buf_release) struct buf path = BUF_INIT(4096);

		buf_addf(&path, "%s/%s", folder, entry->d_name);
		if (entry->d_type != DT_REG || !is_elf(buf_cstr(&path)) || seen++ % every)
			continue;
		compare_files(path.ptr, path.ptr, "/nonexistent", figure);
	}
	if (dir)
		closedir(dir);
}

static bool has_tool(const char *name)
{
	FILE *out = run("command -v", name);
	bool has = fgetc(out) != EOF;

	pclose(out);
	return has;
}

static void agrees_with_readelf(void **state)
{
	struct figure figure = { 0 };

	(void)state;
	if (!has_tool("readelf"))
		skip_because("needs readelf");
	compare_folder("/usr/lib/x86_64-linux-gnu", 23, &figure);
	compare_folder("/usr/bin", 23, &figure);
	print_message("  %zu files: %zu of %zu names agree\n", figure.files, figure.agreed, figure.asked);
	assert_true(figure.files > 0);
	assert_true(figure.agreed * 1000 >= figure.asked * 999);
}

/* A folder for one test, with what @script made there. */
static bool make(char folder[64], const char *script)
{
	scoped(buf_release) struct buf command = BUF_INIT(KIB(16));

	snprintf(folder, 64, "/tmp/hearth-symbols-XXXXXX");
	assert_non_null(mkdtemp(folder));
	buf_addf(&command, "cd %s && exec >log 2>&1 && set -e\n%s", folder, script);
	return system(buf_cstr(&command)) == 0; /* NOLINT: a test's own commands */
}

static void drop(const char *folder)
{
	pclose(run("rm -rf", folder));
}

static void in_folder(char path[128], const char *folder, const char *name)
{
	snprintf(path, 128, "%s/%s", folder, name);
}

static void expect_all(const char *folder, const char *oracle, const char *target, const char *host_root)
{
	struct figure figure = { .only_go = !strcmp(target, "stripped") };
	char oracle_path[128], path[128];

	in_folder(oracle_path, folder, oracle);
	in_folder(path, folder, target);
	compare_files(oracle_path, path, host_root, &figure);
	print_message("  %s: %zu of %zu names agree\n", target, figure.agreed, figure.asked);
	assert_true(figure.asked > 3);
	assert_int_equal(figure.agreed, figure.asked);
}

#define PROGRAM                                                                             \
	"cat >a.c <<'E'\n"                                                                  \
	"#include <stdio.h>\n"                                                              \
	"static __attribute__((noinline)) int inner(int x) { return x * 3 + getchar(); }\n" \
	"__attribute__((noinline)) int outer(int x) { return inner(x) + 1; }\n"             \
	"static __attribute__((noinline)) int third(int x) { return x * 5 + getchar(); }\n" \
	"int main(void) { printf(\"%d\\n\", outer(2) + third(4)); return 0; }\n"            \
	"E\n"                                                                               \
	"gcc -O1 -g -Wl,--build-id=sha1 -o full a.c\n"

static void finds_separate_debug_files(void **state)
{
	char folder[64], root[128];

	(void)state;
	if (!has_tool("gcc") || !has_tool("objcopy"))
		skip_because("needs gcc and objcopy");
	assert_true(make(folder, PROGRAM "strip -o by_id full; id=$(readelf -n full | sed -n 's/.*Build ID: //p')\n"
					 "d=root/usr/lib/debug/.build-id/$(echo $id | cut -c1-2); mkdir -p $d\n"
					 "objcopy --only-keep-debug full $d/$(echo $id | cut -c3-).debug\n"));
	in_folder(root, folder, "root");
	expect_all(folder, "full", "by_id", root);
	drop(folder);
	/* Three places of a link; a file with another CRC in the first one must be passed over. */
	assert_true(make(
		folder, PROGRAM
		"objcopy --remove-section=.note.gnu.build-id full noid\n"
		"objcopy --only-keep-debug noid x.debug; strip -o stripped noid\n"
		"for p in same hidden global; do mkdir $p; objcopy --add-gnu-debuglink=x.debug stripped $p/prog; done\n"
		"cp x.debug same/; mkdir hidden/.debug; cp x.debug hidden/.debug/\n"
		"(cat x.debug; echo changed) >hidden/x.debug\n"));
	expect_all(folder, "full", "same/prog", "");
	expect_all(folder, "full", "hidden/prog", "");
	drop(folder);
}

static void refuses_foreign_debug_files(void **state)
{
	struct figure figure = { 0 };
	char folder[64], root[128], oracle[128], target[128];

	(void)state;
	if (!has_tool("gcc") || !has_tool("objcopy"))
		skip_because("needs gcc and objcopy");
	/* The file under our build id carries another one. */
	assert_true(make(folder,
			 PROGRAM "strip -o by_id full; id=$(readelf -n full | sed -n 's/.*Build ID: //p')\n"
				 "gcc -g -O0 -Wl,--build-id=0x00112233445566778899aabbccddeeff00112233 -o other a.c\n"
				 "d=root/usr/lib/debug/.build-id/$(echo $id | cut -c1-2); mkdir -p $d\n"
				 "objcopy --only-keep-debug other $d/$(echo $id | cut -c3-).debug\n"));
	in_folder(root, folder, "root");
	in_folder(oracle, folder, "full");
	in_folder(target, folder, "by_id");
	compare_files(oracle, target, root, &figure);
	assert_int_equal(figure.agreed, 0);
	drop(folder);
}

static void reads_mini_debug_info(void **state)
{
	char folder[64];

	(void)state;
	if (!has_tool("gcc") || !has_tool("objcopy") || !has_tool("xz"))
		skip_because("needs gcc, objcopy and xz");
	/* As Fedora's find-debuginfo does it: functions that .dynsym lacks, packed into a section. */
	assert_true(make(folder, PROGRAM "objcopy --only-keep-debug full debug; objcopy --strip-debug debug mini; xz "
					 "-k mini; strip -o stripped full\n"
					 "objcopy --add-section .gnu_debugdata=mini.xz stripped mini_prog\n"));
	expect_all(folder, "full", "mini_prog", "");
	drop(folder);
}

/* Code of an assembler's file: labels without type and size, some at the start of an unwind entry (F). */
#define LABELS                                                                                                     \
	"cat >a.s <<'E'\n"                                                                                         \
	".macro F name\n\\name:\n.cfi_startproc\n.skip 0x10, 0x90\n.cfi_endproc\n.endm\n"                          \
	".text\n"                                                                                                  \
	"entry: nop\n"                                                                                             \
	".org 0x20\nF with_entry\n"                                                                                \
	".org 0x60\n.globl global\nglobal: nop\n"                                                                  \
	".org 0x70\nlocal_loop: nop\n"                                                                             \
	".org 0x80\n.cfi_startproc\n.skip 0x10, 0x90\n.cfi_endproc\n"                                              \
	".org 0xa0\n.type sized, %function\nsized: .skip 0x10, 0x90\n.size sized, 0x20\n"                          \
	".globl inside\ninside: nop\n"                                                                             \
	".org 0xc0\n.globl area_end\narea_end: nop\n"                                                              \
	".org 0xe0\nF \"$x\"\n"                                                                                    \
	".org 0x100\nF \".Llocal\"\n"                                                                              \
	".org 0x120\n.type typed, %function\nF typed\n.size typed, 0x10\n"                                         \
	".set __alias_of_typed, typed\n"                                                                           \
	".org 0x140\nF _\n.set _better, _\n"                                                                       \
	".org 0x160\n.globl etext\netext:\nF before_etext\n"                                                       \
	".org 0x180\n.globl __start_text, __stop_text\n__start_text: nop\n__stop_text: nop\n"                      \
	".org 0x1a0\n.globl last\nlast: nop\n.org 0x1b0\n"                                                         \
	"E\n"                                                                                                      \
	"gcc -nostdlib -static -no-pie -Wl,-e,0x401000,-Ttext=0x401000,--eh-frame-hdr,-z,separate-code -o labels " \
	"a.s\n"

static void names_labels_where_code_begins(void **state)
{
	static const struct {
		const char *what;
		uint64_t at;
		const char *name; /* empty: none */
	} cases[] = {
		{ "local, the program's entry point", 0x00, "entry" },
		{ "it ends where an unwind entry begins", 0x1f, "entry" },
		{ "local, at the start of an unwind entry", 0x20, "with_entry" },
		{ "up to the end of that", 0x2f, "with_entry" },
		{ "not behind it", 0x31, "" },
		{ "global", 0x61, "global" },
		{ "local, in a loop", 0x71, "global" },
		{ "another function, without name", 0x81, "" },
		{ "a symbol with a size", 0xa1, "sized" },
		{ "global, in there", 0xb0, "sized" },
		{ "the mark of an end", 0xc1, "" },
		{ "a mapping symbol", 0xe1, "" },
		{ "a local label of the compiler", 0x101, "" },
		{ "a typed symbol beside a label", 0x121, "typed" },
		{ "of two labels the readable one", 0x141, "_better" },
		{ "beside the end of the text", 0x161, "before_etext" },
		{ "the linker's marks of a section", 0x181, "" },
		{ "the last one", 0x1a1, "last" },
		{ "up to the end of the section", 0x1af, "last" },
	};
	char folder[64], path[128];
	struct session s = { 0 };
	struct file_key key;
	struct stat st;
	uint32_t id;
	int fd;

	(void)state;
	if (!has_tool("gcc"))
		skip_because("needs gcc");
	assert_true(make(folder, LABELS));
	in_folder(path, folder, "labels");
	session_open(&s, "");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	file_key_of(&st, &key);
	assert_int_equal(files_add(s.files, fd, &key, str_of(path), &id), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct symbol symbol;
		struct str want = str_of(cases[i].name);

		assert_int_equal(symbols_native(s.symbols, id, 0x1000 + cases[i].at, false, &symbol), 0);
		if (symbol.has_name != (want.len > 0) || (want.len && !str_eq(symbol.name, want)))
			fail_msg("%s: " STR_FMT " instead of \"%s\"", cases[i].what, STR_ARG(symbol.name),
				 cases[i].name);
	}
	session_close(&s);
	drop(folder);
}

static void names_go_functions(void **state)
{
	static const struct {
		const char *name, *go, *flags, *oracle_flags;
	} cases[] = {
		{ "go 1.19", "/usr/lib/go-1.19/bin/go", "-ldflags '-s -w'", "" },
		{ "go 1.19, position independent", "/usr/lib/go-1.19/bin/go", "-buildmode=pie -ldflags '-s -w'",
		  "-buildmode=pie" },
		{ "go 1.19, external linker", "/usr/lib/go-1.19/bin/go",
		  "-buildmode=pie -ldflags '-s -w -linkmode=external'", "-buildmode=pie -ldflags -linkmode=external" },
		{ "newest go", "go", "-ldflags '-s -w'", "" },
		{ "newest go, position independent", "go", "-buildmode=pie -ldflags '-s -w'", "-buildmode=pie" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf script = BUF_INIT(KIB(4));
		char folder[64];

		if (!has_tool(cases[i].go)) {
			print_message("  skipped: %s\n", cases[i].name);
			continue;
		}
		print_message("  %s\n", cases[i].name);
		buf_addf(&script,
			 "export GOTOOLCHAIN=local GOFLAGS=-mod=mod HOME=${HOME:-/tmp}\n"
			 "printf 'module x\\ngo 1.18\\n' >go.mod\n"
			 "printf 'package main\\nfunc main() { println(\"x\") }\\n' >main.go\n"
			 "%s build -o full %s . && %s build -o stripped %s .\n"
			 "! readelf -SW stripped | grep -q ' .symtab'\n",
			 cases[i].go, cases[i].oracle_flags, cases[i].go, cases[i].flags);
		if (make(folder, buf_cstr(&script)))
			expect_all(folder, "full", "stripped", "");
		else
			print_message("  skipped: it does not build here\n");
		drop(folder);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_readelf),         cmocka_unit_test(finds_separate_debug_files),
		cmocka_unit_test(refuses_foreign_debug_files), cmocka_unit_test(reads_mini_debug_info),
		cmocka_unit_test(names_go_functions),          cmocka_unit_test(names_labels_where_code_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
