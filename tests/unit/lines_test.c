/* SPDX-License-Identifier: Apache-2.0 */
/* Inlined frames and lines: packets, files made here by the tools of the machine, broken files, and readers that die,
 * hang or lie. This program is its own reader, as hearth is. */
#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "symbol/debug_lines.h"
#include "symbol/lines_asker.h"
#include "symbol/lines_child.h"
#include "symbol/lines_wire.h"

#define FRAMES_MAX 16
#define HOSTILE_FILES 60

/* ---- packets ---- */

static void a_request_comes_back(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(LINES_MESSAGE_MAX);
	const uint64_t addresses[] = { 0, 0x1000, UINT64_MAX };
	static uint64_t seen[LINES_ADDRESSES_MAX];
	uint32_t flags = 0;

	(void)state;
	lines_request_add(&bytes, LINES_NEW_FILE | LINES_HAS_ALT, addresses, 3);
	assert_int_equal(lines_request_parse(guard_page(bytes.ptr, bytes.len), &flags, seen), 3);
	assert_int_equal(flags, LINES_NEW_FILE | LINES_HAS_ALT);
	assert_memory_equal(seen, addresses, sizeof(addresses));
}

static void bad_requests(void **state)
{
	static const struct {
		const char *name, *hex;
	} cases[] = {
		{ "empty", "" },
		{ "magic", "484c513200000000010000000000000000000000"
			   "00000000" },
		{ "flags", "484c513109000000010000000000000000000000"
			   "00000000" },
		{ "a map of no file", "484c513104000000010000000000000000000000"
				      "00000000" },
		{ "a map with a shared part", "484c513107000000010000000000000000000000"
					      "00000000" },
		{ "shared part of no file", "484c513102000000010000000000000000000000"
					    "00000000" },
		{ "no addresses", "484c5131010000000000000000000000" },
		{ "fewer than told", "484c513101000000020000000000000001000000"
				     "00000000" },
		{ "more than told", "484c513101000000010000000000000001000000"
				    "0000000000" },
		{ "not ascending", "484c513101000000020000000000000001000000"
				   "000000000100000000000000" },
		{ "too many", "484c513101000000011000000000000001000000"
			      "00000000" },
	};
	static uint64_t seen[LINES_ADDRESSES_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t flags = 77;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(lines_request_parse(guard_page_hex(cases[i].hex), &flags, seen), -EBADMSG);
		assert_int_equal(flags, 77);
	}
}

static void a_reply_comes_back(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(LINES_MESSAGE_MAX);
	static struct lines_answer answer;
	struct lines_reply reply;

	(void)state;
	lines_reply_begin(&bytes, LINES_ANSWERS, 40);
	answer.depth = 2;
	answer.frames[0] = (struct lines_wire_frame){ STR("inner"), STR("/a.c"), 3 };
	answer.frames[1] = (struct lines_wire_frame){ STR("outer"), STR(""), UINT32_MAX };
	assert_int_equal(lines_reply_add(&bytes, &answer), 0);
	answer.depth = 0;
	assert_int_equal(lines_reply_add(&bytes, &answer), 0);
	assert_int_equal(lines_reply_parse(guard_page(bytes.ptr, bytes.len), &reply), 0);
	assert_int_equal(reply.status, LINES_ANSWERS);
	assert_int_equal(reply.first, 40);
	assert_int_equal(reply.count, 2);
	lines_reply_next(&reply, &answer);
	assert_int_equal(answer.depth, 2);
	assert_true(str_eq(answer.frames[0].function, STR("inner")) && str_eq(answer.frames[0].file, STR("/a.c")));
	assert_int_equal(answer.frames[1].line, UINT32_MAX);
	assert_int_equal(answer.frames[1].file.len, 0);
	lines_reply_next(&reply, &answer);
	assert_int_equal(answer.depth, 0);
}

