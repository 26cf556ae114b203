/* SPDX-License-Identifier: Apache-2.0 */
/* Import paths and distributions of Python files, from folders laid out here as installers lay them out. */
#include "support.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "runtime/python/path.h"
#include "runtime/python/site.h"
#include "runtime/python/source.h"
#include "runtime/target_files.h"

#define SITE "usr/lib/python3.11/site-packages"
#define DIST "usr/lib/python3/dist-packages"

static const struct {
	const char *path, *text; /* text NULL: a folder */
} layout[] = {
	{ "usr", NULL },
	{ "usr/lib", NULL },
	{ "usr/lib/python3.11", NULL },
	{ "usr/lib/python3.11/os.py", "" },
	{ SITE, NULL },
	{ SITE "/requests-2.31.0.dist-info", NULL },
	{ SITE "/requests-2.31.0.dist-info/METADATA",
	  "Metadata-Version: 2.1\nName: Requests\nVersion: 2.31.0\n\nName: no\n" },
	{ SITE "/requests-2.31.0.dist-info/RECORD", "requests/__init__.py,sha256=x,1\r\nrequests/api.py,,\n\"requests/"
						    "odd,name.py\",,\n../../../bin/x.py,,\n/abs.py,,\n" },
	{ SITE "/old-1.0-py3.11.egg-info", NULL },
	{ SITE "/old-1.0-py3.11.egg-info/PKG-INFO", "Name: old\nVersion: 1.0\n" },
	{ SITE "/old-1.0-py3.11.egg-info/installed-files.txt", "../old/__init__.py\n../old/sub/x.py\nPKG-INFO\n" },
	{ SITE "/nameless-3.4.dist-info", NULL },
	{ SITE "/nameless-3.4.dist-info/RECORD", "nameless.py,," },
	{ SITE "/evil-1.dist-info", NULL },
	{ SITE "/evil-1.dist-info/METADATA", "Name: a;b [c]\nVersion: 1\n" },
	{ SITE "/evil-1.dist-info/RECORD", "evil.py,,\nrequests/api.py,," },
	{ SITE "/space.dist-info", NULL },
	{ SITE "/space.dist-info/METADATA", "Name: a b\nVersion: 1\n" },
	{ SITE "/space.dist-info/RECORD", "space.py,," },
	{ "usr/lib/python3", NULL },
	{ DIST, NULL },
	{ DIST "/apt-2.egg-info", "Name: python-apt\nVersion: 2.6\n" },
	{ DIST "/jwt-2.6.0.egg-info", NULL },
	{ DIST "/jwt-2.6.0.egg-info/PKG-INFO", "Name: PyJWT\nVersion: 2.6.0\n" },
	{ DIST "/jwt-2.6.0.egg-info/top_level.txt", "jwt\nshared\n_single\n" },
	{ DIST "/other-1.egg-info", NULL },
	{ DIST "/other-1.egg-info/PKG-INFO", "Name: other\nVersion: 1\n" },
	{ DIST "/other-1.egg-info/top_level.txt", "shared\n" },
	{ "srv", NULL },
	{ "srv/app.py", "" },
	{ "srv/pkg", NULL },
	{ "srv/pkg/__init__.py", "" },
	{ "srv/pkg/mod.py", "" },
	{ "srv/pkg/sub", NULL },
	{ "srv/pkg/sub/__init__.py", "" },
	{ "srv/pkg/bare", NULL },
	{ "srv/not-a-name", NULL },
	{ "srv/not-a-name/__init__.py", "" },
	{ "srv/closed", NULL },
	{ "srv/closed/__init__.pyc", "" },
	{ "srv/python3.11", NULL },
	{ "out.py", "" },
};

struct folder {
	char path[64];
	int fd;
};

