/* SPDX-License-Identifier: Apache-2.0 */
/* attach_tool PID ...: what probing and attaching find in live processes; one line per file, one per process. For
 * people and for check_layouts.py, which compares with debug information. */
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "fuzz/attach_recording.h"
#include "proc/maps.h"
#include "proc/proc_read.h"
#include "runtime/python/python_int.h"
#include "runtime/registry.h"
#include "walk/walk_python.h"

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all((int)(intptr_t)self, dst, size, offset);
}

struct options {
	bool stacks;
	FILE *record;
};

struct source {
	pid_t pid;
	FILE *record; /* NULL: nothing is recorded */
};

static int read_process(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct source *source = self;
	struct iovec to = { dst, size }, from = { (void *)(uintptr_t)at, size };
	ssize_t n = process_vm_readv(source->pid, &to, 1, &from, 1, 0);
	uint16_t length = (uint16_t)size;

	if (n != (ssize_t)size)
		return n < 0 ? -errno : -EFAULT;
	if (source->record && size <= UINT16_MAX) {
		fwrite(&at, sizeof(at), 1, source->record); /* little-endian, as everything here */
		fwrite(&length, sizeof(length), 1, source->record);
		fwrite(dst, size, 1, source->record);
	}
	return 0;
}

static void record_numbers(FILE *record, const struct runtime_binary *binary, uint64_t bias)
{
	uint64_t numbers[RECORDING_NUMBERS];

	if (!record)
		return;
	recording_numbers((const struct python_binary *)binary, bias, numbers);
	fwrite(numbers, sizeof(numbers), 1, record);
}

static void print_binary(const struct runtime_binary *b, const char *path, uint64_t took_ns)
{
	printf("file %s runtime %s version %s us %" PRIu64, path, b->runtime ? b->runtime->name : "?", b->version,
	       took_ns / 1000);
	if (b->refused[0])
		printf(" refused \"%s\"", b->refused);
	for (size_t i = 0; i < b->loop_count; i++)
		printf(" loop %#" PRIx64 "+%" PRIu64, b->loops[i].start, b->loops[i].end - b->loops[i].start);
	printf("\n");
}

static void print_python(uint32_t pid, const struct abi_python *p, uint64_t took_ns)
{
	const struct abi_python_layout *l = &p->layout;

	printf("pid %u us %" PRIu64
	       " ways %#x flags %#x holder %#llx interpreters %#llx none %#llx cleanup %#llx key_at %lld "
	       "key_offset %u tls_at %lld\n",
	       pid, took_ns / 1000, p->ways, p->flags, p->holder, p->interpreters, p->none, p->cleanup, p->key_at,
	       p->key_offset, p->tls_at);
#define FIELD(name) printf(" " #name " %u", l->name)
	printf("layout");
	FIELD(thread_next), FIELD(thread_frame), FIELD(cframe_frame), FIELD(cframe_previous), FIELD(thread_id);
	FIELD(thread_native_id), FIELD(interp_next), FIELD(interp_threads), FIELD(frame_back), FIELD(frame_code);
	FIELD(frame_last), FIELD(frame_entry), FIELD(frame_size), FIELD(code_filename), FIELD(code_name);
	FIELD(code_qualname), FIELD(code_first_line), FIELD(code_lines), FIELD(code_bytes), FIELD(string_length);
	FIELD(string_state), FIELD(string_ascii), FIELD(string_compact), FIELD(bytes_length), FIELD(bytes_data);
	FIELD(string_kind_bit), FIELD(last_unit), FIELD(entry), FIELD(entry_value), FIELD(version_minor),
		FIELD(version_major);
	printf("\n");
}

static uint64_t word_at(const struct runtime_target *t, uint64_t at)
{
	uint64_t word = 0;

	return t->read(t->self, &word, sizeof(word), at) == 0 ? word : 0;
}

static void print_frame(const struct runtime_target *t, const struct abi_python *p, const struct abi_frame *f)
{
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1));
	struct runtime_function function = { 0 };
	int r;

	if (f->kind == ABI_FRAME_ACTIVATION)
		return;
	r = runtime_python.read_name(t, p, f->a, f->b, &room, &function);
	if (r < 0)
		printf("    %#llx %s\n", f->a, strerror(-r));
	else
		printf("    " STR_FMT " (" STR_FMT ":%d)%s%s\n", STR_ARG(function.name), STR_ARG(function.file),
		       runtime_python.line(&function, f->extra), f->flags & ABI_FRAME_GAP ? " gap" : "",
		       f->flags & ABI_FRAME_ENTRY ? " entry" : "");
}

static int read_world(void *self, void *dst, __u32 size, __u64 at)
{
	const struct runtime_target *t = self;

	return t->read(t->self, dst, size, at);
}

