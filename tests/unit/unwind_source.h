/* SPDX-License-Identifier: Apache-2.0 */
/* Tables made up by file id, and a clock that is turned by hand: for tests of who keeps which table when. */
#pragma once

#include "support.h"
#include "unwind/rows.h"

#define SOURCE_FILES 128

struct made_source {                     /* by file id; larger ids share the first row */
	uint32_t elements[SOURCE_FILES]; /* of the table; 0: no rows */
	int error[SOURCE_FILES];         /* what build() answers; 0: the table */
	int span_error[SOURCE_FILES];
	unsigned builds[SOURCE_FILES];
	uint64_t busy_ns; /* CPU time that build() takes */
};

struct rows_source made_source(struct made_source *made);

struct made_clock {
	uint64_t now_ns;
};

struct clock made_clock(struct made_clock *made);
