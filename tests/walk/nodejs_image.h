/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of V8 in made-up memory: code, objects and frames, as walk/walk_nodejs.h reads them. Used by the unit test,
 * by what makes the seeds of its fuzz target, and by the target. */
#pragma once

#include <linux/types.h>

#include "base/base.h"
#include "walk/walk_nodejs.h"

#define NODEJS_BUILTINS 0x10000000ULL /* what is mapped where; each NODEJS_PIECE bytes */
#define NODEJS_CODE 0x20000000ULL
#define NODEJS_HEAP 0x30000000ULL
#define NODEJS_STACK 0x70000000ULL
#define NODEJS_PIECE 4096
#define NODEJS_PIECES 4

struct nodejs_image {
	struct abi_nodejs info;
	uint64_t words[NODEJS_PIECES][NODEJS_PIECE / 8];
	uint64_t regs_pc, regs_sp, regs_fp, regs_rdi;
	uint64_t heap_used; /* bytes */
};

/** nodejs_image_init - an empty one of V8 11.3's layout */
void nodejs_image_init(struct nodejs_image *im);
/** nodejs_image_at - the word at @address; NULL: nothing is there */
uint64_t *nodejs_image_at(struct nodejs_image *im, uint64_t address);
void nodejs_image_code(struct nodejs_image *im, uint64_t address, const void *bytes, size_t size);
/** nodejs_image_function - a JSFunction, tagged, with a SharedFunctionInfo whose place is in *@shared; @is_builtin: it
 * has no bytecode */
uint64_t nodejs_image_function(struct nodejs_image *im, bool is_builtin, uint64_t *shared);
/** nodejs_image_compiled - a Code, tagged, whose instructions are elsewhere */
uint64_t nodejs_image_compiled(struct nodejs_image *im, uint64_t start, uint32_t size);
/** nodejs_image_copy - make @shared, whose bytecode is @bytecode, one whose interpreter is copied to @start */
void nodejs_image_copy(struct nodejs_image *im, uint64_t shared, uint64_t bytecode, uint64_t start, uint32_t size);
/** nodejs_image_guard - walk_nodejs_guard() of @shared; 0: nothing is there */
uint64_t nodejs_image_guard(const struct nodejs_image *im, uint64_t shared);
/** nodejs_image_bytecode - a BytecodeArray, tagged */
uint64_t nodejs_image_bytecode(struct nodejs_image *im);
/** nodejs_image_frame - a frame at @fp. @marker: as it lies there; @function: 0: none */
void nodejs_image_frame(struct nodejs_image *im, uint64_t fp, uint64_t caller_fp, uint64_t caller_pc, uint64_t marker,
			uint64_t function);
/** nodejs_image_read - struct walk_world's; @self: the image */
int nodejs_image_read(void *self, void *dst, __u32 size, __u64 at);
