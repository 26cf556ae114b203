/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a Perl interpreter, made up: stack infos, contexts, statements, subs and packages of any version. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "abi/perl.h"
#include "base/base.h"
#include "runtime/perl/versions/layouts.h"
#include "walk/walk.h"

#define PERL_IMAGE_SIZE KIB(64)

struct perl_image {
	uint8_t memory[PERL_IMAGE_SIZE]; /* at address PERL_IMAGE_AT */
	size_t used;
	const struct perl_version *version;
	struct abi_perl info;
	uint64_t tp, interpreter; /* without threads: 0 */
	uint64_t stack_info;      /* the innermost one */
	uint64_t package;         /* main */
	struct walk_world world;
	uint64_t hole, hole_size; /* cannot be read */
	size_t reads;
};

#define PERL_IMAGE_AT UINT64_C(0x7f0000100000)

/** perl_image_open - one interpreter whose program has not begun; malloc'd. @minor: 5.minor */
struct perl_image *perl_image_open(unsigned int minor, bool threads);

uint64_t perl_image_alloc(struct perl_image *im, size_t size);
void perl_image_put(struct perl_image *im, uint64_t at, size_t size, uint64_t value);
uint64_t perl_image_get(const struct perl_image *im, uint64_t at);

/** perl_image_package - a stash of that name; NULL: none. */
uint64_t perl_image_package(struct perl_image *im, const char *name);
/** perl_image_cop - a statement. @file: NULL: none. */
uint64_t perl_image_cop(struct perl_image *im, const char *file, uint32_t line);
/** perl_image_sub - a sub whose first statement is @start. @name: NULL: none. */
uint64_t perl_image_sub(struct perl_image *im, uint64_t package, const char *name, uint64_t start);
/** perl_image_named - the same by CVf_NAMED: without a GV. */
uint64_t perl_image_named(struct perl_image *im, uint64_t package, const char *name);

/** perl_image_enter - a new stack info, inside of the others. */
void perl_image_enter(struct perl_image *im, uint32_t type);
/** perl_image_push - a context in the innermost stack info. @type: CXt_* and CXp_* */
void perl_image_push(struct perl_image *im, uint8_t type, uint64_t cv, uint64_t oldcop, uint64_t retop);
/** perl_image_run - @cop is what runs. */
void perl_image_run(struct perl_image *im, uint64_t cop);
