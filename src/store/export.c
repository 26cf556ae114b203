/* SPDX-License-Identifier: Apache-2.0 */
#include "store/export.h"

#include "base/array.h"
#include "base/io.h"
#include "codec/pprof.h"

#define FILE_MAX GIB(2)

struct exported {
	struct store_id id;
	uint64_t created_ns;
	char type[32];
};

struct export_list {
	struct exported *items;
	size_t count, cap;
};

static void list_release(struct export_list *list)
{
	free(list->items);
}

static int note(void *ctx, const struct store_profile *profile)
{
	struct export_list *list = ctx;
	struct exported *row;
	int r = array_grow(&list->items, &list->cap, list->count, UINT32_MAX);

	if (r < 0)
		return r;
	row = &list->items[list->count++];
	*row = (struct exported){ .id = profile->id, .created_ns = profile->created_ns };
	for (size_t i = 0; i < MIN(profile->type.len, sizeof(row->type) - 1); i++) {
		char c = profile->type.ptr[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';

		row->type[i] = plain ? c : '_';
	}
	return 0;
}

static void add_path(const struct exported *row, const char *folder, bool is_raw, struct buf *out)
{
	scoped(buf_release) struct buf time = BUF_INIT(64);
	char id[STORE_ID_TEXT + 1];

	store_id_text(&row->id, id);
	clock_add_iso(&time, row->created_ns);
	buf_addf(out, "%s/%s-", folder, row->type);
	for (size_t i = 0; i < time.len; i++)
		if (time.ptr[i] != '-' && time.ptr[i] != ':')
			buf_addc(out, time.ptr[i]);
	buf_addf(out, "-%s.%s", id, is_raw ? "bin" : "pb.gz");
}

/* Return: 0; 1 when the profile has expired meanwhile; -errno. */
static int export_one(const struct store *store, struct store_state *s, const struct exported *row, const char *folder)
{
	scoped(store_document_release) struct store_document document = { 0 };
	scoped(buf_release) struct buf bytes = BUF_INIT(FILE_MAX), path = BUF_INIT(KIB(16));
	int r = store->read(s, &row->id, &document);

	if (r < 0)
		return r == -ENOENT ? 1 : r;
	if (document.is_raw)
		buf_adds(&bytes, buf_str(&document.raw));
	else
		r = codec_pprof.encode(&document.window, &bytes);
	r = r ? r : bytes.error;
	add_path(row, folder, document.is_raw, &path);
	r = r ? r : path.error;
	return r ? r : io_replace_file(buf_cstr(&path), bytes.ptr, bytes.len);
}

int store_export(const struct store *store, struct store_state *s, const struct store_selector *sel, const char *path,
		 uint64_t *count)
{
	scoped(list_release) struct export_list list = { 0 };
	int r = store->list(s, sel, note, &list);

	*count = 0;
	for (size_t i = 0; r == 0 && i < list.count; i++) {
		r = export_one(store, s, &list.items[i], path);
		*count += r == 0;
		r = MIN(r, 0);
	}
	return r;
}
