/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the last walks of a process on this CPU looked up. Two ticks of one program have most of their frames in common,
 * but at 99 Hz nothing of the tables is in the CPU's caches any more: here a frame costs a few bytes of 2 KiB that lie
 * together, in place of a mapping's trie, a page directory and a search.
 *
 * A row depends on the process's mappings and on the address alone. The host raises the epoch of a space when its
 * mappings change and all epochs when tables do; then nothing is left of what was known of it. */
#pragma once

#define RECENT_MAPS 8
#define RECENT_ROWS 128

struct recent_row {
	__u64 key;          /* address ^ struct recent.tag */
	struct abi_row row; /* low: index of its mapping in struct recent.maps */
};

struct recent {
	__u32 space, epoch;
	__u64 tag; /* never the same for two owners: what one has left is nothing to the next one */
	__u64 map_count;
	struct abi_map maps[RECENT_MAPS];
	struct recent_row rows[RECENT_ROWS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ABI_RECENT_SLOTS); /* 1 where no rows are used */
	__type(key, __u32);
	__type(value, struct recent);
} recents SEC(".maps");

__u32 recent_epochs[ABI_RECENT_SLOTS]; /* of the spaces whose number ends so */

static __always_inline struct recent *recent_of(const struct walk *w)
{
	__u32 slot = w->space & (ABI_RECENT_SLOTS - 1);

	return bpf_map_lookup_elem(&recents, &slot);
}

/* Before a walk with w->space. Only the tick's walks may call it: it must not be interrupted by another user. */
static __always_inline void recent_begin(struct walk *w)
{
	struct recent *r = recent_of(w);
	__u32 epoch;

	w->recent = 0;
	if (!w->space || !r)
		return;
	/* Before anything is looked up: what is found later on cannot be older than this. */
	epoch = *(volatile __u32 *)&recent_epochs[w->space & (ABI_RECENT_SLOTS - 1)];
	if (r->space != w->space || r->epoch != epoch || !r->tag) {
		r->space = w->space;
		r->epoch = epoch;
		r->tag = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1;
		r->map_count = 0;
	}
	w->recent = r->tag;
}

static __always_inline struct recent_row *recent_row(struct recent *r, __u64 at)
{
	__u32 i = (__u32)at * 0x9e3779b1U >> 25;

	walk_opaque(i);
	return &r->rows[i & (RECENT_ROWS - 1)];
}

static __always_inline struct abi_map *recent_map(struct recent *r, __u64 i)
{
	walk_opaque(i);
	return &r->maps[i & (RECENT_MAPS - 1)];
}

/* Return: 1 with the row in force at @at in *out and its mapping in w->map, or 0. */
static __always_inline int walk_recall(struct walk *w, __u64 at, struct abi_row *out)
{
	struct recent_row *known;
	struct recent *r;

	if (!w->recent)
		return 0;
	r = recent_of(w);
	if (!r)
		return 0;
	known = recent_row(r, at);
	if (known->key != (at ^ w->recent))
		return 0;
	*out = known->row;
	if (at - w->map.start >= w->map.end - w->map.start)
		w->map = *recent_map(r, known->row.low);
	return 1;
}

/* Return: 1 with the mapping that covers @at in w->map, or 0. */
static __always_inline int recent_find_map(struct walk *w, __u64 at)
{
	struct recent *r;

	if (!w->recent)
		return 0;
	r = recent_of(w);
	if (!r)
		return 0;
	for (__u32 i = 0; i < RECENT_MAPS; i++) {
		if (i >= r->map_count)
			break;
		if (at - r->maps[i].start < r->maps[i].end - r->maps[i].start) {
			w->map = r->maps[i];
			return 1;
		}
	}
	return 0;
}

/* The row at @at in w->map, a mapping of a file, is @row. */
static __always_inline void walk_remember(struct walk *w, __u64 at, const struct abi_row *row)
{
	struct recent_row *known;
	struct recent *r;
	__u32 i;

	if (!w->recent)
		return;
	r = recent_of(w);
	if (!r)
		return;
	for (i = 0; i < RECENT_MAPS; i++)
		if (i >= r->map_count || r->maps[i].start == w->map.start)
			break;
	if (i == RECENT_MAPS) /* no room: its frames are looked up each time */
		return;
	if (i >= r->map_count) {
		*recent_map(r, i) = w->map;
		r->map_count = i + 1;
	}
	known = recent_row(r, at);
	known->key = at ^ w->recent;
	known->row = *row;
	known->row.low = (__u16)i;
}
