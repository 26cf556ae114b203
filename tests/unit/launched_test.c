/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "runtime/launched.h"

/* Files of a process: one link, one properties file. */
static int no_link(void *self, const char *path, struct buf *out)
{
	(void)self;
	if (strcmp(path, "/srv/current") != 0)
		return -EINVAL;
	buf_adds(out, STR("releases/7"));
	return out->error;
}

static int properties(void *self, const char *path, size_t max, struct buf *out)
{
	(void)max;
	if (!self || strcmp(path, "/srv/__spark_conf__/__spark_conf__.properties") != 0)
		return -ENOENT;
	buf_adds(out, str_of(self));
	return out->error;
}

static bool starts_with_d(void *ctx, struct str argument)
{
	(void)ctx;
	return str_starts(argument, STR("-Dapp"));
}

struct app {
	const char *exe, *argv; /* argv: arguments with '|' behind each */
	const char *want;       /* NULL: nobody can tell */
	const char *spark;      /* the file; NULL: there is none */
	bool is_filtered, with_spark;
	const char *environment; /* as argv; NULL: none */
};

#define PM2 "node|/usr/lib/node_modules/pm2/lib/ProcessContainer"

static void add_texts(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_addc(out, *text == '|' ? 0 : *text);
}

static int give_environment(const struct launched *l, size_t max, struct buf *out)
{
	const struct app *app = l->ctx;

	(void)max;
	if (!app->environment)
		return -EACCES;
	add_texts(out, app->environment);
	return out->error;
}

