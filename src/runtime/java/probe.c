/* SPDX-License-Identifier: Apache-2.0 */
/* Is this file HotSpot? Its dynamic symbols say so: those of the tables that it has for its serviceability agent. */
#include <elf.h>

#include "object/elf_find.h"
#include "runtime/java/java_int.h"

#define PIECE_BYTES KIB(64)
#define CONSTANTS_MAX MIB(16) /* of read-only data; 2.5 MiB in JDK 25 */
#define LITERAL_MAX 32

/* Whose frames the walk of this build knows. */
#ifdef __aarch64__
#define OWN_MACHINE EM_AARCH64
#define OWN_NAME "aarch64"
#else
#define OWN_MACHINE EM_X86_64
#define OWN_NAME "x86-64"
#endif

static const struct str literals[] = {
	[JAVA_LITERAL_NATIVE] = STR("native nmethod"),
	[JAVA_LITERAL_ADAPTER] = STR("I2C/C2I adapters"),
	[JAVA_LITERAL_COMPILED] = STR("nmethod"),
};

_Static_assert(ARRAY_SIZE(literals) == JAVA_LITERAL_COUNT, "each has its text");

void java_release(struct runtime_binary *binary)
{
	free(binary);
}

/* Return: 1: all are there; 0: it is not HotSpot; -errno. */
static own_frame int find_symbols(const struct elf *elf, uint64_t out[JAVA_SYMBOL_COUNT])
{
	struct elf_dynamic dynamic;
	int r = elf_dynamic_read(elf, &dynamic);

	for (size_t i = 0; r == 0 && i < JAVA_SYMBOL_COUNT; i++) {
		struct elf_found found = { 0 };

		r = elf_dynamic_find(elf, &dynamic, java_symbol_names[i], &found);
		out[i] = found.address;
		if (r == 0 && !found.address)
			return 0;
	}
	if (r == -ENOENT || r == -EBADMSG || r == -ENODATA)
		return 0;
	return r < 0 ? r : 1;
}

/* Where a text with a zero in front and behind lies in @piece. */
static const uint8_t *find_text(const uint8_t *piece, size_t size, struct str text)
{
	for (const uint8_t *p = piece; p + text.len + 2 <= piece + size; p++) {
		p = memchr(p, 0, size - (size_t)(p - piece));
		if (!p || p + text.len + 2 > piece + size)
			return NULL;
		if (!memcmp(p + 1, text.ptr, text.len) && !p[text.len + 1])
			return p + 1;
	}
	return NULL;
}

/* On aarch64 texts lie at multiples of 8, and a linker makes "nmethod" the tail of any text that ends so, if it lies at
 * one there. @out: where in the file; UINT64_MAX: more than one is such a place. */
static void find_tail(const uint8_t *piece, size_t size, uint64_t address, struct str text, uint64_t *out)
{
	for (size_t at = -address % 8; at + text.len < size; at += 8) {
		if (memcmp(piece + at, text.ptr, text.len) || piece[at + text.len])
			continue;
		*out = !*out || *out == address + at ? address + at : UINT64_MAX;
	}
}

/* Return: 0 or -errno; what is not there stays 0. */
static int find_literals(const struct elf *elf, uint64_t out[JAVA_LITERAL_COUNT])
{
	const struct elf_section *section = elf_section_find(elf, STR(".rodata"));
	uint64_t tail = 0;
	uint8_t *piece;
	int r = 0;

	if (!section || section->size > CONSTANTS_MAX)
		return 0;
	piece = malloc(PIECE_BYTES);
	if (!piece)
		return -ENOMEM;
	for (uint64_t at = 0; r == 0 && at < section->size; at += PIECE_BYTES - LITERAL_MAX) {
		size_t size = (size_t)MIN(section->size - at, (uint64_t)PIECE_BYTES);

		r = reader_read(&elf->in, piece, size, section->offset + at);
		for (size_t i = 0; r == 0 && i < JAVA_LITERAL_COUNT; i++) {
			const uint8_t *found = out[i] ? NULL : find_text(piece, size, literals[i]);

			if (found)
				out[i] = section->address + at + (uint64_t)(found - piece);
		}
		if (r == 0 && elf->machine == EM_AARCH64)
			find_tail(piece, size, section->address + at, literals[JAVA_LITERAL_COMPILED], &tail);
	}
	free(piece);
	if (!out[JAVA_LITERAL_COMPILED] && tail != UINT64_MAX)
		out[JAVA_LITERAL_COMPILED] = tail;
	return r;
}

/* Return: 1 and a copy, -ENOMEM. */
static int keep(const struct java_binary *b, struct runtime_binary **out)
{
	struct java_binary *copy = malloc(sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	*copy = *b;
	*out = &copy->base;
	return 1;
}

bool java_is_openj9(struct str path)
{
	return str_starts(str_base(path), STR("libj9vm")); /* libj9vm29.so */
}

int java_probe(const struct runtime_file *file, struct runtime_binary **out)
{
	struct java_binary b = { 0 };
	int r;

	if (!file->elf->is_64)
		return 0;
	r = find_symbols(file->elf, b.symbols);
	if (r < 0 || (r == 0 && !java_is_openj9(file->path)))
		return r;
	if (r == 0) { /* a name is enough to tell people what they miss */
		snprintf(b.base.refused, sizeof(b.base.refused), "is OpenJ9, whose frames are not known");
		return keep(&b, out);
	}
	if (file->be_quick) /* find_literals() reads all of .rodata */
		return -EINPROGRESS;
	b.machine = file->elf->machine;
	if (b.machine != OWN_MACHINE)
		snprintf(b.base.refused, sizeof(b.base.refused), "is not for " OWN_NAME);
	r = find_literals(file->elf, b.literals);
	if (r < 0 && r != -ENODATA && r != -EBADMSG)
		return r;
	return keep(&b, out);
}
