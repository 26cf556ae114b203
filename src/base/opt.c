/* SPDX-License-Identifier: Apache-2.0 */
#include "base/opt.h"

#include <ctype.h>
#include <getopt.h>

#include "base/array.h"
#include "base/io.h"
#include "base/similar.h"

#define OPTS_MAX 128
#define HELP_COLUMN 31 /* where the help of an option begins */
#define CONFIG_FILE_MAX_BYTES MIB(1)

/* Options every command has. They live outside the configuration struct. */
static const struct opt common_opts[] = {
	{ "config", 0, OPT_PATH, .arg = "FILE", .help = "read options from FILE, one \"name = value\" a line" },
	{ "help", 'h', OPT_FLAG, .help = "show this help" },
	{ 0 },
};

struct unit {
	const char *suffix;
	uint64_t factor;
};

static const struct unit duration_units[] = {
	{ "", NSEC_PER_SEC },
	{ "ns", 1 },
	{ "us", NSEC_PER_USEC },
	{ "ms", NSEC_PER_MSEC },
	{ "s", NSEC_PER_SEC },
	{ "m", 60 * NSEC_PER_SEC },
	{ "h", 3600 * NSEC_PER_SEC },
	{ "d", 86400 * NSEC_PER_SEC },
	{ 0 },
};

static const struct unit size_units[] = {
	{ "", 1 },         { "K", KIB(1) },   { "M", MIB(1) },   { "G", GIB(1) },
	{ "KiB", KIB(1) }, { "MiB", MIB(1) }, { "GiB", GIB(1) }, { 0 },
};

/* "1.5s": digits, an optional fraction of up to nine digits, a unit. Fixed point, so that 0.1s is exactly 100 ms. */
static int parse_with_unit(struct str text, const struct unit *units, uint64_t *out)
{
	size_t digits = 0, fraction_digits = 0;
	uint64_t whole, fraction = 0, scale = 1, value;
	struct str rest;

	while (digits < text.len && isdigit((unsigned char)text.ptr[digits]))
		digits++;
	if (str_to_u64(str_first(text, digits), 0, UINT64_MAX, &whole) < 0)
		return -EBADMSG;
	rest = str_skip(text, digits);
	if (rest.len && rest.ptr[0] == '.') {
		rest = str_skip(rest, 1);
		while (fraction_digits < rest.len && isdigit((unsigned char)rest.ptr[fraction_digits]))
			fraction_digits++;
		if (fraction_digits > 9 || str_to_u64(str_first(rest, fraction_digits), 0, UINT64_MAX, &fraction) < 0)
			return -EBADMSG;
		rest = str_skip(rest, fraction_digits);
	}
	for (size_t i = 0; i < fraction_digits; i++)
		scale *= 10;
	for (; units->suffix; units++) {
		if (!str_eq(rest, str_of(units->suffix)))
			continue;
		if (__builtin_mul_overflow(whole, units->factor, &value) ||
		    __builtin_add_overflow(value, (uint64_t)((__uint128_t)fraction * units->factor / scale), &value))
			return -ERANGE;
		*out = value;
		return 0;
	}
	return -EBADMSG;
}

int opt_parse_duration(struct str text, uint64_t *out_ns)
{
	return parse_with_unit(text, duration_units, out_ns);
}

int opt_parse_size(struct str text, uint64_t *out_bytes)
{
	return parse_with_unit(text, size_units, out_bytes);
}

static int put_number(const struct opt *o, struct str text, void *at, struct buf *why)
{
	uint64_t value = 0, max = o->max ? o->max : UINT64_MAX;
	int r;

	if (o->type == OPT_UINT)
		r = str_to_u64(text, 0, UINT64_MAX, &value);
	else
		r = o->type == OPT_DURATION ? opt_parse_duration(text, &value) : opt_parse_size(text, &value);
	if (r == 0 && value >= o->min && value <= max) {
		memcpy(at, &value, sizeof(value));
		return 0;
	}
	buf_addf(why, "--%s: ", o->name);
	if (r == 0 && o->type == OPT_UINT)
		buf_addf(why, "%llu is not from %llu to %llu", (unsigned long long)value, (unsigned long long)o->min,
			 (unsigned long long)max);
	else if (r == 0)
		buf_addf(why, "'" STR_FMT "' is too %s", STR_ARG(text), value < o->min ? "small" : "large");
	else
		buf_addf(why, "'" STR_FMT "' is not %s", STR_ARG(text),
			 o->type == OPT_UINT       ? "a whole number"
			 : o->type == OPT_DURATION ? "a time such as 10, 1.5s, 200ms or 2m"
						   : "a size such as 64K or 8M");
	return -EINVAL;
}

