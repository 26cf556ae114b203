/* SPDX-License-Identifier: Apache-2.0 */
/* load_table FILE: reads the unwind rows of an ELF file and puts them where the kernel's walkers find them, as the
 * unwind worker does. Prints thread CPU time and wall time in microseconds, rows, bytes. Needs root. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "object/unwind/table.h"
#include "sampler/samplers.h"
#include "unwind/table_sink.h"
#include "walk/walk.h"

static int read_file(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all(*(int *)self, dst, size, offset);
}

static uint64_t now_us(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int load(int fd, const struct table_sink *sink, struct unwind_stats *stats, struct table *out)
{
	scoped(elf_release) struct elf elf = { 0 };
	scoped(unwind_table_release) struct unwind_table table = { 0 };
	struct reader in = { .read = read_file, .self = &fd };
	struct table_change change = { 1, out };
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	in.size = (uint64_t)st.st_size;
	r = elf_parse(&in, &elf);
	if (r == 0)
		r = unwind_table_build(&elf, NULL, &table);
	if (r == 0 && !table.elements)
		r = -ENOENT;
	if (r == 0)
		r = sink->put(sink->self, table.elements, table.elements[0].head.size, out);
	if (r == 0)
		r = sink->change_tables(sink->self, &change, 1);
	*stats = table.stats;
	return r;
}

int main(int argc, char **argv)
{
	struct sampler_config cfg = { .frequency_hz = 1, .poll_interval_ms = 1000, .host_root = "", .mode = WALK_AUTO };
	const struct sampler *sampler = sampler_find(STR("bpf"));
	scoped(buf_release) struct buf why = BUF_INIT(KIB(64));
	scoped(closep) int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct sampler_state *state = NULL;
	struct unwind_stats stats = { 0 };
	struct table table = { .fd = -1 };
	struct table_sink sink;
	uint64_t cpu, wall;
	int r;

	if (fd < 0) {
		fprintf(stderr, "load_table FILE: %s\n", strerror(errno));
		return 2;
	}
	if (sampler->open(&cfg, &why, &state) < 0) {
		fprintf(stderr, "%s\n", buf_cstr(&why));
		return 1;
	}
	r = sampler->tables(state, &sink);
	cpu = now_us(CLOCK_THREAD_CPUTIME_ID);
	wall = now_us(CLOCK_MONOTONIC);
	if (r == 0)
		r = load(fd, &sink, &stats, &table);
	cpu = now_us(CLOCK_THREAD_CPUTIME_ID) - cpu;
	wall = now_us(CLOCK_MONOTONIC) - wall;
	if (r == 0)
		printf("%llu %llu %llu %zu\n", (unsigned long long)cpu, (unsigned long long)wall,
		       (unsigned long long)stats.rows, table.bytes);
	else
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
	sink.drop(sink.self, &table);
	sampler->close(state);
	return r ? 1 : 0;
}
