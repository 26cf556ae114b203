/* SPDX-License-Identifier: Apache-2.0 */
/* Does what runs in a process lie in memory as the table of its version says? The script goes on while it is read, so
 * what makes no sense once proves nothing: only what makes sense to the end does. */
#include "base/cur.h"
#include "base/utf8.h"
#include "runtime/php/php_int.h"
#include "runtime/thread_place.h"

#define FRAMES_MAX 64   /* that make sense: enough */
#define EFFORT_MAX 4096 /* frames that are read in one process before it is given up */
#define FILE_MAX 4096
#define TEXT_HEAD 64

static uint64_t word_at(const uint8_t *bytes, size_t at)
{
	struct cur c = cur_of(bytes + at, 8);

	return cur_le64(&c);
}

static uint32_t half_at(const uint8_t *bytes, size_t at)
{
	struct cur c = cur_of(bytes + at, 4);

	return cur_le32(&c);
}

/* A name of a file has a hash, a length that its closing zero agrees with, and no zero before that. */
static bool is_file_name(const struct runtime_target *t, uint64_t at)
{
	uint8_t head[ABI_PHP_STRING_BYTES], text[TEXT_HEAD], end;
	uint64_t length;
	size_t taken;

	if (!at || at & 7 || t->read(t->self, head, sizeof(head), at) < 0 || !word_at(head, ABI_PHP_STRING_HASH))
		return false;
	length = word_at(head, ABI_PHP_STRING_LENGTH);
	if (!length || length > FILE_MAX || t->read(t->self, &end, 1, at + ABI_PHP_STRING_BYTES + length) < 0 || end)
		return false;
	taken = (size_t)MIN(length, (uint64_t)sizeof(text));
	return t->read(t->self, text, (uint32_t)taken, at + ABI_PHP_STRING_BYTES) == 0 && !memchr(text, 0, taken);
}

/* Is @frame in a function of a program at one of its operations, whose line is one that there can be? */
static bool is_sound(const struct runtime_target *t, const struct abi_php_layout *l, const uint8_t *frame,
		     const uint8_t *func)
{
	uint64_t op = word_at(frame, ABI_PHP_FRAME_OPLINE), away = op - word_at(func, l->func_opcodes);
	uint32_t last = half_at(func, l->func_last), first_line = half_at(func, l->func_line);
	uint8_t bytes[ABI_PHP_OP_SIZE];

	return last && away < (uint64_t)last * ABI_PHP_OP_SIZE && away % ABI_PHP_OP_SIZE == 0 &&
	       t->read(t->self, bytes, sizeof(bytes), op) == 0 && half_at(bytes, ABI_PHP_OP_LINE) >= first_line &&
	       half_at(bytes, ABI_PHP_OP_LINE) <= INT32_MAX && is_file_name(t, word_at(func, l->func_file));
}

/* Return: 1: it makes sense, with *caller; 0: it does not; -errno. */
static int look_at_frame(const struct runtime_target *t, const struct abi_php_layout *l, uint64_t at, bool is_leaf,
			 bool *is_root, uint64_t *caller)
{
	uint8_t frame[ABI_PHP_FRAME_BYTES], func[ABI_PHP_FUNC_BYTES];
	uint32_t flags;
	int r = at & 7 ? -EFAULT : t->read(t->self, frame, sizeof(frame), at);

	if (r < 0)
		return r;
	*caller = word_at(frame, l->frame_prev);
	flags = half_at(frame, ABI_PHP_FRAME_INFO);
	*is_root = (flags & l->top) && (flags & l->code);
	if (!word_at(frame, ABI_PHP_FRAME_FUNC))
		return 1;
	r = t->read(t->self, func, sizeof(func), word_at(frame, ABI_PHP_FRAME_FUNC));
	if (r < 0)
		return r;
	if (func[0] == ABI_PHP_INTERNAL)
		return 1;
	if (func[0] != ABI_PHP_USER && func[0] != ABI_PHP_EVAL)
		return 0;
	return is_leaf || is_sound(t, l, frame, func); /* the innermost one is written down late */
}

int php_agrees(const struct runtime_target *target, const struct abi_php *info)
{
	const struct abi_php_layout *l = &info->layout;
	bool is_root = false;
	size_t count = 0;
	uint64_t at;
	int r;

	if (target->effort && *target->effort > EFFORT_MAX)
		return -ENOTSUP;
	r = thread_read_u64(target, info->globals + l->current, &at);
	for (; r >= 0 && at && count < FRAMES_MAX; count++) {
		uint64_t caller = 0;

		if (target->effort)
			++*target->effort;
		r = look_at_frame(target, l, at, count == 0, &is_root, &caller);
		if (r <= 0 || caller == at)
			break;
		at = caller;
	}
	if (count == FRAMES_MAX)
		return 1;
	/* One frame alone says little. What makes no sense may have changed meanwhile. */
	return r == 1 && !at && is_root && count >= 2 ? 1 : -EAGAIN;
}