static void add_similar(const struct similar *like, const char *dashes, struct buf *out)
{
	if (like->best)
		buf_addf(out, "; did you mean '%s%s'?", dashes, like->best);
}

static int put_choice(const struct opt *o, struct str text, void *at, struct buf *why)
{
	struct similar like = similar_to(text);

	for (size_t i = 0; o->choices[i]; i++) {
		if (!str_eq(text, str_of(o->choices[i])))
			continue;
		memcpy(at, &i, sizeof(i));
		return 0;
	}
	buf_addf(why, "--%s: '" STR_FMT "' is not one of", o->name, STR_ARG(text));
	for (size_t i = 0; o->choices[i]; i++) {
		buf_addf(why, "%s %s", i ? "," : "", o->choices[i]);
		similar_offer(&like, o->choices[i]);
	}
	add_similar(&like, "", why);
	return -EINVAL;
}

static int put_flag(const struct opt *o, struct str text, void *at, struct buf *why)
{
	bool on = str_eq(text, STR("true")) || str_eq(text, STR("1")) || str_eq(text, STR("yes"));

	if (!on && !str_eq(text, STR("false")) && !str_eq(text, STR("0")) && !str_eq(text, STR("no"))) {
		buf_addf(why, "--%s: '" STR_FMT "' is not true or false", o->name, STR_ARG(text));
		return -EINVAL;
	}
	if (o->type == OPT_FLAG)
		memcpy(at, &on, sizeof(on));
	else
		*(uint8_t *)at = on ? OPT_SWITCH_ON : OPT_SWITCH_OFF;
	return 0;
}

static int put_list(const struct opt *o, const char *text, struct opt_list *list, struct buf *why)
{
	if (list->count == OPT_LIST_MAX) {
		buf_addf(why, "--%s: given more than %d times", o->name, OPT_LIST_MAX);
		return -EINVAL;
	}
	list->items[list->count++] = text;
	return 0;
}

/* @text stays where it is: text options keep the pointer. */
static int put(const struct opt *o, const char *text, void *config, struct buf *why)
{
	void *at = (char *)config + o->at;

	switch (o->type) {
	case OPT_FLAG:
	case OPT_SWITCH:
		return put_flag(o, str_of(text), at, why);
	case OPT_SIZE:
		if (o->choices && !strcmp(text, o->choices[0])) {
			memcpy(at, &(uint64_t){ UINT64_MAX }, sizeof(uint64_t));
			return 0;
		}
		return put_number(o, str_of(text), at, why);
	case OPT_UINT:
	case OPT_DURATION:
		return put_number(o, str_of(text), at, why);
	case OPT_CHOICE:
		return put_choice(o, str_of(text), at, why);
	case OPT_LIST:
		return put_list(o, text, at, why);
	case OPT_TEXT:
	case OPT_PATH:
		memcpy(at, &text, sizeof(text));
		return 0;
	}
	return -EINVAL;
}

static bool takes_value(const struct opt *o)
{
	return o->type != OPT_FLAG && o->type != OPT_SWITCH;
}

/* All options of the command in one array, common ones last. */
static size_t collect(const struct opt_spec *spec, const struct opt *all[OPTS_MAX])
{
	size_t count = 0;

	for (const struct opt_group *g = spec->groups; g->opts; g++)
		for (const struct opt *o = g->opts; o->name; o++) {
			must(count < OPTS_MAX);
			all[count++] = o;
		}
	for (const struct opt *o = common_opts; o->name; o++) {
		must(count < OPTS_MAX);
		all[count++] = o;
	}
	return count;
}

static bool is_common(const struct opt *o)
{
	return o >= common_opts && o < common_opts + ARRAY_SIZE(common_opts);
}

static const struct opt *find_long(const struct opt *const *all, size_t count, struct str name)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(name, str_of(all[i]->name)))
			return all[i];
	return NULL;
}

