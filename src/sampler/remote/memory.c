// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/memory.h"

#define PAGE 4096U
#define AHEAD 1024 /* read behind a window, within its page: the next frames */
#define NEAR 2048  /* frames that are not farther apart lie in one window */
#define WINDOW_MAX KIB(32)
#define INNER_MAX 4 /* frames that are read again in each round */
#define UNUSED_MAX                                                                                                    \
	16            /* a piece stays in so many plans without being asked for; windows are made again after so many \
		       */
#define EXTRA_MAX 16  /* so many frames of that kind */
#define EXTRA_INNER 1 /* of those, the ones asked for last, among the inner frames */

static ssize_t read_process(void *self, uint32_t pid, const struct iovec *to, const struct iovec *from, size_t count)
{
	ssize_t got = process_vm_readv((pid_t)pid, to, 1, from, count, 0);

	(void)self;
	return got < 0 ? -errno : got;
}

int remote_memory_new(struct remote_memory **out)
{
	struct remote_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->readv = read_process;
	*out = m;
	return 0;
}

void remote_memory_free(struct remote_memory *m)
{
	free(m);
}

void remote_plan_release(struct remote_plan *plan)
{
	for (int kind = 0; kind < REMOTE_KINDS; kind++)
		free(plan->pieces[kind]);
	*plan = (struct remote_plan){ 0 };
}

static uint64_t end_of(const struct remote_piece *p)
{
	return p->at + p->size;
}

/* ---- copies ---- */

static uint32_t *slot_of(struct remote_memory *m, uint64_t at, uint8_t pass)
{
	uint64_t hash = (at ^ pass) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 divided by the golden ratio */
	size_t i = hash >> 52;

	for (;; i = (i + 1) % ARRAY_SIZE(m->slots)) { /* there are fewer copies than slots */
		const struct remote_copy *c = m->slots[i] ? &m->copies[m->slots[i] - 1] : NULL;

		if (!c || (c->at == at && c->pass == pass))
			return &m->slots[i];
	}
}

/* The next bytes of bytes[] are those of @what. */
static struct remote_copy *add_copy(struct remote_memory *m, const struct remote_copy *what)
{
	uint32_t *slot = slot_of(m, what->at, what->pass);
	struct remote_copy *c = &m->copies[m->copy_count];

	*c = *what;
	c->offset = m->filled;
	m->filled += c->size;
	if (!*slot || m->copies[*slot - 1].size < c->size)
		*slot = m->copy_count + 1;
	m->copy_count++;
	if (c->kind == REMOTE_FRAME && m->frames_are_near && m->window_count < ARRAY_SIZE(m->windows))
		m->windows[m->window_count++] = m->copy_count - 1;
	return c;
}

static bool covers(const struct remote_copy *c, uint32_t size, uint64_t at)
{
	uint64_t offset = at - c->at;

	return at >= c->at && offset <= c->size && size <= c->size - offset;
}

static struct remote_copy *find(struct remote_memory *m, uint32_t size, uint64_t at, uint8_t pass)
{
	uint32_t slot = *slot_of(m, at, pass);

	if (slot && covers(&m->copies[slot - 1], size, at))
		return &m->copies[slot - 1];
	for (uint32_t i = 0; i < m->window_count; i++) {
		struct remote_copy *c = &m->copies[m->windows[i]];

		if (c->pass == pass && covers(c, size, at))
			return c;
	}
	return NULL;
}

/* The pass that a piece of this kind is in. */
static uint8_t pass_of(const struct remote_memory *m, enum remote_kind kind)
{
	if (kind == REMOTE_HEAD)
		return m->pass & 0xfe;
	if (kind != REMOTE_FRAME)
		return 0;
	return m->pass;
}

/* The outer frames are only in the first and the last pass. */
static uint8_t outer_pass(const struct remote_memory *m, uint8_t pass)
{
	return pass & 1 ? (uint8_t)(2 * m->rounds - 1) : 0;
}

/* ---- reading ---- */

