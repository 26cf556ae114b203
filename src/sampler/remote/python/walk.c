// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/python/walk.h"

#include "sampler/remote/python/chain.h"
#include "sampler/remote/python/names.h"

/* Several pieces are read in one call, each as small as possible, because memory that changes meanwhile is torn. */
#define WALK_PYTHON_HEAP_WINDOWS 0
#include "walk/walk_python.h"

#define ROOT_SURE 3      /* votes from which on a thread's first frame is known */
#define ROOT_VOTES_MAX 8 /* so many stacks with another one make it unknown again */
#define PLAN_EVERY 8     /* walks that nothing was missing in, until the plan is made again */
#define TURNS 2048       /* thread states, frames and shims of one walk */
#define MISSED_FEW 3     /* so many tries that lack pieces are not counted */
#define STRANGE_FEW 8    /* after so many, a thread without a thread state is looked at only every so many looks */
#define MISSES_MAX 128   /* a stack that takes so many single reads is not tried again */

static const uint8_t rounds_of[REMOTE_TRIES] = { 1, 4, 8 };

struct stack {
	struct abi_frame frames[ABI_FRAMES_MAX];
	size_t count;
	uint8_t end;
	uint64_t trace;
};

struct remote_walker {
	struct walk *walk;
	struct walk_world world;
	struct remote_memory *memory;
	const struct remote_process *process; /* that is being walked */
	struct remote_piece codes[REMOTE_CHAIN_MAX / 2];
	uint64_t places[ABI_FRAMES_MAX]; /* of the walk's frames: address of the frame, or 0 */
	struct remote_chains chains;
	struct remote_finding finding;
	struct remote_chain agreed; /* in one round, while others are asked for */
	struct stack kept;
	struct remote_names *names;
	struct stack best; /* the longest proven part among the rounds that did not agree */
	size_t best_sure;
	bool has_best;
};

static const struct abi_python *info_of(const struct remote_process *p)
{
	return (const struct abi_python *)p->info;
}

/* By the sizes that the steps of walk/walk_python.h read. */
static enum remote_kind kind_of(uint32_t size)
{
	switch (size) {
	case sizeof(uint64_t):
		return REMOTE_EARLY;
	case ABI_PYTHON_FRAME_BYTES:
	case WALK_PYTHON_STACK_BYTES:
	case ABI_PYTHON_OLD_BYTES:
		return REMOTE_FRAME;
	case ABI_PYTHON_CODE_BYTES:
		return REMOTE_LATE;
	default:
		return REMOTE_HEAD;
	}
}

static int read_memory(void *self, void *dst, __u32 size, __u64 at)
{
	struct remote_walker *w = self;

	return remote_memory_read(w->memory, dst, size, at);
}

int remote_walker_new(struct remote_walker **out)
{
	struct remote_walker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->walk = calloc(1, sizeof(*w->walk));
	r = w->walk ? remote_memory_new(&w->memory) : -ENOMEM;
	if (r == 0)
		r = remote_names_new(&w->names);
	if (r < 0) {
		remote_walker_free(w);
		return r;
	}
	w->memory->kind_of = kind_of;
	w->world = (struct walk_world){ .read = read_memory, .self = w };
	w->walk->world = &w->world;
	*out = w;
	return 0;
}

void remote_walker_free(struct remote_walker *w)
{
	if (!w)
		return;
	remote_names_free(w->names);
	remote_memory_free(w->memory);
	free(w->walk);
	free(w);
}

struct remote_names *remote_walker_names(struct remote_walker *w)
{
	return w->names;
}

struct abi_sample *remote_walker_sample(struct remote_walker *w)
{
	return walk_sample(w->walk);
}

/* ---- which thread state ---- */

/* Where the C library keeps a thread's id, from what pthread_self() says. Sources: glibc 2.36, nptl/descr.h (offset of
 * tid, the same from 2.17 on); musl 1.2.3, src/internal/pthread_impl.h. */
static uint32_t tid_offset(const struct abi_python *info)
{
	if (info->flags & ABI_PYTHON_KEY_INDIRECT) /* musl */
		return 48;
#ifdef WALK_X86_64
	return 720;
#else
	return 208;
#endif
}

