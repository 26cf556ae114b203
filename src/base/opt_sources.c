/* SPDX-License-Identifier: Apache-2.0 */
/* Where values of options come from besides the command line: defaults, a file, the environment. */
#include <ctype.h>

#include "base/io.h"
#include "base/opt_int.h"
#include "base/reason.h"

#define CONFIG_FILE_MAX_BYTES MIB(1)

static const struct opt_dialect usual = { .environment = "HEARTH_" };

int opt_apply_defaults(const struct opt_all *all, void *config, struct buf *why)
{
	for (size_t i = 0; i < all->count; i++) {
		if (!all->list[i]->fallback)
			continue;
		must(opt_put(all->list[i], all->list[i]->fallback, config, why) == 0); /* the table's own text */
	}
	return 0;
}

static int put_variable(const char *prefix, const char *negation, const struct opt_all *all, const struct opt *o,
			void *config, struct buf *why)
{
	bool seen[OPTS_MAX] = { false };
	scoped(buf_release) struct buf name = BUF_INIT(KIB(1));
	const char *value;
	bool is_off = false;
	int r;

	buf_addf(&name, "%s%s", prefix, negation);
	for (const char *c = o->name; *c; c++)
		buf_addc(&name, *c == '-' ? '_' : (char)toupper((unsigned char)*c));
	value = getenv(buf_cstr(&name));
	if (!value || !*value)
		return 0;
	r = opt_is_yes(value, &is_off);
	if (!*negation)
		r = opt_put_from(seen, all, o, value, config, why);
	else if (r < 0)
		buf_addf(why, "--no-%s: '%s' is not true or false", o->name, value);
	else if (is_off)
		r = opt_put(o, "false", config, why);
	if (r < 0)
		buf_addf(why, " (from the environment: %s)", buf_cstr(&name));
	return r < 0 ? -EINVAL : 0;
}

int opt_apply_environment(const struct opt_dialect *dialect, const struct opt_all *all, void *config, struct buf *why)
{
	const struct opt_dialect *d = dialect ? dialect : &usual;
	int r = 0;

	for (size_t i = 0; r == 0 && i < all->count; i++) {
		const struct opt *o = all->list[i];

		if (opt_is_common(o))
			continue;
		r = put_variable(d->environment, "", all, o, config, why);
		if (r == 0 && d->is_configargparse && !opt_takes_value(o))
			r = put_variable(d->environment, "NO_", all, o, config, why);
	}
	return r;
}

/* Where the name ends and the value begins. ConfigArgParse knows "name: value" and "name value", too. */
static ptrdiff_t find_separator(const struct opt_dialect *d, struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] == '=' || (d->is_configargparse && strchr(": \t", text.ptr[i])))
			return (ptrdiff_t)i;
	return -1;
}

static bool is_comment(struct str text, size_t at)
{
	return at < text.len && (text.ptr[at] == '#' || text.ptr[at] == ';') &&
	       isspace((unsigned char)text.ptr[(ptrdiff_t)at - 1]);
}

static bool is_end(struct str text, size_t at)
{
	while (at < text.len && isspace((unsigned char)text.ptr[at]))
		at++;
	return at == text.len || is_comment(text, at);
}

/* ConfigArgParse takes quotes away, and what is behind " #" or " ;". @value: a byte is before it. Source:
 * configargparse.py, DefaultConfigFileParser.parse(). */
static struct str drop_quotes(struct str value)
{
	char quote = value.len ? value.ptr[0] : 0;

	for (size_t i = 1; (quote == '"' || quote == '\'') && i < value.len; i++)
		if (value.ptr[i] == quote && is_end(value, i + 1))
			return str_n(value.ptr + 1, i - 1);
	for (size_t i = 0; i < value.len; i++)
		if (is_comment(value, i))
			return str_trim(str_first(value, i));
	return value;
}

static struct str drop_separator(const struct opt_dialect *d, struct str value)
{
	value = str_trim(value);
	if (d->is_configargparse && value.len && (value.ptr[0] == '=' || value.ptr[0] == ':'))
		value = str_trim(str_skip(value, 1));
	return d->is_configargparse ? drop_quotes(value) : value;
}

static bool is_ignored(const struct opt_dialect *d, struct str text)
{
	if (!text.len || text.ptr[0] == '#')
		return true;
	return d->is_configargparse && (text.ptr[0] == ';' || text.ptr[0] == '[' || str_starts(text, STR("---")));
}