static void add_step(struct remote_memory *m, const struct remote_piece *p, enum remote_kind kind, unsigned pass)
{
	if (m->step_count == ARRAY_SIZE(m->steps) || p->size > REMOTE_BYTES_MAX / 2 - m->step_bytes)
		return; /* is read singly, should it be asked for */
	m->vectors[m->step_count] = (struct iovec){ (void *)(uintptr_t)p->at, p->size };
	m->steps[m->step_count++] =
		(struct remote_copy){ .at = p->at, .size = p->size, .kind = (uint8_t)kind, .pass = (uint8_t)pass };
	m->step_bytes += p->size;
}

static void add_kind(struct remote_memory *m, const struct remote_plan *plan, enum remote_kind kind, unsigned pass)
{
	for (uint32_t i = 0; i < plan->count[kind]; i++)
		add_step(m, &plan->pieces[kind][i], kind, pass);
}

static void add_round(struct remote_memory *m, const struct remote_plan *plan, unsigned round, unsigned rounds)
{
	const struct remote_piece *frames = plan->pieces[REMOTE_FRAME];
	uint32_t all = plan->count[REMOTE_FRAME], inner = MIN(all, (uint32_t)INNER_MAX);

	for (uint32_t i = round ? inner : all; i-- > 0;)
		add_step(m, &frames[i], REMOTE_FRAME, 2 * round);
	add_kind(m, plan, REMOTE_HEAD, 2 * round);
	for (uint32_t i = 0; i < (round == rounds - 1 ? all : inner); i++)
		add_step(m, &frames[i], REMOTE_FRAME, 2 * round + 1);
}

/* Reads the steps from @first on; what cannot be read, and what would have come behind it, has no copy then. */
static void read_steps(struct remote_memory *m, uint32_t first, uint32_t bytes)
{
	struct iovec to = { m->bytes + m->filled, bytes };
	ssize_t got = 0;

	if (m->step_count > first) {
		got = m->readv(m->self, m->pid, &to, m->vectors + first, m->step_count - first);
		m->calls++;
	}
	for (uint32_t i = first; i < m->step_count && got >= (ssize_t)m->steps[i].size; i++) {
		got -= (ssize_t)m->steps[i].size;
		add_copy(m, &m->steps[i]);
	}
}

void remote_memory_start(struct remote_memory *m, uint32_t pid, const struct remote_plan *plan, unsigned rounds)
{
	memset(m->slots, 0, sizeof(m->slots));
	m->pid = pid;
	m->rounds = (uint8_t)rounds;
	m->copy_count = m->filled = m->order = m->window_count = m->misses = m->step_count = m->step_bytes = 0;
	remote_memory_view(m, 0, false);
	add_kind(m, plan, REMOTE_EARLY, 0);
	for (unsigned round = 0; round < rounds; round++)
		add_round(m, plan, round, rounds);
	read_steps(m, 0, m->step_bytes);
}

void remote_memory_add(struct remote_memory *m, const struct remote_piece *pieces, uint32_t count)
{
	uint32_t first = m->step_count, before = m->step_bytes;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t bytes = m->filled + (uint64_t)(m->step_bytes - before) + pieces[i].size;

		/* Pieces that were missing have taken room, too. */
		if (m->copy_count + (m->step_count - first) < ARRAY_SIZE(m->copies) && bytes <= REMOTE_BYTES_MAX)
			add_step(m, &pieces[i], REMOTE_LATE, 0);
	}
	read_steps(m, first, m->step_bytes - before);
}

void remote_memory_view(struct remote_memory *m, unsigned round, bool after)
{
	m->pass = (uint8_t)(2 * round + after);
	m->trace = 0;
}

int remote_memory_now(struct remote_memory *m, void *dst, uint32_t size, uint64_t at)
{
	struct iovec to = { dst, size }, from = { (void *)(uintptr_t)at, size };
	ssize_t got = m->readv(m->self, m->pid, &to, &from, 1);

	m->calls++;
	if (got < 0)
		return (int)got;
	return (uint32_t)got == size ? 0 : -EFAULT;
}

