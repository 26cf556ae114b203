/* SPDX-License-Identifier: Apache-2.0 */
/* Flame trees as Pyroscope's render API writes them, "single" layout (grafana/pyroscope, pkg/og/structs/flamebearer).
 */
#pragma once

#include "codec/json.h"
#include "render/tree.h"

/**
 * flamebearer_write - append {"names":..,"levels":..,"numTicks":..,"maxSelf":..}
 * @max_nodes: the largest ones are kept; what is cut of a node becomes its child "other". 0: all
 *
 * Return: 0, -ENOMEM, or the buffer's error.
 */
int flamebearer_write(struct json_out *json, const struct tree *t, uint32_t max_nodes) warn_unused;
