/* SPDX-License-Identifier: Apache-2.0 */
/* Flame trees as Pyroscope writes them, as JSON for its render API and as protobuf for querier.v1. Layout "single": a
 * node is where it begins, counted from the end of the one before it on its level, total, self, and its name. Layout
 * "double": the first three of the left side, those of the right side, the name. Source: grafana/pyroscope,
 * pkg/og/structs/flamebearer. */
#pragma once

#include "codec/json.h"
#include "render/tree.h"

struct flamebearer_cell {
	uint64_t x[2], total[2], self[2]; /* left, right; of "single" only the first */
	uint32_t name;
};

struct flamebearer_row {
	struct flamebearer_cell *cells;
	size_t count, cap;
	uint64_t next_x[2]; /* while it is made: where the next node of this level begins, below the open parent */
};

struct flamebearer {
	struct tree pruned;   /* what is left of a tree that was cut */
	const struct tree *t; /* that, or the whole one */
	struct flamebearer_row *rows;
	size_t row_count;  /* levels that have a node */
	size_t row_cap;    /* rows to free */
	uint64_t total[2]; /* of each side */
	uint64_t max_self;
	bool is_double;
};

void flamebearer_release(struct flamebearer *b); /* a zeroed one is fine */

/**
 * flamebearer_make - lay a tree out
 * @t: borrowed until the release
 * @left: of every node of @t the part of its total that is the left side's; NULL: "single"
 * @max_nodes: the largest ones are kept; what is cut of a node becomes its child "other". 0: all
 *
 * Return: 0 or -ENOMEM. @out needs a release only on 0.
 */
int flamebearer_make(const struct tree *t, const uint64_t *left, uint32_t max_nodes,
		     struct flamebearer *out) warn_unused;

/** flamebearer_json - append {"names":..,"levels":..,"numTicks":..,"maxSelf":..}. Return: 0 or the buffer's error. */
int flamebearer_json(const struct flamebearer *b, struct json_out *json) warn_unused;

/** flamebearer_proto - append field @number: a querier.v1.FlameGraph, or FlameGraphDiff. Return: as above. */
int flamebearer_proto(const struct flamebearer *b, uint32_t number, struct buf *out) warn_unused;
