/* SPDX-License-Identifier: Apache-2.0 */
/* A query of Pyroscope's render API: process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="a",k=~"v|w"}, or
 * app.cpu{k="v"}. Pure. */
#pragma once

#include "query/matchers.h"

/* What borrows is borrowed from the text or from the matchers. */
struct query_render {
	struct str service; /* of the label service_name, or the application's name; empty: any */
	struct str type;    /* ours, static */
	struct str sample;  /* the column; empty: the default one */
	struct matchers matchers;
};

void query_render_release(struct query_render *q); /* a zeroed one is fine */

/**
 * query_render_parse - @out is zeroed
 * @why: on failure the reason
 *
 * Return: 0, -EBADMSG, -E2BIG, -ENOMEM. @out needs a release in any case.
 */
int query_render_parse(struct str text, struct query_render *out, struct buf *why) warn_unused;
