/* SPDX-License-Identifier: Apache-2.0 */
/* The remote sampler's parts: which threads count, what is read in one piece, records on their way. */
#include "support.h"

#include <fcntl.h>
#include <linux/types.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/ruby.h"
#include "runtime/runtime_sink.h"
#include "sampler/remote/memory.h"
#include "sampler/remote/pointer.h"
#include "sampler/remote/proc.h"
#include "sampler/remote/python/chain.h"
#include "sampler/remote/python/walk.h"
#include "sampler/remote/ring.h"
#include "sampler/samplers.h"

#include "../walk/python_image.h"

/* ---- threads ---- */

static void times(void **state)
{
	static const struct {
		const char *text;
		int want;
	} cases[] = {
		{ "152519089 1333306 48\n", 0 }, { "0 0 0", 0 },         { "", -EBADMSG },      { "1 2", -EBADMSG },
		{ "1 2 3 4", -EBADMSG },         { "1 -2 3", -EBADMSG }, { "a b c", -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct remote_times out = { .run_ns = 7 };

		print_message("  '%s'\n", cases[i].text);
		assert_int_equal(remote_times_parse(str_of(cases[i].text), &out), cases[i].want);
		if (cases[i].want < 0)
			assert_int_equal(out.run_ns, 7);
	}
}

/* Looks at a thread 100 times. Return: how often it counted. */
static unsigned judge(uint64_t run_each, uint64_t delay_each, unsigned runnable_of_four)
{
	struct remote_thread t = { .share = 65536, .credit = 32768 };
	struct remote_times now = { 0 };
	unsigned count = 0;

	for (unsigned i = 0; i < 100; i++) {
		now.run_ns += run_each;
		now.delay_ns += delay_each;
		now.slices += run_each != 0;
		count += remote_thread_judge(&t, &now, i % 4 < runnable_of_four);
	}
	return count;
}

static void who_runs_counts(void **state)
{
	(void)state;
	assert_int_equal(judge(10000000, 0, 4), 100);        /* has a CPU for itself */
	assert_int_equal(judge(10000000, 0, 1), 25);         /* runnable at a quarter of the looks */
	assert_in_range(judge(5000000, 5000000, 4), 49, 51); /* shares its CPU with another one */
	assert_in_range(judge(1000000, 9000000, 4), 9, 11);
	assert_int_equal(judge(1000, 0, 0), 0); /* wakes up now and then, waiting for a lock */
	assert_int_equal(judge(0, 0, 4), 100);  /* between two ticks of the scheduler nothing is known */
}

/* ---- memory ---- */

static enum remote_kind kind_of(uint32_t size)
{
	return size == 32 ? REMOTE_LATE : size == 80 ? REMOTE_FRAME : REMOTE_HEAD;
}

static void takes_and_plans(void **state)
{
	struct remote_plan plan = { 0 };
	struct remote_memory *m;
	uint64_t *words = calloc(1024, sizeof(*words));
	uint8_t room[80];
	uint64_t word;

	(void)state;
	assert_int_equal(remote_memory_new(&m), 0);
	m->kind_of = kind_of;
	m->frames_are_near = true;
	for (int round = 0; round < 3; round++) {
		words[0] = 100;
		remote_memory_start(m, (uint32_t)getpid(), &plan, 1);
		words[0] = 200; /* behind the start: what was planned is older */
		for (int after = 0; after < 2; after++) {
			remote_memory_view(m, 0, after);
			assert_int_equal(remote_memory_read(m, &word, sizeof(word), (uintptr_t)words), 0);
			assert_int_equal(word, round ? 100 : 200);
			assert_int_equal(remote_memory_read(m, room, 80, (uintptr_t)(words + 100)), 0);
			assert_int_equal(remote_memory_read(m, room, 80, (uintptr_t)(words + 140)), 0);
			assert_int_equal(remote_memory_read(m, room, 32, (uintptr_t)(words + 900)), 0);
		}
		assert_int_equal(m->misses, round ? 0 : 5); /* only frames are read twice; late pieces do not count */
		assert_int_equal(remote_memory_plan(m, &plan), 0);
		assert_int_equal(plan.count[REMOTE_HEAD], 1);
		assert_int_equal(plan.count[REMOTE_FRAME], 1); /* one window */
		assert_int_equal(plan.count[REMOTE_LATE], 0);  /* read when it is known whose */
	}
	remote_plan_release(&plan);
	remote_memory_free(m);
	free(words);
}

/* A plan that has gone stale costs its pieces, not the walk. */
static void memory_that_goes(void **state)
{
	uint8_t *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct remote_plan plan = { 0 };
	struct remote_memory *m;
	uint64_t word;

	(void)state;
	assert_int_equal(remote_memory_new(&m), 0);
	m->kind_of = kind_of;
	remote_memory_start(m, (uint32_t)getpid(), &plan, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(remote_memory_read(m, &word, sizeof(word), (uintptr_t)(pages + 4096 * i)), 0);
	assert_int_equal(remote_memory_plan(m, &plan), 0);
	assert_int_equal(munmap(pages + 4096, 4096), 0);
	remote_memory_start(m, (uint32_t)getpid(), &plan, 1);
	assert_int_equal(remote_memory_read(m, &word, sizeof(word), (uintptr_t)pages), 0);
	assert_int_equal(m->misses, 0);
	assert_int_equal(remote_memory_read(m, &word, sizeof(word), (uintptr_t)(pages + 4096)), -EFAULT);
	assert_int_equal(remote_memory_read(m, &word, sizeof(word), (uintptr_t)(pages + 8192)), 0);
	assert_int_equal(remote_memory_read(m, &word, sizeof(word), 8), -EFAULT);
	assert_int_equal(remote_memory_read(m, &word, sizeof(word), UINT64_MAX - 3), -EFAULT);
	munmap(pages, 4096);
	munmap(pages + 8192, 4096);
	remote_plan_release(&plan);
	remote_memory_free(m);
}

/* More pieces than there is room for, at hostile places. */
static void endless_walk(void **state)
{
	struct remote_plan plan = { 0 };
	uint8_t *bytes = calloc(1, MIB(1));
	struct remote_memory *m;
	uint8_t room[80];

	(void)state;
	assert_int_equal(remote_memory_new(&m), 0);
	m->kind_of = kind_of;
	for (int round = 0; round < 3; round++) {
		remote_memory_start(m, (uint32_t)getpid(), &plan, 1);
		for (uint32_t i = 0; i < 6000; i++)
			assert_int_equal(remote_memory_read(m, room, i % 2 ? 80 : 32, (uintptr_t)bytes + i * 173), 0);
		for (uint32_t i = 0; i < 4000; i++)
			remote_memory_add(m, &(struct remote_piece){ .at = (uintptr_t)bytes + i * 8, .size = 80 }, 1);
		assert_true(m->copy_count <= ARRAY_SIZE(m->copies) && m->filled <= REMOTE_BYTES_MAX);
		assert_int_equal(remote_memory_plan(m, &plan), 0);
		assert_true(plan.count[REMOTE_FRAME] <= REMOTE_PIECES_MAX);
	}
	remote_plan_release(&plan);
	remote_memory_free(m);
	free(bytes);
}

/* ---- walks ---- */

/* A thread is looked for when others have been walked already, whose frames are still in the walker's window. */
static void threads_after_others(void **state)
{
	struct python_image *im = calloc(1, sizeof(*im));

	(void)state;
	assert_non_null(im);
	for (size_t i = 0; python_layout_at(i); i++) {
		const struct python_layout_case *of = python_layout_at(i);
		struct remote_process p = { .pid = (uint32_t)getpid() };
		struct remote_thread first = { .inner_tid = 1 }, other = { .inner_tid = 2 };
		struct remote_walker *w;
		uint64_t pointer, thread;

		if (of->layout.thread_native_id == ABI_PYTHON_NONE)
			continue;
		print_message("  %s\n", of->name);
		image_open(im, of, KIB(64));
		image_stack(im, "abcdef");
		image_put(im, im->thread + of->layout.thread_native_id, 8, 1);
		pointer = image_alloc(im, 1024);
		thread = image_thread(im, im->interpreter, pointer);
		image_put(im, thread + of->layout.thread_native_id, 8, 2);
		memcpy(p.info, &im->info, sizeof(im->info));
		assert_int_equal(remote_walker_new(&w), 0);
		remote_walk_thread(w, &p, &first);
		assert_int_equal(remote_walker_sample(w)->runtime_end, ABI_RUNTIME_END_WHOLE);
		remote_walk_thread(w, &p, &other);
		assert_int_equal(other.tp, pointer);
		assert_int_equal(other.strange, 0);
		remote_walker_free(w);
		remote_plan_release(&first.plan);
		remote_plan_release(&other.plan);
		image_close(im);
	}
	free(im);
}

/* ---- thread pointers ---- */

#ifdef __x86_64__
struct waiting {
	pthread_t thread;
	pthread_mutex_t *lock;
	sem_t ready;
	uint32_t tid;
	uint64_t pointer;
};

static void *wait_here(void *self)
{
	struct waiting *me = self;

	me->tid = (uint32_t)gettid();
	me->pointer = (uint64_t)pthread_self();
	sem_post(&me->ready);
	pthread_mutex_lock(me->lock);
	pthread_mutex_unlock(me->lock);
	return NULL;
}

#endif

/* musl's struct is in a ring with its neighbours; the head of an empty list of a program is no struct, whatever follows
 * it. */
static void tells_musl_from_lists(void **state)
{
#ifdef __x86_64__
	enum { RING = 0x7ffffff1, LIST = 0x7ffffff2 };
	struct remote_process p = { .pid = (uint32_t)getpid() };
	struct remote_thread thread = { .inner_tid = RING }, nobody = { .inner_tid = LIST };
	uint64_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	page[0] = page[2] = page[3] = (uint64_t)(uintptr_t)page; /* itself, previous, next */
	page[6] = RING;
	page[64] = page[65] = (uint64_t)(uintptr_t)&page[64];
	page[70] = LIST;
	p.dir = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(remote_pointer_find(&p, &thread), 0);
	assert_int_equal(thread.tp, (uint64_t)(uintptr_t)page);
	assert_int_equal(remote_pointer_find(&p, &nobody), -ENOENT);
	close(p.dir);
	free(p.pointers);
	munmap(page, 4096);
#endif
	(void)state;
}

/* Of threads of our own, the first one included, and of one that there is not. */
static void finds_thread_pointers(void **state)
{
#ifdef __x86_64__
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct waiting threads[5];
	struct remote_process p = { .pid = (uint32_t)getpid() };
	struct remote_thread main_thread = { .inner_tid = (uint32_t)getpid() }, nobody = { .inner_tid = 1 };

	p.dir = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p.dir >= 0);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		threads[i].lock = &lock;
		assert_int_equal(sem_init(&threads[i].ready, 0, 0), 0);
		assert_int_equal(pthread_create(&threads[i].thread, NULL, wait_here, &threads[i]), 0);
		while (sem_wait(&threads[i].ready) < 0)
			continue;
	}
	assert_int_equal(remote_pointer_find(&p, &nobody), -ENOENT);
	assert_int_equal(nobody.tp, 0);
	assert_int_equal(remote_pointer_find(&p, &main_thread), 0);
	assert_int_equal(main_thread.tp, (uint64_t)pthread_self());
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		struct remote_thread t = { .inner_tid = threads[i].tid };

		assert_int_equal(remote_pointer_find(&p, &t), 0);
		assert_int_equal(t.tp, threads[i].pointer);
	}
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		struct remote_thread t = { .inner_tid = threads[i].tid };

		pthread_join(threads[i].thread, NULL);
		sem_destroy(&threads[i].ready);
		/* What is known of one that has ended is not believed. */
		assert_true(remote_pointer_find(&p, &t) == -ENOENT || t.tp == threads[i].pointer);
	}
	close(p.dir);
	free(p.pointers);
