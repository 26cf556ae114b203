/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings that the reader and the unwind worker hold together; never changed once made. */
#pragma once

#include <stdatomic.h>

#include "proc/mappings.h"

struct maps_ref {
	_Atomic uint32_t refs;
	struct mappings maps;
};

/** maps_ref_new - a copy, held once. NULL: out of memory. */
struct maps_ref *maps_ref_new(const struct mappings *maps);
/** maps_ref_get - hold it once more; any thread that holds it may. */
struct maps_ref *maps_ref_get(struct maps_ref *m);
/** maps_ref_put - hold it once less; the last one frees it. NULL is fine. */
void maps_ref_put(struct maps_ref *m);
/** maps_equal - do both map every address to the same place? Pure. */
bool maps_equal(const struct mappings *a, const struct mappings *b);
