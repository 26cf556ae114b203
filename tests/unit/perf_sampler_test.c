/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler perf without a kernel: made records, hostile ones, made rings, and whose they are. */
#include "support.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <unistd.h>

#include "sampler/perf/rings.h"
#include "sampler/perf/tasks.h"
#include "walk/walk.h"

#define GONE 4000000U /* pids that no process has: below PID_MAX_LIMIT, above what the kernel gives */
#define IN_KERNEL UINT64_C(0xffffffff81000000)

struct made {
	_Alignas(8) uint8_t bytes[1024];
	size_t size;
};

static void put32(struct made *m, uint32_t value)
{
	memcpy(m->bytes + m->size, &value, 4);
	m->size += 4;
}

static void put64(struct made *m, uint64_t value)
{
	memcpy(m->bytes + m->size, &value, 8);
	m->size += 8;
}

static void put_text(struct made *m, const char *text)
{
	size_t size = align_up(strlen(text) + 1, 8);

	memset(m->bytes + m->size, 0, size);
	memcpy(m->bytes + m->size, text, strlen(text));
	m->size += size;
}

static void begin(struct made *m, uint32_t type, uint16_t misc)
{
	m->size = 0;
	put32(m, type);
	put32(m, misc);
}

static void end(struct made *m)
{
	uint16_t size = (uint16_t)m->size;

	memcpy(m->bytes + 6, &size, 2);
}

static void put_who(struct made *m, uint32_t pid, uint32_t tid, uint64_t time_ns, uint32_t cpu)
{
	put32(m, pid);
	put32(m, tid);
	put64(m, time_ns);
	put32(m, cpu);
	put32(m, 0);
}