#endif
	(void)state;
}

/* ---- rounds of a memory that changes between reads ---- */

#define SCRIPT_FRAMES 6 /* 0 is the outermost; each is called by the one before */
#define LEAF (SCRIPT_FRAMES - 1)
#define HEADS SCRIPT_FRAMES /* number of the piece that says which one is innermost, in the first round */
#define SCRIPT_THREAD 0x10000U
#define SCRIPT_FRAME(i) (0x20000U + 0x1000U * (unsigned)(i))

struct script {
	unsigned reads; /* pieces that were read since the start of the call */
	/** change - sets what there is before piece number @read is read. */
	void (*change)(struct script *s, unsigned read);
	uint64_t leaf;
	uint64_t back[SCRIPT_FRAMES];
	uint32_t last[SCRIPT_FRAMES];
	uint8_t runs[SCRIPT_FRAMES];
};

/* As CPython 3.8 has it. */
static void put_piece(const struct script *s, uint64_t at, uint8_t *to, size_t size)
{
	uint64_t one = 1;

	memset(to, 0, size);
	if (at == SCRIPT_THREAD)
		memcpy(to + 24, &s->leaf, 8);
	for (unsigned i = 0; i < SCRIPT_FRAMES; i++) {
		uint64_t code = 0x90000 + 0x100 * i;

		if (at != SCRIPT_FRAME(i))
			continue;
		assert_true(size >= 120);
		memcpy(to, &one, 8);
		memcpy(to + 24, &s->back[i], 8);
		memcpy(to + 32, &code, 8);
		memcpy(to + 104, &s->last[i], 4);
		to[116] = s->runs[i];
	}
}

