/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of options as people read them: --help, man pages, completion. */
#include "base/opt_int.h"

#define HELP_COLUMN 31 /* where the help of an option begins */

static void add_left_column(const struct opt *o, struct buf *out)
{
	if (o->letter)
		buf_addf(out, "-%c, ", o->letter);
	else
		buf_adds(out, STR("    "));
	buf_addf(out, "--%s", o->name);
	if (opt_takes_value(o))
		buf_addf(out, " %s", o->arg ? o->arg : "VALUE");
}

static void add_choices(const struct opt *o, struct buf *out)
{
	if (o->type != OPT_CHOICE)
		return;
	buf_adds(out, STR(": "));
	for (size_t i = 0; o->choices[i]; i++)
		buf_addf(out, "%s%s", i ? ", " : "", o->choices[i]);
}

/* A flag that is on is turned off by its name with no- before it. */
static bool on_by_default(const struct opt *o)
{
	return o->type == OPT_FLAG && o->fallback && !strcmp(o->fallback, "true");
}

static void add_plain(struct buf *out, const char *text)
{
	buf_adds(out, str_of(text));
}

static void add_fallback(const struct opt *o, void (*add)(struct buf *out, const char *text), struct buf *out)
{
	if (on_by_default(o)) {
		buf_addf(out, " (on; --no-%s turns it off)", o->name);
	} else if (o->fallback && *o->fallback) {
		buf_adds(out, STR(" (default "));
		add(out, o->fallback);
		buf_addc(out, ')');
	}
}

/* Is there a row that --help shows? */
static bool any_listed(const struct opt *opts)
{
	while (opts->name && !opts->help)
		opts++;
	return opts->name;
}

void opt_wrap(struct str text, size_t at, size_t indent, size_t width, struct buf *out)
{
	while (text.len) {
		ptrdiff_t end = str_find(text, '\n');
		size_t room = width > indent + 20 ? width - 1 - MIN(at, width - 2) : SIZE_MAX,
		       len = end < 0 ? text.len : (size_t)end;
		bool is_end = len <= room;

		if (!is_end) {
			ptrdiff_t blank = str_rfind(str_first(text, room + 1), ' ');

			if (blank <= 0) /* one long word */
				blank = str_find(str_first(text, len), ' ');
			is_end = blank < 0;
			len = is_end ? len : (size_t)blank;
		}
		buf_adds(out, str_first(text, len));
		text = str_skip(text, MIN(len + 1, text.len));
		if (text.len)
			buf_addf(out, "\n%*s", (int)indent, "");
		at = indent;
	}
}

static void help_group(const char *title, const struct opt *opts, size_t width, struct buf *out)
{
	if (title && any_listed(opts))
		buf_addf(out, "\n%s:\n", title);
	for (const struct opt *o = opts; o->name; o++) {
		scoped(buf_release) struct buf left = BUF_INIT(KIB(1)), right = BUF_INIT(KIB(8));

		if (!o->help)
			continue;
		add_left_column(o, &left);
		buf_addf(out, "  %-28s %s", buf_cstr(&left), left.len > 28 ? "\n                               " : "");
		buf_adds(&right, str_of(o->help));
		add_choices(o, &right);
		add_fallback(o, add_plain, &right);
		opt_wrap(buf_str(&right), HELP_COLUMN, HELP_COLUMN, width, out);
		buf_addc(out, '\n');
	}
}

void opt_help(const struct opt_spec *spec, size_t width, struct buf *out)
{
	for (const struct opt_group *g = spec->groups; g->opts; g++)
		help_group(g->title ? g->title : "Options", g->opts, width, out);
	help_group("Common", opt_common(), width, out);
}

/* scdoc takes _ and * as markup. */
static void add_scdoc(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("_*\\", *text))
			buf_addc(out, '\\');
		buf_addc(out, *text);
	}
}

static void man_group(const struct opt *opts, struct buf *out)
{
	for (const struct opt *o = opts; o->name; o++) {
		if (!o->help)
			continue;
		if (o->letter)
			buf_addf(out, "*-%c*, ", o->letter);
		buf_addf(out, "*--%s*", o->name);
		if (opt_takes_value(o))
			buf_addf(out, " _%s_", o->arg ? o->arg : "VALUE");
		buf_adds(out, STR("\n\t"));
		add_scdoc(out, o->help);
		add_choices(o, out);
		add_fallback(o, add_scdoc, out);
		buf_adds(out, STR(".\n\n"));
	}
}

void opt_man(const struct opt_spec *spec, struct buf *out)
{
	for (const struct opt_group *g = spec->groups; g->opts; g++) {
		if (g->title && any_listed(g->opts))
			buf_addf(out, "## %s\n\n", g->title);
		man_group(g->opts, out);
	}
	man_group(opt_common(), out);
}

void opt_words(const struct opt_spec *spec, struct buf *out)
{
	struct opt_all all;

	opt_collect(spec, &all);
	for (size_t i = 0; i < all.count; i++) {
		if (!all.list[i]->help)
			continue;
		buf_addf(out, "%s--%s", out->len ? " " : "", all.list[i]->name);
		if (all.list[i]->letter)
			buf_addf(out, " -%c", all.list[i]->letter);
		if (on_by_default(all.list[i]))
			buf_addf(out, " --no-%s", all.list[i]->name);
	}
}

void opt_for_each(const struct opt_spec *spec, void (*visit)(void *ctx, const struct opt *o, bool takes_value),
		  void *ctx)
{
	struct opt_all all;

	opt_collect(spec, &all);
	for (size_t i = 0; i < all.count; i++)
		if (all.list[i]->help)
			visit(ctx, all.list[i], opt_takes_value(all.list[i]));
}
