/* SPDX-License-Identifier: Apache-2.0 */
/* Application ids of Python processes: every rule and example of docs/applications.md. */
#include "support.h"

#include "runtime/python/app.h"

struct fake_files {
	const char *path, *text;   /* the only file */
	const char *link, *target; /* the only link */
};

static int fake_read(void *self, const char *path, size_t max, struct buf *out)
{
	const struct fake_files *f = self;

	if (!f->path || strcmp(path, f->path))
		return -ENOENT;
	if (strlen(f->text) > max)
		return -E2BIG;
	buf_adds(out, str_of(f->text));
	return out->error;
}

static int fake_link(void *self, const char *path, struct buf *out)
{
	const struct fake_files *f = self;

	if (!f->link || strcmp(path, f->link))
		return -EINVAL;
	buf_adds(out, str_of(f->target));
	return out->error;
}

#define INI "my.ini"
#define INI_FILE "/my/dir/my.ini"

struct app_case {
	const char *name, *argv, *want; /* argv: split at '^'; want NULL: nobody can tell */
	struct fake_files files;
	const char *cwd; /* NULL: /my/dir */
};

static const struct app_case cases[] = {
	{ "gunicorn title", "gunicorn: worker [my.wsgi:app]", "gunicorn: my.wsgi:app (/my/dir/my/wsgi.py)" },
	{ "gunicorn title of the master, padded", "gunicorn: master [my.wsgi:app]^^^^",
	  "gunicorn: my.wsgi:app (/my/dir/my/wsgi.py)" },
	{ "gunicorn title of a path", "gunicorn: worker [/path/to/my/wsgi:app]",
	  "gunicorn: /path/to/my/wsgi:app (/path/to/my/wsgi.py)" },
	{ "gunicorn title and more", "gunicorn: worker [my.wsgi:app]^x", NULL },
	{ "gunicorn title of something else", "gunicorn: arbiter [my.wsgi:app]", NULL },
	{ "gunicorn title without its end", "gunicorn: worker [my.wsgi:app", NULL },
	{ "gunicorn", "gunicorn^my.wsgi:app", "gunicorn: my.wsgi:app (/my/dir/my/wsgi.py)" },
	{ "gunicorn, address first", "/usr/bin/python3^/usr/bin/gunicorn^-b^0.0.0.0:80^my.wsgi:app",
	  "gunicorn: my.wsgi:app (/my/dir/my/wsgi.py)" },
	{ "gunicorn, path", "gunicorn^/path/to/my/wsgi:app", "gunicorn: /path/to/my/wsgi:app (/path/to/my/wsgi.py)" },
	{ "gunicorn, path with dots", "gunicorn^/opt/app-1.2/my.wsgi:app",
	  "gunicorn: /opt/app-1.2/my.wsgi:app (/opt/app-1.2/my/wsgi.py)" },
	{ "gunicorn, an option with its value", "gunicorn^--bind=0.0.0.0:80^my.wsgi:app",
	  "gunicorn: my.wsgi:app (/my/dir/my/wsgi.py)" },
	{ "gunicorn, configured elsewhere", "gunicorn^-b^0.0.0.0:80", "gunicorn: unknown app name (unknown app name)" },
	{ "gunicorn, third", "a^b^gunicorn^my.wsgi:app", NULL },
	{ "uvicorn", "uvicorn^my.asgi:app", "uvicorn: my.asgi:app (/my/dir/my/asgi.py)" },
	{ "uvicorn, factory", "/usr/bin/python3.11^/venv/bin/uvicorn^--host^1:2^--factory^my.asgi:app",
	  "uvicorn: my.asgi:app (/my/dir/my/asgi.py)" },
	{ "gunicorn has no factory", "gunicorn^--factory^my.asgi:app",
	  "gunicorn: unknown app name (unknown app name)" },
	{ "uvicorn, none", "uvicorn", "uvicorn: unknown app name (unknown app name)" },
	{ "uwsgi, -w", "uwsgi^-w^my.wsgi", "uwsgi: my.wsgi (/my/dir/my/wsgi.py)" },
	{ "uwsgi, -w with an object", "uwsgi^-w^my.wsgi:app", "uwsgi: my.wsgi:app (/my/dir/my/wsgi.py)" },
	{ "uwsgi, file", "/usr/bin/uwsgi^--http^:80^--wsgi-file^my.py", "uwsgi: my.py (/my/dir/my.py)" },
	{ "uwsgi, file after =", "uwsgi^--wsgi-file=sub/my.py", "uwsgi: sub/my.py (/my/dir/sub/my.py)" },
	{ "uwsgi, second", "python3^uwsgi^-w^my.wsgi", NULL },
	{ "uwsgi, ini",
	  "uwsgi^--ini^" INI,
	  "uwsgi: my.ini (/my/dir/mymod.py)",
	  { INI_FILE, "[other]\nmodule = no\n[uwsgi]\nhttp = :80\nmodule = mymod\n" } },
	{ "uwsgi, ini after =",
	  "uwsgi^--ini=" INI,
	  "uwsgi: my.ini (/my/dir/my/mod.py)",
	  { INI_FILE, "[uwsgi]\nModule: my.mod:app\n" } },
	{ "uwsgi, ini-paste",
	  "uwsgi^--ini-paste^/etc/x.ini",
	  "uwsgi: /etc/x.ini (/my/dir/mymod.py)",
	  { "/etc/x.ini", "[uwsgi]\nmodule=mymod" } },
	{ "uwsgi, ini-paste-logged",
	  "uwsgi^--ini-paste-logged=/etc/x.ini",
	  "uwsgi: /etc/x.ini (/my/dir/mymod.py)",
	  { "/etc/x.ini", "[uwsgi]\nmodule=mymod" } },
	{ "uwsgi, only ini",
	  "uwsgi^-M^" INI,
	  "uwsgi: my.ini (/my/dir/mymod.py)",
	  { INI_FILE, "[uwsgi]\nmodule=mymod" } },
	{ "uwsgi, two inis", "uwsgi^a.ini^b.ini", "uwsgi: ini file / wsgi module not found" },
	{ "uwsgi, no module", "uwsgi^" INI, "uwsgi: my.ini", { INI_FILE, "[uwsgi]\nhttp=:80" } },
	{ "uwsgi, a variable", "uwsgi^" INI, "uwsgi: my.ini", { INI_FILE, "[uwsgi]\nmodule=%(app)" } },
	{ "uwsgi, no file", "uwsgi^" INI, "uwsgi: my.ini" },
	{ "uwsgi, nothing", "uwsgi^--http^:80", "uwsgi: ini file / wsgi module not found" },
	{ "celery", "celery^-A^proj.app^worker", "celery: proj.app (/my/dir/proj/app.py)" },
	{ "celery, together", "/venv/bin/python3^/venv/bin/celery^-Aproj^worker", "celery: proj (/my/dir/proj.py)" },
	{ "celery, long", "celery^worker^--app^proj", "celery: proj (/my/dir/proj.py)" },
	{ "celery, long after =", "python3.8^-m^celery^worker^--app=/a/proj.py", "celery: /a/proj.py (/a/proj.py)" },
	{ "celery, queue", "celery^worker^-Q^qqq,www", "celery queue: qqq,www (/my/dir)" },
	{ "celery, queue together", "celery^worker^-Qqqq", "celery queue: qqq (/my/dir)" },
	{ "celery, queues", "celery^worker^--queues^qqq,www", "celery queue: qqq,www (/my/dir)" },
	{ "celery, queues after =", "celery^worker^--queues=qqq", "celery queue: qqq (/my/dir)" },
	{ "celery, neither", "celery^worker", NULL },
	{ "celery, option without its value", "celery^worker^-A", NULL },
	{ "pyspark", "python3^-m^pyspark.daemon", "pyspark" },
	{ "pyspark, versioned", "/usr/bin/python3.9^-m^pyspark.daemon^x", "pyspark" },
	{ "python, module", "python^-m^myapp", "python: -m myapp" },
	{ "python, module behind options", "python2.7^-u^-W^ignore^-Xdev^-m^my.app^-m^x", "python: -m my.app" },
	{ "python, the script's -m", "python3^-c^pass^-m^x", NULL },
	{ "python, script", "python3^mod.py", "python: mod.py (/my/dir/mod.py)" },
	{ "python, script with -m", "python3^mod.py^-m^x", "python: mod.py (/my/dir/mod.py)" },
	{ "python, script by path", "/usr/bin/python3.11^/srv/app.py", "python: /srv/app.py (/srv/app.py)" },
	{ "python, script in a folder with dots", "python3^./a.b/../mod.py",
	  "python: ./a.b/../mod.py (/my/dir/mod.py)" },
	{ "python, script that is a link",
	  "python3^mod.py",
	  "python: mod.py (/my/real.py)",
	  { .link = "/my/dir/mod.py", .target = "../real.py" } },
	{ "python, folder that is a link",
	  "python3^mod.py",
	  "python: mod.py (/x/mod.py)",
	  { .link = "/my/dir", .target = "/x" } },
	{ "python, a link to itself", "python3^mod.py", NULL, { .link = "/my/dir/mod.py", .target = "mod.py" } },
	{ "python, no folder known", "python3^mod.py", NULL, { 0 }, "" },
	{ "python, script of another kind", "python3^mod", NULL },
	{ "python, options first", "python3^-u^mod.py", NULL },
	{ "python, -m alone", "python3^-m", NULL },
	{ "python alone", "python3", NULL },
	{ "python of three digits", "python3.123^mod.py", NULL },
	{ "python 4", "python4^mod.py", NULL },
	{ "python with a tail", "python3.11-dbg^mod.py", NULL },
	{ "python with a dot", "python3.^mod.py", NULL },
	{ "another program", "ruby^mod.py", NULL },
	{ "empty", "", NULL },
	{ "only empty ones", "^^^", NULL },
};