/* Does the thread state that is in the walk's block belong to the thread with id @inner_tid? */
static bool is_of_thread(struct remote_walker *w, const struct abi_python *info, uint32_t inner_tid)
{
	const struct abi_python_layout *l = &info->layout;
	uint64_t self = walk_python_thread_word(w->walk, l->thread_id);
	uint32_t tid;

	/* A child that forked may still say its parent's. */
	if (l->thread_native_id != ABI_PYTHON_NONE &&
	    (uint32_t)walk_python_thread_word(w->walk, l->thread_native_id) == inner_tid)
		return true;
	return self && remote_memory_read(w->memory, &tid, sizeof(tid), self + tid_offset(info)) == 0 &&
	       tid == inner_tid;
}

static bool find_in_interpreter(struct remote_walker *w, const struct abi_python *info, uint64_t interpreter,
				struct remote_thread *t, unsigned *left)
{
	const struct abi_python_layout *l = &info->layout;
	uint64_t at;

	if (remote_memory_read(w->memory, &at, sizeof(at), interpreter + l->interp_threads) < 0)
		return false;
	for (; at && *left; --*left) {
		__u64 *block = &w->walk->scratch[WALK_PYTHON_BLOCK];

		if (remote_memory_read(w->memory, block, ABI_PYTHON_THREAD_BYTES, at) < 0)
			return false;
		if (is_of_thread(w, info, t->inner_tid)) {
			t->tp = walk_python_thread_word(w->walk, l->thread_id) - (uint64_t)(int64_t)info->self_at;
			return true;
		}
		at = walk_python_thread_word(w->walk, l->thread_next);
	}
	return false;
}

/* The thread pointer of a thread never changes; it is known once its first thread state has been seen. */
static void find_thread_pointer(struct remote_walker *w, const struct remote_process *p, struct remote_thread *t)
{
	const struct abi_python *info = info_of(p);
	const struct abi_python_layout *l = &info->layout;
	const struct remote_plan none = { 0 };
	unsigned left = WALK_PYTHON_THREADS * 16;
	uint64_t interpreter;

	remote_memory_start(w->memory, p->pid, &none, 1);
	if (!info->interpreters ||
	    remote_memory_read(w->memory, &interpreter, sizeof(interpreter), info->interpreters) < 0)
		return;
	for (; interpreter && left; left--) {
		if (find_in_interpreter(w, info, interpreter, t, &left))
			return;
		if (remote_memory_read(w->memory, &interpreter, sizeof(interpreter), interpreter + l->interp_next) < 0)
			return;
	}
}

/* ---- walks ---- */

/* Walks over what this round and pass have read. */
static void walk_view(struct remote_walker *w, const struct remote_thread *t, unsigned round, bool after)
{
	struct walk *walk = w->walk;
	const struct walk_python *p = walk_python_state(walk);
	enum walk_next next;

	remote_memory_view(w->memory, round, after);
	walk->count = 0;
	walk->tp = t->tp;
	walk->tid = t->inner_tid;
	next = walk_python_start(walk, info_of(w->process), 0);
	for (unsigned turn = 0; turn < TURNS && next == WALK_MORE; turn++) {
		uint64_t frame = p->phase == WALK_PYTHON_FRAMES ? p->at : 0;
		uint32_t before = walk->runtime_count;

		next = walk_python_step(walk);
		for (uint32_t i = before; i < walk->runtime_count; i++)
			w->places[i] = frame;
	}
}

static void keep(struct remote_walker *w, struct stack *out)
{
	out->count = w->walk->runtime_count;
	out->end = w->walk->runtime_end;
	out->trace = w->memory->trace;
	memcpy(out->frames, w->walk->frames, out->count * sizeof(*out->frames));
}

static void put_back(struct remote_walker *w, const struct stack *s)
{
	w->walk->runtime_count = (uint32_t)s->count;
	w->walk->runtime_end = s->end;
	memcpy(w->walk->frames, s->frames, s->count * sizeof(*s->frames));
}

/* ---- verdicts ---- */

