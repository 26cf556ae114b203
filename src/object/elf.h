/* SPDX-License-Identifier: Apache-2.0 */
/* ELF headers, program headers, sections and notes of a hostile file. 32 and 64 bits, little-endian only.
 * Source: System V ABI, chapter 4 and 5 (gabi 4.1, 2013 draft); elf.h of glibc 2.36 for the GNU extensions. */
#pragma once

#include "object/reader.h"

/* What one file may make us keep. Programs have about 10 segments and 30 to 60 sections. */
#define ELF_SEGMENTS_MAX 256
#define ELF_SECTIONS_MAX 8192
#define ELF_NAMES_MAX KIB(512) /* of section names */
#define ELF_NOTES_MAX KIB(64)  /* of one note segment or section */
#define ELF_BUILD_ID_MAX 64
#define ELF_LINK_NAME_MAX 256

struct elf_segment {
	uint64_t offset, file_size;
	uint64_t address, memory_size;
	uint32_t type, flags;
};

struct elf_section {
	uint64_t address, offset, size, flags, entry_size;
	uint32_t type, link, info;
	uint32_t name; /* in elf->names */
};

struct elf {
	struct reader in;
	bool is_64;
	uint16_t type, machine;
	uint64_t entry;
	struct elf_segment *segments; /* every kind */
	size_t segment_count;
	struct elf_section *sections; /* none when the table is missing, cut off or too long */
	size_t section_count;
	char *names; /* of the sections, NUL-terminated */
	size_t names_size;
};

/**
 * elf_parse - headers of the file behind @in, which must stay readable while @out is used
 *
 * A broken section table leaves section_count 0; only what running needs (header, program headers) must be whole.
 * Return: 0; -EBADMSG when it is no ELF file or malformed; -ENOTSUP for big-endian; -E2BIG over a limit; -ENOMEM;
 * or the reader's error.
 */
int elf_parse(const struct reader *in, struct elf *out) warn_unused;
void elf_release(struct elf *elf);

/**
 * elf_address_of - the file's own virtual address of a file offset, by the PT_LOAD that holds it
 *
 * Executable segments are asked first; an offset in the page-rounded edge of a segment counts as its. Return: 0 or
 * -ENOENT.
 */
int elf_address_of(const struct elf *elf, uint64_t offset, uint64_t *out) warn_unused;
/** elf_offset_of - the reverse; -ENOENT where memory is not backed by the file. */
int elf_offset_of(const struct elf *elf, uint64_t address, uint64_t *out) warn_unused;
/** elf_base - lowest address of any PT_LOAD, 0 without one. */
uint64_t elf_base(const struct elf *elf);

/** elf_section_find - first section of that name; NULL: none. */
const struct elf_section *elf_section_find(const struct elf *elf, struct str name);
/** elf_section_of_type - first section of that type; NULL: none. */
const struct elf_section *elf_section_of_type(const struct elf *elf, uint32_t type);
struct str elf_section_name(const struct elf *elf, const struct elf_section *section);
/** elf_section_reader - its bytes; an empty reader for SHT_NOBITS and for compressed ones. */
struct reader elf_section_reader(const struct elf *elf, const struct elf_section *section);
/** elf_is_code - does the section with that index hold instructions? */
bool elf_is_code(const struct elf *elf, size_t section_index);

/** elf_notes_build_id - the GNU build id in a run of notes. Return: its size, -ENOENT, or -EBADMSG. */
int elf_notes_build_id(const void *notes, size_t size, uint8_t out[ELF_BUILD_ID_MAX]);
/** elf_build_id - from the note segments, else the note sections. Return: its size (1 to 64), -ENOENT or -errno. */
int elf_build_id(const struct elf *elf, uint8_t out[ELF_BUILD_ID_MAX]);

/**
 * elf_debug_link - name and CRC-32 of the separate debug file
 * Return: 0; -ENOENT; -EBADMSG, also when the name has a slash or is "." or "..".
 */
int elf_debug_link(const struct elf *elf, char name[ELF_LINK_NAME_MAX], uint32_t *crc);
