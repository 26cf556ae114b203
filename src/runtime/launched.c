/* SPDX-License-Identifier: Apache-2.0 */
/* Source: gProfiler 1.57, metadata/application_identifiers.py and metadata/application_identifiers_java.py; java(1):
 * which options take the next argument for their value. */
#include "runtime/launched.h"

#include "codec/json.h"

#define ID_MAX KIB(16)
#define SPARK_MAX MIB(1)

enum launcher { LAUNCHER_NONE, LAUNCHER_NODE, LAUNCHER_RUBY, LAUNCHER_JAVA };

struct args {
	struct str items[LAUNCHED_ARGS_MAX];
	size_t count;
	const struct launched *l;
};

/* "ruby", "ruby3.1", "ruby2.7-dbg" are not told apart from "rubygems": digits follow. */
static bool is_ruby(struct str name)
{
	struct str rest = str_skip(name, 4);

	return str_starts(name, STR("ruby")) && (!rest.len || (rest.ptr[0] >= '0' && rest.ptr[0] <= '9'));
}

static enum launcher launcher_of(struct str exe)
{
	struct str name = str_base(exe);

	if (str_eq(name, STR("node")))
		return LAUNCHER_NODE;
	if (str_eq(name, STR("java")))
		return LAUNCHER_JAVA;
	return is_ruby(name) ? LAUNCHER_RUBY : LAUNCHER_NONE;
}

bool launched_is_known(struct str exe)
{
	return launcher_of(exe) != LAUNCHER_NONE;
}

static void split(const struct launched *l, struct args *out)
{
	struct str rest = str_first(l->argv, LAUNCHED_ARGV_MAX);

	out->l = l;
	out->count = 0;
	if (rest.len && !rest.ptr[rest.len - 1])
		rest.len--;
	while (out->count < LAUNCHED_ARGS_MAX && rest.len && str_next(&rest, 0, &out->items[out->count]))
		out->count++;
}

/* ---- scripts ---- */

static int add_script(const struct args *a, const char *kind, struct str script, struct buf *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(TARGET_PATH_MAX);
	bool is_whole = str_starts(script, STR("/"));
	int r;

	if (!is_whole && !a->l->cwd.len)
		return -ENOENT;
	if (!is_whole)
		buf_addf(&path, STR_FMT "/", STR_ARG(a->l->cwd));
	buf_adds(&path, script);
	if (path.error)
		return path.error == -ENOMEM ? -ENOMEM : -ENOENT;
	buf_addf(out, "%s: " STR_FMT " (", kind, STR_ARG(script));
	r = target_resolve(a->l->files, buf_str(&path), out);
	buf_addc(out, ')');
	return r == -ENOMEM ? r : r < 0 ? -ENOENT : out->error;
}

static bool is_script(struct str file, bool is_node)
{
	static const char *const ends[] = { ".js", ".mjs", ".cjs", ".ts" };

	if (!is_node)
		return str_ends(file, STR(".rb"));
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (str_ends(file, str_of(ends[i])))
			return true;
	return false;
}

static bool is_one_of(struct str item, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(item, str_of(names[i])))
			return true;
	return false;
}

/* Does the option @item take the next argument for its value? */
static bool takes_value(struct str item, bool is_node)
{
	static const char *const names[] = { "--require",    "--import", "--loader", "--experimental-loader",
					     "--conditions", "-C" };

	return str_eq(item, STR("-r")) || (is_node && is_one_of(item, names, ARRAY_SIZE(names)));
}

/* The first script among the arguments which is no option, and no value of one. */
static int script(const struct args *a, const char *kind, bool is_node, struct buf *out)
{
	for (size_t i = 1; i < a->count; i++) {
		struct str item = a->items[i];

		if (takes_value(item, is_node))
			i++;
		else if (!str_starts(item, is_node ? STR("-") : STR("-r")) && is_script(item, is_node))
			return add_script(a, kind, item, out);
	}
	return -ENOENT;
}

/* What a program wrote over its arguments; empty: nothing. */
static struct str title_of(const struct args *a)
{
	for (size_t i = 1; i < a->count; i++)
		if (a->items[i].len)
			return STR("");
	return a->count && str_find(a->items[0], ' ') >= 0 ? a->items[0] : STR("");
}

static struct str variable(struct str environment, struct str name)
{
	struct str one;

