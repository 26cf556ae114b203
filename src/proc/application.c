/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/application.h"

#define ARGS_MAX 192

struct args {
	struct str items[ARGS_MAX];
	size_t count;
};

enum how { HOW_SCRIPT, HOW_JAVA, HOW_SHELL, HOW_TITLE };

/* How a launcher's command line is read up to what it runs. Sources: python(1), java(1), node(1), ruby(1), perlrun(1),
 * php(1), bash(1), lua(1), dotnet(1). */
struct launcher {
	const char *name; /* of the program, without its version */
	enum how how;
	const char *values; /* options whose value is an argument of its own */
	const char *code;   /* letters of options that are followed by code, and words of the same meaning */
	const char *words;  /* commands in front of what is run */
	bool has_modules;   /* -m */
};

static const struct launcher launchers[] = {
	{ "python", HOW_SCRIPT, "-W -X --check-hash-based-pycs", "c", "", true },
	{ "pypy", HOW_SCRIPT, "-W -X", "c", "", true },
	{ "java", HOW_JAVA,
	  "-cp -classpath --class-path -p --module-path --upgrade-module-path --add-modules --add-reads --add-exports "
	  "--add-opens --limit-modules --patch-module --enable-native-access --source -splash",
	  "", "", false },
	{ "node", HOW_SCRIPT,
	  "-r --require --import --loader --experimental-loader -C --conditions --env-file --title --input-type",
	  "ep --eval --print", "", false },
	{ "nodejs", HOW_SCRIPT, "-r --require --import --loader --experimental-loader -C --conditions",
	  "ep --eval --print", "", false },
	{ "bun", HOW_SCRIPT, "--preload -r", "e --eval", "run", false },
	{ "deno", HOW_SCRIPT, "-c --config --import-map", "", "run serve", false },
	{ "ruby", HOW_SCRIPT, "-I -r -C -E", "e", "bundle exec", false },
	{ "perl", HOW_SCRIPT, "-I", "eE", "", false },
	{ "php", HOW_SCRIPT, "-c -d -z -t -S", "r --run", "", false },
	{ "php-fpm", HOW_TITLE, "", "", "", false },
	{ "lua", HOW_SCRIPT, "-l", "e", "", false },
	{ "luajit", HOW_SCRIPT, "-l", "e", "", false },
	{ "dotnet", HOW_SCRIPT, "--depsfile --runtimeconfig --fx-version --additionalprobingpath", "", "exec", false },
	{ "mono", HOW_SCRIPT, "--config", "", "", false },
	{ "tclsh", HOW_SCRIPT, "-encoding", "", "", false },
	{ "uwsgi", HOW_SCRIPT, "", "", "", false },
	{ "uwsgi-core", HOW_SCRIPT, "", "", "", false },
	{ "sh", HOW_SHELL, "-o -O +o +O", "c", "", false },
	{ "dash", HOW_SHELL, "-o +o", "c", "", false },
	{ "bash", HOW_SHELL, "-o -O +o +O --rcfile --init-file", "c", "", false },
	{ "zsh", HOW_SHELL, "-o +o", "c", "", false },
	{ "ksh", HOW_SHELL, "-o +o", "c", "", false },
};

/* Programs that run one object of a module: "shop:app". */
static const char servers[] = "gunicorn uvicorn hypercorn daphne waitress-serve";

static bool is_in(const char *words, struct str word)
{
	struct str rest = str_of(words), one;

	while (word.len && str_next(&rest, ' ', &one))
		if (str_eq(one, word))
			return true;
	return false;
}

/* python3.11, node18, lua5.4, ruby3.1, python3.12d; but no other program whose name begins in the same way. */
static bool is_version(struct str rest)
{
	for (size_t i = 0; i < rest.len; i++)
		if (!strchr("0123456789.-", rest.ptr[i]) && !(i + 1 == rest.len && strchr("dmt", rest.ptr[i])))
			return false;
	return !rest.len || !strchr("dmt", rest.ptr[0]);
}

static const struct launcher *find_launcher(struct str exe)
{
	struct str name = str_base(exe);

	for (size_t i = 0; i < ARRAY_SIZE(launchers); i++) {
		struct str own = str_of(launchers[i].name);

		if (str_starts(name, own) && is_version(str_skip(name, own.len)))
			return &launchers[i];
	}
	return NULL;
}

bool application_is_launcher(struct str exe)
{
	return find_launcher(exe);
}