static int read_missing(struct remote_memory *m, const struct remote_copy *what, struct remote_copy **out)
{
	int r;

	m->misses += what->kind != REMOTE_LATE;
	if (m->copy_count == ARRAY_SIZE(m->copies) || what->size > REMOTE_BYTES_MAX - m->filled)
		return -E2BIG;
	r = remote_memory_now(m, m->bytes + m->filled, what->size, what->at);
	if (r == 0)
		*out = add_copy(m, what);
	return r;
}

static int find_or_read(struct remote_memory *m, const struct remote_copy *what, struct remote_copy **out)
{
	struct remote_copy *c = find(m, what->size, what->at, what->pass);

	if (!c && what->kind == REMOTE_FRAME)
		c = find(m, what->size, what->at, outer_pass(m, what->pass));
	*out = c;
	return c ? 0 : read_missing(m, what, out);
}

static int copy_piece(struct remote_memory *m, const struct remote_copy *what, void *dst, uint32_t size)
{
	struct remote_copy *c;
	uint32_t from;
	int r = find_or_read(m, what, &c);

	if (r < 0)
		return r == -E2BIG ? remote_memory_now(m, dst, size, what->at) : r;
	from = (uint32_t)(what->at - c->at);
	memcpy(dst, m->bytes + c->offset + from, size);
	c->used_from = c->order ? MIN(c->used_from, from) : from;
	c->used = MAX(c->used, from + what->size);
	if (!c->order)
		c->order = ++m->order;
	return 0;
}

int remote_memory_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct remote_memory *m = self;

	return remote_memory_read_as(m, m->kind_of(size), dst, size, at);
}

int remote_memory_read_as(struct remote_memory *m, enum remote_kind kind, void *dst, uint32_t size, uint64_t at)
{
	struct remote_copy what = { .at = at, .size = size, .kind = (uint8_t)kind, .pass = pass_of(m, kind) };

	if (kind == REMOTE_FRAME)
		what.size = MAX(size, m->frame_bytes);
	if (!size || at + what.size < at)
		return -EFAULT;
	m->trace = (m->trace ^ at) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 divided by the golden ratio: mixes well */
	return copy_piece(m, &what, dst, size);
}

const uint8_t *remote_memory_copy(struct remote_memory *m, uint32_t size, uint64_t at, enum remote_kind kind,
				  uint8_t pass)
{
	const struct remote_copy *c = find(m, size, at, pass);

	if (!c && kind == REMOTE_FRAME)
		c = find(m, size, at, outer_pass(m, pass));
	return c ? m->bytes + c->offset + (at - c->at) : NULL;
}

/* ---- plans ---- */

static int compare_places(const void *a, const void *b)
{
	const struct remote_piece *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int compare_ranks(const void *a, const void *b)
{
	const struct remote_piece *x = a, *y = b;

	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int compare_order(const void *a, const void *b)
{
	const struct remote_copy *x = a, *y = b;

	return x->order < y->order ? -1 : x->order > y->order;
}

/* Return: how many windows they make. */
static uint32_t join(struct remote_piece *pieces, uint32_t count)
{
	uint32_t kept = 0;

	qsort(pieces, count, sizeof(*pieces), compare_places);
	for (uint32_t i = 0; i < count; i++) {
		struct remote_piece *last = kept ? &pieces[kept - 1] : NULL;
		uint64_t end = end_of(&pieces[i]);

		if (!last || pieces[i].at > end_of(last) + NEAR || MAX(end, end_of(last)) - last->at > WINDOW_MAX) {
			pieces[kept++] = pieces[i];
			continue;
		}
		last->size = (uint32_t)(MAX(end, end_of(last)) - last->at);
		last->rank = MIN(last->rank, pieces[i].rank);
		last->unused = MIN(last->unused, pieces[i].unused);
	}
	return kept;
}

/* Beyond the page that is read anyway there may be no memory. */
static void look_ahead(struct remote_piece *p)
{
	uint64_t end = end_of(p), page_end = (end - 1) / PAGE * PAGE + PAGE;

	p->size = (uint32_t)(MIN(end + AHEAD, page_end) - p->at);
}

static bool is_planned(const struct remote_piece *pieces, uint32_t count, const struct remote_piece *p)
{
	for (uint32_t i = 0; i < count; i++)
		if (pieces[i].at == p->at && pieces[i].size >= p->size)
			return true;
	return false;
}

/* What was asked for, in that order, into scratch. Return: how many. */
static uint32_t gather(struct remote_memory *m, enum remote_kind kind)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < m->copy_count && count < REMOTE_PIECES_MAX; i++) {
		const struct remote_copy *c = &m->copies[i];
		struct remote_piece piece = { .at = c->at + c->used_from, .size = c->used - c->used_from };

		if (!c->order || c->kind != kind || is_planned(m->scratch, count, &piece))
			continue;
		piece.rank = (uint16_t)(EXTRA_INNER + count);
		m->scratch[count++] = piece;
	}
	return count;
}

