/* SPDX-License-Identifier: Apache-2.0 */
#include "nodejs_image.h"

#define MAP_SFI (NODEJS_HEAP + ABI_NODEJS_TAG)
#define MAP_BYTECODE (NODEJS_HEAP + 64 + ABI_NODEJS_TAG)

static const uint64_t bases[NODEJS_PIECES] = { NODEJS_BUILTINS, NODEJS_CODE, NODEJS_HEAP, NODEJS_STACK };

void nodejs_image_init(struct nodejs_image *im)
{
	memset(im, 0, sizeof(*im));
	im->heap_used = 256;
	im->info = (struct abi_nodejs){
		.version_major = 11,
		.version_minor = 3,
		.sfi_map = MAP_SFI,
		.bytecode_map = MAP_BYTECODE,
		.builtins_size = NODEJS_PIECE,
		.fp_marker = -8,
		.fp_function = -16,
		.fp_bytecode_array = -32,
		.fp_bytecode_offset = -40,
		.fp_target = 24,
		.function_shared = 24,
		.sfi_data = 8,
		.sfi_name = 16,
		.sfi_script = 32,
		.bytecode_data = 54,
		.frame_builtin_exit = 25,
		.frame_wasm = 4,
		.frame_regexp = 27,
		.code_start = 40,
		.code_size = 56,
		.script_id = 64,
	};
	for (size_t i = 0; i < ABI_NODEJS_BUILTINS; i++)
		im->info.builtins[i] = i ? ABI_NODEJS_NO_BUILTINS : NODEJS_BUILTINS;
}

uint64_t *nodejs_image_at(struct nodejs_image *im, uint64_t address)
{
	for (size_t i = 0; i < NODEJS_PIECES; i++)
		if (address - bases[i] < NODEJS_PIECE)
			return &im->words[i][(address - bases[i]) / 8];
	return NULL;
}

void nodejs_image_code(struct nodejs_image *im, uint64_t address, const void *bytes, size_t size)
{
	uint64_t *word = nodejs_image_at(im, address);

	must(word && address % NODEJS_PIECE + size <= NODEJS_PIECE);
	memcpy((uint8_t *)word + address % 8, bytes, size);
}

static uint64_t object(struct nodejs_image *im, size_t size)
{
	uint64_t at = NODEJS_HEAP + im->heap_used;

	must(im->heap_used + size <= NODEJS_PIECE);
	im->heap_used += size;
	return at;
}

uint64_t nodejs_image_function(struct nodejs_image *im, bool is_builtin, uint64_t *shared)
{
	uint64_t function = object(im, 64), script = object(im, 72), *words;

	*shared = object(im, ABI_NODEJS_SFI_BYTES);
	words = nodejs_image_at(im, *shared);
	words[0] = im->info.sfi_map;
	words[im->info.sfi_data / 8] = is_builtin ? 77ULL << 32 : *shared + 1;
	words[im->info.sfi_name / 8] = *shared + 17;
	words[im->info.sfi_script / 8] = script + ABI_NODEJS_TAG;
	*nodejs_image_at(im, script + im->info.script_id) = 7ULL << 32;
	*nodejs_image_at(im, function + im->info.function_shared) = *shared + ABI_NODEJS_TAG;
	return function + ABI_NODEJS_TAG;
}

uint64_t nodejs_image_guard(const struct nodejs_image *im, uint64_t shared)
{
	__u64 words[ABI_NODEJS_SFI_WORDS], id = 0;

	if (nodejs_image_read((void *)(uintptr_t)im, words, ABI_NODEJS_SFI_BYTES, shared) < 0)
		return 0;
	(void)nodejs_image_read((void *)(uintptr_t)im, &id, sizeof(id), walk_nodejs_id_at(&im->info, words));
	return walk_nodejs_guard(&im->info, words, id);
}

uint64_t nodejs_image_bytecode(struct nodejs_image *im)
{
	uint64_t at = object(im, 64);

	*nodejs_image_at(im, at) = im->info.bytecode_map;
	return at + ABI_NODEJS_TAG;
}

uint64_t nodejs_image_compiled(struct nodejs_image *im, uint64_t start, uint32_t size)
{
	uint64_t code = object(im, 64);

	*nodejs_image_at(im, code + im->info.code_start) = start;
	*nodejs_image_at(im, code + im->info.code_size) = size;
	return code + ABI_NODEJS_TAG;
}

void nodejs_image_copy(struct nodejs_image *im, uint64_t shared, uint64_t bytecode, uint64_t start, uint32_t size)
{
	uint64_t code = nodejs_image_compiled(im, start, size), data = object(im, 24);

	*nodejs_image_at(im, data + 8) = bytecode;
	*nodejs_image_at(im, data + 16) = code;
	*nodejs_image_at(im, shared + im->info.sfi_data) = data + ABI_NODEJS_TAG;
}

void nodejs_image_frame(struct nodejs_image *im, uint64_t fp, uint64_t caller_fp, uint64_t caller_pc, uint64_t marker,
			uint64_t function)
{
	*nodejs_image_at(im, fp) = caller_fp;
	*nodejs_image_at(im, fp + 8) = caller_pc;
	*nodejs_image_at(im, fp - 8) = marker;
	*nodejs_image_at(im, fp - 16) = function;
}

int nodejs_image_read(void *self, void *dst, __u32 size, __u64 at)
{
	const struct nodejs_image *im = self;

	for (size_t i = 0; i < NODEJS_PIECES; i++) {
		uint64_t offset = at - bases[i];

		if (offset >= NODEJS_PIECE || size > NODEJS_PIECE - offset)
			continue;
		memcpy(dst, (const uint8_t *)im->words[i] + offset, size);
		return 0;
	}
	return -EFAULT;
}
