/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Names of a runtime's functions at first sight: which of them the host was sent, and the head of the record that sends
 * one (struct abi_name). A runtime's shell mixes what identifies a function to a key, asks names_look(), and sends what
 * is not there.
 *
 * The includer has count_add(), ring_flags() and the map `ring`. */
#pragma once

#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "abi/abi.h"

#define NAMES_SENT 2048 /* of each CPU; a power of two */
#define NAMES_BESIDE 4  /* places that a name may be in */
#define NAME_FLAG 1ULL  /* lowest bit of a key: the runtime's own */

struct names {
	__u64 keys[NAMES_SENT];
};

struct { /* which names the host was sent; by a hash, the latest first among NAMES_BESIDE */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct names);
} names_sent SEC(".maps");

__u32 names_epoch; /* the host raises it: names are sent again */

static __always_inline struct names *names_of_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&names_sent, &zero);
}

/* A part of each key: what was sent for another program, or before the host asked anew, does not count. */
static __always_inline __u64 names_process(__u32 pid, __u32 exec_id)
{
	return ((__u64)pid << 32 | exec_id) + ((__u64)names_epoch << 48);
}

struct name_set {
	__u64 *keys; /* NAMES_BESIDE */
	__u64 key;   /* without NAME_FLAG */
};

/* @key: without NAME_FLAG. Return: what is there of it, or 0. */
static __always_inline __u64 names_look(struct names *names, __u64 key, struct name_set *out)
{
	__u64 *keys = &names->keys[key >> 1 & (NAMES_SENT - NAMES_BESIDE)];

	out->keys = keys;
	out->key = key;
	for (int i = 0; i < NAMES_BESIDE; i++)
		if ((keys[i] & ~NAME_FLAG) == key)
			return keys[i];
	return 0;
}

/* A tick may come in between: then a name is sent again. */
static __always_inline void names_remember(struct name_set *set, __u64 flags)
{
	set->keys[3] = set->keys[2];
	set->keys[2] = set->keys[1];
	set->keys[1] = set->keys[0];
	set->keys[0] = set->key | flags;
}

/* All but the bytes, whose size @head has already. */
static __always_inline void name_head(struct abi_name *head, const struct abi_sample *sample, __u64 key, __u64 cookie,
				      enum abi_runtime runtime)
{
	head->header.type = ABI_RECORD_NAME;
	head->header.version = ABI_VERSION;
	head->header.size = sizeof(*head) + head->bytes_size;
	head->header.time_ns = sample->header.time_ns;
	head->process_start_ns = sample->process_start_ns;
	head->key = key;
	head->cookie = cookie;
	head->pid = sample->pid;
	head->exec_id = sample->exec_id;
	head->runtime = runtime;
}

/* @size: within @record for the verifier, too. Return: 1 when it was sent; what was not is counted. */
static __always_inline int name_send(void *record, __u64 size)
{
	if (bpf_ringbuf_output(&ring, record, size, ring_flags(false))) {
		count_add(ABI_COUNTER_NAMES_LOST, 1);
		return 0;
	}
	count_add(ABI_COUNTER_NAMES, 1);
	return 1;
}
