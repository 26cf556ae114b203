/* SPDX-License-Identifier: Apache-2.0 */
/* A source map of a stranger, and where the sources lie that it names. */
#include "fuzz.h"

#include "symbol/source_map.h"
#include "symbol/source_maps.h"

struct seen {
	size_t count;
};

static int see(void *ctx, const struct lines_answer *answer)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(64));
	const struct lines_wire_frame *f = &answer->frames[0];
	struct seen *seen = ctx;

	seen->count++;
	must(answer->depth <= 1);
	if (!answer->depth)
		return 0;
	must(f->line && f->file.len && f->file.len <= LINES_FILE_MAX && f->function.len <= LINES_FUNCTION_MAX);
	must(!memchr(f->file.ptr, 0, f->file.len));
	must(!f->function.len || !memchr(f->function.ptr, 0, f->function.len));
	source_maps_path(STR("/srv/app/x.js"), f->file, &path);
	must(!path.error && (!path.len || path.ptr[0] == '/' || str_search(buf_str(&path), STR("://")) >= 0));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t places[256];
	struct source_map *m = NULL;
	struct seen seen = { 0 };
	size_t count = 0;
	int r = source_map_parse(str_n((const char *)data, size), &m);

	must(r == 0 || r == -EBADMSG);
	if (r < 0)
		return 0;
	for (uint32_t line = 0; line < 16; line++)
		for (uint32_t column = 0; column < 16; column++)
			places[count++] = source_map_place(line * line, column * column);
	r = source_map_find(m, places, count, UINT64_MAX, see, &seen);
	must(r == -EBADMSG || (r == 0 && seen.count == count));
	source_map_close(m);
	return 0;
}
