/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/elf_id.h"

#include <nettle/sha1.h>

static void add_hex(const uint8_t *bytes, size_t size, struct buf *out)
{
	for (size_t i = 0; i < size; i++)
		buf_addf(out, "%02x", bytes[i]);
}

static int add_sha1(const struct reader *in, struct buf *out)
{
	uint8_t bytes[KIB(2)], digest[SHA1_DIGEST_SIZE];
	struct sha1_ctx ctx;

	if (in->size > ELF_ID_FILE_MAX)
		return -E2BIG;
	sha1_init(&ctx);
	for (uint64_t at = 0; at < in->size; at += sizeof(bytes)) {
		size_t size = (size_t)MIN((uint64_t)sizeof(bytes), in->size - at);
		int r = reader_read(in, bytes, size, at);

		if (r < 0)
			return r;
		sha1_update(&ctx, size, bytes);
	}
	sha1_digest(&ctx, sizeof(digest), digest);
	buf_adds(out, STR("sha1:"));
	add_hex(digest, sizeof(digest), out);
	return out->error;
}

int elf_id(const struct reader *in, struct buf *out)
{
	scoped(elf_release) struct elf elf = { 0 };
	uint8_t id[ELF_BUILD_ID_MAX];
	int r = elf_parse(in, &elf);

	if (r < 0)
		return r;
	r = elf_build_id(&elf, id);
	if (r <= 0)
		return r == -ENOMEM ? r : add_sha1(in, out);
	buf_adds(out, STR("buildid:"));
	add_hex(id, (size_t)r, out);
	return out->error;
}