static int apply_defaults(const struct opt *const *all, size_t count, void *config, struct buf *why)
{
	for (size_t i = 0; i < count; i++) {
		if (!all[i]->fallback)
			continue;
		must(put(all[i], all[i]->fallback, config, why) == 0); /* the table's own text */
	}
	return 0;
}

static int apply_environment(const struct opt *const *all, size_t count, void *config, struct buf *why)
{
	for (size_t i = 0; i < count; i++) {
		scoped(buf_release) struct buf name = BUF_INIT(KIB(1));
		const char *value;

		if (is_common(all[i]))
			continue;
		buf_adds(&name, STR("HEARTH_"));
		for (const char *c = all[i]->name; *c; c++)
			buf_addc(&name, *c == '-' ? '_' : (char)toupper((unsigned char)*c));
		value = getenv(buf_cstr(&name));
		if (!value || !*value)
			continue;
		if (put(all[i], value, config, why) < 0) {
			buf_addf(why, " (from the environment: %s)", buf_cstr(&name));
			return -EINVAL;
		}
	}
	return 0;
}

/* One "name = value" line, changed in place so that values are terminated. */
static int apply_line(const struct opt *const *all, size_t count, char *line, void *config, struct buf *why)
{
	struct str text = str_trim(str_of(line)), name, value;
	const struct opt *o;
	ptrdiff_t equals = str_find(text, '=');

	if (!text.len || text.ptr[0] == '#')
		return 0;
	name = str_trim(equals < 0 ? text : str_first(text, (size_t)equals));
	value = equals < 0 ? STR("true") : str_trim(str_skip(text, (size_t)equals + 1));
	o = find_long(all, count, name);
	if (!o || is_common(o)) {
		struct similar like = similar_to(name);

		for (size_t i = 0; i < count; i++)
			if (all[i]->help && !is_common(all[i]))
				similar_offer(&like, all[i]->name);
		buf_addf(why, "unknown option '" STR_FMT "'", STR_ARG(name));
		add_similar(&like, "", why);
		return -EINVAL;
	}
	if (equals >= 0)
		line[value.ptr + value.len - line] = 0;
	return put(o, value.ptr, config, why);
}

static int apply_file(const struct opt *const *all, size_t count, const char *path, void *config,
		      struct opt_result *out, struct buf *why)
{
	scoped(buf_release) struct buf text = BUF_INIT(CONFIG_FILE_MAX_BYTES);
	int r = io_read_file(path, &text);
	size_t len;
	char *line;

	if (r == 0) {
		buf_addc(&text, 0);
		r = text.error;
	}
	if (r < 0) {
		buf_addf(why, "--config: cannot read '%s': %s", path, strerror(-r));
		return r;
	}
	free(out->file_text);
	out->file_text = line = buf_take(&text, &len);
	for (unsigned int number = 1; line; number++) {
		char *end = strchr(line, '\n');

		if (end)
			*end = 0;
		if (apply_line(all, count, line, config, why) < 0) {
			buf_addf(why, " (%s, line %u)", path, number);
			return -EINVAL;
		}
		line = end ? end + 1 : NULL;
	}
	return 0;
}

/* getopt's tables, made from ours: index i of `all` is long option i; --no-NAME is i + OPTS_MAX. */
struct getopt_tables {
	struct option longs[2 * OPTS_MAX + 1];
	char *negated[OPTS_MAX];
	char shorts[3 * OPTS_MAX + 3];
};

static void getopt_tables_free(struct getopt_tables **t)
{
	for (size_t i = 0; *t && i < OPTS_MAX; i++)
		free((*t)->negated[i]);
	free(*t);
}

static int add_negation(struct getopt_tables *t, size_t i, const char *name, size_t *longs)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
	size_t len;

	buf_addf(&text, "no-%s", name);
	(void)buf_cstr(&text);
	if (text.error)
		return text.error;
	t->negated[i] = buf_take(&text, &len);
	t->longs[(*longs)++] = (struct option){ t->negated[i], no_argument, NULL, (int)(1000 + OPTS_MAX + i) };
	return 0;
}

