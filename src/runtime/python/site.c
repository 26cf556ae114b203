/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/python/site.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/random.h"
#include "runtime/target_files.h"

bool python_record_next(struct str *rest, struct str *path)
{
	struct str line;

	while (str_next(rest, '\n', &line)) {
		char end = ',';

		line = str_trim(line);
		if (line.len && line.ptr[0] == '"') {
			line = str_skip(line, 1);
			end = '"';
		}
		if (str_find(line, end) > 0)
			line = str_first(line, (size_t)str_find(line, end));
		else if (end == '"')
			continue; /* a line end inside of quotes: no file of Python's has that */
		if (!line.len)
			continue;
		*path = line;
		return true;
	}
	return false;
}

struct str python_header_find(struct str text, struct str name)
{
	struct str line;

	while (str_next(&text, '\n', &line)) {
		line = str_trim(line);
		if (!line.len)
			break;
		if (str_starts(line, name) && line.len > name.len && line.ptr[name.len] == ':')
			return str_trim(str_skip(line, name.len + 1));
	}
	return STR("");
}

struct loader {
	int root_fd;
	const char *folder;
	struct intern *names;
	struct python_site *site;
	struct buf text, path;
	size_t bytes; /* read so far */
};

static void loader_release(struct loader *l)
{
	buf_release(&l->text);
	buf_release(&l->path);
}

static uint64_t hash_of(const struct python_site *site, struct str s)
{
	return XXH3_64bits_withSeed(s.len ? s.ptr : "", s.len, site->seed);
}

static struct str first_part(struct str path)
{
	ptrdiff_t slash = str_find(path, '/');

	return slash < 0 ? path : str_first(path, (size_t)slash);
}

/* Return: 0, also when there is no more room; -ENOMEM. */
static int put(struct u64map *map, uint64_t key, uint32_t name)
{
	uint32_t had;
	int r;

	if (u64map_get(map, key, &had) == 0 && had != name)
		name = 0;
	r = u64map_put(map, key, name);
	return r == -E2BIG ? 0 : r;
}

/* Read FOLDER/INFO/FILE, or FOLDER/INFO alone, into l->text. Return: 0; -ENOENT when it cannot be read; -ENOMEM. */
static int read_text(struct loader *l, struct str info, const char *file, size_t max)
{
	int r;

	buf_clear(&l->text);
	buf_clear(&l->path);
	buf_addf(&l->path, "%s/" STR_FMT "%s%s", l->folder, STR_ARG(info), *file ? "/" : "", file);
	(void)buf_cstr(&l->path);
	if (l->path.error)
		return l->path.error == -ENOMEM ? -ENOMEM : -ENOENT;
	if (l->bytes >= PYTHON_SITE_BYTES_MAX)
		return -ENOENT;
	r = target_read_head(l->root_fd, l->path.ptr, MIN(max, PYTHON_SITE_BYTES_MAX - l->bytes), &l->text);
	l->bytes += l->text.len;
	return r == -ENOMEM ? r : r < 0 ? -ENOENT : 0;
}

/* "requests-2.31.0.dist-info", "PyGObject-3.42.2-py3.11.egg-info": what the folder's name says. */
static bool split_info(struct str info, struct str *name, struct str *version)
{
	ptrdiff_t dash;

	info = str_first(info, (size_t)str_rfind(info, '.'));
	dash = str_find(info, '-');
	if (dash <= 0)
		return false;
	*name = str_first(info, (size_t)dash);
	info = str_skip(info, (size_t)dash + 1);
	dash = str_find(info, '-');
	*version = dash < 0 ? info : str_first(info, (size_t)dash);
	return version->len;
}

static bool is_printable(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((uint8_t)s.ptr[i] <= ' ' || (uint8_t)s.ptr[i] >= 0x7f || strchr("[];()", s.ptr[i]))
			return false;
	return s.len;
}

