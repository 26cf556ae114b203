/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_image.h"

#include <stdlib.h>
#include <string.h>

#define CONTEXTS 64 /* of one stack info */
#define NEXTSTATE 0x401000
#define ARRAY 8 /* places of a package's */

static int image_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct perl_image *im = self;
	uint64_t offset = at - PERL_IMAGE_AT;

	im->reads++;
	if (offset > PERL_IMAGE_SIZE || size > PERL_IMAGE_SIZE - offset)
		return -EFAULT;
	if (im->hole_size && at < im->hole + im->hole_size && im->hole < at + size)
		return -EFAULT;
	memcpy(dst, im->memory + offset, size);
	return 0;
}

uint64_t perl_image_alloc(struct perl_image *im, size_t size)
{
	uint64_t at = PERL_IMAGE_AT + im->used;

	im->used += align_up(size, 16);
	must(im->used <= PERL_IMAGE_SIZE);
	return at;
}

void perl_image_put(struct perl_image *im, uint64_t at, size_t size, uint64_t value)
{
	must(at >= PERL_IMAGE_AT && at - PERL_IMAGE_AT + size <= PERL_IMAGE_SIZE);
	for (size_t i = 0; i < size; i++)
		im->memory[at - PERL_IMAGE_AT + i] = (uint8_t)(value >> i * 8);
}

uint64_t perl_image_get(const struct perl_image *im, uint64_t at)
{
	uint64_t value;

	memcpy(&value, im->memory + (at - PERL_IMAGE_AT), sizeof(value));
	return value;
}

/* A HEK. Its hash is a sum here: it has to be the same for equal texts. */
static uint64_t add_text(struct perl_image *im, const char *text)
{
	size_t length = strlen(text);
	uint64_t at = perl_image_alloc(im, ABI_PERL_HEK_TEXT + length + 2), hash = 0;

	for (size_t i = 0; i < length; i++)
		hash = hash * 31 + (uint8_t)text[i];
	perl_image_put(im, at, 4, hash);
	perl_image_put(im, at + ABI_PERL_HEK_LENGTH, 4, length);
	memcpy(im->memory + (at + ABI_PERL_HEK_TEXT - PERL_IMAGE_AT), text, length);
	return at;
}

/* @type: SVt_* and flags */
static uint64_t add_head(struct perl_image *im, uint64_t body, uint32_t type, uint64_t u)
{
	uint64_t at = perl_image_alloc(im, ABI_PERL_HEAD_BYTES);

	perl_image_put(im, at, 8, body);
	perl_image_put(im, at + ABI_PERL_HEAD_FLAGS, 4, type);
	perl_image_put(im, at + ABI_PERL_HEAD_ARRAY, 8, u);
	return at;
}

uint64_t perl_image_package(struct perl_image *im, const char *name)
{
	uint64_t body = perl_image_alloc(im, ABI_PERL_HV_BYTES + ABI_PERL_AUX_BYTES);
	uint64_t array = perl_image_alloc(im, ARRAY * 8 + ABI_PERL_AUX_BYTES);
	uint64_t aux = im->version->aux_in_body ? body + ABI_PERL_HV_BYTES : array + ARRAY * 8;

	perl_image_put(im, body + ABI_PERL_HV_MAX, 8, ARRAY - 1);
	if (name)
		perl_image_put(im, aux + ABI_PERL_AUX_NAME, 8, add_text(im, name));
	return add_head(im, body, ABI_PERL_TYPE_HV | (name ? ABI_PERL_FLAG_AUX : 0), array);
}

static uint64_t add_gv(struct perl_image *im, uint64_t package, const char *name)
{
	uint64_t body = perl_image_alloc(im, ABI_PERL_GV_BYTES);

	perl_image_put(im, body + ABI_PERL_GV_NAME, 8, add_text(im, name));
	perl_image_put(im, body + ABI_PERL_GV_STASH, 8, package);
	return add_head(im, body, ABI_PERL_TYPE_GV, 0);
}

uint64_t perl_image_cop(struct perl_image *im, const char *file, uint32_t line)
{
	uint64_t at = perl_image_alloc(im, ABI_PERL_COP_BYTES), place = 0;
	char name[512];

	if (file && im->info.flags & ABI_PERL_THREADS) {
		place = perl_image_alloc(im, strlen(file) + 1);
		memcpy(im->memory + (place - PERL_IMAGE_AT), file, strlen(file));
	} else if (file) {
		snprintf(name, sizeof(name), "_<%s", file);
		place = add_gv(im, im->package, name);
	}
	perl_image_put(im, at + ABI_PERL_OP_FUNCTION, 8, NEXTSTATE);
	perl_image_put(im, at + ABI_PERL_COP_LINE, 4, line);
	perl_image_put(im, at + ABI_PERL_COP_FILE, 8, place);
	return at;
}

