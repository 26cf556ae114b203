/* SPDX-License-Identifier: Apache-2.0 */
/* A file of a snapshot: what can be read of it says the same when it is written again. The first byte says whether the
 * hash of the head is made right before, since no mutation would find one. */
#include "fuzz.h"

#include "codec/window_codec.h"
#include "store/snapshot.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define HASH_AT 24
#define HEAD_AT 48

static void put_le(uint8_t *at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

/* Sizes and hash as they would be. */
static void mend(uint8_t *file, size_t size)
{
	size_t head = (size_t)file[20] | (size_t)file[21] << 8;

	if (head > size - HEAD_AT)
		return;
	put_le(file + HASH_AT, XXH3_64bits(file + HEAD_AT, head), 8);
	put_le(file + HASH_AT + 8, size - HEAD_AT - head, 8);
	put_le(file + HASH_AT + 16, XXH3_64bits(file + HEAD_AT + head, size - HEAD_AT - head), 8);
}

static void same_text(struct str a, struct str b)
{
	must(str_eq(a, b));
}

static void same_head(const struct snapshot_head *a, const struct snapshot_head *b)
{
	must(a->created_ns == b->created_ns && a->from_ns == b->from_ns && a->to_ns == b->to_ns);
	must(a->profiles == b->profiles && a->column_count == b->column_count &&
	     a->default_column == b->default_column);
	same_text(a->title, b->title);
	same_text(a->selection, b->selection);
	same_text(a->service, b->service);
	same_text(a->type, b->type);
	for (size_t i = 0; i < a->column_count; i++) {
		same_text(a->columns[i].type, b->columns[i].type);
		same_text(a->columns[i].unit, b->columns[i].unit);
		must(a->columns[i].total == b->columns[i].total);
	}
}

own_frame static void whole(struct str file)
{
	scoped(window_release) struct window first = { 0 }, second = { 0 };
	scoped(buf_release) struct buf once = BUF_INIT(SNAPSHOT_FILE_MAX);
	struct snapshot_head head, again;

	if (snapshot_decode(file, &head, &first) < 0)
		return;
	must(snapshot_encode(&head, &first, &once) == 0);
	must(snapshot_decode(buf_str(&once), &again, &second) == 0);
	same_head(&head, &again);
	must(first.model->samples_count == second.model->samples_count);
}

own_frame static void front(struct str bytes, uint64_t file_size)
{
	struct snapshot_head head;

	if (snapshot_decode_head(bytes, file_size, &head) == 0)
		must(head.title.len <= SNAPSHOT_TITLE_MAX && head.column_count <= SNAPSHOT_COLUMNS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf file = BUF_INIT(KIB(64));

	if (!size || size > KIB(64))
		return 0;
	buf_add(&file, data + 1, size - 1);
	must(!file.error);
	if (data[0] % 2 && file.len >= HEAD_AT)
		mend((uint8_t *)file.ptr, file.len);
	front(buf_str(&file), data[0] % 4 < 2 ? file.len : file.len + 1000);
	whole(buf_str(&file));
	return 0;
}