static int compare_unused(const void *a, const void *b)
{
	const struct remote_piece *x = a, *y = b;

	return x->unused < y->unused ? -1 : x->unused > y->unused;
}

/* Frames of earlier walks come back: those that were met last, among the innermost; the others may be outermost.
 * Return: how many pieces there are now. */
static uint32_t add_extras(struct remote_memory *m, struct remote_plan *plan, enum remote_kind kind, uint32_t used)
{
	uint32_t count = used, max = kind == REMOTE_FRAME ? EXTRA_MAX : REMOTE_PIECES_MAX;

	qsort(plan->pieces[kind], plan->count[kind], sizeof(*plan->pieces[kind]), compare_unused);
	for (uint32_t i = 0; i < plan->count[kind] && count < REMOTE_PIECES_MAX && count - used < max; i++) {
		struct remote_piece piece = plan->pieces[kind][i];

		if (++piece.unused > UNUSED_MAX || is_planned(m->scratch, used, &piece))
			continue;
		piece.rank = (uint16_t)(count - used < EXTRA_INNER ? count - used : 2 * REMOTE_PIECES_MAX + count);
		m->scratch[count++] = piece;
	}
	return count;
}

static int set_pieces(struct remote_memory *m, enum remote_kind kind, struct remote_plan *plan)
{
	bool near = kind == REMOTE_FRAME && m->frames_are_near;
	uint32_t count = gather(m, kind);
	struct remote_piece *grown;

	if (plan->count[kind] && (!near || plan->age++ % UNUSED_MAX))
		count = add_extras(m, plan, kind, count);
	if (near) {
		count = join(m->scratch, count);
		for (uint32_t i = 0; i < count; i++)
			look_ahead(&m->scratch[i]);
	}
	if (kind == REMOTE_FRAME)
		qsort(m->scratch, count, sizeof(*m->scratch), compare_ranks);
	if (count > plan->cap[kind]) {
		grown = realloc(plan->pieces[kind], align_up(count, 8) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		plan->pieces[kind] = grown;
		plan->cap[kind] = (uint16_t)align_up(count, 8);
	}
	if (count)
		memcpy(plan->pieces[kind], m->scratch, count * sizeof(*m->scratch));
	plan->count[kind] = (uint16_t)count;
	return 0;
}

int remote_memory_plan(struct remote_memory *m, struct remote_plan *plan)
{
	int r = 0;

	qsort(m->copies, m->copy_count, sizeof(*m->copies), compare_order);
	for (int kind = 0; kind < REMOTE_LATE && r == 0; kind++)
		r = set_pieces(m, (enum remote_kind)kind, plan);
	if (r < 0)
		remote_plan_release(plan);
	m->copy_count = m->window_count = 0; /* their places have moved */
	memset(m->slots, 0, sizeof(m->slots));
	return r;
}
