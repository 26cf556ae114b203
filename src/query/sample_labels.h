/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of one profile by their text labels: Pyroscope's clients put there what selectors ask for. */
#pragma once

#include "query/params.h"

/* Samples with equal labels. */
struct label_groups {
	uint32_t *group_of; /* by sample */
	struct query_labels *groups;
	size_t count; /* at least 1: group 0 has the samples without labels, perhaps none */
};

void label_groups_release(struct label_groups *g); /* a zeroed one is fine */

/**
 * label_groups_make - group the samples of @m by the labels that a series of them could have
 * @series: labels that all of them have already: a sample's label of the same name says nothing more
 * @groups_max: at least 1. Samples beyond that many groups go to group 0, as do labels beyond STORE_LABELS_MAX and the
 *	limits of a label
 *
 * Labels of the process and thread that pprof files have as texts (docs/formats/pprof.md) count, too. Names of spans
 * and traces do not: nearly every sample has its own. Source: grafana/pyroscope, pkg/model/pprofsplit.
 *
 * Return: 0 or -ENOMEM (then @out needs no release).
 */
int label_groups_make(const struct model *m, const struct store_label *series, size_t series_count, size_t groups_max,
		      struct label_groups *out) warn_unused;

/** label_name_legacy - append @name as Pyroscope's selectors write it: '.' becomes '_'. */
void label_name_legacy(struct str name, struct buf *out);
