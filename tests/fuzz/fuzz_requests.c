/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker of a web server was busy with, as strangers wrote it: what is shown hides nothing, acts on nothing, is
 * UTF-8, and has no end beyond what a text may become. */
#include "fuzz.h"

#include "agent/requests.h"
#include "base/safe.h"
#include "base/utf8.h"

#define SHOWN_MAX (3 * ABI_REQUEST_TEXT_SIZE + 8)

static void judge(struct str shown)
{
	while (shown.len) {
		int32_t code = utf8_next(&shown);

		must(code >= 0 && !safe_hides((uint32_t)code));
	}
}

static void show(void (*how)(const char[ABI_REQUEST_TEXT_SIZE], struct buf *), const char text[ABI_REQUEST_TEXT_SIZE],
		 struct buf *out)
{
	buf_clear(out);
	how(text, out);
	must(!out->error && out->len <= SHOWN_MAX);
	judge(buf_str(out));
}

/* No user and password of "http://user:secret@host/path": what is left of it begins with the path. */
static void judge_path(const char text[ABI_REQUEST_TEXT_SIZE], struct str shown)
{
	struct str s = str_n(text, strnlen(text, ABI_REQUEST_TEXT_SIZE));

	if (s.len && s.len < ABI_REQUEST_TEXT_SIZE - 1 && s.ptr[0] != '/' && str_search(s, STR("://")) >= 0)
		must(!shown.len || shown.ptr[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf out = BUF_INIT(SHOWN_MAX + 1);
	char text[ABI_REQUEST_TEXT_SIZE] = { 0 };

	if (size)
		memcpy(text, data, MIN(size, sizeof(text)));
	show(requests_script, text, &out);
	show(requests_path, text, &out);
	judge_path(text, buf_str(&out));
	return 0;
}
