// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/python/chain.h"

/* Where a frame up to 3.10 says whether it runs; a generator that is not running has no caller. 0: nowhere. Sources:
 * CPython 3.5 to 3.9, Include/frameobject.h (f_executing); 3.10, Include/cpython/frameobject.h (f_state). */
static uint32_t running_at(const struct abi_python_layout *l)
{
	if (l->version_major != 3 || l->version_minor > 10)
		return 0;
	return l->version_minor == 10 ? 108 : l->version_minor > 6 ? 116 : 132;
}

/* Where a frame from 3.11 to 3.13 keeps how much of its stack is in use: -1 while the loop runs it. Not said by frames
 * that have called another function inside of the same activation, nor by those that have ended. 0: nowhere. Source:
 * CPython 3.11 to 3.13, Include/internal/pycore_frame.h (stacktop), Python/ceval.c and bytecodes.c
 * (_PyFrame_SetStackPointer). */
static uint32_t stack_top_at(const struct abi_python_layout *l)
{
	return l->version_major == 3 && l->version_minor >= 11 && l->version_minor <= 13 ? 64 : 0;
}

uint32_t remote_frame_bytes(const struct abi_python_layout *l)
{
	return MAX((uint32_t)l->frame_size, running_at(l) ? (uint32_t)align_up(running_at(l) + 1, 8) : 0U);
}

