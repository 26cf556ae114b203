/* SPDX-License-Identifier: Apache-2.0 */
/* What percentages relate to. */
#pragma once

#include "model/model.h"

#define TOTAL_BASE_LABEL "pprof::base" /* on samples of the base, with the text "true": as go tool pprof -diff_base */

/**
 * render_total - the sum of the amounts of a column: values below zero count, too
 * Of a difference (samples with TOTAL_BASE_LABEL) only those of the base. Source: github.com/google/pprof,
 * internal/report/report.go, computeTotal(). It saturates.
 */
int64_t render_total(const struct model *m, size_t value);
