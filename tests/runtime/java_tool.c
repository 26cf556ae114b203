/* SPDX-License-Identifier: Apache-2.0 */
/* java_tool PID COMMAND: what the readers of HotSpot find in a live JVM. For people and for check_java.py, which
 *compares with the JDK's own tools.
 *
 *	tables    answers questions of stdin, one a line: "F type<tab>field", "T type", "C constant"
 *	layout    the layout, or why it is refused; reads and time
 *	codes     all compiled methods, and what each of their positions stands for
 *	record FOLDER ID   seeds for fuzz_java_scopes.c and fuzz_java_expand.c of the compiled method with that number
 *	metadata [FLAGS]   its metadata, with these flags of the JVM
 *	perf      performance counters that are asked for on stdin, one a line
 *	redefines 1: an agent may redefine classes
 *	threads   numbers and names of its threads */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "object/elf_find.h"
#include "proc/maps.h"
#include "runtime/java/code.h"
#include "runtime/java/flags.h"
#include "runtime/java/info.h"
#include "runtime/java/perf.h"
#include "runtime/java/threads.h"

struct jvm {
	pid_t pid;
	uint64_t bias, reads;
	uint64_t symbols[JAVA_SYMBOL_COUNT];
	char path[4096];
	struct java_memory memory;
};

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all(*(int *)self, dst, size, offset);
}

static int read_process(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct jvm *jvm = self;
	struct iovec to = { dst, size }, from = { (void *)(uintptr_t)at, size };
	ssize_t n = process_vm_readv(jvm->pid, &to, 1, &from, 1, 0);

	jvm->reads++;
	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EFAULT;
}

/* Path inside the process, and the load address, of libjvm.so. */
static int find_library(struct jvm *jvm)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(16));
	struct maps_line line;
	struct str rest;
	char name[64];
	int r;

	snprintf(name, sizeof(name), "/proc/%d/maps", jvm->pid);
	r = io_read_file(name, &text);
	if (r < 0)
		return r;
	rest = buf_str(&text);
	while ((r = maps_next(&rest, &line)) != 0) {
		if (r < 0 || !str_eq(str_base(line.path), STR("libjvm.so")))
			continue;
		jvm->bias = line.start - line.offset;
		snprintf(jvm->path, sizeof(jvm->path), "/proc/%d/root" STR_FMT, jvm->pid, STR_ARG(line.path));
		return 0;
	}
	return -ENOENT;
}

static int find_symbols(struct jvm *jvm)
{
	scoped(elf_release) struct elf elf = { 0 };
	scoped(closep) int fd = open(jvm->path, O_RDONLY | O_CLOEXEC);
	struct reader in = { .read = read_fd, .self = &fd };
	struct elf_dynamic dynamic;
	int r;

	if (fd < 0)
		return -errno;
	in.size = (uint64_t)lseek(fd, 0, SEEK_END);
	r = elf_parse(&in, &elf);
	r = r ? r : elf_dynamic_read(&elf, &dynamic);
	for (size_t i = 0; r == 0 && i < JAVA_SYMBOL_COUNT; i++) {
		struct elf_found found;

		r = elf_dynamic_find(&elf, &dynamic, java_symbol_names[i], &found);
		jvm->symbols[i] = r == 0 ? found.address : 0;
	}
	return r;
}

static void answer(const struct java_tables *t, char *line)
{
	char *field = strchr(line, '\t');
	struct java_field f;
	uint64_t size;
	int64_t value;

	if (field)
		*field++ = 0;
	if (line[0] == 'F' && field && java_tables_field(t, line + 2, field, &f) == 0)
		printf(STR_FMT "|%d|%" PRIu64 "|%" PRIu64 "\n", STR_ARG(f.type_string), f.is_static, f.offset,
		       f.address);
	else if (line[0] == 'T' && java_tables_size(t, line + 2, &size) == 0)
		printf("%" PRIu64 "\n", size);
	else if (line[0] == 'C' && java_tables_constant(t, line + 2, &value) == 0)
		printf("%" PRId64 "\n", value);
	else
		printf("none\n");
}

static int show_tables(const struct java_tables *t)
{
	char line[1024];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		answer(t, line);
	}
	return 0;
}

static int show_layout(const struct jvm *jvm, const struct java_tables *t, uint64_t began_ns)
{
	struct java_layout layout;
	char why[96] = "";
	int r = java_layout_fill(&jvm->memory, t, jvm->bias, &layout, why);

	if (r < 0) {
		printf("refused %d %s\n", r, why);
		return r == -ENOTSUP ? 0 : r;
	}
	printf("version %u flags %#x reads %" PRIu64 " us %" PRIu64 "\n", layout.version, layout.flags, jvm->reads,
	       (clock_monotonic_ns(&clock_system) - began_ns) / 1000);
	return 0;
}

/* ---- compiled methods, by the heaps of code ---- */

static void show_chain(const struct java_shown *shown, size_t count)
{
	printf("P");
	for (size_t i = 0; i < count; i++)
		printf("\t" STR_FMT "|" STR_FMT "|%d|%d", STR_ARG(shown[i].name), STR_ARG(shown[i].file),
		       shown[i].index == JAVA_NO_INDEX ? -1 : shown[i].index, shown[i].line);
	printf("\n");
}