static bool same_frame(const struct abi_frame *a, const struct abi_frame *b)
{
	return a->kind == b->kind && a->a == b->a && a->b == b->b && a->extra == b->extra;
}

/* NULL: there is none. */
static const struct abi_frame *root_of(const struct abi_frame *frames, size_t count)
{
	while (count-- > 0)
		if (frames[count].kind == ABI_FRAME_RUNTIME)
			return &frames[count];
	return NULL;
}

/* Does the walk lead to the thread's first frame? Until that is known, to that of another thread of the process; as
 * long as none is known, anything is believed. */
static bool is_rooted(const struct remote_walker *w, const struct remote_thread *t)
{
	const struct remote_process *p = w->process;
	const struct abi_frame *root = root_of(w->walk->frames, w->walk->runtime_count);

	if (!root)
		return false;
	if (t->root_votes >= ROOT_SURE)
		return root->a == t->root.code && root->b == t->root.cookie;
	for (size_t i = 0; i < ARRAY_SIZE(p->roots); i++)
		if (p->roots[i].code == root->a && p->roots[i].cookie == root->b)
			return true;
	return !p->roots[0].code;
}

/* The majority of the stacks says what a thread's first frame is. Source of the way: R. Boyer, J. Moore, MJRTY. */
static void vote_root(struct remote_walker *w, struct remote_process *p, struct remote_thread *t)
{
	const struct abi_frame *root = root_of(w->walk->frames, w->walk->runtime_count);

	if (!root)
		return;
	if (!t->root_votes)
		t->root = (struct remote_root){ root->a, root->b };
	if (root->a != t->root.code || root->b != t->root.cookie) {
		t->root_votes--;
		return;
	}
	t->root_votes += t->root_votes < ROOT_VOTES_MAX;
	if (t->root_votes != ROOT_SURE)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(p->roots); i++)
		if (p->roots[i].code == root->a && p->roots[i].cookie == root->b)
			return;
	memmove(p->roots + 1, p->roots, sizeof(p->roots) - sizeof(p->roots[0]));
	p->roots[0] = t->root;
}

/* From the root inwards the frames are those of two passes. Return: how many. */
static size_t count_sure(const struct abi_frame *a, size_t a_count, const struct abi_frame *b, size_t b_count)
{
	size_t sure = 0;

	while (sure < a_count && sure < b_count && same_frame(&a[a_count - 1 - sure], &b[b_count - 1 - sure]))
		sure++;
	return sure;
}

static bool is_whole(uint8_t end)
{
	return end == ABI_RUNTIME_END_WHOLE || end == ABI_RUNTIME_END_NO_STATE;
}

/* Are the walk's frames those of @chain, and no others? Behind a subinterpreter's are those that run it. */
static bool is_all_of(const struct remote_walker *w, const struct remote_chain *chain)
{
	uint32_t count = w->walk->runtime_count;

	return count && w->places[0] == chain->links[0].at && w->places[count - 1] == chain->links[chain->count - 1].at;
}

/* Same check for stacks that continue into another thread state. */
static bool walks_agree(struct remote_walker *w, const struct remote_thread *t, unsigned round)
{
	const struct stack *after = &w->best;

	w->has_best = false;
	walk_view(w, t, round, true);
	keep(w, &w->best);
	walk_view(w, t, round, false);
	return !w->memory->misses && is_whole(after->end) && w->walk->runtime_end == after->end &&
	       w->walk->runtime_count == after->count && w->memory->trace == after->trace &&
	       count_sure(w->walk->frames, after->count, after->frames, after->count) == after->count;
}

/* The code objects of the chain's frames, in one call. */
static void read_codes(struct remote_walker *w, const struct remote_chain *chain)
{
	const struct abi_python_layout *l = &info_of(w->process)->layout;
	uint32_t count = 0;

	for (uint32_t i = 0; i < chain->count && count < ARRAY_SIZE(w->codes); i++) {
		uint64_t code = chain->links[i].code & ~UINT64_C(7);

		if (!i || code != (chain->links[i - 1].code & ~UINT64_C(7)))
			w->codes[count++] =
				(struct remote_piece){ .at = code + l->code_filename - ABI_PYTHON_CODE_BEFORE,
						       .size = ABI_PYTHON_CODE_BYTES };
	}
	remote_memory_add(w->memory, w->codes, count);
}

