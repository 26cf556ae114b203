/* SPDX-License-Identifier: Apache-2.0 */
/* Which days go. Nothing is read or removed here: the caller says what there is and what time it is, and is told what
 * to remove and why. docs/collector.md, "What is removed, and when". */
#pragma once

#include "base/base.h"

#define EXPIRY_FREE_AUTO UINT64_MAX                             /* the smaller of 1 GiB and 5 % of the file system */
#define EXPIRY_PAUSE_NS (UINT64_C(3600) * UINT64_C(1000000000)) /* between two removals by age */
#define EXPIRY_JUMP_NS (UINT64_C(600) * UINT64_C(1000000000))   /* the wall clock was set when it is off by more */

struct expiry_rules {
	uint64_t age_max_ns;        /* of a day's newest upload; 0: any age */
	uint64_t size_max;          /* bytes of all files; 0: any number */
	uint64_t free_min;          /* bytes the file system should have left; 0: none; EXPIRY_FREE_AUTO */
	uint64_t rollup_age_max_ns; /* of a year's last day; 0: any age */
};

enum expiry_reason { EXPIRY_AGE, EXPIRY_SIZE, EXPIRY_FREE };

const char *expiry_reason_text(enum expiry_reason reason);

/* All files of one day, or of the sums of one year. */
struct expiry_entry {
	int64_t day, days; /* first day since 1970; how many: 1, or those of the year */
	bool is_year;
	uint64_t newest_ns; /* newest upload; 0: none yet. Not used for years */
	uint64_t size;      /* bytes on disk */
	bool goes;          /* expiry_decide() says so, and why */
	enum expiry_reason reason;
};

struct expiry_disk {
	bool known;          /* false: nothing goes for room */
	uint64_t size, free; /* bytes of the file system; those left to us */
	uint64_t leaving;    /* bytes that files removed before will still give back */
};

/* What is remembered between two decisions; the first field also between two processes. */
struct expiry_memory {
	uint64_t last_wall_ns;      /* last removal by age, or when the hour began anew; 0: not known */
	uint64_t last_monotonic_ns; /* the same in this process; valid when has_last */
	bool has_last;
	uint64_t seen_wall_ns, seen_monotonic_ns; /* of the decision before; valid when has_seen */
	bool has_seen;
};

/**
 * expiry_tick - tell what time it is, before every decision
 *
 * A wall clock that was set, or that is behind the last removal, is not believed: the hour until the next removal by
 * age begins anew. Return: whether last_wall_ns has changed and should be written down.
 */
bool expiry_tick(struct expiry_memory *m, uint64_t wall_ns, uint64_t monotonic_ns);

/** expiry_removed - a day or year goes because of its age now. */
void expiry_removed(struct expiry_memory *m, uint64_t wall_ns, uint64_t monotonic_ns);

/**
 * expiry_next - what will go because of its age, as things are
 * @at: which entry; @when_ns: not before this, by the wall clock: it is old enough and over by then, and the hour
 *	since the last one has passed
 *
 * Return: false when nothing ever will.
 */
bool expiry_next(const struct expiry_rules *rules, const struct expiry_memory *m, const struct expiry_entry *entries,
		 size_t count, uint64_t wall_ns, size_t *at, uint64_t *when_ns);

struct expiry_plan {
	size_t count;       /* of entries that go */
	uint64_t free_goal; /* in force; not above free_min */
	bool is_lowered;    /* since what was asked for cannot be reached */
	bool is_over;       /* size_max or free_goal will still be missed: no more may go */
};

/**
 * expiry_decide - mark the entries that go now
 *
 * By age: one day, or else one year, and none within an hour of the last one. For room: days by their newest upload, as
 * few as are needed. The day of @wall_ns never goes, nor does the year it is in, nor a day to come that nothing was
 * uploaded for (its file was made ahead).
 */
void expiry_decide(const struct expiry_rules *rules, const struct expiry_disk *disk, const struct expiry_memory *m,
		   uint64_t wall_ns, uint64_t monotonic_ns, struct expiry_entry *entries, size_t count,
		   struct expiry_plan *out);
