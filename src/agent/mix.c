/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/mix.h"

#define FAR_AWAY UINT32_MAX            /* abi_frame.extra, saturated: the distance is not known */
#define LOOP_FRAME_MAX UINT64_C(65536) /* bytes of native stack, where the caller's place is not known */

/* The runtime frames that one activation of the loop ran: runtime[first .. end). */
struct activation {
	size_t first, end, next; /* next: where the one behind it begins */
	uint64_t address;        /* on its part of the native stack */
	bool has_address, is_ended;
};

/* How activations find their loops. */
struct plan {
	bool by_address;
	long skip; /* otherwise: number k from the leaf belongs to loop number k + skip, if there is one */
};

struct counts {
	size_t loops, activations, frames;
	bool is_ended; /* the last activation has an end */
	bool all_have_addresses;
};

struct mixer {
	const struct mix_input *in;
	struct mix_output *out;
	size_t native; /* the next one */
	size_t loop;   /* the number, from the leaf, of the next loop at or behind it */
	bool fold;
};

static bool next_activation(const struct mix_input *in, size_t at, struct activation *out)
{
	*out = (struct activation){ .first = at, .end = at };
	for (; at < in->runtime_count; at++) {
		const struct abi_frame *f = &in->runtime[at];

		if (f->kind == ABI_FRAME_ACTIVATION) {
			out->address = f->a;
			out->has_address = out->is_ended = true;
			out->next = at + 1;
			return true;
		}
		out->end = at + 1;
		if (f->flags & ABI_FRAME_ENTRY) {
			out->is_ended = true;
			out->next = at + 1;
			if (out->next < in->runtime_count && f[1].kind == ABI_FRAME_ACTIVATION) { /* it is the same */
				out->address = f[1].a;
				out->has_address = true;
				out->next++;
			}
			return true;
		}
	}
	out->next = at;
	return out->end > out->first;
}

static bool is_loop(const struct mix_input *in, size_t native)
{
	return in->roles[native] == MIX_LOOP;
}

static size_t next_loop(const struct mix_input *in, size_t native)
{
	while (native < in->native_count && !is_loop(in, native))
		native++;
	return native;
}

static struct counts count(const struct mix_input *in)
{
	struct counts c = { .is_ended = true, .all_have_addresses = true };
	struct activation a;

	for (size_t i = 0; i < in->native_count; i++)
		c.loops += is_loop(in, i);
	for (size_t at = 0; next_activation(in, at, &a); at = a.next) {
		c.activations++;
		c.frames += a.end - a.first;
		c.is_ended = a.is_ended;
		c.all_have_addresses &= a.has_address || !a.is_ended;
	}
	return c;
}

/* How far frame @f is from the stack's top, in words. */
static uint32_t distance_of(const struct abi_frame *f)
{
	return f->kind == ABI_FRAME_RUNTIME ? FAR_AWAY : f->extra;
}

/* The stack of frame @native goes from its stack pointer up to its caller's. */
static bool covers(const struct mix_input *in, size_t native, uint64_t address)
{
	uint32_t own = distance_of(&in->native[native]), next = FAR_AWAY;
	uint64_t low = in->stack_pointer + UINT64_C(8) * own, high = low + LOOP_FRAME_MAX;
	size_t caller = native + 1;

	if (own == FAR_AWAY || !in->stack_pointer)
		return false;
	while (caller < in->native_count && in->native[caller].kind == ABI_FRAME_RUNTIME)
		caller++; /* their place is not known */
	if (caller < in->native_count)
		next = distance_of(&in->native[caller]);
	if (next != FAR_AWAY && next >= own) {
		uint64_t end = in->stack_pointer + UINT64_C(8) * next;

		high = caller == native + 1 ? end : MIN(high, end);
	}
	return address >= low && address < high;
}

/* The loop at or behind @native that @a belongs to. One without an end is the one behind all others. */
static size_t loop_of(const struct mix_input *in, size_t native, const struct activation *a)
{
	for (native = next_loop(in, native); native < in->native_count; native = next_loop(in, native + 1))
		if (!a->is_ended || covers(in, native, a->address))
			break;
	return native;
}