/* Every position once, and the same answer one byte before it when it runs there. */
static void show_positions(const struct java_code *code, struct cur form)
{
	static struct java_shown shown[RUNTIME_EXPAND_MAX];
	uint32_t seen = UINT32_MAX;

	for (uint32_t pc = 0; pc < code->code_end - code->code_begin; pc++) {
		struct cur c = form;
		size_t count = java_scopes_expand(c, pc, true, RUNTIME_EXPAND_MAX, shown);
		uint32_t hash = 0;

		if (count == JAVA_SHOWN_LOST)
			continue;
		for (size_t i = 0; i < count; i++)
			hash = hash * 31 + shown[i].index + (uint32_t)(uintptr_t)shown[i].name.ptr;
		if (!count || hash == seen)
			continue;
		seen = hash;
		show_chain(shown, count);
	}
}

static const char *record_folder; /* NULL: nothing is recorded */
static uint32_t record_id;

static void write_file(const char *path, struct str bytes)
{
	FILE *f = fopen(path, "we");

	if (!f || fwrite(bytes.ptr, 1, bytes.len, f) != bytes.len || fclose(f))
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
}

static void record(const struct java_process *p, const struct java_code *c, struct str form)
{
	uint32_t sizes[] = { (uint32_t)(c->pcs_end - c->pcs), (uint32_t)(c->data_end - c->data) };
	uint8_t no_zero = p->layout->flags & JAVA_LAYOUT_NO_ZERO ? 1 : 0;
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1)), path = BUF_INIT(4096);

	buf_add(&bytes, &no_zero, 1);
	buf_add(&bytes, &sizes[0], 2); /* little-endian, as everything here */
	buf_add(&bytes, &sizes[1], 2);
	for (size_t i = 0; i < 2; i++) {
		void *room = buf_reserve(&bytes, sizes[i]);

		if (!room || java_read(&p->memory, room, sizes[i], i ? c->data : c->pcs) < 0)
			return;
		buf_commit(&bytes, sizes[i]);
	}
	buf_addf(&path, "%s/java_scopes/jdk%u", record_folder, p->layout->version);
	write_file(buf_cstr(&path), buf_str(&bytes));
	buf_clear(&path);
	buf_addf(&path, "%s/java_expand/jdk%u", record_folder, p->layout->version);
	write_file(buf_cstr(&path), form);
}

static void show_code(const struct java_process *p, uint64_t blob)
{
	scoped(buf_release) struct buf room = BUF_INIT(MIB(8));
	struct java_code code;
	struct java_method m;
	size_t form;
	int r = java_code_read(p, blob, &code);

	r = r ? r : java_code_scopes(p, &code, &room, &m, &form);
	if (r < 0) {
		printf("E %#" PRIx64 " %d\n", blob, r);
		return;
	}
	printf("N %#" PRIx64 " %u %u %#" PRIx64 " %zu\t%.*s|%.*s|%d\n", blob, code.compile_id, code.level,
	       code.code_begin, form, (int)m.name, room.ptr, (int)m.file, room.ptr + m.name, m.first_line);
	if (record_folder && record_id == code.compile_id)
		record(p, &code, str_n(room.ptr + room.len - form, form));
	show_positions(&code, cur_of(room.ptr + room.len - form, form));
}

static bool is_nmethod(const struct java_process *p, uint64_t blob)
{
	char name[16] = "";
	uint64_t at = 0;

	return java_read_word(&p->memory, blob + p->layout->blob_name, &at) == 0 &&
	       java_read(&p->memory, name, sizeof(name) - 1, at) == 0 &&
	       (!strcmp(name, "nmethod") || !strcmp(name, "native nmethod"));
}

static int show_heap(const struct java_process *p, uint64_t heap)
{
	const struct java_layout *l = p->layout;
	scoped(buf_release) struct buf map = BUF_INIT(MIB(16));
	uint64_t low, high, segments;
	uint32_t shift;
	uint8_t *bytes;
	int r = java_read_word(&p->memory, heap + l->heap_memory + l->space_low, &low);

	r = r ? r : java_read_word(&p->memory, heap + l->heap_memory + l->space_high, &high);
	r = r ? r : java_read_word(&p->memory, heap + l->heap_segments + l->space_low, &segments);
	r = r ? r : java_read(&p->memory, &shift, sizeof(shift), heap + l->heap_shift);
	bytes = r == 0 ? buf_reserve(&map, (high - low) >> shift) : NULL;
	if (!bytes)
		return r ? r : map.error;
	r = java_read(&p->memory, bytes, (uint32_t)((high - low) >> shift), segments);
	for (uint64_t i = 0; r == 0 && i < (high - low) >> shift; i++) {
		uint64_t block = low + (i << shift);
		uint8_t used = 0;

		if (bytes[i] || java_read(&p->memory, &used, 1, block + l->heap_block_used) < 0 || !used)
			continue;
		if (is_nmethod(p, block + l->heap_block_size))
			show_code(p, block + l->heap_block_size);
	}
	return r;
}

