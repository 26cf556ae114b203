/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/mappings.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/io.h"
#include "proc/maps.h"
#include "proc/proc_read.h"

#define VDSO_SIZE_MAX KIB(64)
#define SEEN_MAX (1u << 16)
#define LOOK_BACK 8 /* mappings of one file stand beside each other */

void mappings_release(struct mappings *m)
{
	free(m->items);
	*m = (struct mappings){ 0 };
}

/* The first mapping that ends above @address. */
static size_t lower_bound(const struct mappings *m, uint64_t address)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->items[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const struct mapping *mappings_find(const struct mappings *m, uint64_t address)
{
	size_t at = lower_bound(m, address);

	return at < m->count && m->items[at].start <= address ? &m->items[at] : NULL;
}

int mappings_copy(struct mappings *to, const struct mappings *from)
{
	struct mapping *items = NULL;

	if (from->count) {
		items = calloc(from->count, sizeof(*items));
		if (!items)
			return -ENOMEM;
		memcpy(items, from->items, from->count * sizeof(*items));
	}
	free(to->items);
	*to = (struct mappings){ .items = items, .count = from->count, .cap = from->count };
	return 0;
}

void mappings_cut(struct mappings *m, size_t count)
{
	struct mapping *items;

	if (m->count <= count)
		return;
	m->count = count;
	items = realloc(m->items, MAX(count, (size_t)1) * sizeof(*items));
	if (!items) /* the old ones stay */
		return;
	m->items = items;
	m->cap = MAX(count, (size_t)1);
}

int mappings_put(struct mappings *m, const struct mapping *mapping, size_t max)
{
	size_t first = lower_bound(m, mapping->start), last = first, left, count = 0;
	struct mapping pieces[3]; /* what is left of the one before, the new one, what is left of the one behind */
	int r;

	while (last < m->count && m->items[last].start < mapping->end)
		last++;
	if (last > first && m->items[first].start < mapping->start) {
		pieces[count] = m->items[first];
		pieces[count++].end = mapping->start;
	}
	pieces[count++] = *mapping;
	if (last > first && m->items[last - 1].end > mapping->end) {
		pieces[count] = m->items[last - 1];
		pieces[count].offset += mapping->end - pieces[count].start;
		pieces[count++].start = mapping->end;
	}
	left = m->count - (last - first);
	if (left + count > max)
		return -E2BIG;
	while (m->cap < left + count) {
		r = array_grow(&m->items, &m->cap, m->cap, max);
		if (r < 0)
			return r;
	}
	memmove(&m->items[first + count], &m->items[last], (m->count - last) * sizeof(*m->items));
	memcpy(&m->items[first], pieces, count * sizeof(*pieces));
	m->count = left + count;
	return 0;
}

static size_t own_vdso_size(uint64_t address)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(4));
	struct maps_line line;
	struct str rest;
	int r;

	if (io_read_file("/proc/self/maps", &text) < 0)
		return 0;
	rest = buf_str(&text);
	while ((r = maps_next(&rest, &line)) != 0)
		if (r > 0 && line.start == address)
			return (size_t)(line.end - line.start);
	return 0;
}

void mapping_reader_init(struct mapping_reader *reader, struct files *files, struct buf *scratch, size_t max)
{
	unsigned long address = getauxval(AT_SYSINFO_EHDR);

	*reader = (struct mapping_reader){ .files = files, .scratch = scratch, .max = max };
	u64map_init(&reader->seen, SEEN_MAX);
	if (!address)
		return;
	reader->vdso_size = own_vdso_size(address);
	if (!reader->vdso_size ||
	    files_add_image(files, (const void *)address, reader->vdso_size, STR("[vdso]"), &reader->vdso_id) < 0)
		reader->vdso_size = 0;
}

void mapping_reader_release(struct mapping_reader *reader)
{
	u64map_release(&reader->seen);
}

static uint64_t seen_key(uint64_t device, uint64_t inode)
{
	const uint64_t words[] = { device, inode };

	return XXH3_64bits(words, sizeof(words));
}

uint32_t mapping_reader_file(const struct mapping_reader *reader, uint64_t device, uint64_t inode)
{
	uint32_t id;

	return u64map_get(&reader->seen, seen_key(device, inode), &id) == 0 ? id : 0;
}

static void note_file(struct mapping_reader *reader, const struct mapping *m)
{
	if (m->kind == PROC_PLACE_FILE)
		ignore(u64map_put(&reader->seen, seen_key(m->device, m->inode),
				  m->file_id)); /* full: those met first */
}

