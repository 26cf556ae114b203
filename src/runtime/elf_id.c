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

static struct elf_id_key key_of(const struct stat *st)
{
	return (struct elf_id_key){
		.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.modified_s = st->st_mtim.tv_sec,
		.modified_ns = st->st_mtim.tv_nsec,
		.changed_s = st->st_ctim.tv_sec,
		.changed_ns = st->st_ctim.tv_nsec,
	};
}

int elf_ids_get(struct elf_ids *ids, const struct stat *st, const struct reader *in, struct buf *out)
{
	const struct elf_id_key key = key_of(st);
	size_t before = out->len, size;
	int r;

	for (size_t i = 0; i < ELF_IDS_MAX; i++) {
		if (!ids->items[i].text[0] || memcmp(&ids->items[i].key, &key, sizeof(key)) != 0)
			continue;
		buf_adds(out, str_of(ids->items[i].text));
		return out->error;
	}
	r = elf_id(in, out);
	size = out->len - before;
	if (r < 0 || size >= ELF_ID_TEXT_MAX)
		return r;
	ids->items[ids->next].key = key;
	memcpy(ids->items[ids->next].text, out->ptr + before, size);
	ids->items[ids->next].text[size] = 0;
	ids->next = (ids->next + 1) % ELF_IDS_MAX;
	return 0;
}
