/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/electron.h"

#include "runtime/target_files.h"

static bool has(int root_fd, struct str folder, const char *name)
{
	scoped(buf_release) struct buf path = BUF_INIT(TARGET_PATH_MAX);
	struct stat st;

	buf_adds(&path, folder);
	buf_adds(&path, str_of(name));
	return !path.error && target_stat(root_fd, buf_cstr(&path), &st) == 0;
}

bool electron_beside(int root_fd, struct str exe)
{
	static const char *const code[] = { "resources/app.asar", "resources/app/package.json",
					    "resources/default_app.asar" };
	ptrdiff_t slash = str_rfind(exe, '/');
	struct str folder = str_first(exe, (size_t)(slash + 1));

	if (slash < 0 || !has(root_fd, folder, "icudtl.dat"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(code); i++)
		if (has(root_fd, folder, code[i]))
			return true;
	return false;
}
