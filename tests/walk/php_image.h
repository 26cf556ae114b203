/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up memory of a PHP process: frames, functions, operations and texts as php-src lays them out, for the tests of
 * the walker and the seeds of its fuzz target. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "abi/php.h"
#include "base/base.h"

#define PHP_IMAGE_BYTES KIB(32)

struct php_image {
	struct abi_php info;
	uint64_t base; /* address of bytes[0] in the made-up process */
	size_t used;
	uint64_t last; /* the innermost frame; its address lies in executor_globals, too */
	uint8_t bytes[PHP_IMAGE_BYTES];
};

struct php_image_func {
	const char *class_name, *name, *file; /* NULL: none */
	uint32_t first_line;
	uint8_t type; /* enum abi_php_function_type */
};

/** php_image_open - of a version's layout; @base: where it lies */
void php_image_open(struct php_image *im, const struct abi_php_layout *layout, uint64_t base);
uint64_t php_image_alloc(struct php_image *im, size_t size);
void php_image_put(struct php_image *im, uint64_t at, const void *bytes, size_t size);
void php_image_put_u64(struct php_image *im, uint64_t at, uint64_t value);
/** php_image_func - return: its address. A program's has @op_count operations, in lines first_line + 1, + 2 ... */
uint64_t php_image_func(struct php_image *im, const struct php_image_func *f, uint32_t op_count);
/** php_image_call - a frame of @func (0: none), called by the last one, at its operation @op. Return: its address. */
uint64_t php_image_call(struct php_image *im, uint64_t func, uint32_t op, uint32_t flags);
/** php_image_read - struct walk_world's; self: the image. */
int php_image_read(void *self, void *dst, __u32 size, __u64 at);
