/* SPDX-License-Identifier: Apache-2.0 */
/* Text and bytes objects in the memory of an interpreter, of every version that is known; the memory is the input. */
#include "fuzz.h"

#include "base/utf8.h"
#include "runtime/python/text.h"
#include "runtime/python/versions/layouts.h"

#define BASE 0x7f0000000000 /* where the memory begins */

static int read_input(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct cur *memory = self;

	if (at < BASE || at - BASE > cur_left(memory) || size > cur_left(memory) - (at - BASE))
		return -EFAULT;
	memcpy(dst, memory->pos + (at - BASE), size);
	return 0;
}

static void look(const struct python_memory *m, const struct python_text *text, uint32_t max, size_t size)
{
	scoped(buf_release) struct buf out = BUF_INIT(MIB(1));
	scoped(freep) uint8_t *copy = malloc(max ? max : 1);
	int64_t taken;
	bool known;

	must(text->size <= 4U * PYTHON_OBJECT_SIZE_MAX && copy);
	taken = python_text_copy(m, text, max, copy);
	if (taken < 0)
		return;
	must((uint64_t)taken <= MIN(text->size, max) && (size_t)taken <= size);
	known = python_text_add(&out, text->form, cur_of(copy, (size_t)taken), taken < text->size);
	must(known && !out.error && utf8_valid(buf_str(&out)));
}

/* Bytes: which version; its flags; offsets of 3.13 on, which the process itself says; how much to copy; the object's
 * place; the memory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur c = cur_of(data, size);
	uint8_t which = cur_u8(&c), flags = cur_u8(&c);
	uint16_t length_at = cur_le16(&c), state_at = cur_le16(&c);
	uint32_t max = cur_le16(&c) % KIB(4);
	uint64_t object = BASE + cur_u8(&c);
	struct abi_python info = { .flags = flags & ABI_PYTHON_BYTE_STRINGS };
	struct python_memory m = { .read = read_input, .self = &c };
	const struct python_version *v = python_version_at(which);
	struct python_text text;

	if (c.bad || !v)
		return 0;
	info.layout = v->layout;
	if (v->has_offsets) {
		info.layout.string_length = length_at;
		info.layout.string_state = state_at;
		info.layout.string_ascii = 40;
		info.layout.string_compact = 56;
	}
	if (python_text_find(&m, &info, object, &text) == 0)
		look(&m, &text, max, size);
	if (python_bytes_find(&m, &info.layout, object, &text) == 0)
		look(&m, &text, max, size);
	return 0;
}