/* Does every activation with an address lie in a loop, in order? @lost: loops between them and behind them that have
 * none; @surplus: those before them. */
static bool match_addresses(const struct mix_input *in, const struct counts *c, size_t *surplus, size_t *lost)
{
	size_t native = 0, matched = 0, before = 0;
	struct activation a;

	if (!c->all_have_addresses || !c->activations || (c->activations == 1 && !c->is_ended))
		return false;
	for (size_t at = 0; next_activation(in, at, &a); at = a.next) {
		size_t found = loop_of(in, native, &a);

		if (found == in->native_count && a.is_ended)
			return false;
		for (; !matched && native < found; native++)
			before += is_loop(in, native);
		matched += found < in->native_count;
		native = found + (found < in->native_count);
	}
	*surplus = before;
	*lost = c->loops - before - matched;
	return true;
}

/* Where the innermost activation is, when only that has an address (3.11): the others follow it one by one. Return: the
 * number, from the leaf, of its loop, or -1. */
static long innermost_loop(const struct mix_input *in)
{
	struct activation a;
	size_t found;
	long number = 0;

	if (!next_activation(in, 0, &a) || !a.has_address)
		return -1;
	found = loop_of(in, 0, &a);
	for (size_t native = 0; native < found; native++)
		number += is_loop(in, native);
	return found < in->native_count ? number : -1;
}

/* The list of runtime frames reaches the thread's first one. */
static bool is_rooted(uint8_t end)
{
	return end == ABI_RUNTIME_END_WHOLE || end == ABI_RUNTIME_END_GAP;
}

static bool is_cut(uint8_t end)
{
	return end != ABI_RUNTIME_END_NONE && end != ABI_RUNTIME_END_WHOLE && end != ABI_RUNTIME_END_NO_STATE;
}

/* Loops, and nothing that they ran. */
static uint8_t end_without_frames(const struct mix_input *in, size_t loops)
{
	switch (in->runtime_end) {
	case ABI_RUNTIME_END_NONE:
		return ABI_RUNTIME_END_NOT_READY;
	case ABI_RUNTIME_END_NO_STATE: /* it has one: it is in the loop */
		return ABI_RUNTIME_END_GAP;
	case ABI_RUNTIME_END_WHOLE: /* the thread's very first one has just begun, or is about to end */
		return loops == 1 ? ABI_RUNTIME_END_WHOLE : ABI_RUNTIME_END_UNPAIRED;
	default:
		return in->runtime_end;
	}
}

static uint8_t clamp_u8(size_t n)
{
	return (uint8_t)MIN(n, (size_t)UINT8_MAX);
}

static struct plan make_plan(const struct mix_input *in, const struct counts *c, struct mix_output *out)
{
	struct plan plan = { 0 };
	size_t surplus, lost;

	if (match_addresses(in, c, &surplus, &lost)) {
		plan.by_address = true;
		out->surplus = clamp_u8(surplus + lost);
		if (!is_cut(out->end) && (lost || surplus > 1))
			out->end = ABI_RUNTIME_END_GAP;
		return plan;
	}
	plan.skip = c->all_have_addresses ? -1 : innermost_loop(in);
	if (plan.skip >= 0) {
		size_t wanted = (size_t)plan.skip + c->activations;

		out->surplus = clamp_u8(c->loops - MIN(c->loops, c->activations));
		out->shortage = clamp_u8(wanted - MIN(wanted, c->loops));
		if (!is_cut(out->end) && (plan.skip > 1 || wanted < c->loops))
			out->end = ABI_RUNTIME_END_GAP;
		if (!is_cut(out->end) && wanted > c->loops && in->native_is_whole)
			out->end = ABI_RUNTIME_END_UNPAIRED;
		return plan;
	}
	plan.skip = 0;
	out->surplus = clamp_u8(c->loops - MIN(c->loops, c->activations));
	out->shortage = clamp_u8(c->activations - MIN(c->loops, c->activations));
	if (in->native_is_whole && is_rooted(in->runtime_end)) {
		plan.skip = (long)c->loops - (long)c->activations;
		if (!is_cut(out->end) && (plan.skip < (in->begins_early ? -1 : 0) || plan.skip > 1))
			out->end = ABI_RUNTIME_END_UNPAIRED;
	} else if (!is_cut(out->end)) {
		out->end = ABI_RUNTIME_END_UNPAIRED;
	}
	return plan;
}

