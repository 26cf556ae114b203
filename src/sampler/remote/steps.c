// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/steps.h"

#include "sampler/remote/pointer.h"

#define TRIES 3         /* calls, of as many rounds as rounds_of[] says */
#define CONFIRMATIONS 3 /* rounds in calls of their own; 1 for a thread that waits */
#define PLAN_EVERY 8    /* walks that nothing was missing in, until the plan is made again */
#define TURNS 8192      /* of one walk */
#define MISSED_FEW 4    /* so many tries that lack pieces are not counted */
#define MISSES_MAX 512  /* a stack that takes so many single reads is not tried again */
#define STRANGE_FEW 4   /* after so many, a thread that was not found is looked for only every so many looks */
#define STRANGE_EVERY 64
#define SENT_MAX 262144
#define PENDING_MAX 4096

static const uint8_t rounds_of[TRIES] = { 1, 4, 8 };

enum verdict {
	AGREE,
	MOVED, /* but for the position in the innermost frame */
	DISAGREE,
	MISSED, /* pieces are not there */
};

struct stack {
	struct abi_frame frames[ABI_FRAMES_MAX];
	uint32_t count;
	uint8_t end;
	uint64_t trace;
};

struct remote_walker {
	const struct remote_steps *steps;
	struct walk *walk;
	struct walk_world world;
	struct remote_memory *memory;
	const struct remote_process *process; /* that is being walked */
	struct stack before, after;
	struct stack agreed;   /* in one round, while others are asked for */
	struct stack best;     /* the longest part that both passes of some round have */
	struct u64map sent;    /* hash of a name that was sent -> 1 */
	struct u64map pending; /* of one that this thread's walks have met -> where its record is in `records` */
	struct buf records;
	size_t size; /* of the bytes of the record in the room */
	uint64_t room[(sizeof(struct abi_name) + ABI_NAME_BYTES_MAX) / 8];
};

static int read_memory(void *self, void *dst, __u32 size, __u64 at)
{
	struct remote_walker *w = self;

	return remote_memory_read_as(w->memory, w->steps->kind_of(w->walk, size), dst, size, at);
}

int remote_steps_open(const struct remote_steps *steps, struct remote_walker **out)
{
	struct remote_walker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->steps = steps;
	u64map_init(&w->sent, SENT_MAX);
	u64map_init(&w->pending, PENDING_MAX);
	w->records = (struct buf)BUF_INIT(PENDING_MAX * sizeof(w->room));
	w->walk = calloc(1, sizeof(*w->walk));
	r = w->walk ? remote_memory_new(&w->memory) : -ENOMEM;
	if (r < 0) {
		remote_steps_close(w);
		return r;
	}
	w->memory->frames_are_near = true;
	w->world = (struct walk_world){ .read = read_memory, .self = w };
	w->walk->world = &w->world;
	*out = w;
	return 0;
}

void remote_steps_close(struct remote_walker *w)
{
	if (!w)
		return;
	u64map_release(&w->sent);
	u64map_release(&w->pending);
	buf_release(&w->records);
	remote_memory_free(w->memory);
	free(w->walk);
	free(w);
}

/* ---- names ---- */

