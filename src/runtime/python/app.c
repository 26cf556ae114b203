/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of docs/applications.md in their order; the first that has an answer wins. Source: gProfiler,
 * metadata/application_identifiers.py. */
#include "runtime/python/app.h"

#include <strings.h>

#define ID_MAX KIB(16)

struct args {
	struct str items[PYTHON_ARGS_MAX];
	size_t count;
	const struct python_app *app;
};

static void split(const struct python_app *app, struct args *out)
{
	struct str rest = str_first(app->argv, PYTHON_ARGV_MAX);

	out->app = app;
	out->count = 0;
	if (rest.len && !rest.ptr[rest.len - 1])
		rest.len--;
	while (out->count < PYTHON_ARGS_MAX && rest.len && str_next(&rest, 0, &out->items[out->count]))
		out->count++;
}

static struct str arg(const struct args *a, size_t index)
{
	return index < a->count ? a->items[index] : STR("");
}

static bool is_called(const struct args *a, size_t last, struct str name)
{
	for (size_t i = 0; i <= last; i++)
		if (str_eq(str_base(arg(a, i)), name))
			return true;
	return false;
}

/* ^python([23](\.\d{1,2})?)?$ */
static bool is_python(const struct args *a)
{
	struct str name = str_base(arg(a, 0));

	if (!str_starts(name, STR("python")))
		return false;
	name = str_skip(name, 6);
	if (!name.len)
		return true;
	if (name.ptr[0] != '2' && name.ptr[0] != '3')
		return false;
	if (name.len == 1)
		return true;
	if (name.ptr[1] != '.' || name.len < 3 || name.len > 4)
		return false;
	for (size_t i = 2; i < name.len; i++)
		if (name.ptr[i] < '0' || name.ptr[i] > '9')
			return false;
	return true;
}

/* The value of an option that is an argument of its own, or the rest of "--name=value"; -A takes "-Avalue", too. */
static bool option(const struct args *a, struct str name, struct str *out)
{
	bool is_long = str_starts(name, STR("--"));

	for (size_t i = 1; i < a->count; i++) {
		struct str item = a->items[i];

		if (str_eq(item, name)) {
			*out = arg(a, i + 1);
			return out->len;
		}
		if (!str_starts(item, name) || (is_long && item.ptr[name.len] != '='))
			continue;
		*out = str_skip(item, name.len + is_long);
		return out->len;
	}
	return false;
}

/* Dots of folders in front of a module stay. */
static void add_module(struct str module, struct buf *out)
{
	size_t folders = module.len - str_base(module).len;

	if (str_ends(module, STR(".py"))) {
		buf_adds(out, module);
		return;
	}
	buf_adds(out, str_first(module, folders));
	for (size_t i = folders; i < module.len; i++)
		buf_addc(out, (char)(module.ptr[i] == '.' ? '/' : module.ptr[i]));
	buf_adds(out, STR(".py"));
}

/* Append M(@module): the file of a module or script, as the process finds it from its working directory. */
static int add_path(const struct args *a, struct str module, struct buf *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(TARGET_PATH_MAX);
	int r;

	if (!module.len || (module.ptr[0] != '/' && !a->app->cwd.len))
		return -ENOENT;
	if (module.ptr[0] != '/') {
		buf_adds(&path, a->app->cwd);
		buf_addc(&path, '/');
	}
	add_module(module, &path);
	r = path.error ? path.error : target_resolve(a->app->files, buf_str(&path), out);
	return r == -ENOMEM ? r : r < 0 ? -ENOENT : 0;
}

/* "my.wsgi:app" is the object app of the module my.wsgi. */
static struct str module_of(struct str spec)
{
	ptrdiff_t colon = str_find(spec, ':');

	return colon < 0 ? spec : str_first(spec, (size_t)colon);
}

static int add_id(const struct args *a, struct str server, struct str what, struct str module, struct buf *out)
{
	int r;

	buf_adds(out, server);
	buf_adds(out, STR(": "));
	buf_adds(out, what);
	buf_adds(out, STR(" ("));
	r = add_path(a, module, out);
	buf_addc(out, ')');
	return r < 0 ? r : out->error;
}

