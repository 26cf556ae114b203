/* SPDX-License-Identifier: Apache-2.0 */
/* hearth convert IN -o OUT: a profile from one format into another. */
#include "base/io.h"
#include "cli/format_names.h"
#include "cli/input.h"
#include "cli/memory.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/python_options.h"
#include "cli/svg_options.h"
#include "cli/value.h"
#include "render/render.h"
#include "sink/format.h"

struct config {
	uint64_t memory_bytes;
	struct opt_list outputs;
	const char *from, *format;
	const char *value;
	bool quiet;
	struct frame_options frames;
	struct svg_options svg;
};

static const struct opt options[] = {
	{ "output", 'o', OPT_LIST, .at = offsetof(struct config, outputs), .arg = "FILE",
	  .help = "where to; the suffix says the format (" SUFFIXES_WRITTEN
		  "; also with .gz behind it); repeatable; - is standard output" },
	{ "format", 0, OPT_TEXT, .at = offsetof(struct config, format), .arg = "NAME",
	  .help = "format of the output: " FORMATS_WRITTEN " (default: by suffix)" },
	{ "from", 0, OPT_TEXT, .at = offsetof(struct config, from), .arg = "FORMAT",
	  .help = "read the input as " FORMATS_READ " (default: by content)" },
	VALUE_OPTION(struct config, value),
	FRAME_OPTIONS(struct config, frames),
	{ "quiet", 'q', OPT_FLAG, .at = offsetof(struct config, quiet), .help = "do not say what was written" },
	MEMORY_OPTION(struct config, memory_bytes),
	{ 0 },
};

static const struct opt svg_options[] = SVG_OPTIONS(struct config, svg);

#define STATUS_NONE (-1)

struct reading {
	struct progress progress;
	const char *path;
};

static void show_reading(void *ctx, uint64_t done, uint64_t total)
{
	struct reading *reading = ctx;
	scoped(buf_release) struct buf what = BUF_INIT(KIB(8));

	buf_addf(&what, "reading %s", reading->path);
	progress_show(&reading->progress, done, total, buf_cstr(&what));
}

/* Folded text into a page needs no model: files with millions of lines go straight into the tree. One that has more
 * than lines of frames and a whole count is left to the codec: STATUS_NONE. */
static int page_of_folded(const struct config *config, const char *path, const char *output, struct str text)
{
	scoped(buf_release) struct buf page = BUF_INIT(GIB(2));
	struct reading reading = { .path = path };
	const struct render_progress progress = { show_reading, &reading };
	const struct render_html_config cfg = { .title = config->svg.title ? config->svg.title : path,
						.progress = &progress };
	uint64_t bad_line = 0;
	char room[160];
	int r;

	progress_begin(&reading.progress, config->quiet);
	r = render_html_folded(text, &cfg, &page, &bad_line);
	progress_end(&reading.progress);
	if (r == -EBADMSG)
		return STATUS_NONE;
	if (r == 0)
		r = strcmp(output, "-") ? io_replace_file(output, page.ptr, page.len)
					: io_write_all(1, page.ptr, page.len);
	if (r < 0)
		return command_fail(&command_convert, "%s: cannot write: %s", output, memory_reason(r, room));
	if (!config->quiet && strcmp(output, "-"))
		fprintf(stderr, "hearth convert: wrote %s\n", output);
	return EXIT_DONE;
}

static bool is_folded(const struct codec *c)
{
	return c && !strcmp(c->name, "folded");
}

/* Return: whether this is folded text into one page, and then *status. */
static bool try_folded(const struct config *config, const char *path, int *status)
{
	scoped(input_bytes_release) struct input_bytes in = { 0 };
	const char *output = config->outputs.items[0];
	const struct codec *to = config->format ? format_find(str_of(config->format)) : format_for_path(str_of(output));

	if (config->value || config->outputs.count != 1 || !to || strcmp(to->name, "html"))
		return false;
	if (!is_folded(config->from ? codec_find(str_of(config->from)) : codec_for_path(str_of(path))))
		return false;
	*status = input_bytes_open(&command_convert, path, &in);
	if (*status != EXIT_DONE)
		return true;
	/* A name such as .txt says little: what looks like another format is left to it. */
	if (!config->from && codec_sniff(in.bytes) && !is_folded(codec_sniff(in.bytes)))
		return false;
	*status = page_of_folded(config, path, output, in.bytes);
	return *status != STATUS_NONE;
}

static int run(void *config_bytes, int operand_count, char **operands)
{
	const struct config *config = config_bytes;
	struct codec_options written = frame_options_get(&config->frames, false);
	scoped(window_release) struct window w = { 0 };
	struct render_svg_config svg;
	int r = svg_options_get(&command_convert, &config->svg, SVG_DELTA_SELF, &svg);

	(void)operand_count;
	if (r != EXIT_DONE)
		return r;
	written.svg = &svg;
	written.title = config->svg.title;
	memory_limit(config->memory_bytes);
	if (!config->outputs.count) {
		command_fail(&command_convert, "give -o FILE: where the result goes");
		return EXIT_USAGE;
	}
	if (try_folded(config, operands[0], &r))
		return r;
	r = input_load(&command_convert, operands[0], config->from, config->quiet, &w);
	if (r == EXIT_DONE)
		r = value_apply(&command_convert, w.model, config->value, &written);
	for (size_t i = 0; i < config->outputs.count && r == EXIT_DONE; i++)
		r = output_write(&command_convert, config->outputs.items[i], config->format, &written, &w,
				 config->quiet);
	return r;
}

static const struct opt_group groups[] = { { NULL, options }, { "Classic flame graphs (.svg)", svg_options }, { 0 } };
static const char *const examples[] = {
	"hearth convert profile.pb.gz -o profile.html",
	"a flame graph page from a pprof file",
	"perf script | stackcollapse-perf.pl | hearth convert - --from folded -o perf.html",
	"from any tool's folded stacks",
	"hearth convert perf.folded --colors java --minwidth 0.5 -o perf.svg",
	"a classic flame graph, with flamegraph.pl's options",
	NULL,
};

const struct command command_convert = {
	.name = "convert",
	.summary = "convert a profile file into another format",
	.operands = "FILE",
	.details = "Reads pprof (also the legacy C++, heap, Go count and contention forms), gProfiler's .col, folded "
		   "stacks,\n"
		   "speedscope's JSON, OTLP profiles, recordings of the JDK, perf.data, the text of perf script\n"
		   "and hearth's own windows. "
		   "Writes " FORMATS_WRITTEN ".",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.operands_min = 1,
	.operands_max = 1,
	.run = run,
};
