/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind_source.h"

#include <time.h>

static uint32_t slot(uint32_t file_id)
{
	return file_id < SOURCE_FILES ? file_id : 0;
}

static int span(void *self, uint32_t file_id, struct unwind_span *out)
{
	struct made_source *made = self;
	uint32_t at = slot(file_id);

	if (made->span_error[at])
		return made->span_error[at];
	*out = (struct unwind_span){ .first_page = file_id, .pages = made->elements[at] ? 16 : 0 };
	return 0;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static int build(void *self, uint32_t file_id, struct unwind_table *out)
{
	struct made_source *made = self;
	uint32_t at = slot(file_id);

	made->builds[at]++;
	for (uint64_t end = cpu_ns() + made->busy_ns; made->busy_ns && cpu_ns() < end;)
		;
	if (made->error[at])
		return made->error[at];
	if (!made->elements[at]) {
		*out = (struct unwind_table){ .source = UNWIND_SOURCE_NONE };
		return 0;
	}
	out->elements = calloc(made->elements[at], sizeof(*out->elements));
	if (!out->elements)
		return -ENOMEM;
	out->elements[0].head.magic = ABI_TABLE_MAGIC;
	out->elements[0].head.size = made->elements[at];
	out->elements[0].head.row_count = file_id; /* so that a test sees whose it is */
	out->source = UNWIND_SOURCE_CFI;
	return 0;
}

struct rows_source made_source(struct made_source *made)
{
	return (struct rows_source){ .span = span, .build = build, .self = made };
}

static uint64_t now(void *self)
{
	return ((struct made_clock *)self)->now_ns;
}

struct clock made_clock(struct made_clock *made)
{
	return (struct clock){ .monotonic_ns = now, .wall_ns = now, .self = made };
}