static int id_of(const struct app_case *c, struct buf *out)
{
	struct target_files files = { fake_read, fake_link, (void *)(uintptr_t)&c->files };
	struct python_app app = { .cwd = str_of(c->cwd ? c->cwd : "/my/dir"), .files = &files };
	scoped(buf_release) struct buf argv = BUF_INIT(KIB(4));
	struct cur in;

	buf_adds(&argv, str_of(c->argv));
	buf_addc(&argv, 0);
	if (argv.error)
		return argv.error;
	for (size_t i = 0; i < argv.len; i++)
		if (argv.ptr[i] == '^')
			argv.ptr[i] = 0;
	in = guard_page(argv.ptr, argv.len);
	app.argv = str_n((const char *)in.pos, argv.len);
	return python_app_id(&app, out);
}

static void follows_the_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(4));
		int r = id_of(&cases[i], &out);

		print_message("  %s\n", cases[i].name);
		assert_int_equal(r, cases[i].want ? 0 : -ENOENT);
		assert_string_equal(buf_cstr(&out), cases[i].want ? cases[i].want : "");
	}
}

static int all_ids(void *ctx)
{
	(void)ctx;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(4));
		int r = id_of(&cases[i], &out);

		if (r == -ENOMEM)
			return r;
		assert_int_equal(r, cases[i].want ? 0 : -ENOENT);
	}
	return 0;
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(all_ids, NULL);
}

