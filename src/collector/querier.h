/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of querier.v1.QuerierService share: api_querier.c (requests, routes), api_querier_labels.c (types,
 * labels, series), api_querier_merge.c (flame graphs, profiles), api_querier_series.c (series of points). */
#pragma once

#include "collector/connect.h"
#include "collector/selection.h"
#include "query/querier_answer.h"

#define QUERIER_TEXT_MAX MIB(64) /* of all texts of an answer */

struct querier {
	struct call *call;
	enum querier_method method;
	struct querier_request rq;
	struct querier_request sides[2]; /* of a comparison */
	struct selection selection;
	struct query_column column; /* of its profile_typeID */
	struct buf out;             /* the answer, protobuf */
};

/** querier_bad - answer 400. Return: false. */
bool querier_bad(struct call *call, const char *what);
/** querier_select - what @rq means, into q->selection and q->column. Return: whether it went well; otherwise the call
 * is answered. */
bool querier_select(struct querier *q, const struct querier_request *rq);
void selection_end(struct selection *s);
/** querier_count_series - how many series querier_series() would list of what was selected. Return: as
 * querier_select(). */
bool querier_count_series(struct querier *q, uint64_t *out);

/* Each writes q->out. Return: whether it went well; otherwise the call is answered. */
typedef bool querier_fn(struct querier *q);
querier_fn querier_types, querier_names, querier_values, querier_series, querier_stats, querier_analyze;
querier_fn querier_stacktraces, querier_merged_profile, querier_diff;
querier_fn querier_points;
