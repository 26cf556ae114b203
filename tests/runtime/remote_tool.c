/* SPDX-License-Identifier: Apache-2.0 */
/* remote_tool PID HZ SECONDS [--idle]: the stacks of one process as the sampler `remote` sees them, one line each:
 *
 *	END COUNT frame;frame;...       root first; frame: name (file:first line)@position, "~" in front when it is a
 *guess
 *
 * and on stderr its counters and what it cost. For check_remote.py and the benchmark, which hold them against what the
 * process itself records. */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "abi/python.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/io.h"
#include "base/u64map.h"
#include "proc/maps.h"
#include "proc/proc_read.h"
#include "runtime/registry.h"
#include "runtime/runtime_sink.h"
#include "sampler/samplers.h"

#define STACKS_MAX 262144

struct tool {
	struct u64map names; /* key ^ cookie -> string */
	struct u64map lines; /* string of a stack -> count */
	struct intern texts;
	uint32_t counts[STACKS_MAX];
};

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all((int)(intptr_t)self, dst, size, offset);
}

static int read_process(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct iovec to = { dst, size }, from = { (void *)(uintptr_t)at, size };
	ssize_t n = process_vm_readv((pid_t)(intptr_t)self, &to, 1, &from, 1, 0);

	return n < 0 ? -errno : n == (ssize_t)size ? 0 : -EFAULT;
}

/* Return: the size of *info, or -errno. */
__attribute__((noinline)) static int attach_file(uint32_t pid, int proc_dir, const struct maps_line *line, void *info)
{
	char path[KIB(1)];
	struct elf elf = { 0 };
	struct runtime_file file = { .elf = &elf, .path = line->path };
	struct runtime_binary *binary = NULL;
	struct runtime_target target = {
		.pid = pid, .read = read_process, .self = (void *)(intptr_t)pid, .host_root = "", .proc_dir = proc_dir
	};
	scoped(closep) int fd = -1;
	struct reader in;
	struct stat st;
	uint64_t address;
	int r;

	snprintf(path, sizeof(path), STR_FMT, STR_ARG(line->path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	in = (struct reader){ .read = read_fd, .self = (void *)(intptr_t)fd, .size = (uint64_t)st.st_size };
	r = elf_parse(&in, &elf);
	if (r == 0)
		r = runtime_python.probe(&file, &binary);
	if (r == 1) {
		binary->runtime = &runtime_python;
		r = elf_address_of(&elf, line->offset, &address);
		target.bias = line->start - address;
		if (r == 0)
			r = runtime_python.attach(binary, &target, info);
		runtime_python.release(binary);
	}
	elf_release(&elf);
	return r;
}

__attribute__((noinline)) static int attach(uint32_t pid, void *info)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(4)), scratch = BUF_INIT(KIB(64));
	scoped(closep) int dir = proc_dir_open("", pid);
	struct proc_facts facts;
	struct maps_line line;
	struct str rest;
	int r, found;

	if (dir < 0 || proc_facts_read(dir, 0, &scratch, &facts) < 0)
		return -ESRCH;
	r = io_read_file_at(dir, "maps", &text);
	rest = buf_str(&text);
	while (r == 0 && (found = maps_next(&rest, &line)) != 0) {
		if (found < 0 || !line.executable || !line.inode)
			continue;
		found = attach_file(pid, dir, &line, info);
		if (found <= 0)
			continue;
		((struct abi_python *)info)->start_ns = facts.start_ticks * (NSEC_PER_SEC / 100);
		return found;
	}
	return -ENOENT;
}

static void on_name(void *ctx, const struct abi_name *name)
{
	struct tool *t = ctx;
	const struct abi_python_name *head = (const void *)name->bytes;
	const char *file = (const char *)name->bytes + sizeof(*head), *text = file + align_up(head->file_sent, 8);
	scoped(buf_release) struct buf out = BUF_INIT(KIB(4));
	uint32_t id;

	buf_add(&out, text, head->name_sent);
	buf_addf(&out, " (%.*s:%d)", (int)head->file_sent, file, head->first_line);
	must(!out.error && intern_add(&t->texts, buf_str(&out), &id) == 0);
	must(u64map_put(&t->names, name->key ^ name->cookie, id) == 0);
}

