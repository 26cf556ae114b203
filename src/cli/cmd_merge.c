/* SPDX-License-Identifier: Apache-2.0 */
/* hearth merge FILE... -o OUT: the sum of several profiles. */
#include "cli/format_names.h"
#include "cli/memory.h"
#include "cli/output.h"
#include "cli/python_options.h"
#include "cli/sum.h"
#include "cli/svg_options.h"
#include "cli/value.h"

struct config {
	uint64_t memory_bytes;
	struct opt_list outputs;
	const char *from, *format;
	const char *value;
	bool quiet, compat;
	struct frame_options frames;
	struct svg_options svg;
};

static const struct opt options[] = {
	{ "output", 'o', OPT_LIST, .at = offsetof(struct config, outputs), .arg = "FILE",
	  .help = "where to; the suffix says the format; repeatable; - is standard output" },
	{ "format", 0, OPT_TEXT, .at = offsetof(struct config, format), .arg = "NAME",
	  .help = "format of the output: " FORMATS_WRITTEN " (default: by suffix)" },
	{ "from", 0, OPT_TEXT, .at = offsetof(struct config, from), .arg = "FORMAT",
	  .help = "read the inputs as " FORMATS_READ " (default: by content)" },
	VALUE_OPTION(struct config, value),
	COMPAT_OPTION(struct config, compat),
	FRAME_OPTIONS(struct config, frames),
	{ "quiet", 'q', OPT_FLAG, .at = offsetof(struct config, quiet), .help = "do not say what was written" },
	MEMORY_OPTION(struct config, memory_bytes),
	{ 0 },
};

static const struct opt svg_options[] = SVG_OPTIONS(struct config, svg);

static int run(void *config_bytes, int operand_count, char **operands)
{
	const struct config *config = config_bytes;
	struct codec_options written = frame_options_get(&config->frames, false);
	const struct sum_options how = { .from = config->from, .compat = config->compat, .quiet = config->quiet };
	scoped(window_release) struct window sum = { 0 };
	struct render_svg_config svg;
	int r = svg_options_get(&command_merge, &config->svg, SVG_DELTA_SELF, &svg);

	if (r != EXIT_DONE)
		return r;
	written.svg = &svg;
	written.title = config->svg.title;
	memory_limit(config->memory_bytes);
	if (!config->outputs.count) {
		command_fail(&command_merge, "give -o FILE: where the result goes");
		return EXIT_USAGE;
	}
	r = sum_load(&command_merge, &how, operands, operand_count, &sum);
	if (r == EXIT_DONE && model_coalesce(sum.model) < 0)
		r = command_fail(&command_merge, "out of memory");
	if (r == EXIT_DONE)
		r = value_apply(&command_merge, sum.model, config->value, &written);
	for (size_t i = 0; i < config->outputs.count && r == EXIT_DONE; i++)
		r = output_write(&command_merge, config->outputs.items[i], config->format, &written, &sum,
				 config->quiet);
	return r;
}

static const struct opt_group groups[] = { { NULL, options }, { "Classic flame graphs (.svg)", svg_options }, { 0 } };
static const char *const examples[] = { "hearth merge a.pb.gz b.pb.gz -o both.pb.gz", "the sum of two profiles", NULL };

const struct command command_merge = {
	.name = "merge",
	.summary = "add up several profile files",
	.operands = "FILE...",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.operands_min = 1,
	.operands_max = -1,
	.run = run,
};
