/* SPDX-License-Identifier: Apache-2.0 */
/* java_tool PID COMMAND: what the readers of HotSpot find in a live JVM. For people and for check_java.py, which
 *compares with the JDK's own tools.
 *
 *	tables    answers questions of stdin, one a line: "F type<tab>field", "T type", "C constant"
 *	layout    the layout, or why it is refused; reads and time */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "object/elf_find.h"
#include "proc/maps.h"
#include "runtime/java/layout.h"

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
	return -EINVAL;
}

int main(int argc, char **argv)
{
	static struct jvm jvm = { .memory = { .read = read_process, .self = &jvm } };
	uint64_t pid;
	int r;

	if (argc < 3 || str_to_u64(str_of(argv[1]), 1, INT32_MAX, &pid) < 0)
		return 2;
	jvm.pid = (pid_t)pid;
	r = run(&jvm, argv[2]);
	if (r < 0)
		fprintf(stderr, "%s\n", strerror(-r));
	return r < 0;
}
