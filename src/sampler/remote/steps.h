/* SPDX-License-Identifier: Apache-2.0 */
/* A reader for runtimes that keep a list of their frames: the steps of walk/ over remote memory, in both passes of a
 * round (memory.h). What differs between runtimes is in struct remote_steps.
 *
 * A stack is clean when it is the same, positions included, in both passes of a round and in those of some more. One
 * that is the same in one round, but for the position in the innermost frame, is whole: that frame is marked
 * ABI_FRAME_GUESSED and runtime_end says CHANGED. Where no round agrees, only the frames on the root's side that both
 * passes have stay, and runtime_end says GAP: what they called is not known. Frames that only one pass has seen are
 * never combined. */
#pragma once

#include "sampler/remote/readers.h"

struct remote_steps {
	enum abi_runtime runtime;
	/** start - of walk/, of the thread that @w and its sample say; @process: a number that no other one has. */
	void (*start)(struct walk *w, const void *info, uint64_t process);
	enum walk_next (*step)(struct walk *w);
	/** kind_of - what a step that reads @size bytes now reads. */
	enum remote_kind (*kind_of)(const struct walk *w, uint32_t size);
	/** needs_pointer - is the thread pointer needed? */
	bool (*needs_pointer)(const void *info);
	/** settle - of a thread that runs and whose registers are not known: what of the walk cannot be right then. May
	 * be NULL. */
	void (*settle)(struct walk *w);
	/** record - append abi_name.bytes of what runtime.read_name() said of a frame. Return: 0; -ENOTSUP: whoever
	 * shows the frame reads its name; -errno. NULL: the steps' walk_NAME_seen() keeps records. */
	int (*record)(const void *info, const struct abi_frame *frame, const struct runtime_function *function,
		      struct buf *out);
};

/* What a row of readers.c has, but for its first member. */
int remote_steps_open(const struct remote_steps *steps, struct remote_walker **out) warn_unused;
void remote_steps_close(struct remote_walker *w);
struct abi_sample *remote_steps_read(struct remote_walker *w, struct remote_process *p, struct remote_thread *t);
const struct abi_name *remote_steps_name(struct remote_walker *w, struct remote_process *p,
					 const struct abi_frame *frame, uint64_t now_ns);
void remote_steps_sent(struct remote_walker *w, const struct remote_process *p, const struct abi_frame *frame);
void remote_steps_forget(struct remote_walker *w);

#define REMOTE_STEPS_READER                                                                                           \
	.close = remote_steps_close, .read = remote_steps_read, .name = remote_steps_name, .sent = remote_steps_sent, \
	.forget = remote_steps_forget

/* What record() may use. */

#define REMOTE_TEXT_MAX 640   /* bytes of a name that travel */
#define REMOTE_TABLE_MAX 2400 /* of a table of lines */
/** remote_name_text - append the first @max of @size bytes, filled up to a multiple of 8. Return: how many they are. */
uint16_t remote_name_text(struct buf *out, const void *bytes, size_t size, size_t max);

/* What walk_NAME_seen() may use: the steps have met a frame whose name may not be known yet. */

/** remote_name_wanted - does its name have to be read? Then an empty record is begun. */
bool remote_name_wanted(struct walk *w, uint64_t key, uint64_t cookie);
/** remote_name_bytes - @size bytes more of the record, zeroed. NULL: there is no room. */
uint8_t *remote_name_bytes(struct walk *w, size_t size);
/** remote_name_add - the first @max of @size bytes that lie at @at now, filled up to a multiple of 8 by zeros. Return:
 * how many they are; 0: none, or they cannot be read. */
uint16_t remote_name_add(struct walk *w, uint64_t at, uint64_t size, uint32_t max);
/** remote_name_read - for what leads there, past all copies. Return: 0 or -errno. */
int remote_name_read(struct walk *w, void *dst, uint32_t size, uint64_t at);
/** remote_name_keep - the record is complete. */
void remote_name_keep(struct walk *w, uint64_t key, uint64_t cookie);