	while (environment.len && str_next(&environment, 0, &one))
		if (str_starts(one, name) && one.len > name.len && one.ptr[name.len] == '=')
			return str_skip(one, name.len + 1);
	return STR("");
}

/* What pm2 runs: by a variable, in its mode "cluster" by a member of one. */
static int pm2(const struct args *a, struct buf *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(TARGET_PATH_MAX),
				       environment = BUF_INIT(LAUNCHED_ENVIRONMENT_MAX);
	struct str rest, all, key, value;

	if (!a->l->environment || a->l->environment(a->l, LAUNCHED_ENVIRONMENT_MAX, &environment) < 0)
		return -ENOENT;
	buf_adds(&path, variable(buf_str(&environment), STR("pm_exec_path")));
	rest = variable(buf_str(&environment), STR("pm2_env"));
	if (!path.len && json_value(&rest, &all) == 0)
		while (json_member(&all, &key, &value))
			if (str_eq(key, STR("\"pm_exec_path\"")) && json_text(value, &path) < 0)
				buf_clear(&path);
	return path.len && !path.error ? add_script(a, "nodejs", buf_str(&path), out) : -ENOENT;
}

static bool is_pm2(const struct args *a)
{
	for (size_t i = 1; i < a->count; i++)
		if (str_ends(a->items[i], STR("/pm2/lib/ProcessContainerFork.js")) ||
		    str_ends(a->items[i], STR("/pm2/lib/ProcessContainer.js")))
			return true;
	return false;
}

/* The command, and of "run" and "exec" what that runs: other words may be secrets. */
static int add_npm(const struct args *a, struct str command, struct str what, struct buf *out)
{
	static const char *const with_more[] = { "run", "run-script", "exec", "x" };

	buf_addf(out, "nodejs: npm " STR_FMT, STR_ARG(command));
	if (what.len && is_one_of(command, with_more, ARRAY_SIZE(with_more)))
		buf_addf(out, " " STR_FMT, STR_ARG(what));
	if (a->l->cwd.len)
		buf_addf(out, " (" STR_FMT ")", STR_ARG(a->l->cwd));
	return out->error;
}

/* By its arguments, which it writes a title over a moment later. */
static int npm(const struct args *a, struct buf *out)
{
	struct str words[3] = { STR(""), STR(""), STR("") }; /* npm itself, command, what that runs */
	size_t count = 0;

	for (size_t i = 1; i < a->count && count < ARRAY_SIZE(words); i++)
		if (!str_starts(a->items[i], STR("-")))
			words[count++] = a->items[i];
	if (!str_eq(str_base(words[0]), STR("npm")) && !str_eq(str_base(words[0]), STR("npm-cli.js")))
		return -ENOENT;
	return words[1].len ? add_npm(a, words[1], words[2], out) : -ENOENT;
}

static int npm_title(const struct args *a, struct str title, struct buf *out)
{
	struct str rest = str_skip(title, sizeof("npm ") - 1), command = STR(""), what = STR("");

	(void)str_next(&rest, ' ', &command);
	if (rest.len)
		(void)str_next(&rest, ' ', &what);
	return command.len ? add_npm(a, command, what, out) : -ENOENT;
}

/* npm is told by its command and folder, pm2's daemon by its title. What pm2 runs has "node" and the script in its own,
 * unless somebody gave it another, or it is cut: it is not longer than the arguments were. */
static int node(const struct args *a, struct buf *out)
{
	struct str title = title_of(a);
	int r;

	if (str_starts(title, STR("npm ")))
		return npm_title(a, title, out);
	if (str_starts(title, STR("PM2 v"))) {
		buf_addf(out, "nodejs: " STR_FMT, STR_ARG(title));
		return out->error;
	}
	if (str_starts(title, STR("node /")) && is_script(title, true))
		return add_script(a, "nodejs", str_skip(title, sizeof("node ") - 1), out);
	if (title.len || is_pm2(a))
		return pm2(a, out);
	r = npm(a, out);
	return r == -ENOENT ? script(a, "nodejs", true, out) : r;
}

/* ---- JVM ---- */

