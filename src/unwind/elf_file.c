/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/elf_file.h"

#include <fcntl.h>
#include <lzma.h> /* lzma_crc32: the polynomial of .gnu_debuglink */
#include <sys/stat.h>

#include "base/io.h"

#define DEBUG_ROOT "/usr/lib/debug"
#define CRC_FILE_MAX MIB(256)

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all((int)(intptr_t)self, dst, size, offset);
}

static struct reader fd_reader(int fd, uint64_t size)
{
	return (struct reader){ .read = read_fd, .self = (void *)(intptr_t)fd, .size = size };
}

void elf_file_release(struct elf_file *file)
{
	elf_release(&file->elf);
	file_view_release(&file->view);
	*file = (struct elf_file)ELF_FILE_INIT;
}

static int move_out(struct elf_file *file, struct elf_file *out)
{
	*out = *file;
	*file = (struct elf_file)ELF_FILE_INIT;
	return 0;
}

int elf_file_open(struct files *files, uint32_t file_id, struct elf_file *out)
{
	scoped(elf_file_release) struct elf_file file = ELF_FILE_INIT;
	int r = files_view(files, file_id, &file.view);

	if (r < 0)
		return r;
	file.in = file.view.image ? reader_of(file.view.image, file.view.image_size)
				  : fd_reader(file.view.fd, file.view.key.size);
	r = elf_parse(&file.in, &file.elf);
	return r < 0 ? r : move_out(&file, out);
}

static int open_path(const char *path, struct elf_file *out)
{
	scoped(elf_file_release) struct elf_file file = ELF_FILE_INIT;
	scoped(closep) int path_fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;
	int r;

	if (path_fd < 0)
		return -errno;
	file.view.fd = io_open_regular(path_fd, &st);
	if (file.view.fd < 0)
		return file.view.fd;
	file.in = fd_reader(file.view.fd, (uint64_t)st.st_size);
	r = elf_parse(&file.in, &file.elf);
	return r < 0 ? r : move_out(&file, out);
}

static int by_build_id(const char *host_root, const struct elf_file *of, struct elf_file *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(4096);
	scoped(elf_file_release) struct elf_file file = ELF_FILE_INIT;
	uint8_t id[ELF_BUILD_ID_MAX], found[ELF_BUILD_ID_MAX];
	int size = elf_build_id(&of->elf, id), r;

	if (size < 2)
		return -ENOENT;
	buf_addf(&path, "%s" DEBUG_ROOT "/.build-id/%02x/", host_root, id[0]);
	for (int i = 1; i < size; i++)
		buf_addf(&path, "%02x", id[i]);
	buf_adds(&path, STR(".debug"));
	if (path.error)
		return path.error;
	r = open_path(buf_cstr(&path), &file);
	if (r < 0)
		return r;
	if (elf_build_id(&file.elf, found) != size || memcmp(found, id, (size_t)size))
		return -ENOENT;
	return move_out(&file, out);
}

static bool has_crc(const struct elf_file *file, uint32_t wanted)
{
	scoped(freep) uint8_t *bytes = malloc(KIB(256));
	uint32_t crc = 0;

	if (!bytes || file->in.size > CRC_FILE_MAX)
		return false;
	for (uint64_t at = 0; at < file->in.size;) {
		size_t size = (size_t)MIN((uint64_t)KIB(256), file->in.size - at);

		if (reader_read(&file->in, bytes, size, at) < 0)
			return false;
		crc = lzma_crc32(bytes, size, crc);
		at += size;
	}
	return crc == wanted;
}

static int by_link(const char *host_root, const struct elf_file *of, struct elf_file *out)
{
	static const char *const places[][2] = { { "", "/" }, { "", "/.debug/" }, { DEBUG_ROOT, "/" } };
	char name[ELF_LINK_NAME_MAX];
	struct str path = str_of(of->view.path ? of->view.path : ""), folder;
	uint32_t crc;

	if (elf_debug_link(&of->elf, name, &crc) < 0 || !path.len || path.ptr[0] != '/')
		return -ENOENT;
	folder = str_first(path, (size_t)str_rfind(path, '/'));
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		scoped(buf_release) struct buf full = BUF_INIT(8192);
		scoped(elf_file_release) struct elf_file file = ELF_FILE_INIT;
		int r;

		buf_addf(&full, "%s%s" STR_FMT "%s%s", host_root, places[i][0], STR_ARG(folder), places[i][1], name);
		if (full.error)
			return full.error;
		r = open_path(buf_cstr(&full), &file);
		if (r == -ENOMEM)
			return r;
		if (r == 0 && has_crc(&file, crc))
			return move_out(&file, out);
	}
	return -ENOENT;
}

int elf_file_open_debug(const char *host_root, const struct elf_file *file, struct elf_file *out)
{
	int r = by_build_id(host_root, file, out);

	if (r == 0 || r == -ENOMEM)
		return r;
	r = by_link(host_root, file, out);
	return r == 0 || r == -ENOMEM ? r : -ENOENT;
}
