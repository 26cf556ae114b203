/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/python/path.h"

#include "base/ascii.h"

/* "3.11" of "python3.11", "3.13" of free-threaded "python3.13t"; empty: another name. */
static struct str release_of(struct str name)
{
	size_t i = 2;

	if (!str_starts(name, STR("python")))
		return STR("");
	name = str_skip(name, 6);
	if (name.len && name.ptr[name.len - 1] == 't')
		name.len--;
	if (name.len < 3 || !ascii_is_digit(name.ptr[0]) || name.ptr[1] != '.')
		return STR("");
	while (i < name.len && ascii_is_digit(name.ptr[i]))
		i++;
	return i == name.len ? name : STR("");
}

static bool is_site(struct str name)
{
	return str_eq(name, STR("site-packages")) || str_eq(name, STR("dist-packages"));
}

/* Folders of the standard library that are on the import path themselves. */
static struct str skip_inner_root(struct str inside)
{
	static const struct str folders[] = { { "lib-dynload/", 12 }, { "lib-tk/", 7 }, { "lib-old/", 8 } };

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (str_starts(inside, folders[i]))
			return str_skip(inside, folders[i].len);
	return inside;
}

/* site-packages/NAME-1.0-py3.8.egg/ is on the import path itself. */
static struct str skip_egg(struct str inside)
{
	ptrdiff_t slash = str_find(inside, '/');

	if (slash > 0 && str_ends(str_first(inside, (size_t)slash), STR(".egg")))
		return str_skip(inside, (size_t)slash + 1);
	return inside;
}

/* What Python imports from without unpacking (zipimport, PEP 441), and folders that stand for such files: pex unpacks
 * wheels into folders of their names. */
static bool is_archive(struct str name)
{
	static const struct str ends[] = { { ".zip", 4 }, { ".pyz", 4 }, { ".pex", 4 }, { ".whl", 4 }, { ".egg", 4 } };

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (name.len > ends[i].len && str_ends(name, ends[i]))
			return true;
	return false;
}

static enum python_path_kind kind_of(struct str name, struct str release, enum python_path_kind outside)
{
	if (is_site(name))
		return PYTHON_PATH_SITE;
	if (outside == PYTHON_PATH_SITE)
		return PYTHON_PATH_OTHER; /* part of what is installed there */
	if (release.len)
		return PYTHON_PATH_STANDARD;
	return is_archive(name) ? PYTHON_PATH_ARCHIVE : PYTHON_PATH_OTHER;
}

void python_path_parse(struct str file, struct python_path *out)
{
	struct str rest = file, name;

	*out = (struct python_path){ .inside = str_base(file) };
	if (str_starts(file, STR("<frozen ")) && str_ends(file, STR(">"))) {
		out->kind = PYTHON_PATH_FROZEN;
		out->inside = str_n(file.ptr + 8, file.len - 9);
		return;
	}
	if (!file.len || file.ptr[0] != '/')
		return;
	while (str_next(&rest, '/', &name) && rest.ptr) { /* the last name is the file's */
		struct str release = release_of(name);
		enum python_path_kind kind = kind_of(name, release, out->kind);

		if (kind == PYTHON_PATH_OTHER)
			continue;
		out->kind = kind;
		out->release = release;
		out->root = str_n(file.ptr, (size_t)(name.ptr + name.len - file.ptr));
		out->inside = rest;
	}
	if (out->kind == PYTHON_PATH_STANDARD)
		out->inside = skip_inner_root(out->inside);
	if (out->kind == PYTHON_PATH_SITE)
		out->inside = skip_egg(out->inside);
}

static bool is_identifier(struct str s)
{
	if (!s.len || ascii_is_digit(s.ptr[0]))
		return false;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (!(ascii_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
		      (unsigned char)c >= 0x80))
			return false;
	}
	return true;
}

bool python_path_module(struct str inside, struct buf *out)
{
	size_t before = out->len;
	struct str name;

	if (str_ends(inside, STR(".pyc")))
		inside.len--;
	if (!str_ends(inside, STR(".py")))
		return false;
	inside.len -= 3;
	if (str_ends(inside, STR("/__init__")))
		inside.len -= 9;
	while (str_next(&inside, '/', &name)) {
		if (!is_identifier(name)) {
			out->len = before;
			return false;
		}
		if (out->len > before)
			buf_addc(out, '.');
		buf_adds(out, name);
	}
	return !out->error;
}
