/* SPDX-License-Identifier: Apache-2.0 */
/* What the viewer's answers without stacks share: reading totals of a range into rows, by name and by step of time. */
#pragma once

#include "base/intern.h"
#include "collector/collector_int.h"
#include "collector/covered.h"

/* One line of an answer: a service, a value of a label, a type, a process. */
struct totals_row {
	struct str name; /* set once all are there */
	uint32_t id;     /* of the name */
	uint64_t total, before, profiles, first_ns, last_ns, hosts;
	uint64_t *points;
	size_t kind; /* of a service: an enum workload_kind, or WORKLOAD_KIND_COUNT */
};

struct totals_table {
	struct intern names;
	struct totals_row *rows; /* by id */
	size_t count, cap;
};

#define TOTALS_STEPS 23 /* round steps */

/* One reading of totals. */
struct totals {
	struct call *call;
	struct query_range range;
	struct store_selector sel;
	struct query_whose whose;
	struct str sample;
	struct totals_table table, seen; /* seen: pairs that count once */
	struct totals_row others;        /* of all names that came when the table was full */
	struct buf key;
	struct buf sample_name, unit;      /* of what was added */
	uint64_t from_ms, step_ms, points; /* from_ms: where the first step begins */
	uint64_t total, total_before, profiles;
	uint64_t lasting[TOTALS_STEPS]; /* profiles by the round step that they fit in */
	struct str only;                /* this label */
	struct buf find, lowered;       /* find: what labels or values contain, in small letters; lowered: scratch */
	uint32_t rows_with_points; /* rows from this id on get none, and is_lean says that there are such; 0: all do */
	bool is_lean;
	bool is_before, mixed;
	bool notes_covered; /* a reading notes which times all of its profiles cover, whichever processes are asked for
			     */
	struct covered covered, covered_before; /* by all profiles of the range, and of the one before */
};

/** totals_run - read the parameters that all have, then call @what; it answers. */
void totals_run(struct call *call, void (*what)(struct totals *t));

/** totals_number - a parameter of 1 to @max. Return: whether it went well, otherwise the call is answered. */
bool totals_number(struct call *call, const char *name, uint64_t usual, uint64_t max, uint64_t *out);

/** totals_fits - whether @rows of t->points are few enough for one answer. Return: false when they are not, which is
 * answered. */
bool totals_fits(struct totals *t, uint64_t rows);

/** totals_set_step - cut the range into at most t->points equal steps. */
void totals_set_step(struct totals *t);
/**
 * totals_set_round_step - steps of a round length that begin at round times (UTC): at most t->points and one more, and
 * none is shorter than most profiles whose points totals_note_duration() has seen
 * @least_ms: nor than this
 */
void totals_set_round_step(struct totals *t, uint64_t least_ms);
int totals_note_duration(void *totals, const struct store_point *p); /* a store_point_fn. Return: 0 */
/** totals_steps - the parameter "steps": equal or round. Return: false when it was neither, which is answered. */
bool totals_steps(struct call *call, bool *is_round);

/**
 * totals_visit - call @visit for the points of the selection; of those of the processes that are asked for, their part
 * Return: as store.totals().
 */
int totals_visit(struct totals *t, store_point_fn *visit, void *ctx) warn_unused;
/**
 * totals_note_covered - which times the profiles of t->sel's range cover, of whatever service and labels: who used no
 * CPU in a time that has profiles used 0 in it
 *
 * From now on readings note it. Where they read a part, all of the range is read here, and they do not.
 * Return: as store.totals().
 */
int totals_note_covered(struct totals *t) warn_unused;
/** totals_read - the same with @t as context. Return: whether it went well, otherwise the call is answered. */
bool totals_read(struct totals *t, store_point_fn *visit);
/** totals_failed - answer for a failed reading. */
void totals_failed(struct totals *t, int error);

/** totals_column - the column that is asked for. Return: whether the point has it. */
bool totals_column(struct totals *t, const struct store_point *p, size_t *out);
/** totals_value - its value. */
bool totals_value(struct totals *t, const struct store_point *p, uint64_t *out);
/** totals_row_of - the row called @name, which may be new. Return: 0, -ENOMEM, -E2BIG. */
int totals_row_of(struct totals_table *t, struct str name, struct totals_row **out) warn_unused;
/** totals_row_for - the row of t->table called @name, which may be new; t->others where the table is full. A row has
 * all or nothing of its name: a name that found no room once finds none later. Return: 0 or -ENOMEM. */
int totals_row_for(struct totals *t, struct str name, struct totals_row **out) warn_unused;
/** totals_add - a point's value into its row: total, times, step. Return: 0 or -ENOMEM. */
int totals_add(struct totals *t, struct totals_row *row, const struct store_point *p, uint64_t value) warn_unused;
/** totals_add_point - into its step alone. */
int totals_add_point(struct totals *t, struct totals_row *row, const struct store_point *p, uint64_t value) warn_unused;
struct str totals_label(const struct store_series *series, struct str key); /* empty: none */
uint64_t totals_plus(uint64_t a, uint64_t b);                               /* saturates */

/** totals_table_init - @text_max: bytes of all names */
void totals_table_init(struct totals_table *t, size_t text_max);
void totals_table_release(struct totals_table *t);

/** totals_sort - give rows their names, drop those of which nothing came, and sort. They are not by id any more. */
void totals_sort(struct totals_table *t, int (*order)(const void *, const void *));
int totals_row_order(const void *a, const void *b);  /* largest first, then by name */
int totals_name_order(const void *a, const void *b); /* by name */

void totals_write_points(struct json_out *json, const uint64_t *points, uint64_t count);
void totals_write_range(struct json_out *json, const struct totals *t);
/** totals_write_covered - `covered_ms` and `before_covered_ms`, each left out where it is not known. */
void totals_write_covered(struct json_out *json, const struct totals *t);
void totals_write_sample(struct json_out *json, const struct totals *t);
