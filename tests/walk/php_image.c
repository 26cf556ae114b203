// SPDX-License-Identifier: Apache-2.0
#include "php_image.h"

#define GLOBALS 1024

static uint8_t *place(struct php_image *im, uint64_t at, size_t size)
{
	must(at >= im->base && at - im->base <= sizeof(im->bytes) && size <= sizeof(im->bytes) - (at - im->base));
	return im->bytes + (at - im->base);
}

uint64_t php_image_alloc(struct php_image *im, size_t size)
{
	uint64_t at = im->base + im->used;

	im->used += align_up(size, 8);
	must(im->used <= sizeof(im->bytes));
	return at;
}

void php_image_put(struct php_image *im, uint64_t at, const void *bytes, size_t size)
{
	memcpy(place(im, at, size), bytes, size);
}

void php_image_put_u64(struct php_image *im, uint64_t at, uint64_t value)
{
	php_image_put(im, at, &value, sizeof(value));
}

static void put_u32(struct php_image *im, uint64_t at, uint32_t value)
{
	php_image_put(im, at, &value, sizeof(value));
}

void php_image_open(struct php_image *im, const struct abi_php_layout *layout, uint64_t base)
{
	*im = (struct php_image){ .base = base };
	im->info.layout = *layout;
	im->info.globals = php_image_alloc(im, GLOBALS);
}

/* As the engine does: php-src, Zend/zend_string.h. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = 5381;

	for (; *text; text++)
		hash = hash * 33 + (uint8_t)*text;
	return hash | UINT64_C(1) << 63;
}

static uint64_t put_text(struct php_image *im, const char *text, uint64_t hash)
{
	size_t length = strlen(text);
	uint64_t at = php_image_alloc(im, MAX(ABI_PHP_STRING_BYTES + length + 1, (size_t)32));

	php_image_put_u64(im, at + ABI_PHP_STRING_HASH, hash);
	php_image_put_u64(im, at + ABI_PHP_STRING_LENGTH, length);
	php_image_put(im, at + ABI_PHP_STRING_BYTES, text, length + 1);
	return at;
}

static uint64_t put_ops(struct php_image *im, uint32_t first_line, uint32_t count)
{
	uint64_t at = php_image_alloc(im, (size_t)count * ABI_PHP_OP_SIZE);

	for (uint32_t i = 0; i < count; i++)
		put_u32(im, at + (uint64_t)i * ABI_PHP_OP_SIZE + ABI_PHP_OP_LINE, first_line + 1 + i);
	return at;
}

uint64_t php_image_func(struct php_image *im, const struct php_image_func *f, uint32_t op_count)
{
	const struct abi_php_layout *l = &im->info.layout;
	uint64_t at = php_image_alloc(im, ABI_PHP_FUNC_BYTES + 24), scope;

	php_image_put(im, at + ABI_PHP_FUNC_TYPE, &f->type, 1);
	if (f->name)
		php_image_put_u64(im, at + ABI_PHP_FUNC_NAME, put_text(im, f->name, 0));
	if (f->class_name) {
		scope = php_image_alloc(im, 64);
		php_image_put_u64(im, scope + ABI_PHP_CLASS_NAME, put_text(im, f->class_name, 0));
		php_image_put_u64(im, at + ABI_PHP_FUNC_SCOPE, scope);
	}
	if (f->type == ABI_PHP_INTERNAL)
		return at;
	put_u32(im, at + l->func_last, op_count);
	put_u32(im, at + l->func_line, f->first_line);
	php_image_put_u64(im, at + l->func_opcodes, put_ops(im, f->first_line, op_count));
	if (f->file)
		php_image_put_u64(im, at + l->func_file, put_text(im, f->file, hash_of(f->file)));
	return at;
}

uint64_t php_image_call(struct php_image *im, uint64_t func, uint32_t op, uint32_t flags)
{
	const struct abi_php_layout *l = &im->info.layout;
	uint64_t at = php_image_alloc(im, 80), ops;

	if (func) {
		memcpy(&ops, place(im, func + l->func_opcodes, 8), sizeof(ops));
		php_image_put_u64(im, at + ABI_PHP_FRAME_OPLINE, ops + (uint64_t)op * ABI_PHP_OP_SIZE);
	}
	php_image_put_u64(im, at + ABI_PHP_FRAME_FUNC, func);
	put_u32(im, at + ABI_PHP_FRAME_INFO, flags);
	php_image_put_u64(im, at + l->frame_prev, im->last);
	php_image_put_u64(im, im->info.globals + l->current, at);
	im->last = at;
	return at;
}

int php_image_read(void *self, void *dst, __u32 size, __u64 at)
{
	const struct php_image *im = self;
	uint64_t offset = at - im->base;

	if (offset > im->used || size > im->used - offset)
		return -EFAULT;
	memcpy(dst, im->bytes + offset, size);
	return 0;
}
