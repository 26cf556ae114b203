/* SPDX-License-Identifier: Apache-2.0 */
/* Is there a source map beside a script, and is it of the code that runs? The file beside, and nothing that the script
 * says of it: "X.js.map" of X.js, as compilers and bundlers write it. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/nodejs/nodejs_int.h"
#include "runtime/target_files.h"

#define MARK_SIZE 3 /* U+FEFF in front of a file's text, which Node.js takes away */

static int open_beside(int root, struct str file, const char *suffix, uint64_t *size)
{
	scoped(buf_release) struct buf path = BUF_INIT(TARGET_PATH_MAX);

	buf_adds(&path, file);
	buf_adds(&path, str_of(suffix));
	return path.error ? -ENAMETOOLONG : target_open(root, buf_cstr(&path), size);
}

static uint64_t look(const struct runtime_target *target, uint64_t text_size, struct str file)
{
	scoped(closep) int root = openat(target->proc_dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped(closep) int map = -1, script = -1;
	uint64_t size;
	struct stat st;

	map = open_beside(root, file, ".map", &size);
	if (map < 0 || fstat(map, &st) < 0)
		return 0;
	script = open_beside(root, file, "", &size);
	if (script < 0 || (size != text_size && size != text_size + MARK_SIZE))
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
}

uint64_t nodejs_source_map(const struct runtime_target *target, struct nodejs_lines *lines, struct str file)
{
	if (lines->map_is_known || !str_starts(file, STR("/")) || memchr(file.ptr, 0, file.len))
		return lines->map_ns;
	lines->map_ns = look(target, lines->size, file);
	lines->map_is_known = true;
	return lines->map_ns;
}
