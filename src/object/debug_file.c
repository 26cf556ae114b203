/* SPDX-License-Identifier: Apache-2.0 */
#include "object/debug_file.h"

#include <lzma.h> /* lzma_crc32: the polynomial of .gnu_debuglink */

#define DEBUG_ROOT "/usr/lib/debug"
#define CHUNK KIB(256)

int debug_file_by_id(const char *host_root, const uint8_t *id, size_t size, struct buf *out)
{
	if (size < 2)
		return -ENOENT;
	buf_addf(out, "%s" DEBUG_ROOT "/.build-id/%02x/", host_root, id[0]);
	for (size_t i = 1; i < size; i++)
		buf_addf(out, "%02x", id[i]);
	buf_adds(out, STR(".debug"));
	return out->error;
}

int debug_file_by_link(const char *host_root, struct str path, const char *name, size_t place, struct buf *out)
{
	static const char *const places[][2] = { { "", "/" }, { "", "/.debug/" }, { DEBUG_ROOT, "/" } };
	struct str folder;

	if (place >= ARRAY_SIZE(places) || !path.len || path.ptr[0] != '/')
		return -ENOENT;
	folder = str_first(path, (size_t)str_rfind(path, '/'));
	buf_addf(out, "%s%s" STR_FMT "%s%s", host_root, places[place][0], STR_ARG(folder), places[place][1], name);
	return out->error;
}

bool debug_file_has_crc(const struct reader *in, uint32_t wanted)
{
	scoped(freep) uint8_t *bytes = malloc(CHUNK);
	uint32_t crc = 0;

	if (!bytes)
		return false;
	for (uint64_t at = 0; at < in->size;) {
		size_t size = (size_t)MIN((uint64_t)CHUNK, in->size - at);

		if (reader_read(in, bytes, size, at) < 0)
			return false;
		crc = lzma_crc32(bytes, size, crc);
		at += size;
	}
	return crc == wanted;
}
