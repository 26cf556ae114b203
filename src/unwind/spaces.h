/* SPDX-License-Identifier: Apache-2.0 */
/* Which address space a process has, and which mappings an address space has, as far as the kernel's walkers are told.
 * A space is one program's memory: (pid, start, exec) -> number, never used again. Forked children share their
 * parent's until one of them maps something. Used by one thread, the unwind worker.
 *
 * Telling costs about 25 us a mapping, so a process is told of when it was sampled twice, or is no longer young: most
 * processes of a build end before that, and cost nothing here. Programs whose stacks outgrow a copy are told of at
 * their first sample: such a sample is cut. */
#pragma once

#include "unwind/maps_ref.h"
#include "unwind/rows.h"
#include "unwind/unwind.h"

#define SPACES_PROCESSES_MAX 16384
#define SPACES_MAPS_MAX 30000   /* told of in all; about 512 bytes each in the kernel */
#define SPACES_MAPS_OF_ONE 2000 /* of one process: 50 ms; what lies in the middle stays unknown to the kernel */
#define SPACES_MAPS_FEW 256     /* a process with more gives room before those not heard of for longest */
#define SPACES_RETRY_NS (5 * NSEC_PER_SEC)

struct spaces;

int spaces_open(struct rows *rows, const struct table_sink *sink, const struct clock *clock,
		struct spaces **out) warn_unused;
void spaces_close(struct spaces *s); /* NULL is fine */

/** spaces_set - tell the kernel of it with the next spaces_flush(). Out of memory: a later sample does it. */
void spaces_set(struct spaces *s, const struct program *process, struct maps_ref *maps);
/**
 * spaces_raw - a walk of it had to be finished here
 * @is_old: it has lived a while. @is_unknown: the kernel had no space for it then. @is_full: its stack filled the copy
 * that came, so the next one may be cut. @is_cut: it was longer. It is told of at once then, and after is_cut so are
 * later processes of the same program at their first sample.
 */
struct spaces_raw {
	bool is_old, is_unknown, is_full, is_cut;
};
void spaces_raw(struct spaces *s, const struct program *process, struct maps_ref *maps, struct spaces_raw raw);
/**
 * spaces_expect - a raw sample of it waits, and rows may be loaded before its walk is finished
 * @is_full: as for spaces_raw(). It is told of if it is, or if its program is known to have longer stacks.
 */
void spaces_expect(struct spaces *s, const struct program *process, struct maps_ref *maps, bool is_full);
void spaces_share(struct spaces *s, const struct program *child, const struct program *parent);
void spaces_forget(struct spaces *s, const struct program *process);
void spaces_flush(struct spaces *s);

uint64_t spaces_count(const struct spaces *s); /* that the kernel knows */
uint64_t spaces_maps(const struct spaces *s);