/* ---- putting out ---- */

static void push(struct mixer *m, uint32_t frame)
{
	must(m->out->count < MIX_MAX);
	m->out->frames[m->out->count++] = frame;
}

static bool is_shown(const struct mixer *m, uint8_t role)
{
	switch (role) {
	case MIX_IN_LINE:
		return true;
	case MIX_STUB:
		return m->in->keep_interpreter;
	case MIX_NATIVE:
		return !m->in->only_runtime;
	default:
		return !m->in->only_runtime && !m->fold;
	}
}

static void push_native(struct mixer *m, size_t end)
{
	for (; m->native < end; m->native++) {
		m->loop += is_loop(m->in, m->native);
		if (is_shown(m, m->in->roles[m->native]))
			push(m, (uint32_t)m->native);
	}
}

static void push_runtime(struct mixer *m, const struct activation *a)
{
	for (size_t i = a->first; i < a->end; i++)
		push(m, (uint32_t)i | MIX_RUNTIME);
}

/* Where activation @a, number @number from the leaf, is put: before the loop that ran it. An innermost one without a
 * loop is put before the first loop, an outermost one behind all. */
static size_t place_of(const struct mixer *m, const struct plan *plan, const struct activation *a, size_t number)
{
	long loop = (long)number + plan->skip;
	size_t at = next_loop(m->in, m->native);

	if (plan->by_address)
		return loop_of(m->in, m->native, a);
	for (size_t i = m->loop; (long)i < loop && at < m->in->native_count; i++)
		at = next_loop(m->in, at + 1);
	return at;
}

static bool has_loop(const struct plan *plan, size_t number)
{
	return plan->by_address || (long)number + plan->skip >= 0;
}

/* Those that ran on this native stack. */
static size_t frames_here(const struct mix_input *in)
{
	for (size_t i = 0; i < in->runtime_count; i++)
		if (in->runtime[i].flags & ABI_FRAME_OTHER_STACK)
			return i;
	return in->runtime_count;
}

static void mix_here(const struct mix_input *in, struct mix_output *out)
{
	const struct counts c = count(in);
	struct mixer m = { .in = in, .out = out, .fold = c.frames && !in->keep_interpreter };
	struct plan plan = { 0 };
	struct activation a;
	size_t number = 0;

	out->count = 0;
	out->end = in->runtime_end;
	out->surplus = out->shortage = 0;
	if (c.activations) {
		plan = make_plan(in, &c, out);
	} else if (c.loops) {
		out->surplus = clamp_u8(c.loops);
		out->end = end_without_frames(in, c.loops);
	}
	for (size_t at = 0; next_activation(in, at, &a); at = a.next, number++) {
		size_t place = place_of(&m, &plan, &a, number);

		push_native(&m, place);
		push_runtime(&m, &a);
		if (has_loop(&plan, number)) /* the next activation's loop lies behind this one */
			push_native(&m, MIN(place + 1, in->native_count));
	}
	push_native(&m, in->native_count);
	if (in->only_runtime)
		out->end = in->runtime_end; /* there was nothing to put them between */
}

void mix_frames(const struct mix_input *in, struct mix_output *out)
{
	struct mix_input here = *in;

	must(in->native_count + in->runtime_count <= MIX_MAX);
	here.runtime_count = frames_here(in);
	mix_here(&here, out);
	for (size_t i = here.runtime_count; i < in->runtime_count; i++) /* callers of all of them */
		if (in->runtime[i].kind == ABI_FRAME_RUNTIME)
			out->frames[out->count++] = (uint32_t)i | MIX_RUNTIME;
}