/* Does the launcher take the next argument for this one's value? */
static bool java_takes_value(struct str item)
{
	static const char *const names[] = { "-cp",
					     "-classpath",
					     "--class-path",
					     "-p",
					     "--module-path",
					     "--upgrade-module-path",
					     "--add-modules",
					     "--add-reads",
					     "--add-exports",
					     "--add-opens",
					     "--limit-modules",
					     "--patch-module",
					     "--enable-native-access",
					     "--source" };

	return is_one_of(item, names, ARRAY_SIZE(names));
}

/* Where the class, module or archive stands that is run; 0: nowhere. */
static size_t java_main(const struct args *a)
{
	for (size_t i = 1; i < a->count; i++) {
		struct str item = a->items[i];

		if (str_eq(item, STR("-jar")) || str_eq(item, STR("-m")) || str_eq(item, STR("--module")))
			return i + 1 < a->count ? i + 1 : 0;
		if (str_starts(item, STR("--module=")))
			return i;
		if (java_takes_value(item))
			i++;
		else if (item.len && item.ptr[0] != '-' && item.ptr[0] != '@') /* @FILE has more arguments */
			return i;
	}
	return 0;
}

static void add_wanted(const struct args *a, size_t end, struct buf *out)
{
	const struct launched *l = a->l;
	bool is_first = true;

	for (size_t i = 1; l->wants_argument && i < end; i++) {
		if (!str_starts(a->items[i], STR("-")) || !l->wants_argument(l->ctx, a->items[i]))
			continue;
		buf_adds(out, is_first ? STR(" (") : STR(" "));
		buf_adds(out, a->items[i]);
		is_first = false;
	}
	if (!is_first)
		buf_addc(out, ')');
}

static bool is_spark_executor(const struct args *a)
{
	for (size_t i = 1; i < a->count; i++)
		if (str_search(a->items[i], STR("org.apache.spark.executor")) >= 0)
			return true;
	return false;
}

/* "spark.app.name=Count words", in the format of Java's Properties. */
static struct str spark_name(struct str text)
{
	static const struct str key = STR("spark.app.name");
	struct str line, found = STR("");

	while (str_next(&text, '\n', &line)) {
		line = str_trim(line);
		if (str_starts(line, key) && line.len > key.len && strchr("=: ", line.ptr[key.len]))
			found = str_trim(str_skip(line, key.len + 1));
	}
	return found;
}

static int add_spark(const struct args *a, struct buf *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(TARGET_PATH_MAX), text = BUF_INIT(SPARK_MAX + 1);
	struct str name = STR("");
	int r = -ENOENT;

	buf_addf(&path, STR_FMT "/__spark_conf__/__spark_conf__.properties", STR_ARG(a->l->cwd));
	(void)buf_cstr(&path);
	if (a->l->cwd.len && !path.error)
		r = a->l->files->read(a->l->files->self, path.ptr, SPARK_MAX, &text);
	if (r == -ENOMEM)
		return r;
	if (r == 0)
		name = spark_name(buf_str(&text));
	buf_adds(out, name.len ? STR(", spark: ") : STR(", app name not found"));
	buf_adds(out, name);
	return out->error;
}

static int java(const struct args *a, struct buf *out)
{
	size_t at = java_main(a);
	struct str what;

	if (!at)
		return -ENOENT;
	what = a->items[at];
	if (str_starts(what, STR("--module=")))
		what = str_skip(what, sizeof("--module=") - 1);
	if (!what.len)
		return -ENOENT;
	buf_addf(out, "java: " STR_FMT, STR_ARG(what));
	add_wanted(a, at, out);
	return a->l->with_spark && is_spark_executor(a) ? add_spark(a, out) : out->error;
}

int launched_app_id(const struct launched *l, struct buf *out)
{
	scoped(buf_release) struct buf id = BUF_INIT(ID_MAX);
	enum launcher launcher = launcher_of(l->exe);
	struct args *a = launcher == LAUNCHER_NONE ? NULL : malloc(sizeof(*a));
	int r = -ENOENT;

	if (!a)
		return launcher == LAUNCHER_NONE ? -ENOENT : -ENOMEM;
	split(l, a);
	if (launcher == LAUNCHER_NODE)
		r = node(a, &id);
	else if (launcher == LAUNCHER_RUBY)
		r = script(a, "ruby", false, &id);
	else
		r = java(a, &id);
	free(a);
	r = r ? r : id.error;
	if (r == 0)
		buf_adds(out, buf_str(&id));
	return r ? r : out->error;
}