static ssize_t read_script(void *self, uint32_t pid, const struct iovec *to, const struct iovec *from, size_t count)
{
	struct script *s = self;
	uint8_t *at = to->iov_base;

	assert_int_equal(pid, 7);
	for (size_t i = 0; i < count; i++, at += from[i - 1].iov_len) {
		if (s->change)
			s->change(s, s->reads);
		s->reads++;
		put_piece(s, (uint64_t)(uintptr_t)from[i].iov_base, at, from[i].iov_len);
	}
	return (ssize_t)to->iov_len;
}

static enum remote_kind script_kind(uint32_t size)
{
	return size == ABI_PYTHON_OLD_BYTES ? REMOTE_FRAME : REMOTE_HEAD;
}

static void nothing_changes(struct script *s, unsigned read)
{
	(void)s;
	(void)read;
}

static void leaf_moves(struct script *s, unsigned read)
{
	s->last[LEAF] = read;
}

static void caller_moves(struct script *s, unsigned read)
{
	s->last[1] = read > HEADS;
}

static void caller_moves_later(struct script *s, unsigned read)
{
	s->last[1] = read > 2 * HEADS - 1;
}

/* It was called only after its place was read for the first time. */
static void leaf_begins(struct script *s, unsigned read)
{
	s->runs[LEAF] = read >= HEADS;
	s->back[LEAF] = read >= HEADS ? SCRIPT_FRAME(LEAF - 1) : 0;
}

