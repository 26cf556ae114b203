/* SPDX-License-Identifier: Apache-2.0 */
/* Folded text to a tree in one pass. What costs is memory latency: the path above is reused where a line begins like
 * the one before, and the hash of a path does not depend on what was found for its parents, so that all slots of a line
 * are asked for before the first is needed. */
#include "base/array.h"
#include "render/tree_int.h"

struct step {
	uint32_t end;  /* offset behind this frame in its line's stack */
	uint32_t frame, node, tag;
	uint64_t hash; /* of the path down to here */
};

struct folded {
	struct tree_builder b;
	struct step *steps;
	size_t count, cap;
	struct str before; /* the stack whose steps these are */
};

static void folded_release(struct folded *f)
{
	tree_builder_release(&f->b);
	free(f->steps);
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
	for (uint8_t kind = 0; kind < ARRAY_SIZE(suffixes); kind++) {
		if (!suffixes[kind].len || key.len == suffixes[kind].len || !str_ends(key, suffixes[kind]))
			continue;
		frame->kind = kind;
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

static int add_steps(struct folded *f, struct str stack, size_t at)
{
	uint64_t hash = f->count ? f->steps[f->count - 1].hash : f->b.seed;

	while (at <= stack.len) {
		const char *semicolon = memchr(stack.ptr + at, ';', stack.len - at);
		size_t end = semicolon ? (size_t)(semicolon - stack.ptr) : stack.len;
		struct step *step;
		int r = array_grow(&f->steps, &f->cap, f->count, TREE_DEPTH_MAX);

		if (r < 0)
			return r;
		step = &f->steps[f->count];
		r = tree_builder_frame(&f->b, str_n(stack.ptr + at, end - at), classify_suffix, NULL, &step->frame);
		if (r < 0)
			return r;
		hash = tree_path_hash(hash, step->frame);
		step->hash = hash;
		step->tag = tree_path_tag(hash);
		step->end = (uint32_t)end;
		__builtin_prefetch(&f->b.slots[step->tag & f->b.slot_mask]);
		f->count++;
		at = end + 1;
	}
	return 0;
}

static int add_stack(struct folded *f, struct str stack, uint64_t value)
{
	size_t at = reuse_steps(f, stack), first = f->count;
	uint32_t node = first ? f->steps[first - 1].node : 0;
	int r = add_steps(f, stack, at);

	if (!r)
		r = tree_builder_room(&f->b, f->count - first);
	if (r < 0)
		return r;
	for (size_t i = first; i < f->count; i++)
		__builtin_prefetch(&f->b.nodes[f->b.slots[f->steps[i].tag & f->b.slot_mask].node]);
	for (size_t i = first; i < f->count; i++) {
		node = tree_builder_child(&f->b, node, f->steps[i].frame, f->steps[i].tag);
		f->steps[i].node = node;
	}
	f->before = stack;
	return tree_builder_add(&f->b, node, value);
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
	if (!line.len || (number == 1 && line.ptr[0] == '#'))
		return 0;
	r = split_line(line, &stack, &value);
	if (r < 0)
		return r;
	return value ? add_stack(f, stack, value) : 0;
}

int tree_from_folded(struct str text, struct tree *out, uint64_t *bad_line)
{
	scoped(folded_release) struct folded f = { 0 };
	uint64_t number = 0;
	int r = tree_builder_init(&f.b, text.len / 256);

	for (size_t at = 0; !r && at < text.len;) {
		const char *end = memchr(text.ptr + at, '\n', text.len - at);
		size_t len = end ? (size_t)(end - text.ptr) - at : text.len - at;

		r = add_line(&f, str_n(text.ptr + at, len), ++number);
		at += len + 1;
	}
	if (r == -EBADMSG || r == -EOVERFLOW) {
		*bad_line = number;
		return -EBADMSG;
	}
	if (r < 0)
		return r;
	return tree_builder_finish(&f.b, out);
}