/* A round of splitmix64. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) + UINT64_C(0x9e3779b97f4a7c15);
	hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
	return hash ^ hash >> 31;
}

static uint64_t number_of(const struct remote_process *p)
{
	return mix(p->start_ns, (uint64_t)p->pid << 32 | p->exec_id);
}

static uint64_t hash_of(const struct remote_process *p, uint64_t key, uint64_t cookie)
{
	return mix(mix(number_of(p), key), cookie);
}

bool remote_name_wanted(struct walk *walk, uint64_t key, uint64_t cookie)
{
	struct remote_walker *w = walk->world->self;
	uint64_t hash = hash_of(w->process, key, cookie);
	uint32_t unused;

	if (u64map_get(&w->sent, hash, &unused) == 0 || u64map_get(&w->pending, hash, &unused) == 0)
		return false;
	w->size = 0;
	memset(w->room, 0, sizeof(w->room));
	return true;
}

uint8_t *remote_name_bytes(struct walk *walk, size_t size)
{
	struct remote_walker *w = walk->world->self;
	struct abi_name *record = (struct abi_name *)w->room;

	if (size > ABI_NAME_BYTES_MAX - w->size)
		return NULL;
	w->size += size;
	return record->bytes + w->size - size;
}

uint16_t remote_name_add(struct walk *walk, uint64_t at, uint64_t size, uint32_t max)
{
	struct remote_walker *w = walk->world->self;
	uint64_t sent = MIN(size, (uint64_t)max);
	uint8_t *to = remote_name_bytes(walk, align_up(sent, 8));

	if (!to || !sent)
		return 0;
	if (remote_memory_now(w->memory, to, (uint32_t)sent, at) < 0) {
		memset(to, 0, sent);
		w->size -= align_up(sent, 8);
		return 0;
	}
	return (uint16_t)sent;
}

int remote_name_read(struct walk *walk, void *dst, uint32_t size, uint64_t at)
{
	struct remote_walker *w = walk->world->self;

	return remote_memory_now(w->memory, dst, size, at);
}

static size_t fill_head(struct remote_walker *w, uint64_t key, uint64_t cookie)
{
	const struct remote_process *p = w->process;
	struct abi_name *record = (struct abi_name *)w->room;

	record->header = (struct abi_header){ .type = ABI_RECORD_NAME, .version = ABI_VERSION };
	record->header.size = (uint32_t)align_up(sizeof(*record) + w->size, 8);
	record->process_start_ns = p->start_ns;
	record->key = key;
	record->cookie = cookie;
	record->pid = p->pid;
	record->exec_id = p->exec_id;
	record->bytes_size = (uint32_t)w->size;
	record->runtime = (uint8_t)w->steps->runtime;
	return record->header.size;
}

void remote_name_keep(struct walk *walk, uint64_t key, uint64_t cookie)
{
	struct remote_walker *w = walk->world->self;
	size_t at = w->records.len;

	buf_add(&w->records, w->room, fill_head(w, key, cookie));
	if (!w->records.error) /* without room: the next walk asks again */
		ignore(u64map_put(&w->pending, hash_of(w->process, key, cookie), (uint32_t)at));
}

uint16_t remote_name_text(struct buf *out, const void *bytes, size_t size, size_t max)
{
	static const uint8_t zeros[8];
	size_t sent = MIN(size, max);

	if (sent)
		buf_add(out, bytes, sent);
	buf_add(out, zeros, align_up(sent, 8) - sent);
	return (uint16_t)sent;
}

static int read_target(void *self, void *dst, uint32_t size, uint64_t at)
{
	return remote_memory_now(self, dst, size, at);
}

/* As the process has it now, while its cookie holds. */
static int read_now(struct remote_walker *w, const struct remote_process *p, const struct abi_frame *frame)
{
	const struct runtime_target target = { .pid = p->pid,
					       .exec_id = p->exec_id,
					       .start_ns = p->start_ns,
					       .read = read_target,
					       .self = w->memory,
					       .proc_dir = p->dir };
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1)), bytes = BUF_INIT(ABI_NAME_BYTES_MAX);
	struct runtime_function function = { 0 };
	uint8_t *to;
	int r = runtime_find(w->steps->runtime)->read_name(&target, p->info, frame->a, frame->b, &room, &function);

	if (r == 0)
		r = w->steps->record(p->info, frame, &function, &bytes);
	if (r < 0)
		return r;
	w->size = 0;
	memset(w->room, 0, sizeof(w->room));
	to = remote_name_bytes(w->walk, bytes.len);
	if (to)
		memcpy(to, bytes.ptr, bytes.len);
	return 0;
}

const struct abi_name *remote_steps_name(struct remote_walker *w, struct remote_process *p,
					 const struct abi_frame *frame, uint64_t now_ns)
{
	struct abi_name *record = (struct abi_name *)w->room;
	uint64_t hash = hash_of(p, frame->a, frame->b);
	uint32_t at;

	if (!frame->b || u64map_get(&w->sent, hash, &at) == 0)
		return NULL;
	w->process = p;
	if (u64map_get(&w->pending, hash, &at) == 0) {
		record = (struct abi_name *)(void *)(w->records.ptr + at);
	} else {
		if (!w->steps->record || read_now(w, p, frame) < 0)
			return NULL;
		fill_head(w, frame->a, frame->b);
	}
	record->header.time_ns = now_ns;
	return record;
}

