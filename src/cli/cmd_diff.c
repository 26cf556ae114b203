/* SPDX-License-Identifier: Apache-2.0 */
/* hearth diff BEFORE NOW: what changed from one profile to another. */
#include <unistd.h>

#include "base/io.h"
#include "cli/input.h"
#include "cli/memory.h"
#include "cli/output.h"
#include "cli/python_options.h"
#include "cli/sum.h"
#include "cli/svg_options.h"
#include "cli/terminal_size.h"
#include "cli/value.h"
#include "render/diff.h"
#include "render/render.h"
#include "sink/format.h"

struct config {
	uint64_t memory_bytes, top;
	struct opt_list outputs;
	const char *from, *format, *value;
	uint8_t normalize;
	bool quiet, compat;
	size_t order; /* enum diff_order */
	struct frame_options frames;
	struct svg_options svg;
};

static const char *const order_names[] = { [DIFF_BY_FLAT] = "flat", [DIFF_BY_CUM] = "cum", NULL };

static const struct opt options[] = {
	{ "output", 'o', OPT_LIST, .at = offsetof(struct config, outputs), .arg = "FILE",
	  .help = "where to; the suffix says the format (.html .svg .pb.gz .folded .hwin); repeatable; - is standard "
		  "output (default: text, to standard output)" },
	{ "format", 0, OPT_TEXT, .at = offsetof(struct config, format), .arg = "NAME",
	  .help = "format of the output: text, html, svg, pprof, folded or window (default: by suffix)" },
	{ "normalize", 0, OPT_SWITCH, .at = offsetof(struct config, normalize),
	  .help = "as if both had the same total: text, svg and folded scale the first to the second, pprof and window "
		  "the second to the first (default: only svg)" },
	{ "top", 'n', OPT_UINT, .at = offsetof(struct config, top), .max = 1000000, .fallback = "30", .arg = "N",
	  .help = "rows of the table of functions, 0 for none" },
	{ "sort", 0, OPT_CHOICE, .at = offsetof(struct config, order), .choices = order_names, .fallback = "flat",
	  .arg = "NAME", .help = "order the functions by the change of their own value, or with all they call" },
	VALUE_OPTION(struct config, value),
	COMPAT_OPTION(struct config, compat),
	{ "from", 0, OPT_TEXT, .at = offsetof(struct config, from), .arg = "FORMAT",
	  .help = "read the inputs as this format (default: by content)" },
	FRAME_OPTIONS(struct config, frames),
	{ "quiet", 'q', OPT_FLAG, .at = offsetof(struct config, quiet), .help = "do not say what was written" },
	MEMORY_OPTION(struct config, memory_bytes),
	{ 0 },
};

static const struct opt svg_options[] = SVG_OPTIONS(struct config, svg);

struct diff {
	const struct config *config;
	const char *before_name, *now_name;
	struct window before, now;
	struct codec_options written;
	struct render_svg_config svg;
};

static void diff_release(struct diff *d)
{
	window_release(&d->before);
	window_release(&d->now);
}

static int fail(const char *path, int error)
{
	char room[160];

	return command_fail(&command_diff, "%s: %s", path, memory_reason(error, room));
}

static bool same_types(const struct model *a, const struct model *b)
{
	bool same = a->value_type_count == b->value_type_count;

	for (size_t i = 0; same && i < a->value_type_count; i++)
		same = str_eq(model_string(a, a->value_types[i].type), model_string(b, b->value_types[i].type)) &&
		       str_eq(model_string(a, a->value_types[i].unit), model_string(b, b->value_types[i].unit));
	return same;
}

static int load(struct diff *d, const char *path, struct window *out)
{
	int r = input_load(&command_diff, path, d->config->from, d->config->quiet, out);

	if (r == EXIT_DONE && !out->model->value_type_count)
		return command_fail(&command_diff, "%s: it has no sample types", path);
	return r;
}

static int load_both(struct diff *d)
{
	int r = load(d, d->before_name, &d->before);

	r = r == EXIT_DONE ? load(d, d->now_name, &d->now) : r;
	if (r != EXIT_DONE)
		return r;
	if (d->config->compat && !same_types(d->now.model, d->before.model) &&
	    model_keep_common(d->now.model, d->before.model) < 0)
		return command_fail(&command_diff, "%s: it shares no value type with the file before", d->now_name);
	return EXIT_DONE;
}

static struct str unit_of(const struct model *m, size_t value)
{
	return model_string(m, m->value_types[value].unit);
}

/* The column of @m that is called like column @value of @like and has its unit. */
static int column_like(const struct model *m, const struct model *like, size_t value)
{
	int found = model_value_index(m, model_string(like, like->value_types[value].type));

	return found >= 0 && str_eq(unit_of(m, (size_t)found), unit_of(like, value)) ? found : -1;
}