/* Nearly every process has our own vDSO. A 32-bit one has another; so may a process under an emulator. */
static uint32_t vdso_of(const struct mapping_reader *reader, int dir, const struct maps_line *line)
{
	uint64_t size = line->end - line->start;
	scoped(freep) char *bytes = NULL;
	scoped(closep) int fd = -1;
	uint32_t id = 0;

	if (size == reader->vdso_size && line->start > UINT32_MAX)
		return reader->vdso_id;
	if (size > VDSO_SIZE_MAX)
		return 0;
	fd = openat(dir, "mem", O_RDONLY | O_CLOEXEC);
	bytes = malloc((size_t)size);
	if (fd < 0 || !bytes || io_pread_all(fd, bytes, (size_t)size, line->start) < 0)
		return 0;
	ignore(files_add_image(reader->files, bytes, (size_t)size, STR("[vdso]"), &id)); /* id stays 0: no names */
	return id;
}

static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return io_pread_all(fd, magic, sizeof(magic), 0) == 0 && !memcmp(magic, ELFMAG, SELFMAG);
}

/* Code that was written by the process itself may lie in shared memory of one kind or another instead of anonymous
 * memory: then there is an inode, but no file that anybody installed. */
static bool may_be_jit(const struct maps_line *line)
{
	return line->deleted || str_starts(line->path, STR("/memfd:")) || str_starts(line->path, STR("/dev/")) ||
	       str_starts(line->path, STR("/SYSV")) || !str_starts(line->path, STR("/"));
}

static uint64_t device_of(const struct maps_line *line)
{
	return makedev(line->device_major, line->device_minor);
}

/* A file found by its path is the mapped one when device and inode agree. overlayfs and btrfs show a device of their
 * own in stat, so there the inode has to do. */
static bool is_mapped_file(int fd, const struct maps_line *line)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_ino != line->inode)
		return false;
	if (st.st_dev == device_of(line))
		return true;
	return fstatfs(fd, &fs) == 0 && (fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC);
}

