/* SPDX-License-Identifier: Apache-2.0 */
/* Counts samples by raw stack until the window ends. Frames are kept as what the ring reader made of them while the
 * process lived (file id and offset, kernel address, JIT address); names come later, once per distinct frame.
 * An aggregate is filled by one thread and then moved whole to the symbol worker. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/intern.h"
#include "base/u64map.h"
#include "proc/program.h"

struct aggregate_frame {
	uint8_t kind;   /* enum abi_frame_kind; USER: nothing mapped there that we know of */
	uint8_t flags;  /* enum abi_frame_flags */
	uint32_t owner; /* NATIVE: file id; JIT and USER: index into processes; RUNTIME: into functions, or
			 * with AGGREGATE_PENDING into pending; KERNEL: 0 */
	uint64_t at;    /* NATIVE: file offset; RUNTIME: executing line (0: not known), or AGGREGATE_PENDING; otherwise
			 * address */
};

/** aggregate_frame_place - where the instruction of a NATIVE frame lies in its file: a return address belongs to the
 * call before it. */
static inline uint64_t aggregate_frame_place(const struct aggregate_frame *f)
{
	return f->at - (f->flags & ABI_FRAME_RETURN ? 1 : 0);
}

/* What a runtime frame shows. Every value except NAMED stands for a frame that is not known. */
enum aggregate_function_kind {
	AGGREGATE_FUNCTION_NAMED,
	AGGREGATE_FUNCTION_LOST,      /* it has no name */
	AGGREGATE_FUNCTION_GAP,       /* frames are, or may be, missing here */
	AGGREGATE_FUNCTION_TRUNCATED, /* the outer ones are missing */
};

struct aggregate_function {                            /* of a language runtime */
	uint32_t name, file, version;                  /* strings of the aggregate; version: of the runtime, "3.11.2" */
	uint32_t origin;                               /* the file system that `file` lies in: index into origins */
	int32_t first_line, first_column, name_column; /* as in struct runtime_function, */
	uint64_t map_id;                               /* and this */
	uint8_t kind;                                  /* enum aggregate_function_kind */
	uint8_t runtime;                               /* enum abi_runtime */
	uint8_t shown;                                 /* enum model_kind; 0: the runtime's */
};

#define AGGREGATE_PENDING UINT64_MAX /* at: what is shown is found before the window ends, or not at all */
#define AGGREGATE_NO_FUNCTION UINT32_MAX

struct aggregate_place {
	int32_t line, column; /* executing, or of a call that was inlined; from 1 on, 0: not known */
};

/* A runtime frame whose name or line is not known yet. */
struct aggregate_pending {
	struct program program;
	uint64_t key, cookie;       /* of abi_frame */
	uint32_t position, process; /* process: index into processes */
	uint16_t runtime;           /* enum abi_runtime */
	uint16_t tries;
	uint8_t flags; /* enum abi_frame_flags: COMPILED and RETURN */
	bool is_settled;
	uint32_t function; /* index into functions; NO_FUNCTION: it has no name */
	struct aggregate_place place;
	/* COMPILED: in `shown`, leaf first; none: it shows `function`, or until it is settled nothing. */
	uint32_t first_shown, shown_count;
};

struct aggregate_shown {   /* one function of a frame */
	uint32_t function; /* index into functions */
	struct aggregate_place place;
	bool is_vague; /* as in struct runtime_shown */
};

/* A file system that functions come from: of a container, or a mount namespace. */
struct aggregate_origin {
	uint32_t number; /* one for the whole session; 0: not known */
	int root_fd;     /* its root directory; owned, or -1 */
};

struct aggregate_stack { /* a path in a tree: node 0 is the empty stack */
	uint32_t parent, frame;
};

struct aggregate_process {
	uint32_t pid, generation;
	uint64_t start_ns;
	uint32_t comm, container;       /* strings of the aggregate */
	uint32_t service, service_kind; /* the same; derived from the others, so no part of the identity */
	uint32_t exec_id;               /* of the program; no part of the identity, because generation is */
	uint32_t next_same;             /* 1 + index of another row of this program; 0: none */
	uint64_t born_ns, ended_ns;     /* CLOCK_MONOTONIC; 0: not known, not yet. No part of the identity */
	uint32_t application;           /* string of the aggregate, set once it is known: no part of the identity */
	uint32_t metadata_json;         /* the same, of its metadata */
	uint32_t origin;                /* index into origins, once it is known */
	int perf_map_fd;                /* owned, or -1 */
	uint8_t jit_kind;               /* enum jit_kind, of a process with JIT code; no part of the identity */
	bool is_kernel, origin_known, jit_kind_known;
	bool has_no_room;   /* for its metadata: it has none in this window */
	bool names_threads; /* its runtime does; set once it is known: no part of the identity */
	bool may_be_short;  /* its service becomes (short-lived) when it turns out to be short */
	bool has_runtime;   /* frames of its language runtime were seen; no part of the identity */
};

