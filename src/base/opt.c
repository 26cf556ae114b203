/* SPDX-License-Identifier: Apache-2.0 */
#include "base/opt.h"

#include <getopt.h>
#include <unistd.h>

#include "base/array.h"
#include "base/opt_int.h"

/* Options every command has. They live outside the configuration struct. */
static const struct opt common_opts[] = {
	{ "config", 0, OPT_PATH, .arg = "FILE", .help = "read options from FILE, one \"name = value\" a line" },
	{ "help", 'h', OPT_FLAG, .help = "show this help" },
	{ 0 },
};

bool opt_takes_value(const struct opt *o)
{
	return o->type != OPT_FLAG && o->type != OPT_SWITCH;
}

bool opt_is_common(const struct opt *o)
{
	return o >= common_opts && o < common_opts + ARRAY_SIZE(common_opts);
}

const struct opt *opt_common(void)
{
	return common_opts;
}

void opt_collect(const struct opt_spec *spec, struct opt_all *out)
{
	out->count = 0;
	for (const struct opt_group *g = spec->groups; g->opts; g++)
		for (const struct opt *o = g->opts; o->name; o++) {
			must(out->count < OPTS_MAX);
			out->list[out->count++] = o;
		}
	for (const struct opt *o = common_opts; o->name; o++) {
		must(out->count < OPTS_MAX);
		out->list[out->count++] = o;
	}
}

const struct opt *opt_find(const struct opt_all *all, struct str name)
{
	for (size_t i = 0; i < all->count; i++)
		if (str_eq(name, str_of(all->list[i]->name)))
			return all->list[i];
	return NULL;
}

int opt_put_from(bool seen[OPTS_MAX], const struct opt_all *all, const struct opt *o, const char *text, void *config,
		 struct buf *why)
{
	for (size_t i = 0; i < all->count; i++) {
		if (all->list[i] != o)
			continue;
		if (o->type == OPT_LIST && !seen[i])
			((struct opt_list *)(void *)((char *)config + o->at))->count = 0;
		seen[i] = true;
	}
	return opt_put(o, text, config, why);
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

static int build_tables(const struct opt_all *all, bool stop_at_operand, struct getopt_tables *t)
{
	size_t longs = 0, at = 0;
	int r = 0;

	t->shorts[at++] = stop_at_operand ? '+' : ':';
	if (stop_at_operand)
		t->shorts[at++] = ':';
	for (size_t i = 0; i < all->count && r == 0; i++) {
		bool flag = !opt_takes_value(all->list[i]);

		t->longs[longs++] = (struct option){ all->list[i]->name,
						     flag || all->list[i]->bare ? optional_argument : required_argument,
						     NULL, (int)(1000 + i) };
		if (flag && !opt_is_common(all->list[i]))
			r = add_negation(t, i, all->list[i]->name, &longs);
		if (!all->list[i]->letter)
			continue;
		t->shorts[at++] = all->list[i]->letter;
		if (!flag)
			t->shorts[at++] = ':';
	}
	return r;
}

/* Does the word behind this one belong to it? */
static bool takes_next(const struct opt_all *all, struct str word)
{
	const struct opt *o;

	if (word.len < 2 || word.ptr[0] != '-' || str_find(word, '=') >= 0)
		return false;
	o = opt_find(all, str_skip(word, word.ptr[1] == '-' ? 2 : 1));
	for (size_t i = 0; !o && word.ptr[1] != '-' && i < all->count; i++)
		if (all->list[i]->letter && all->list[i]->letter == word.ptr[word.len - 1])
			o = all->list[i];
	return o && opt_takes_value(o) && !o->bare;
}

static bool is_single_dash_name(const struct opt_all *all, struct str word)
{
	struct str name = str_skip(word, 1);
	ptrdiff_t equals = str_find(name, '=');

	if (word.len < 3 || word.ptr[0] != '-' || word.ptr[1] == '-')
		return false;
	return opt_find(all, equals < 0 ? name : str_first(name, (size_t)equals));
}

/* "-F=99", in a dialect that has it. */
static const struct opt *letter_with_equals(const struct opt_dialect *dialect, const struct opt_all *all,
					    struct str word)
{
	if (!dialect || !dialect->letters_take_equals || word.len < 3 || word.ptr[0] != '-' || word.ptr[2] != '=')
		return NULL;
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i]->letter && all->list[i]->letter == word.ptr[1])
			return all->list[i];
	return NULL;
}

/* Does its value stand in the word behind, though it might have none? */
static bool takes_word(const struct opt_all *all, struct str word, const char *behind)
{
	const struct opt *o = str_starts(word, STR("--")) ? opt_find(all, str_skip(word, 2)) : NULL;

	return o && o->bare && behind && behind[0] != '-';
}

