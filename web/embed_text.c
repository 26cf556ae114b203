/* SPDX-License-Identifier: Apache-2.0 */
#include "web/embed_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void die(const char *what, const char *path)
{
	fprintf(stderr, "embed: %s: %s: %s\n", path, what, strerror(errno));
	exit(1);
}

void text_add(struct text *t, const char *bytes, size_t size)
{
	t->ptr = realloc(t->ptr, t->len + size + 1);
	if (!t->ptr)
		die("out of memory", "-");
	memcpy(t->ptr + t->len, bytes, size);
	t->len += size;
	t->ptr[t->len] = 0;
}

void text_adds(struct text *t, const char *string)
{
	text_add(t, string, strlen(string));
}

struct text read_file(const char *path)
{
	struct text t = { NULL, 0 };
	char part[65536];
	size_t n;
	FILE *f = fopen(path, "rb");

	if (!f)
		die("cannot open", path);
	text_add(&t, "", 0);
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		text_add(&t, part, n);
	if (ferror(f))
		die("cannot read", path);
	fclose(f);
	return t;
}

bool starts(const char *line, size_t len, const char *word)
{
	return len >= strlen(word) && !memcmp(line, word, strlen(word));
}

/* One line without what the page does not need; false: nothing of it. */
static bool trim_line(const char **line, size_t *len, bool *in_comment)
{
	while (*len && (**line == '\t' || **line == ' ')) {
		++*line;
		--*len;
	}
	while (*len && ((*line)[*len - 1] == ' ' || (*line)[*len - 1] == '\t'))
		--*len;
	if (*in_comment) {
		*in_comment = !(*len >= 2 && !memcmp(*line + *len - 2, "*/", 2));
		return false;
	}
	if (starts(*line, *len, "/*")) {
		*in_comment = !(*len >= 4 && !memcmp(*line + *len - 2, "*/", 2));
		return false;
	}
	return *len && !starts(*line, *len, "//");
}

bool next_line(const struct text *in, size_t *at, bool *in_comment, const char **line, size_t *len)
{
	while (*at < in->len) {
		const char *end = memchr(in->ptr + *at, '\n', in->len - *at);

		*line = in->ptr + *at;
		*len = end ? (size_t)(end - *line) : in->len - *at;
		*at += *len + 1;
		if (trim_line(line, len, in_comment))
			return true;
	}
	return false;
}

const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