static uint64_t add_cv(struct perl_image *im, uint64_t start, uint64_t gv, uint32_t flags, uint64_t package)
{
	uint64_t body = perl_image_alloc(im, ABI_PERL_CV_BYTES);

	perl_image_put(im, body + ABI_PERL_CV_START, 8, start);
	perl_image_put(im, body + ABI_PERL_CV_GV, 8, gv);
	perl_image_put(im, body + ABI_PERL_CV_FLAGS, 4, flags);
	perl_image_put(im, body + ABI_PERL_CV_STASH, 8, package);
	return add_head(im, body, ABI_PERL_TYPE_CV, 0);
}

uint64_t perl_image_sub(struct perl_image *im, uint64_t package, const char *name, uint64_t start)
{
	return add_cv(im, start, name ? add_gv(im, package, name) : 0, 0, package);
}

uint64_t perl_image_named(struct perl_image *im, uint64_t package, const char *name)
{
	return add_cv(im, 0, add_text(im, name), ABI_PERL_CV_NAMED, package);
}

static void set_stack_info(struct perl_image *im, uint64_t at)
{
	im->stack_info = at;
	perl_image_put(im,
		       im->info.flags & ABI_PERL_THREADS
			       ? im->interpreter + im->version->layout.interp_cop + ABI_PERL_INTERP_INFO
			       : im->info.info,
		       8, at);
}

void perl_image_enter(struct perl_image *im, uint32_t type)
{
	uint64_t at = perl_image_alloc(im, ABI_PERL_INFO_BYTES);

	perl_image_put(im, at + ABI_PERL_INFO_CONTEXTS, 8,
		       perl_image_alloc(im, CONTEXTS * (size_t)im->version->layout.context));
	perl_image_put(im, at + ABI_PERL_INFO_PREVIOUS, 8, im->stack_info);
	perl_image_put(im, at + ABI_PERL_INFO_INDEX, 4, UINT32_MAX);
	perl_image_put(im, at + ABI_PERL_INFO_MAX, 4, CONTEXTS - 1);
	perl_image_put(im, at + im->version->layout.info_type, 4, type);
	set_stack_info(im, at);
}

void perl_image_push(struct perl_image *im, uint8_t type, uint64_t cv, uint64_t oldcop, uint64_t retop)
{
	uint32_t index = (uint32_t)perl_image_get(im, im->stack_info + ABI_PERL_INFO_INDEX) + 1;
	uint64_t at = perl_image_get(im, im->stack_info + ABI_PERL_INFO_CONTEXTS) +
		      index * (uint64_t)im->version->layout.context;

	must(index < CONTEXTS);
	perl_image_put(im, at, 1, type);
	perl_image_put(im, at + ABI_PERL_CONTEXT_OLDCOP, 8, oldcop);
	perl_image_put(im, at + ABI_PERL_CONTEXT_RETOP, 8, retop);
	perl_image_put(im, at + im->version->layout.context_cv, 8, cv);
	perl_image_put(im, im->stack_info + ABI_PERL_INFO_INDEX, 4, index);
}

void perl_image_run(struct perl_image *im, uint64_t cop)
{
	perl_image_put(
		im, im->info.flags & ABI_PERL_THREADS ? im->interpreter + im->version->layout.interp_cop : im->info.cop,
		8, cop);
}

struct perl_image *perl_image_open(unsigned int minor, bool threads)
{
	struct perl_image *im = calloc(1, sizeof(*im));

	must(im != NULL);
	im->version = perl_version_find(minor);
	must(im->version != NULL);
	im->world = (struct walk_world){ .read = image_read, .self = im };
	im->info.layout = im->version->layout;
	im->info.layout.version = (uint8_t)minor;
	im->info.flags = (threads ? ABI_PERL_THREADS : 0) | (im->version->aux_in_body ? ABI_PERL_AUX_IN_BODY : 0);
	if (threads) {
		im->tp = perl_image_alloc(im, 16);
		im->info.key_at = 8;
		im->interpreter = perl_image_alloc(im, 512);
		perl_image_put(im, im->tp + 8, 8, im->interpreter);
		im->info.first = im->interpreter;
	} else {
		im->info.cop = perl_image_alloc(im, 8);
		im->info.info = perl_image_alloc(im, 8);
	}
	im->package = perl_image_package(im, "main");
	perl_image_enter(im, 1);
	return im;
}