static void leaf_ends(struct script *s, unsigned read)
{
	s->runs[LEAF] = read <= HEADS;
	s->back[LEAF] = read <= HEADS ? SCRIPT_FRAME(LEAF - 1) : 0;
}

/* A loop calls it anew: both passes meet it when it has just ended. */
static void leaf_rests(struct script *s, unsigned read)
{
	s->runs[LEAF] = read == HEADS;
}

/* All but the outermost two have returned by the time that the heads are read. */
static void returns(struct script *s, unsigned read)
{
	s->leaf = read < HEADS ? SCRIPT_FRAME(LEAF) : SCRIPT_FRAME(1);
	s->last[1] = read < HEADS;
}

static void two_change(struct script *s, unsigned read)
{
	s->last[1] = s->last[2] = read > HEADS;
}

struct scripted { /* a memory that reads a script, with a plan of all of it */
	struct script script;
	struct remote_memory *memory;
	struct remote_piece head, frames[SCRIPT_FRAMES];
	struct remote_plan plan;
	struct remote_chains chains;
	struct remote_finding found;
};

static struct scripted *scripted_new(void (*change)(struct script *s, unsigned read))
{
	struct scripted *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_int_equal(remote_memory_new(&s->memory), 0);
	s->script = (struct script){ .change = change, .leaf = SCRIPT_FRAME(LEAF) };
	for (unsigned k = 0; k < SCRIPT_FRAMES; k++) {
		s->script.runs[k] = 1;
		s->script.back[k] = k ? SCRIPT_FRAME(k - 1) : 0;
		s->frames[LEAF - k] = (struct remote_piece){ .at = SCRIPT_FRAME(k), .size = ABI_PYTHON_OLD_BYTES };
	}
	s->head = (struct remote_piece){ .at = SCRIPT_THREAD, .size = ABI_PYTHON_THREAD_BYTES };
	s->plan.pieces[REMOTE_HEAD] = &s->head;
	s->plan.pieces[REMOTE_FRAME] = s->frames;
	s->plan.count[REMOTE_HEAD] = 1;
	s->plan.count[REMOTE_FRAME] = SCRIPT_FRAMES;
	s->memory->readv = read_script;
	s->memory->self = &s->script;
	s->memory->kind_of = script_kind;
	return s;
}

