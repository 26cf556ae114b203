/* SPDX-License-Identifier: Apache-2.0 */
/* hearth view FILE...: profile files in the browser. They are put into a store in memory, one profile a file, and shown
 * by the collector's pages. */
#include <inttypes.h>
#include <stdarg.h>
#include <sys/resource.h>

#include "base/utf8.h"
#include "cli/format_names.h"
#include "cli/input.h"
#include "cli/memory.h"
#include "cli/sum.h"
#include "cli/value.h"
#include "cli/view_server.h"
#include "collector/serve.h"
#include "net/http_parse.h"
#include "query/params.h"

#define NAME_MAX_BYTES 200
#define FACT_MAX_BYTES 300
#define FACTS_MAX KIB(8)

struct config {
	uint64_t memory_bytes;
	const char *addr, *base, *value, *from;
	bool browser, compat, quiet;
};

static const struct opt options[] = {
	{ "base", 'b', OPT_PATH, .at = offsetof(struct config, base), .arg = "FILE", .help = "compare with this file" },
	{ "addr", 0, OPT_TEXT, .at = offsetof(struct config, addr), .fallback = "127.0.0.1:0", .arg = "HOST:PORT",
	  .help = "where to listen; port 0: a free one" },
	{ "browser", 0, OPT_FLAG, .at = offsetof(struct config, browser), .fallback = "true",
	  .help = "open a browser, where there is a display (xdg-open)" },
	VALUE_OPTION(struct config, value),
	{ "from", 0, OPT_TEXT, .at = offsetof(struct config, from), .arg = "FORMAT",
	  .help = "read the files as " FORMATS_READ " (default: by content)" },
	COMPAT_OPTION(struct config, compat),
	{ "quiet", 'q', OPT_FLAG, .at = offsetof(struct config, quiet), .help = "no progress while files are read" },
	MEMORY_OPTION(struct config, memory_bytes),
	{ 0 },
};

/* A file, or several as one. */
struct input {
	struct window window;
	struct buf name, facts;
	struct collector_file shown; /* borrows from both */
};

#define INPUT_INIT                                                     \
	{                                                              \
		.name = BUF_INIT(KIB(4)), .facts = BUF_INIT(FACTS_MAX) \
	}

static void input_release(struct input *in)
{
	window_release(&in->window);
	buf_release(&in->name);
	buf_release(&in->facts);
}

struct view {
	const struct config *config;
	struct rlimit browser_data; /* as it was before our own limit */
	struct str host;
	int listen_fd;
	struct store_state *state;
	struct input main, base;
	struct collector_shown shown;
};

static void view_release(struct view *v)
{
	closep(&v->listen_fd);
	store_memory.close(v->state);
	input_release(&v->main);
	input_release(&v->base);
}

/* Reading */

/* What the pages say about a file besides its stacks. */

static void add_fact(struct input *in, struct str key, size_t begin)
{
	struct str value = str_skip(buf_str(&in->facts), begin);

	if (value.len && in->shown.fact_count < COLLECTOR_FACTS_MAX)
		in->shown.facts[in->shown.fact_count++] = (struct store_label){ key, value };
}

static void add_fact_text(struct input *in, struct str key, const char *text)
{
	size_t begin = in->facts.len;

	utf8_clean(&in->facts, str_first(str_of(text ? text : ""), FACT_MAX_BYTES), 0);
	add_fact(in, key, begin);
}

__attribute__((format(printf, 3, 4))) static void add_fact_format(struct input *in, struct str key, const char *format,
								  ...)
{
	char text[64];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	add_fact_text(in, key, text);
}