/* What is sure of the round of this try that agrees the most, when it is more than of the tries before. */
static void keep_best(struct remote_walker *w, const struct remote_thread *t, unsigned round)
{
	struct remote_finding *f = &w->finding;
	uint64_t innermost;
	size_t first = 0;

	remote_chain_judge(w->memory, &info_of(w->process)->layout, t->state_at, round, &w->chains, f);
	read_codes(w, f->chain);
	innermost = f->chain->links[f->chain->count - f->sure].at;
	walk_view(w, t, round, f->after);
	if (w->memory->misses || !is_whole(w->walk->runtime_end) || !is_rooted(w, t))
		return;
	while (first < w->walk->runtime_count && w->places[first] != innermost)
		first++;
	w->has_best = true;
	w->best_sure = f->sure;
	keep(w, &w->best);
	w->best.count -= first;
	memmove(w->best.frames, w->best.frames + first, w->best.count * sizeof(*w->best.frames));
}

/* Both passes of the round have these frames, as far as can be told. The result stays in the walk. */
static enum remote_verdict walk_round(struct remote_walker *w, const struct remote_thread *t, unsigned round)
{
	const struct remote_finding *f = &w->finding;

	read_codes(w, f->chain);
	walk_view(w, t, round, f->after);
	if (w->memory->misses)
		return REMOTE_MISSED;
	if (!is_whole(w->walk->runtime_end))
		return REMOTE_DISAGREE; /* nothing that has ended otherwise is believed at once */
	if (!is_all_of(w, f->chain))
		return walks_agree(w, t, round) ? REMOTE_AGREE : REMOTE_DISAGREE;
	return f->verdict == REMOTE_MOVED && !is_rooted(w, t) ? REMOTE_DISAGREE : f->verdict;
}

/* Asks for what the plan lacks. There may be no frame, or the thread state may be another one. */
static enum remote_verdict walk_missed(struct remote_walker *w, const struct remote_thread *t, unsigned round)
{
	w->finding = (struct remote_finding){ .verdict = REMOTE_MISSED };
	walk_view(w, t, round, true);
	if (w->memory->misses)
		return REMOTE_MISSED;
	return walks_agree(w, t, round) ? REMOTE_AGREE : REMOTE_DISAGREE;
}

/* The first round that agrees. The result stays in the walk. */
static enum remote_verdict judge_rounds(struct remote_walker *w, const struct remote_thread *t, unsigned rounds)
{
	unsigned missed = rounds, best = rounds;
	uint32_t sure = w->has_best ? (uint32_t)w->best_sure : 0;
	struct remote_finding *f = &w->finding;

	for (unsigned round = 0; round < rounds; round++) {
		enum remote_verdict verdict;

		remote_chain_judge(w->memory, &info_of(w->process)->layout, t->state_at, round, &w->chains, f);
		if (f->verdict == REMOTE_MISSED) {
			missed = round;
		} else if (f->verdict != REMOTE_DISAGREE) {
			verdict = walk_round(w, t, round);
			if (verdict != REMOTE_DISAGREE)
				return verdict;
		} else if (f->sure > sure) {
			sure = f->sure;
			best = round;
		}
	}
	if (best < rounds)
		keep_best(w, t, best);
	return missed < rounds ? walk_missed(w, t, missed) : REMOTE_DISAGREE;
}

static void plan_again(struct remote_walker *w, struct remote_thread *t)
{
	if (w->memory->misses || t->walks++ % PLAN_EVERY == 0)
		ignore(remote_memory_plan(w->memory, &t->plan)); /* without memory: everything is read singly */
}

/* A loop may bring the same stack back for both passes of one round. Return: whether others, each of a call of its own,
 * have it, too. What agreed comes back into the walk. */