static int build_tables(const struct opt *const *all, size_t count, bool stop_at_operand, struct getopt_tables *t)
{
	size_t longs = 0, at = 0;
	int r = 0;

	t->shorts[at++] = stop_at_operand ? '+' : ':';
	if (stop_at_operand)
		t->shorts[at++] = ':';
	for (size_t i = 0; i < count && r == 0; i++) {
		bool flag = !takes_value(all[i]);

		t->longs[longs++] = (struct option){ all[i]->name, flag ? optional_argument : required_argument, NULL,
						     (int)(1000 + i) };
		if (flag && !is_common(all[i]))
			r = add_negation(t, i, all[i]->name, &longs);
		if (!all[i]->letter)
			continue;
		t->shorts[at++] = all[i]->letter;
		if (!flag)
			t->shorts[at++] = ':';
	}
	return r;
}

/* Does the word behind this one belong to it? */
static bool takes_next(const struct opt *const *all, size_t count, struct str word)
{
	const struct opt *o;

	if (word.len < 2 || word.ptr[0] != '-' || str_find(word, '=') >= 0)
		return false;
	o = find_long(all, count, str_skip(word, word.ptr[1] == '-' ? 2 : 1));
	for (size_t i = 0; !o && word.ptr[1] != '-' && i < count; i++)
		if (all[i]->letter && all[i]->letter == word.ptr[word.len - 1])
			o = all[i];
	return o && takes_value(o);
}

static bool is_single_dash_name(const struct opt *const *all, size_t count, struct str word)
{
	struct str name = str_skip(word, 1);
	ptrdiff_t equals = str_find(name, '=');

	if (word.len < 3 || word.ptr[0] != '-' || word.ptr[1] == '-')
		return false;
	return find_long(all, count, equals < 0 ? name : str_first(name, (size_t)equals));
}

static int rewrite(struct opt_result *out, char **word)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(4));
	size_t len;
	int r = array_grow(&out->rewritten, &out->rewritten_cap, out->rewritten_count, 4096);

	buf_addf(&text, "-%s", *word);
	(void)buf_cstr(&text);
	if (r < 0 || text.error)
		return r < 0 ? r : text.error;
	*word = out->rewritten[out->rewritten_count++] = buf_take(&text, &len);
	return 0;
}

/* "-addr" and "-addr=x" become "--addr". Stops at "--" and, when operands begin a command line, at the first of them.
 */
static int normalize(const struct opt *const *all, size_t count, bool stop_at_operand, int argc, char **argv,
		     struct opt_result *out)
{
	bool is_value = false;

	out->words = calloc((size_t)argc + 1, sizeof(*out->words));
	if (!out->words)
		return -ENOMEM;
	memcpy(out->words, argv, (size_t)argc * sizeof(*argv));
	for (int i = 1; i < argc; i++) {
		struct str word = str_of(argv[i]);
		int r = 0;

		if (is_value) {
			is_value = false;
			continue;
		}
		if (str_eq(word, STR("--")) || (stop_at_operand && (word.len < 2 || word.ptr[0] != '-')))
			break;
		if (is_single_dash_name(all, count, word))
			r = rewrite(out, &out->words[i]);
		if (r < 0)
			return r;
		is_value = takes_next(all, count, str_of(out->words[i]));
	}
	return 0;
}

static int say_bad(int c, const char *word, const struct opt *const *all, size_t count, struct buf *why)
{
	struct str name = str_of(word);
	ptrdiff_t equals = str_find(name, '=');
	struct similar like;

	name = equals < 0 ? name : str_first(name, (size_t)equals);
	while (name.len && name.ptr[0] == '-')
		name = str_skip(name, 1);
	like = similar_to(name);
	for (size_t i = 0; i < count; i++)
		if (all[i]->help)
			similar_offer(&like, all[i]->name);

	if (c == ':')
		buf_addf(why, "option '%s' needs a value", word);
	else if (optopt && optopt < 256)
		buf_addf(why, "unknown option '-%c'", optopt);
	else
		buf_addf(why, "unknown or ambiguous option '%s'", word);
	if (c != ':' && like.best)
		add_similar(&like, "--", why);
	else
		buf_adds(why, STR("; --help lists them"));
	return -EINVAL;
}

