/* SPDX-License-Identifier: Apache-2.0 */
/* The unit between agent, sinks and store: a profile and what is known about how it was taken. */
#pragma once

#include "model/model.h"

struct window_counter {
	char *name; /* terminated; owned */
	uint64_t value;
};

struct window_label {
	char *key, *value; /* terminated; owned */
};

/* What the address of a location meant when it was named: who shows offsets asks a session for it. */
struct window_code {
	uint64_t offset; /* from where the function begins; of a return address as it stands on the stack */
	bool has_name;
	bool is_return; /* the location's address is the byte before it */
};

/* Where a part of a file lay in a process: address = base + file offset, which is the location's address. */
struct window_base {
	uint32_t process, mapping; /* rows of the model */
	uint64_t first, end, base; /* file offsets */
};

/* All text is owned by the window, terminated, and may be NULL when unknown. */
struct window {
	struct model *model;       /* owned */
	uint64_t start_ns, end_ns; /* wall clock, since the Unix epoch */
	uint32_t frequency_hz;
	uint32_t cpu_count;
	uint64_t run_id[2], cycle_id; /* random per run; counts windows from 0 */
	char *host, *agent_version, *sampler, *unwinder, *kernel_release, *os_name, *command;
	double cpu_average, memory_average; /* percent; negative when unknown */
	uint64_t busy_ns;                   /* CPU time of /proc/stat in the window, without idle, iowait and steal */
	struct window_label *labels;        /* service and the labels that the user set */
	size_t label_count, label_cap;
	struct window_counter *counters; /* by name: samples, lost_ring_full, user_samples, complete, guessed, cut_...,
					    unnamed_frames */
	size_t counter_count, counter_cap;
	struct window_code *codes; /* owned; by row of the model's locations, code_count of them; NULL: nobody asked */
	size_t code_count;
	struct window_base *bases; /* owned; likewise, by process, then mapping */
	size_t base_count;
	char *metadata_json; /* the object of gProfiler's system_metadata.py; NULL: none */
};

#define WINDOW_LABELS_MAX 256
#define WINDOW_COUNTERS_MAX 1024

/** window_init - an empty window that owns an empty model; averages unknown. Return: 0 or -ENOMEM. */
int window_init(struct window *w, size_t byte_max) warn_unused;
void window_release(struct window *w); /* a zeroed struct is fine; releases the model too */
/** window_set_text - replace one of the owned strings (cut at a NUL byte by its readers). Return: 0 or -ENOMEM. */
int window_set_text(char **field, struct str value) warn_unused;
int window_add_label(struct window *w, struct str key, struct str value) warn_unused; /* replaces an equal key */
int window_set_counter(struct window *w, struct str name, uint64_t value) warn_unused;
uint64_t window_counter(const struct window *w, struct str name); /* 0 when absent */
struct str window_label(const struct window *w, struct str key);  /* empty when absent */
/** window_duration_ns - the profile's own duration; without one, from start to end. */
uint64_t window_duration_ns(const struct window *w);
/**
 * window_add_times - the times of a sum, after model_merge() of @from into it
 * @is_first: @into had nothing yet
 *
 * Durations add up, a start of 0 is unknown. A sum of profiles without one has none: its end is its start.
 */
void window_add_times(struct window *into, const struct window *from, bool is_first);
/** window_lost_samples - the sum of all counters called lost_..., which count samples; it saturates. */
uint64_t window_lost_samples(const struct window *w);
/**
 * window_complete_share - counter "complete" over counter "user_samples" and all lost samples (any of them may have had
 * a user stack), or a negative number when no user sample was counted
 */
double window_complete_share(const struct window *w);

#define WINDOW_CUT_GUESSED "cut_guessed" /* counter: "guessed" as older versions called it */

/* User samples by how far their stacks can be believed: user = whole + guessed + cut. */
struct window_classes {
	uint64_t user, whole; /* whole: a proven root, and no frame was guessed */
	uint64_t guessed;     /* no frame is known to be missing, but one was found by a rule that can be wrong */
	uint64_t cut;         /* frames are missing */
	uint64_t lost;        /* beside them: samples that were lost, any of which may have had a user stack */
};

/** window_classes - from the counters; parts of a file whose counters contradict each other add up all the same. */
struct window_classes window_classes(const struct window *w);
/** window_cut_reason - Return: what a counter's name says behind "cut_"; empty when it counts no cut stacks. */
struct str window_cut_reason(const struct window_counter *counter);
