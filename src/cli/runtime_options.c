/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runtime_options.h"

#include "sampler/samplers.h"

static enum runtime_way way_of(const struct runtime_options *o, size_t index)
{
	return o->on[index] ? runtime_at(index)->ways[o->mode[index]] : RUNTIME_WAY_OFF;
}

uint32_t runtime_options_without(const struct runtime_options *o)
{
	uint32_t without = 0;

	for (size_t i = 0; i < RUNTIME_COUNT; i++)
		if (way_of(o, i) == RUNTIME_WAY_OFF)
			without |= 1U << runtime_at(i)->id;
	return without;
}

bool runtime_options_outside(const struct runtime_options *o)
{
	for (size_t i = 0; i < RUNTIME_COUNT; i++)
		if (way_of(o, i) == RUNTIME_WAY_OUTSIDE)
			return true;
	return false;
}

static void read_outside(const struct runtime *runtime, struct session_config *session)
{
	session->beside_hz = MIN(session->sampling.frequency_hz,
				 runtime->outside_hz_max); /* session_open.c warns when it is lower */
}

void runtime_options_apply(const struct runtime_options *o, struct session_config *session)
{
	session->without_runtimes = runtime_options_without(o);
	session->keep_interpreter = o->interpreter_frames;
	session->sampling.php_request = o->php_request;
	for (size_t i = 0; i < RUNTIME_COUNT; i++) {
		if (way_of(o, i) == RUNTIME_WAY_OUTSIDE)
			read_outside(runtime_at(i), session);
		if (way_of(o, i) == RUNTIME_WAY_KERNEL && !session->sampler)
			session->sampler = sampler_find(STR("bpf"));
	}
}
