/* SPDX-License-Identifier: Apache-2.0 */
/* Separate debug files, as gdb looks for them (gdb 13 manual, "Debugging Information in Separate Files"), below the
 * host's root. A path may come from a container: what is opened is a regular file whose build id or CRC-32 fits. */
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/cur.h"
#include "base/io.h"
#include "object/debug_file.h"
#include "symbol/symbol_int.h"

#define CRC_FILE_MAX GIB(1)
#define ALT_LINK_MAX 2048

static int open_debug(const char *path, struct symbol_file *out)
{
	scoped(closep) int path_fd = open(path, O_PATH | O_CLOEXEC);
	struct symbol_file file = { .view.fd = -1 };
	struct stat st;
	int r;

	if (path_fd < 0)
		return -errno;
	file.view.fd = io_open_regular(path_fd, &st);
	if (file.view.fd < 0)
		return file.view.fd;
	file.in = symbol_fd_reader(file.view.fd, (uint64_t)st.st_size);
	r = elf_parse(&file.in, &file.elf);
	if (r < 0) {
		symbol_file_release(&file);
		return r;
	}
	*out = file;
	return 0;
}

static bool has_build_id(const struct symbol_file *file, const struct build_id *wanted)
{
	uint8_t found[ELF_BUILD_ID_MAX];
	int size = elf_build_id(&file->elf, found);

	return size > 0 && size == wanted->size && !memcmp(found, wanted->bytes, wanted->size);
}

static int by_build_id(struct symbols *s, const struct build_id *id, struct symbol_file *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(4096);
	scoped(symbol_file_release) struct symbol_file file = { .view.fd = -1 };
	int r = debug_file_by_id(s->host_root, id->bytes, id->size, &path);

	if (r == 0)
		r = open_debug(buf_cstr(&path), &file);
	if (r < 0)
		return r;
	if (!has_build_id(&file, id))
		return -ENOENT;
	*out = file;
	file = (struct symbol_file){ .view.fd = -1 };
	return 0;
}

static bool has_crc(struct symbols *s, const struct symbol_file *file, uint32_t wanted)
{
	return file->in.size <= CRC_FILE_MAX && symbol_work_take(s, file->in.size) &&
	       debug_file_has_crc(&file->in, wanted);
}

static int by_link(struct symbols *s, const struct symbol_object *m, const struct elf *elf, struct symbol_file *out)
{
	char name[ELF_LINK_NAME_MAX];
	uint32_t crc;

	if (elf_debug_link(elf, name, &crc) < 0)
		return -ENOENT;
	for (size_t place = 0;; place++) {
		scoped(buf_release) struct buf path = BUF_INIT(8192);
		scoped(symbol_file_release) struct symbol_file file = { .view.fd = -1 };
		int r = debug_file_by_link(s->host_root, str_of(m->path), name, place, &path);

		if (r < 0)
			return r;
		r = open_debug(buf_cstr(&path), &file);
		if (r == -ENOMEM)
			return r;
		if (r < 0 || !has_crc(s, &file, crc))
			continue;
		*out = file;
		file = (struct symbol_file){ .view.fd = -1 };
		return 0;
	}
}

int symbol_debug_open(struct symbols *s, const struct symbol_object *m, const struct elf *elf, struct symbol_file *out)
{
	int r = by_build_id(s, &m->build_id, out);

	if (r == 0 || r == -ENOMEM)
		return r;
	r = by_link(s, m, elf, out);
	return r == 0 || r == -ENOMEM ? r : -ENOENT;
}

/* NUL-terminated path, then the build id. A relative path is ignored, because the folder of a file that was opened by
 * its descriptor is not known. */
int symbol_debug_open_alt(struct symbols *s, const struct elf *elf, struct symbol_file *out)
{
	const struct elf_section *section = elf_section_find(elf, STR(".gnu_debugaltlink"));
	scoped(symbol_file_release) struct symbol_file file = { .view.fd = -1 };
	scoped(buf_release) struct buf path = BUF_INIT(8192);
	struct build_id id = { 0 };
	uint8_t bytes[ALT_LINK_MAX];
	struct reader in;
	struct cur c;
	struct str name;
	int r;

	if (!section)
		return -ENOENT;
	in = elf_section_reader(elf, section);
	if (in.size > sizeof(bytes) || reader_read(&in, bytes, (size_t)in.size, 0) < 0)
		return -ENOENT;
	c = cur_of(bytes, (size_t)in.size);
	name = cur_cstr(&c);
	if (c.bad || cur_left(&c) > sizeof(id.bytes))
		return -ENOENT;
	id.size = (uint8_t)cur_left(&c);
	memcpy(id.bytes, c.pos, id.size);
	r = by_build_id(s, &id, out);
	if (r == 0 || r == -ENOMEM || !id.size || !str_starts(name, STR("/")))
		return r == 0 || r == -ENOMEM ? r : -ENOENT;
	buf_addf(&path, "%s" STR_FMT, s->host_root, STR_ARG(name));
	r = path.error ? path.error : open_debug(buf_cstr(&path), &file);
	if (r < 0 || !has_build_id(&file, &id))
		return r == -ENOMEM ? r : -ENOENT;
	*out = file;
	file = (struct symbol_file){ .view.fd = -1 };
	return 0;
}
