/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include "sink/sink.h"

static const struct sink *file_sink(void)
{
	return sink_find(STR("file"));
}

static void close_sink(struct sink_state **s)
{
	file_sink()->close(*s);
}

int output_write(const struct command *c, const char *path, const char *format, const struct window *w, bool quiet)
{
	const struct sink_config cfg = { .path = path, .format = format };
	scoped(close_sink) struct sink_state *sink = NULL;
	scoped(buf_release) struct buf text = BUF_INIT(KIB(16));
	int r = file_sink()->open(&cfg, &text, &sink);

	if (r < 0) {
		command_fail(c, "%s", text.len ? buf_cstr(&text) : strerror(-r));
		return r == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	}
	r = file_sink()->write(sink, w, &text);
	if (r < 0)
		return command_fail(c, "%s: cannot write: %s", path, strerror(-r));
	if (!quiet && strcmp(path, "-"))
		fprintf(stderr, "hearth %s: wrote %s\n", c->name, buf_cstr(&text));
	return EXIT_DONE;
}
