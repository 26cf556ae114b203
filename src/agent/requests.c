/* SPDX-License-Identifier: Apache-2.0 */
/* Two halves: what is used goes into the newer one. When that is full it becomes the older one, whose rows are dropped.
 */
#include "agent/requests.h"

#include "base/array.h"
#include "base/safe.h"
#include "base/u64map.h"
#include "base/utf8.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SHOWN_MAX (3 * ABI_REQUEST_TEXT_SIZE + 8) /* bytes: each may become %XX */

struct row {
	struct program program;
	uint64_t key;
	char script[ABI_REQUEST_TEXT_SIZE], path[ABI_REQUEST_TEXT_SIZE];
};

struct half {
	struct row *rows;
	size_t count, cap;
	struct u64map index;
};

struct requests {
	struct half halves[2];
	unsigned int newer;
	bool want_recall;
	struct buf script, path; /* what was found last */
};

int requests_new(struct requests **out)
{
	struct requests *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(r->halves); i++)
		u64map_init(&r->halves[i].index, REQUESTS_HALF);
	r->script = r->path = (struct buf)BUF_INIT(SHOWN_MAX);
	*out = r;
	return 0;
}

void requests_free(struct requests *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(r->halves); i++) {
		free(r->halves[i].rows);
		u64map_release(&r->halves[i].index);
	}
	buf_release(&r->script);
	buf_release(&r->path);
	free(r);
}

static uint64_t hash_of(const struct program *p, uint64_t key)
{
	const uint64_t words[] = { (uint64_t)p->pid << 32 | p->exec_id, p->start_ns, key };

	return XXH3_64bits(words, sizeof(words));
}

/* Two rows whose hashes meet: the later one takes the place, the other one is not known. */
static const struct row *look(const struct half *h, const struct program *p, uint64_t key)
{
	const struct row *row;
	uint32_t at;

	if (u64map_get(&h->index, hash_of(p, key), &at) < 0)
		return NULL;
	row = &h->rows[at];
	return row->key == key && row->program.pid == p->pid && row->program.exec_id == p->exec_id &&
			       row->program.start_ns == p->start_ns
		       ? row
		       : NULL;
}

static int add(struct requests *r, const struct row *row)
{
	struct half *h = &r->halves[r->newer];
	int result;

	if (h->count == REQUESTS_HALF) {
		r->newer = !r->newer;
		h = &r->halves[r->newer];
		h->count = 0;
		u64map_clear(&h->index);
	}
	result = array_grow(&h->rows, &h->cap, h->count, REQUESTS_HALF);
	if (result == 0)
		result = u64map_put(&h->index, hash_of(&row->program, row->key), (uint32_t)h->count);
	if (result < 0)
		return result;
	h->rows[h->count++] = *row;
	return 0;
}

int requests_put(struct requests *r, const struct abi_request *request)
{
	struct row row = {
		.program = { .pid = request->pid, .exec_id = request->exec_id, .start_ns = request->process_start_ns },
		.key = request->key
	};

	if (look(&r->halves[r->newer], &row.program, row.key))
		return 0;
	memcpy(row.script, request->script, sizeof(row.script));
	memcpy(row.path, request->path, sizeof(row.path));
	return add(r, &row);
}

bool requests_find(struct requests *r, const struct program *program, uint64_t key, struct str *script,
		   struct str *path)
{
	const struct row *row = look(&r->halves[r->newer], program, key);
	struct row copy;

	if (!row) {
		row = look(&r->halves[!r->newer], program, key);
		if (!row) {
			r->want_recall = true;
			return false;
		}
		copy = *row;
		row = &copy;
		ignore(add(r, row)); /* it is still in the older half */
	}
	buf_clear(&r->script);
	buf_clear(&r->path);
	requests_script(row->script, &r->script);
	requests_path(row->path, &r->path);
	*script = buf_str(&r->script);
	*path = buf_str(&r->path);
	return !r->script.error && !r->path.error;
}

bool requests_want_recall(struct requests *r)
{
	bool want = r->want_recall;

	r->want_recall = false;
	return want;
}

/* ---- what is shown ---- */

/* What hides or acts and what is no UTF-8 as a URI would have it. */
static void add_shown(struct str s, struct buf *out)
{
	while (s.len) {
		struct str before = s;
		int32_t code = utf8_next(&s);

		if (code >= 0 && !safe_hides((uint32_t)code)) {
			buf_adds(out, str_first(before, before.len - s.len));
			continue;
		}
		for (size_t i = 0; i < before.len - s.len; i++)
			buf_addf(out, "%%%02X", (uint8_t)before.ptr[i]);
	}
}

/* As much of the text as is there. @is_cut: there may have been more */
static struct str text_of(const char text[ABI_REQUEST_TEXT_SIZE], bool *is_cut)
{
	struct str s = str_n(text, strnlen(text, ABI_REQUEST_TEXT_SIZE));

	*is_cut = s.len >= ABI_REQUEST_TEXT_SIZE - 1;
	for (size_t i = 0; *is_cut && i < 3 && s.len && (uint8_t)s.ptr[s.len - 1] >= 0x80; i++) {
		uint8_t last = (uint8_t)s.ptr[--s.len]; /* a character that may have lost its end goes as a whole */

		if (last >= 0xc0)
			break;
	}
	return s;
}

static void add_text(struct str s, bool is_cut, struct buf *out)
{
	add_shown(s, out);
	if (is_cut)
		buf_adds(out, STR("..."));
}

void requests_script(const char text[ABI_REQUEST_TEXT_SIZE], struct buf *out)
{
	bool is_cut;
	struct str s = text_of(text, &is_cut);

	add_text(s, is_cut, out);
}

/* "http://user:secret@host/path", as a proxy is asked, has more than a path. */
void requests_path(const char text[ABI_REQUEST_TEXT_SIZE], struct buf *out)
{
	bool is_cut;
	struct str s = text_of(text, &is_cut);
	ptrdiff_t at = s.len && s.ptr[0] != '/' ? str_search(s, STR("://")) : -1;

	if (at >= 0) {
		s = str_skip(s, (size_t)at + 3);
		at = str_find(s, '/');
		s = at >= 0 ? str_skip(s, (size_t)at) : str_first(s, 0);
	}
	add_text(s, is_cut, out);
}
