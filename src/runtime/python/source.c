/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/python/source.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/random.h"
#include "runtime/python/path.h"
#include "runtime/python/site.h"
#include "runtime/target_files.h"

#define NAMES_MAX MIB(16)
#define NAMES_ENOUGH MIB(8) /* then all is forgotten: a program may make up as many as it likes */
#define SITES_MAX 256u
#define SITE_FILES_MAX (512u << 10) /* remembered of all folders together */
#define FOLDERS_MAX 65536u
#define PACKAGE_DEPTH_MAX 32
#define LOOK_AGAIN_NS (60 * NSEC_PER_SEC)
#define TRUST_NS NSEC_PER_SEC /* nobody looks whether something was installed */
#define STANDARD "standard-library=="

struct site_stamp { /* what changes when something is installed */
	uint64_t device, inode;
	int64_t changed_s, changed_ns;
};

struct site {
	uint64_t key;  /* hash of origin and folder */
	uint64_t used; /* number of the last question */
	uint64_t loaded_ns, looked_ns;
	struct site_stamp stamp;
	struct python_site files;
};

struct python_sources {
	struct intern names;
	struct site *sites;
	size_t site_count, site_cap;
	uint64_t folders_ns;   /* when they were forgotten last */
	struct u64map folders; /* hash of origin and folder -> string: import path of the package, as "pkg.sub" */
	const struct clock *clock;
	uint64_t seed, questions;
	struct buf path;
};

int python_sources_new(struct python_sources **out)
{
	return python_sources_new_on(&clock_system, out);
}

int python_sources_new_on(const struct clock *clock, struct python_sources **out)
{
	struct python_sources *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	intern_init(&s->names, NAMES_MAX);
	u64map_init(&s->folders, FOLDERS_MAX);
	s->clock = clock;
	s->seed = random_u64();
	s->path = (struct buf)BUF_INIT(TARGET_PATH_MAX);
	*out = s;
	return 0;
}

static void forget_sites(struct python_sources *s)
{
	for (size_t i = 0; i < s->site_count; i++)
		python_site_release(&s->sites[i].files);
	s->site_count = 0;
}

void python_sources_free(struct python_sources *s)
{
	if (!s)
		return;
	forget_sites(s);
	free(s->sites);
	u64map_release(&s->folders);
	intern_release(&s->names);
	buf_release(&s->path);
	free(s);
}

static uint64_t key_of(const struct python_sources *s, uint32_t origin, struct str path)
{
	return XXH3_64bits_withSeed(path.len ? path.ptr : "", path.len,
				    s->seed ^ origin * UINT64_C(0x9e3779b97f4a7c15));
}

static const char *terminated(struct python_sources *s, struct str path, const char *tail)
{
	if (path.len && memchr(path.ptr, 0, path.len))
		return NULL;
	buf_clear(&s->path);
	buf_adds(&s->path, path);
	buf_adds(&s->path, str_of(tail));
	(void)buf_cstr(&s->path);
	return s->path.error ? NULL : s->path.ptr;
}

static int stamp_of(int root_fd, const char *folder, struct site_stamp *out)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	scoped(closep) int fd = root_fd < 0 ? -1 : (int)syscall(SYS_openat2, root_fd, folder, &how, sizeof(how));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return -ENOENT;
	*out = (struct site_stamp){ st.st_dev, st.st_ino, st.st_mtim.tv_sec, st.st_mtim.tv_nsec };
	return 0;
}

static bool same_stamp(const struct site_stamp *a, const struct site_stamp *b)
{
	return a->device == b->device && a->inode == b->inode && a->changed_s == b->changed_s &&
	       a->changed_ns == b->changed_ns;
}

static void remove_site(struct python_sources *s, size_t index)
{
	python_site_release(&s->sites[index].files);
	s->sites[index] = s->sites[--s->site_count];
}

static size_t files_of_all(const struct python_sources *s)
{
	size_t sum = 0;

	for (size_t i = 0; i < s->site_count; i++)
		sum += s->sites[i].files.files.used;
	return sum;
}

/* The folders asked for longest ago go, until one more has room. */
static void make_room(struct python_sources *s)
{
	while (s->site_count && (s->site_count >= SITES_MAX || files_of_all(s) > SITE_FILES_MAX)) {
		size_t oldest = 0;

		for (size_t i = 1; i < s->site_count; i++)
			if (s->sites[i].used < s->sites[oldest].used)
				oldest = i;
		remove_site(s, oldest);
	}
}