void remote_steps_sent(struct remote_walker *w, const struct remote_process *p, const struct abi_frame *frame)
{
	uint64_t hash = hash_of(p, frame->a, frame->b);

	ignore(u64map_remove(&w->pending, hash));
	if (u64map_put(&w->sent, hash, 1) == -E2BIG) { /* full: begin again */
		u64map_clear(&w->sent);
		ignore(u64map_put(&w->sent, hash, 1)); /* without memory: it is sent again */
	}
}

void remote_steps_forget(struct remote_walker *w)
{
	u64map_clear(&w->sent);
}

/* ---- walks ---- */

/* Walks over what this round and pass have read. */
static void walk_view(struct remote_walker *w, const struct remote_thread *t, unsigned round, bool after,
		      struct stack *out)
{
	struct walk *walk = w->walk;
	enum walk_next next = WALK_MORE;

	remote_memory_view(w->memory, round, after);
	walk->count = walk->runtime_count = 0;
	walk->tp = t->tp;
	walk->tid = t->inner_tid;
	memset(walk->leaf, 0, sizeof(walk->leaf));
	if (t->leaf)
		memcpy(walk->leaf, t->leaf, sizeof(walk->leaf));
	w->steps->start(walk, w->process->info, number_of(w->process));
	for (unsigned turn = 0; turn < TURNS && next == WALK_MORE; turn++)
		next = w->steps->step(walk);
	if (t->runnable && !t->leaf && w->steps->settle)
		w->steps->settle(walk);
	out->count = walk->runtime_count;
	out->end = walk->runtime_end;
	out->trace = w->memory->trace;
	memcpy(out->frames, walk->frames, out->count * sizeof(*out->frames));
}

static void put_back(struct remote_walker *w, const struct stack *s)
{
	w->walk->runtime_count = s->count;
	w->walk->runtime_end = s->end;
	memcpy(w->walk->frames, s->frames, s->count * sizeof(*s->frames));
}

static bool same_function(const struct abi_frame *a, const struct abi_frame *b)
{
	return a->kind == b->kind && a->flags == b->flags && a->a == b->a && a->b == b->b;
}

/* From the root inwards the frames are the same. Return: how many. */
static uint32_t count_sure(const struct stack *a, const struct stack *b)
{
	uint32_t sure = 0;

	while (sure < a->count && sure < b->count) {
		const struct abi_frame *x = &a->frames[a->count - 1 - sure], *y = &b->frames[b->count - 1 - sure];

		if (!same_function(x, y) || x->extra != y->extra)
			break;
		sure++;
	}
	return sure;
}

/* An end that a stack at rest can have. */
static bool is_settled(uint8_t end)
{
	return end == ABI_RUNTIME_END_WHOLE || end == ABI_RUNTIME_END_NO_STATE || end == ABI_RUNTIME_END_GAP ||
	       end == ABI_RUNTIME_END_FRAME_LIMIT;
}

/* Only from a root inwards are frames those of one stack. */
static void keep_best(struct remote_walker *w, uint32_t sure)
{
	const struct stack *a = &w->after;

	if (sure <= w->best.count || a->end != ABI_RUNTIME_END_WHOLE || w->before.end != ABI_RUNTIME_END_WHOLE)
		return;
	w->best.count = sure;
	memcpy(w->best.frames, a->frames + a->count - sure, sure * sizeof(*a->frames));
}

/* The result is in w->after. */
static enum verdict judge_round(struct remote_walker *w, const struct remote_thread *t, unsigned round)
{
	const struct stack *a = &w->before, *b = &w->after;
	uint32_t misses = w->memory->misses, sure;

