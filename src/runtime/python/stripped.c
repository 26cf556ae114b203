/* SPDX-License-Identifier: Apache-2.0 */
/* CPython inside of a program that says no names: linked statically and stripped. Its texts tell that it is there and
 * which version, its code where the loop is: the only function that jumps on from dozens of places by a table of
 * labels. A loop built without such jumps (by a compiler that is not asked for computed gotos) is not found; then there
 * are no mixed stacks. Where its variables are is found in the process (attach.c). */
#include <elf.h>

#include "base/ascii.h"
#include "object/elf_fde.h"
#include "object/x86.h"
#include "runtime/python/python_int.h"

#define TEXTS_MAX MIB(64) /* bytes of constants looked at in one turn; segments may overlap */
#define PIECE KIB(48)
#define OVERLAP 64
#define LOOP_MIN 512 /* bytes: of Debian's 3.14 the smaller half is 1,184 */
#define LOOP_MAX MIB(1)
#define CODE_MAX MIB(64)  /* bytes of code looked at */
#define DISPATCHES_MIN 60 /* of 2.7 and 3.6 to 3.14 the loop has 73 to 430 */

struct texts { /* what is looked for among the constants */
	bool has_marker;
	unsigned int major, minor;
	char micro[16]; /* "18", "0rc1" */
};

static unsigned int number_at(struct str s, size_t at, size_t digits)
{
	unsigned int n = 0;

	for (size_t i = at; i < s.len && i - at < digits && ascii_is_digit(s.ptr[i]); i++)
		n = n * 10 + (unsigned int)(s.ptr[i] - '0');
	return n;
}

/* "cpython-39", "cpython-313": the tag of compiled files. "lib/python2.7". */
static void look_for_version(struct str piece, struct texts *t)
{
	ptrdiff_t at = str_search(piece, STR("\0cpython-3"));

	if (at >= 0 && (size_t)at + 13 < piece.len && ascii_is_digit(piece.ptr[at + 10])) {
		t->major = 3;
		t->minor = number_at(piece, (size_t)at + 10, 2);
	} else if (!t->major && str_search(piece, STR("lib/python2.7")) >= 0) {
		t->major = 2;
		t->minor = 7;
	}
}

/* "3.9.18" up to the end of a text, behind anything that is not part of a number: linkers share tails. */
static void look_for_micro(struct str piece, struct texts *t)
{
	char start[16];
	int length = snprintf(start, sizeof(start), "%u.%u.", t->major, t->minor);

	for (size_t from = 0; !t->micro[0];) {
		ptrdiff_t found = str_search(str_skip(piece, from), str_n(start, (size_t)length));
		size_t at = from + (size_t)found, end = at + (size_t)length;
		size_t digits = end;

		if (found < 0)
			return;
		from = at + 1;
		if (at && (ascii_is_digit(piece.ptr[at - 1]) || piece.ptr[at - 1] == '.'))
			continue;
		while (digits < piece.len && digits - end < 2 && ascii_is_digit(piece.ptr[digits]))
			digits++;
		if (digits == end)
			continue;
		while (digits < piece.len && digits - end < sizeof(t->micro) - 1 && piece.ptr[digits] &&
		       strchr("+abrc0123456789", piece.ptr[digits]))
			digits++;
		if (digits < piece.len && !piece.ptr[digits])
			memcpy(t->micro, piece.ptr + end, digits - end);
	}
}

/* Each constant is looked at, in pieces that overlap. @turn 0: the marker and X.Y; 1: the rest of the version. */
static int look_at_texts(const struct elf *elf, const struct elf_segment *s, int turn, uint64_t *left, struct texts *t)
{
	scoped(reader_window_release) struct reader_window w = { 0 };
	struct reader in = reader_slice(&elf->in, s->offset, MIN(s->file_size, *left));
	int r = reader_window_init(&w, &in, PIECE);

	*left -= in.size;
	for (uint64_t at = 0; r == 0 && at < in.size; at += PIECE - OVERLAP) {
		size_t size = (size_t)MIN(in.size - at, (uint64_t)PIECE);
		const uint8_t *bytes = reader_window_get(&w, at, size);
		struct str piece = str_n((const char *)bytes, size);

		if (!bytes)
			return w.error;
		if (turn == 0) {
			t->has_marker |= str_search(piece, STR("Fatal Python error: ")) >= 0;
			look_for_version(piece, t);
		} else {
			look_for_micro(piece, t);
		}
	}
	return r;
}