static void reads_ini_files(void **state)
{
	static const struct {
		const char *name, *text, *want;
	} files[] = {
		{ "plain", "[uwsgi]\nmodule=a", "a" },
		{ "blanks, CRLF", "[uwsgi]\r\n module = no\r\nmodule\t=  a b \r\n", "a b" },
		{ "colon", "[uwsgi]\nmodule: a=b", "a=b" },
		{ "the last one", "[uwsgi]\nmodule=a\nmodule=b\n[uwsgi]\nmodule=c", "c" },
		{ "comments", "#[x]\n[uwsgi]\n;module=no\n# module=no\nmodule=a ;b", "a ;b" },
		{ "empty", "[uwsgi]\nmodule=", "" },
		{ "other section", "[uwsgi2]\nmodule=a\n[x]\nmodule=b", NULL },
		{ "no section", "module=a", NULL },
		{ "no value", "[uwsgi]\nmodule", NULL },
		{ "section not closed", "[uwsgi\nmodule=a", NULL },
		{ "longer key", "[uwsgi]\nmodules=a", NULL },
		{ "nothing", "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct cur in = guard_page(files[i].text, strlen(files[i].text));
		struct str text = str_n((const char *)in.pos, strlen(files[i].text)), out = STR("?");

		print_message("  %s\n", files[i].name);
		assert_int_equal(python_ini_find(text, STR("uwsgi"), STR("module"), &out), files[i].want ? 0 : -ENOENT);
		assert_true(str_eq(out, str_of(files[i].want ? files[i].want : "?")));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_the_rules),
		cmocka_unit_test(reads_ini_files),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
