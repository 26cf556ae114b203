/* SPDX-License-Identifier: Apache-2.0 */
/* What a walk of a running process's memory reads, taken in one system call around an instant: a stack that is read
 * word by word while it changes mixes frames from different moments.
 *
 *	early | frames, outermost first | heads | frames, innermost first | late          one round
 *	early | all frames | heads | inner ones | inner ones | heads | all frames | late  two: the last pass is whole
 *
 * heads say which frame is the innermost one, frames are the stack, early pieces lead to the heads and stay what they
 * are, late ones are what frames point at and does not change while they live. One process_vm_readv takes 1.1 us and
 * 0.3 us for each piece, in their order. A frame that is the same in the passes before and after the heads was so when
 * the heads were read; those that change the most, the innermost, are read the closest to them. All of them together
 * are then a stack that existed at that instant, unless one was left and entered again in between. The list of
 * pieces, the plan, comes from earlier walks of the thread. Anything else that a walk needs is read at once and added
 * to the next plan. */
#pragma once

#include <linux/types.h>
#include <sys/uio.h>

#include "base/base.h"

#define REMOTE_PIECES_MAX 160   /* of one kind */
#define REMOTE_VECTORS_MAX 1024 /* UIO_MAXIOV */
#define REMOTE_ROUNDS_MAX 8
#define REMOTE_BYTES_MAX KIB(512)

enum remote_kind { REMOTE_EARLY, REMOTE_HEAD, REMOTE_FRAME, REMOTE_LATE, REMOTE_KINDS };

struct remote_piece {
	uint64_t at;
	uint32_t size;
	uint16_t rank;   /* when the last walk asked for it; scratch */
	uint16_t unused; /* plans made since it was asked for */
};

struct remote_plan {                               /* zeroed: empty */
	struct remote_piece *pieces[REMOTE_KINDS]; /* frames: the innermost first */
	uint16_t count[REMOTE_KINDS], cap[REMOTE_KINDS];
	uint16_t age; /* how often it was made */
};

void remote_plan_release(struct remote_plan *plan);

struct remote_copy {
	uint64_t at;
	uint32_t size, offset;    /* offset: of its first byte in bytes[] */
	uint32_t used_from, used; /* the part that was asked for: [used_from, used) */
	uint32_t order;           /* when it was asked for first; 0: never */
	uint8_t kind;
	uint8_t pass; /* frames: 2 * round, 2 * round + 1 after the heads; heads: 2 * round; others: 0 */
};

struct remote_memory {
	uint32_t pid;
	/** readv - as process_vm_readv() into one buffer; tests have another one. Return: bytes, or -errno. */
	ssize_t (*readv)(void *self, uint32_t pid, const struct iovec *to, const struct iovec *from, size_t count);
	void *self;
	enum remote_kind (*kind_of)(uint32_t size); /* of a piece that is asked for */
	bool frames_are_near;                       /* frames lie one behind the other: read as windows */
	uint8_t rounds;                             /* that were read */
	uint8_t pass;                               /* which one reads are answered from */
	uint32_t frame_bytes;                       /* read at a frame at least */
	uint32_t misses; /* pieces that had to be read singly since the start; late ones do not count */
	uint64_t trace;  /* hash of all places that were asked for: two walks that agree took the same way */
	uint64_t calls;  /* system calls so far */
	struct remote_copy copies[2 * REMOTE_VECTORS_MAX];
	uint32_t copy_count, filled, order;
	uint32_t windows[128], window_count; /* copies that hold more than one piece */
	uint32_t slots[4096];                /* by hash of address and pass: index of the copy + 1 */
	struct iovec vectors[REMOTE_VECTORS_MAX];
	struct remote_copy steps[REMOTE_VECTORS_MAX]; /* what the vectors are */
	uint32_t step_count, step_bytes;
	struct remote_piece scratch[2 * REMOTE_PIECES_MAX];
	uint8_t bytes[REMOTE_BYTES_MAX];
};

int remote_memory_new(struct remote_memory **out) warn_unused;
void remote_memory_free(struct remote_memory *m); /* NULL is fine */

/** remote_memory_start - forget what was read; read @plan of process @pid with @rounds rounds, 1 to REMOTE_ROUNDS_MAX.
 */
void remote_memory_start(struct remote_memory *m, uint32_t pid, const struct remote_plan *plan, unsigned rounds);
/** remote_memory_add - read these, too, in one call; of the kind LATE. */
void remote_memory_add(struct remote_memory *m, const struct remote_piece *pieces, uint32_t count);
/** remote_memory_view - answer reads from now on with round @round, from the pass before the heads or @after them. */
void remote_memory_view(struct remote_memory *m, unsigned round, bool after);
/** remote_memory_plan - put what was asked for since the start into @plan. Return: 0 or -ENOMEM, @plan is empty then.
 */
int remote_memory_plan(struct remote_memory *m, struct remote_plan *plan) warn_unused;
/** remote_memory_read - for struct walk_world; @self: struct remote_memory. Return: 0, -EFAULT, -ESRCH, -EPERM. */
int remote_memory_read(void *self, void *dst, uint32_t size, uint64_t at);
/** remote_memory_read_as - the same of a piece whose kind the caller says. */
int remote_memory_read_as(struct remote_memory *m, enum remote_kind kind, void *dst, uint32_t size, uint64_t at);
/**
 * remote_memory_copy - what was read at @at in pass @pass, or, frames, in the outer pass on its side
 * Return: @size bytes, borrowed until the next start; NULL: they were not read.
 */
const uint8_t *remote_memory_copy(struct remote_memory *m, uint32_t size, uint64_t at, enum remote_kind kind,
				  uint8_t pass);
/** remote_memory_now - the same, past all copies and without noting it. */
int remote_memory_now(struct remote_memory *m, void *dst, uint32_t size, uint64_t at);
