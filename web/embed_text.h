/* SPDX-License-Identifier: Apache-2.0 */
/* What the build step of web/ is made of: text that grows, and lines of a source without what no browser needs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct text {
	char *ptr; /* ends with a zero byte that is not counted; NULL: empty */
	size_t len;
};

/** die - one line with errno's words, and exit status 1. */
_Noreturn void die(const char *what, const char *path);

void text_add(struct text *t, const char *bytes, size_t size);
void text_adds(struct text *t, const char *string);

/** read_file - the whole file, for the caller to free; ends the program on failure. */
struct text read_file(const char *path);

/** starts - whether the line begins with @word. */
bool starts(const char *line, size_t len, const char *word);

/**
 * next_line - the next line that is more than space or comment, without indentation and without its end
 * @at: where to go on, 0 at first; *in_comment: false at first
 *
 * No module has a template literal of several lines, so that leading space and lines that look like comments mean
 * nothing. Return: false at the end.
 */
bool next_line(const struct text *in, size_t *at, bool *in_comment, const char **line, size_t *len);

/** base_name - behind the last slash. */
const char *base_name(const char *path);