static const struct site *load_site(struct python_sources *s, uint64_t key, int root_fd, const char *folder,
				    const struct site_stamp *stamp)
{
	uint64_t now = clock_monotonic_ns(s->clock);
	struct site site = { .key = key, .stamp = *stamp, .loaded_ns = now, .looked_ns = now };

	make_room(s);
	if (array_grow(&s->sites, &s->site_cap, s->site_count, SITES_MAX) < 0)
		return NULL;
	if (python_site_load(root_fd, folder, &s->names, &site.files) == -ENOMEM)
		return NULL;
	site.used = s->questions; /* what cannot be read is kept as an empty one: it is not tried for every file */
	s->sites[s->site_count] = site;
	return &s->sites[s->site_count++];
}

static struct site *known_site(struct python_sources *s, uint64_t key)
{
	for (size_t i = 0; i < s->site_count; i++)
		if (s->sites[i].key == key)
			return &s->sites[i];
	return NULL;
}

/* What is known of a folder stays, as long as nothing was installed since; it is read once a minute at most. */
static const struct site *find_site(struct python_sources *s, uint32_t origin, int root_fd, struct str folder)
{
	uint64_t key = key_of(s, origin, folder), now = clock_monotonic_ns(s->clock);
	struct site *site = known_site(s, key);
	struct site_stamp stamp;
	const char *path;

	if (site)
		site->used = s->questions;
	if (site && now - site->looked_ns < TRUST_NS)
		return site;
	path = terminated(s, folder, "");
	if (!path || stamp_of(root_fd, path, &stamp) < 0)
		return site;
	if (site && (same_stamp(&site->stamp, &stamp) || now - site->loaded_ns < LOOK_AGAIN_NS)) {
		site->looked_ns = now;
		return site;
	}
	if (site)
		remove_site(s, (size_t)(site - s->sites));
	return load_site(s, key, root_fd, path, &stamp);
}

static uint32_t add_name(struct python_sources *s, struct str name)
{
	uint32_t id = 0;

	return intern_add(&s->names, name, &id) < 0 ? 0 : id;
}

/* Without sources a package is its compiled file (PEP 3147, "Case 4: legacy pyc files and source-less imports"). */
static bool is_package(struct python_sources *s, int root_fd, struct str folder)
{
	static const char *const files[] = { "/__init__.py", "/__init__.pyc" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const char *path = terminated(s, folder, files[i]);

		if (path && target_has(root_fd, path))
			return true;
	}
	return false;
}

/* "pkg.sub" for a folder that is a package, and so for those above it. Return: false when there are too many. */
static bool package_of(struct python_sources *s, int root_fd, struct str folder, struct buf *out)
{
	struct str parts[PACKAGE_DEPTH_MAX];
	size_t count = 0;

	while (count < PACKAGE_DEPTH_MAX && folder.len) {
		ptrdiff_t slash = str_rfind(folder, '/');

		if (slash < 0 || !is_package(s, root_fd, folder))
			break;
		parts[count++] = str_skip(folder, (size_t)slash + 1);
		folder = str_first(folder, (size_t)slash);
	}
	if (count == PACKAGE_DEPTH_MAX)
		return false;
	while (count) {
		if (out->len)
			buf_addc(out, '.');
		buf_adds(out, parts[--count]);
	}
	return !out->error;
}

/* The package of a folder, from the cache or the file system; 0: it is none. */
static uint32_t folder_package(struct python_sources *s, uint32_t origin, int root_fd, struct str folder)
{
	scoped(buf_release) struct buf name = BUF_INIT(TARGET_PATH_MAX);
	uint64_t key = key_of(s, origin, folder), now = clock_monotonic_ns(s->clock);
	uint32_t id = 0;

	if (root_fd >= 0 && now - s->folders_ns >= LOOK_AGAIN_NS) { /* an __init__.py may have come */
		u64map_clear(&s->folders);
		s->folders_ns = now;
	}
	if (u64map_get(&s->folders, key, &id) == 0)
		return id;
	if (root_fd < 0)
		return 0;
	if (package_of(s, root_fd, folder, &name))
		id = add_name(s, buf_str(&name));
	if (s->folders.used >= FOLDERS_MAX)
		u64map_clear(&s->folders);
	ignore(u64map_put(&s->folders, key, id)); /* asked again next time */
	return id;
}

