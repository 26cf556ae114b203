/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The walk of the current tick or switch: one element per CPU and trigger, since the one can interrupt the other; and
 * the macro that makes a BPF program part out of a step of walk/. */
#pragma once

#include "kernel.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "abi/abi.h"
#include "abi/unwind.h"
#include "walk/walk.h"

enum unwind_trigger { UNWIND_TICK, UNWIND_SWITCH, UNWIND_TRIGGERS };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, UNWIND_TRIGGERS); /* the host takes away what is not asked for */
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

static __always_inline struct walk *unwind_state_of(__u32 trigger)
{
	return bpf_map_lookup_elem(&walks, &trigger);
}

static __always_inline struct walk *unwind_state(void)
{
	return unwind_state_of(UNWIND_TICK);
}

/* Makes sure that the __u64 @x, checked before to be @max at most, is so for the verifier too: a compiler can check one
 * copy of a value and use another, and old verifiers (5.10) do not see that they are the same. */
#define unwind_bound(x, max) asm volatile("if %0 <= %1 goto +1\n\t%0 = 0" : "+r"(x) : "i"(max))

/* ---- what the native walker looks up; filled by src/sampler/bpf_tables.c, described in abi/unwind.h ---- */

#define MAPPINGS_MAX (1u << 20) /* prefixes; they cost memory only when they are there */
#define SPACES_MAX 8192

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, ABI_TABLES_MAX);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
			__uint(max_entries, 1);          /* INNER_MAP: each as long as it likes */
			__uint(key_size, sizeof(__u32)); /* a __type in here reaches BTF as a forward declaration */
			__uint(value_size, sizeof(union abi_element));
		});
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAPPINGS_MAX);
	__type(key, struct abi_map_key);
	__type(value, struct abi_map);
} mappings SEC(".maps");

struct { /* preallocated, unless the host finds that a kernel allows otherwise here: 6.1 */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SPACES_MAX);
	__type(key, __u32); /* pid */
	__type(value, struct abi_space);
} spaces SEC(".maps");

#include "recent.h"

/* Return: 0 with the mapping that covers @pc in w->map, or 1. */
static __always_inline int walk_find_map(struct walk *w, __u64 pc)
{
	struct abi_map_key key = {
		.prefix = 32 + 64,
		.space = bpf_htonl(w->space),
		.address = bpf_cpu_to_be64(pc),
	};
	struct abi_map *found;

	if (!w->space)
		return 1;
	if (recent_find_map(w, pc))
		return 0;
	found = bpf_map_lookup_elem(&mappings, &key);
	if (!found)
		return 1;
	w->map = *found;
	return 0;
}

/* Return: the table, to be used at once and kept nowhere; NULL when its rows were never there. Rows that were taken
 * away leave a table without elements behind. */
static __always_inline const void *walk_table(struct walk *w, __u32 number)
{
	return bpf_map_lookup_elem(&tables, &number);
}

static __always_inline const union abi_element *walk_element(struct walk *w, const void *table, __u32 index)
{
	return bpf_map_lookup_elem((void *)table, &index);
}

/* ---- steps and loops ---- */

/* UNWIND_STEP(native, walk_native_step) makes `int unwind_native(void)`: a global function, which the
 * verifier checks once by itself instead of once per turn of the loop. It has no arguments because old kernels cannot
 * type them. `unwind_native_turns` does the same for a run of steps: the verifier follows every turn of a loop, so two
 * loops of 32 turns cost it 64 calls where one of 1,024 would cost 1,024 (measured on 6.18: 4,900 instructions, not
 * 40,900). */
#define UNWIND_TURNS 32

#define UNWIND_STEP_OF(trigger, name, step)                       \
	__attribute__((noinline)) int unwind_##name(void)         \
	{                                                         \
		struct walk *w = unwind_state_of(trigger);        \
                                                                  \
		return w ? (int)step(w) : (int)WALK_DONE;         \
	}                                                         \
                                                                  \
	__attribute__((noinline)) int unwind_##name##_turns(void) \
	{                                                         \
		for (int turn = 0; turn < UNWIND_TURNS; turn++)   \
			if (unwind_##name() != WALK_MORE)         \
				return WALK_DONE;                 \
		return WALK_MORE;                                 \
	}

#define UNWIND_STEP(name, step) UNWIND_STEP_OF(UNWIND_TICK, name, step)

/* The native walk, and whose turn it is where a frame is a runtime's: bpf/runtimes.h has unwind_runtime(). */
#define UNWIND_NATIVE_OF(trigger, name)                               \
	__attribute__((noinline)) int unwind_##name(void)             \
	{                                                             \
		struct walk *w = unwind_state_of(trigger);            \
                                                                      \
		return w ? (int)walk_native_step(w) : (int)WALK_DONE; \
	}                                                             \
                                                                      \
	__attribute__((noinline)) int unwind_##name##_turns(void)     \
	{                                                             \
		for (int turn = 0; turn < UNWIND_TURNS; turn++) {     \
			int next = unwind_##name();                   \
                                                                      \
			if (next == WALK_SWITCH)                      \
				next = unwind_runtime(trigger);       \
			if (next != WALK_MORE)                        \
				return WALK_DONE;                     \
		}                                                     \
		return WALK_MORE;                                     \
	}

/* Runs a step until it is done, UNWIND_TURNS squared times at most; the bound is what the verifier wants to see. */
#define UNWIND_LOOP(name)                                         \
	do {                                                      \
		for (int turn = 0; turn < UNWIND_TURNS; turn++)   \
			if (unwind_##name##_turns() != WALK_MORE) \
				break;                            \
	} while (0)

_Static_assert(UNWIND_TURNS *UNWIND_TURNS >= ABI_FRAMES_MAX, "a full record needs a turn per frame");
