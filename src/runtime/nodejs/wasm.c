/* SPDX-License-Identifier: Apache-2.0 */
/* Which function of WebAssembly a piece of code is. It does not lie in V8's heap: objects of C++ tell.
 *
 *	WasmCodeManager   map: start of memory for code -> {its end, NativeModule}
 *	NativeModule      map: start of a function's code -> WasmCode; those that are not in there yet: an array;
 *	                  the module's bytes
 *	WasmCode          its NativeModule, the code's start and size, the function's number
 *
 * They are read while the process changes them. What is believed: the WasmCode says that the code is its own and the
 * module's, the module's bytes are some, and the caller finds the code unchanged behind all of that. Sources: V8,
 * src/wasm/wasm-code-manager.h; libstdc++, bits/stl_tree.h. */
#include "object/reader.h"
#include "runtime/nodejs/nodejs_int.h"
#include "walk/walk_nodejs.h"

#define DEPTH_MAX 64     /* of a map */
#define FRESH_MAX 8192   /* functions that are not in the map yet */
#define FRESH_PART 64    /* ... read at once */
#define CODE_BYTES 64    /* of a WasmCode, which has 88 at least */
#define BYTES_MAX GIB(1) /* of a module; V8: kV8MaxWasmModuleSize */

struct node { /* of a std::map */
	uint64_t colour, parent, left, right, key, value[2];
};

/* The last node whose key is not behind @key, of the map whose root is at @at. @size: bytes of a node. */
static int find_node(const struct nodejs_heap *h, uint64_t at, uint64_t key, uint32_t size, struct node *out)
{
	struct node node = { 0 };
	bool found = false;
	int r = nodejs_word(h, at, &at);

	for (int depth = 0; r == 0 && at && depth < DEPTH_MAX; depth++) {
		r = nodejs_read(h, &node, size, at);
		if (r == 0 && node.key <= key) {
			*out = node;
			found = true;
		}
		at = node.key <= key ? node.right : node.left;
	}
	return r < 0 ? r : found ? 0 : -ENOENT;
}

static uint64_t word_of(const uint8_t *bytes, size_t at)
{
	uint64_t word;

	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

/* Is it the code at @pc? */
static int judge_code(const struct nodejs_heap *h, uint64_t code, uint64_t module, uint64_t pc, uint32_t *index)
{
	const struct nodejs_wasm *w = &h->layout->version.wasm;
	uint8_t bytes[CODE_BYTES];
	int r = nodejs_read(h, bytes, sizeof(bytes), code);

	if (r < 0)
		return r;
	if (word_of(bytes, w->code_module) != module ||
	    pc - word_of(bytes, w->code_start) >= (uint32_t)word_of(bytes, w->code_size))
		return -ENOENT;
	*index = (uint32_t)word_of(bytes, w->code_index);
	return *index <= INT32_MAX ? 0 : -ENOENT; /* -1: code that is no function's */
}

static int find_fresh(const struct nodejs_heap *h, uint64_t module, uint64_t pc, uint32_t *index)
{
	uint64_t ends[2], codes[FRESH_PART];
	int r = nodejs_read(h, ends, sizeof(ends), module + h->layout->version.wasm.module_fresh);

	if (r < 0 || ends[1] < ends[0] || ends[1] - ends[0] > FRESH_MAX * 8)
		return r < 0 ? r : -ENOENT;
	for (uint64_t at = ends[0]; at < ends[1]; at += sizeof(codes)) {
		size_t count = (size_t)MIN((ends[1] - at) / 8, (uint64_t)FRESH_PART);

		r = nodejs_read(h, codes, (uint32_t)(count * 8), at);
		for (size_t i = 0; r == 0 && i < count; i++)
			if (judge_code(h, codes[i], module, pc, index) == 0)
				return 0;
		if (r < 0)
			return r;
	}
	return -ENOENT;
}

static int find_function(const struct nodejs_heap *h, uint64_t pc, uint64_t *module, uint32_t *index)
{
	const struct nodejs_wasm *w = &h->layout->version.wasm;
	struct node node;
	uint64_t manager;
	int r = h->layout->wasm_manager && w->code_index
			? nodejs_word(h, h->layout->wasm_manager + h->target->bias, &manager)
			: -ENOENT;

	if (r == 0)
		r = find_node(h, manager + w->manager_modules, pc, sizeof(node), &node);
	if (r == 0 && pc >= node.value[0])
		r = -ENOENT;
	if (r < 0)
		return r;
	*module = node.value[1];
	if (find_node(h, *module + w->module_codes, pc, sizeof(node) - 8, &node) == 0 &&
	    judge_code(h, node.value[0], *module, pc, index) == 0)
		return 0;
	return find_fresh(h, *module, pc, index);
}

/* ---- names ---- */

struct module_bytes {
	const struct nodejs_heap *heap;
	uint64_t at;
};

static int read_module(void *self, void *dst, size_t size, uint64_t offset)
{
	const struct module_bytes *m = self;

	if (!nodejs_take_scan(m->heap->process, (uint32_t)size))
		return -EAGAIN;
	return nodejs_read(m->heap, dst, (uint32_t)size, m->at + offset);
}

int nodejs_wasm_read(const struct nodejs_heap *h, uint64_t pc, struct buf *room, struct nodejs_wasm_names *out,
		     uint32_t *index, uint64_t *size)
{
	struct module_bytes bytes = { .heap = h };
	struct reader in = { .read = read_module, .self = &bytes };
	uint64_t module = 0, words[2];
	int r = find_function(h, pc, &module, index);

	if (r == 0) /* a shared_ptr to {bytes, how many} */
		r = nodejs_word(h, module + h->layout->version.wasm.module_bytes, &words[0]);
	if (r == 0)
		r = nodejs_read(h, words, sizeof(words), words[0]);
	if (r == 0 && words[1] > BYTES_MAX)
		r = -EBADMSG;
	if (r < 0)
		return r;
	bytes.at = words[0];
	in.size = *size = words[1];
	r = nodejs_wasm_names_read(&in, *index, room, out);
	if (r == -EAGAIN) { /* more names than may be gone through in a second: its number has to do */
		*out = (struct nodejs_wasm_names){ 0 };
		r = 0;
	}
	return r;
}