/* A file outside of the import path's usual roots: a module of the package its folder is; otherwise a script, or a
 * module beside one: from here nobody can tell which. */
static uint32_t find_own_module(struct python_sources *s, uint32_t origin, int root_fd, struct str file)
{
	scoped(buf_release) struct buf name = BUF_INIT(TARGET_PATH_MAX);
	struct str base = str_base(file);
	uint32_t package = file.len > base.len + 1
				   ? folder_package(s, origin, root_fd, str_first(file, file.len - base.len - 1))
				   : 0;

	if (!package)
		return 0;
	buf_adds(&name, intern_get(&s->names, package));
	if (str_eq(base, STR("__init__.py")) || str_eq(base, STR("__init__.pyc")))
		return package;
	buf_addc(&name, '.');
	return python_path_module(base, &name) && !name.error ? add_name(s, buf_str(&name)) : 0;
}

/* lib/pythonX.Y, or a folder elsewhere that holds a standard library. */
static bool is_standard(struct python_sources *s, int root_fd, const struct python_path *path, struct str version)
{
	struct str above = str_first(path->root, path->root.len - str_base(path->root).len);
	const char *proof;

	if (!str_starts(version, path->release) ||
	    (version.len > path->release.len && version.ptr[path->release.len] != '.'))
		return false; /* another interpreter's */
	if (str_ends(above, STR("/lib/")) || str_ends(above, STR("/lib64/")) || str_ends(above, STR("/lib32/")))
		return true;
	proof = terminated(s, path->root, "/os.py");
	return root_fd >= 0 && proof && target_has(root_fd, proof);
}

static uint32_t add_standard(struct python_sources *s, struct str version)
{
	char text[sizeof(STANDARD) + 64];
	int n = snprintf(text, sizeof(text), STANDARD STR_FMT, STR_ARG(version));

	return n < 0 || (size_t)n >= sizeof(text) ? 0 : add_name(s, str_n(text, (size_t)n));
}

static uint32_t add_module(struct python_sources *s, struct str inside)
{
	scoped(buf_release) struct buf name = BUF_INIT(TARGET_PATH_MAX);

	return python_path_module(inside, &name) ? add_name(s, buf_str(&name)) : 0;
}

static uint32_t find_distribution(struct python_sources *s, uint32_t origin, int root_fd, struct str file,
				  const struct python_path *path)
{
	const struct site *site = find_site(s, origin, root_fd, path->root);

	return site ? python_site_find(&site->files, str_skip(file, path->root.len + 1)) : 0;
}

/* Names of strangers fill the table: what is still needed is found again. */
static void forget_when_full(struct python_sources *s)
{
	if (s->names.size < NAMES_ENOUGH)
		return;
	forget_sites(s);
	u64map_clear(&s->folders);
	intern_release(&s->names);
	intern_init(&s->names, NAMES_MAX);
}

void python_sources_find(struct python_sources *s, uint32_t origin, int root_fd, struct str file, struct str version,
			 struct python_source *out)
{
	uint32_t package = 0, distribution = 0;
	struct python_path path;

	s->questions++;
	forget_when_full(s);
	python_path_parse(file, &path);
	if (path.kind == PYTHON_PATH_STANDARD && !is_standard(s, root_fd, &path, version))
		path.kind = PYTHON_PATH_OTHER;
	switch (path.kind) {
	case PYTHON_PATH_FROZEN:
		package = add_name(s, path.inside);
		break;
	case PYTHON_PATH_STANDARD:
		package = add_module(s, path.inside);
		distribution = add_standard(s, version);
		break;
	case PYTHON_PATH_SITE:
		package = add_module(s, path.inside);
		distribution = find_distribution(s, origin, root_fd, file, &path);
		break;
	case PYTHON_PATH_ARCHIVE:
		package = add_module(s, path.inside);
		break;
	case PYTHON_PATH_OTHER:
		if (file.len && file.ptr[0] == '/')
			package = find_own_module(s, origin, root_fd, file);
		break;
	}
	out->package = intern_get(&s->names, package);
	out->distribution = intern_get(&s->names, distribution);
}
