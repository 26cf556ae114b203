/* SPDX-License-Identifier: Apache-2.0 */
/* python_ticks TARGET LOAD HZ SECONDS [VERSION ...]: how long the walk of Python frames takes at a tick, its names
 * included; one line for each interpreter: version, frames, and of the time in ns the median, the mean and two
 * percentiles; then the share of ticks that sent names. In front of them what one read of a process takes here. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/str.h"
#include "python_process.h"

#include "python_seed.skel.h"

#define TICKS_MAX 65536
#define READS 100 /* as in python_seed.bpf.c */
#define WARM_UP_S 1

struct python_tick {
	uint32_t ns;
	uint16_t frames, names;
};

static int by_time(const void *a, const void *b)
{
	const struct python_tick *left = a, *right = b;

	return (left->ns > right->ns) - (left->ns < right->ns);
}

static int tick_open(unsigned int cpu, uint64_t hz, int program)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_freq = hz,
					.freq = 1 };
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void print_ticks(const char *version, struct python_tick *ticks, size_t count)
{
	uint64_t sum = 0, frames = 0, named = 0;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (ticks[i].ns && ticks[i].frames)
			ticks[kept++] = ticks[i];
	if (!kept) {
		printf("%s no ticks\n", version);
		return;
	}
	qsort(ticks, kept, sizeof(*ticks), by_time);
	for (size_t i = 0; i < kept; i++) {
		sum += ticks[i].ns;
		frames += ticks[i].frames;
		named += ticks[i].names > 0;
	}
	printf("%s frames %.1f ticks %zu median %u mean %.0f p5 %u p95 %u named %.3f\n", version,
	       (double)frames / (double)kept, kept, ticks[kept / 2].ns, (double)sum / (double)kept,
	       ticks[kept * 5 / 100].ns, ticks[kept * 95 / 100].ns, (double)named / (double)kept);
	fflush(stdout);
}

static int ignore_name(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
	return 0;
}

static void measure(struct python_seed_bpf *skel, const struct python_program *program, const struct python_process *p,
		    unsigned int seconds)
{
	static struct python_tick ticks[TICKS_MAX];
	struct ring_buffer *ring = ring_buffer__new(bpf_map__fd(skel->maps.ring), ignore_name, NULL, NULL);
	uint32_t pid = (uint32_t)p->pid, first, last;

	must(ring && bpf_map_update_elem(bpf_map__fd(skel->maps.pythons), &pid, &p->info, BPF_ANY) == 0);
	skel->bss->target = pid;
	sleep(WARM_UP_S);
	first = skel->bss->tick_count;
	for (unsigned int i = 0; i < seconds * 10; i++) {
		usleep(100000);
		ignore(ring_buffer__consume(ring));
	}
	skel->bss->target = 0;
	last = MIN(skel->bss->tick_count, (uint32_t)TICKS_MAX);
	for (uint32_t i = first; i < last; i++)
		ignore(bpf_map_lookup_elem(bpf_map__fd(skel->maps.ticks), &i, &ticks[i - first]));
	ring_buffer__free(ring);
	print_ticks(program->version, ticks, last > first ? last - first : 0);
}

/* The least of many tries: on a busy machine the others measure something else. */
static void print_read(struct python_seed_bpf *skel)
{
	static const uint8_t memory[128] = { 1 };
	uint64_t seed[2] = { (uint64_t)(uintptr_t)memory, 0 }, least = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = seed, .ctx_size_in = sizeof(seed));

		if (bpf_prog_test_run_opts(bpf_program__fd(skel->progs.python_reads), &opts) == 0)
			least = MIN(least, (uint64_t)skel->bss->seed_ns);
	}
	printf("read %.1f ns\n", (double)least / READS);
}

static bool is_wanted(const struct python_program *program, int argc, char **argv)
{
	for (int i = 5; i < argc; i++)
		if (!strcmp(argv[i], program->version))
			return true;
	return argc == 5;
}

int main(int argc, char **argv)
{
	static struct python_program programs[PYTHONS_MAX];
	uint64_t hz, seconds;

	if (argc < 5 || str_to_u64(str_of(argv[3]), 1, 10000, &hz) < 0 ||
	    str_to_u64(str_of(argv[4]), 1, 600, &seconds) < 0) {
		fprintf(stderr, "usage: python_ticks TARGET LOAD HZ SECONDS [VERSION ...]\n");
		return 2;
	}
	for (size_t i = 0, count = python_programs(programs), done = 0; i < count; i++) {
		struct python_seed_bpf *skel;
		struct python_process p;

		if (!is_wanted(&programs[i], argc, argv))
			continue;
		skel = python_seed_bpf__open_and_load();
		if (!skel)
			return 1;
		if (!done++)
			print_read(skel);
		for (unsigned int cpu = 0; cpu < (unsigned int)libbpf_num_possible_cpus(); cpu++)
			ignore(tick_open(cpu, hz, bpf_program__fd(skel->progs.python_tick)));
		if (python_start(&programs[i], argv[1], argv[2], 600, &p) == 0) {
			measure(skel, &programs[i], &p, (unsigned int)seconds);
			python_end(&p);
		}
		python_seed_bpf__destroy(skel);
	}
	return 0;
}
