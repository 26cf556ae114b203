/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <sys/stat.h>

#include "base/reason.h"
#include "cli/memory.h"
#include "sink/format.h"
#include "sink/sink.h"

static const struct sink *file_sink(void)
{
	return sink_find(STR("file"));
}

static void close_sink(struct sink_state **s)
{
	file_sink()->close(*s);
}

int output_write(const struct command *c, const char *path, const char *format, const struct codec_options *options,
		 const struct window *w, bool quiet)
{
	struct codec_lost lost = { 0 };
	struct sink_config cfg = { .path = path, .format = format, .options = *options };
	scoped(close_sink) struct sink_state *sink = NULL;
	scoped(buf_release) struct buf text = BUF_INIT(KIB(16));
	char room[160];
	int r;

	cfg.options.lost = &lost;
	r = file_sink()->open(&cfg, &text, &sink);
	if (r < 0) {
		command_fail(c, "%s", text.len ? buf_cstr(&text) : strerror(-r));
		return r == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	}
	r = file_sink()->write(sink, w, &text);
	if (r == -EPIPE && !strcmp(path, "-")) /* the reader has seen enough */
		return EXIT_DONE;
	if (r < 0)
		return command_fail(c, "%s: cannot write: %s", path, memory_reason(r, room));
	if (!quiet && strcmp(path, "-"))
		fprintf(stderr, "hearth %s: wrote %s\n", c->name, buf_cstr(&text));
	if (lost.text[0])
		(void)command_fail(c, "%s: %s", path, lost.text); /* said, but nothing failed */
	return EXIT_DONE;
}

/* A session may be long: a folder that is not there is said before it, not after. */
static int check_folder(const struct command *c, const char *path)
{
	struct str folder = str_n(path, (size_t)(str_base(str_of(path)).ptr - path));
	scoped(freep) char *name = str_dup(folder.len ? folder : STR("."));
	struct stat st;

	if (!name)
		return command_fail(c, "out of memory");
	if (stat(name, &st) < 0)
		return command_fail(c, "%s: cannot write: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return command_fail(c, "%s: cannot write: %s", path, strerror(ENOTDIR));
	return EXIT_DONE;
}

static bool has_labels(const char *format, struct str path)
{
	const struct codec *c = format ? format_find(str_of(format)) : format_for_path(path);

	if (!c && !format && str_ends(path, STR(".gz")))
		c = format_for_path(str_first(path, path.len - strlen(".gz")));
	return c && c->has_labels;
}

static int add(struct outputs *o, struct str path, const char *format, bool many)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(16));
	struct output *item = &o->items[o->count];
	struct sink_config cfg = { .format = format, .many = many, .options = o->options };
	int r;

	if (o->count == OUTPUTS_MAX) {
		command_fail(o->command, "more than %d outputs", OUTPUTS_MAX);
		return EXIT_USAGE;
	}
	item->path = str_dup(path);
	if (!item->path)
		return command_fail(o->command, "out of memory");
	o->count++;
	cfg.path = item->path;
	o->to_stdout |= !strcmp(item->path, "-");
	o->shows_labels |= has_labels(format, path);
	r = file_sink()->open(&cfg, &why, &item->sink);
	if (r == 0)
		return check_folder(o->command, item->path);
	command_fail(o->command, "%s", why.len ? buf_cstr(&why) : strerror(-r));
	return r == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

/* The three usual files, or one of the format asked for, named by the time of the end. */
static int add_usual(struct outputs *o, struct str directory, const char *format)
{
	static const char *const usual[] = { "html", "col", "pprof" };
	const char *const *names = format ? &format : usual;
	size_t count = format ? 1 : ARRAY_SIZE(usual);
	int e = EXIT_DONE;

	for (size_t i = 0; i < count && e == EXIT_DONE; i++) {
		scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
		const struct codec *f = format_find(str_of(names[i]));

		buf_adds(&path, directory);
		if (directory.len && directory.ptr[directory.len - 1] != '/')
			buf_addc(&path, '/');
		buf_addf(&path, "profile%s", f ? f->suffixes[0] : "");
		e = add(o, buf_str(&path), format, true);
	}
	return e;
}

int outputs_open(struct outputs *o, const struct opt_list *paths, const char *format, bool many)
{
	int e = EXIT_DONE;

	if (!paths->count)
		return add_usual(o, STR(""), format);
	for (size_t i = 0; i < paths->count && e == EXIT_DONE; i++) {
		const char *path = paths->items[i];
		struct stat st;

		if ((stat(path, &st) == 0 && S_ISDIR(st.st_mode)) || str_ends(str_of(path), STR("/")))
			e = add_usual(o, str_of(path), format);
		else
			e = add(o, str_of(path), format, many);
	}
	return e;
}

void outputs_write(struct outputs *o, const struct window *w)
{
	for (size_t i = 0; i < o->count; i++) {
		scoped(buf_release) struct buf where = BUF_INIT(KIB(16));
		int r = file_sink()->write(o->items[i].sink, w, &where);

		if (r < 0) {
			command_fail(o->command, "%s: cannot write: %s",
				     where.len ? buf_cstr(&where) : o->items[i].path, reason_of(r));
			o->failed = true;
		} else {
			buf_addf(&o->written, "  " STR_FMT "\n", STR_ARG(buf_str(&where)));
			if (o->items[i].lost.text[0])
				command_fail(o->command, STR_FMT ": %s", STR_ARG(buf_str(&where)),
					     o->items[i].lost.text);
			o->items[i].lost.text[0] = 0;
		}
	}
}

void outputs_release(struct outputs *o)
{
	for (size_t i = 0; i < o->count; i++) {
		file_sink()->close(o->items[i].sink);
		free(o->items[i].path);
	}
	buf_release(&o->written);
	o->count = 0;
}