/* Room for all of the text is made first, so views of it stay. */
static int add_facts(struct input *in, bool is_sum)
{
	const struct window *w = &in->window;
	uint64_t samples = window_counter(w, STR("samples")), duration_ns = window_duration_ns(w);

	if (!buf_reserve(&in->facts, FACTS_MAX - 1))
		return command_fail(&command_view, "out of memory");
	if (w->start_ns) {
		clock_add_iso(&in->facts, w->start_ns);
		buf_adds(&in->facts, STR(" UTC"));
	}
	add_fact(in, STR("start"), 0);
	if (duration_ns)
		add_fact_format(in, STR("duration"), "%.1f s", (double)duration_ns / (double)NSEC_PER_SEC);
	if (w->frequency_hz)
		add_fact_format(in, STR("rate"), "%" PRIu32 " Hz", w->frequency_hz);
	if (samples)
		add_fact_format(in, STR("samples lost"), "%" PRIu64, window_lost_samples(w));
	if (is_sum)
		return EXIT_DONE;
	add_fact_text(in, STR("command"), w->command);
	add_fact_text(in, STR("host"), w->host);
	return EXIT_DONE;
}

static int load(struct view *v, char **paths, int count, struct input *in)
{
	const struct config *config = v->config;
	const struct sum_options how = { .from = config->from, .compat = config->compat, .quiet = config->quiet };
	struct codec_options unused = { 0 };
	int r = sum_load(&command_view, &how, paths, count, &in->window);

	if (r == EXIT_DONE && !in->window.model->value_type_count)
		r = command_fail(&command_view, "%s: it has no sample types", paths[0]);
	if (r == EXIT_DONE)
		r = value_apply(&command_view, in->window.model, config->value, &unused);
	return r == EXIT_DONE ? add_facts(in, count > 1) : r;
}

/* What is shown first has to be in both. */
static int choose_common(struct view *v, const char *base_path)
{
	const struct model *base = v->base.window.model;
	struct model *m = v->main.window.model;
	size_t shown = model_default_value(m);

	if (model_value_index(base, model_string(m, m->value_types[shown].type)) >= 0)
		return EXIT_DONE;
	for (size_t i = m->value_type_count; i-- > 0;) {
		if (model_value_index(base, model_string(m, m->value_types[i].type)) < 0)
			continue;
		m->default_type = m->value_types[i].type;
		return EXIT_DONE;
	}
	return command_fail(&command_view, "%s: it has no sample type that it could be compared by", base_path);
}

/* Names */

static struct str name_of_path(const char *path)
{
	struct str name = str_base(str_of(path));

	if (!strcmp(path, "-"))
		return STR("standard input");
	return name.len ? name : str_of(path);
}

static void add_name(struct buf *out, struct str name)
{
	utf8_clean(out, str_first(name, NAME_MAX_BYTES), 0);
}

/* Files of one name in two folders have their folders in their names. */
static int make_names(struct view *v, char **paths, int count, const char *base_path)
{
	struct str first = name_of_path(paths[0]), base = base_path ? name_of_path(base_path) : STR("");

	if (base_path && count == 1 && str_eq(first, base)) {
		first = str_of(paths[0]);
		base = str_of(base_path);
	}
	add_name(&v->main.name, first);
	if (count > 1)
		buf_addf(&v->main.name, " and %d more", count - 1);
	add_name(&v->base.name, base);
	if (base_path && str_eq(buf_str(&v->main.name), buf_str(&v->base.name)))
		buf_adds(&v->base.name, STR(" (base)"));
	return v->main.name.error || v->base.name.error ? command_fail(&command_view, "out of memory") : EXIT_DONE;
}

/* The store */

static int keep(struct view *v, struct input *in)
{
	const struct store_upload upload = { .service = buf_str(&in->name),
					     .type = v->shown.type,
					     .created_ns = v->shown.at_ns,
					     .window = &in->window };
	struct store_id id;
	char room[160];
	int r;

	in->shown.service = buf_str(&in->name);
	r = store_memory.put(v->state, &upload, &id);
	window_release(&in->window);
	return r < 0 ? command_fail(&command_view, "%s: %s", buf_cstr(&in->name), memory_reason(r, room)) : EXIT_DONE;
}

