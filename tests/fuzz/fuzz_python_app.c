/* SPDX-License-Identifier: Apache-2.0 */
/* A command line, and behind two NULs the ini file that any path of it names. Every third link goes somewhere. */
#include "fuzz.h"

#include "runtime/python/app.h"

static int any_file(void *self, const char *path, size_t max, struct buf *out)
{
	const struct str *text = self;

	(void)path;
	if (text->len > max)
		return -E2BIG;
	buf_adds(out, *text);
	return out->error;
}

static int any_link(void *self, const char *path, struct buf *out)
{
	const struct str *text = self;

	if (strlen(path) % 3 || !text->len)
		return -EINVAL;
	buf_adds(out, str_first(*text, strlen(path) % 17));
	return out->error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str all = str_n((const char *)data, size), text = STR("");
	ptrdiff_t end = str_search(all, STR("\0\0"));
	struct target_files files = { any_file, any_link, &text };
	struct python_app app = { .argv = all, .cwd = STR("/my/dir"), .files = &files };
	scoped(buf_release) struct buf out = BUF_INIT(KIB(64));
	int r;

	if (end >= 0) {
		app.argv = str_first(all, (size_t)end + 1);
		text = str_skip(all, (size_t)end + 2);
	}
	r = python_app_id(&app, &out);
	must(r == 0 ? out.len > 0 : !out.len);
	return 0;
}