/* @value: of the second, which the first has not. */
static int fail_columns(const struct diff *d, size_t value)
{
	const struct model *m = d->now.model, *before = d->before.model;
	struct str type = model_string(m, m->value_types[value].type);
	int same = model_value_index(before, type);

	if (same < 0)
		return command_fail(&command_diff, "%s: it has no sample type that it could be compared by",
				    d->before_name);
	return command_fail(&command_diff, "%s: its '" STR_FMT "' is in '" STR_FMT "', that of %s in '" STR_FMT "'",
			    d->before_name, STR_ARG(type), STR_ARG(unit_of(before, (size_t)same)), d->now_name,
			    STR_ARG(unit_of(m, value)));
}

/* The columns that the table compares: what --value says, else what the second shows, else what both have. */
static int choose_values(const struct diff *d, size_t *before, size_t *now)
{
	const struct model *m = d->now.model;
	int r = value_choose(&command_diff, m, d->config->value, now), found;
	size_t wanted;

	if (r != EXIT_DONE)
		return r;
	wanted = *now;
	found = column_like(d->before.model, m, *now);
	for (size_t i = m->value_type_count; !d->config->value && found < 0 && i-- > 0;) {
		found = column_like(d->before.model, m, i);
		*now = i;
	}
	if (found < 0)
		return fail_columns(d, wanted);
	*before = (size_t)found;
	return EXIT_DONE;
}

static bool normalizes(const struct config *config, bool usually)
{
	return config->normalize == OPT_SWITCH_UNSET ? usually : config->normalize == OPT_SWITCH_ON;
}

/* Outputs */

/* @text into a file or to standard output. */
static int put(const struct diff *d, const char *path, const struct buf *text)
{
	char room[160];
	int r;

	if (!strcmp(path, "-"))
		return command_print(&command_diff, text);
	r = io_replace_file(path, text->ptr, text->len);
	if (r < 0)
		return command_fail(&command_diff, "%s: cannot write: %s", path, memory_reason(r, room));
	if (!d->config->quiet)
		fprintf(stderr, "hearth diff: wrote %s\n", path);
	return EXIT_DONE;
}

static int write_page(const struct diff *d, const char *path, const char *format)
{
	scoped(buf_release) struct buf page = BUF_INIT(GIB(2)), title = BUF_INIT(KIB(64));
	struct render_html_diff both = {
		.before = &d->before, .now = &d->now, .before_name = d->before_name, .now_name = d->now_name
	};
	struct render_html_config cfg = { .title = d->written.title, .style = d->written.frames };
	int r = choose_values(d, &both.before_value, &both.now_value);

	(void)format;
	if (r != EXIT_DONE)
		return r;
	buf_addf(&title, "%s, compared with %s", d->now_name, d->before_name);
	if (!cfg.title)
		cfg.title = buf_cstr(&title);
	r = render_html_diff(&both, &cfg, &page);
	return r < 0 ? fail(path, r) : put(d, path, &page);
}

static int write_text(const struct diff *d, const char *path)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(256));
	struct diff_text_config cfg = { .before_name = d->before_name,
					.now_name = d->now_name,
					.top_count = d->config->top,
					.order = (enum diff_order)d->config->order,
					.normalize = normalizes(d->config, false),
					.style = d->written.frames };
	int r = choose_values(d, &cfg.before_value, &cfg.now_value);

	if (r != EXIT_DONE)
		return r;
	if (!strcmp(path, "-"))
		cfg.width = (int)terminal_width(STDOUT_FILENO);
	r = diff_text(&d->before, &d->now, &cfg, &text);
	if (r < 0)
		return fail(d->now_name, r);
	return put(d, path, &text);
}

/* Both profiles have to show the same column. */
static int write_pairs(const struct diff *d, const char *path, const char *format)
{
	scoped(diff_pairs_release) struct diff_pairs pairs = { 0 };
	struct codec_options how = d->written, written = d->written;
	struct render_svg_config svg = d->svg;
	const struct model *m = d->now.model;
	scoped(freep) char *name = NULL;
	size_t column = 0, unused;
	struct codec_lost lost = { 0 };
	int r = EXIT_DONE;

	how.lost = &lost;
	if (how.value)
		r = value_choose(&command_diff, m, how.value, &column);
	else
		column = model_count_value(m);
	if (r == EXIT_DONE && column_like(d->before.model, m, column) < 0)
		r = choose_values(d, &unused, &column);
	if (r != EXIT_DONE)
		return r;
	name = str_dup(model_string(m, m->value_types[column].type));
	if (!name)
		return fail(path, -ENOMEM);
	how.value = name;
	r = diff_pairs_make(&d->before, &d->now, &how, normalizes(d->config, !strcmp(format, "svg")), &pairs);
	if (r < 0)
		return fail(path, r);
	if (lost.text[0])
		(void)command_fail(&command_diff, "%s: %s", path, lost.text); /* said, but nothing failed */
	written.value = NULL;
	svg.gone_count = pairs.gone;
	written.svg = &svg;
	return output_write(&command_diff, path, format, &written, &pairs.window, d->config->quiet);
}

