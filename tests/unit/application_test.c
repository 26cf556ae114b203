/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "proc/application.h"

/* Arguments as words with blanks between them; '~' stands for a blank inside of one. */
static struct str command(const char *words, char *out)
{
	size_t len = strlen(words);

	for (size_t i = 0; i <= len; i++)
		out[i] = (char)(words[i] == ' ' ? '\0' : words[i] == '~' ? ' ' : words[i]);
	return str_n(out, len ? len + 1 : 0);
}

struct one {
	const char *exe, *argv, *want;
};

static void check(const struct one *cases, size_t count, enum application_kind kind)
{
	for (size_t i = 0; i < count; i++) {
		scoped(buf_release) struct buf name = BUF_INIT(KIB(8));
		char text[512];
		struct str argv = command(cases[i].argv, text);
		struct cur guarded = guard_page(argv.ptr, argv.len);
		enum application_kind got = application_of(str_of(cases[i].exe), cur_rest(&guarded), &name);

		print_message("  %s: %s\n", cases[i].exe, cases[i].argv);
		assert_string_equal(buf_cstr(&name), cases[i].want);
		assert_int_equal(got, kind);
	}
}

static void applications_have_names(void **state)
{
	static const struct one cases[] = {
		{ "/usr/bin/python3.11", "/usr/bin/python3 /usr/local/bin/gunicorn app:app", "gunicorn: app:app" },
		{ "/usr/bin/python3.11", "python3 /venv/bin/gunicorn -w 4 --preload shop.wsgi:app -b :80",
		  "gunicorn: shop.wsgi:app" },
		{ "/usr/bin/python3.11", "python3 /venv/bin/gunicorn -b localhost:8000 -k egg:meinheld#worker a:b",
		  "gunicorn: a:b" },
		{ "/usr/bin/python3.11", "python3 /venv/bin/gunicorn --bind=unix:/run/x app:make()",
		  "gunicorn: app:make()" },
		{ "/usr/bin/python3.11", "python3 /venv/bin/gunicorn -n shop app:app", "gunicorn: shop" },
		{ "/usr/bin/python3.11", "python3 /venv/bin/gunicorn --name=shop app:app", "gunicorn: shop" },
		{ "/usr/bin/python3.11", "python3 /venv/bin/gunicorn -c conf.py", "gunicorn" },
		{ "/usr/bin/python3.11", "python3 -m gunicorn app:app", "gunicorn: app:app" },
		{ "/usr/bin/python3.11", "gunicorn:~worker~[app:app]", "gunicorn: app:app" },
		{ "/usr/bin/python3.11", "gunicorn:~master~[app:app]~", "gunicorn: app:app" },
		{ "/usr/bin/python3.12d", "python3 /usr/bin/uvicorn shop.main:api --port 80",
		  "uvicorn: shop.main:api" },
		{ "/usr/bin/python3.9", "python3 /usr/bin/celery -A proj worker", "celery: proj" },
		{ "/usr/bin/python3.9", "python3 -m celery --app=proj worker", "celery: proj" },
		{ "/usr/bin/python3.9", "python3 /usr/bin/flask --app shop run", "flask: shop" },
		{ "/usr/bin/uwsgi-core", "uwsgi --http :80 --module shop.wsgi", "uwsgi: shop.wsgi" },
		{ "/usr/bin/uwsgi", "uwsgi --ini /etc/uwsgi/shop.ini", "uwsgi: shop.ini" },
		{ "/usr/bin/python3", "python3 -u -W ignore -X dev /srv/report.py --all", "report.py" },
		{ "/usr/bin/python3", "python3 -m http.server 80", "http.server" },
		{ "/usr/bin/python3", "python3 -um http.server 80", "http.server" },
		{ "/usr/bin/python3", "python3 /srv/tool/__main__.py", "tool" },
		{ "/usr/bin/python3", "python3 /usr/bin/supervisord -n", "supervisord" },
		{ "/opt/pypy/bin/pypy3.10", "pypy3 sim.py", "sim.py" },
		{ "/usr/lib/jvm/java-17/bin/java", "java -Xmx1g -cp a.jar:b.jar com.acme.Main -x",
		  "java: com.acme.Main" },
		{ "/usr/lib/jvm/java-17/bin/java", "java -Da=b -jar /srv/shop.jar", "java: shop.jar" },
		{ "/usr/lib/jvm/java-17/bin/java", "java @args --module-path mods -m shop/com.acme.Main",
		  "java: shop/com.acme.Main" },
		{ "/usr/lib/jvm/java-17/bin/java", "java --module=shop", "java: shop" },
		{ "/usr/lib/jvm/java-17/bin/java", "java --class-path x /srv/Busy.java 3", "java: Busy.java" },
		{ "/usr/bin/node", "node server.js", "server.js" },
		{ "/usr/bin/node18", "node --max-old-space-size=100 -r ./hook.js /srv/api/server.js -e x",
		  "server.js" },
		{ "/usr/bin/node", "node /usr/bin/yarn start", "yarn" },
		{ "/usr/bin/node", "next-server~(v14.1.0)", "next-server" },
		{ "/usr/bin/deno", "deno run -A main.ts", "main.ts" },
		{ "/usr/bin/bun", "bun run server.ts", "server.ts" },
		{ "/usr/bin/ruby3.1", "ruby -Ilib /usr/bin/bundle exec puma -C x.rb", "puma" },
		{ "/usr/bin/ruby3.1", "puma~6.4.0~(tcp://0.0.0.0:9292)~[shop]", "puma: shop" },
		{ "/usr/bin/ruby3.1", "puma:~cluster~worker~0:~812~[shop]", "puma: shop" },
		{ "/usr/bin/ruby3.1", "sidekiq~7.2.0~shop~[0~of~5~busy]", "sidekiq: shop" },
		{ "/usr/bin/perl", "perl -w -Mstrict /srv/mail.pl", "mail.pl" },
		{ "/usr/bin/php8.2", "php artisan queue:work", "artisan" },
		{ "/usr/sbin/php-fpm8.2", "php-fpm:~pool~www", "php-fpm: www" },
		{ "/usr/sbin/php-fpm8.2", "php-fpm:~master~process~(/etc/php.conf)", "php-fpm" },
		{ "/usr/bin/lua5.4", "lua -l json job.lua", "job.lua" },
		{ "/usr/bin/dotnet", "dotnet exec /srv/Shop.dll", "Shop.dll" },
	};

	(void)state;
	check(cases, ARRAY_SIZE(cases), APPLICATION_NAMED);
}