static bool is_confirmed(struct remote_walker *w, struct remote_thread *t)
{
	struct remote_finding *f = &w->finding;
	bool same = true;

	if (!f->chain)
		return !w->walk->runtime_count; /* no frames: nothing to be wrong */
	w->agreed = *f->chain;
	keep(w, &w->kept);
	for (unsigned i = t->runnable ? 0 : REMOTE_CONFIRMATIONS - 1; i < REMOTE_CONFIRMATIONS && same; i++) {
		remote_memory_start(w->memory, w->process->pid, &t->plan, 1);
		remote_chain_judge(w->memory, &info_of(w->process)->layout, t->state_at, 0, &w->chains, f);
		same = f->verdict == REMOTE_AGREE && remote_chain_equal(f->chain, &w->agreed);
	}
	put_back(w, &w->kept);
	return same;
}

static enum remote_verdict try_once(struct remote_walker *w, struct remote_thread *t, unsigned rounds)
{
	enum remote_verdict verdict;

	remote_memory_start(w->memory, w->process->pid, &t->plan, rounds);
	verdict = judge_rounds(w, t, rounds);
	t->state_at = walk_python_thread(w->walk)->at;
	if (verdict != REMOTE_AGREE)
		plan_again(w, t);
	return verdict;
}

/* Both passes of a round agree. What cannot be a live stack needs proof before it is believed. */
static enum remote_verdict confirm(struct remote_walker *w, struct remote_process *p, struct remote_thread *t)
{
	bool is_odd = w->finding.is_odd, rooted = is_rooted(w, t);

	if (!is_confirmed(w, t))
		return is_odd || !rooted ? REMOTE_DISAGREE : REMOTE_AGREE;
	if (rooted || !w->walk->runtime_count)
		return REMOTE_CLEAN;
	vote_root(w, p, t); /* torn all the same, or the thread has another first frame by now */
	return REMOTE_DISAGREE;
}

/* Nothing agreed: what is sure. */
static void give_up(struct remote_walker *w)
{
	if (w->has_best) {
		put_back(w, &w->best);
		w->walk->runtime_end = ABI_RUNTIME_END_GAP;
	} else {
		w->walk->runtime_count = 0;
		w->walk->runtime_end = ABI_RUNTIME_END_CHANGED;
	}
}

static void mark_moved(struct remote_walker *w)
{
	if (w->walk->runtime_count && w->walk->frames[0].kind == ABI_FRAME_RUNTIME)
		w->walk->frames[0].flags |= ABI_FRAME_GUESSED;
	if (is_whole(w->walk->runtime_end))
		w->walk->runtime_end = ABI_RUNTIME_END_CHANGED;
}

void remote_walk_thread(struct remote_walker *w, struct remote_process *p, struct remote_thread *t)
{
	struct abi_sample *sample = remote_walker_sample(w);
	enum remote_verdict verdict = REMOTE_DISAGREE;

	w->process = p;
	w->has_best = false;
	w->memory->frame_bytes = remote_frame_bytes(&info_of(p)->layout);
	w->memory->frames_are_near = info_of(p)->layout.frame_size <= ABI_PYTHON_FRAME_BYTES;
	if (!t->tp && (t->strange < STRANGE_FEW || t->strange % STRANGE_FEW == 0))
		find_thread_pointer(w, p, t);
	if (!t->tp) { /* a thread that does not run Python, or not yet */
		t->strange++;
		sample->runtime_count = 0;
		sample->runtime_end = ABI_RUNTIME_END_NO_STATE;
		return;
	}
	for (unsigned i = 0, missed = 0; i < REMOTE_TRIES && verdict >= REMOTE_DISAGREE;) {
		verdict = try_once(w, t, rounds_of[i]);
		if (verdict == REMOTE_AGREE)
			verdict = confirm(w, p, t);
		i += verdict != REMOTE_MISSED || ++missed > MISSED_FEW || w->memory->misses > MISSES_MAX;
	}
	if (verdict <= REMOTE_MOVED)
		vote_root(w, p, t);
	if (verdict == REMOTE_MOVED || verdict == REMOTE_AGREE)
		mark_moved(w);
	else if (verdict != REMOTE_CLEAN)
		give_up(w);
	sample->runtime_count = (uint16_t)w->walk->runtime_count;
	sample->runtime_end = w->walk->runtime_end;
}
