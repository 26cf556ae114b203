/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered pictures of a session's flame graph while it grows (hearth profile -E): one each so many parts of a second,
 * written as it is made. The windows' samples need times (session_config.sample_times). */
#pragma once

#include "cli/command.h"
#include "model/window.h"

#define PICTURE_RATE_MAX 60

struct picture_frames_config {
	const char *pattern; /* of file names; checked by picture_frames_check() */
	uint64_t rate;       /* a second */
	uint64_t max;        /* pictures; 0: any number */
	uint32_t width, height;
	bool shimmer; /* colours that move, as go-profile's */
};

/** picture_frames_check - does @pattern have exactly one %d, %4d or %04d? Return: 0 or -EINVAL. */
int picture_frames_check(const char *pattern) warn_unused;
/** picture_size_parse - "1024x800". Return: 0 or -EINVAL. */
int picture_size_parse(struct str text, uint32_t *width, uint32_t *height) warn_unused;

struct picture_frames;

/** picture_frames_open - makes the folder. Return: EXIT_DONE, or EXIT_FAILED after saying why. */
int picture_frames_open(const struct command *c, const struct picture_frames_config *config,
			struct picture_frames **out) warn_unused;
/** picture_frames_add - the pictures of the times that @w covers. */
void picture_frames_add(struct picture_frames *f, const struct window *w);
/** picture_frames_finish - says how many there are. Return: EXIT_DONE, or EXIT_FAILED when one could not be written. */
int picture_frames_finish(struct picture_frames *f);
void picture_frames_free(struct picture_frames *f); /* NULL is fine */