static int show_codes(const struct java_process *p)
{
	const struct java_layout *l = p->layout;
	uint64_t array, data, heap;
	uint32_t count = 0;
	int r = java_read_word(&p->memory, l->code_heaps + p->bias, &array);

	if (r == 0 && l->flags & JAVA_LAYOUT_ONE_HEAP)
		return show_heap(p, array);
	r = r ? r : java_read(&p->memory, &count, sizeof(count), array + l->array_length);
	r = r ? r : java_read_word(&p->memory, array + l->array_data, &data);
	for (uint32_t i = 0; r == 0 && i < MIN(count, 8U); i++) {
		r = java_read_word(&p->memory, data + 8ULL * i, &heap);
		r = r ? r : show_heap(p, heap);
	}
	return r;
}

static int show_perf(const struct java_process *p)
{
	scoped(java_perf_release) struct java_perf perf = { 0 };
	uint64_t epoch;
	char line[256];
	int r = java_perf_read(&p->memory, p->layout, p->bias, &perf);

	r = r ? r : java_epoch_find(&p->memory, p->layout, p->bias, &epoch);
	while (r == 0 && fgets(line, sizeof(line), stdin)) {
		int64_t value;

		line[strcspn(line, "\n")] = 0;
		if (java_perf_number(&perf, line, &value, NULL) == 0)
			printf("%" PRId64 "\n", value);
		else
			printf("none\n");
	}
	return r;
}

/* May an agent redefine classes, as a walk reads it? */
static int show_redefines(const struct java_process *p)
{
	uint8_t may = 0;
	int r = p->layout->can_redefine ? java_read(&p->memory, &may, 1, p->layout->can_redefine + p->bias) : -ENOTSUP;

	if (r == 0)
		printf("%u\n", may);
	return r;
}

static int show_metadata(const struct java_process *p)
{
	const struct jvm *jvm = p->memory.self;
	scoped(buf_release) struct buf json = BUF_INIT(MIB(1)), path = BUF_INIT(64);
	struct runtime_target target = { .pid = (uint32_t)jvm->pid,
					 .read = p->memory.read,
					 .self = p->memory.self,
					 .bias = p->bias,
					 .of_process = (void *)(uintptr_t)p->layout, /* read only */
					 .host_root = "" };
	scoped(closep) int dir = -1;
	int r;

	buf_addf(&path, "/proc/%d", jvm->pid);
	dir = open(buf_cstr(&path), O_PATH | O_DIRECTORY | O_CLOEXEC);
	target.proc_dir = dir;
	r = java_metadata(NULL, &target, &json);
	if (r == 0)
		printf(STR_FMT "\n", STR_ARG(buf_str(&json)));
	return r;
}

static int show_thread(void *ctx, uint32_t tid, struct str name)
{
	(void)ctx;
	printf("%u " STR_FMT "\n", tid, STR_ARG(name));
	return 0;
}

static int show_process(const struct jvm *jvm, const struct java_tables *t, const char *command)
{
	struct java_layout layout;
	const struct java_process process = { jvm->memory, &layout, jvm->bias };
	char why[96] = "";
	int r = java_layout_fill(&jvm->memory, t, jvm->bias, &layout, why);

	if (r < 0)
		return r;
	if (!strcmp(command, "codes") || !strcmp(command, "record"))
		return show_codes(&process);
	if (!strcmp(command, "perf"))
		return show_perf(&process);
	if (!strcmp(command, "threads")) {
		ignore(java_threads_learn(&process, &layout) < 0);
		return java_threads_each(&process, show_thread, NULL);
	}
	if (!strcmp(command, "redefines"))
		return show_redefines(&process);
	if (!strcmp(command, "metadata"))
		return show_metadata(&process);
	return -EINVAL;
}

static int run(struct jvm *jvm, const char *command)
{
	scoped(java_tables_freep) struct java_tables *tables = NULL;
	uint64_t began_ns = clock_monotonic_ns(&clock_system);
	int r = find_library(jvm);

	r = r ? r : find_symbols(jvm);
	r = r ? r : java_tables_read(&jvm->memory, jvm->symbols, jvm->bias, &tables);
	if (r < 0)
		return r;
	if (!strcmp(command, "tables"))
		return show_tables(tables);
	if (!strcmp(command, "layout"))
		return show_layout(jvm, tables, began_ns);
	return show_process(jvm, tables, command);
}

int main(int argc, char **argv)
{
	static struct jvm jvm = { .memory = { .read = read_process, .self = &jvm } };
	uint64_t pid;
	int r;

	if (argc < 3 || str_to_u64(str_of(argv[1]), 1, INT32_MAX, &pid) < 0)
		return 2;
	jvm.pid = (pid_t)pid;
	if (argc == 4)
		java_collect_flags = argv[3];
	if (argc == 5) {
		record_folder = argv[3];
		record_id = (uint32_t)strtoul(argv[4], NULL, 10);
	}
	r = run(&jvm, argv[2]);
	if (r < 0)
		fprintf(stderr, "%s\n", strerror(-r));
	return r < 0;
}
