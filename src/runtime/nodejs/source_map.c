/* SPDX-License-Identifier: Apache-2.0 */
/* Is there a source map beside a script, and is it of the code that runs? The file beside, and nothing that the script
 * says of it: "X.js.map" of X.js, as compilers and bundlers write it. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/nodejs/nodejs_int.h"
#include "runtime/target_files.h"

#define MARK_SIZE 3 /* U+FEFF in front of a file's text, which Node.js takes away */

static int stat_beside(int root, struct str file, const char *suffix, struct stat *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(TARGET_PATH_MAX);

	buf_adds(&path, file);
	buf_adds(&path, str_of(suffix));
	return path.error ? -ENAMETOOLONG : target_stat(root, buf_cstr(&path), out);
}

/* hearth may read what the process may not: a link leads anywhere below its root. */
static bool may_read(const struct runtime_target *target, const struct stat *file)
{
	struct stat process;

	return fstat(target->proc_dir, &process) == 0 &&
	       (process.st_uid == 0 || process.st_uid == file->st_uid || file->st_mode & S_IROTH);
}

static uint64_t look(const struct runtime_target *target, uint64_t text_size, struct str file)
{
	scoped(closep) int root = openat(target->proc_dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat map, script;

	if (stat_beside(root, file, ".map", &map) < 0 || !may_read(target, &map) ||
	    stat_beside(root, file, "", &script) < 0)
		return 0;
	if ((uint64_t)script.st_size != text_size && (uint64_t)script.st_size != text_size + MARK_SIZE)
		return 0;
	return target_file_id(&map);
}

uint64_t nodejs_source_map(const struct runtime_target *target, struct nodejs_lines *lines, struct str file)
{
	if (lines->map_is_known || !str_starts(file, STR("/")) || memchr(file.ptr, 0, file.len))
		return lines->map_id;
	lines->map_id = look(target, lines->size, file);
	lines->map_is_known = true;
	return lines->map_id;
}

/* ---- where a function's name stands ---- */

struct back { /* text is gone through from its end */
	const uint16_t *units;
	size_t left;
};

static bool is_name_unit(uint16_t unit)
{
	return (unit >= 'a' && unit <= 'z') || (unit >= 'A' && unit <= 'Z') || (unit >= '0' && unit <= '9') ||
	       unit == '_' || unit == '$' || unit >= 0x80;
}

static bool take_unit(struct back *b, uint16_t unit)
{
	if (!b->left || b->units[b->left - 1] != unit)
		return false;
	b->left--;
	return true;
}

static void skip_blanks(struct back *b)
{
	while (take_unit(b, ' ') || take_unit(b, '\t'))
		;
}

/* Is the word that ends here @word? Then it is taken. Where the text begins within it nobody can tell. */
static bool take_word(struct back *b, struct str word)
{
	size_t at = b->left - word.len;

	if (!word.len || b->left <= word.len || is_name_unit(b->units[at - 1]))
		return false;
	for (size_t i = 0; i < word.len; i++)
		if (b->units[at + i] != (uint8_t)word.ptr[i] || (uint8_t)word.ptr[i] >= 0x80)
			return false;
	b->left = at;
	return true;
}

size_t nodejs_name_before(const uint16_t *units, size_t count, struct str name)
{
	struct back b = { units, count };
	ptrdiff_t dot = str_rfind(name, '.');
	bool is_word;

	if (dot >= 0)
		name = str_skip(name, (size_t)dot + 1);
	skip_blanks(&b);
	if (take_word(&b, name))
		return count - b.left;
	if (take_unit(&b, '*'))
		skip_blanks(&b);
	is_word = take_word(&b, STR("function"));
	skip_blanks(&b);
	if (take_word(&b, STR("async")) || is_word)
		skip_blanks(&b);
	if (!take_unit(&b, '=') && !take_unit(&b, ':'))
		return 0;
	skip_blanks(&b);
	return take_word(&b, name) ? count - b.left : 0;
}