#define AGGREGATE_REQUESTS_MAX 1000 /* those without room are one, "(other)" */

struct aggregate_request {     /* what a process was busy with */
	uint32_t script, path; /* strings of the aggregate; path: of a URI, or empty */
};

struct aggregate_owner {    /* whose process is busy; all of whom nothing is known are one */
	uint32_t user;      /* effective */
	uint32_t container; /* string of the aggregate, or 0 */
};

struct aggregate_sample {
	uint32_t stack, process, tid, thread_name; /* thread_name: string of the aggregate */
	uint8_t user_end;                          /* enum abi_end */
	uint8_t runtime_end;                       /* enum abi_runtime_end */
	uint8_t has_user;                          /* there is a user part: root_frame and user_end are valid */
	uint8_t guessed;                           /* a native frame was, shown or folded away */
	uint8_t kernel_cut;                        /* kernel frames are missing */
	uint8_t is_wait;                           /* the thread was off its CPU, for wait_ns */
	uint8_t by_chain;    /* the stack by frame pointers of a sample that has another one, too (agent/smart.h) */
	uint32_t request;    /* 1 + index into requests; 0: not asked, or not known */
	uint32_t root_frame; /* outermost user frame, index into frames; valid when has_user and user frames exist */
	uint32_t count;
	uint64_t wait_ns; /* of all that were counted */
};

#define AGGREGATE_TICK_NS (20 * NSEC_PER_MSEC)
#define AGGREGATE_TICKS_MAX (1u << 20) /* 8 MiB: of two busy CPUs at 99 Hz 88 minutes */

/* When one sample was taken: what is counted in a row has many. */
struct aggregate_tick {
	uint32_t sample; /* index into samples */
	uint32_t tick;   /* of AGGREGATE_TICK_NS, since start_ns */
};

/* Where a part of a file lies in a process: address = base + file offset. */
struct aggregate_base {
	uint32_t process, file; /* index into processes; id */
	uint32_t next;          /* 1 + index of another of both; 0: none */
	uint64_t first, end;    /* file offsets */
	uint64_t base;
};

struct aggregate {
	struct intern strings,
		metadata; /* metadata: JSON texts of processes, which are long, with a bound of their own */
	struct aggregate_frame *frames;
	size_t frame_count, frame_cap;
	struct aggregate_stack *stacks;
	size_t stack_count, stack_cap;
	struct aggregate_process *processes;
	size_t process_count, process_cap;
	struct aggregate_sample *samples;
	size_t sample_count, sample_cap;
	struct aggregate_function *functions;
	size_t function_count, function_cap;
	struct aggregate_origin *origins; /* row 0: not known */
	size_t origin_count, origin_cap;
	struct aggregate_pending *pending;
	size_t pending_count, pending_cap, unsettled;
	size_t settle_first; /* of pending: where the next turn begins to ask */
	struct aggregate_shown *shown;
	size_t shown_count, shown_cap;
	struct aggregate_request *requests;
	size_t request_count, request_cap;
	uint32_t request_other;       /* 1 + index of "(other)"; 0: there is none yet */
	struct aggregate_base *bases; /* only where somebody shows addresses */
	size_t base_count, base_cap;
	struct aggregate_tick *ticks; /* of samples, not of waits: those have a length of their own */
	size_t tick_count, tick_cap;
	struct u64map pending_index, function_index, function_numbers, frame_index, stack_index, process_index,
		sample_index, program_index, base_index, request_index, request_shares;
	uint64_t total;     /* samples counted; waits are not samples */
	uint64_t waits;     /* counted */
	bool with_waits;    /* the window has columns for waits, even when no thread waited */
	double wait_weight; /* one counted wait stands for so many waits */
	bool with_times;    /* samples have times */
	uint64_t start_ns;  /* with_times: CLOCK_MONOTONIC; where the window begins */
	uint64_t untimed;   /* with_times: samples that found no room or memory for theirs */
	uint64_t left_out;  /* samples without the frames that were asked for */
	uint64_t dropped;   /* samples that found no room or memory */
};