static void bad_replies(void **state)
{
	static const struct {
		const char *name, *hex;
	} cases[] = {
		{ "empty", "" },
		{ "magic", "484c513100000000000000000000000000" },
		{ "status", "484c5231050000000000000000000000" },
		{ "answers without any", "484c5231020000000000000000000000" },
		{ "answers with a status", "484c523103000000000000000100000000" },
		{ "more answers than addresses", "484c523102000000ff0f00000200000000"
						 "00" },
		{ "first out of range", "484c5231020000000010000001000000"
					"00" },
		{ "cut off", "484c52310200000000000000010000000101000000020001006161" },
		{ "tail", "484c523102000000000000000100000000"
			  "00" },
		{ "NUL in a name", "484c523102000000000000000100000001010000000200000061"
				   "00" },
		{ "too deep", "484c523102000000000000000100000041" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct lines_reply reply = { .first = 77 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(lines_reply_parse(guard_page_hex(cases[i].hex), &reply), -EBADMSG);
		assert_int_equal(reply.first, 77);
	}
}

/* ---- files ---- */

#define SOURCE                                                                                 \
	"cat >a.c <<'END'\n"                                                                   \
	"static inline __attribute__((always_inline)) unsigned inner(unsigned x)\n"            \
	"{\n"                                                                                  \
	"	for (int i = 0; i < 100; i++) x = x * 1103515245u + 12345u + i * x;\n"               \
	"	return x;\n"                                                                         \
	"}\n"                                                                                  \
	"static inline __attribute__((always_inline)) unsigned middle(unsigned x)\n"           \
	"{\n"                                                                                  \
	"	return inner(x + 7);\n"                                                              \
	"}\n"                                                                                  \
	"__attribute__((noinline)) unsigned outer(unsigned x)\n"                               \
	"{\n"                                                                                  \
	"	return middle(x) + 1;\n"                                                             \
	"}\n"                                                                                  \
	"int main(int argc, char **argv) { (void)argv; return (int)outer((unsigned)argc); }\n" \
	"END\n"

static FILE *run(const char *format, const char *argument)
{
	scoped(buf_release) struct buf command = BUF_INIT(KIB(8));
	FILE *out;

	buf_addf(&command, "exec 2>/dev/null; %s '%s'", format, argument);
	out = popen(buf_cstr(&command), "re"); /* NOLINT: a test's own commands */
	assert_non_null(out);
	return out;
}

static bool has_tool(const char *name)
{
	FILE *out = run("command -v", name);
	bool has = fgetc(out) != EOF;

	pclose(out);
	return has;
}

static bool has_libdw(void)
{
	return has_tool("gcc") &&
	       (!access("/usr/lib/x86_64-linux-gnu/libdw.so.1", F_OK) ||
		!access("/usr/lib/aarch64-linux-gnu/libdw.so.1", F_OK) || !access("/usr/lib64/libdw.so.1", F_OK));
}

struct place { /* a folder with what a script made there, and where outer() is in its file */
	char folder[64], path[128];
	uint64_t start, size;
};

static void make(struct place *p, const char *script, const char *name)
{
	scoped(buf_release) struct buf command = BUF_INIT(KIB(16));
	scoped(freep) char *line = NULL;
	size_t cap = 0;
	FILE *symbols;

	(void)snprintf(p->folder, sizeof(p->folder), "/tmp/hearth-lines-XXXXXX");
	assert_non_null(mkdtemp(p->folder));
	assert_int_equal(chmod(p->folder, 0755), 0);
	buf_addf(&command, "cd %s && exec >log 2>&1 && set -e\n%s%s", p->folder, SOURCE, script);
	assert_int_equal(system(buf_cstr(&command)), 0); /* NOLINT: a test's own commands */
	(void)snprintf(p->path, sizeof(p->path), "%s/%s", p->folder, name);
	buf_clear(&command);
	buf_addf(&command, "%s/whole", p->folder);
	symbols = run("nm -S", buf_cstr(&command));
	p->size = 0;
	while (getline(&line, &cap, symbols) > 0) {
		unsigned long long start, size;

		if (sscanf(line, "%llx %llx T outer", &start, &size) == 2 && strstr(line, " outer")) {
			p->start = start;
			p->size = size;
		}
	}
	pclose(symbols);
	assert_true(p->size > 0);
}

static void drop(struct place *p)
{
	pclose(run("rm -rf", p->folder));
}

struct reader_of_lines {
	struct files *files;
	struct symbols *symbols;
	struct debug_lines *lines;
	struct buf root;
};

static void reader_open(struct reader_of_lines *r, const struct debug_lines_config *cfg, const char *root)
{
	const struct symbols_config symbols_cfg = { .host_root = root };

	assert_int_equal(files_open(64, &r->files), 0);
	assert_int_equal(symbols_open(&symbols_cfg, r->files, &r->symbols), 0);
	assert_int_equal(debug_lines_open(cfg, r->symbols, &r->lines), 0);
}

static void reader_close(struct reader_of_lines *r)
{
	debug_lines_close(r->lines);
	symbols_close(r->symbols);
	files_close(r->files);
}

static uint32_t add_file(struct reader_of_lines *r, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct file_key key;
	struct stat st;
	uint32_t id;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	file_key_of(&st, &key);
	assert_int_equal(files_add(r->files, fd, &key, str_of(path), &id), 0);
	return id;
}

/* Asks for every byte of outer(). Its file offsets are its addresses in what gcc links here. Return: how many of them
 * are all three functions with the right lines. */
static size_t ask_all(struct reader_of_lines *r, const struct place *p, uint32_t id)
{
	scoped(freep) struct debug_lines_place *places = calloc(p->size, sizeof(*places));
	size_t count = p->size, good = 0;

	assert_non_null(places);
	for (size_t i = 0; i < count; i++)
		places[i] = (struct debug_lines_place){ .file_id = id, .offset = p->start + i };
	assert_int_equal(debug_lines_ask(r->lines, places, count), 0);
	for (size_t i = 0; i < count; i++) {
		struct debug_lines_frame f[FRAMES_MAX];
		size_t depth = debug_lines_get(r->lines, &places[i], f, FRAMES_MAX);

		good += depth == 3 && str_eq(f[0].name, STR("inner")) && str_eq(f[1].name, STR("middle")) &&
			str_eq(f[2].name, STR("outer")) && f[0].line >= 1 && f[0].line <= 5 && f[1].line == 8 &&
			f[2].line == 12 && str_ends(f[0].file, STR("/a.c")) && str_ends(f[2].file, STR("/a.c"));
	}
	return good;
}

static void inlined_functions_of_many_files(void **state)
{
	static const struct {
		const char *name, *tool, *script, *file;
	} cases[] = {
		{ "DWARF 5", "gcc", "gcc -O2 -gdwarf-5 a.c -o whole\n", "whole" },
		{ "DWARF 4", "gcc", "gcc -O2 -gdwarf-4 a.c -o whole\n", "whole" },
		{ "compressed", "gcc", "gcc -O2 -g -gz=zlib a.c -o whole\n", "whole" },
		{ "compressed as GNU did", "gcc", "gcc -O2 -g -gz=zlib-gnu a.c -o whole\n", "whole" },
		{ "link-time optimisation", "gcc", "gcc -O2 -g -flto a.c -o whole\n", "whole" },
		{ "clang, DWARF 5", "clang", "clang -O2 -gdwarf-5 -fno-unroll-loops -fno-vectorize a.c -o whole\n",
		  "whole" },
		{ "clang, DWARF 4", "clang", "clang -O2 -gdwarf-4 -fno-unroll-loops -fno-vectorize a.c -o whole\n",
		  "whole" },
		{ "static", "gcc", "gcc -O2 -g -static-pie a.c -o whole\n", "whole" },
		{ "debug file by link", "objcopy",
		  "gcc -O2 -g a.c -o whole; objcopy --only-keep-debug whole x.debug\n"
		  "objcopy --strip-all whole x; objcopy --add-gnu-debuglink=x.debug x\n",
		  "x" },
	};

	(void)state;
	if (!has_libdw())
		skip_because("needs gcc and libdw.so.1");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct reader_of_lines r;
		struct debug_lines_stats stats;
		struct place p;
		size_t good;

		if (!has_tool(cases[i].tool)) {
			print_message("  %s: needs %s\n", cases[i].name, cases[i].tool);
			continue;
		}
		make(&p, cases[i].script, cases[i].file);
		reader_open(&r, &(struct debug_lines_config){ 0 }, "");
		good = ask_all(&r, &p, add_file(&r, p.path));
		debug_lines_stats(r.lines, &stats);
		print_message("  %s: %zu of %zu bytes\n", cases[i].name, good, (size_t)p.size);
		assert_true(good * 3 > p.size);
		assert_int_equal(stats.asked, p.size);
		assert_int_equal(stats.files, 1);
		assert_int_equal(stats.deaths, 0);
		assert_int_equal(stats.failed, 0);
		assert_int_equal(ask_all(&r, &p, add_file(&r, p.path)), good); /* all of it known */
		debug_lines_stats(r.lines, &stats);
		assert_int_equal(stats.asked, p.size);
		reader_close(&r);
		drop(&p);
	}
}

/* As Debian has them: below the host's root, by build id, with a part shared by dwz. */
static void a_debug_file_by_build_id(void **state)
{
	char root[128];
	struct reader_of_lines r;
	struct place p;

	(void)state;
	if (!has_libdw() || !has_tool("dwz") || !has_tool("objcopy"))
		skip_because("needs libdw.so.1, gcc, objcopy and dwz");
	make(&p,
	     "gcc -O2 -g a.c -o whole -Wl,--build-id=0x0123456789abcdef\n"
	     "gcc -O2 -g -DOTHER a.c -o other -Wl,--build-id=0x1123456789abcdef\n"
	     "objcopy --strip-all whole x; cp whole y\n"
	     "objcopy --only-keep-debug y y.debug; objcopy --only-keep-debug other z.debug\n"
	     "mkdir -p root/usr/lib/debug/.build-id/01 root/usr/lib/debug/.dwz\n"
	     "dwz -m root/usr/lib/debug/.dwz/shared -M /usr/lib/debug/.dwz/shared y.debug z.debug\n"
	     "readelf -SW y.debug | grep gnu_debugaltlink\n"
	     "mv y.debug root/usr/lib/debug/.build-id/01/23456789abcdef.debug\n",
	     "x");
	(void)snprintf(root, sizeof(root), "%s/root", p.folder);
	reader_open(&r, &(struct debug_lines_config){ 0 }, root);
	assert_true(ask_all(&r, &p, add_file(&r, p.path)) * 3 > p.size);
	reader_close(&r);
	drop(&p);
}

static void a_file_without_debug_information(void **state)
{
	struct debug_lines_stats stats;
	struct reader_of_lines r;
	struct place p;
	uint32_t id;

	(void)state;
	if (!has_libdw())
		skip_because("needs gcc and libdw.so.1");
	make(&p, "gcc -O2 a.c -o whole\n", "whole");
	reader_open(&r, &(struct debug_lines_config){ 0 }, "/nonexistent");
	id = add_file(&r, p.path);
	assert_int_equal(ask_all(&r, &p, id), 0);
	assert_int_equal(ask_all(&r, &p, id), 0);
	assert_false(debug_lines_has_file(r.lines, id));
	debug_lines_stats(r.lines, &stats);
	assert_int_equal(stats.files_without, 1); /* looked for once */
	assert_int_equal(stats.asked, 0);
	reader_close(&r);
	drop(&p);
}

/* As a container's file whose descriptor was given up while no process has it mapped: at first, and later again. */
static void a_file_that_is_away_for_a_time(void **state)
{
	uint64_t now_ns = NSEC_PER_SEC;
	const struct clock clock = { .monotonic_ns = simulated_ns, .wall_ns = simulated_ns, .self = &now_ns };
	const struct symbols_config cfg = { .host_root = "", .clock = &clock };
	struct debug_lines_place other;
	struct symbol_module module;
	struct reader_of_lines r;
	struct file_key key;
	struct place p;
	struct stat st;
	char away[160];
	uint32_t id;

	(void)state;
	if (!has_libdw())
		skip_because("needs gcc and libdw.so.1");
	make(&p, "gcc -O2 -g a.c -o whole\n", "whole");
	(void)snprintf(away, sizeof(away), "%s.away", p.path);
	assert_int_equal(stat(p.path, &st), 0);
	file_key_of(&st, &key);
	assert_int_equal(files_open(4, &r.files), 0);
	assert_int_equal(symbols_open(&cfg, r.files, &r.symbols), 0);
	assert_int_equal(debug_lines_open(&(struct debug_lines_config){ 0 }, r.symbols, &r.lines), 0);
	assert_int_equal(files_add(r.files, -1, &key, str_of(p.path), &id), 0);
	assert_int_equal(symbols_module(r.symbols, id, &module), 0);
	assert_int_equal(rename(p.path, away), 0);
	assert_int_equal(ask_all(&r, &p, id), 0);
	assert_int_equal(rename(away, p.path), 0);
	now_ns += 29 * NSEC_PER_SEC;
	assert_int_equal(ask_all(&r, &p, id), 0);
	now_ns += NSEC_PER_SEC;
	assert_true(ask_all(&r, &p, id) * 3 > p.size);
	assert_int_equal(rename(p.path, away), 0);
	other = (struct debug_lines_place){ .file_id = id, .offset = p.start + p.size + 1 };
	assert_int_equal(debug_lines_ask(r.lines, &other, 1), 0);
	assert_true(debug_lines_has_file(r.lines, id));
	reader_close(&r);
	drop(&p);
}

/* Little room: answers are left out and counted, and the next window begins anew. */
static void memory_is_bounded(void **state)
{
	struct debug_lines_stats stats;
	struct reader_of_lines r;
	struct place p;
	uint32_t id;

	(void)state;
	if (!has_libdw())
		skip_because("needs gcc and libdw.so.1");
	make(&p, "gcc -O2 -g a.c -o whole\n", "whole");
	reader_open(&r, &(struct debug_lines_config){ .memory_max = KIB(2) }, "");
	id = add_file(&r, p.path);
	(void)ask_all(&r, &p, id);
	debug_lines_stats(r.lines, &stats);
	assert_true(stats.failed > 0 && stats.found > 0);
	assert_int_equal(stats.deaths, 0);
	(void)ask_all(&r, &p, id);
	debug_lines_stats(r.lines, &stats);
	assert_int_equal(stats.asked, 2 * p.size);
	reader_close(&r);
	drop(&p);
}

/* ---- broken files ---- */

static void break_file(const char *from, const char *to, unsigned int seed)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(16));
	FILE *out = fopen(to, "we");
	size_t size;

	assert_non_null(out);
	assert_int_equal(io_read_file(from, &bytes), 0);
	size = bytes.len;
	srand(seed); /* NOLINT: anybody may guess it */
	if (seed % 3 == 0)
		size = (size_t)rand() % bytes.len;
	/* Debug information lies behind the code; the headers have to hold for anybody to read on. */
	for (size_t i = 0; seed % 3 && i < 40; i++)
		bytes.ptr[bytes.len / 4 + (size_t)rand() % (bytes.len - bytes.len / 4)] = (char)rand();
	assert_int_equal(fwrite(bytes.ptr, 1, size, out), size);
	for (size_t i = 0; i <= seed; i++) /* of another size than the good file with its build id */
		assert_true(fputc(0, out) == 0);
	assert_int_equal(fclose(out), 0);
}