static int set_up(void **state)
{
	static struct folder f = { .path = "/tmp/hearth-python-XXXXXX" };

	if (!mkdtemp(f.path))
		return -1;
	f.fd = open(f.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(layout); i++) {
		scoped(closep) int fd = -1;

		if (!layout[i].text) {
			if (mkdirat(f.fd, layout[i].path, 0755) < 0)
				return -1;
			continue;
		}
		fd = openat(f.fd, layout[i].path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0 || io_write_all(fd, layout[i].text, strlen(layout[i].text)) < 0)
			return -1;
	}
	*state = &f;
	return symlinkat("/usr/lib/python3.11", f.fd, "link") < 0 ||
			       symlinkat("../../../../out.py", f.fd, "srv/up.py") < 0 ||
			       symlinkat("loop", f.fd, "loop") < 0 || mkfifoat(f.fd, "fifo", 0600) < 0
		       ? -1
		       : 0;
}

static int tear_down(void **state)
{
	struct folder *f = *state;
	char command[128];

	close(f->fd);
	snprintf(command, sizeof(command), "rm -rf '%s'", f->path);
	return system(command);
}

static const struct {
	const char *file, *package, *distribution;
} cases[] = {
	{ "/usr/lib/python3.11/json/decoder.py", "json.decoder", "standard-library==3.11.2" },
	{ "/usr/lib/python3.11/json/__init__.py", "json", "standard-library==3.11.2" },
	{ "/usr/lib/python3.11/lib-dynload/x.py", "x", "standard-library==3.11.2" },
	{ "/usr/lib/python3.9/json/decoder.py", "", "" },
	{ "/usr/lib/python3.1/json/decoder.py", "", "" },
	{ "/srv/python3.11/app.py", "", "" },
	{ "/link/json/decoder.py", "", "" },
	{ "<frozen importlib._bootstrap>", "importlib._bootstrap", "" },
	{ "<string>", "", "" },
	{ "/" SITE "/requests/api.py", "requests.api", "" }, /* two claim it */
	{ "/" SITE "/requests/__init__.py", "requests", "Requests==2.31.0" },
	{ "/" SITE "/requests/odd,name.py", "", "Requests==2.31.0" },
	{ "/" SITE "/requests/generated.py", "requests.generated", "" },
	{ "/" SITE "/old/sub/x.py", "old.sub.x", "old==1.0" },
	{ "/" SITE "/nameless.py", "nameless", "nameless==3.4" },
	{ "/" SITE "/evil.py", "evil", "evil==1" },
	{ "/" SITE "/space.py", "space", "" },
	{ "/" SITE "/not-a-name/x.py", "", "" },
	{ "/" SITE "/x.egg/y/z.py", "y.z", "" },
	{ "/link/site-packages/requests/__init__.py", "requests", "Requests==2.31.0" },
	{ "/" DIST "/jwt/api.py", "jwt.api", "PyJWT==2.6.0" },
	{ "/" DIST "/_single.py", "_single", "PyJWT==2.6.0" },
	{ "/" DIST "/shared/x.py", "shared.x", "" },
	{ "/" DIST "/nobody/x.py", "nobody.x", "" },
	{ "/nowhere/site-packages/requests/api.py", "requests.api", "" },
	{ "/srv/app.py", "", "" },
	{ "/srv/pkg/mod.py", "pkg.mod", "" },
	{ "/srv/pkg/__init__.py", "pkg", "" },
	{ "/srv/pkg/sub/deep.py", "pkg.sub.deep", "" },
	{ "/srv/pkg/bare/x.py", "", "" },
	{ "/srv/closed/mod.py", "closed.mod", "" }, /* no sources: the path is that of the one who compiled it */
	{ "/srv/closed/mod.pyc", "closed.mod", "" },
	{ "/srv/closed/__init__.pyc", "closed", "" },
	{ "/srv/pkg/template.html", "", "" },
	{ "/srv/not-a-name/x.py", "not-a-name.x", "" }, /* it is a package, by what importlib can do */
	{ "/srv/spark/python/lib/pyspark.zip/pyspark/worker.py", "pyspark.worker", "" },
	{ "/srv/app.pyz/__main__.py", "__main__", "" },
	{ "/usr/lib/python311.zip/json/decoder.py", "json.decoder", "" },
	{ "/root/.pex/installed_wheels/0/idna-3.4-py3-none-any.whl/idna/core.py", "idna.core", "" },
	{ "/srv/x.zip/not-a-name/y.py", "", "" },
	{ "/srv/x.zip", "", "" },
	{ "/srv/.zip/y.py", "", "" },
	{ "/srv/x.zip/" SITE "/requests/api.py", "requests.api", "" },
	{ "/" SITE "/x.zip/y.py", "", "" },
	{ "/out.py", "", "" },
	{ "srv/pkg/mod.py", "", "" },
	{ "/", "", "" },
	{ "", "", "" },
};