static const struct opt *option_of(int c, const struct opt *const *all, size_t count, bool *negated)
{
	*negated = c >= 1000 + OPTS_MAX;
	if (c >= 1000)
		return all[*negated ? c - 1000 - OPTS_MAX : c - 1000];
	for (size_t i = 0; i < count; i++)
		if (all[i]->letter == c)
			return all[i];
	return NULL;
}

struct parse {
	const struct opt *all[OPTS_MAX];
	size_t count;
	int argc;
	struct getopt_tables *tables;
	struct opt_result *out;
	struct buf *why;
	const char *config_path;
};

/* One pass over the words. @config NULL: only the options every command has; otherwise all others. */
static int walk_words(struct parse *p, void *config)
{
	char **words = p->out->words;
	int c, r = 0;

	opterr = 0;
	optind = 0; /* glibc: start over, and read the leading '+' again */
	while (r == 0 && (c = getopt_long(p->argc, words, p->tables->shorts, p->tables->longs, NULL)) != -1) {
		const struct opt *o;
		bool negated;

		if (c == '?' || c == ':')
			return p->out->help ? 0
					    : say_bad(c, optind > 0 ? words[optind - 1] : "", p->all, p->count, p->why);
		o = option_of(c, p->all, p->count, &negated);
		must(o);
		if (is_common(o) != !config)
			continue;
		if (config)
			r = put(o, optarg ? optarg : negated ? "false" : "true", config, p->why);
		else if (o->type == OPT_FLAG)
			p->out->help = true;
		else
			p->config_path = optarg;
	}
	p->out->operands = words + optind;
	p->out->operand_count = p->argc - optind;
	return r;
}

int opt_parse(const struct opt_spec *spec, int argc, char **argv, void *config, struct opt_result *out, struct buf *why)
{
	scoped(getopt_tables_free) struct getopt_tables *tables = calloc(1, sizeof(*tables));
	struct parse p = { .argc = argc, .tables = tables, .out = out, .why = why };
	int r;

	*out = (struct opt_result){ 0 };
	if (!tables)
		return -ENOMEM;
	p.count = collect(spec, p.all);
	r = build_tables(p.all, p.count, spec->stop_at_operand, tables);
	if (r == 0)
		r = normalize(p.all, p.count, spec->stop_at_operand, argc, argv, out);
	if (r == 0)
		r = walk_words(&p, NULL);
	if (r < 0 || out->help)
		return r;
	r = apply_defaults(p.all, p.count, config, why);
	if (r == 0 && p.config_path)
		r = apply_file(p.all, p.count, p.config_path, config, out, why);
	if (r == 0)
		r = apply_environment(p.all, p.count, config, why);
	return r == 0 ? walk_words(&p, config) : r;
}

void opt_result_release(struct opt_result *result)
{
	free(result->file_text);
	free(result->words);
	for (size_t i = 0; i < result->rewritten_count; i++)
		free(result->rewritten[i]);
	free(result->rewritten);
	*result = (struct opt_result){ 0 };
}

static void add_left_column(const struct opt *o, struct buf *out)
{
	if (o->letter)
		buf_addf(out, "-%c, ", o->letter);
	else
		buf_adds(out, STR("    "));
	buf_addf(out, "--%s", o->name);
	if (takes_value(o))
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
	help_group("Common", common_opts, width, out);
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
		if (takes_value(o))
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
	man_group(common_opts, out);
}

void opt_words(const struct opt_spec *spec, struct buf *out)
{
	const struct opt *all[OPTS_MAX];
	size_t count = collect(spec, all);

	for (size_t i = 0; i < count; i++) {
		if (!all[i]->help)
			continue;
		buf_addf(out, "%s--%s", out->len ? " " : "", all[i]->name);
		if (all[i]->letter)
			buf_addf(out, " -%c", all[i]->letter);
		if (on_by_default(all[i]))
			buf_addf(out, " --no-%s", all[i]->name);
	}
}

void opt_for_each(const struct opt_spec *spec, void (*visit)(void *ctx, const struct opt *o, bool takes_value),
		  void *ctx)
{
	const struct opt *all[OPTS_MAX];
	size_t count = collect(spec, all);

	for (size_t i = 0; i < count; i++)
		if (all[i]->help)
			visit(ctx, all[i], takes_value(all[i]));
}