static int fill_store(struct view *v, bool compares)
{
	const struct store_config config = { .clock = &clock_system };
	int r = store_memory.open(&config, &v->state);

	if (r < 0)
		return command_fail(&command_view, "%s", strerror(-r));
	v->shown.type = query_type_detect(v->main.window.model);
	v->shown.at_ns = clock_wall_ns(&clock_system) / NSEC_PER_MSEC * NSEC_PER_MSEC;
	r = keep(v, &v->main);
	if (r == EXIT_DONE && compares)
		r = keep(v, &v->base);
	v->shown.file = v->main.shown;
	v->shown.base = v->base.shown;
	return r;
}

/* The whole */

static int open_address(struct view *v)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	uint16_t port;

	if (serve_address_check(v->config->addr) < 0 || http_host_split(str_of(v->config->addr), &v->host, &port) < 0) {
		command_fail(&command_view, "--addr: '%s' is not HOST:PORT", v->config->addr);
		return EXIT_USAGE;
	}
	v->listen_fd = http_listen(v->host, port, &why);
	return v->listen_fd < 0 ? command_fail(&command_view, "%s", buf_cstr(&why)) : EXIT_DONE;
}

static int read_files(struct view *v, char **paths, int count)
{
	bool is_pair = !v->config->base && count == 2;
	const char *base_path = is_pair ? paths[0] : v->config->base;
	char **rest = is_pair ? paths + 1 : paths;
	int r;

	count -= is_pair;
	r = load(v, rest, count, &v->main);
	if (r == EXIT_DONE && base_path)
		r = load(v, (char *[]){ (char *)base_path }, 1, &v->base);
	if (r == EXIT_DONE && base_path)
		r = choose_common(v, base_path);
	if (r == EXIT_DONE)
		r = make_names(v, rest, count, base_path);
	if (r == EXIT_DONE)
		r = fill_store(v, base_path != NULL);
	if (r == EXIT_DONE && count > 1)
		fprintf(stderr, "hearth view: %d files are shown as one\n", count);
	return r;
}

static int serve(struct view *v)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	struct view_server_config server = { .listen_fd = v->listen_fd,
					     .host = v->host,
					     .store = &store_memory,
					     .state = v->state,
					     .shown = &v->shown,
					     .browser_data = v->config->browser ? &v->browser_data : NULL };
	char room[160];
	int r;

	v->listen_fd = -1; /* moved */
	r = view_server_run(&server, &why);
	if (r == -ENOMEM || r == -EAGAIN) /* the stack of a thread */
		return command_fail(&command_view, "cannot start: %s", memory_reason(-ENOMEM, room));
	return r < 0 ? command_fail(&command_view, "%s", buf_cstr(&why)) : EXIT_DONE;
}

static int run(void *config, int operand_count, char **operands)
{
	scoped(view_release) struct view v = {
		.config = config, .listen_fd = -1, .main = INPUT_INIT, .base = INPUT_INIT
	};
	int r;

	if (getrlimit(RLIMIT_DATA, &v.browser_data) < 0)
		return command_fail(&command_view, "%s", strerror(errno));
	memory_limit(v.config->memory_bytes);
	r = open_address(&v);
	r = r == EXIT_DONE ? read_files(&v, operands, operand_count) : r;
	return r == EXIT_DONE ? serve(&v) : r;
}

static const struct opt_group groups[] = { { NULL, options }, { 0 } };
static const char *const examples[] = {
	"hearth view profile.pb.gz",
	"a profile in the browser",
	"hearth view before.pb.gz after.pb.gz",
	"two profiles, and what changed from the first to the second",
	"perf script | stackcollapse-perf.pl | hearth view -",
	"any tool's folded stacks",
	NULL,
};

const struct command command_view = {
	.name = "view",
	.summary = "show profile files in the browser; of two files, what changed",
	.operands = "FILE...",
	.details = "Reads what convert reads, prints the address of a page, and serves it until Ctrl-C. Two files are "
		   "compared,\n"
		   "the first is the base; three or more are added up. Only who knows the address can see them.",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.operands_min = 1,
	.operands_max = -1,
	.run = run,
};