static int write_profile(const struct diff *d, const char *path, const char *format)
{
	scoped(window_release) struct window w = { 0 };
	struct codec_options written = d->written;
	int r = diff_profile(&d->before, &d->now, normalizes(d->config, false), &w);

	if (r == -EINVAL)
		return command_fail(&command_diff,
				    "%s: its value types differ from those of the file before; --compat compares what "
				    "they share",
				    d->now_name);
	if (r < 0)
		return fail(path, r);
	r = value_apply(&command_diff, w.model, d->config->value, &written);
	return r == EXIT_DONE ? output_write(&command_diff, path, format, &written, &w, d->config->quiet) : r;
}

static const struct {
	const char *name;
	int (*write)(const struct diff *d, const char *path, const char *format);
} formats[] = {
	{ "html", write_page },     { "svg", write_pairs },      { "folded", write_pairs },
	{ "pprof", write_profile }, { "window", write_profile },
};

static int usage(const char *what, const char *name)
{
	command_fail(&command_diff,
		     "%s '%s' does not say how: a difference is written as text, html, svg, pprof, folded or window",
		     what, name);
	return EXIT_USAGE;
}

/* The format of one output. Return: NULL when there is none. */
static const char *format_of(const struct config *config, const char *path)
{
	const struct codec *by_path = config->format || !strcmp(path, "-") ? NULL : format_for_path(str_of(path));
	const char *name = config->format       ? config->format
			   : by_path            ? by_path->name
			   : !strcmp(path, "-") ? "text"
						: NULL;

	if (name && !strcmp(name, "text"))
		return name;
	for (size_t i = 0; name && i < ARRAY_SIZE(formats); i++)
		if (!strcmp(name, formats[i].name))
			return formats[i].name;
	return NULL;
}

static int check_formats(const struct config *config, const struct opt_list *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		if (!format_of(config, paths->items[i]))
			return config->format ? usage("--format", config->format) : usage("the name", paths->items[i]);
	return EXIT_DONE;
}

static int write_one(const struct diff *d, const char *path)
{
	const char *format = format_of(d->config, path);

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(format, formats[i].name))
			return formats[i].write(d, path, format);
	return write_text(d, path);
}

static int run(void *config_bytes, int operand_count, char **operands)
{
	const struct config *config = config_bytes;
	static const struct opt_list to_stdout = { .items = { "-" }, .count = 1 };
	const struct opt_list *paths = config->outputs.count ? &config->outputs : &to_stdout;
	scoped(diff_release) struct diff d = { .config = config,
					       .before_name = operands[0],
					       .now_name = operands[1],
					       .written = frame_options_get(&config->frames, false) };
	int r = svg_options_get(&command_diff, &config->svg, SVG_DELTA_TOTAL, &d.svg);

	(void)operand_count;
	r = r == EXIT_DONE ? check_formats(config, paths) : r;
	if (r == EXIT_DONE && !strcmp(operands[0], "-") && !strcmp(operands[1], "-")) {
		command_fail(&command_diff, "standard input can be only one of the two");
		return EXIT_USAGE;
	}
	if (r != EXIT_DONE)
		return r;
	d.written.value = config->value;
	d.written.title = config->svg.title;
	memory_limit(config->memory_bytes);
	r = load_both(&d);
	for (size_t i = 0; i < paths->count && r == EXIT_DONE; i++)
		r = write_one(&d, paths->items[i]);
	return r;
}

static const struct opt_group groups[] = { { NULL, options }, { "Classic flame graphs (.svg)", svg_options }, { 0 } };
static const char *const examples[] = {
	"hearth diff before.pb.gz after.pb.gz",
	"totals, and the functions that changed most",
	"hearth diff before.pb.gz after.pb.gz -o diff.html",
	"both in one page, coloured by what changed",
	"hearth diff before.col after.col -o diff.svg",
	"a flame graph of the second, coloured by what changed",
	"hearth diff a.folded b.folded -o - --format folded | flamegraph.pl > diff.svg",
	"stacks with both counts, as difffolded.pl writes them",
	"hearth diff a.pb.gz b.pb.gz -o diff.pb.gz && go tool pprof -top diff.pb.gz",
	"one profile subtracted from the other",
	NULL,
};

const struct command command_diff = {
	.name = "diff",
	.summary = "compare two profile files: what changed from the first to the second",
	.operands = "BEFORE NOW",
	.details = "Reads what convert reads; - is standard input. The exit status is 0 whether they differ or not.",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.operands_min = 2,
	.operands_max = 2,
	.run = run,
};
