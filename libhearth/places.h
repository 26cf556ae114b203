/* SPDX-License-Identifier: Apache-2.0 */
/* What an address of this process means: mapping, build id, function. */
#pragma once

#include "base/buf.h"
#include "libhearth/sampler.h"
#include "object/elf_symbols.h"
#include "object/unwind/table.h"

struct place {
	uint64_t start, end, offset;
	char *path; /* as /proc/self/maps has it; "" for anonymous code */
	char build_id[2 * ELF_BUILD_ID_MAX + 1];
	bool is_current; /* still mapped */
	bool is_deleted; /* the file was, or replaced by another */
	/* By places_open(). */
	bool was_opened;
	int fd;
	struct reader in, strings[ELF_STRINGS_COUNT];
	struct elf elf;
	struct elf_symbols symbols;
	bool table_was_built;
	struct unwind_table table;
	uint64_t inode, file_size;
	uint32_t device_major, device_minor;
};

struct stack_range {
	uint64_t start, end;
};

struct places {
	struct place *items; /* executable mappings, those that went too */
	size_t count, cap;
	struct stack_range *writable; /* by start: where stacks can be */
	size_t writable_count, writable_cap;
};

void places_release(struct places *p);
/** places_read - /proc/self/maps again. Return: 0 or -errno. */
int places_read(struct places *p) warn_unused;
/** places_find - index of the executable mapping at @address, or -1. */
ptrdiff_t places_find(const struct places *p, uint64_t address);
/** places_stack - the writable mapping at @address. Return: false when there is none. */
bool places_stack(const struct places *p, uint64_t address, struct stack_range *out);
/** places_open - look at the file, once; without it there is neither build id nor name. */
void places_open(struct place *at);
/** places_name - append the function at @address of @at. Return: 0, -ENOENT when the file does not say. */
int places_name(struct place *at, uint64_t address, struct buf *out) warn_unused;

/**
 * places_caller - who called the function that @s was taken in, when that function has no frame (yet, or any more):
 * then frame pointers know only who called the caller
 *
 * Return: true and *out; false when the frame pointer leads to the caller, or when the file does not say.
 */
bool places_caller(struct place *at, const struct sample *s, uint64_t *out);