static void broken_files_cost_themselves_only(void **state)
{
	struct debug_lines_stats all = { 0 };
	struct reader_of_lines r;
	struct place p;

	(void)state;
	if (!has_libdw())
		skip_because("needs gcc and libdw.so.1");
	make(&p, "gcc -O2 -g a.c -o whole\n", "whole");
	for (unsigned int seed = 0; seed < HOSTILE_FILES; seed++) {
		char path[160];
		struct debug_lines_stats stats;

		(void)snprintf(path, sizeof(path), "%s/broken%u", p.folder, seed);
		break_file(p.path, path, seed);
		if (seed % 2 == 0)
			reader_open(&r, &(struct debug_lines_config){ .reply_patience_ns = 20 * NSEC_PER_SEC }, "");
		(void)ask_all(&r, &p, add_file(&r, path));
		if (seed % 2 == 0)
			continue;
		assert_true(ask_all(&r, &p, add_file(&r, p.path)) * 3 > p.size); /* a good file behind two bad ones */
		debug_lines_stats(r.lines, &stats);
		all.deaths += stats.deaths;
		all.files_failed += stats.files_failed;
		all.files_without += stats.files_without;
		reader_close(&r);
	}
	print_message("  of %d broken files %d had no debug information left, %d were refused, %d killed the reader\n",
		      HOSTILE_FILES, (int)all.files_without, (int)(all.files_failed - all.deaths), (int)all.deaths);
	drop(&p);
}