/* Two kernel frames and three user frames. */
static void make_sample(struct made *m, bool in_kernel, uint64_t time_ns)
{
	begin(m, PERF_RECORD_SAMPLE, in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
	put_who(m, 17, 18, time_ns, 3);
	put64(m, in_kernel ? 7 : 4);
	if (in_kernel) {
		put64(m, (uint64_t)PERF_CONTEXT_KERNEL);
		put64(m, IN_KERNEL);
		put64(m, IN_KERNEL + 16);
	}
	put64(m, (uint64_t)PERF_CONTEXT_USER);
	for (uint64_t i = 0; i < 3; i++)
		put64(m, 0x401000 + 16 * i);
	end(m);
}

/* @used: of 32 bytes of stack; more is a lie. */
static void make_raw(struct made *m, bool in_kernel, uint64_t abi, uint64_t used)
{
	begin(m, PERF_RECORD_SAMPLE, in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
	put_who(m, 17, 18, 5, 3);
	put64(m, 0);
	put64(m, abi);
	for (uint64_t i = 0; i < PERF_REGS && abi; i++)
		put64(m, 0x1000 + i);
	put64(m, used ? 32 : 0);
	for (uint64_t i = 0; i < 4 && used; i++)
		put64(m, 0xabc0 + i);
	if (used)
		put64(m, used);
	end(m);
}

static void make_task(struct made *m, uint32_t type, uint32_t pid, uint32_t parent, uint32_t tid, uint32_t parent_tid)
{
	begin(m, type, 0);
	put32(m, pid);
	put32(m, parent);
	put32(m, tid);
	put32(m, parent_tid);
	put64(m, 77);
	put_who(m, parent, parent_tid, 77, 0);
	end(m);
}

static void make_comm(struct made *m, uint32_t pid, uint32_t tid, const char *name, bool is_exec)
{
	begin(m, PERF_RECORD_COMM, is_exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
	put32(m, pid);
	put32(m, tid);
	put_text(m, name);
	put_who(m, pid, tid, 78, 0);
	end(m);
}

static void make_map(struct made *m, uint32_t pid, uint64_t start, uint64_t size, const char *path)
{
	begin(m, PERF_RECORD_MMAP2, 0);
	put32(m, pid);
	put32(m, pid);
	put64(m, start);
	put64(m, size);
	put64(m, 0x2000);
	put32(m, 8);
	put32(m, 1);
	put64(m, 4711);
	put64(m, 0);
	put64(m, 0);
	put_text(m, path);
	put_who(m, pid, pid, 79, 0);
	end(m);
}

static struct perf_record parsed(const struct made *m, bool with_stack)
{
	const struct perf_format format = { .with_stack = with_stack };
	static struct perf_record r; /* its texts lie in @m */

	assert_int_equal(perf_record_parse(m->bytes, m->size, &format, &r), 0);
	return r;
}

/* Every cut of it, against an unmapped page: refused, and nothing is read behind its end. */
static void refuse_cuts(const struct made *m, bool with_stack)
{
	const struct perf_format format = { .with_stack = with_stack };

	for (size_t size = 0; size < m->size; size++) {
		struct cur in = guard_page(m->bytes, size);
		struct perf_record r;
		uint16_t claimed = (uint16_t)size;

		assert_int_equal(perf_record_parse(in.pos, size, &format, &r), -EBADMSG);
		ignore(perf_record_time(in.pos, size) == 0);
		if (size < 8)
			continue;
		memcpy((uint8_t *)(uintptr_t)in.pos + 6, &claimed, 2); /* the header says so, too */
		ignore(perf_record_parse(in.pos, size, &format, &r) == 0);
	}
}

static union {
	struct abi_sample s;
	uint8_t bytes[PERF_ABI_SAMPLE_MAX];
} made_sample;

static const struct perf_identity who = { .process_start_ns = 90000000,
					  .exec_id = 2,
					  .comm = "server\0\0\0\0\0\0\0\0\0",
					  .thread_name = "worker\0\0\0\0\0\0\0\0\0" };

static const struct abi_sample *make(const struct perf_record *r, enum perf_walk walk, size_t chain_max, bool fails)
{
	assert_int_equal(perf_sample_make(r, &who, walk, chain_max, &made_sample.s), fails);
	assert_int_equal(abi_record_check(&made_sample, made_sample.s.header.size), made_sample.s.header.size);
	return &made_sample.s;
}

static void call_chains(void **state)
{
	struct made m;
	struct perf_record r;
	const struct abi_sample *s;

	(void)state;
	make_sample(&m, true, 5);
	r = parsed(&m, false);
	assert_int_equal(r.kind, PERF_KIND_SAMPLE);
	assert_int_equal(perf_record_time(m.bytes, m.size), 5);
	s = make(&r, PERF_WALK_CHAIN, 127, false);
	assert_int_equal(s->pid, 17);
	assert_int_equal(s->tid, 18);
	assert_int_equal(s->cpu, 3);
	assert_int_equal(s->header.time_ns, 5);
	assert_int_equal(s->exec_id, 2);
	assert_string_equal(s->comm, "server");
	assert_string_equal(s->thread_name, "worker");
	assert_int_equal(s->flags, ABI_SAMPLE_IN_KERNEL);
	assert_int_equal(s->kernel_count, 2);
	assert_int_equal(s->frame_count, 5);
	assert_int_equal(s->frames[0].a, IN_KERNEL);
	assert_int_equal(s->frames[0].flags, 0);
	assert_int_equal(s->frames[1].flags, ABI_FRAME_RETURN);
	assert_int_equal(s->frames[2].kind, ABI_FRAME_USER);
	assert_int_equal(s->frames[2].flags, 0); /* where the process entered the kernel */
	assert_int_equal(s->frames[4].a, 0x401020);
	assert_int_equal(s->frames[4].flags, ABI_FRAME_RETURN);
	assert_int_equal(s->user_end, ABI_END_UNPROVEN_ROOT);
	s = make(&r, PERF_WALK_CHAIN, 5, false); /* as many as the kernel takes */
	assert_int_equal(s->user_end, ABI_END_FRAME_LIMIT);
	refuse_cuts(&m, false);
	make_sample(&m, false, 6);
	r = parsed(&m, false);
	s = make(&r, PERF_WALK_CHAIN, 127, false);
	assert_int_equal(s->kernel_count, 0);
	assert_int_equal(s->frame_count, 3);
	assert_int_equal(s->flags, 0);
	refuse_cuts(&m, false);
}

static void copies(void **state)
{
	struct made m;
	struct perf_record r;
	const struct abi_sample *s;
	struct abi_raw raw;

	(void)state;
	make_raw(&m, false, PERF_SAMPLE_REGS_ABI_64, 29);
	r = parsed(&m, true);
	assert_int_equal(r.stack_size, 29);
	s = make(&r, PERF_WALK_STACK, 127, false);
	assert_int_equal(s->flags, ABI_SAMPLE_RAW);
	assert_int_equal(s->user_end, ABI_END_NO_PROCESS);
	memcpy(&raw, s->frames, sizeof(raw));
	assert_int_equal(raw.stack_size, 24); /* whole words */
	assert_int_equal(raw.is_leaf, 1);
	assert_int_equal(raw.is_return, 0);
	assert_int_equal(raw.pc, raw.regs[WALK_REG_PC]);
	assert_int_equal(raw.sp, raw.regs[WALK_REG_SP]);
	assert_int_equal(s->stack_pointer, raw.sp);
#if defined(__x86_64__)
	assert_int_equal(raw.sp, 0x1007); /* PERF_REG_X86_SP */
	assert_int_equal(raw.pc, 0x1008);
	assert_int_equal(raw.fp, 0x1006);
	assert_int_equal(raw.regs[1], 0x1003); /* rdx */
	assert_int_equal(raw.regs[15], 0x1010);
#endif
	assert_int_equal(((const uint64_t *)(const void *)((const uint8_t *)s->frames + sizeof(raw)))[2], 0xabc2);
	refuse_cuts(&m, true);
	make_raw(&m, false, PERF_SAMPLE_REGS_ABI_64, 4000); /* more than there is */
	r = parsed(&m, true);
	assert_int_equal(r.stack_size, 32);
	make_raw(&m, true, PERF_SAMPLE_REGS_ABI_NONE, 0); /* in the middle of an exec */
	r = parsed(&m, true);
	s = make(&r, PERF_WALK_STACK, 127, true);
	assert_int_equal(s->user_end, ABI_END_COMPLETE);
	assert_int_equal(s->flags, ABI_SAMPLE_IN_KERNEL | ABI_SAMPLE_KERNEL_CUT);
	make_raw(&m, false, PERF_SAMPLE_REGS_ABI_NONE, 0);
	r = parsed(&m, true);
	assert_int_equal(make(&r, PERF_WALK_STACK, 127, false)->user_end, ABI_END_NO_REGISTERS);
	make_raw(&m, false, PERF_SAMPLE_REGS_ABI_32, 32);
	r = parsed(&m, true);
	assert_int_equal(make(&r, PERF_WALK_STACK, 127, false)->user_end, ABI_END_COMPAT);
}

/* More frames than a record of abi.h holds. */
static void long_chains(void **state)
{
	static _Alignas(8) uint8_t bytes[PERF_RECORD_SIZE_MAX];
	const struct perf_format format = { 0 };
	const uint32_t ips = 4000;
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE,
					    .misc = PERF_RECORD_MISC_KERNEL,
					    .size = (uint16_t)(40 + 8 * ips) };
	struct perf_record r;
	uint64_t value = ips;
	const struct abi_sample *s;

	(void)state;
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + 8, &(uint32_t[]){ 17, 18 }, 8);
	memcpy(bytes + 32, &value, 8);
	for (uint32_t i = 0; i < ips; i++) {
		value = i == 0 ? (uint64_t)PERF_CONTEXT_KERNEL : i == 2000 ? (uint64_t)PERF_CONTEXT_USER : 0x5000 + i;
		memcpy(bytes + 40 + 8 * i, &value, 8);
	}
	assert_int_equal(perf_record_parse(bytes, header.size, &format, &r), 0);
	s = make(&r, PERF_WALK_CHAIN, 5000, false);
	assert_int_equal(s->kernel_count, ABI_KERNEL_FRAMES_MAX);
	assert_int_equal(s->frame_count, ABI_FRAMES_MAX);
	assert_int_equal(s->user_end, ABI_END_FRAME_LIMIT);
	assert_true(s->flags & ABI_SAMPLE_KERNEL_CUT);
	value = UINT64_MAX / 8; /* a count that no record has */
	memcpy(bytes + 32, &value, 8);
	assert_int_equal(perf_record_parse(bytes, header.size, &format, &r), -EBADMSG);
}

static void hostile_records(void **state)
{
	const struct perf_format format = { 0 };
	struct perf_record r;
	struct made m;

	(void)state;
	make_comm(&m, 1, 1, "x", false);
	memset(m.bytes + 16, 'x', 8); /* no end */
	assert_int_equal(perf_record_parse(m.bytes, m.size, &format, &r), -EBADMSG);
	make_map(&m, 1, UINT64_MAX - 5, 100, "/x"); /* over the end of all memory */
	assert_int_equal(perf_record_parse(m.bytes, m.size, &format, &r), -EBADMSG);
	make_map(&m, 1, 0x1000, 0, "/x");
	assert_int_equal(perf_record_parse(m.bytes, m.size, &format, &r), -EBADMSG);
	make_map(&m, 1, 0x1000, 0x1000, "/x");
	refuse_cuts(&m, false);
	assert_int_equal(perf_record_parse(m.bytes, m.size - 8, &format, &r), -EBADMSG); /* the header says more */
	make_task(&m, PERF_RECORD_FORK, 1, 2, 3, 4);
	refuse_cuts(&m, false);
	begin(&m, 999, 0);
	put_who(&m, 1, 1, 1, 1);
	end(&m);
	r = parsed(&m, false);
	assert_int_equal(r.kind, PERF_KIND_OTHER);
	begin(&m, PERF_RECORD_LOST, 0);
	put64(&m, 1);
	put64(&m, 42);
	put_who(&m, 0, 0, 9, 0);
	end(&m);
	r = parsed(&m, false);
	assert_int_equal(r.kind, PERF_KIND_LOST);
	assert_int_equal(r.lost, 42);
	refuse_cuts(&m, false);
}

/* ---- whose they are ---- */

static void families(void **state)
{
	static const uint32_t wanted[] = { GONE };
	struct perf_tasks t;
	struct perf_process *p, *child;
	struct perf_record r;
	struct abi_mapping *told = NULL;
	struct abi_process event;
	struct made m;

	(void)state;
	perf_tasks_init(&t, "/nowhere");
	t.pids = wanted;
	t.pid_count = 1;
	t.follow_children = true;
	p = perf_tasks_get(&t, GONE);
	assert_non_null(p);
	assert_true(p->is_wanted);
	assert_string_equal(p->comm, ":4000000"); /* nobody can say its name any more */
	make_comm(&m, GONE, GONE, "parent", false);
	r = parsed(&m, false);
	assert_null(perf_tasks_comm(&t, &r));
	assert_string_equal(p->comm, "parent");

	make_task(&m, PERF_RECORD_FORK, GONE + 1, GONE, GONE + 1, GONE);
	r = parsed(&m, false);
	child = perf_tasks_fork(&t, &r);
	assert_non_null(child);
	assert_true(child->is_wanted && child->is_new && !child->is_sampled);
	assert_string_equal(child->comm, "parent");
	event = perf_tasks_event(child, ABI_RECORD_FORK, 77);
	assert_int_equal(event.parent_pid, GONE);
	assert_int_equal(abi_record_check(&event, sizeof(event)), sizeof(event));

	make_map(&m, GONE + 1, 0x400000, 0x1000, "/bin/first");
	r = parsed(&m, false);
	assert_int_equal(perf_tasks_map(&t, &r, &told), 0); /* waits */
	assert_int_equal(child->map_count, 1);
	make_comm(&m, GONE + 1, GONE + 1, "second-program-long", true);
	r = parsed(&m, false);
	assert_ptr_equal(perf_tasks_comm(&t, &r), child);
	assert_int_equal(child->exec_id, 2);
	assert_int_equal(child->map_count, 0); /* those of the program before */
	assert_string_equal(child->comm, "second-program-");
	make_map(&m, GONE + 1, 0x400000, 0x1000, "[vdso]");
	r = parsed(&m, false);
	assert_int_equal(perf_tasks_map(&t, &r, &told), 0);
	assert_int_equal(child->map_count, 0);
	child->is_sampled = true;
	make_map(&m, GONE + 1, 0x400000, 0x1000, "/lib/late.so");
	r = parsed(&m, false);
	assert_int_equal(perf_tasks_map(&t, &r, &told), 1);
	assert_int_equal(abi_record_check(told, told->header.size), told->header.size);
	assert_int_equal(told->end, 0x401000);
	free(told);

	make_task(&m, PERF_RECORD_FORK, GONE + 1, GONE + 1, GONE + 9, GONE + 1);
	r = parsed(&m, false);
	assert_null(perf_tasks_fork(&t, &r)); /* a thread */
	assert_string_equal(perf_tasks_thread_name(&t, child, GONE + 9), "second-program-");
	make_comm(&m, GONE + 1, GONE + 9, "io", false);
	r = parsed(&m, false);
	assert_null(perf_tasks_comm(&t, &r));
	assert_string_equal(perf_tasks_thread_name(&t, child, GONE + 9), "io");
	assert_string_equal(perf_tasks_thread_name(&t, child, GONE + 1), "second-program-");

	make_task(&m, PERF_RECORD_EXIT, GONE + 1, GONE, GONE + 9, GONE);
	r = parsed(&m, false);
	perf_tasks_exit(&t, &r);
	assert_null(perf_tasks_left(&t)); /* a thread */
	make_task(&m, PERF_RECORD_EXIT, GONE + 1, GONE, GONE + 1, GONE);
	r = parsed(&m, false);
	perf_tasks_exit(&t, &r);
	assert_ptr_equal(perf_tasks_left(&t), child);
	assert_int_equal(child->left_ns, 77);
	perf_tasks_drop(&t, child);
	assert_null(perf_tasks_find(&t, GONE + 1));
	assert_null(perf_tasks_left(&t));
	assert_ptr_equal(perf_tasks_find(&t, GONE), p);
	assert_false(perf_tasks_get(&t, GONE + 5)->is_wanted);
	perf_tasks_release(&t);
}

/* A process that lives: its own start and name. */
static void living(void **state)
{
	struct perf_tasks t;
	struct perf_process *p;
	struct perf_record r;
	struct made m;

	(void)state;
	perf_tasks_init(&t, "");
	p = perf_tasks_get(&t, (uint32_t)getpid());
	assert_non_null(p);
	assert_true(p->start_ns > 0 && !p->is_kernel);
	assert_string_equal(p->comm, "perf_sampler_te");
	assert_int_equal(p->parent_pid, getppid());
	make_task(&m, PERF_RECORD_EXIT, (uint32_t)getpid(), 1, (uint32_t)getpid(), 1);
	r = parsed(&m, false);
	perf_tasks_exit(&t, &r);
	assert_null(perf_tasks_left(&t)); /* it runs: other threads do */
	perf_tasks_release(&t);
}

static int live_through(void *ctx)
{
	struct perf_tasks t;
	struct perf_record r;
	struct abi_mapping *told = NULL;
	struct made m;
	int failed = 0;

	(void)ctx;
	perf_tasks_init(&t, "/nowhere");
	for (uint32_t i = 0; i < 3; i++) {
		make_task(&m, PERF_RECORD_FORK, GONE + i, 1, GONE + i, 1);
		r = parsed(&m, false);
		failed |= !perf_tasks_fork(&t, &r);
		make_map(&m, GONE + i, 0x1000, 0x1000, "/x");
		r = parsed(&m, false);
		failed |= perf_tasks_map(&t, &r, &told) < 0;
		if (perf_tasks_find(&t, GONE + i))
			ignore(perf_tasks_thread_name(&t, perf_tasks_find(&t, GONE + i), GONE + 100 + i) == NULL);
	}
	perf_tasks_release(&t);
	return failed || allocation_failed() ? -ENOMEM : 0;
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(live_through, NULL);
}

/* ---- rings ---- */

#define RING KIB(4)

static void ring_put(struct perf_ring *ring, const struct made *m)
{
	uint8_t *data = ring->base + sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < m->size; i++)
		data[(ring->end + i) & (RING - 1)] = m->bytes[i];
	ring->end += m->size;
}