static void scripts_of_shells_are_programs(void **state)
{
	static const struct one cases[] = {
		{ "/usr/bin/dash", "/bin/sh /srv/backup.sh daily", "backup.sh" },
		{ "/usr/bin/bash", "bash -e -o pipefail /srv/backup.sh", "backup.sh" },
		{ "/usr/bin/bash", "bash /usr/bin/gunicorn a:b", "gunicorn" },
	};

	(void)state;
	check(cases, ARRAY_SIZE(cases), APPLICATION_SCRIPT);
}

static void others_have_none(void **state)
{
	static const struct one cases[] = {
		{ "/usr/sbin/nginx", "nginx:~worker~process", "" },
		{ "/usr/bin/python3-config", "python3-config --libs", "" },
		{ "/usr/bin/shred", "shred x", "" },
		{ "/usr/bin/python3", "python3 -c import~os app.py", "" },
		{ "/usr/bin/python3", "python3 -Sc import~os", "" },
		{ "/usr/bin/python3", "python3 -", "" },
		{ "/usr/bin/python3", "python3", "" },
		{ "/usr/bin/python3", "python3 -m", "" },
		{ "/usr/bin/python3", "", "" },
		{ "/usr/bin/node", "node -e 1", "" },
		{ "/usr/bin/node", "node --eval 1 x.js", "" },
		{ "/usr/bin/perl", "perl -ne print x", "" },
		{ "/usr/bin/php", "php -r 1;", "" },
		{ "/usr/bin/bash", "-bash", "" },
		{ "/usr/bin/bash", "bash -lc ls", "" },
		{ "/usr/lib/jvm/bin/java", "java -version", "" },
		{ "/usr/lib/jvm/bin/java", "java -cp", "" },
		{ "/usr/sbin/php-fpm8.2", "/usr/sbin/php-fpm8.2 -F", "" },
		{ "", "", "" },
	};

	(void)state;
	check(cases, ARRAY_SIZE(cases), APPLICATION_NONE);
}

static void long_command_lines_are_cut(void **state)
{
	static char text[MIB(1)];
	scoped(buf_release) struct buf name = BUF_INIT(KIB(8));

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "node", 5);
	assert_int_equal(application_of(STR("/bin/node"), str_n(text, sizeof(text)), &name), APPLICATION_NAMED);
	assert_in_range(name.len, 1, APPLICATION_ARGV_MAX);
	for (size_t i = 5; i + 1 < sizeof(text); i += 2)
		memcpy(text + i, "-\0", 2);
	for (size_t i = 5; i + 2 < sizeof(text); i += 3)
		memcpy(text + i, "-x\0", 3);
	assert_int_equal(application_of(STR("/bin/node"), str_n(text, sizeof(text)), &name), APPLICATION_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(applications_have_names),
		cmocka_unit_test(scripts_of_shells_are_programs),
		cmocka_unit_test(others_have_none),
		cmocka_unit_test(long_command_lines_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