/* ---- broken readers ---- */

/* What this program does as the reader, by the file that its parent left: evil_path(). */
static void evil_path(char path[64], pid_t parent)
{
	(void)snprintf(path, 64, "/tmp/hearth-lines-evil-%d", (int)parent);
}

static void set_evil(const char *how)
{
	char path[64];
	FILE *out;

	evil_path(path, getpid());
	ignore(unlink(path));
	if (!how)
		return;
	out = fopen(path, "we");
	assert_non_null(out);
	assert_true(fputs(how, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static void send_frame(const char *name, uint32_t first, uint32_t count)
{
	scoped(buf_release) struct buf reply = BUF_INIT(LINES_MESSAGE_MAX);
	static struct lines_answer answer;

	answer.depth = 1;
	answer.frames[0] = (struct lines_wire_frame){ .function = str_of(name), .line = 1 };
	lines_reply_begin(&reply, LINES_ANSWERS, first);
	for (uint32_t i = 0; i < count; i++)
		must(lines_reply_add(&reply, &answer) == 0);
	ignore(write(LINES_CHILD_FD, reply.ptr, reply.len) < 0);
}

/* Each packet in time, all together not. */
static void send_slowly(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		send_frame("liar", i, 1);
		nanosleep(&(struct timespec){ .tv_nsec = 50 * 1000000 }, NULL);
	}
}

/* What a reader that was taken over may try. */
static void probe(struct buf *out)
{
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC), pair = socket(AF_UNIX, SOCK_STREAM, 0);
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	buf_addf(out, "open %d, socket %d, code %d, fork %d, signal %d, owner %d", fd >= 0, pair >= 0,
		 code != MAP_FAILED, child > 0, kill(1, 0) == 0, fcntl(LINES_CHILD_FD, F_SETOWN, getppid()) == 0);
}

static int evil_main(const char *how)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
	scoped(buf_release) struct buf reply = BUF_INIT(LINES_MESSAGE_MAX);
	static uint8_t request[LINES_MESSAGE_MAX], packet[LINES_MESSAGE_MAX + 1];

	if (!strcmp(how, "silent"))
		pause();
	if (!strcmp(how, "confined")) {
		must(lines_confine() == 0);
		probe(&text);
	}
	lines_reply_begin(&reply, LINES_READY, 0);
	ignore(write(LINES_CHILD_FD, reply.ptr, reply.len) < 0);
	for (;;) {
		uint32_t count;
		ssize_t n = read(LINES_CHILD_FD, request, sizeof(request));

		if (n < 16)
			_exit(0);
		count = request[8] | (uint32_t)request[9] << 8;
		if (!strcmp(how, "confined"))
			send_frame(buf_cstr(&text), 0, count);
		else if (!strcmp(how, "slow"))
			send_slowly(count);
		else if (!strcmp(how, "wrong order"))
			send_frame("liar", 1, 1);
		else if (!strcmp(how, "too many"))
			send_frame("liar", 0, count + 1);
		else if (!strcmp(how, "noise"))
			ignore(write(LINES_CHILD_FD, request, sizeof(request)) < 0);
		else if (!strcmp(how, "huge")) /* a packet longer than any may be */
			ignore(write(LINES_CHILD_FD, packet, sizeof(packet)));
		else if (!strcmp(how, "dies"))
			abort();
		else if (!strcmp(how, "hangs"))
			pause();
	}
}