static void assert_text(struct str have, const char *want)
{
	if (!str_eq(have, str_of(want)))
		print_message("have '" STR_FMT "', want '%s'\n", STR_ARG(have), want);
	assert_true(str_eq(have, str_of(want)));
}

static void finds_packages_and_distributions(void **state)
{
	const struct folder *f = *state;
	struct python_sources *s;

	assert_int_equal(python_sources_new(&s), 0);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) { /* from files, then from what is kept */
		size_t at = i % ARRAY_SIZE(cases);
		struct python_source found;

		print_message("  %s\n", cases[at].file);
		python_sources_find(s, 1, f->fd, str_of(cases[at].file), STR("3.11.2"), &found);
		assert_text(found.package, cases[at].package);
		assert_text(found.distribution, cases[at].distribution);
	}
	python_sources_free(s);
}

/* A program that makes up modules does not take the names of all others away. */
static void made_up_names_end(void **state)
{
	const struct folder *f = *state;
	struct python_source out;
	struct python_sources *s;
	static char path[4000];

	assert_int_equal(python_sources_new(&s), 0);
	for (unsigned i = 0; i < 10000; i++) {
		int size = snprintf(path, sizeof(path), "/usr/lib/python3.11/m%u_%03900u.py", i, 0U);

		python_sources_find(s, 1, f->fd, str_n(path, (size_t)size), STR("3.11.2"), &out);
		assert_int_equal(out.package.len, size - 23);
	}
	python_sources_find(s, 1, f->fd, STR("/usr/lib/python3.11/json/decoder.py"), STR("3.11.2"), &out);
	assert_text(out.package, "json.decoder");
	assert_text(out.distribution, "standard-library==3.11.2");
	python_sources_find(s, 1, f->fd, STR("/" SITE "/requests/__init__.py"), STR("3.11.2"), &out);
	assert_text(out.distribution, "Requests==2.31.0");
	python_sources_free(s);
}

static void keeps_file_systems_apart(void **state)
{
	const struct folder *f = *state;
	struct python_source out;
	struct python_sources *s;

	assert_int_equal(python_sources_new(&s), 0);
	python_sources_find(s, 1, f->fd, STR("/" SITE "/old/__init__.py"), STR("3.11.2"), &out);
	assert_text(out.distribution, "old==1.0");
	python_sources_find(s, 2, -1, STR("/" SITE "/old/__init__.py"), STR("3.11.2"), &out);
	assert_text(out.package, "old");
	assert_text(out.distribution, "");
	python_sources_find(s, 1, -1, STR("/" SITE "/old/__init__.py"), STR("3.11.2"), &out);
	assert_text(out.distribution, "old==1.0"); /* the process is gone, what was read stays */
	python_sources_find(s, 2, -1, STR("/usr/lib/python3.12/os.py"), STR("3.12"), &out);
	assert_text(out.distribution, "standard-library==3.12");
	python_sources_find(s, 2, -1, STR("/usr/lib/python3.12/os.py"), STR(""), &out);
	assert_text(out.distribution, "");
	python_sources_free(s);
}

static int find_all(void *ctx)
{
	const struct folder *f = ctx;
	struct python_sources *s;
	int r = python_sources_new(&s);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct python_source out;

		python_sources_find(s, 1, f->fd, str_of(cases[i].file), STR("3.11.2"), &out);
		assert_true(!out.package.len || str_eq(out.package, str_of(cases[i].package)));
		assert_true(!out.distribution.len || str_eq(out.distribution, str_of(cases[i].distribution)));
	}
	python_sources_free(s);
	return allocation_failed() ? -ENOMEM : 0;
}

static void survives_failing_allocations(void **state)
{
	for_each_failing_allocation(find_all, *state);
}