/* "-addr" becomes "--addr"; "--name" "value" becomes "--name=value". */
static int rewrite(struct opt_result *out, char **word, const char *front, const char *behind)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(4));
	size_t len;
	int r = array_grow(&out->rewritten, &out->rewritten_cap, out->rewritten_count, 4096);

	buf_addf(&text, "%s%s%s%s", front, *word, behind ? "=" : "", behind ? behind : "");
	(void)buf_cstr(&text);
	if (r < 0 || text.error)
		return r < 0 ? r : text.error;
	*word = out->rewritten[out->rewritten_count++] = buf_take(&text, &len);
	return 0;
}

/* "-F=99" becomes "--frequency=99". */
static int rewrite_letter(struct opt_result *out, char **word, const struct opt *o)
{
	scoped(buf_release) struct buf front = BUF_INIT(KIB(1));

	*word += 2; /* "=99" */
	buf_addf(&front, "--%s", o->name);
	return rewrite(out, word, buf_cstr(&front), NULL);
}

/* "-addr" and "-addr=x" become "--addr". Stops at "--" and, when operands begin a command line, at the first of them.
 * Return: the number of words, or -errno.
 */
static int normalize(const struct opt_all *all, const struct opt_spec *spec, int argc, char **argv,
		     struct opt_result *out)
{
	const bool stop_at_operand = spec->stop_at_operand;
	bool is_value = false, is_over = false;
	int count = 1;

	out->words = calloc((size_t)argc + 1, sizeof(*out->words));
	if (!out->words)
		return -ENOMEM;
	out->words[0] = argv[0];
	for (int i = 1; i < argc; i++) {
		struct str word = str_of(argv[i]);
		const struct opt *letter;
		char **at = &out->words[count++];
		int r = 0;

		*at = argv[i];
		if (is_value || is_over) {
			is_value = false;
			continue;
		}
		is_over = str_eq(word, STR("--")) || (stop_at_operand && (word.len < 2 || word.ptr[0] != '-'));
		if (is_over)
			continue;
		letter = letter_with_equals(spec->dialect, all, word);
		if (letter)
			r = rewrite_letter(out, at, letter);
		else if (is_single_dash_name(all, word))
			r = rewrite(out, at, "-", NULL);
		if (r == 0 && takes_word(all, str_of(*at), i + 1 < argc ? argv[i + 1] : NULL))
			r = rewrite(out, at, "", argv[++i]);
		if (r < 0)
			return r;
		is_value = takes_next(all, str_of(*at));
	}
	out->words[count] = NULL;
	return count;
}

static int say_bad(int c, const char *word, const struct opt_all *all, struct buf *why)
{
	struct str name = str_of(word);
	ptrdiff_t equals = str_find(name, '=');
	struct similar like;

	name = equals < 0 ? name : str_first(name, (size_t)equals);
	while (name.len && name.ptr[0] == '-')
		name = str_skip(name, 1);
	like = similar_to(name);
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i]->help)
			similar_offer(&like, all->list[i]->name);

	if (c == ':')
		buf_addf(why, "option '%s' needs a value", word);
	else if (optopt && optopt < 256)
		buf_addf(why, "unknown option '-%c'", optopt);
	else
		buf_addf(why, "unknown or ambiguous option '%s'", word);
	if (c != ':' && like.best)
		opt_add_similar(&like, "--", why);
	else
		buf_adds(why, STR("; --help lists them"));
	return -EINVAL;
}

static const struct opt *option_of(int c, const struct opt_all *all, bool *negated)
{
	*negated = c >= 1000 + OPTS_MAX;
	if (c >= 1000)
		return all->list[*negated ? c - 1000 - OPTS_MAX : c - 1000];
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i]->letter == c)
			return all->list[i];
	return NULL;
}

struct parse {
	struct opt_all all;
	bool seen[OPTS_MAX];
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
			return p->out->help ? 0 : say_bad(c, optind > 0 ? words[optind - 1] : "", &p->all, p->why);
		o = option_of(c, &p->all, &negated);
		must(o);
		if (opt_is_common(o) != !config)
			continue;
		if (config)
			r = opt_put_from(p->seen, &p->all, o,
					 optarg    ? optarg
					 : negated ? "false"
					 : o->bare ? o->bare
						   : "true",
					 config, p->why);
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
	struct parse p = { .tables = tables, .out = out, .why = why };
	int r;

	*out = (struct opt_result){ 0 };
	if (!tables)
		return -ENOMEM;
	opt_collect(spec, &p.all);
	r = build_tables(&p.all, spec->stop_at_operand, tables);
	if (r == 0)
		r = p.argc = normalize(&p.all, spec, argc, argv, out);
	if (r > 0)
		r = walk_words(&p, NULL);
	if (r < 0 || out->help)
		return r;
	if (!p.config_path && spec->dialect && spec->dialect->file && access(spec->dialect->file, F_OK) == 0)
		p.config_path = spec->dialect->file;
	r = opt_apply_defaults(&p.all, config, why);
	if (r == 0 && p.config_path)
		r = opt_apply_file(spec->dialect, &p.all, p.config_path, config, &out->file_text, why);
	if (r == 0)
		r = opt_apply_environment(spec->dialect, &p.all, config, why);
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
