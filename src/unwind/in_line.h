/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes whose frames are frames of the native stack, as the walks on the host meet them: the unwinder knows none of
 * them by name, so it is handed their steps, and who to ask for what they need of a process. */
#pragma once

#include <linux/types.h>

#include "proc/program.h"
#include "unwind/world.h"

/** Called by the unwinder's thread. */
struct in_line {
	/** head - which runtimes a process has, and where their code lies. Return: 0, or -ENOENT: none are known. */
	int (*head)(void *self, const struct program *p, struct abi_runtimes *out);
	/** info - what the walker of @runtime must know of it: its struct of abi/, at most WALK_INFO bytes. Return: 0
	 * or -ENOENT. */
	int (*info)(void *self, const struct program *p, enum abi_runtime runtime, void *out);
	/** step - one frame, as walk_world.in_line(), with w->info filled. */
	enum walk_next (*step)(void *self, struct walk *w);
	/** lives - is the process still there, and the same? */
	bool (*lives)(void *self, const struct program *p);
	void *self;
};

/* The world of one walk: the copied stack, the files, and for a runtime's steps the living process. */
struct in_line_world {
	struct world world; /* its memory is in_line_read() */
	const struct in_line *with;
	struct program program;
	struct world_copy *copy;
	bool steps;    /* a runtime's step runs */
	bool has_read; /* something of the living process */
};

/**
 * in_line_begin - let the steps of runtimes take part in the walk @w over @copy
 * Everything but pid, mode and registers of @w is set here. @with NULL: there are none.
 */
void in_line_begin(struct in_line_world *i, const struct in_line *with, const struct program *program,
		   const struct mappings *maps, const struct world_tables *tables, struct world_copy *copy,
		   struct walk *w);
/**
 * in_line_holds - what was read of the living process was that process's
 * false: it has ended meanwhile, or another one has its number: the walk is to be done without runtimes.
 */
bool in_line_holds(const struct in_line_world *i);