#define AGGREGATE_NO_FRAME UINT32_MAX

int aggregate_new(struct aggregate **out) warn_unused;
void aggregate_free(struct aggregate *a); /* NULL is fine; closes the perf map descriptors */
void aggregate_freep(struct aggregate **a);

/* Return: 0 and *out, -ENOMEM, -E2BIG. Equal rows get equal indexes. */
int aggregate_add_process(struct aggregate *a, const struct aggregate_process *row, uint32_t *out) warn_unused;
/** aggregate_end_program - its rows, if there are any, learn when it began and ended (CLOCK_MONOTONIC; 0: not known).
 */
void aggregate_end_program(struct aggregate *a, const struct program *program, uint64_t born_ns, uint64_t ended_ns);
/** aggregate_is_short - did it begin and end within @short_ns? */
bool aggregate_is_short(const struct aggregate_process *row, uint64_t short_ns);
/** aggregate_undecided_ns - until when a program may still turn out to be short; 0: all are decided. */
uint64_t aggregate_undecided_ns(const struct aggregate *a, uint64_t short_ns);
int aggregate_add_frame(struct aggregate *a, const struct aggregate_frame *row, uint32_t *out) warn_unused;
int aggregate_add_stack(struct aggregate *a, uint32_t parent, uint32_t frame, uint32_t *out) warn_unused;
int aggregate_add_function(struct aggregate *a, const struct aggregate_function *row, uint32_t *out) warn_unused;
/** aggregate_add_pending - fields that are filled later are no part of the identity. */
int aggregate_add_pending(struct aggregate *a, const struct aggregate_pending *row, uint32_t *out) warn_unused;
/** aggregate_show - from now on pending frame @pending is these functions, leaf first. Return: 0, -ENOMEM, -E2BIG. */
int aggregate_show(struct aggregate *a, struct aggregate_pending *pending, const struct aggregate_shown *shown,
		   size_t count) warn_unused;
/** aggregate_is_vague - is the line of runtime frame @f that of a place behind it? */
bool aggregate_is_vague(const struct aggregate *a, const struct aggregate_frame *f);
/** aggregate_functions - how many functions runtime frame @f shows: at least one. */
size_t aggregate_functions(const struct aggregate *a, const struct aggregate_frame *f);
/** aggregate_runtime - whose frame @f is: enum abi_runtime. */
unsigned aggregate_runtime(const struct aggregate *a, const struct aggregate_frame *f);
/** aggregate_function - number @index of them, leaf first. */
const struct aggregate_function *aggregate_function(const struct aggregate *a, const struct aggregate_frame *f,
						    size_t index, struct aggregate_place *place);
/** aggregate_place_at - what `at` of a runtime frame is whose function is known. */
uint64_t aggregate_place_at(const struct aggregate_place *place);
/**
 * aggregate_add_request - what a process is busy with
 * @owner: whose share of AGGREGATE_REQUESTS_MAX a text takes that is new
 * @out: what struct aggregate_sample has of it
 * Return: 0, -ENOMEM, -E2BIG.
 */
int aggregate_add_request(struct aggregate *a, const struct aggregate_owner *owner, struct str script, struct str path,
			  uint32_t *out) warn_unused;
/** aggregate_has_base - is it known where @offset of @file lies in process @process? */
bool aggregate_has_base(const struct aggregate *a, uint32_t process, uint32_t file, uint64_t offset);
int aggregate_add_base(struct aggregate *a, const struct aggregate_base *row) warn_unused;
/** aggregate_add_origin - @root_fd: borrowed, a duplicate is kept; -1: gone. */
int aggregate_add_origin(struct aggregate *a, uint32_t number, int root_fd, uint32_t *out) warn_unused;
/**
 * aggregate_add_sample - count one; row->count is ignored, row->wait_ns is added
 * @time_ns: CLOCK_MONOTONIC; when it was taken. No part of the identity; before start_ns counts as there. Kept where
 *	the aggregate has times and the sample is no wait
 */
int aggregate_add_sample(struct aggregate *a, const struct aggregate_sample *row, uint64_t time_ns) warn_unused;