static void oldest_first(void **state)
{
	struct perf_ring items[3] = { 0 };
	struct perf_rings r = { .items = items, .count = 3, .used = 3 };
	const uint64_t times[2][4] = { { 1, 4, 5, 9 }, { 2, 3, 6, 7 } };
	const void *bytes;
	uint64_t got = 0;
	struct made m;
	int size;

	(void)state;
	r.scratch = malloc(PERF_RECORD_SIZE_MAX);
	for (int i = 0; i < 2; i++) {
		items[i] = (struct perf_ring){ .base = calloc(1, (size_t)sysconf(_SC_PAGESIZE) + RING),
					       .size = RING,
					       .fd = -1,
					       .at = RING - 24, /* the first record goes over the end */
					       .end = RING - 24 };
		for (int k = 0; k < 4; k++) {
			make_sample(&m, k & 1, times[i][k]);
			ring_put(&items[i], &m);
		}
	}
	items[2].fd = -1; /* a CPU that is not online */
	while ((size = perf_rings_next(&r, 8, &bytes)) > 0) {
		assert_true(perf_record_time(bytes, (size_t)size) > got);
		got = perf_record_time(bytes, (size_t)size);
	}
	assert_int_equal(size, 0);
	assert_int_equal(got, 7);
	size = perf_rings_next(&r, UINT64_MAX, &bytes);
	assert_int_equal(perf_record_time(bytes, (size_t)size), 9);
	assert_int_equal(perf_rings_next(&r, UINT64_MAX, &bytes), 0);
	assert_int_equal(((struct perf_event_mmap_page *)(void *)items[0].base)->data_tail, items[0].end);

	make_sample(&m, true, 10); /* a size that goes beyond what was written */
	m.bytes[7] = 0x7f;
	ring_put(&items[1], &m);
	assert_int_equal(perf_rings_next(&r, UINT64_MAX, &bytes), -EBADMSG);
	assert_int_equal(perf_rings_next(&r, UINT64_MAX, &bytes), 0); /* what was in it is lost */
	for (int i = 0; i < 2; i++)
		free(items[i].base);
	free(r.scratch);
}

