/* SPDX-License-Identifier: Apache-2.0 */
/* Folded text to a tree in one pass. What costs is memory latency: the path above is reused where a line begins like
 * the one before, and the hash of a path does not depend on what was found for its parents, so reading runs some lines
 * ahead of the tree and asks for the slots they will need. */
#include "base/array.h"
#include "render/render.h"
#include "render/tree_int.h"

#define TASKS 192u      /* read ahead: enough to hide a cache miss, few enough to stay in the cache */
#define LINES_STEP 1024 /* lines between two words about the progress */
#define ENDS 32u

struct step {
	uint32_t end; /* offset behind this frame in its line's stack */
	uint32_t frame;
	uint64_t hash; /* of the path down to here */
};

/* To be done in order: path[depth] becomes the child of path[depth - 1] with @frame. */
struct task {
	uint32_t depth, frame, tag;
};

/* After the first @tasks of them: @value for path[depth]. */
struct line_end {
	uint32_t tasks, depth;
	uint64_t value;
};

struct folded {
	struct tree_builder b;
	struct step *steps; /* of the line read last */
	size_t count, cap;
	struct str before; /* the stack whose steps these are */
	uint32_t *path;    /* by depth, the root's first: nodes of the line added last */
	size_t path_cap;
	struct task tasks[TASKS];
	struct line_end ends[ENDS];
	uint32_t task_count, end_count;
	uint32_t *recent; /* per frame, the root's first: the frame last seen below it, + 1 */
	size_t recent_cap;
};

static void folded_release(struct folded *f)
{
	tree_builder_release(&f->b);
	free(f->steps);
	free(f->path);
	free(f->recent);
}

/* The suffixes that name a kind; where several kinds have none, a plain name is native. */
static size_t classify_suffix(struct str key, struct tree_frame *frame, void *ctx)
{
	static const struct str suffixes[] = {
#define X(id, name, suffix) [MODEL_KIND_##id] = { suffix, sizeof(suffix) - 1 },
		MODEL_KINDS(X)
#undef X
	};

	(void)ctx;
	frame->kind = MODEL_KIND_NATIVE;
	if (!key.len || key.ptr[key.len - 1] != ']')
		return key.len;
	for (size_t kind = 0; kind < ARRAY_SIZE(suffixes); kind++) {
		if (!suffixes[kind].len || key.len == suffixes[kind].len || !str_ends(key, suffixes[kind]))
			continue;
		frame->kind = (uint8_t)kind;
		return key.len - suffixes[kind].len;
	}
	return key.len;
}

/* How many leading bytes are equal. */
static size_t common_prefix(struct str a, struct str b)
{
	size_t n = MIN(a.len, b.len), i = 0;

	for (; i + 8 <= n; i += 8) {
		uint64_t x, y;

		memcpy(&x, a.ptr + i, 8);
		memcpy(&y, b.ptr + i, 8);
		if (x != y)
			break;
	}
	while (i < n && a.ptr[i] == b.ptr[i])
		i++;
	return i;
}

/* Forget the steps that @stack does not share. Return: where its first new frame begins; beyond its length: none. */
static size_t reuse_steps(struct folded *f, struct str stack)
{
	size_t same = common_prefix(f->before, stack);

	while (f->count) {
		size_t end = f->steps[f->count - 1].end;

		if (end < same || (end == same && (end == stack.len || stack.ptr[end] == ';')))
			return end + 1;
		f->count--;
	}
	return 0;
}

static bool same_bytes(const char *a, const char *b, size_t n)
{
	uint64_t x, y;

	if (n < 8) {
		while (n && a[n - 1] == b[n - 1])
			n--;
		return !n;
	}
	for (size_t i = 0; i + 8 < n; i += 8) {
		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		if (x != y)
			return false;
	}
	memcpy(&x, a + n - 8, 8); /* overlaps */
	memcpy(&y, b + n - 8, 8);
	return x == y;
}

static int grow_recent(struct folded *f)
{
	size_t before = f->recent_cap;
	int r = array_grow(&f->recent, &f->recent_cap, before, TREE_FRAMES_MAX + 1);

	if (!r)
		memset(f->recent + before, 0, (f->recent_cap - before) * sizeof(*f->recent));
	return r;
}

/* The frame that @rest begins with and how long its name is. Most calls are the caller's last one again: comparing with
 * that name answers both, and neither a search for the separator nor a hash is needed. */
static int first_frame(struct folded *f, uint32_t *recent, struct str rest, uint32_t *frame, size_t *length)
{
	const char *semicolon;
	int r;

	if (*recent) {
		const struct tree_frame *last = &f->b.frames[*recent - 1];
		size_t n = last->text_len;

		if ((n == rest.len || (n < rest.len && rest.ptr[n] == ';')) &&
		    same_bytes(f->b.text + last->text_at, rest.ptr, n)) {
			*frame = *recent - 1;
			*length = n;
			return 0;
		}
	}
	semicolon = memchr(rest.ptr, ';', rest.len);
	*length = semicolon ? (size_t)(semicolon - rest.ptr) : rest.len;
	r = tree_builder_frame(&f->b, str_first(rest, *length), classify_suffix, NULL, frame);
	if (!r)
		*recent = *frame + 1;
	return r;
}

