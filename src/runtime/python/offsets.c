/* SPDX-License-Identifier: Apache-2.0 */
/* _Py_DebugOffsets, the start of _PyRuntime from 3.13 on: 8 bytes "xdebugpy", u64 version, u64 free-threaded, then
 * groups of u64. Each group begins with the size of its object, the first one apart. Source: CPython 3.13 and 3.14,
 * Include/internal/pycore_debug_offsets.h; read from 3.13.0, 3.13.5 and 3.14.10. */
#include "base/cur.h"
#include "runtime/python/python_int.h"

#define MAX_OFFSET 0xfffe
#define THREAD_MAX 4096 /* bytes of a PyThreadState: 304 in 3.13.0 */

struct group { /* words, as many as this version has */
	uint64_t word[16];
};

struct groups {
	struct group runtime, interpreter, thread, frame, code, object, type, tuple, list, set, dict, number, integer,
		bytes, unicode;
};

static void take(struct cur *c, size_t words, struct group *out)
{
	for (size_t i = 0; i < words; i++)
		out->word[i] = cur_le64(c);
}

static void take_all(struct cur *c, bool is_14, struct groups *g)
{
	take(c, 3, &g->runtime);
	take(c, is_14 ? 16 : 13, &g->interpreter);
	take(c, 9, &g->thread);
	take(c, is_14 ? 8 : 6, &g->frame);
	take(c, is_14 ? 11 : 10, &g->code);
	take(c, 2, &g->object);
	take(c, 4, &g->type);
	take(c, 3, &g->tuple);
	take(c, 3, &g->list);
	if (is_14)
		take(c, 4, &g->set);
	take(c, 3, &g->dict);
	take(c, 2, &g->number);
	take(c, 3, &g->integer);
	take(c, 3, &g->bytes);
	take(c, 4, &g->unicode);
}

/* A field of @size bytes at word @index lies inside of its object. */
static bool put(const struct group *g, size_t index, unsigned int size, uint16_t *out, bool *bad)
{
	uint64_t at = g->word[index], whole = g->word[0];

	if (at > MAX_OFFSET || whole < size || at > whole - size)
		*bad = true;
	else
		*out = (uint16_t)at;
	return !*bad;
}

static void put_frame(const struct groups *g, struct abi_python_layout *l, bool *bad)
{
	put(&g->frame, 1, 8, &l->frame_back, bad);
	put(&g->frame, 2, 8, &l->frame_code, bad);
	put(&g->frame, 3, 8, &l->frame_last, bad);
	put(&g->frame, 5, 1, &l->frame_entry, bad);
	if (l->frame_back + 8 > l->frame_size || l->frame_code + 8 > l->frame_size ||
	    l->frame_last + 8 > l->frame_size || l->frame_entry >= l->frame_size)
		*bad = true; /* more than is read of a frame */
}

static void put_code(const struct groups *g, struct abi_python_layout *l, bool *bad)
{
	put(&g->code, 1, 8, &l->code_filename, bad);
	put(&g->code, 2, 8, &l->code_name, bad);
	put(&g->code, 3, 8, &l->code_qualname, bad);
	put(&g->code, 4, 8, &l->code_lines, bad);
	put(&g->code, 5, 4, &l->code_first_line, bad);
	/* The bytecode fills the end of the object, whose size may count its first unit or not. */
	if (g->code.word[9] > MAX_OFFSET || g->code.word[9] > g->code.word[0])
		*bad = true;
	else
		l->code_bytes = (uint16_t)g->code.word[9];
}

static void put_texts(const struct groups *g, struct abi_python_layout *l, bool *bad)
{
	uint64_t ascii = g->unicode.word[3];

	put(&g->unicode, 1, 4, &l->string_state, bad);
	put(&g->unicode, 2, 8, &l->string_length, bad);
	put(&g->bytes, 1, 8, &l->bytes_length, bad);
	put(&g->bytes, 2, 1, &l->bytes_data, bad);
	if (ascii > 256 || ascii < g->object.word[0]) {
		*bad = true;
		return;
	}
	l->string_ascii = (uint16_t)ascii;
	l->string_compact = (uint16_t)(ascii + 16); /* PyCompactUnicodeObject adds utf8_length and utf8 */
}

int python_offsets(const uint8_t *bytes, size_t size, const struct python_version *version, struct python_offsets *out)
{
	struct cur c = cur_of(bytes, size);
	const uint8_t *cookie = cur_bytes(&c, 8);
	struct python_offsets o = { .layout = version->layout };
	struct abi_python_layout *l = &o.layout;
	struct groups g = { 0 };
	uint64_t word, threads;
	bool bad = false;

	if (!cookie || memcmp(cookie, "xdebugpy", 8) != 0)
		return -EBADMSG;
	word = cur_le64(&c);
	if (word >> 32 || (word >> 24) != version->major || (word >> 16 & 0xff) != version->minor)
		return -ENOTSUP;
	o.is_free_threaded = cur_le64(&c) != 0;
	take_all(&c, version->minor >= 14, &g);
	if (c.bad)
		return -EBADMSG;
	threads = g.interpreter.word[3];
	if (g.thread.word[0] > THREAD_MAX || g.runtime.word[2] > g.runtime.word[0] || g.runtime.word[2] > UINT32_MAX)
		return -EBADMSG;
	o.interpreters = (uint32_t)g.runtime.word[2];
	/* There `interned` is a byte, from 3.14 on: CPython 3.13.5 and 3.14.10, Include/cpython/unicodeobject.h. */
	if (o.is_free_threaded && version->minor >= 14)
		l->string_kind_bit = 8;
	put(&g.interpreter, 2, 8, &l->interp_next, &bad);
	put(&g.interpreter, 3, 8, &l->interp_threads, &bad);
	put(&g.thread, 2, 8, &l->thread_next, &bad);
	put(&g.thread, 3, 8, &o.thread_interp, &bad);
	put(&g.object, 1, 8, &o.object_type, &bad);
	bad |= o.object_type > 64;
	put(&g.thread, 4, 8, &l->thread_frame, &bad);
	put(&g.thread, 5, 8, &l->thread_id, &bad);
	put(&g.thread, 6, 8, &l->thread_native_id, &bad);
	put_frame(&g, l, &bad);
	put_code(&g, l, &bad);
	put_texts(&g, l, &bad);
	if (bad || !threads)
		return -EBADMSG;
	*out = o;
	return 0;
}
