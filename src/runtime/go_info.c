/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: gProfiler 1.57, profilers/perf.py (GolangPerfMetadata), and granulate-utils, golang.py: which note tells a
 * Go program; go1.26, src/debug/buildinfo/buildinfo.go: where the version lies; elf(5). */
#include "runtime/go_info.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cur.h"
#include "base/io.h"
#include "object/elf_find.h"
#include "runtime/process_info.h"

#define NOTE_NAME_AT 12 /* behind the sizes of name and description, and the type */
#define BUILD_INFO_HEAD 32
#define BUILD_INFO_INLINE 2 /* flag: texts follow, they are not pointed to */

static int read_at(const struct reader *in, void *to, size_t size, uint64_t at)
{
	return in->read(in->self, to, size, at);
}

static bool is_go(const struct elf *elf)
{
	const struct elf_section *note = elf_section_find(elf, STR(".note.go.buildid"));
	char head[NOTE_NAME_AT + 4];

	return note && note->size >= sizeof(head) && read_at(&elf->in, head, sizeof(head), note->offset) == 0 &&
	       !memcmp(head + NOTE_NAME_AT, "Go\0\0", 4);
}

static void set_version(struct go_info *out, struct str version)
{
	size_t size = MIN(version.len, sizeof(out->version) - 1);

	if (!str_starts(version, STR("go")) && !str_starts(version, STR("devel")))
		return;
	memcpy(out->version, version.ptr, size);
	out->version[size] = 0;
}

/* Go 1.18 and later. */
static void read_build_info(const struct elf *elf, struct go_info *out)
{
	const struct elf_section *section = elf_section_find(elf, STR(".go.buildinfo"));
	uint8_t bytes[BUILD_INFO_HEAD + 10 + GO_VERSION_MAX];
	size_t size = section ? (size_t)MIN(section->size, (uint64_t)sizeof(bytes)) : 0;
	struct cur c;
	uint64_t length;

	if (size <= BUILD_INFO_HEAD || read_at(&elf->in, bytes, size, section->offset) < 0 ||
	    memcmp(bytes, "\xff Go buildinf:", 14) || !(bytes[15] & BUILD_INFO_INLINE))
		return;
	c = cur_of(bytes + BUILD_INFO_HEAD, size - BUILD_INFO_HEAD);
	if (cur_uvarint(&c, &length) == 0 && length < GO_VERSION_MAX && length <= cur_left(&c))
		set_version(out, str_n((const char *)c.pos, (size_t)length));
}

/* The string runtime.buildVersion: an address and a length, in files that are loaded where they were linked. */
static void read_symbol(const struct elf *elf, struct go_info *out)
{
	static const char *const names[] = { "runtime.buildVersion" };
	struct elf_found found = { 0 };
	uint8_t head[16];
	char text[GO_VERSION_MAX];
	struct cur c = cur_of(head, sizeof(head));
	uint64_t at, offset, size;

	if (elf_symtab_find(elf, names, 1, &found) != 1 || elf_offset_of(elf, found.address, &offset) < 0 ||
	    read_at(&elf->in, head, sizeof(head), offset) < 0)
		return;
	at = cur_le64(&c);
	size = cur_le64(&c);
	if (!size || size >= sizeof(text) || elf_offset_of(elf, at, &offset) < 0 ||
	    read_at(&elf->in, text, (size_t)size, offset) < 0)
		return;
	set_version(out, str_n(text, (size_t)size));
}

int go_info_read(const struct elf *elf, struct go_info *out)
{
	*out = (struct go_info){ 0 };
	if (!is_go(elf))
		return -ENOENT;
	out->is_stripped = !elf_section_of_type(elf, SHT_SYMTAB);
	if (!out->is_stripped) /* gProfiler reads it from the symbol alone */
		read_build_info(elf, out);
	if (!out->is_stripped && !out->version[0])
		read_symbol(elf, out);
	process_info_links_of(elf, &out->links);
	return 0;
}

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all(*(const int *)self, dst, size, offset);
}

int go_info_metadata(const struct runtime_target *target, struct buf *json)
{
	scoped(elf_release) struct elf elf = { 0 };
	scoped(closep) int fd = process_info_open_exe(target->proc_dir);
	struct reader in = { .read = read_fd, .self = &fd };
	struct json_out j = { .out = json };
	struct go_info info;
	size_t before = json->len;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	in.size = (uint64_t)st.st_size;
	r = elf_parse(&in, &elf);
	r = r ? r : go_info_read(&elf, &info);
	if (r < 0)
		return r;
	json_out_begin(&j, '{');
	process_info_add_text(&j, "golang_version", info.version);
	json_out_key(&j, STR("stripped"));
	json_out_raw(&j, info.is_stripped ? STR("true") : STR("false"));
	process_info_add_links(&j, &info.links);
	return process_info_end(&j, target, before);
}
