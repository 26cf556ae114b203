/* SPDX-License-Identifier: Apache-2.0 */
/* Evented profiles: what lies between two events is a sample of the frames that are open then. */
#include "base/array.h"
#include "codec/json.h"
#include "codec/speedscope_int.h"

#define WORK_PER_BYTE 64 /* frames of cut stacks that may be looked up for each byte of the file */

static int open_frame(struct speedscope_in *in, uint64_t frame, struct str at)
{
	int r = speedscope_push(in, frame, at);

	if (r < 0)
		return r;
	return array_reserve(&in->nodes, &in->nodes_cap, in->path_cap);
}

/* The stack of the open frames. Only of those that were opened since the last time there is something to do. */
static int open_stack(struct speedscope_in *in, size_t *known, struct model_sample *out)
{
	size_t max = in->limits->depth_max, owners;
	int r = speedscope_owner(in, &out->process, &owners);

	if (r < 0)
		return r;
	if (max && in->path_count - owners > max) {
		in->work += max;
		if (in->work / WORK_PER_BYTE > in->size)
			return -E2BIG;
		return speedscope_stack(in, owners, out);
	}
	*known = MAX(*known, owners);
	while (r == 0 && *known < in->path_count) {
		uint32_t parent = *known > owners ? in->nodes[*known - 1] : 0;

		r = speedscope_node(in, parent, in->path[*known], &in->nodes[*known]);
		*known += r == 0;
	}
	if (r == 0)
		out->stack = in->path_count > owners ? in->nodes[in->path_count - 1] : 0;
	return r;
}

struct event {
	struct str type, frame, at;
};

static struct event read_event(struct str json)
{
	static const struct str keys[] = { { "type", 4 }, { "frame", 5 }, { "at", 2 } };
	struct str v[ARRAY_SIZE(keys)] = { { 0 } };

	speedscope_members(json, keys, v, ARRAY_SIZE(keys));
	return (struct event){ v[0], v[1], v[2] };
}

/* @known: how many of the open frames have their node */
static int pass_time(struct speedscope_in *in, __int128 duration, size_t *known)
{
	struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
	int r;

	if (!duration || !in->path_count) { /* nothing ran in between */
		in->passed += duration;
		return 0;
	}
	r = open_stack(in, known, &sample);
	return r ? r : speedscope_sample(in, &sample, duration);
}

static int turn(struct speedscope_in *in, const struct event *event, struct str json, size_t *known)
{
	uint64_t frame;

	if (str_to_u64(event->frame, 0, UINT32_MAX, &frame) < 0)
		return speedscope_bad(in, json, "there is no frame of this number");
	if (str_eq(event->type, STR("\"O\"")))
		return open_frame(in, frame, json);
	if (!str_eq(event->type, STR("\"C\"")))
		return speedscope_bad(in, json, "an event neither opens nor closes a frame");
	if (!in->path_count || in->path[in->path_count - 1] != frame)
		return speedscope_bad(in, json, "an event closes a frame that is not the innermost one");
	in->path_count--;
	*known = MIN(*known, in->path_count);
	return 0;
}

int speedscope_events(struct speedscope_in *in, const struct speedscope_profile *p)
{
	struct str events = p->events, key, json;
	__int128 now = 0, at;
	size_t known = 0;
	int r = 0;

	in->path_count = 0;
	ignore(p->start.len && speedscope_number(p->start, in->to_ns, &now)); /* 0 when it is none */
	while (r == 0 && json_member(&events, &key, &json)) {
		struct event event = read_event(json);

		if (!event.at.len || !speedscope_number(event.at, in->to_ns, &at))
			return speedscope_bad(in, json, "an event has no time");
		if (at < now)
			return speedscope_bad(in, json, "an event is earlier than the one in front of it");
		r = pass_time(in, at - now, &known);
		r = r ? r : turn(in, &event, json, &known);
		r = r ? r : speedscope_limits(in, json);
		now = at;
	}
	if (r == 0 && in->path_count && p->end.len && speedscope_number(p->end, in->to_ns, &at) && at > now)
		r = pass_time(in, at - now, &known); /* frames that are still open at the end */
	return r;
}