static uint64_t load_u64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static uint32_t load_u32(const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

/* @inner: the frame that it has called, or NULL. */
static bool is_alive(const struct abi_python_layout *l, const uint8_t *frame, const struct remote_link *inner)
{
	uint32_t offset = running_at(l);
	bool is_other;
	int32_t top;

	if (l->entry == ABI_PYTHON_ENTRY_EACH && !load_u64(frame))
		return false; /* no references: it waits for the next call of its function. Objects/frameobject.c */
	if (offset && l->version_minor == 10)
		return frame[offset] == 0 || frame[offset] == 2; /* executing, unwinding */
	if (offset)
		return frame[offset] == 1;
	offset = stack_top_at(l);
	if (!offset)
		return true;
	top = (int32_t)load_u32(frame + offset);
	if (!inner)
		return top == -1;
	is_other = l->entry == ABI_PYTHON_ENTRY_MARK ? inner->entry == 1 : inner->entry == l->entry_value;
	return is_other || top >= 0; /* of another activation: it has called native code */
}

/* Return: whether there is a copy of the frame at @at. */
static bool load_link(struct remote_memory *m, const struct abi_python_layout *l, unsigned pass, uint64_t at,
		      const struct remote_link *inner, struct remote_link *out)
{
	const uint8_t *frame = remote_memory_copy(m, remote_frame_bytes(l), at, REMOTE_FRAME, (uint8_t)pass);

	if (!frame || (at & 7))
		return false;
	*out = (struct remote_link){
		.at = at,
		.back = load_u64(frame + l->frame_back),
		.code = load_u64(frame + l->frame_code),
		.last = l->code_bytes == ABI_PYTHON_NONE ? load_u32(frame + l->frame_last)
							 : load_u64(frame + l->frame_last),
		.entry = l->frame_entry == ABI_PYTHON_NONE ? 0 : frame[l->frame_entry],
	};
	/* Shims run nothing. */
	out->alive = (l->entry == ABI_PYTHON_ENTRY_SHIM && out->entry == l->entry_value) || is_alive(l, frame, inner);
	return true;
}

/* From the frame at @at to the root. Return: whether all of it was there. */
static bool follow(struct remote_memory *m, const struct abi_python_layout *l, unsigned pass, uint64_t at,
		   struct remote_chain *out)
{
	const struct remote_link *inner = NULL;

	for (out->count = 0; at; out->count++) {
		if (out->count == REMOTE_CHAIN_MAX || !load_link(m, l, pass, at, inner, &out->links[out->count]))
			return false;
		inner = &out->links[out->count];
		at = inner->back;
	}
	return true;
}

/* The innermost frame when the heads of this round were read. Return: 0: there is none; -ENOENT: could not be read. */
static int find_leaf(struct remote_memory *m, const struct abi_python_layout *l, uint64_t thread, unsigned round,
		     uint64_t *out)
{
	uint8_t pass = (uint8_t)(2 * round);
	const uint8_t *block = remote_memory_copy(m, ABI_PYTHON_THREAD_BYTES, thread, REMOTE_HEAD, pass);

	if (!thread || !block || l->thread_frame > ABI_PYTHON_THREAD_BYTES - sizeof(*out))
		return -ENOENT;
	*out = load_u64(block + l->thread_frame);
	if (l->cframe_frame == ABI_PYTHON_NONE || !*out)
		return 0;
	block = remote_memory_copy(m, 24, *out, REMOTE_HEAD, pass);
	if (!block || l->cframe_frame > 16)
		return -ENOENT;
	*out = load_u64(block + l->cframe_frame);
	return 0;
}

static bool same_frame(const struct remote_link *a, const struct remote_link *b)
{
	return a->at == b->at && a->back == b->back && a->code == b->code && a->entry == b->entry;
}

static bool same_link(const struct remote_link *a, const struct remote_link *b)
{
	return same_frame(a, b) && a->last == b->last && a->alive == b->alive;
}

static bool all_alive(const struct remote_chain *c)
{
	for (uint32_t i = 0; i < c->count; i++)
		if (!c->links[i].alive)
			return false;
	return true;
}

bool remote_chain_equal(const struct remote_chain *a, const struct remote_chain *b)
{
	for (uint32_t i = 0; i < a->count && a->count == b->count; i++)
		if (!same_link(&a->links[i], &b->links[i]))
			return false;
	return a->count == b->count;
}

/* Of the callers in @chain, which is from one pass, from the root inwards: how many are what the other pass says? */
static uint32_t count_sure(struct remote_memory *m, const struct abi_python_layout *l, const struct remote_chain *chain,
			   unsigned other)
{
	uint32_t sure = 0;
	struct remote_link link;

	for (uint32_t i = chain->count; i-- > 0; sure++)
		if (!load_link(m, l, other, chain->links[i].at, i ? &chain->links[i - 1] : NULL, &link) ||
		    !same_link(&link, &chain->links[i]) || (!link.alive && i))
			break;
	return sure;
}

static void judge_pass(struct remote_memory *m, const struct abi_python_layout *l, unsigned round, bool after,
		       const struct remote_chain *chain, struct remote_finding *out)
{
	uint32_t sure = count_sure(m, l, chain, 2 * round + !after);
	enum remote_verdict verdict = REMOTE_DISAGREE;

	if (sure == chain->count)
		verdict = REMOTE_AGREE;
	else if (sure == chain->count - 1 && chain->links[0].alive)
		verdict = REMOTE_MOVED;
	if (out->chain && (verdict > out->verdict || (verdict == out->verdict && sure <= out->sure)))
		return;
	*out = (struct remote_finding){ .verdict = verdict, .after = after, .sure = sure, .chain = chain };
	out->is_odd = verdict == REMOTE_AGREE && !all_alive(chain);
}

void remote_chain_judge(struct remote_memory *m, const struct abi_python_layout *l, uint64_t thread, unsigned round,
			struct remote_chains *chains, struct remote_finding *out)
{
	uint64_t leaf;

	*out = (struct remote_finding){ .verdict = REMOTE_MISSED };
	if (find_leaf(m, l, thread, round, &leaf) < 0 || !leaf)
		return;
	if (follow(m, l, 2 * round + 1, leaf, &chains->after))
		judge_pass(m, l, round, true, &chains->after, out);
	if (out->chain && out->verdict <= REMOTE_MOVED)
		return;
	if (follow(m, l, 2 * round, leaf, &chains->before))
		judge_pass(m, l, round, false, &chains->before, out);
}