/* Add what was read ahead to the tree. */
static int add_tasks(struct folded *f)
{
	int r = tree_builder_room(&f->b, f->task_count);

	for (uint32_t i = 0; i < f->task_count; i++)
		__builtin_prefetch(&f->b.nodes[f->b.slots[f->tasks[i].tag & f->b.slot_mask].node]);
	for (uint32_t i = 0, end = 0; !r; i++) {
		const struct task *t = &f->tasks[i];

		for (; end < f->end_count && f->ends[end].tasks == i; end++)
			tree_builder_add(&f->b, f->path[f->ends[end].depth], f->ends[end].value);
		if (i == f->task_count)
			break;
		f->path[t->depth] = tree_builder_child(&f->b, f->path[t->depth - 1], t->frame, t->tag);
	}
	f->task_count = f->end_count = 0;
	return r;
}

static int room_for_step(struct folded *f, size_t caller)
{
	int r = 0;

	if (f->count >= f->cap)
		r = array_grow(&f->steps, &f->cap, f->count, TREE_DEPTH_MAX);
	if (!r && f->count + 1 >= f->path_cap)
		r = array_grow(&f->path, &f->path_cap, f->count + 1, TREE_DEPTH_MAX + 1);
	while (!r && caller >= f->recent_cap)
		r = grow_recent(f);
	if (!r && f->task_count == TASKS)
		r = add_tasks(f);
	return r;
}

static int add_steps(struct folded *f, struct str stack, size_t at)
{
	uint64_t hash = f->count ? f->steps[f->count - 1].hash : f->b.seed;

	while (at <= stack.len) {
		size_t caller = f->count ? f->steps[f->count - 1].frame + (size_t)1 : 0, length;
		struct step *step;
		uint32_t tag;
		int r = room_for_step(f, caller);

		if (r < 0)
			return r;
		step = &f->steps[f->count];
		r = first_frame(f, &f->recent[caller], str_skip(stack, at), &step->frame, &length);
		if (r < 0)
			return r;
		hash = tree_path_hash(hash, step->frame);
		tag = tree_path_tag(hash);
		step->hash = hash;
		step->end = (uint32_t)(at + length);
		__builtin_prefetch(&f->b.slots[tag & f->b.slot_mask]);
		f->tasks[f->task_count++] = (struct task){ (uint32_t)++f->count, step->frame, tag };
		at += length + 1;
	}
	return 0;
}

static int add_stack(struct folded *f, struct str stack, uint64_t value)
{
	int r = 0;

	if (f->end_count == ENDS)
		r = add_tasks(f);
	if (!r)
		r = add_steps(f, stack, reuse_steps(f, stack));
	if (r < 0)
		return r;
	f->ends[f->end_count++] = (struct line_end){ f->task_count, (uint32_t)f->count, value };
	f->before = stack;
	return 0;
}

/* "stack count": the count is what follows the last blank. */
static int split_line(struct str line, struct str *stack, uint64_t *value)
{
	size_t at = line.len;

	while (at && line.ptr[at - 1] >= '0' && line.ptr[at - 1] <= '9')
		at--;
	if (at < 2 || at == line.len || line.ptr[at - 1] != ' ' || at - 1 > UINT32_MAX)
		return -EBADMSG;
	*stack = str_first(line, at - 1);
	return str_to_u64(str_skip(line, at), 0, INT64_MAX, value) ? -EBADMSG : 0;
}

static int add_line(struct folded *f, struct str line, uint64_t number)
{
	struct str stack;
	uint64_t value;
	int r;

	if (line.len && line.ptr[line.len - 1] == '\r')
		line.len--;
	if (!line.len || (line.ptr[0] == '#' && (number == 1 || line.len == 1 || line.ptr[1] == ' ')))
		return 0;
	r = split_line(line, &stack, &value);
	if (r < 0)
		return r;
	return value ? add_stack(f, stack, value) : 0;
}

int tree_from_folded(struct str text, const struct render_progress *progress, struct tree *out, uint64_t *bad_line)
{
	scoped(folded_release) struct folded f = { 0 };
	uint64_t number = 0;
	int r = tree_builder_init(&f.b, text.len / 300);

	if (!r)
		r = array_grow(&f.path, &f.path_cap, 0, TREE_DEPTH_MAX + 1);
	if (!r)
		f.path[0] = 0;
	for (size_t at = 0; !r && at < text.len;) {
		const char *end = memchr(text.ptr + at, '\n', text.len - at);
		size_t len = end ? (size_t)(end - text.ptr) - at : text.len - at;

		r = add_line(&f, str_n(text.ptr + at, len), ++number);
		at += len + 1;
		if (progress && number % LINES_STEP == 0)
			progress->show(progress->ctx, at, text.len);
	}
	if (!r)
		r = add_tasks(&f);
	if (r == -EBADMSG)
		*bad_line = number;
	if (r < 0)
		return r;
	return tree_builder_finish(&f.b, out);
}