static void readers_that_fail(void **state)
{
	static const char *const ways[] = { "wrong order", "too many", "noise", "huge", "dies", "hangs" };
	struct place p;

	(void)state;
	if (!has_libdw())
		skip_because("needs gcc and libdw.so.1");
	make(&p, "gcc -O2 -g a.c -o whole; for i in 1 2 3 4 5; do cp whole bad$i; done\n", "whole");
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct reader_of_lines r;
		struct debug_lines_stats stats;

		print_message("  %s\n", ways[i]);
		set_evil(ways[i]);
		reader_open(&r, &(struct debug_lines_config){ .reply_patience_ns = NSEC_PER_SEC / 2 }, "");
		for (int file = 1; file <= 5; file++) {
			char path[160];

			(void)snprintf(path, sizeof(path), "%s/bad%d", p.folder, file);
			/* By build id they are one file: each is asked by another owner's word. */
			ignore(chown(path, (uid_t)file, (gid_t)-1));
			assert_int_equal(ask_all(&r, &p, add_file(&r, path)), 0);
		}
		debug_lines_stats(r.lines, &stats);
		if (geteuid() == 0) { /* else the files have one owner, and are one file that failed once */
			assert_int_equal(stats.deaths, LINES_RESTARTS_MAX + 1);
			assert_int_equal(stats.failed, 5 * p.size);
		}
		assert_true(stats.deaths > 0);
		assert_int_equal(stats.found, 0);
		reader_close(&r);
	}
	set_evil(NULL);
	drop(&p);
}