/* FIFOs, endless files, links out of the root: nothing waits, nothing leads out, nothing is read without a limit. */
static void withstands_hostile_folders(void **state)
{
	const struct folder *f = *state;
	scoped(buf_release) struct buf out = BUF_INIT(KIB(64));
	struct python_source found;
	struct python_sources *s;
	uint64_t size;

	assert_int_equal(target_open(f->fd, "/fifo", &size), -ENODEV);
	assert_int_equal(target_open(f->fd, "/loop", &size), -ELOOP);
	assert_int_equal(target_read(f->fd, "/srv/up.py", KIB(1), &out), 0); /* its own /out.py, not the machine's */
	assert_int_equal(target_read(f->fd, "/../../../etc/passwd", KIB(64), &out), -ENOENT);
	assert_int_equal(target_read(f->fd, "/" SITE "/requests-2.31.0.dist-info/RECORD", 10, &out), -E2BIG);
	assert_int_equal(target_read(-1, "/out.py", 10, &out), -ENOENT);
	assert_int_equal(out.len, 0);
	assert_int_equal(target_link(f->fd, "/out.py", &out), -EINVAL);
	assert_int_equal(target_link(f->fd, "/link", &out), 0);
	assert_text(buf_str(&out), "/usr/lib/python3.11");

	assert_int_equal(mkdirat(f->fd, "bad", 0755) | mkdirat(f->fd, "bad/site-packages", 0755), 0);
	assert_int_equal(mkdirat(f->fd, "bad/site-packages/a-1.dist-info", 0755), 0);
	assert_int_equal(mkfifoat(f->fd, "bad/site-packages/a-1.dist-info/RECORD", 0600), 0);
	assert_int_equal(mkdirat(f->fd, "bad/site-packages/b-1.dist-info", 0755), 0);
	assert_int_equal(symlinkat("/dev/zero", f->fd, "bad/site-packages/b-1.dist-info/METADATA"), 0);
	assert_int_equal(symlinkat("RECORD", f->fd, "bad/site-packages/b-1.dist-info/RECORD"), 0);
	assert_int_equal(mkdirat(f->fd, "bad/site-packages/c-1.dist-info", 0755), 0);
	{
		scoped(closep) int fd =
			openat(f->fd, "bad/site-packages/c-1.dist-info/RECORD", O_WRONLY | O_CREAT, 0644);

		assert_int_equal(io_write_all(fd, "c.py,,\n", 7), 0);
		assert_int_equal(ftruncate(fd, (off_t)GIB(64)), 0); /* sparse */
	}
	assert_int_equal(python_sources_new(&s), 0);
	python_sources_find(s, 1, f->fd, STR("/bad/site-packages/c.py"), STR("3.11.2"), &found);
	assert_text(found.distribution, "c==1");
	python_sources_find(s, 1, f->fd, STR("/bad/site-packages/a.py"), STR("3.11.2"), &found);
	assert_text(found.distribution, "");
	python_sources_free(s);
}

static void resolves_links(void **state)
{
	const struct folder *f = *state;
	const struct target_files files = target_files_below(&f->fd);
	static const struct {
		const char *path, *want;
	} paths[] = {
		{ "/srv/app.py", "/srv/app.py" },
		{ "//srv/./pkg//../app.py", "/srv/app.py" },
		{ "/srv/up.py", "/out.py" },
		{ "/link/os.py", "/usr/lib/python3.11/os.py" },
		{ "/link/../x", "/usr/lib/x" },
		{ "/nowhere/x.py", "/nowhere/x.py" },
		{ "/..", "/" },
	};
	scoped(buf_release) struct buf out = BUF_INIT(KIB(64));

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		print_message("  %s\n", paths[i].path);
		buf_clear(&out);
		assert_int_equal(target_resolve(&files, str_of(paths[i].path), &out), 0);
		assert_text(buf_str(&out), paths[i].want);
	}
	assert_int_equal(target_resolve(&files, STR("/loop/x"), &out), -ELOOP);
	assert_int_equal(target_resolve(&files, STR("srv"), &out), -EINVAL);
	assert_int_equal(target_resolve(&files, STR("/a\0b"), &out), -EINVAL);
}

