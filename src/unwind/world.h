/* SPDX-License-Identifier: Apache-2.0 */
/* What a walk on the host reads: the memory of a process in one of several forms, its mappings, and the tables of its
 * files. One world serves one walk at a time. */
#pragma once

#include <linux/types.h>

#include "proc/mappings.h"
#include "walk/walk.h"

/** What turns a file id into the fields of a struct abi_map, and a table number into rows. */
struct world_tables {
	/** file - fill kind, table, first_page and pages. Return: 0, or -errno: the file has no rows we could get. */
	int (*file)(void *self, uint32_t file_id, struct abi_map *out);
	const void *(*table)(void *self, uint32_t number);
	const union abi_element *(*element)(void *self, const void *table, uint32_t index);
	void *self;
};

struct world_memory { /* bytes of the process */
	int (*read)(void *self, void *dst, uint32_t size, uint64_t at);
	void *self;
};

struct world {
	struct walk_world walk; /* what struct walk points at */
	const struct mappings *maps;
	const struct world_tables *tables;
	struct world_memory memory;
};

void world_init(struct world *w, const struct mappings *maps, const struct world_tables *tables,
		struct world_memory memory);

/* A live process, by process_vm_readv. */
struct world_live {
	uint32_t pid;
};
int world_live_read(void *self, void *dst, uint32_t size, uint64_t at);

/* Bytes of a stack, and for the rest (code, vDSO) the files that are mapped there: code that the process has changed or
 * written itself is not seen. Of a read that begins in front of the stack that part is zeros. */
struct world_copy {
	const uint8_t *stack;
	uint64_t at;
	uint32_t size;
	const struct mappings *maps;
	struct files *files;
	bool ran_out; /* the last read lay behind the end of the copy: the stack goes on, the copy does not */
	bool is_dead; /* it lay in front of the copy: what is there now belongs to later frames */
};
int world_copy_read(void *self, void *dst, uint32_t size, uint64_t at);

/** unwind_turn - one frame, be it native or of a runtime; w->unwinder is not 0 then. As walk_native_step(), but never
 * SWITCH. */
enum walk_next unwind_turn(struct walk *w);
/**
 * unwind_walk - run @w until it is done, at most ABI_FRAMES_MAX turns
 * Frames are in w->frames, leaf first; w->end says why it ended.
 */
void unwind_walk(struct walk *w);
