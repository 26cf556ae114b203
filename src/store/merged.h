/* SPDX-License-Identifier: Apache-2.0 */
/* Models that need no merging. */
#pragma once

#include "model/model.h"

/**
 * is_merged - would model_merge() into an empty model only copy @m?
 *
 * A model of a dictionary: its rows differ, all but mappings are used, samples differ and have no times. Merging tells
 * less apart than a dictionary does: labels in another order, one file at two addresses. It also leaves out mappings
 * that nothing uses. In doubt the answer is no.
 */
bool is_merged(const struct model *m) warn_unused;
/** is_merged_to_read - the same, where only names, addresses and values of samples count. */
bool is_merged_to_read(const struct model *m) warn_unused;
