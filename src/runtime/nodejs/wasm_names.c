/* SPDX-License-Identifier: Apache-2.0 */
/* What a WebAssembly module calls itself and its functions: the section "name" of its bytes. Pure but for the reader.
 *
 *	"\0asm", version                       4 bytes each
 *	section: id, size, bytes               id 0: a name of its own comes first
 *	"name": subsections of the same form   0: text; 1: count, {index, text} with rising indexes
 *
 * Numbers are LEB128, a text is a count of bytes and UTF-8.
 * Source: WebAssembly core specification 2.0, sections 5.5 and 7.4.1. */
#include "base/utf8.h"
#include "runtime/nodejs/nodejs_int.h"

#define WINDOW KIB(16)
#define SECTIONS_MAX 1024
#define SCAN_MAX MIB(16) /* bytes of names that are gone through for one */
#define HEAD "\0asm\1\0\0"
#define HEAD_SIZE 8 /* with the last 0 */

enum { SECTION_CUSTOM = 0, NAMES_MODULE = 0, NAMES_FUNCTIONS = 1 };

_Static_assert(WINDOW > NODEJS_TEXT_MAX, "a text lies in one window");

struct bytes {
	struct reader_window window;
	uint64_t at, end;
	bool bad; /* sticky */
};

static uint8_t take_u8(struct bytes *b)
{
	const uint8_t *p = !b->bad && b->at < b->end ? reader_window_get(&b->window, b->at, 1) : NULL;

	b->bad |= !p;
	b->at += p != NULL;
	return p ? *p : 0;
}

static uint32_t take_u32(struct bytes *b)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 35; shift += 7) {
		uint8_t byte = take_u8(b);

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			b->bad |= value > UINT32_MAX;
			return b->bad ? 0 : (uint32_t)value;
		}
	}
	b->bad = true;
	return 0;
}

/* Where what comes next ends, whose size stands in front of it. */
static uint64_t take_end(struct bytes *b)
{
	uint32_t size = take_u32(b);

	b->bad |= size > b->end - b->at;
	return b->bad ? b->at : b->at + size;
}

/* A text that is none of UTF-8 stays empty. */
static void take_text(struct bytes *b, struct buf *room, struct nodejs_wasm_text *out)
{
	uint64_t end = take_end(b);
	size_t size = (size_t)MIN(end - b->at, (uint64_t)NODEJS_TEXT_MAX);
	const uint8_t *p = b->bad ? NULL : reader_window_get(&b->window, b->at, size);
	struct str text = str_n((const char *)p, p ? size : 0);

	b->bad |= !p;
	*out = (struct nodejs_wasm_text){ .at = room->len, .is_cut = end - b->at > size };
	for (int cut = 0; out->is_cut && cut < 3 && !utf8_valid(text); cut++)
		text.len--;
	if (!b->bad && utf8_valid(text))
		buf_adds(room, text);
	out->len = room->len - out->at;
	b->at = end;
}

/* The names of the module's section, from b->at to b->end. Return: whether there are any. */
static bool find_names(struct bytes *b)
{
	const uint64_t all = b->end;

	for (int i = 0; i < SECTIONS_MAX && !b->bad && b->at < all; i++) {
		uint8_t id = take_u8(b);
		uint64_t end = take_end(b);
		const uint8_t *p;

		if (b->bad)
			return false;
		if (id == SECTION_CUSTOM && end - b->at >= 5) {
			p = reader_window_get(&b->window, b->at, 5);
			if (p && !memcmp(p, "\4name", 5)) {
				b->at += 5;
				b->end = end;
				return true;
			}
		}
		b->at = end;
	}
	return false;
}

/* One entry of the functions' names. Return: whether it is that of @index; *next: whether those behind it may be. */
static bool take_function(struct bytes *b, uint32_t index, struct buf *room, struct nodejs_wasm_names *out, bool *next)
{
	uint32_t found = take_u32(b);

	*next = !b->bad && found < index;
	if (*next) {
		b->at = take_end(b);
		*next = !b->bad;
	}
	if (b->bad || found != index)
		return false;
	take_text(b, room, &out->function);
	return true;
}

static void find_function(struct bytes *b, uint32_t index, struct buf *room, struct nodejs_wasm_names *out)
{
	const uint64_t start = b->at;
	uint32_t count = take_u32(b);
	bool next = count > 0;

	for (uint32_t i = 0; next && i < count && b->at - start < SCAN_MAX; i++)
		if (take_function(b, index, room, out, &next))
			return;
}

int nodejs_wasm_names_read(const struct reader *module, uint32_t index, struct buf *room, struct nodejs_wasm_names *out)
{
	scoped(reader_window_release) struct reader_window release = { 0 };
	struct bytes b = { .at = HEAD_SIZE, .end = module->size };
	const uint8_t *head;
	uint64_t end;
	int r = reader_window_init(&b.window, module, WINDOW);

	*out = (struct nodejs_wasm_names){ 0 };
	if (r < 0)
		return r;
	release.bytes = b.window.bytes;
	head = reader_window_get(&b.window, 0, HEAD_SIZE);
	if (!head || memcmp(head, HEAD, HEAD_SIZE) != 0)
		return b.window.error && b.window.error != -ENODATA ? b.window.error : -EBADMSG;
	if (!find_names(&b))
		return 0;
	end = b.end;
	while (!b.bad && b.at < end) {
		uint8_t id = take_u8(&b);

		b.end = take_end(&b);
		if (id == NAMES_MODULE && !b.bad && b.at < b.end && !out->module.len)
			take_text(&b, room, &out->module);
		else if (id == NAMES_FUNCTIONS && !b.bad)
			find_function(&b, index, room, out);
		b.at = b.end;
		b.end = end;
		if (id >= NAMES_FUNCTIONS) /* what comes behind it are names of other things */
			break;
	}
	if (b.window.error == -EAGAIN)
		return -EAGAIN;
	return room->error;
}
