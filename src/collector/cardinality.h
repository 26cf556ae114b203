/* SPDX-License-Identifier: Apache-2.0 */
/* How many series may be written to: labels that are never the same twice (an id of a request, a name with a time in
 * it) would make one a profile. A series counts until nothing came for it for one to two hours. */
#pragma once

#include "store/store.h"

#define CARDINALITY_OVERFLOW "__overflow__" /* the label key, and the service when there are too many of these too */

enum cardinality_verdict {
	CARDINALITY_FITS,
	CARDINALITY_NO_LABELS,  /* keep service and type, put the one label in place of all */
	CARDINALITY_NO_SERVICE, /* and the service, too */
};

struct cardinality;

/** cardinality_new - @max: series; a tenth more for services without labels. 0: any number. */
int cardinality_new(size_t max, struct cardinality **out) warn_unused;
void cardinality_free(struct cardinality *c); /* NULL is fine */
/** cardinality_admit - count the series of @u at @now_ns (monotonic). Any thread. Without memory: FITS. */
enum cardinality_verdict cardinality_admit(struct cardinality *c, const struct store_upload *u, uint64_t now_ns);
/** cardinality_count - series known at the moment. */
size_t cardinality_count(struct cardinality *c);
