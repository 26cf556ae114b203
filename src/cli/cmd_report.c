/* SPDX-License-Identifier: Apache-2.0 */
/* hearth report FILE: what is in a profile, as text. */
#include <unistd.h>

#include "cli/format_names.h"
#include "cli/input.h"
#include "cli/memory.h"
#include "cli/python_options.h"
#include "cli/terminal_size.h"
#include "cli/value.h"
#include "render/render.h"

struct config {
	uint64_t memory_bytes;
	uint64_t top;
	bool tree, processes, json;
	uint64_t min_percent;
	const char *value, *from;
	struct frame_options frames;
};

static const struct opt options[] = {
	{ "top", 'n', OPT_UINT, .at = offsetof(struct config, top), .max = 1000000, .fallback = "30", .arg = "N",
	  .help = "rows of the function table, 0 for none" },
	{ "tree", 't', OPT_FLAG, .at = offsetof(struct config, tree), .fallback = "true",
	  .help = "show the call tree" },
	{ "processes", 0, OPT_FLAG, .at = offsetof(struct config, processes), .fallback = "true",
	  .help = "show the table of processes" },
	{ "min-percent", 'm', OPT_UINT, .at = offsetof(struct config, min_percent), .max = 100, .fallback = "1",
	  .arg = "N", .help = "leave out branches of the tree below this share, and count them" },
	{ "json", 0, OPT_FLAG, .at = offsetof(struct config, json),
	  .help = "for programs: totals, all functions, processes, counters and how stacks end, as one JSON object; "
		  "options for tables and tree do not count" },
	VALUE_OPTION(struct config, value),
	FRAME_OPTIONS(struct config, frames),
	{ "from", 0, OPT_TEXT, .at = offsetof(struct config, from), .arg = "FORMAT",
	  .help = "read the file as " FORMATS_READ " (default: by content)" },
	MEMORY_OPTION(struct config, memory_bytes),
	{ 0 },
};

static int run(void *config_bytes, int operand_count, char **operands)
{
	const struct config *config = config_bytes;
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(GIB(1));
	struct render_text_config cfg = { .top_count = config->top,
					  .tree_min_percent = config->tree ? (double)config->min_percent : -1,
					  .by_process = config->processes,
					  .width = (int)terminal_width(STDOUT_FILENO),
					  .style = frame_options_get(&config->frames, false).frames };
	char room[160];
	int r;

	(void)operand_count;
	memory_limit(config->memory_bytes);
	r = input_load(&command_report, operands[0], config->from, false, &w);
	if (r == EXIT_DONE)
		r = value_choose(&command_report, w.model, config->value, &cfg.value);
	if (r == EXIT_DONE && !w.model->value_type_count)
		r = command_fail(&command_report, "%s: it has no sample types, so there is nothing to report",
				 operands[0]);
	if (r != EXIT_DONE)
		return r;
	r = config->json ? render_report_json(&w, cfg.value, &cfg.style, &text) : render_text(&w, &cfg, &text);
	if (r < 0)
		return command_fail(&command_report, "%s: %s", operands[0], memory_reason(r, room));
	return command_print(&command_report, &text);
}

static const struct opt_group groups[] = { { NULL, options }, { 0 } };
static const char *const examples[] = {
	"hearth report profile.pb.gz",
	"the hottest functions, the processes and the call tree",
	"hearth report --no-tree -n 10 profile.col",
	"only the ten hottest functions",
	"hearth report --json profile.pb.gz | jq '.functions[:3]'",
	"for programs",
	NULL,
};

const struct command command_report = {
	.name = "report",
	.summary = "show a profile file as text: hottest functions, processes, call tree",
	.operands = "FILE",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.operands_min = 1,
	.operands_max = 1,
	.run = run,
};