static void print_stack(const struct runtime_target *t, const struct abi_python *p, uint64_t thread)
{
	const struct walk_world world = { .read = read_world, .self = (void *)(uintptr_t)t };
	struct walk *w = calloc(1, sizeof(*w));
	enum walk_next next;

	if (!w)
		return;
	w->world = &world;
	next = walk_python_start_at(w, p, thread);
	for (int turn = 0; next == WALK_MORE && turn < 1000; turn++)
		next = walk_python_step(w);
	printf("  thread %#" PRIx64 " end %u frames %u\n", thread, w->runtime_end, w->runtime_count);
	for (uint32_t i = 0; i < w->runtime_count; i++)
		print_frame(t, p, &w->frames[w->count + i]);
	free(w);
}

static void print_stacks(const struct runtime_target *t, const struct abi_python *p)
{
	uint64_t interp = word_at(t, p->interpreters);

	for (int i = 0; interp && i < 8; i++, interp = word_at(t, interp + p->layout.interp_next)) {
		uint64_t thread = word_at(t, interp + p->layout.interp_threads);

		for (int j = 0; thread && j < 32; j++, thread = word_at(t, thread + p->layout.thread_next))
			print_stack(t, p, thread);
	}
}

/* Return: 0 when the file is a runtime that could be attached to. */
static int try_file(uint32_t pid, int proc_dir, const struct maps_line *line, const struct options *options)
{
	char path[256], place[PROC_MAP_FILE_SIZE];
	struct elf elf = { 0 };
	struct runtime_file file = { .elf = &elf, .path = line->path, .is_program = true };
	struct runtime_binary *binary = NULL;
	struct source source = { .pid = (pid_t)pid, .record = options->record };
	struct runtime_target target = {
		.pid = pid, .read = read_process, .self = &source, .host_root = "", .proc_dir = proc_dir
	};
	uint8_t info[RUNTIME_INFO_MAX];
	uint64_t address, start_ns = clock_monotonic_ns(&clock_system);
	struct reader in;
	struct stat st;
	int fd, r;

	snprintf(path, sizeof(path), STR_FMT, STR_ARG(line->path));
	proc_map_file(line->start, line->end, place);
	fd = openat(proc_dir, place, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	in = (struct reader){ .read = read_fd, .self = (void *)(intptr_t)fd, .size = (uint64_t)st.st_size };
	r = elf_parse(&in, &elf);
	if (r == 0)
		r = runtime_python.probe(&file, &binary);
	if (r == 1) {
		binary->runtime = &runtime_python;
		print_binary(binary, path, clock_monotonic_ns(&clock_system) - start_ns);
		start_ns = clock_monotonic_ns(&clock_system);
		r = elf_address_of(&elf, line->offset, &address);
		target.bias = line->start - address;
		record_numbers(source.record, binary, target.bias);
		if (r == 0)
			r = runtime_python.attach(binary, &target, info);
		if (r > 0)
			print_python(pid, (const struct abi_python *)info,
				     clock_monotonic_ns(&clock_system) - start_ns);
		source.record = NULL;
		if (r > 0 && options->stacks)
			print_stacks(&target, (const struct abi_python *)info);
		if (r <= 0)
			printf("pid %u attach %s\n", pid, strerror(-r));
		runtime_python.release(binary);
		r = r > 0 ? 0 : r;
	} else {
		r = r < 0 ? r : -ENOENT;
	}
	elf_release(&elf);
	close(fd);
	return r;
}

static int try_process(uint32_t pid, const struct options *options)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(4));
	scoped(closep) int dir = proc_dir_open("", pid);
	struct maps_line line;
	struct str rest;
	int r, found = -ENOENT;

	if (dir < 0)
		return dir;
	r = io_read_file_at(dir, "maps", &text);
	if (r < 0)
		return r;
	rest = buf_str(&text);
	while ((r = maps_next(&rest, &line)) != 0)
		if (r > 0 && line.executable && line.inode && try_file(pid, dir, &line, options) == 0)
			found = 0;
	return found;
}

int main(int argc, char **argv)
{
	struct options options = { 0 };
	int failed = 0, first = 1;

	if (argc > 1 && strcmp(argv[1], "--stacks") == 0) {
		options.stacks = true;
		first = 2;
	} else if (argc > 2 && strcmp(argv[1], "--record") == 0) {
		options.record = fopen(argv[2], "we");
		first = 3;
		if (!options.record)
			return 1;
	}
	for (int i = first; i < argc; i++) {
		uint64_t pid;

		if (str_to_u64(str_of(argv[i]), 1, UINT32_MAX, &pid) < 0 || try_process((uint32_t)pid, &options) < 0) {
			printf("pid %s nothing\n", argv[i]);
			failed = 1;
		}
	}
	if (options.record && fclose(options.record))
		failed = 1;
	return failed || argc <= first;
}