static int find_texts(const struct elf *elf, struct texts *t)
{
	int r = 0;

	for (int turn = 0; r == 0 && turn < 2; turn++) {
		uint64_t left = TEXTS_MAX;

		for (size_t i = 0; r == 0 && i < elf->segment_count; i++) {
			const struct elf_segment *s = &elf->segments[i];

			if (s->type == PT_LOAD) /* constants may lie beside code; 2.7 has its path in a variable */
				r = look_at_texts(elf, s, turn, &left, t);
		}
		if (!t->has_marker || !t->major)
			break;
	}
	return r;
}

static unsigned int count_dispatches(const uint8_t *code, size_t size)
{
	unsigned int count = 0;
	struct x86 i;

	for (size_t at = 0; at < size; at += i.length) {
		if (x86_decode(code + at, size - at, 0, &i) < 0)
			break;
		/* Not those of the procedure linkage table, which go where one word says. */
		count += i.flow == X86_FLOW_JUMP && !i.target && i.memory != X86_MEMORY_RELATIVE;
	}
	return count;
}

static int count_of(const struct elf *elf, const struct elf_fde *fde, uint8_t *room, unsigned int *out)
{
	uint64_t offset;
	int r;

	*out = 0;
	if (elf_offset_of(elf, fde->start, &offset) < 0)
		return 0;
	r = reader_read(&elf->in, room, (size_t)fde->size, offset);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	*out = count_dispatches(room, (size_t)fde->size);
	return 0;
}

/* Return: 0 and out->info, when there is one. */
static int find_loop(const struct elf *elf, struct elf_found *out)
{
	scoped(freep) uint8_t *room = malloc(LOOP_MAX);
	unsigned int most = DISPATCHES_MIN - 1, count;
	struct elf_fde fde;
	struct elf_fdes fdes;
	uint64_t looked = 0;
	int r = elf_fdes_open(elf, &fdes);

	if (!room)
		return -ENOMEM;
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (uint32_t i = 0; i < fdes.count && looked < CODE_MAX; i++) {
		if (elf_fde_room(&fdes, i) < LOOP_MIN || elf_fde_at(elf, &fdes, i, &fde) < 0 || fde.size < LOOP_MIN ||
		    fde.size > LOOP_MAX)
			continue;
		looked += fde.size;
		r = count_of(elf, &fde, room, &count);
		if (r < 0)
			return r;
		if (count <= most)
			continue;
		most = count;
		*out = (struct elf_found){ .address = fde.start, .size = fde.size, .section = 1, .info = STT_FUNC };
	}
	return 0;
}

/* From 3.10 on _PyRuntime has a section of its own. */
static void find_runtime(const struct elf *elf, struct elf_found *out)
{
	const struct elf_section *s = elf_section_find(elf, STR(".PyRuntime"));

	if (s)
		*out = (struct elf_found){ .address = s->address, .size = s->size, .section = 1, .info = STT_OBJECT };
}

int python_stripped(struct python_file *file, char version[32])
{
	struct texts texts = { 0 };
	int r;

	if (file->elf->machine != EM_X86_64)
		return 0;
	r = find_texts(file->elf, &texts);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (!texts.has_marker || !texts.major)
		return 0;
	r = find_loop(file->elf, &file->symbols[PYTHON_SYMBOL_EVAL_DEFAULT]);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	find_runtime(file->elf, &file->symbols[PYTHON_SYMBOL_RUNTIME]);
	snprintf(version, 32, "%u.%u.%s", texts.major, texts.minor, texts.micro[0] ? texts.micro : "0");
	return file->symbols[PYTHON_SYMBOL_EVAL_DEFAULT].info != 0;
}