static int say_unknown(const struct opt_all *all, struct str name, struct buf *why)
{
	struct similar like = similar_to(name);

	for (size_t i = 0; i < all->count; i++)
		if (all->list[i]->help && !opt_is_common(all->list[i]))
			similar_offer(&like, all->list[i]->name);
	buf_addf(why, "unknown option '" STR_FMT "'", STR_ARG(name));
	opt_add_similar(&like, "", why);
	return -EINVAL;
}

struct file {
	const struct opt_dialect *dialect;
	const struct opt_all *all;
	void *config;
	struct buf *why;
	bool seen[OPTS_MAX];
};

/* Where the item that begins at @at ends: at a comma, or at @end. One in quotes may have commas. */
static char *find_item_end(char *at, char *end)
{
	char *begin = at, *close;

	while (begin < end && isspace((unsigned char)*begin))
		begin++;
	close = begin < end && *begin == '"' ? memchr(begin + 1, '"', (size_t)(end - begin - 1)) : NULL;
	at = memchr(close ? close : at, ',', (size_t)(end - (close ? close : at)));
	return at ? at : end;
}

/* "[a, b]" or "["a", "b"]", changed in place: each is one value. */
static int put_items(struct file *f, const struct opt *o, char *at, char *end)
{
	int r = 0;

	while (r == 0 && at < end) {
		char *stop = find_item_end(at, end);
		struct str item = str_trim(str_n(at, (size_t)(stop - at)));

		if (item.len >= 2 && item.ptr[0] == '"' && item.ptr[item.len - 1] == '"')
			item = str_n(item.ptr + 1, item.len - 2);
		*stop = 0;
		at[item.ptr + item.len - at] = 0;
		if (item.len)
			r = opt_put_from(f->seen, f->all, o, item.ptr, f->config, f->why);
		at = stop + 1;
	}
	return r;
}

/* Of a switch whose name has no- before it. */
static int put_negated(struct file *f, const struct opt *o, const char *value)
{
	bool is_off;

	if (opt_is_yes(value, &is_off) == 0)
		return is_off ? opt_put(o, "false", f->config, f->why) : 0;
	buf_addf(f->why, "--no-%s: '%s' is not true or false", o->name, value);
	return -EINVAL;
}

/* One line, changed in place so that values are terminated. */
static int apply_line(struct file *f, char *line)
{
	struct str text = str_trim(str_of(line)), name, value;
	const struct opt *o;
	bool is_negated = false;
	ptrdiff_t at;

	if (is_ignored(f->dialect, text))
		return 0;
	at = find_separator(f->dialect, text);
	name = str_trim(at < 0 ? text : str_first(text, (size_t)at));
	value = at < 0 ? STR("true") : drop_separator(f->dialect, str_skip(text, (size_t)at + (text.ptr[at] == '=')));
	o = opt_find(f->all, name);
	if (!o && f->dialect->is_configargparse && str_starts(name, STR("no-"))) {
		o = opt_find(f->all, str_skip(name, 3));
		is_negated = o && !opt_takes_value(o);
		o = is_negated ? o : NULL;
	}
	if (!o || opt_is_common(o))
		return say_unknown(f->all, name, f->why);
	if (at >= 0)
		line[value.ptr + value.len - line] = 0;
	if (is_negated)
		return put_negated(f, o, value.ptr);
	if (f->dialect->is_configargparse && o->type == OPT_LIST && value.len >= 2 && value.ptr[0] == '[' &&
	    value.ptr[value.len - 1] == ']')
		return put_items(f, o, line + (value.ptr - line) + 1, line + (value.ptr - line) + value.len - 1);
	return opt_put_from(f->seen, f->all, o, at < 0 && o->bare ? o->bare : value.ptr, f->config, f->why);
}

int opt_apply_file(const struct opt_dialect *dialect, const struct opt_all *all, const char *path, void *config,
		   char **text_out, struct buf *why)
{
	scoped(buf_release) struct buf text = BUF_INIT(CONFIG_FILE_MAX_BYTES);
	struct file f = { .dialect = dialect ? dialect : &usual, .all = all, .config = config, .why = why };
	int r = io_read_file(path, &text);
	size_t len;
	char *line;

	if (r == 0) {
		buf_addc(&text, 0);
		r = text.error;
	}
	if (r < 0) {
		buf_addf(why, "--config: cannot read '%s': %s", path, reason_of(r));
		return r;
	}
	free(*text_out);
	*text_out = line = buf_take(&text, &len);
	for (unsigned int number = 1; line; number++) {
		char *end = strchr(line, '\n');

		if (end)
			*end = 0;
		if (apply_line(&f, line) < 0) {
			buf_addf(why, " (%s, line %u)", path, number);
			return -EINVAL;
		}
		line = end ? end + 1 : NULL;
	}
	return 0;
}