static void on_sample(void *ctx, const struct abi_sample *s)
{
	static const char *const ends[] = {
#define X(id, name, help) name,
		ABI_RUNTIME_ENDS(X)
#undef X
	};
	struct tool *t = ctx;
	scoped(buf_release) struct buf out = BUF_INIT(KIB(256));
	uint32_t id, name, row = 0;

	buf_addf(&out, "%s ", ends[s->runtime_end]);
	for (size_t i = s->runtime_count; i-- > 0;) {
		const struct abi_frame *f = &s->frames[i];

		if (f->kind != ABI_FRAME_RUNTIME)
			continue;
		if (f->flags & ABI_FRAME_GUESSED)
			buf_addc(&out, '~');
		if (u64map_get(&t->names, f->a ^ f->b, &name) == 0)
			buf_adds(&out, intern_get(&t->texts, name));
		else
			buf_adds(&out, STR("?"));
		buf_addf(&out, "@%u%s%s", f->extra, f->flags & ABI_FRAME_GAP ? "!" : "", i ? ";" : "");
	}
	must(!out.error && intern_add(&t->texts, buf_str(&out), &id) == 0);
	if (u64map_get(&t->lines, id, &row) < 0) {
		row = (uint32_t)t->lines.used;
		must(row < STACKS_MAX && u64map_put(&t->lines, id, row) == 0);
	}
	t->counts[row]++;
}

static void on_process(void *ctx, const struct abi_process *event)
{
	(void)ctx;
	(void)event;
}

static void print(const struct tool *t)
{
	for (uint32_t id = 0; id < intern_count(&t->texts); id++) {
		struct str text = intern_get(&t->texts, id), end;
		uint32_t row;

		if (u64map_get(&t->lines, id, &row) < 0)
			continue;
		must(str_next(&text, ' ', &end));
		printf(STR_FMT " %u " STR_FMT "\n", STR_ARG(end), t->counts[row], STR_ARG(text));
	}
}

static double cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return ((double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec) * 1e6 + (double)u.ru_utime.tv_usec +
	       (double)u.ru_stime.tv_usec;
}

__attribute__((noinline)) static void print_cost(const struct sampler_state *s, double cpu, double seconds)
{
	static const char *const names[] = {
#define X(id, name, help) name,
		ABI_COUNTERS(X)
#undef X
	};
	uint64_t counters[ABI_COUNTER_COUNT];

	sampler_remote.counters(s, counters);
	for (size_t i = 0; i < ABI_COUNTER_COUNT; i++)
		if (counters[i])
			fprintf(stderr, "%s %" PRIu64 "\n", names[i], counters[i]);
	fprintf(stderr, "cpu_us %.0f\nseconds %.3f\n", cpu, seconds);
	if (counters[ABI_COUNTER_SAMPLES])
		fprintf(stderr, "cpu_us_per_sample %.1f\n", cpu / (double)counters[ABI_COUNTER_SAMPLES]);
}

int main(int argc, char **argv)
{
	static struct tool tool;
	uint64_t pid, hz, seconds, info[RUNTIME_INFO_MAX / 8], start_ns, end_ns;
	scoped(buf_release) struct buf why = BUF_INIT(KIB(16));
	const struct sampler_events events = {
		.sample = on_sample, .process = on_process, .name = on_name, .ctx = &tool
	};
	struct sampler_config cfg = { .pid_count = 1, .host_root = "", .include_self = true };
	struct sampler_state *s;
	struct runtime_sink sink;
	double cpu;
	pid_t target;
	int size;

	if (argc < 4 || str_to_u64(str_of(argv[1]), 1, INT32_MAX, &pid) < 0 ||
	    str_to_u64(str_of(argv[2]), 1, 100000, &hz) < 0 || str_to_u64(str_of(argv[3]), 1, 3600, &seconds) < 0)
		return fprintf(stderr, "remote_tool PID HZ SECONDS [--idle]\n"), 2;
	target = (pid_t)pid;
	cfg.pids = &target;
	cfg.frequency_hz = (uint32_t)hz;
	cfg.idle = argc > 4;
	u64map_init(&tool.names, STACKS_MAX);
	u64map_init(&tool.lines, STACKS_MAX);
	intern_init(&tool.texts, MIB(256));
	size = attach((uint32_t)pid, info);
	if (size < 0)
		return fprintf(stderr, "cannot attach: %s\n", strerror(-size)), 1;
	if (sampler_remote.probe(&cfg, &why) < 0 || sampler_remote.open(&cfg, &why, &s) < 0)
		return fprintf(stderr, "%s\n", buf_cstr(&why)), 1;
	must(sampler_remote.runtimes(s, &sink) == 0 &&
	     sink.set(sink.self, ABI_RUNTIME_PYTHON, (uint32_t)pid, info, (size_t)size) == 0);
	cpu = cpu_us();
	start_ns = end_ns = clock_monotonic_ns(&clock_system);
	must(sampler_remote.start(s) == 0);
	for (; end_ns - start_ns < seconds * NSEC_PER_SEC; end_ns = clock_monotonic_ns(&clock_system))
		must(sampler_remote.poll(s, 200, &events) >= 0);
	must(sampler_remote.stop(s) == 0);
	must(sampler_remote.poll(s, 0, &events) >= 0);
	cpu = cpu_us() - cpu;
	print(&tool);
	print_cost(s, cpu, (double)(end_ns - start_ns) / 1e9);
	sampler_remote.close(s);
	u64map_release(&tool.names);
	u64map_release(&tool.lines);
	intern_release(&tool.texts);
	return 0;
}
