/* SPDX-License-Identifier: Apache-2.0 */
/* hearth merge FILE... -o OUT: the sum of several profiles. */
#include "cli/input.h"
#include "cli/memory.h"
#include <sys/stat.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/python_options.h"
#include "cli/value.h"

#define STRINGS_MAX GIB(1)

struct config {
	uint64_t memory_bytes;
	struct opt_list outputs;
	const char *from, *format;
	const char *value;
	bool quiet, compat;
	struct frame_options frames;
};

static const struct opt options[] = {
	{ "output", 'o', OPT_LIST, .at = offsetof(struct config, outputs), .arg = "FILE",
	  .help = "where to; the suffix says the format; repeatable; - is standard output" },
	{ "format", 0, OPT_TEXT, .at = offsetof(struct config, format), .arg = "NAME",
	  .help = "format of the output: html, pprof, col, folded or window (default: by suffix)" },
	{ "from", 0, OPT_TEXT, .at = offsetof(struct config, from), .arg = "FORMAT",
	  .help = "read the inputs as pprof, col, folded, window or legacy (default: by content)" },
	VALUE_OPTION(struct config, value),
	{ "compat", 0, OPT_FLAG, .at = offsetof(struct config, compat),
	  .help = "where value types differ, keep those that all files have" },
	FRAME_OPTIONS(struct config, frames),
	{ "quiet", 'q', OPT_FLAG, .at = offsetof(struct config, quiet), .help = "do not say what was written" },
	MEMORY_OPTION(struct config, memory_bytes),
	{ 0 },
};

/* Counters of both add up. */
static int add_metadata(struct window *into, const struct window *from)
{
	int r = 0;

	window_add_times(into, from, !into->start_ns);
	into->busy_ns += from->busy_ns;
	for (size_t i = 0; i < from->counter_count && r == 0; i++) {
		struct str name = str_of(from->counters[i].name);

		r = window_set_counter(into, name, window_counter(into, name) + from->counters[i].value);
	}
	return r;
}

/* The sum begins empty and takes @sum's own samples as it takes those of the other files: without rows of zeros, time
 * offsets, and mappings that nothing uses, with room for the others' strings. */
static int begin_sum(struct window *sum)
{
	scoped(model_release) struct model first = *sum->model;
	struct model empty = { 0 };
	char room[160];
	int r = model_init(&empty, STRINGS_MAX);

	empty.memory_max = first.memory_max;
	*sum->model = empty; /* of no size when that failed */
	r = r ? r : model_merge(sum->model, &first);
	return r < 0 ? command_fail(&command_merge, "%s", memory_reason(r, room)) : EXIT_DONE;
}

static int add_file(const struct config *config, const char *path, struct window *sum)
{
	scoped(window_release) struct window w = { 0 };
	char room[160];
	int r = input_load(&command_merge, path, config->from, true, &w);

	if (r != EXIT_DONE)
		return r;
	r = model_merge(sum->model, w.model);
	if (r == -EINVAL && config->compat) {
		r = model_keep_common(sum->model, w.model);
		r = r ? r : model_merge(sum->model, w.model);
	}
	if (r == -EINVAL)
		return command_fail(&command_merge, "%s: %s", path,
				    config->compat ? "it shares no value type with the files before"
						   : "its value types differ from those of the files before; --compat "
						     "merges what they share");
	if (r == 0)
		r = add_metadata(sum, &w);
	return r < 0 ? command_fail(&command_merge, "%s: %s", path, memory_reason(r, room)) : EXIT_DONE;
}

/* What a file adds to the work; 0: unknown. */
static uint64_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

static int run(void *config_bytes, int operand_count, char **operands)
{
	const struct config *config = config_bytes;
	struct codec_options written = frame_options_get(&config->frames, false);
	scoped(window_release) struct window sum = { 0 };
	struct progress progress;
	uint64_t done = 0, total = 0;
	int r;

	memory_limit(config->memory_bytes);
	if (!config->outputs.count) {
		command_fail(&command_merge, "give -o FILE: where the result goes");
		return EXIT_USAGE;
	}
	progress_begin(&progress, config->quiet);
	for (int i = 0; i < operand_count; i++)
		total += size_of(operands[i]);
	r = input_load(&command_merge, operands[0], config->from, true, &sum);
	if (r == EXIT_DONE && operand_count > 1)
		r = begin_sum(&sum);
	if (r == EXIT_DONE)
		sum.model->duration_ns = (int64_t)MIN(window_duration_ns(&sum), (uint64_t)INT64_MAX);
	for (int i = 1; i < operand_count && r == EXIT_DONE; i++) {
		progress_show(&progress, done += size_of(operands[i - 1]), total, operands[i]);
		r = add_file(config, operands[i], &sum);
	}
	progress_end(&progress);
	if (r == EXIT_DONE && model_coalesce(sum.model) < 0)
		r = command_fail(&command_merge, "out of memory");
	if (r == EXIT_DONE)
		r = value_apply(&command_merge, sum.model, config->value, &written);
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