/* Rules of docs/applications.md, as gProfiler has them. */
static void applications(void **state)
{
	static const struct app cases[] = {
		{ "/usr/bin/node", "node|server.js|", "nodejs: server.js (/srv/server.js)" },
		{ "/usr/bin/node", "node|--max-old-space-size=9|/opt/app/main.js|--port|80|",
		  "nodejs: /opt/app/main.js (/opt/app/main.js)" },
		{ "/usr/bin/node", "node|-r|hook.js|a.js|", "nodejs: a.js (/srv/a.js)" },
		{ "/usr/bin/node", "node|--require|hook.js|a.js|", "nodejs: a.js (/srv/a.js)" },
		{ "/usr/bin/node", "node|--require=hook.js|a.js|", "nodejs: a.js (/srv/a.js)" },
		{ "/usr/bin/node", "node|current/a.js|", "nodejs: current/a.js (/srv/releases/7/a.js)" },
		{ "/usr/bin/node", "node|-e|1|", NULL },
		{ "/usr/bin/node", "node|--import|./x.mjs|app.mjs|", "nodejs: app.mjs (/srv/app.mjs)" },
		{ "/usr/bin/node", "node|--import=./x.mjs|app.js|", "nodejs: app.js (/srv/app.js)" },
		{ "/usr/bin/node", "node|--loader|./x.ts|-C|dev.js|app.js|", "nodejs: app.js (/srv/app.js)" },
		{ "/usr/bin/node", "node|app.cjs|", "nodejs: app.cjs (/srv/app.cjs)" },
		{ "/usr/bin/node", "node|app.ts|", "nodejs: app.ts (/srv/app.ts)" },
		/* They wrote over their arguments. */
		{ "/usr/bin/node", "server.js|", NULL },
		{ "/usr/bin/node", "npm start||||", "nodejs: npm start (/srv)" },
		{ "/usr/bin/node", "node|/usr/bin/npm|--silent|run|serve|", "nodejs: npm run serve (/srv)" },
		{ "/usr/bin/node", "node|/usr/bin/npm|config|set|//host/:_authToken|SECRET|",
		  "nodejs: npm config (/srv)" },
		{ "/usr/bin/node", "npm config set //host/:_authToken SECRET|", "nodejs: npm config (/srv)" },
		{ "/usr/bin/node", "node|/usr/bin/npm|", NULL },
		{ "/usr/bin/node", "npm |", NULL },
		{ "/usr/bin/node", "My title||", "nodejs: /opt/a.js (/opt/a.js)",
		  .environment = "pm_exec_path=/opt/a.js|" },
		{ "/usr/bin/node", "node /opt/a/ma||", "nodejs: /opt/a/main.js (/opt/a/main.js)",
		  .environment = "pm_exec_path=/opt/a/main.js|" },
		{ "/usr/bin/node", "node|/usr/lib/node_modules/npm/bin/npm-cli.js|start|", "nodejs: npm start (/srv)" },
		{ "/usr/bin/node", "node|npm.js|", "nodejs: npm.js (/srv/npm.js)" },
		{ "/usr/bin/node", PM2 "Fork.js|", "nodejs: /opt/a.js (/opt/a.js)",
		  .environment = "name=a|pm_exec_path=/opt/a.js|" },
		{ "/usr/bin/node", PM2 ".js|", "nodejs: /opt/a.js (/opt/a.js)",
		  .environment = "A|pm2_env={\"name\":\"a\",\"pm_exec_path\":\"\\/opt/a.js\"}|" },
		{ "/usr/bin/node", PM2 ".js|", NULL, .environment = "pm2_env={\"pm_exec_path\":7}|" },
		{ "/usr/bin/node", PM2 ".js|", NULL, .environment = "pm2_env={|pm_exec_path=" },
		{ "/usr/bin/node", PM2 ".js|", NULL },
		{ "/usr/bin/node", "npm run serve|", "nodejs: npm run serve (/srv)" },
		{ "/usr/bin/node", "node /opt/a b/main.js||", "nodejs: /opt/a b/main.js (/opt/a b/main.js)" },
		{ "/usr/bin/node", "node /opt/a/main.j|", NULL }, /* cut */
		{ "/usr/bin/node", "PM2 v6.0.5: God Daemon (/root/.pm2)|||",
		  "nodejs: PM2 v6.0.5: God Daemon (/root/.pm2)" },
		{ "/usr/bin/nodejs", "nodejs|server.js|", NULL },
		{ "/usr/bin/ruby", "ruby|job.rb|", "ruby: job.rb (/srv/job.rb)" },
		{ "/usr/bin/ruby3.1", "ruby|-r|set.rb|job.rb|", "ruby: job.rb (/srv/job.rb)" },
		{ "/usr/bin/ruby3.1", "ruby|-rset.rb|../job.rb|", "ruby: ../job.rb (/job.rb)" },
		{ "/usr/bin/ruby", "ruby|-e|puts 1|", NULL },
		{ "/usr/bin/rubygems", "rubygems|a.rb|", NULL },
		{ "/usr/bin/java", "java|com.acme.Main|x|", "java: com.acme.Main" },
		{ "/usr/bin/java", "java|-Xmx1g|-cp|a.jar:b.jar|com.acme.Main|", "java: com.acme.Main" },
		{ "/usr/bin/java", "java|-jar|/opt/shop.jar|--port|", "java: /opt/shop.jar" },
		{ "/usr/bin/java", "java|-p|mods|-m|shop/com.acme.Main|", "java: shop/com.acme.Main" },
		{ "/usr/bin/java", "java|--module=shop|", "java: shop" },
		{ "/usr/bin/java", "java|-version|", NULL },
		{ "/usr/bin/java", "java|-jar|", NULL },
		{ "/usr/bin/java", "java|-Dapp=1|-Xmx1g|-Dapp.b=2|Main|-Dapp=3|", "java: Main (-Dapp=1 -Dapp.b=2)",
		  .is_filtered = true },
		{ "/usr/bin/java", "java|-Xmx1g|Main|", "java: Main", .is_filtered = true },
		{ "/usr/bin/java", "java|org.apache.spark.executor.Run|",
		  "java: org.apache.spark.executor.Run, spark: Count words",
		  "a=b\nspark.app.name=Count words\nspark.app.id=1\n", .with_spark = true },
		{ "/usr/bin/java", "java|org.apache.spark.executor.Run|",
		  "java: org.apache.spark.executor.Run, app name not found", "spark.app.names=x\n",
		  .with_spark = true },
		{ "/usr/bin/java", "java|org.apache.spark.executor.Run|",
		  "java: org.apache.spark.executor.Run, app name not found", .with_spark = true },
		{ "/usr/bin/java", "java|org.apache.spark.executor.Run|", "java: org.apache.spark.executor.Run",
		  "spark.app.name=x\n" },
		{ "/usr/bin/java", "java|Main|", "java: Main", "spark.app.name=x\n", .with_spark = true },
		{ "/usr/bin/cat", "cat|a.js|", NULL },
		{ "", "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(4)), argv = BUF_INIT(KIB(4));
		const struct target_files files = { .read = properties,
						    .link = no_link,
						    .self = (void *)(uintptr_t)cases[i].spark };
		struct launched l = { .exe = str_of(cases[i].exe),
				      .cwd = STR("/srv"),
				      .files = &files,
				      .environment = give_environment,
				      .ctx = (void *)(uintptr_t)&cases[i],
				      .wants_argument = cases[i].is_filtered ? starts_with_d : NULL,
				      .with_spark = cases[i].with_spark };
		struct cur bytes;

		print_message("  %s %s\n", cases[i].exe, cases[i].argv);
		add_texts(&argv, cases[i].argv);
		bytes = guard_page(argv.ptr, argv.len);
		l.argv = cur_rest(&bytes);
		assert_int_equal(launched_app_id(&l, &out), cases[i].want ? 0 : -ENOENT);
		assert_string_equal(buf_cstr(&out), cases[i].want ? cases[i].want : "");
		l.cwd = STR("");
		buf_clear(&out);
		ignore(launched_app_id(&l, &out) < 0); /* any answer but a crash */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(applications) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