static void scripted_free(struct scripted *s)
{
	remote_memory_free(s->memory);
	free(s);
}

static const struct abi_python_layout *layout_of_38(void)
{
	size_t i = 0;

	while (python_layout_at(i)->layout.version_major != 3 || python_layout_at(i)->layout.version_minor != 8)
		i++;
	return &python_layout_at(i)->layout;
}

static void judges_rounds(void **state)
{
	static const struct {
		const char *name;
		void (*change)(struct script *s, unsigned read);
		enum remote_verdict verdict;
		bool after, is_odd;
		uint32_t count, sure;
	} cases[] = {
		{ "nothing changes", nothing_changes, REMOTE_AGREE, true, false, 6, 6 },
		{ "the innermost frame moves", leaf_moves, REMOTE_MOVED, true, false, 6, 5 },
		{ "a caller moves", caller_moves, REMOTE_DISAGREE, true, false, 6, 1 },
		{ "a caller moves behind its last read", caller_moves_later, REMOTE_AGREE, true, false, 6, 6 },
		{ "the innermost frame begins", leaf_begins, REMOTE_MOVED, true, false, 6, 5 },
		{ "the innermost frame ends", leaf_ends, REMOTE_MOVED, false, false, 6, 5 },
		{ "an ended frame looks innermost", leaf_rests, REMOTE_AGREE, true, true, 6, 6 },
		{ "two have returned", returns, REMOTE_MOVED, true, false, 2, 1 },
		{ "two callers move", two_change, REMOTE_DISAGREE, true, false, 6, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct scripted *s = scripted_new(cases[i].change);
		struct remote_finding *f = &s->found;

		print_message("  %s\n", cases[i].name);
		remote_memory_start(s->memory, 7, &s->plan, 1);
		assert_int_equal(s->script.reads, 2 * SCRIPT_FRAMES + 1);
		remote_chain_judge(s->memory, layout_of_38(), SCRIPT_THREAD, 0, &s->chains, f);
		assert_int_equal(f->verdict, cases[i].verdict);
		assert_int_equal(f->after, cases[i].after);
		assert_int_equal(f->is_odd, cases[i].is_odd);
		assert_int_equal(f->chain->count, cases[i].count);
		assert_int_equal(f->sure, cases[i].sure);
		remote_chain_judge(s->memory, layout_of_38(), SCRIPT_THREAD + 8, 0, &s->chains, f);
		assert_int_equal(f->verdict, REMOTE_MISSED);
		scripted_free(s);
	}
}

/* Later rounds read only the innermost frames again: of the others the first and the last pass tell. */
static void rounds_share_outer_frames(void **state)
{
	struct scripted *s = scripted_new(leaf_moves);

	(void)state;
	remote_memory_start(s->memory, 7, &s->plan, REMOTE_ROUNDS_MAX);
	assert_true(s->script.reads < REMOTE_ROUNDS_MAX * (2 * SCRIPT_FRAMES + 1));
	for (unsigned round = 0; round < REMOTE_ROUNDS_MAX; round++) {
		remote_chain_judge(s->memory, layout_of_38(), SCRIPT_THREAD, round, &s->chains, &s->found);
		assert_int_equal(s->found.verdict, REMOTE_MOVED);
		assert_int_equal(s->found.sure, SCRIPT_FRAMES - 1);
	}
	scripted_free(s);
}

/* ---- records ---- */

static void ring_is_bounded(void **state)
{
	struct remote_ring r;
	struct abi_process record = { .header = { .size = sizeof(record) } };
	const uint8_t *bytes;

	(void)state;
	assert_int_equal(remote_ring_init(&r, 4 * sizeof(record)), 0);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 4; i++) {
			record.pid = i;
			assert_int_equal(remote_ring_put(&r, &record.header, false), 0);
		}
		assert_int_equal(remote_ring_put(&r, &record.header, true), -ENOSPC);
		assert_int_equal(remote_ring_take(&r, &bytes), 4 * sizeof(record));
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(((const struct abi_process *)(const void *)bytes)[i].pid, i);
		assert_int_equal(remote_ring_take(&r, &bytes), 0);
	}
	remote_ring_release(&r);
}

