/* SPDX-License-Identifier: Apache-2.0 */
/* What a function of PHP is called, read from a process's memory: only while the function is the one that its cookie is
 * of. Layout: struct abi_php, the function's address (8 bytes), then memory as walk/pieces.h says. */
#include "fuzz.h"

#include "base/utf8.h"
#include "counted_pieces.h"
#include "runtime/php/names.h"
#include "walk/walk_php.h"

#define READS_MAX 32 /* of one name: it is checked twice, and has three texts */
#define ROOM_MAX KIB(64)

/* As the walker has it. 0: it cannot be read. */
static uint64_t cookie_of(struct counted *m, const struct abi_php *info, uint64_t func)
{
	struct walk *w = calloc(1, sizeof(*w));
	struct walk_world world = { .read = counted_read, .self = m };
	uint64_t cookie = 0;
	uint8_t type;

	must(w);
	w->world = &world;
	memcpy(w->info, info, sizeof(*info));
	if (!walk_php_read_func(w, func)) {
		type = (uint8_t)walk_php_func_word(w, ABI_PHP_FUNC_TYPE);
		cookie = walk_php_find_cookie(w, type == ABI_PHP_USER || type == ABI_PHP_EVAL);
	}
	free(w);
	return cookie;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf room = BUF_INIT(ROOM_MAX);
	struct cur in = cur_of(data, size);
	struct counted *m = calloc(1, sizeof(*m));
	const struct runtime_target target = { .read = counted_read_target, .self = m };
	const uint8_t *bytes = cur_bytes(&in, sizeof(struct abi_php));
	struct abi_php info = { 0 };
	struct runtime_function f;
	uint64_t func, cookie;
	int r;

	must(m);
	if (bytes)
		memcpy(&info, bytes, sizeof(info));
	func = cur_le64(&in);
	pieces_take(&in, &m->pieces);
	cookie = cookie_of(m, &info, func);
	must(!cookie || cookie & 1);
	must(php_read_name(&target, &info, func, cookie ^ 2, &room, &f) < 0 && !room.len); /* another function's */
	m->reads = 0;
	r = php_read_name(&target, &info, func, cookie, &room, &f);
	must(m->reads <= READS_MAX);
	must(cookie || r < 0);
	if (r == 0) {
		must(f.file.len + f.name.len == room.len && f.name.len);
		must(utf8_valid(f.file) && utf8_valid(f.name) && !memchr(room.ptr, 0, room.len));
		must(f.first_line >= 0 && !f.lines.size);
	}
	free(m);
	return 0;
}