/* Rule 1: "gunicorn: worker [my.wsgi:app]", alone: what gunicorn writes over its arguments. */
static int gunicorn_title(const struct args *a, struct buf *out)
{
	struct str title = STR("");
	size_t used = 0;

	for (size_t i = 0; i < a->count; i++) {
		if (!a->items[i].len)
			continue;
		title = a->items[i];
		used++;
	}
	if (used != 1 || !str_ends(title, STR("]")))
		return -ENOENT;
	if (str_starts(title, STR("gunicorn: master [")) || str_starts(title, STR("gunicorn: worker [")))
		title = str_skip(title, sizeof("gunicorn: master [") - 1);
	else
		return -ENOENT;
	title.len--;
	return add_id(a, STR("gunicorn"), title, module_of(title), out);
}

/* Does this option take what follows it for its value, as far as one can see? "--bind=:80" has it already. */
static bool wants_value(struct str item)
{
	return str_starts(item, STR("-")) && !(str_starts(item, STR("--")) && str_find(item, '=') >= 0);
}

/* "module:object" that is no option and no option's value. */
static bool find_spec(const struct args *a, struct str flag, struct str *out)
{
	for (size_t i = 1; i < a->count; i++) {
		struct str before = a->items[i - 1];

		if (str_find(a->items[i], ':') < 0 || str_starts(a->items[i], STR("-")))
			continue;
		if (wants_value(before) && !(flag.len && str_eq(before, flag)))
			continue;
		*out = a->items[i];
		return true;
	}
	return false;
}

static int server(const struct args *a, struct str name, struct str flag, struct buf *out)
{
	struct str spec;

	if (!is_called(a, 1, name))
		return -ENOENT;
	if (find_spec(a, flag, &spec))
		return add_id(a, name, spec, module_of(spec), out);
	buf_adds(out, name);
	buf_adds(out, STR(": unknown app name (unknown app name)"));
	return out->error;
}

static int gunicorn(const struct args *a, struct buf *out)
{
	return server(a, STR("gunicorn"), STR(""), out);
}

static int uvicorn(const struct args *a, struct buf *out)
{
	return server(a, STR("uvicorn"), STR("--factory"), out);
}

static bool find_ini(const struct args *a, struct str *out)
{
	static const struct str names[] = { { "--ini", 5 }, { "--ini-paste", 11 }, { "--ini-paste-logged", 18 } };
	size_t found = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (option(a, names[i], out))
			return true;
	for (size_t i = 1; i < a->count; i++) {
		if (!str_ends(a->items[i], STR(".ini")))
			continue;
		*out = a->items[i];
		found++;
	}
	return found == 1;
}

/* The module an ini file names, into @text. */
static int ini_module(const struct args *a, struct str ini, struct buf *text, struct str *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(TARGET_PATH_MAX);
	int r;

	if (ini.ptr[0] != '/') {
		if (!a->app->cwd.len)
			return -ENOENT;
		buf_adds(&path, a->app->cwd);
		buf_addc(&path, '/');
	}
	buf_adds(&path, ini);
	(void)buf_cstr(&path);
	if (path.error)
		return path.error == -ENOMEM ? -ENOMEM : -ENOENT;
	r = a->app->files->read(a->app->files->self, path.ptr, PYTHON_INI_MAX, text);
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	r = python_ini_find(buf_str(text), STR("uwsgi"), STR("module"), out);
	return r == 0 && (!out->len || str_find(*out, '%') >= 0) ? -ENOENT : r; /* % begins a variable of uwsgi's */
}

static int uwsgi(const struct args *a, struct buf *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(PYTHON_INI_MAX + 1);
	struct str found, module;
	int r;

	if (!is_called(a, 0, STR("uwsgi")))
		return -ENOENT;
	if (option(a, STR("-w"), &found) || option(a, STR("--wsgi-file"), &found))
		return add_id(a, STR("uwsgi"), found, module_of(found), out);
	if (!find_ini(a, &found)) {
		buf_adds(out, STR("uwsgi: ini file / wsgi module not found"));
		return out->error;
	}
	r = ini_module(a, found, &text, &module);
	if (r == 0)
		return add_id(a, STR("uwsgi"), found, module_of(module), out);
	if (r != -ENOENT)
		return r;
	buf_adds(out, STR("uwsgi: "));
	buf_adds(out, found);
	return out->error;
}

