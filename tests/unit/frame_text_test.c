/* SPDX-License-Identifier: Apache-2.0 */
/* What frames are called in texts: the forms of docs/formats/col.md, to the letter. */
#include "support.h"

#include "codec/codec.h"
#include "codec/pprof.h"
#include "python_samples.h"

#define PYSPY                              \
	{                                  \
		.names = FRAME_NAMES_PYSPY \
	}
#define EXECUTING                              \
	{                                      \
		.lines = FRAME_LINES_EXECUTING \
	}

static void says_frames(void **state)
{
	static const struct {
		const char *name, *want;
		struct frame_style style;
		struct python_frame frame;
	} cases[] = {
		{ "method",
		  "a.b.C.run (/srv/a/b.py:4)",
		  { 0 },
		  { "a.b.C.run", "C.run", "/srv/a/b.py", 4, 9, MODEL_KIND_PYTHON, "[python]" } },
		{ "method, executing line",
		  "a.b.C.run (/srv/a/b.py:9)",
		  EXECUTING,
		  { "a.b.C.run", "C.run", "/srv/a/b.py", 4, 9, MODEL_KIND_PYTHON, "[python]" } },
		{ "method, py-spy",
		  "run (/srv/a/b.py:4)",
		  PYSPY,
		  { "a.b.C.run", "C.run", "/srv/a/b.py", 4, 9, MODEL_KIND_PYTHON, "[python]" } },
		{ "method, py-spy, executing line",
		  "run (/srv/a/b.py:9)",
		  { .names = FRAME_NAMES_PYSPY, .lines = FRAME_LINES_EXECUTING },
		  { "a.b.C.run", "C.run", "/srv/a/b.py", 4, 9, MODEL_KIND_PYTHON, "[python]" } },
		{ "standard library",
		  "loads (/usr/lib/python3.10/json/__init__.py:299 [standard-library==3.10.12])",
		  PYSPY,
		  { "json.loads", "loads", "/usr/lib/python3.10/json/__init__.py", 299, 346, MODEL_KIND_PYTHON,
		    "[python:standard-library==3.10.12]" } },
		{ "no versions",
		  "json.loads (/usr/lib/python3.10/json/__init__.py:299)",
		  { .no_versions = true },
		  { "json.loads", "loads", "/usr/lib/python3.10/json/__init__.py", 299, 346, MODEL_KIND_PYTHON,
		    "[python:standard-library==3.10.12]" } },
		{ "Java, readable",
		  "com.acme.Db.get",
		  { 0 },
		  { "com.acme.Db.get", "com/acme/Db.get(I)V", "Db.java", 4, 9, MODEL_KIND_JAVA, "[java]" } },
		{ "Java, with its signature",
		  "com/acme/Db.get(Ljava/lang/String;)V",
		  { .signatures = true },
		  { "com.acme.Db.get", "com/acme/Db.get(Ljava/lang/String;)V", "Db.java", 4, 9, MODEL_KIND_JAVA,
		    "[java]" } },
		{ "Java, with its signature and line",
		  "private static com/acme/Db.get:4(I)V",
		  { .signatures = true, .java_lines = true },
		  { "com.acme.Db.get", "private static com/acme/Db.get(I)V", "Db.java", 4, 9, MODEL_KIND_JAVA_C1,
		    "[java]" } },
		{ "Java of a JFR, whose class has dots",
		  "com.acme.Db.get",
		  { .signatures = true },
		  { "com.acme.Db.get", "com.acme.Db.get(I)V", "Db.java", 4, 9, MODEL_KIND_JAVA, "[java]" } },
		{ "a native function's file",
		  "malloc (/usr/lib/libc.so.6)",
		  { .libraries = true },
		  { "malloc", NULL, "", 0, 0, MODEL_KIND_NATIVE, "/usr/lib/libc.so.6" } },
		{ "none is known",
		  "malloc",
		  { .libraries = true },
		  { "malloc", NULL, "", 0, 0, MODEL_KIND_NATIVE, NULL } },
		{ "the kernel's have none",
		  "vfs_read",
		  { .libraries = true },
		  { "vfs_read", NULL, "", 0, 0, MODEL_KIND_KERNEL, "[kernel.kallsyms]" } },
		{ "versions of .py files only",
		  "f (/x.pyx:1)",
		  { 0 },
		  { "f", "f", "/x.pyx", 1, 1, MODEL_KIND_PYTHON, "[python:x==1]" } },
		{ "lambda in a function",
		  "<lambda> (/a.py:7)",
		  PYSPY,
		  { "a.main.<locals>.<lambda>", "main.<locals>.<lambda>", "/a.py", 7, 7, MODEL_KIND_PYTHON, NULL } },
		{ "list comprehension",
		  "<listcomp> (/a.py:7)",
		  PYSPY,
		  { "a.<listcomp>", "<listcomp>", "/a.py", 7, 7, MODEL_KIND_PYTHON, NULL } },
		{ "module",
		  "<module> (/a.py:1)",
		  PYSPY,
		  { "a.<module>", "<module>", "/a.py", 1, 3, MODEL_KIND_PYTHON, NULL } },
		{ "dots inside of angles",
		  "<a.b> (/a.py:1)",
		  PYSPY,
		  { "m.f.<a.b>", "f.<a.b>", "/a.py", 1, 3, MODEL_KIND_PYTHON, NULL } },
		{ "a name that ends in a dot",
		  "odd. (/a.py:1)",
		  PYSPY,
		  { "odd.", "odd.", "/a.py", 1, 3, MODEL_KIND_PYTHON, NULL } },
		{ "frozen",
		  "_find_and_load (<frozen importlib._bootstrap>:1167)",
		  { 0 },
		  { "_find_and_load", NULL, "<frozen importlib._bootstrap>", 1167, 1178, MODEL_KIND_PYTHON,
		    "[python]" } },
		{ "first line not known", "f (/a.py:3)", { 0 }, { "f", NULL, "/a.py", 0, 3, MODEL_KIND_PYTHON, NULL } },
		{ "executing line not known",
		  "f (/a.py:2)",
		  EXECUTING,
		  { "f", NULL, "/a.py", 2, 0, MODEL_KIND_PYTHON, NULL } },
		{ "no line", "f (/a.py)", { 0 }, { "f", NULL, "/a.py", 0, 0, MODEL_KIND_PYTHON, "[python:x==1]" } },
		{ "no file", "f", { 0 }, { "f", NULL, NULL, 3, 3, MODEL_KIND_PYTHON, "[python:x==1]" } },
		{ "no name", "[unknown] (/a.py:3)", { 0 }, { NULL, NULL, "/a.py", 3, 3, MODEL_KIND_PYTHON, NULL } },
		{ "no name, py-spy",
		  "[unknown] (/a.py:3)",
		  PYSPY,
		  { NULL, NULL, "/a.py", 3, 3, MODEL_KIND_PYTHON, NULL } },
		{ "PHP, executing line",
		  "App\\Job::run /srv/job.php:9",
		  EXECUTING,
		  { "App\\Job::run", NULL, "/srv/job.php", 4, 9, MODEL_KIND_PHP, "[php]" } },
		{ "PHP, whatever Python's names are",
		  "A.b /srv/a.php:4",
		  PYSPY,
		  { "A.b", "A.b", "/srv/a.php", 4, 9, MODEL_KIND_PHP, "[php]" } },
		{ "PHP, an extension's",
		  "array_map <internal>:-1",
		  { 0 },
		  { "array_map", NULL, "<internal>", 0, 0, MODEL_KIND_PHP, "[php]" } },
		{ "PHP, no file", "[Lost Symbol]", { 0 }, { "[Lost Symbol]", NULL, NULL, 0, 0, MODEL_KIND_PHP, NULL } },
		{ "Ruby",
		  "run - /srv/job.rb:4",
		  { 0 },
		  { "Job#run", "run", "/srv/job.rb", 4, 9, MODEL_KIND_RUBY, "[ruby]" } },
		{ "Ruby, as rbspy has lines",
		  "run - /srv/job.rb:9",
		  { .ruby_lines = FRAME_LINES_EXECUTING },
		  { "Job#run", "run", "/srv/job.rb", 4, 9, MODEL_KIND_RUBY, "[ruby]" } },
		{ "Ruby, a C function", "sleep", { 0 }, { "sleep", NULL, NULL, 0, 0, MODEL_KIND_RUBY, "[ruby]" } },
		{ "Perl has a name alone",
		  "App::Job::run",
		  { 0 },
		  { "App::Job::run", NULL, "/srv/Job.pm", 4, 9, MODEL_KIND_PERL, "[perl]" } },
		{ "JavaScript",
		  "Server.handle /srv/app.js:12",
		  { 0 },
		  { "Server.handle", NULL, "/srv/app.js", 12, 40, MODEL_KIND_JAVASCRIPT, "[nodejs]" } },
		{ "JavaScript, executing line",
		  "Server.handle /srv/app.js:40",
		  EXECUTING,
		  { "Server.handle", NULL, "/srv/app.js", 12, 40, MODEL_KIND_JAVASCRIPT, "[nodejs]" } },
		{ "JavaScript, no line",
		  "(anonymous) node:internal/timers",
		  { 0 },
		  { "(anonymous)", NULL, "node:internal/timers", 0, 0, MODEL_KIND_JAVASCRIPT, "[nodejs]" } },
		{ "JavaScript, no file",
		  "(js-to-wasm)",
		  { 0 },
		  { "(js-to-wasm)", NULL, NULL, 0, 0, MODEL_KIND_JAVASCRIPT, "[nodejs]" } },
		{ "JavaScript, no name",
		  "[unknown] /srv/app.js:3",
		  { 0 },
		  { NULL, NULL, "/srv/app.js", 3, 3, MODEL_KIND_JAVASCRIPT, NULL } },
		{ "error",
		  "[Truncated Python Stack]",
		  PYSPY,
		  { "[Truncated Python Stack]", NULL, NULL, 0, 0, MODEL_KIND_PYTHON_ERROR, NULL } },
		{ "native code has lines too",
		  "main",
		  { 0 },
		  { "main", NULL, "/a.c", 3, 4, MODEL_KIND_NATIVE, "/bin/a" } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(model_release) struct model m = { 0 };
		scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
		uint32_t location;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(model_init(&m, KIB(4)), 0);
		assert_int_equal(python_location(&m, &cases[i].frame, &location), 0);
		frame_text(&m, &cases[i].style, location, 0, &text);
		assert_string_equal(buf_cstr(&text), cases[i].want);
	}
}

static void splits_what_is_certain(void **state)
{
	static const struct {
		const char *text, *name, *file, *distribution; /* name NULL: it stays whole */
		int64_t line;
	} cases[] = {
		{ "main (app.py:40)", "main", "app.py", "", 40 },
		{ "a.C.f (/srv/a.py:1)", "a.C.f", "/srv/a.py", "", 1 },
		{ "f (<frozen x>:2)", "f", "<frozen x>", "", 2 },
		{ "loads (/l/__init__.py:299 [standard-library==3.10.12])", "loads", "/l/__init__.py",
		  "standard-library==3.10.12", 299 },
		{ "f (/a) b.py:3)", "f", "/a) b.py", "", 3 },
		{ "f (/a b/c:d.py:3)", "f", "/a b/c:d.py", "", 3 },
		{ "f (/a (b)/c.py:3)", NULL, NULL, NULL, 0 },
		{ "f (/a.py:0)", NULL, NULL, NULL, 0 },
		{ "f (/a.py:03)", NULL, NULL, NULL, 0 },
		{ "f (/a.py:-3)", NULL, NULL, NULL, 0 },
		{ "f (/a.py:99999999999999999999)", NULL, NULL, NULL, 0 },
		{ "f (/a.py)", NULL, NULL, NULL, 0 },
		{ "f (:3)", NULL, NULL, NULL, 0 },
		{ " (/a.py:3)", NULL, NULL, NULL, 0 },
		{ "f (/a.py:3", NULL, NULL, NULL, 0 },
		{ "f(/a.py:3)", NULL, NULL, NULL, 0 },
		{ "f (/a.py:3 [])", NULL, NULL, NULL, 0 },
		{ "f (/a.pyx:3 [a==1])", NULL, NULL, NULL, 0 },
		{ "f (/a.py [a==1])", NULL, NULL, NULL, 0 },
		{ "f ([a==1])", NULL, NULL, NULL, 0 },
		{ "(missing)", NULL, NULL, NULL, 0 },
		{ " ()", NULL, NULL, NULL, 0 },
		{ "", NULL, NULL, NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur in = guard_page(cases[i].text, strlen(cases[i].text));
		struct frame_parts out = { .line = 77 };
		bool split = frame_text_parse(str_n((const char *)in.pos, strlen(cases[i].text)), &out);

		print_message("  '%s'\n", cases[i].text);
		assert_int_equal(split, cases[i].name != NULL);
		if (!split) {
			assert_int_equal(out.line, 77);
			continue;
		}
		assert_true(str_eq(out.name, str_of(cases[i].name)));
		assert_true(str_eq(out.file, str_of(cases[i].file)));
		assert_true(str_eq(out.distribution, str_of(cases[i].distribution)));
		assert_int_equal(out.line, cases[i].line);
	}
}

static void assert_encodes(const char *format, const struct window *w, const struct codec_options *options,
			   const char *want)
{
	scoped(buf_release) struct buf out = BUF_INIT(MIB(1));
	const struct codec *c = codec_find(str_of(format));
	struct str text;

	assert_int_equal(codec_encode(c, w, options, &out), 0);
	text = buf_str(&out);
	if (str_starts(text, STR("# {")))
		text = str_skip(text, (size_t)str_find(text, '\n') + 1);
	(void)buf_cstr(&out);
	assert_string_equal(text.ptr, want);
}

#define DECODE "raw_decode (/usr/lib/python3.11/json/decoder.py:343 [standard-library==3.11.2])_[p];"

static void writes_both_styles(void **state)
{
	static const struct {
		const char *name, *format;
		struct codec_options options;
		const char *want;
	} cases[] = {
		{ "col, as PyPerf",
		  "col",
		  { { 0 } },
		  "1;web-1;python3;appid: python: app.py (/srv/app.py);_start_[pn];<module> (/srv/app.py:1)_[p];"
		  "app.Worker.run (/srv/app.py:12)_[p];json.decoder.JSONDecoder." DECODE
		  "scan_once_[pn];do_user_addr_fault_[k] 3\n"
		  "1;web-1;python3;appid: python: app.py (/srv/app.py);_start_[pn];[Lost Symbol]_[pe];scan_once_[pn] "
		  "2\n"
		  "1;web-1;python3;appid: python: app.py (/srv/app.py);_start;gc_thread 5\n"
		  "0;;cat;_start;do_user_addr_fault_[k] 1" },
		{ "col, as py-spy",
		  "col",
		  { PYSPY },
		  "1;web-1;python3;appid: python: app.py (/srv/app.py);_start;<module> (/srv/app.py:1)_[p];"
		  "run (/srv/app.py:12)_[p];" DECODE "scan_once;do_user_addr_fault_[k] 3\n"
		  "1;web-1;python3;appid: python: app.py (/srv/app.py);_start;[Lost Symbol]_[pe];scan_once 2\n"
		  "1;web-1;python3;appid: python: app.py (/srv/app.py);_start;gc_thread 5\n"
		  "0;;cat;_start;do_user_addr_fault_[k] 1" },
		{ "col, without what names the application",
		  "col",
		  { PYSPY, .without = CODEC_WITHOUT_CONTAINERS | CODEC_WITHOUT_APP_IDS | CODEC_WITHOUT_APP_METADATA },
		  ";python3;_start;<module> (/srv/app.py:1)_[p];run (/srv/app.py:12)_[p];" DECODE
		  "scan_once;do_user_addr_fault_[k] 3\n"
		  ";python3;_start;[Lost Symbol]_[pe];scan_once 2\n"
		  ";python3;_start;gc_thread 5\n"
		  ";cat;_start;do_user_addr_fault_[k] 1" },
		{ "col, version 1",
		  "col",
		  { PYSPY, .without = CODEC_WITHOUT_CONTAINER_FRAME | CODEC_WITHOUT_APP_METADATA },
		  "python3;appid: python: app.py (/srv/app.py);_start;<module> (/srv/app.py:1)_[p];"
		  "run (/srv/app.py:12)_[p];" DECODE "scan_once;do_user_addr_fault_[k] 3\n"
		  "python3;appid: python: app.py (/srv/app.py);_start;[Lost Symbol]_[pe];scan_once 2\n"
		  "python3;appid: python: app.py (/srv/app.py);_start;gc_thread 5\n"
		  "cat;_start;do_user_addr_fault_[k] 1" },
		{ "folded, executing lines",
		  "folded",
		  { EXECUTING },
		  "cat;_start;do_user_addr_fault_[k] 1\n"
		  "python3;_start;<module> (/srv/app.py:30)_[p];app.Worker.run (/srv/app.py:19)_[p];"
		  "json.decoder.JSONDecoder.raw_decode (/usr/lib/python3.11/json/decoder.py:353 "
		  "[standard-library==3.11.2])_[p];scan_once;do_user_addr_fault_[k] 3\n"
		  "python3;_start;[Lost Symbol]_[pe];scan_once 2\n"
		  "python3;_start;gc_thread 5\n" },
		{ "folded, as py-spy, no versions",
		  "folded",
		  { { .names = FRAME_NAMES_PYSPY, .no_versions = true } },
		  "cat;_start;do_user_addr_fault_[k] 1\n"
		  "python3;_start;<module> (/srv/app.py:1)_[p];run (/srv/app.py:12)_[p];"
		  "raw_decode (/usr/lib/python3.11/json/decoder.py:343)_[p];scan_once;do_user_addr_fault_[k] 3\n"
		  "python3;_start;[Lost Symbol]_[pe];scan_once 2\n"
		  "python3;_start;gc_thread 5\n" },
	};
	scoped(window_release) struct window w = { 0 };

	(void)state;
	assert_int_equal(python_window(&w), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		assert_encodes(cases[i].format, &w, &cases[i].options, cases[i].want);
	}
}

#define SPEC_LINES                                                                                             \
	"0;;swapper;secondary_startup_64_no_verify_[k];cpu_startup_entry_[k];do_idle_[k] 212\n"                \
	"1;web-1;python3;appid: python: app.py (/srv/app.py);main (app.py:40)_[p];handle (app.py:12)_[p] 57\n" \
	"1;web-1;python3;appid: python: app.py (/srv/app.py);main (app.py:40)_[p];loads "                      \
	"(/usr/lib/python3.10/json/__init__.py:299 [standard-library==3.10.12])_[p] 8\n"                       \
	"2;;java;appid: java: com.acme.Main;start_thread;com/acme/Main.run()V_[j];"                            \
	"com/acme/Db.get(Ljava/lang/String|)V_[i] 91\n"                                                        \
	"0;web-2;ruby;[Profiling error: exception CalledProcessTimeoutError];(/usr/lib/libruby.so.3.0.2) 6\n"  \
	"2;;java;com/acme/Main.run()V_[1];com/acme/Db.get()V_[0] 3\n"                                          \
	"0;web-2;ruby;block in run - /srv/job.rb:12_[rb];sleep_[rb] 4\n"                                       \
	"0;;php;App\\Job::run /srv/job.php:24_[php];array_map <internal>:-1_[php] 2\n"                         \
	"0;;perl;(main program)_[perl];App::Job::run_[perl] 8\n"                                               \
	"0;;dotnet;App.Main_[net] 1\n"                                                                         \
	"0;;node;uv_run;handle /srv/app.js:12 5\n"                                                             \
	"1;web-1;python3;run_[pn];[Truncated Python Stack]_[pe];f (/a (1).py:3)_[p];g (/a.py:3 [a b==1|2])_[p] 1"

static const char spec_file[] =
	"# {\"application_metadata\": [null, {\"python_version\": \"Python 3.10.12\"}, {\"a\": 1}]}\n" SPEC_LINES;

static bool has_kind(const struct model *m, enum model_kind kind)
{
	for (size_t i = 1; i < m->functions_count; i++)
		if (m->functions[i].kind == kind)
			return true;
	return false;
}

/* An example with every suffix, and what else docs/formats/col.md allows. */
static void reads_and_writes_the_specifications_lines(void **state)
{
	const struct codec_options usual = { { 0 } };
	scoped(window_release) struct window w = { 0 };
	struct codec_error error;
	const struct model *m;

	(void)state;
	assert_int_equal(codec_find(STR("col"))->decode(str_of(spec_file), &w, &error), 0);
	assert_encodes("col", &w, &usual, SPEC_LINES);
	m = w.model;
	for (enum model_kind kind = 0; kind < MODEL_KIND_COUNT; kind++) {
		struct str suffix = model_kind_suffix(kind);

		print_message("  suffix " STR_FMT "\n", STR_ARG(suffix));
		assert_true(!suffix.len || str_search(str_of(spec_file), suffix) > 0);
		assert_true(!suffix.len || has_kind(m, kind));
	}
	for (size_t i = 1; i < m->functions_count; i++) {
		const struct model_function *f = &m->functions[i];

		if (!str_eq(model_string(m, f->name), STR("loads")))
			continue;
		assert_int_equal(f->kind, MODEL_KIND_PYTHON);
		assert_int_equal(f->start_line, 299);
		assert_true(str_eq(model_string(m, f->filename), STR("/usr/lib/python3.10/json/__init__.py")));
		return;
	}
	fail();
}

/* pprof keeps name, qualified name, file, both lines, kind and distribution. */
static void survives_pprof(void **state)
{
	static const struct codec_options options[] = { { { 0 } }, { PYSPY }, { EXECUTING } };
	scoped(window_release) struct window w = { 0 }, again = { 0 };
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
	struct codec_error error;

	(void)state;
	assert_int_equal(python_window(&w), 0);
	assert_int_equal(codec_pprof.encode(&w, &bytes), 0);
	assert_int_equal(codec_pprof.decode(buf_str(&bytes), &again, &error), 0);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		scoped(buf_release) struct buf a = BUF_INIT(MIB(1)), b = BUF_INIT(MIB(1));

		assert_int_equal(codec_encode(codec_find(STR("folded")), &w, &options[i], &a), 0);
		assert_int_equal(codec_encode(codec_find(STR("folded")), &again, &options[i], &b), 0);
		assert_true(str_eq(buf_str(&a), buf_str(&b)));
	}
}

static void mappings_say_distributions(void **state)
{
	static const struct {
		const char *name, *distribution;
		enum model_kind kind;
	} cases[] = {
		{ "[python]", "", MODEL_KIND_PYTHON },
		{ "[python:requests==2.31.0]", "requests==2.31.0", MODEL_KIND_PYTHON },
		{ "[python:a[b]==1]", "a[b]==1", MODEL_KIND_PYTHON },
		{ "[python:]", "", MODEL_KIND_NATIVE },
		{ "[python:x", "", MODEL_KIND_NATIVE },
		{ "[pythonx]", "", MODEL_KIND_NATIVE },
		{ "/lib/[python:x]", "", MODEL_KIND_NATIVE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		assert_int_equal(model_kind_of_mapping(str_of(cases[i].name)), cases[i].kind);
		assert_true(
			str_eq(model_distribution_of_mapping(str_of(cases[i].name)), str_of(cases[i].distribution)));
	}
}

static int encode_and_decode(void *ctx)
{
	scoped(window_release) struct window w = { 0 }, read = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(MIB(1));
	const struct codec_options usual = { { 0 } };
	struct codec_error error;
	int r = python_window(&w);

	(void)ctx;
	r = r ? r : codec_encode(codec_find(STR("col")), &w, &usual, &out);
	return r ? r : codec_find(STR("col"))->decode(buf_str(&out), &read, &error);
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(encode_and_decode, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_frames),
		cmocka_unit_test(splits_what_is_certain),
		cmocka_unit_test(writes_both_styles),
		cmocka_unit_test(reads_and_writes_the_specifications_lines),
		cmocka_unit_test(survives_pprof),
		cmocka_unit_test(mappings_say_distributions),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
