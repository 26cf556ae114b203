/* SPDX-License-Identifier: Apache-2.0 */
/* hearth merge FILE... -o OUT: the sum of several profiles. */
#include "cli/input.h"
#include "cli/output.h"
#include "cli/python_options.h"

struct config {
	struct opt_list outputs;
	const char *from, *format;
	bool quiet;
	struct frame_options frames;
};

static const struct opt options[] = {
	{ "output", 'o', OPT_LIST, .at = offsetof(struct config, outputs), .arg = "FILE",
	  .help = "where to; the suffix says the format; repeatable; - is standard output" },
	{ "format", 0, OPT_TEXT, .at = offsetof(struct config, format), .arg = "NAME",
	  .help = "format of the output: html, pprof, col, folded or window (default: by suffix)" },
	{ "from", 0, OPT_TEXT, .at = offsetof(struct config, from), .arg = "FORMAT",
	  .help = "read the inputs as pprof, col, folded, window or legacy (default: by content)" },
	FRAME_OPTIONS(struct config, frames),
	{ "quiet", 'q', OPT_FLAG, .at = offsetof(struct config, quiet), .help = "do not say what was written" },
	{ 0 },
};

/* Counters of both add up; times span both. */
static int add_metadata(struct window *into, const struct window *from)
{
	int r = 0;

	if (from->start_ns && (!into->start_ns || from->start_ns < into->start_ns))
		into->start_ns = from->start_ns;
	into->end_ns = MAX(into->end_ns, from->end_ns);
	into->busy_ns += from->busy_ns;
	for (size_t i = 0; i < from->counter_count && r == 0; i++) {
		struct str name = str_of(from->counters[i].name);

		r = window_set_counter(into, name, window_counter(into, name) + from->counters[i].value);
	}
	return r;
}

static int add_file(const struct config *config, const char *path, struct window *sum)
{
	scoped(window_release) struct window w = { 0 };
	int r = input_load(&command_merge, path, config->from, &w);

	if (r != EXIT_DONE)
		return r;
	r = model_merge(sum->model, w.model);
	if (r == -EINVAL)
		return command_fail(&command_merge, "%s: its value types differ from those of the files before", path);
	if (r == 0)
		r = add_metadata(sum, &w);
	return r < 0 ? command_fail(&command_merge, "%s: %s", path, strerror(-r)) : EXIT_DONE;
}

static int run(void *config_bytes, int operand_count, char **operands)
{
	const struct config *config = config_bytes;
	const struct codec_options written = frame_options_get(&config->frames);
	scoped(window_release) struct window sum = { 0 };
	int r;

	if (!config->outputs.count) {
		command_fail(&command_merge, "give -o FILE: where the result goes");
		return EXIT_USAGE;
	}
	r = input_load(&command_merge, operands[0], config->from, &sum);
	for (int i = 1; i < operand_count && r == EXIT_DONE; i++)
		r = add_file(config, operands[i], &sum);
	if (r == EXIT_DONE && model_coalesce(sum.model) < 0)
		r = command_fail(&command_merge, "out of memory");
	for (size_t i = 0; i < config->outputs.count && r == EXIT_DONE; i++)
		r = output_write(&command_merge, config->outputs.items[i], config->format, &written, &sum,
				 config->quiet);
	return r;
}

static const struct opt_group groups[] = { { NULL, options }, { 0 } };
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
