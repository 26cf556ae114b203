/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "runtime/launched.h"

/* Files that hold, and links that lead to, the input's bytes. */
static int give(void *self, const char *path, size_t max, struct buf *out)
{
	const struct str *bytes = self;

	(void)path;
	buf_adds(out, str_first(*bytes, max));
	return out->error;
}

static int lead(void *self, const char *path, struct buf *out)
{
	const struct str *bytes = self;

	if (strlen(path) % 3)
		return -EINVAL;
	buf_adds(out, str_first(*bytes, 200));
	return out->error;
}

static int environment(const struct launched *l, size_t max, struct buf *out)
{
	buf_adds(out, str_first(l->argv, max));
	return out->error;
}

static bool wants(void *ctx, struct str argument)
{
	(void)ctx;
	return argument.len % 2;
}

/* The first byte says which program it is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const programs[] = { "/usr/bin/node", "/usr/bin/ruby3.1", "/usr/bin/java" };
	scoped(buf_release) struct buf out = BUF_INIT(KIB(64));
	struct str bytes = str_n((const char *)data + 1, size ? size - 1 : 0);
	const struct target_files files = { .read = give, .link = lead, .self = &bytes };
	struct launched l = { .argv = bytes,
			      .environment = environment,
			      .cwd = STR("/srv"),
			      .files = &files,
			      .wants_argument = wants,
			      .with_spark = true };
	size_t before;

	if (!size)
		return 0;
	l.exe = str_of(programs[data[0] % ARRAY_SIZE(programs)]);
	before = out.len;
	if (launched_app_id(&l, &out) < 0)
		must(out.len == before);
	return 0;
}