static void a_reader_cannot_take_forever(void **state)
{
	const struct debug_lines_config cfg = { .reply_patience_ns = 60 * NSEC_PER_SEC,
						.ask_patience_ns = NSEC_PER_SEC / 2 };
	struct debug_lines_stats stats;
	struct reader_of_lines r;
	struct place p;

	(void)state;
	if (!has_libdw())
		skip_because("needs gcc and libdw.so.1");
	make(&p, "gcc -O2 -g a.c -o whole\n", "whole");
	set_evil("slow");
	reader_open(&r, &cfg, "");
	(void)ask_all(&r, &p, add_file(&r, p.path));
	debug_lines_stats(r.lines, &stats);
	print_message("  %d of %d answers came\n", (int)stats.found, (int)p.size);
	assert_int_equal(stats.deaths, 1);
	assert_true(stats.found < p.size / 2);
	set_evil(NULL);
	reader_close(&r);
	drop(&p);
}

static void a_reader_that_never_starts(void **state)
{
	const struct symbols_config symbols_cfg = { .host_root = "" };
	struct debug_lines_config cfg = { .reply_patience_ns = NSEC_PER_SEC / 4 };
	struct debug_lines *lines = NULL;
	struct symbols *symbols;
	struct files *files;

	(void)state;
	assert_int_equal(files_open(64, &files), 0);
	assert_int_equal(symbols_open(&symbols_cfg, files, &symbols), 0);
	set_evil("silent");
	assert_int_equal(debug_lines_open(&cfg, symbols, &lines), -ETIMEDOUT);
	set_evil(NULL);
	assert_null(lines);
	symbols_close(symbols);
	files_close(files);
}