static void ring_sizes(void **state)
{
	static const struct {
		uint32_t rate, stack;
		size_t asked;
		unsigned int cpus;
		size_t want;
	} rows[] = {
		{ 11, 0, 0, 2, KIB(64) },       { 99, 8192, 0, 2, KIB(512) },      { 999, 8192, 0, 2, MIB(8) },
		{ 10000, 65528, 0, 2, MIB(8) }, { 99, 8192, MIB(1), 4, KIB(256) }, { 99, 8192, 1, 4, KIB(16) },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct sampler_config sampling = { .frequency_hz = rows[i].rate, .ring_bytes = rows[i].asked };
		const struct perf_rings_config cfg = { .sampling = &sampling, .stack_bytes = rows[i].stack };

		assert_int_equal(perf_rings_bytes(&cfg, rows[i].cpus), rows[i].want);
	}
}

/* Each is started by the one before it, and called the same. */
static void many_threads(void **state)
{
	struct perf_record r = { .kind = PERF_KIND_FORK, .pid = GONE, .parent_pid = 1, .tid = GONE, .parent_tid = 1 };
	struct perf_process *p;
	struct perf_tasks t;

	(void)state;
	perf_tasks_init(&t, "");
	p = perf_tasks_fork(&t, &r);
	assert_non_null(p);
	p->is_sampled = true;
	memcpy(p->comm, "a-name", sizeof("a-name"));
	r.parent_pid = r.parent_tid = GONE;
	for (uint32_t i = 1; i < 100000; i++) {
		r.tid = GONE + i;
		assert_null(perf_tasks_fork(&t, &r));
		assert_string_equal(perf_tasks_thread_name(&t, p, r.tid), "a-name");
		r.parent_tid = r.tid;
	}
	perf_tasks_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(call_chains),  cmocka_unit_test(copies),
		cmocka_unit_test(long_chains),  cmocka_unit_test(hostile_records),
		cmocka_unit_test(families),     cmocka_unit_test(living),
		cmocka_unit_test(many_threads), cmocka_unit_test(oldest_first),
		cmocka_unit_test(ring_sizes),   cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
