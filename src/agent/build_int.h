/* SPDX-License-Identifier: Apache-2.0 */
/* What build_window.c (samples, processes, counters), build_frames.c (what frames are called) and build_scripts.c (what
 * scripts were made of) share. */
#pragma once

#include "agent/build_window.h"
#include "agent/stack_end.h"
#include "model/jit_kind.h"
#include "runtime/phases.h"
#include "symbol/source_maps.h"

#define LINES_MAX DEBUG_LINES_DEPTH_MAX

enum root_state {
	ROOT_UNKNOWN,
	ROOT_PROVEN,
	ROOT_UNPROVEN, /* whether a coroutine begins there nobody has asked yet */
	ROOT_IF_LAST,  /* a coroutine begins there */
	ROOT_NONE,
};

struct line_room { /* the lines of the frame at hand */
	struct debug_lines_frame frames[LINES_MAX];
	struct model_line lines[LINES_MAX];
};

struct build_phase { /* a frame that stands for what a runtime does for itself */
	const struct runtime *runtime;
	const char *name;
	uint32_t location;
};

struct runtime_counts { /* samples: with frames of it; complete: of them */
	uint64_t samples, complete, frames, unnamed, unlined, vague, gaps;
};

struct builder {
	const struct aggregate *a;
	struct symbols *symbols;
	struct debug_lines *lines;       /* or NULL */
	struct runtime_sources *sources; /* or NULL */
	struct source_maps *maps;        /* or NULL */
	struct runtimes *runtimes;       /* or NULL */
	bool thread_frames;              /* as in struct build_config */
	struct debug_lines_stats lines_before;
	struct line_room *room;
	struct model *m;
	uint32_t *locations;       /* per raw frame */
	bool *unnamed;             /* per raw frame */
	struct window_code *codes; /* per raw frame; NULL: nobody asked */
	uint8_t *phases;           /* per raw frame: 1 + index of the phase that it begins; 0: none */
	uint8_t *in_phase;         /* per raw stack: the same of the phase that it is in */
	struct build_phase phase[RUNTIME_PHASES_MAX];
	size_t phase_count;
	bool *used;                  /* per raw frame: it is in a stack */
	bool *leaves_cpu;            /* per raw frame: the kernel's function that switches threads */
	uint8_t *roots;              /* per raw frame: enum root_state */
	uint32_t coroutine_searches; /* how many more may be made */
	uint32_t *stacks;            /* per raw stack */
	uint32_t *path;              /* room for the stack at hand, leaf first */
	size_t path_cap;
	uint32_t *processes;         /* per raw process */
	uint32_t *requests;          /* per raw request: its labels' set, 0: not yet */
	struct u64map file_mappings; /* file id -> mapping of the model */
	uint32_t *ticks;             /* of all raw samples, one's behind the other's, each in order; NULL: no times */
	uint32_t *tick_first;        /* per raw sample, and one behind the last: index into ticks */
	uint32_t kernel_mapping;
	uint64_t user_samples, complete, guessed, frames, unnamed_frames, guessed_frames;
	uint64_t runtime_samples, runtime_complete;       /* a sample may have frames of several runtimes */
	struct runtime_counts runtime[ABI_RUNTIME_COUNT]; /* by enum abi_runtime */
	uint64_t cut[STACK_END_COUNT];
	uint64_t unnamed_jit[JIT_KIND_COUNT]; /* samples of processes without a perf map */
};

/** build_text - add a stranger's text, as UTF-8. */
int build_text(struct model *m, struct str text, uint32_t *out) warn_unused;
/** build_texts - @count of them. */
int build_texts(struct model *m, const struct str *texts, uint32_t *const *ids, size_t count) warn_unused;
/** build_mark_used - mark the frames that stand in a stack. The others were folded away; only their place was needed.
 */
void build_mark_used(struct builder *b);

struct build_function { /* one function of a runtime's frame, as it is shown */
	struct str name, file;
	int32_t first_line; /* 0: not known */
	struct aggregate_place place;
};

/** build_ask_maps - ask for all places in scripts at once, as build_ask_lines(). */
int build_ask_maps(struct builder *b) warn_unused;
/**
 * build_map_function - a function by the source map of its script, if it has one
 * @room: empty; out->name may lie there. Return: 0 or -errno.
 */
int build_map_function(struct builder *b, const struct aggregate_function *f, const struct aggregate_place *place,
		       struct buf *room, struct build_function *out) warn_unused;
/** build_ask_lines - ask for all lines at once, so that each file is read once a window. */
int build_ask_lines(struct builder *b) warn_unused;
/** build_thread_frame - a location that stands for thread @tid. Return: 0 or -errno. */
int build_thread_frame(struct builder *b, struct str name, uint32_t tid, uint32_t *out) warn_unused;
/** build_frames - a location for each frame that is used. */
int build_frames(struct builder *b) warn_unused;