	walk_view(w, t, round, false, &w->before);
	walk_view(w, t, round, true, &w->after);
	if (w->memory->misses != misses)
		return MISSED;
	sure = count_sure(a, b);
	if (sure == a->count && sure == b->count && a->end == b->end && a->trace == b->trace && is_settled(b->end))
		return AGREE;
	if (a->count == b->count && b->count && sure == b->count - 1 && a->end == b->end && is_settled(b->end) &&
	    same_function(&a->frames[0], &b->frames[0]))
		return MOVED;
	keep_best(w, sure);
	return DISAGREE;
}

static enum verdict try_once(struct remote_walker *w, struct remote_thread *t, unsigned rounds)
{
	enum verdict verdict = DISAGREE;
	bool missed = false;

	remote_memory_start(w->memory, w->process->pid, &t->plan, rounds);
	for (unsigned round = 0; round < rounds && verdict >= DISAGREE; round++) {
		verdict = judge_round(w, t, round);
		missed |= verdict == MISSED;
	}
	if (missed || t->walks++ % PLAN_EVERY == 0)
		ignore(remote_memory_plan(w->memory, &t->plan)); /* without memory: everything is read singly */
	return verdict == DISAGREE && missed ? MISSED : verdict;
}

/* A loop may bring the same stack back for both passes of one round. Return: whether others, each of a call of its own,
 * have it, too. It stays in w->after. */
static bool is_confirmed(struct remote_walker *w, struct remote_thread *t)
{
	struct stack *agreed = &w->agreed;
	bool same = true;

	*agreed = w->after;
	for (unsigned i = t->runnable ? 0 : CONFIRMATIONS - 1; i < CONFIRMATIONS && same; i++) {
		remote_memory_start(w->memory, w->process->pid, &t->plan, 1);
		same = judge_round(w, t, 0) == AGREE && w->after.trace == agreed->trace &&
		       w->after.count == agreed->count && count_sure(&w->after, agreed) == agreed->count;
	}
	w->after = *agreed;
	return same;
}

/* Return: false when nothing agreed. */
static bool walk(struct remote_walker *w, struct remote_thread *t)
{
	enum verdict verdict = DISAGREE;
	struct stack *s = &w->after;

	for (unsigned i = 0, missed = 0; i < TRIES && verdict >= DISAGREE;) {
		verdict = try_once(w, t, rounds_of[i]);
		i += verdict != MISSED || ++missed > MISSED_FEW || w->memory->misses > MISSES_MAX;
	}
	if (verdict >= DISAGREE)
		return false;
	if (!s->count || (verdict == AGREE && is_confirmed(w, t)))
		return true;
	s->frames[0].flags |= ABI_FRAME_GUESSED;
	if (s->end == ABI_RUNTIME_END_WHOLE)
		s->end = ABI_RUNTIME_END_CHANGED;
	return true;
}

/* Nothing agreed: what is sure. */
static void give_up(struct remote_walker *w)
{
	w->best.end = w->best.count ? ABI_RUNTIME_END_GAP : ABI_RUNTIME_END_CHANGED;
	w->after = w->best;
}

/* Return: false when it is not known whose memory is to be read. */
static bool find_pointer(struct remote_walker *w, struct remote_process *p, struct remote_thread *t)
{
	if (t->tp || !w->steps->needs_pointer(p->info))
		return true;
	if (t->strange++ >= STRANGE_FEW && t->strange % STRANGE_EVERY)
		return false;
	return remote_pointer_find(p, t) == 0;
}

struct abi_sample *remote_steps_read(struct remote_walker *w, struct remote_process *p, struct remote_thread *t)
{
	struct abi_sample *sample = walk_sample(w->walk);

	w->process = p;
	w->best.count = 0;
	u64map_clear(&w->pending);
	buf_clear(&w->records);
	sample->pid = p->pid;
	sample->tid = t->tid;
	if (!find_pointer(w, p, t)) {
		sample->runtime_count = 0;
		sample->runtime_end = ABI_RUNTIME_END_NOT_READY;
		return sample;
	}
	if (!walk(w, t))
		give_up(w);
	put_back(w, &w->after);
	sample->runtime_count = (uint16_t)w->walk->runtime_count;
	sample->runtime_end = w->walk->runtime_end;
	return sample;
}