/* ---- processes ---- */

/* A program of its own, not a fork: ThreadSanitizer starts a thread of its own in a forked child, sooner or later. That
 * it writes says that exec is over, which posix_spawn(3) does not wait for; it ends by itself when the test fails. */
static pid_t start_spinning(void)
{
	char *argv[] = { "sh", "-c", "ulimit -t 20; echo; while :; do :; done", NULL };
	posix_spawn_file_actions_t actions;
	int ends[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	assert_int_equal(posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO), 0);
	assert_int_equal(posix_spawn(&pid, "/bin/sh", &actions, NULL, argv, NULL), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	return pid;
}

static void finds_who_runs(void **state)
{
	struct remote_procs procs;
	struct remote_process *p;
	pid_t pid = start_spinning();
	uint64_t now = 1;
	int count = 0;

	(void)state;
	remote_procs_init(&procs, "", 16);
	assert_int_equal(remote_procs_add(&procs, 1U << 22, &p), -ESRCH);
	assert_int_equal(remote_procs_add(&procs, (uint32_t)pid, &p), 0);
	assert_ptr_equal(remote_procs_find(&procs, (uint32_t)pid), p);
	remote_process_list(&procs, p, now);
	assert_int_equal(p->thread_count, 1);
	for (int i = 0; i < 2000 && !count; i++, usleep(1000))
		count += remote_thread_runs(p, &p->threads[0], now);
	assert_int_equal(count, 1);
	remote_thread_name(&procs, p, &p->threads[0], now);
	assert_true(p->threads[0].name[0] && p->threads[0].inner_tid == (uint32_t)pid);
	assert_int_equal(remote_process_check(&procs, p, now), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(remote_thread_runs(p, &p->threads[0], now), -ESRCH);
	assert_int_equal(remote_process_check(&procs, p, now), -ESRCH);
	assert_true(p->gone);
	remote_procs_expire(&procs);
	assert_int_equal(procs.count, 0);
	assert_int_equal(procs.descriptors, 0);
	remote_procs_release(&procs);
}

static void ignore_sample(void *ctx, const struct abi_sample *sample)
{
	(void)ctx;
	(void)sample;
}

static void ignore_process(void *ctx, const struct abi_process *event)
{
	(void)ctx;
	(void)event;
}

/* Return: were stacks of Ruby read in a process of which the sink had been told @old of Python before? */
static bool reads_ruby_behind(pid_t pid, const struct abi_python *old, const struct abi_ruby *ruby)
{
	const struct sampler_config cfg = { .frequency_hz = 500, .pids = &pid, .pid_count = 1, .host_root = "" };
	const struct sampler_events events = { .sample = ignore_sample, .process = ignore_process };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	uint64_t counters[ABI_COUNTER_COUNT] = { 0 };
	struct runtime_sink sink = { 0 };
	struct sampler_state *s = NULL;

	assert_int_equal(sampler_remote.open(&cfg, &why, &s), 0);
	assert_int_equal(sampler_remote.runtimes(s, &sink), 0);
	assert_int_equal(sink.set(sink.self, ABI_RUNTIME_PYTHON, (uint32_t)pid, old, sizeof(*old)), 0);
	assert_int_equal(sink.set(sink.self, ABI_RUNTIME_RUBY, (uint32_t)pid, ruby, sizeof(*ruby)), 0);
	sink.forget(sink.self, ABI_RUNTIME_PYTHON, (uint32_t)pid); /* takes away what is Python's alone */
	assert_int_equal(sampler_remote.start(s), 0);
	for (int i = 0; i < 3000 && counters[ABI_COUNTER_SAMPLES] < 3; i++) {
		sampler_remote.poll(s, 1, &events);
		sampler_remote.counters(s, counters);
	}
	assert_true(counters[ABI_COUNTER_SAMPLES] >= 3);
	assert_int_equal(sampler_remote.stop(s), 0);
	sampler_remote.close(s);
	return counters[ABI_COUNTER_RUNTIME_WALKS] > 0;
}

/* What was known of a program before an exec, or of a process that had this pid, is not in a runtime's way. */
static void another_program_is_read(void **state)
{
	struct remote_procs procs;
	struct remote_process *p;
	pid_t pid = start_spinning();
	struct abi_python old;
	struct abi_ruby ruby;

	(void)state;
	remote_procs_init(&procs, "", 16);
	assert_int_equal(remote_procs_add(&procs, (uint32_t)pid, &p), 0);
	ruby = (struct abi_ruby){ .start_ns = p->start_ns, .exec_id = 1 };
	remote_procs_release(&procs);
	old = (struct abi_python){ .start_ns = ruby.start_ns - NSEC_PER_SEC, .exec_id = 1 };
	assert_true(reads_ruby_behind(pid, &old, &ruby));
	old = (struct abi_python){ .start_ns = ruby.start_ns, .exec_id = 0 };
	assert_true(reads_ruby_behind(pid, &old, &ruby));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int scan_all(void *ctx)
{
	struct remote_procs procs;
	const struct remote_scan what = { .all = true };
	int r;

	(void)ctx;
	remote_procs_init(&procs, "", 64);
	r = remote_procs_scan(&procs, &what);
	remote_procs_release(&procs);
	return MIN(r, 0);
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for (unsigned long n = 1; n < 40; n++) { /* there are more processes than it is worth going through */
		int r;

		fail_allocation(n);
		r = scan_all(NULL);
		fail_allocation(0);
		assert_true(r == 0 || r == -ENOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times),
		cmocka_unit_test(who_runs_counts),
		cmocka_unit_test(takes_and_plans),
		cmocka_unit_test(memory_that_goes),
		cmocka_unit_test(endless_walk),
		cmocka_unit_test(threads_after_others),
		cmocka_unit_test(finds_thread_pointers),
		cmocka_unit_test(tells_musl_from_lists),
		cmocka_unit_test(judges_rounds),
		cmocka_unit_test(rounds_share_outer_frames),
		cmocka_unit_test(ring_is_bounded),
		cmocka_unit_test(finds_who_runs),
		cmocka_unit_test(another_program_is_read),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