/* "name==version" of an installed distribution, as its metadata have it. */
static int find_name(struct loader *l, struct str info, uint32_t *out)
{
	static const char *const files[] = { "METADATA", "PKG-INFO", "" }; /* "": the info is a file itself */
	struct str name = STR(""), version = STR("");
	char text[PYTHON_SITE_NAME_MAX];
	int n, r = -ENOENT;

	for (size_t i = 0; r == -ENOENT && i < ARRAY_SIZE(files); i++) {
		r = read_text(l, info, files[i], PYTHON_SITE_HEAD_MAX);
		if (r < 0)
			continue;
		name = python_header_find(buf_str(&l->text), STR("Name"));
		version = python_header_find(buf_str(&l->text), STR("Version"));
	}
	if (r == -ENOMEM)
		return r;
	if ((!is_printable(name) || !is_printable(version)) && !split_info(info, &name, &version))
		return -ENOENT;
	if (!is_printable(name) || !is_printable(version))
		return -ENOENT;
	n = snprintf(text, sizeof(text), STR_FMT "==" STR_FMT, STR_ARG(name), STR_ARG(version));
	if (n < 0 || (size_t)n >= sizeof(text))
		return -ENOENT;
	r = intern_add(l->names, str_n(text, (size_t)n), out);
	return r == -E2BIG ? -ENOENT : r;
}

static int put_file(struct loader *l, struct str path, uint32_t name)
{
	if (!str_ends(path, STR(".py")) || path.ptr[0] == '/' || str_starts(path, STR("../")))
		return 0;
	return put(&l->site->files, hash_of(l->site, path), name);
}

/* Lines of RECORD are relative to the folder, those of installed-files.txt to the info. */
static int add_files(struct loader *l, struct str info, uint32_t name)
{
	struct str rest, path;
	int r = read_text(l, info, "RECORD", PYTHON_SITE_FILE_MAX);
	bool is_record = r == 0;

	if (r == -ENOENT)
		r = read_text(l, info, "installed-files.txt", PYTHON_SITE_FILE_MAX);
	if (r < 0)
		return r;
	rest = buf_str(&l->text);
	while (r == 0 && is_record && python_record_next(&rest, &path))
		r = put_file(l, path, name);
	while (r == 0 && !is_record && str_next(&rest, '\n', &path)) {
		path = str_trim(path);
		if (str_starts(path, STR("../")))
			r = put_file(l, str_skip(path, 3), name);
	}
	return r;
}

static int add_tops(struct loader *l, struct str info, uint32_t name)
{
	struct str rest, top;
	int r = read_text(l, info, "top_level.txt", PYTHON_SITE_HEAD_MAX);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	rest = buf_str(&l->text);
	while (r == 0 && str_next(&rest, '\n', &top)) {
		top = str_trim(top);
		if (top.len)
			r = put(&l->site->tops, hash_of(l->site, top), name);
	}
	return r;
}

static int add_distribution(struct loader *l, struct str info)
{
	uint32_t name;
	int r = find_name(l, info, &name);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = add_files(l, info, name);
	return r == -ENOENT ? add_tops(l, info, name) : r;
}

static DIR *open_folder(int root_fd, const char *folder)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, root_fd, folder, &how, sizeof(how));
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

void python_site_release(struct python_site *site)
{
	u64map_release(&site->files);
	u64map_release(&site->tops);
}

int python_site_load(int root_fd, const char *folder, struct intern *names, struct python_site *out)
{
	scoped(python_site_release) struct python_site site = { .seed = random_u64() };
	scoped(loader_release) struct loader l = { .root_fd = root_fd,
						   .folder = folder,
						   .names = names,
						   .site = &site,
						   .text = BUF_INIT(PYTHON_SITE_FILE_MAX + 1),
						   .path = BUF_INIT(TARGET_PATH_MAX) };
	scoped(closedirp) DIR *dir = open_folder(root_fd, folder);
	int r = 0;

	if (!dir)
		return -errno;
	u64map_init(&site.files, PYTHON_SITE_FILES_MAX);
	u64map_init(&site.tops, PYTHON_SITE_ENTRIES_MAX);
	for (size_t i = 0; r == 0 && i < PYTHON_SITE_ENTRIES_MAX; i++) {
		const struct dirent *entry = readdir(dir);
		struct str name = str_of(entry ? entry->d_name : NULL);

		if (!entry)
			break;
		if (str_ends(name, STR(".dist-info")) || str_ends(name, STR(".egg-info")))
			r = add_distribution(&l, name);
	}
	if (r < 0)
		return r;
	*out = site;
	site = (struct python_site){ 0 }; /* moved out */
	return 0;
}

uint32_t python_site_find(const struct python_site *site, struct str path)
{
	struct str top = first_part(path);
	uint32_t name;

	if (u64map_get(&site->files, hash_of(site, path), &name) == 0)
		return name;
	if (str_ends(top, STR(".py")))
		top.len -= 3;
	return u64map_get(&site->tops, hash_of(site, top), &name) == 0 ? name : 0;
}
