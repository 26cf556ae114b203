/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the text report share. Internal to src/render. */
#pragma once

#include "render/calls.h"
#include "render/render.h"

/** text_head - host, time, rate, and what was lost, cut and left unnamed; only what the window knows. */
void text_head(const struct window *w, struct buf *out);

/** text_tree - callers to callees. Return: 0 or -ENOMEM. */
int text_tree(const struct window *w, const struct render_text_config *cfg, const struct calls *c,
	      struct buf *out) warn_unused;

/** text_value - @value in the largest unit in which it is at least 1, ten columns. */
void text_value(struct buf *out, int64_t value, struct str unit);

/** text_percent - @value of @total as "12.34%", seven columns. */
void text_percent(struct buf *out, int64_t value, int64_t total);

/** text_name - a table's last cell: cut to what @cfg leaves beside @used columns. */
void text_name(struct buf *out, const struct render_text_config *cfg, size_t used, struct str name);

/** text_function - append what a function is called with the suffix of its kind, unescaped. */
void text_function(struct buf *out, const struct model *m, const struct render_text_config *cfg,
		   const struct render_top_row *row);