/* The child of this process, found as ps does. */
static pid_t find_child(void)
{
	DIR *proc = opendir("/proc");
	pid_t found = 0;

	assert_non_null(proc);
	for (struct dirent *entry; !found && (entry = readdir(proc));) {
		scoped(buf_release) struct buf path = BUF_INIT(4096), text = BUF_INIT(KIB(8));
		const char *parent;

		buf_addf(&path, "/proc/%s/status", entry->d_name);
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || io_read_file(buf_cstr(&path), &text) < 0)
			continue;
		parent = strstr(buf_cstr(&text), "\nPPid:");
		if (parent && strtol(parent + 6, NULL, 10) == getpid() && strstr(buf_cstr(&text), "hearth-lines"))
			found = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	closedir(proc);
	return found;
}

static void expect_no_rights(void)
{
	scoped(buf_release) struct buf path = BUF_INIT(4096), text = BUF_INIT(KIB(8));
	static const char *const lines[] = { "\nCapEff:\t0000000000000000\n", "\nCapPrm:\t0000000000000000\n",
					     "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n", "\nThreads:\t1\n" };

	buf_addf(&path, "/proc/%d/status", (int)find_child());
	assert_int_equal(io_read_file(buf_cstr(&path), &text), 0);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_non_null(strstr(buf_cstr(&text), lines[i]));
	assert_null(strstr(buf_cstr(&text), "\nUid:\t0"));
	if (geteuid() == 0)
		assert_non_null(strstr(buf_cstr(&text), "\nGroups:\t \n"));
}

static void the_reader_can_do_nothing_else(void **state)
{
	struct debug_lines_frame f[1];
	struct debug_lines_place place;
	struct reader_of_lines r;
	struct place p;

	(void)state;
	if (!has_libdw())
		skip_because("needs gcc and libdw.so.1");
	make(&p, "gcc -O2 -g a.c -o whole\n", "whole");
	set_evil("confined");
	reader_open(&r, &(struct debug_lines_config){ .reply_patience_ns = 20 * NSEC_PER_SEC }, "");
	place = (struct debug_lines_place){ .file_id = add_file(&r, p.path), .offset = p.start };
	assert_int_equal(debug_lines_ask(r.lines, &place, 1), 0);
	assert_int_equal(debug_lines_get(r.lines, &place, f, 1), 1);
	print_message("  " STR_FMT "\n", STR_ARG(f[0].name));
	assert_true(str_eq(f[0].name, STR("open 0, socket 0, code 0, fork 0, signal 0, owner 0")));
	set_evil(NULL);
	reader_close(&r);
	reader_open(&r, &(struct debug_lines_config){ 0 }, "");
	expect_no_rights();
	reader_close(&r);
	drop(&p);
}

