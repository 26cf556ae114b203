/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/elf_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "object/debug_file.h"

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

	if (size < 0)
		return -ENOENT;
	r = debug_file_by_id(host_root, id, (size_t)size, &path);
	if (r == 0)
		r = open_path(buf_cstr(&path), &file);
	if (r < 0)
		return r;
	if (elf_build_id(&file.elf, found) != size || memcmp(found, id, (size_t)size))
		return -ENOENT;
	return move_out(&file, out);
}

static int by_link(const char *host_root, const struct elf_file *of, struct elf_file *out)
{
	char name[ELF_LINK_NAME_MAX];
	uint32_t crc;

	if (elf_debug_link(&of->elf, name, &crc) < 0)
		return -ENOENT;
	for (size_t place = 0;; place++) {
		scoped(buf_release) struct buf path = BUF_INIT(8192);
		scoped(elf_file_release) struct elf_file file = ELF_FILE_INIT;
		int r = debug_file_by_link(host_root, str_of(of->view.path), name, place, &path);

		if (r < 0)
			return r;
		r = open_path(buf_cstr(&path), &file);
		if (r == -ENOMEM)
			return r;
		if (r == 0 && file.in.size <= CRC_FILE_MAX && debug_file_has_crc(&file.in, crc))
			return move_out(&file, out);
	}
}

int elf_file_open_debug(const char *host_root, const struct elf_file *file, struct elf_file *out)
{
	int r = by_build_id(host_root, file, out);

	if (r == 0 || r == -ENOMEM)
		return r;
	r = by_link(host_root, file, out);
	return r == 0 || r == -ENOMEM ? r : -ENOENT;
}
