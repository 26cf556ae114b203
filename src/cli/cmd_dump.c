/* SPDX-License-Identifier: Apache-2.0 */
/* hearth dump FILE: every sample, location and mapping of a profile, as text (the form of pprof's golden files). */
#include <unistd.h>

#include "cli/input.h"
#include "render/render.h"

struct config {
	const char *from;
};

static const struct opt options[] = {
	{ "from", 0, OPT_TEXT, .at = offsetof(struct config, from), .arg = "FORMAT",
	  .help = "read the file as pprof, col, folded, window or legacy (default: by content)" },
	{ 0 },
};

static int run(void *config_bytes, int operand_count, char **operands)
{
	const struct config *config = config_bytes;
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(GIB(2));
	int r = input_load(&command_dump, operands[0], config->from, &w);

	(void)operand_count;
	if (r != EXIT_DONE)
		return r;
	r = render_dump(&w, isatty(STDOUT_FILENO), &text);
	if (r < 0)
		return command_fail(&command_dump, "%s: %s", operands[0], strerror(-r));
	return command_print(&command_dump, &text);
}

static const struct opt_group groups[] = { { NULL, options }, { 0 } };
static const char *const examples[] = { "hearth dump profile.pb.gz", "all of it, one sample a line", NULL };

const struct command command_dump = {
	.name = "dump",
	.summary = "show everything in a profile file, sample by sample",
	.operands = "FILE",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.operands_min = 1,
	.operands_max = 1,
	.run = run,
};
