/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with files beside them, in a folder that is the root directory of their process. */
#include "support.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/electron.h"

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static void make(int root, const char *path)
{
	char part[256];
	int fd;

	for (size_t i = 1; path[i]; i++) {
		if (path[i] != '/')
			continue;
		(void)snprintf(part, sizeof(part), "%.*s", (int)i, path);
		assert_true(mkdirat(root, part, 0700) == 0 || errno == EEXIST);
	}
	if (path[strlen(path) - 1] == '/')
		return;
	fd = openat(root, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void what_lies_beside(void **state)
{
	static const struct {
		const char *name, *exe, *files[3];
		bool want;
	} cases[] = {
		{ "Slack",
		  "/usr/lib/slack/slack",
		  { "usr/lib/slack/icudtl.dat", "usr/lib/slack/resources/app.asar" },
		  true },
		{ "Code",
		  "/usr/share/code/code",
		  { "usr/share/code/icudtl.dat", "usr/share/code/resources/app/package.json" },
		  true },
		{ "replaced",
		  "/usr/share/code/code (deleted)",
		  { "usr/share/code/icudtl.dat", "usr/share/code/resources/app/package.json" },
		  true },
		{ "Electron alone", "/e/app", { "e/icudtl.dat", "e/resources/default_app.asar" }, true },
		{ "in the root", "/app", { "icudtl.dat", "resources/app.asar" }, true },
		{ "Chrome",
		  "/opt/google/chrome/chrome",
		  { "opt/google/chrome/icudtl.dat", "opt/google/chrome/resources/" },
		  false },
		{ "a service with resources", "/srv/app/server", { "srv/app/resources/app/package.json" }, false },
		{ "folders", "/e/app", { "e/icudtl.dat", "e/resources/app.asar/" }, false },
		{ "elsewhere", "/e/bin/app", { "e/icudtl.dat", "e/resources/app.asar" }, false },
		{ "out of the root", "/../e/../../../../../etc/x", { "a" }, false },
		{ "no path", "app", { "icudtl.dat", "resources/app.asar" }, false },
		{ "nothing", "", { "icudtl.dat", "resources/app.asar" }, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char folder[] = "/tmp/electron_test.XXXXXX";
		int root;

		print_message("  %s\n", cases[i].name);
		assert_non_null(mkdtemp(folder));
		root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
		assert_true(root >= 0);
		for (size_t k = 0; k < ARRAY_SIZE(cases[i].files) && cases[i].files[k]; k++)
			make(root, cases[i].files[k]);
		assert_int_equal(electron_beside(root, str_of(cases[i].exe)), cases[i].want);
		close(root);
		assert_int_equal(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	}
}

static void long_paths(void **state)
{
	static char path[KIB(8)];

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 3] = '/';
	assert_false(electron_beside(AT_FDCWD, str_of(path)));
	assert_false(electron_beside(-1, STR("/usr/lib/slack/slack")));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(what_lies_beside), cmocka_unit_test(long_paths) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
