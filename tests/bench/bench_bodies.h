/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of made-up services for the benches: modelled on a Go service with two sample types; a stack is 40 deep, of
 * which a family of 50 neighbours shares 36 frames (90 %); 15 % of the samples have one of 32 label sets; a profile has
 * between a quarter and two thirds of its service's stacks, or a given share. */
#pragma once

#include "model/window.h"

#define BODIES_DEPTH 40
#define BODIES_SHARED 36 /* frames that the stacks of a family share */
#define BODIES_FAMILY 50
#define BODIES_LABEL_SETS 32

/* All that a service can show: made once, since naming 200,000 frames takes longer than everything else. */
struct bodies_service {
	struct model m;
	uint64_t seed, service, stack_count;
	uint64_t share; /* percent of the stacks in a profile, give or take a third; 0: 25 to 66 */
	uint32_t *stacks;
	uint32_t label_sets[BODIES_LABEL_SETS];
};

int bodies_service_init(struct bodies_service *s, uint64_t seed, uint64_t service, uint64_t stack_count) warn_unused;
void bodies_service_release(struct bodies_service *s);

/** bodies_upload - profile @number of the service as it comes: gzip of level 1, as Go writes it. @time_ns may be 0. */
void bodies_upload(struct bodies_service *s, uint64_t number, int64_t time_ns, struct buf *out);