static void a_killed_reader_is_started_anew(void **state)
{
	struct debug_lines_stats stats;
	struct reader_of_lines r;
	struct place p;
	char second[160];
	pid_t child;

	(void)state;
	if (!has_libdw())
		skip_because("needs gcc and libdw.so.1");
	make(&p, "gcc -O2 -g a.c -o whole; gcc -O2 -g -DSECOND a.c -o second -Wl,--build-id=0x77aa\n", "whole");
	(void)snprintf(second, sizeof(second), "%s/second", p.folder);
	reader_open(&r, &(struct debug_lines_config){ 0 }, "");
	child = find_child();
	assert_true(child > 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	while (waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	assert_true(ask_all(&r, &p, add_file(&r, p.path)) * 3 > p.size); /* that one was not its fault */
	assert_true(ask_all(&r, &p, add_file(&r, second)) * 3 > p.size);
	debug_lines_stats(r.lines, &stats);
	assert_int_equal(stats.deaths, 1);
	assert_int_equal(stats.failed, 0);
	reader_close(&r);
	assert_int_equal(find_child(), 0);
	drop(&p);
}

static bool is_running(pid_t pid)
{
	scoped(buf_release) struct buf path = BUF_INIT(4096), text = BUF_INIT(KIB(8));

	buf_addf(&path, "/proc/%d/status", (int)pid);
	return io_read_file(buf_cstr(&path), &text) == 0 && !strstr(buf_cstr(&text), "\nState:\tZ");
}

/* Stopped, so that it does not see the end of the socket: only the kernel can end it. */
static void the_reader_dies_with_its_parent(void **state)
{
	pid_t parent, reader = 0;
	int ends[2];

	(void)state;
	if (!has_libdw())
		skip_because("needs gcc and libdw.so.1");
	assert_int_equal(pipe(ends), 0);
	parent = fork();
	if (parent == 0) {
		struct reader_of_lines r;

		reader_open(&r, &(struct debug_lines_config){ 0 }, "");
		reader = find_child();
		ignore(write(ends[1], &reader, sizeof(reader)) < 0);
		pause();
		_exit(0);
	}
	assert_true(parent > 0);
	assert_int_equal(read(ends[0], &reader, sizeof(reader)), sizeof(reader));
	assert_true(reader > 0 && is_running(reader));
	assert_int_equal(kill(reader, SIGSTOP), 0);
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	for (int i = 0; i < 100 && is_running(reader); i++)
		usleep(50000);
	assert_false(is_running(reader));
	close(ends[0]);
	close(ends[1]);
}

struct failing {
	const struct place *place;
};

static int open_and_ask(void *ctx)
{
	const struct symbols_config symbols_cfg = { .host_root = "" };
	const struct place *p = ((struct failing *)ctx)->place;
	struct reader_of_lines r = { 0 };
	struct debug_lines_place place = { .offset = p->start };
	struct file_key key;
	struct stat st;
	int fd = open(p->path, O_RDONLY | O_CLOEXEC);
	int e = files_open(64, &r.files);

	assert_int_equal(fstat(fd, &st), 0);
	file_key_of(&st, &key);
	if (e == 0)
		e = files_add(r.files, fd, &key, str_of(p->path), &place.file_id);
	if (e < 0)
		close(fd);
	if (e == 0)
		e = symbols_open(&symbols_cfg, r.files, &r.symbols);
	if (e == 0)
		e = debug_lines_open(&(struct debug_lines_config){ 0 }, r.symbols, &r.lines);
	if (e == 0)
		e = debug_lines_ask(r.lines, &place, 1);
	debug_lines_close(r.lines);
	symbols_close(r.symbols);
	if (r.files)
		files_close(r.files);
	return e;
}

static void every_allocation_may_fail(void **state)
{
	struct place p;

	(void)state;
	if (!has_libdw())
		skip_because("needs gcc and libdw.so.1");
	make(&p, "gcc -O2 -g a.c -o whole\n", "whole");
	for_each_failing_allocation(open_and_ask, &(struct failing){ &p });
	drop(&p);
}

static int serve_as_told(void)
{
	scoped(buf_release) struct buf how = BUF_INIT(KIB(1));
	char path[64];

	evil_path(path, getppid());
	if (io_read_file(path, &how) == 0)
		return evil_main(buf_cstr(&how));
	return lines_child_main();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_comes_back),
		cmocka_unit_test(bad_requests),
		cmocka_unit_test(a_reply_comes_back),
		cmocka_unit_test(bad_replies),
		cmocka_unit_test(inlined_functions_of_many_files),
		cmocka_unit_test(a_debug_file_by_build_id),
		cmocka_unit_test(a_file_without_debug_information),
		cmocka_unit_test(a_file_that_is_away_for_a_time),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(broken_files_cost_themselves_only),
		cmocka_unit_test(readers_that_fail),
		cmocka_unit_test(a_reader_cannot_take_forever),
		cmocka_unit_test(a_reader_that_never_starts),
		cmocka_unit_test(the_reader_can_do_nothing_else),
		cmocka_unit_test(a_killed_reader_is_started_anew),
		cmocka_unit_test(the_reader_dies_with_its_parent),
		cmocka_unit_test(every_allocation_may_fail),
	};

	if (lines_child_wanted(argc, argv))
		return serve_as_told();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