/* What is installed while we look on is known after a minute, and what was known stays until then. */
static void notices_installations(void **state)
{
	const struct folder *f = *state;
	uint64_t now_ns = NSEC_PER_SEC;
	const struct clock clock = { .monotonic_ns = simulated_ns, .self = &now_ns };
	static const struct {
		uint64_t after_s;
		bool install;
		const char *want;
	} steps[] = { { 0, false, "up==1" },
		      { 30, true, "up==1" },
		      { 29, false, "up==1" },
		      { 2, false, "up==2" },
		      { 3600, false, "up==2" } };
	struct python_source out;
	struct python_sources *s;

	assert_int_equal(mkdirat(f->fd, "live", 0755) | mkdirat(f->fd, "live/site-packages", 0755), 0);
	assert_int_equal(mkdirat(f->fd, "live/site-packages/up-1.dist-info", 0755), 0);
	{
		scoped(closep) int fd =
			openat(f->fd, "live/site-packages/up-1.dist-info/RECORD", O_WRONLY | O_CREAT, 0644);

		assert_int_equal(io_write_all(fd, "up.py,,", 7), 0);
	}
	assert_int_equal(python_sources_new_on(&clock, &s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		now_ns += steps[i].after_s * NSEC_PER_SEC;
		if (steps[i].install)
			assert_int_equal(renameat(f->fd, "live/site-packages/up-1.dist-info", f->fd,
						  "live/site-packages/up-2.dist-info"),
					 0);
		python_sources_find(s, 1, f->fd, STR("/live/site-packages/up.py"), STR("3.11.2"), &out);
		assert_text(out.distribution, steps[i].want);
	}
	python_sources_free(s);
}

/* A folder becomes a package, and no longer is one. */
static void notices_packages(void **state)
{
	const struct folder *f = *state;
	uint64_t now_ns = NSEC_PER_SEC;
	const struct clock clock = { .monotonic_ns = simulated_ns, .self = &now_ns };
	static const struct {
		uint64_t after_s;
		const char *want;
	} steps[] = { { 0, "" }, { 30, "" }, { 31, "late.mod" } };
	struct python_source out;
	struct python_sources *s;

	assert_int_equal(mkdirat(f->fd, "late", 0755), 0);
	assert_int_equal(python_sources_new_on(&clock, &s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		now_ns += steps[i].after_s * NSEC_PER_SEC;
		python_sources_find(s, 1, f->fd, STR("/late/mod.py"), STR("3.11.2"), &out);
		assert_text(out.package, steps[i].want);
		if (i == 0) {
			scoped(closep) int fd = openat(f->fd, "late/__init__.py", O_WRONLY | O_CREAT, 0644);

			assert_true(fd >= 0);
		}
	}
	assert_int_equal(unlinkat(f->fd, "late/__init__.py", 0), 0);
	now_ns += 3600 * NSEC_PER_SEC;
	python_sources_find(s, 1, -1, STR("/late/mod.py"), STR("3.11.2"), &out);
	assert_text(out.package, "late.mod"); /* the process is gone, what was read stays */
	python_sources_find(s, 1, f->fd, STR("/late/mod.py"), STR("3.11.2"), &out);
	assert_text(out.package, "");
	python_sources_free(s);
}

/* Debian's pip has METADATA and no RECORD, pip's own has both. */
static void reads_a_real_installation(void **state)
{
	scoped(closep) int root = open("/", O_PATH | O_CLOEXEC);
	struct python_source out;
	struct python_sources *s;

	(void)state;
	if (access("/usr/lib/python3/dist-packages/pip/_internal/main.py", R_OK) < 0)
		skip_because("needs Debian's python3-pip");
	assert_int_equal(python_sources_new(&s), 0);
	python_sources_find(s, 0, root, STR("/usr/lib/python3/dist-packages/pip/_internal/main.py"), STR("3.11.2"),
			    &out);
	assert_text(out.package, "pip._internal.main");
	assert_true(str_starts(out.distribution, STR("pip==")));
	python_sources_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_packages_and_distributions),
		cmocka_unit_test(made_up_names_end),
		cmocka_unit_test(keeps_file_systems_apart),
		cmocka_unit_test(resolves_links),
		cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(withstands_hostile_folders),
		cmocka_unit_test(notices_installations),
		cmocka_unit_test(notices_packages),
		cmocka_unit_test(reads_a_real_installation),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
