/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/file_elf.h"

#include "base/io.h"

void file_elf_release(struct file_elf *f)
{
	elf_release(&f->elf);
	file_view_release(&f->view);
}

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all((int)(intptr_t)self, dst, size, offset);
}

int file_elf_open(struct files *files, uint32_t file_id, struct file_elf *out)
{
	struct reader in;
	int r = files_view(files, file_id, &out->view);

	if (r < 0)
		return r;
	in = out->view.image ? reader_of(out->view.image, out->view.image_size)
			     : (struct reader){ .read = read_fd,
						.self = (void *)(intptr_t)out->view.fd,
						.size = out->view.key.size };
	return elf_parse(&in, &out->elf);
}
