/* SPDX-License-Identifier: Apache-2.0 */
#include "seed_run.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/* In the BPF map an element has no world pointer, which lies before head. */
#define KERNEL_SIZE (sizeof(struct walk) - sizeof(const struct walk_world *))
#define KERNEL_FRAMES (offsetof(struct walk, frames) - sizeof(const struct walk_world *))

static int self_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct iovec to = { dst, size }, from = { (void *)(uintptr_t)at, size };

	(void)self;
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

void seed_run_open(struct seed_run *run, const struct seed_maps *maps, int (*take)(void *, void *, size_t), void *ctx)
{
	run->random = 4711;
	run->program = maps->program;
	run->walks = maps->walks;
	run->kernel = calloc((size_t)libbpf_num_possible_cpus(), align_up(KERNEL_SIZE, 8));
	assert_non_null(run->kernel);
	run->world = (struct walk_world){ .read = self_read };
	run->host.world = &run->world;
	run->ring = ring_buffer__new(maps->ring, take, ctx, NULL);
	assert_non_null(run->ring);
}

void seed_run_close(struct seed_run *run)
{
	ring_buffer__free(run->ring);
	free(run->kernel);
}

uint64_t seed_random(struct seed_run *run) /* G. Marsaglia 2003 */
{
	run->random ^= run->random << 13;
	run->random ^= run->random >> 7;
	run->random ^= run->random << 17;
	return run->random;
}

const uint8_t *seed_run_kernel(struct seed_run *run, uint64_t tp)
{
	struct {
		uint64_t tp, tid;
	} seed = { .tp = tp };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &seed, .ctx_size_in = sizeof(seed));
	uint32_t zero = 0;

	assert_int_equal(bpf_prog_test_run_opts(run->program, &opts), 0);
	assert_true((int)opts.retval >= 0 && (int)opts.retval < libbpf_num_possible_cpus());
	assert_int_equal(bpf_map_lookup_elem(run->walks, &zero, run->kernel), 0);
	assert_true(ring_buffer__consume(run->ring) >= 0);
	return run->kernel + opts.retval * align_up(KERNEL_SIZE, 8);
}

void seed_compare(const struct seed_run *run, const uint8_t *kernel)
{
	uint32_t count;

	memcpy(&count, kernel + offsetof(struct walk, runtime_count), sizeof(count));
	assert_int_equal(kernel[offsetof(struct walk, runtime_end)], run->host.runtime_end);
	assert_int_equal(count, run->host.runtime_count);
	assert_memory_equal(kernel + KERNEL_FRAMES, run->host.frames, count * sizeof(struct abi_frame));
}

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

void seed_say_times(const char *what, size_t frames, uint64_t *times, size_t count)
{
	qsort(times, count, sizeof(times[0]), by_value);
	print_message("  %s, %zu frames: %llu ns, median of %zu; least %llu\n", what, frames,
		      (unsigned long long)times[count / 2], count, (unsigned long long)times[0]);
}

void seed_stay_on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

void seed_take_name(struct seed_names *names, const void *data, size_t size, uint8_t runtime,
		    int (*decode)(const uint8_t *, size_t, struct buf *, struct runtime_function *))
{
	scoped(buf_release) struct buf room = BUF_INIT(KIB(8));
	const struct abi_name *name = data;
	struct runtime_function f = { 0 };
	struct seed_name *to;

	assert_int_equal(name->header.type, ABI_RECORD_NAME);
	assert_int_equal(name->header.size, size);
	assert_int_equal(name->runtime, runtime);
	assert_true(size >= sizeof(*name) + name->bytes_size);
	if (names->count++ >= ARRAY_SIZE(names->first))
		return;
	to = &names->first[names->count - 1];
	*to = (struct seed_name){ .key = name->key, .cookie = name->cookie };
	if (decode(name->bytes, name->bytes_size, &room, &f) < 0)
		return;
	snprintf(to->name, sizeof(to->name), STR_FMT, STR_ARG(f.name));
	snprintf(to->file, sizeof(to->file), STR_FMT, STR_ARG(f.file));
}

#define GUARD 4096

uint8_t *seed_map(uint64_t at, size_t size)
{
	uint8_t *room = mmap((void *)(uintptr_t)(at - GUARD), size + 2 * GUARD, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	assert_int_equal((uintptr_t)room, at - GUARD);
	assert_int_equal(mprotect(room + GUARD, size, PROT_READ | PROT_WRITE), 0);
	return room + GUARD;
}

void seed_unmap(uint8_t *memory, size_t size)
{
	munmap(memory - GUARD, size + 2 * GUARD);
}
