/* SPDX-License-Identifier: Apache-2.0 */
#include "render/wait_leaf.h"

bool wait_leaf_value(const struct model *m, size_t value)
{
	struct str type = model_string(m, m->value_types[value].type);

	return str_eq(type, STR("off_cpu")) || str_eq(type, STR("waits"));
}

/* What a thread passes through on its way off a CPU. Source: linux 6.12, kernel/sched/core.c,
 * kernel/time/sleep_timeout.c (kernel/time/timer.c and hrtimer.c before). */
static bool is_scheduler(struct str name)
{
	static const char *const whole[] = { "schedule", "__schedule", "__schedule_loop", "io_schedule" };
	static const char *const beginnings[] = { "schedule_timeout", "io_schedule_timeout", "schedule_hrtimeout",
						  "schedule_preempt_disabled", "schedule_rtlock" };
	ptrdiff_t dot = str_find(name, '.'); /* __schedule.isra.0 */
	struct str plain = dot < 0 ? name : str_first(name, (size_t)dot);

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
		if (str_eq(plain, str_of(whole[i])))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (str_starts(plain, str_of(beginnings[i])))
			return true;
	return false;
}

static bool is_scheduler_location(const struct model *m, uint32_t location)
{
	const struct model_location *l = &m->locations[location];

	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct model_function *f = &m->functions[m->lines[l->first_line + i].function];

		if (f->kind != MODEL_KIND_KERNEL || !is_scheduler(model_string(m, f->name)))
			return false;
	}
	return l->line_count;
}

uint32_t wait_leaf_stack(const struct model *m, uint32_t stack)
{
	uint32_t at = stack;

	while (at && is_scheduler_location(m, m->stacks[at].location))
		at = m->stacks[at].parent;
	return at ? at : stack;
}
