/* SPDX-License-Identifier: Apache-2.0 */
/* What a PHP process is asked for: where sapi_globals and the URI are found in any memory, and the text without its
 * query. Layout: struct abi_php, the thread pointer, the context and the text's size (8 bytes each), the text, then
 * memory as walk/pieces.h says. */
#include "fuzz.h"

#include "counted_pieces.h"
#include "walk/walk_php.h"

#define READS_MAX (1 + 2 * WALK_PHP_CHAIN)
#define TEXT_WORDS 32

static uint64_t word(struct counted *m, uint64_t at)
{
	uint64_t out = 0;

	return counted_read(m, &out, sizeof(out), at) == 0 ? out : 0;
}

/* By the table's own rules, and byte for byte: is @value that of a variable in the chain? */
static bool is_uri(struct counted *m, uint64_t context, uint64_t value)
{
	uint64_t at = word(m, context + ABI_PHP_FCGI_TABLE + 8ULL * (ABI_PHP_FCGI_URI_HASH % 128));
	uint64_t bucket[5]; /* hash and the name's size, name, size, value, next */

	for (int i = 0; at && i < WALK_PHP_CHAIN && counted_read(m, bucket, sizeof(bucket), at) == 0; i++) {
		char name[12];

		if (bucket[0] == (ABI_PHP_FCGI_URI_HASH | UINT64_C(11) << 32) && bucket[3] == value &&
		    counted_read(m, name, sizeof(name), bucket[1]) == 0 && memcmp(name, "REQUEST_URI", 12) == 0)
			return true;
		at = bucket[4];
	}
	return false;
}

static void check_places(struct walk *w, struct counted *m, const struct abi_php *info, uint64_t context)
{
	uint64_t uri, at, cache;

	m->reads = 0;
	uri = walk_php_fcgi_uri(w, context);
	must(m->reads <= READS_MAX && (!uri || is_uri(m, context, uri)));
	for (int is_first = 0; is_first < 2; is_first++) {
		m->reads = 0;
		at = walk_php_request_at(w, info, is_first);
		must(m->reads <= 3);
		if (!at)
			continue;
		cache = info->flags & ABI_PHP_THREADS ? word(m, w->tp + (uint64_t)info->tls_at) : 0;
		must(info->request && at == cache + info->request);
		must(info->flags & ABI_PHP_THREADS ? w->tp && cache : is_first);
	}
}

static void check_text(const uint8_t *bytes, size_t size)
{
	__u64 words[TEXT_WORDS] = { 0 }, key;
	uint8_t *text = (uint8_t *)words, want[sizeof(words)] = { 0 };
	bool is_over = false;

	size = MIN(size, sizeof(words));
	memcpy(text, bytes, size);
	for (size_t i = 0; i < size; i++) {
		is_over |= text[i] == '?' || text[i] == '#';
		want[i] = is_over ? 0 : text[i];
	}
	walk_php_cut_query(words, TEXT_WORDS);
	must(memcmp(text, want, sizeof(want)) == 0);
	key = walk_php_request_key(words, TEXT_WORDS);
	must(key);
	words[size % TEXT_WORDS] ^= 1;
	must(walk_php_request_key(words, TEXT_WORDS) != key); /* but for one of 2^63 */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur in = cur_of(data, size);
	struct counted *m = calloc(1, sizeof(*m));
	struct walk *w = calloc(1, sizeof(*w));
	struct walk_world world = { .read = counted_read, .self = m };
	const uint8_t *bytes = cur_bytes(&in, sizeof(struct abi_php)), *text;
	struct abi_php info = { 0 };
	uint64_t context, text_size;

	must(w && m);
	if (bytes)
		memcpy(&info, bytes, sizeof(info));
	w->world = &world;
	w->tp = cur_le64(&in);
	context = cur_le64(&in);
	text_size = cur_le64(&in);
	text = cur_bytes(&in, text_size);
	if (text)
		check_text(text, (size_t)text_size);
	pieces_take(&in, &m->pieces);
	check_places(w, m, &info, context);
	free(w);
	free(m);
	return 0;
}
