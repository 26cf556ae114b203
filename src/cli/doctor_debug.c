/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_debug.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "object/debug_file.h"
#include "object/elf.h"
#include "proc/maps.h"

#define FILES_MAX 1024
#define NAMED_MAX 12 /* packages that are looked for */
#define LOOK_NS (500 * NSEC_PER_MSEC)
#define LISTS_MAX_BYTES MIB(256)

struct mapped {
	char *path; /* as in the maps of a process */
	uint64_t inode;
	unsigned int processes;
	uint64_t last; /* the process that was counted last */
	char package[64];
};

struct look {
	const char *root;
	struct mapped files[FILES_MAX];
	size_t count;
	uint64_t end_ns;
};

static void free_look(struct look **l)
{
	for (size_t i = 0; *l && i < (*l)->count; i++)
		free((*l)->files[i].path);
	free(*l);
}

static bool in_time(const struct look *l)
{
	return clock_monotonic_ns(&clock_system) < l->end_ns;
}

static void count_file(struct look *l, const struct maps_line *line, uint64_t pid)
{
	size_t i = 0;

	while (i < l->count && (l->files[i].inode != line->inode || !str_eq(str_of(l->files[i].path), line->path)))
		i++;
	if (i == FILES_MAX)
		return;
	if (i == l->count) {
		l->files[i] = (struct mapped){ .path = str_dup(line->path), .inode = line->inode };
		if (!l->files[i].path)
			return;
		l->count++;
	}
	l->files[i].processes += l->files[i].last != pid;
	l->files[i].last = pid;
}

static own_frame void count_process(struct look *l, uint64_t pid)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8)), text = BUF_INIT(MIB(4));
	struct maps_line line;
	struct str rest;
	int r;

	buf_addf(&path, "%s/proc/%llu/maps", l->root, (unsigned long long)pid);
	if (io_read_file(buf_cstr(&path), &text) < 0)
		return;
	rest = buf_str(&text);
	while ((r = maps_next(&rest, &line)) != 0)
		if (r > 0 && line.executable && line.inode && !line.deleted && str_starts(line.path, STR("/")))
			count_file(l, &line, pid);
}

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all((int)(intptr_t)self, dst, size, offset);
}

/* Is there a separate debug file? That it is the right one is judged when names are read. */
static own_frame bool has_debug_file(const struct look *l, const struct elf *elf, const char *path)
{
	scoped(buf_release) struct buf place = BUF_INIT(KIB(16));
	uint8_t id[ELF_BUILD_ID_MAX];
	char name[ELF_LINK_NAME_MAX];
	uint32_t crc;
	int size = elf_build_id(elf, id);

	if (size > 0 && debug_file_by_id(l->root, id, (size_t)size, &place) == 0 && !access(buf_cstr(&place), F_OK))
		return true;
	if (elf_debug_link(elf, name, &crc) < 0)
		return false;
	for (size_t i = 0;; i++) {
		buf_clear(&place);
		if (debug_file_by_link(l->root, str_of(path), name, i, &place) < 0)
			return false;
		if (!access(buf_cstr(&place), F_OK))
			return true;
	}
}

/* Only the host's own file of that path: a container may have another one there. */
static own_frame bool is_nameless(const struct look *l, const struct mapped *m)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
	scoped(elf_release) struct elf elf = { 0 };
	scoped(closep) int path_fd = -1;
	scoped(closep) int fd = -1;
	struct reader in;
	struct stat st;

	buf_addf(&path, "%s%s", l->root, m->path);
	path_fd = open(buf_cstr(&path), O_PATH | O_CLOEXEC);
	if (path_fd < 0)
		return false;
	fd = io_open_regular(path_fd, &st);
	if (fd < 0 || st.st_ino != m->inode)
		return false;
	in = (struct reader){ .read = read_fd, .self = (void *)(intptr_t)fd, .size = (uint64_t)st.st_size };
	if (elf_parse(&in, &elf) < 0)
		return false;
	return elf.section_count && !elf_section_find(&elf, STR(".symtab")) &&
	       !elf_section_find(&elf, STR(".gopclntab")) && !elf_section_find(&elf, STR(".gnu_debugdata")) &&
	       !has_debug_file(l, &elf, m->path);
}

static int most_first(const void *a, const void *b)
{
	const struct mapped *x = a, *y = b;

	return x->processes != y->processes ? (x->processes < y->processes) - (x->processes > y->processes)
					    : strcmp(x->path, y->path);
}