static int open_checked(int dir, struct str path, const struct maps_line *line)
{
	scoped(freep) char *name = str_dup(path);
	int fd = name ? proc_open_below(dir, "root", name, true) : -ENOMEM;

	if (fd >= 0 && !is_mapped_file(fd, line)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* Paths in maps start at the root of the mount namespace, which for a process in a chroot lies above its own root. */
static int open_by_path(int dir, const struct maps_line *line)
{
	int fd = open_checked(dir, line->path, line);
	scoped(freep) char *root = NULL;
	struct str prefix;

	if (fd >= 0)
		return fd;
	root = proc_link_read(dir, "root");
	prefix = str_of(root);
	if (prefix.len > 1 && str_starts(line->path, prefix) && line->path.len > prefix.len &&
	    line->path.ptr[prefix.len] == '/')
		return open_checked(dir, str_skip(line->path, prefix.len), line);
	return fd;
}

/* Puts an open file into the table. @fd is closed or moved in any case. */
static int add_open(const struct mapping_reader *reader, int fd, const struct maps_line *line, uint32_t *out)
{
	struct file_key key;
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : 0;

	if (r == 0) {
		file_key_of(&st, &key);
		r = files_add(reader->files, fd, &key, line->path, out);
	}
	if (r < 0)
		close(fd);
	return r;
}

/* The file of a mapping. Return: 0 and *out; -ENOEXEC when it holds code the process wrote itself; -errno. */
static int file_of(const struct mapping_reader *reader, int dir, const struct maps_line *line, uint32_t *out)
{
	struct file_key key = { 0 };
	bool told = false;
	struct stat st;
	char name[PROC_MAP_FILE_SIZE];
	uint32_t id;
	int fd;

	proc_map_file(line->start, line->end, name);
	/* A network file system that hangs must not block us: use what is known about the file. */
	if (fstatat(dir, name, &st, AT_STATX_DONT_SYNC) == 0) {
		if (!S_ISREG(st.st_mode))
			return -ENOEXEC;
		file_key_of(&st, &key);
		told = true;
		if (!may_be_jit(line) && files_find(reader->files, &key, &id) == 0 && files_has_fd(reader->files, id)) {
			*out = id;
			return 0;
		}
	}
	fd = told ? openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : open_by_path(dir, line);
	if (fd < 0 && may_be_jit(line) && (!line->deleted || str_starts(line->path, STR("/memfd:"))))
		return -ENOEXEC;
	if (fd >= 0 && may_be_jit(line) && !is_elf(fd)) {
		close(fd);
		return -ENOEXEC;
	}
	if (fd >= 0)
		return add_open(reader, fd, line, out);
	if (!told)
		key = (struct file_key){ .device = device_of(line), .inode = line->inode };
	return files_add(reader->files, -1, &key, line->path,
			 out); /* no symbols, but the frames keep the file's name */
}

static int fill(struct mapping_reader *reader, int dir, uint32_t pid, const struct maps_line *line,
		const struct mappings *so_far, struct mapping *out)
{
	struct mapping m = {
		.start = line->start,
		.end = line->end,
		.offset = line->offset,
		.device = device_of(line),
		.inode = line->inode,
		.kind = PROC_PLACE_ANONYMOUS,
	};
	int r = 0;

	if (str_eq(line->path, STR("[vdso]"))) {
		m.kind = PROC_PLACE_VDSO;
		m.file_id = vdso_of(reader, dir, line);
		m.offset = 0;
	} else if (str_eq(line->path, STR("[vsyscall]"))) {
		m.kind = PROC_PLACE_VSYSCALL;
	} else if (line->inode) {
		for (size_t i = so_far->count, back = 0; i && back < LOOK_BACK && !m.file_id; i--, back++)
			if (so_far->items[i - 1].inode == m.inode && so_far->items[i - 1].device == m.device)
				m.file_id = so_far->items[i - 1].file_id;
		if (!m.file_id) {
			r = file_of(reader, dir, line, &m.file_id);
			if (r == 0)
				files_saw(reader->files, m.file_id,
					  &(struct file_sight){ .pid = pid, .start = m.start, .end = m.end });
		}
		if (r < 0 && r != -ENOEXEC)
			return r;
		m.kind = m.file_id ? PROC_PLACE_FILE : PROC_PLACE_ANONYMOUS;
		note_file(reader, &m);
	}
	*out = m;
	return 0;
}

static int add_lines(struct mapping_reader *reader, int dir, uint32_t pid, struct str text, struct mappings *m)
{
	struct maps_line line;
	struct mapping mapping;
	int r, lines = 0;

	while ((r = maps_next(&text, &line)) != 0) {
		lines = 1;
		if (r < 0 || !line.executable || (m->count && line.start < m->items[m->count - 1].end))
			continue;
		r = fill(reader, dir, pid, &line, m, &mapping);
		if (r == -E2BIG) /* no room for another file: the known ones keep their names */
			continue;
		if (r == 0)
			r = array_grow(&m->items, &m->cap, m->count, reader->max);
		if (r == -E2BIG)
			break; /* the first ones are kept */
		if (r < 0)
			return r;
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): array_grow() made room */
		m->items[m->count++] = mapping;
	}
	return lines ? 0 : -ESRCH;
}

int mappings_read(struct mapping_reader *reader, int dir, uint32_t pid, struct mappings *m)
{
	scoped(mappings_release) struct mappings fresh = { 0 };
	int r;

	buf_clear(reader->scratch);
	r = io_read_file_at(dir, "maps", reader->scratch);
	if (r < 0 && r != -E2BIG) /* a text that is too long: use what was read of it */
		return r;
	r = add_lines(reader, dir, pid, str_n(reader->scratch->ptr, reader->scratch->len), &fresh);
	if (r < 0)
		return r;
	mappings_release(m);
	*m = fresh;
	fresh = (struct mappings){ 0 };
	return 0;
}

static int told_file(const struct mapping_reader *reader, const char *host_root, const struct maps_line *line,
		     uint32_t *out)
{
	struct file_key key = { .device = device_of(line), .inode = line->inode };
	scoped(freep) char *path = str_dup(line->path);
	int fd;

	if (!path)
		return -ENOMEM;
	fd = proc_open_below(AT_FDCWD, *host_root ? host_root : "/", path, true);
	if (fd >= 0 && is_mapped_file(fd, line))
		return add_open(reader, fd, line, out);
	closep(&fd);
	return files_add(reader->files, -1, &key, line->path, out);
}

int mapping_told(struct mapping_reader *reader, const char *host_root, const struct abi_mapping *told,
		 struct mapping *out)
{
	struct maps_line line = {
		.start = told->start,
		.end = told->end,
		.offset = told->file_offset,
		.inode = told->inode,
		.device_major = told->device_major,
		.device_minor = told->device_minor,
		.path = str_n(told->path, told->path_size),
	};
	struct mapping m = {
		.start = line.start,
		.end = line.end,
		.offset = line.offset,
		.device = device_of(&line),
		.inode = line.inode,
		.kind = PROC_PLACE_ANONYMOUS,
	};
	int r;

	if (line.start >= line.end)
		return -EBADMSG;
	if (str_eq(line.path, STR("[vdso]"))) {
		m.kind = PROC_PLACE_VDSO; /* that of the recorded machine, which we do not have */
		m.offset = 0;
	} else if (str_eq(line.path, STR("[vsyscall]"))) {
		m.kind = PROC_PLACE_VSYSCALL;
	} else if (str_starts(line.path, STR("/")) && !str_starts(line.path, STR("//"))) {
		r = told_file(reader, host_root, &line, &m.file_id);
		if (r < 0)
			return r;
		m.kind = PROC_PLACE_FILE;
	}
	*out = m;
	return 0;
}
