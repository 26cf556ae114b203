/* SPDX-License-Identifier: Apache-2.0 */
/* What a store reads back from a file that may be damaged: packed columns, headers, dictionaries, labels, frames of
 * zstd. The first byte says which. What can be read is written the same way for ever after. */
#include "fuzz.h"

#include "store/pack.h"
#include "store/store_int.h"

#define KEYS 1000
#define ROWS 100

static void columns(struct str bytes, size_t width)
{
	scoped(columns_release) struct columns first = { 0 }, second = { 0 };
	scoped(buf_release) struct buf once = BUF_INIT(MIB(64)), again = BUF_INIT(MIB(64));

	if (columns_decode(bytes, KEYS, width, &first) < 0)
		return;
	for (size_t i = 0; i < first.count; i++)
		must(first.keys[i] < KEYS && (!i || first.keys[i - 1] <= first.keys[i]));
	columns_encode(&first, &once);
	must(!once.error && columns_decode(buf_str(&once), KEYS, width, &second) == 0);
	columns_encode(&second, &again);
	must(str_eq(buf_str(&once), buf_str(&again)) && first.count == second.count);
	must(!first.count || first.has_times == second.has_times);
	must(!first.count || !first.has_times ||
	     !memcmp(first.times, second.times, first.count * sizeof(*first.times)));
	must(!first.count || !width ||
	     !memcmp(first.values, second.values, first.count * width * sizeof(*first.values)));
}

static void header(struct str bytes)
{
	scoped(header_release) struct header first = { 0 }, second = { 0 };
	scoped(buf_release) struct buf once = BUF_INIT(MIB(64)), again = BUF_INIT(MIB(64));

	if (header_decode(bytes, ROWS, ROWS, &first) < 0)
		return;
	header_encode(&first, &once);
	must(!once.error && header_decode(buf_str(&once), ROWS, ROWS, &second) == 0);
	header_encode(&second, &again);
	must(str_eq(buf_str(&once), buf_str(&again)));
}

/* @d: what dictionary_decode() made of the same bytes; NULL: it refuses them. */
static void strings(struct str bytes, const struct dictionary *d)
{
	scoped(dictionary_strings_release) struct dictionary_strings s = { 0 };
	int r;

	dictionary_strings_init(&s);
	r = dictionary_strings_add(&s, bytes);
	must(!d || r == 0);
	for (uint32_t i = 0; r == 0 && i < s.count; i++) {
		struct str text = dictionary_strings_get(&s, i);

		must(d ? str_eq(text, model_string(&d->m, i)) : text.len <= bytes.len);
	}
	must(!d || (s.count == intern_count(&d->m.strings) && s.mappings == d->m.mappings_count));
}

static void dictionary(struct str bytes)
{
	scoped(dictionary_release) struct dictionary first = { 0 }, second = { 0 };
	scoped(buf_release) struct buf once = BUF_INIT(MIB(64)), again = BUF_INIT(MIB(64));
	struct dictionary_mark start;

	must(dictionary_init(&first) == 0 && dictionary_init(&second) == 0);
	start = dictionary_end(&first);
	if (dictionary_decode(bytes, &first) < 0) {
		strings(bytes, NULL);
		return;
	}
	strings(bytes, &first);
	dictionary_encode(&first, &start, &once);
	must(!once.error && dictionary_decode(buf_str(&once), &second) == 0);
	dictionary_encode(&second, &start, &again);
	must(str_eq(buf_str(&once), buf_str(&again)));
}

static void labels(struct str bytes)
{
	struct store_label list[STORE_LABELS_MAX];
	scoped(buf_release) struct buf once = BUF_INIT(MIB(64));
	size_t count;

	if (store_labels_unpack(bytes, list, &count) < 0)
		return;
	must(count <= STORE_LABELS_MAX);
	store_labels_pack(list, count, &once);
	must(!once.error &&
	     once.len <= bytes.len); /* shorter where a length was written with more bytes than it takes */
}

static void expand(struct str bytes)
{
	scoped(buf_release) struct buf once = BUF_INIT(MIB(64)), packed = BUF_INIT(MIB(128)), again = BUF_INIT(MIB(64));

	if (pack_expand(bytes, &once) < 0)
		return;
	must(pack_compress(buf_str(&once), 1, &packed) == 0 && pack_expand(buf_str(&packed), &again) == 0);
	must(str_eq(buf_str(&once), buf_str(&again)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes;

	if (!size || size > KIB(64))
		return 0;
	bytes = str_n((const char *)data + 1, size - 1);
	switch (data[0] % 8) {
	case 0:
		header(bytes);
		break;
	case 1:
		dictionary(bytes);
		break;
	case 2:
		labels(bytes);
		break;
	case 3:
		expand(bytes);
		break;
	default:
		columns(bytes, data[0] % 8U - 4);
		break;
	}
	return 0;
}