/* Debian's lists name files as they were packed: below /lib, which is /usr/lib by now. */
static bool is_path(struct str line, struct str path)
{
	return str_eq(line, path) || (str_starts(path, STR("/usr/")) && str_eq(line, str_skip(path, 4)));
}

/* @name: "liblzma5:amd64.list" or "xz-utils.list". A name that is none of Debian's is not repeated. */
static bool package_of(struct str name, char out[64])
{
	ptrdiff_t colon = str_find(name, ':');

	name = str_first(name, colon >= 0 ? (size_t)colon : name.len - strlen(".list"));
	if (!name.len || name.len >= 64)
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789+-.", name.ptr[i]) || !name.ptr[i])
			return false;
	memcpy(out, name.ptr, name.len);
	out[name.len] = '\0';
	return true;
}

static own_frame void find_packages(struct look *l, size_t count)
{
	scoped(buf_release) struct buf folder = BUF_INIT(KIB(8)), text = BUF_INIT(MIB(16));
	uint64_t bytes = 0;
	DIR *dir;

	buf_addf(&folder, "%s/var/lib/dpkg/info", l->root);
	dir = opendir(buf_cstr(&folder));
	for (struct dirent *entry; dir && in_time(l) && bytes < LISTS_MAX_BYTES && (entry = readdir(dir));) {
		struct str rest, line;

		buf_clear(&text);
		if (!str_ends(str_of(entry->d_name), STR(".list")) ||
		    io_read_file_at(dirfd(dir), entry->d_name, &text) < 0)
			continue;
		bytes += text.len;
		rest = buf_str(&text);
		while (str_next(&rest, '\n', &line))
			for (size_t i = 0; i < count; i++)
				if (!l->files[i].package[0] && is_path(line, str_of(l->files[i].path)) &&
				    !package_of(str_of(entry->d_name), l->files[i].package))
					l->files[i].package[0] = '\0';
	}
	if (dir)
		closedir(dir);
}

/* Whole names only, as many as there is room for. */
static void add_packages(const struct look *l, size_t count, struct probe_fact *out)
{
	size_t used =
		(size_t)snprintf(out->remedy, sizeof(out->remedy), "%s", "packages, perhaps of the debug archive:");
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		const char *package = l->files[i].package;
		/* glibc's is the one that stands in the main archive, under an older name. */
		const char *suffix = !strcmp(package, "libc6") ? "-dbg" : "-dbgsym";
		bool seen = !package[0];

		for (size_t k = 0; k < i; k++)
			seen |= !strcmp(l->files[k].package, package);
		if (seen || used + strlen(package) + strlen(suffix) + 2 > sizeof(out->remedy))
			continue;
		used += (size_t)snprintf(out->remedy + used, sizeof(out->remedy) - used, " %s%s", package, suffix);
		any = true;
	}
	if (!any)
		snprintf(out->remedy, sizeof(out->remedy), "install the debug symbols of these files");
}

void doctor_debug_packages(const char *host_root, struct probe_fact *out)
{
	scoped(free_look) struct look *l = calloc(1, sizeof(*l));
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8));
	size_t nameless = 0, all;
	DIR *dir;

	*out = (struct probe_fact){ .name = "debug-packages", .need = PROBE_NEED_NOTHING, .ok = true };
	if (!l)
		return;
	l->root = host_root;
	l->end_ns = clock_monotonic_ns(&clock_system) + LOOK_NS;
	buf_addf(&path, "%s/proc", host_root);
	dir = opendir(buf_cstr(&path));
	for (struct dirent *entry; dir && in_time(l) && (entry = readdir(dir));) {
		uint64_t pid;

		if (str_to_u64(str_of(entry->d_name), 1, UINT32_MAX, &pid) == 0)
			count_process(l, pid);
	}
	if (dir)
		closedir(dir);
	all = l->count;
	for (size_t i = 0; i < all; i++) {
		if (in_time(l) && is_nameless(l, &l->files[i])) {
			struct mapped m = l->files[nameless];

			l->files[nameless++] = l->files[i];
			l->files[i] = m;
		}
	}
	qsort(l->files, nameless, sizeof(*l->files), most_first);
	out->ok = !nameless;
	snprintf(out->value, sizeof(out->value), "%zu of %zu mapped files have exported names only%s", nameless, all,
		 nameless ? "; those below are mapped most" : "");
	if (nameless) {
		find_packages(l, MIN(nameless, (size_t)NAMED_MAX));
		add_packages(l, MIN(nameless, (size_t)NAMED_MAX), out);
	}
}