static int celery(const struct args *a, struct buf *out)
{
	struct str found;

	if (!is_called(a, 1, STR("celery")) &&
	    !(is_python(a) && str_eq(arg(a, 1), STR("-m")) && str_eq(arg(a, 2), STR("celery"))))
		return -ENOENT;
	if (option(a, STR("-A"), &found) || option(a, STR("--app"), &found))
		return add_id(a, STR("celery"), found, module_of(found), out);
	if (!option(a, STR("-Q"), &found) && !option(a, STR("--queues"), &found))
		return -ENOENT;
	buf_adds(out, STR("celery queue: "));
	buf_adds(out, found);
	buf_adds(out, STR(" ("));
	buf_adds(out, a->app->cwd);
	buf_addc(out, ')');
	return out->error;
}

static int pyspark(const struct args *a, struct buf *out)
{
	if (!is_python(a) || !str_eq(arg(a, 1), STR("-m")) || !str_eq(arg(a, 2), STR("pyspark.daemon")))
		return -ENOENT;
	buf_adds(out, STR("pyspark"));
	return out->error;
}

/* An option of the interpreter behind which others may follow: no "-c", alone or among others, no script. */
static bool is_plain_option(struct str item)
{
	if (item.len < 2 || item.ptr[0] != '-')
		return false;
	return strchr("WX-", item.ptr[1]) || (str_find(item, 'c') < 0 && str_find(item, 'm') < 0);
}

/* "-m" among the interpreter's own options. What follows a script, "-c" or "-" is the program's. */
static bool find_module(const struct args *a, struct str *out)
{
	for (size_t i = 1; i < a->count; i++) {
		struct str item = a->items[i];

		if (str_eq(item, STR("-m"))) {
			*out = arg(a, i + 1);
			return out->len;
		}
		if (str_eq(item, STR("-W")) || str_eq(item, STR("-X")) || str_eq(item, STR("--check-hash-based-pycs")))
			i++;
		else if (!is_plain_option(item))
			return false;
	}
	return false;
}

static int python(const struct args *a, struct buf *out)
{
	struct str found;

	if (!is_python(a))
		return -ENOENT;
	if (find_module(a, &found)) {
		buf_adds(out, STR("python: -m "));
		buf_adds(out, found);
		return out->error;
	}
	if (!str_ends(arg(a, 1), STR(".py")))
		return -ENOENT;
	return add_id(a, STR("python"), arg(a, 1), arg(a, 1), out);
}

int python_app_id(const struct python_app *app, struct buf *out)
{
	static int (*const rules[])(const struct args *, struct buf *) = {
		gunicorn_title, gunicorn, uvicorn, uwsgi, celery, pyspark, python,
	};
	scoped(freep) struct args *a = malloc(sizeof(*a));

	if (!a)
		return -ENOMEM;
	split(app, a);
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		scoped(buf_release) struct buf id = BUF_INIT(ID_MAX);
		int r = rules[i](a, &id);

		if (r == 0) {
			buf_adds(out, buf_str(&id));
			return out->error;
		}
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

static bool same_key(struct str a, struct str b)
{
	return a.len == b.len && !strncasecmp(a.ptr, b.ptr, a.len);
}

int python_ini_find(struct str text, struct str section, struct str key, struct str *out)
{
	struct str line, at = STR("");
	bool inside = false;
	int r = -ENOENT;

	while (str_next(&text, '\n', &line)) {
		struct str name = str_trim(line);
		size_t end = 0;

		if (!name.len || name.ptr[0] == '#' || name.ptr[0] == ';' || line.ptr[0] == ' ' || line.ptr[0] == '\t')
			continue; /* comments, and lines that go on with a value */
		if (name.ptr[0] == '[') {
			ptrdiff_t close = str_find(name, ']');

			inside = close > 0 && str_eq(str_n(name.ptr + 1, (size_t)close - 1), section);
			continue;
		}
		while (end < name.len && name.ptr[end] != '=' && name.ptr[end] != ':')
			end++;
		if (!inside || end == name.len || !same_key(str_trim(str_first(name, end)), key))
			continue;
		at = str_trim(str_skip(name, end + 1));
		r = 0;
	}
	if (r == 0)
		*out = at;
	return r;
}
