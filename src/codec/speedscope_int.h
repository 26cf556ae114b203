/* SPDX-License-Identifier: Apache-2.0 */
/* Reading speedscope's JSON: what its parts share. Numbers, frames and stacks are in speedscope_stacks.c, evented
 * profiles in speedscope_events.c, sampled ones and the file in speedscope_decode.c. */
#pragma once

#include "codec/codec.h"

#define SPEEDSCOPE_BILLION INT64_C(1000000000)

/* The values of a profile, as they stand in the text. */
struct speedscope_profile {
	struct str type, name, unit, value_unit, start, end, samples, weights, times, events;
};

struct speedscope_frame {
	struct str json;
	uint32_t location;
	uint32_t name, app_id; /* of an owner: strings */
	uint8_t kind;
	bool is_known;             /* has its location */
	bool is_named, has_app_id; /* name and app_id were read: once, as every stack may begin with the frame */
};

struct speedscope_in {
	struct model *m;
	const char *start;
	const struct codec_limits *limits;
	struct codec_error *error;
	struct speedscope_frame *frames;
	size_t frames_count, frames_cap;
	uint32_t *path; /* frames of one stack, root first */
	size_t path_count, path_cap;
	uint32_t *nodes; /* of the open frames of an evented profile: their stacks in the model */
	size_t nodes_cap;
	struct buf text;
	uint32_t cut; /* string: what the end of a cut stack says */
	uint64_t work, seen;
	size_t size;
	bool is_ours;
	/* of the profile that is being read */
	size_t column;
	uint32_t thread;
	int to_ns;                            /* its values are multiplied by this power of ten */
	bool has_clock;                       /* its values are time that passes */
	__int128 passed;                      /* so far, in billionths */
	uint64_t left[MODEL_VALUE_TYPES_MAX]; /* by column: what rounding has left over, in billionths */
};

/** speedscope_bad - fill the error with where @at lies. Return: -EBADMSG. */
int speedscope_bad(struct speedscope_in *in, struct str at, const char *reason);
/** speedscope_number - @text times 10 to the power of @shift, in billionths; saturates. Return: false when it is no
 * number. */
bool speedscope_number(struct str text, int shift, __int128 *out);
/** speedscope_line - a number of a line; 0 when it is none. */
int64_t speedscope_line(struct str text);
/** speedscope_settle - a value of the column, whole: the total is that of the file, rounded once. @value: billionths */
int64_t speedscope_settle(struct speedscope_in *in, __int128 value);
/** speedscope_text - a string of JSON to one of the model; what is none is empty. */
int speedscope_text(struct speedscope_in *in, struct str value, uint32_t *out) warn_unused;
/** speedscope_key - a string of JSON without its quotes, escapes as they are. */
struct str speedscope_key(struct str key);
/** speedscope_members - the values of some members of an object; of equal ones the last. */
void speedscope_members(struct str json, const struct str *keys, struct str *values, size_t count);

/** speedscope_frames - take the list of all frames. Return: 0, -ENOMEM or -E2BIG. */
int speedscope_frames(struct speedscope_in *in, struct str list) warn_unused;
/** speedscope_push - add a frame to in->path. @at: for the error */
int speedscope_push(struct speedscope_in *in, uint64_t frame, struct str at) warn_unused;
/** speedscope_path - "[0, 5, 7]" into in->path. */
int speedscope_path(struct speedscope_in *in, struct str list) warn_unused;
/** speedscope_owner - the process that the outermost frames of in->path name. @out: how many do; the others are frames
 * as all are */
int speedscope_owner(struct speedscope_in *in, uint32_t *process, size_t *out) warn_unused;
/** speedscope_stack - the stack of in->path from frame @from on, without what is beyond the depth that is allowed. */
int speedscope_stack(struct speedscope_in *in, size_t from, struct model_sample *out) warn_unused;
/** speedscope_node - the stack of frame @index below @parent. */
int speedscope_node(struct speedscope_in *in, uint32_t parent, uint32_t index, uint32_t *out) warn_unused;

/** speedscope_sample - @value: in billionths of the column's unit */
int speedscope_sample(struct speedscope_in *in, struct model_sample *sample, __int128 value) warn_unused;
/** speedscope_limits - whether there is room for more. @at: how far the text was read */
int speedscope_limits(struct speedscope_in *in, struct str at) warn_unused;
/** speedscope_events - read an evented profile. */
int speedscope_events(struct speedscope_in *in, const struct speedscope_profile *p) warn_unused;