/* The last argument may be cut. */
static void split(struct str argv, struct args *out)
{
	struct str rest = str_first(argv, APPLICATION_ARGV_MAX);

	out->count = 0;
	while (rest.len && !rest.ptr[rest.len - 1])
		rest.len--;
	while (rest.len && out->count < ARGS_MAX && str_next(&rest, 0, &out->items[out->count]))
		out->count++;
}

static struct str arg(const struct args *a, size_t index)
{
	return index < a->count ? a->items[index] : STR("");
}

/* The value of "-n X", "--name X" or "--name=X" from argument @from on. */
static struct str option(const struct args *a, size_t from, const char *names)
{
	for (size_t i = from; i < a->count; i++) {
		ptrdiff_t equals = str_find(a->items[i], '=');

		if (is_in(names, a->items[i]))
			return arg(a, i + 1);
		if (equals > 0 && is_in(names, str_first(a->items[i], (size_t)equals)))
			return str_skip(a->items[i], (size_t)equals + 1);
	}
	return STR("");
}

static bool is_name_byte(char c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "shop.wsgi:app"; neither "localhost:8000" nor "unix:/run/shop". */
static bool is_spec(struct str s)
{
	ptrdiff_t colon = str_find(s, ':');

	if (colon < 1 || (size_t)colon + 1 >= s.len || !is_name_byte(s.ptr[0]) || !is_name_byte(s.ptr[colon + 1]))
		return false;
	for (ptrdiff_t i = 0; i < colon; i++)
		if (!is_name_byte(s.ptr[i]) && s.ptr[i] != '.' && !(s.ptr[i] >= '0' && s.ptr[i] <= '9'))
			return false;
	return true;
}

static struct str find_spec(const struct args *a, size_t from)
{
	for (size_t i = from; i < a->count; i++)
		if (is_spec(a->items[i]) && !is_in("-k --worker-class -c --config -b --bind", a->items[i - 1]))
			return a->items[i];
	return STR("");
}

static enum application_kind add(struct buf *out, struct str server, struct str what)
{
	size_t before = out->len;

	buf_adds(out, server);
	if (server.len && what.len)
		buf_adds(out, STR(": "));
	buf_adds(out, what);
	return out->len > before ? APPLICATION_NAMED : APPLICATION_NONE;
}

/* @name: of a script or module that serves others; @from: the arguments behind it. */
static bool add_server(const struct args *a, size_t from, struct str name, struct buf *out)
{
	struct str what = STR("");

	if (is_in(servers, name)) {
		what = option(a, from, "-n --name");
		what = what.len ? what : find_spec(a, from);
	} else if (str_eq(name, STR("celery")) || str_eq(name, STR("flask"))) {
		what = option(a, from, "-A --app");
	} else if (str_starts(name, STR("uwsgi"))) {
		name = STR("uwsgi");
		what = option(a, from, "-w --module --wsgi-file --file");
		what = str_base(what.len ? what : option(a, from, "--ini --yaml --xml"));
	} else {
		return false;
	}
	return add(out, name, what) == APPLICATION_NAMED;
}

/* What stands between a title's brackets. */
static struct str bracketed(struct str title)
{
	ptrdiff_t open = str_rfind(title, '[');

	if (open < 0 || !str_ends(title, STR("]")))
		return STR("");
	return str_n(title.ptr + open + 1, title.len - (size_t)open - 2);
}

/* What servers write over their arguments: "gunicorn: worker [shop:app]", "puma 6.4.0 (tcp://0.0.0.0:80) [shop]",
 * "sidekiq 7.2.0 shop [0 of 5 busy]", "php-fpm: pool www". Sources: setproctitle's callers in their programs. */
static enum application_kind of_title(struct str title, struct buf *out)
{
	struct str rest = str_trim(title), word;

	title = rest;
	if (!str_next(&rest, ' ', &word))
		return APPLICATION_NONE;
	word = str_base(word);
	while (str_ends(word, STR(":")))
		word.len--;
	if (str_eq(word, STR("gunicorn")) || str_eq(word, STR("puma")))
		return add(out, word, bracketed(title));
	if (str_eq(word, STR("php-fpm"))) {
		ptrdiff_t pool = str_search(title, STR(": pool "));

		return add(out, word, pool < 0 ? STR("") : str_skip(title, (size_t)pool + 7));
	}
	if (str_eq(word, STR("sidekiq"))) {
		struct str version, name;

		return add(out, word, str_next(&rest, ' ', &version) && str_next(&rest, ' ', &name) ? name : STR(""));
	}
	return add(out, STR(""), word);
}

/* The file's name; of a package's main file, the package's. */
static enum application_kind add_script(struct str path, struct buf *out)
{
	struct str name = str_base(path);

	if (str_eq(name, STR("__main__.py")) && path.len > name.len)
		name = str_base(str_first(path, path.len - name.len - 1));
	return add(out, STR(""), name);
}

/* "-c", "-ec", "-pe": code follows. "-Wignore", "-Mfeature": the value stands behind the letter. */
static bool is_code(const struct launcher *l, struct str item)
{
	struct str letters = str_of(l->code);
	ptrdiff_t blank = str_find(letters, ' ');

	if (blank >= 0 && is_in(l->code + blank + 1, item))
		return true;
	letters = blank < 0 ? letters : str_first(letters, (size_t)blank);
	if (item.len < 2 || item.ptr[1] == '-' || str_find(letters, item.ptr[item.len - 1]) < 0)
		return false;
	return item.len == 2 || !strchr("MWXr", item.ptr[1]);
}

/* What is run: the first argument that is no option and no option's value. Return: its index; 0: there is none. */
static size_t find_first(const struct launcher *l, const struct args *a, bool *is_module)
{
	for (size_t i = 1; i < a->count; i++) {
		struct str item = a->items[i];

		*is_module = false;
		if (!str_starts(item, STR("-")) && !str_starts(item, STR("+"))) {
			if (!is_in(l->words, str_base(item)))
				return i;
			continue;
		}
		if (str_eq(item, STR("--")))
			return i + 1 < a->count ? i + 1 : 0;
		if (item.len == 1 || is_code(l, item)) /* "-", "+": what follows comes from elsewhere */
			return 0;
		*is_module = l->has_modules && item.ptr[1] != '-' && item.ptr[1] != 'W' && item.ptr[1] != 'X' &&
			     str_ends(item, STR("m"));
		if (*is_module)
			return i + 1 < a->count ? i + 1 : 0;
		i += is_in(l->values, item);
	}
	return 0;
}

/* "com.acme.Main", "shop.jar", "shop.module/com.acme.Main". An "@file" holds further arguments, which are not read. */
static enum application_kind java(const struct launcher *l, const struct args *a, struct buf *out)
{
	for (size_t i = 1; i < a->count; i++) {
		struct str item = a->items[i];

		if (str_eq(item, STR("-jar")))
			return add(out, STR("java"), str_base(arg(a, i + 1)));
		if (is_in("-m --module", item))
			return add(out, STR("java"), arg(a, i + 1));
		if (str_starts(item, STR("--module=")))
			return add(out, STR("java"), str_skip(item, 9));
		if (str_starts(item, STR("@")))
			continue;
		if (item.len && !str_starts(item, STR("-")))
			return add(out, STR("java"), str_ends(item, STR(".java")) ? str_base(item) : item);
		i += is_in(l->values, item);
	}
	return APPLICATION_NONE;
}

static enum application_kind script(const struct launcher *l, const struct args *a, struct buf *out)
{
	bool is_module = false;
	size_t at = find_first(l, a, &is_module);

	if (str_starts(str_of(l->name), STR("uwsgi")))
		return add_server(a, 1, STR("uwsgi"), out) ? APPLICATION_NAMED : APPLICATION_NONE;
	if (!at || !a->items[at].len)
		return APPLICATION_NONE;
	if (l->how != HOW_SHELL && add_server(a, at + 1, str_base(a->items[at]), out))
		return APPLICATION_NAMED;
	if (is_module)
		return add(out, STR(""), a->items[at]);
	if (add_script(a->items[at], out) == APPLICATION_NONE)
		return APPLICATION_NONE;
	return l->how == HOW_SHELL ? APPLICATION_SCRIPT : APPLICATION_NAMED;
}

enum application_kind application_of(struct str exe, struct str argv, struct buf *out)
{
	const struct launcher *l = find_launcher(exe);
	struct args a;
	struct str first;

	if (!l)
		return APPLICATION_NONE;
	split(argv, &a);
	first = arg(&a, 0);
	if (l->how == HOW_JAVA)
		return java(l, &a, out);
	/* Alone, and not how such a program is called: it wrote over its arguments. */
	if ((a.count == 1 || l->how == HOW_TITLE) && l->how != HOW_SHELL)
		return find_launcher(first) ? APPLICATION_NONE : of_title(first, out);
	return script(l, &a, out);
}
